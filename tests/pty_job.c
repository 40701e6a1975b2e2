/* A pseudo-terminal with a job: see pty_job.h. */
#include "pty_job.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "run_program.h"

#define DEADLINE_SECONDS   120
#define LAST_WORDS_SECONDS 10

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the leader's side ---- */

struct news {
    char what; /* 'b' began, 's' stopped, 'e' ended */
    pid_t job;
    int status;
};

static void tell(int news, char what, pid_t job, int status) {
    const struct news n = {what, job, status};
    if (write(news, &n, sizeof n) != (ssize_t)sizeof n) _exit(1);
}

static _Noreturn void play(pty_act *act, const void *arg, int cues, int go) {
    char byte;
    if (read(go, &byte, 1) != 1) _exit(1); /* until it is in the foreground */
    close(go);
    signal(SIGTTOU, SIG_DFL);
    const int status = act(cues, arg);
    fflush(stdout);
    _exit(status);
}

/* Like a shell with one job. */
static _Noreturn void lead(pty_act *act, const void *arg, const int cues[2], int news, int orders) {
    int status, go[2];
    char order;
    signal(SIGTTOU, SIG_IGN); /* who moves jobs to the foreground is in the background */
    if (pipe(go) != 0) _exit(1);
    const pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        close(cues[1]);
        play(act, arg, cues[0], go[0]);
    }
    setpgid(job, job);
    if (tcsetpgrp(STDIN_FILENO, job) != 0 || write(go[1], "g", 1) != 1) _exit(1);
    tell(news, 'b', job, 0);
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        tcsetpgrp(STDIN_FILENO, getpgrp());
        tell(news, 's', job, status);
        if (read(orders, &order, 1) != 1) _exit(1);
        if (order == 'f') tcsetpgrp(STDIN_FILENO, job);
        kill(-job, SIGCONT);
    }
    tell(news, 'e', job, status);
    /* The terminal hangs up when its leader ends: not before everything was read. */
    while (read(orders, &order, 1) == 1) continue;
    _exit(0);
}

/* ---- the test's side ---- */

static void set_environment(void) {
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    unsetenv("NO_COLOR");
    program_forget_options();
}

/* A key that sends a signal has the system throw away what is on its way to a slow terminal, and then nobody knows what is on the
 * screen: not here. */
static void keep_what_is_on_its_way(void) {
    struct termios how;
    if (tcgetattr(STDIN_FILENO, &how) != 0) _exit(1);
    how.c_lflag |= NOFLSH;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &how) != 0) _exit(1);
}

void pty_begin(struct pty *s, unsigned columns, unsigned rows, pty_act *act, const void *arg) {
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    int news[2], orders[2], cues[2];
    memset(s, 0, sizeof *s);
    terminal_init(&s->screen, columns, rows);
    assert_int_equal(pipe(news) + pipe(orders) + pipe(cues), 0);
    fflush(stdout);
    s->leader = forkpty(&s->master, NULL, NULL, &size);
    assert_true(s->leader >= 0);
    if (s->leader == 0) {
        close(news[0]);
        close(orders[1]);
        set_environment();
        keep_what_is_on_its_way();
        lead(act, arg, cues, news[1], orders[0]);
    }
    close(news[1]);
    close(orders[0]);
    close(cues[0]);
    s->news = news[0];
    s->orders = orders[1];
    s->cues = cues[1];
}

static void give_up(struct pty *s, const char *what) {
    terminal_print(&s->screen);
    kill(s->leader, SIGKILL);
    fail_msg("%s", what);
}

static void take_news(struct pty *s) {
    struct news n;
    if (read(s->news, &n, sizeof n) != (ssize_t)sizeof n) give_up(s, "the job's leader has ended");
    s->job = n.job;
    if (n.what == 's') s->stopped = true;
    if (n.what == 'e') s->ended = true;
    s->status = n.status;
}

/* Takes what was drawn, and news when nothing more was drawn before them. */
static void look(struct pty *s, int ms) {
    struct pollfd polled[2] = {{.fd = s->master, .events = POLLIN}, {.fd = s->news, .events = POLLIN}};
    char bytes[4096];
    if (poll(polled, 2, ms) <= 0) return;
    if (polled[0].revents) {
        const ssize_t n = read(s->master, bytes, sizeof bytes);
        if (n > 0) terminal_take(&s->screen, bytes, (size_t)n);
    } else {
        take_news(s);
    }
}

/* What was drawn may arrive after the news that the job has ended; so a job that has ended counts as silent only after a
 * while. */
static void look_on(struct pty *s, double *until, const char *what) {
    const double time = now(), patience = s->ended ? LAST_WORDS_SECONDS : DEADLINE_SECONDS;
    if (*until == 0 || *until > time + patience) *until = time + patience;
    if (time > *until) give_up(s, what);
    look(s, 100);
}

void pty_wait_for_frames(struct pty *s, unsigned n) {
    double until = 0;
    while (s->screen.n_frames < n) look_on(s, &until, "the frames that the test waits for do not come");
}

void pty_wait_for_words(struct pty *s, const char *words) {
    double until = 0;
    while (s->screen.in_update || !terminal_shows(&s->screen, words)) look_on(s, &until, words);
}

void pty_wait_for_no_words(struct pty *s, const char *words) {
    double until = 0;
    while (s->screen.in_update || terminal_shows(&s->screen, words)) look_on(s, &until, words);
}

void pty_wait_for_stop(struct pty *s) {
    double until = 0;
    while (!s->stopped) look_on(s, &until, "the job does not stop");
}

void pty_wait_for_end(struct pty *s) {
    double until = 0;
    while (!s->ended) look_on(s, &until, "the job does not end");
}

void pty_cue(struct pty *s, const char *bytes) { assert_int_equal(write(s->cues, bytes, strlen(bytes)), strlen(bytes)); }

void pty_type(struct pty *s, const char *keys) {
    s->screen.is_typed_at = true;
    assert_int_equal(write(s->master, keys, strlen(keys)), strlen(keys));
}

void pty_signal(struct pty *s, int number) {
    while (s->job == 0) take_news(s); /* it may have drawn before its leader tells who it is */
    assert_int_equal(kill(s->job, number), 0);
}

void pty_resize(struct pty *s, unsigned columns, unsigned rows) {
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    terminal_resize(&s->screen, columns, rows);
    assert_int_equal(ioctl(s->master, TIOCSWINSZ, &size), 0);
}

void pty_go_on(struct pty *s, bool in_foreground) {
    s->stopped = false;
    assert_int_equal(write(s->orders, in_foreground ? "f" : "b", 1), 1);
}

void pty_end(struct pty *s) {
    if (s->job > 0 && !s->ended) kill(-s->job, SIGKILL);
    kill(s->leader, SIGKILL);
    waitpid(s->leader, NULL, 0);
    close(s->master);
    close(s->news);
    close(s->orders);
    close(s->cues);
}
