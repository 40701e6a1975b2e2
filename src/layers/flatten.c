/* Flatten: the numbers of an example in one row, as layers behind it see them: (height, width, channels), one behind the other. They
 * lie like that already, so only the shape changes. */
#include "layers/layers.h"

static int plan(struct shmtrain_layer *layer) {
    layer->out = (struct shmtrain_extent){(uint32_t)shmtrain_extent_numbers(&layer->in), 1, 1};
    return 0;
}

const struct shmtrain_layer_kind SHMT_LAYER_FLATTEN = {
    .size = sizeof(struct shmtrain_layer_kind),
    .traits = SHMTRAIN_LAYER_NOTHING,
    .name = "flatten",
    .about = "the places and channels of an example as one row of numbers",
    .plan = plan,
};
