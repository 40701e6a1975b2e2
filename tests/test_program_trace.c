/* The real program with --trace: what stands in the file, read as any JSON reader would, for each family of modes; and that
 * there is a whole file after Ctrl-C and after a worker's death, and none where it cannot be written. */
#include "run_program.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>

#define DATA         "builtin:sparse:examples=20000,valid=100,features=2000,nonzeros=20"
#define ENDLESS      "-e", "100000"
#define MOST_WORKERS 8

/* ---- reading ---- */

/* What one process of the trace did: so often, and so many microseconds. */
struct did {
    const char *name;
    unsigned n;
    double us;
};

enum { PULL, COMPUTE, PUSH, PUSH_UPDATE, AGGREGATE, UPDATE, WAIT, MERGE, EVALUATE, LOAD, ITEM, KINDS };
static const char *const NAMES[KINDS] = {"pull", "compute", "push",     "push+update", "aggregate",   "update",
                                         "wait", "merge",   "evaluate", "load",        "item in hand"};

struct trace {
    json_t *root;
    unsigned workers;
    struct did did[MOST_WORKERS][KINDS];
    unsigned unfinished;
};

static json_t *get(json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    if (!value) fail_msg("no \"%s\"", key);
    return value;
}

static double number(json_t *object, const char *key) {
    json_t *value = get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static const char *text(json_t *object, const char *key) {
    json_t *value = get(object, key);
    assert_true(json_is_string(value));
    return json_string_value(value);
}

static int kind_of(const char *name) {
    for (int i = 0; i < KINDS; i++)
        if (strcmp(NAMES[i], name) == 0) return i;
    fail_msg("an event \"%s\"", name);
    return 0;
}

/* Names come before events. */
static void read_name(struct trace *t, json_t *event) {
    unsigned worker;
    if (strcmp(text(event, "name"), "process_name") != 0) return;
    if (sscanf(text(get(event, "args"), "name"), "worker %u", &worker) != 1) return;
    assert_int_equal(number(event, "pid"), 1000 + worker);
    assert_true(worker == t->workers && worker < MOST_WORKERS);
    t->workers++;
}

static void read_event(struct trace *t, json_t *event, double *last_us) {
    const double us = number(event, "dur"), begin_us = number(event, "ts"), pid = number(event, "pid");
    json_t *args = json_object_get(event, "args");
    assert_true(us > 0 && begin_us >= 0 && number(event, "tid") > 0);
    if (pid < 1000) return; /* the application */
    const unsigned worker = (unsigned)pid - 1000;
    assert_true(worker < t->workers);
    assert_true(begin_us >= *last_us - 0.0015); /* three places; one thread for each worker, so nothing overlaps */
    *last_us = begin_us + us;
    struct did *did = &t->did[worker][kind_of(text(event, "name"))];
    did->n++;
    did->us += us;
    if (json_object_get(args, "unfinished")) t->unfinished++;
    if (json_object_get(args, "for")) assert_true(number(args, "for") < t->workers && number(args, "for") != worker);
}

static struct trace read_trace(const char *path) {
    struct trace t = {0};
    json_error_t e;
    json_t *event;
    size_t i;
    double last_us[MOST_WORKERS] = {0};
    t.root = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    if (!t.root) fail_msg("%s:%d: %s", path, e.line, e.text);
    json_array_foreach(get(t.root, "traceEvents"), i, event) {
        if (strcmp(text(event, "ph"), "M") == 0) {
            read_name(&t, event);
            continue;
        }
        assert_string_equal(text(event, "ph"), "X");
        const double pid = number(event, "pid");
        double ignored = 0;
        read_event(&t, event, pid >= 1000 && pid < 1000 + MOST_WORKERS ? &last_us[(int)pid - 1000] : &ignored);
    }
    assert_int_equal(number(get(t.root, "otherData"), "events_lost"), 0);
    return t;
}

static unsigned all_of(const struct trace *t, int kind) {
    unsigned n = 0;
    for (unsigned w = 0; w < t->workers; w++) n += t->did[w][kind].n;
    return n;
}

static void end_trace(struct trace *t, const char *path) {
    json_decref(t->root);
    assert_int_equal(unlink(path), 0);
}

/* ---- what the modes do ---- */

static struct trace trace_of(const char *mode, const char *workers) {
    struct program *p =
        RUN("-w", workers, "--mode", mode, "-e", "2", "--batch", "1024", "--item", "1024", "--trace", "t.json", DATA);
    program_assert_status(p, 0);
    return read_trace("t.json");
}

static void each_worker_is_a_process_that_loads_computes_and_evaluates(void **state) {
    (void)state;
    const char *const modes[] = {"async", "sync", "ssp:1", "local:4"};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct trace t = trace_of(modes[m], "3");
        assert_int_equal(t.workers, 3);
        assert_int_equal(t.unfinished, 0);
        for (unsigned w = 0; w < 3; w++) {
            const struct did *did = t.did[w];
            assert_int_equal(did[EVALUATE].n, 2);
            if (m == 0) continue; /* without a processor for a while it may come too late for any item */
            assert_true(did[PULL].n > 0 && did[COMPUTE].n > 0 && did[PUSH].n + did[PUSH_UPDATE].n > 0);
        }
        assert_true(all_of(&t, PULL) > 0 && all_of(&t, COMPUTE) > 0);
        assert_true(all_of(&t, LOAD) >= 2);
        assert_memory_equal(text(get(t.root, "otherData"), "mode"), modes[m], 3); /* "ssp:1" may have a shorter name */
        end_trace(&t, "t.json");
    }
}

static void sync_waits_aggregates_and_updates(void **state) {
    (void)state;
    struct trace t = trace_of("sync", "2");
    for (unsigned w = 0; w < 2; w++) {
        assert_int_equal(t.did[w][UPDATE].n, 2 * 20); /* 20,000 examples, 1,024 of a batch: each worker its slice of each */
        assert_true(t.did[w][AGGREGATE].n >= 2 * 20);
        assert_true(t.did[w][PUSH].n > 0);
        assert_int_equal(t.did[w][PUSH_UPDATE].n, 0);
    }
    assert_true(all_of(&t, WAIT) > 0);
    end_trace(&t, "t.json");
}

/* Whom two workers wait for at the ends of epochs, and nothing else: until their copies are made, and before and after the last
 * merge of each of two epochs. */
static void async_waits_for_nobody_within_an_epoch(void **state) {
    (void)state;
    struct trace t = trace_of("async", "2");
    for (unsigned w = 0; w < 2; w++) {
        assert_true(t.did[w][WAIT].n <= 5);
        assert_int_equal(t.did[w][AGGREGATE].n + t.did[w][UPDATE].n + t.did[w][PUSH].n, 0);
    }
    assert_int_equal(all_of(&t, PUSH_UPDATE), 2 * 20); /* one for each item: its turns are added up */
    end_trace(&t, "t.json");
}

static void replicas_are_merged(void **state) {
    (void)state;
    struct trace t = trace_of("local:4", "2");
    assert_true(t.did[0][MERGE].n >= 2 && t.did[1][MERGE].n >= 2);
    end_trace(&t, "t.json");
}

static void times_add_up_to_those_of_the_report(void **state) {
    (void)state;
    struct program *p =
        RUN("-w", "2", "--mode", "sync", "-e", "2", "--batch", "1024", "--json", "--quiet", "--trace", "t.json", DATA);
    program_assert_status(p, 0);
    json_t *report = program_json(p), *worker;
    struct trace t = read_trace("t.json");
    size_t w;
    json_array_foreach(get(report, "per_worker"), w, worker) {
        const double waited = number(worker, "wait_seconds") + number(worker, "wait_epoch_seconds");
        assert_true(fabs(t.did[w][WAIT].us * 1e-6 - waited) < 1e-6 * (double)(1 + t.did[w][WAIT].n));
        assert_true(fabs(t.did[w][EVALUATE].us * 1e-6 - number(worker, "evaluate_seconds")) < 1e-5);
    }
    assert_int_equal(w, 2);
    json_decref(report);
    end_trace(&t, "t.json");
}

static void threads_of_a_worker_are_threads_of_its_process(void **state) {
    (void)state;
    struct program *p = RUN("-w", "2", "-t", "2", "--mode", "sync", "-e", "1", "--trace", "t.json", DATA);
    program_assert_status(p, 0);
    json_t *root = json_load_file("t.json", 0, NULL), *event;
    unsigned updates[2][2] = {{0}};
    size_t i;
    json_array_foreach(get(root, "traceEvents"), i, event) {
        if (strcmp(text(event, "name"), "update") != 0) continue;
        const unsigned worker = (unsigned)number(event, "pid") - 1000, tid = (unsigned)number(event, "tid");
        assert_true(worker < 2 && (tid == 1000 + worker || tid == 10000 + 2 * worker + 1));
        updates[worker][tid >= 10000]++;
    }
    assert_true(updates[0][0] > 0 && updates[0][1] > 0 && updates[1][0] > 0 && updates[1][1] > 0);
    json_decref(root);
    assert_int_equal(unlink("t.json"), 0);
}

static void the_plain_backend_is_traced_too(void **state) {
    (void)state;
    struct program *p = RUN("--backend", "plain", "-w", "1", "--mode", "sync", "-e", "2", "--trace", "t.json", DATA);
    program_assert_status(p, 0);
    struct trace t = read_trace("t.json");
    assert_true(t.did[0][AGGREGATE].n > 0 && t.did[0][UPDATE].n > 0 && t.did[0][COMPUTE].n > 0);
    end_trace(&t, "t.json");
}

static void the_parameters_have_the_same_bits_with_and_without(void **state) {
    (void)state;
    char with[17], without[17];
    HASH(without, "-w", "3", "--mode", "sync", "-e", "2", DATA);
    HASH(with, "-w", "3", "--mode", "sync", "-e", "2", "--trace", "t.json", DATA);
    assert_string_equal(with, without);
    HASH(without, "-w", "1", "--mode", "async", "-e", "2", DATA);
    HASH(with, "-w", "1", "--mode", "async", "-e", "2", "--trace", "t.json", DATA);
    assert_string_equal(with, without);
    assert_int_equal(unlink("t.json"), 0);
}

/* ---- runs that end early ---- */

static void after_ctrl_c_there_is_a_whole_trace(void **state) {
    (void)state;
    const char *const modes[] = {"async", "sync"};
    for (int m = 0; m < 2; m++) {
        struct program *p =
            START("-w", "3", "--mode", modes[m], ENDLESS, "--item", "64", "--batch", "1024", "--trace", "stopped.json", DATA);
        program_wait_for_epoch(p);
        assert_int_equal(kill(-p->pid, SIGINT), 0);
        program_finish(p);
        program_assert_status(p, 130);
        json_t *root = json_load_file("stopped.json", JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(root);
        assert_true(json_array_size(get(root, "traceEvents")) > 100);
        json_decref(root);
        assert_int_equal(unlink("stopped.json"), 0);
    }
}

/* Kills worker 1 of a run. What it was at is unfinished, unless it was between two things: 1, else 0. */
static unsigned kill_worker_of(const char *mode) {
    struct program *p = START("-w", "3", "--mode", mode, ENDLESS, "--on-death", "abort", "--batch", "8192", "--slow", "1:+5ms",
                              "--trace", "killed.json", DATA);
    program_wait_for_epoch(p);
    assert_int_equal(kill(program_worker(p, 1), SIGKILL), 0);
    program_finish(p);
    program_assert_status(p, 1);
    struct trace t = read_trace("killed.json");
    const unsigned unfinished = t.unfinished;
    assert_non_null(strstr(text(get(t.root, "otherData"), "failure"), "killed by signal 9"));
    assert_true(all_of(&t, COMPUTE) > 0 && t.did[1][EVALUATE].n > 0);
    end_trace(&t, "killed.json");
    return unfinished;
}

static void when_a_worker_is_killed_there_is_a_whole_trace_that_says_why(void **state) {
    (void)state;
    const char *const modes[] = {"async", "sync"};
    for (int m = 0; m < 2; m++) {
        unsigned unfinished = 0;
        for (int i = 0; i < 5 && unfinished == 0; i++) unfinished = kill_worker_of(modes[m]);
        assert_int_equal(unfinished, 1);
    }
}

/* ---- refusals ---- */

static void a_trace_that_cannot_be_written_is_refused_before_anything_is_loaded(void **state) {
    (void)state;
    program_write_file("data.txt", "1 1:1\n0 2:1\n1 1:2\n0 2:3\n");
    const struct refusal refusals[] = {
        {1, "cannot write the trace to nowhere/t.json", {"--trace", "nowhere/t.json", "builtin:sparse"}},
        {1, "it is a folder", {"--trace", ".", "builtin:sparse"}},
        {1, "trace to /dev/fd/97: this descriptor is not open for writing", {"--trace", "/dev/fd/97", "builtin:sparse"}},
        {2, "--trace /dev/stdout and --json would both go to", {"--trace", "/dev/stdout", "--json", "builtin:sparse"}},
        {2, "is read as the data", {"--trace", "data.txt", "data.txt"}},
        {2, "is read as validation data", {"--trace", "data.txt", "--valid", "data.txt", "builtin:sparse"}},
        {2, "the same file", {"--trace", "m.json", "--metrics", "m.json", "builtin:sparse"}},
        {2, "is also written as the trace", {"--trace", "m.json", "-o", "m.json", "builtin:sparse"}},
    };
    ASSERT_ALL_REFUSED(refusals);
    struct stat there;
    assert_true(stat("data.txt", &there) == 0 && there.st_size == 24);
    assert_int_equal(unlink("data.txt"), 0);
}

static void an_older_trace_is_replaced_whole(void **state) {
    (void)state;
    program_write_file("t.json", "what was here before");
    struct program *p = RUN("-w", "1", "-e", "1", "--trace", "t.json", DATA);
    program_assert_status(p, 0);
    struct trace t = read_trace("t.json");
    end_trace(&t, "t.json");
}

/* The run is whole, its model is saved, and who has asked for the trace hears that there is none by the exit status, too. */
static void a_trace_that_could_not_be_written_is_a_failure_of_the_program(void **state) {
    (void)state;
    const char *const options[] = {"--trace", "--metrics"}, *const says[] = {
                                                                "no trace was written: cannot write the trace to /dev/full",
                                                                "continues without metrics: cannot write to /dev/full"};
    for (int i = 0; i < 2; i++) {
        struct program *p = RUN("-w", "1", "-e", "1", options[i], "/dev/full", "-o", "kept.model", DATA);
        program_assert_status(p, 1);
        assert_non_null(strstr(p->text[ERR], says[i]));
        assert_non_null(strstr(p->text[OUT], "saved       kept.model"));
        assert_int_equal(unlink("kept.model"), 0);
    }
}

static void metrics_on_standard_output_are_alone_there(void **state) {
    (void)state;
    struct program *p = RUN("-w", "1", "-e", "2", "--metrics", "/dev/stdout", DATA);
    program_assert_status(p, 0);
    assert_int_equal(strncmp(p->text[OUT], "{\"event\":\"begin\"", 16), 0);
    assert_null(strstr(p->text[OUT], "\nepoch"));
    assert_non_null(strstr(p->text[OUT], "\n{\"event\":\"end\""));
    assert_non_null(strstr(p->text[ERR], "\nepoch"));
    program_assert_refused(RUN("--metrics", "/dev/stdout", "--json", DATA), 2,
                           "--metrics /dev/stdout and --json would both go to standard output: name a file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(each_worker_is_a_process_that_loads_computes_and_evaluates),
        PROGRAM_TEST(sync_waits_aggregates_and_updates),
        PROGRAM_TEST(async_waits_for_nobody_within_an_epoch),
        PROGRAM_TEST(replicas_are_merged),
        PROGRAM_TEST(times_add_up_to_those_of_the_report),
        PROGRAM_TEST(threads_of_a_worker_are_threads_of_its_process),
        PROGRAM_TEST(the_plain_backend_is_traced_too),
        PROGRAM_TEST(the_parameters_have_the_same_bits_with_and_without),
        PROGRAM_TEST(after_ctrl_c_there_is_a_whole_trace),
        PROGRAM_TEST(when_a_worker_is_killed_there_is_a_whole_trace_that_says_why),
        PROGRAM_TEST(a_trace_that_cannot_be_written_is_refused_before_anything_is_loaded),
        PROGRAM_TEST(a_trace_that_could_not_be_written_is_a_failure_of_the_program),
        PROGRAM_TEST(metrics_on_standard_output_are_alone_there),
        PROGRAM_TEST(an_older_trace_is_replaced_whole),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
