/* For tests of the program from outside: starts $TEST_BUILDDIR/shmtrain in a process group of its own, keeps what it says, and
 * finds its processes. Every wait has a deadline, after which the test fails and everything is killed.
 *
 * The testing process adopts orphans (a subreaper), so whatever the program leaves behind is seen: program_finish fails when a
 * process of the group outlives the program by more than a moment. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

enum { OUT, ERR };

/* Belongs to run_program.c until the test's teardown. */
struct program {
    pid_t pid;        /* also the process group */
    bool ended;       /* and collected */
    int status;       /* once ended: exit status, or minus the signal that killed it */
    int fd[2];        /* -1: at its end, or led elsewhere */
    char *text[2];    /* stdout and stderr so far, 0-terminated */
    size_t bytes[2];  /* their length without the 0 */
    const char *name; /* for messages */
};

/* In the child, right before the program: limits, affinity, mounts. Anything but 0 ends it with exit status PREPARE_FAILED. */
typedef int program_prepare(void);
#define PREPARE_FAILED 125

/* argv[0] "shmtrain" is the program under test, anything else is found in PATH. prepare may be NULL. Of the environment, the
 * program's own variables are removed before `prepare`. */
struct program *program_start(program_prepare *prepare, const char *const *argv);
#define START_IN(prepare, ...) program_start(prepare, (const char *const[]){"shmtrain", __VA_ARGS__, NULL})
#define START(...)             START_IN(NULL, __VA_ARGS__)

/* Removes the program's own variables from the environment: options that the caller of the tests has set would change what is
 * tested. */
void program_forget_options(void);

/* Waits until the stream holds `text`. Fails when the program ends or the time is over before. */
bool program_says(struct program *p, int stream, const char *text); /* waits for it, too; false: it ended without it */
void program_wait_for(struct program *p, int stream, const char *text);
void program_wait_for_epoch(struct program *p); /* the first one's line on stdout */

/* Waits for its end, and until nothing of its process group is left. */
void program_finish(struct program *p);
struct program *program_run(program_prepare *prepare, const char *const *argv);
#define RUN_IN(prepare, ...) program_run(prepare, (const char *const[]){"shmtrain", __VA_ARGS__, NULL})
#define RUN(...)             RUN_IN(NULL, __VA_ARGS__)

/* Collects what is left of the group, until nobody is there; fails when that takes more than `seconds`. */
void program_assert_gone_within(struct program *p, int seconds);

/* Its processes: the supervisor is its child, the workers are the supervisor's. program_worker waits until worker `rank` is
 * there. */
pid_t program_supervisor(struct program *p);
pid_t program_link(struct program *p); /* of a run over several hosts: also its child */
pid_t program_worker(struct program *p, unsigned rank);
pid_t program_worker_unless_over(struct program *p, unsigned rank); /* 0: the program ended before it was seen */
pid_t program_worker_if_any(struct program *p, unsigned rank);      /* 0: there is none at the moment */
/* Who reads data are threads of the program itself, before there are other processes. Waits until there are some. */
void program_wait_for_readers(struct program *p);

char program_state(pid_t pid); /* as in /proc: R, S, T, ...; '-': there is no such process */

/* One line on stderr that begins with "shmtrain: " and holds `words`, nothing on stdout, this exit status. */
void program_assert_refused(struct program *p, int status, const char *words);
struct refusal {
    int status;
    const char *words; /* that the line must hold */
    const char *argument[6];
};
void program_assert_all_refused(const struct refusal *refusal, size_t n);
#define ASSERT_ALL_REFUSED(list) program_assert_all_refused(list, sizeof(list) / sizeof *(list))

void program_assert_status(struct program *p, int status); /* shows stderr when it is another one */

/* The one JSON object on stdout. The caller's: json_decref. */
json_t *program_json(struct program *p);

/* Expects success of a run with --json: its report, which is the caller's. */
json_t *program_report(const char *const *argv);
#define REPORT(...) program_report((const char *const[]){"shmtrain", "--json", "--quiet", __VA_ARGS__, NULL})

/* A number of a report, which it has to have. */
double program_number(const json_t *o, const char *key);

/* Expects success of a run with --json, and copies the hash of the parameters. */
void program_hash(char out[17], const char *const *argv);
#define HASH(out, ...) program_hash(out, (const char *const[]){"shmtrain", "--json", "--quiet", __VA_ARGS__, NULL})

/* Group fixtures: a new folder becomes the current one; it is removed, with the files in it, after the group. */
int program_make_folder(void **state);
int program_remove_folder(void **state);
void program_drop_folder(const char *name); /* one that a test has made there, with its files; or there is none */
void program_write_file(const char *name, const char *contents);

/* After each test: kills and frees everything that it has started. */
int program_end_all(void **state);
#define PROGRAM_TEST(f) cmocka_unit_test_teardown(f, program_end_all)
