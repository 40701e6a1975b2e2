/* Waiting for row locks, and reading under them: see lock.h. */
#include "update/lock.h"

#include "base/checked.h"
#include "update/live.h"
#include "sync/host.h"

/* Looks before the processor is offered: a push of one unit takes less time than these, unless its holder does not run. */
enum { LOOKS = 100, YIELDS = 64 };

/* Behind these the holder does not run, or many are before the waiter. The release of a lock is one plain store, which wakes
 * nobody, so the waiter naps between rounds of looks: as long as the word says the same, each nap is twice as long as the one
 * before, so it notices a release after at most twice the time that the lock was held, and looks at the abort word at least ten
 * times a second. Behind each nap come as many looks as a holder that runs needs to release: one that takes the lock again and
 * again looks as if it were stopped. When somebody else has the lock than at the last look, nobody is stopped, and the waiter
 * begins anew. */
#define SHORTEST_NAP_NS UINT64_C(50000)
#define LONGEST_NAP_NS  UINT64_C(50000000)

static void nap(uint64_t *ns) {
    shmt_sleep_ns(*ns); /* a signal: a shorter nap */
    *ns = shmt_min_u64(*ns * 2, LONGEST_NAP_NS);
}

_Atomic uint32_t *shmt_unit_wait(const struct shmt_locks *locks, _Atomic uint32_t *word) {
    uint64_t nap_ns = SHORTEST_NAP_NS;
    uint32_t before = 0;
    for (uint64_t look = 1;; look++) {
        uint32_t nobody = 0;
        if (shmt_host()->takes_turns) look += (LOOKS - look % LOOKS) % LOOKS; /* until then nobody has a turn */
        /* relaxed: a hint, the compare-and-swap decides. Its acquire pairs with the release of the holder before. */
        const uint32_t holder = load_relaxed(word);
        if (holder == 0 && lock_acquire(word, &nobody, locks->owner)) return word;
        /* relaxed: a flag that carries nothing but itself. Without it, who died with the lock in hand would hang all others. */
        if (locks->abort && load_relaxed(locks->abort) != 0) return NULL;
        if (look > LOOKS * YIELDS && holder != before) {
            look = 1;
            nap_ns = SHORTEST_NAP_NS;
        }
        before = holder;
        if (look % LOOKS != 0)
            shmt_relax();
        else if (look < LOOKS * YIELDS)
            shmt_host()->yield();
        else
            nap(&nap_ns);
    }
}

void shmt_span_read(const struct shmt_span *span, uint64_t at, uint64_t n, float *out) {
    if (!span->locks.word || span->width == 1) {
        shmt_live_read(out, span->weight + at, n);
        return;
    }
    while (n > 0) {
        const uint64_t rest = SHMT_LOCK_FLOATS - at % SHMT_LOCK_FLOATS, part = n < rest ? n : rest;
        _Atomic uint32_t *held = shmt_unit_acquire(&span->locks, at / SHMT_LOCK_FLOATS);
        shmt_live_read(out, span->weight + at, part);
        shmt_unit_release(held);
        at += part;
        out += part;
        n -= part;
    }
}

void shmt_locks_free(const struct shmt_locks *locks, uint32_t rank) {
    if (!locks->word) return;
    for (uint64_t i = 0; i <= locks->mask; i++) {
        /* relaxed: nobody else writes a word that the dead one holds. release: what it had written is seen by who is next. */
        if ((load_relaxed(&locks->word[i]) & 0xffff) == rank + 1) store_release(&locks->word[i], 0);
    }
}
