/* Rounds that count, and their figures: see measure.h. */
#include "bench/measure/measure.h"

#include <math.h>
#include <stdlib.h>

#include "bench/floors/helpers.h"
#include "bench/measure/measure_priv.h"
#include "base/checked.h"
#include "sync/host.h"
#include "base/cpu.h"
#include "segment/budget.h"
#include "topo/topo.h"

enum { QUICK_ROUNDS = 3, FULL_ROUNDS = 9, LEAST_ROUNDS = 3 };
#define MIB           ((uint64_t)1 << 20)
#define MOST_NS       75000000000u /* then no further round begins */
#define MOST_WASTE_NS 15000000000u

const char *shmt_bench_other_machine(void) { return shmt_topo_variable(); }

static void add(struct shmt_figure *f, double x) {
    if (isfinite(x)) shmt_figure_add(f, x);
}

static void add_round(struct shmt_bench *b) {
    for (uint32_t i = 0; i < b->n_floors; i++) add(&b->floor[i].of, b->floor[i].now);
    for (uint32_t i = 0; i < b->n_operations; i++) {
        struct shmt_bench_line *o = &b->operation[i];
        add(&o->of, o->now);
        add(&o->floor, o->floor_now);
        add(&o->share, o->is_rate ? o->now / o->floor_now : o->floor_now / o->now);
    }
    b->rounds++;
}

/* So much that no cache holds it, and no more than a sixteenth of what is free. */
static uint64_t far_bytes(bool quick) {
    struct shmt_budget budget;
    shmt_budget_read("", &budget);
    const uint64_t cache = shmt_measure_cache_bytes(), most = quick ? 64 * MIB : 512 * MIB;
    const uint64_t wanted = shmt_min_u64(most, shmt_max_u64(16 * MIB, quick ? 2 * cache : 4 * cache));
    const uint64_t bytes = shmt_min_u64(wanted, budget.available_bytes / 16) / MIB * MIB;
    if (bytes < 4 * MIB) shmt_measure_fail("the %s leaves too little memory to measure: free at least 64 MiB", budget.limit);
    return bytes;
}

static void show_nothing(uint32_t done, uint32_t of) { (void)done, (void)of; }

struct shmt_bench *shmt_bench_run(bool quick, void (*show)(uint32_t done, uint32_t of), void (*tell)(const char *sentence)) {
    const uint32_t wanted = quick ? QUICK_ROUNDS : FULL_ROUNDS;
    const uint64_t from = shmt_now_ns();
    struct shmt_rounds rounds = {.most_waste_ns = quick ? 0 : MOST_WASTE_NS};
    struct shmt_bench *b = calloc(1, sizeof *b);
    if (!show) show = show_nothing;
    shmt_measure_on_failure(tell);
    if (!b) shmt_measure_fail("not enough memory for figures");
    show(0, wanted);
    b->quick = quick;
    b->cpu = shmt_cpu_name(shmt_cpu_best());
    b->bytes = far_bytes(quick);
    b->cores = shmt_measure_cores();
    struct shmt_bed *bed = shmt_bed_make(b->bytes, quick);
    while (b->rounds < wanted && (b->rounds < LEAST_ROUNDS || shmt_now_ns() - from < MOST_NS)) {
        shmt_round_begin(&rounds);
        shmt_bed_measure(bed, b);
        if (!shmt_round_end(&rounds)) continue;
        add_round(b);
        show(b->rounds, wanted);
    }
    b->again = rounds.n_again;
    b->noisy = rounds.n_noisy;
    b->seconds = (double)(shmt_now_ns() - from) / 1e9;
    shmt_bed_free(bed);
    return b;
}
