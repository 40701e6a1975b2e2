/* What the files of shmtrain drill share: what runs are told (modes.c), a run in a process of its own (run.c),
 * finding and hitting processes (hunt.c), one round (round.c), in it who is hit when (disturb.c,
 * guest.c, hosts.c), and how it ends (judge.h). All rounds are in drill.c. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "bench/drill/drill.h"
#include "base/atomic.h"
#include "base/error.h"

#define SHMT_DRILL_WORKERS 4
#define SHMT_DRILL_EPOCHS  40 /* at most */
#define SHMT_DRILL_KEEP    2  /* checkpoints */
#define SHMT_DRILL_HOSTS   2  /* of runs over several */
#define SHMT_DRILL_LIST    64 /* room for "127.0.0.1:PORT" of each */
#define SHMT_DRILL_NOBODY  UINT32_MAX

#define SHMT_DRILL_LOOK_NS 500000u
#define SHMT_DRILL_HANG_NS 120000000000u /* generous: of a run that takes some tenths of a second */

/* ---- modes.c ---- */

/* One line of the table of modes: what a run is told. */
struct shmt_drill_mode {
    const char *name;
    const char *options; /* "mode=ssp:2 epochs=20": names of shmtrain_store_set and what they are given */
    const char *data;
    bool same_bits;   /* as undisturbed runs */
    bool may_skip;    /* items that were in hand when a worker died may be left out */
    bool continues;   /* who died is not started again, but for the first worker */
    bool has_guests;  /* workers of another process join by name, one after the other, and are killed and stopped, too */
    uint32_t threads; /* of each worker, as the options say; 0: one */
    bool has_hosts;   /* two of them, with half of the workers each */
    const char
        *saves_every; /* so many steps (or "1 epoch") there is a checkpoint, all of the run, or a host of it, is killed, and it
                                goes on; NULL: no */
};

extern const struct shmt_drill_mode shmt_drill_modes[SHMT_DRILL_MODES];

/* ---- one run ---- */

/* What a run, its guests and who disturbs them see. */
struct shmt_drill_shared {
    _Atomic uint32_t begun;                     /* the run: data is loaded, workers are about to start */
    _Atomic uint32_t saved;                     /* the run: its first checkpoint is there */
    _Atomic uint32_t leave[SHMT_DRILL_WORKERS]; /* who disturbs: worker i is to call _exit; the worker: 0 */
    /* the run, before it ends: */
    int32_t rc;
    char message[256];
    uint64_t xxh64;
    double loss, train_seconds;
    double late_share;       /* of the examples: their gradients were late */
    uint64_t respawns, item; /* workers that were started again; examples of a work item */
    uint64_t skipped;        /* examples, as the report has it */
    uint64_t guest_examples; /* that workers who have joined have trained on */
    uint32_t n_epochs;
    uint64_t examples[SHMT_DRILL_EPOCHS]; /* (n_epochs) */
    /* the guest that is there: */
    _Atomic uint32_t guest_in; /* its worker is about to start */
    int32_t guest_rc;
    char guest_message[256];
};

/* Files that a run may leave, and one that it has to. */
struct shmt_drill_place {
    char folder[256]; /* empty but for `model` afterwards, and `saved` where it `saves` */
    char name[48];    /* of the store in /dev/shm; "": it has none */
    bool saves;       /* a folder for checkpoints is there */
};

/* What one run of a round is told beside its mode. */
struct shmt_drill_leg {
    uint32_t workers;
    double seconds;       /* that it takes, about */
    bool skips;           /* the item in hand of a dead worker is left out */
    bool saves, goes_on;  /* it writes checkpoints; it begins with the newest one */
    bool is_killed;       /* all of it, or one of its hosts, at some moment */
    uint32_t hosts, host; /* of how many it is one; 0: it is alone */
    char list[SHMT_DRILL_LIST];
};

/* run.c: in the run's own process, which ends with it. */
_Noreturn void shmt_drill_train(const struct shmt_drill_mode *mode, const struct shmt_drill_leg *leg,
                                const struct shmt_drill_place *place, struct shmt_drill_shared *shared);

/* ---- hunt.c ---- */

/* A worker's process as it was found. */
struct shmt_drill_prey {
    pid_t pid; /* 0: there is none at the moment */
    int fd;    /* a pidfd, so that no other process is ever hit; -1 */
};

/* The process of worker `rank` of the run, or the guest, in process `run`. */
struct shmt_drill_prey shmt_drill_find(pid_t run, uint32_t rank);
/* That of its link to other hosts. */
struct shmt_drill_prey shmt_drill_find_link(pid_t run);
/* False: it has gone meanwhile. */
bool shmt_drill_hit(const struct shmt_drill_prey *prey, int signal);
void shmt_drill_let_go(struct shmt_drill_prey *prey);
/* How many children this process has, with those that it got as a subreaper, after collecting those that have ended. */
uint32_t shmt_drill_children(void);
/* Kills these. */
void shmt_drill_kill_children(void);
/* False where the system does not say whose children there are. */
bool shmt_drill_can_find(void);

/* ---- one round ---- */

/* What a round was told, and has suffered. */
struct shmt_drill_trial {
    bool skips;            /* the item in hand of a dead worker is left out */
    bool kills_guests;     /* and does not only stop them, and send them away */
    uint64_t deaths;       /* of workers */
    uint64_t losses;       /* deaths that may have cost what was in hand: these, or those that nobody makes good */
    uint64_t guest_deaths; /* of guests: theirs is always lost */
};

/* What the rounds have in common. */
struct shmt_drill_ground {
    struct shmt_drill_shared *shared; /* in memory that the runs map */
    struct shmt_drill_shared *other;  /* of the second host, likewise */
    struct shmt_drill_place place;
    uint64_t n_runs;
};

/* One round: a run that goes on, and who disturbs it. */
struct shmt_drill_game {
    const struct shmt_drill_mode *mode;
    struct shmt_drill_ground *ground;
    struct shmt_drill_score *score;
    bool is_quiet;    /* not disturbed at all */
    uint64_t seed, n; /* of its random numbers; of these, how many were drawn */
    struct shmt_drill_trial trial;
    pid_t pid, guest, other;  /* guest 0: there is none; other: the second host, where there are two */
    pid_t target;             /* the run whose workers are being hit: pid, or other */
    bool over, other_over;    /* `pid` is not there any more; `other` */
    uint32_t killed_host;     /* that was killed with all that it had; SHMT_DRILL_NOBODY: none was */
    char why[SHMT_DRILL_WHY]; /* what is wrong with how it has gone; empty: nothing */
};

/* round.c: a round, of a run that takes about so many seconds; `shared` tells how it has ended. Errors: _SYSTEM. */
int shmt_drill_play(struct shmt_drill_game *game, double seconds, struct shmt_error *e);
bool shmt_drill_is_over(struct shmt_drill_game *game);
bool shmt_drill_kill_run(struct shmt_drill_game *game); /* all of it: its workers end with it. False: it had ended before */
void shmt_drill_nap(uint64_t ns);

/* disturb.c: one to four times, at moments of a run that takes about so long. */
void shmt_drill_disturb(struct shmt_drill_game *game, double seconds);
uint64_t shmt_drill_below(struct shmt_drill_game *game, uint64_t n); /* a random number */
/* Stops a process for a moment, in which the others go on or wait for it. True: it was killed in its sleep, as one in four
 * is that may be. *hit_ns_out: when. */
bool shmt_drill_stop_for_a_moment(struct shmt_drill_game *game, const struct shmt_drill_prey *prey, bool may_kill,
                                  uint64_t *hit_ns_out);

/* hosts.c: ports for a run; starts the second host; stops the target's link for some time; kills one of the hosts (false: it had ended
 * before); waits for the second one's end, and looks at how the two have ended. Errors: _SYSTEM. */
void shmt_drill_choose_ports(char out[SHMT_DRILL_LIST]);
int shmt_drill_start_other(struct shmt_drill_game *game, const struct shmt_drill_leg *leg, struct shmt_error *e);
void shmt_drill_pull_cable(struct shmt_drill_game *game);
bool shmt_drill_kill_a_host(struct shmt_drill_game *game);
void shmt_drill_see_off_other(struct shmt_drill_game *game);

/* guest.c: sees to it that somebody has joined, or tries to; hits it; waits until the last one has ended, when its run has. */
void shmt_drill_invite(struct shmt_drill_game *game);
void shmt_drill_hit_guest(struct shmt_drill_game *game);
void shmt_drill_see_off(struct shmt_drill_game *game);
