/* report: the lines for people, for ordinary numbers and for the strangest that a run can have. JSON is in test_report_json.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report_help.h"

static void assert_narrow(const char *text) {
    size_t column = 0;
    for (const char *at = text; *at; at++) {
        column = *at == '\n' ? 0 : column + 1;
        if (column > 80) fail_msg("wider than 80 columns:\n%s", text);
        if (*at != '\n' && (*at < ' ' || *at > '~')) fail_msg("a character of code %d in:\n%s", *at, text);
    }
}

static void ordinary_lines_stand_under_their_headings(void **state) {
    const struct shmtrain_report r = ordinary();
    char heading[128], line[128];
    (void)state;
    shmtrain_report_heading(&r, heading, sizeof heading);
    assert_string_equal(heading, "epoch  train loss  valid loss  accuracy     AUC  examples/s   seconds");
    shmtrain_report_line(&r, &TWO_EPOCHS[0], line, sizeof line);
    assert_string_equal(line, "    1     0.37500     0.34375   84.38 %  0.8984       521 k     0.062");
    assert_int_equal(strlen(line), strlen(heading));
    shmtrain_report_line(&r, &TWO_EPOCHS[1], line, sizeof line);
    assert_string_equal(line, "    2     0.32812           -         -       -      32.8 k     0.031  stopped");
}

static void without_validation_its_columns_are_not_there(void **state) {
    struct shmtrain_report r = ordinary();
    char heading[128], line[128];
    (void)state;
    r.valid.name = "";
    shmtrain_report_heading(&r, heading, sizeof heading);
    assert_string_equal(heading, "epoch  train loss  examples/s   seconds");
    shmtrain_report_line(&r, &TWO_EPOCHS[0], line, sizeof line);
    assert_int_equal(strlen(line), strlen(heading));
}

static void columns_that_the_model_does_not_fill_are_not_there(void **state) {
    struct shmtrain_report r = ordinary();
    char heading[128], line[128];
    (void)state;
    r.with_auc = 0;
    shmtrain_report_heading(&r, heading, sizeof heading);
    assert_string_equal(heading, "epoch  train loss  valid loss  accuracy  examples/s   seconds");
    shmtrain_report_line(&r, &TWO_EPOCHS[0], line, sizeof line);
    assert_int_equal(strlen(line), strlen(heading));
    r.with_accuracy = 0;
    shmtrain_report_heading(&r, heading, sizeof heading);
    assert_string_equal(heading, "epoch  train loss  valid loss  examples/s   seconds");
    shmtrain_report_line(&r, &TWO_EPOCHS[0], line, sizeof line);
    assert_int_equal(strlen(line), strlen(heading));
}

static void one_is_one(void **state) {
    struct shmtrain_report r = ordinary();
    char text[2048];
    (void)state;
    r.updates = 1;
    r.batch = 1;
    r.staleness = 0;
    r.write = "aggregate";
    shmtrain_report_opening(&r, text, sizeof text);
    assert_non_null(strstr(text, "one update per batch of 1 example, all wait for it\n"));
    shmtrain_report_summary(&r, text, sizeof text);
    assert_non_null(strstr(text, " 1 update\n"));
}

static void opening_and_summary_say_what_runs_and_what_came_out(void **state) {
    struct shmtrain_report r = ordinary();
    char text[2048];
    (void)state;
    shmtrain_report_opening(&r, text, sizeof text);
    assert_string_equal(text,
                        "data        a9a\n"
                        "            32.6 k examples, 123 features, 452 k nonzeros\n"
                        "validation  a9a.t\n"
                        "            16.3 k examples, 123 features, 226 k nonzeros\n"
                        "model       logistic, sgd with rate 0.0625 inverse, l2 0\n"
                        "consistency async: write racy, staleness inf\n"
                        "            updates after each example, no worker waits\n"
                        "workers     8, shm backend\n");
    r.n_epochs = 1;
    r.stopped = 0;
    r.best_loss = 0.3125;
    shmtrain_report_summary(&r, text, sizeof text);
    assert_string_equal(text,
                        "worker   examples  computing  waiting      delay  waits for\n"
                        "     0     22.4 k     66.7 %   33.3 %        512  1\n"
                        "     1+    11.2 k    100.0 %    0.0 %          -\n"
                        "      + joined by name\n"
                        "\n"
                        "done: 1 epoch in 1.500 s (0.094 s of training), 358 k examples/s\n"
                        "            33.6 k updates\n"
                        "delay       mean 256 updates (0.25 clocks), p50 0, p99 1,024, max 1,024\n"
                        "waiting     12.5 % of the workers' time, mostly for worker 1\n"
                        "checkpoints 3, for which training paused 0.125 s\n"
                        "deaths      workers were restarted 3 times,\n"
                        "            256 examples of unfinished items done again,\n"
                        "            64 examples of unfinished items skipped\n"
                        "validation  loss 0.34375, accuracy 84.38 %, AUC 0.8984\n"
                        "            the model that made the data has loss 0.31250: 0.03125 to go\n"
                        "parameters  xxh64 0123456789abcdef\n");
}

/* It falls from 0.5 to 0.25; but where an epoch before the last one is kept, it has risen. */
static void a_loss_that_still_falls_is_told_unless_another_epoch_was_kept(void **state) {
    struct shmtrain_epoch epoch[3] = {
        {.epoch = 1, .valid_loss = 0.5}, {.epoch = 2, .valid_loss = 0.2}, {.epoch = 3, .valid_loss = 0.25}};
    struct shmtrain_report r = ordinary();
    char text[2048];
    (void)state;
    r.epoch = epoch;
    r.n_epochs = 3;
    r.stopped = 0;
    shmtrain_report_summary(&r, text, sizeof text);
    assert_non_null(strstr(text, "hint        the loss still falls, by 100 % in the last two epochs: try -e 6\n"));
    r.kept_epoch = 2;
    shmtrain_report_summary(&r, text, sizeof text);
    assert_null(strstr(text, "hint"));
    r.kept_epoch = 0;
    r.n_epochs = 1;
    shmtrain_report_summary(&r, text, sizeof text);
    assert_null(strstr(text, "hint"));
}

static void a_loss_that_had_jumped_up_does_not_fall_by_coming_down(void **state) {
    struct shmtrain_epoch epoch[4] = {{.epoch = 1, .valid_loss = 0.25},
                                      {.epoch = 2, .valid_loss = 0.5},
                                      {.epoch = 3, .valid_loss = 0.3},
                                      {.epoch = 4, .valid_loss = 0.248}};
    struct shmtrain_report r = ordinary();
    char text[2048];
    (void)state;
    r.epoch = epoch;
    r.n_epochs = 4;
    r.stopped = 0;
    shmtrain_report_summary(&r, text, sizeof text);
    assert_null(strstr(text, "hint"));
    epoch[3].valid_loss = 0.2;
    shmtrain_report_summary(&r, text, sizeof text);
    assert_non_null(strstr(text, "hint        the loss still falls, by 25 %"));
}

static void what_is_out_of_the_ordinary_has_words_of_its_own(void **state) {
    struct shmtrain_report r = ordinary();
    char text[2048];
    (void)state;
    r.l1 = 0.001;
    r.weight_decay = 0.01;
    r.clip_value = 0.5;
    r.clip_norm = 2;
    r.warmup = 0.5;
    r.blas = "OpenBLAS 0.3.21 Zen";
    r.guests = 3;
    r.item_updates = 1;
    r.numa = "interleave";
    r.numa_nodes = 4;
    r.page_bytes = 2 << 20;
    r.lost_updates = 0.015;
    r.race_seconds = 2e-6;
    r.race_share = 0.25;
    shmtrain_report_opening(&r, text, sizeof text);
    assert_non_null(strstr(text, "\nrace window 2 us between load and store, in 25 % of pushes\n"));
    assert_non_null(strstr(text,
                           "model       logistic, sgd with rate 0.0625 inverse, l1 0.001,\n            l2 0\n"
                           "            the rate grows from 0 for 0.5 epochs\n"
                           "            weight decay 0.01\n"
                           "            elements of gradients are clipped at 0.5\n"
                           "            gradients of tables are clipped at a norm of 2\n"
                           "            on OpenBLAS 0.3.21 Zen\n"
                           "consistency async: write racy, staleness inf\n"
                           "            updates of 1024 examples, no worker waits\n"));
    assert_non_null(strstr(text, "workers     8, places for 3 guests, shm backend\n"));
    r.cores = 8;
    shmtrain_report_opening(&r, text, sizeof text);
    assert_null(strstr(text, "more threads than cores"));
    r.cores = 2;
    shmtrain_report_opening(&r, text, sizeof text);
    assert_non_null(strstr(text, "            more threads than cores (2): workers also wait for cores\n"));
    assert_non_null(strstr(text, "memory      interleave over 4 NUMA nodes, pages of 2 MiB\n"));
    shmtrain_report_summary(&r, text, sizeof text);
    assert_non_null(strstr(text, "\nlost        1.50 % of parameters' updates\n"));
    r.lost_lowest = 0.0125;
    r.lost_highest = 0.02;
    shmtrain_report_summary(&r, text, sizeof text);
    assert_non_null(strstr(text, "\nlost        1.50 % of parameters' updates (epochs: 1.25 to 2.00 %)\n"));
}

static void add_strange_costs(struct shmtrain_report *r, uint64_t n, double x, int variant) {
    static struct shmtrain_worker_report worker[40];
    const uint32_t most = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    for (uint32_t i = 0; i < 40; i++)
        worker[i] = (struct shmtrain_worker_report){.examples = n,
                                                    .dropped = n,
                                                    .folded = n,
                                                    .compute_seconds = x,
                                                    .merge_seconds = x,
                                                    .wait_seconds = x,
                                                    .delay = x,
                                                    .joined = i & 1,
                                                    .n_waited_for = 4,
                                                    .waited_for = {{4095, 0, x}, {4094, 0, x}, {4093, 0, x}}};
    r->worker = worker;
    r->n_workers = variant & 2 ? 40 : 2;
    r->mode_reason = "words, of which there are so many that they do not fit into one line, so that they take two or three";
    r->slow = "1:5x,2:+2ms,3:5x,4:+2ms,5:5x,6:+2ms,7:5x,8:+2ms,9:5x,10:+2ms,11:5x,12:+2ms";
    r->replicas = variant & 1 ? "one" : "worker";
    r->n_replicas = r->merge_every = r->quorum = most;
    r->dropped = r->folded = r->merges = r->respawns = r->redone = r->skipped = n;
    r->merge_fraction = x;
    r->delay = (struct shmtrain_delay){.samples = n, .mean = x, .p50 = x, .p99 = x, .max = x, .clocks = x};
}

/* Every number as large, small, negative or undefined as its type allows; names longer than a line. */
static void no_line_is_wider_than_80_columns(void **state) {
    static const double NUMBERS[] = {0, 1e-300, 1, 99999, 1e7, 1e30, 1e300, -1e300, INFINITY, -INFINITY, NAN};
    static const uint64_t COUNTS[] = {0, 1, 9999, 10000, 999999, UINT32_MAX, UINT64_MAX};
    static const char *const WRITES[] = {"racy", "aggregate"};
    char name[600], text[4096];
    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        for (size_t j = 0; j < sizeof COUNTS / sizeof *COUNTS; j++)
            for (int variant = 0; variant < 8; variant++) {
                const double x = NUMBERS[i];
                const uint64_t n = COUNTS[j];
                struct shmtrain_report r = ordinary();
                const struct shmtrain_epoch epoch = {.epoch = n > 1000000 ? 1000000 : (uint32_t)n,
                                                     .partial = 1,
                                                     .examples = n,
                                                     .seconds = x,
                                                     .train_loss = x,
                                                     .valid_loss = x,
                                                     .valid_accuracy = variant & 4 ? 1 : NAN,
                                                     .valid_auc = variant & 4 ? 1 : NAN};
                r.epoch = &epoch;
                r.n_epochs = 1;
                r.write = WRITES[variant & 1];
                r.mode = variant & 1 ? "sync" : "racy, staleness 0";
                r.staleness = variant & 2 ? 0 : UINT64_MAX;
                r.batch = r.item = n > 1u << 30 ? 1u << 30 : (uint32_t)n;
                r.workers = r.threads = (uint32_t)(n > 4096 ? 4096 : n);
                r.dataset.name = r.valid.name = r.model = name;
                r.dataset.examples = r.dataset.features = r.dataset.nonzeros = n;
                r.valid.examples = r.valid.features = r.valid.nonzeros = n;
                r.updates = n;
                r.guests = r.numa_nodes = (uint32_t)(n > 4096 ? 4096 : n);
                r.numa = "interleave";
                r.blas = name;
                r.rate = r.l1 = r.l2 = r.lost_updates = r.lost_lowest = r.lost_highest = r.best_loss = r.seconds =
                    r.train_seconds = r.examples_per_second = x;
                r.wait_fraction = 1;
                add_strange_costs(&r, n, x, variant);
                shmtrain_report_heading(&r, text, sizeof text);
                assert_narrow(text);
                shmtrain_report_line(&r, &epoch, text, sizeof text);
                assert_narrow(text);
                shmtrain_report_opening(&r, text, sizeof text);
                assert_narrow(text);
                shmtrain_report_summary(&r, text, sizeof text);
                assert_narrow(text);
            }
}

static void a_long_name_is_cut_at_its_beginning(void **state) {
    struct shmtrain_report r = ordinary();
    char name[200], text[2048];
    (void)state;
    memset(name, 'd', sizeof name);
    strcpy(name + 150, "/train.svm");
    r.dataset.name = name;
    shmtrain_report_opening(&r, text, sizeof text);
    assert_non_null(strstr(text, "...ddd"));
    assert_non_null(strstr(text, "ddd/train.svm\n"));
}

static void what_a_terminal_would_obey_is_no_part_of_a_name(void **state) {
    struct shmtrain_report r = ordinary();
    char text[2048];
    (void)state;
    r.dataset.name = "a\033[31mb\nc\177d\302\233e\303\244";
    r.valid.name = "\007";
    shmtrain_report_opening(&r, text, sizeof text);
    assert_non_null(strstr(text, "data        a?[31mb?c?d?e\303\244\n "));
    assert_non_null(strstr(text, "validation  ?\n "));
}

static void a_name_is_cut_between_characters(void **state) {
    char name[128], text[2048];
    (void)state;
    for (size_t bytes = 61; bytes < 67; bytes++) { /* a run of letters of three bytes each is cut at all their bytes */
        struct shmtrain_report r = ordinary();
        size_t n = 0;
        for (; n < 24; n += 3) memcpy(name + n, "\342\202\254", 3);
        memset(name + n, 'x', bytes - n);
        name[bytes] = '\0';
        r.dataset.name = name;
        shmtrain_report_opening(&r, text, sizeof text);
        if (strncmp(text, "data        ...\342\202\254", 18) != 0) fail_msg("cut in a character: %s", text);
        assert_non_null(strstr(text, "\254xxx"));
    }
}

static void a_short_buffer_gets_the_beginning_and_a_final_0(void **state) {
    const struct shmtrain_report r = ordinary();
    char whole[2048], text[2048];
    void (*const texts[])(const struct shmtrain_report *, char *, size_t) = {shmtrain_report_heading, shmtrain_report_opening,
                                                                             shmtrain_report_summary};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        texts[i](&r, whole, sizeof whole);
        for (size_t bytes = 0; bytes < 200; bytes++) {
            memset(text, '#', sizeof text);
            texts[i](&r, text, bytes);
            for (size_t at = bytes; at < sizeof text; at++) assert_int_equal(text[at], '#');
            if (bytes > 0) assert_true(strlen(text) < bytes && strncmp(text, whole, strlen(text)) == 0);
        }
    }
    for (size_t bytes = 0; bytes < 100; bytes++) {
        memset(text, '#', sizeof text);
        shmtrain_report_line(&r, &TWO_EPOCHS[0], text, bytes);
        for (size_t at = bytes; at < sizeof text; at++) assert_int_equal(text[at], '#');
        if (bytes > 0) assert_true(strlen(text) < bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ordinary_lines_stand_under_their_headings),
        TEST(without_validation_its_columns_are_not_there),
        TEST(columns_that_the_model_does_not_fill_are_not_there),
        TEST(one_is_one),
        TEST(opening_and_summary_say_what_runs_and_what_came_out),
        TEST(a_loss_that_still_falls_is_told_unless_another_epoch_was_kept),
        TEST(a_loss_that_had_jumped_up_does_not_fall_by_coming_down),
        TEST(what_is_out_of_the_ordinary_has_words_of_its_own),
        TEST(no_line_is_wider_than_80_columns),
        TEST(a_long_name_is_cut_at_its_beginning),
        TEST(what_a_terminal_would_obey_is_no_part_of_a_name),
        TEST(a_name_is_cut_between_characters),
        TEST(a_short_buffer_gets_the_beginning_and_a_final_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
