/* Killing workers at random, and looking how runs end: shmtrain drill. */
#ifndef SHMTRAIN_DRILL_H
#define SHMTRAIN_DRILL_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the runs of one mode have come to. */
struct shmtrain_drill_mode {
    char name[32];           /* "async, locked" */
    uint32_t runs, failed;   /* that were disturbed; that did not end as they must */
    uint64_t deaths, stops;  /* of workers: by SIGKILL, SIGSEGV or _exit; by SIGSTOP */
    uint64_t respawns;       /* workers that were started again, as runs that have ended well say */
    uint64_t guest_deaths;   /* of workers who have joined by name, or of their programs */
    uint64_t guest_examples; /* that such workers have trained on, as runs that have ended well say */
    uint32_t resumed;        /* runs of which all was killed, and which a further one went on from a checkpoint of */
    uint32_t reserved;
    double worst_respawn_ms;    /* from the signal to the beginning of the next life; NaN: nobody saw one begin */
    double low_loss, high_loss; /* final losses that count as right; NaN: the bits of the parameters have to be the same */
    uint64_t reserved_too[4];
};

#define SHMTRAIN_DRILL_MODES    64 /* at most */
#define SHMTRAIN_DRILL_FAILURES 8

/* A run that did not end as it must. */
struct shmtrain_drill_failure {
    uint64_t seed; /* of its round: a drill of one round with it does the same again, but for the moments at which it hits */
    char mode[32], why[320];
    uint64_t reserved[2];
};

struct shmtrain_drill {
    uint32_t size; /* as the library knows it: SHMTRAIN_HAS */
    uint64_t seed;
    uint32_t rounds, failed, workers; /* rounds that were run; of these, how many failed; workers of each run */
    uint32_t quiet_runs;              /* that were not disturbed, to have something to compare with */
    double seconds;
    uint32_t n_modes, n_failures; /* of failures the first ones are kept */
    struct shmtrain_drill_mode mode[SHMTRAIN_DRILL_MODES];
    struct shmtrain_drill_failure failure[SHMTRAIN_DRILL_FAILURES];
};

struct shmtrain_drill_how {
    uint32_t size;   /* sizeof(struct shmtrain_drill_how) */
    uint32_t rounds; /* 0: 1,000 */
    uint64_t seed;   /* of the first round, one more for each next round. It decides the mode, and which worker is killed or
                        stopped */
    void *arg;
    void (*round)(void *arg, uint32_t done, uint32_t of, uint32_t failed); /* after each round; may be NULL */
};

/* Trains on generated data in one mode after the other, in processes of its own, and kills and stops workers meanwhile. Each
 * run has to end, leave nothing behind (processes, memory, files), have trained on each example as often as it should, and have
 * learned what undisturbed runs learn: in `sync` to the bit, elsewhere within their spread, which is measured first. What went
 * wrong is in *out, and no error. *out is to be freed by free(). `message` (`bytes` large, NULL allowed) gets the sentence of
 * an error. Blocks. Errors: _MEMORY, _SYSTEM (no process can be made, or workers cannot be found), _DIED. */
SHMTRAIN_API int shmtrain_drill(const struct shmtrain_drill_how *how, struct shmtrain_drill **out, char *message,
                                uint64_t bytes);

/* Lines for people, at most 80 columns wide; one JSON object. To be freed. NULL: no memory. */
SHMTRAIN_API char *shmtrain_drill_text(const struct shmtrain_drill *drill);
SHMTRAIN_API char *shmtrain_drill_json(const struct shmtrain_drill *drill);

#ifdef __cplusplus
}
#endif
#endif
