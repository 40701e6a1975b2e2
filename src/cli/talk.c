/* Talking, and being told to stop: see talk.h. */
#include "cli/talk.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/display.h"
#include "cli/output.h"

static struct shmtrain_store *volatile running;
static volatile sig_atomic_t caught;

static void on_signal(int number) {
    static const char LINE[] = "shmtrain: stopping; once more stops at once\n";
    display_clear_in_handler();
    if (caught && number == SIGHUP) return; /* a closed terminal and its shell may both say it: nobody is impatient */
    if (caught) {
        output_discard_in_handler();
        _exit(128 + number);
    }
    caught = number;
    if (!running) return;
    shmtrain_store_stop(running);
    if (write(STDERR_FILENO, LINE, sizeof LINE - 1) < 0) return; /* nobody to tell */
}

void talk_catch_signals(struct shmtrain_store *store) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}; /* no line that is being printed is lost */
    struct sigaction before;
    running = store;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* as nohup wants it */
        sigaction(SIGHUP, &action, NULL);
}

int talk_caught(void) { return caught; }

int talk_exit_status(int status) { return caught ? 128 + caught : status; }

int talk_refuse(const char *format, ...) {
    va_list args;
    fprintf(stderr, "shmtrain: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    return 2;
}

int talk_fail(const struct shmtrain_store *store, int status) {
    fprintf(stderr, "shmtrain: %s\n", shmtrain_store_message(store));
    return talk_exit_status(status == SHMTRAIN_E_USAGE ? 2 : 1);
}

void talk_note(void *arg, const char *line) {
    (void)arg;
    fprintf(stderr, "shmtrain: %s\n", line);
}

int talk_close_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    perror("shmtrain: standard output");
    return 1;
}
