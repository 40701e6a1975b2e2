/* Features into networks: see features.h. */
#include "layers/features.h"

#include <math.h>

#include "base/wide_vectors.h"

void shmt_features_add(struct shmt_feature_sums *sums, const float *row, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const double x = (double)row[i];
        sums[i].n++;
        sums[i].nonzeros += row[i] != 0;
        shmt_spread_add(&sums[i].all, x, 1);
        sums[i].square += x * x;
    }
}

static void normal_of(const struct shmt_feature_sums *sums, float *normal_out) {
    if (2 * sums->nonzeros > sums->n) {
        normal_out[0] = (float)shmt_spread_mean(&sums->all);
        normal_out[1] = shmt_spread_divisor(shmt_spread_deviation(&sums->all));
        return;
    }
    normal_out[0] = 0;
    normal_out[1] = shmt_spread_divisor(sums->nonzeros > 0 ? sqrt(sums->square / (double)sums->nonzeros) : 0);
}

void shmt_features_normal(const struct shmt_feature_sums *sums, uint64_t n, float *normal_out) {
    for (uint64_t i = 0; i < n; i++) normal_of(&sums[i], normal_out + 2 * i);
}

SHMT_FOR_WIDE_VECTORS static void put(const float *normal, uint64_t n, const float *row, float *out) {
    for (uint64_t i = 0; i < n; i++) out[i] = (row[i] - normal[2 * i]) / normal[2 * i + 1];
}

void shmt_features_put(const float *normal, uint64_t n, const float *row, float *out) { put(normal, n, row, out); }
