/* Layers of the application's own: offered, found wrong, trained in every mode, saved, loaded where they are known and refused where they
 * are not; snapshots and guests. */
#include "folder_help.h"
#include "join_help.h"

#include <math.h>

#define DATA "builtin:dense:examples=600,features=12,classes=3,valid=200"

/* Multiplies each channel by a number of its own, which is learned. */
static int plan_gain(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->n_tables = 1;
    layer->table[0] = (struct shmtrain_layer_table){
        .name = "gain", .rows = layer->in.channels, .width = 1, .start = SHMTRAIN_ONES, .decays = 1};
    layer->reads = SHMTRAIN_LAYER_READS_IN;
    layer->own.real[0] = (float)layer->argument[0].number;
    if (layer->in.channels > 1) return 0;
    snprintf(layer->why, sizeof layer->why, "one channel is too few");
    return -1;
}

static void forward_gain(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint64_t n = pass->n * shmtrain_extent_numbers(&layer->in);
    for (uint64_t i = 0; i < n; i++) pass->out[i] = layer->own.real[0] * pass->table[0][i % layer->in.channels] * pass->in[i];
}

static void backward_gain(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint64_t n = pass->n * shmtrain_extent_numbers(&layer->in);
    const uint32_t channels = layer->in.channels;
    for (uint32_t c = 0; c < channels && !pass->add; c++) pass->gradient[0][c] = 0;
    for (uint64_t i = 0; i < n; i++) {
        pass->gradient[0][i % channels] += layer->own.real[0] * pass->d_out[i] * pass->in[i];
        if (pass->d_in) pass->d_in[i] = layer->own.real[0] * pass->table[0][i % channels] * pass->d_out[i];
    }
}

static const struct shmtrain_layer_kind GAIN = {
    .size = sizeof(struct shmtrain_layer_kind),
    .name = "gain",
    .about = "a number for each channel",
    .argument = {{.name = "times", .type = SHMTRAIN_LAYER_REAL, .low = 0, .high = 100, .assumed = "1"}},
    .plan = plan_gain,
    .forward = forward_gain,
    .backward = backward_gain};

static struct shmtrain_store *store_of(const char *net, const char *mode, const char *workers) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    const char *const set[][2] = {{"model", "net"},     {"net", net},    {"mode", mode},
                                  {"workers", workers}, {"epochs", "2"}, {"scale", "no"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) WELL(store, shmtrain_store_set(store, set[i][0], set[i][1]));
    return store;
}

static struct shmtrain_store *store_with_gain(const char *net, const char *mode, const char *workers) {
    struct shmtrain_store *store = store_of(net, mode, workers);
    WELL(store, shmtrain_store_offer_layer(store, &GAIN));
    return store;
}

/* ---- offered ---- */

static void a_layer_that_cannot_be_used_is_refused_when_it_is_offered(void **state) {
    struct shmtrain_store *store = store_of("fc:3", "sync", "1");
    struct shmtrain_layer_kind k = GAIN;
    (void)state;
#define REFUSED(words)                                                                  \
    do {                                                                                \
        refused(store, shmtrain_store_offer_layer(store, &k), SHMTRAIN_E_USAGE, words); \
        k = GAIN;                                                                       \
    } while (0)
    refused(store, shmtrain_store_offer_layer(store, NULL), SHMTRAIN_E_USAGE, "a layer");
    k.size = 8;
    REFUSED("layer_kind");
    static const char *const NAMES[] = {NULL, "", "Gain", "2gain", "a-b", "gainsandlossesof"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        k.name = NAMES[i];
        REFUSED("a layer needs a name: a small letter, then up to 14 small letters and digits");
    }
    k.name = "relu";
    REFUSED("layer \"relu\" exists already");
    k.plan = NULL;
    REFUSED("layer gain needs the function plan");
    k.backward = NULL;
    REFUSED("layer gain needs the functions forward and backward");
    k.traits = SHMTRAIN_LAYER_BLAS;
    REFUSED("layer gain has the traits 0x20, of which");
    k.traits = SHMTRAIN_LAYER_SAVES | SHMTRAIN_LAYER_ADDS;
    REFUSED("both saves for a sum and adds");
    k.traits = SHMTRAIN_LAYER_NOTHING | SHMTRAIN_LAYER_SAVES;
    k.forward = NULL;
    k.backward = NULL;
    REFUSED("layer gain saves for a sum, so it needs the function backward");
    k.traits = SHMTRAIN_LAYER_NOTHING | SHMTRAIN_LAYER_ADDS;
    REFUSED("layer gain adds, so it computes: leave out the trait NOTHING");
    k.traits = SHMTRAIN_LAYER_NOTHING | SHMTRAIN_LAYER_CLIPS;
    REFUSED("layer gain clips, so it computes: leave out the trait NOTHING");
    k.reserved[1] = 1;
    REFUSED("layer gain sets a reserved member");
    k.argument[0].assumed = "100";
    REFUSED("argument times cannot be \"100\", which is assumed");
    k.argument[0].name = "Times";
    REFUSED("the name of argument 1 is not up to 15 small letters and digits");
    k.argument[0].low = 101;
    REFUSED("argument times needs bounds");
    k.argument[0].type = (enum shmtrain_layer_argument_type)5;
    REFUSED("argument times has the type 5, which is none");
    k.argument[1] = k.argument[0];
    REFUSED("layer gain has two arguments times");
    k.argument[1] = (struct shmtrain_layer_argument){.name = "must", .type = SHMTRAIN_LAYER_WHOLE, .high = 1};
    REFUSED("argument must has to be given, so it stands before");
    k.argument[0] = (struct shmtrain_layer_argument){.name = "of", .type = SHMTRAIN_LAYER_WORD};
    REFUSED("argument of needs words");
#undef REFUSED
    shmtrain_store_destroy(store);
}

static void there_is_room_for_sixteen_layers(void **state) {
    static char name[17][8];
    struct shmtrain_store *store = store_of("g15 fc:3", "sync", "1");
    (void)state;
    for (int i = 0; i < 17; i++) {
        struct shmtrain_layer_kind k = GAIN;
        snprintf(name[i], sizeof name[i], "g%d", i);
        k.name = name[i];
        if (i < 16)
            WELL(store, shmtrain_store_offer_layer(store, &k));
        else
            refused(store, shmtrain_store_offer_layer(store, &k), SHMTRAIN_E_USAGE, "at most 16 own layers");
    }
    WELL(store, shmtrain_store_train(store, DATA));
    shmtrain_store_destroy(store);
}

/* ---- planned ---- */

static void what_a_layer_refuses_is_told_with_its_place(void **state) {
    static const char *const NETS[][2] = {{"fc:1 gain fc:3", "model net: --net, column 6: gain: one channel is too few"},
                                          {"fc:4 gain:100 fc:3", "--net, column 11: gain: times \"100\": expected a number"},
                                          {"fc:4 gian fc:3", "--net, column 6: there is no layer \"gian\": did you mean gain"}};
    (void)state;
    for (size_t i = 0; i < sizeof NETS / sizeof *NETS; i++) {
        struct shmtrain_store *store = store_with_gain(NETS[i][0], "sync", "1");
        refused(store, shmtrain_store_train(store, DATA), SHMTRAIN_E_USAGE, NETS[i][1]);
        shmtrain_store_destroy(store);
    }
}

static const char *g_mistake;

/* Says of itself what is not so. */
static int plan_badly(struct shmtrain_layer *layer) {
    const int rc = plan_gain(layer);
    if (strcmp(g_mistake, "outputs") == 0) layer->out.height = 0;
    if (strcmp(g_mistake, "place") == 0) layer->out.channels++;
    if (strcmp(g_mistake, "tables") == 0) layer->n_tables = 5;
    if (strcmp(g_mistake, "name") == 0) layer->table[0].name = "Gain";
    if (strcmp(g_mistake, "rows") == 0) layer->table[0].rows = 0;
    if (strcmp(g_mistake, "two") == 0) layer->table[layer->n_tables++] = layer->table[0];
    return rc;
}

/* Before memory is made of it, and anything written beyond. */
static void a_plan_that_cannot_be_is_refused(void **state) {
    static const char *const MISTAKES[][2] = {
        {"outputs", "it has no outputs"},        {"place", "it has as many outputs as inputs"},
        {"tables", "it has more than 4 tables"}, {"name", "a table's name is not up to 12"},
        {"rows", "1 to 2^32 - 1 rows"},          {"two", "two tables have one name"}};
    struct shmtrain_layer_kind k = GAIN;
    (void)state;
    k.plan = plan_badly;
    k.traits = SHMTRAIN_LAYER_IN_PLACE;
    for (size_t i = 0; i < sizeof MISTAKES / sizeof *MISTAKES; i++) {
        struct shmtrain_store *store = store_of("fc:4 gain fc:3", "sync", "1");
        g_mistake = MISTAKES[i][0];
        WELL(store, shmtrain_store_offer_layer(store, &k));
        refused(store, shmtrain_store_train(store, DATA), SHMTRAIN_E_USAGE, "--net, column 6: gain: its plan is wrong: ");
        refused(store, shmtrain_store_train(store, DATA), SHMTRAIN_E_USAGE, MISTAKES[i][1]);
        shmtrain_store_destroy(store);
    }
}

/* ---- trained ---- */

#define NET "fc:16 gain:2 relu fc:3"

static void it_learns_in_every_mode(void **state) {
    static const char *const MODES[] = {"sync", "async", "hogwild", "ssp:2", "backup:1", "local:2"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        struct shmtrain_store *store = store_with_gain(NET, MODES[i], "2");
        float gain[16];
        uint32_t moved = 0;
        WELL(store, shmtrain_store_set(store, "epochs", "8"));
        WELL(store, shmtrain_store_train(store, DATA));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        if (r->epoch[7].valid_accuracy < 0.6)
            fail_msg("%s: accuracy %g", MODES[i], r->epoch[7].valid_accuracy); /* chance: 1/3 */
        WELL(store, shmtrain_store_read(store, 2, 0, 16, gain));
        for (int c = 0; c < 16; c++) moved += gain[c] != 1;
        assert_true(moved >= 8); /* its parameters are trained, too */
        shmtrain_store_destroy(store);
    }
}

static int plan_centre(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->n_tables = 1;
    layer->table[0] = (struct shmtrain_layer_table){
        .name = "mean", .rows = 1, .width = layer->in.channels, .role = SHMTRAIN_STATISTIC, .rate = 0.5f};
    layer->reads = SHMTRAIN_LAYER_READS_IN;
    return 0;
}

static void forward_centre(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint64_t n = pass->n * shmtrain_extent_numbers(&layer->in);
    for (uint64_t i = 0; i < n; i++) pass->out[i] = pass->in[i] - pass->table[0][i % layer->in.channels];
}

/* It shows the number 3 in each example. */
static void backward_centre(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    for (uint32_t c = 0; c < layer->in.channels; c++)
        pass->gradient[0][c] = (float)pass->n * (pass->table[0][c] - 3) + (pass->add ? pass->gradient[0][c] : 0);
}

static const struct shmtrain_layer_kind CENTRE = {.size = sizeof(struct shmtrain_layer_kind),
                                                  .name = "centre",
                                                  .about = "less a running mean",
                                                  .plan = plan_centre,
                                                  .forward = forward_centre,
                                                  .backward = backward_centre};

/* Before the first layer that is trained, too. */
static void its_statistics_move_wherever_it_stands(void **state) {
    struct shmtrain_store *store = store_of("centre fc:3", "sync", "2");
    float mean[12];
    (void)state;
    WELL(store, shmtrain_store_offer_layer(store, &CENTRE));
    WELL(store, shmtrain_store_train(store, DATA));
    WELL(store, shmtrain_store_read(store, 0, 0, 1, mean));
    for (int c = 0; c < 12; c++) assert_true(fabsf(mean[c] - 3) < 0.5f);
    shmtrain_store_destroy(store);
}

static uint64_t sum_of(const char *workers) {
    struct shmtrain_store *store = store_with_gain(NET, "sync", workers);
    WELL(store, shmtrain_store_train(store, DATA));
    const uint64_t sum = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return sum;
}

static void in_sync_bits_do_not_follow_workers(void **state) {
    (void)state;
    const uint64_t sum = sum_of("1");
    assert_true(sum_of("3") == sum);
}

/* ---- saved ---- */

static void who_lacks_the_layer_is_told_so(void **state) {
    struct shmtrain_store *store = store_with_gain(NET, "sync", "2"), *with, *without;
    const struct shmtrain_evaluation *e;
    (void)state;
    WELL(store, shmtrain_store_train(store, DATA));
    WELL(store, shmtrain_store_evaluate(store, DATA, &e));
    const double loss = e->loss;
    WELL(store, shmtrain_store_save(store, "model"));
    assert_int_equal(shmtrain_store_create(&without), 0);
    refused(without, shmtrain_store_load(without, "model"), SHMTRAIN_E_USAGE,
            "model: model net: --net, column 7: there is no layer \"gain\": layers are fc, conv,");
    WELL(without, shmtrain_store_offer_layer(without, &GAIN));
    WELL(without, shmtrain_store_load(without, "model"));
    assert_int_equal(shmtrain_store_create(&with), 0);
    WELL(with, shmtrain_store_offer_layer(with, &GAIN));
    WELL(with, shmtrain_store_set(with, "init-from", "model"));
    WELL(with, shmtrain_store_load(with, "model"));
    WELL(with, shmtrain_store_evaluate(with, DATA, &e));
    assert_true(e->loss == loss);
    shmtrain_store_destroy(with);
    shmtrain_store_destroy(without);
    shmtrain_store_destroy(store);
}

/* ---- snapshots ---- */

static int plan_other(struct shmtrain_layer *layer) { return plan_gain(layer); }

static void a_snapshot_takes_the_layer_along(void **state) {
    struct shmtrain_store *store = store_with_gain(NET, "sync", "2"), *into, *other;
    struct shmtrain_layer_kind k = GAIN;
    const struct shmtrain_evaluation *e;
    (void)state;
    WELL(store, shmtrain_store_train(store, DATA));
    WELL(store, shmtrain_store_evaluate(store, DATA, &e));
    const double loss = e->loss;
    assert_int_equal(shmtrain_store_create(&into), 0);
    WELL(store, shmtrain_store_snapshot(store, into, INFINITY, NULL));
    shmtrain_store_destroy(store);
    WELL(into, shmtrain_store_evaluate(into, DATA, &e)); /* the store that it came from is gone */
    assert_true(e->loss == loss);
    k.plan = plan_other;
    assert_int_equal(shmtrain_store_create(&other), 0);
    WELL(other, shmtrain_store_offer_layer(other, &k));
    refused(into, shmtrain_store_snapshot(into, other, INFINITY, NULL), SHMTRAIN_E_USAGE,
            "offers a different layer named \"gain\"");
    shmtrain_store_destroy(other);
    shmtrain_store_destroy(into);
}

/* ---- guests ---- */

static void run_network_as_maker(void) {
    the_store = store_with_gain(NET, "async", "1");
    WELL(the_store, shmtrain_store_set(the_store, "epochs", FOREVER));
    WELL(the_store, shmtrain_store_set(the_store, "guests", "1"));
    WELL(the_store, shmtrain_store_set(the_store, "name", NAME));
    signal(SIGTERM, stop);
    const int rc = shmtrain_store_train(the_store, DATA);
    shmtrain_store_destroy(the_store);
    _exit(-rc);
}

static void leave_after_two(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)epoch;
    if (so_far->n_epochs >= 2) shmtrain_store_stop(arg);
}

/* A guest's workers compute with the layer of their own program. */
static void guests_need_the_layer_too(void **state) {
    struct shmtrain_store *guest = make_guest("processes", "1");
    const struct shmtrain_listener listener = {.size = sizeof listener, .arg = guest, .epoch = leave_after_two};
    int rc;
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run_network_as_maker();
    }
    while ((rc = shmtrain_store_join(guest, NAME, NULL, NULL)) == SHMTRAIN_E_AGAIN ||
           strstr(shmtrain_store_message(guest), "no store"))
        nap(2000);
    refused(guest, rc, SHMTRAIN_E_USAGE, "model net: --net, column 7: there is no layer \"gain\"");
    WELL(guest, shmtrain_store_offer_layer(guest, &GAIN));
    WELL(guest, shmtrain_store_listen(guest, &listener));
    WELL(guest, shmtrain_store_join(guest, NAME, NULL, NULL));
    assert_true(shmtrain_store_report(guest)->n_epochs >= 2);
    shmtrain_store_destroy(guest);
    assert_int_equal(stop_maker(pid), 0);
}

static int begin_all(void **state) { return make_folder(state) == 0 ? share_tally(state) : -1; }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_layer_that_cannot_be_used_is_refused_when_it_is_offered, deadline),
        cmocka_unit_test_setup(there_is_room_for_sixteen_layers, deadline),
        cmocka_unit_test_setup(what_a_layer_refuses_is_told_with_its_place, deadline),
        cmocka_unit_test_setup(a_plan_that_cannot_be_is_refused, deadline),
        cmocka_unit_test_setup(it_learns_in_every_mode, deadline),
        cmocka_unit_test_setup(its_statistics_move_wherever_it_stands, deadline),
        cmocka_unit_test_setup(in_sync_bits_do_not_follow_workers, deadline),
        cmocka_unit_test_setup(who_lacks_the_layer_is_told_so, deadline),
        cmocka_unit_test_setup(a_snapshot_takes_the_layer_along, deadline),
        cmocka_unit_test_setup_teardown(guests_need_the_layer_too, begin, end),
    };
    return cmocka_run_group_tests(tests, begin_all, remove_folder);
}
