/* A team: n workers that run one function, as forked processes under a supervisor, as threads, or as fibers.
 *
 * Processes: the caller forks one small single-threaded supervisor; the supervisor forks the workers, notices each one's end,
 * and when one fails (its body returns an error, it exits by itself, or a signal kills it) sets the abort word, gives the
 * others a moment to leave, kills what is left, and ends. One that has died (without an error of its body) may be started
 * again instead, from the same memory as the first time, or be left out: the caller's `on_death` decides. The supervisor ends with
 * everything when the caller's process dies, and workers end when the supervisor does, however it ends. Threads: started and
 * joined by the caller's process; none is started again. Fibers: run by the caller's thread, in `step`; their deaths are dealt with
 * as those of processes, in the same thread.
 *
 * SIGINT and SIGTERM are ignored in supervisor and workers: the application decides, the stop words end workers. The same
 * holds for SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 where the application handles or blocks them; handlers of the application
 * never run in supervisor or workers. Threads of a team have all signals blocked but those of faults and profilers.
 *
 * The caller's process gets a descriptor to poll and a step that never blocks. No signal handlers, no output, no exit in the
 * caller. Everything shared lies in one small mapping that the team makes itself, plus the abort word of the caller. An
 * application may collect children as it likes (SIGCHLD ignored, wait in a handler): the team does not depend on their
 * statuses.
 *
 * The caller's functions are for one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/guard.h"
#include "fibers/sim.h"

#define SHMT_TEAM_MAX        4096
#define SHMT_TEAM_SUPERVISOR UINT32_MAX /* a "rank" for shmt_team_pid */
#define SHMT_TEAM_KILLED     UINT32_MAX /* in the abort word: threads that were killed, or processes whose caller has ended */

struct shmt_team;

/* A kind of worker: what it can, and how its team begins and ends. The functions are the team's own (team.c calls them). */
struct shmt_team_kind {
    const char *name;     /* what option spawn and messages call its workers */
    bool shares_process;  /* workers live in the caller's process, with its memory and libraries; else each in a fork of it */
    bool survives_deaths; /* one may die without the others; else a crash ends the caller, and nobody is started again */
    /* As shmt_team_start, _kill and _kill_worker. kill_worker is NULL where no worker can be killed. */
    int (*start)(struct shmt_team *team, struct shmt_error *e);
    void (*kill)(struct shmt_team *team);
    int (*kill_worker)(const struct shmt_team *team, uint32_t rank, pid_t pid);
    void (*step)(struct shmt_team *team);   /* before each look whether all have ended; NULL: workers go on by themselves */
    int (*collect)(struct shmt_team *team); /* after the end: frees what `start` has made; the supervisor's wait status, or 0 */
};

extern const struct shmt_team_kind SHMT_TEAM_PROCESSES, SHMT_TEAM_THREADS, SHMT_TEAM_FIBERS;

/* NULL: no kind has this name. */
const struct shmt_team_kind *shmt_team_kind_find(const char *name);

/* The worker function: 0, or a status whose sentence stands in *e, which the team hands to the caller's process. */
typedef int shmt_team_body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e);

/* A worker that died. */
struct shmt_team_death {
    uint32_t rank, life; /* which of its lives: 0 is the first */
    int32_t pid;         /* of its process; 0: a fiber */
    int32_t wait_status;
    uint8_t short_of_memory; /* the kernel ended processes for lack of memory meanwhile */
    uint8_t outcome;         /* enum shmt_team_outcome */
};

/* What a worker's death leads to. */
enum shmt_team_outcome {
    SHMT_TEAM_FAILS,     /* the team ends, as without an `on_death` */
    SHMT_TEAM_CONTINUES, /* without this worker, as if it had come to its end */
    SHMT_TEAM_RESPAWNS   /* the worker is started again */
};

/* How fibers run. */
struct shmt_virtual {
    uint64_t seed;
    size_t stack_bytes;
    struct shmt_sim sim;
};

struct shmt_team_spec {
    const struct shmt_team_kind *kind;
    uint32_t n; /* workers, 1 .. SHMT_TEAM_MAX */
    shmt_team_body *body;
    void *arg; /* threads: shared; processes: each worker's copy as of the fork */
    _Atomic uint32_t
        *abort; /* in memory shared with the workers; if 0, set to rank + 1 of the first that failed; may be NULL */
    void (*on_abort)(
        void *arg);    /* after *abort is set, to wake sleepers: in the supervisor, or in the failing thread; may be NULL */
    uint32_t grace_ms; /* after a failure, until the others are killed (processes) */

    /* A worker has died in life `life`, while the team was not ending; its process is gone, or its fiber. Called before anybody hears
     * of it, in the supervisor, which has one thread and memory as of its start (allocates and locks nothing), or in the thread that
     * drives fibers. NULL: _FAILS */
    enum shmt_team_outcome (*on_death)(void *arg, uint32_t rank, uint32_t life);
    uint32_t most_respawns; /* of each worker; its next death is a failure, whatever `on_death` says */

    /* Processes: files that may be changed while a worker is stopped; a worker that continues and finds that they may have
     * been ends. Without a name: none. Kept by the caller until the end. */
    struct shmt_guarded guarded[2];

    const struct shmt_virtual *virtual; /* fibers; NULL: nothing takes time. Kept by the caller until the start */

    /* For the sentence about a worker that has failed by dying: what it was doing, as "at item 7 of epoch 2". Called in the
     * caller's process. May be NULL, and may leave `out` empty. */
    void (*last_words)(void *arg, uint32_t rank, char *out, size_t room);
    const char *what; /* "training", "reading data": for messages; at most 63 characters of it are kept */
    const uint32_t
        *number; /* (n) what the workers are called in messages; NULL: their ranks. Kept by the caller until the end */
};

/* Starts it, and returns when all workers are there (they run already). Errors: _USAGE (n), _SYSTEM or _MEMORY (fork, pipe,
 * mapping, thread; the limit on processes is named), with everything undone: then no thread has entered its body, and no
 * process is left. Processes: the caller may have threads, as long as the body needs no library that had threads running. */
int shmt_team_start(const struct shmt_team_spec *spec, struct shmt_team **out, struct shmt_error *e);

/* A descriptor that is readable (or hung up) whenever step has something to do. Owned by the team. A child that the caller's
 * process forks meanwhile and that goes on without exec may hold it open; what the team reports does not depend on that. */
int shmt_team_fd(const struct shmt_team *team);

/* From a worker: wakes whoever polls the descriptor (a report is ready). Never blocks. Several may become one. */
void shmt_team_notify(struct shmt_team *team);

/* Never blocks: empties the descriptor. Returns 1 when all workers (and the supervisor) have ended, 0 while some run. */
int shmt_team_step(struct shmt_team *team);

/* Whether a worker has failed, so that the team will end with its status. From the caller's process; never blocks. */
bool shmt_team_has_failed(const struct shmt_team *team);

/* Whether a worker has died and the others go on without it. From the caller's process; never blocks. */
bool shmt_team_goes_on_without(const struct shmt_team *team, uint32_t rank);

/* How many times the body of a worker was begun before its life now; in the worker, and from the caller's process. */
uint32_t shmt_team_life(const struct shmt_team *team, uint32_t rank);

/* Death number `at`, from 0, of those after which the team went on. False: there were fewer so far, or the record is too old
 * and was overwritten; *n_out (may be NULL) is the number of such deaths. From the caller's process; never blocks. */
bool shmt_team_death_at(const struct shmt_team *team, uint64_t at, struct shmt_team_death *out, uint64_t *n_out);

/* "worker 3 (process 4711)", or "worker 3" of a fiber. */
void shmt_team_tell_who(const struct shmt_team_death *death, char *out, size_t room);

/* "was killed by signal 9 (Killed)" and the like, into out; of a fiber "was killed". */
void shmt_team_tell_death(const struct shmt_team_death *death, char *out, size_t room);

/* Kills all workers at once (processes; SIGKILL through the supervisor). Threads and fibers are told to end: the abort word is set
 * and `on_abort` is called. Never blocks. finish then returns _STOPPED, unless a worker had failed before or all had come to
 * their end. */
void shmt_team_kill(struct shmt_team *team);

/* Kills one worker, as a signal from outside would: the spec decides what follows. `pid` is the process that is meant: a
 * later life of the worker is left alone, and so is any other process that gets its number. Of a fiber it is 0, and the life now is
 * meant, which is dead when this returns. 0: the supervisor was told; -1, with errno: it was not (ENOTSUP: the kind cannot). Never
 * blocks. Not from within a worker. */
int shmt_team_kill_worker(const struct shmt_team *team, uint32_t rank, pid_t pid);

/* Waits for the end, frees the team, and tells how it went: 0 when every worker's body returned 0. Otherwise the status and
 * sentence of the first failure: the worker's own one, or _DIED with "worker 3 (process 4711) was killed by signal 9
 * (Killed) while training", "... ended with exit status 3 ...". Bodies that returned _STOPPED, because of the abort word or
 * another word, are no failures; when nobody failed but some returned _STOPPED, so does finish. */
int shmt_team_finish(struct shmt_team *team, struct shmt_error *e);

/* Process id of a worker (of its life now), or of the supervisor (SHMT_TEAM_SUPERVISOR); 0 when there is none (any more). For
 * tests and displays. */
pid_t shmt_team_pid(const struct shmt_team *team, uint32_t rank);

/* start, poll and step, finish: for work without reports. */
int shmt_team_run(const struct shmt_team_spec *spec, struct shmt_error *e);
