/* What tests of gates share: groups on memory that may be shared, and the machine as a host that does other than it is told where
 * a test asks for it. */
#pragma once

#include "sync/gate.h"

#include "base/random.h"
#include "sync/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#define N_MAX   16
#define STRIDE  2 /* words per member, so that the stride is not 1 */
#define LONG_NS 4000000000u

/* A group on memory that may be shared: all that its members touch. */
struct group {
    struct shmt_gate gate[N_MAX];
    _Atomic uint64_t met; /* what one has seen, for all, where members share that */
    _Atomic uint32_t abort;
    _Atomic uint32_t member[N_MAX * STRIDE];
    uint64_t written[N_MAX]; /* plain: only the gates order it */
    _Atomic uint32_t early;  /* how often somebody passed too early */
    _Atomic uint64_t closed; /* what somebody has told the others */
    _Atomic uint32_t done[N_MAX];
};

struct member_arg {
    struct group *group;
    uint32_t n, self, spin_ns;
    uint64_t phases, target, waited_ns;
    uint32_t for_whom;
    enum shmt_gate_word word; /* that it waits for */
    bool shares;              /* what it has seen, with the others */
    int result;
};

/* What the host does other than the machine. Whoever sleeps without end hangs when its wake-up is lost; otherwise that would only
 * cost 100 ms, and no test could tell. */
static struct {
    _Atomic uint32_t naps; /* sleeps so far */
    _Atomic uint32_t longest_ms;
    _Atomic uint32_t endless; /* sleep until woken */
    _Atomic uint32_t jitter;  /* offers of the processor take a random time instead, so that all interleavings are met */
} fake;

static inline void fake_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns) {
    atomic_fetch_add(&fake.naps, 1);
    if (at_most_ns > load_relaxed(&fake.longest_ms) * UINT64_C(1000000))
        store_relaxed(&fake.longest_ms, (uint32_t)(at_most_ns / 1000000));
    SHMT_HOST_MACHINE.wait(word, expected, load_relaxed(&fake.endless) ? UINT64_C(3600000000000) : at_most_ns);
}

static inline void fake_yield(void) {
    static _Thread_local uint64_t calls;
    if (!load_relaxed(&fake.jitter)) {
        SHMT_HOST_MACHINE.yield();
        return;
    }
    const uint64_t turns = shmt_below(shmt_hash64((uint64_t)(uintptr_t)&calls, calls++, 0, 0), 400);
    for (volatile uint64_t k = 0; k < turns; k++) continue;
}

/* A group's set-up: before any member begins. */
static inline int use_fakes(void **state) {
    static struct shmt_host_ops host;
    (void)state;
    host = SHMT_HOST_MACHINE;
    host.wait = fake_wait;
    host.yield = fake_yield;
    shmt_host_use(&host);
    return 0;
}

static inline void fakes_off(void) {
    store_relaxed(&fake.naps, 0);
    store_relaxed(&fake.longest_ms, 0);
    store_relaxed(&fake.endless, 0);
    store_relaxed(&fake.jitter, 0);
}

static inline struct shmt_gates gates_of(struct group *group, uint32_t n, uint32_t self, uint32_t spin_ns) {
    return (struct shmt_gates){.gate = group->gate,
                               .stride_bytes = sizeof group->gate[0],
                               .n = n,
                               .self = self,
                               .watch = {&group->abort, group->member, STRIDE, spin_ns}};
}

static inline struct group *group_create(uint32_t n) {
    struct group *group = mmap(NULL, sizeof *group, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(group != MAP_FAILED);
    for (uint32_t i = 0; i < n; i++) group->member[i * STRIDE] = 1;
    return group;
}

static inline void group_destroy(struct group *group) { munmap(group, sizeof *group); }

static inline void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Until member i sleeps in a futex (or is just about to). */
static inline void until_asleep(struct group *group, uint32_t i) {
    while (load_seq_cst(&group->gate[i].asleep) == 0) sleep_ms(1);
    sleep_ms(10);
}
