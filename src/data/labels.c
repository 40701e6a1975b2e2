/* The distinct labels of examples: see labels.h. */
#include "data/labels.h"

#include <string.h>

uint32_t shmt_labels_search(const struct shmt_labels *labels, float label) {
    uint32_t low = 0, high = labels->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (labels->label[labels->sorted[middle]] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void shmt_labels_insert(struct shmt_labels *labels, float label, uint64_t at) {
    const uint32_t i = shmt_labels_search(labels, label), n = labels->n;
    if (i < n && labels->label[labels->sorted[i]] == label) {
        labels->last = labels->sorted[i];
        return;
    }
    if (n == SHMT_LABELS_KEPT) return;
    memmove(&labels->sorted[i + 1], &labels->sorted[i], (n - i) * sizeof *labels->sorted);
    labels->sorted[i] = (uint16_t)n;
    labels->label[n] = label + 0.0f; /* -0 becomes 0 */
    labels->at[n] = at;
    labels->last = n;
    labels->n = n + 1;
}

void shmt_labels_join(struct shmt_labels *labels, const struct shmt_labels *next) {
    for (uint32_t i = 0; i < next->n; i++) shmt_labels_insert(labels, next->label[i], next->at[i]);
}

void shmt_labels_ascending(const struct shmt_labels *labels, float *out) {
    for (uint32_t i = 0; i < labels->n; i++) out[i] = labels->label[labels->sorted[i]];
}
