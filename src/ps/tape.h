/* Tapes: the decisions of a run in rounds (`aggregate` with staleness, or with a quorum) that decide its bits, for --record and
 * --replay. Each seat has one in the backend's memory, on lines of its own.
 *
 * What is not decided by options and data alone, and changes the parameters' bits, is
 *
 *     who did which item        a gradient is its owner's, and gradients are added up in the order of ranks
 *     what it was computed on   the number of updates that all of its weights had had
 *     what it became a part of  the number of that update; none: it was dropped
 *     where the rate stood      with a quorum: items of the epoch that were done, as who closed the round saw them
 *
 * So a tape is a row of gradients, in the order in which its seat made them. Everything else follows: an update is of the
 * gradients that name it; with staleness they are those of one clock. In `sync` bits depend on none of it, and there are no
 * tapes.
 *
 * A run that keeps tapes computes each gradient on a copy of the weights of one moment, as weights may change while it computes.
 *
 * Recording, the seat's owner writes, and the application reads when all have ended. Replaying, the application fills tapes
 * before workers begin, and all of them read all tapes. */
#pragma once

#include <stdalign.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/line.h"
#include "ps/spec.h"

#define SHMT_TAPED_NONE UINT64_MAX

/* A gradient. Also a row of the file, so all are of 64 bits. */
struct shmt_taped {
    uint64_t step;    /* of the run: the epoch times the steps of an epoch, and the piece */
    uint64_t pulled;  /* its weights had had so many updates */
    uint64_t applied; /* the update that it is in, from 0; SHMT_TAPED_NONE: it was dropped */
    uint64_t closing; /* quorum: its owner closed that round, when so many items were done; SHMT_TAPED_NONE: it did not */
    uint64_t members; /* ... with so many gradients; else 0 */
};
#define SHMT_TAPED_WORDS 5

/* What a seat's part of the memory begins with; gradients follow. */
struct shmt_tape {
    alignas(
        SHMT_LINE) _Atomic uint64_t n; /* owner, recording: that it has made, of which `room` are kept; replaying: constant */
    alignas(
        SHMT_LINE) _Atomic uint64_t next; /* owner, replaying: `pulled` of the next one that it is to begin; UINT64_MAX: none */
};

static inline struct shmt_taped *shmt_tape_gradients(struct shmt_tape *tape) { return (struct shmt_taped *)(tape + 1); }

/* Bytes of a tape with room for so many gradients; 0 for none. Saturates, so that a plan fails. */
static inline uint64_t shmt_tape_bytes(uint64_t room) {
    uint64_t bytes = 0;
    if (room == 0) return 0;
    if (!shmt_mul_u64(room, sizeof(struct shmt_taped), &bytes)) return UINT64_MAX;
    return shmt_add_u64(bytes, sizeof(struct shmt_tape), &bytes) ? bytes : UINT64_MAX;
}

/* Gradients that a seat's tape has room for: all of the run with a few seats; with more, several times an equal share. */
uint64_t shmt_tape_room(const struct shmt_spec *spec);

/* Whether a run of this spec can have made these tapes, one behind the other, of n[seat] gradients: then its replay comes to an
 * end. *epochs_out: whole epochs that they are of. Errors: _DATA, with what cannot be; _MEMORY. */
int shmt_tape_check(const struct shmt_spec *spec, const uint64_t *n, const struct shmt_taped *gradient, uint32_t *epochs_out,
                    struct shmt_error *e);
