/* See conformance.h. */
#include "conformance.h"

#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "consistency/chunks.h"
#include "consistency/mode.h"
#include "sanitized.h"

static const struct shmt_policy POLICIES[] = {
    {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
    {.write = SHMT_WRITE_RACY, .staleness = 0},
    {.write = SHMT_WRITE_ATOMIC, .staleness = SHMT_STALENESS_INF},
    {.write = SHMT_WRITE_ATOMIC, .staleness = 0},
    {.write = SHMT_WRITE_LOCKED, .staleness = SHMT_STALENESS_INF},
    {.write = SHMT_WRITE_LOCKED, .staleness = 0},
    {.write = SHMT_WRITE_AGGREGATE, .staleness = 0},
    {.write = SHMT_WRITE_AGGREGATE, .staleness = 0, .replicas = SHMT_REPLICAS_EQUAL},
    {.write = SHMT_WRITE_AGGREGATE, .staleness = 2},
    {.write = SHMT_WRITE_AGGREGATE, .quorum = 2},
    {.write = SHMT_WRITE_AGGREGATE, .quorum = 2, .late = SHMT_LATE_FOLD},
    {.write = SHMT_WRITE_RACY, .staleness = 0, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 2, .merge = SHMT_MERGE_MEAN},
    {.write = SHMT_WRITE_RACY,
     .staleness = SHMT_STALENESS_INF,
     .replicas = SHMT_REPLICAS_NODE,
     .merge_every = 2,
     .merge = SHMT_MERGE_SUM},
    {.write = SHMT_WRITE_RACY,
     .staleness = SHMT_STALENESS_INF,
     .replicas = SHMT_REPLICAS_WORKER,
     .merge_every = 1,
     .merge = SHMT_MERGE_DAMPED},
    {.write = SHMT_WRITE_LOCKED,
     .staleness = 2,
     .replicas = SHMT_REPLICAS_WORKER,
     .merge_every = 1,
     .merge = SHMT_MERGE_DAMPED},
    {.write = SHMT_WRITE_ATOMIC, .staleness = 0, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 3, .merge = SHMT_MERGE_SUM}};
enum { N_POLICIES = sizeof POLICIES / sizeof *POLICIES };

/* Who has one seat keeps one copy of the parameters, and waits for nobody. */
static bool bears(const struct shmt_backend *backend, const struct shmt_policy *policy) {
    return backend->caps & SHMT_CAP_MANY || (!shmt_policy_merges_replicas(policy) && !shmt_policy_has_rounds(policy));
}

/* A quorum of all is another policy. */
static bool is_settled(const struct shmt_policy *policy, uint32_t n_seats) {
    struct shmt_policy settled = *policy;
    return shmt_policy_settle(&settled, n_seats, NULL) == 0 && shmt_policy_equal(&settled, policy);
}

static const struct shmt_team_kind *const KINDS[] = {&SHMT_TEAM_THREADS, &SHMT_TEAM_FIBERS, &SHMT_TEAM_PROCESSES};

/* Sanitizers see in threads what processes do, too; of races fibers have none. */
static bool is_tried(const struct shmt_team_kind *kind, const struct shmt_backend *backend) {
    if (kind == &SHMT_TEAM_PROCESSES) return !SANITIZED && (backend->caps & SHMT_CAP_PROCESSES);
    return kind == &SHMT_TEAM_THREADS || (!WATCHES_RACES && (backend->caps & SHMT_CAP_MANY));
}

void each_case(void (*test)(const struct kase *)) {
    static const uint32_t SEATS[] = {1, 2, 3, 8};
    const struct shmt_backend *backend;
    for (size_t b = 0; (backend = shmt_backend_at(b)); b++)
        for (size_t p = 0; p < N_POLICIES; p++)
            for (size_t s = 0; bears(backend, &POLICIES[p]) && s < (backend->caps & SHMT_CAP_MANY ? 4u : 1u); s++)
                for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
                    const struct kase k = {backend, POLICIES[p], SEATS[s], KINDS[i]};
                    if (!is_tried(KINDS[i], backend)) continue;
                    char name[64];
                    if (!is_settled(&k.policy, k.n_seats) || (WATCHES_RACES && k.n_seats == 1)) continue;
                    shmt_mode_name(&k.policy, NULL, name, sizeof name);
                    print_message("  %s, %s, %u %s\n", backend->name, name, k.n_seats, k.kind->name);
                    test(&k);
                }
}

struct shmt_spec spec_of(const struct kase *k, uint64_t n_examples, uint64_t rows, uint32_t width) {
    struct shmt_spec spec = {.cpu = shmt_cpu_best(),
                             .n_seats = k->n_seats,
                             .n_workers = k->n_seats,
                             .n_examples = n_examples,
                             .epochs = 3,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = k->policy,
                             .batch = 64,
                             .n_chunks = shmt_chunks_of_batch(64),
                             .item = 24,
                             .order = {.seed = 7, .n_examples = n_examples, .shuffle = true},
                             .rate = {.base = 0.5f, .kind = SHMT_RATE_CONSTANT},
                             .curvatures = shmt_policy_is_damped(&k->policy), /* zeros: shares of 1 */
                             .n_tables = 1,
                             .board_bytes = 1 << 16};
    strcpy(spec.table[0].name, "t");
    spec.table[0].rows = rows;
    spec.table[0].width = width;
    spec.l2_rows[0] = rows;
    return spec;
}

static bool is_guest(const struct run *run, uint32_t rank) { return rank >= run->spec.n_seats - run->spec.n_guests; }

static int seat_body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct run *run = arg;
    shmtrain_session s;
    if (is_guest(run, rank)) return run->visit(run, rank, e);
    int rc = shmt_session_enter(&s, run->k->backend, run->store, &run->spec, rank, shmt_team_life(team, rank), e);
    if (rc < 0) return rc;
    s.epoch_end = run->epoch_end;
    s.epoch_end_arg = run;
    rc = run->work(run, &s);
    if (rc < 0) *e = s.error;
    shmt_session_leave(&s);
    return rc;
}

void begin(struct run *run, const struct kase *k, struct shmt_spec spec) {
    struct shmt_error e = {0};
    *run = (struct run){.k = k, .spec = spec};
    if (k->backend->create(&run->spec, NULL, &run->store, &e) != 0) fail_msg("create: %s", e.text);
    run->board = shmt_array_at(k->backend, run->store, SHMT_ARRAY_BOARD);
}

static void wake(void *arg) {
    struct run *run = arg;
    run->k->backend->store->wake(run->store);
}

/* By the supervisor. Who cannot be done without comes again. */
static enum shmt_team_outcome on_death(void *arg, uint32_t rank, uint32_t life) {
    const struct run *run = arg;
    const bool comes_back = rank == 0 || !run->spec.may_lack;
    (void)life;
    if (is_guest(run, rank)) {
        assert_int_equal(run->k->backend->guests->reclaim(run->store, rank, true), 1);
        run->k->backend->store->wake(run->store);
        return SHMT_TEAM_CONTINUES;
    }
    run->k->backend->store->reclaim(run->store, rank, comes_back);
    run->k->backend->store->wake(run->store);
    return comes_back ? SHMT_TEAM_RESPAWNS : SHMT_TEAM_CONTINUES;
}

int go(struct run *run, int (*work)(struct run *, shmtrain_session *), struct shmt_error *e) {
    const struct shmt_team_spec team = {.kind = run->k->kind,
                                        .n = run->k->n_seats,
                                        .body = seat_body,
                                        .arg = run,
                                        .abort = run->k->backend->store->abort_word(run->store),
                                        .on_abort = wake,
                                        .grace_ms = 5000,
                                        .on_death = run->spec.may_die ? on_death : NULL,
                                        .most_respawns = 100000,
                                        .virtual = run->virtual,
                                        .what = "testing"};
    alarm(120);
    run->work = work;
    return shmt_team_run(&team, e);
}

void go_well(struct run *run, int (*work)(struct run *, shmtrain_session *)) {
    struct shmt_error e = {0};
    const int rc = go(run, work, &e);
    if (rc != 0) fail_msg("%s: %s", shmtrain_status_name(rc), e.text);
}

void end(struct run *run) { run->k->backend->store->destroy(run->store); }

float first_float(struct run *run) {
    float row[16];
    assert_true(run->spec.table[0].width <= 16);
    assert_int_equal(run->k->backend->store->read(run->store, 0, 0, 1, row), 0);
    return row[0];
}

uint64_t updates_made(struct run *run) {
    uint64_t sum = 0;
    for (uint32_t rank = 0; rank < run->k->n_seats; rank++)
        sum += load_relaxed(&run->k->backend->store->counters(run->store, rank)->updates);
    return sum;
}

int count_examples(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float grad[2] = {0, 0};
        for (uint64_t i = w.first; i < w.first + w.n; i++) {
            grad[0] -= 1;
            grad[1] -= (float)(i % 3);
        }
        if ((rc = shmtrain_push(s, 0, 0, 2, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* The update is the mean over the batch: with batches of 64 of 64 * 5 examples, each adds exactly 1 to row 0. */
