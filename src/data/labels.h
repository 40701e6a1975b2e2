/* The distinct labels of examples: which there are, and where each stands first.
 *
 * Called for every example while counting, and when the parts of a source are added up. They are kept in order of appearance,
 * the first SHMT_LABELS_KEPT of them: whatever parts a source is cut into, joining these in order gives the same labels and
 * places. Plain words, so that it can lie in shared memory. */
#pragma once

#include <shmtrain/data.h>
#include <stdint.h>

/* One more than there may be classes: the first label that is too much is known, too. */
#define SHMT_LABELS_KEPT (SHMTRAIN_MAX_CLASSES + 1)

/* All 0: none yet. */
struct shmt_labels {
    uint32_t n;                        /* distinct labels; SHMT_LABELS_KEPT for that many or more */
    uint32_t last;                     /* the one that was met last: the next example often has it, too */
    uint64_t at[SHMT_LABELS_KEPT];     /* (n) where it stands first: an opaque position for shmt_source_place */
    float label[SHMT_LABELS_KEPT];     /* (n) in order of appearance; -0 is kept as 0 */
    uint16_t sorted[SHMT_LABELS_KEPT]; /* (n) numbers of the labels, ascending by label */
};

/* The number of the first label that is not below `label` in `sorted`: 0 .. n. */
uint32_t shmt_labels_search(const struct shmt_labels *labels, float label);

/* Adds a label that was not met last; `at` ascends from call to call. */
void shmt_labels_insert(struct shmt_labels *labels, float label, uint64_t at);

/* Adds a label (no NaN); `at` ascends from call to call. */
static inline void shmt_labels_add(struct shmt_labels *labels, float label, uint64_t at) {
    if (labels->n > 0 && labels->label[labels->last] == label) return;
    shmt_labels_insert(labels, label, at);
}

/* Adds all of `next`, which were met behind those of `labels`. */
void shmt_labels_join(struct shmt_labels *labels, const struct shmt_labels *next);

static inline int shmt_labels_have(const struct shmt_labels *labels, float label) {
    const uint32_t i = shmt_labels_search(labels, label);
    return i < labels->n && labels->label[labels->sorted[i]] == label;
}

/* The labels, ascending, into out (n). */
void shmt_labels_ascending(const struct shmt_labels *labels, float *out);
