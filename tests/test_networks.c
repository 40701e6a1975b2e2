/* Networks as models: they learn what no linear model can, in every mode; bits in `sync` follow neither workers nor threads; models are
 * saved, checkpoints resumed; and what does not fit is refused. Single layers: test_layers_*.c. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <sys/stat.h>

#define DENSE "builtin:dense:examples=3000,features=20,classes=4,valid=500"

/* Either of two features, but not both: 400 examples with a little noise, in an order that says nothing. */
static void write_xor(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 400; i++) {
        const int a = i & 1, b = i >> 1 & 1;
        fprintf(f, "%d 1:%.2f 2:%.2f\n", a ^ b, a + 0.01 * (i % 7), b + 0.01 * (i % 11));
    }
    assert_int_equal(fclose(f), 0);
}

static struct shmtrain_store *store_of(const char *model, const char *mode, const char *workers) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    const char *const set[][2] = {{"model", model}, {"mode", mode}, {"workers", workers}, {"scale", "no"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    return store;
}

/* ---- learning ---- */

static void a_network_learns_what_no_linear_model_can(void **state) {
    static const char *const MODES[] = {"sync", "async", "ssp:2", "backup:1", "local:2"};
    (void)state;
    write_xor("xor.svm");
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        struct shmtrain_store *store = store_of("mlp", MODES[i], "2");
        const char *const set[][2] = {{"layers", "2-16-2"}, {"optimizer", "momentum"}, {"epochs", "60"}, {"valid", "xor.svm"},
                                      {"batch", "20"},      {"schedule", "constant"},  {"rate", "0.1"}};
        for (size_t k = 0; k < sizeof set / sizeof *set; k++) WELL(store, shmtrain_store_set(store, set[k][0], set[k][1]));
        if (i > 0 && i != 3) WELL(store, shmtrain_store_set(store, "item", "20"));
        WELL(store, shmtrain_store_train(store, "xor.svm"));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        if (r->epoch[r->n_epochs - 1].valid_accuracy < 1)
            fail_msg("%s: accuracy %g", MODES[i], r->epoch[r->n_epochs - 1].valid_accuracy);
        shmtrain_store_destroy(store);
    }
}

/* One in thousands, the other in thousandths and far from 0; and nobody says how large steps are. */
static void write_unequal(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 400; i++) {
        const int a = i & 1, b = i >> 1 & 1;
        fprintf(f, "%d 1:%.1f 2:%.6f\n", a ^ b, 5000.0 * a + i % 7, 8 + 0.001 * b + 0.00001 * (i % 11));
    }
    assert_int_equal(fclose(f), 0);
}

static double accuracy_of_unequal(const char *normalise) {
    struct shmtrain_store *store = store_of("mlp", "sync", "2");
    WELL(store, shmtrain_store_set(store, "normalise", normalise));
    WELL(store, shmtrain_store_set(store, "epochs", "150"));
    WELL(store, shmtrain_store_set(store, "valid", "unequal.svm"));
    WELL(store, shmtrain_store_train(store, "unequal.svm"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    const double accuracy = r->epoch[r->n_epochs - 1].valid_accuracy;
    shmtrain_store_destroy(store);
    return accuracy;
}

static void features_of_unequal_sizes_are_learned_alike(void **state) {
    (void)state;
    write_unequal("unequal.svm");
    assert_true(accuracy_of_unequal("auto") == 1);
    assert_true(accuracy_of_unequal("none") < 0.8);
}

/* ---- bits ---- */

static uint64_t sum_of(const char *model, const char *option, const char *text, const char *workers, const char *threads) {
    struct shmtrain_store *store = store_of(model, "sync", workers);
    WELL(store, shmtrain_store_set(store, option, text));
    WELL(store, shmtrain_store_set(store, "threads", threads));
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    WELL(store, shmtrain_store_train(store, DENSE));
    const uint64_t sum = shmtrain_store_report(store)->parameters_xxh64;
    assert_true(isfinite(shmtrain_store_report(store)->epoch[1].train_loss));
    shmtrain_store_destroy(store);
    return sum;
}

/* Statistics of batchnorm are those of chunks, and masks of dropout those of examples. */
static void in_sync_bits_follow_neither_workers_nor_threads(void **state) {
    static const char NET[] = "fc:24 batchnorm relu dropout:0.25 fc:24 layernorm tanh fc:4";
    (void)state;
    const uint64_t sum = sum_of("net", "net", NET, "1", "1");
    assert_true(sum_of("net", "net", NET, "2", "1") == sum);
    assert_true(sum_of("net", "net", NET, "4", "1") == sum);
    assert_true(sum_of("net", "net", NET, "2", "2") == sum);
    assert_true(sum_of("net", "net", "fc:24 relu fc:4", "1", "1") != sum);
    const uint64_t in_order = sum_of("mlp", "shuffle", "0", "1", "1"); /* of the file */
    assert_true(sum_of("mlp", "shuffle", "0", "2", "2") == in_order);
    assert_true(sum_of("mlp", "shuffle", "1", "1", "1") != in_order);
}

enum { LAYERS = 3, MOST_PARAMETERS = 80 + 584 + 90 };

/* Of a network that does hundreds of multiplications with each weight: 16 examples go through it at a time. */
#define BEFORE_LAST "conv:8:3 relu conv:8:3 relu dropout:0.2 pool:24:mean flatten "

struct images {
    const char *net, *loss, *class_weight, *chunks, *workers, *threads;
};

/* Returns the number of parameters, and the hash of all of them if `sum_out` is not NULL. */
static uint64_t learn_images(const struct images *with, float *parameters_out, uint64_t *sum_out) {
    struct shmtrain_store *store = store_of("net", "sync", with->workers);
    uint64_t at = 0;
    const char *const set[][2] = {{"net", with->net},         {"loss", with->loss}, {"class-weight", with->class_weight},
                                  {"chunks", with->chunks},   {"batch", "100"},     {"optimizer", "sgd"},
                                  {"threads", with->threads}, {"rate", "0.01"},     {"epochs", "3"}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++)
        if (set[k][1]) WELL(store, shmtrain_store_set(store, set[k][0], set[k][1]));
    WELL(store, shmtrain_store_train(store, "builtin:digits:examples=100"));
    if (sum_out) *sum_out = shmtrain_store_report(store)->parameters_xxh64;
    for (int t = 0; t < 2 * LAYERS; t++) {
        const char *name;
        uint64_t rows, width;
        WELL(store, shmtrain_store_table_at(store, t, &name, &rows, &width));
        assert_true(at + rows * width <= MOST_PARAMETERS);
        WELL(store, shmtrain_store_read(store, t, 0, rows, parameters_out + at));
        at += rows * width;
    }
    shmtrain_store_destroy(store);
    return at;
}

/* A chunk of 100 examples in seven parts, and chunks of 12 and 13, which are parts themselves: the same sums but for rounding. */
static void gradients_of_parts_are_added(void **state) {
    static float one[MOST_PARAMETERS], eight[MOST_PARAMETERS];
    static const struct images KINDS[] = {
        {BEFORE_LAST "fc:10", NULL, NULL, "1", "2", "1"},
        {BEFORE_LAST "fc:10", NULL, "3:2.5,7:0.25", "1", "2", "1"},
        {BEFORE_LAST "fc:1", "squared", NULL, "1", "2", "1"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        struct images with = KINDS[k];
        const uint64_t n = learn_images(&with, one, NULL);
        with.chunks = "8";
        assert_int_equal(learn_images(&with, eight, NULL), n);
        for (uint64_t i = 0; i < n; i++)
            if (!(fabsf(one[i] - eight[i]) < 1e-5f)) fail_msg("kind %zu: %g and %g", k, (double)one[i], (double)eight[i]);
    }
}

/* Chunks of 50, of four parts each. */
static void in_sync_bits_of_parts_follow_neither_workers_nor_threads(void **state) {
    static const char *const WITH[][2] = {{"2", "1"}, {"1", "2"}, {"4", "1"}};
    static float parameters[MOST_PARAMETERS];
    struct images with = {BEFORE_LAST "fc:10", NULL, NULL, "2", "1", "1"};
    uint64_t first, again;
    (void)state;
    (void)learn_images(&with, parameters, &first);
    for (size_t k = 0; k < sizeof WITH / sizeof *WITH; k++) {
        with.workers = WITH[k][0];
        with.threads = WITH[k][1];
        (void)learn_images(&with, parameters, &again);
        assert_true(again == first);
    }
}

/* Whoever keeps the parameters. */
static void in_sync_bits_are_the_same_on_every_backend(void **state) {
    static const char *const BACKENDS[] = {"shm", "copy", "plain"};
    uint64_t sum[3];
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct shmtrain_store *store = store_of("net", "sync", k == 0 ? "2" : "1");
        WELL(store, shmtrain_store_set(store, "backend", BACKENDS[k]));
        WELL(store, shmtrain_store_set(store, "threads", "1"));
        WELL(store, shmtrain_store_set(store, "net", "fc:24 batchnorm relu dropout:0.25 fc:4"));
        WELL(store, shmtrain_store_set(store, "epochs", "2"));
        WELL(store, shmtrain_store_train(store, DENSE));
        sum[k] = shmtrain_store_report(store)->parameters_xxh64;
        shmtrain_store_destroy(store);
    }
    assert_true(sum[1] == sum[0]);
    assert_true(sum[2] == sum[0]);
}

/* A batch of as many examples as chunks: each of them one number for each channel. */
static void chunks_of_one_example_leave_running_statistics(void **state) {
    struct shmtrain_store *store = store_of("net", "sync", "2");
    float mean[8], variance[8];
    (void)state;
    const char *const set[][2] = {{"net", "fc:8 batchnorm relu fc:4"}, {"batch", "4"}, {"chunks", "4"}, {"epochs", "2"}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) WELL(store, shmtrain_store_set(store, set[k][0], set[k][1]));
    WELL(store, shmtrain_store_train(store, DENSE));
    WELL(store, shmtrain_store_read(store, 4, 0, 1, mean));
    WELL(store, shmtrain_store_read(store, 5, 0, 1, variance));
    for (int c = 0; c < 8; c++) assert_true(mean[c] == 0 && variance[c] == 1);
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(r->epoch[1].train_loss < r->epoch[0].train_loss && r->epoch[1].train_loss < 0.7 * log(4));
    shmtrain_store_destroy(store);
}

enum { STEPS_PER_EPOCH = 5, EPOCHS = 4, KEPT_STEP = 3 };

static const char *checkpoint_of(uint32_t step) {
    static char path[64];
    snprintf(path, sizeof path, "checkpoint-%012u.safetensors", step);
    return path;
}

/* Running statistics, masks and moves of images that follow from seed, epoch and example; rates that do not follow from the end. */
static uint64_t learn_in_pieces(const char *workers, const char *resume) {
    struct shmtrain_store *store = store_of("net", "sync", workers);
    const char *const set[][2] = {{"net", "conv:4:5 batchnorm relu pool:4 dropout:0.25 flatten fc:10"},
                                  {"optimizer", "adam"},
                                  {"augment", "shift:2"},
                                  {"epochs", "4"},
                                  {"schedule", "constant"},
                                  {"checkpoint", "."},
                                  {"checkpoint-every", "3"},
                                  {"keep", "all"},
                                  {"resume", resume}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) WELL(store, shmtrain_store_set(store, set[k][0], set[k][1]));
    WELL(store, shmtrain_store_train(store, "builtin:digits:examples=600"));
    const uint64_t sum = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return sum;
}

/* From the third step of the first epoch on, whose checkpoint is never left out because another one is being written. */
static void a_network_resumed_within_an_epoch_goes_on_with_the_same_bits(void **state) {
    struct stat before, after;
    (void)state;
    const uint64_t whole = learn_in_pieces("1", "0");
    for (uint32_t step = 1; step <= EPOCHS * STEPS_PER_EPOCH; step++)
        if (step != KEPT_STEP) (void)unlink(checkpoint_of(step));
    assert_int_equal(stat(checkpoint_of(KEPT_STEP), &before), 0);
    assert_true(learn_in_pieces("2", "1") == whole);
    assert_int_equal(stat(checkpoint_of(KEPT_STEP), &after), 0);
    assert_true(after.st_mtim.tv_sec == before.st_mtim.tv_sec &&
                after.st_mtim.tv_nsec == before.st_mtim.tv_nsec); /* not begun anew */
    assert_int_equal(access(checkpoint_of(EPOCHS * STEPS_PER_EPOCH), F_OK), 0);
}

static double momentum_of(const char *workers, const char *folder, const char *resume, const char *epochs) {
    struct shmtrain_store *store = store_of("mlp", "async", workers);
    const char *const set[][2] = {
        {"epochs", epochs}, {"layers", "784-16-10"}, {"schedule", "constant"}, {"checkpoint", folder}, {"resume", resume}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) WELL(store, shmtrain_store_set(store, set[k][0], set[k][1]));
    WELL(store, shmtrain_store_train(store, "builtin:digits:examples=400"));
    const double momentum = shmtrain_store_report(store)->momentum;
    shmtrain_store_destroy(store);
    return momentum;
}

/* Momentum that nobody names goes by the number of workers; the velocities that are kept are of that of the run that began. */
static void a_network_resumed_live_with_other_workers_keeps_its_momentum(void **state) {
    (void)state;
    assert_true(fabs(momentum_of("9", "live", "0", "1") - 0.5) < 1e-6);
    assert_true(fabs(momentum_of("1", "live", "1", "2") - 0.5) < 1e-6);
    assert_true(fabs(momentum_of("1", "", "0", "1") - 0.9) < 1e-6);
    assert_int_equal(system("rm -r live"), 0);
}

/* Of runs that name neither: long gradients are clipped, and where several push late the rate begins small. */
static void check_restraints(const char *model, const char *mode, const char *clip, double norm, double warmup) {
    struct shmtrain_store *store = store_of(model, mode, "2");
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    if (clip) WELL(store, shmtrain_store_set(store, "clip-norm", clip));
    WELL(store, shmtrain_store_train(store, "builtin:digits:examples=200"));
    const struct shmtrain_report *report = shmtrain_store_report(store);
    assert_true(report->clip_norm == norm && report->warmup == warmup);
    shmtrain_store_destroy(store);
}

static void networks_clip_gradients_and_warm_up_by_themselves(void **state) {
    (void)state;
    check_restraints("cnn", "async", NULL, 1, 0.5);
    check_restraints("cnn", "sync", NULL, 2, 0);
    check_restraints("cnn", "async", "0", 0, 0.5);
    check_restraints("cnn", "sync", "0.25", 0.25, 0);
    check_restraints("mlp", "async", NULL, 0, 0.5);
}

/* ---- models ---- */

struct answers {
    float output[64];
    uint32_t n;
};

static int hear(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    struct answers *answers = arg;
    (void)label;
    assert_int_equal(n, 2);
    if (example < 32) memcpy(answers->output + 2 * example, output, 2 * sizeof *output);
    answers->n++;
    return 0;
}

static void a_saved_network_predicts_as_the_trained_one(void **state) {
    struct answers trained = {.n = 0}, loaded = {.n = 0};
    struct shmtrain_store *store = store_of("net", "sync", "2");
    (void)state;
    write_xor("xor.svm");
    WELL(store, shmtrain_store_set(store, "net", "fc:8 batchnorm gelu fc:2"));
    WELL(store, shmtrain_store_train(store, "xor.svm"));
    WELL(store, shmtrain_store_predict(store, "xor.svm", 1, hear, &trained));
    WELL(store, shmtrain_store_save(store, "xor.model"));
    shmtrain_store_destroy(store);
    store = store_of("logistic", "sync", "1");
    WELL(store, shmtrain_store_load(store, "xor.model"));
    WELL(store, shmtrain_store_predict(store, "xor.svm", 1, hear, &loaded));
    assert_int_equal(trained.n, 400);
    assert_memory_equal(&trained, &loaded, sizeof trained);
    for (int i = 0; i < 32; i++) assert_true(fabsf(loaded.output[2 * i] + loaded.output[2 * i + 1] - 1) < 1e-5f);
    shmtrain_store_destroy(store);
}

/* Images: the shape of an example goes into the model. */
static void a_convolution_sees_images(void **state) {
    enum { N = 64, SIDE = 12 };
    static float dense[N * SIDE * SIDE], label[N];
    struct answers trained = {.n = 0}, loaded = {.n = 0};
    (void)state;
    for (int i = 0; i < N; i++) { /* a bright bar, upright or lying */
        label[i] = (float)(i % 2);
        for (int k = 0; k < SIDE; k++) dense[i * SIDE * SIDE + (i % 2 ? k * SIDE + i % SIDE : (i % SIDE) * SIDE + k)] = 1;
    }
    const struct shmtrain_arrays arrays = {.size = sizeof arrays,
                                           .n_examples = N,
                                           .n_features = SIDE * SIDE,
                                           .dense = dense,
                                           .stride = SIDE * SIDE,
                                           .label = label,
                                           .channels = 1,
                                           .height = SIDE,
                                           .width = SIDE};
    struct shmtrain_store *store = store_of("cnn", "sync", "2");
    WELL(store, shmtrain_store_arrays(store, "bars", &arrays));
    WELL(store, shmtrain_store_set(store, "epochs", "8"));
    WELL(store, shmtrain_store_set(store, "optimizer", "adam"));
    WELL(store, shmtrain_store_set(store, "batch", "16"));
    WELL(store, shmtrain_store_train(store, "arrays:bars"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(r->epoch[7].train_loss < 0.3 && r->epoch[7].train_loss < r->epoch[0].train_loss);
    WELL(store, shmtrain_store_predict(store, "arrays:bars", 1, hear, &trained));
    WELL(store, shmtrain_store_save(store, "bars.model"));
    shmtrain_store_destroy(store);
    store = store_of("cnn", "sync", "1");
    WELL(store, shmtrain_store_load(store, "bars.model"));
    WELL(store, shmtrain_store_arrays(store, "bars", &arrays));
    WELL(store, shmtrain_store_predict(store, "arrays:bars", 1, hear, &loaded));
    assert_memory_equal(&trained, &loaded, sizeof trained);
    shmtrain_store_destroy(store);
}

/* ---- what does not fit ---- */

static void networks_that_do_not_fit_are_refused(void **state) {
    static const struct {
        const char *model, *option, *text;
        int status;
        const char *why;
    } BAD[] = {
        {"net", "net", "", SHMTRAIN_E_USAGE, "name its layers: --net \"fc:64 relu fc:2\""},
        {"net", "net", "fc:8 rleu fc:2", SHMTRAIN_E_USAGE, "rleu"},
        {"net", "net", "fc:8 relu", SHMTRAIN_E_USAGE, "its last layer has 8 outputs, but the data has 2 labels"},
        {"net", "net", "conv:8:3 fc:2", SHMTRAIN_E_USAGE, "conv"},
        {"mlp", "layers", "3-8-2", SHMTRAIN_E_USAGE, "--layers begins with 3, but the data has 2 features"},
        {"mlp", "layers", "2-8-3", SHMTRAIN_E_USAGE, "its last layer has 3 outputs, but the data has 2 labels"},
        {"mlp", "bias", "0", SHMTRAIN_E_USAGE, "--bias 0: each layer of a network has its own: write fc:10:bias=no in --net"},
        {"mlp", "scale", "yes", SHMTRAIN_E_USAGE, "networks bring these on one scale by --normalise"},
        {"cnn", "seed", "1", SHMTRAIN_E_DATA, "no images whose shape is known: use images, or --model mlp"}};
    (void)state;
    write_xor("xor.svm");
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct shmtrain_store *store = store_of(BAD[i].model, "sync", "1");
        WELL(store, shmtrain_store_set(store, BAD[i].option, BAD[i].text));
        refused(store, shmtrain_store_train(store, "xor.svm"), BAD[i].status, BAD[i].why);
        shmtrain_store_destroy(store);
    }
}

/* As they stand in a file; columns count from its start. */
static void a_network_may_be_written_on_several_lines(void **state) {
    struct shmtrain_store *store = store_of("net", "sync", "1");
    (void)state;
    write_xor("xor.svm");
    WELL(store, shmtrain_store_set(store, "net", "fc:8\n\trelu\nfc:2\n"));
    WELL(store, shmtrain_store_train(store, "xor.svm"));
    WELL(store, shmtrain_store_save(store, "lines.model"));
    WELL(store, shmtrain_store_set(store, "net", "fc:8\n\trleu\nfc:2"));
    refused(store, shmtrain_store_train(store, "xor.svm"), SHMTRAIN_E_USAGE, "--net, column 7: there is no layer \"rleu\"");
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_load(store, "lines.model"));
    shmtrain_store_destroy(store);
}

/* Without parameters there is nothing to learn. */
static void a_network_without_parameters_is_refused(void **state) {
    struct shmtrain_store *store = store_of("net", "sync", "1");
    (void)state;
    write_xor("xor.svm");
    WELL(store, shmtrain_store_set(store, "net", "relu"));
    WELL(store, shmtrain_store_set(store, "normalise", "none"));
    refused(store, shmtrain_store_train(store, "xor.svm"), SHMTRAIN_E_USAGE,
            "model net has no parameters: it needs a table at least, a network a layer such as fc");
    shmtrain_store_destroy(store);
}

static void texts_of_layers_are_refused_when_they_are_set(void **state) {
    static const char *const BAD[] = {"", "784", "784-", "-784-10", "784--10", "784-x-10", "0-10", "99999999999-10"};
    struct shmtrain_store *store = store_of("mlp", "sync", "1");
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        refused(store, shmtrain_store_set(store, "layers", BAD[i]), SHMTRAIN_E_USAGE, "such as 784-128-10");
    refused(store, shmtrain_store_set(store, "layers", "784-20000000-10"), SHMTRAIN_E_USAGE,
            "layers \"784-20000000-10\": a layer of 20000000 numbers is too large: at most 16777216 are possible");
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_network_learns_what_no_linear_model_can, deadline),
        cmocka_unit_test_setup(features_of_unequal_sizes_are_learned_alike, deadline),
        cmocka_unit_test_setup(in_sync_bits_follow_neither_workers_nor_threads, deadline),
        cmocka_unit_test_setup(in_sync_bits_are_the_same_on_every_backend, deadline),
        cmocka_unit_test_setup(gradients_of_parts_are_added, deadline),
        cmocka_unit_test_setup(in_sync_bits_of_parts_follow_neither_workers_nor_threads, deadline),
        cmocka_unit_test_setup(chunks_of_one_example_leave_running_statistics, deadline),
        cmocka_unit_test_setup(a_network_resumed_within_an_epoch_goes_on_with_the_same_bits, deadline),
        cmocka_unit_test_setup(a_network_resumed_live_with_other_workers_keeps_its_momentum, deadline),
        cmocka_unit_test_setup(networks_clip_gradients_and_warm_up_by_themselves, deadline),
        cmocka_unit_test_setup(a_saved_network_predicts_as_the_trained_one, deadline),
        cmocka_unit_test_setup(a_convolution_sees_images, deadline),
        cmocka_unit_test_setup(networks_that_do_not_fit_are_refused, deadline),
        cmocka_unit_test_setup(a_network_may_be_written_on_several_lines, deadline),
        cmocka_unit_test_setup(a_network_without_parameters_is_refused, deadline),
        cmocka_unit_test_setup(texts_of_layers_are_refused_when_they_are_set, deadline)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
