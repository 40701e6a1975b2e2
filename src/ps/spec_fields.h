/* The fields of a spec that travel: into the note of a checkpoint, into the head of a named store, into a report. One table says
 * what each is called, where it stands, what it may be and who takes it; what is written, read, checked, compared or reported
 * of these follows from it. A new field is a row in spec_fields.c.
 *
 * Not in the table is what is no single number: tables of parameters and nodes of memory; and what a run says to its own processes
 * alone; and what the manifest packs in words of its own (processors, what may die). */
#pragma once

#include <shmtrain/report.h>

#include "base/bounded.h"
#include "ps/spec.h"

/* What a field belongs to, for sentences about one that cannot be. */
enum shmt_spec_part { SHMT_PART_SEATS, SHMT_PART_WORK, SHMT_PART_MERGES, SHMT_PART_RATE, SHMT_PART_PLACES };

/* Who takes part in a field, beside the packed form, which has them all. */
enum {
    SHMT_IN_NOTE = 1,
    SHMT_IN_REPORT = 2,
    SHMT_SAME = 4,      /* a run that goes on from a checkpoint must have the same; the key is that of the option, */
    SHMT_SAME_LIVE = 8, /* in the live modes alone, */
    SHMT_SAME_BATCHED = 16 /* or where updates are of whole batches alone; */,
    SHMT_TAKEN = 32,   /* and where the option is left open, it has that of the checkpoint */
    SHMT_PACKED64 = 64 /* 32 bits in the spec, 64 in the packed form */
};

struct shmt_spec_field {
    struct shmt_bounded is; /* of struct shmt_spec */
    enum shmt_spec_part part;
    uint16_t packed; /* where it stands in the packed form */
    uint16_t uses;
    uint32_t report; /* IN_REPORT: where it stands in a report: words as texts, reals as doubles */
};

/* Field i, from 0, those of a note in their order there; NULL behind the last. */
const struct shmt_spec_field *shmt_spec_field_at(size_t i);

/* The packed form: words of fixed width, in the order of this machine. Named stores have it, so that a field more or elsewhere is
 * another version of them. */
#define SHMT_SPEC_PACKED 312
void shmt_spec_pack(const struct shmt_spec *spec, unsigned char out[SHMT_SPEC_PACKED]);

/* Sets the fields, and nothing else. NULL: all of them are within their bounds; else the first one that is not. */
const struct shmt_spec_field *shmt_spec_unpack(const unsigned char in[SHMT_SPEC_PACKED], struct shmt_spec *out);

/* Sets what a report takes from the spec as it is. */
void shmt_spec_report(const struct shmt_spec *spec, struct shmtrain_report *out);
