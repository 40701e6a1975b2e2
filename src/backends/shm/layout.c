/* The layout of a run's segment: see layout.h. */
#include "backends/shm/layout.h"

#include "base/random.h"
#include "consistency/chunks.h"
#include "segment/segment.h"

/* Below this many floats a gradient is folded whole: looking at a map would cost more than it saves. */
#define MAP_FROM_FLOATS 4096

static uint32_t stack_height(const struct shmt_spec *spec) {
    uint32_t highest = 0;
    if (shmt_policy_is_live(&spec->policy)) return 0;
    for (uint32_t seat = 0; seat < spec->n_seats; seat++) {
        struct shmt_stack stack;
        uint32_t from, to, height;
        shmt_chunk_share(spec->n_chunks, seat, spec->n_seats, &from, &to);
        shmt_stack_after(from, to, &stack, &height);
        if (height > highest) highest = height;
    }
    return highest;
}

static uint64_t whole_pages(uint64_t bytes) { return shmt_ceil_div(bytes, 4096) * 4096; }

int shmt_shm_layout_plan(const struct shmt_spec *spec, struct shmt_shm_layout *out, struct shmt_error *e) {
    struct shmt_layout plan = {0};
    shmt_flat_plan(spec, &out->flat);
    const uint64_t floats = out->flat.n, table_bytes = floats * sizeof(float);
    out->stack = stack_height(spec);
    out->touched = out->stack > 0 && floats >= MAP_FROM_FLOATS;
    out->map_bytes = out->touched ? floats / SHMT_TOUCH_FLOATS : 0;
    out->seat_grad_bytes = whole_pages(table_bytes * out->stack);
    out->seat_map_bytes = whole_pages(out->map_bytes * out->stack);
    out->control_off = shmt_layout_add(&plan, 1, sizeof(struct shmt_shm_control));
    out->slots_off = shmt_layout_add(&plan, spec->n_seats, sizeof(struct shmt_shm_slot));
    out->ledger_off = shmt_layout_add(&plan, shmt_spec_pieces(spec), sizeof(struct shmt_shm_piece));
    out->weight_off = shmt_layout_add_pages(&plan, floats, sizeof(float));
    out->l2_share_off = shmt_layout_add_pages(&plan, spec->l2_shares ? floats : 0, sizeof(float));
    out->grad_off = shmt_layout_add_pages(&plan, spec->n_seats, out->seat_grad_bytes);
    out->touched_off = shmt_layout_add_pages(&plan, spec->n_seats, out->seat_map_bytes);
    out->board_off = shmt_layout_add_pages(&plan, 1, spec->board_bytes);
    out->bytes = plan.bytes;
    if (plan.failed) return shmt_fail(e, SHMTRAIN_E_MEMORY, "the store would be larger than any memory");
    return 0;
}

uint64_t shmt_shm_layout_fingerprint(void) {
    uint64_t h = shmt_hash64(SHMT_SHM_LAYOUT_VERSION, sizeof(struct shmt_shm_control), sizeof(struct shmt_shm_slot),
                             sizeof(struct shmt_shm_piece));
    h = shmt_hash64(h, offsetof(struct shmt_shm_control, abort), offsetof(struct shmt_shm_control, over), SHMT_LINE);
    return shmt_hash64(h, offsetof(struct shmt_shm_slot, counters), offsetof(struct shmt_shm_slot, undo),
                       sizeof(struct shmt_gate));
}
