/* The real program from outside: caches. */
#include "caches_help.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* ---- runs ---- */

/* Hash and losses of a run with --json -q and these words. */
struct result {
    char hash[17];
    double train, valid;
};

static struct result result_of(const char *const *argv) {
    struct result r = {.hash = ""};
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *epochs = json_object_get(o, "epochs");
    json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
    snprintf(r.hash, sizeof r.hash, "%s", json_string_value(json_object_get(o, "parameters_xxh64")));
    r.train = json_number_value(json_object_get(last, "train_loss"));
    r.valid = json_number_value(json_object_get(last, "valid_loss"));
    json_decref(o);
    return r;
}
#define RESULT(...) result_of((const char *const[]){"shmtrain", "--json", "-q", "-e", "2", __VA_ARGS__, NULL})

static void assert_same(struct result a, struct result b) {
    assert_string_equal(a.hash, b.hash);
    assert_true(a.train == b.train);
    assert_true(a.valid == b.valid);
}

#define SAME_FROM_TEXT_AND_CACHE(...)                                                \
    do {                                                                             \
        const struct result text = RESULT(__VA_ARGS__, "--valid", "v.svm", "t.svm"); \
        assert_same(text, RESULT(__VA_ARGS__, "--valid", "v.svm", "t.cache"));       \
        assert_same(text, RESULT(__VA_ARGS__, "--valid", "v.cache", "t.cache"));     \
        assert_same(text, RESULT(__VA_ARGS__, "--valid", "v.cache", "t.svm"));       \
    } while (0)

static void a_run_from_a_cache_is_that_from_the_text(void **state) {
    (void)state;
    convert("t.svm", "t.cache");
    convert("v.svm", "v.cache");
    SAME_FROM_TEXT_AND_CACHE("-w", "1");
    SAME_FROM_TEXT_AND_CACHE("-w", "2", "--mode", "sync");
    SAME_FROM_TEXT_AND_CACHE("-w", "2", "--mode", "sync", "--spawn", "threads");
    SAME_FROM_TEXT_AND_CACHE("-w", "2", "--mode", "sync", "--columns", "given");
    SAME_FROM_TEXT_AND_CACHE("-w", "1", "--model", "linear", "--l2", "1e-4");
    SAME_FROM_TEXT_AND_CACHE("-w", "1", "--model", "softmax");
    SAME_FROM_TEXT_AND_CACHE("-w", "1", "--class-weight", "balanced", "--optimizer", "adagrad");
    SAME_FROM_TEXT_AND_CACHE("-w", "1", "--backend", "plain");
    assert_same(RESULT("-w", "1", "--valid", "0.2", "t.svm"), RESULT("-w", "1", "--valid", "0.2", "t.cache"));
}

/* Columns begin at 0 then, and those of the cache are one further. */
static void validation_data_may_have_an_id_that_the_cache_has_not(void **state) {
    (void)state;
    convert("t.svm", "t.cache");
    program_write_file("zero.svm", "1 0:1 5:1\n-1 7:1 2000:1\n1 3:1\n");
    for (int i = 0; i < 2; i++) {
        const char *mode = i == 0 ? "sync" : "async";
        assert_same(RESULT("-w", "1", "--mode", mode, "--valid", "zero.svm", "t.svm"),
                    RESULT("-w", "1", "--mode", mode, "--valid", "zero.svm", "t.cache"));
    }
}

/* Small tables stay as given, and validation data in place, too. */
static void few_columns_are_kept_as_given(void **state) {
    (void)state;
    program_write_file("few.svm", "1 1:1 3:1\n-1 2:1\n1 1:1\n-1 2:1 4:1\n");
    convert("few.svm", "few.cache");
    const struct result text = RESULT("-w", "1", "--valid", "few.svm", "few.svm");
    assert_same(text, RESULT("-w", "1", "--valid", "few.cache", "few.cache"));
    assert_same(text, RESULT("-w", "1", "--valid", "few.svm", "few.cache"));
    assert_same(RESULT("-w", "1", "-M", "softmax", "few.svm"), RESULT("-w", "1", "-M", "softmax", "few.cache"));
}

/* Whether a process has the file mapped. */
static bool maps(pid_t pid, const char *name) {
    char path[64], line[4096];
    bool does = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) does = does || strstr(line, name);
    if (f) fclose(f);
    return does;
}

/* A run for guests has its data in a segment, which the cache is copied into. */
static void a_named_run_copies_a_cache(void **state) {
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "test_program_data-%d", getpid());
    convert("t.svm", "t.cache");
    const struct result text = RESULT("-w", "1", "--name", name, "t.svm");
    program_assert_status(RUN("rm", name), 0);
    const struct result cache = RESULT("-w", "1", "--name", name, "t.cache");
    program_assert_status(RUN("rm", name), 0);
    assert_string_equal(text.hash, cache.hash);
    assert_true(text.train == cache.train);
    struct program *p = START("-w", "1", "-e", "1000000", "--name", name, "t.cache");
    program_wait_for_epoch(p);
    assert_false(maps(program_worker(p, 0), "t.cache"));
    kill(p->pid, SIGINT);
    program_finish(p);
    program_assert_status(RUN("rm", name), 0);
}

static void eval_reads_a_cache_as_text(void **state) {
    (void)state;
    convert("v.svm", "v.cache");
    program_assert_status(RUN("-q", "-e", "1", "t.svm", "-o", "t.model"), 0);
    struct program *text = RUN("eval", "t.model", "v.svm"), *cache = RUN("eval", "t.model", "v.cache");
    program_assert_status(text, 0);
    program_assert_status(cache, 0);
    assert_string_equal(text->text[OUT], cache->text[OUT]);
}

/* While it trains; a source that was copied is closed by then. */
static void workers_train_on_the_mapped_file(void **state) {
    (void)state;
    convert("t.svm", "t.cache");
    struct program *p = START("-w", "2", "-e", "1000000", "t.cache");
    program_wait_for_epoch(p);
    for (unsigned rank = 0; rank < 2; rank++) assert_true(maps(program_worker(p, rank), "t.cache"));
    kill(p->pid, SIGINT);
    program_finish(p);
    p = START("-w", "2", "-e", "1000000", "--columns", "given", "t.cache");
    program_wait_for_epoch(p);
    assert_false(maps(program_worker(p, 0), "t.cache"));
    kill(p->pid, SIGINT);
    program_finish(p);
}

/* ---- beside the text ---- */

static void says(const struct program *p, const char *words) {
    program_assert_status((struct program *)p, 0);
    if (!strstr(p->text[ERR], words)) fail_msg("\"%s\" is not in: %s", words, p->text[ERR]);
}

static void a_cache_is_kept_until_its_text_changes(void **state) {
    struct stat made, used;
    (void)state;
    write_text("k.svm", 3, 2000);
    const struct result text = RESULT("-w", "1", "k.svm");
    says(RUN("-q", "-e", "1", "--cache", "k.svm"), "k.svm.shmcache was created from k.svm");
    assert_int_equal(stat("k.svm.shmcache", &made), 0);
    const struct result cache = RESULT("-w", "1", "--cache", "k.svm");
    assert_string_equal(text.hash, cache.hash);
    assert_true(text.train == cache.train);
    assert_int_equal(stat("k.svm.shmcache", &used), 0);
    assert_int_equal(made.st_ino, used.st_ino);
    write_text("k.svm", 4, 2000);
    const struct result other = RESULT("-w", "1", "k.svm");
    says(RUN("-q", "-e", "1", "--cache", "k.svm"), "k.svm.shmcache was recreated because it was older than k.svm");
    const struct result again = RESULT("-w", "1", "--cache", "k.svm");
    assert_string_equal(other.hash, again.hash);
    assert_string_not_equal(text.hash, again.hash);
    struct program *p = RUN("-q", "-e", "1", "--cache", "k.svm");
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    assert_int_equal(truncate("k.svm.shmcache", 5000), 0);
    says(RUN("-q", "-e", "1", "--cache", "k.svm"), "k.svm.shmcache was recreated because it was damaged, from k.svm");
    assert_no_temporary();
}

/* Its header is right, and what is wrong further inside is found when it is read. */
static void a_cache_that_is_damaged_inside_is_made_again(void **state) {
    static const off_t PLACES[] = {5000, 60000, 200000, 500000};
    struct stat cache;
    (void)state;
    write_text("i.svm", 7, 6000);
    const struct result whole = RESULT("-w", "1", "--valid", "none", "i.svm");
    says(RUN("-q", "-e", "1", "--cache", "i.svm"), "i.svm.shmcache was created from i.svm");
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        char before[6];
        assert_int_equal(stat("i.svm.shmcache", &cache), 0);
        const int fd = open("i.svm.shmcache", O_RDWR);
        assert_int_equal(pread(fd, before, 6, PLACES[i] % cache.st_size), 6);
        assert_int_equal(pwrite(fd, "damage", 6, PLACES[i] % cache.st_size), 6);
        close(fd);
        program_assert_refused(RUN("-q", "-e", "1", "i.svm.shmcache"), 1, "i.svm.shmcache is damaged"); /* named itself */
        struct program *plan = RUN("topo", "--cache", "i.svm"); /* writes nothing, and goes by the text */
        program_assert_status(plan, 0);
        struct program *p = RUN("-q", "-e", "1", "--cache", "--valid", "v.svm", "i.svm");
        says(p, "i.svm.shmcache was recreated because it was damaged, from i.svm");
        assert_same(RESULT("-w", "1", "--valid", "none", "i.svm.shmcache"), whole);
        assert_no_temporary();
    }
}

static void a_file_that_is_no_cache_is_not_replaced(void **state) {
    static const char *const NO_CACHES[] = {"", "\x1f\x8b packed", "short"};
    (void)state;
    write_text("o.svm", 3, 100);
    for (size_t i = 0; i < sizeof NO_CACHES / sizeof *NO_CACHES; i++) {
        program_write_file("o.svm.shmcache", NO_CACHES[i]);
        program_assert_refused(RUN("--cache", "o.svm"), 2, "o.svm.shmcache is not a cache");
    }
    unlink("o.svm.shmcache");
    assert_int_equal(mkfifo("o.svm.shmcache", 0600), 0);
    program_assert_refused(RUN("--cache", "o.svm"), 2, "o.svm.shmcache is not a cache"); /* and waits for nobody */
    unlink("o.svm.shmcache");
    program_write_file("o.svm.shmcache", "1 1:1\n-1 2:1\n");
    program_assert_refused(RUN("--cache", "o.svm"), 2,
                           "o.svm.shmcache is not a cache and would be replaced: move it, or do not use --cache");
}

static void a_plan_makes_no_cache(void **state) {
    (void)state;
    write_text("p.svm", 3, 100);
    program_assert_status(RUN("topo", "--cache", "p.svm"), 0);
    assert_false(is_there("p.svm.shmcache"));
}

/* ---- a full disk ---- */

static int allow_small_files(void) {
    const struct rlimit small = {100000, 100000};
    signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &small);
}

static void a_full_disk_leaves_nothing_behind(void **state) {
    (void)state;
    unlink("f.cache");
    struct program *p = RUN_IN(allow_small_files, "data", "convert", "t.svm", "-o", "f.cache");
    assert_int_equal(p->status, 1);
    assert_false(is_there("f.cache"));
    assert_no_temporary();
    program_assert_refused(RUN("data", "convert", "t.svm", "-o", "/dev/full"), 1,
                           "cannot write the cache to /dev/full: No space left on device");
}

static void an_old_cache_stays_whole_where_no_new_one_can_be_written(void **state) {
    struct stat before, after;
    (void)state;
    convert("t.svm", "f.cache");
    assert_int_equal(stat("f.cache", &before), 0);
    struct program *p = RUN_IN(allow_small_files, "data", "convert", "t.svm", "-o", "f.cache");
    assert_int_equal(p->status, 1);
    assert_int_equal(stat("f.cache", &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_size, after.st_size);
    assert_no_temporary();
}

/* Nobody writes into a folder that is none. */
static void training_goes_on_where_no_cache_can_be_kept(void **state) {
    (void)state;
    write_text("n.svm", 3, 100);
    assert_int_equal(mkdir("n.svm.shmcache", 0700), 0);
    struct program *p = RUN("-q", "-e", "1", "--cache", "n.svm");
    says(p, "cannot write the cache to n.svm.shmcache: it is a folder");
    says(p, "the run continues without a cache");
    rmdir("n.svm.shmcache");
}

/* Wherever the signal comes: while the data is made or read, ordered, written, or looked at. */
static void a_signal_ends_it_and_leaves_nothing(void **state) {
    (void)state;
    const char *data =
        SANITIZED ? "builtin:sparse:examples=20000,features=100000" : "builtin:sparse:examples=100000,features=100000";
    const char *const WHAT[][6] = {{"data", "convert", data, "-o", "stopped.cache"}, {"data", "info", data}};
    int n_stopped = 0;
    for (int i = 0; i < 16; i++) {
        const char *argv[8] = {"shmtrain"};
        memcpy(argv + 1, WHAT[i % 2], sizeof WHAT[0]);
        struct program *p = program_start(NULL, argv);
        usleep((useconds_t)(20000 + i * 30000));
        kill(p->pid, SIGTERM);
        program_finish(p);
        const bool said = strstr(p->text[ERR], "shmtrain: stopped while ") != NULL;
        if (said) program_assert_status(p, 128 + SIGTERM);
        if (said) assert_false(is_there("stopped.cache"));
        /* else it was ready, or as good as that; or not yet so far that it could answer */
        if (!said && p->status != -SIGTERM) assert_true(i % 2 == 1 || is_there("stopped.cache"));
        n_stopped += said;
        assert_no_temporary();
        unlink("stopped.cache");
        program_end_all(state);
    }
    print_message("%d of 16 were stopped\n", n_stopped);
}

/* What is freed is garbage; and AddressSanitizer, where it is a library, accepts another one before it. */
static int signal_at_its_end(void) {
    const char *options = getenv("ASAN_OPTIONS");
    char more[512];
    snprintf(more, sizeof more, "%s:verify_asan_link_order=0", options ? options : "");
    return setenv("ASAN_OPTIONS", more, 1) || setenv("LD_PRELOAD", "./late.so", 1) || setenv("MALLOC_PERTURB_", "165", 1);
}

static void a_signal_behind_its_end_does_no_harm(void **state) {
    char command[512];
    (void)state;
    program_write_file("late.c",
                       "#include <signal.h>\n"
                       "static __attribute__((destructor)) void end(void) { raise(SIGTERM); }\n");
    snprintf(command, sizeof command, "%s -shared -fPIC -o late.so late.c", getenv("TEST_CC") ? getenv("TEST_CC") : "cc");
    assert_int_equal(system(command), 0);
    struct program *p = RUN_IN(signal_at_its_end, "data", "convert", "t.svm", "-o", "late.cache");
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    unlink("late.cache");
    unlink("late.so");
    unlink("late.c");
}

/* ---- what is refused ---- */

static void damage_is_refused_in_one_line(void **state) {
    (void)state;
    convert("t.svm", "d.cache");
    const int fd = open("d.cache", O_WRONLY);
    assert_int_equal(pwrite(fd, "damage", 6, 100000), 6);
    close(fd);
    program_assert_refused(RUN("-w", "2", "d.cache"), 1, "d.cache is damaged (wrong checksum of ");
    program_assert_refused(RUN("-w", "1", "t.svm", "--valid", "d.cache"), 1, "d.cache is damaged (wrong checksum of ");
    assert_int_equal(truncate("d.cache", 100000), 0);
    program_assert_refused(RUN("data", "info", "d.cache"), 1, "d.cache is cut short (100000 of ");
}

static void what_cannot_be_converted_is_refused(void **state) {
    (void)state;
    static const struct refusal REFUSALS[] = {
        {2, "data convert: name the file to write", {"data", "convert", "t.svm"}},
        {2, "data shrink: expected data info DATA", {"data", "shrink", "t.svm"}},
        {2, "t.svm is read as the data", {"data", "convert", "t.svm", "-o", "t.svm"}},
        {1, "cannot open nothing", {"data", "convert", "nothing", "-o", "x.cache"}},
        {1,
         "cannot write the cache to no/x.cache: No such file or directory",
         {"data", "convert", "builtin:line", "-o", "no/x.cache"}},
        {2, "data info writes no file: remove --output", {"data", "info", "t.svm", "-o", "x"}},
    };
    ASSERT_ALL_REFUSED(REFUSALS);
    assert_false(is_there("x.cache"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_run_from_a_cache_is_that_from_the_text),
        PROGRAM_TEST(validation_data_may_have_an_id_that_the_cache_has_not),
        PROGRAM_TEST(few_columns_are_kept_as_given),
        PROGRAM_TEST(a_named_run_copies_a_cache),
        PROGRAM_TEST(eval_reads_a_cache_as_text),
        PROGRAM_TEST(workers_train_on_the_mapped_file),
        PROGRAM_TEST(a_cache_is_kept_until_its_text_changes),
        PROGRAM_TEST(a_cache_that_is_damaged_inside_is_made_again),
        PROGRAM_TEST(a_file_that_is_no_cache_is_not_replaced),
        PROGRAM_TEST(a_plan_makes_no_cache),
        PROGRAM_TEST(a_full_disk_leaves_nothing_behind),
        PROGRAM_TEST(an_old_cache_stays_whole_where_no_new_one_can_be_written),
        PROGRAM_TEST(training_goes_on_where_no_cache_can_be_kept),
        PROGRAM_TEST(a_signal_ends_it_and_leaves_nothing),
        PROGRAM_TEST(a_signal_behind_its_end_does_no_harm),
        PROGRAM_TEST(damage_is_refused_in_one_line),
        PROGRAM_TEST(what_cannot_be_converted_is_refused),
    };
    program_forget_options();
    return cmocka_run_group_tests(tests, make_all, program_remove_folder);
}
