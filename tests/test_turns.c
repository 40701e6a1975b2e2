/* Whole runs of the shm backend on a host whose threads take turns and whose clock is a number (turns_help.h): in every family of
 * modes workers ask the machine for nothing, the same seed gives the same course and the same bits, also in live modes, and time
 * that is lost on purpose is the host's time. */
#include "turns_help.h"

#include <string.h>

#include "backends/shm/shm.h"
#include "deadline.h"
#include "ps/meter.h"
#include "ps/session.h"
#include "runtime/team.h"

#define SECOND UINT64_C(1000000000)

enum { SEATS = 4, EXAMPLES = 500, EPOCHS = 2, ROWS = 6 };

static const struct shmt_backend *const BACKEND = &SHMT_BACKEND_SHM;

static const struct shmt_policy LIVE = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF};
static const struct shmt_policy POLICIES[] = {
    {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
    {.write = SHMT_WRITE_ATOMIC, .staleness = 1},
    {.write = SHMT_WRITE_LOCKED, .staleness = 0},
    {.write = SHMT_WRITE_AGGREGATE, .staleness = 0},
    {.write = SHMT_WRITE_AGGREGATE, .staleness = 2},
    {.write = SHMT_WRITE_AGGREGATE, .quorum = 2},
    {.write = SHMT_WRITE_AGGREGATE, .quorum = 3, .late = SHMT_LATE_FOLD},
    {.write = SHMT_WRITE_RACY, .staleness = 0, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 2, .merge = SHMT_MERGE_MEAN}};
enum { N_POLICIES = sizeof POLICIES / sizeof *POLICIES };

struct play {
    struct shmt_spec spec;
    struct shmt_store *store;
    const struct shmt_slow_plan *slow;
    uint64_t items[SEATS]; /* each its own */
    /* the outcome */
    float row[ROWS];
    uint64_t course, took_ns;
};

/* A gradient of what it sees, while others take their turns: so the order in which they come shows in the weights. */
static int work(struct play *play, shmtrain_session *s) {
    const uint32_t rank = s->seat->rank;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float row[ROWS], grad[ROWS];
        play->items[rank]++;
        if ((rc = shmtrain_pull(s, 0, 0, ROWS, row)) < 0) return rc;
        for (int i = 0; i < 3; i++) shmt_host()->yield();
        for (uint32_t i = 0; i < ROWS; i++) grad[i] = (float)w.n * (row[i] - (float)((w.first + i) % 7) / 7);
        if ((rc = shmtrain_push(s, 0, 0, ROWS, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static int body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct play *play = arg;
    shmtrain_session s;
    struct shmt_slow slow;
    (void)team;
    turns_begin(rank);
    int rc = shmt_session_enter(&s, BACKEND, play->store, &play->spec, rank, 0, e);
    if (rc == 0) {
        slow = (struct shmt_slow){.plan = play->slow,
                                  .worker = rank,
                                  .busy_ns = &s.seat->counters->busy_ns,
                                  .factor = 1,
                                  .stop = BACKEND->store->stop_word(play->store),
                                  .abort = BACKEND->store->abort_word(play->store)};
        if (play->slow) s.slow = &slow;
        rc = work(play, &s);
        if (rc < 0) *e = s.error;
        shmt_session_leave(&s);
    }
    turns_end();
    return rc;
}

static void wake(void *arg) { BACKEND->store->wake(((struct play *)arg)->store); }

static struct play run(struct shmt_policy policy, uint64_t seed, const struct shmt_slow_plan *slow) {
    struct play play = {.spec = {.n_seats = SEATS,
                                 .n_workers = SEATS,
                                 .n_examples = EXAMPLES,
                                 .epochs = EPOCHS,
                                 .max_steps = SHMT_NO_LIMIT,
                                 .policy = policy,
                                 .batch = 32,
                                 .n_chunks = 8,
                                 .item = 8,
                                 .order = {.seed = 3, .n_examples = EXAMPLES, .shuffle = true},
                                 .rate = {.base = 0.125f, .kind = SHMT_RATE_CONSTANT},
                                 .n_tables = 1,
                                 .table = {{.name = "t", .rows = ROWS, .width = 1}},
                                 .board_bytes = 64},
                        .slow = slow};
    struct shmt_error e = {0};
    if (BACKEND->create(&play.spec, NULL, &play.store, &e) != 0) fail_msg("create: %s", e.text);
    const struct shmt_team_spec team = {.kind = &SHMT_TEAM_THREADS,
                                        .n = SEATS,
                                        .body = body,
                                        .arg = &play,
                                        .abort = BACKEND->store->abort_word(play.store),
                                        .on_abort = wake,
                                        .what = "testing"};
    turns_use(SEATS, seed);
    const uint64_t from_ns = turns.now_ns;
    if (shmt_team_run(&team, &e) != 0) fail_msg("%s", e.text);
    turns_over();
    play.took_ns = turns.now_ns - from_ns;
    play.course = turns.history;
    assert_int_equal(BACKEND->store->read(play.store, 0, 0, ROWS, play.row), 0);
    uint64_t examples = 0;
    for (uint32_t i = 0; i < SEATS; i++) examples += load_relaxed(&BACKEND->store->counters(play.store, i)->examples);
    assert_int_equal(examples, EPOCHS * EXAMPLES);
    return play;
}

static void end(struct play *play) { BACKEND->store->destroy(play->store); }

static void the_same_seed_gives_the_same_bits_in_every_mode(void **state) {
    (void)state;
    for (size_t i = 0; i < N_POLICIES; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct play one = run(POLICIES[i], seed, NULL), two = run(POLICIES[i], seed, NULL);
            assert_true(one.row[0] != 0);
            assert_memory_equal(one.row, two.row, sizeof one.row);
            assert_int_equal(one.course, two.course);
            assert_int_equal(one.took_ns, two.took_ns);
            end(&one);
            end(&two);
        }
}

static void another_seed_is_another_course_of_a_live_run(void **state) {
    (void)state;
    struct play one = run(LIVE, 1, NULL), two = run(LIVE, 2, NULL);
    assert_int_not_equal(one.course, two.course);
    assert_memory_not_equal(one.row, two.row, sizeof one.row);
    end(&one);
    end(&two);
}

/* Worker 1 loses a minute in each item. At bound 0 all wait for it at every clock, with no bound nobody does. */
static void the_others_wait_for_a_slow_worker_by_the_hosts_clock(void **state) {
    (void)state;
    static const struct shmt_slow_plan SLOW = {.n = 1,
                                               .entry = {{.worker = 1, .share = 1, .factor = 1, .more_ns = 60 * SECOND}}};
    struct play bound = run(POLICIES[2], 5, &SLOW), free = run(LIVE, 5, &SLOW);
    const uint64_t lost_ns = bound.items[1] * 60 * SECOND;
    assert_true(bound.items[1] > EPOCHS * 10); /* of some 126 items, a quarter */
    assert_true(bound.took_ns >= lost_ns && bound.took_ns < lost_ns + 10 * SECOND);
    const uint64_t waited_ns = shmt_meter_read(&BACKEND->store->counters(bound.store, 0)->wait_clock_ns, 0);
    assert_true(waited_ns > lost_ns - 70 * SECOND * EPOCHS && waited_ns <= bound.took_ns);
    assert_true(free.items[1] <= EPOCHS * 2 && free.took_ns < 60 * SECOND * EPOCHS * 2 + SECOND);
    end(&bound);
    end(&free);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_same_seed_gives_the_same_bits_in_every_mode, deadline),
        cmocka_unit_test_setup(another_seed_is_another_course_of_a_live_run, deadline),
        cmocka_unit_test_setup(the_others_wait_for_a_slow_worker_by_the_hosts_clock, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
