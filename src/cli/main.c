/* shmtrain, the program: a thin face of libshmtrain. It uses public headers only.
 *
 * What it does is in the files of its commands (commands.h). Lines for people go to stdout as they come, or to stderr when
 * stdout is for JSON. Errors are one line on stderr. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/help.h"
#include "cli/talk.h"

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

int main(int argc, char **argv) {
    struct shmtrain_store *store;
    struct arguments a;
    if (reserve_standard_descriptors() < 0) return 1; /* nowhere to say so */
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow (ulimit -f) is a failed write, which is said */
    leave_devices_out();
    talk_catch_faults();
    if (shmtrain_store_create(&store) < 0) {
        fprintf(stderr, "shmtrain: no memory to begin\n");
        return 1;
    }
    int status = shmtrain_store_set_from_environment(store) < 0 ? talk_fail(store, SHMTRAIN_E_USAGE) : 0;
    if (status == 0) status = arguments_parse(argc, argv, store, &a);
    if (status == 0) status = run(store, &a);
    shmtrain_store_destroy(store);
    return status;
}
