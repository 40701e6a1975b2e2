/* What the files of this room share: the team's handle, and the ledger of how its workers ended. */
#pragma once

#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/line.h"
#include "runtime/settle.h"
#include "runtime/team.h"

/* How one worker ended, in its last life. Written at its beginning and its end only, so that its two writers need no lines of
 * their own. */
struct shmt_team_end {
    alignas(SHMT_LINE) _Atomic int32_t pid; /* supervisor: 0 before the fork and after the end */
    _Atomic uint32_t life;                  /* supervisor, before the fork: how often it was started before */
    int32_t last_pid;                       /* supervisor: stays, for the sentence */
    int32_t wait_status;                    /* supervisor: of waitpid */
    uint8_t killed;            /* it died of the SIGKILL that was meant for it, or while all were to end (fibers) */
    uint8_t short_of_memory;   /* supervisor: the kernel ended processes for lack of memory meanwhile */
    int32_t status;            /* worker: what its body returned, valid when `returned` is set */
    _Atomic uint32_t returned; /* worker: the body returned. Released, pairs with the acquire of whoever asks */
    _Atomic uint32_t left_out; /* supervisor: it has died, and the others go on without it */
    struct shmt_error error;   /* worker: its sentence, valid when `returned` is set */
};

#define SHMT_TEAM_DEATHS 64 /* records of deaths that are kept */

/* In a mapping that caller, supervisor and workers share. Zero-filled at first. */
struct shmt_team_ledger {
    alignas(SHMT_LINE) _Atomic uint32_t over; /* supervisor, last thread: all have ended. Released, pairs with step's acquire */
    _Atomic uint32_t first;                   /* supervisor, failing thread under the lock: rank + 1 of the first failure */
    int32_t fork_errno;                       /* supervisor, before it says that the start failed */
    uint32_t fork_rank;
    int32_t respawn_errno;     /* supervisor: why the first one that failed was not started again; 0: not that */
    _Atomic uint64_t n_deaths; /* supervisor: released when the record is whole */
    struct shmt_team_death death[SHMT_TEAM_DEATHS]; /* supervisor: number i in place i mod SHMT_TEAM_DEATHS */
    struct shmt_team_end end[];                     /* (n) */
};

struct shmt_team {
    struct shmt_team_spec spec;
    char what[64]; /* spec.what points here */
    struct shmt_team_ledger *ledger;
    size_t ledger_bytes;
    int report_read;  /* the descriptor of shmt_team_fd */
    int report_write; /* workers' (and the supervisor's) end; hung up when they have all ended. -1 in the caller of processes */
    bool hung_up;
    /* processes */
    int control;      /* the caller's end of a socket pair to the supervisor; -1 for threads */
    pid_t supervisor; /* 0 when it was collected */
    /* threads */
    struct shmt_team_threads *threads;
    struct shmt_team_fibers *fibers;
};

/* A body that returned this is no failure of its own. */
static inline bool shmt_team_is_clean_end(int status) { return status == 0 || status == SHMTRAIN_E_STOPPED; }

/* ends.c: what finish says; after all have ended. */
int shmt_team_verdict(const struct shmt_team *team, int supervisor_status, struct shmt_error *e);

/* lives.c: what follows from a worker's death, which end[rank] tells of. */

/* The abort word, where it is not set yet, and those are woken who sleep. */
void shmt_team_set_abort(struct shmt_team *team, uint32_t value);

/* It is the first that has failed: the others are to leave. */
void shmt_team_fail(struct shmt_team *team, uint32_t rank);

/* While nobody has been told to end: does what `on_death` decides, and records the death if the team goes on. `begin` starts the next
 * life: 0, or errno. _FAILS: the team does not go on; nothing is done. */
enum shmt_team_outcome shmt_team_outlive(struct shmt_team *team, uint32_t rank, int (*begin)(void *arg, uint32_t rank),
                                         void *arg);

/* supervisor.c: the life of the supervisor, and by its forks of the workers. */
struct shmt_team_birth {
    int control;           /* the supervisor's end */
    int caller_fd;         /* a pidfd of the caller's process, or -1 where the kernel has none */
    pid_t caller_pid;      /* what getppid says as long as the caller lives */
    struct pollfd *polled; /* (n + 2): room for the supervisor, which allocates nothing */
    sigset_t masked;       /* what the caller had blocked */
};
_Noreturn void shmt_team_supervise(struct shmt_team *team, const struct shmt_team_birth *birth);

/* What the control sockets carry, each in a packet of its own. */
struct shmt_team_word {
    int32_t what;
    uint32_t rank; /* _KILL_ONE: which worker, in the life that has this process */
    int32_t pid;
};
#define SHMT_TEAM_STARTED  1 /* supervisor: all workers are there */
#define SHMT_TEAM_FAILED   2 /* supervisor: fork failed, the ledger says where, and nobody is left */
#define SHMT_TEAM_KILL     3 /* caller: all */
#define SHMT_TEAM_KILL_ONE 4 /* caller */

/* In a worker's process: the worker ends with a sentence when a mapped file becomes shorter (base/mapped.h), and when one of the
 * guarded files may have been changed while the worker was stopped (faults.c). */
void shmt_faults_answer(struct shmt_team_end *end, const struct shmt_guarded guarded[2]);

/* oom.c: how often the kernel has ended a process for lack of memory since it was started; 0 where it does not say. */
uint64_t shmt_oom_kills(void);
