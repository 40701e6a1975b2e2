/* Row locks (write mode locked): taking and releasing the lock word of one unit of a table, and reading under locks.
 *
 * Called by the push kernels, unit by unit, and by sessions for pulls. Nobody holds two units at a time, so nobody can wait
 * in a circle. The word names its holder, so that whoever sees it die can release what it held. Which units there are:
 * span.h. */
#pragma once

#include <stddef.h>

#include "update/span.h"

/* Floats of one unit. */
static inline uint64_t shmt_unit_floats(const struct shmt_span *span) { return span->width == 1 ? 1 : SHMT_LOCK_FLOATS; }

/* Waits until the unit's lock is mine: spins for a moment, then offers the processor to others, of whom one holds it, then
 * sleeps, for 50 ms at a time at most, and shortly as long as others take turns. Returns NULL when the abort word was set
 * meanwhile. */
_Atomic uint32_t *shmt_unit_wait(const struct shmt_locks *locks, _Atomic uint32_t *word);

/* The lock word that is held now; NULL: none, because there are no locks or the run is given up, and the caller goes on
 * without. */
static inline _Atomic uint32_t *shmt_unit_acquire(const struct shmt_locks *locks, uint64_t unit) {
    uint32_t nobody = 0;
    if (!locks->word) return NULL;
    _Atomic uint32_t *word = &locks->word[(locks->first + unit) & locks->mask];
    /* acquire: what the holder before has written is seen; pairs with the release in shmt_unit_release */
    return lock_acquire(word, &nobody, locks->owner) ? word : shmt_unit_wait(locks, word);
}

static inline void shmt_unit_release(_Atomic uint32_t *held) {
    if (held) store_release(held, 0); /* pairs with the acquire of who takes it next */
}

/* Copies floats at .. at + n - 1 of the table: unit by unit under its lock where the span has locks and the table is wider
 * than 1 (a single float is whole without), so that no unit is seen in the middle of a push. */
void shmt_span_read(const struct shmt_span *span, uint64_t at, uint64_t n, float *out);

/* Releases what the seat `rank` held when it died. Its process must be gone. */
void shmt_locks_free(const struct shmt_locks *locks, uint32_t rank);
