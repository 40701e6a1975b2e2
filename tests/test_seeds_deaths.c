/* The protocols of shm under schedulers that mean harm (hostile.h), with mishaps; test_seeds.c is without, and looks closer.
 *
 * To most runs more is done. Workers die at points, and at moments between them: they come again, or where the others can do
 * without them, these go on. Workers pause, and so do runs, for snapshots. A run is told to stop, or to give up.
 *
 * What must hold whatever happens: each example is trained on once in each epoch, but for the items that the dead had in hand, which are
 * done again or left out, and then it is counted once, or not; nobody is further ahead of the slowest than the staleness bound allows;
 * gradients are applied as often as updates are made, none lost or doubled (in the live modes, but for the pushes of those items);
 * the parameters of sync and allreduce are the same bits in all runs, and all read those of their batch; words that only grow do; and the
 * run ends, and waits for nobody who is dead.
 *
 *   TEST_SEEDS=N   so many seeds for each mode and number of workers; 240 unless said otherwise, or 12 under a sanitizer
 *   TEST_SEED=K    this one alone, in all modes: it does the same again */
#include "conformance.h"
#include "hostile.h"
#include "sanitized.h"
#include "seeds_layers.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/shm/rounds/rounds_priv.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/point.h"
#include "base/random.h"
#include "consistency/mode.h"
#include "fibers/scheduler.h"
#include "sync/host.h"

#define BATCH    64
#define EXAMPLES (BATCH * 5)
#define EPOCHS   3
#define SEATS    8
#define MOST_NS \
    UINT64_C(95000000) /* without an item that is begun, and of a sleep; who is not woken naps for 100 ms (sync/gate.c) */

#define DEATHS 6 /* of a run, at points */

/* What is done to a run besides. */
enum fate { UNDISTURBED, RESPAWNS, CONTINUES, ENDED_EARLY };

/* One run, as its workers have seen it. One thread: no word needs an order. */
static struct {
    uint64_t seed, last_ns;    /* an item was begun */
    uint64_t asleep_ns[SEATS]; /* since; 0: it is not */
    enum fate fate;
    struct run *run;
    uint32_t deaths, deaths_left; /* at most so many so far; at points */
    uint64_t rarity;              /* of deaths */
    bool told;                    /* to end early */
    uint64_t blocks;              /* directed: that the chief has come to; */
    bool chief_rests;             /* ... before the last one of an epoch */
    uint64_t gone;                /* directed: pieces that are not left for the other two */
    bool is_last;                 /* directed: worker 1 has the last item of an epoch, and all others have none */
    char what[128], hangs[224];
    uint32_t seen[EPOCHS][EXAMPLES];
    bool clocked[EPOCHS][EXAMPLES]; /* the item that begins there was, or nearly */
    uint64_t items, clock[SEATS];   /* of the epoch */
    uint64_t listed;                /* examples of all rounds that were closed with a quorum */
    uint32_t epoch[SEATS];
} g;

static bool g_calm; /* nothing happens to this run: what others are compared with comes of it */
static void (*g_directed)(const char *point, uint32_t who); /* this, and nothing else, happens to it */

static uint64_t g_runs, g_deaths, g_snapshots; /* in all */

/* Not by cmocka: whoever finds it stands on a fiber's stack. */
static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "found in run %llu\nFAILED: %s, at most %u deaths: %s; again: TEST_SEED=%llu\n",
            (unsigned long long)g_runs + 1, g.what, g.deaths, why, (unsigned long long)g.seed);
    _exit(1);
}

/* A fiber that asks nothing, or spins past no point, lets no virtual time pass. */
static void hangs(int signal) {
    (void)signal;
    if (write(STDERR_FILENO, g.hangs, strlen(g.hangs)) < 0) _exit(2);
    _exit(1);
}

/* Deaths, and whatever else is decided at points. */
static bool happens(uint64_t passed) { return hostile_draw(6 + g.rarity * passed) == 0; }

/* As the application asks for it, or as a failure elsewhere. */
static void tell_to_end(void) {
    const struct shmt_store_ops *ops = g.run->k->backend->store;
    g.told = true;
    store_release(g.seed / 3 % 2 ? ops->abort_word(g.run->store) : ops->stop_word(g.run->store), 1);
    ops->wake(g.run->store);
}

/* Worker 1 dies behind its update of an epoch's last batch, at the end of the epoch, while the chief is still in its own. */
static void dies_behind_a_batch(const char *name, uint32_t who) {
    const uint64_t blocks = shmt_ceil_div(g.run->store->layout.flat.n, SHMT_SHM_BLOCK) * (EXAMPLES / BATCH);
    if (who == 0 && strcmp(name, "block:before") == 0 && ++g.blocks == blocks) {
        g.chief_rests = true;
        shmt_sleep_ns(1000000);
        g.chief_rests = false;
    }
    if (who != 1 || !g.chief_rests || g.deaths > 0 || strcmp(name, "reach:before") != 0) return;
    g.deaths++;
    shmt_fiber_die();
}

/* Two of three workers are enough for a round: worker 1 dies when it has offered the last gradient of an epoch, before it closes that
 * round; nobody else will. It rests until the others have run out of work, which they do together. */
static void dies_behind_an_offer(const char *name, uint32_t who) {
    const struct shmt_store *store = g.run->store;
    const bool claims = strcmp(name, "claim:after") == 0;
    g.gone += who == 1 ? claims : strcmp(name, "settle:after") == 0;
    if (who != 1) return;
    if (claims && (shmt_spec_pieces(&g.run->spec) - g.gone) % 2 == 0) {
        shmt_sleep_ns(10000000);
        g.is_last = load_relaxed(&store->front[0].working) == 0 && load_relaxed(&store->front[2].working) == 0;
    }
    if (!g.is_last || strcmp(name, "reach:after") != 0) return;
    g.deaths++;
    shmt_fiber_die();
}

/* With a quorum: by who has just closed a round, and has done nothing since. */
static void note_closed(uint32_t who) {
    const struct shmt_store *store = g.run->store;
    const struct shmt_shm_list *list = &store->offer[who].list[(shmt_shm_rounds_closed(store) - 1) % 2];
    g.listed += load_relaxed(&list->examples);
}

static void note_sleep(const char *name, uint32_t who, uint64_t now_ns) {
    const bool falls_asleep = strcmp(name, "sleep:announced") == 0 || strcmp(name, "sleep-until:announced") == 0;
    if (g.asleep_ns[who] > 0 && now_ns - g.asleep_ns[who] > MOST_NS) give_up("somebody was not woken");
    g.asleep_ns[who] = falls_asleep ? now_ns : 0;
}

void shmt_point(const char *name) {
    uint32_t who;
    if (!shmt_fiber_asks(&who) || g_calm) return;
    uint64_t passed = 0;
    if (strcmp(name, "close:after") == 0) note_closed(who); /* before anybody else can do anything */
    const uint64_t now_ns = shmt_now_ns();
    const uint64_t ns = g_directed ? 0 : hostile_delay(name, who, &passed);
    if (g.last_ns == 0) g.last_ns = now_ns; /* of fibers: before them time is the machine's */
    note_sleep(name, who, now_ns);
    if (now_ns - g.last_ns > MOST_NS) give_up("somebody was not woken, or it does not end");
    if (g_directed) {
        g_directed(name, who);
        return;
    }
    if (ns > 0) shmt_host()->sleep_until(now_ns + ns);
    if (g.fate == ENDED_EARLY && !g.told && happens(passed)) tell_to_end();
    if (g.deaths_left == 0 || g.told || !happens(passed)) return;
    g.deaths_left--;
    g.deaths++;
    shmt_fiber_die();
}

void shmt_point_grows(const char *what, uint64_t before, uint64_t after) {
    if (after < before) give_up(what);
}

/* ---- a worker ---- */

/* Of fresh items alone: what the dead had in hand is done when nobody waits for it any more. */
static void check_bound(const struct run *run, const shmtrain_session *s, const struct shmtrain_work *w) {
    const struct shmt_policy *policy = &run->spec.policy;
    const uint32_t me = s->seat->rank;
    if (!shmt_policy_is_live(policy) || shmt_policy_merges_replicas(policy) || policy->staleness == SHMT_STALENESS_INF) return;
    if (run->spec.pauses.allowed) return; /* behind a pause all clocks are the largest */
    for (uint32_t other = 0; other < run->spec.n_seats && s->seat->life == 0; other++) {
        const uint64_t clock =
            g.epoch[other] == w->epoch ? g.clock[other] : 0; /* who has no item yet will have one, or there is none left */
        if (!shmt_shm_is_present(run->store, other)) continue;
        if (g.clock[me] > clock + policy->staleness) give_up("a worker is further ahead than the staleness bound allows");
    }
}

static void note_item(const struct run *run, const shmtrain_session *s, const struct shmtrain_work *w) {
    const uint32_t me = s->seat->rank;
    g.last_ns = shmt_now_ns();
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
    for (uint64_t i = w->first; i < w->first + w->n; i++) sum += (float)shmt_unit(shmt_hash64(5, w->epoch, i, 0));
    return sum;
}

static bool adds_up(const struct shmt_policy *policy) {
    return !shmt_policy_is_damped(policy) && policy->late != SHMT_LATE_FOLD &&
           (!shmt_policy_merges_replicas(policy) || policy->merge == SHMT_MERGE_SUM);
}

/* By the chief, in the place of the application: a snapshot has what its ledger calls done, and nothing else. */
static void look_at_snapshot(struct run *run) {
    const struct shmt_policy *policy = &run->spec.policy;
    struct shmt_snapshot snap;
    uint64_t examples = 0, pieces = 0;
    if (!run->spec.pauses.allowed || run->k->backend->store->snapshot(run->store, &snap) != 1) return;
    g_snapshots++;
    for (uint64_t i = 0; i < snap.n_pieces; i++) {
        examples += snap.done[i];
        pieces += snap.done[i] > 0;
    }
    const uint64_t steps = shmt_policy_is_batched(policy) ? examples / BATCH : pieces;
    if (steps != snap.at.step) give_up("a snapshot has another number of steps than is done");
    const double least = (double)(snap.at.epoch * shmt_spec_steps(&run->spec) + steps), deaths = g.deaths;
    const bool exact = shmt_policy_is_batched(policy) || (shmt_policy_is_live(policy) && deaths == 0);
    if (exact && adds_up(policy) && (double)snap.weight[0] != least) give_up("a snapshot has not what is done");
    run->k->backend->store->release_snapshot(run->store);
}

/* Each update adds 1 to float 0. */
static void check_read(const shmtrain_session *s, const struct shmtrain_work *w, float weight) {
    if (shmt_policy_is_batched(&s->spec->policy) && weight != (float)w->step)
        give_up("a worker reads parameters that are not those of its batch");
}

static int push_to_layers(shmtrain_session *s, const struct shmtrain_work *w) {
    float first = 0;
    const int rc = push_layers(s, w, &first);
    if (rc == 0) check_read(s, w, first);
    return rc;
}

static int push_rows(shmtrain_session *s, const struct shmtrain_work *w) {
    float weights[2], grad[2] = {-(float)w->n, noise_of(w)};
    const int rc = shmtrain_pull(s, 0, 0, 2, weights);
    if (rc < 0) return rc;
    check_read(s, w, weights[0]);
    return shmtrain_push(s, 0, 0, 2, grad);
}

static int work(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == 0) look_at_snapshot(run);
        note_item(run, s, &w);
        if ((rc = has_layers(&run->spec.policy) ? push_to_layers(s, &w) : push_rows(s, &w)) < 0) return rc;
        note_clock(s->seat->rank, &w);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* ---- what must hold ---- */

/* What the dead had in hand, in examples, at most. */
static uint64_t most_in_hand(const struct run *run) {
    return g.deaths * (shmt_policy_is_batched(&run->spec.policy) ? UINT64_C(0) + BATCH : run->spec.item);
}

static void check_examples(const struct run *run) {
    const uint64_t loose = most_in_hand(run);
    uint64_t missed = 0, again = 0, counted = 0;
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint32_t i = 0; i < EXAMPLES; i++) {
            missed += g.seen[epoch][i] == 0;
            again += g.seen[epoch][i] > 1 ? g.seen[epoch][i] - 1 : 0;
        }
    for (uint32_t rank = 0; rank < run->spec.n_seats; rank++)
        counted += load_relaxed(&run->k->backend->store->counters(run->store, rank)->examples);
    if (missed > (g.fate == CONTINUES ? loose : 0)) give_up("an example was not trained on");
    if (again > loose) give_up("an example was trained on more than once");
    if (counted > EPOCHS * EXAMPLES) give_up("an example was counted more than once");
    if (counted + (g.fate == CONTINUES ? loose : 0) < EPOCHS * EXAMPLES) give_up("an example was not counted");
}

/* Each update adds 1, whoever's gradients it consists of; not so where they are averaged, or folded into later ones. In the live modes a
 * dead worker's push may have been made and be made again, or was made and its item is left out. */
static void check_updates(struct run *run) {
    const struct shmt_policy *policy = &run->spec.policy;
    const double applied = (double)first_float(run), deaths = g.deaths;
    double least = (double)updates_made(run), most = least;
    const uint64_t batches = EPOCHS * EXAMPLES / BATCH;
    char why[96];
    if (shmt_policy_is_live(policy)) {
        if (deaths == 0 && least != (double)g.items) give_up("items and updates differ");
        least = (double)g.items - deaths;
        most = (double)g.items + deaths;
        if (policy->replicas == SHMT_REPLICAS_NODE && deaths > 0) most = INFINITY; /* see docs/reliability.md: a merge lock */
    } else if (shmt_policy_has_rounds(policy)) {
        least = most = (double)shmt_shm_updates(run->store);
    } else if (least != (double)batches) {
        give_up("batches and updates differ");
    }
    snprintf(why, sizeof why, "%.9g to %.9g updates, of which %.9g are in the parameters", least, most, applied);
    if (adds_up(policy) && (applied < least || applied > most)) give_up(why);
}

/* With a quorum an update is an average: what it has of each gradient its list says. */
static void check_lists(const struct run *run) {
    const struct shmt_policy *policy = &run->spec.policy;
    const uint64_t loose = g_directed ? 0 : most_in_hand(run); /* directed: it dies between its offer and anything else */
    uint64_t got_in = 0;
    if (!shmt_policy_has_rounds(policy) || policy->quorum == SHMT_QUORUM_ALL || g_calm)
        return; /* calm: no point is looked at */
    for (uint32_t rank = 0; rank < run->spec.n_seats; rank++) {
        const struct shmt_counters *c = run->k->backend->store->counters(run->store, rank);
        got_in += load_relaxed(&c->examples) - load_relaxed(&c->dropped);
    }
    if (g.listed > got_in + loose) give_up("a gradient is in more than one update");
    if (g.listed + loose < got_in) give_up("a gradient that is not dropped is in no update");
}

static void check_bits(struct run *run) {
    static float calm[2][LAYERS * LAYER_FLOATS];
    float now[LAYERS * LAYER_FLOATS] = {0};
    const struct shmt_store_ops *ops = run->k->backend->store;
    const bool layers = has_layers(&run->spec.policy);
    if (!shmt_policy_is_batched(&run->spec.policy)) return;
    for (uint32_t t = 0; t < run->spec.n_tables; t++)
        assert_int_equal(ops->read(run->store, (int)t, 0, run->spec.table[t].rows, now + t * LAYER_FLOATS), 0);
    if (g_calm) memcpy(calm[layers], now, sizeof now);
    if (!same_bits(calm[layers], now, sizeof now)) give_up("parameters differ from those of a calm run");
}

/* ---- a run ---- */

static bool can_do_without(const struct shmt_policy *policy) {
    if (shmt_policy_is_live(policy)) return !shmt_policy_merges_replicas(policy);
    return policy->quorum != SHMT_QUORUM_ALL;
}

static struct shmt_mishap some_mishap(const struct kase *k, uint64_t most_pause_ns) {
    return (struct shmt_mishap){.worker = (uint32_t)hostile_draw(k->n_seats),
                                .at_ns = hostile_draw(100000) << hostile_draw(9),
                                .pause_ns = most_pause_ns > 0 ? 1 + hostile_draw(most_pause_ns) : 0};
}

static void choose_fate(const struct kase *k, struct shmt_spec *spec, struct shmt_sim *sim) {
    static const enum fate FATES[] = {UNDISTURBED, RESPAWNS, RESPAWNS,  CONTINUES,
                                      UNDISTURBED, RESPAWNS, CONTINUES, ENDED_EARLY};
    static const uint64_t RARITIES[] = {3, 30, 300};
    static const char *const NAMES[] = {"undisturbed", "dead workers come again", "the others go on", "ended early"};
    g.fate = FATES[hostile_draw(sizeof FATES / sizeof *FATES)];
    if (g.fate == CONTINUES && !can_do_without(&k->policy)) g.fate = RESPAWNS;
    g.rarity = RARITIES[hostile_draw(3)];
    spec->may_lack = g.fate == CONTINUES;
    spec->may_die = g.fate != UNDISTURBED;
    if (spec->may_die) g.deaths_left = 1 + (uint32_t)hostile_draw(DEATHS);
    if (spec->may_die && hostile_draw(2)) sim->death[sim->n_deaths++] = some_mishap(k, 0);
    if (hostile_draw(3) == 0) spec->pauses = (struct shmt_pauses){.steps = 1 + hostile_draw(8), .allowed = 1};
    for (uint64_t n = hostile_draw(2) * hostile_draw(5); n > 0; n--) sim->pause[sim->n_pauses++] = some_mishap(k, 50000);
    g.deaths = sim->n_deaths;
    strncat(g.what, ", ", sizeof g.what - strlen(g.what) - 1);
    strncat(g.what, NAMES[g.fate], sizeof g.what - strlen(g.what) - 1);
}

static void go_as_told(struct run *run) {
    struct shmt_error e = {0};
    const int rc = go(run, work, &e);
    /* who dies while the others leave has failed, as among processes */
    if (rc != 0 && !(g.told && (rc == SHMTRAIN_E_STOPPED || rc == SHMTRAIN_E_DIED))) give_up(e.text);
    if (g.told) return;
    check_examples(run);
    check_updates(run);
    check_lists(run);
    check_bits(run);
    const char *differ = compare_copies(run);
    if (differ) give_up(differ);
}

static void run_seed(const struct kase *k, uint64_t seed) {
    char mode[64];
    struct run run;
    memset(&g, 0, sizeof g);
    g.seed = seed;
    hostile_begin(seed, SEATS);
    g.run = &run;
    shmt_mode_name(&k->policy, NULL, mode, sizeof mode);
    snprintf(g.what, sizeof g.what, "%.60s, %u workers", mode, k->n_seats);
    struct shmt_spec spec = spec_of(k, EXAMPLES, 2, 1);
    spec.rate.base = 1;
    spec.cpu = SHMT_CPU_PORTABLE; /* whose kernels have the points */
    spec.item = 1 + (uint32_t)(seed / 7 % 16);
    if (shmt_policy_has_rounds(&k->policy)) spec.batch = spec.item * k->n_seats;
    if (has_layers(&k->policy)) add_layers(&spec, k->n_seats == 3 ? 8 : 2);
    struct shmt_virtual virtual = {.seed = seed, .stack_bytes = SHMT_FIBER_STACK, .sim = {.look_ns = 10}};
    spec.may_die = g_directed != NULL;
    if (g_directed) g.fate = has_layers(&k->policy) ? RESPAWNS : CONTINUES;
    spec.may_lack = g.fate == CONTINUES;
    if (!g_calm && !g_directed) choose_fate(k, &spec, &virtual.sim);
    snprintf(g.hangs, sizeof g.hangs, "found in run %llu\nFAILED: %s: it hangs; again: TEST_SEED=%llu\n",
             (unsigned long long)g_runs + 1, g.what, (unsigned long long)g.seed);
    begin(&run, k, spec);
    run.virtual = &virtual;
    go_as_told(&run);
    g_deaths += g.deaths;
    end(&run);
}

static void try_seeds(const struct kase *k) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 12 : 240), only = hostile_asked("TEST_SEED", UINT64_MAX);
    if (k->kind != &SHMT_TEAM_FIBERS || k->n_seats < 2) return;
    g_calm = true;
    run_seed(k, 1);
    g_calm = false;
    for (uint64_t i = 0; i < (only == UINT64_MAX ? n : 1); i++, g_runs++) run_seed(k, only == UINT64_MAX ? i + 1 : only);
}

static void whatever_the_schedule_the_protocols_keep_their_promises(void **state) {
    (void)state;
    each_case(try_seeds);
    print_message("%llu runs, %llu deaths, %llu snapshots\n", (unsigned long long)g_runs, (unsigned long long)g_deaths,
                  (unsigned long long)g_snapshots);
    assert_true(g_runs > 0);
}

static void direct(const struct kase *k, void (*directed)(const char *, uint32_t)) {
    g_calm = true;
    run_seed(k, 1);
    g_calm = false;
    g_directed = directed;
    run_seed(k, 1);
    for (uint64_t seed = 2; g.deaths == 0 && seed < 50; seed++) run_seed(k, seed); /* until it comes to that */
    g_directed = NULL;
    assert_int_equal(g.deaths, 1);
}

static void try_batch(const struct kase *k) {
    if (k->kind == &SHMT_TEAM_FIBERS && k->n_seats == 2 && has_layers(&k->policy)) direct(k, dies_behind_a_batch);
}

static void who_dies_behind_a_batch_keeps_the_copy_that_it_had(void **state) {
    (void)state;
    each_case(try_batch);
}

static void try_offer(const struct kase *k) {
    const bool quorum = shmt_policy_has_rounds(&k->policy) && k->policy.quorum != SHMT_QUORUM_ALL;
    if (k->kind == &SHMT_TEAM_FIBERS && k->n_seats == 3 && quorum) direct(k, dies_behind_an_offer);
}

static void who_dies_behind_an_offer_is_in_an_update_of_that_epoch(void **state) {
    (void)state;
    each_case(try_offer);
}

int main(void) {
    (void)signal(SIGALRM, hangs); /* after two minutes: see go() */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_dies_behind_a_batch_keeps_the_copy_that_it_had),
        cmocka_unit_test(who_dies_behind_an_offer_is_in_an_update_of_that_epoch),
        cmocka_unit_test(whatever_the_schedule_the_protocols_keep_their_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
