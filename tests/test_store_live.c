/* Tests of live weights with several workers at a time: what atomic and locked promise to lose nothing of is counted, by
 * threads and by processes; racy stays whole; locks are held one unit at a time, and hang nobody. Under ThreadSanitizer this
 * shows that the live kernels touch shared words only as live.h, atomic.h and lock.h do. */
#include "store_help.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "update/live.h"
#include "update/lock.h"

/* ---- several workers ---- */

static const uint32_t CREWS[] = {2, 3, 8};

struct worker {
    void *(*work)(void *);
    _Atomic uint32_t *arrived; /* of n_workers */
    uint32_t n_workers;
    struct shmt_span span; /* with an owner word of its own */
    enum shmt_write write;
    enum shmt_rule_kind rule;
    const struct shmt_update *u;
    const struct shmtrain_csr *x;
};

static void *begin_together(void *arg) {
    const struct worker *w = arg;
    uint32_t here = load_relaxed(w->arrived);
    while (!swap_relaxed(w->arrived, &here, here + 1)) continue;
    while (load_relaxed(w->arrived) < w->n_workers) sched_yield();
    return w->work(arg);
}

static void run_threads(const struct worker *all, uint32_t n) {
    pthread_t thread[8];
    for (uint32_t i = 0; i < n; i++) assert_int_equal(pthread_create(&thread[i], NULL, begin_together, (void *)&all[i]), 0);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
}

static void run_processes(const struct worker *all, uint32_t n) {
    pid_t child[8];
    for (uint32_t i = 0; i < n; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] > 0) continue;
        alarm(60);
        begin_together((void *)&all[i]);
        _exit(0);
    }
    for (uint32_t i = 0; i < n; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* n workers on one table, as threads or processes; the table is in shared memory. */
static void run_crew(struct table *t, void *(*work)(void *), enum shmt_write write, enum shmt_rule_kind rule,
                     const struct shmt_update *u, const struct shmtrain_csr *x, uint32_t n, bool processes) {
    struct worker all[8];
    alarm(60);
    for (uint32_t i = 0; i < n; i++) {
        all[i] = (struct worker){work, &t->arrived, n, span_of(t, write, rule), write, rule, u, x};
        all[i].span.locks.owner = i + 1;
    }
    if (processes)
        run_processes(all, n);
    else
        run_threads(all, n);
    for (uint32_t i = 0; i < LOCKS; i++) assert_int_equal(load_relaxed(&t->lock[i]), 0);
    alarm(0);
}

static struct table *shared_table(void) {
    struct table *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(t, MAP_FAILED);
    return t;
}

/* ---- nothing is lost ---- */

enum { HOT = 12, ROUNDS = 250 }; /* 8 workers make 4,000 pushes; the sum of 1 .. 4,000 is below 2^24 */

/* Every round pushes a gradient of -1 twice to rows 0 .. HOT - 1 and the last one: as an example with bias, and dense. */
static void *push_ones(void *arg) {
    static const uint32_t id[HOT] = {7, 0, 1, 11, 2, 10, 3, 9, 4, 8, 5, 6};
    static const uint64_t start[2] = {0, HOT};
    const struct worker *w = arg;
    const struct shmt_kernels *kernels = shmt_kernels_find(w->write, w->rule, false, false);
    const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr), .n = 1, .bias = 1, .start = start, .id = id};
    const float minus_one = -1;
    float grad[HOT];
    for (int i = 0; i < HOT; i++) grad[i] = -1;
    for (int round = 0; round < ROUNDS; round++) {
        kernels->push_sparse(&w->span, &x, &minus_one, w->u);
        kernels->push_dense(&w->span, 0, HOT, grad, w->u);
        kernels->push_dense(&w->span, ROWS - 1, 1, grad, w->u);
    }
    return NULL;
}

/* Sums of whole numbers are exact, whatever their order: `want_weight` and the state words say what n pushes leave behind. */
static void nothing_is_lost(enum shmt_write write, enum shmt_rule_kind rule, const struct shmt_update *u, uint32_t n_words,
                            double (*want)(double pushes, uint32_t word)) {
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t crew = CREWS[i % 3];
        struct table *t = shared_table();
        const double pushes = 2 * ROUNDS * (double)crew;
        run_crew(t, push_ones, write, rule, u, NULL, crew, i >= 3);
        for (uint32_t row = 0; row < ROWS; row++) {
            const bool pushed = row < HOT || row == ROWS - 1;
            for (uint32_t word = 0; word <= n_words; word++) { /* word 0: the weight */
                const float got = word == 0 ? t->weight[row] : t->state[(word - 1) * PLANE + row];
                const double wanted = pushed ? want(pushes, word) : 0;
                if (!isnan(wanted) && (double)got != wanted)
                    fail_msg("%s, %s, %u %s: word %u of row %u is %.9g, and not %.9g", shmt_write_name(write),
                             shmt_rule_name(rule), crew, i >= 3 ? "processes" : "threads", word, row, (double)got, wanted);
            }
        }
        munmap(t, sizeof *t);
    }
}

static double sum_of_ones(double pushes, uint32_t word) { return word == 0 ? pushes : NAN; }
static double squares_of_ones(double pushes, uint32_t word) { return word == 1 ? pushes : NAN; }
static double ftrl_squares(double pushes, uint32_t word) { return word == 2 ? pushes : NAN; }

/* With m = 1 and g = -1 the velocity counts -1, -2, ..., -n; each push takes the value that it has made, so the weight is
 * the sum of 1 .. n, times the rate. */
static double momentum_of_ones(double pushes, uint32_t word) { return word == 0 ? pushes * (pushes + 1) / 2 / 16 : -pushes; }

/* nesterov's step is that, and the gradient once more. */
static double nesterov_of_ones(double pushes, uint32_t word) {
    return word == 0 ? (pushes * (pushes + 1) / 2 + pushes) / 16 : -pushes;
}

/* With rho = 0 a mean of squares is the last one, 1, and so is each step. */
static double steps_of_one(double pushes, uint32_t word) { return word == 0 ? pushes : 1; }
static double square_of_one(double pushes, uint32_t word) { return (void)pushes, word == 1 ? 1 : NAN; }

static const struct shmt_update FORGETFUL = {.rate = 1, .scale = 1};
static const struct shmt_update ONE = {.rate = 1, .scale = 1, .epsilon = 1e-3f, .beta = 1},
                                COUNTING = {.rate = 1.0f / 16, .scale = 1, .momentum = 1};

static void atomic_pushes_lose_nothing(void **state) {
    (void)state;
    nothing_is_lost(SHMT_WRITE_ATOMIC, SHMT_RULE_SGD, &ONE, 0, sum_of_ones);
    nothing_is_lost(SHMT_WRITE_ATOMIC, SHMT_RULE_ADAGRAD, &ONE, 1, squares_of_ones);
    nothing_is_lost(SHMT_WRITE_ATOMIC, SHMT_RULE_MOMENTUM, &COUNTING, 1, momentum_of_ones);
    nothing_is_lost(SHMT_WRITE_ATOMIC, SHMT_RULE_NESTEROV, &COUNTING, 1, nesterov_of_ones);
    nothing_is_lost(SHMT_WRITE_ATOMIC, SHMT_RULE_RMSPROP, &FORGETFUL, 1, steps_of_one);
    nothing_is_lost(SHMT_WRITE_ATOMIC, SHMT_RULE_ADADELTA, &ONE, 2, square_of_one);
}

static void locked_pushes_lose_nothing(void **state) {
    (void)state;
    nothing_is_lost(SHMT_WRITE_LOCKED, SHMT_RULE_SGD, &ONE, 0, sum_of_ones);
    nothing_is_lost(SHMT_WRITE_LOCKED, SHMT_RULE_ADAGRAD, &ONE, 1, squares_of_ones);
    nothing_is_lost(SHMT_WRITE_LOCKED, SHMT_RULE_MOMENTUM, &COUNTING, 1, momentum_of_ones);
    nothing_is_lost(SHMT_WRITE_LOCKED, SHMT_RULE_FTRL, &ONE, 2, ftrl_squares);
    nothing_is_lost(SHMT_WRITE_LOCKED, SHMT_RULE_NESTEROV, &COUNTING, 1, nesterov_of_ones);
    nothing_is_lost(SHMT_WRITE_LOCKED, SHMT_RULE_RMSPROP, &FORGETFUL, 1, steps_of_one);
    nothing_is_lost(SHMT_WRITE_LOCKED, SHMT_RULE_ADADELTA, &ONE, 2, square_of_one);
}

/* ---- racy ---- */

/* -1 and 1 by turns, so that weights stay small. */
static void ones_by_turns(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    (void)arg, (void)first, (void)dot;
    for (uint32_t k = 0; k < n; k++) slope_out[k] = (first + k) % 2 ? 1 : -1;
}

static void *push_counted(void *arg) {
    struct worker *w = arg;
    struct table *t = (struct table *)(void *)w->span.sink; /* the weights come first */
    struct shmt_span span = w->span;
    span.counted = t->counted;
    const struct shmt_kernels *kernels = shmt_kernels_that_count(w->rule, true, false);
    const float grad[8] = {0};
    for (int round = 0; round < 20; round++) {
        kernels->each(&span, w->x, 4, ones_by_turns, NULL, w->u);
        kernels->push_dense(&span, 40, 8, grad, w->u);
    }
    return NULL;
}

static uint64_t count_of(const struct table *t) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < ROWS; i++) n += load_relaxed(&t->counted[i]) >> 32;
    return n;
}

static void updates_are_counted_as_racily_as_they_are_made(void **state) {
    (void)state;
    struct dice d = {.seed = 18};
    struct examples x;
    make_examples(&x, &d);
    const struct shmtrain_csr csr = {.size = sizeof(struct shmtrain_csr),
                                     .n = EXAMPLES,
                                     .bias = 1,
                                     .start = x.start,
                                     .id = x.id,
                                     .value = x.value,
                                     .order = x.order};
    const uint64_t each = 20 * (x.start[EXAMPLES] + EXAMPLES + 8);
    for (uint32_t rule = 0; rule < SHMT_N_RULES; rule++)
        for (uint32_t crew = 1; crew <= 8 && !shmt_rule_needs_norms(rule); crew *= 2) {
            struct table *t = shared_table();
            struct shmt_update u = ONE;
            u.momentum = u.beta2 = 0.5f;
            run_crew(t, push_counted, SHMT_WRITE_RACY, rule, &u, &csr, crew, crew == 4);
            /* One alone loses nothing; several may, and none is counted twice. */
            assert_true(crew == 1 ? count_of(t) == each : count_of(t) > 0 && count_of(t) <= each * crew);
            munmap(t, sizeof *t);
        }
    free_examples(&x);
}

static void hinge_like_slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    (void)arg, (void)first;
    for (uint32_t k = 0; k < n; k++) slope_out[k] = dot[k] > 1 ? 0.25f : -0.25f;
}

static void *race(void *arg) {
    const struct worker *w = arg;
    const struct shmt_kernels *kernels = shmt_kernels_find(w->write, w->rule, true, true);
    const float grad[8] = {0};
    float dot[EXAMPLES], some[8];
    for (int round = 0; round < 15; round++) {
        kernels->each(&w->span, w->x, 4, hinge_like_slope, NULL, w->u);
        kernels->dot(&w->span, w->x, dot);
        kernels->push_dense(&w->span, 0, 8, grad, w->u);
        shmt_span_read(&w->span, 0, 8, some);
    }
    return NULL;
}

static void workers_race_on_live_weights_and_every_weight_stays_whole(void **state) {
    (void)state;
    struct dice d = {.seed = 17};
    struct examples x;
    make_examples(&x, &d);
    const struct shmtrain_csr csr = {.size = sizeof(struct shmtrain_csr),
                                     .n = EXAMPLES,
                                     .bias = 1,
                                     .start = x.start,
                                     .id = x.id,
                                     .value = x.value,
                                     .order = x.order};
    const struct shmt_update u = {
        .rate = 0.1f, .scale = 1, .l1 = 1e-4f, .l2 = 1e-3f, .momentum = 0.5f, .beta2 = 0.9f, .epsilon = 0.1f, .beta = 1};
    for (uint32_t i = 0; i < 3 * SHMT_N_RULES; i++) {
        struct table *t = shared_table();
        if (!is_legal(i % 3, i / 3)) continue;
        make_table(t, &d);
        run_crew(t, race, i % 3, i / 3, &u, &csr, 2, false);
        for (uint32_t row = 0; row < ROWS; row++) assert_true(fabsf(t->weight[row]) < 1e3f); /* torn, it could be anything */
        munmap(t, sizeof *t);
    }
    free_examples(&x);
}

/* ---- locks ---- */

enum { WIDE = 3 * SHMT_LOCK_FLOATS };

struct wide {
    float weight[WIDE];
    _Atomic uint32_t lock[4], abort;
};

static struct shmt_span wide_span(struct wide *t, uint32_t owner) {
    return (struct shmt_span){.weight = t->weight,
                              .sink = t->weight,
                              .locks = {.word = t->lock, .first = 2, .mask = 3, .owner = owner, .abort = &t->abort},
                              .rows = WIDE / 2,
                              .width = 2};
}

static void *push_wide(void *arg) {
    struct wide *t = arg;
    static float grad[WIDE];
    const struct shmt_span span = wide_span(t, 7);
    for (int i = 0; i < WIDE; i++) grad[i] = -1;
    shmt_kernels_find(SHMT_WRITE_LOCKED, SHMT_RULE_SGD, true, false)->push_dense(&span, 0, WIDE, grad, &ONE);
    return NULL;
}

static void *read_wide(void *arg) {
    static float out[WIDE];
    const struct shmt_span span = wide_span(arg, 8);
    shmt_span_read(&span, 0, WIDE, out);
    return out;
}

/* Unit 2 (words 4 and 5 of four are 0 and 1: units 0, 1, 2 have words 2, 3, 0) is another's. */
static void a_push_waits_for_the_unit_that_another_holds_and_for_no_other(void **state) {
    (void)state;
    static struct wide t;
    pthread_t thread;
    alarm(60);
    store_relaxed(&t.lock[0], 5);
    assert_int_equal(pthread_create(&thread, NULL, push_wide, &t), 0);
    while (shmt_live_load(&t.weight[2 * SHMT_LOCK_FLOATS - 1]) != 1) usleep(100); /* units 0 and 1 are pushed */
    usleep(2000);
    for (int i = 2 * SHMT_LOCK_FLOATS; i < WIDE; i++) assert_true(shmt_live_load(&t.weight[i]) == 0);
    assert_int_equal(load_relaxed(&t.lock[0]), 5); /* still the other's */
    store_release(&t.lock[0], 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < WIDE; i++) assert_true(t.weight[i] == 1);
    for (int i = 0; i < 4; i++) assert_int_equal(load_relaxed(&t.lock[i]), 0);
    alarm(0);
}

static void a_read_of_rows_waits_for_their_units_too(void **state) {
    (void)state;
    static struct wide t;
    pthread_t thread;
    void *out;
    alarm(60);
    store_relaxed(&t.lock[0], 5);
    assert_int_equal(pthread_create(&thread, NULL, read_wide, &t), 0);
    usleep(2000);
    for (int i = 0; i < WIDE; i++) shmt_live_store(&t.weight[i], 3);
    store_release(&t.lock[0], 0);
    assert_int_equal(pthread_join(thread, &out), 0);
    for (int i = 2 * SHMT_LOCK_FLOATS; i < WIDE; i++) assert_true(((float *)out)[i] == 3);
    alarm(0);
}

/* Every float of a unit is of one push: a reader under the lock never sees one in the middle. */
static void *push_whole_units(void *arg) {
    for (int i = 0; i < 200; i++) push_wide(arg);
    return NULL;
}

static void units_are_read_whole(void **state) {
    (void)state;
    static struct wide t;
    static float out[WIDE];
    const struct shmt_span span = wide_span(&t, 9);
    pthread_t thread;
    alarm(60);
    assert_int_equal(pthread_create(&thread, NULL, push_whole_units, &t), 0);
    do {
        shmt_span_read(&span, 0, WIDE, out);
        for (int i = 0; i < WIDE; i++) assert_true(out[i] == out[i / SHMT_LOCK_FLOATS * SHMT_LOCK_FLOATS]);
    } while (out[WIDE - 1] < 200);
    assert_int_equal(pthread_join(thread, NULL), 0);
    alarm(0);
}

/* Else whoever comes after my death would take it back, and with it what others have pushed since. */
static void a_push_that_is_complete_leaves_nothing_to_take_back(void **state) {
    static const struct shmt_update u = {.rate = 1, .scale = 1, .epsilon = 1};
    static const enum shmt_rule_kind RULES[] = {SHMT_RULE_SGD, SHMT_RULE_ADAGRAD};
    static const uint64_t start[2] = {0, 1};
    static const uint32_t id[1] = {3};
    const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr), .n = 1, .bias = 1, .start = start, .id = id};
    const float slope = 1, grad[HOT] = {1};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct table *t = shared_table();
        _Atomic uint64_t word = 0;
        float old[3 * SHMT_LOCK_FLOATS] = {NAN};
        const struct shmt_kernels *kernels = shmt_kernels_find(SHMT_WRITE_LOCKED, RULES[i], false, false);
        struct shmt_span span = span_of(t, SHMT_WRITE_LOCKED, RULES[i]);
        span.undo = (struct shmt_undo){.word = &word, .old = old};
        kernels->push_sparse(&span, &x, &slope, &u);
        assert_int_equal(load_relaxed(&word), 0);
        assert_true(isnan(old[0]) == (RULES[i] == SHMT_RULE_SGD)); /* one word is changed in one step */
        kernels->push_dense(&span, 0, HOT, grad, &u);
        assert_int_equal(load_relaxed(&word), 0);
        assert_int_equal(munmap(t, sizeof *t), 0);
    }
    static struct wide t;
    static float old_unit[SHMT_LOCK_FLOATS], wide[WIDE];
    _Atomic uint64_t word = 0;
    struct shmt_span span = wide_span(&t, 7);
    span.undo = (struct shmt_undo){.word = &word, .old = old_unit};
    shmt_kernels_find(SHMT_WRITE_LOCKED, SHMT_RULE_SGD, true, false)->push_dense(&span, 0, WIDE, wide, &u);
    assert_int_equal(load_relaxed(&word), 0);
}

/* Who died with a lock in hand does not release it; the run is given up instead. */
static void a_lock_of_the_dead_hangs_nobody_once_the_run_is_given_up(void **state) {
    (void)state;
    static struct wide t;
    pthread_t thread;
    alarm(60);
    for (int i = 0; i < 4; i++) store_relaxed(&t.lock[i], 5);
    assert_int_equal(pthread_create(&thread, NULL, push_wide, &t), 0);
    usleep(2000);
    assert_true(shmt_live_load(&t.weight[0]) == 0); /* it waits */
    store_release(&t.abort, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)read_wide(&t);
    for (int i = 0; i < 4; i++) assert_int_equal(load_relaxed(&t.lock[i]), 5); /* nobody releases what is not his */
    alarm(0);
}

static void what_a_dead_seat_held_can_be_released(void **state) {
    (void)state;
    struct wide t = {.lock = {0}};
    const struct shmt_span span = wide_span(&t, 1);
    store_relaxed(&t.lock[0], 4 << 16 | 3); /* seat 2, in its life number 4 */
    store_relaxed(&t.lock[1], 4);
    store_relaxed(&t.lock[3], 3);
    shmt_locks_free(&span.locks, 2);
    assert_int_equal(load_relaxed(&t.lock[0]), 0);
    assert_int_equal(load_relaxed(&t.lock[1]), 4);
    assert_int_equal(load_relaxed(&t.lock[3]), 0);
    shmt_locks_free(&(struct shmt_locks){0}, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(atomic_pushes_lose_nothing),
        cmocka_unit_test(locked_pushes_lose_nothing),
        cmocka_unit_test(updates_are_counted_as_racily_as_they_are_made),
        cmocka_unit_test(workers_race_on_live_weights_and_every_weight_stays_whole),
        cmocka_unit_test(a_push_waits_for_the_unit_that_another_holds_and_for_no_other),
        cmocka_unit_test(a_read_of_rows_waits_for_their_units_too),
        cmocka_unit_test(units_are_read_whole),
        cmocka_unit_test(a_push_that_is_complete_leaves_nothing_to_take_back),
        cmocka_unit_test(a_lock_of_the_dead_hangs_nobody_once_the_run_is_given_up),
        cmocka_unit_test(what_a_dead_seat_held_can_be_released),
    };
    return cmocka_run_group_tests_name("store_live", tests, NULL, NULL);
}
