/* Ending a run early: see goal.h. */
#include "train/goal.h"

#include <string.h>

static double loss_of(const struct shmt_goal *goal, const struct shmtrain_epoch *epoch) {
    return goal->validated ? epoch->valid_loss : epoch->train_loss;
}

/* Of a fit that has found no better point: its parameters are those of the epoch before, which says nothing about what is learned.
 * Steps of SGD have no objective: NaN. */
static bool left_all(const struct shmtrain_epoch *epoch, uint32_t i) {
    return i > 0 && epoch[i].objective > 0 && epoch[i].objective == epoch[i - 1].objective;
}

/* Epochs since the one with the lowest loss; of equal ones the first counts. */
static uint32_t epochs_since_best(const struct shmt_goal *goal, const struct shmtrain_epoch *epoch, uint32_t n) {
    uint32_t best = n, since = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double loss = loss_of(goal, &epoch[i]);
        const bool better =
            best == n ? loss == loss : loss < loss_of(goal, &epoch[best]); /* what is no number equals nothing */
        since += !left_all(epoch, i);
        if (!better) continue;
        best = i;
        since = 0;
    }
    return since;
}

enum shmt_end shmt_goal_reached(const struct shmt_goal *goal, const struct shmtrain_epoch *epoch, uint32_t n) {
    if (n == 0) return SHMT_END_NOT;
    if (loss_of(goal, &epoch[n - 1]) <= goal->target_loss) return SHMT_END_TARGET_LOSS;
    if (goal->patience > 0 && epochs_since_best(goal, epoch, n) >= goal->patience) return SHMT_END_PATIENCE;
    return SHMT_END_NOT;
}

const char *shmt_end_name(uint32_t end) {
    static const char *const NAMES[SHMT_N_ENDS] = {[SHMT_END_NOT] = "",
                                                   [SHMT_END_TARGET_LOSS] = "target-loss",
                                                   [SHMT_END_PATIENCE] = "patience",
                                                   [SHMT_END_TIME_LIMIT] = "time-limit",
                                                   [SHMT_END_STEPS] = "steps",
                                                   [SHMT_END_REQUEST] = "request",
                                                   [SHMT_END_TOLERANCE] = "tolerance",
                                                   [SHMT_END_PRECISION] = "precision",
                                                   [SHMT_END_HOST] = "host"};
    return end < SHMT_N_ENDS ? NAMES[end] : "";
}

enum shmt_end shmt_end_of(const char *name) {
    for (uint32_t end = 0; end < SHMT_N_ENDS; end++)
        if (strcmp(shmt_end_name(end), name) == 0) return (enum shmt_end)end;
    return SHMT_END_NOT;
}
