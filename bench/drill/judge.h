/* How a run of a drill has ended, and whether that is right. Called by drill.c and round.c. */
#pragma once

#include "bench/drill/drill_priv.h"

/* What undisturbed runs of a mode have come to. */
struct shmt_drill_expected {
    uint32_t n_runs;
    uint64_t xxh64;
    double low, high, train_seconds; /* losses; the longest time */
    uint32_t n_epochs;
    uint64_t examples[SHMT_DRILL_EPOCHS];
};

/* One more undisturbed run. */
void shmt_drill_expect(struct shmt_drill_expected *expected, const struct shmt_drill_shared *shared);

/* Losses that count as right: those of the undisturbed runs, and on either side their spread, or 6 % of their mean if that is
 * more. For they do not show all that chance does; who is stopped is slow, so its gradients come late, or count for less; and
 * an item that is done twice moves the loss a little, too. */
void shmt_drill_band(const struct shmt_drill_expected *expected, double *low_out, double *high_out);

/* The first finding counts: appends nothing to a text that says something. (SHMT_DRILL_WHY) */
void shmt_drill_find_fault(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Finds what is wrong with how a disturbed run has ended. */
void shmt_drill_judge(struct shmt_drill_game *game, const struct shmt_drill_expected *expected);

/* Whether a run whose process has ended left something behind, or (`well`) did not leave its model; takes away what should be
 * there, and kills what should not. */
void shmt_drill_look_for_residue(const struct shmt_drill_place *place, bool well, char *why);

/* How many checkpoints there are. Nothing else may lie beside them, but for one file that a run had in hand when it was killed. */
uint32_t shmt_drill_look_at_saved(const struct shmt_drill_place *place, char *why);
/* Takes them away, with their folder. */
void shmt_drill_clear_saved(const struct shmt_drill_place *place);
