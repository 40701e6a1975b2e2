/* Images: networks see them changed and normalised, and they are handed out with what they are taken for. Changes of --augment follow
 * neither workers nor threads and touch training alone; channels are normalised by what the training examples show, wherever the
 * model is used later; and what does not fit is refused. Single images: test_layers_images.c. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <stdbool.h>

enum { N = 96, SIDE = 8, CHANNELS = 3, PIXELS = CHANNELS * SIDE * SIDE };

/* Bright bars, upright or lying, in a colour, with some grain. */
struct pictures {
    float dense[N * PIXELS], label[N];
};

static void draw(struct pictures *p) {
    *p = (struct pictures){0};
    for (int i = 0; i < N; i++) {
        float *image = p->dense + i * PIXELS;
        p->label[i] = (float)(i % 2);
        for (int k = 0; k < PIXELS; k++) image[k] = (float)((k * 7919 + i * 104729) % 97) / 500;
        for (int k = 0; k < SIDE; k++)
            for (int c = 0; c <= i % CHANNELS; c++)
                image[c * SIDE * SIDE + (i % 2 ? k * SIDE + i % SIDE : (i % SIDE) * SIDE + k)] += 0.7f;
    }
}

static void give(struct shmtrain_store *store, const char *name, const struct pictures *p) {
    const struct shmtrain_arrays arrays = {.size = sizeof arrays,
                                           .n_examples = N,
                                           .n_features = PIXELS,
                                           .dense = p->dense,
                                           .label = p->label,
                                           .channels = CHANNELS,
                                           .height = SIDE,
                                           .width = SIDE};
    WELL(store, shmtrain_store_arrays(store, name, &arrays));
}

static struct shmtrain_store *store_of(const char *const set[][2], size_t n) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < n; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    return store;
}

/* ---- bits ---- */

#define CHANGES "shift:1 flip crop:2"

static uint64_t sum_of(const char *augment, const char *normalise, const char *workers, const char *threads) {
    static struct pictures pictures;
    const char *const set[][2] = {{"model", "net"},        {"net", "conv:4:3 relu flatten fc:2"},
                                  {"mode", "sync"},        {"epochs", "3"},
                                  {"batch", "32"},         {"workers", workers},
                                  {"threads", threads},    {"augment", augment},
                                  {"normalise", normalise}};
    struct shmtrain_store *store = store_of(set, sizeof set / sizeof *set);
    draw(&pictures);
    give(store, "bars", &pictures);
    WELL(store, shmtrain_store_train(store, "arrays:bars"));
    const uint64_t sum = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return sum;
}

static void changed_images_have_the_same_bits_for_all_workers_and_threads(void **state) {
    const uint64_t sum = sum_of(CHANGES, "auto", "1", "1");
    (void)state;
    assert_true(sum_of(CHANGES, "auto", "3", "1") == sum);
    assert_true(sum_of(CHANGES, "auto", "2", "2") == sum);
    assert_true(sum_of(CHANGES, "none", "1", "1") != sum);
    assert_true(sum_of("none", "auto", "1", "1") != sum);
    assert_true(sum_of("flip", "auto", "1", "1") != sum);
    assert_true(sum_of("auto", "auto", "1", "1") == sum_of("shift:1", "auto", "3", "1"));
}

/* ---- training alone ---- */

struct answers {
    float output[N][2];
    uint32_t n;
};

static int hear(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    struct answers *answers = arg;
    (void)label;
    assert_int_equal(n, 2);
    memcpy(answers->output[example], output, 2 * sizeof *output);
    answers->n++;
    return 0;
}

static struct shmtrain_store *trained(const struct pictures *pictures, const char *model, const char *augment) {
    const char *const set[][2] = {{"model", model},      {"mode", "sync"}, {"workers", "2"},    {"epochs", "8"},
                                  {"optimizer", "adam"}, {"batch", "16"},  {"augment", augment}};
    struct shmtrain_store *store = store_of(set, sizeof set / sizeof *set);
    give(store, "bars", pictures);
    WELL(store, shmtrain_store_train(store, "arrays:bars"));
    return store;
}

/* The same images with other numbers: what was changed by number would now have other outputs. */
static void scored_images_are_not_changed(void **state) {
    static struct pictures pictures, turned;
    static struct answers first, second;
    (void)state;
    draw(&pictures);
    for (int i = 0; i < N; i++)
        memcpy(turned.dense + i * PIXELS, pictures.dense + (N - 1 - i) * PIXELS, PIXELS * sizeof(float));
    struct shmtrain_store *store = trained(&pictures, "cnn", CHANGES);
    give(store, "turned", &turned);
    WELL(store, shmtrain_store_predict(store, "arrays:bars", 1, hear, &first));
    WELL(store, shmtrain_store_predict(store, "arrays:turned", 1, hear, &second));
    assert_int_equal(first.n + second.n, 2 * N);
    for (int i = 0; i < N; i++) assert_true(fabsf(first.output[i][0] - second.output[N - 1 - i][0]) < 1e-5f);
    shmtrain_store_destroy(store);
}

/* ---- normalising ---- */

/* Means and deviations by the book. */
static void channels_are_normalised_by_the_training_examples(void **state) {
    static struct pictures pictures;
    float input[2 * CHANNELS];
    const char *name;
    uint64_t rows, width;
    int t = 0;
    (void)state;
    draw(&pictures);
    for (int i = 0; i < N * PIXELS; i++) pictures.dense[i] *= 10; /* else they were near enough to 1 */
    struct shmtrain_store *store = trained(&pictures, "mlp", "none");
    while (shmtrain_store_table_at(store, t, &name, &rows, &width) == 0 && strcmp(name, "input") != 0) t++;
    assert_string_equal(name, "input");
    assert_int_equal(rows, CHANNELS);
    assert_int_equal(width, 2);
    WELL(store, shmtrain_store_read(store, t, 0, rows, input));
    for (int c = 0; c < CHANNELS; c++) {
        double sum = 0, square = 0;
        for (int i = 0; i < N; i++)
            for (int k = 0; k < SIDE * SIDE; k++) sum += (double)pictures.dense[i * PIXELS + c * SIDE * SIDE + k];
        const double mean = sum / (N * SIDE * SIDE);
        for (int i = 0; i < N; i++)
            for (int k = 0; k < SIDE * SIDE; k++) {
                const double off = (double)pictures.dense[i * PIXELS + c * SIDE * SIDE + k] - mean;
                square += off * off;
            }
        assert_true(fabs((double)input[2 * c] - mean) < 1e-6);
        assert_true(fabs((double)input[2 * c + 1] - sqrt(square / (N * SIDE * SIDE))) < 1e-6);
    }
    shmtrain_store_destroy(store);
}

/* Each channel on a scale of its own: a network that sees them normalised learns the same, in training and from its file. */
static void the_scale_of_a_channel_does_not_matter(void **state) {
    static struct pictures pictures, scaled;
    static struct answers first, second, loaded;
    struct shmtrain_store *store;
    (void)state;
    draw(&pictures);
    draw(&scaled);
    for (int i = 0; i < N * PIXELS; i++) {
        pictures.dense[i] *= 8;
        scaled.dense[i] = scaled.dense[i] * 256 - (float)(i / (SIDE * SIDE) % CHANNELS);
    }
    store = trained(&pictures, "mlp", "none");
    WELL(store, shmtrain_store_predict(store, "arrays:bars", 1, hear, &first));
    shmtrain_store_destroy(store);
    store = trained(&scaled, "mlp", "none");
    WELL(store, shmtrain_store_predict(store, "arrays:bars", 1, hear, &second));
    WELL(store, shmtrain_store_save(store, "bars.model"));
    shmtrain_store_destroy(store);
    for (int i = 0; i < N; i++) assert_true(fabsf(first.output[i][0] - second.output[i][0]) < 1e-3f);
    store = store_of(NULL, 0);
    give(store, "bars", &scaled);
    WELL(store, shmtrain_store_load(store, "bars.model"));
    WELL(store, shmtrain_store_predict(store, "arrays:bars", 1, hear, &loaded));
    assert_memory_equal(&second, &loaded, sizeof second);
    shmtrain_store_destroy(store);
}

static void nothing_is_normalised_where_none_is_said(void **state) {
    static struct pictures pictures;
    const char *const set[][2] = {{"model", "mlp"}, {"normalise", "none"}, {"epochs", "1"}};
    const char *name;
    uint64_t rows, width;
    (void)state;
    draw(&pictures);
    for (int images = 0; images < 2; images++) {
        struct shmtrain_store *store = store_of(set, 3);
        if (images) give(store, "bars", &pictures);
        WELL(store, shmtrain_store_train(store, images ? "arrays:bars" : "builtin:dense:examples=100,features=8"));
        int n = 0;
        while (shmtrain_store_table_at(store, n, &name, &rows, &width) == 0) n++;
        assert_int_equal(n, 4);
        shmtrain_store_destroy(store);
    }
}

/* ---- images with what they are taken for ---- */

struct shown {
    const struct pictures *pictures;
    bool labelled, likely;
    uint32_t n, right;
};

static int look(void *arg, const struct shmtrain_image *image) {
    struct shown *shown = arg;
    assert_int_equal(image->example, shown->n++);
    assert_int_equal(image->channels, CHANNELS);
    assert_int_equal(image->height, SIDE);
    assert_int_equal(image->width, SIDE);
    assert_memory_equal(image->pixel, shown->pictures->dense + image->example * PIXELS, PIXELS * sizeof(float));
    assert_true(shown->labelled ? image->label == shown->pictures->label[image->example] : isnan(image->label));
    if (shown->likely)
        assert_true(image->probability >= 0.5f && image->probability <= 1);
    else
        assert_true(isnan(image->probability));
    shown->right += image->predicted == shown->pictures->label[image->example];
    return 0;
}

/* By whatever model, in whichever layout of rows; and without labels. */
static void images_are_handed_out_with_what_they_are_taken_for(void **state) {
    static struct pictures pictures;
    static const char *const MODELS[] = {"cnn", "softmax", "logistic", "svm"};
    (void)state;
    draw(&pictures);
    for (int i = 0; i < N * PIXELS; i += 3) pictures.dense[i] = 0;
    const struct shmtrain_arrays unlabelled = {.size = sizeof unlabelled,
                                               .n_examples = N,
                                               .n_features = PIXELS,
                                               .dense = pictures.dense,
                                               .channels = CHANNELS,
                                               .height = SIDE,
                                               .width = SIDE};
    for (size_t m = 0; m < sizeof MODELS / sizeof *MODELS; m++) {
        const char *const set[][2] = {{"model", MODELS[m]}, {"mode", "sync"}, {"workers", "2"}, {"epochs", "3"}};
        struct shmtrain_store *store = store_of(set, 4);
        struct shown labelled = {.pictures = &pictures, .labelled = true, .likely = strcmp(MODELS[m], "svm") != 0};
        give(store, "bars", &pictures);
        WELL(store, shmtrain_store_arrays(store, "bare", &unlabelled));
        WELL(store, shmtrain_store_train(store, "arrays:bars"));
        struct shown bare = labelled;
        bare.labelled = false;
        WELL(store, shmtrain_store_predict_images(store, "arrays:bars", look, &labelled));
        WELL(store, shmtrain_store_predict_images(store, "arrays:bare", look, &bare));
        assert_int_equal(labelled.n, N);
        assert_int_equal(bare.n, N);
        assert_int_equal(bare.right, labelled.right);
        refused(store, shmtrain_store_predict_images(store, "builtin:dense:examples=100,features=8", look, &labelled),
                SHMTRAIN_E_DATA, "builtin:dense:examples=100,features=8: the data are no images whose shape is known");
        refused(store, shmtrain_store_predict_images(store, "arrays:bars", NULL, NULL), SHMTRAIN_E_USAGE,
                "a function that is shown images");
        shmtrain_store_destroy(store);
    }
}

static int stop_at_10(void *arg, const struct shmtrain_image *image) {
    (void)arg;
    return image->example == 10 ? 77 : 0;
}

static void who_is_shown_images_may_end_it(void **state) {
    static struct pictures pictures;
    (void)state;
    draw(&pictures);
    struct shmtrain_store *store = trained(&pictures, "mlp", "none");
    assert_int_equal(shmtrain_store_predict_images(store, "arrays:bars", stop_at_10, NULL), 77);
    shmtrain_store_destroy(store);
}

/* ---- what does not fit ---- */

/* As many numbers, or fewer, in another shape. */
static void images_of_another_shape_are_refused(void **state) {
    static struct pictures pictures;
    static const uint32_t SHAPES[][3] = {{1, 3 * SIDE, SIDE}, {CHANNELS, SIDE / 2, SIDE}};
    (void)state;
    draw(&pictures);
    struct shmtrain_store *store = trained(&pictures, "mlp", "none");
    for (size_t i = 0; i < 2; i++) {
        const uint32_t *of = SHAPES[i];
        char why[160];
        const struct shmtrain_arrays other = {.size = sizeof other,
                                              .n_examples = N,
                                              .n_features = (uint64_t)of[0] * of[1] * of[2],
                                              .dense = pictures.dense,
                                              .label = pictures.label,
                                              .channels = of[0],
                                              .height = of[1],
                                              .width = of[2]};
        const struct shmtrain_evaluation *e;
        struct shown shown = {.pictures = &pictures};
        snprintf(why, sizeof why, "arrays:other has images of %ux%ux%u, but the model was trained on images of 3x8x8", of[0],
                 of[1], of[2]);
        WELL(store, shmtrain_store_arrays(store, "other", &other));
        refused(store, shmtrain_store_evaluate(store, "arrays:other", &e), SHMTRAIN_E_DATA, why);
        refused(store, shmtrain_store_predict_images(store, "arrays:other", look, &shown), SHMTRAIN_E_DATA, why);
        WELL(store, shmtrain_store_set(store, "valid", "arrays:other"));
        snprintf(why, sizeof why, "arrays:other has images of %ux%ux%u, but arrays:bars has images of 3x8x8", of[0], of[1],
                 of[2]);
        refused(store, shmtrain_store_train(store, "arrays:bars"), SHMTRAIN_E_DATA, why);
        WELL(store, shmtrain_store_set(store, "valid", ""));
        WELL(store, shmtrain_store_arrays(store, "other", NULL));
    }
    shmtrain_store_destroy(store);
}

/* Of 4x4 pixels two convolutions leave nothing. */
static void images_that_are_too_small_are_refused(void **state) {
    static struct pictures pictures;
    const char *const set[][2] = {{"model", "cnn"}, {"epochs", "1"}};
    (void)state;
    draw(&pictures);
    for (uint32_t side = 4; side <= 6; side++) {
        const struct shmtrain_arrays small = {.size = sizeof small,
                                              .n_examples = N,
                                              .n_features = (uint64_t)side * side,
                                              .dense = pictures.dense,
                                              .label = pictures.label,
                                              .channels = 1,
                                              .height = side,
                                              .width = side};
        struct shmtrain_store *store = store_of(set, 2);
        char why[120];
        snprintf(why, sizeof why, "it needs images of 6x6 pixels or more, but these have %ux%u: use --model mlp", side, side);
        WELL(store, shmtrain_store_arrays(store, "small", &small));
        const int rc = shmtrain_store_train(store, "arrays:small");
        if (side < 6)
            refused(store, rc, SHMTRAIN_E_DATA, why);
        else
            WELL(store, rc);
        shmtrain_store_destroy(store);
    }
}

static void changes_that_do_not_fit_are_refused(void **state) {
    static struct pictures pictures;
    const char *const set[][2] = {{"model", "mlp"}};
    struct shmtrain_store *store = store_of(set, 1);
    (void)state;
    draw(&pictures);
    give(store, "bars", &pictures);
    refused(store, shmtrain_store_set(store, "augment", "flip shfit:2"), SHMTRAIN_E_USAGE,
            "augment \"flip shfit:2\": column 6: there is no change \"shfit:2\": write shift:PIXELS, crop:PIXELS or flip");
    refused(store, shmtrain_store_set(store, "normalise", "yes"), SHMTRAIN_E_USAGE, "normalise \"yes\": expected auto or none");
    WELL(store, shmtrain_store_set(store, "augment", "shift:8"));
    refused(store, shmtrain_store_train(store, "arrays:bars"), SHMTRAIN_E_USAGE,
            "--augment: shift:8 moves images of 8 x 8 pixels out of sight: take at most 7");
    refused(store, shmtrain_store_train(store, "builtin:dense:examples=100,features=8"), SHMTRAIN_E_USAGE,
            "--augment: the data are no images whose shape is known: use images, or leave it out");
    WELL(store, shmtrain_store_set(store, "model", "softmax"));
    refused(store, shmtrain_store_train(store, "arrays:bars"), SHMTRAIN_E_USAGE, "model softmax has no option augment");
    shmtrain_store_destroy(store);
}

/* Models share them; in lists they are there once. */
static void an_option_that_models_share_is_listed_once(void **state) {
    const struct shmtrain_option *o;
    int n[2] = {0};
    (void)state;
    for (size_t i = 0; (o = shmtrain_option_at(i)); i++) {
        n[0] += strcmp(o->name, "augment") == 0;
        n[1] += strcmp(o->name, "normalise") == 0;
    }
    assert_int_equal(n[0], 1);
    assert_int_equal(n[1], 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(changed_images_have_the_same_bits_for_all_workers_and_threads, deadline),
        cmocka_unit_test_setup(scored_images_are_not_changed, deadline),
        cmocka_unit_test_setup(channels_are_normalised_by_the_training_examples, deadline),
        cmocka_unit_test_setup(the_scale_of_a_channel_does_not_matter, deadline),
        cmocka_unit_test_setup(nothing_is_normalised_where_none_is_said, deadline),
        cmocka_unit_test_setup(images_are_handed_out_with_what_they_are_taken_for, deadline),
        cmocka_unit_test_setup(who_is_shown_images_may_end_it, deadline),
        cmocka_unit_test_setup(images_of_another_shape_are_refused, deadline),
        cmocka_unit_test_setup(images_that_are_too_small_are_refused, deadline),
        cmocka_unit_test_setup(changes_that_do_not_fit_are_refused, deadline),
        cmocka_unit_test(an_option_that_models_share_is_listed_once)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
