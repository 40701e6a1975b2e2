/* shmtrain, the program: a thin face of libshmtrain. It uses public headers only.
 *
 * Lines for people go to stdout as they come, or to stderr when stdout is for JSON. Errors are one line on stderr. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"

#ifndef SHMTRAIN_VERSION
#    define SHMTRAIN_VERSION "0"
#endif

#define DEFAULT_DATA "builtin:sparse"

/* ---- signals: the first one ends the run at a consistent point, the second one at once ---- */

static struct shmtrain_store *volatile running;
static volatile sig_atomic_t caught;

static void on_signal(int number) {
    static const char LINE[] = "shmtrain: stopping; once more stops at once\n";
    if (caught) _exit(128 + number);
    caught = number;
    if (running) shmtrain_store_stop(running);
    if (write(STDERR_FILENO, LINE, sizeof LINE - 1) < 0) return; /* nobody to tell */
}

static void catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- what one sees ---- */

struct talk {
    FILE *out; /* for people; NULL: --quiet */
    struct shmtrain_store *store;
};

/* A signal that came before the run began, when there was nothing to stop yet, stops it now. */
static void on_begin(void *arg, const struct shmtrain_report *r) {
    const struct talk *talk = arg;
    char text[1024];
    if (caught) shmtrain_store_stop(talk->store);
    if (!talk->out) return;
    shmtrain_report_opening(r, text, sizeof text);
    fprintf(talk->out, "%s\n", text);
    shmtrain_report_heading(r, text, sizeof text);
    fprintf(talk->out, "%s\n", text);
    fflush(talk->out);
}

static void say_epoch(void *arg, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch) {
    const struct talk *talk = arg;
    char text[256];
    if (!talk->out) return;
    shmtrain_report_line(r, epoch, text, sizeof text);
    fprintf(talk->out, "%s\n", text);
    fflush(talk->out);
}

static void say_note(void *arg, const char *line) {
    (void)arg;
    fprintf(stderr, "shmtrain: %s\n", line);
}

static int fail(const struct shmtrain_store *store, int status) {
    fprintf(stderr, "shmtrain: %s\n", shmtrain_store_message(store));
    if (caught) return 128 + caught;
    return status == SHMTRAIN_E_USAGE ? 2 : 1;
}

/* A link may lead to no file yet; what counts is where it leads. A circle of links is left as it is: saving refuses it. */
static void follow_links(char place[PATH_MAX]) {
    char target[PATH_MAX];
    ssize_t n;
    for (int i = 0; i < 40 && (n = readlink(place, target, sizeof target - 1)) > 0; i++) {
        const char *slash = strrchr(place, '/');
        const size_t folder = target[0] == '/' || !slash ? 0 : (size_t)(slash - place) + 1;
        if (folder + (size_t)n >= PATH_MAX) return;
        target[n] = '\0';
        memcpy(place + folder, target, (size_t)n + 1);
    }
}

/* Whether a file of this name can be written. A regular file is replaced by a new one beside it, so its folder counts, too; a
 * device or a pipe is written to as it is. 0, or -1 with errno. */
static int try_output(const char *path) {
    struct stat there;
    char place[PATH_MAX], folder[PATH_MAX + 2];
    const bool exists = stat(path, &there) == 0;
    if (!exists && errno != ENOENT) return -1;
    if (exists ? S_ISDIR(there.st_mode) : path[strlen(path) - 1] == '/') {
        errno = EISDIR;
        return -1;
    }
    if (exists && (!S_ISREG(there.st_mode) || access(path, W_OK) != 0)) return access(path, W_OK);
    snprintf(place, sizeof place, "%s", path);
    follow_links(place);
    snprintf(folder, sizeof folder, "%s/.", dirname(place)); /* "/.": it must be a folder */
    return access(folder, W_OK);
}

/* Whether -o can be obeyed is found out before hours of training, not after. */
static int check_output(const char *path) {
    if (try_output(path) == 0) return 0;
    fprintf(stderr, "shmtrain: --output %s: %s; name a file in a folder that you may write to\n", path, strerror(errno));
    return 1;
}

/* What was written may be in no file yet: a full disk shows here. */
static int close_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    perror("shmtrain: standard output");
    return 1;
}

static int say_result(struct shmtrain_store *store, const struct arguments *a) {
    const struct shmtrain_report *r = shmtrain_store_report(store);
    FILE *out = a->json ? stderr : stdout;
    char text[1024];
    shmtrain_report_summary(r, text, sizeof text);
    if (!a->quiet) fprintf(out, "\n%s", text);
    if (a->output && !a->quiet) fprintf(out, "saved       %s\n", a->output);
    if (a->json) {
        char *json = shmtrain_report_json(r);
        if (!json) return 1;
        fputs(json, stdout);
        free(json);
    }
    return close_output();
}

static int train(struct shmtrain_store *store, const struct arguments *a) {
    int status;
    if (a->output && (status = check_output(a->output)) != 0) return status;
    struct talk talk = {.out = a->quiet ? NULL : a->json ? stderr : stdout, .store = store};
    const struct shmtrain_listener listener = {.arg = &talk, .begin = on_begin, .epoch = say_epoch, .note = say_note};
    shmtrain_store_listen(store, &listener);
    running = store;
    catch_signals();
    int rc = shmtrain_store_train(store, a->data ? a->data : DEFAULT_DATA);
    if (rc == 0 && a->output) rc = shmtrain_store_save(store, a->output);
    if (rc < 0) return fail(store, rc);
    status = say_result(store, a);
    return caught ? 128 + caught : status;
}

/* A program that was started with stdin, stdout or stderr closed gets their numbers for what it opens first, and would then
 * print into its own shared memory. So each closed one is opened, in the direction in which it cannot be used: writing fails,
 * as it should. */
static int reserve_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return -1;
    return 0;
}

int main(int argc, char **argv) {
    struct shmtrain_store *store;
    struct arguments a;
    if (reserve_standard_descriptors() < 0) return 1; /* nowhere to say so */
    if (shmtrain_store_create(&store) < 0) {
        fprintf(stderr, "shmtrain: no memory to begin\n");
        return 1;
    }
    int status = shmtrain_store_set_from_environment(store) < 0 ? fail(store, SHMTRAIN_E_USAGE) : 0;
    if (status == 0) status = arguments_parse(argc, argv, store, &a);
    if (status == 0 && (a.help || a.version)) {
        if (a.help)
            help_print();
        else
            printf("shmtrain %s\n", PACKAGE_VERSION);
        status = close_output();
    } else if (status == 0) {
        status = train(store, &a);
    }
    shmtrain_store_destroy(store);
    return status;
}
