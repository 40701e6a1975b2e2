/* What hosts say to one another about a batch, or a round of the live modes: messages on channel SHMT_CHANNEL_EXCHANGE (docs/wire.md).
 * Fields in little endian; a parcel is read whole and checked before anything of it is used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "carriers/carrier.h"
#include "ps/far.h"

#define SHMT_CHANNEL_EXCHANGE 1

enum shmt_parcel_kind {
    SHMT_PARCEL_PIECES = 1, /* the first of a batch: what was done of the sender's chunks, and whether it wants to stop */
    SHMT_PARCEL_BLOCKS = 2, /* blocks of the sum of one of the sender's subtrees, those that are not zero */
    SHMT_PARCEL_END = 3,    /* nothing more follows about the batch */
    SHMT_PARCEL_OVER = 4,   /* the sender has the whole run; `number`: behind its last batch */
    SHMT_PARCEL_ROUND = 5,  /* the first of a round: `of`: what the sender's workers do (enum shmt_round_state); and numbers */
    SHMT_PARCEL_TERMS = 6,  /* of a batch: the list of terms of one of the sender's chunks: n ids, and then n floats */
    SHMT_PARCEL_PARTS =
        7, /* of a merge: blocks of what the sender's copies come to, those that have changed (update/parts.h) */
    SHMT_PARCEL_PASSED = 8,  /* of a round: `of`: a host; items of the sender that are that host's now */
    SHMT_PARCEL_CAME = 9,    /* of a quorum, to the host that decides: whose gradients are in on the sender's host */
    SHMT_PARCEL_DECIDED = 10 /* of a quorum, from that host: whose gradients the round is made of */
};

enum shmt_round_state {
    SHMT_ROUND_WORKS = 0,
    SHMT_ROUND_RESTS = 1, /* they have ended the epoch */
    SHMT_ROUND_OUT = 2    /* they have no items, and wait for more (passing.h) */
};

/* The numbers of a ROUND. */
enum shmt_round_number {
    SHMT_ROUND_CLOCK =
        0, /* while workers work, of the slowest; when they rest, the nanoseconds that they worked in this epoch */
    SHMT_ROUND_LEFT = 1, /* of struct shmt_headway (consistency/passing.h); 0 where nothing is passed on */
    SHMT_ROUND_EACH = 2,
    SHMT_ROUND_WAY = 3,
    SHMT_ROUND_NUMBERS = 4
};

struct shmt_parcel {
    enum shmt_parcel_kind kind;
    uint32_t
        of; /* PIECES: the first chunk, or item; TERMS: the chunk; BLOCKS: the subtree, by its place among the sender's, or 0; ROUND,
               PASSED: as said above; CAME, DECIDED: words of a host's seats, a bit for each */
    uint32_t n;      /* pieces, blocks, parts, numbers, items, words */
    uint64_t number; /* of the batch, in the run */
    bool
        flag; /* PIECES of a batch, ROUND, CAME: the sender wants to stop; TERMS: there is more of the gradient in BLOCKS; DECIDED:
                        nobody has work left in the epoch */
    bool halves; /* BLOCKS, TERMS: floats are bfloat16 (bfloat16.h) */
    const unsigned char *entries;
};

#define SHMT_MOST_PARCEL_BLOCKS 1000 /* so that a parcel is about a frame's longest body */
#define SHMT_MOST_PARCEL_PARTS  800  /* likewise */
#define SHMT_MOST_PARCEL_PIECES 1024
#define SHMT_MOST_PARCEL_TERMS  65536
#define SHMT_MOST_PARCEL_PASSED 8192
#define SHMT_MOST_PARCEL_WORDS  (8 + SHMT_MAX_HOSTS * SHMT_SEAT_WORDS)

/* ---- writing ---- */

/* Room for n entries; entry i is then written in its place. NULL: not enough memory. */
struct shmt_payload *shmt_parcel_make(const struct shmt_parcel *parcel, unsigned char **entries_out);
void shmt_parcel_put_piece(unsigned char *entries, uint32_t i, const struct shmt_far_piece *piece);
void shmt_parcel_put_block(unsigned char *entries, uint32_t i, uint64_t block, const float values[SHMT_FAR_BLOCK]);

void shmt_parcel_put_part(unsigned char *entries, uint32_t i, uint64_t block, const struct shmt_merge_part *part);
void shmt_parcel_put_terms(unsigned char *entries, const struct shmt_far_terms *terms); /* all of them */

/* The same, of a parcel with `halves`: values are rounded, if they are not yet. */
void shmt_parcel_put_half_block(unsigned char *entries, uint32_t i, uint64_t block, const float values[SHMT_FAR_BLOCK]);
void shmt_parcel_put_half_terms(unsigned char *entries, const struct shmt_far_terms *terms);
void shmt_parcel_put_number(unsigned char *entries, uint32_t i, uint64_t number); /* ROUND, PASSED, CAME, DECIDED */

/* The first n entries are all that there are. */
void shmt_parcel_end(struct shmt_payload *payload, uint32_t n);

/* ---- reading ---- */

/* false: it is none, and *why_out says why. */
bool shmt_parcel_read(const unsigned char *bytes, uint64_t n_bytes, struct shmt_parcel *out, const char **why_out);
void shmt_parcel_piece(const struct shmt_parcel *parcel, uint32_t i, struct shmt_far_piece *out);
/* As long as the parcel. Of one with `halves` the values are written to values_out (n), else that may be NULL. */
void shmt_parcel_terms(const struct shmt_parcel *parcel, float *values_out, struct shmt_far_terms *out);
/* ROUND, PASSED, CAME, DECIDED; BLOCKS, PARTS: of the block, without its values. */
uint64_t shmt_parcel_number(const struct shmt_parcel *parcel, uint32_t i);
uint64_t shmt_parcel_block(const struct shmt_parcel *parcel, uint32_t i, float values_out[SHMT_FAR_BLOCK]);
uint64_t shmt_parcel_part(const struct shmt_parcel *parcel, uint32_t i, struct shmt_merge_part *out);
