/* Talking, and being told to stop: see talk.h. */
#include "cli/talk.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/display.h"

#define SAME_NS 500000000 /* signals within this time say one thing: timeout(1) tells its child, and then the child's group */

static struct shmtrain_store *volatile running;
static volatile sig_atomic_t caught;
static int64_t caught_ns; /* the handler's own */
static char speaker[32] = "shmtrain";

/* What a program that stops at once says of files; the handler reads it where there are bytes. */
static char lost[640];
static volatile sig_atomic_t lost_bytes;

void talk_will_save(const char *file, const char *other) {
    const bool both = file && other;
    lost_bytes = 0;
    if (!file && !other) return;
    const int n = snprintf(lost, sizeof lost, "shmtrain: stopped at once: %.256s%s%.256s %s not saved\n", file ? file : "",
                           both ? " and " : "", other ? other : "", both ? "are" : "is");
    lost_bytes = n < (int)sizeof lost ? n : (int)sizeof lost - 1;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void say_in_handler(const char *line, size_t bytes) {
    if (write(STDERR_FILENO, line, bytes) < 0) return; /* nobody to tell */
}

static void on_signal(int number) {
    static const char LINE[] = "shmtrain: stopping at the next consistent point; Ctrl-C again stops at once\n",
                      LOST[] = "shmtrain: stopped at once\n";
    if (caught && number == SIGHUP) return; /* a closed terminal and its shell may both say it: nobody is impatient */
    if (caught && now_ns() - caught_ns < SAME_NS) return;
    display_clear_in_handler();
    if (caught) {
        shmtrain_output_discard_all();
        say_in_handler(lost_bytes > 0 ? lost : LOST, lost_bytes > 0 ? (size_t)lost_bytes : sizeof LOST - 1);
        _exit(128 + number);
    }
    caught_ns = now_ns();
    caught = number;
    if (!running) return;
    shmtrain_store_stop(running);
    say_in_handler(LINE, sizeof LINE - 1);
}

void talk_catch_signals(struct shmtrain_store *store) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}; /* no line that is being printed is lost */
    struct sigaction before;
    running = store;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT); /* one at a time */
    sigaddset(&action.sa_mask, SIGTERM);
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* as nohup wants it */
        sigaction(SIGHUP, &action, NULL);
}

void talk_forget_store(void) { running = NULL; }

static void add_words(char *line, size_t room, const char *words) {
    const size_t used = strlen(line);
    for (size_t i = 0; words[i] && used + i + 1 < room; i++) line[used + i] = words[i];
}

/* A file that is mapped has become shorter. What is written by then is not complete. Several threads may read it: one speaks. */
static void on_fault(int number, siginfo_t *info, void *context) {
    static atomic_flag spoken = ATOMIC_FLAG_INIT; /* carries nothing but itself */
    const char *file = info->si_code > 0 ? shmtrain_fault_file(info->si_addr) : NULL;
    char line[512] = "shmtrain: ";
    (void)context;
    if (!file) {
        (void)signal(number, SIG_DFL); /* the access is repeated, and kills */
        return;
    }
    while (atomic_flag_test_and_set(&spoken)) pause(); /* until the other one ends all threads */
    add_words(line, sizeof line - 1, file);
    add_words(line, sizeof line - 1, " became shorter while it was in use, or its disk cannot be read: make it again");
    line[strlen(line)] = '\n';
    display_clear_in_handler();
    shmtrain_output_discard_all();
    say_in_handler(line, strlen(line));
    _exit(1);
}

void talk_catch_faults(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

int talk_caught(void) { return caught; }

int talk_exit_status(int status) { return caught ? 128 + caught : status; }

void talk_as_host(uint32_t rank) { snprintf(speaker, sizeof speaker, "shmtrain: host %u", rank); }

int talk_refuse(const char *format, ...) {
    va_list args;
    char line[4096];
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *p = line; *p; p++) /* what was typed may be anything: it stays in the line, and commands no terminal */
        if ((unsigned char)*p < ' ' || *p == 0x7f) *p = '?';
    fprintf(stderr, "%s: %s\n", speaker, line);
    return 2;
}

int talk_fail(const struct shmtrain_store *store, int status) {
    fprintf(stderr, "%s: %s\n", speaker, shmtrain_store_message(store));
    return talk_exit_status(status == SHMTRAIN_E_USAGE ? 2 : 1);
}

void talk_note(void *arg, const char *line) {
    (void)arg;
    fprintf(stderr, "%s: %s\n", speaker, line);
}

void talk_listen(struct shmtrain_store *store) {
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = talk_note};
    shmtrain_store_listen(store, &listener);
}

/* Whoever read a pipe has closed it. */
static bool reader_has_left(void) {
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int talk_close_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0; /* errno may be that of an earlier write */
    const int why = errno;
    if (why == EPIPE || reader_has_left()) return 128 + SIGPIPE;
    fprintf(stderr, "shmtrain: standard output: %s\n", why ? strerror(why) : "not all of it could be written");
    return 1;
}

int talk_print(char *text) {
    if (!text) return talk_refuse("not enough memory for the result") - 1;
    fputs(text, stdout);
    free(text);
    return talk_exit_status(talk_close_output());
}
