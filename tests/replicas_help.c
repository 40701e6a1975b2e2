/* See replicas_help.h. */
#include "replicas_help.h"

#include <math.h>
#include <string.h>
#include <time.h>

struct kase case_of(struct shmt_policy policy, uint32_t n_seats, const struct shmt_team_kind *kind) {
    return (struct kase){&SHMT_BACKEND_SHM, policy, n_seats, kind};
}

struct shmt_spec spec_of_items(const struct kase *k, uint64_t items, uint64_t rows) {
    struct shmt_spec spec = spec_of(k, items * ITEM, rows, 1);
    spec.item = ITEM;
    spec.rate.base = 1;
    if (k->policy.replicas != SHMT_REPLICAS_NODE) return spec;
    spec.placement.n_nodes = 2;
    for (uint32_t seat = 0; seat < k->n_seats; seat++) spec.placement.seat_node[seat] = seat % 2;
    return spec;
}

struct shmt_rule rule_of(enum shmt_rule_kind kind) {
    return (struct shmt_rule){
        .kind = kind, .l2 = 0.01f, .momentum = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f, .beta = 1, .rho = 0.9f};
}

/* ---- work ---- */

void keep_step(const struct run *run, shmtrain_session *s, uint64_t mine) {
    const struct timespec pause = {.tv_nsec = 50000};
    _Atomic uint64_t *const begun = run->board; /* (n_seats) */
    store_relaxed(&begun[s->seat->rank], mine);
    for (uint32_t seat = 0; seat < s->spec->n_seats; seat++)
        while (load_relaxed(&begun[seat]) < mine) (void)nanosleep(&pause, NULL);
}

static int add_item(shmtrain_session *s) {
    const uint32_t row[3] = {0, 1 + s->seat->rank, (uint32_t)s->spec->table[0].rows - 1};
    static const float grad[3] = {-1, -1, -1};
    const int rc = shmtrain_push_rows(s, 0, row, 3, grad);
    return rc < 0 ? rc : shmtrain_clock(s, NULL);
}

int add_ones(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1)
        if ((rc = add_item(s)) < 0) return rc;
    return rc;
}

int add_ones_in_step(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    for (uint64_t mine = 1; (rc = shmtrain_next(s, &w)) == 1; mine++) {
        keep_step(run, s, mine);
        if ((rc = add_item(s)) < 0) return rc;
    }
    return rc;
}

void count_ones(struct shmt_policy policy, uint32_t n_seats, const struct shmt_team_kind *kind) {
    enum { ROWS = 1500 }; /* more than a block of the master, so that the last row is in another one */
    const struct kase k = case_of(policy, n_seats, kind);
    const float all = EPOCHS * ITEMS;
    float value[ROWS], own = 0;
    struct run run;
    uint64_t merges = 0;
    begin(&run, &k, spec_of_items(&k, ITEMS, ROWS));
    run.epoch_end = check_copies;
    go_well(&run, add_ones);
    assert_int_equal(k.backend->store->read(run.store, 0, 0, ROWS, value), 0);
    for (uint32_t seat = 0; seat < n_seats; seat++) {
        own += value[1 + seat];
        merges += load_relaxed(&k.backend->store->counters(run.store, seat)->merges);
    }
    if (value[0] != all || own != all || value[ROWS - 1] != all)
        fail_msg("%s, %u seats, every %u, staleness %llu: %g, %g and %g of %g", shmt_write_name(policy.write), n_seats,
                 policy.merge_every, (unsigned long long)policy.staleness, (double)value[0], (double)own,
                 (double)value[ROWS - 1], (double)all);
    assert_true(merges >= EPOCHS * n_seats); /* one at the end of each epoch, at least */
    end(&run);
}

/* ---- all copies ---- */

/* One word of a replica and of its base. */
static bool is_the_masters(const struct shmt_store *store, uint32_t replica, uint32_t word) {
    const struct shmt_cover *c = &store->layout.cover;
    const float *const mine = shmt_shm_replica(store, replica, word), *const base = shmt_shm_base(store, replica, word);
    for (uint64_t at = 0, n; at < c->n; at += n) {
        n = shmt_cover_run(c, at, c->n);
        const float *const master = shmt_shm_master(store, word) + shmt_cover_place(c, at);
        if (memcmp(mine + at, master, n * sizeof *master) != 0) return false;
        if (base && memcmp(base + at, master, n * sizeof *master) != 0) return false;
    }
    return true;
}

int check_copies(shmtrain_session *s, void *arg, uint32_t epoch) {
    const struct run *run = arg;
    const struct shmt_store *store = run->store;
    const uint64_t rows = run->spec.table[0].rows;
    float seen[1024];
    (void)epoch;
    for (uint32_t replica = 0; replica < store->layout.n_replicas; replica++)
        for (uint32_t word = 0; word <= store->layout.planes; word++)
            if (!is_the_masters(store, replica, word))
                return shmt_fail(&s->error, SHMTRAIN_E_DATA, "replica %u, word %u is not the master's", replica, word);
    for (uint64_t at = 0, n; at < rows; at += n) {
        n = shmt_min_u64(rows - at, sizeof seen / sizeof *seen);
        const int rc = shmtrain_pull(s, 0, at, n, seen);
        if (rc < 0) return rc;
        if (memcmp(seen, store->weight + at, n * sizeof *seen) != 0)
            return shmt_fail(&s->error, SHMTRAIN_E_DATA, "what one sees is not the master");
    }
    return 0;
}

/* ---- state ---- */

void read_with_state(const struct run *run, float *out) {
    const uint64_t rows = run->spec.table[0].rows;
    memset(out, 0, (1 + SHMT_MAX_PLANES) * rows * sizeof *out);
    assert_int_equal(run->k->backend->store->read(run->store, 0, 0, rows, out), 0);
    for (uint32_t p = 0; p < run->store->layout.planes; p++)
        memcpy(out + (1 + p) * rows, run->k->backend->store->array(run->store, SHMT_ARRAY_STATE, 0, p).at, rows * sizeof *out);
}

void assert_state_is_possible(enum shmt_rule_kind rule, enum shmt_merge merge, uint64_t rows, const float *out) {
    for (uint32_t word = 0; word <= SHMT_MAX_PLANES; word++) {
        const struct shmt_merging how = shmt_merging_of(merge, rule, word, 1);
        for (uint64_t row = 0; row < rows; row++) {
            const float x = out[word * rows + row];
            if (!isfinite(x) || (how.positive && x < 0))
                fail_msg("%s, %s: %g in word %u of row %llu", shmt_rule_name(rule), shmt_merge_name(merge), (double)x, word,
                         (unsigned long long)row);
        }
    }
}
