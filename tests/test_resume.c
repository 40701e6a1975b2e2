/* `sync` has the same bits with pauses as without them, and whichever snapshot another run begins with, with any number of
 * workers: in parameters, state and losses, by every rule. */
#include "pause_help.h"

#include <math.h>
#include <sys/time.h>

#include "base/random.h"
#include "math/logistic.h"
#include "sanitized.h"

/* ---- a small logistic problem ---- */

enum { N = 300, NNZ = 6, ROWS = 5000, EPOCHS = 3 }; /* more rows than are added up without a map of what was touched */
static uint64_t row_start[N + 1];
static uint32_t column[N * NNZ];
static float value_of[N * NNZ];

static int make_problem(void **state) {
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t j = 0; j < NNZ; j++) {
            const uint64_t h = shmt_hash64(3, i, j, 0);
            column[i * NNZ + j] = (uint32_t)(j * (ROWS / NNZ) + shmt_below(h, ROWS / NNZ / 20));
            value_of[i * NNZ + j] = (float)shmt_unit(shmt_mix64(h)) - 0.4f;
        }
        row_start[i + 1] = (i + 1) * NNZ;
    }
    return 0;
}

struct slopes {
    const uint32_t *order;
    double loss;
};

static void slope_of(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    struct slopes *s = arg;
    for (uint32_t k = 0; k < n; k++) {
        const float y = s->order[first + k] % 3 ? 1 : -1;
        float loss;
        slope_out[k] = y * shmt_logistic(y * dot[k], &loss);
        s->loss += (double)loss;
    }
}

/* ---- runs ---- */

struct game {
    struct run run; /* first: what workers get */
    struct kept_list list;
    bool keeps; /* workers are threads, and keep what they see */
    bool dies;  /* workers are processes, and die at any moment */
};

/* Seat 0, in the place of the application. */
static void look(struct game *game) {
    struct shmt_snapshot snap;
    if (game->run.k->backend->store->snapshot(game->run.store, &snap) != 1) return;
    if (game->keeps) keep(&game->list, &snap);
    game->run.k->backend->store->release_snapshot(game->run.store);
}

/* The first lives end by SIGALRM, wherever they are by then. */
static void wind_up(const shmtrain_session *s) {
    const uint64_t us = 50 + shmt_below(shmt_hash64(23, s->seat->rank, s->seat->life, 0), 3000);
    const struct itimerval once = {.it_value = {.tv_usec = (suseconds_t)us}};
    if (s->seat->life < 30) (void)setitimer(ITIMER_REAL, &once, NULL);
}

static int learn(struct run *run, shmtrain_session *s) {
    if (((struct game *)run)->dies) wind_up(s);
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == 0) look((struct game *)run);
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        struct slopes slopes = {.order = order};
        const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr),
                                       .n = (uint32_t)w.n,
                                       .start = row_start,
                                       .id = column,
                                       .value = value_of,
                                       .order = order};
        if ((rc = shmtrain_each(s, 0, &x, 64, slope_of, &slopes)) < 0) return rc;
        if ((rc = shmtrain_report(s, slopes.loss)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* What the epochs gave, in the board. */
struct given {
    struct shmt_tally tally[EPOCHS];
    uint32_t epochs_done;
};

/* A life that died behind it does not do it again: the others may be further. */
static int note_tally(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct given *given = ((const struct run *)arg)->board;
    if (s->seat->rank > 0 || given->epochs_done > epoch) return 0;
    if (s->backend->seat->tally(s->seat, &given->tally[epoch]) != 0) return SHMTRAIN_E_MEMORY;
    given->epochs_done = epoch + 1;
    return 0;
}

static struct kase sync_with(uint32_t n_seats, const struct shmt_team_kind *kind) {
    return (struct kase){shmt_backend_at(0), {.write = SHMT_WRITE_AGGREGATE}, n_seats, kind};
}

static struct shmt_spec spec_for(const struct kase *k, uint32_t rule, uint64_t every) {
    struct shmt_spec spec = spec_of(k, N, ROWS, 1);
    spec.rule = (struct shmt_rule){
        .kind = rule, .l1 = 0.001f, .l2 = 0.01f, .momentum = 0.5f, .beta2 = 0.9f, .epsilon = 1e-3f, .beta = 1};
    spec.rate.base = 0.1f;
    if (rule != SHMT_RULE_FTRL) spec.rate.kind = SHMT_RATE_INVERSE, spec.rate.power = 0.5f, spec.rate.every = 1;
    spec.batch = 32;
    spec.n_chunks = 8;
    if (every) spec.pauses = (struct shmt_pauses){.steps = every, .allowed = 1};
    return spec;
}

/* What must have the same bits. */
struct outcome {
    float floats[(1 + SHMT_MAX_PLANES) * ROWS];
    double loss[EPOCHS];
    uint64_t examples[EPOCHS];
};

static void take_outcome(const struct run *run, struct outcome *out) {
    const struct shmt_backend *backend = run->k->backend;
    const struct shmt_tally *tally = ((const struct given *)run->board)->tally;
    memset(out, 0, sizeof *out);
    memcpy(out->floats, shmt_array_at(backend, run->store, SHMT_ARRAY_WEIGHT), ROWS * sizeof(float));
    for (uint32_t i = 0; backend->store->array(run->store, SHMT_ARRAY_STATE, 0, i).at; i++)
        memcpy(out->floats + (1 + i) * ROWS, backend->store->array(run->store, SHMT_ARRAY_STATE, 0, i).at,
               ROWS * sizeof(float));
    for (uint32_t epoch = run->spec.first_epoch; epoch < EPOCHS; epoch++) {
        out->loss[epoch] = tally[epoch].loss;
        out->examples[epoch] = tally[epoch].examples;
    }
}

static void assert_same(const struct outcome *a, const struct outcome *b, uint32_t first_epoch) {
    assert_memory_equal(a->floats, b->floats, sizeof a->floats);
    assert_memory_equal(a->loss + first_epoch, b->loss + first_epoch, (EPOCHS - first_epoch) * sizeof *a->loss);
    assert_memory_equal(a->examples + first_epoch, b->examples + first_epoch, (EPOCHS - first_epoch) * sizeof *a->examples);
}

static void play(struct game *game, struct outcome *out) {
    game->run.epoch_end = note_tally;
    go_well(&game->run, learn);
    take_outcome(&game->run, out);
    end(&game->run);
}

static void play_rule(uint32_t n_seats, const struct shmt_team_kind *kind, uint32_t rule, uint64_t every, struct outcome *out) {
    const struct kase k = sync_with(n_seats, kind);
    struct game game = {0};
    begin(&game.run, &k, spec_for(&k, rule, every));
    play(&game, out);
}

static struct outcome plain, other; /* too large for a stack */

/* ---- what must hold ---- */

static void pauses_change_no_bit(void **state) {
    static const uint32_t SEATS[] = {1, 2, 3, 8};
    (void)state;
    for (uint32_t rule = 0; rule < SHMT_N_RULES; rule++) {
        play_rule(1, &SHMT_TEAM_THREADS, rule, 0, &plain);
        assert_true(plain.loss[EPOCHS - 1] < plain.loss[0]); /* it learns */
        for (uint32_t i = 0; i < 8; i++) {
            play_rule(SEATS[i % 4], i < 4 ? &SHMT_TEAM_THREADS : &SHMT_TEAM_PROCESSES, rule, 1 + i % 3, &other);
            assert_same(&plain, &other, 0);
        }
    }
}

static void deaths_in_pauses_change_no_bit(void **state) {
    (void)state;
    if (WATCHES_RACES) SKIP("ThreadSanitizer sees nothing of other processes");
    for (uint32_t rule = 0; rule < SHMT_N_RULES; rule++) {
        play_rule(1, &SHMT_TEAM_THREADS, rule, 0, &plain);
        for (uint32_t n = 1; n <= 4; n++) {
            const struct kase k = sync_with(n, &SHMT_TEAM_PROCESSES);
            struct game game = {.dies = true};
            struct shmt_spec spec = spec_for(&k, rule, 1);
            spec.may_die = true;
            begin(&game.run, &k, spec);
            play(&game, &other);
            assert_same(&plain, &other, 0);
        }
    }
}

static void whichever_snapshot_a_run_begins_with_it_ends_with_the_same_bits(void **state) {
    static const uint32_t SEATS[] = {1, 4, 2, 7};
    (void)state;
    for (uint32_t rule = 0; rule < SHMT_N_RULES; rule++) {
        const struct kase k = sync_with(1 + rule % 3, &SHMT_TEAM_THREADS);
        struct game game = {.keeps = true};
        play_rule(1, &SHMT_TEAM_THREADS, rule, 0, &plain);
        begin(&game.run, &k, spec_for(&k, rule, 1));
        play(&game, &other);
        assert_int_equal(game.list.n, EPOCHS * ((N + 31) / 32) - 1); /* one behind each step but the last */
        for (uint32_t i = 0; i < game.list.n; i++) {
            const struct kase now = sync_with(SEATS[i % 4], i % 8 < 4 ? &SHMT_TEAM_PROCESSES : &SHMT_TEAM_THREADS);
            struct game rest = {0};
            begin_from(&rest.run, &now, spec_for(&now, rule, i % 2), &game.list.kept[i]); /* it may pause, too */
            play(&rest, &other);
            assert_same(&plain, &other, game.list.kept[i].at.epoch);
        }
        free_kept(&game.list);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_change_no_bit),
        cmocka_unit_test(deaths_in_pauses_change_no_bit),
        cmocka_unit_test(whichever_snapshot_a_run_begins_with_it_ends_with_the_same_bits),
    };
    return cmocka_run_group_tests(tests, make_problem, NULL);
}
