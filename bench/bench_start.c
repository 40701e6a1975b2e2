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

#include "base/clock.h"
#include "bench.h"

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

static void measure_time(const struct bench_options *o) {
    char path[] = "/tmp/bench_start_XXXXXX";
    const char *const data[] = {path, SMALL};
    struct shmt_figure figure[2][2] = {
        {{.name = "file of 1,000 examples, by --json", .unit = "ms"}, {.name = "  from outside", .unit = "ms"}},
        {{.name = SMALL ", by --json", .unit = "ms"}, {.name = "  from outside", .unit = "ms"}}};
    write_small_file(path);
    while (figure[0][0].n < o->rounds) {
        double ms[2][2];
        bench_round_begin();
        for (int d = 0; d < 2; d++) time_one(data[d], "2", &ms[d][0], &ms[d][1]);
        if (!bench_round_end(o)) continue;
        for (int d = 0; d < 2; d++)
            for (int k = 0; k < 2; k++) shmt_figure_add(&figure[d][k], ms[d][k]);
    }
    unlink(path);
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < 2; k++) bench_show(&figure[d][k]);
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

static double time_run_of(const char *workers) {
    const char *const argument[] = {PROGRAM, "-q", "-w", workers, "-e", "1", SMALL, NULL};
    const uint64_t from = shmt_now_ns();
    end_well(start(argument, NULL), 0);
    return (double)(shmt_now_ns() - from) / 1e6;
}

static void measure_many(const struct bench_options *o) {
    enum { SIZES = 3 };
    const uint32_t n[SIZES] = {o->quick ? 16 : 256, o->quick ? 32 : 1024, o->quick ? 64 : 2048};
    char name[SIZES][2][64], workers[SIZES][16];
    struct shmt_figure figure[SIZES][2] = {0};
    for (int i = 0; i < SIZES; i++) {
        snprintf(workers[i], sizeof workers[i], "%u", n[i]);
        snprintf(name[i][0], sizeof name[i][0], "%u workers, one epoch, each", n[i]);
        snprintf(name[i][1], sizeof name[i][1], "  over as many forks");
        figure[i][0] = (struct shmt_figure){.name = name[i][0], .unit = "ms"};
        figure[i][1] = (struct shmt_figure){.name = name[i][1], .unit = "x"};
    }
    while (figure[0][0].n < o->rounds) {
        double run_ms[SIZES], forks_ms[SIZES];
        bench_round_begin();
        for (int i = 0; i < SIZES; i++) {
            forks_ms[i] = time_forks(n[i]);
            run_ms[i] = time_run_of(workers[i]);
        }
        if (!bench_round_end(o)) continue;
        for (int i = 0; i < SIZES; i++) {
            shmt_figure_add(&figure[i][0], run_ms[i] / n[i]);
            shmt_figure_add(&figure[i][1], run_ms[i] / forks_ms[i]);
        }
    }
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < 2; k++) bench_show(&figure[i][k]);
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

static void measure_memory(const struct bench_options *o) {
    struct shmt_figure few = {.name = "async, 2 workers in all", .unit = "MiB"},
                       async = {.name = "one more worker, async", .unit = "MiB"},
                       sync = {.name = "one more worker, sync", .unit = "MiB"};
    const uint32_t rounds = o->rounds < 5 ? o->rounds : 5; /* memory does not depend on what others do */
    for (uint32_t i = 0; i < rounds; i++) {
        const double two = memory_of("async", 2), sync_two = memory_of("sync", 2);
        shmt_figure_add(&few, two);
        shmt_figure_add(&async, (memory_of("async", MOST_WORKERS) - two) / (MOST_WORKERS - 2));
        shmt_figure_add(&sync, (memory_of("sync", MOST_WORKERS) - sync_two) / (MOST_WORKERS - 2));
    }
    bench_show(&few);
    bench_show(&async);
    bench_show(&sync);
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
