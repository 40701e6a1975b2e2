/* The atomic operations that shmtrain uses, with their memory order in their name.
 *
 * No other file names a memory order. At each use a comment says with which operation it pairs and why it need not be stronger;
 * docs/memory-model.md has a row for every shared word. The pointers are to _Atomic objects of 32 or 64 bits, which are
 * lock-free and address-free on every machine that we support, so they work between processes that map one segment at different
 * addresses. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "shared words need lock-free atomics");

/* Loads. relaxed: only the value. acquire: what its writer did before the matching release is seen afterwards. */
#define load_relaxed(word) atomic_load_explicit((word), memory_order_relaxed)
#define load_acquire(word) atomic_load_explicit((word), memory_order_acquire)
#define load_seq_cst(word) atomic_load_explicit((word), memory_order_seq_cst)

#define store_relaxed(word, value) atomic_store_explicit((word), (value), memory_order_relaxed)
#define store_release(word, value) atomic_store_explicit((word), (value), memory_order_release)

/* No later seq_cst load comes before it. QEMU lets one do so when it emulates arm64 (7.2 translates STLR and LDAR without a fence between
 * them), as no arm64 processor may: what runs there is compiled with SHMT_FENCED_STORES. */
#ifdef SHMT_FENCED_STORES
#    define store_seq_cst(word, value)                                    \
        do {                                                              \
            atomic_store_explicit((word), (value), memory_order_seq_cst); \
            atomic_thread_fence(memory_order_seq_cst);                    \
        } while (0)
#else
#    define store_seq_cst(word, value) atomic_store_explicit((word), (value), memory_order_seq_cst)
#endif

/* For a word with one writer: the writer's own increment, without a locked instruction. */
#define bump_relaxed(word, by) store_relaxed((word), load_relaxed(word) + (by))

/* The word's value, which becomes `by` more: for dealing, where no memory is read on the strength of it. */
#define take_relaxed(word, by) atomic_fetch_add_explicit((word), (by), memory_order_relaxed)

/* Sets bits of a word of flags, none of which says anything about other memory. */
#define set_bits_relaxed(word, bits) atomic_fetch_or_explicit((word), (bits), memory_order_relaxed)

/* A count of references becomes `by` less; its value before. release: what this holder did with the object comes before; acquire, for
 * the last one: so does what all others did. */
#define drop_acq_rel(word, by) atomic_fetch_sub_explicit((word), (by), memory_order_acq_rel)

/* The same where what is counted is an announcement: "I announced, now I look". */
#define count_seq_cst(word, by) atomic_fetch_add_explicit((word), (by), memory_order_seq_cst)

/* Lock words only (see docs/memory-model.md). True when `word` held *expected and now holds `desired`: acquire then; on failure
 * *expected is what was found, relaxed. */
#define lock_acquire(word, expected, desired) \
    atomic_compare_exchange_strong_explicit((word), (expected), (desired), memory_order_acquire, memory_order_relaxed)

/* The way back: true when `word` held *expected, which was mine, and now holds `desired`: release then; on failure *expected is
 * what was found, relaxed. */
#define lock_release(word, expected, desired) \
    atomic_compare_exchange_strong_explicit((word), (expected), (desired), memory_order_release, memory_order_relaxed)

/* For a word that several change, each by a function of the word itself: true when it held *expected, bit by bit, and now holds
 * `desired`; false, perhaps without a reason, when *expected is what it holds. */
#define swap_relaxed(word, expected, desired) \
    atomic_compare_exchange_weak_explicit((word), (expected), (desired), memory_order_relaxed, memory_order_relaxed)

/* The full fence that Dekker-like pairs need: "I announced, now I look". ThreadSanitizer does not model fences, so the words on
 * both sides of one are also accessed with seq_cst operations where that is meant. */
#define fence_seq_cst() atomic_thread_fence(memory_order_seq_cst)

/* Keeps the compiler from moving accesses across it; the processor is told nothing. Enough where the reader comes after the
 * writer's death: all that a killed process had done by then, and nothing of what would have followed, is in memory. */
#define fence_compiler() atomic_signal_fence(memory_order_seq_cst)
