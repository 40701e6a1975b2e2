/* The protocols of shm under schedulers that mean harm (hostile.h), with guests: the last seats of each run are places which workers take
 * while it goes on, work at, leave, and take again. They die where the others can do without them; the run's own workers die and come
 * again, as in test_seeds_deaths.c.
 *
 * What must hold whatever happens: each example is trained on once in each epoch, but for items that the dead had in hand; nobody is
 * further ahead of the slowest than the staleness bound allows, from the epoch on in which a guest was let in; gradients are applied as
 * often as updates are made; in sync and allreduce all read the parameters of their batch, and they are the same bits in the end, whoever
 * was there; and the run ends, and waits for
 * nobody who has left or died.
 *
 *   TEST_SEEDS=N   so many seeds for each mode and number of workers; 120 unless said otherwise, or 8 under a sanitizer
 *   TEST_SEED=K    this one alone, in all modes: it does the same again */
#include "conformance.h"
#include "hostile.h"
#include "sanitized.h"
#include "seeds_layers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/shm/rounds/rounds_priv.h"
#include "base/cpu.h"
#include "base/point.h"
#include "consistency/mode.h"
#include "fibers/scheduler.h"
#include "sync/host.h"

#define BATCH    64
#define EXAMPLES (BATCH * 5)
#define EPOCHS   4
#define SEATS    8
#define VISITS   3                   /* of a guest, at most */
#define MOST_NS  UINT64_C(395000000) /* of a run; a guest naps for a millisecond until the chief looks */
#define DEATHS   4                   /* of a run, at most */

/* One run, as its workers have seen it. One thread: no word needs an order. */
static struct {
    uint64_t seed, began_ns, rarity;
    uint32_t deaths, deaths_left, first_guest;
    bool guests_die;
    char what[128], hangs[224];
    uint32_t seen[EPOCHS][EXAMPLES];
    bool clocked[EPOCHS][EXAMPLES]; /* the item that begins there was, or nearly */
    uint64_t items, clock[SEATS];   /* of the epoch */
    uint32_t epoch[SEATS];
} g;

static bool g_calm; /* nothing happens to this run: what others are compared with comes of it */

static uint64_t g_runs, g_deaths, g_visits; /* in all */

/* Not by cmocka: whoever finds it stands on a fiber's stack. */
static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "found in run %llu\nFAILED: %s, %u deaths: %s; again: TEST_SEED=%llu\n", (unsigned long long)g_runs + 1,
            g.what, g.deaths, why, (unsigned long long)g.seed);
    _exit(1);
}

/* A fiber that asks nothing, or spins past no point, lets no virtual time pass. */
static void hangs(int signal) {
    (void)signal;
    if (write(STDERR_FILENO, g.hangs, strlen(g.hangs)) < 0) _exit(2);
    _exit(1);
}

static bool may_die(uint32_t who) { return g.deaths_left > 0 && (who < g.first_guest || g.guests_die); }

void shmt_point(const char *name) {
    uint32_t who;
    if (!shmt_fiber_asks(&who) || g_calm) return;
    uint64_t passed;
    const uint64_t ns = hostile_delay(name, who, &passed), now_ns = shmt_now_ns();
    if (g.began_ns == 0) g.began_ns = now_ns; /* of fibers: before them time is the machine's */
    if (now_ns - g.began_ns > MOST_NS) give_up("somebody was not woken, or it does not end");
    if (ns > 0) shmt_host()->sleep_until(now_ns + ns);
    if (!may_die(who) || hostile_draw(6 + g.rarity * passed) != 0) return;
    g.deaths_left--;
    g.deaths++;
    shmt_fiber_die();
}

void shmt_point_grows(const char *what, uint64_t before, uint64_t after) {
    if (after < before) give_up(what);
}

/* ---- workers ---- */

/* Of fresh items alone: what the dead had in hand is done when nobody waits for it any more. */
static void check_bound(const struct run *run, const shmtrain_session *s, const struct shmtrain_work *w) {
    const struct shmt_policy *policy = &run->spec.policy;
    const uint32_t me = s->seat->rank;
    if (!shmt_policy_is_live(policy) || shmt_policy_merges_replicas(policy) || policy->staleness == SHMT_STALENESS_INF) return;
    if (run->spec.pauses.allowed) return; /* behind a pause all clocks are the largest */
    for (uint32_t other = 0; other < run->spec.n_seats && s->seat->life == 0 && g.deaths == 0; other++) {
        const uint64_t clock = g.epoch[other] == w->epoch ? g.clock[other] : 0;
        if (!shmt_shm_is_present(run->store, other)) continue;
        if (g.clock[me] > clock + policy->staleness) give_up("a worker is further ahead than the staleness bound allows");
    }
}

static void note_item(const struct run *run, const shmtrain_session *s, const struct shmtrain_work *w) {
    const uint32_t me = s->seat->rank;
    if (g.epoch[me] != w->epoch) g.clock[me] = 0;
    g.epoch[me] = w->epoch;
    for (uint64_t i = w->first; i < w->first + w->n; i++) g.seen[w->epoch][i]++;
    check_bound(run, s, w);
}

/* Never behind what others may know of it. */
static void note_clock(uint32_t me, const struct shmtrain_work *w) {
    bool *clocked = &g.clocked[w->epoch][w->first];
    g.clock[me] += !*clocked;
    g.items += !*clocked;
    *clocked = true;
}

/* Row 1: numbers whose sums depend on their order. */
static float noise_of(const struct shmtrain_work *w) {
    float sum = 0;
    for (uint64_t i = w->first; i < w->first + w->n; i++) sum += 1 / (float)(i + 3);
    return sum;
}

/* Each update adds 1 to row 0. */
static void check_read(const struct run *run, const struct shmtrain_work *w, float weight) {
    if (shmt_policy_is_batched(&run->spec.policy) && weight != (float)w->step)
        give_up("a worker reads parameters that are not those of its batch");
}

static int push_rows(shmtrain_session *s, const struct shmtrain_work *w, float *first_out) {
    float weights[2], grad[2] = {-(float)w->n, noise_of(w)};
    const int rc = shmtrain_pull(s, 0, 0, 2, weights);
    *first_out = weights[0];
    return rc < 0 ? rc : shmtrain_push(s, 0, 0, 2, grad);
}

static int work(struct run *run, shmtrain_session *s) {
    const uint32_t me = s->seat->rank;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float first = 0;
        note_item(run, s, &w);
        rc = has_layers(&run->spec.policy) ? push_layers(s, &w, &first) : push_rows(s, &w, &first);
        if (rc < 0) return rc;
        check_read(run, &w, first);
        note_clock(me, &w);
        if (me >= g.first_guest && !g_calm && hostile_draw(8) == 0) run->k->backend->guests->request_leave(run->store, me);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static int work_as_guest(struct run *run, uint32_t rank, struct shmt_error *e) {
    shmtrain_session s;
    int rc = shmt_session_enter(&s, run->k->backend, run->store, &run->spec, rank, 0, e);
    if (rc < 0) return rc;
    rc = shmt_session_admit(&s);
    if (rc == 0 && !s.over) {
        g_visits++;
        rc = work(run, &s);
    }
    if (rc < 0) *e = s.error;
    shmt_session_leave(&s);
    return rc;
}

/* At a seat of the run's end: comes, and comes again. */
static int visit(struct run *run, uint32_t rank, struct shmt_error *e) {
    for (uint32_t visits = 0; visits < VISITS;) {
        struct shmt_error over = {0};
        int rc = run->k->backend->guests->reserve(run->store, rank, &over);
        if (rc < 0) return 0; /* the run has ended */
        if (rc == 1) rc = work_as_guest(run, rank, e);
        if (rc < 0) return rc;
        visits++;
        shmt_sleep_ns(1 + hostile_draw(100000));
    }
    return 0;
}

/* ---- what must hold ---- */

static bool adds_up(const struct shmt_policy *policy) {
    return !shmt_policy_is_damped(policy) && policy->late != SHMT_LATE_FOLD &&
           (!shmt_policy_merges_replicas(policy) || policy->merge == SHMT_MERGE_SUM);
}

static void check_examples(const struct run *run) {
    const uint64_t each = shmt_policy_is_batched(&run->spec.policy) ? BATCH : run->spec.item, loose = g.deaths * each;
    uint64_t missed = 0, again = 0, counted = 0;
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint32_t i = 0; i < EXAMPLES; i++) {
            missed += g.seen[epoch][i] == 0;
            again += g.seen[epoch][i] > 1 ? g.seen[epoch][i] - 1 : 0;
        }
    for (uint32_t rank = 0; rank < run->spec.n_seats; rank++)
        counted += load_relaxed(&run->k->backend->store->counters(run->store, rank)->examples);
    if (missed > (g.guests_die ? loose : 0)) give_up("an example was not trained on");
    if (again > loose) give_up("an example was trained on more than once");
    if (counted > EPOCHS * EXAMPLES) give_up("an example was counted more than once");
    if (counted + (g.guests_die ? loose : 0) < EPOCHS * EXAMPLES) give_up("an example was not counted");
}

static void check_updates(struct run *run) {
    const struct shmt_policy *policy = &run->spec.policy;
    const double applied = (double)first_float(run), deaths = g.deaths, items = (double)g.items;
    char why[96];
    if (!adds_up(policy)) return;
    double least = shmt_policy_is_batched(policy) ? (double)(EPOCHS * EXAMPLES / BATCH) : items, most = least;
    if (shmt_policy_has_rounds(policy)) least = most = (double)shmt_shm_updates(run->store);
    if (shmt_policy_is_live(policy)) {
        least -= deaths;
        most += deaths;
    }
    snprintf(why, sizeof why, "%.9g to %.9g updates, of which %.9g are in the parameters", least, most, applied);
    if (applied < least || applied > most) give_up(why);
}

static void check_bits(struct run *run) {
    static float calm[2][LAYERS * LAYER_FLOATS];
    float now[LAYERS * LAYER_FLOATS] = {0};
    const bool layers = has_layers(&run->spec.policy);
    if (!shmt_policy_is_batched(&run->spec.policy)) return;
    for (uint32_t t = 0; t < run->spec.n_tables; t++)
        assert_int_equal(run->k->backend->store->read(run->store, (int)t, 0, run->spec.table[t].rows, now + t * LAYER_FLOATS),
                         0);
    if (g_calm) memcpy(calm[layers], now, sizeof now);
    if (!same_bits(calm[layers], now, sizeof now)) give_up("parameters differ from those of a calm run");
}

/* ---- a run ---- */

static void choose_fate(const struct kase *k, struct shmt_spec *spec) {
    static const uint64_t RARITIES[] = {3, 30, 300};
    g.rarity = RARITIES[hostile_draw(3)];
    spec->may_die = hostile_draw(2) == 0;
    if (spec->may_die) g.deaths_left = 1 + (uint32_t)hostile_draw(DEATHS);
    g.guests_die = spec->may_die && shmt_policy_is_live(&k->policy) && !shmt_policy_merges_replicas(&k->policy);
    if (hostile_draw(3) == 0) spec->pauses = (struct shmt_pauses){.steps = 1 + hostile_draw(8), .allowed = 1};
}

static void run_seed(const struct kase *k, uint32_t n_guests, uint64_t seed) {
    char mode[64];
    struct run run;
    struct shmt_error e = {0};
    memset(&g, 0, sizeof g);
    g.seed = seed;
    hostile_begin(seed, SEATS);
    g.first_guest = k->n_seats - n_guests;
    shmt_mode_name(&k->policy, NULL, mode, sizeof mode);
    snprintf(g.what, sizeof g.what, "%.60s, %u workers, places for %u guests", mode, g.first_guest, n_guests);
    snprintf(g.hangs, sizeof g.hangs, "found in run %llu\nFAILED: %s: it hangs; again: TEST_SEED=%llu\n",
             (unsigned long long)g_runs + 1, g.what, (unsigned long long)seed);
    struct shmt_spec spec = spec_of(k, EXAMPLES, 2, 1);
    spec.n_guests = n_guests;
    spec.n_workers = g.first_guest;
    spec.epochs = EPOCHS;
    spec.rate.base = 1;
    spec.cpu = SHMT_CPU_PORTABLE; /* whose kernels have the points */
    spec.item = 1 + (uint32_t)(seed / 7 % 16);
    if (shmt_policy_has_rounds(&k->policy)) spec.batch = spec.item * g.first_guest;
    if (has_layers(&k->policy)) add_layers(&spec, 2);
    const struct shmt_virtual virtual = {.seed = seed, .stack_bytes = SHMT_FIBER_STACK, .sim = {.look_ns = 10}};
    if (!g_calm) choose_fate(k, &spec);
    begin(&run, k, spec);
    run.virtual = &virtual;
    run.visit = visit;
    if (go(&run, work, &e) != 0) give_up(e.text);
    check_examples(&run);
    check_updates(&run);
    check_bits(&run);
    const char *differ = compare_copies(&run);
    if (differ) give_up(differ);
    g_deaths += g.deaths;
    end(&run);
}

static void try_seeds(const struct kase *k) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 8 : 120), only = hostile_asked("TEST_SEED", UINT64_MAX);
    const uint32_t n_guests = k->n_seats > 3 ? 3 : 1;
    struct shmt_policy alone = k->policy;
    if (k->kind != &SHMT_TEAM_FIBERS || k->n_seats < 2 || !(k->backend->caps & SHMT_CAP_JOIN)) return;
    if (shmt_policy_settle(&alone, k->n_seats - n_guests, NULL) < 0 || !shmt_policy_equal(&alone, &k->policy)) return;
    g_calm = true;
    run_seed(k, n_guests, 1);
    g_calm = false;
    for (uint64_t i = 0; i < (only == UINT64_MAX ? n : 1); i++, g_runs++)
        run_seed(k, n_guests, only == UINT64_MAX ? i + 1 : only);
}

static void whoever_comes_and_goes_the_protocols_keep_their_promises(void **state) {
    (void)state;
    each_case(try_seeds);
    print_message("%llu runs, %llu deaths, %llu visits of guests\n", (unsigned long long)g_runs, (unsigned long long)g_deaths,
                  (unsigned long long)g_visits);
    assert_true(g_runs > 0 && g_visits > 0);
}

int main(void) {
    (void)signal(SIGALRM, hangs); /* after two minutes: see go() */
    const struct CMUnitTest tests[] = {cmocka_unit_test(whoever_comes_and_goes_the_protocols_keep_their_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
