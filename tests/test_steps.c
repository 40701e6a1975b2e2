/* Option log-every: lines by steps, as a listener, the metrics and people get them. What is asserted holds however fast or slow
 * the machine is: a line for some of the multiples, one for the last one, and numbers that fit one another. */
#include "api_help.h"

#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>

#include "folder_help.h"

#define SPARSE "builtin:sparse:examples=20000,valid=100,features=200,nonzeros=5"
#define MOST   4096

static struct shmtrain_steps g_steps[MOST];
static int g_n;

static void note_steps(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_steps *steps) {
    (void)arg;
    assert_non_null(so_far);
    assert_true(g_n < MOST);
    g_steps[g_n++] = *steps;
}

static const struct shmtrain_listener LISTENER = {.size = sizeof(struct shmtrain_listener), .steps = note_steps};

/* `total` steps in all, a line every `every`. */
static void assert_lines(uint64_t every, uint64_t total, uint64_t examples, uint32_t epochs) {
    uint64_t step = 0, seen = 0;
    double seconds = 0;
    assert_true(g_n >= 1);
    assert_true((uint64_t)g_n <= total / every);
    for (int i = 0; i < g_n; i++) {
        const struct shmtrain_steps *s = &g_steps[i];
        assert_true(s->step / every > step / every); /* another multiple is done */
        assert_true(s->examples > seen);
        assert_true(s->seconds >= seconds);
        assert_in_range(s->step, 1, total);
        assert_in_range(s->examples, 1, examples);
        assert_in_range(s->epoch, 1, epochs);
        assert_int_equal(s->epochs, epochs);
        step = s->step;
        seen = s->examples;
        seconds = s->seconds;
    }
    assert_int_equal(step / every, total / every); /* however late it is told */
}

static struct shmtrain_store *make_store(const char *spawn, const char *mode, const char *every) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    shmtrain_store_listen(store, &LISTENER);
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "3"));
    WELL(store, shmtrain_store_set(store, "batch", "100"));
    WELL(store, shmtrain_store_set(store, "item", "100"));
    WELL(store, shmtrain_store_set(store, "log-every", every));
    g_n = 0;
    return store;
}

static void the_last_multiple_is_told_in_every_mode(void **state) {
    static const struct {
        const char *mode;
        uint64_t steps; /* of an epoch of 20,000 */
    } MODES[] = {{"sync", 200}, {"hogwild", 200}, {"ssp:2", 200}, {"local:4", 200}, {"backup:1", 400}};
    (void)state;
    for (size_t k = 0; k < 2 * sizeof MODES / sizeof *MODES; k++) {
        struct shmtrain_store *store = make_store(SPAWNS[k & 1], MODES[k / 2].mode, "50");
        WELL(store, shmtrain_store_train(store, SPARSE));
        assert_lines(50, 3 * MODES[k / 2].steps, 60000, 3);
        for (int i = 0; i < g_n; i++) assert_true(g_steps[i].loss > 0 && g_steps[i].loss < 10);
        shmtrain_store_destroy(store);
    }
}

/* Losses since the line before, weighted by their examples, are those of all. */
static void the_losses_add_up_to_those_of_the_epochs(void **state) {
    double sum = 0, of_epochs = 0;
    uint64_t seen = 0;
    (void)state;
    struct shmtrain_store *store = make_store("processes", "hogwild", "1"); /* 600 steps: the last line has all */
    WELL(store, shmtrain_store_train(store, SPARSE));
    assert_lines(1, 600, 60000, 3);
    for (int i = 0; i < g_n; i++) {
        sum += g_steps[i].loss * (double)(g_steps[i].examples - seen);
        seen = g_steps[i].examples;
    }
    const struct shmtrain_report *r = shmtrain_store_report(store);
    for (uint32_t i = 0; i < r->n_epochs; i++) of_epochs += r->epoch[i].train_loss * (double)r->epoch[i].examples;
    /* Examples and losses are read while they grow: the last line may lack the loss of an item in 600. */
    assert_true(fabs(sum - of_epochs) < 0.005 * of_epochs);
    shmtrain_store_destroy(store);
}

static int work_slowly(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        usleep(20000);
        if ((rc = shmtrain_clock(s, NULL)) < 0) break;
    }
    return rc;
}

/* Workers ring, so that a step of 20 ms does not wait for a tick of 100; of a worker function that reports no loss, too. */
static void lines_come_when_steps_are_done_and_not_ten_times_a_second(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct shmtrain_store *store = make(SPAWNS[k], "1", "1", 3000);
        shmtrain_store_listen(store, &LISTENER);
        WELL(store, shmtrain_store_set(store, "mode", "hogwild"));
        WELL(store, shmtrain_store_set(store, "item", "100"));
        WELL(store, shmtrain_store_set(store, "log-every", "1"));
        g_n = 0;
        WELL(store, shmtrain_store_run(store, work_slowly, NULL));
        assert_lines(1, 30, 3000, 1);
        assert_true(g_n > 10); /* 6 or 7 by ticks alone */
        for (int i = 0; i < g_n; i++) assert_true(isnan(g_steps[i].loss));
        shmtrain_store_destroy(store);
    }
}

static void nobody_is_told_who_has_not_asked(void **state) {
    (void)state;
    struct shmtrain_store *store = make_store("threads", "sync", "none");
    WELL(store, shmtrain_store_train(store, SPARSE));
    assert_int_equal(g_n, 0);
    WELL(store, shmtrain_store_set(store, "log-every", "100000")); /* more than there are */
    WELL(store, shmtrain_store_train(store, SPARSE));
    assert_int_equal(g_n, 0);
    shmtrain_store_destroy(store);
}

static void in_the_background_none_is_lost_and_metrics_have_the_same(void **state) {
    char *line = NULL;
    size_t bytes = 0;
    int n = 0, rc;
    (void)state;
    struct shmtrain_store *store = make_store("processes", "sync", "50");
    WELL(store, shmtrain_store_set(store, "metrics", "metrics.json"));
    WELL(store, shmtrain_store_start_training(store, SPARSE));
    while ((rc = shmtrain_store_step(store)) == 1) {
        struct pollfd pollfd = {.fd = shmtrain_store_fd(store), .events = POLLIN};
        (void)poll(&pollfd, 1, -1);
    }
    WELL(store, rc);
    assert_lines(50, 600, 60000, 3);
    FILE *f = fopen("metrics.json", "r");
    assert_non_null(f);
    while (getline(&line, &bytes, f) > 0) {
        json_t *o = json_loads(line, 0, NULL);
        assert_non_null(o);
        if (strcmp(json_string_value(json_object_get(o, "event")), "steps") == 0) {
            assert_true(n < g_n);
            assert_int_equal(json_integer_value(json_object_get(o, "step")), g_steps[n].step);
            assert_int_equal(json_integer_value(json_object_get(o, "epoch")), g_steps[n].epoch);
            assert_int_equal(json_integer_value(json_object_get(o, "epochs")), 3);
            assert_int_equal(json_integer_value(json_object_get(o, "examples")), g_steps[n].examples);
            assert_true(fabs(json_number_value(json_object_get(o, "loss")) - g_steps[n].loss) < 1e-9);
            n++;
        }
        json_decref(o);
    }
    assert_int_equal(n, g_n);
    free(line);
    fclose(f);
    assert_int_equal(unlink("metrics.json"), 0);
    shmtrain_store_destroy(store);
}

/* Steps and examples are counted from the first run's beginning; what that one told is not told again. */
static void a_run_that_goes_on_counts_on(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const char *const mode = k == 0 ? "sync" : "hogwild";
        struct shmtrain_store *store = make_store("processes", mode, "50");
        WELL(store, shmtrain_store_set(store, "checkpoint", "."));
        WELL(store, shmtrain_store_set(store, "steps", "320"));
        WELL(store, shmtrain_store_train(store, SPARSE));
        assert_lines(50, 320, 32000, 3);
        shmtrain_store_destroy(store);
        store = make_store("processes", mode, "50");
        WELL(store, shmtrain_store_set(store, "checkpoint", "."));
        WELL(store, shmtrain_store_set(store, "resume", "1"));
        WELL(store, shmtrain_store_train(store, SPARSE));
        assert_true(g_steps[0].step >= 350 && g_steps[0].examples > 32000);
        assert_true(g_steps[0].loss > 0 && g_steps[0].loss < 1);
        assert_lines(50, 600, 60000, 3);
        shmtrain_store_destroy(store);
        assert_int_equal(system("rm checkpoint-*"), 0);
    }
}

static void a_line_for_people_has_it_all_and_fits(void **state) {
    const struct shmtrain_steps some = {.size = sizeof(struct shmtrain_steps),
                                        .step = 1200,
                                        .epoch = 3,
                                        .epochs = 10,
                                        .examples = 1228800,
                                        .loss = 0.3125,
                                        .examples_per_second = 1200000};
    const struct shmtrain_steps most = {.size = sizeof(struct shmtrain_steps),
                                        .step = 1000000000000,
                                        .epoch = 1000000,
                                        .epochs = 1000000,
                                        .examples = UINT64_C(1000000000000000),
                                        .loss = NAN,
                                        .examples_per_second = 1e12};
    char text[160];
    (void)state;
    shmtrain_steps_line(&some, text, sizeof text);
    assert_string_equal(text, "step 1200   epoch 3/10   1229 k examples   loss 0.31250   1200 k examples/s");
    shmtrain_steps_line(&most, text, sizeof text);
    assert_non_null(strstr(text, "loss -   "));
    assert_in_range(strlen(text), 1, 90);
    shmtrain_steps_line(&some, text, 10);
    assert_string_equal(text, "step 1200");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(the_last_multiple_is_told_in_every_mode),
        TEST(the_losses_add_up_to_those_of_the_epochs),
        TEST(lines_come_when_steps_are_done_and_not_ten_times_a_second),
        TEST(nobody_is_told_who_has_not_asked),
        TEST(in_the_background_none_is_lost_and_metrics_have_the_same),
        TEST(a_run_that_goes_on_counts_on),
        TEST(a_line_for_people_has_it_all_and_fits),
    };
    return cmocka_run_group_tests_name("steps", tests, make_folder, remove_folder);
}
