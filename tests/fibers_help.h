/* For tests of fibers: running some that note when they were where. One thread. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "fibers/scheduler.h"
#include "sync/host.h"

#define MOST  2048
#define BEGIN UINT64_C(1000000)

static uint32_t g_order[MOST], g_n; /* who has noted itself, in which order */
static uint64_t g_at[MOST];         /* and when */
static _Atomic uint32_t g_word;

static inline void note(uint32_t i) {
    const uint64_t now = shmt_now_ns(); /* others may note themselves meanwhile */
    g_at[g_n] = now;
    g_order[g_n++] = i;
}

static inline void run_all(uint32_t n, uint64_t seed, const char *sim, void (*body)(void *arg, uint32_t i)) {
    struct shmt_fibers_spec spec = {.n = n, .seed = seed, .begin_ns = BEGIN, .stack_bytes = 64 << 10, .body = body};
    struct shmt_fibers *f = NULL;
    struct shmt_error e = {0};
    g_n = 0;
    store_relaxed(&g_word, 0);
    if (shmt_sim_parse("--sim", sim, &spec.sim, &e) < 0 || shmt_fibers_make(&spec, &f, &e) < 0) fail_msg("%s", e.text);
    while (!shmt_fibers_run(f, 1000)) continue;
    assert_true(shmt_fibers_events(f) >= n);
    shmt_fibers_free(f);
    assert_ptr_equal(shmt_host(), &SHMT_HOST_MACHINE);
}
