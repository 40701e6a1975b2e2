/* shmtrain drill: workers are killed and stopped at random, and every ending is looked at. Called by the command (cli/drill.c). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SHMT_DRILL_MODES = 39, SHMT_DRILL_FAILURES = 8, SHMT_DRILL_WHY = 320 };

/* What the runs of one mode have come to. */
struct shmt_drill_score {
    const char *name;           /* "async, locked" */
    uint32_t runs, failed;      /* that were disturbed; that did not end as they must */
    uint64_t deaths, stops;     /* of workers: by SIGKILL, SIGSEGV or _exit; by SIGSTOP */
    uint64_t respawns;          /* workers that were started again, as runs that have ended well say */
    uint64_t guest_deaths;      /* of workers who have joined by name, or of their programs */
    uint64_t guest_examples;    /* that such workers have trained on, as runs that have ended well say */
    uint32_t resumed;           /* runs of which all was killed, and which a further one went on from a checkpoint of */
    uint32_t cuts, lost_hosts;  /* links that were stopped for a moment; hosts that were killed with all that they had */
    double worst_respawn_ms;    /* from the signal to the beginning of the next life; NaN: nobody saw one begin */
    double low_loss, high_loss; /* final losses that count as right; NaN: the bits of the parameters have to be the same */
};

/* A run that did not end as it must. */
struct shmt_drill_failure {
    uint64_t seed; /* of its round: a drill of one round with it does the same again, but for the moments at which it hits */
    const char *mode;
    char why[SHMT_DRILL_WHY];
};

struct shmt_drill {
    uint64_t seed;
    uint32_t rounds, failed, workers; /* rounds that were run; of these, how many failed; workers of each run */
    uint32_t quiet_runs;              /* that were not disturbed, to have something to compare with */
    double seconds;
    struct shmt_drill_score mode[SHMT_DRILL_MODES];
    uint32_t n_failures; /* the first ones are kept */
    struct shmt_drill_failure failure[SHMT_DRILL_FAILURES];
};

/* Trains on generated data in one mode after the other, in processes of its own, and kills and stops workers meanwhile. Each
 * run has to end, leave nothing behind (processes, memory, files), have trained on each example as often as it should, and have
 * learned what undisturbed runs learn: in `sync` to the bit, elsewhere within their spread, which is measured first. Some runs are over two
 * hosts, which are processes on the loopback: their links are stopped, too, and whole hosts are killed.
 *
 * `rounds`: 0 for 1,000. `seed`: of the first round, one more for each next round; it decides the mode, and which worker is
 * killed or stopped. `show` (may be NULL): after each round. What went wrong is in *out, and no error. `message` (`bytes` large)
 * gets the sentence of an error: _SYSTEM (no process or folder can be made, or workers cannot be found), _MEMORY, _DIED. The
 * caller's process must have no other children: it adopts whatever a run leaves behind. */
int shmt_drill_run(uint64_t seed, uint32_t rounds, void (*show)(uint32_t done, uint32_t of, uint32_t failed),
                   struct shmt_drill *out, char *message, size_t bytes);

/* Lines for people, at most 80 columns wide; one JSON object. */
void shmt_drill_text(const struct shmt_drill *drill, FILE *out);
void shmt_drill_json(const struct shmt_drill *drill, FILE *out);
