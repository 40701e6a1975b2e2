/* Columns that are renumbered by how often they occur: nothing of it is seen from outside, to the last bit, in whatever mode
 * and between runs; inside the frequent ones come first. */
#include "api_help.h"
#include "folder_help.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "keeping/places.h"
#include "api/store_priv.h"
#include "base/random.h"

#define SPARSE  "builtin:sparse:examples=3000,features=6000,nonzeros=30,valid=500"
#define N_ROWS  6001
#define OPTIONS 12

/* ---- making places ---- */

static void the_most_frequent_columns_come_first(void **state) {
    static const uint64_t start[] = {0, 3, 5, 7, 8};
    static const uint32_t id[] = {1, 4, 5, 4, 5, 2, 4, 4}; /* 4 four times, 5 twice, 1 and 2 once, 0 and 3 never */
    static const uint32_t expected[] = {4, 2, 3, 5, 0, 1, 6, 7};
    const struct shmtrain_data data = {
        .size = sizeof(struct shmtrain_data), .n_examples = 4, .n_nonzeros = 8, .n_features = 6, .start = start, .id = id};
    uint32_t *place;
    (void)state;
    assert_int_equal(shmt_places_make(&data, 8, &place, NULL), 0);
    assert_memory_equal(place, expected, sizeof expected);
    free(place);
}

/* Of 2^24 elements an eighth is looked at: of every eighth example. */
static void much_data_is_counted_in_a_sample(void **state) {
    enum { EXAMPLES = 1 << 14, EACH = 1 << 10, COLUMNS = 5000 };
    uint64_t *start = malloc((EXAMPLES + 1) * sizeof *start);
    uint32_t *id = malloc((size_t)EXAMPLES * EACH * sizeof *id), *place;
    (void)state;
    assert_true(start && id);
    for (uint64_t i = 0; i <= EXAMPLES; i++) start[i] = i * EACH;
    for (uint64_t i = 0; i < EXAMPLES; i++) /* every eighth has other columns than all others */
        for (uint64_t j = 0; j < EACH; j++) id[i * EACH + j] = (uint32_t)(i % 8 ? j : 3000 + j);
    const struct shmtrain_data data = {.size = sizeof(struct shmtrain_data),
                                       .n_examples = EXAMPLES,
                                       .n_nonzeros = (uint64_t)EXAMPLES * EACH,
                                       .n_features = COLUMNS,
                                       .start = start,
                                       .id = id};
    assert_int_equal(shmt_places_make(&data, COLUMNS + 1, &place, NULL), 0);
    assert_true(place[3000] == 0 && place[4023] == 1023 && place[0] == 1024 && place[COLUMNS] == COLUMNS);
    free(place);
    free(id);
    free(start);
}

static void nothing_is_renumbered_where_it_cannot_pay(void **state) {
    const struct shmtrain_model alike = {.size = sizeof(struct shmtrain_model), .traits.columns_alike = 1},
                                minds = {.traits.columns_alike = 0};
    const struct shmtrain_model dense = {.size = sizeof(struct shmtrain_model),
                                         .traits = {.columns_alike = 1, .rows = SHMTRAIN_ROWS_DENSE}};
    struct shmtrain_data data = {.size = sizeof(struct shmtrain_data), .n_nonzeros = 3000, .n_features = 5000};
    struct shmt_spec spec = {.epochs = 2, .table[0] = {.rows = 5001, .width = 1}, .l2_rows[0] = 5000};
    (void)state;
    assert_true(shmt_places_are_worthwhile(&alike, &data, &spec));
    assert_false(shmt_places_are_worthwhile(&minds, &data, &spec));
    assert_false(shmt_places_are_worthwhile(&dense, &data, &spec));
    spec.epochs = 1; /* 3,000 touches of 5,001 rows */
    assert_false(shmt_places_are_worthwhile(&alike, &data, &spec));
    data.n_nonzeros = 100000;
    assert_true(shmt_places_are_worthwhile(&alike, &data, &spec));
    spec.l2_rows[0] = 4999; /* one of the columns is not regularised */
    assert_false(shmt_places_are_worthwhile(&alike, &data, &spec));
    spec.l2_rows[0] = 5000;
    spec.table[0].rows = 4999; /* no row for each */
    assert_false(shmt_places_are_worthwhile(&alike, &data, &spec));
    data.n_features = 4095;
    spec.l2_rows[0] = 4095;
    spec.table[0].rows = 4096;
    assert_false(shmt_places_are_worthwhile(&alike, &data, &spec));
    spec.table[0].rows = 4097;
    assert_true(shmt_places_are_worthwhile(&alike, &data, &spec));
}

/* ---- the same from outside ---- */

/* Pairs of option and value, to a NULL. */
static struct shmtrain_store *store_with(const char *const *options) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    for (; options && options[0]; options += 2) WELL(store, shmtrain_store_set(store, options[0], options[1]));
    return store;
}

static bool is_renumbered(const struct shmtrain_store *store) {
    return strcmp(shmtrain_store_report((struct shmtrain_store *)store)->columns, "by frequency") == 0;
}

static float *read_table(struct shmtrain_store *store, uint64_t *rows) {
    assert_int_equal(shmtrain_store_table_at(store, 0, NULL, rows, NULL), 0);
    float *values = malloc(*rows * sizeof *values);
    assert_non_null(values);
    WELL(store, shmtrain_store_read(store, 0, 0, *rows, values));
    return values;
}

/* Of two stores: hashes, losses, parameters by feature. */
static void assert_same(struct shmtrain_store *a, struct shmtrain_store *b) {
    const struct shmtrain_report *ra = shmtrain_store_report(a), *rb = shmtrain_store_report(b);
    uint64_t rows_a, rows_b;
    float *of_a = read_table(a, &rows_a), *of_b = read_table(b, &rows_b);
    assert_true(ra->parameters_xxh64 == rb->parameters_xxh64 && ra->n_epochs == rb->n_epochs);
    for (uint32_t i = 0; i < ra->n_epochs; i++) {
        assert_true(ra->epoch[i].train_loss == rb->epoch[i].train_loss);
        assert_memory_equal(&ra->epoch[i].valid_loss, &rb->epoch[i].valid_loss, sizeof(double)); /* NaN: there is none */
    }
    assert_int_equal(rows_a, rows_b);
    assert_memory_equal(of_a, of_b, rows_a * sizeof *of_a);
    free(of_a);
    free(of_b);
}

/* Trains on `data` in both ways. */
static void assert_same_either_way(const char *const *options, const char *data) {
    struct shmtrain_store *store[2];
    for (int given = 0; given < 2; given++) {
        store[given] = store_with(options);
        WELL(store[given], shmtrain_store_set(store[given], "columns", given ? "given" : "auto"));
        WELL(store[given], shmtrain_store_train(store[given], data));
        assert_true(is_renumbered(store[given]) == !given);
    }
    assert_same(store[0], store[1]);
    shmtrain_store_destroy(store[0]);
    shmtrain_store_destroy(store[1]);
}

static void parameters_are_the_same_in_either_order(void **state) {
    static const char *const CASES[][OPTIONS] = {
        {"model", "logistic"},
        {"model", "svm", "group", "1"},
        {"model", "linear"}, /* its bias does not begin at 0 */
        {"mode", "sync"},
        {"mode", "sync", "optimizer", "momentum", "l1", "1e-5"},
        {"write", "atomic", "optimizer", "adagrad"},
        {"write", "locked", "optimizer", "adam"},
        {"optimizer", "ftrl", "l1", "0.1"},
        {"l1", "1e-5", "l2", "1e-4"}, /* with shares of rows */
        {"bias", "0", "valid", "0.2"},
        {"replicas", "worker", "optimizer", "momentum"},
        {"backend", "plain", "l2", "1e-4"},
        {"backend", "copy"},
        {"replicas", "worker", "merge", "damped", "optimizer", "adagrad"},
        {"spawn", "threads", "class-weight", "1:2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) assert_same_either_way(CASES[i], SPARSE);
    assert_same_either_way(CASES[0], "builtin:dense:examples=40,features=5000,classes=2");
}

static void sync_has_the_same_bits_for_every_number_of_workers(void **state) {
    static const char *const WORKERS[] = {"2", "8"};
    struct shmtrain_store *one = store_with((const char *[OPTIONS]){"mode", "sync", "columns", "given"});
    (void)state;
    WELL(one, shmtrain_store_train(one, SPARSE));
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *many = store_with((const char *[OPTIONS]){"mode", "sync", "workers", WORKERS[i]});
        WELL(many, shmtrain_store_train(many, SPARSE));
        assert_true(is_renumbered(many) && !is_renumbered(one));
        assert_same(one, many);
        shmtrain_store_destroy(many);
    }
    shmtrain_store_destroy(one);
}

/* 400 lines of 20 features of 20,000, mostly small multiples of 97; all values 1, or not. */
static void write_svm(const char *path, bool ones) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 400; i++) {
        fprintf(f, "%s", i % 3 ? "+1" : "-1");
        for (uint64_t k = 0, feature = 1; k < 20; k++) {
            feature += 97 * (1 + shmt_below(shmt_hash64(7, i, k, 0), 4 + 6 * k % 11));
            fprintf(f, ones ? " %d:1" : " %d:%.2f", (int)feature, 0.5 + (double)k / 8);
        }
        fprintf(f, "%s\n", i % 50 ? "" : " 20000:1");
    }
    assert_int_equal(fclose(f), 0);
}

static void files_are_renumbered_too_and_validation_with_them(void **state) {
    (void)state;
    for (int ones = 0; ones < 2; ones++) {
        write_svm("train.svm", ones);
        write_svm("valid.svm", ones);
        FILE *f = fopen("valid.svm", "a");
        fprintf(f, "+1 3:1 30000:5\n"); /* nobody has seen either */
        assert_int_equal(fclose(f), 0);
        assert_same_either_way((const char *[OPTIONS]){"epochs", "4", "valid", "valid.svm"}, "train.svm");
        assert_same_either_way((const char *[OPTIONS]){"epochs", "4", "mode", "sync", "batch", "32"}, "train.svm");
    }
}

static void inside_the_frequent_ones_are_first_and_outside_nobody_sees_it(void **state) {
    struct shmtrain_store *store = store_with((const char *[OPTIONS]){"l2", "1e-4"});
    uint64_t rows;
    (void)state;
    WELL(store, shmtrain_store_train(store, SPARSE));
    struct shmt_store *live = store->params.held.store;
    const uint32_t *place = shmt_array_at(store->run.backend, live, SHMT_ARRAY_ROW_PLACE);
    const float *weight = shmt_array_at(store->run.backend, live, SHMT_ARRAY_WEIGHT),
                *share = shmt_array_at(store->run.backend, live, SHMT_ARRAY_L2_SHARE);
    float *by_feature = read_table(store, &rows);
    assert_int_equal(rows, N_ROWS);
    uint64_t moved = 0;
    for (uint64_t i = 0; i < rows; i++) {
        assert_true(by_feature[i] == weight[place[i]]);
        moved += place[i] != i;
    }
    assert_true(moved > N_ROWS / 2 && place[N_ROWS - 1] == N_ROWS - 1);
    /* the share of a row falls with how often its feature occurs; all data was counted */
    for (uint64_t i = 1; i < N_ROWS - 1; i++) assert_true(share[i] == 0 || share[i] >= share[i - 1]);
    free(by_feature);
    shmtrain_store_destroy(store);
}

/* ---- between runs ---- */

static void a_further_run_on_other_data_continues_with_parameters_and_state(void **state) {
    static const char *const OPTIMIZERS[] = {"sgd", "momentum", "adagrad", "ftrl"};
    (void)state;
    for (size_t i = 0; i < sizeof OPTIMIZERS / sizeof *OPTIMIZERS; i++) {
        struct shmtrain_store *store[2];
        for (int given = 0; given < 2; given++) {
            store[given] = store_with((const char *[OPTIONS]){"optimizer", OPTIMIZERS[i], "rate", "0.1"});
            for (int run = 0; run < 3; run++) {
                const float x[3] = {0.25f, 0.5f, -1};
                /* the second store changes its mind on the way */
                WELL(store[given], shmtrain_store_set(store[given], "columns", given && run != 1 ? "given" : "auto"));
                WELL(store[given], shmtrain_store_set(store[given], "seed", run == 1 ? "2" : "1"));
                WELL(store[given], shmtrain_store_train(store[given], SPARSE));
                if (run == 1) WELL(store[given], shmtrain_store_write(store[given], 0, 4000, 3, x));
            }
        }
        assert_same(store[0], store[1]);
        shmtrain_store_destroy(store[0]);
        shmtrain_store_destroy(store[1]);
    }
}

static void what_is_written_is_read(void **state) {
    struct shmtrain_store *store = store_with(NULL);
    float *values = malloc(N_ROWS * sizeof *values), there[3];
    (void)state;
    assert_non_null(values);
    WELL(store, shmtrain_store_train(store, SPARSE));
    for (uint32_t i = 0; i < N_ROWS; i++) values[i] = (float)i;
    WELL(store, shmtrain_store_write(store, 0, 0, N_ROWS, values));
    WELL(store, shmtrain_store_write(store, 0, 77, 2, values));
    WELL(store, shmtrain_store_read(store, 0, 76, 3, there));
    assert_true(there[0] == 76 && there[1] == 0 && there[2] == 1);
    assert_true(read_one(store, N_ROWS - 1) == N_ROWS - 1);
    refused(store, shmtrain_store_read(store, 0, N_ROWS, 1, there), SHMTRAIN_E_USAGE, "has 6001 rows");
    free(values);
    shmtrain_store_destroy(store);
}

/* ---- files, prediction ---- */

static unsigned char *whole_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "r");
    unsigned char *bytes = malloc(1 << 20);
    assert_true(f && bytes);
    *n = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

static int add_up(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    double *sum = arg;
    (void)n;
    *sum += (double)label * (double)output[0] * (double)(example + 1);
    return 0;
}

static void saved_models_and_predictions_are_the_same(void **state) {
    static const char *const FILES[] = {"a.safetensors", "b.safetensors"};
    double sum[3] = {0}, loss[3];
    size_t n[2];
    (void)state;
    for (int i = 0; i < 3; i++) { /* 2: the first one's file, by another store */
        const struct shmtrain_evaluation *evaluation;
        struct shmtrain_store *store = store_with((const char *[OPTIONS]){"columns", i == 1 ? "given" : "auto"});
        if (i < 2) {
            WELL(store, shmtrain_store_train(store, SPARSE));
            WELL(store, shmtrain_store_save(store, FILES[i]));
        } else {
            WELL(store, shmtrain_store_load(store, FILES[0]));
        }
        WELL(store, shmtrain_store_evaluate(store, "builtin:sparse:examples=700,features=6000,nonzeros=30", &evaluation));
        loss[i] = evaluation->loss;
        WELL(store, shmtrain_store_predict(store, "builtin:sparse:examples=700,features=6000,nonzeros=30", 0, add_up, &sum[i]));
        shmtrain_store_destroy(store);
    }
    unsigned char *a = whole_file(FILES[0], &n[0]), *b = whole_file(FILES[1], &n[1]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(a, b, n[0]);
    assert_true(sum[0] == sum[1] && sum[1] == sum[2] && sum[0] != 0 && loss[0] == loss[1] && loss[1] == loss[2]);
    free(a);
    free(b);
}

/* ---- models of one's own ---- */

/* Learns nothing: row i of its table begins with i + 1, and stays so. What it has seen of the data, its workers tell. */
static struct seen { _Atomic uint32_t ascending, not_ascending, most_frequent; /* lines; elements with number 0 */ } * seen;

static uint32_t still_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                             struct shmtrain_shape *out) {
    (void)state;
    (void)with;
    out[0] = (struct shmtrain_shape){
        .name = "still", .rows = data->n_features + UINT64_C(1), .width = 1, .l2_rows = data->n_features};
    return 1;
}

static void still_begin(const struct shmtrain_batch *train, const struct shmtrain_settings *with, const void *state, uint32_t t,
                        float *value) {
    (void)state;
    (void)with;
    (void)t;
    const uint64_t *start = train->data->start;
    for (uint64_t j = start[0]; j + 1 < start[1]; j++) assert_true(train->data->id[j] < train->data->id[j + 1]);
    for (uint64_t row = 0; row <= train->data->n_features; row++) value[row] = (float)(row + 1);
}

static int still_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                      double *loss_out) {
    (void)s;
    (void)pass;
    const struct shmtrain_data *d = batch->data;
    for (uint32_t k = 0; k < batch->n; k++) {
        const uint64_t i = batch->example ? batch->example[k] : batch->first + k;
        bool ascends = true;
        for (uint64_t j = d->start[i]; j < d->start[i + 1]; j++) {
            if (j > d->start[i]) ascends = ascends && d->id[j - 1] < d->id[j];
            seen->most_frequent += d->id[j] == 0;
        }
        ascends ? seen->ascending++ : seen->not_ascending++;
    }
    *loss_out = 0;
    return 0;
}

static int still_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                       float *score_out, double *loss_out) {
    (void)s;
    (void)pass;
    for (uint32_t k = 0; k < batch->n; k++) score_out[k] = 0;
    *loss_out = 0;
    return 0;
}

static const struct shmtrain_model STILL = {.size = sizeof(struct shmtrain_model),
                                            .name = "still",
                                            .about = "stays as it is",
                                            .task = SHMTRAIN_REGRESSION,
                                            .loss = "none",
                                            .traits = {.columns_alike = 1, .curvature = 0.25f},
                                            .tables = still_tables,
                                            .begin = still_begin,
                                            .step = still_step,
                                            .score = still_score};

static void check_still(struct shmtrain_store *store) {
    uint64_t rows;
    float *values = read_table(store, &rows);
    for (uint64_t row = 0; row < rows; row++) assert_true(values[row] == (float)(row + 1));
    free(values);
}

/* While a run goes on: by whoever listens to it. */
static void look(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)so_far;
    (void)epoch;
    check_still(arg);
}

static void assert_sees_columns(const char *data) {
    struct shmtrain_model model = STILL;
    for (uint32_t alike = 0; alike < 2; alike++) {
        model.traits.columns_alike = alike;
        struct shmtrain_store *store = store_with((const char *[OPTIONS]){"epochs", "5"});
        *seen = (struct seen){0};
        WELL(store, shmtrain_store_offer(store, &model));
        WELL(store, shmtrain_store_set(store, "model", "still"));
        shmtrain_store_listen(
            store, &(const struct shmtrain_listener){.size = sizeof(struct shmtrain_listener), .arg = store, .epoch = look});
        WELL(store, shmtrain_store_train(store, data));
        assert_true(is_renumbered(store) == (alike == 1));
        if (alike)
            assert_true(seen->not_ascending > 10000 && seen->most_frequent > 15000 / 5);
        else
            assert_true(seen->not_ascending == 0 && seen->ascending == 15000);
        check_still(store);
        shmtrain_store_destroy(store);
    }
}

static void a_model_sees_columns_as_they_are_unless_it_does_not_mind(void **state) {
    (void)state;
    assert_sees_columns(SPARSE);
}

static void a_model_sees_columns_of_a_cache_as_those_of_its_source(void **state) {
    struct shmtrain_store *store = store_with((const char *[OPTIONS]){NULL});
    (void)state;
    WELL(store, shmtrain_store_convert(store, SPARSE, "sparse.cache"));
    shmtrain_store_destroy(store);
    assert_sees_columns("sparse.cache");
}

/* ---- stores with a name ---- */

static struct shmtrain_store *maker;
static void stop(int signal) {
    (void)signal;
    shmtrain_store_stop(maker);
}

static pid_t make_named(const char *name, const char *model) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    maker = store_with((const char *[OPTIONS]){"name", name, "guests", "2", "epochs", "100000"});
    signal(SIGTERM, stop);
    WELL(maker, shmtrain_store_offer(maker, &STILL));
    WELL(maker, shmtrain_store_set(maker, "model", model));
    WELL(maker, shmtrain_store_train(maker, SPARSE));
    const int ok = is_renumbered(maker);
    shmtrain_store_destroy(maker);
    _exit(ok ? 0 : 1);
}

static void end_named(const char *name, pid_t pid) {
    char message[512];
    int status;
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(shmtrain_named_remove(name, 1, message, sizeof message), 0);
}

static void leave_at_once(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)so_far;
    (void)epoch;
    shmtrain_store_stop(arg);
}

static void observers_and_guests_see_features(void **state) {
    static const char *const MODELS[] = {"still", "logistic"};
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "test_places-%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        const pid_t pid = make_named(name, MODELS[i]);
        struct shmtrain_store *store = store_with(NULL);
        while (shmtrain_store_observe(store, name) < 0) usleep(2000);
        assert_true(is_renumbered(store));
        if (i == 0) check_still(store);
        shmtrain_store_destroy(store);
        store = store_with(NULL);
        WELL(store, shmtrain_store_offer(store, &STILL));
        shmtrain_store_listen(store, &(const struct shmtrain_listener){
                                         .size = sizeof(struct shmtrain_listener), .arg = store, .epoch = leave_at_once});
        WELL(store, shmtrain_store_join(store, name, NULL, NULL));
        if (i == 0) check_still(store);
        end_named(name, pid);
        if (i == 1) { /* what it has left is a model that is good for something, by feature */
            const struct shmtrain_evaluation *evaluation;
            WELL(store, shmtrain_store_evaluate(store, SPARSE, &evaluation));
            assert_true(evaluation->loss < 0.6);
        }
        shmtrain_store_destroy(store);
    }
}

/* ---- */

static int share_seen(void **state) {
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return seen == MAP_FAILED ? -1 : make_folder(state);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(the_most_frequent_columns_come_first),
        TEST(much_data_is_counted_in_a_sample),
        TEST(nothing_is_renumbered_where_it_cannot_pay),
        TEST(parameters_are_the_same_in_either_order),
        TEST(sync_has_the_same_bits_for_every_number_of_workers),
        TEST(files_are_renumbered_too_and_validation_with_them),
        TEST(inside_the_frequent_ones_are_first_and_outside_nobody_sees_it),
        TEST(a_further_run_on_other_data_continues_with_parameters_and_state),
        TEST(what_is_written_is_read),
        TEST(saved_models_and_predictions_are_the_same),
        TEST(a_model_sees_columns_as_they_are_unless_it_does_not_mind),
        TEST(a_model_sees_columns_of_a_cache_as_those_of_its_source),
        TEST(observers_and_guests_see_features),
    };
    return cmocka_run_group_tests(tests, share_seen, remove_folder);
}
