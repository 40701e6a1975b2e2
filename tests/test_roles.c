/* Tables of a model by their roles: how each is changed in the modes, and what it begins with. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>

#include "models/models.h"

enum { SLOW, PLAIN, MEAN, FIXED, N };

#define FIXED_FLOATS 600

/* What the test at hand wants of the model. */
static struct wish {
    bool pushes_fixed, adds_sparsely;
    struct shmtrain_shape odd; /* with a name: a further table */
} wish;

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)data;
    (void)with;
    (void)state;
    out[SLOW] = (struct shmtrain_shape){
        .name = "slow", .rows = 1, .width = 1, .l2_rows = 1, .start = SHMTRAIN_ONES, .rate = 0.5f, .decay = 2};
    out[PLAIN] = (struct shmtrain_shape){.name = "plain", .rows = 1, .width = 1};
    out[MEAN] = (struct shmtrain_shape){.name = "mean", .rows = 1, .width = 1, .role = SHMTRAIN_STATISTIC, .rate = 0.5f};
    out[FIXED] = (struct shmtrain_shape){
        .name = "fixed", .rows = FIXED_FLOATS / 3, .width = 3, .role = SHMTRAIN_FROZEN, .start = SHMTRAIN_HE, .fan_in = 6};
    if (!wish.odd.name) return N;
    out[N] = wish.odd;
    return N + 1;
}

/* Each example has the slope 1, and shows its label. */
static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    static const float ZEROS[FIXED_FLOATS];
    const uint64_t start[] = {0, 1};
    const uint32_t id[] = {0};
    const struct shmtrain_csr x = {.size = sizeof x, .n = 1, .start = start, .id = id};
    const float n = (float)batch->n;
    float mean, seen = 0;
    (void)pass;
    *loss_out = 0;
    int rc = shmtrain_pull(s, MEAN, 0, 1, &mean);
    for (uint32_t k = 0; k < batch->n; k++) seen += mean - batch->data->label[batch->example[k]];
    if (rc == 0) rc = shmtrain_push(s, SLOW, 0, 1, &n);
    if (rc == 0) rc = shmtrain_push(s, PLAIN, 0, 1, &n);
    if (rc == 0) rc = wish.adds_sparsely ? shmtrain_push_sparse(s, MEAN, &x, &n) : shmtrain_push(s, MEAN, 0, 1, &seen);
    if (rc == 0 && wish.pushes_fixed) rc = shmtrain_push(s, FIXED, 0, FIXED_FLOATS / 3, ZEROS);
    return rc;
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    (void)s;
    (void)pass;
    for (uint32_t k = 0; k < batch->n; k++) score_out[k] = 0;
    *loss_out = 0;
    return 0;
}

static const struct shmtrain_model ROLES = {.size = sizeof(struct shmtrain_model),
                                            .name = "roles",
                                            .tables = tables,
                                            .step = step,
                                            .score = score,
                                            .task = SHMTRAIN_REGRESSION,
                                            .traits = {.pushes_tables = 1, .rate = 0.25f}};

static const float LABELS[] = {1, 2, 3, 6};

/* In `aggregate` an update of all examples, whose labels have the mean 3; else one for each, in their order. */
static struct shmtrain_store *store_of(const char *workers, const char *mode, const char *optimizer, const char *seed) {
    struct shmtrain_store *store;
    write_text("train.svm", "1 1:1\n2 1:1\n3 1:1\n6 1:1\n");
    wish = (struct wish){0};
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, &ROLES));
    const char *const set[][2] = {{"model", "roles"}, {"workers", workers}, {"mode", mode},   {"optimizer", optimizer},
                                  {"seed", seed},     {"epochs", "1"},      {"rate", "0.25"}, {"schedule", "constant"},
                                  {"l2", "1"},        {"shuffle", "0"},     {"batch", "4"},   {"scale", "no"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    return store;
}

static float value_of(struct shmtrain_store *store, int t) {
    float value;
    WELL(store, shmtrain_store_read(store, t, 0, 1, &value));
    return value;
}

/* The slow one at each update: (w - r) / (1 + r l2 2) with r = 0.25 / 2. Live: an update for each example. */
static void assert_updates(const char *workers, const char *mode) {
    const bool live = strcmp(mode, "sync") != 0;
    struct shmtrain_store *store = store_of(workers, mode, "sgd", "1");
    float slow = 1, mean = 0;
    WELL(store, shmtrain_store_train(store, "train.svm"));
    for (int i = 0; i < (live ? 4 : 1); i++) {
        slow = (slow - 0.125f) / 1.25f;
        mean += 0.5f * ((live ? LABELS[i] : 3) - mean);
    }
    assert_true(fabsf(value_of(store, SLOW) - slow) < 1e-6f);
    assert_true(value_of(store, PLAIN) == (live ? -1 : -0.25f));
    assert_true(value_of(store, MEAN) == mean);
    shmtrain_store_destroy(store);
}

static void each_table_is_changed_by_its_role_and_factors(void **state) {
    (void)state;
    assert_updates("1", "sync");
    assert_updates("2", "sync");
    assert_updates("1", "ssp:0");
}

/* Whatever the rule is, and has as state. */
static void a_statistic_takes_plain_steps_with_every_rule(void **state) {
    static const char *const RULES[] = {"sgd", "momentum", "adagrad", "adam", "ftrl"};
    (void)state;
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        for (int live = 0; live < 2; live++) {
            struct shmtrain_store *store = store_of("1", live ? "hogwild" : "sync", RULES[i], "1");
            WELL(store, shmtrain_store_train(store, "train.svm"));
            assert_true(value_of(store, MEAN) == (live ? 4.0625f : 1.5f));
            assert_true(value_of(store, PLAIN) < 0);
            shmtrain_store_destroy(store);
        }
}

/* All show the same: then a statistic comes near it, and no copies take it beyond, whatever is done with what is trained. */
static void copies_average_a_statistic_however_they_are_merged(void **state) {
    static const struct {
        const char *mode, *write, *merge, *optimizer, *threads; /* 2: two share a copy */
        float least;
    } RUNS[] = {{"local:4", "racy", "sum", "sgd", "1", 2.8f},   {"local:4", "racy", "mean", "momentum", "1", 2.8f},
                {"local:4", "racy", "sum", "ftrl", "1", 2.8f},  {"local:4", "racy", "elastic", "sgd", "1", 1},
                {"node:4", "racy", "sum", "sgd", "1", 2.8f},    {"node:4", "racy", "mean", "sgd", "1", 2.8f},
                {"node:4", "racy", "elastic", "sgd", "1", 1},   {"node:4", "racy", "sum", "sgd", "2", 2.8f},
                {"node:4", "atomic", "sum", "sgd", "2", 2.8f},  {"node:4", "locked", "sum", "ftrl", "2", 2.8f},
                {"node:4", "locked", "mean", "sgd", "2", 2.8f}, {"local:4", "atomic", "sum", "sgd", "2", 2.8f}};
    (void)state;
    FILE *f = fopen("same.svm", "w");
    assert_non_null(f);
    for (int i = 0; i < 512; i++) fputs("3 1:1\n", f);
    assert_int_equal(fclose(f), 0);
    for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
        struct shmtrain_store *store = store_of(RUNS[i].threads[0] == '1' ? "4" : "2", RUNS[i].mode, RUNS[i].optimizer, "1");
        const char *const set[][2] = {{"write", RUNS[i].write},
                                      {"merge", RUNS[i].merge},
                                      {"replicas", "worker"},
                                      {"threads", RUNS[i].threads},
                                      {"item", "1"},
                                      {"epochs", "4"},
                                      {"l2", "0"}};
        for (size_t k = 0; k < sizeof set / sizeof *set; k++) WELL(store, shmtrain_store_set(store, set[k][0], set[k][1]));
        WELL(store, shmtrain_store_train(store, "same.svm"));
        const float mean = value_of(store, MEAN);
        if (!(mean >= RUNS[i].least && mean <= 3.2f))
            fail_msg("run %zu, %s, merge %s: %g", i, RUNS[i].mode, RUNS[i].merge, (double)mean);
        shmtrain_store_destroy(store);
    }
}

static void read_fixed(const char *workers, const char *mode, const char *seed, float *out) {
    struct shmtrain_store *store = store_of(workers, mode, "sgd", seed);
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_read(store, FIXED, 0, FIXED_FLOATS / 3, out));
    shmtrain_store_destroy(store);
}

/* He: uniform within 1, as the fan_in is 6. */
static void random_numbers_follow_from_the_seed_alone(void **state) {
    float one[FIXED_FLOATS], same[FIXED_FLOATS], other[FIXED_FLOATS];
    double sum = 0, squares = 0;
    (void)state;
    read_fixed("1", "sync", "1", one);
    read_fixed("2", "async", "1", same);
    read_fixed("1", "sync", "2", other);
    assert_memory_equal(one, same, sizeof one);
    assert_memory_not_equal(one, other, sizeof one);
    for (int i = 0; i < FIXED_FLOATS; i++) {
        assert_true(fabsf(one[i]) < 1 && one[i] != 0);
        sum += (double)one[i];
        squares += (double)(one[i] * one[i]);
    }
    assert_true(fabs(sum / FIXED_FLOATS) < 0.1 && fabs(squares / FIXED_FLOATS - 1.0 / 3) < 0.05);
}

static void what_a_role_does_not_bear_is_refused(void **state) {
    struct shmtrain_store *store = store_of("1", "sync", "sgd", "1");
    (void)state;
    wish.pushes_fixed = true;
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE, "shmtrain_push: table \"fixed\" is frozen");
    wish = (struct wish){.adds_sparsely = true};
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE,
            "shmtrain_push_sparse: table \"mean\" is a statistic, which only takes dense pushes");
    shmtrain_store_destroy(store);
}

static void shapes_that_cannot_be_are_refused(void **state) {
    static const struct {
        struct shmtrain_shape shape;
        const char *why;
    } BAD[] = {{{.name = "t", .rows = 1, .width = 1, .role = (enum shmtrain_role)3}, "\"t\" has the role 3, which is none"},
               {{.name = "t", .rows = 1, .width = 1, .rate = -1}, "\"t\" has a rate of -1"},
               {{.name = "t", .rows = 1, .width = 1, .role = SHMTRAIN_STATISTIC, .rate = 2}, "\"t\" has a rate of 2"},
               {{.name = "t", .rows = 1, .width = 1, .decay = NAN}, "\"t\" has a decay of nan"},
               {{.name = "t", .rows = 1, .width = 1, .start = (enum shmtrain_start)4}, "\"t\" has the start 4, which is none"},
               {{.name = "t", .rows = 1, .width = 1, .start = SHMTRAIN_GLOROT}, "follows from its fan_in, which is 0"}};
    struct shmtrain_store *store = store_of("1", "sync", "sgd", "1");
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        wish.odd = BAD[i].shape;
        refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE, BAD[i].why);
    }
    shmtrain_store_destroy(store);
}

/* ---- many tables ---- */

static uint32_t many_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                            struct shmtrain_shape *out) {
    static char names[SHMTRAIN_MODEL_TABLES][16];
    (void)data;
    (void)with;
    (void)state;
    for (uint32_t t = 0; t < SHMTRAIN_MODEL_TABLES; t++) {
        snprintf(names[t], sizeof names[t], "t%u", t);
        out[t] = (struct shmtrain_shape){.name = names[t], .rows = t + 1, .width = 7};
    }
    return SHMTRAIN_MODEL_TABLES;
}

/* The gradient of table t is n (t + 1) everywhere. */
static int many_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                     double *loss_out) {
    (void)pass;
    *loss_out = 0;
    for (uint32_t t = 0; t < SHMTRAIN_MODEL_TABLES; t++) {
        float *grad;
        int rc = shmtrain_lend(s, (int)t, &grad);
        if (rc < 0) return rc;
        for (uint32_t i = 0; i < (t + 1) * 7; i++) grad[i] = (float)(batch->n * (t + 1));
        if ((rc = shmtrain_push(s, (int)t, 0, t + 1, grad)) < 0) return rc;
    }
    return 0;
}

/* All of them are trained, saved, loaded and resumed. */
static void a_model_has_up_to_64_tables(void **state) {
    struct shmtrain_model many = ROLES;
    struct shmtrain_store *store = store_of("2", "sync", "momentum", "1");
    (void)state;
    many.name = "many";
    many.tables = many_tables;
    many.step = many_step;
    WELL(store, shmtrain_store_offer(store, &many));
    WELL(store, shmtrain_store_set(store, "model", "many"));
    WELL(store, shmtrain_store_set(store, "checkpoint", "."));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_save(store, "many.model"));
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, &many));
    WELL(store, shmtrain_store_load(store, "many.model"));
    for (uint32_t t = 0; t < SHMTRAIN_MODEL_TABLES; t++) {
        float row[7];
        WELL(store, shmtrain_store_read(store, (int)t, t, 1, row));
        for (int i = 0; i < 7; i++) assert_true(row[i] == -0.25f * (float)(t + 1));
    }
    shmtrain_store_destroy(store);
    store = store_of("1", "sync", "momentum", "1");
    WELL(store, shmtrain_store_offer(store, &many));
    const char *const set[][2] = {{"model", "many"}, {"checkpoint", "."}, {"resume", "1"}, {"epochs", "2"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    float row[7];
    WELL(store, shmtrain_store_read(store, 63, 63, 1, row));
    for (int i = 0; i < 7; i++)
        assert_true(fabsf(row[i] + 64 * 0.25f * (1 + 1.9f)) < 1e-4f); /* with the momentum of the first */
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(each_table_is_changed_by_its_role_and_factors, deadline),
                                       cmocka_unit_test_setup(a_statistic_takes_plain_steps_with_every_rule, deadline),
                                       cmocka_unit_test_setup(copies_average_a_statistic_however_they_are_merged, deadline),
                                       cmocka_unit_test_setup(random_numbers_follow_from_the_seed_alone, deadline),
                                       cmocka_unit_test_setup(what_a_role_does_not_bear_is_refused, deadline),
                                       cmocka_unit_test_setup(shapes_that_cannot_be_are_refused, deadline),
                                       cmocka_unit_test_setup(a_model_has_up_to_64_tables, deadline)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
