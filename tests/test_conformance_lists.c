/* Batches whose gradients are lists of terms (update/terms.h): every backend, with every number of seats, gives the same bits,
 * whether a gradient goes into lists, into buffers because there is no room, or into both. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "consistency/chunks.h"
#include "ps/flat.h"

enum { FEATURES = 6000, BATCHES = 3 };

/* How the examples of a run are pushed. */
struct kind {
    uint32_t n_chunks, nonzeros;
    bool dense; /* some examples push rows of a further table, which has no lists, and of the first one */
};
static const struct kind KINDS[] = {{8, 30, false}, {8, 30, true}, {1, 1500, false}, {2, 3500, true}};
static const struct kind *g_kind;

static uint32_t draw(uint64_t example, uint64_t k, uint32_t below) {
    return (uint32_t)shmt_below(shmt_hash64(91, example, k, 0), below);
}

/* Distinct ids: small ones in every example, others all over the table. */
static int push_example(shmtrain_session *s, uint32_t example, uint32_t *id, float *value) {
    uint64_t start[2] = {0, 0};
    const struct shmtrain_csr x = {
        .size = sizeof x, .n = 1, .bias = 1, .start = start, .id = id, .value = example % 2 ? value : NULL};
    const uint32_t stride = FEATURES / g_kind->nonzeros;
    for (uint32_t k = 0; k < g_kind->nonzeros; k++) {
        id[k] = k < 8 ? k : k * stride + draw(example, k, stride);
        value[k] = (float)draw(example, k, 1000) / 300 - 1;
        start[1]++;
    }
    return shmtrain_push_sparse(s, 0, &x, &(float){0.01f * (float)(example % 7) - 0.02f});
}

static int push_rows(shmtrain_session *s, uint32_t example) {
    const float grad[2] = {0.1f * (float)example, -0.3f};
    const uint32_t row[2] = {example % FEATURES, 17};
    const int rc = shmtrain_push_rows(s, 0, row, 2, grad);
    return rc < 0 ? rc : shmtrain_push_rows(s, 1, row + 1, 1, grad);
}

static int push_all(struct run *run, shmtrain_session *s) {
    static _Thread_local uint32_t id[FEATURES];
    static _Thread_local float value[FEATURES];
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        for (uint64_t i = 0; i < w.n && rc == 0; i++) {
            rc = push_example(s, order[i], id, value);
            if (rc == 0 && g_kind->dense && order[i] % 5 == 0) rc = push_rows(s, order[i]);
        }
        if (rc < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static struct shmt_spec lists_spec(const struct kase *k) {
    struct shmt_spec spec = spec_of(k, 64 * BATCHES - 9, FEATURES + 1, 1); /* the last batch is short */
    spec.n_chunks = g_kind->n_chunks;
    spec.rule = (struct shmt_rule){.kind = SHMT_RULE_ADAGRAD, .l2 = 0.01f, .epsilon = 0.1f};
    spec.l2_rows[0] = FEATURES;
    spec.n_tables = 2;
    strcpy(spec.table[1].name, "further");
    spec.table[1].rows = 40;
    spec.table[1].width = 1;
    spec.l2_rows[1] = 40;
    return spec;
}

static float *g_first; /* (FEATURES + 41) what the first case has learned; NULL: none yet */

static void learns_as_the_first(const struct kase *k) {
    struct run run;
    float *learned = calloc(FEATURES + 41, sizeof *learned);
    if (!shmt_policy_is_batched(&k->policy)) {
        free(learned);
        return;
    }
    begin(&run, k, lists_spec(k));
    assert_true(shmt_flat_terms(&run.spec) > 0);
    go_well(&run, push_all);
    assert_int_equal(k->backend->store->read(run.store, 0, 0, FEATURES + 1, learned), 0);
    assert_int_equal(k->backend->store->read(run.store, 1, 0, 40, learned + FEATURES + 1), 0);
    end(&run);
    assert_true(learned[0] != 0 && learned[FEATURES] != 0 && (learned[FEATURES + 18] != 0) == g_kind->dense);
    if (g_first) {
        assert_memory_equal(learned, g_first, (FEATURES + 41) * sizeof *learned);
        free(learned);
    } else {
        g_first = learned;
    }
}

static void all_backends_learn_the_same_from_lists_and_buffers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        g_kind = &KINDS[i];
        each_case(learns_as_the_first);
        free(g_first);
        g_first = NULL;
    }
}

/* Else the bits of a run would depend on the machine that it is on. */
static void whether_there_are_lists_does_not_follow_from_seats_or_memory(void **state) {
    struct shmt_spec spec = {
        .policy = {.write = SHMT_WRITE_AGGREGATE}, .batch = 64, .n_chunks = 8, .n_seats = 1, .n_tables = 1};
    (void)state;
    spec.table[0].rows = 4095;
    spec.table[0].width = 1;
    assert_int_equal(shmt_flat_terms(&spec), 0);
    spec.placement.policy = SHMT_PLACE_BIND; /* tables begin on pages, so there are 5,120 floats in all */
    spec.placement.n_nodes = 2;
    assert_int_equal(shmt_flat_terms(&spec), 0);
    spec.table[0].rows = 4096;
    const uint32_t terms = shmt_flat_terms(&spec);
    assert_true(terms > 0);
    spec.placement = (struct shmt_placement){0};
    for (spec.n_seats = 1; spec.n_seats < 20; spec.n_seats++) assert_int_equal(shmt_flat_terms(&spec), terms);
    spec.n_tables = 2; /* one that takes no sparse pushes: its floats are numbered, too */
    spec.table[1].rows = UINT64_C(1) << 30;
    spec.table[1].width = 2;
    assert_int_equal(shmt_flat_terms(&spec), 0);
    spec.n_tables = 1;
    spec.batch = 64 * 1024;
    spec.n_chunks = shmt_chunks_of_batch(spec.batch);
    assert_int_equal(shmt_flat_terms(&spec), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_backends_learn_the_same_from_lists_and_buffers),
        cmocka_unit_test(whether_there_are_lists_does_not_follow_from_seats_or_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
