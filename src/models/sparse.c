/* What the linear models on sparse rows share, apart from their loops: see sparse_priv.h. */
#include "models/sparse_priv.h"

uint32_t shmt_sparse_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                            struct shmtrain_shape *out) {
    (void)state;
    out[0] = (struct shmtrain_shape){
        .name = "weight", .rows = (uint64_t)data->n_features + with->bias, .width = 1, .l2_rows = data->n_features};
    return 1;
}

struct shmtrain_csr shmt_sparse_rows(const struct shmtrain_batch *batch, const struct shmtrain_settings *with) {
    const struct shmtrain_data *data = batch->data;
    return (struct shmtrain_csr){.size = sizeof(struct shmtrain_csr),
                                 .n = batch->n,
                                 .bias = with->bias,
                                 .start = batch->example ? data->start : data->start + batch->first,
                                 .id = data->id,
                                 .value = data->value,
                                 .order = batch->example};
}
