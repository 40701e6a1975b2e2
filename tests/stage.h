/* A stage for programs that draw on a terminal: a pseudo-terminal with somebody who looks at it (terminal.h), and on it a
 * job in the foreground of a session of its own, under a leader that does what a shell does when a job stops. */
#ifndef SHMT_TESTS_STAGE_H
#define SHMT_TESTS_STAGE_H

#include <stdbool.h>
#include <sys/types.h>

#include "terminal.h"

struct stage {
    struct terminal screen;
    pid_t leader;
    int master, news, orders; /* the terminal; what the leader says, and is told */
    int cues;                 /* to the job */
    pid_t job;
    bool stopped, ended;
    int status; /* of waitpid, once it has ended */
};

/* What the job does, in its process; `cues` gives the bytes of stage_cue. Returns its exit status. */
typedef int stage_act(int cues, const void *arg);

/* Begins on a terminal of this size. The environment is that of the tests, but for what decides about displays. */
void stage_begin(struct stage *s, unsigned columns, unsigned rows, stage_act *act, const void *arg);

void stage_cue(struct stage *s, const char *bytes);
void stage_resize(struct stage *s, unsigned columns, unsigned rows);

/* Each waits until it is so, looking at what is drawn meanwhile; fails after two minutes. */
void stage_wait_for_frames(struct stage *s, unsigned n);
void stage_wait_for_words(struct stage *s, const char *words);
void stage_wait_for_no_words(struct stage *s, const char *words);
void stage_wait_for_stop(struct stage *s);
void stage_wait_for_end(struct stage *s);

void stage_signal(struct stage *s, int number);     /* to the job */
void stage_type(struct stage *s, const char *keys); /* as if typed: "\032" is Ctrl-Z */
void stage_go_on(struct stage *s, bool in_foreground);
void stage_end(struct stage *s); /* kills what is left, and closes all */

#endif
