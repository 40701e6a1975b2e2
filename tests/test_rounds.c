/* Updates that come in rounds (aggregate with staleness, or with a quorum) in the shm backend: which gradients are in, that
 * none is lost or doubled, how far one may be ahead, and that every ending is an end. With threads, which race detectors see,
 * and with processes.
 *
 * The arithmetic: each example has a row of its own in each epoch and a gradient of -1 there, the rate is 1, sgd. So an
 * update of E examples adds 1 / E to E rows, and from the weights alone it can be told which examples were in updates of how
 * many. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/plain.h"
#include "backends/shm/rounds_priv.h"
#include "backends/shm/shm.h"
#include "base/random.h"
#include "ps/session.h"
#include "runtime/team.h"
#include "sync/futex.h"

enum { MOST_SEATS = 64, EPOCHS = 3 };

static const struct shmt_backend_ops *const OPS = &SHMT_BACKEND_SHM;

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
    enum shmt_team_kind kind;
    int (*work)(struct game *, shmtrain_session *);
    struct told *told;
    bool lends;         /* gradients are written into lent buffers */
    uint32_t slow_rank; /* naps slow_us in each item */
    uint32_t slow_us;
    uint32_t jitter_us; /* so does everybody, for at most so long */
};

/* Whoever sleeps does so until it is woken: a wake-up that is lost hangs, where it would else cost 100 ms. */
void __real_shmt_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns);
void __wrap_shmt_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns);

void __wrap_shmt_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns) {
    (void)at_most_ns;
    __real_shmt_futex_wait(word, expected, UINT64_C(3600000000000));
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
    int rc = shmt_session_enter(&s, OPS, game->store, &game->spec, rank, 0, e);
    if (rc < 0) return rc;
    rc = game->work(game, &s);
    if (rc < 0) *e = s.error;
    shmt_session_leave(&s);
    return rc;
}

static void wake(void *arg) { OPS->rouse(((struct game *)arg)->store); }

static int play(struct game *game, struct shmt_error *e) {
    const struct shmt_team_spec team = {.kind = game->kind,
                                        .n = game->spec.n_seats,
                                        .body = seat_body,
                                        .arg = game,
                                        .abort = OPS->abort_word(game->store),
                                        .roused = wake,
                                        .grace_ms = 5000,
                                        .what = "testing"};
    alarm(120); /* a round that nobody closes must fail, not hang */
    return shmt_team_run(&team, e);
}

static void begin(struct game *game) {
    struct shmt_error e = {0};
    if (OPS->create(&game->spec, NULL, &game->store, &e) != 0) fail_msg("create: %s", e.text);
    game->told = OPS->board(game->store);
}

static void play_well(struct game *game) {
    struct shmt_error e = {0};
    begin(game);
    const int rc = play(game, &e);
    if (rc != 0) fail_msg("%s: %s", shmtrain_status_name(rc), e.text);
}

static void end(struct game *game) { OPS->destroy(game->store); }

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
    const struct shmtrain_csr x = {.n = (uint32_t)w->n, .bias = 1, .start = start, .id = id};
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
        const char *c = (const char *)OPS->counters(game->store, rank);
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
    assert_int_equal(OPS->read(game->store, 0, 0, n + 1, row), 0);
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
        assert_int_equal(OPS->read(game->store, 0, i, 1, &row), 0);
        assert_int_not_equal(told->fate[i], UNKNOWN);
        if (told->fate[i] == APPLIED || told->fate[i] == FOLDED) assert_true(row > 0);
        if (told->fate[i] == DROPPED) assert_true(row == 0);
    }
    const uint64_t updates = load_relaxed(&game->store->slice[0].word) >> 16;
    for (uint32_t i = 0; i < game->store->layout.n_slices; i++) /* all slices have had the same, and nobody is at one */
        assert_int_equal(load_relaxed(&game->store->slice[i].word), updates << 16);
    for (uint32_t seat = 0; seat < game->spec.n_seats; seat++)
        assert_int_equal(load_relaxed(&game->store->slot[seat].gate.clock), updates);
}

static void count(struct game game) {
    game.work = add_ones;
    play_well(&game);
    check_counts(&game);
    end(&game);
}

static const enum shmt_team_kind KINDS[] = {SHMT_TEAM_THREADS, SHMT_TEAM_PROCESSES};

/* 3000 examples: 9000 rows, which have maps and are cut into slices; 300: one slice, no maps. */
static void count_all(struct shmt_policy policy, uint32_t n_seats) {
    static const uint64_t SIZES[] = {3000, 300};
    for (size_t size = 0; size < 2; size++)
        for (size_t kind = 0; kind < 2; kind++)
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

static void no_gradient_is_lost_or_doubled_with_staleness(void **state) {
    static const uint64_t STALENESS[] = {1, 2, 7, SHMT_MAX_AGGREGATE_STALENESS};
    (void)state;
    for (size_t i = 0; i < sizeof STALENESS / sizeof *STALENESS; i++)
        for (uint32_t n_seats = 1; n_seats <= 8; n_seats = n_seats < 3 ? n_seats + 1 : n_seats + 5)
            count_all(stale(STALENESS[i]), n_seats);
}

static void no_gradient_is_lost_or_doubled_when_late_ones_are_dropped(void **state) {
    (void)state;
    count_all(quorum(1, SHMT_LATE_DROP), 2);
    count_all(quorum(2, SHMT_LATE_DROP), 3);
    count_all(quorum(1, SHMT_LATE_DROP), 8);
    count_all(quorum(6, SHMT_LATE_DROP), 8);
    count_all(quorum(7, SHMT_LATE_DROP), 8);
}

static void no_gradient_is_lost_or_doubled_when_late_ones_are_folded(void **state) {
    (void)state;
    count_all(quorum(1, SHMT_LATE_FOLD), 2);
    count_all(quorum(2, SHMT_LATE_FOLD), 3);
    count_all(quorum(1, SHMT_LATE_FOLD), 8);
    count_all(quorum(6, SHMT_LATE_FOLD), 8);
    count_all(quorum(7, SHMT_LATE_FOLD), 8);
}

static void more_workers_than_items_are_no_obstacle(void **state) {
    (void)state;
    for (size_t kind = 0; kind < 2; kind++) {
        count((struct game){.spec = spec_of(stale(2), 12, 40, 16), .kind = KINDS[kind]});
        count((struct game){.spec = spec_of(quorum(11, SHMT_LATE_DROP), 12, 40, 16), .kind = KINDS[kind]});
        count((struct game){.spec = spec_of(quorum(3, SHMT_LATE_FOLD), 12, 1, 16), .kind = KINDS[kind]});
    }
}

/* ---- staleness ---- */

/* Nobody who has work may be more than s clocks behind who begins one, and all updates up to c - s - 1 are there. */
static int keep_the_bound(struct game *game, shmtrain_session *s) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(s->seat);
    const uint32_t rank = s->seat->rank;
    struct told *told = game->told;
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const uint64_t clock = p->clock, bound = shmt_policy_wait_for(&game->spec.policy, clock);
        for (uint32_t i = 0; i < game->spec.n_seats; i++) {
            /* who works now has worked when I was let begin */
            const bool works = load_acquire(&game->store->slot[i].working) != 0;
            const uint64_t completed = load_acquire(&told->completed[i]);
            if (works && completed < bound && w.epoch == 0) atomic_fetch_add(&told->early, 1);
            if (works && clock > completed && clock - completed > load_relaxed(&told->spread))
                store_relaxed(&told->spread, (uint32_t)(clock - completed));
        }
        for (uint32_t i = 0; i < game->store->layout.n_slices; i++)
            if (load_acquire(&game->store->slice[i].word) >> 16 < bound) atomic_fetch_add(&told->blind, 1);
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if (rank == game->slow_rank) nap_us(game->slow_us);
        store_release(&told->completed[rank], clock + 1);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void nobody_is_further_ahead_than_the_bound_says_nor_sees_less(void **state) {
    (void)state;
    for (uint64_t s = 1; s <= 4; s *= 2)
        for (size_t kind = 0; kind < 2; kind++) {
            struct game game = {.spec = spec_of(stale(s), 4, 3000, 16),
                                .kind = KINDS[kind],
                                .slow_rank = 2,
                                .slow_us = 1000,
                                .work = keep_the_bound};
            game.spec.epochs = 1;
            play_well(&game);
            assert_int_equal(game.told->early, 0);
            assert_int_equal(game.told->blind, 0);
            assert_true(game.told->spread > 0 && game.told->spread <= s); /* the slow one was waited for */
            assert_int_equal(SUM(&game, dropped), 0);
            check_rows(&game);
            end(&game);
        }
}

/* ---- quorum ---- */

/* So many gradients are enough, whoever has none left: each seat gets its share of the items one by one, so that in the end
 * n_items % n_seats seats have one and the others have none. */
static int take_turns(struct game *game, shmtrain_session *s) {
    const uint32_t n_seats = game->spec.n_seats, per_epoch = (uint32_t)shmt_spec_pieces(&game->spec);
    uint32_t order[64], mine = 0, epoch = 0;
    struct shmtrain_fate fate;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.epoch != epoch) mine = 0;
        epoch = w.epoch;
        const uint32_t all = n_seats * ++mine;
        atomic_fetch_add(&game->told->claimed, 1);
        while (load_acquire(&game->told->claimed) < epoch * per_epoch + (all < per_epoch ? all : per_epoch)) nap_us(100);
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if ((rc = shmtrain_clock(s, &fate)) < 0 || (rc = note_fate(game, &w, order, &fate)) < 0) return rc;
    }
    return rc;
}

static void sixty_of_64_are_enough_when_27_have_no_work_left(void **state) {
    static const enum shmt_late LATES[] = {SHMT_LATE_DROP, SHMT_LATE_FOLD};
    (void)state;
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t late = 0; late < 2; late++) /* who is late and folded waits, and takes no third turn with the others */
            for (uint32_t items = 37; items <= (LATES[late] == SHMT_LATE_FOLD ? 64u : 128u) + 37; items += 64) {
                struct game game = {.spec = spec_of(quorum(60, LATES[late]), 64, (uint64_t)items * 8, 8),
                                    .kind = KINDS[kind],
                                    .work = take_turns};
                play_well(&game);
                check_counts(&game);
                end(&game);
            }
}

enum { SLOW = 2, LATE_BY = 5 };

/* The slow one pushes its first gradient when some rounds have been closed without it. */
static int be_late(struct game *game, shmtrain_session *s) {
    uint32_t order[64], pieces = 0;
    struct shmtrain_fate fate;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const uint64_t round = shmt_shm_seat_of(s->seat)->clock;
        /* the others hold their first until the slow one has one, or else there might be none left for it */
        if (s->seat->rank == SLOW) store_release(&game->told->claimed, 1);
        while (w.epoch == 0 && load_acquire(&game->told->claimed) == 0) nap_us(100);
        const bool sleeps = s->seat->rank == SLOW && pieces++ == 0;
        while (sleeps && shmt_shm_rounds_closed(game->store) < round + LATE_BY) nap_us(100);
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if ((rc = shmtrain_clock(s, &fate)) < 0 || (rc = note_fate(game, &w, order, &fate)) < 0) return rc;
        if (sleeps) store_relaxed(&game->told->first_late, order[0] + 1);
        if (sleeps && fate.applied > 0) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "a late gradient got in");
        if (sleeps && fate.clock < round + LATE_BY) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "the clock did not jump");
    }
    return rc;
}

static void the_others_go_on_without_a_late_one_whose_gradients_are_dropped(void **state) {
    (void)state;
    for (size_t kind = 0; kind < 2; kind++) {
        struct game game = {.spec = spec_of(quorum(3, SHMT_LATE_DROP), 4, 3000, 16), .kind = KINDS[kind], .work = be_late};
        play_well(&game);
        assert_true(load_relaxed(&OPS->counters(game.store, SLOW)->dropped) >= 16);
        assert_int_equal(SUM(&game, folded), 0);
        check_counts(&game);
        end(&game);
    }
}

/* Even one who is late with every gradient. */
static void late_gradients_that_are_folded_all_get_in(void **state) {
    (void)state;
    for (size_t kind = 0; kind < 2; kind++)
        for (int lends = 0; lends < 2; lends++) {
            struct game game = {
                .spec = spec_of(quorum(3, SHMT_LATE_FOLD), 4, 3000, 16), .kind = KINDS[kind], .lends = lends, .work = be_late};
            play_well(&game);
            assert_true(game.told->folded >= 16);
            assert_int_equal(game.told->dropped, 0);
            /* It came on top of what the update has waited for: three others, of whom one may have had the short last item. */
            float row;
            assert_int_equal(OPS->read(game.store, 0, load_relaxed(&game.told->first_late) - 1, 1, &row), 0);
            assert_true(1 / row > 3 * 16);
            check_counts(&game);
            end(&game);
            game.work = add_ones;
            game.slow_rank = SLOW;
            game.slow_us = 3000;
            play_well(&game);
            assert_true(load_relaxed(&OPS->counters(game.store, SLOW)->folded) >= 16);
            assert_int_equal(SUM(&game, dropped), 0);
            check_counts(&game);
            end(&game);
        }
}

/* Two threads of each worker have a seat each: a quorum of 3 of 4 workers is one of 6 of 8 seats. */
static void a_quorum_is_of_workers_not_of_their_threads(void **state) {
    (void)state;
    struct game game = {.spec = spec_of(quorum(3, SHMT_LATE_DROP), 8, 3000, 16), .work = add_ones, .slow_us = 500};
    game.spec.n_workers = 4;
    play_well(&game);
    check_counts(&game);
    /* An update of fewer than 6 items is one of an epoch's last. */
    assert_true(SUM(&game, updates) <= EPOCHS * (shmt_spec_pieces(&game.spec) / 6 + 8));
    end(&game);
}

/* ---- rates ---- */

/* The rate is 1 for half an epoch, then 0: half of the examples of that epoch move their rows. */
static void the_rate_follows_how_much_of_the_epoch_is_done(void **state) {
    static const struct shmt_policy POLICIES[] = {{.write = SHMT_WRITE_AGGREGATE, .staleness = 2},
                                                  {.write = SHMT_WRITE_AGGREGATE, .quorum = 3, .late = SHMT_LATE_FOLD}};
    enum { N = 3200, ITEM = 16, SEATS = 4 };
    (void)state;
    for (size_t i = 0; i < sizeof POLICIES / sizeof *POLICIES; i++) {
        struct game game = {.spec = spec_of(POLICIES[i], SEATS, N, ITEM), .work = add_ones, .jitter_us = 50};
        float row[EPOCHS * N];
        uint32_t moved = 0;
        game.spec.rate = (struct shmt_rate){.base = 1, .kind = SHMT_RATE_STEP, .every = 0.5, .factor = 0};
        play_well(&game);
        assert_int_equal(OPS->read(game.store, 0, 0, EPOCHS * N, row), 0);
        for (uint32_t k = 0; k < EPOCHS * N; k++) {
            if (k >= N) assert_true(row[k] == 0);
            moved += row[k] != 0;
        }
        /* The items that are in hand are not done yet, and may come late: a few of each seat. */
        if (abs((int)moved - N / 2) > 4 * SEATS * ITEM) fail_msg("%u of %u rows have moved", moved, (unsigned)N);
        end(&game);
    }
}

/* ---- endings ---- */

static int stop_after_four(struct game *game, shmtrain_session *s) {
    uint32_t order[64];
    struct shmtrain_fate fate;
    struct shmtrain_work w;
    int rc, items = 0;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if ((rc = shmtrain_clock(s, &fate)) < 0 || (rc = note_fate(game, &w, order, &fate)) < 0) return rc;
        if (++items == 4) OPS->stop(game->store);
    }
    return rc;
}

static const struct shmt_policy SOME[] = {{.write = SHMT_WRITE_AGGREGATE, .staleness = 2},
                                          {.write = SHMT_WRITE_AGGREGATE, .quorum = 3},
                                          {.write = SHMT_WRITE_AGGREGATE, .quorum = 2, .late = SHMT_LATE_FOLD}};
enum { N_SOME = sizeof SOME / sizeof *SOME };

static void a_stop_leaves_every_gradient_applied_or_counted(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SOME; i++)
        for (size_t kind = 0; kind < 2; kind++) {
            struct game game = {.spec = spec_of(SOME[i], 4, 3000, 16), .kind = KINDS[kind], .work = stop_after_four};
            play_well(&game);
            const uint64_t done = SUM(&game, examples), moved = check_rows(&game);
            assert_true(done >= 64 && done < 3000);
            assert_int_equal(moved + SUM(&game, dropped), done);
            end(&game);
        }
}

/* The last one fails in the middle of its item, while the others wait for it. */
static int fail_late(struct game *game, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)game;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == s->spec->n_seats - 1 && w.epoch > 0) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "on purpose");
        if (w.epoch > 0) nap_us(100);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_failing_worker_ends_all(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SOME; i++)
        for (size_t kind = 0; kind < 2; kind++) {
            struct game game = {.spec = spec_of(SOME[i], 4, 3000, 16), .kind = KINDS[kind], .work = fail_late};
            struct shmt_error e = {0};
            game.spec.epochs = 1000;
            begin(&game);
            assert_int_equal(play(&game, &e), SHMTRAIN_E_DATA);
            assert_string_equal(e.text, "on purpose");
            end(&game);
        }
}

static int die(struct game *game, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)game;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == s->spec->n_seats - 1 && w.epoch > 0) _exit(9);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_worker_that_dies_ends_all(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SOME; i++) {
        struct game game = {.spec = spec_of(SOME[i], 4, 3000, 16), .kind = SHMT_TEAM_PROCESSES, .work = die};
        struct shmt_error e = {0};
        game.spec.epochs = 1000;
        begin(&game);
        assert_int_equal(play(&game, &e), SHMTRAIN_E_DIED);
        end(&game);
    }
}

/* ---- one seat ---- */

enum { ONE_N = 330, ONE_ROWS = 5000 };

static int follow_a_formula(struct game *game, shmtrain_session *s) {
    struct shmtrain_work w;
    uint32_t order[64], id[64 * 3];
    uint64_t start[65] = {0};
    float slope[64], dot[64];
    int rc;
    (void)game;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        for (uint32_t k = 0; k < w.n; k++) {
            start[k + 1] = 3 * (k + 1);
            for (uint32_t j = 0; j < 3; j++)
                id[3 * k + j] = j * 1600 + (uint32_t)shmt_below(shmt_hash64(order[k], j, 0, 0), j ? 1600 : 10);
        }
        const struct shmtrain_csr x = {.n = (uint32_t)w.n, .bias = 1, .start = start, .id = id};
        if ((rc = shmtrain_dot(s, 0, &x, dot)) < 0) return rc;
        for (uint32_t k = 0; k < w.n; k++) slope[k] = dot[k] - (float)(order[k] % 3) + 1;
        if ((rc = shmtrain_push_sparse(s, 0, &x, slope)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

typedef float outcome[3][ONE_ROWS]; /* weights, and planes of state */

/* By one seat of a backend. */
static void train_alone(const struct shmt_backend_ops *ops, struct shmt_spec spec, outcome out) {
    struct game game = {.spec = spec};
    struct shmt_error e = {0};
    shmtrain_session s;
    memset(out, 0, sizeof(outcome));
    assert_int_equal(ops->create(&spec, NULL, &game.store, &e), 0);
    for (uint32_t row = 0; row < ONE_ROWS; row++) out[0][row] = 0.01f * (float)(row % 5);
    assert_int_equal(ops->write(game.store, 0, 0, ONE_ROWS, out[0]), 0);
    assert_int_equal(shmt_session_enter(&s, ops, game.store, &spec, 0, 0, &e), 0);
    assert_int_equal(follow_a_formula(&game, &s), 0);
    shmt_session_leave(&s);
    assert_int_equal(ops->read(game.store, 0, 0, ONE_ROWS, out[0]), 0);
    for (uint32_t plane = 0; plane < shmt_rule_planes(&spec.rule, false); plane++)
        memcpy(out[1 + plane], ops->state(game.store, 0, plane), sizeof out[0]);
    ops->destroy(game.store);
}

/* Its updates are those of batches as large as its items: the plain backend makes them one after the other. */
static void one_worker_with_staleness_makes_the_updates_of_a_plain_loop(void **state) {
    static outcome expected, got;
    (void)state;
    for (uint32_t kind = 0; kind < SHMT_N_RULES; kind++)
        for (int regularised = 0; regularised < 2; regularised++) {
            struct shmt_spec spec = spec_of(stale(0), 1, ONE_N, 32);
            spec.order.shuffle = false;
            spec.steps_before = 3;
            spec.table[0].rows = ONE_ROWS;
            spec.l2_rows[0] = ONE_ROWS - 1;
            spec.rule = (struct shmt_rule){.kind = kind,
                                           .l1 = regularised ? 0.002f : 0,
                                           .l2 = regularised ? 0.01f : 0,
                                           .momentum = 0.5f,
                                           .beta2 = 0.9f,
                                           .epsilon = 1e-3f,
                                           .beta = 1};
            spec.rate = (struct shmt_rate){.base = 0.1f, .kind = SHMT_RATE_CONSTANT};
            if (kind != SHMT_RULE_FTRL) spec.rate.kind = SHMT_RATE_INVERSE, spec.rate.power = 0.5f, spec.rate.every = 1;
            train_alone(&SHMT_BACKEND_PLAIN, spec, expected);
            spec.policy = stale(2);
            train_alone(&SHMT_BACKEND_SHM, spec, got);
            assert_memory_equal(got, expected, sizeof got);
            assert_true(got[0][ONE_ROWS - 1] != 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gradient_is_lost_or_doubled_with_staleness),
        cmocka_unit_test(no_gradient_is_lost_or_doubled_when_late_ones_are_dropped),
        cmocka_unit_test(no_gradient_is_lost_or_doubled_when_late_ones_are_folded),
        cmocka_unit_test(more_workers_than_items_are_no_obstacle),
        cmocka_unit_test(nobody_is_further_ahead_than_the_bound_says_nor_sees_less),
        cmocka_unit_test(sixty_of_64_are_enough_when_27_have_no_work_left),
        cmocka_unit_test(the_others_go_on_without_a_late_one_whose_gradients_are_dropped),
        cmocka_unit_test(late_gradients_that_are_folded_all_get_in),
        cmocka_unit_test(a_quorum_is_of_workers_not_of_their_threads),
        cmocka_unit_test(the_rate_follows_how_much_of_the_epoch_is_done),
        cmocka_unit_test(a_stop_leaves_every_gradient_applied_or_counted),
        cmocka_unit_test(a_failing_worker_ends_all),
        cmocka_unit_test(a_worker_that_dies_ends_all),
        cmocka_unit_test(one_worker_with_staleness_makes_the_updates_of_a_plain_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
