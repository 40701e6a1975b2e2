/* report: the consistency space and what it costs, as lines for people, and the lines of JSON of a run that goes on. The
 * rest of a report: test_report.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shmtrain/report.h>

static int deadline(void **state) {
    (void)state;
    alarm(60);
    return 0;
}

static const struct shmtrain_epoch EPOCHS[] = {{.epoch = 1, .examples = 32561, .valid_loss = NAN},
                                               {.epoch = 2, .examples = 1024, .valid_loss = NAN}};

static struct shmtrain_report ordinary(void) {
    return (struct shmtrain_report){.size = sizeof(struct shmtrain_report),
                                    .mode = "async",
                                    .mode_reason = "",
                                    .stopped_by = "",
                                    .write = "racy",
                                    .staleness = UINT64_MAX,
                                    .quorum = 8,
                                    .late = "drop",
                                    .replicas = "one",
                                    .n_replicas = 1,
                                    .hosts = 1,
                                    .merge = "mean",
                                    .slow = "",
                                    .backend = "shm",
                                    .model = "logistic",
                                    .optimizer = "sgd",
                                    .schedule = "inverse",
                                    .workers = 8,
                                    .threads = 1,
                                    .n_epochs = 2,
                                    .stopped = 1,
                                    .batch = 256,
                                    .item = 1024,
                                    .dataset = {"a9a", 32561, 123, 451592, 0, {0}},
                                    .valid = {.name = ""},
                                    .epoch = EPOCHS,
                                    .examples = 33585,
                                    .updates = 33585,
                                    .wait_fraction = 0.125,
                                    .waits_mostly_for = UINT32_MAX,
                                    .lost_updates = NAN,
                                    .lost_lowest = NAN,
                                    .lost_highest = NAN,
                                    .best_loss = NAN,
                                    .numa_nodes = 1,
                                    .numa = "off",
                                    .blas = ""};
}

static void assert_narrow(const char *text) {
    size_t column = 0;
    for (const char *at = text; *at; at++) {
        column = *at == '\n' ? 0 : column + 1;
        if (column > 80) fail_msg("wider than 80 columns:\n%s", text);
    }
}

/* ---- opening lines ---- */

static void assert_opens(const struct shmtrain_report *r, const char *words) {
    char text[2048];
    shmtrain_report_opening(r, text, sizeof text);
    assert_narrow(text);
    if (!strstr(text, words)) fail_msg("no \"%s\" in\n%s", words, text);
}

static void each_policy_is_said_by_its_axes_and_in_words(void **state) {
    struct shmtrain_report r = ordinary();
    (void)state;
    r.mode = "ssp:4";
    r.write = "atomic";
    r.staleness = 4;
    assert_opens(&r,
                 "consistency ssp:4: write atomic, staleness 4\n"
                 "            updates after each example, no worker more than 4 clocks ahead\n");
    r.mode = "atomic, staleness 0"; /* no mode's point */
    r.staleness = 0;
    assert_opens(&r,
                 "consistency write atomic, staleness 0\n"
                 "            updates after each example,\n            all workers meet after 1024 examples each\n");
    r.mode = "local:16";
    r.replicas = "worker";
    r.n_replicas = 8;
    r.merge_every = 16;
    assert_opens(&r,
                 "consistency local:16: write atomic, staleness 0, replicas worker,\n"
                 "            merge mean every 16\n"
                 "            8 copies of the parameters, updates after each example,\n"
                 "            merged every 16384 examples of a worker, all workers meet for it\n");
    r.hosts = 2;
    assert_opens(&r,
                 "            8 copies of the parameters on this host, updates after each example,\n"
                 "            merged every 16384 examples of a worker,\n"
                 "            all workers of all hosts meet for it\n");
    r = ordinary();
    r.mode = "backup:6";
    r.write = "aggregate";
    r.staleness = 0;
    r.quorum = 6;
    assert_opens(&r,
                 "consistency backup:6: write aggregate, staleness 0, quorum 6 of 8, late drop\n"
                 "            updates of 192 examples: the first 6 of 8 gradients of 32\n");
    r.late = "fold";
    assert_opens(&r,
                 "            updates of 192 examples: the first 6 of 8 gradients of 32,\n"
                 "            and those that came late\n");
    r.late = "drop";
    r.quorum = 8;
    r.staleness = 2;
    assert_opens(&r, "            one update per batch of 256 examples, at most 2 batches behind\n");
}

static void why_a_mode_was_chosen_and_who_is_slow_have_lines_of_their_own(void **state) {
    struct shmtrain_report r = ordinary();
    (void)state;
    r.mode_reason = "gradients are sparse and cost less than waiting for others";
    r.slow = "3:5x";
    assert_opens(&r,
                 "no worker waits\n            auto: gradients are sparse and cost less than waiting for others\nslowed "
                 "down 3:5x\n");
}

/* ---- the summary ---- */

static void assert_ends(const struct shmtrain_report *r, const char *words) {
    char text[4096];
    shmtrain_report_summary(r, text, sizeof text);
    assert_narrow(text);
    if (!strstr(text, words)) fail_msg("no \"%s\" in\n%s", words, text);
}

static void costs_are_plain_figures(void **state) {
    struct shmtrain_report r = ordinary();
    (void)state;
    r.n_workers = 0;
    r.delay = (struct shmtrain_delay){.samples = 9, .mean = 7031.2, .p50 = 6911, .p99 = 14335, .max = 1234567, .clocks = 6.87};
    assert_ends(&r, "\ndelay       mean 7,031 updates (6.9 clocks), p50 6,911, p99 14,335,\n            max 1,234,567\n");
    r.delay.max = 12345678;
    assert_ends(&r, "(6.9 clocks), p50 6,911, p99 14,335, max 12.3 M\n");
    r.delay.samples = 0;
    assert_ends(&r, "updates\nwaiting     12.5 % of the workers' time\n");
    r.dropped = 4164;
    r.folded = 1041;
    r.merges = 1;
    r.merge_fraction = 0.021;
    assert_ends(&r,
                "\nmerging     2.1 % of the workers' time, 1 merge\n"
                "dropped     12.4 % of the examples came too late\n"
                "folded      3.1 % of the examples came too late and went into a later update\n");
}

/* Of two hosts that train on 40,000 examples each knows its own late ones. */
static void late_gradients_are_a_part_of_those_of_their_own_host(void **state) {
    struct shmtrain_report r = ordinary();
    struct shmtrain_worker_report worker[2] = {{.examples = 6000, .delay = NAN}, {.examples = 4000, .delay = NAN}};
    (void)state;
    r.hosts = 2;
    r.examples = 40000;
    r.worker = worker;
    r.n_workers = 2;
    r.dropped = 2000;
    r.folded = 1000;
    assert_ends(&r,
                "\ndropped     20.0 % of this host's examples came too late\n"
                "folded      10.0 % of this host's examples came too late,\n            and went into a later update\n");
}

/* In every mode all meet at the end of an epoch; what a mode itself costs must not hide behind that. */
static void waits_at_the_ends_of_epochs_are_told_apart(void **state) {
    struct shmtrain_report r = ordinary();
    struct shmtrain_worker_report worker[2] = {
        {.examples = 1000, .compute_seconds = 1, .wait_seconds = 0.5, .wait_epoch_seconds = 2.5, .delay = NAN},
        {.examples = 1000, .compute_seconds = 4, .delay = NAN}};
    (void)state;
    worker[0].n_waited_for = 1;
    worker[0].waited_for[0] = (struct shmtrain_waited_for){.worker = 1, .seconds = 0.5};
    r.worker = worker;
    r.n_workers = 2;
    r.wait_epoch_fraction = 0.25;
    assert_ends(&r,
                "worker   examples  computing  waiting  epoch end  waits for\n"
                "     0       1000     25.0 %   12.5 %     62.5 %  1\n"
                "     1       1000    100.0 %    0.0 %      0.0 %\n");
    assert_ends(&r, "waiting     12.5 % of the workers' time, and 25.0 % at the ends of epochs\n");
    r.waits_mostly_for = 1; /* the former */
    assert_ends(&r,
                "waiting     12.5 % of the workers' time, mostly for worker 1,\n"
                "            and 25.0 % at the ends of epochs\n");
}

static void of_many_workers_the_first_and_the_slowest_are_shown(void **state) {
    struct shmtrain_report r = ordinary();
    struct shmtrain_worker_report worker[64];
    (void)state;
    for (uint32_t i = 0; i < 64; i++)
        worker[i] = (struct shmtrain_worker_report){.examples = 1000, .compute_seconds = i == 40 ? 3 : 1, .delay = NAN};
    r.worker = worker;
    r.n_workers = 64;
    assert_ends(&r, "worker   examples  computing  waiting\n     0       1000    100.0 %    0.0 %\n");
    assert_ends(&r,
                "\n    14       1000    100.0 %    0.0 %\n"
                "   ...\n"
                "    40       1000    100.0 %    0.0 %\n"
                "         of workers 15 to 63, 40 is the slowest\n\nstopped: 2 epochs");
    r.n_workers = 16;
    assert_ends(&r, "\n    15       1000    100.0 %    0.0 %\n\nstopped: 2 epochs");
}

/* ---- a run that goes on ---- */

static void a_moment_is_one_line_of_json_with_these_names(void **state) {
    const struct shmtrain_report r = ordinary();
    const struct shmtrain_worker_progress worker[] = {{.examples = 300,
                                                       .examples_per_second = 1000,
                                                       .compute_fraction = 0.5,
                                                       .wait_fraction = 0.25,
                                                       .merge_fraction = 0.125,
                                                       .dropped = 16,
                                                       .folded = 8,
                                                       .delay = 7.5,
                                                       .here = 1},
                                                      {.here = 0}, /* nobody */
                                                      {.examples = 100, .delay = NAN, .joined = 1, .here = 1}};
    const struct shmtrain_progress now = {.size = sizeof(struct shmtrain_progress),
                                          .epoch = 2,
                                          .epochs = 9,
                                          .examples = 400,
                                          .all_examples = 1600,
                                          .seconds = 1.5,
                                          .examples_per_second = 1200,
                                          .loss = 0.25,
                                          .seconds_left = NAN,
                                          .delay = 7.5,
                                          .dropped = 16,
                                          .folded = 8,
                                          .n_workers = 3,
                                          .worker = worker};
    char *text = shmtrain_progress_json(&r, &now);
    (void)state;
    assert_non_null(text);
    assert_string_equal(
        text,
        "{\"event\":\"progress\",\"at\":1.5,\"mode\":\"async\",\"epoch\":2,\"epochs\":9,\"examples\":400,\"all_examples\":1600,"
        "\"examples_per_second\":1200.0,\"loss\":0.25,\"seconds_left\":null,\"delay\":7.5,\"dropped\":16,\"folded\":8,"
        "\"per_worker\":[{\"worker\":0,\"joined\":false,\"examples\":300,\"examples_per_second\":1000.0,"
        "\"compute_fraction\":0.5,\"wait_fraction\":0.25,\"merge_fraction\":0.125,\"dropped\":16,\"folded\":8,\"delay\":7.5,"
        "\"stalled\":false},"
        "{\"worker\":2,\"joined\":true,\"examples\":100,\"examples_per_second\":0.0,\"compute_fraction\":0.0,"
        "\"wait_fraction\":0.0,\"merge_fraction\":0.0,\"dropped\":0,\"folded\":0,\"delay\":null,\"stalled\":false}]}\n");
    free(text);
}

static void an_epoch_is_one_line_of_json_as_it_is_in_the_report(void **state) {
    const struct shmtrain_report r = ordinary();
    char *line = shmtrain_epoch_json(&r, &EPOCHS[1], 2.5), *all = shmtrain_report_json(&r);
    const char *key;
    json_t *value;
    (void)state;
    assert_true(line && all && line[strlen(line) - 1] == '\n');
    json_t *o = json_loads(line, 0, NULL), *report = json_loads(all, 0, NULL);
    json_t *same = json_array_get(json_object_get(report, "epochs"), 1);
    assert_string_equal(json_string_value(json_object_get(o, "event")), "epoch");
    assert_true(json_real_value(json_object_get(o, "at")) == 2.5);
    assert_string_equal(json_string_value(json_object_get(o, "mode")), "async");
    assert_int_equal(json_object_size(o), json_object_size(same) + 3);
    json_object_foreach(same, key, value) assert_true(json_equal(value, json_object_get(o, key)));
    json_decref(report);
    json_decref(o);
    free(line);
    free(all);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(each_policy_is_said_by_its_axes_and_in_words),
        TEST(why_a_mode_was_chosen_and_who_is_slow_have_lines_of_their_own),
        TEST(costs_are_plain_figures),
        TEST(late_gradients_are_a_part_of_those_of_their_own_host),
        TEST(waits_at_the_ends_of_epochs_are_told_apart),
        TEST(of_many_workers_the_first_and_the_slowest_are_shown),
        TEST(a_moment_is_one_line_of_json_with_these_names),
        TEST(an_epoch_is_one_line_of_json_as_it_is_in_the_report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
