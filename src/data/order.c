/* The order of an epoch: see order.h for what it is and why.
 *
 * Called by every worker for each work item, so it keeps nothing between calls. It relies on base/random.h only; the same
 * numbers on every machine.
 *
 * Two steps lead from a place to an example. First the places of one window (4,096) are permuted among themselves, by whole
 * runs of 8. The last window may be shorter; its places are permuted one by one, so that small data, which caches hold anyway,
 * are shuffled down to the single example. Then the result is cut into blocks of 64, and whole blocks are permuted. Since the
 * examples rarely are a multiple of 64, the short block at their end takes no part in that: it is inserted between two blocks,
 * at a place that is drawn for the epoch, and the blocks behind it move up. Each step is a bijection, hence so is the whole. */
#include "data/order.h"

#include "base/random.h"

#include <string.h>

#define RUN    8u
#define BLOCK  64u
#define WINDOW 4096u
#define ROUNDS 4

enum { KEY_BLOCKS = 1, KEY_TAIL = 2, KEY_WINDOW = 3 }; /* what a key is for */

/* A keyed bijection of 0 .. n - 1. The word is cut into a low and a high half (unequal when the number of bits is odd), and the
 * halves are mixed into one another by turns: a Feistel network. That is a bijection of the next power of two; a result that is
 * too large goes through again, until it fits ("cycle walking", fewer than two turns on average). The mixing of a round is
 * multiply-add-shift (Dietzfelbinger 1996): one multiplication, and pairwise independent over its random keys. */
struct bijection {
    uint32_t n, low_bits, high_bits;
    struct {
        uint64_t factor, term;
    } round[ROUNDS];
};

static struct bijection make_bijection(uint32_t n, uint64_t key) {
    uint32_t bits = 2;
    while (bits < 32 && (uint64_t)n > (uint64_t)1 << bits) bits++;
    struct bijection b = {.n = n, .low_bits = bits / 2, .high_bits = bits - bits / 2};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        b.round[i].factor = shmt_mix64(key + 2 * i);
        b.round[i].term = shmt_mix64(key + 2 * i + 1);
    }
    return b;
}

static inline uint32_t mix(const struct bijection *b, uint32_t round, uint32_t x, uint32_t bits) {
    return (uint32_t)((b->round[round].factor * x + b->round[round].term) >> (64 - bits));
}

static inline uint32_t apply(const struct bijection *b, uint32_t x) {
    const uint32_t low_bits = b->low_bits, high_bits = b->high_bits, low_mask = (1u << low_bits) - 1;
    do {
        uint32_t low = x & low_mask, high = x >> low_bits;
        for (uint32_t i = 0; i < ROUNDS; i += 2) {
            low ^= mix(b, i, high, low_bits);
            high ^= mix(b, i + 1, low, high_bits);
        }
        x = high << low_bits | low;
    } while (x >= b->n);
    return x;
}

/* What one window needs. Its places lie in at most two blocks more than its size has, for the tail shifts them; a block's
 * permuted number is computed when its first place comes up. */
struct window {
    uint64_t start, first_block;
    uint32_t run; /* places that stay together */
    struct bijection runs;
    uint32_t block[WINDOW / BLOCK + 2]; /* UINT32_MAX: not computed yet */
};

static void open_window(const struct shmt_order *order, uint32_t epoch, uint64_t first, uint64_t n_tail, struct window *w) {
    w->start = first - first % WINDOW;
    w->first_block = (w->start > n_tail ? w->start - n_tail : 0) / BLOCK;
    const uint64_t left = order->n_examples - w->start;
    w->run = left < WINDOW ? 1 : RUN;
    w->runs =
        make_bijection(left < WINDOW ? (uint32_t)left : WINDOW / RUN, shmt_hash64(order->seed, KEY_WINDOW, epoch, w->start));
    memset(w->block, 0xff, sizeof w->block);
}

/* Where place i of the window stands after the first step. */
static inline uint64_t permuted(const struct window *w, uint32_t i) {
    return w->start + apply(&w->runs, i / w->run) * w->run + i % w->run;
}

/* Places first .. first + n - 1, all of one window. */
static void fill_in_window(const struct shmt_order *order, uint32_t epoch, const struct bijection *blocks, uint64_t first,
                           uint32_t n, uint32_t *example_out) {
    const uint64_t n_tail = order->n_examples % BLOCK, n_before_tail = order->n_examples - n_tail;
    const uint64_t tail_at = BLOCK * shmt_below(shmt_hash64(order->seed, KEY_TAIL, epoch, 0), (uint64_t)blocks->n + 1);
    struct window w;
    open_window(order, epoch, first, n_tail, &w);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t place = permuted(&w, (uint32_t)(first - w.start + i));
        if (place >= tail_at) {
            if (place < tail_at + n_tail) {
                example_out[i] = (uint32_t)(n_before_tail + (place - tail_at));
                continue;
            }
            place -= n_tail;
        }
        uint32_t *block = &w.block[place / BLOCK - w.first_block];
        if (*block == UINT32_MAX) *block = apply(blocks, (uint32_t)(place / BLOCK));
        example_out[i] = *block * BLOCK + (uint32_t)(place % BLOCK);
    }
}

void shmt_order_fill(const struct shmt_order *order, uint32_t epoch, uint64_t first, uint32_t n, uint32_t *example_out) {
    if (!order->shuffle) {
        for (uint32_t i = 0; i < n; i++) example_out[i] = (uint32_t)(first + i);
        return;
    }
    const uint32_t n_blocks = (uint32_t)(order->n_examples / BLOCK); /* full ones */
    const struct bijection blocks = make_bijection(n_blocks, shmt_hash64(order->seed, KEY_BLOCKS, epoch, 0));
    while (n > 0) {
        const uint64_t left = WINDOW - first % WINDOW;
        const uint32_t here = n < left ? n : (uint32_t)left;
        fill_in_window(order, epoch, &blocks, first, here, example_out);
        first += here;
        example_out += here;
        n -= here;
    }
}
