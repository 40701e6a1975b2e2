/* shmtrain, the program: a thin face of libshmtrain. It uses public headers only.
 *
 * What it does is in the files of its commands (commands.h). Lines for people go to stdout as they come, or to stderr when
 * stdout is for JSON. Errors are one line on stderr. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/help.h"
#include "cli/mpi.h"
#include "cli/talk.h"
#include "cli/task.h"

/* A program that was started with stdin, stdout or stderr closed gets their numbers for what it opens first, and would then
 * print into its own shared memory. So each closed one is opened, in the direction in which it cannot be used: writing fails,
 * as it should. */
static int reserve_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return -1;
    return 0;
}

/* hwloc asks all its plugins what devices there are, graphics cards and displays too, with a dozen libraries. Plans are made of
 * processors and memory alone, so the program starts 1.3 ms sooner without. Users' own lists count. */
static void leave_devices_out(void) { setenv("HWLOC_PLUGINS_BLACKLIST", "hwloc_gl.so,hwloc_opencl.so,hwloc_pci.so", 0); }

static int run(struct shmtrain_store *store, const struct arguments *a) {
    if (!a->help && !a->version) return a->command->run(store, a);
    if (a->version)
        printf("shmtrain %s\n", PACKAGE_VERSION);
    else if (a->named)
        help_print_command(a->command);
    else
        help_print();
    return talk_close_output();
}

/* Much is worked out on the stack. A soft limit is ours to raise, and is looked at only when the stack grows. */
#define STACK_BYTES ((rlim_t)512 << 10)
#define STACK_USUAL ((rlim_t)8 << 20)

static int find_room_for_stack(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= STACK_BYTES) return 0;
    const rlim_t had = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > STACK_USUAL ? STACK_USUAL : limit.rlim_max;
    if (limit.rlim_cur >= STACK_BYTES && setrlimit(RLIMIT_STACK, &limit) == 0) return 0;
    char line[160]; /* what fprintf needs may be too much */
    const int n =
        snprintf(line, sizeof line,
                 "shmtrain: the stack is limited to %llu KiB, and %llu are needed: raise the limit (ulimit -s 8192)\n",
                 (unsigned long long)(had >> 10), (unsigned long long)(STACK_BYTES >> 10));
    return write(STDERR_FILENO, line, (size_t)n) < 0 ? -2 : -1;
}

/* Not a part of main, whose stack would have to hold all this before the first line of it. */
static __attribute__((noinline)) int run_program(int argc, char **argv) {
    struct shmtrain_store *store;
    struct arguments a;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow (ulimit -f) is a failed write, which is said */
    leave_devices_out();
    talk_catch_faults();
    if (shmtrain_store_create(&store) < 0) {
        fprintf(stderr, "shmtrain: not enough memory to begin\n");
        return 1;
    }
    argv = mpi_words(argc, argv);
    int status = shmtrain_store_set_from_environment(store) < 0 ? talk_fail(store, SHMTRAIN_E_USAGE) : 0;
    if (status == 0) status = arguments_parse(argc, argv, store, &a);
    if (status == 0) status = task_take_tf_config(store, &a);
    if (status == 0) status = mpi_settle(store, &a);
    if (status == 0) status = run(store, &a);
    talk_forget_store();
    shmtrain_store_destroy(store);
    mpi_end(status);
    return status;
}

int main(int argc, char **argv) {
    if (reserve_standard_descriptors() < 0) return 1; /* nowhere to say so */
    if (find_room_for_stack() < 0) return 1;
    return run_program(argc, argv);
}
