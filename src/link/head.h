/* The head of a frame: fields in little endian at fixed places (docs/wire.md). It is checked in full before anything of it is used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "carriers/carrier.h"

#define SHMT_WIRE_VERSION 2

enum shmt_frame_kind {
    SHMT_FRAME_BEAT = 1, /* no body: its sender is there; carries acknowledgements as every frame does */
    SHMT_FRAME_DATA = 2, /* number `sequence` of its channel */
    SHMT_FRAME_GAP = 3,  /* as BEAT; and what follows `taken` of the channel has not come: to be sent again */
    SHMT_FRAME_LOST = 4, /* no body: its sender has declared the receiver's life lost */
};

struct shmt_head {
    enum shmt_frame_kind kind;
    uint32_t channel;
    uint32_t from, to; /* ranks */
    uint64_t run;      /* which run this is about: the same on all of its hosts */
    uint64_t life;     /* of the sender: its clock when it started, so that a greater one is newer; never 0 */
    uint64_t to_life;  /* of the receiver, as far as the sender knows; 0: it has not heard of it yet. Not in DATA */
    uint64_t sequence; /* from 1; 0 in frames that are not DATA */
    uint64_t taken;    /* all frames of the channel up to this one have come, in the other direction */
};

void shmt_head_write(const struct shmt_head *head, uint64_t body_bytes, unsigned char out[SHMT_HEAD_BYTES]);

/* Of a head of any version: which it is; 0: it is none of shmtrain. */
uint32_t shmt_head_version(const unsigned char in[SHMT_HEAD_BYTES]);

/* A head that shmt_head_write can have written for a body of that length: true and *out. Otherwise false and, in *why_out, what is
 * wrong with it. */
bool shmt_head_read(const unsigned char in[SHMT_HEAD_BYTES], uint64_t body_bytes, struct shmt_head *out, const char **why_out);
