/* The real program under the launchers of MPI that this machine has, whose programs (src/mpi) this build has: processes of one machine,
 * each a host of its own. */
#include "run_program.h"

#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

#include "skip.h"

#define SPARSE "builtin:sparse:examples=6000,valid=500,features=3000,nonzeros=12"
#define DENSE  "builtin:digits:examples=600,valid=100"
#define LONG   "builtin:sparse:examples=20000,valid=100,features=400,nonzeros=12"

static const struct launcher {
    const char *mpi, *command;
} LAUNCHERS[] = {{"openmpi", "mpirun.openmpi"}, {"mpich", "mpirun.mpich"}};

static char g_program[PATH_MAX];

static bool is_in_path(const char *command) {
    char line[200];
    snprintf(line, sizeof line, "command -v %s > /dev/null 2>&1", command);
    return system(line) == 0;
}

static bool is_built(const char *mpi) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/shmtrain-link-%s", getenv("TEST_BUILDDIR"), mpi);
    return access(path, X_OK) == 0;
}

/* The next launcher that can be used; NULL behind the last. */
static const struct launcher *next_launcher(size_t *i) {
    while (*i < sizeof LAUNCHERS / sizeof *LAUNCHERS) {
        const struct launcher *l = &LAUNCHERS[(*i)++];
        if (is_in_path(l->command) && is_built(l->mpi)) return l;
    }
    return NULL;
}

static void skip_without_mpi(void) {
    size_t i = 0;
    if (!next_launcher(&i)) SKIP("this machine or build has no MPI");
}

/* Open MPI refuses root, and more processes than cores, unless it is asked; and what it uses in shared memory needs more rights than some
 * containers have. */
static int prepare(void) {
    static const char *const ASKED[][2] = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                           {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                           {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                           {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                           {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"}};
    int rc = 0;
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++) rc |= setenv(ASKED[i][0], ASKED[i][1], 1);
    return rc;
}

#define RUN_MPI(l, ...)   program_run(prepare, (const char *const[]){(l)->command, "-n", __VA_ARGS__, NULL})
#define START_MPI(l, ...) program_start(prepare, (const char *const[]){(l)->command, "-n", __VA_ARGS__, NULL})

/* How often a line begins with these words. */
static unsigned count(const char *text, const char *words) {
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, words)); at++) n += at == text || at[-1] == '\n';
    return n;
}

/* The hash in the report that people read. */
static void hash_shown(const struct program *p, char out[17]) {
    const char *at = strstr(p->text[OUT], "xxh64 ");
    assert_non_null(at);
    snprintf(out, 17, "%s", at + 6);
}

static void processes_are_hosts_with_the_bits_of_one(void **state) {
    char one[17], many[17];
    (void)state;
    skip_without_mpi();
    HASH(one, "-w", "1", "--mode", "sync", "-e", "2", "-M", "mlp", DENSE);
    const struct launcher *l;
    for (size_t i = 0; (l = next_launcher(&i));) {
        static const char *const N[] = {"2", "3"};
        for (size_t k = 0; k < 2; k++) {
            struct program *p = RUN_MPI(l, N[k], g_program, "-w", "1", "-e", "2", "-M", "mlp", DENSE);
            char words[40];
            program_assert_status(p, 0);
            hash_shown(p, many);
            assert_string_equal(many, one);
            snprintf(words, sizeof words, "there are %s hosts", N[k]);
            assert_non_null(strstr(p->text[OUT], words));
        }
    }
}

static void the_first_one_alone_shows_and_writes_the_model(void **state) {
    (void)state;
    skip_without_mpi();
    const struct launcher *l;
    for (size_t i = 0; (l = next_launcher(&i));) {
        struct stat there;
        unlink("model.st");
        struct program *p = RUN_MPI(l, "2", g_program, "-w", "1", "-e", "1", "--mode", "async", "-o", "model.st", "--metrics",
                                    "of-%r.jsonl", "--trace", "once.json", SPARSE);
        program_assert_status(p, 0);
        assert_int_equal(count(p->text[OUT], "parameters "), 1);
        assert_int_equal(count(p->text[OUT], "saved "), 1);
        assert_int_equal(stat("model.st", &there), 0);
        assert_int_equal(stat("of-0.jsonl", &there), 0); /* %r in a word is the rank */
        assert_int_equal(stat("of-1.jsonl", &there), 0);
        assert_int_equal(stat("once.json", &there), 0);
        assert_null(strchr(p->text[OUT], '\033')); /* no display of a terminal that ends in a file */
    }
}

static void what_differs_is_named(void **state) {
    (void)state;
    skip_without_mpi();
    const struct launcher *l;
    for (size_t i = 0; (l = next_launcher(&i));) {
        struct program *p = RUN_MPI(l, "1", g_program, "-w", "1", "--batch", "64", "--mode", "sync", SPARSE, ":", "-n", "1",
                                    g_program, "-w", "1", "--batch", "128", "--mode", "sync", SPARSE);
        program_assert_status(p, 2);
        assert_non_null(strstr(p->text[ERR], "differ in batch"));
        p = RUN_MPI(l, "2", g_program, "--hosts", "mpi", "--insecure", SPARSE);
        program_assert_status(p, 2);
        assert_non_null(strstr(p->text[ERR], "--insecure is for hosts that --hosts names"));
        assert_non_null(strstr(p->text[ERR], "shmtrain: host 1: ")); /* who says so */
    }
}

/* The launcher ends what is left; nobody waits for ever. */
static void a_killed_host_ends_the_run(void **state) {
    (void)state;
    skip_without_mpi();
    const struct launcher *l;
    for (size_t i = 0; (l = next_launcher(&i));) {
        char script[PATH_MAX + 200], number[16] = "";
        snprintf(script, sizeof script,
                 "[ ${OMPI_COMM_WORLD_RANK-$PMI_RANK} = 0 ] || echo $$ > victim; exec %s -w 1 -e 1000000 --mode sync " LONG,
                 g_program);
        unlink("victim");
        struct program *p = START_MPI(l, "2", "sh", "-c", script);
        program_wait_for_epoch(p);
        FILE *f = fopen("victim", "r");
        assert_true(f && fgets(number, sizeof number, f));
        fclose(f);
        assert_int_equal(kill(atoi(number), SIGKILL), 0);
        program_finish(p);
        assert_int_not_equal(p->status, 0);
    }
}

static void without_a_launcher_mpi_is_refused(void **state) {
    (void)state;
    struct program *p = RUN("--hosts", "mpi", SPARSE);
    program_assert_refused(p, 2, "--hosts mpi is for what mpirun or mpiexec has started");
}

static int prepare_alone(void) {
    const bool is_set = setenv("OMPI_COMM_WORLD_RANK", "0", 1) == 0 && setenv("OMPI_COMM_WORLD_SIZE", "2", 1) == 0;
    return is_set ? 0 : -1;
}

/* A copy of the program, beside which there is no other one. */
static void a_build_without_that_mpi_says_what_to_install(void **state) {
    char line[2 * PATH_MAX + 200];
    (void)state;
    snprintf(line, sizeof line, "mkdir -p alone/bin && ln -f %s alone/bin/shmtrain 2> /dev/null || cp %s alone/bin/shmtrain",
             g_program, g_program);
    assert_int_equal(system(line), 0);
    struct program *p = program_run(prepare_alone, (const char *const[]){"alone/bin/shmtrain", "-w", "1", SPARSE, NULL});
    program_assert_refused(p, 1,
                           "there is no shmtrain-link-openmpi, which calls Open MPI: install its headers (libopenmpi-dev)");
    assert_int_equal(system("rm -r alone"), 0);
}

static void applications_are_told_what_cannot_be(void **state) {
    static const char *const ASKED[][3] = {{"init", "this process has called MPI_Init", ""},
                                           {"twice", "MPI begins once in each process", "the first run is over"}};
    char path[PATH_MAX];
    (void)state;
    snprintf(path, sizeof path, "%s/tests/mpi_application", getenv("TEST_BUILDDIR"));
    if (access(path, X_OK) != 0 || !is_in_path(LAUNCHERS[0].command)) SKIP("this machine or build has no MPI");
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++) {
        struct program *p = RUN_MPI(&LAUNCHERS[0], "2", path, ASKED[i][0]);
        program_assert_status(p, 2);
        assert_non_null(strstr(p->text[ERR], ASKED[i][1]));
        assert_non_null(strstr(p->text[ERR], ASKED[i][2]));
    }
}

/* Before MPI has begun in it: MPICH's launcher would not mind. */
static void who_fails_before_mpi_leaves_nobody_waiting(void **state) {
    (void)state;
    skip_without_mpi();
    const struct launcher *l;
    for (size_t i = 0; (l = next_launcher(&i));) {
        struct program *p =
            RUN_MPI(l, "1", g_program, "--output", "/nowhere/at/all", SPARSE, ":", "-n", "1", g_program, "-w", "1", SPARSE);
        assert_int_not_equal(p->status, 0);
        p = RUN_MPI(l, "1", g_program, "-w", "1", SPARSE, ":", "-n", "1", g_program, "--nonsense", SPARSE);
        assert_int_not_equal(p->status, 0);
        assert_non_null(strstr(p->text[ERR], "there is no option --nonsense"));
        p = RUN_MPI(l, "2", g_program, "-w", "1", "-");
        program_assert_status(p, 2);
        assert_non_null(strstr(p->text[ERR], "data cannot come from standard input"));
    }
}

static void hosts_none_makes_each_process_a_run_of_its_own(void **state) {
    (void)state;
    skip_without_mpi();
    const struct launcher *l;
    for (size_t i = 0; (l = next_launcher(&i));) {
        struct program *p = RUN_MPI(l, "2", g_program, "--hosts", "none", "-w", "1", "-e", "1", SPARSE);
        program_assert_status(p, 0);
        assert_int_equal(count(p->text[OUT], "parameters "), 2);
    }
}

int main(void) {
    snprintf(g_program, sizeof g_program, "%s/shmtrain", getenv("TEST_BUILDDIR"));
    const struct CMUnitTest tests[] = {PROGRAM_TEST(processes_are_hosts_with_the_bits_of_one),
                                       PROGRAM_TEST(the_first_one_alone_shows_and_writes_the_model),
                                       PROGRAM_TEST(what_differs_is_named),
                                       PROGRAM_TEST(a_killed_host_ends_the_run),
                                       PROGRAM_TEST(without_a_launcher_mpi_is_refused),
                                       PROGRAM_TEST(a_build_without_that_mpi_says_what_to_install),
                                       PROGRAM_TEST(applications_are_told_what_cannot_be),
                                       PROGRAM_TEST(who_fails_before_mpi_leaves_nobody_waiting),
                                       PROGRAM_TEST(hosts_none_makes_each_process_a_run_of_its_own)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
