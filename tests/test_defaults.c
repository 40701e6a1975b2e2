/* What options that nobody has set become: the mode by the model's cost, or by the axes that are named; rates' schedules by
 * what an update is made of; and points of the consistency space that there cannot be, refused in one line. */
#include "api_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/store_priv.h"

#define SPARSE "builtin:sparse:examples=400,valid=50,features=50,nonzeros=4"
#define DENSE  "builtin:dense:examples=400,valid=50,features=8,classes=3"

/* A run with pairs "option", "value", ..., NULL; its status. */
static int train(struct shmtrain_store **out, const char *data, const char *const *option) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "4"));
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    for (; option[0]; option += 2) WELL(store, shmtrain_store_set(store, option[0], option[1]));
    *out = store;
    return shmtrain_store_train(store, data);
}

/* What the run's policy is called, with its reason where it has one. */
static void check_mode(const char *mode, const char *reason, const char *data, const char *const *option) {
    struct shmtrain_store *store;
    if (train(&store, data, option) < 0) fail_msg("mode %s: %s", mode, shmtrain_store_message(store));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_string_equal(r->mode, mode);
    if (reason[0] ? !strstr(r->mode_reason, reason) : r->mode_reason[0] != '\0')
        fail_msg("mode %s: because \"%s\"", mode, r->mode_reason);
    shmtrain_store_destroy(store);
}
#define MODE(mode, reason, data, ...) check_mode(mode, reason, data, (const char *const[]){__VA_ARGS__, NULL})

static bool have_blas(void) {
    struct shmtrain_store *store;
    static const char *const SOFTMAX[] = {"model", "softmax", NULL};
    const int rc = train(&store, DENSE, SOFTMAX);
    const bool have = rc == 0;
    if (!have) print_message("skipped: %s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    return have;
}

static void the_cost_of_a_model_decides(void **state) {
    (void)state;
    MODE("async", "gradients are sparse", SPARSE, "seed", "2");
    MODE("async", "gradients are sparse", SPARSE, "model", "svm");
    MODE("async", "gradients are sparse", SPARSE, "staleness", "", "mode", "auto");
    MODE("async", "", SPARSE, "mode", "async");
    MODE("sync", "", SPARSE, "mode", "sync");
    if (!have_blas()) skip();
    MODE("sync", "gradients are dense", DENSE, "model", "softmax");
    MODE("async", "", DENSE, "model", "softmax", "mode", "async");
}

/* What the mode is here: with one NUMA node its copy would be the only one. */
static void a_node_alone_has_no_copy_of_its_own(void **state) {
    (void)state;
    static const char *const NODE[] = {"mode", "node", NULL};
    struct shmtrain_store *store;
    if (train(&store, SPARSE, NODE) < 0) fail_msg("%s", shmtrain_store_message(store));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    const bool alone = r->numa_nodes <= 1;
    assert_string_equal(r->mode, alone ? "hogwild" : "node");
    assert_string_equal(r->replicas, alone ? "one" : "node");
    if (alone) assert_true(r->merges == 0 && r->merge_every == 0);
    shmtrain_store_destroy(store);
}

static int idle(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1)
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    return rc;
}

static void worker_functions_have_their_usual_mode(void **state) {
    (void)state;
    struct shmtrain_store *store = make("threads", "2", "1", 100);
    WELL(store, shmtrain_store_set(store, "mode", "auto"));
    WELL(store, shmtrain_store_run(store, idle, NULL));
    assert_string_equal(shmtrain_store_report(store)->mode, "async");
    assert_non_null(strstr(shmtrain_store_report(store)->mode_reason, "worker functions"));
    shmtrain_store_destroy(store);
}

/* Few examples of a file: steps of SGD have L2 chosen for them. */
static void write_few(char *path) {
    const int fd = mkstemp(path);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    assert_non_null(f);
    for (int i = 0; i < 300; i++) fprintf(f, "%d 1:%g 2:%g\n", i % 3 ? 1 : -1, i % 3 - 0.5, i % 7 * 0.1);
    assert_int_equal(fclose(f), 0);
}

static void what_one_run_has_chosen_is_not_told_of_the_next(void **state) {
    static const char *const SGD[] = {"mode", "sync", NULL};
    char path[] = "/tmp/shmtrain-few-XXXXXX";
    struct shmtrain_store *store;
    (void)state;
    write_few(path);
    const int rc = train(&store, path, SGD);
    if (rc < 0) fail_msg("%s", shmtrain_store_message(store));
    assert_true(shmtrain_store_report(store)->choice_examples > 0);
    WELL(store, shmtrain_store_examples(store, 100));
    WELL(store, shmtrain_store_run(store, idle, NULL));
    assert_int_equal(shmtrain_store_report(store)->choice_examples, 0);
    shmtrain_store_destroy(store);
    unlink(path);
}

/* An axis that only some modes have calls for one of them; then the reason is plain. */
static void axes_that_are_named_choose_the_mode(void **state) {
    (void)state;
    MODE("sync", "", SPARSE, "write", "aggregate");
    MODE("sync", "", SPARSE, "quorum", "4"); /* of 4 */
    MODE("allreduce", "", SPARSE, "replicas", "equal");
    MODE("allreduce", "", SPARSE, "mode", "sync", "replicas", "equal");
    MODE("atomic, staleness inf", "", SPARSE, "write", "atomic");
    MODE("racy, staleness 2", "", SPARSE, "staleness", "2");
    MODE("racy, staleness 0", "gradients are sparse", SPARSE, "staleness", "0");
    MODE("local", "", SPARSE, "replicas", "worker");
    MODE("async", "gradients are sparse", SPARSE, "replicas", "one");
    MODE("backup", "", SPARSE, "quorum", "3");
    MODE("aggregate, staleness 4", "", SPARSE, "write", "aggregate", "staleness", "4");
    MODE("backup", "", SPARSE, "mode", "sync", "quorum", "3", "late", "fold");
    MODE("locked, staleness 4", "", SPARSE, "mode", "ssp", "write", "locked");
    MODE("ssp", "", SPARSE, "write", "atomic", "staleness", "3");
    if (!have_blas()) skip();
    MODE("async", "", DENSE, "model", "softmax", "staleness", "inf");
    MODE("sync", "gradients are dense", DENSE, "model", "softmax", "staleness", "0");
    MODE("local", "", DENSE, "model", "softmax", "replicas", "worker");
}

static void numbers_of_a_mode_come_from_it_or_from_options(void **state) {
    struct shmtrain_store *store;
    static const char *const OPTIONS[][7] = {
        {"mode", "local", NULL},
        {"mode", "local:7", NULL},
        {"mode", "local:7", "merge-every", "2", NULL},
        {"mode", "async", "replicas", "worker", "merge", "sum", NULL},
    };
    static const uint32_t EVERY[] = {8, 7, 2, 8};
    (void)state;
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        if (train(&store, SPARSE, OPTIONS[i]) < 0) fail_msg("%s", shmtrain_store_message(store));
        assert_int_equal(shmtrain_store_report(store)->merge_every, EVERY[i]);
        assert_string_equal(shmtrain_store_report(store)->replicas, "worker");
        assert_string_equal(shmtrain_store_report(store)->merge, i == 3 ? "sum" : "mean");
        shmtrain_store_destroy(store);
    }
}

static void what_has_no_meaning_in_a_run_has_no_name_in_its_report(void **state) {
    static const char *const OPTIONS[][5] = {{"mode", "async", "workers", "1"},
                                             {"mode", "sync"},
                                             {"mode", "backup:2", "workers", "2"}, /* all of them */
                                             {"mode", "backup:1", "workers", "2"},
                                             {"mode", "local"}};
    static const char *const LATE[] = {"", "", "", "drop", ""}, *const MERGE[] = {"", "", "", "", "mean"};
    struct shmtrain_store *store;
    (void)state;
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        if (train(&store, SPARSE, OPTIONS[i]) < 0) fail_msg("%s", shmtrain_store_message(store));
        assert_string_equal(shmtrain_store_report(store)->late, LATE[i]);
        assert_string_equal(shmtrain_store_report(store)->merge, MERGE[i]);
        shmtrain_store_destroy(store);
    }
}

/* ---- schedules ---- */

/* Noisy gradients of single examples want rates that fall further (2) than means over many (0.5). */
static void check_power(float power, const char *data, const char *const *option) {
    struct shmtrain_store *store;
    const int rc = train(&store, data, option);
    if (rc < 0) fail_msg("%s %s: %s", option[0], option[1], shmtrain_store_message(store));
    if (store->run.spec.rate.power != power)
        fail_msg("%s %s: power %g", option[0], option[1], (double)store->run.spec.rate.power);
    shmtrain_store_destroy(store);
}
#define POWER(power, data, ...) check_power(power, data, (const char *const[]){__VA_ARGS__, NULL})

static void schedules_follow_what_an_update_is_made_of(void **state) {
    (void)state;
    POWER(2, SPARSE, "mode", "async");
    POWER(2, SPARSE, "mode", "ssp:2");
    POWER(0.5f, SPARSE, "mode", "local"); /* the mean of copies is quiet */
    POWER(2, SPARSE, "mode", "local", "merge", "sum");
    POWER(2, SPARSE, "mode", "local", "workers", "1");
    POWER(2, SPARSE, "mode", "node");
    POWER(0.5f, SPARSE, "mode", "sync");
    POWER(1, SPARSE, "mode", "sync", "power", "1");
    if (!have_blas()) skip();
    POWER(0.5f, DENSE, "mode", "async", "model", "softmax");
    POWER(0.5f, DENSE, "mode", "local", "model", "softmax");
}

static void check_item(uint32_t item, const char *const *option) {
    struct shmtrain_store *store;
    if (train(&store, "builtin:dense:examples=4000,valid=50,features=8,classes=3", option) < 0)
        fail_msg("%s %s: %s", option[0], option[1], shmtrain_store_message(store));
    assert_int_equal(store->run.spec.item, item);
    shmtrain_store_destroy(store);
}
#define ITEM(item, ...) check_item(item, (const char *const[]){"model", "softmax", __VA_ARGS__, NULL})

/* The mean of n copies is one step for n items. */
static void copies_whose_mean_is_taken_have_smaller_items_each(void **state) {
    (void)state;
    if (!have_blas()) skip();
    ITEM(64, "mode", "async");
    ITEM(16, "mode", "local"); /* 4 workers */
    ITEM(16, "mode", "local", "merge", "elastic");
    ITEM(64, "mode", "local", "merge", "sum");
    ITEM(48, "mode", "local", "item", "48");
}

static void rounds_have_the_schedule_of_batches(void **state) {
    (void)state;
    POWER(0.5f, SPARSE, "mode", "backup:3");
    POWER(0.5f, SPARSE, "write", "aggregate", "staleness", "2");
}

/* In rounds everybody's item is an equal part of the batch, which the report tells as it is. */
static void a_batch_of_rounds_is_made_of_equal_items(void **state) {
    (void)state;
    struct shmtrain_store *store;
    static const char *const OPTIONS[] = {"mode", "backup:3", "batch", "66", "item", "5", NULL};
    if (train(&store, SPARSE, OPTIONS) < 0) fail_msg("%s", shmtrain_store_message(store));
    assert_int_equal(shmtrain_store_report(store)->item, 17);
    assert_int_equal(shmtrain_store_report(store)->batch, 68);
    shmtrain_store_destroy(store);
}

/* ---- copies that are added up ---- */

struct merged {
    double rate, loss;
    uint32_t item;
};

static struct merged merged_by(const char *merge, const char *mode) {
    struct shmtrain_store *store;
    const char *const options[] = {"mode", mode, "merge", merge, "epochs", "3", NULL};
    if (train(&store, "builtin:sparse:examples=20000,valid=2000,features=200,nonzeros=8", options) != 0)
        fail_msg("%s", shmtrain_store_message(store));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    const struct merged m = {r->rate, r->epoch[2].valid_loss, r->item};
    shmtrain_store_destroy(store);
    return m;
}

/* Four copies that go the same way come four times as far: at the rate of one of them, and after 8,000 examples alone, the sum
 * is a loss above 3. */
static void a_sum_of_copies_learns_with_the_defaults(void **state) {
    (void)state;
    static const char *const MODES[] = {"local:1", "local:8"};
    for (size_t i = 0; i < 2; i++) {
        const struct merged mean = merged_by("mean", MODES[i]), sum = merged_by("sum", MODES[i]);
        assert_float_equal(sum.rate, mean.rate / 4, 1e-6);
        assert_int_equal(sum.item, i == 0 ? 128 : 16);
        if (!(sum.loss < mean.loss + 0.1)) fail_msg("%s: sum ends at %g, mean at %g", MODES[i], sum.loss, mean.loss);
    }
}

/* ---- what cannot be ---- */

static void check_refused(const char *words, const char *const *option) {
    struct shmtrain_store *store;
    const int rc = train(&store, SPARSE, option);
    const char *message = shmtrain_store_message(store);
    if (rc != SHMTRAIN_E_USAGE || !strstr(message, words) || strchr(message, '\n'))
        fail_msg("%s %s: %s: \"%s\" does not say \"%s\"", option[0], option[1], shmtrain_status_name(rc), message, words);
    shmtrain_store_destroy(store);
}
#define REFUSED(words, ...) check_refused(words, (const char *const[]){__VA_ARGS__, NULL})

static void points_that_there_cannot_be_are_refused_in_one_line(void **state) {
    (void)state;
    REFUSED("write aggregate needs a finite staleness", "mode", "sync", "staleness", "inf");
    REFUSED("the most is staleness 64", "write", "aggregate", "staleness", "65");
    REFUSED("replicas node need a write mode that updates at once", "mode", "sync", "replicas", "node");
    REFUSED("replicas worker need a write mode that updates at once", "write", "aggregate", "replicas", "worker");
    REFUSED("replicas equal all make the same updates", "mode", "ssp", "replicas", "equal");
    REFUSED("use --mode allreduce", "mode", "allreduce", "staleness", "2");
    REFUSED("use --mode allreduce", "mode", "allreduce", "quorum", "3");
    REFUSED("an update cannot wait for 5 of 4 workers: use a --quorum of at most 4, or -w 5 or more", "mode", "backup:5");
    REFUSED("an update cannot wait for 5 of 4 workers: use a --quorum of at most 4, or -w 5 or more", "quorum", "5");
    REFUSED("it needs --write aggregate", "quorum", "2", "write", "racy");
    REFUSED("it needs --write aggregate", "quorum", "2", "mode", "async");
    REFUSED("a quorum of 2 of 4 workers needs --staleness 0: with a larger staleness each update waits for", "quorum", "2",
            "staleness", "3");
    REFUSED("adam cannot be written atomically", "mode", "ssp:4", "optimizer", "adam");
    REFUSED("adamw cannot be written atomically", "mode", "ssp:4", "optimizer", "adamw");
    REFUSED("lamb needs the norms of a table's weights and of its step before any is changed", "mode", "async", "optimizer",
            "lamb");
    REFUSED("lamb needs the norms of a table's weights and of its step before any is changed", "mode", "local", "optimizer",
            "lamb");
    REFUSED("with a quorum or staleness parts are changed one by one", "mode", "backup", "optimizer", "lamb");
    REFUSED("and logistic has one for each example in the modes without rounds", "mode", "async", "clip-norm", "1");
    REFUSED("and logistic has one for each example in the modes without rounds", "mode", "local", "clip-norm", "1");
    REFUSED("clip-value and clip-norm both limit the gradient", "mode", "sync", "clip-norm", "1", "clip-value", "1");
    REFUSED("which is 0 where all wait for all", "mode", "sync", "model", "softmax", "staleness-aware", "1");
    REFUSED("late ones are the only ones that have one here: use --late fold", "mode", "backup", "staleness-aware", "1");
    REFUSED(
        "logistic, which pushes no tables, have one only where updates come in rounds: use --write aggregate with --staleness "
        "N",
        "mode", "hogwild", "model", "logistic", "staleness-aware", "1");
    REFUSED("logistic, which pushes no tables, have one only where updates come in rounds", "mode", "sync", "model", "logistic",
            "staleness-aware", "1");
    REFUSED("one-cycle begins low and rises by itself: leave out --warmup", "schedule", "one-cycle", "warmup", "1");
    REFUSED("ftrl cannot be written atomically", "mode", "ssp:4", "optimizer", "ftrl");
    REFUSED("ftrl cannot be merged elastically", "mode", "local", "merge", "elastic", "optimizer", "ftrl");
    REFUSED("count-lost is for racy", "count-lost", "1", "mode", "ssp");
    REFUSED("use --replicas one", "count-lost", "1", "mode", "local");
    REFUSED("race-window widens the race of plain stores to one copy of the parameters: use --mode hogwild", "race-window",
            "2us", "mode", "ssp");
    REFUSED("use --mode hogwild", "race-window", "2us", "mode", "local");
    REFUSED("use --mode hogwild", "race-window", "2us", "mode", "sync");
    REFUSED("use --mode async, hogwild or ssp, or leave it out", "cache-pulls", "4", "mode", "sync");
    REFUSED("use --mode async, hogwild or ssp, or leave it out", "cache-pulls", "4", "mode", "backup");
    REFUSED("use --replicas one", "cache-pulls", "4", "mode", "local");
    REFUSED("use --cache-pulls 4 or more, or a smaller --staleness", "cache-pulls", "3", "mode", "ssp:4");
    REFUSED("use --backend shm", "backend", "plain", "mode", "local", "workers", "1");
}

/* L1 and L2 say by themselves how much of the noise is learned: the rate need not fall early. */
static void with_l1_or_l2_the_rate_falls_as_a_cosine_unless_somebody_asks_for_more(void **state) {
    static const struct {
        const char *option[7], *schedule;
    } CASES[] = {
        {{NULL}, "inverse"},
        {{"l2", "1e-4", NULL}, "cosine"},
        {{"l1", "1e-4", "mode", "sync", NULL}, "cosine"},
        {{"l2", "1e-4", "optimizer", "momentum", NULL}, "cosine"},
        {{"l2", "1e-4", "power", "1", NULL}, "inverse"},
        {{"l2", "1e-4", "decay-every", "2", NULL}, "inverse"},
        {{"l2", "1e-4", "schedule", "inverse", NULL}, "inverse"},
        {{"l2", "1e-4", "optimizer", "adagrad", NULL}, "constant"},
        {{"l2", "1e-4", "optimizer", "ftrl", NULL}, "constant"},
    };
    struct shmtrain_store *store;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        if (train(&store, SPARSE, CASES[i].option) < 0) fail_msg("%s", shmtrain_store_message(store));
        assert_string_equal(shmtrain_store_report(store)->schedule, CASES[i].schedule);
        shmtrain_store_destroy(store);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(with_l1_or_l2_the_rate_falls_as_a_cosine_unless_somebody_asks_for_more),
        TEST(the_cost_of_a_model_decides),
        TEST(worker_functions_have_their_usual_mode),
        TEST(what_one_run_has_chosen_is_not_told_of_the_next),
        TEST(axes_that_are_named_choose_the_mode),
        TEST(a_node_alone_has_no_copy_of_its_own),
        TEST(numbers_of_a_mode_come_from_it_or_from_options),
        TEST(what_has_no_meaning_in_a_run_has_no_name_in_its_report),
        TEST(schedules_follow_what_an_update_is_made_of),
        TEST(copies_whose_mean_is_taken_have_smaller_items_each),
        TEST(rounds_have_the_schedule_of_batches),
        TEST(a_batch_of_rounds_is_made_of_equal_items),
        TEST(a_sum_of_copies_learns_with_the_defaults),
        TEST(points_that_there_cannot_be_are_refused_in_one_line),
    };
    return cmocka_run_group_tests_name("defaults", tests, NULL, NULL);
}
