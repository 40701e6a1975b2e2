/* The layout of the board: see board.h. */
#include "train/board.h"

#include "base/checked.h"

static uint64_t place(uint64_t *bytes, uint64_t n) {
    const uint64_t at = *bytes;
    *bytes += shmt_ceil_div(n, SHMT_LINE) * SHMT_LINE;
    return at;
}

static void plan(uint32_t n_epochs, uint64_t n_valid, uint32_t n_outputs, uint64_t chunk, struct shmt_board_plan *out) {
    uint64_t bytes = 0;
    (void)place(&bytes, sizeof(struct shmt_board));
    out->n_valid = n_valid;
    out->n_outputs = n_outputs;
    out->chunk = chunk;
    out->n_chunks = shmt_ceil_div(n_valid, chunk);
    out->epochs_off = place(&bytes, n_epochs * sizeof(struct shmtrain_epoch));
    out->losses_off = place(&bytes, out->n_chunks * sizeof(double));
    out->notes_off = place(&bytes, out->n_chunks * sizeof(uint64_t));
    out->scores_off = place(&bytes, n_valid * n_outputs * sizeof(float));
    out->bytes = bytes;
}

void shmt_board_plan(uint32_t n_epochs, uint64_t n_valid, uint32_t n_outputs, struct shmt_board_plan *out) {
    plan(n_epochs, n_valid, n_outputs, SHMT_VALID_CHUNK, out);
}

void shmt_board_plan_of_function(uint32_t n_epochs, uint64_t n_valid, struct shmt_board_plan *out) {
    plan(n_epochs, n_valid, 0, shmt_max_u64(1, shmt_ceil_div(n_valid, SHMT_VALID_PARTS)), out);
}
