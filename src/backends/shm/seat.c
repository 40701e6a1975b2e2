/* What a seat needs in every mode: its gradient buffers, and meeting the others. */
#include "backends/shm/shm_priv.h"

float *shmt_shm_buffer(const struct shmt_store *store, uint32_t seat, uint32_t slot) {
    const struct shmt_shm_layout *l = &store->layout;
    const uint64_t off = l->grad_off + seat * l->seat_grad_bytes + slot * l->flat.n * sizeof(float);
    return (float *)(void *)(store->segment.base + SHMT_SEGMENT_HEADER_BYTES + off);
}

uint8_t *shmt_shm_map(const struct shmt_store *store, uint32_t seat, uint32_t slot) {
    const struct shmt_shm_layout *l = &store->layout;
    if (!l->touched) return NULL;
    return store->segment.base + SHMT_SEGMENT_HEADER_BYTES + l->touched_off + seat * l->seat_map_bytes + slot * l->map_bytes;
}

int shmt_shm_meet(struct shmt_shm_seat *p, _Atomic uint64_t *wait_ns) {
    uint64_t waited = 0;
    shmt_gate_reach(&p->meeting, SHMT_GATE_PHASE, ++p->phase);
    const int gave_up = shmt_gates_wait(&p->meeting, SHMT_GATE_PHASE, p->phase, &waited, NULL);
    bump_relaxed(wait_ns, waited);
    return gave_up ? SHMTRAIN_E_STOPPED : 0;
}
