/* bench_start: how soon training begins, and what one more worker costs in memory.
 *
 * usage: bench_start [--quick] [--rounds N]      in the build folder: it runs ./shmtrain there
 *
 * The program is started as a user starts it. To its first training step it takes what --json says (first_step_seconds: from
 * the call that loads the data), and, from outside: from before the fork to the end of the process, less what the program says
 * that it did after the first step. The latter is an upper bound: the program's ending is in it.
 *
 * Many workers: from outside, the time of a run of one epoch, divided by the number of workers; and as a multiple of what a process
 * needs in the same round to fork as many others, which write one word and end. A cost for each worker that grows with their number
 * shows.
 *
 * Memory is the proportional share (Pss in /proc/PID/smaps_rollup, where a page that n processes share counts one nth in each),
 * summed over all processes of a run. What one more worker costs is the difference between 10 workers and 2, divided by 8. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "sync/host.h"

#define PROGRAM "./shmtrain"
#define SMALL   "builtin:sparse:examples=1000"

enum { MOST_WORKERS = 10, LOOK_MS = 50, PATIENCE = 200 };

/* Starts the program; its output goes into the pipe *from_out, or nowhere. */
static pid_t start(const char *const *argument, int *from_out) {
    int ends[2] = {-1, -1};
    if (from_out && pipe2(ends, O_CLOEXEC) < 0) bench_fail("no pipe: %s", strerror(errno));
    const pid_t pid = fork();
    if (pid < 0) bench_fail("no process: %s", strerror(errno));
    if (pid == 0) {
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(from_out ? ends[1] : nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        execv(PROGRAM, (char *const *)(uintptr_t)argument);
        _exit(127);
    }
    if (from_out) {
        close(ends[1]);
        *from_out = ends[0];
    }
    return pid;
}

static void end_well(pid_t pid, int expected) {
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != expected)
        bench_fail(PROGRAM " did not end with status %d", expected);
}

/* ---- time ---- */

/* One run; milliseconds to the first step, by its own account and from outside. */
static void time_one(const char *data, const char *workers, double *inside_ms, double *outside_ms) {
    const char *const argument[] = {PROGRAM, "-w", workers, "-e", "1", "--json", data, NULL};
    int out;
    const uint64_t from = shmt_now_ns();
    const pid_t pid = start(argument, &out);
    FILE *file = fdopen(out, "r");
    json_error_t error;
    json_t *report = file ? json_loadf(file, 0, &error) : NULL;
    end_well(pid, 0);
    const double all_ms = (double)(shmt_now_ns() - from) / 1e6;
    if (!report) bench_fail(PROGRAM " printed no JSON");
    *inside_ms = 1e3 * json_number_value(json_object_get(report, "first_step_seconds"));
    *outside_ms = all_ms - (1e3 * json_number_value(json_object_get(report, "seconds")) - *inside_ms);
    json_decref(report);
    fclose(file);
}

/* A file of 1,000 examples of 20 features. */
static void write_small_file(char *path) {
    const int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) bench_fail("%s: %s", path, strerror(errno));
    for (int i = 0; i < 1000; i++) {
        fprintf(file, "%s", i % 3 == 0 ? "+1" : "-1");
        for (int j = 1; j <= 20; j++) fprintf(file, " %d:%d", j, (i * j) % 7 + 1);
        fputc('\n', file);
    }
    if (fclose(file) != 0) bench_fail("%s: %s", path, strerror(errno));
}

static void round_of_time(void *path, double *x) {
    time_one(path, "2", &x[0], &x[1]);
    time_one(SMALL, "2", &x[2], &x[3]);
}

static void measure_time(const struct bench_options *o) {
    char path[] = "/tmp/bench_start_XXXXXX";
    struct shmt_figure figure[] = {{.name = "file of 1,000 examples, by --json", .unit = "ms"},
                                   {.name = "  from outside", .unit = "ms"},
                                   {.name = SMALL ", by --json", .unit = "ms"},
                                   {.name = "  from outside", .unit = "ms"}};
    write_small_file(path);
    bench_rounds(o, figure, 4, round_of_time, path);
    unlink(path);
    bench_show(figure, 4);
}

/* ---- many workers ---- */

/* Milliseconds for a process to fork n others and to see them end. */
static double time_forks(uint32_t n) {
    uint32_t *word = mmap(NULL, n * sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED) bench_fail("no memory: %s", strerror(errno));
    const uint64_t from = shmt_now_ns();
    for (uint32_t i = 0; i < n; i++) {
        const pid_t pid = fork();
        if (pid < 0) bench_fail("no process: %s", strerror(errno));
        if (pid > 0) continue;
        word[i] = i;
        _exit(0);
    }
    for (uint32_t i = 0; i < n; i++)
        if (wait(NULL) < 0) bench_fail("a process is lost: %s", strerror(errno));
    const double ms = (double)(shmt_now_ns() - from) / 1e6;
    munmap(word, n * sizeof *word);
    return ms;
}

static double time_run_of(uint32_t n) {
    char workers[16];
    snprintf(workers, sizeof workers, "%u", n);
    const char *const argument[] = {PROGRAM, "-q", "-w", workers, "-e", "1", SMALL, NULL};
    const uint64_t from = shmt_now_ns();
    end_well(start(argument, NULL), 0);
    return (double)(shmt_now_ns() - from) / 1e6;
}

enum { SIZES = 3 };

static void round_of_many(void *arg, double *x) {
    const uint32_t *n = arg;
    for (int i = 0; i < SIZES; i++) {
        const double forks_ms = time_forks(n[i]), run_ms = time_run_of(n[i]);
        *x++ = run_ms / n[i];
        *x++ = run_ms / forks_ms;
    }
}

static void measure_many(const struct bench_options *o) {
    uint32_t n[SIZES] = {o->quick ? 16 : 256, o->quick ? 32 : 1024, o->quick ? 64 : 2048};
    char name[SIZES][64];
    struct shmt_figure figure[2 * SIZES];
    for (int i = 0; i < SIZES; i++) {
        snprintf(name[i], sizeof name[i], "%u workers, one epoch, each", n[i]);
        figure[2 * i] = (struct shmt_figure){.name = name[i], .unit = "ms"};
        figure[2 * i + 1] = (struct shmt_figure){.name = "  over as many forks", .unit = "x"};
    }
    bench_rounds(o, figure, 2 * SIZES, round_of_many, n);
    bench_show(figure, 2 * SIZES);
}

/* ---- memory ---- */

/* KiB of process `pid` and all below it; *n_out counts them. 0 for processes that have ended meanwhile. */
static uint64_t pss_of_all(pid_t pid, uint32_t *n_out) {
    char path[64], line[256];
    unsigned long long kib = 0;
    uint64_t sum = 0;
    int child;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "r");
    if (file) {
        while (fgets(line, sizeof line, file))
            if (sscanf(line, "Pss: %llu", &kib) == 1) sum += kib;
        fclose(file);
        ++*n_out;
    }
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    file = fopen(path, "r");
    if (!file) return sum;
    while (fscanf(file, "%d", &child) == 1) sum += pss_of_all(child, n_out);
    fclose(file);
    return sum;
}

/* Looks at a run until three looks in a row find all its processes with the same memory, give or take 1 %. Returns MiB. */
static double memory_of(const char *mode, uint32_t workers) {
    char n[16];
    snprintf(n, sizeof n, "%u", workers);
    const char *const argument[] = {PROGRAM, "-q", "-w", n, "-e", "1000000", "--mode", mode, SMALL, NULL};
    const pid_t pid = start(argument, NULL);
    uint64_t before = 0;
    int alike = 0;
    for (int i = 0; i < PATIENCE && alike < 3; i++) {
        uint32_t found = 0;
        usleep(LOOK_MS * 1000);
        const uint64_t now = pss_of_all(pid, &found);
        const uint64_t off = now > before ? now - before : before - now;
        alike = found == workers + 2 && off * 100 <= now ? alike + 1 : 0; /* the program, the supervisor, the workers */
        before = now;
    }
    kill(pid, SIGTERM);
    end_well(pid, 128 + SIGTERM);
    if (alike < 3) bench_fail("the memory of " PROGRAM " -w %u does not come to rest", workers);
    return (double)before / 1024;
}

static void round_of_memory(void *arg, double *x) {
    (void)arg;
    x[0] = memory_of("async", 2);
    x[1] = (memory_of("async", MOST_WORKERS) - x[0]) / (MOST_WORKERS - 2);
    const double two = memory_of("sync", 2);
    x[2] = (memory_of("sync", MOST_WORKERS) - two) / (MOST_WORKERS - 2);
}

static void measure_memory(const struct bench_options *o) {
    struct shmt_figure figure[] = {{.name = "async, 2 workers in all", .unit = "MiB"},
                                   {.name = "one more worker, async", .unit = "MiB"},
                                   {.name = "one more worker, sync", .unit = "MiB"}};
    /* Memory does not depend on what others do: all rounds count. */
    const struct bench_options few = {.quick = true, .rounds = o->rounds < 5 ? o->rounds : 5};
    bench_rounds(&few, figure, 3, round_of_memory, NULL);
    bench_show(figure, 3);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 21);
    if (access(PROGRAM, X_OK) != 0) bench_fail(PROGRAM " is not here: run this in the build folder");
    bench_head("start: from nothing to the first training step, 2 workers");
    measure_time(&o);
    bench_head("many workers: a run of one epoch on " SMALL ", from fork to end");
    measure_many(&o);
    bench_head("memory: of all processes of a run on " SMALL);
    measure_memory(&o);
    bench_show_noise();
    return 0;
}
