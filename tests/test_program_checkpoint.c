/* The real program from outside: runs that write checkpoints, end at any moment, and go on. */
#include "checkpoint_folder_help.h"
#include "run_program.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define DATA "builtin:sparse:examples=20000,features=500,nonzeros=9"

/* All of a run with --json that counts: what it came to. */
struct outcome {
    char hash[17];
    unsigned n;
    double loss[8];
    uint64_t examples[8];
};

static struct outcome outcome_of(const char *const *argv) {
    struct outcome out = {.n = 0};
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *epochs = json_object_get(o, "epochs");
    snprintf(out.hash, sizeof out.hash, "%s", json_string_value(json_object_get(o, "parameters_xxh64")));
    for (size_t i = 0; i < json_array_size(epochs) && i < 8; i++) {
        const json_t *epoch = json_array_get(epochs, i);
        out.loss[out.n] = json_number_value(json_object_get(epoch, "train_loss"));
        out.examples[out.n++] = (uint64_t)json_integer_value(json_object_get(epoch, "examples"));
    }
    json_decref(o);
    return out;
}
#define OUTCOME(...) outcome_of((const char *const[]){"shmtrain", "--json", "-q", "--progress", "none", __VA_ARGS__, NULL})

static void assert_same(const struct outcome *a, const struct outcome *b) {
    assert_string_equal(a->hash, b->hash);
    assert_int_equal(a->n, b->n);
    for (unsigned i = 0; i < a->n; i++) {
        assert_true(a->loss[i] == b->loss[i]);
        assert_int_equal(a->examples[i], b->examples[i]);
    }
}

/* Names in a folder that begin so, apart from . and .. */
static unsigned count_files(const char *folder, const char *prefix) {
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    unsigned n = 0;
    if (!dir) return 0;
    while ((entry = readdir(dir))) n += entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return n;
}

/* ---- the same bits ---- */

static void sync_resumes_with_the_same_bits_and_any_number_of_workers(void **state) {
    (void)state;
    static const char *const RULES[] = {"sgd",      "momentum", "adagrad",  "adam",  "ftrl",
                                        "nesterov", "rmsprop",  "adadelta", "adamw", "lamb"};
    static const char *const WORKERS[] = {"3", "1", "2", "4", "2", "3", "1", "4", "1", "3"};
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
#define RUN_OF(...) DATA, "--mode", "sync", "-e", "3", "--optimizer", RULES[i], "--l2", "1e-5", __VA_ARGS__
        const struct outcome whole = OUTCOME(RUN_OF("-w", "2"));
        const struct outcome part =
            OUTCOME(RUN_OF("-w", "2", "--checkpoint", "ck", "--checkpoint-every", "100", "--steps", "433"));
        assert_int_equal(part.n, 2);
        const struct outcome rest = OUTCOME(RUN_OF("-w", WORKERS[i], "--checkpoint", "ck", "--resume"));
        assert_same(&rest, &whole);
        const struct outcome nothing = OUTCOME(RUN_OF("-w", "1", "--checkpoint", "ck", "--resume"));
        assert_same(&nothing, &whole);
#undef RUN_OF
        program_drop_folder("ck");
    }
}

static void dense_models_validation_and_goals_go_on_too(void **state) {
    (void)state;
#define RUN_OF(...)                                                                                                            \
    "builtin:dense:examples=3000,valid=500,features=40,classes=5", "-M", "softmax", "--mode", "sync", "-e", "8", "--patience", \
        "3", "--optimizer", "momentum", __VA_ARGS__
    const struct outcome whole = OUTCOME(RUN_OF("-w", "2"));
    (void)OUTCOME(RUN_OF("-w", "1", "--checkpoint", "ck", "--checkpoint-every", "1 epoch", "--steps", "75"));
    const struct outcome rest = OUTCOME(RUN_OF("-w", "2", "-t", "2", "--checkpoint", "ck", "--resume"));
    assert_same(&rest, &whole);
#undef RUN_OF
}

static void a_run_that_was_done_goes_on_for_more_epochs(void **state) {
    (void)state;
#define RUN_OF(...) DATA, "--mode", "sync", "-w", "2", __VA_ARGS__
    const struct outcome whole = OUTCOME(RUN_OF("-e", "4"));
    (void)OUTCOME(RUN_OF("-e", "2", "--checkpoint", "ck"));
    struct program *p = RUN(RUN_OF("-q", "-e", "1", "--checkpoint", "ck", "--resume"));
    program_assert_refused(p, 2,
                           "--resume: --epochs is 1 here, but ck/checkpoint-000000000626.safetensors is of epoch 2: use more");
    const struct outcome more = OUTCOME(RUN_OF("-e", "4", "--checkpoint", "ck", "--resume"));
    assert_same(&more, &whole); /* its rate does not depend on the number of epochs */
    p = RUN(RUN_OF("-q", "-e", "2", "--checkpoint", "ck2", "--schedule", "cosine"));
    program_assert_status(p, 0);
    p = RUN(RUN_OF("-q", "-e", "3", "--checkpoint", "ck2", "--schedule", "cosine", "--resume"));
    program_assert_status(p, 0);
    assert_non_null(
        strstr(p->text[ERR], "--epochs is 3, but was 2: from here on the rate falls as in a run of the new length\n"));
    program_drop_folder("ck2");
#undef RUN_OF
}

static void what_a_refused_run_is_told_to_use_is_allowed(void **state) {
    (void)state;
#define RUN_OF(...) DATA, "--mode", "sync", "-w", "2", "-q", "--checkpoint", "ck", __VA_ARGS__
    program_assert_status(RUN(RUN_OF("-e", "2")), 0);
    program_assert_refused(RUN(RUN_OF("-e", "4", "--resume", "--clip-value", "0.5")), 2,
                           "--resume: --clip-value is 0.5 here, but 0 in the run of ck/");
    program_assert_refused(RUN(RUN_OF("-e", "4", "--resume", "--clip-norm", "0.5")), 2,
                           "--resume: --clip-norm is 0.5 here, but 0 in the run of ck/");
    program_assert_status(RUN(RUN_OF("-e", "4", "--resume", "--clip-value", "0", "--clip-norm", "0")), 0);
    program_drop_folder("ck");
#undef RUN_OF
}

/* Kills all of it at any moment. */
static void sync_killed_at_any_moment_ends_with_the_same_bits(void **state) {
    (void)state;
#define RUN_OF(...)                                                                                                           \
    "builtin:sparse:examples=100000,features=500,nonzeros=9", "--mode", "sync", "-e", "4", "-b", "16", "--optimizer", "adam", \
        __VA_ARGS__
    static const char *const WORKERS[] = {"2", "1", "3"};
    const struct outcome whole = OUTCOME(RUN_OF("-w", "2"));
    unsigned seed = 1, kills = 0;
    for (unsigned i = 0; i < 25; i++) {
        struct program *p =
            START(RUN_OF("-w", WORKERS[i % 3], "--checkpoint", "ck", "--checkpoint-every", "50", "--resume", "-q"));
        seed = seed * 1664525 + 1013904223;
        const struct timespec some = {.tv_nsec = 50000000 + (seed >> 8) % 250000000};
        nanosleep(&some, NULL);
        kills += program_state(p->pid) != 'Z';
        kill(-p->pid, SIGKILL);
        program_assert_gone_within(p, 10);
        program_end_all(NULL);
    }
    const struct outcome rest = OUTCOME(RUN_OF("-w", "2", "--checkpoint", "ck", "--resume"));
    print_message("%u of 25 were killed before their end\n", kills);
    assert_same(&rest, &whole);
    assert_int_equal(count_files("ck", "checkpoint-"), count_files("ck", "")); /* no other files are left */
#undef RUN_OF
}

static void the_live_modes_count_each_example_once(void **state) {
    (void)state;
    static const char *const MODES[][3] = {{"async", "--optimizer", "adam"},     {"hogwild", "--write", "atomic"},
                                           {"ssp:2", "--write", "locked"},       {"local:2", "--merge", "mean"},
                                           {"async", "--optimizer", "momentum"}, {"backup:2", "--batch", "60"}};
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
#define RUN_OF(...)                                                                                                     \
    DATA, "--mode", MODES[i][0], MODES[i][1], MODES[i][2], "-e", "3", "--checkpoint", "ck", "--checkpoint-every", "20", \
        __VA_ARGS__
        const struct outcome part = OUTCOME(RUN_OF("-w", "3", "--steps", "30", "--item", "200"));
        assert_true(part.n > 0);
        const struct outcome rest = OUTCOME(RUN_OF("-w", "3", "--resume"));
        assert_int_equal(rest.n, 3);
        for (unsigned e = 0; e < 3; e++) assert_int_equal(rest.examples[e], 20000);
#undef RUN_OF
        program_drop_folder("ck");
    }
}

static void async_resumes_with_other_workers(void **state) {
    (void)state;
#define RUN_OF(...) DATA, "--mode", "async", "-e", "2", "--checkpoint", "ck", __VA_ARGS__
    (void)OUTCOME(RUN_OF("-w", "2", "--steps", "25"));
    const struct outcome rest = OUTCOME(RUN_OF("-w", "4", "--resume"));
    assert_int_equal(rest.n, 2);
    assert_int_equal(rest.examples[0], 20000);
    assert_int_equal(rest.examples[1], 20000);
#undef RUN_OF
}

/* Rounds are of as many gradients as there are workers, each of as many examples as in the first run: which workers there were says
 * nothing of where it goes on. With one, and with fewer than an update waited for, too. */
static void rounds_go_on_with_other_workers(void **state) {
    static const char *const MODES[][4] = {{"--mode", "backup:1", "--late", "drop"},
                                           {"--mode", "backup:2", "--late", "fold"},
                                           {"--write", "aggregate", "--staleness", "2"}};
    static const char *const WORKERS[][2] = {{"2", "40"}, {"5", "90"}, {"1", "230"}, {"3", "400"}, {"3", "100000"}};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        struct outcome last = {.n = 0};
        for (size_t k = 0; k < sizeof WORKERS / sizeof *WORKERS; k++)
            last = OUTCOME(DATA, MODES[i][0], MODES[i][1], MODES[i][2], MODES[i][3], "--batch", "240", "-e", "3",
                           "--checkpoint", "ck", "--resume", "-w", WORKERS[k][0], "--steps", WORKERS[k][1]);
        assert_int_equal(last.n, 3);
        for (unsigned e = 0; e < 3; e++) assert_int_equal(last.examples[e], 20000);
        program_assert_refused(RUN(DATA, MODES[i][0], MODES[i][1], MODES[i][2], MODES[i][3], "--batch", "480", "-e", "4",
                                   "--checkpoint", "ck", "--resume", "-w", "3"),
                               2, "--batch is 480 here, but 240 in the run of ");
        program_drop_folder("ck");
    }
}

/* A quorum of all is dealt as others are where there are checkpoints, so that more workers can go on. */
static void a_quorum_of_all_resumes_with_more_workers(void **state) {
    (void)state;
#define RUN_OF(...) DATA, "--mode", "backup:2", "--batch", "240", "-e", "2", "--checkpoint", "ck", "--resume", __VA_ARGS__
    (void)OUTCOME(RUN_OF("-w", "2", "--steps", "30"));
    const struct outcome rest = OUTCOME(RUN_OF("-w", "4"));
    assert_int_equal(rest.n, 2);
    for (unsigned e = 0; e < 2; e++) assert_int_equal(rest.examples[e], 20000);
    program_drop_folder("ck");
#undef RUN_OF
}

/* ---- when ---- */

static void a_signal_leaves_a_checkpoint_of_that_moment(void **state) {
    (void)state;
#define RUN_OF(...) DATA, "--mode", "sync", "-w", "2", "-b", "2", "-e", "6", "--checkpoint", "ck", __VA_ARGS__
    const struct outcome whole = OUTCOME(DATA, "--mode", "sync", "-w", "2", "-b", "2", "-e", "6");
    struct program *p = START(RUN_OF("--progress", "plain"));
    program_wait_for_epoch(p);
    kill(p->pid, SIGINT);
    program_finish(p);
    assert_true(p->status == 130 || p->status == 0);
    assert_true(count_files("ck", "checkpoint-") > 0);
    const struct outcome rest = OUTCOME(RUN_OF("--resume"));
    assert_same(&rest, &whole);
#undef RUN_OF
}

static void as_many_are_kept_as_somebody_says(void **state) {
    (void)state;
    program_assert_status(RUN(DATA, "-q", "--mode", "sync", "-w", "1", "-e", "6", "--slow", "0:4x", "--checkpoint", "ck",
                              "--checkpoint-every", "1 epoch"),
                          0);
    assert_in_range(count_files("ck", "checkpoint-"), 1, 3);
    program_drop_folder("ck");
    program_assert_status(RUN(DATA, "-q", "--mode", "sync", "-w", "1", "-e", "6", "--checkpoint", "ck", "--checkpoint-every",
                              "1 epoch", "--keep", "1"),
                          0);
    assert_int_equal(count_files("ck", "checkpoint-"), 1);
    char path[300];
    newest(path);
    struct program *p = RUN("inspect", path);
    assert_non_null(strstr(p->text[OUT], "position    all 6 epochs are done"));
}

static void an_empty_folder_is_a_beginning(void **state) {
    (void)state;
    struct program *p = RUN(DATA, "-q", "-w", "1", "-e", "1", "--checkpoint", "ck", "--resume");
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "shmtrain: there is no checkpoint in ck yet: the run starts from the beginning\n");
    assert_int_equal(count_files("ck", "checkpoint-"), 1);
}

/* ---- what does not fit ---- */

static void other_options_and_data_are_refused_with_both_values(void **state) {
    (void)state;
#define SAME "--mode", "sync", "-w", "2", "-e", "2"
    program_assert_status(RUN(DATA, "-q", SAME, "--checkpoint", "ck", "--steps", "100"), 0);
    static const struct {
        const char *words, *data, *option, *value;
    } OTHERS[] = {
        {"--seed is 2 here, but 1 in the run of ck/checkpoint-000000000100.safetensors", DATA, "--seed", "2"},
        {"--batch is 32 here, but 64 in the run", DATA, "-b", "32"},
        {"--chunks is 2 here, but ", DATA, "--chunks", "2"},
        {"--model is svm here, but logistic in the run", DATA, "-M", "svm"},
        {"--optimizer is adam here, but sgd in the run", DATA, "--optimizer", "adam"},
        {"--l2 is 0.5 here, but 0 in the run", DATA, "--l2", "0.5"},
        {"--rate is 0.125 here, but ", DATA, "--rate", "0.125"},
        {"--shuffle is 0 here, but 1 in the run", DATA, "--shuffle", "0"},
        {"--bias is 0 here, but 1 in the run", DATA, "--bias", "0"},
        {"--beta2 is 0.5 here, but 0.999 in the run", DATA, "--beta2", "0.5"},
        {"--schedule is step here, but ", DATA, "--schedule", "step"},
        {"the number of examples is 19999 here, but 20000 in the run", "builtin:sparse:examples=19999,features=500,nonzeros=9",
         "-q", "-q"},
        {"the data's number of features is 501 here, but 500 in the run",
         "builtin:sparse:examples=20000,features=501,nonzeros=9", "-q", "-q"},
        {"--mode is async here, but sync in the run", DATA, "--mode", "async"},
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        struct program *p =
            RUN(OTHERS[i].data, "-q", SAME, "--checkpoint", "ck", "--resume", OTHERS[i].option, OTHERS[i].value);
        if (!strstr(p->text[ERR], OTHERS[i].words)) fail_msg("expected \"%s\" in: %s", OTHERS[i].words, p->text[ERR]);
        assert_int_equal(p->status, 2);
    }
    program_assert_status(RUN(DATA, "-q", SAME, "--checkpoint", "ck", "--resume"), 0);
#undef SAME
}

static void labels_tell_data_apart(void **state) {
    (void)state;
    program_write_file("a.svm", "1 1:1\n-1 2:1\n1 1:1 2:1\n-1 3:1\n");
    program_write_file("b.svm", "1 1:1\n-1 2:1\n-1 1:1 2:1\n1 3:1\n");
    program_assert_status(
        RUN("a.svm", "-q", "-w", "1", "-e", "2", "--mode", "sync", "-b", "1", "--checkpoint", "ck", "--steps", "5"), 0);
    struct program *p = RUN("b.svm", "-q", "-w", "1", "-e", "2", "--mode", "sync", "-b", "1", "--checkpoint", "ck", "--resume");
    assert_int_equal(p->status, 2);
    assert_non_null(strstr(p->text[ERR], "--resume: labels, weights or lengths of rows differ from those in the run of ck/"));
    assert_non_null(
        strstr(p->text[ERR], ": use its data, --weights and --class-weight, or start a new run in another folder\n"));
}

/* A run says that it goes on when it does, and not before it is refused. */
static void what_is_refused_has_not_gone_on(void **state) {
    (void)state;
#define RUN_OF(...) "a.svm", "-q", "-w", "1", "-e", "2", "--mode", "sync", "-b", "1", "--checkpoint", "ck", __VA_ARGS__
    program_write_file("a.svm", "1 1:1\n-1 2:1\n1 1:1 2:1\n-1 3:1\n1 1:1\n");
    program_assert_status(RUN(RUN_OF("--steps", "6", "-o", "a.model")), 0);
    program_assert_refused(RUN(RUN_OF("--resume", "--hash-bits", "10")), 2, ": use its data and its --hash-bits, or start");
    program_assert_refused(RUN(RUN_OF("--resume", "--class-weight", "balanced")), 2, ": use its data, --weights and --class-");
    program_assert_refused(RUN(RUN_OF("--resume", "--valid", "0.4")), 2, ": use its data and its --valid, or start a new run");
    struct program *p = RUN(RUN_OF("--resume", "--steps", "6", "--init-from", "a.model"));
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR],
                        "shmtrain: ck/checkpoint-000000000006.safetensors: its run is complete: use more "
                        "--steps to continue\nshmtrain: --init-from has no effect on a run that is resumed\n");
    p = RUN(RUN_OF("--resume"));
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR],
                        "shmtrain: resuming from ck/checkpoint-000000000006.safetensors: epoch 2 of 2, 1 "
                        "of 5 steps done\n");
    p = RUN(RUN_OF("--resume"));
    assert_non_null(strstr(p->text[ERR], "use more --epochs to continue\n"));
#undef RUN_OF
}

static void a_folder_of_another_run_is_left_alone(void **state) {
    (void)state;
    program_assert_status(RUN(DATA, "-q", "-w", "1", "-e", "1", "--checkpoint", "ck"), 0);
    const struct refusal list[] = {
        {2,
         "--checkpoint ck: this folder has checkpoints of an earlier run: continue it with --resume",
         {DATA, "--checkpoint", "ck"}},
        {2, "--resume needs the folder of the checkpoints: add --checkpoint DIR", {DATA, "--resume"}},
        {2, "--checkpoint-every never: expected a time (60s, 5m), steps", {DATA, "--checkpoint-every", "never"}},
        {2, "--checkpoint-every 0: expected a whole number of steps from 1 to", {DATA, "--checkpoint-every", "0"}},
        {2,
         "--checkpoint-every 0.05: a number alone is a whole number of steps; a time has a unit",
         {DATA, "--checkpoint-every", "0.05"}},
        {2,
         "--checkpoint-every 1.5: a number alone is a whole number of steps; a time has a unit",
         {DATA, "--checkpoint-every", "1.5"}},
        {2, "--checkpoint-every 1.5epochs: expected a time (60s, 5m), steps", {DATA, "--checkpoint-every", "1.5epochs"}},
        {2, "--keep 0: expected a whole number", {DATA, "--keep", "0"}},
        {2, "--backend plain cannot write checkpoints", {DATA, "--checkpoint", "ck", "--backend", "plain"}},
        {1, "cannot write checkpoints to none/ck: No such file or directory", {DATA, "--checkpoint", "none/ck"}},
    };
    ASSERT_ALL_REFUSED(list);
    assert_int_equal(count_files("ck", "checkpoint-"), 1);
}

#define LONG_RUN                                                                                                \
    "builtin:sparse:examples=20000,features=500,nonzeros=9", "--mode", "sync", "-w", "2", "-e", "100000", "-q", \
        "--checkpoint", "ck"

static void wait_for_a_checkpoint(struct program *p) {
    for (int i = 0; i < 1000 && count_files("ck", "checkpoint-") == 0; i++) {
        const struct timespec some = {.tv_nsec = 10000000};
        assert_true(program_state(p->pid) != 'Z');
        nanosleep(&some, NULL);
    }
}

static void two_runs_in_one_folder_are_one_too_many(void **state) {
    (void)state;
    struct program *p = START(LONG_RUN, "--checkpoint-every", "100");
    char words[120];
    wait_for_a_checkpoint(p);
    snprintf(words, sizeof words,
             "--checkpoint ck: another run (process %d) keeps its checkpoints there: wait for its end, or name another folder",
             (int)p->pid);
    program_assert_refused(RUN(DATA, "-q", "--checkpoint", "ck"), 2, words);
    program_assert_refused(RUN(LONG_RUN, "--resume"), 2, words);
    assert_true(program_state(p->pid) != 'Z');
    kill(p->pid, SIGINT);
    program_finish(p);
    assert_int_equal(p->status, 130);
    assert_true(count_files("ck", "checkpoint-") > 0);
    assert_int_equal(access("ck/.shmtrain-lock", F_OK), -1);
}

/* As a scheduler does: the application alone, while its supervisor and its workers may be there for a moment. */
static void one_that_was_killed_goes_on_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct program *p = START(LONG_RUN, "--checkpoint-every", "100", "--resume");
        char line[120];
        snprintf(line, sizeof line, i == 0 ? "there is no checkpoint in ck yet" : "resuming from ck/checkpoint-");
        program_wait_for(p, ERR, line);
        wait_for_a_checkpoint(p);
        (void)program_worker(p, 0);
        kill(p->pid, SIGKILL);
        int status;
        while (waitpid(p->pid, &status, WNOHANG) == 0) sched_yield();
        p->ended = true;
    }
}

static void a_folder_is_not_made_for_a_run_that_never_begins(void **state) {
    (void)state;
    program_assert_refused(RUN("no-such-file", "-q", "--checkpoint", "ck"), 1, "no-such-file");
    assert_int_equal(access("ck", F_OK), -1);
    assert_int_equal(mkdir("ck", 0700), 0);
    program_assert_refused(RUN("no-such-file", "-q", "--checkpoint", "ck"), 1, "no-such-file");
    assert_int_equal(rmdir("ck"), 0);
}

/* ---- damage ---- */

static void a_damaged_one_is_skipped_with_a_line(void **state) {
    (void)state;
#define RUN_OF(...) DATA, "--mode", "sync", "-w", "1", "-e", "3", "--checkpoint", "ck", "--keep", "all", __VA_ARGS__
    char path[300], line[400];
    const struct outcome whole = OUTCOME(DATA, "--mode", "sync", "-w", "1", "-e", "3");
    (void)OUTCOME(RUN_OF("--steps", "350"));
    (void)OUTCOME(RUN_OF("--steps", "500", "--resume"));
    newest(path);
    assert_int_equal(truncate(path, 900), 0);
    struct program *p = RUN(RUN_OF("-q", "--resume", "--steps", "501"));
    program_assert_status(p, 0);
    snprintf(line, sizeof line, "shmtrain: checkpoint skipped: %s: ", path);
    assert_non_null(strstr(p->text[ERR], line));
    assert_non_null(strstr(p->text[ERR],
                           "resuming from ck/checkpoint-000000000350.safetensors: epoch 2 of 3, 37 of 313 "
                           "steps done\n"));
    const struct outcome rest = OUTCOME(RUN_OF("--resume"));
    assert_same(&rest, &whole);
    program_drop_folder("ck");
    assert_int_equal(mkdir("ck", 0700), 0);
    program_write_file("ck/checkpoint-000000000350.safetensors", "no checkpoint");
    p = RUN(RUN_OF("-q", "--resume"));
    assert_int_equal(p->status, 1);
    assert_non_null(strstr(p->text[ERR], "no checkpoint in ck is valid (of 1)"));
#undef RUN_OF
}

static int mount_small_folder(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return errno;
    return mkdir("ck", 0700) == 0 && mount("none", "ck", "tmpfs", 0, "size=64k") != 0 ? errno : 0;
}

/* There is room for one of 50 KB. What is learned is saved all the same. */
static void a_full_disk_is_a_line_and_the_older_one_stays(void **state) {
    (void)state;
    static const char SCRIPT[] =
        "run() { \"$TEST_BUILDDIR/shmtrain\" builtin:sparse:examples=20000,features=5000,nonzeros=9 -q "
        "--mode sync -w 1 -e 3 --checkpoint ck --checkpoint-every \"1 epoch\" \"$@\"; }; "
        "run --steps 100; echo $?; run --resume -o m; echo $?; ls m ck; run --resume --steps 100; echo $?";
    struct program *p = program_run(mount_small_folder, (const char *const[]){"sh", "-c", SCRIPT, NULL});
    if (p->status == PREPARE_FAILED) {
        print_message("skipped: no right to mount a small folder\n");
        skip();
    }
    assert_string_equal(p->text[OUT], "0\n1\nm\n\nck:\ncheckpoint-000000000100.safetensors\n0\n");
    assert_non_null(strstr(p->text[ERR], "cannot write the checkpoint to ck/checkpoint-000000000939.safetensors"));
    assert_non_null(strstr(p->text[ERR], "No space left on device"));
    rmdir("ck");
}

/* More files than are to be kept, and no room for another one: with --keep all the disk fills; then two are enough. */
static void a_full_disk_has_room_again_where_fewer_are_to_be_kept(void **state) {
    (void)state;
    static const char SCRIPT[] =
        "run() { \"$TEST_BUILDDIR/shmtrain\" builtin:sparse:examples=2000,features=1000,nonzeros=9 -q "
        "--mode sync -w 1 --checkpoint ck \"$@\"; }; "
        "n=1; while run -e $n --resume --keep all; do n=$((n + 1)); done; echo; "
        "run -e $n --resume --keep 2; echo $?; ls ck | wc -l; run -e $((n + 1)) --resume --keep 2; echo $?; ls ck | wc -l; "
        "test $n -gt 3; echo $?";
    struct program *p = program_run(mount_small_folder, (const char *const[]){"sh", "-c", SCRIPT, NULL});
    if (p->status == PREPARE_FAILED) {
        print_message("skipped: no right to mount a small folder\n");
        skip();
    }
    assert_string_equal(p->text[OUT], "\n0\n2\n0\n2\n0\n");
    assert_non_null(strstr(p->text[ERR], "No space left on device"));
    rmdir("ck");
}

/* ---- what it is good for ---- */

static void a_checkpoint_is_evaluated_like_a_model(void **state) {
    (void)state;
    program_write_file("t.svm", "1 1:1 2:0.5\n-1 2:1\n1 1:1\n-1 2:1 3:1\n");
    program_assert_status(
        RUN("t.svm", "-q", "-w", "1", "-e", "5", "--optimizer", "adam", "--checkpoint", "ck", "-o", "t.model"), 0);
    char path[300];
    newest(path);
    struct program *p = RUN("predict", "--scores", "t.model", "t.svm");
    program_assert_status(p, 0);
    struct program *q = RUN("predict", "--scores", path, "t.svm");
    program_assert_status(q, 0);
    assert_string_equal(p->text[OUT], q->text[OUT]);
}

#define TEST(f) cmocka_unit_test_teardown(f, end_test)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(sync_resumes_with_the_same_bits_and_any_number_of_workers),
        TEST(dense_models_validation_and_goals_go_on_too),
        TEST(a_run_that_was_done_goes_on_for_more_epochs),
        TEST(what_a_refused_run_is_told_to_use_is_allowed),
        TEST(sync_killed_at_any_moment_ends_with_the_same_bits),
        TEST(the_live_modes_count_each_example_once),
        TEST(async_resumes_with_other_workers),
        TEST(rounds_go_on_with_other_workers),
        TEST(a_quorum_of_all_resumes_with_more_workers),
        PROGRAM_TEST(rounds_go_on_with_other_workers),
        PROGRAM_TEST(a_quorum_of_all_resumes_with_more_workers),
        TEST(a_signal_leaves_a_checkpoint_of_that_moment),
        TEST(as_many_are_kept_as_somebody_says),
        TEST(an_empty_folder_is_a_beginning),
        TEST(other_options_and_data_are_refused_with_both_values),
        TEST(labels_tell_data_apart),
        TEST(what_is_refused_has_not_gone_on),
        TEST(a_folder_of_another_run_is_left_alone),
        TEST(two_runs_in_one_folder_are_one_too_many),
        TEST(one_that_was_killed_goes_on_at_once),
        TEST(a_folder_is_not_made_for_a_run_that_never_begins),
        TEST(a_damaged_one_is_skipped_with_a_line),
        TEST(a_full_disk_is_a_line_and_the_older_one_stays),
        TEST(a_full_disk_has_room_again_where_fewer_are_to_be_kept),
        TEST(a_checkpoint_is_evaluated_like_a_model),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
