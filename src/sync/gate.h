/* Gates: how workers wait for one another, on words that each have one writer.
 *
 * Every member of a group owns one gate, on lines of its own. Its progress words only grow: `clock` (how many clocks it has
 * completed), `phase` (how many meeting points it has reached) and `read` (of collectives). "All have reached p" is read from the
 * words of the living members; there is no shared counter that a death could leave half-counted. A waiter spins as long as its
 * machine makes sensible, then sleeps (host.h) on its own `asleep` word, in which it has written for whose word it waits. The member
 * that reaches the target wakes it. The waiter also wakes by itself ten times a second to look at the watch words, so that no death
 * hangs it.
 *
 * What does not follow from one member's word (enough of them have come, a lock is free) is waited for with a question of the
 * caller's, which is asked again after each shmt_gates_notify.
 *
 * Works on memory that the caller hands over: heap (threads, race detectors) or a shared segment (processes). */
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/line.h"

/* Zero-filled memory is a gate that has reached nothing, whose owner is awake, and for which nobody sleeps. Sleeping has a line of
 * its own: the owner looks at `sleepers` whenever it publishes, and would otherwise fetch a line that others wait on. */
struct shmt_gate {
    alignas(SHMT_LINE) _Atomic uint64_t clock; /* owner: clocks completed */
    _Atomic uint64_t phase;                    /* owner: meeting points reached */
    unsigned char beside[48]; /* owner, before it publishes a word: a few bytes that travel in the line of the words (coll) */
    alignas(SHMT_LINE) _Atomic uint32_t asleep; /* owner: whom it may be sleeping for, see gate.c; anybody: 0, "look again" */
    _Atomic uint32_t sleepers; /* anybody: how many may be sleeping for the owner's words; one who dies asleep stays counted */
    _Atomic uint64_t until;    /* owner, before `asleep`: the value that it sleeps for */
    /* owner: how far it has read what others have laid out (coll). Seldom waited for: beside words that others write only when somebody
     * sleeps, and on a half of the line that nobody takes away from who stores it. */
    alignas(SHMT_LINE / 2) _Atomic uint64_t read;
};

/* What a waiter looks at besides the gates. */
struct shmt_watch {
    const _Atomic uint32_t *abort;  /* nonzero: give up (a member died); written by the supervisor */
    const _Atomic uint32_t *member; /* [i * member_stride]: 1 while member i counts; others are not waited for */
    uint32_t member_stride;         /* in words */
    uint32_t spin_ns;               /* how long to spin before sleeping; 0 where there are more workers than processors */
};

/* One member's view of the group; for shmt_gates_min and shmt_gates_wake, any process's. Plain memory of its process. */
struct shmt_gates {
    struct shmt_gate *gate; /* (n) at stride_bytes from one another, all writable */
    uint64_t stride_bytes;  /* a multiple of SHMT_LINE */
    uint32_t n, self;
    struct shmt_watch watch;
    /* For large groups (n below 2^16): a shared word, zero at first, in which a member notes how many members it has seen come
     * (gate.c). The others then need not look at each member, which would take n * n looks in all. NULL: every member looks. */
    _Atomic uint64_t *met;
    /* The last member (of at least two) comes when all others are there, as a rule: so it is looked at behind them, and to wait for it
     * then is a wait of its own, of which `tell` is told. All members say the same of it. */
    bool latecomer;
    /* Called when a wait begins (waits 1; `for_whom` is missing) and when it ends (0; `for_whom` was the last to come). Where
     * waiters spin (watch.spin_ns), it is not called for a wait of a few looks, about half a microsecond. May be NULL. */
    void (*tell)(void *arg, int waits, uint32_t for_whom);
    void *tell_arg;
    /* Called whenever this member has slept, which is for pulse_ns at most. May be NULL. */
    void (*pulse)(void *arg);
    void *pulse_arg;
    uint64_t pulse_ns;
};

enum shmt_gate_word { SHMT_GATE_CLOCK, SHMT_GATE_PHASE, SHMT_GATE_READ };
#define SHMT_GATE_WORDS 3

static inline _Atomic uint64_t *shmt_gate_word(struct shmt_gate *gate, enum shmt_gate_word word) {
    return word == SHMT_GATE_CLOCK ? &gate->clock : word == SHMT_GATE_PHASE ? &gate->phase : &gate->read;
}

/* Publishes that I have reached `value` (never less than before): everything that I wrote before is visible to whoever
 * reads the word with the functions below. Wakes those who sleep for it. Never blocks; costs one full fence, and a look at n
 * lines where somebody sleeps for a word of mine. */
void shmt_gate_reach(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t value);

/* The same in two steps: others see the value; then they are woken, for all that I have set since. Between the two a member may look at the
 * words of others, which takes no longer than its own word's way. It does not block, sleep or go away before it has called. */
void shmt_gate_set(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t value);
void shmt_gate_call(const struct shmt_gates *gates);

/* A few looks at a member's word, as long as a few trips of a cache line between cores: true as soon as it has reached `target`. Does not
 * look where waiters do not spin. */
bool shmt_gate_comes_at_once(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t member);

/* The smallest value of `word` over the members that count (myself included); UINT64_MAX when none counts. What those members
 * wrote before they reached it is visible afterwards. */
uint64_t shmt_gates_min(const struct shmt_gates *gates, enum shmt_gate_word word);

/* Waits until every counting member has been seen to have reached `target`. 0: they have, and what they wrote before is
 * visible. 1: the abort word is set; it is looked at only while a member is missing, so a call after all have
 * reached the target returns 0. Blocks until then, and notices the abort word and changed member words within about 100 ms
 * even if nobody wakes it. *for_whom_out (may be NULL) gets the member last missing, UINT32_MAX when nobody was (where
 * waiters spin: for longer than it takes to look a few times), in either case. */
int shmt_gates_wait(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t *for_whom_out);

/* Reaches `value`, and waits until all have: shmt_gate_reach and shmt_gates_wait, and faster. Returns as the latter. */
int shmt_gates_meet(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t value);

/* As shmt_gates_wait, for one member alone, whoever else is missing; also returns 0 when the member does not count (any more), and the
 * caller looks whether it had reached the target. */
int shmt_gates_wait_for(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t member);

/* Waits until `ready` returns nonzero. The waiter alone calls it, many times, so it has to be quick. It may read anything and
 * changes nothing that others see. When it returns 0, it has written to *for_whom_out for whom it waits (UINT32_MAX: for no
 * particular member). Returns 0 when `ready` returned nonzero, even if the abort word is set by then; 1: the abort word is set. A
 * member that makes `ready` true calls shmt_gates_notify (or shmt_gates_wake) after the change: shmt_gate_reach wakes none of
 * these waiters. Where any of several members may be the last to come, each comes first and asks then: at least one of them finds
 * it ready. */
int shmt_gates_wait_until(const struct shmt_gates *gates, int (*ready)(void *arg, uint32_t *for_whom_out), void *arg);

/* Wakes those who sleep in shmt_gates_wait_until, so that they ask again. Never blocks; costs one full fence and
 * a look at n lines that stay in the caches of all while nobody sleeps. */
void shmt_gates_notify(const struct shmt_gates *gates);

/* Wakes all sleepers at once, after the abort word or a member word was changed (by any store). Any process that has the gates
 * mapped, `self` does not matter. Never blocks. */
void shmt_gates_wake(const struct shmt_gates *gates);

/* The same after a death: everybody, because the dead one may have been about to wake somebody (it empties `asleep` first). As
 * shmt_gates_wake, with a call of the kernel for each gate. */
void shmt_gates_wake_after_death(const struct shmt_gates *gates);
