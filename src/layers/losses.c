/* Losses of a network's outputs: see losses.h. */
#include "layers/losses.h"

#include <string.h>

#include "math/softmax.h"

double shmt_loss_classes(const struct shmt_loss_batch *batch, const uint32_t *target, bool scoring) {
    const uint32_t outputs = batch->outputs;
    double sum = 0;
    for (uint32_t k = 0; k < batch->n; k++) {
        const float weight = batch->weight ? batch->weight[k] : 1;
        float *z = batch->slope + (uint64_t)k * outputs;
        memmove(z, batch->out + (uint64_t)k * outputs, outputs * sizeof *z);
        sum += (double)(weight * shmt_softmax(outputs, z, target[k]));
        if (scoring) continue;
        z[target[k]] -= 1;
        for (uint32_t c = 0; c < outputs && batch->weight; c++) z[c] *= weight;
    }
    return sum;
}

double shmt_loss_squared(const struct shmt_loss_batch *batch, const float *target) {
    double sum = 0;
    for (uint32_t k = 0; k < batch->n; k++) {
        const float weight = batch->weight ? batch->weight[k] : 1;
        const uint64_t from = (uint64_t)k * batch->outputs;
        double squares = 0;
        for (uint64_t i = from; i < from + batch->outputs; i++) {
            const float error = batch->out[i] - target[i];
            squares += (double)error * (double)error;
            batch->slope[i] = weight * error;
        }
        sum += (double)weight * squares / 2;
    }
    return sum;
}
