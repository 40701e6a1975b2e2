/* The shm backend's own promises: what stands where in the segment, stores of one segment at two addresses, who gets which
 * piece, and segments that are refused. What it shares with every backend is in test_conformance.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/plain.h"
#include "backends/shm/shm.h"
#include "backends/shm/shm_priv.h"
#include "base/random.h"
#include "math/logistic.h"
#include "ps/session.h"
#include "update/redo.h"

static int deadline(void **state) {
    (void)state;
    alarm(120);
    return 0;
}

static struct shmt_spec spec_of(enum shmt_write write, uint32_t n_seats) {
    struct shmt_spec spec = {.n_seats = n_seats,
                             .n_workers = n_seats,
                             .n_examples = 64 * 12,
                             .epochs = 2,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = {.write = write, .staleness = write == SHMT_WRITE_RACY ? SHMT_STALENESS_INF : 0},
                             .batch = 64,
                             .n_chunks = 8,
                             .item = 16,
                             .order = {.seed = 3, .n_examples = 64 * 12, .shuffle = true},
                             .rate = {.base = 1, .kind = SHMT_RATE_CONSTANT},
                             .n_tables = 2,
                             .board_bytes = 8192};
    /* The first table is so large that touched maps are kept, the second one is dense. */
    spec.table[0] = (struct shmt_table_spec){.name = "sparse", .rows = 5000, .width = 1};
    spec.table[1] = (struct shmt_table_spec){.name = "dense", .rows = 3, .width = 2};
    spec.l2_rows[0] = 4999;
    spec.l2_rows[1] = 3;
    return spec;
}

/* ---- the layout ---- */

/* Whoever changes one of these numbers has changed the layout: raise SHMT_SHM_LAYOUT_VERSION, then write down the new ones. */
static void the_layout_is_frozen(void **state) {
    (void)state;
    assert_int_equal(SHMT_SHM_LAYOUT_VERSION, 22);
    assert_int_equal(sizeof(struct shmt_shm_control), 896);
    assert_int_equal(offsetof(struct shmt_shm_control, stop), 0);
    assert_int_equal(offsetof(struct shmt_shm_control, abort), 128);
    assert_int_equal(offsetof(struct shmt_shm_control, end_step), 256);
    assert_int_equal(offsetof(struct shmt_shm_control, over), 264);
    assert_int_equal(offsetof(struct shmt_shm_control, step), 272);
    assert_int_equal(offsetof(struct shmt_shm_control, pause_step), 280);
    assert_int_equal(offsetof(struct shmt_shm_control, answered), 304);
    assert_int_equal(offsetof(struct shmt_shm_control, asked), 384);
    assert_int_equal(offsetof(struct shmt_shm_control, snapshot), 512);
    assert_int_equal(offsetof(struct shmt_shm_control, snapshot_before), 528);
    assert_int_equal(offsetof(struct shmt_shm_control, round), 640);
    assert_int_equal(offsetof(struct shmt_shm_control, met), 768);
    assert_int_equal(sizeof(struct shmt_gate), 256);
    assert_int_equal(offsetof(struct shmt_gate, clock), 0);
    assert_int_equal(offsetof(struct shmt_gate, phase), 8);
    assert_int_equal(offsetof(struct shmt_gate, asleep), 128);
    assert_int_equal(offsetof(struct shmt_gate, sleepers), 132);
    assert_int_equal(offsetof(struct shmt_gate, until), 136);
    assert_int_equal(offsetof(struct shmt_gate, read), 192);
    assert_int_equal(sizeof(struct shmt_counters), 1584);
    assert_int_equal(sizeof(struct shmt_shm_front), 384);
    assert_int_equal(offsetof(struct shmt_shm_front, gate), 0);
    assert_int_equal(offsetof(struct shmt_shm_front, alive), 256);
    assert_int_equal(offsetof(struct shmt_shm_front, working), 260);
    assert_int_equal(offsetof(struct shmt_shm_front, guest), 264);
    assert_int_equal(offsetof(struct shmt_shm_front, life), 272);
    assert_int_equal(offsetof(struct shmt_shm_front, out), 296);
    assert_int_equal(sizeof(struct shmt_shm_passing), 128);
    assert_int_equal(offsetof(struct shmt_shm_passing, closed), 8);
    assert_int_equal(sizeof(struct shmt_shm_slot), 1920);
    assert_int_equal(offsetof(struct shmt_shm_slot, merged), 1680);
    assert_int_equal(offsetof(struct shmt_shm_slot, counters), 0);
    assert_int_equal(offsetof(struct shmt_shm_slot, undo), 1664);
    assert_int_equal(offsetof(struct shmt_shm_slot, redo), 1672);
    assert_int_equal(offsetof(struct shmt_shm_slot, records), 1688);
    assert_int_equal(offsetof(struct shmt_shm_slot, record), 1696);
    assert_int_equal(offsetof(struct shmt_shm_slot, at), 1792);
    assert_int_equal(sizeof(struct shmt_redo_log), 1048);
    assert_int_equal(offsetof(struct shmt_redo_log, out), 24);
    assert_int_equal(offsetof(struct shmt_redo_log, from), 536);
    assert_int_equal(sizeof(struct shmt_shm_record), 48);
    assert_int_equal(offsetof(struct shmt_shm_slot, count), 1808);
    assert_int_equal(sizeof(struct shmt_shm_count), 48);
    assert_int_equal(sizeof(struct shmt_shm_list), 1040);
    assert_int_equal(offsetof(struct shmt_shm_list, step), 8);
    assert_int_equal(offsetof(struct shmt_shm_list, in), 16);
    assert_int_equal(offsetof(struct shmt_shm_list, turned), 528);
    assert_int_equal(sizeof(struct shmt_shm_offer), 3328);
    assert_int_equal(offsetof(struct shmt_shm_offer, items), 0);
    assert_int_equal(offsetof(struct shmt_shm_offer, late), 8);
    assert_int_equal(offsetof(struct shmt_shm_offer, examples), 16);
    assert_int_equal(offsetof(struct shmt_shm_offer, pulled), 536);
    assert_int_equal(offsetof(struct shmt_shm_offer, list), 1152);
    assert_int_equal(sizeof(struct shmt_shm_terms_head), 128);
    assert_int_equal(sizeof(struct shmt_terms_head), 8);
    assert_int_equal(sizeof(struct shmt_shm_slice), 128);
    assert_int_equal(sizeof(struct shmt_shm_piece), 32);
    assert_int_equal(offsetof(struct shmt_shm_piece, owner), 0);
    assert_int_equal(offsetof(struct shmt_shm_piece, done), 8);
    assert_int_equal(offsetof(struct shmt_shm_piece, loss), 16);
    assert_int_equal(sizeof(struct shmt_ring), 128);
    assert_int_equal(offsetof(struct shmt_ring, since_ns), 8);
    assert_int_equal(offsetof(struct shmt_ring, doing), 16);
    assert_int_equal(sizeof(struct shmt_event), 32);
    assert_int_equal(offsetof(struct shmt_event, kind), 28);
    assert_int_equal(shmt_shm_layout_fingerprint(), UINT64_C(0x5e938f1d4bd05fbd));
}

struct range {
    uint64_t from, to, align;
};

static void parts_of_the_segment_do_not_overlap(void **state) {
    (void)state;
    for (uint32_t n_seats = 1; n_seats < 20; n_seats++)
        for (int write = 0; write < 3; write++) { /* 2: in rounds */
            struct shmt_spec spec = spec_of(write ? SHMT_WRITE_AGGREGATE : SHMT_WRITE_RACY, n_seats);
            struct shmt_shm_layout l;
            spec.l2_shares = write == 0;
            spec.row_places = n_seats % 3 == 0;
            spec.pauses.allowed = n_seats % 4 < 2;
            spec.policy.staleness = write == 2 ? 5 : spec.policy.staleness;
            spec.policy.replicas = write == 1 && n_seats % 5 < 2 ? SHMT_REPLICAS_EQUAL : SHMT_REPLICAS_ONE;
            spec.trace_events = n_seats % 2 ? 100 : 0;
            assert_int_equal(shmt_shm_layout_plan(&spec, &l, NULL), 0);
            const uint64_t table_bytes = l.flat.n * sizeof(float);
            const uint64_t kept = spec.pauses.allowed ? shmt_spec_pieces(&spec) : 0;
            const struct range parts[] = {
                {l.control.off, l.control.off + sizeof(struct shmt_shm_control), SHMT_LINE},
                {l.front.off, l.front.off + n_seats * sizeof(struct shmt_shm_front), SHMT_LINE},
                {l.slot.off, l.slot.off + n_seats * sizeof(struct shmt_shm_slot), SHMT_LINE},
                {l.offer.off, l.offer.off + (write == 2 ? n_seats : 0) * sizeof(struct shmt_shm_offer), SHMT_LINE},
                {l.slice.off, l.slice.off + l.n_slices * sizeof(struct shmt_shm_slice), SHMT_LINE},
                {l.ledger.off, l.ledger.off + shmt_spec_pieces(&spec) * sizeof(struct shmt_shm_piece), SHMT_LINE},
                {l.terms_head.off, l.terms_head.off + (l.terms ? spec.n_chunks : 0) * sizeof(struct shmt_shm_terms_head),
                 SHMT_LINE},
                {l.cut.off, l.cut.off + (l.terms ? n_seats : 0) * sizeof(uint64_t), SHMT_LINE},
                {l.terms_id.off, l.terms_id.off + (uint64_t)spec.n_chunks * l.terms * sizeof(uint32_t), 4096},
                {l.terms_value.off, l.terms_value.off + (uint64_t)spec.n_chunks * l.terms * sizeof(float), 4096},
                {l.weight.off, l.weight.off + table_bytes, 4096},
                {l.l2_share.off, l.l2_share.off + (spec.l2_shares ? table_bytes : 0), 4096},
                {l.grad.off, l.grad.off + n_seats * l.grad.each, 4096},
                {l.map.off, l.map.off + n_seats * l.map.each, 4096},
                {l.ring.off, l.ring.off + n_seats * l.ring.each, 4096},
                {l.replica.off, l.replica.off + (l.equal ? n_seats - 1 : 0) * l.replica.each, 4096},
                {l.reduced.off, l.reduced.off + (l.equal ? table_bytes : 0), 4096},
                {l.reduced_map.off, l.reduced_map.off + (l.equal ? l.flat.n / SHMT_TOUCH_FLOATS : 0), 4096},
                {l.ready.off, l.ready.off + (l.equal ? n_seats * l.ready_words * sizeof(uint64_t) : 0), SHMT_LINE},
                {l.row_place.off, l.row_place.off + (spec.row_places ? spec.table[0].rows * sizeof(uint32_t) : 0), 4096},
                {l.snapshot_clock.off, l.snapshot_clock.off + (kept ? n_seats : 0) * sizeof(uint64_t), SHMT_LINE},
                {l.snapshot_loss.off, l.snapshot_loss.off + kept * sizeof(double), SHMT_LINE},
                {l.snapshot_done.off, l.snapshot_done.off + kept * sizeof(uint32_t), SHMT_LINE},
                {l.snapshot.off, l.snapshot.off + (spec.pauses.allowed ? 1 + l.planes : 0) * table_bytes, 4096},
                {l.board.off, l.board.off + spec.board_bytes, 4096}};
            for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
                assert_int_equal(parts[i].from % parts[i].align, 0);
                assert_true(parts[i].from >= (i ? parts[i - 1].to : 0));
                assert_true(parts[i].to <= l.bytes);
            }
            const uint64_t buffers = l.stack + (l.terms > 0);
            assert_true(l.grad.each >= buffers * table_bytes && l.map.each >= buffers * l.map_bytes);
            assert_true(l.equal == (spec.policy.replicas == SHMT_REPLICAS_EQUAL && n_seats > 1));
            assert_true(!l.equal || l.replica.each >= (1 + l.planes) * table_bytes);
            assert_true((l.terms > 0) == (write == 1));
            assert_true(write == 0 ? l.stack == 0 : l.stack >= 1 && l.touched);
            assert_true(write == 2 ? l.stack == 6 && l.n_slices >= 1 && l.n_slices <= 4 * n_seats : l.n_slices == 0);
        }
}

static void a_layout_beyond_all_arithmetic_is_refused(void **state) {
    struct shmt_spec spec = spec_of(SHMT_WRITE_AGGREGATE, 1000);
    struct shmt_need need;
    struct shmt_error e = {0};
    (void)state;
    spec.table[0].rows = (uint64_t)1 << 57;
    assert_int_equal(SHMT_BACKEND_SHM.plan(&spec, &need, &e), SHMTRAIN_E_MEMORY);
    assert_non_null(strstr(e.text, "larger than any memory"));
    /* 65 buffers of a seat are 2^64 bytes and a few more */
    spec.policy.staleness = SHMT_MAX_AGGREGATE_STALENESS;
    spec.n_tables = 1;
    spec.table[0].rows = UINT64_MAX / ((SHMT_MAX_AGGREGATE_STALENESS + 1) * sizeof(float)) + 1;
    e = (struct shmt_error){0};
    assert_int_equal(SHMT_BACKEND_SHM.plan(&spec, &need, &e), SHMTRAIN_E_MEMORY);
    assert_non_null(strstr(e.text, "larger than any memory"));
}

/* ---- the ledger ---- */

enum { MOST_PIECES = 3000, MOST_SEATS = 16 };

struct thief {
    struct shmt_shm_piece *ledger;
    pthread_barrier_t *start;
    uint64_t n;
    uint32_t self, n_seats, epochs, took;
    bool late;  /* comes when the others have begun to take from it */
    bool again; /* it was given a piece after having been told that there are none */
};

/* Takes pieces until there are none; each is marked in its `loss`, which nobody but its owner may touch. */
static void *claim_all(void *arg) {
    struct thief *t = arg;
    for (uint32_t epoch = 0; epoch < t->epochs; epoch++) {
        struct shmt_claims claims;
        uint64_t piece;
        shmt_claims_begin(&claims, t->n, NULL, t->self, t->self, t->n_seats);
        pthread_barrier_wait(t->start);
        if (t->late) usleep(200);
        while (shmt_ledger_claim(t->ledger, &claims, epoch, 0, &piece)) {
            t->ledger[piece].loss += 1;
            shmt_ledger_done(&t->ledger[piece], epoch, piece + 1);
            t->took++;
        }
        t->again = t->again || shmt_ledger_claim(t->ledger, &claims, epoch, 0, &piece);
        pthread_barrier_wait(t->start);
    }
    return NULL;
}

static void claim_with(uint64_t n, uint32_t n_seats, uint32_t n_present, bool late) {
    const uint32_t epochs = 3;
    struct shmt_shm_piece *ledger = calloc(n, sizeof *ledger);
    struct thief thief[MOST_SEATS];
    pthread_t thread[MOST_SEATS];
    pthread_barrier_t start;
    uint64_t took = 0;
    pthread_barrier_init(&start, NULL, n_present);
    for (uint32_t i = 0; i < n_present; i++) {
        thief[i] = (struct thief){ledger, &start, n, i, n_seats, epochs, 0, late && i == 0, false};
        assert_int_equal(pthread_create(&thread[i], NULL, claim_all, &thief[i]), 0);
    }
    for (uint32_t i = 0; i < n_present; i++) {
        pthread_join(thread[i], NULL);
        took += thief[i].took;
        assert_false(thief[i].again);
    }
    assert_int_equal(took, n * epochs);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(ledger[i].loss == epochs);
        assert_int_equal(shmt_ledger_examples(&ledger[i], epochs - 1), i + 1);
        assert_int_equal(shmt_ledger_examples(&ledger[i], epochs), 0); /* of an epoch that has not been */
    }
    pthread_barrier_destroy(&start);
    free(ledger);
}

static void every_piece_is_claimed_exactly_once_however_many_steal(void **state) {
    static const uint64_t SIZES[] = {1, 2, 7, 8, 9, 100, MOST_PIECES};
    (void)state;
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        for (uint32_t seats = 1; seats <= MOST_SEATS; seats = seats < 4 ? seats + 1 : seats * 2)
            claim_with(SIZES[i], seats, seats, false);
}

static void the_pieces_of_those_who_come_late_or_never_are_taken_by_the_others(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) claim_with(500, 4, 4, true);
    claim_with(500, 4, 1, false);
    claim_with(501, 7, 2, false);
}

static void the_owner_word_says_who_has_the_piece_in_which_life(void **state) {
    struct shmt_shm_piece ledger[4] = {0};
    struct shmt_claims claims;
    uint64_t piece;
    (void)state;
    shmt_claims_begin(&claims, 4, NULL, 1, 1, 2);
    assert_true(shmt_ledger_claim(ledger, &claims, 5, 3, &piece));
    assert_int_equal(piece, 2); /* the first one of its own region */
    assert_int_equal(load_relaxed(&ledger[2].owner), (uint64_t)6 << 32 | 3 << 16 | 2);
    assert_int_equal(shmt_ledger_examples(&ledger[2], 5), 0); /* claimed is not done */
}

/* ---- one segment, several stores ---- */

/* Seats of one run; each is a thread that works at a store of its own choice. */
struct seat_run {
    const struct shmt_spec *spec;
    struct shmt_store *store;
    uint32_t rank;
    struct shmt_error error;
    int rc;
};

/* Gradients that are whole numbers, so that sums are exact; sparse and dense ones. */
static int push_both(shmtrain_session *s) {
    struct shmtrain_work w;
    uint32_t example[64], id[64];
    uint64_t start[65];
    float slope[64];
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float dense[6];
        if ((rc = shmtrain_order(s, &w, example)) < 0) return rc;
        start[0] = 0;
        for (uint32_t k = 0; k < w.n; k++) {
            id[k] = example[k] * 6; /* all over the table */
            slope[k] = -64;
            start[k + 1] = k + 1;
        }
        const struct shmtrain_csr x = {
            .size = sizeof(struct shmtrain_csr), .n = (uint32_t)w.n, .bias = 1, .start = start, .id = id};
        for (int i = 0; i < 6; i++) dense[i] = -(float)w.n * (float)i;
        if ((rc = shmtrain_push_sparse(s, 0, &x, slope)) < 0 || (rc = shmtrain_push(s, 1, 0, 3, dense)) < 0) return rc;
        if ((rc = shmtrain_report(s, (double)w.n)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void *work_at_store(void *arg) {
    struct seat_run *r = arg;
    shmtrain_session s;
    r->rc = shmt_session_enter(&s, &SHMT_BACKEND_SHM, r->store, r->spec, r->rank, 0, &r->error);
    if (r->rc < 0) return NULL;
    r->rc = push_both(&s);
    if (r->rc < 0) r->error = s.error;
    shmt_session_leave(&s);
    return NULL;
}

static void run_seats(const struct shmt_spec *spec, struct shmt_store *const *stores, uint32_t n_stores) {
    pthread_t thread[MOST_SEATS];
    struct seat_run run[MOST_SEATS];
    for (uint32_t i = 0; i < spec->n_seats; i++) {
        run[i] = (struct seat_run){.spec = spec, .store = stores[i % n_stores], .rank = i};
        assert_int_equal(pthread_create(&thread[i], NULL, work_at_store, &run[i]), 0);
    }
    for (uint32_t i = 0; i < spec->n_seats; i++) {
        pthread_join(thread[i], NULL);
        if (run[i].rc != 0) fail_msg("seat %u: %s", i, run[i].error.text);
    }
}

static struct shmt_store *create(const struct shmt_spec *spec) {
    struct shmt_store *store;
    struct shmt_error e = {0};
    if (SHMT_BACKEND_SHM.create(spec, NULL, &store, &e) != 0) fail_msg("%s", e.text);
    return store;
}

static struct shmt_store *attach(const struct shmt_spec *spec, const struct shmt_store *to) {
    struct shmt_store *store;
    struct shmt_error e = {0};
    if (shmt_shm_attach(spec, shmt_shm_fd(to), 0, &store, &e) != 0) fail_msg("%s", e.text);
    assert_ptr_not_equal(store->segment.base, to->segment.base);
    return store;
}

/* Two epochs, each example 64 / 64 once for its own row; 12 batches of 64 for the bias (64 * 64 / 64 each). */
static void check_aggregate(struct shmt_store *store) {
    float sparse[5000], dense[6];
    assert_int_equal(SHMT_BACKEND_SHM.store->read(store, 0, 0, 5000, sparse), 0);
    assert_int_equal(SHMT_BACKEND_SHM.store->read(store, 1, 0, 3, dense), 0);
    for (uint32_t row = 0; row < 4999; row++) assert_true(sparse[row] == (row % 6 == 0 && row / 6 < 768 ? 2 : 0));
    assert_true(sparse[4999] == 2 * 12 * 64);
    for (int i = 0; i < 6; i++) assert_true(dense[i] == (float)(2 * 12 * i));
}

static void aggregate_loses_and_doubles_nothing(void **state) {
    (void)state;
    for (uint32_t seats = 1; seats <= MOST_SEATS; seats = seats < 4 ? seats + 1 : seats * 2) { /* also more than chunks */
        const struct shmt_spec spec = spec_of(SHMT_WRITE_AGGREGATE, seats);
        struct shmt_store *store = create(&spec);
        run_seats(&spec, &store, 1);
        check_aggregate(store);
        SHMT_BACKEND_SHM.store->destroy(store);
    }
}

static void stores_of_one_segment_work_at_different_addresses(void **state) {
    (void)state;
    for (int write = 0; write < 2; write++) {
        const struct shmt_spec spec = spec_of(write ? SHMT_WRITE_AGGREGATE : SHMT_WRITE_RACY, 6);
        struct shmt_store *store[3];
        float here[6], there[6];
        uint64_t examples = 0;
        store[0] = create(&spec);
        store[1] = attach(&spec, store[0]);
        store[2] = attach(&spec, store[1]);
        run_seats(&spec, store, 3);
        if (write) check_aggregate(store[2]);
        SHMT_BACKEND_SHM.store->read(store[0], 1, 0, 3, here);
        SHMT_BACKEND_SHM.store->read(store[1], 1, 0, 3, there);
        assert_memory_equal(here, there, sizeof here);
        assert_true(here[1] > 0);
        for (uint32_t seat = 0; seat < 6; seat++)
            examples += load_relaxed(&SHMT_BACKEND_SHM.store->counters(store[seat % 3], seat)->examples);
        assert_int_equal(examples, 2 * 768);
        SHMT_BACKEND_SHM.store->destroy(store[0]); /* the memory stays until the last one goes */
        SHMT_BACKEND_SHM.store->read(store[2], 1, 0, 3, there);
        assert_memory_equal(here, there, sizeof here);
        SHMT_BACKEND_SHM.store->destroy(store[1]);
        SHMT_BACKEND_SHM.store->destroy(store[2]);
    }
}

static void *array_of(struct shmt_store *store, enum shmt_array_name name, int t) {
    return SHMT_BACKEND_SHM.store->array(store, name, t, 0).at;
}

static void parameters_and_board_are_the_same_memory_for_all(void **state) {
    struct shmt_spec spec = spec_of(SHMT_WRITE_RACY, 2);
    const float written[2] = {1.5f, -2};
    float read[2];
    (void)state;
    spec.l2_shares = true;
    spec.row_places = true;
    struct shmt_store *a = create(&spec), *b = attach(&spec, a);
    assert_int_equal(SHMT_BACKEND_SHM.store->write(a, 1, 2, 1, written), 0);
    assert_int_equal(SHMT_BACKEND_SHM.store->read(b, 1, 2, 1, read), 0);
    assert_memory_equal(read, written, sizeof read);
    unsigned char *const board[2] = {array_of(a, SHMT_ARRAY_BOARD, 0), array_of(b, SHMT_ARRAY_BOARD, 0)};
    float *const share[2] = {array_of(a, SHMT_ARRAY_L2_SHARE, 1), array_of(b, SHMT_ARRAY_L2_SHARE, 1)};
    uint32_t *const place[2] = {array_of(a, SHMT_ARRAY_ROW_PLACE, 0), array_of(b, SHMT_ARRAY_ROW_PLACE, 0)};
    const uint64_t last = spec.table[0].rows - 1;
    assert_int_equal((uintptr_t)board[1] % 4096, 0);
    board[0][8191] = 77;
    share[0][5] = 3;
    place[0][last] = 9;
    assert_true(board[1][8191] == 77 && share[1][5] == 3 && place[1][last] == 9 && place[1][0] == 0);
    SHMT_BACKEND_SHM.store->destroy(b);
    SHMT_BACKEND_SHM.store->destroy(a);
}

/* ---- stopping ---- */

static void a_stop_at_one_address_ends_the_seats_at_the_other(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_AGGREGATE, 4);
    struct shmt_store *store[2];
    float dense[6];
    (void)state;
    store[0] = create(&spec);
    store[1] = attach(&spec, store[0]);
    store_relaxed(SHMT_BACKEND_SHM.store->stop_word(store[1]), 1); /* before they begin: the first batch is the last */
    run_seats(&spec, store, 2);
    assert_int_equal(SHMT_BACKEND_SHM.store->read(store[0], 1, 0, 3, dense), 0);
    assert_true(dense[1] == 1);
    SHMT_BACKEND_SHM.store->destroy(store[1]);
    SHMT_BACKEND_SHM.store->destroy(store[0]);
}

static void *abort_soon(void *arg) {
    struct shmt_store *store = arg;
    usleep(20000);
    store_relaxed(SHMT_BACKEND_SHM.store->abort_word(store), 1);
    SHMT_BACKEND_SHM.store->wake(store);
    return NULL;
}

static void the_abort_word_ends_a_wait_for_those_who_never_come(void **state) {
    (void)state;
    for (int write = 0; write < 2; write++) {
        const struct shmt_spec spec = spec_of(write ? SHMT_WRITE_AGGREGATE : SHMT_WRITE_RACY, 3);
        struct shmt_store *store = create(&spec), *other = attach(&spec, store);
        struct seat_run alone = {.spec = &spec, .store = store, .rank = 1};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, abort_soon, other), 0);
        work_at_store(&alone); /* waits for two seats that nobody takes */
        pthread_join(thread, NULL);
        assert_int_equal(alone.rc, SHMTRAIN_E_STOPPED);
        SHMT_BACKEND_SHM.store->destroy(other);
        SHMT_BACKEND_SHM.store->destroy(store);
    }
}

static void there_is_no_seat_beyond_the_last(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY, 2);
    struct shmt_store *store = create(&spec);
    struct shmt_seat *seat;
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(SHMT_BACKEND_SHM.seat->enter(store, 2, 0, &seat, &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text, "seat 2 does not exist");
    assert_null(SHMT_BACKEND_SHM.store->counters(store, 2));
    SHMT_BACKEND_SHM.store->destroy(store);
}

/* ---- segments that are not ours ---- */

static void assert_not_attached(const struct shmt_spec *spec, int fd) {
    struct shmt_store *store = NULL;
    struct shmt_error e = {0};
    assert_true(shmt_shm_attach(spec, fd, 0, &store, &e) < 0);
    assert_true(e.text[0] != '\0');
    assert_null(store);
}

static void a_strangers_segment_is_refused(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY, 2);
    struct shmt_segment other;
    struct shmt_error e = {0};
    int fds[2];
    (void)state;
    const struct shmt_segment_wish wish = {
        .name = "other", .fd = -1, .bytes = 1 << 20, .fingerprint = shmt_shm_layout_fingerprint() + 1};
    assert_int_equal(shmt_segment_create(&wish, &other, &e), 0);
    assert_not_attached(&spec, other.fd);
    shmt_segment_detach(&other);
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_not_attached(&spec, file);
    close(file);
    assert_int_equal(pipe(fds), 0);
    assert_not_attached(&spec, fds[0]);
    close(fds[0]);
    close(fds[1]);
    assert_not_attached(&spec, 1000000);
}

static void a_damaged_header_is_refused(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY, 2);
    (void)state;
    for (size_t at = 0; at < 32; at++) { /* every byte of it counts */
        struct shmt_store *store = create(&spec);
        store->segment.base[at] ^= 0x40;
        assert_not_attached(&spec, shmt_shm_fd(store));
        store->segment.base[at] ^= 0x40;
        struct shmt_store *again = attach(&spec, store);
        SHMT_BACKEND_SHM.store->destroy(again);
        SHMT_BACKEND_SHM.store->destroy(store);
    }
}

static void a_segment_that_is_too_small_for_the_spec_is_refused(void **state) {
    struct shmt_spec spec = spec_of(SHMT_WRITE_RACY, 2);
    struct shmt_store *store = create(&spec);
    (void)state;
    spec.table[0].rows = 100000;
    assert_not_attached(&spec, shmt_shm_fd(store));
    SHMT_BACKEND_SHM.store->destroy(store);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(the_layout_is_frozen),
        TEST(parts_of_the_segment_do_not_overlap),
        TEST(a_layout_beyond_all_arithmetic_is_refused),
        TEST(every_piece_is_claimed_exactly_once_however_many_steal),
        TEST(the_pieces_of_those_who_come_late_or_never_are_taken_by_the_others),
        TEST(the_owner_word_says_who_has_the_piece_in_which_life),
        TEST(aggregate_loses_and_doubles_nothing),
        TEST(stores_of_one_segment_work_at_different_addresses),
        TEST(parameters_and_board_are_the_same_memory_for_all),
        TEST(a_stop_at_one_address_ends_the_seats_at_the_other),
        TEST(the_abort_word_ends_a_wait_for_those_who_never_come),
        TEST(there_is_no_seat_beyond_the_last),
        TEST(a_strangers_segment_is_refused),
        TEST(a_damaged_header_is_refused),
        TEST(a_segment_that_is_too_small_for_the_spec_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
