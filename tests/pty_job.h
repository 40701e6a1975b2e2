/* A pseudo-terminal for programs that draw: a terminal with somebody who looks at it (terminal.h), and on it a
 * job in the foreground of a session of its own, under a leader that does what a shell does when a job stops. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "terminal.h"

struct pty {
    struct terminal screen;
    pid_t leader;
    int master, news, orders; /* the terminal; what the leader says, and is told */
    int cues;                 /* to the job */
    pid_t job;
    bool stopped, ended;
    int status; /* of waitpid, once it has ended */
};

/* What the job does, in its process; `cues` gives the bytes of pty_cue. Returns its exit status. */
typedef int pty_act(int cues, const void *arg);

/* Begins on a terminal of this size. The environment is that of the tests, but for what decides about displays. */
void pty_begin(struct pty *s, unsigned columns, unsigned rows, pty_act *act, const void *arg);

void pty_cue(struct pty *s, const char *bytes);
void pty_resize(struct pty *s, unsigned columns, unsigned rows);

/* Each waits until it is so, looking at what is drawn meanwhile; fails after two minutes. */
void pty_wait_for_frames(struct pty *s, unsigned n);
void pty_wait_for_words(struct pty *s, const char *words);
void pty_wait_for_no_words(struct pty *s, const char *words);
void pty_wait_for_stop(struct pty *s);
void pty_wait_for_end(struct pty *s);

void pty_signal(struct pty *s, int number);     /* to the job */
void pty_type(struct pty *s, const char *keys); /* as if typed: "\032" is Ctrl-Z */
void pty_go_on(struct pty *s, bool in_foreground);
void pty_end(struct pty *s); /* kills what is left, and closes all */
