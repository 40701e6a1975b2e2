/* shmtrain bench: see <shmtrain/bench.h>. Everything is measured in turns, round by round, in a process of its own: what goes
 * wrong ends that process, and none of the application's threads, signal handlers or children is in the way.
 *
 * What is measured stands in two tables: floors, and operations with theirs. A round fills one value of each; an operation's
 * share is worked out within the round. */
#include <shmtrain/bench.h>

#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/sized.h"
#include "measure/figure.h"
#include "measure/rounds.h"
#include "runtime/team.h"
#include "segment/budget.h"
#include "topo/topo.h"

enum { QUICK_ROUNDS = 3, FULL_ROUNDS = 9, LEAST_ROUNDS = 3 };
#define MIB           ((uint64_t)1 << 20)
#define MOST_NS       75000000000u /* then no further round begins */
#define MOST_WASTE_NS 15000000000u
#define LOOK_MS       100

/* What the measuring process leaves for the caller, in memory that both see. */
struct result {
    struct shmtrain_bench bench;
    _Atomic uint32_t done, of; /* rounds */
    char error[512];
};

static struct result *g_result; /* of the measuring process */

static void keep_error(const char *sentence) { snprintf(g_result->error, sizeof g_result->error, "%s", sentence); }

/* ---- figures ---- */

static struct shmtrain_quartiles quartiles_of(const struct shmt_figure *f) {
    return (struct shmtrain_quartiles){shmt_figure_quartile(f, 1), shmt_figure_median(f), shmt_figure_quartile(f, 3)};
}

struct figures {
    struct shmt_figure floor[SHMTRAIN_BENCH_MOST], ours[SHMTRAIN_BENCH_MOST], under[SHMTRAIN_BENCH_MOST],
        share[SHMTRAIN_BENCH_MOST];
    struct shmt_round round; /* the last one */
};

static void add(struct shmt_figure *f, double x) {
    if (isfinite(x)) shmt_figure_add(f, x);
}

static void add_round(struct figures *f) {
    const struct shmt_round *round = &f->round;
    for (uint32_t i = 0; i < round->n_floors; i++) add(&f->floor[i], round->floor[i].value);
    for (uint32_t i = 0; i < round->n_operations; i++) {
        const struct shmt_round_operation *o = &round->operation[i];
        add(&f->ours[i], o->ours);
        add(&f->under[i], o->floor);
        add(&f->share[i], o->is_rate ? o->ours / o->floor : o->floor / o->ours);
    }
}

/* Names and units are those of the last round, which are the same in all. */
static void tell(const struct figures *f, struct shmtrain_bench *out) {
    const struct shmt_round *round = &f->round;
    out->n_floors = round->n_floors;
    out->n_operations = round->n_operations;
    for (uint32_t i = 0; i < round->n_floors; i++) {
        struct shmtrain_bench_floor *to = &out->floor[i];
        snprintf(to->name, sizeof to->name, "%s", round->floor[i].name);
        snprintf(to->unit, sizeof to->unit, "%s", round->floor[i].unit);
        to->value = quartiles_of(&f->floor[i]);
    }
    for (uint32_t i = 0; i < round->n_operations; i++) {
        const struct shmt_round_operation *from = &round->operation[i];
        struct shmtrain_bench_operation *to = &out->operation[i];
        snprintf(to->name, sizeof to->name, "%s", from->name);
        snprintf(to->unit, sizeof to->unit, "%s", from->unit);
        snprintf(to->floor_name, sizeof to->floor_name, "%s", from->floor_name);
        to->ours = quartiles_of(&f->ours[i]);
        to->floor = quartiles_of(&f->under[i]);
        to->share = quartiles_of(&f->share[i]);
    }
}

/* ---- the measuring process ---- */

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

static int measure(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct result *r = arg;
    const bool quick = r->bench.quick != 0;
    const uint64_t from = shmt_now_ns();
    struct shmt_rounds rounds = {.most_waste_ns = quick ? 0 : MOST_WASTE_NS};
    struct figures *figures = calloc(1, sizeof *figures);
    (void)rank;
    (void)team;
    if (!figures) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for figures");
    g_result = r;
    shmt_measure_on_failure(keep_error);
    r->bench.bytes = far_bytes(quick);
    r->bench.cores = shmt_measure_cores();
    struct shmt_bed *bed = shmt_bed_make(r->bench.bytes, quick);
    const uint32_t wanted = load_relaxed(&r->of); /* relaxed, and below: a number for a display */
    while (r->bench.rounds < wanted && (r->bench.rounds < LEAST_ROUNDS || shmt_now_ns() - from < MOST_NS)) {
        shmt_round_begin(&rounds);
        shmt_bed_measure(bed, &figures->round);
        if (!shmt_round_end(&rounds)) continue;
        add_round(figures);
        store_relaxed(&r->done, ++r->bench.rounds);
    }
    tell(figures, &r->bench);
    r->bench.again = rounds.n_again;
    r->bench.noisy = rounds.n_noisy;
    r->bench.seconds = (double)(shmt_now_ns() - from) / 1e9;
    shmt_bed_free(bed);
    free(figures);
    return 0;
}

/* ---- the caller ---- */

static void tell_rounds(const struct shmtrain_bench_how *how, struct result *r, uint32_t *told) {
    const uint32_t done = load_relaxed(&r->done);
    if (!how->round || *told == done + 1) return;
    *told = done + 1;
    how->round(how->arg, done, load_relaxed(&r->of));
}

static int run(const struct shmtrain_bench_how *how, struct result *r, struct shmt_error *e) {
    const struct shmt_team_spec spec = {
        .kind = SHMT_TEAM_PROCESSES, .n = 1, .body = measure, .arg = r, .what = "measuring", .grace_ms = 1000};
    struct shmt_team *team;
    struct shmt_error why = {0};
    uint32_t told = 0;
    int rc = shmt_team_start(&spec, &team, e);
    if (rc < 0) return rc;
    while (!shmt_team_step(team)) {
        struct pollfd changed = {.fd = shmt_team_fd(team), .events = POLLIN};
        tell_rounds(how, r, &told);
        (void)poll(&changed, 1, LOOK_MS); /* interrupted: look at once */
    }
    tell_rounds(how, r, &told);
    rc = shmt_team_finish(team, &why);
    if (rc == 0) return 0;
    return shmt_fail(e, rc, "%s", r->error[0] ? r->error : why.text);
}

int shmtrain_bench(const struct shmtrain_bench_how *how, struct shmtrain_bench **out, char *message, uint64_t bytes) {
    struct shmt_error e = {0};
    struct shmtrain_bench_how whole;
    struct shmtrain_bench *bench = malloc(sizeof *bench);
    struct result *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = bench && r != MAP_FAILED ? 0 : shmt_fail(&e, SHMTRAIN_E_MEMORY, "not enough memory for figures");
    if (rc == 0)
        rc = shmt_sized_take(&whole, sizeof whole, how, SHMT_FIRST_SIZE(struct shmtrain_bench_how, round), "bench_how", &e);
    if (rc == 0 && shmt_topo_variable())
        rc = shmt_fail(&e, SHMTRAIN_E_USAGE, "%s describes another machine, which cannot be measured here: unset it",
                       shmt_topo_variable());
    if (rc == 0) {
        r->bench.size = sizeof r->bench;
        r->bench.quick = whole.quick;
        snprintf(r->bench.cpu, sizeof r->bench.cpu, "%s", shmt_cpu_name(shmt_cpu_best()));
        store_relaxed(&r->of, whole.quick ? QUICK_ROUNDS : FULL_ROUNDS); /* relaxed: before the fork */
        rc = run(&whole, r, &e);
    }
    if (rc == 0) {
        *bench = r->bench;
        *out = bench;
    } else {
        if (message) snprintf(message, bytes, "%s", e.text);
        free(bench);
    }
    if (r != MAP_FAILED) munmap(r, sizeof *r);
    return rc;
}
