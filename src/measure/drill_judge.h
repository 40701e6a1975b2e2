/* How a run of a drill has ended, and whether that is right. Called by drill.c and drill_round.c. */
#ifndef SHMT_MEASURE_DRILL_JUDGE_H
#define SHMT_MEASURE_DRILL_JUDGE_H

#include <stddef.h>

#include "measure/drill_priv.h"

/* What undisturbed runs of a mode have come to. */
struct shmt_drill_expected {
    uint32_t n_runs;
    uint64_t xxh64;
    double low, high, train_seconds; /* losses; the longest time */
    uint32_t n_epochs;
    uint64_t examples[SHMT_DRILL_EPOCHS];
};

/* One more undisturbed run. */
void shmt_drill_expect(struct shmt_drill_expected *expected, const struct shmt_drill_stage *stage);

/* Losses that count as right: those of the undisturbed runs, and on either side their spread, or 6 % of their mean if that is
 * more. For they do not show all that chance does; who is stopped is slow, so its gradients come late, or count for less; and
 * an item that is done twice moves the loss a little, too. */
void shmt_drill_band(const struct shmt_drill_expected *expected, double *low_out, double *high_out);

/* `why` gets what is wrong with how a disturbed run has ended; empty: nothing. */
void shmt_drill_judge(const struct shmt_drill_mode *mode, const struct shmt_drill_expected *expected,
                      const struct shmtrain_drill_mode *score, const struct shmt_drill_trial *trial,
                      const struct shmt_drill_stage *stage, char *why, size_t room);

/* Whether a run whose process has ended left something behind, or (`well`) did not leave its model; takes away what should be
 * there, and kills what should not. Adds to `why` if that is empty. */
void shmt_drill_look_for_residue(const struct shmt_drill_place *place, bool well, char *why, size_t room);

/* How many checkpoints there are. Nothing else may lie beside them, but for one file that a run had in hand when it was killed.
 * Adds to `why` as above. */
uint32_t shmt_drill_look_at_saved(const struct shmt_drill_place *place, char *why, size_t room);
/* Takes them away, with their folder. */
void shmt_drill_clear_saved(const struct shmt_drill_place *place);

#endif
