/* Options of models' own: how they are set, what is refused, and that models and checkpoints keep them. */
#include "api_help.h"
#include "folder_help.h"

#include "api/store_priv.h"
#include "configuration/model_options.h"

static const struct shmtrain_option OPTIONS_OF_OURS[] = {{"width", 0, "N", "2", "OUR_WIDTH", "Ours", "columns of the table"},
                                                         {"motto", 0, "TEXT", "so it goes", "OUR_MOTTO", "Ours", "a text"}};

static int check_option(uint32_t i, const char *text, char *why_out, uint64_t bytes) {
    if (i != 0 || (text[0] >= '1' && text[0] <= '9' && text[1] == '\0')) return 0;
    snprintf(why_out, bytes, "expected a digit from 1 to 9");
    return -1;
}

/* The width is the option's. */
static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)data;
    (void)state;
    out[0] = (struct shmtrain_shape){.name = "w", .rows = 1, .width = (uint64_t)(with->option[0][0] - '0')};
    return 1;
}

static int check_motto(shmtrain_session *s, const struct shmtrain_pass *pass) {
    if (strcmp(pass->with->option[1], "so it goes") == 0 || strcmp(pass->with->option[1], "a = b, or not") == 0) return 0;
    return shmtrain_fail(s, SHMTRAIN_E_USAGE, "the motto is %s", pass->with->option[1]);
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    const float grad[9] = {(float)batch->n};
    const int rc = check_motto(s, pass);
    *loss_out = 0;
    return rc < 0 ? rc : shmtrain_push(s, 0, 0, 1, grad);
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    for (uint32_t k = 0; k < batch->n; k++) score_out[k] = (float)(pass->with->option[0][0] - '0');
    *loss_out = 0;
    return check_motto(s, pass);
}

static const struct shmtrain_model OURS = {.size = sizeof(struct shmtrain_model),
                                           .name = "ours",
                                           .tables = tables,
                                           .step = step,
                                           .score = score,
                                           .task = SHMTRAIN_REGRESSION,
                                           .options = OPTIONS_OF_OURS,
                                           .n_options = 2,
                                           .check_option = check_option,
                                           .traits = {.pushes_tables = 1, .rate = 0.25f}};

static struct shmtrain_store *store_with(const char *model) {
    struct shmtrain_store *store;
    write_text("train.svm", "1 1:1\n2 1:1\n3 1:1\n6 1:1\n");
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, &OURS));
    WELL(store, shmtrain_store_set(store, "model", model));
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    return store;
}

static uint32_t width_of(struct shmtrain_store *store) { return store->params.table[0].table.width; }

static void an_option_has_its_default_until_it_is_set(void **state) {
    struct shmtrain_store *store = store_with("ours");
    (void)state;
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_int_equal(width_of(store), 2);
    WELL(store, shmtrain_store_set(store, "width", "5"));
    WELL(store, shmtrain_store_set(store, "motto", "a = b, or not"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_int_equal(width_of(store), 5);
    shmtrain_store_destroy(store);
}

static int hear(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    (void)example;
    (void)label;
    (void)n;
    *(float *)arg = output[0];
    return 0;
}

static void a_text_on_several_lines_becomes_one(void **state) {
    struct shmtrain_store *store = store_with("ours"), *loaded;
    (void)state;
    WELL(store, shmtrain_store_set(store, "motto", "a =\tb,\nor not"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_save(store, "lines.model"));
    shmtrain_store_destroy(store);
    loaded = store_with("logistic");
    WELL(loaded, shmtrain_store_load(loaded, "lines.model"));
    WELL(loaded, shmtrain_store_predict(loaded, "train.svm", 0, hear, &(float){0}));
    refused(loaded, shmtrain_store_set(loaded, "width", "1\n2"), SHMTRAIN_E_USAGE, "width \"1 2\": expected a digit");
    shmtrain_store_destroy(loaded);
}

static void what_the_model_or_nobody_knows_is_refused(void **state) {
    struct shmtrain_store *store = store_with("ours");
    (void)state;
    refused(store, shmtrain_store_set(store, "width", "12"), SHMTRAIN_E_USAGE, "width \"12\": expected a digit from 1 to 9");
    refused(store, shmtrain_store_set(store, "motto", "a\x1b[2J"), SHMTRAIN_E_USAGE, "motto: a control character");
    refused(store, shmtrain_store_set(store, "depth", "1"), SHMTRAIN_E_USAGE, "there is no option \"depth\"");
    char longest[SHMT_MODEL_TEXTS];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    WELL(store, shmtrain_store_set(store, "motto", longest));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE, "longer than 2047 characters");
    WELL(store, shmtrain_store_set(store, "motto", "so it goes"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_set(store, "model", "logistic"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE, "model logistic has no option motto");
    shmtrain_store_destroy(store);
}

/* What was set for one model stands in the way of another one, until it is taken back. */
static void an_option_is_forgotten_when_it_is_set_to_nothing(void **state) {
    struct shmtrain_store *store = store_with("ours");
    (void)state;
    WELL(store, shmtrain_store_set(store, "width", "5"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_set(store, "width", ""));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    assert_int_equal(width_of(store), 2);
    WELL(store, shmtrain_store_set(store, "net", "fc:2"));
    WELL(store, shmtrain_store_set(store, "model", "linear"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE, "model linear has no option net");
    for (int i = 0; i < 2; i++) {
        WELL(store, shmtrain_store_set(store, "net", ""));
        WELL(store, shmtrain_store_train(store, "train.svm"));
    }
    shmtrain_store_destroy(store);
}

/* In the environment it is for the models that have it. */
static void the_environment_stands_in_no_models_way(void **state) {
    (void)state;
    assert_int_equal(setenv("SHMTRAIN_NET", "fc:2", 1), 0);
    struct shmtrain_store *store = store_with("linear");
    struct shmt_error e = {0};
    assert_int_equal(shmt_options_from_environment(&store->config, &store->offered, &e), 0);
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_set(store, "net", "fc:2"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE, "model linear has no option net");
    shmtrain_store_destroy(store);
    assert_int_equal(unsetenv("SHMTRAIN_NET"), 0);
}

static void options_that_a_model_cannot_have_are_refused(void **state) {
    static const struct {
        struct shmtrain_option option[2];
        uint32_t n;
        const char *why;
    } BAD[] = {{{{.name = "rate", .standard = ""}}, 1, "there is an option rate already"},
               {{{.name = "a b", .standard = ""}}, 1, "small letters"},
               {{{.name = "", .standard = ""}}, 1, "small letters"},
               {{{.name = "none"}}, 1, "needs a default"},
               {{{.name = "one", .standard = ""}, {.name = "one", .standard = ""}}, 2, "has two options one"},
               {{{.name = "one", .standard = ""}}, 9, "has 9 options: there may be 8"}};
    struct shmtrain_store *store = store_with("ours");
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct shmtrain_model model = OURS;
        model.name = "bad";
        model.options = BAD[i].option;
        model.n_options = BAD[i].n;
        refused(store, shmtrain_store_offer(store, &model), SHMTRAIN_E_USAGE, BAD[i].why);
    }
    shmtrain_store_destroy(store);
}

/* Whatever is set where it is loaded. */
static void a_saved_model_keeps_its_options(void **state) {
    struct shmtrain_store *store = store_with("ours");
    float output = 0;
    (void)state;
    WELL(store, shmtrain_store_set(store, "width", "7"));
    WELL(store, shmtrain_store_set(store, "motto", "a = b, or not"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    WELL(store, shmtrain_store_save(store, "ours.model"));
    WELL(store, shmtrain_store_predict(store, "train.svm", 0, hear, &output));
    assert_true(output == 7);
    shmtrain_store_destroy(store);
    store = store_with("ours");
    WELL(store, shmtrain_store_load(store, "ours.model"));
    assert_int_equal(width_of(store), 7);
    WELL(store, shmtrain_store_predict(store, "train.svm", 0, hear, &output));
    assert_true(output == 7);
    shmtrain_store_destroy(store);
}

static void a_run_goes_on_with_the_same_options_only(void **state) {
    struct shmtrain_store *store = store_with("ours");
    (void)state;
    WELL(store, shmtrain_store_set(store, "width", "3"));
    WELL(store, shmtrain_store_set(store, "checkpoint", "."));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    shmtrain_store_destroy(store);
    store = store_with("ours");
    WELL(store, shmtrain_store_set(store, "checkpoint", "."));
    WELL(store, shmtrain_store_set(store, "resume", "1"));
    WELL(store, shmtrain_store_set(store, "epochs", "3"));
    refused(store, shmtrain_store_train(store, "train.svm"), SHMTRAIN_E_USAGE, "--width is 2 here, but 3 in the run of");
    WELL(store, shmtrain_store_set(store, "width", "3"));
    WELL(store, shmtrain_store_train(store, "train.svm"));
    shmtrain_store_destroy(store);
}

/* ---- joined ---- */

static void joined_texts_are_taken_apart_or_refused(void **state) {
    static const struct {
        const char *joined, *why;
    } BAD[] = {{"width", "expected lines of NAME=TEXT"}, {"width=3", "expected lines of NAME=TEXT"},
               {"\nwidth=3\n", "expected lines"},        {"depth=3\n", "has no option \"depth\""},
               {"width=30\n", "width \"30\": expected"}, {"wid=3\n", "has no option \"wid\""}};
    struct shmt_model_texts texts;
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_model_texts_of_joined("motto=a = b\n", &OURS, &texts, &e), 0);
    assert_string_equal(texts.option[0], "2");
    assert_string_equal(texts.option[1], "a = b");
    assert_string_equal(texts.joined, "width=2\nmotto=a = b\n");
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        shmt_error_clear(&e);
        assert_int_equal(shmt_model_texts_of_joined(BAD[i].joined, &OURS, &texts, &e), SHMTRAIN_E_DATA);
        assert_non_null(strstr(e.text, BAD[i].why));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(an_option_has_its_default_until_it_is_set, deadline),
                                       cmocka_unit_test_setup(a_text_on_several_lines_becomes_one, deadline),
                                       cmocka_unit_test_setup(what_the_model_or_nobody_knows_is_refused, deadline),
                                       cmocka_unit_test_setup(an_option_is_forgotten_when_it_is_set_to_nothing, deadline),
                                       cmocka_unit_test_setup(the_environment_stands_in_no_models_way, deadline),
                                       cmocka_unit_test_setup(options_that_a_model_cannot_have_are_refused, deadline),
                                       cmocka_unit_test_setup(a_saved_model_keeps_its_options, deadline),
                                       cmocka_unit_test_setup(a_run_goes_on_with_the_same_options_only, deadline),
                                       cmocka_unit_test_setup(joined_texts_are_taken_apart_or_refused, deadline)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
