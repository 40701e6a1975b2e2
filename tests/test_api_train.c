/* Training models on data through the library: validation sets of every kind, the split, L2 shares, saving. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <stdio.h>

#include "loading/split.h"
#include "api/store_priv.h"
#include "base/random.h"

/* ---- a folder with data ---- */

enum { N = 300 };
/* N examples whose label is the sign of feature 2, with noise; features 1 to 40, four each. `strange`: also ids that nobody has
 * seen. */
static void write_data(const char *path, uint64_t seed, bool strange) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < N; i++) {
        const double x = shmt_unit(shmt_hash64(seed, i, 0, 0)) * 2 - 1, noise = shmt_unit(shmt_hash64(seed, i, 1, 0)) - 0.5;
        fprintf(f, "%s 2:%.3f", x + noise > 0 ? "+1" : "-1", x);
        for (uint64_t k = 0; k < 3; k++)
            fprintf(f, " %d:%.3f", (int)(3 + 12 * k + shmt_below(shmt_hash64(seed, i, 2, k), 12)), noise + 1);
        fprintf(f, "%s\n", strange ? " 1000:5 2000000:7" : " 40:1");
    }
    assert_int_equal(fclose(f), 0);
}

/* ---- validation ---- */

static void the_split_is_disjoint_complete_and_a_function_of_the_seed(void **state) {
    static unsigned char seen[10000];
    struct shmt_split a, b, other;
    (void)state;
    memset(seen, 0, sizeof seen);
    assert_int_equal(shmt_split_make(&a, 5, 10000, 0.2, NULL), 0);
    assert_int_equal(shmt_split_make(&b, 5, 10000, 0.2, NULL), 0);
    assert_int_equal(shmt_split_make(&other, 6, 10000, 0.2, NULL), 0);
    for (uint64_t i = 0; i < a.n_train; i++) seen[a.train_example[i]] += 1;
    for (uint64_t i = 0; i < a.n_valid; i++) seen[a.valid_example[i]] += 1;
    for (uint64_t i = 0; i < 10000; i++) assert_int_equal(seen[i], 1);
    for (uint64_t i = 1; i < a.n_valid; i++) assert_true(a.valid_example[i] > a.valid_example[i - 1]);
    assert_true(a.n_valid > 1800 && a.n_valid < 2200); /* 5 standard deviations of 40 */
    assert_int_equal(b.n_valid, a.n_valid);
    assert_memory_equal(b.valid_example, a.valid_example, a.n_valid * sizeof(uint32_t));
    assert_true(other.n_valid != a.n_valid || memcmp(other.valid_example, a.valid_example, a.n_valid * sizeof(uint32_t)) != 0);
    shmt_split_free(&a);
    shmt_split_free(&b);
    shmt_split_free(&other);
}

static void a_split_that_leaves_one_side_empty_is_refused(void **state) {
    struct shmt_split split = {0};
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_split_make(&split, 1, 10, 1e-9, &e), SHMTRAIN_E_DATA);
    assert_non_null(strstr(e.text, "leaves one side empty"));
    assert_int_equal(shmt_split_make(&split, 1, 1, 0.5, NULL), SHMTRAIN_E_DATA);
    shmt_split_free(&split);
}

static void a_share_of_the_data_validates_the_same_for_every_number_of_workers(void **state) {
    static const char *const WORKERS[] = {"1", "2", "3", "8"};
    struct shmtrain_epoch first = {0};
    uint64_t hash = 0, n_valid = 0;
    (void)state;
    write_data("train.svm", 1, false);
    for (size_t i = 0; i < 8; i++) {
        struct shmtrain_store *store = open_training(WORKERS[i / 2], "sync", "0.25");
        WELL(store, shmtrain_store_set(store, "spawn", i % 2 ? "threads" : "processes"));
        WELL(store, shmtrain_store_train(store, "train.svm"));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        struct shmtrain_epoch last = r->epoch[2];
        last.seconds = 0;
        assert_int_equal(r->dataset.examples + r->valid.examples, N);
        assert_int_equal(r->dataset.nonzeros + r->valid.nonzeros, 5 * N);
        assert_int_equal(last.examples, r->dataset.examples);
        assert_true(last.valid_loss < 0.69 && last.valid_auc > 0.7); /* it learns something */
        if (i == 0) {
            first = last;
            hash = r->parameters_xxh64;
            n_valid = r->valid.examples;
        }
        assert_int_equal(r->valid.examples, n_valid);
        assert_true(r->parameters_xxh64 == hash);
        assert_memory_equal(&last, &first, sizeof last);
        shmtrain_store_destroy(store);
    }
}

static void validation_says_the_same_with_and_without_features_that_nobody_has_seen(void **state) {
    double loss[2];
    (void)state;
    write_data("train.svm", 1, false);
    for (int strange = 0; strange < 2; strange++) {
        struct shmtrain_store *store = open_training("2", "sync", "valid.svm");
        write_data("valid.svm", 2, true);
        if (!strange) { /* the same lines, cut before the first unknown id */
            static char text[100000];
            FILE *f = fopen("valid.svm", "r");
            assert_non_null(f);
            text[fread(text, 1, sizeof text - 1, f)] = '\0';
            fclose(f);
            for (char *at = text; (at = strstr(at, " 1000:5 2000000:7"));) memset(at, ' ', 17);
            write_text("valid.svm", text);
        }
        WELL(store, shmtrain_store_train(store, "train.svm"));
        loss[strange] = shmtrain_store_report(store)->epoch[2].valid_loss;
        assert_int_equal(shmtrain_store_report(store)->valid.nonzeros, 4 * N);
        assert_int_equal(shmtrain_store_report(store)->valid.features, 40);
        shmtrain_store_destroy(store);
    }
    assert_true(loss[0] == loss[1] && loss[0] < 0.69);
}

static void validation_data_that_does_not_fit_is_refused_with_its_place(void **state) {
    struct shmtrain_store *store = open_training("2", "async", "valid.svm");
    (void)state;
    write_data("train.svm", 1, false);
    write_text("valid.svm", "+1 1:1\n-1 1:1\n# nothing\n0 1:1\n");
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_DATA, "valid.svm:4: label 0 does not occur");
    WELL(store, shmtrain_store_set(store, "valid", "1.5"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE, "between 0 and 1");
    WELL(store, shmtrain_store_set(store, "valid", "no-such-file"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_SYSTEM, "no-such-file");
    WELL(store, shmtrain_store_set(store, "valid", "none"));
    WELL(store, shmtrain_store_train(store, "train.svm")); /* the store is none the worse */
    assert_true(isnan(shmtrain_store_report(store)->epoch[2].valid_loss));
    shmtrain_store_destroy(store);
}

static void training_data_that_cannot_be_learned_from_is_refused_with_its_place(void **state) {
    struct shmtrain_store *store = open_training("2", "async", "");
    (void)state;
    write_text("train.svm", "1 1:1\n1 2:1\n");
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_DATA, "train.svm:1: the data has only one label");
    write_text("train.svm", "1 1:1\n2 2:1\n3 1:1\n");
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_DATA, "train.svm:3: the data has more than two labels");
    write_text("train.svm", "1 1:1\n2 2:x\n");
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_DATA, "train.svm:2:5");
    shmtrain_store_destroy(store);
}

/* After one step each weight is infinite, each example on its right side and each loss 0. */
static void parameters_that_are_no_numbers_are_told(void **state) {
    struct shmtrain_store *store = open_training("1", "async", "none");
    (void)state;
    write_text("train.svm", "1 1:1e30\n2 2:1e30\n");
    WELL(store, shmtrain_store_set(store, "rate", "1e12"));
    WELL(store, shmtrain_store_set(store, "bias", "0"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_NUMBERS,
            "at the end of the run row 0 of table \"weight\" is infinite: use a smaller rate than 1e+12 (option rate)");
    shmtrain_store_destroy(store);
}

/* ---- L2 ---- */

/* Feature 1 is in all four examples, feature 2 in two, feature 3 in one, feature 4 (a zero) in none. */
static void a_features_share_of_l2_is_how_rarely_it_comes(void **state) {
    struct shmtrain_store *store = open_training("1", "async", "none");
    (void)state;
    write_text("train.svm", "1 1:1 2:1\n2 1:2 2:1 4:0\n1 1:1 3:1 5:1\n2 1:1 5:1\n");
    WELL(store, shmtrain_store_set(store, "l2", "0.01"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    const float *share = shmt_array_at(store->run.backend, store->params.held.store, SHMT_ARRAY_L2_SHARE);
    assert_non_null(share);
    assert_true(share[0] == 1 && share[1] == 2 && share[2] == 4 && share[3] == 0 && share[4] == 2);
    assert_true(share[5] == 0);                             /* the bias */
    WELL(store, shmtrain_store_set(store, "mode", "sync")); /* whose updates regularise all rows */
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_null(shmt_array_at(store->run.backend, store->params.held.store, SHMT_ARRAY_L2_SHARE));
    shmtrain_store_destroy(store);
}

/* ---- saving ---- */

static void a_saved_model_holds_the_parameters_and_what_prediction_needs(void **state) {
    static unsigned char bytes[10000];
    static const char *const NOTES[] = {"\"shmtrain.model\":\"logistic\"",
                                        "\"shmtrain.label_low\":\"-1\"",
                                        "\"shmtrain.label_high\":\"1\"",
                                        "\"shmtrain.features\":\"40\"",
                                        "\"shmtrain.bias\":\"1\"",
                                        "\"shmtrain.first_feature\":\"1\"",
                                        "\"weight\":{\"dtype\":\"F32\",\"shape\":[41],\"data_offsets\":[0,164]}"};
    struct shmtrain_store *store = open_training("2", "async", "none");
    float weight[41];
    uint64_t header;
    (void)state;
    write_data("train.svm", 1, false);
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_save(store, "model"));
    WELL(store, shmtrain_store_read(store, 0, 0, 41, weight));
    FILE *f = fopen("model", "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes - 1, f);
    fclose(f);
    memcpy(&header, bytes, 8);
    assert_int_equal(n, 8 + header + sizeof weight);
    assert_memory_equal(bytes + 8 + header, weight, sizeof weight);
    bytes[8 + header] = '\0';
    for (size_t i = 0; i < sizeof NOTES / sizeof *NOTES; i++)
        if (!strstr((char *)bytes + 8, NOTES[i])) fail_msg("%s does not say %s", (char *)bytes + 8, NOTES[i]);
    refused(store, shmtrain_store_save(store, "no/folder/model"), SHMTRAIN_E_SYSTEM, "no/folder/model");
    shmtrain_store_destroy(store);
}

static void read_model(char *text, size_t bytes) {
    FILE *f = fopen("model", "rb");
    assert_non_null(f);
    const size_t n = fread(text, 1, bytes - 1, f);
    fclose(f);
    assert_true(n > 8);
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\0') text[i] = ' ';
    text[n] = '\0';
}

static void the_notes_of_a_model_are_those_of_its_run_not_of_later_options(void **state) {
    static char text[10000];
    struct shmtrain_store *store = open_training("2", "async", "none");
    (void)state;
    write_data("train.svm", 1, false);
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_set(store, "bias", "0"));
    WELL(store, shmtrain_store_save(store, "model"));
    read_model(text, sizeof text);
    assert_non_null(strstr(text, "\"shmtrain.bias\":\"1\""));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_save(store, "model"));
    read_model(text, sizeof text);
    assert_non_null(strstr(text, "\"shmtrain.bias\":\"0\""));
    shmtrain_store_destroy(store);
}

static void a_train_that_fails_at_its_data_leaves_the_parameters_and_their_notes(void **state) {
    static char before[10000], after[10000];
    struct shmtrain_store *store = open_training("2", "async", "none");
    float weight[2][41];
    (void)state;
    write_data("train.svm", 1, false);
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_read(store, 0, 0, 41, weight[0]));
    WELL(store, shmtrain_store_save(store, "model"));
    read_model(before, sizeof before);
    refused(store, shmtrain_store_train(store, "no-such-file"), SHMTRAIN_E_SYSTEM, "no-such-file");
    refused(store, shmtrain_store_table(store, "late", 1, 1), SHMTRAIN_E_USAGE, "before the first run");
    WELL(store, shmtrain_store_read(store, 0, 0, 41, weight[1]));
    assert_memory_equal(weight[1], weight[0], sizeof weight[0]);
    assert_int_equal(unlink("model"), 0);
    WELL(store, shmtrain_store_save(store, "model"));
    read_model(after, sizeof after);
    assert_string_equal(after, before);
    shmtrain_store_destroy(store);
}

/* ---- the automatic rate ---- */

static void keep_note(void *arg, const char *line) { snprintf(arg, 200, "%s", line); }

/* The bias has length 1: it would set the pace. */
static void small_features_get_no_huge_rate_and_are_learned(void **state) {
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        char note[200] = "";
        const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = note, .note = keep_note};
        struct shmtrain_store *store = open_training("2", sync ? "sync" : "async", "valid.svm");
        for (int valid = 0; valid < 2; valid++) {
            FILE *f = fopen(valid ? "valid.svm" : "train.svm", "w");
            assert_non_null(f);
            for (uint64_t i = 0; i < 2000; i++) {
                const double x = shmt_unit(shmt_hash64(5 + (uint64_t)valid, i, 0, 0)) * 2 - 1;
                fprintf(f, "%d 1:%.6f 2:%.6f\n", x > 0 ? 1 : -1, x / 100, 0.01);
            }
            assert_int_equal(fclose(f), 0);
        }
        shmtrain_store_listen(store, &listener);
        WELL(store, shmtrain_store_train(store, "train.svm"));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_true(r->rate > 0 && r->rate <= (sync ? 12 : 2));
        assert_string_equal(note, ""); /* nobody is asked to scale them */
        assert_true(r->scaled == 1 && r->epoch[2].valid_auc > 0.95 && r->epoch[2].valid_accuracy > 0.95);
        shmtrain_store_destroy(store);
    }
}

static int take_work_and_leave(shmtrain_session *s, void *arg) {
    struct shmtrain_work work;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &work)) == 1)
        if ((rc = shmtrain_clock(s, NULL)) < 0) break;
    return rc;
}

/* Parameters are turned back once, behind the run that was on scaled features, and not behind the next one of the store. */
static void what_a_store_does_next_leaves_parameters_alone(void **state) {
    struct shmtrain_store *store = open_training("1", "sync", "none");
    float before[3], after[3];
    (void)state;
    FILE *f = fopen("train.svm", "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 500; i++) {
        const double x = shmt_unit(shmt_hash64(5, i, 0, 0)) * 2 - 1;
        fprintf(f, "%d 1:%.6f 2:%.6f\n", x > 0 ? 1 : -1, 1000 * x, 7 + x);
    }
    assert_int_equal(fclose(f), 0);
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_int_equal(shmtrain_store_report(store)->scaled, 1);
    WELL(store, shmtrain_store_read(store, 0, 0, 3, before));
    WELL(store, shmtrain_store_examples(store, 10));
    WELL(store, shmtrain_store_run(store, take_work_and_leave, NULL));
    WELL(store, shmtrain_store_read(store, 0, 0, 3, after));
    assert_memory_equal(after, before, sizeof before);
    assert_int_equal(shmtrain_store_report(store)->scaled, 0);
    shmtrain_store_destroy(store);
}

static void write_lines(const char *path, const char *lines) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(lines, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* The train loss of the last of so many epochs, async with one worker. */
static double loss_after(const char *epochs) {
    struct shmtrain_store *store = open_training("1", "async", "none");
    WELL(store, shmtrain_store_set(store, "epochs", epochs));
    WELL(store, shmtrain_store_set(store, "bias", "0"));
    WELL(store, shmtrain_store_set(store, "model", "linear"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    const double loss = r->epoch[r->n_epochs - 1].train_loss;
    shmtrain_store_destroy(store);
    return loss;
}

/* The least loss is 0.05, at (3.4, 3.4): far away for steps of the automatic rate. */
static void a_longer_run_learns_longer(void **state) {
    (void)state;
    write_lines("train.svm", "3 1:1\n7 1:2\n3 2:1\n7 2:2\n");
    const double few = loss_after("5"), many = loss_after("100"), most = loss_after("1000");
    assert_true(few > 1 && many < 0.25 && most < 0.051);
}

/* Two labels, 1000 and 1003; with weights the second one counts 99 times as much. */
static void a_linear_bias_begins_at_the_mean_label(void **state) {
    (void)state;
    for (int weighted = 0; weighted < 2; weighted++)
        for (int sync = 0; sync < 2; sync++) {
            struct shmtrain_store *store = open_training(sync ? "2" : "1", sync ? "sync" : "async", "none");
            float row[2];
            write_lines("train.svm", "1000 1:0.5\n1003 1:1\n");
            write_lines("train.weights", "1\n99\n");
            WELL(store, shmtrain_store_set(store, "epochs", "1"));
            WELL(store, shmtrain_store_set(store, "model", "linear"));
            WELL(store, shmtrain_store_set(store, "rate", "1e-12")); /* what it begins with is what it ends with */
            if (weighted) WELL(store, shmtrain_store_set(store, "weights", "train.weights"));
            WELL(store, shmtrain_store_train(store, "train.svm"));
            WELL(store, shmtrain_store_read(store, 0, 0, 2, row));
            assert_true(fabsf(row[0]) < 1e-6f && fabsf(row[1] - (weighted ? 1002.97f : 1001.5f)) < 1e-3f);
            shmtrain_store_destroy(store);
        }
}

static void large_features_are_learned(void **state) {
    char note[200] = "";
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = note, .note = keep_note};
    struct shmtrain_store *store = open_training("1", "async", "none");
    (void)state;
    write_lines("train.svm", "1 1:100\n-1 1:-100\n");
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_train(store, "train.svm"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_string_equal(note, "");
    assert_true(r->scaled == 1 && r->epoch[r->n_epochs - 1].train_loss < 0.4);
    shmtrain_store_destroy(store);
}

/* A factor that all weights have in common is taken out of the automatic rate; powers of two round nothing. */
static void weights_that_are_all_the_same_change_nothing(void **state) {
    static const char *const WEIGHTS[] = {"", "1:4,-1:4"}, *const MODES[] = {"async", "sync"},
                             *const RULES[] = {"sgd", "momentum"};
    (void)state;
    write_data("train.svm", 1, false);
    for (int i = 0; i < 4; i++) {
        uint64_t hash[2];
        for (int weighted = 0; weighted < 2; weighted++) {
            struct shmtrain_store *store = open_training("1", MODES[i % 2], "none");
            WELL(store, shmtrain_store_set(store, "optimizer", RULES[i / 2]));
            WELL(store, shmtrain_store_set(store, "class-weight", WEIGHTS[weighted]));
            WELL(store, shmtrain_store_train(store, "train.svm"));
            hash[weighted] = shmtrain_store_report(store)->parameters_xxh64;
            shmtrain_store_destroy(store);
        }
        assert_true(hash[0] == hash[1]);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(the_split_is_disjoint_complete_and_a_function_of_the_seed),
        TEST(a_split_that_leaves_one_side_empty_is_refused),
        TEST(a_share_of_the_data_validates_the_same_for_every_number_of_workers),
        TEST(validation_says_the_same_with_and_without_features_that_nobody_has_seen),
        TEST(validation_data_that_does_not_fit_is_refused_with_its_place),
        TEST(training_data_that_cannot_be_learned_from_is_refused_with_its_place),
        TEST(parameters_that_are_no_numbers_are_told),
        TEST(a_features_share_of_l2_is_how_rarely_it_comes),
        TEST(a_saved_model_holds_the_parameters_and_what_prediction_needs),
        TEST(the_notes_of_a_model_are_those_of_its_run_not_of_later_options),
        TEST(a_train_that_fails_at_its_data_leaves_the_parameters_and_their_notes),
        TEST(small_features_get_no_huge_rate_and_are_learned),
        TEST(what_a_store_does_next_leaves_parameters_alone),
        TEST(a_longer_run_learns_longer),
        TEST(a_linear_bias_begins_at_the_mean_label),
        TEST(large_features_are_learned),
        TEST(weights_that_are_all_the_same_change_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
