/* The shape of an example: whoever reads data knows it, and a model finds it with columns in their places, however the data came. */
#include "api_help.h"
#include "folder_help.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "api/store_priv.h"
#include "data/cache_priv.h"
#include "naming/guest_data.h"
#include "naming/visit.h"

enum { N = 60, CHANNELS = 3, HEIGHT = 2, WIDTH = 5, VALUES = CHANNELS * HEIGHT * WIDTH };

/* Value j of example i, from 1 to 250: in the order of channels, rows and columns. Two in three values of column 7 are 0, so that some
 * rows lack what others have. */
static unsigned char value_of(uint32_t i, uint32_t j) {
    return j == 7 && i % 3 ? 0 : (unsigned char)(1 + (i * 31 + j * 7) % 250);
}

static void put_header(FILE *f, int n_dims, const uint32_t *dim) {
    const unsigned char head[] = {0, 0, 8, (unsigned char)n_dims};
    assert_int_equal(fwrite(head, 1, sizeof head, f), sizeof head);
    for (int d = 0; d < n_dims; d++)
        for (int shift = 24; shift >= 0; shift -= 8) fputc((int)(dim[d] >> shift & 255), f);
}

static void write_labels(const char *name) {
    const uint32_t dim[] = {N};
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    put_header(f, 1, dim);
    for (uint32_t i = 0; i < N; i++) fputc((int)(i % 2), f);
    assert_int_equal(fclose(f), 0);
}

/* Columns in the order of channels, rows and columns; or with the channels of each pixel together. */
static void write_images(const char *name, int n_dims, const uint32_t *dim, bool channels_last) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    put_header(f, n_dims, dim);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < VALUES; k++)
            fputc(value_of(i, channels_last ? k % CHANNELS * (HEIGHT * WIDTH) + k / CHANNELS : k), f);
    assert_int_equal(fclose(f), 0);
}

static int write_files(void **state) {
    if (make_folder(state) != 0) return -1;
    write_images("first-images", 4, (const uint32_t[]){N, CHANNELS, HEIGHT, WIDTH}, false);
    write_images("flat-images", 2, (const uint32_t[]){N, VALUES}, false);
    write_images("grey-images", 3, (const uint32_t[]){N, HEIGHT, WIDTH * CHANNELS}, false);
    write_images("deep-images", 5, (const uint32_t[]){N, 1, CHANNELS, HEIGHT, WIDTH}, false);
    write_labels("first-labels");
    write_labels("flat-labels");
    write_labels("grey-labels");
    write_labels("deep-labels");
    return 0;
}

/* ---- a model that looks ---- */

static struct {
    uint32_t channels, height, width;
    uint32_t seen; /* items whose values were right */
} g_look;

static uint32_t one_table(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                          struct shmtrain_shape *out) {
    (void)with;
    (void)state;
    if (data->n_examples > 0) { /* what is known of a saved model has none */
        g_look.channels = data->channels;
        g_look.height = data->height;
        g_look.width = data->width;
    }
    out[0] = (struct shmtrain_shape){.name = "one", .rows = 1, .width = 1};
    return 1;
}

static int look(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    const struct shmtrain_data *d = batch->data;
    (void)pass;
    if (d->channels != g_look.channels || d->height != g_look.height || d->width != g_look.width)
        return shmtrain_fail(s, SHMTRAIN_E_DATA, "a step has a shape of its own");
    for (uint32_t k = 0; k < batch->n; k++)
        for (uint32_t j = 0; j < d->n_features; j++) {
            const float is = d->dense[(uint64_t)batch->example[k] * d->n_features + j];
            if (is != (float)value_of(batch->example[k], j) / 255)
                return shmtrain_fail(s, SHMTRAIN_E_DATA, "column %u of example %u is %g", j, batch->example[k], (double)is);
        }
    *loss_out = 0;
    return 0;
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *out,
                 double *loss_out) {
    (void)s;
    (void)pass;
    memset(out, 0, batch->n * sizeof *out);
    *loss_out = 0;
    return 0;
}

static const struct shmtrain_model LOOKS = {.size = sizeof(struct shmtrain_model),
                                            .task = SHMTRAIN_REGRESSION,
                                            .name = "looks",
                                            .traits = {.rows = SHMTRAIN_ROWS_DENSE},
                                            .tables = one_table,
                                            .step = look,
                                            .score = score};

static struct shmtrain_store *open_looking(const char *valid) {
    struct shmtrain_store *store = open_training("2", "async", valid);
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "rate", "0.1"));
    WELL(store, shmtrain_store_offer(store, &LOOKS));
    WELL(store, shmtrain_store_set(store, "model", "looks"));
    memset(&g_look, 0, sizeof g_look);
    return store;
}

static void assert_shape(uint32_t channels, uint32_t height, uint32_t width) {
    assert_int_equal(g_look.channels, channels);
    assert_int_equal(g_look.height, height);
    assert_int_equal(g_look.width, width);
}

static void assert_trains(const char *data, const char *valid, uint32_t channels, uint32_t height, uint32_t width) {
    struct shmtrain_store *store = open_looking(valid);
    WELL(store, shmtrain_store_train(store, data));
    assert_shape(channels, height, width);
    shmtrain_store_destroy(store);
}

/* ---- what must hold ---- */

static void dimensions_of_a_file_say_the_shape(void **state) {
    (void)state;
    assert_trains("first-images", "none", CHANNELS, HEIGHT, WIDTH);
    assert_trains("grey-images", "none", 1, HEIGHT, WIDTH * CHANNELS);
    assert_trains("flat-images", "none", 0, 0, 0);
    assert_trains("deep-images", "none", 0, 0, 0);
}

/* Rows and columns of at most four would be channels, so the images are larger. */
static void channels_that_come_last_are_brought_to_the_front(void **state) {
    static const uint32_t LAST[] = {N, HEIGHT * WIDTH, 1, CHANNELS}, FIRST[] = {N, CHANNELS, HEIGHT * WIDTH, 1};
    (void)state;
    write_images("last-images", 4, LAST, true);
    write_labels("last-labels");
    assert_trains("last-images", "none", CHANNELS, HEIGHT * WIDTH, 1);
    write_images("last-images", 4, FIRST, false); /* either may be: the first is */
    assert_trains("last-images", "none", CHANNELS, HEIGHT * WIDTH, 1);
}

static void a_share_that_is_set_aside_has_the_shape(void **state) {
    (void)state;
    assert_trains("first-images", "0.3", CHANNELS, HEIGHT, WIDTH);
}

static void a_cache_keeps_the_shape(void **state) {
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_convert(store, "first-images", "first.shmcache"));
    shmtrain_store_destroy(store);
    assert_trains("first.shmcache", "none", CHANNELS, HEIGHT, WIDTH);
    assert_trains("first.shmcache", "first-images", CHANNELS, HEIGHT, WIDTH);
}

/* A hostile writer signs what it likes. */
static void a_cache_with_a_shape_of_other_columns_is_refused(void **state) {
    static const uint32_t SHAPES[][3] = {
        {CHANNELS, HEIGHT, WIDTH + 1}, {0, HEIGHT, WIDTH}, {VALUES, 1, 0}, {1u << 31, 1u << 31, 4}};
    struct shmt_cache_header h;
    struct shmtrain_store *store;
    struct shmtrain_data_info info;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        WELL(store, shmtrain_store_convert(store, "first-images", "bad.shmcache"));
        FILE *f = fopen("bad.shmcache", "r+b");
        assert_int_equal(fread(&h, sizeof h, 1, f), 1);
        h.channels = SHAPES[i][0];
        h.height = SHAPES[i][1];
        h.width = SHAPES[i][2];
        h.hash = shmt_cache_header_hash(&h);
        rewind(f);
        assert_int_equal(fwrite(&h, sizeof h, 1, f), 1);
        assert_int_equal(fclose(f), 0);
        refused(store, shmtrain_store_data_info(store, "bad.shmcache", &info), SHMTRAIN_E_DATA, "the shape of its examples");
    }
    shmtrain_store_destroy(store);
}

static void arrays_of_the_application_may_say_a_shape(void **state) {
    static float dense[N * VALUES], label[N];
    struct shmtrain_arrays a = {.size = sizeof a,
                                .n_examples = N,
                                .n_features = VALUES,
                                .dense = dense,
                                .label = label,
                                .channels = CHANNELS,
                                .height = HEIGHT,
                                .width = WIDTH};
    (void)state;
    for (uint32_t i = 0; i < N * VALUES; i++) dense[i] = (float)value_of(i / VALUES, i % VALUES) / 255;
    for (uint32_t i = 0; i < N; i++) label[i] = (float)(i % 2);
    for (uint32_t borrowed = 0; borrowed < 2; borrowed++)
        for (int shaped = 0; shaped < 2; shaped++) {
            struct shmtrain_store *store = open_looking("none");
            a.borrowed = borrowed;
            a.channels = shaped ? CHANNELS : 0;
            a.height = shaped ? HEIGHT : 0;
            a.width = shaped ? WIDTH : 0;
            WELL(store, shmtrain_store_arrays(store, "pictures", &a));
            WELL(store, shmtrain_store_train(store, "arrays:pictures"));
            assert_shape(a.channels, a.height, a.width);
            shmtrain_store_destroy(store);
        }
}

/* Ids that are given by place have no shape any more: what says one says it of columns. */
static void what_is_known_of_data_says_the_shape(void **state) {
    struct shmtrain_data_info info;
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_data_info(store, "first-images", &info));
    assert_true(info.channels == CHANNELS && info.height == HEIGHT && info.width == WIDTH);
    char *text = shmtrain_data_info_text("DATA", &info), *json = shmtrain_data_info_json("DATA", &info);
    assert_non_null(strstr(text, "\nshape       3 channels of 2 x 5\n"));
    assert_non_null(strstr(json, "\"shape\":{\"channels\":3,\"height\":2,\"width\":5}"));
    free(text);
    free(json);
    WELL(store, shmtrain_store_data_info(store, "flat-images", &info));
    text = shmtrain_data_info_text("DATA", &info);
    json = shmtrain_data_info_json("DATA", &info);
    assert_null(strstr(text, "shape"));
    assert_non_null(strstr(json, "\"shape\":null"));
    free(text);
    free(json);
    shmtrain_store_destroy(store);
}

/* ---- guests ---- */

static struct shmtrain_store *g_maker;
static void stop(int signal) {
    (void)signal;
    shmtrain_store_stop(g_maker);
}

static pid_t make_named(const char *name) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    signal(SIGTERM, stop);
    assert_int_equal(shmtrain_store_create(&g_maker), 0);
    WELL(g_maker, shmtrain_store_set(g_maker, "name", name));
    WELL(g_maker, shmtrain_store_set(g_maker, "workers", "1"));
    WELL(g_maker, shmtrain_store_set(g_maker, "guests", "1"));
    WELL(g_maker, shmtrain_store_set(g_maker, "valid", "none"));
    WELL(g_maker, shmtrain_store_set(g_maker, "mode", "async"));
    WELL(g_maker, shmtrain_store_set(g_maker, "epochs", "100000"));
    const int rc = shmtrain_store_train(g_maker, "first-images");
    shmtrain_store_destroy(g_maker);
    _exit(-rc);
}

static void a_guest_finds_the_shape(void **state) {
    char name[64], message[512];
    struct shmt_guest_data data = {0};
    struct shmtrain_store *store;
    (void)state;
    snprintf(name, sizeof name, "test_example_shape-%d", (int)getpid());
    const pid_t maker = make_named(name);
    assert_int_equal(shmtrain_store_create(&store), 0);
    while (shmtrain_store_observe(store, name) < 0) {
        usleep(2000);
        assert_int_equal(waitpid(maker, NULL, WNOHANG), 0);
    }
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_store_create(&store), 0);
    assert_int_equal(shmt_visit_begin(&store->run, name, true), 0);
    assert_int_equal(shmt_guest_data_open(&data, &store->run), 0);
    assert_true(data.train.channels == CHANNELS && data.train.height == HEIGHT && data.train.width == WIDTH);
    shmt_guest_data_close(&data);
    shmtrain_store_destroy(store);
    assert_int_equal(kill(maker, SIGTERM), 0);
    assert_int_equal(waitpid(maker, NULL, 0), maker);
    (void)shmtrain_named_remove(name, 1, message, sizeof message);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(dimensions_of_a_file_say_the_shape, deadline),
        cmocka_unit_test_setup(channels_that_come_last_are_brought_to_the_front, deadline),
        cmocka_unit_test_setup(a_share_that_is_set_aside_has_the_shape, deadline),
        cmocka_unit_test_setup(a_cache_keeps_the_shape, deadline),
        cmocka_unit_test_setup(a_cache_with_a_shape_of_other_columns_is_refused, deadline),
        cmocka_unit_test_setup(arrays_of_the_application_may_say_a_shape, deadline),
        cmocka_unit_test_setup(what_is_known_of_data_says_the_shape, deadline),
        cmocka_unit_test_setup(a_guest_finds_the_shape, deadline),
    };
    return cmocka_run_group_tests_name("shapes of examples", tests, write_files, remove_folder);
}
