/* What a model is made of, where people look: in files (inspect) and plans (topo), as lines and as JSON; also of an application's own
 * model, and where this program lacks the model or a layer. */
#include "api_help.h"
#include "folder_help.h"

#include <glob.h>
#include <jansson.h>

static char g_note[512];

static void keep_note(void *arg, const char *line) {
    (void)arg;
    snprintf(g_note, sizeof g_note, "%s", line);
}

static const struct shmtrain_listener LISTENS = {.size = sizeof(struct shmtrain_listener), .note = keep_note};

static struct shmtrain_store *store_of(const char *const set[][2], size_t n) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < n; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    return store;
}

#define STORE(...) \
    store_of((const char *const[][2]){__VA_ARGS__}, sizeof((const char *const[][2]){__VA_ARGS__}) / sizeof(char *[2]))

#define LAYERS "conv:4:5 relu pool:2 flatten fc:16 batchnorm relu fc:10"
#define DIGITS "builtin:digits:examples=40,valid=10"

static struct shmtrain_store *digits_store(void) {
    return STORE({"model", "net"}, {"net", LAYERS}, {"epochs", "1"}, {"workers", "1"}, {"mode", "async"});
}

static void check_rows(const struct shmtrain_model_layer *layer, uint32_t n) {
    static const struct shmtrain_model_layer WANTED[] = {
        {.text = "input, shift:1, normalised", .channels = 1, .height = 28, .width = 28},
        {.text = "conv:4:5",
         .channels = 4,
         .height = 24,
         .width = 24,
         .parameters = 104,
         .multiplications = 57600,
         .bytes = 9216},
        {.text = "relu", .channels = 4, .height = 24, .width = 24},
        {.text = "pool:2", .channels = 4, .height = 12, .width = 12},
        {.text = "flatten", .channels = 576, .height = 1, .width = 1},
        {.text = "fc:16", .channels = 16, .height = 1, .width = 1, .parameters = 9232, .multiplications = 9216, .bytes = 64},
        {.text = "batchnorm", .channels = 16, .height = 1, .width = 1, .parameters = 64},
        {.text = "relu", .channels = 16, .height = 1, .width = 1},
        {.text = "fc:10", .channels = 10, .height = 1, .width = 1, .parameters = 170, .multiplications = 160, .bytes = 40}};
    assert_int_equal(n, sizeof WANTED / sizeof *WANTED);
    for (uint32_t i = 0; i < n; i++) {
        const struct shmtrain_model_layer *w = &WANTED[i];
        assert_string_equal(layer[i].text, w->text);
        assert_int_equal(layer[i].channels, w->channels);
        assert_int_equal(layer[i].height, w->height);
        assert_int_equal(layer[i].width, w->width);
        assert_int_equal(layer[i].parameters, w->parameters);
        if (w->multiplications) assert_int_equal(layer[i].multiplications, w->multiplications);
        if (w->bytes) assert_int_equal(layer[i].bytes, w->bytes);
    }
}

/* No line is wider than a terminal, but those of tensors and shards, which have nothing to do with it. */
static void check_lines(const char *text) {
    const char *at = strstr(text, "\nlayer   ");
    assert_non_null(at);
    for (at++; *at && *at != '\n'; at += strcspn(at, "\n") + 1) assert_in_range(strcspn(at, "\n"), 1, 80);
    assert_non_null(strstr(text, "conv:4:5                      4 x 24 x 24         104          57,600      9,216\n"));
    assert_non_null(strstr(text, "\nall                                             9,570 "));
}

static void check_json(char *line) {
    json_t *all = json_loads(line, 0, NULL), *layers = json_object_get(all, "layers");
    json_t *conv = json_array_get(layers, 1), *fc = json_array_get(layers, 5);
    assert_int_equal(json_array_size(layers), 9);
    assert_string_equal(json_string_value(json_object_get(conv, "text")), "conv:4:5");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(conv, "shape"), 1)), 24);
    assert_int_equal(json_array_size(json_object_get(fc, "shape")), 1);
    assert_int_equal(json_integer_value(json_object_get(fc, "parameters")), 9232);
    assert_int_equal(json_integer_value(json_object_get(fc, "multiplications")), 9216);
    assert_int_equal(json_integer_value(json_object_get(fc, "bytes")), 64);
    json_decref(all);
    free(line);
}

static void a_saved_network_shows_its_layers(void **state) {
    static struct shmtrain_file_info info;
    struct shmtrain_store *store = digits_store(), *other = STORE({"workers", "1"});
    (void)state;
    WELL(store, shmtrain_store_train(store, DIGITS));
    WELL(store, shmtrain_store_save(store, "model"));
    WELL(other, shmtrain_store_inspect(other, "model", &info)); /* which has other options */
    check_rows(info.layer, info.n_layers);
    char *text = shmtrain_file_info_text("model", &info), *json = shmtrain_file_info_json("model", &info);
    check_lines(text);
    assert_null(strstr(text, "bias\n")); /* is the layers' own */
    assert_non_null(strstr(json, "\"bias\":null"));
    free(text);
    check_json(json);
    shmtrain_store_destroy(other);
    shmtrain_store_destroy(store);
}

static void a_checkpoint_shows_them_too(void **state) {
    static struct shmtrain_file_info info;
    struct shmtrain_store *store = digits_store();
    (void)state;
    WELL(store, shmtrain_store_set(store, "checkpoint", "."));
    WELL(store, shmtrain_store_train(store, DIGITS));
    glob_t found;
    assert_int_equal(glob("checkpoint-*.safetensors", 0, NULL, &found), 0);
    WELL(store, shmtrain_store_inspect(store, found.gl_pathv[0], &info));
    globfree(&found);
    assert_int_equal(info.kind, SHMTRAIN_FILE_CHECKPOINT);
    check_rows(info.layer, info.n_layers);
    shmtrain_store_destroy(store);
}

static void a_plan_shows_them_before_there_is_a_run(void **state) {
    struct shmtrain_store *store = digits_store();
    const struct shmtrain_plan *plan;
    (void)state;
    WELL(store, shmtrain_store_plan(store, DIGITS, &plan));
    check_rows(plan->layer, plan->n_layers);
    char *text = shmtrain_plan_text(plan);
    check_lines(text);
    free(text);
    check_json(shmtrain_plan_json(plan));
    WELL(store, shmtrain_store_plan(store, NULL, &plan));
    assert_int_equal(plan->n_layers, 0);
    shmtrain_store_destroy(store);
}

static void a_linear_model_has_nothing_to_show(void **state) {
    static struct shmtrain_file_info info;
    struct shmtrain_store *store = STORE({"workers", "1"}, {"epochs", "1"}, {"mode", "async"});
    (void)state;
    WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=50,features=1000"));
    WELL(store, shmtrain_store_save(store, "linear"));
    WELL(store, shmtrain_store_inspect(store, "linear", &info));
    assert_int_equal(info.n_layers, 0);
    char *text = shmtrain_file_info_text("linear", &info);
    assert_null(strstr(text, "layer"));
    free(text);
    shmtrain_store_destroy(store);
}

/* ---- of the application ---- */

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)data;
    (void)with;
    (void)state;
    out[0] = (struct shmtrain_shape){.name = "w", .rows = 1, .width = 1};
    return 1;
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    const float none = 0;
    (void)pass;
    (void)batch;
    *loss_out = 0;
    return shmtrain_push(s, 0, 0, 1, &none);
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    (void)s;
    (void)pass;
    memset(score_out, 0, batch->n * sizeof *score_out);
    *loss_out = 0;
    return 0;
}

/* A hundred parts, each with a text that fills its room and is not fit for a terminal. */
static int describe(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state, uint32_t i,
                    struct shmtrain_model_layer *out) {
    (void)with;
    (void)state;
    memset(out->text, 'x', sizeof out->text);
    out->text[0] = '\033';
    out->channels = data->n_features;
    out->height = out->width = 1;
    out->parameters = i == 0 ? UINT64_MAX / 200 : i;
    return i < 100;
}

static void a_model_of_the_application_is_shown_as_far_as_there_is_room(void **state) {
    static struct shmtrain_file_info info;
    const struct shmtrain_model parts = {.size = sizeof parts,
                                         .name = "parts",
                                         .task = SHMTRAIN_REGRESSION,
                                         .traits = {.curvature = 1},
                                         .tables = tables,
                                         .step = step,
                                         .score = score,
                                         .describe = describe};
    struct shmtrain_store *store = STORE({"workers", "1"}, {"epochs", "1"}, {"mode", "async"}),
                          *other = STORE({"workers", "1"});
    (void)state;
    WELL(store, shmtrain_store_offer(store, &parts));
    WELL(store, shmtrain_store_set(store, "model", "parts"));
    write_text("three.svm", "1 1:1 3:1\n2 2:1\n");
    WELL(store, shmtrain_store_train(store, "three.svm"));
    WELL(store, shmtrain_store_save(store, "parts"));
    WELL(store, shmtrain_store_inspect(store, "parts", &info));
    assert_int_equal(info.n_layers, SHMTRAIN_MODEL_LAYERS);
    assert_int_equal(info.layer[95].channels, 3);
    assert_int_equal(info.layer[95].parameters, 95);
    assert_int_equal(strlen(info.layer[0].text), sizeof info.layer[0].text - 1);
    assert_null(strchr(info.layer[0].text, '\033'));
    char *text = shmtrain_file_info_text("parts", &info);
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) assert_in_range(strcspn(at, "\n"), 0, 80);
    free(text);
    g_note[0] = '\0';
    WELL(other, shmtrain_store_listen(other, &LISTENS));
    WELL(other, shmtrain_store_inspect(other, "parts", &info)); /* which does not have the model */
    assert_int_equal(info.n_layers, 0);
    assert_string_equal(g_note, "");
    shmtrain_store_destroy(other);
    shmtrain_store_destroy(store);
}

static int plan_same(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    return 0;
}

static void a_file_with_a_layer_that_is_not_known_is_inspected_without_layers(void **state) {
    static struct shmtrain_file_info info;
    const struct shmtrain_layer_kind same = {
        .size = sizeof same, .traits = SHMTRAIN_LAYER_NOTHING, .name = "same", .plan = plan_same};
    struct shmtrain_store *store =
        STORE({"workers", "1"}, {"epochs", "1"}, {"mode", "async"}, {"model", "net"}, {"net", "same fc:2"});
    struct shmtrain_store *other = STORE({"workers", "1"});
    (void)state;
    WELL(store, shmtrain_store_offer_layer(store, &same));
    WELL(store, shmtrain_store_train(store, "builtin:dense:examples=50,features=4,classes=2"));
    WELL(store, shmtrain_store_save(store, "same"));
    WELL(store, shmtrain_store_inspect(store, "same", &info));
    assert_int_equal(info.n_layers, 3);
    WELL(other, shmtrain_store_listen(other, &LISTENS));
    WELL(other, shmtrain_store_inspect(other, "same", &info));
    assert_int_equal(info.n_layers, 0);
    assert_int_equal(info.n_tensors, 3); /* of fc, and of what comes in */
    assert_non_null(strstr(g_note, "its layers are not shown: same: model net: --net, column 1: there is no layer \"same\""));
    shmtrain_store_destroy(other);
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_saved_network_shows_its_layers, deadline),
        cmocka_unit_test_setup(a_checkpoint_shows_them_too, deadline),
        cmocka_unit_test_setup(a_plan_shows_them_before_there_is_a_run, deadline),
        cmocka_unit_test_setup(a_linear_model_has_nothing_to_show, deadline),
        cmocka_unit_test_setup(a_model_of_the_application_is_shown_as_far_as_there_is_room, deadline),
        cmocka_unit_test_setup(a_file_with_a_layer_that_is_not_known_is_inspected_without_layers, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
