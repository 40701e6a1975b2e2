/* Gates: see gate.h. Called by backends (clocks, meetings) and by the supervisor (wake); relies on host.h.
 *
 * Why no wake-up is lost. A sleeper announces and then looks; a publisher publishes and then looks:
 *
 *     sleeper    asleep = code    (a)        publisher  word = value      (c)
 *                word < target?   (b)                   asleep == code?   (d)
 *                wait(asleep, code)                     asleep = 0; wake(asleep)
 *
 * a, b, c and d are seq_cst, so they stand in one order that all agree on. If d does not see a, then d is before a, c before d
 * and a before b: b sees the value, and the sleeper does not sleep. If d sees a, the publisher writes 0 first and wakes then;
 * the host compares and queues in one step, so the sleeper either finds the 0 and does not sleep, or is queued and woken.
 *
 * The publisher does not look at everybody's `asleep` where nobody sleeps for it. A sleeper counts itself among the member's
 * `sleepers` before it announces (a'), and out when it is awake; the publisher looks at that number behind (c) (d'). Both are seq_cst,
 * too: if d' does not see a', then c is before b, as above. Who dies asleep stays counted, which costs looks in vain.
 *
 * In meetings and collectives (c) is a release store (shmt_gate_set), and a seq_cst fence stands between it and (d) (shmt_gate_call): what
 * is done between is done while the line of (c) is still on its way.
 *
 * `asleep` has a second writer, the publisher, but only of 0, which means "look again". Should it hit a later announcement of
 * the same sleeper, the sleeper looks once more in vain. What a dead sleeper has left there costs one wake-up of nobody.
 * A publisher that dies between its 0 and its wake-up leaves a sleeper whom nobody sees asleep: hence shmt_gates_wake_after_death.
 *
 * shmt_gates_wait_until is the same with an answer in place of the word, and with fences between a and b, and between c and d,
 * because the words that the answer is made of are not ours. Where two members change them and both ask, each is sleeper and
 * publisher: A changes its word, announces, and asks; B does the same. One announcement is the later one; whoever made it
 * has the other's change before its question, so it gets the yes even if neither saw the other's while it spun.
 *
 * spin/gate.pml and spin/answer.pml are models of both, in which every interleaving and every death is tried. */
#include "sync/gate.h"

#include <stdbool.h>
#include <stddef.h>

#include "sync/host.h"
#include "base/point.h"

#define NOBODY         UINT32_MAX
#define NAP_NS         100000000u /* the longest sleep: the watch words are looked at ten times a second */
#define LOOKS_PER_TIME 32u        /* looks at the missing member's word between two looks at the time and the watch words */
#define FIRST_LOOKS    16u /* before any call: half a microsecond, as long as a few trips of a cache line between cores */

/* Members that are still to be seen: `left` of them, from `at` on downwards, around the circle; a latecomer behind all of them. What
 * was seen once stays true, because the words only grow, so each member is seen once. Downwards, because workers are started upwards:
 * those who are there already sleep for the last one, and are not all woken by each that comes. */
struct look {
    uint32_t at, left;
};

static struct shmt_gate *gate_of(const struct shmt_gates *gates, uint32_t i) {
    return (struct shmt_gate *)(void *)((char *)gates->gate + (uint64_t)i * gates->stride_bytes);
}

static bool is_latecomer(const struct shmt_gates *gates, uint32_t i) { return gates->latecomer && i == gates->n - 1; }

/* Members that are looked at around the circle. */
static uint32_t circle(const struct shmt_gates *gates) { return gates->latecomer ? gates->n - 1 : gates->n; }

/* `left` is one less. */
static uint32_t next_of(const struct shmt_gates *gates, const struct look *look) {
    if (look->left == 1 && gates->latecomer) return gates->n - 1;
    return (look->at > 0 ? look->at : circle(gates)) - 1;
}

static _Atomic uint64_t *word_of(const struct shmt_gates *gates, enum shmt_gate_word word, uint32_t i) {
    return shmt_gate_word(gate_of(gates, i), word);
}

/* What `asleep` holds in shmt_gates_wait_until; no code of a member's word is as large. */
#define FOR_AN_ANSWER UINT32_MAX

/* What `asleep` holds while its owner sleeps for member i's word: never 0. */
static uint32_t sleep_code(enum shmt_gate_word word, uint32_t i) { return (i + 1) << 2 | word; }

/* Acquire pairs with the release of whoever changed the member word: a member that leaves has written its results before. */
static bool counts(const struct shmt_gates *gates, uint32_t i) {
    return load_acquire(&gates->watch.member[(uint64_t)i * gates->watch.member_stride]) != 0;
}

/* Only a hint to leave: nothing is read on the strength of it. */
static bool aborted(const struct shmt_gates *gates) { return load_relaxed(gates->watch.abort) != 0; }

/* ---- where memory takes virtual time, so do the lines by which members see one another ---- */

static void pay_for_mine(const struct shmt_gates *gates, enum shmt_gate_word word) { /* which others have read since */
    shmt_touch_alone((const void *)(uintptr_t)word_of(gates, word, gates->self), sizeof(uint64_t), true);
}

static void pay_for_all(const struct shmt_gates *gates, enum shmt_gate_word word) {
    if (!shmt_host_touches()) return;
    const bool shared = gates->met && word == SHMT_GATE_PHASE;
    if (shared) shmt_touch((const void *)(uintptr_t)gates->met, sizeof *gates->met, false);
    for (uint32_t i = 0; i < gates->n && !shared; i++)
        shmt_touch((const void *)(uintptr_t)word_of(gates, word, i), sizeof(uint64_t), false);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

/* ---- publishing ---- */

static void wake(struct shmt_gate *sleeper) {
    SHMT_POINT("wake:before");
    /* Release is enough: the host's queue orders it with the sleeper's comparison, and the sleeper reads nothing on its
     * strength. */
    store_release(&sleeper->asleep, 0);
    SHMT_POINT("wake:emptied");
    shmt_host()->wake(&sleeper->asleep);
}

static void wake_those_who_wait(const struct shmt_gates *gates, enum shmt_gate_word word) {
    const uint32_t code = sleep_code(word, gates->self);
    const uint64_t value = load_relaxed(word_of(gates, word, gates->self)); /* relaxed: my own word */
    for (uint32_t i = 0; i < gates->n; i++) {
        struct shmt_gate *other = gate_of(gates, i);
        if (load_seq_cst(&other->asleep) != code) continue; /* (d) */
        /* `until` was written before the code that was seen just now, so this is that announcement's or a later one's; a
         * later one was made after (c) and needs no wake-up. */
        if (load_relaxed(&other->until) <= value) wake(other);
    }
}

static bool somebody_sleeps(const struct shmt_gates *gates) {
    return load_seq_cst(&gate_of(gates, gates->self)->sleepers) != 0; /* (d') */
}

void shmt_gate_reach(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t value) {
    pay_for_mine(gates, word);
    SHMT_POINT("reach:before");
    SHMT_GROWS("word of a gate", word_of(gates, word, gates->self), value);
    store_seq_cst(word_of(gates, word, gates->self), value); /* (c); its release pairs with the acquire in `reached` and _min */
    SHMT_POINT("reach:after");
    if (somebody_sleeps(gates)) wake_those_who_wait(gates, word);
}

void shmt_gate_set(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t value) {
    pay_for_mine(gates, word);
    SHMT_POINT("reach:before");
    SHMT_GROWS("word of a gate", word_of(gates, word, gates->self), value);
    store_release(word_of(gates, word, gates->self), value); /* (c), with the fence below; pairs as in shmt_gate_reach */
    SHMT_POINT("reach:after");
}

void shmt_gate_call(const struct shmt_gates *gates) {
    fence_seq_cst(); /* between (c) and (d') */
    SHMT_POINT("call:before");
    if (!somebody_sleeps(gates)) return;
    for (uint32_t word = 0; word < SHMT_GATE_WORDS; word++) wake_those_who_wait(gates, word);
}

uint64_t shmt_gates_min(const struct shmt_gates *gates, enum shmt_gate_word word) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < gates->n; i++) {
        if (!counts(gates, i)) continue;
        const uint64_t value = load_acquire(word_of(gates, word, i)); /* pairs with (c) */
        if (value < least) least = value;
    }
    pay_for_all(gates, word);
    return least;
}

static bool reached(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t i) {
    return load_acquire(word_of(gates, word, i)) >= target; /* pairs with (c) */
}

/* ---- what one has seen, for all: phase << 16 | how many members, from the last one downwards, have reached it ---- */

#define SEEN_BITS 16

/* What another one has seen of this meeting need not be looked at again; of a later one, and this one is over: nobody comes to a
 * meeting before the one before. Acquire: pairs with the release in `tell_seen`, whose writer had acquired each member's word. */
static void take_seen(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, struct look *look) {
    if (!gates->met || word != SHMT_GATE_PHASE) return;
    const uint64_t met = load_acquire(gates->met);
    if (met >> SEEN_BITS < target) return;
    const uint32_t seen = met >> SEEN_BITS > target ? gates->n : (uint32_t)(met & ((1u << SEEN_BITS) - 1));
    if (seen > gates->n || gates->n - seen >= look->left) return;
    look->left = gates->n - seen;
    if (gates->latecomer)
        look->at = look->left > 1 ? look->left - 2 : gates->n - 1;
    else
        look->at = look->left > 0 ? look->left - 1 : 0;
}

/* What was seen stays true. So two who tell at the same time do no harm, nor does who tells less than another one has: the others
 * look for themselves then. */
static void tell_seen(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, const struct look *look) {
    if (!gates->met || word != SHMT_GATE_PHASE) return;
    const uint64_t met = target << SEEN_BITS | (gates->n - look->left);
    if (load_relaxed(gates->met) < met) store_release(gates->met, met); /* release: pairs with the acquire in take_seen */
}

/* ---- waiting for all ---- */

/* Goes on to the next member that is missing. False when all were seen. */
static bool somebody_missing(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, struct look *look) {
    bool missing = false;
    take_seen(gates, word, target, look);
    while (look->left > 0) {
        missing = counts(gates, look->at) && !reached(gates, word, target, look->at);
        if (missing) break;
        look->left--;
        look->at = next_of(gates, look);
    }
    tell_seen(gates, word, target, look);
    return missing;
}

/* Members that run side by side come to a meeting within moments of one another, and reading a clock takes as long as a line
 * takes to the other core: so nobody is told, and no clock is read, before a few looks were in vain. */
static bool comes_at_once(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t i) {
    if (gates->watch.spin_ns == 0 || shmt_host()->takes_turns) return false;
    for (uint32_t k = 0; k < FIRST_LOOKS; k++) {
        shmt_relax();
        if (reached(gates, word, target, i)) return true;
    }
    return false;
}

/* Looks at member i's word without sleeping. True when it is worth looking at everything again. */
static bool spin(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t i) {
    if (gates->watch.spin_ns == 0) {
        /* The missing member may be waiting for this very processor: offering it costs less than a sleep and a wake-up. */
        for (int k = 0; k < 2; k++) {
            shmt_host()->yield();
            if (reached(gates, word, target, i)) return true;
        }
        return false;
    }
    const uint64_t end_ns = shmt_now_ns() + gates->watch.spin_ns;
    do {
        for (uint32_t k = 0; k < LOOKS_PER_TIME; k++) {
            if (reached(gates, word, target, i)) return true;
            shmt_relax();
        }
        if (aborted(gates) || !counts(gates, i)) return true;
    } while (shmt_now_ns() < end_ns);
    return false;
}

static void sleep_for(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t i) {
    struct shmt_gate *mine = gate_of(gates, gates->self);
    const uint32_t code = sleep_code(word, i);
    store_relaxed(&mine->until, target); /* published by (a) */
    SHMT_POINT("sleep:before");
    (void)count_seq_cst(&gate_of(gates, i)->sleepers, 1); /* (a') */
    store_seq_cst(&mine->asleep, code);                   /* (a) */
    SHMT_POINT("sleep:announced");
    fence_seq_cst(); /* pairs with the one in shmt_gates_wake, for the watch words, whose stores we do not command */
    if (load_seq_cst(word_of(gates, word, i)) < target && !aborted(gates) && counts(gates, i)) /* (b) */
        shmt_host()->wait(&mine->asleep, code, gates->pulse ? gates->pulse_ns : NAP_NS);
    SHMT_POINT("sleep:woken");
    store_relaxed(&mine->asleep, 0);                              /* late sight of it costs a needless wake-up, */
    (void)take_relaxed(&gate_of(gates, i)->sleepers, UINT32_MAX); /* and of this a needless look */
    SHMT_POINT("sleep:after");
}

static int wait_for_those(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, struct look look,
                          uint32_t *for_whom_out) {
    uint32_t for_whom = NOBODY;
    int gave_up = 0;
    while (somebody_missing(gates, word, target, &look)) {
        if (for_whom != NOBODY && for_whom != look.at && is_latecomer(gates, look.at)) { /* a wait of its own */
            if (gates->tell) gates->tell(gates->tell_arg, 0, for_whom);
            for_whom = NOBODY;
        }
        if (for_whom == NOBODY && comes_at_once(gates, word, target, look.at)) continue;
        if (for_whom == NOBODY && gates->tell) gates->tell(gates->tell_arg, 1, look.at);
        for_whom = look.at;
        if (aborted(gates)) {
            gave_up = 1;
            break;
        }
        if (!spin(gates, word, target, look.at)) sleep_for(gates, word, target, look.at);
        if (gates->pulse) gates->pulse(gates->pulse_arg);
    }
    if (for_whom != NOBODY && gates->tell) gates->tell(gates->tell_arg, 0, for_whom);
    if (for_whom_out) *for_whom_out = for_whom;
    return gave_up;
}

static struct look look_at_all(const struct shmt_gates *gates, enum shmt_gate_word word) {
    const bool shared = gates->met && word == SHMT_GATE_PHASE; /* then all go the same way */
    return (struct look){.at = (shared || gates->self == 0 ? circle(gates) : gates->self) - 1, .left = gates->n};
}

int shmt_gates_wait(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t *for_whom_out) {
    const int rc = wait_for_those(gates, word, target, look_at_all(gates, word), for_whom_out);
    pay_for_all(gates, word);
    return rc;
}

int shmt_gates_meet(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t value) {
    struct look look = look_at_all(gates, word);
    shmt_gate_set(gates, word, value);
    while (somebody_missing(gates, word, value, &look) && comes_at_once(gates, word, value, look.at)) continue;
    shmt_gate_call(gates);
    const int rc = wait_for_those(gates, word, value, look, NULL);
    pay_for_all(gates, word);
    return rc;
}

bool shmt_gate_comes_at_once(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t member) {
    return comes_at_once(gates, word, target, member);
}

int shmt_gates_wait_for(const struct shmt_gates *gates, enum shmt_gate_word word, uint64_t target, uint32_t member) {
    struct shmt_gates alone = *gates;
    alone.met = NULL; /* it is about all */
    return wait_for_those(&alone, word, target, (struct look){.at = member, .left = 1}, NULL);
}

/* ---- waiting for an answer ---- */

/* Asks without sleeping. True when it is worth asking outside once more. */
static bool spin_until(const struct shmt_gates *gates, int (*ready)(void *arg, uint32_t *for_whom_out), void *arg,
                       uint32_t *for_whom) {
    if (gates->watch.spin_ns == 0) {
        for (int k = 0; k < 2; k++) {
            shmt_host()->yield();
            if (ready(arg, for_whom)) return true;
        }
        return false;
    }
    const uint64_t end_ns = shmt_now_ns() + gates->watch.spin_ns;
    do {
        for (uint32_t k = 0; k < LOOKS_PER_TIME; k++) {
            if (ready(arg, for_whom)) return true;
            shmt_relax();
        }
        if (aborted(gates)) return true;
    } while (shmt_now_ns() < end_ns);
    return false;
}

static void sleep_until(const struct shmt_gates *gates, int (*ready)(void *arg, uint32_t *for_whom_out), void *arg,
                        uint32_t *for_whom) {
    struct shmt_gate *mine = gate_of(gates, gates->self);
    SHMT_POINT("sleep-until:before");
    store_seq_cst(&mine->asleep, FOR_AN_ANSWER); /* (a) */
    SHMT_POINT("sleep-until:announced");
    fence_seq_cst();                              /* pairs with the ones in shmt_gates_notify, _wake, and here */
    if (!ready(arg, for_whom) && !aborted(gates)) /* (b) */
        shmt_host()->wait(&mine->asleep, FOR_AN_ANSWER, gates->pulse ? gates->pulse_ns : NAP_NS);
    SHMT_POINT("sleep-until:woken");
    store_relaxed(&mine->asleep, 0); /* late sight of it costs a needless wake-up */
}

/* As comes_at_once. */
static bool is_answered_at_once(const struct shmt_gates *gates, int (*ready)(void *arg, uint32_t *for_whom_out), void *arg,
                                uint32_t *for_whom) {
    if (gates->watch.spin_ns == 0) return false;
    for (uint32_t k = 0; k < FIRST_LOOKS; k++) {
        shmt_relax();
        if (ready(arg, for_whom)) return true;
    }
    return false;
}

int shmt_gates_wait_until(const struct shmt_gates *gates, int (*ready)(void *arg, uint32_t *for_whom_out), void *arg) {
    uint32_t for_whom = NOBODY;
    bool waits = false;
    int gave_up = 0;
    while (!ready(arg, &for_whom)) {
        if (!waits && is_answered_at_once(gates, ready, arg, &for_whom)) break;
        if (!waits && gates->tell) gates->tell(gates->tell_arg, 1, for_whom);
        waits = true;
        if (aborted(gates)) {
            gave_up = 1;
            break;
        }
        if (!spin_until(gates, ready, arg, &for_whom)) sleep_until(gates, ready, arg, &for_whom);
        if (gates->pulse) gates->pulse(gates->pulse_arg);
    }
    if (waits && gates->tell) gates->tell(gates->tell_arg, 0, for_whom);
    return gave_up;
}

void shmt_gates_notify(const struct shmt_gates *gates) {
    fence_seq_cst(); /* the caller's change stands before it; pairs with the one in sleep_until, as in shmt_gates_wake */
    for (uint32_t i = 0; i < gates->n; i++) {
        struct shmt_gate *other = gate_of(gates, i);
        if (load_seq_cst(&other->asleep) == FOR_AN_ANSWER) wake(other); /* (d) */
    }
}

void shmt_gates_wake(const struct shmt_gates *gates) {
    /* The caller's store to a watch word stands before this fence, our look at `asleep` after it; in sleep_for it is the
     * other way round. So either we see the announcement or the sleeper sees the changed word. */
    fence_seq_cst();
    for (uint32_t i = 0; i < gates->n; i++) {
        struct shmt_gate *other = gate_of(gates, i);
        if (load_seq_cst(&other->asleep) != 0) wake(other);
    }
}

void shmt_gates_wake_after_death(const struct shmt_gates *gates) {
    fence_seq_cst(); /* as in shmt_gates_wake */
    for (uint32_t i = 0; i < gates->n; i++) wake(gate_of(gates, i));
}
