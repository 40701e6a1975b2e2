/* What the tests of rounds share: running them with threads and with processes, and telling from the weights alone what was in
 * which update.
 *
 * The arithmetic: each example has a row of its own in each epoch and a gradient of -1 there, the rate is 1, sgd. So an
 * update of E examples adds 1 / E to E rows, and from the weights alone it can be told which examples were in updates of how
 * many. */
#pragma once

/* No program uses all of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/shm/rounds/rounds_priv.h"
#include "backends/shm/shm.h"
#include "base/random.h"
#include "ps/session.h"
#include "runtime/team.h"
#include "sanitized.h"
#include "sync/host.h"

enum { MOST_SEATS = 64, EPOCHS = 3 };

static const struct shmt_backend *const BACKEND = &SHMT_BACKEND_SHM;

enum { UNKNOWN, APPLIED, DROPPED, FOLDED };

/* What workers tell the test; in the board, so that processes share it. */
struct told {
    _Atomic uint64_t completed[MOST_SEATS]; /* clocks, before the others can know */
    _Atomic uint32_t early, blind;          /* clocks begun too early; with updates missing */
    _Atomic uint32_t claimed, late;         /* items; gradients that were not in at once */
    _Atomic uint64_t applied, dropped, folded;
    _Atomic uint32_t first_late; /* an example of the slow one's first gradient, plus 1 */
    _Atomic uint32_t spread;     /* the most that a seat was ahead of another */
    uint8_t fate[];              /* (epochs * n_examples) */
};

struct game {
    struct shmt_spec spec;
    struct shmt_store *store;
    const struct shmt_team_kind *kind;
    int (*work)(struct game *, shmtrain_session *);
    struct told *told;
    bool lends;         /* gradients are written into lent buffers */
    uint32_t slow_rank; /* naps slow_us in each item */
    uint32_t slow_us;
    uint32_t jitter_us; /* so does everybody, for at most so long */
};

/* Whoever sleeps does so until it is woken: a wake-up that is lost hangs, where it would else cost 100 ms. */
static void wait_until_woken(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns) {
    (void)at_most_ns;
    SHMT_HOST_MACHINE.wait(word, expected, UINT64_C(3600000000000));
}

static int sleep_until_woken(void **state) {
    static struct shmt_host_ops host;
    (void)state;
    host = SHMT_HOST_MACHINE;
    host.wait = wait_until_woken;
    shmt_host_use(&host);
    return 0;
}

static struct shmt_spec spec_of(struct shmt_policy policy, uint32_t n_seats, uint64_t n_examples, uint32_t item) {
    struct shmt_spec spec = {.n_seats = n_seats,
                             .n_workers = n_seats,
                             .n_examples = n_examples,
                             .epochs = EPOCHS,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = policy,
                             .batch = item * n_seats,
                             .n_chunks = 1,
                             .item = item,
                             .order = {.seed = 5, .n_examples = n_examples, .shuffle = true},
                             .rate = {.base = 1, .kind = SHMT_RATE_CONSTANT},
                             .n_tables = 1,
                             .board_bytes = sizeof(struct told) + EPOCHS * n_examples};
    strcpy(spec.table[0].name, "t");
    spec.table[0].rows = EPOCHS * n_examples + 1; /* the last one is a bias */
    spec.table[0].width = 1;
    spec.l2_rows[0] = EPOCHS * n_examples;
    return spec;
}

static struct shmt_policy stale(uint64_t s) { return (struct shmt_policy){.write = SHMT_WRITE_AGGREGATE, .staleness = s}; }

static struct shmt_policy quorum(uint32_t k, enum shmt_late late) {
    return (struct shmt_policy){.write = SHMT_WRITE_AGGREGATE, .quorum = k, .late = late};
}

static void nap_us(uint32_t us) {
    const struct timespec pause = {.tv_nsec = (long)us * 1000};
    if (us > 0) (void)nanosleep(&pause, NULL);
}

/* ---- running ---- */

static int seat_body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct game *game = arg;
    shmtrain_session s;
    (void)team;
    int rc = shmt_session_enter(&s, BACKEND, game->store, &game->spec, rank, 0, e);
    if (rc < 0) return rc;
    rc = game->work(game, &s);
    if (rc < 0) *e = s.error;
    shmt_session_leave(&s);
    return rc;
}

static void wake(void *arg) { BACKEND->store->wake(((struct game *)arg)->store); }

static int play(struct game *game, struct shmt_error *e) {
    const struct shmt_team_spec team = {.kind = game->kind,
                                        .n = game->spec.n_seats,
                                        .body = seat_body,
                                        .arg = game,
                                        .abort = BACKEND->store->abort_word(game->store),
                                        .on_abort = wake,
                                        .grace_ms = 5000,
                                        .what = "testing"};
    alarm(120); /* a round that nobody closes must fail, not hang */
    return shmt_team_run(&team, e);
}

static void begin(struct game *game) {
    struct shmt_error e = {0};
    if (BACKEND->create(&game->spec, NULL, &game->store, &e) != 0) fail_msg("create: %s", e.text);
    game->told = shmt_array_at(BACKEND, game->store, SHMT_ARRAY_BOARD);
}

static void play_well(struct game *game) {
    struct shmt_error e = {0};
    begin(game);
    const int rc = play(game, &e);
    if (rc != 0) fail_msg("%s: %s", shmtrain_status_name(rc), e.text);
}

static void end(struct game *game) { BACKEND->store->destroy(game->store); }

/* ---- gradients of ones ---- */

/* -1 for the row of each example, and for the bias. */
static int push_ones(const struct game *game, shmtrain_session *s, const struct shmtrain_work *w, const uint32_t *order) {
    uint32_t id[64];
    uint64_t start[65];
    float slope[64], *lent;
    const uint64_t n = game->spec.n_examples, bias = EPOCHS * n;
    if (game->lends) {
        const int rc = shmtrain_lend(s, 0, &lent);
        if (rc < 0) return rc;
        for (uint64_t i = 0; i <= bias; i++) lent[i] = 0;
        for (uint64_t i = 0; i < w->n; i++) lent[w->epoch * n + order[i]] = -1;
        lent[bias] = -(float)w->n;
        return shmtrain_push(s, 0, 0, bias + 1, lent);
    }
    for (uint32_t i = 0; i < w->n; i++) {
        start[i] = i;
        id[i] = (uint32_t)(w->epoch * n) + order[i];
        slope[i] = -1;
    }
    start[w->n] = w->n;
    const struct shmtrain_csr x = {
        .size = sizeof(struct shmtrain_csr), .n = (uint32_t)w->n, .bias = 1, .start = start, .id = id};
    return shmtrain_push_sparse(s, 0, &x, slope);
}

/* Writes down what became of a piece. */
static int note_fate(const struct game *game, const struct shmtrain_work *w, const uint32_t *order,
                     const struct shmtrain_fate *fate) {
    struct told *told = game->told;
    const uint64_t all = (uint64_t)fate->applied + fate->dropped + fate->folded;
    if (all != w->n || (fate->applied != w->n && fate->dropped != w->n && fate->folded != w->n)) return SHMTRAIN_E_DATA;
    for (uint64_t i = 0; i < w->n; i++)
        told->fate[w->epoch * game->spec.n_examples + order[i]] = fate->applied ? APPLIED : fate->dropped ? DROPPED : FOLDED;
    atomic_fetch_add(&told->applied, fate->applied);
    atomic_fetch_add(&told->dropped, fate->dropped);
    atomic_fetch_add(&told->folded, fate->folded);
    atomic_fetch_add(&told->late, fate->applied == 0);
    return 0;
}

static int add_ones(struct game *game, shmtrain_session *s) {
    const uint32_t rank = s->seat->rank;
    uint32_t order[64];
    struct shmtrain_fate fate;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        atomic_fetch_add(&game->told->claimed, 1);
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if (game->jitter_us) nap_us((uint32_t)shmt_below(shmt_hash64(rank, w.step, 0, 0), game->jitter_us));
        if (rank == game->slow_rank) nap_us(game->slow_us);
        if ((rc = shmtrain_clock(s, &fate)) < 0 || (rc = note_fate(game, &w, order, &fate)) < 0) return rc;
    }
    return rc;
}

static uint64_t sum_of(const struct game *game, size_t counter) {
    uint64_t sum = 0;
    for (uint32_t rank = 0; rank < game->spec.n_seats; rank++) {
        const char *c = (const char *)BACKEND->store->counters(game->store, rank);
        sum += load_relaxed((const _Atomic uint64_t *)(const void *)(c + counter));
    }
    return sum;
}
#define SUM(game, field) sum_of((game), offsetof(struct shmt_counters, field))

/* The weights say which examples were in which updates: all of an update of E examples have 1 / E, and there are E of them.
 * Returns how many rows have moved. */
static uint64_t check_rows(const struct game *game) {
    const uint64_t n = EPOCHS * game->spec.n_examples;
    float *row = malloc((n + 1) * sizeof *row);
    uint64_t *rows_of = calloc(n + 1, sizeof *rows_of), moved = 0, updates = 0; /* [E] */
    assert_true(row && rows_of);
    assert_int_equal(BACKEND->store->read(game->store, 0, 0, n + 1, row), 0);
    for (uint64_t i = 0; i < n; i++) {
        if (row[i] == 0) continue;
        const uint64_t examples = (uint64_t)lroundf(1 / row[i]);
        if (examples > n || row[i] != 1.0f / (float)examples) fail_msg("row %u is %.9g", (unsigned)i, (double)row[i]);
        rows_of[examples]++;
        moved++;
    }
    for (uint64_t examples = 1; examples <= n; examples++) {
        assert_int_equal(rows_of[examples] % examples, 0);
        updates += rows_of[examples] / examples;
    }
    assert_int_equal(SUM(game, updates), updates);
    assert_true(fabsf(row[n] - (float)updates) < 1e-3f * (float)updates); /* the bias: 1 by each, but for rounding */
    free(row);
    free(rows_of);
    return moved;
}

/* Nothing is lost or doubled: every example was in exactly one update, or its worker was told that it is dropped. */
static void check_counts(const struct game *game) {
    const struct told *told = game->told;
    const uint64_t all = game->spec.epochs * game->spec.n_examples, moved = check_rows(game);
    float row;
    assert_int_equal(SUM(game, examples), all);
    assert_int_equal(SUM(game, dropped) + moved, all);
    assert_int_equal(told->applied + told->folded, moved);
    assert_int_equal(told->dropped, SUM(game, dropped));
    assert_int_equal(told->folded, SUM(game, folded));
    for (uint64_t i = 0; i < all; i++) {
        assert_int_equal(BACKEND->store->read(game->store, 0, i, 1, &row), 0);
        assert_int_not_equal(told->fate[i], UNKNOWN);
        if (told->fate[i] == APPLIED || told->fate[i] == FOLDED) assert_true(row > 0);
        if (told->fate[i] == DROPPED) assert_true(row == 0);
    }
    const uint64_t updates = load_relaxed(&game->store->slice[0].word) >> 16;
    for (uint32_t i = 0; i < game->store->layout.n_slices; i++) /* all slices have had the same, and nobody is at one */
        assert_int_equal(load_relaxed(&game->store->slice[i].word), updates << 16);
    for (uint32_t seat = 0; seat < game->spec.n_seats; seat++)
        assert_int_equal(load_relaxed(&game->store->front[seat].gate.clock), updates);
}

static void count(struct game game) {
    game.work = add_ones;
    play_well(&game);
    check_counts(&game);
    end(&game);
}

static const struct shmt_team_kind *const KINDS[] = {&SHMT_TEAM_THREADS, &SHMT_TEAM_PROCESSES};
enum { N_KINDS = WATCHES_RACES ? 1 : 2 };

/* 3000 examples: 9000 rows, which have maps and are cut into slices; 300: one slice, no maps. */
static void count_all(struct shmt_policy policy, uint32_t n_seats) {
    static const uint64_t SIZES[] = {3000, 300};
    for (size_t size = 0; size < 2; size++)
        for (size_t kind = 0; kind < N_KINDS; kind++)
            for (int lends = 0; lends < 2; lends++) {
                const struct game game = {.spec = spec_of(policy, n_seats, SIZES[size], 16),
                                          .kind = KINDS[kind],
                                          .lends = lends,
                                          .slow_rank = 1,
                                          .slow_us = 300,
                                          .jitter_us = 50};
                count(game);
            }
}
