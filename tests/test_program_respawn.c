/* The real program from outside: workers that are killed, and started again where they stood, or left out. */
#include "run_program.h"
#include "sanitized.h"

#include <signal.h>

#define DATA     "builtin:sparse:examples=20000,valid=100,features=2000,nonzeros=20"
#define EXAMPLES 20000
/* Longer than the kills take. */
#if SANITIZED
#    define EPOCHS 15
#    define E_TEXT "15"
#else
#    define EPOCHS 60
#    define E_TEXT "60"
#endif

static unsigned times(const char *text, const char *words) {
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, words)); at++) n++;
    return n;
}

/* Kills a worker of a run, one after the other, until `n` were killed or the run has ended. Returns how many. */
static unsigned kill_workers(struct program *p, unsigned workers, unsigned n) {
    const int signals[] = {SIGKILL, SIGSEGV};
    unsigned killed = 0;
    for (unsigned i = 0; i < n; i++) {
        const pid_t pid = program_worker_if_any(p, i % workers);
        if (pid > 0 && kill(pid, signals[i % 2]) == 0) killed++;
        usleep(10000);
    }
    return killed;
}

struct outcome {
    char hash[17];
    long long examples, respawns, redone;
};

static long long examples_of_workers(const json_t *report) {
    long long sum = 0;
    size_t i;
    const json_t *worker;
    json_array_foreach(json_object_get(report, "per_worker"), i, worker) sum +=
        json_integer_value(json_object_get(worker, "examples"));
    return sum;
}

/* Each example is somebody's, also when it was done again. */
static struct outcome outcome_of(struct program *p) {
    struct outcome o = {0};
    program_finish(p);
    program_assert_status(p, 0);
    json_t *json = program_json(p);
    snprintf(o.hash, sizeof o.hash, "%s", json_string_value(json_object_get(json, "parameters_xxh64")));
    o.examples = json_integer_value(json_object_get(json, "examples"));
    o.respawns = json_integer_value(json_object_get(json, "respawns"));
    o.redone = json_integer_value(json_object_get(json, "redone"));
    assert_int_equal(examples_of_workers(json), o.examples);
    json_decref(json);
    return o;
}

#define RESPAWNING(...) "--json", "--max-respawns", "100000", "-e", E_TEXT, __VA_ARGS__, DATA

static void sync_has_the_same_bits_however_often_workers_are_killed(void **state) {
    (void)state;
    const char *const optimizers[] = {"sgd", "adam"}, *const threads[] = {"1", "2"};
    for (int i = 0; i < 2; i++) {
        struct program *quiet = START(RESPAWNING("-w", "3", "--mode", "sync", "--optimizer", optimizers[i], "-t", threads[i]));
        const struct outcome undisturbed = outcome_of(quiet);
        struct program *p = START(RESPAWNING("-w", "3", "--mode", "sync", "--optimizer", optimizers[i], "-t", threads[i]));
        const unsigned killed = kill_workers(p, 3, 12);
        const struct outcome o = outcome_of(p);
        assert_string_equal(o.hash, undisturbed.hash);
        assert_int_equal(o.examples, (long long)EXAMPLES * EPOCHS);
        assert_int_equal(undisturbed.respawns, 0);
        assert_true(o.respawns <= killed);
        assert_int_equal(times(p->text[ERR], ": it is restarted ("), o.respawns);
    }
}

/* With pauses for checkpoints, too, in which the items of dead workers are no more lost than elsewhere. */
static void every_example_is_counted_in_each_mode(void **state) {
    (void)state;
    const char *const modes[][8] = {
        {"async", "--replicas", "one", "--optimizer", "sgd"},    {"async", "--write", "locked", "--optimizer", "adagrad"},
        {"async", "--replicas", "worker", "--optimizer", "sgd"}, {"ssp:2", "--write", "atomic", "--optimizer", "adagrad"},
        {"backup:2", "--late", "fold", "--optimizer", "sgd"},    {"backup:2", "--late", "drop", "--optimizer", "sgd"},
        {"async", "--write", "aggregate", "--staleness", "2"},   {"local:8", "--replicas", "worker", "--optimizer", "sgd"}};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        const char *const *a = modes[m];
        struct program *p = START(RESPAWNING("-w", "3", "--mode", a[0], a[1], a[2], a[3], a[4], "--checkpoint", "saved",
                                             "--checkpoint-every", "90steps"));
        (void)kill_workers(p, 3, 9);
        const struct outcome o = outcome_of(p);
        if (o.examples != (long long)EXAMPLES * EPOCHS)
            fail_msg("%s %s %s: %lld examples after %lld respawns", a[0], a[1], a[2], o.examples, o.respawns);
        program_drop_folder("saved");
    }
}

/* Kills worker 1, which is slow, so that it mostly has work in hand, until that is once too often for `most` respawns. */
static void kill_until_it_ends(struct program *p, int most) {
    for (int i = 1; i <= most + 1; i++) {
        char line[64];
        assert_int_equal(kill(program_worker(p, 1), SIGKILL), 0);
        snprintf(line, sizeof line, "it is restarted (%d of %d", i, most);
        if (i <= most) program_wait_for(p, ERR, line);
    }
    program_finish(p);
    program_assert_status(p, 1);
}

/* The last sentence has worker, signal and work item: false if there was none, between two epochs. */
static bool names_the_work(const struct program *p, const char *piece) {
    static const char NOTHING[] = "between two items of epoch ";
    const char *at = strstr(p->text[ERR], "shmtrain: worker 1 (process ");
    unsigned long long n;
    unsigned epoch;
    char format[64];
    for (const char *next = at; next; next = strstr(at + 1, "shmtrain: worker 1 (process ")) at = next;
    assert_non_null(at);
    static const char DIED[] = ") was killed by signal 9 (Killed) while training ";
    at = strstr(at, DIED);
    if (!at) fail_msg("no work is named: %s", p->text[ERR]);
    at += strlen(DIED);
    snprintf(format, sizeof format, "in %s %%llu of epoch %%u", piece);
    if (sscanf(at, format, &n, &epoch) == 2) return true;
    if (strncmp(at, NOTHING, strlen(NOTHING)) != 0) fail_msg("no %s is named: %s", piece, at);
    return false;
}

static void who_dies_too_often_ends_the_run_with_a_sentence(void **state) {
    static const struct {
        const char *mode, *on_death, *max_respawns;
        int most; /* respawns that it gets */
        const char *piece;
    } RUNS[] = {
        {"sync", "respawn", "2", 2, "batch"},    {"sync", "respawn", "0", 0, "batch"},  {"sync", "abort", "3", 0, "batch"},
        {"async", "respawn", "1", 1, "item"},    {"async", "respawn", "0", 0, "item"},  {"async", "abort", "3", 0, "item"},
        {"backup:1", "respawn", "1", 1, "item"}, {"backup:1", "abort", "3", 0, "item"}, {"local:2", "abort", "3", 0, "item"}};
    (void)state;
    for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
        char again[64] = "";
        bool named = false;
        for (int round = 0; round < 20 && !named; round++) {
            struct program *p = START("-w", "2", "--mode", RUNS[i].mode, "--on-death", RUNS[i].on_death, "--max-respawns",
                                      RUNS[i].max_respawns, "--slow", "1:+5ms", "-e", "1000000", DATA);
            program_wait_for_epoch(p);
            kill_until_it_ends(p, RUNS[i].most);
            named = names_the_work(p, RUNS[i].piece);
            if (RUNS[i].most > 0)
                snprintf(again, sizeof again, "; it had been restarted %d time%s before", RUNS[i].most,
                         RUNS[i].most == 1 ? "" : "s");
            assert_non_null(strstr(p->text[ERR], again));
        }
        if (!named) fail_msg("--mode %s --on-death %s: never a piece of work", RUNS[i].mode, RUNS[i].on_death);
    }
}

static void the_others_go_on_without_who_is_left_out(void **state) {
    (void)state;
    struct program *p = START("-w", "3", "--mode", "async", "--on-death", "continue", "--json", "-e", "150", DATA);
    assert_int_equal(kill(program_worker(p, 1), SIGKILL), 0);
    program_wait_for(p, ERR, "worker 1 (process ");
    program_wait_for(p, ERR, "the others continue without it");
    assert_int_equal(kill(program_worker(p, 0), SIGKILL), 0); /* it keeps the books */
    program_wait_for(p, ERR, "it is restarted (1 of 3");
    const struct outcome o = outcome_of(p);
    assert_true(o.examples >= (long long)EXAMPLES * 150 - 2 * 5000); /* but for the items that were in hand */
    assert_true(o.examples <= (long long)EXAMPLES * 150);
}

static void a_quorum_continues_without_who_is_left_out(void **state) {
    (void)state;
    struct program *p = START("-w", "4", "--mode", "backup:3", "--on-death", "continue", "--json", "-e", "30", DATA);
    for (unsigned rank = 1; rank < 4; rank += 2) {
        assert_int_equal(kill(program_worker(p, rank), SIGKILL), 0);
        program_wait_for(p, ERR, "the others continue without it");
    }
    (void)outcome_of(p);
}

/* What a lost quorum does to the updates is said when fewer than it are left, and not before. */
static void a_lost_quorum_says_what_updates_are_made_of(void **state) {
    (void)state;
    struct program *p = START("-w", "4", "--mode", "backup:3", "-b", "1000", "--on-death", "continue", "-e", "100000",
                              "--stall-timeout", "none", DATA);
    program_wait_for_epoch(p);
    assert_int_equal(kill(program_worker(p, 1), SIGKILL), 0);
    program_wait_for(p, ERR, "worker 1 (process ");
    program_wait_for(p, ERR, ": the others continue without it\n");
    assert_null(strstr(p->text[ERR], "quorum"));
    assert_int_equal(kill(program_worker(p, 2), SIGKILL), 0);
    program_wait_for(p, ERR,
                     "shmtrain: 2 of 4 workers are left, fewer than the quorum of 3: an update is made of 2 gradients "
                     "(500 examples) instead of 3 (750), so updates are noisier and an epoch has more of them; ");
    assert_int_equal(kill(program_worker(p, 3), SIGKILL), 0);
    program_wait_for(p, ERR,
                     "shmtrain: 1 of 4 workers is left, fewer than the quorum of 3: an update is made of 1 gradient (250 ");
    assert_int_equal(kill(p->pid, SIGINT), 0);
    program_finish(p);
    program_assert_status(p, 130);
}

/* Who is not started again does nothing again. */
static void what_redo_means_where_the_others_go_on_is_said(void **state) {
    static const char LINE[] = "--in-flight redo with --on-death continue affects only worker 0";
    (void)state;
#define CONTINUING(...) "-w", "2", "-e", "1", "--on-death", "continue", __VA_ARGS__, DATA
    assert_non_null(strstr(RUN(CONTINUING("--mode", "async", "--in-flight", "redo"))->text[ERR], LINE));
    assert_string_equal(RUN(CONTINUING("--mode", "async"))->text[ERR], "");
    assert_string_equal(RUN(CONTINUING("--mode", "async", "--in-flight", "skip"))->text[ERR], "");
    assert_string_equal(RUN("-w", "2", "-e", "1", "--mode", "async", "--in-flight", "redo", DATA)->text[ERR], "");
}

/* What was in hand counts as lost, once for each death at most. */
static void items_in_hand_are_skipped_where_that_is_asked_for(void **state) {
    (void)state;
    struct program *p =
        START(RESPAWNING("-w", "3", "--mode", "async", "--replicas", "one", "--in-flight", "skip", "--item", "100"));
    (void)kill_workers(p, 3, 12);
    const struct outcome o = outcome_of(p);
    assert_int_equal(o.redone, 0);
    assert_true(o.examples <= (long long)EXAMPLES * EPOCHS);
    assert_true(o.examples >= (long long)EXAMPLES * EPOCHS - 100 * o.respawns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_lost_quorum_says_what_updates_are_made_of),
        PROGRAM_TEST(sync_has_the_same_bits_however_often_workers_are_killed),
        PROGRAM_TEST(every_example_is_counted_in_each_mode),
        PROGRAM_TEST(who_dies_too_often_ends_the_run_with_a_sentence),
        PROGRAM_TEST(the_others_go_on_without_who_is_left_out),
        PROGRAM_TEST(a_quorum_continues_without_who_is_left_out),
        PROGRAM_TEST(what_redo_means_where_the_others_go_on_is_said),
        PROGRAM_TEST(items_in_hand_are_skipped_where_that_is_asked_for),
    };
    return cmocka_run_group_tests_name("workers started again", tests, program_make_folder, program_remove_folder);
}
