/* The engine of batches, `sync`: gradients of a batch's chunks are summed into the owner's buffers along the tree of chunks.h;
 * when all are in, every seat applies one slice of the update. Two meetings per batch: "all gradients are in" and "all slices
 * are applied". With equal copies (`allreduce`) the second one is "all slices are summed", and each applies all of the update to
 * a copy of its own behind it (reduce.c); the parameters themselves are the chief's copy.
 *
 * Between these two nobody looks at the stop word, so a batch is applied whole or not at all: the chief decides before the
 * first one that this batch is the last. */

#include <string.h>

#include "backends/shm/batches/batches_priv.h"
#include "base/own.h"
#include "base/point.h"
#include "ps/norm.h"
#include "sync/host.h"
#include "update/kernels.h"

/* In the middle of an epoch, too: behind a pause. */
static void share(struct shmt_shm_seat *p) {
    p->step = load_relaxed(&p->store->control->step); /* relaxed: published by the meeting, or before workers exist */
    p->from = p->to = 0;
    if (!shmt_shm_is_link(p)) shmt_spec_chunks_of(&p->store->spec, p->seat.index, p->seat.n_present, &p->from, &p->to);
    p->chunk = p->from;
    p->cut_step = SHMT_NO_LIMIT;
    p->stack.late = shmt_flat_is_dense(&p->store->spec);
    shmt_shm_nodes_make(p);
    p->announced = p->reduced = 0;
}

/* An earlier life was at a batch: its gradients are complete, or I compute them anew. */
static void go_on(struct shmt_shm_seat *p) {
    uint32_t height;
    p->sums = true; /* who knows */
    if (p->store->layout.terms) shmt_shm_clear_whole(p->store, p->seat.rank, p->store->layout.stack);
    if (p->now.stage < SHMT_STAGE_WORK) return;
    p->step = p->now.piece;
    p->clock = p->now.clock;
    if (p->now.stage > SHMT_STAGE_APPLY || p->step >= shmt_spec_steps(&p->store->spec)) return; /* behind the last batch */
    if (p->now.stage >= SHMT_STAGE_NORM || p->met) {
        shmt_stack_after(p->from, p->to, p->stack.late, &p->stack, &height);
        p->chunk = p->to;
        p->cut_step = p->step; /* others may be at their slices */
    } else {
        if (p->store->layout.ready.n > 0) shmt_shm_take_back_ready(p);
        for (uint32_t slot = 0; slot < p->store->layout.stack; slot++) shmt_shm_clear_whole(p->store, p->seat.rank, slot);
        for (uint32_t chunk = p->from; chunk < p->to; chunk++) shmt_shm_uncount(p, p->step * p->store->spec.n_chunks + chunk);
    }
}

/* Equal copies: the seat's becomes what the parameters are. */
static void begin_copy(const struct shmt_store *store, uint32_t rank) {
    const struct shmt_shm_layout *l = &store->layout;
    memcpy(shmt_shm_weight_of(store, rank), store->weight, l->flat.n * sizeof(float));
    if (l->planes > 0) memcpy(shmt_shm_state_of(store, rank), store->state, l->planes * l->flat.n * sizeof(float));
}

/* Nobody updates the parameters before I have come to my first batch. From then on there is a copy, which deaths leave whole, and the
 * parameters may be changing at any stage: the chief's update ends with no meeting. */
static void make_my_copy(struct shmt_shm_seat *p) {
    const bool has_one = p->revived && p->now.stage >= SHMT_STAGE_WORK;
    if (p->store->layout.equal && p->seat.rank > 0 && !shmt_shm_is_link(p) && !has_one) begin_copy(p->store, p->seat.rank);
}

static int enter(struct shmt_shm_seat *p) {
    p->nodes = shmt_own_malloc(2 * (size_t)p->store->spec.n_chunks, sizeof *p->nodes);
    if (!p->nodes)
        return shmt_fail(&p->seat.error, SHMTRAIN_E_MEMORY, "not enough memory for %u chunks", p->store->spec.n_chunks);
    p->clock = p->epoch * shmt_spec_steps(&p->store->spec) + p->store->spec.first_step;
    if (p->guest) return 0; /* its share is found when it is let in, and its copy made */
    make_my_copy(p);
    share(p);
    if (p->revived) go_on(p);
    return 0;
}

static void fold(const struct shmt_shm_seat *p, uint32_t left, uint32_t right) {
    const struct shmt_store *store = p->store;
    const uint32_t rank = p->seat.rank;
    shmt_fold(shmt_shm_buffer(store, rank, left), shmt_shm_map(store, rank, left), shmt_shm_buffer(store, rank, right),
              shmt_shm_map(store, rank, right), store->layout.flat.n);
    shmt_spend(SHMT_SPENT_ADDING, 1);
}

/* Adds the two topmost subtrees while they are siblings; the buffer that falls free is clear afterwards. Where all went into lists
 * there is nothing to add. */
static void fold_siblings(struct shmt_shm_seat *p) {
    if (!shmt_stack_may_merge(&p->stack)) return;
    shmt_trace_to(p->seat.trace, SHMT_EVENT_AGGREGATE);
    for (; shmt_stack_may_merge(&p->stack); shmt_stack_merge(&p->stack))
        if (p->sums) fold(p, p->stack.n - 2, p->stack.n - 1);
    shmt_trace_to(p->seat.trace, SHMT_EVENT_NONE);
}

/* Where memory takes virtual time: others have read what lies where the chunk's gradient was written, and its map. Of sums all that is
 * dense. */
static void pay_for_chunk(const struct shmt_shm_seat *p, uint32_t chunk) {
    const struct shmt_store *store = p->store;
    if (!shmt_host_touches()) return;
    shmt_shm_touch_list(store, chunk, true);
    if (store->layout.touched) shmt_touch(shmt_shm_map(store, p->seat.rank, p->stack.n - 1), store->layout.map_bytes, true);
    if (p->stack.late)
        shmt_touch(shmt_shm_buffer(store, p->seat.rank, p->stack.n - 1), store->layout.flat.n * sizeof(float), true);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

/* The chunk on top of my stack is complete. */
static void end_chunk(struct shmt_shm_seat *p, uint32_t chunk) {
    pay_for_chunk(p, chunk);
    p->sums |= shmt_shm_is_summed(p->store, chunk);
    if (!p->stack.late) fold_siblings(p);
}

/* Weights that others have just changed lie in their caches. My examples will come upon them one by one, in no order, and
 * wait for each; in their order they take a tenth of that. Those that I have touched in this batch I shall most likely need
 * again. (For lists it brought nothing. Where they are kept, slices are about these only: the chief may be cutting them anew.) */
static void fetch_weights(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const uint64_t n = store->layout.flat.n;
    uint64_t from, to;
    if (p->seat.n_present == 1 || store->layout.equal) return;
    shmt_slice(n, p->seat.index, p->seat.n_present, &from, &to);
    for (uint32_t slot = 0; p->sums && slot < p->stack.n; slot++) {
        const uint8_t *map = shmt_shm_map(store, p->seat.rank, slot);
        shmt_fetch(store->weight, map, 0, from);
        shmt_fetch(store->weight, map, to, n);
    }
}

/* The batch is applied everywhere: my sums are not needed any more. */
static void begin_next(struct shmt_shm_seat *p) {
    fetch_weights(p);
    for (uint32_t slot = 0; p->sums && slot < p->stack.n; slot++)
        shmt_clear(shmt_shm_buffer(p->store, p->seat.rank, slot), shmt_shm_map(p->store, p->seat.rank, slot),
                   p->store->layout.flat.n);
    p->stack.n = 0;
    p->sums = false;
    p->chunk = p->from;
    p->step++;
    p->clock++;
    p->announced = p->reduced = 0;
    SHMT_POINT("batch:cleared");
    (void)shmt_shm_begin_stage(p, SHMT_STAGE_WORK);
}

/* The chief's decisions, published by the meeting that follows: relaxed is enough. */
static void decide_on_stop(struct shmt_shm_seat *p) {
    struct shmt_shm_control *control = p->store->control;
    const uint64_t next = shmt_shm_global_step(p) + 1;
    if (p->seat.rank != 0 || shmt_spec_is_linked(&p->store->spec)) return; /* many hosts: the link, when all have agreed */
    if (load_relaxed(&control->stop)) store_relaxed(&control->end_step, next);
    if (p->store->spec.pauses.allowed && shmt_shm_pause_is_due(p, next)) store_relaxed(&control->pause_step, next);
}

/* For my next life: I am at my chunks of the batch, */
static void record_batch(struct shmt_shm_seat *p) { p->now.piece = p->step; }

/* or at my part of its update, behind the meeting. */
static void record_update(struct shmt_shm_seat *p) {
    uint64_t from, to;
    SHMT_POINT("gather:met");
    shmt_shm_my_update(p, &from, &to);
    shmt_shm_apply_stands_at(p, from);
    SHMT_POINT("gather:undo");
    record_batch(p);
}

/* All my gradients are in. */
static void gather(struct shmt_shm_seat *p) {
    SHMT_POINT("gather:before");
    decide_on_stop(p);
    shmt_shm_cut_slices(p);
    if (p->store->layout.tells && !shmt_shm_is_link(p)) shmt_shm_announce_rest(p);
    SHMT_POINT("gather:decided");
}

static void apply(struct shmt_shm_seat *p) {
    shmt_shm_apply(p);
    SHMT_POINT("apply:before");
    if (p->seat.rank == 0)
        store_relaxed(&p->slot->counters.updates, p->clock + 1); /* before the meeting: all pull behind it, see updates() */
}

/* Copies are a seat's own: nobody waits until all have updated theirs. What they read for it, the sum and its norms, is not written
 * before all have come to the next batch; gradients and their lists may be. */
static _Atomic uint64_t *wait_for_update(const struct shmt_shm_seat *p) {
    return p->store->layout.equal ? NULL : shmt_shm_wait_clock(p);
}

/* Between the gradients' meeting and the update: what takes a meeting of its own. */
static int prepare_update(struct shmt_shm_seat *p) {
    if (p->store->layout.equal) return shmt_shm_pass_stage(p, SHMT_STAGE_REDUCE);
    return shmt_norm_sums(&p->store->spec) > 0 ? shmt_shm_pass_stage(p, SHMT_STAGE_NORM) : 0;
}

/* The two meetings, and between them one more where norms are asked for. An earlier life may have passed the first
 * one, or come to it: `gather` is done again then, behind a meeting that others have passed, and changes nothing: what it decides is read
 * behind the last meeting, and slices are cut once a batch. */
int shmt_shm_finish_batch(struct shmt_shm_seat *p) {
    int rc = p->revived ? 0 : shmt_shm_end_stage(p, SHMT_STAGE_WORK, SHMT_TASK_ALL);
    if (rc == 0) rc = prepare_update(p);
    if (rc == 0) rc = shmt_shm_pass_stage(p, SHMT_STAGE_APPLY);
    if (rc == 0) begin_next(p);
    return rc;
}

static int resume_update(struct shmt_shm_seat *p) {
    const int rc = shmt_shm_finish_batch(p);
    return rc < 0 ? rc : 1;
}

/* My next chunk that has examples; false: there is none left in this batch. A chunk without examples is a gradient of zero. */
static bool next_chunk(struct shmt_shm_seat *p) {
    const struct shmt_spec *spec = &p->store->spec;
    const uint64_t n = shmt_spec_examples_of_step(spec, p->step);
    while (p->chunk < p->to) {
        uint64_t from, to;
        const uint32_t chunk = p->chunk++;
        shmt_chunk_examples(spec->batch, spec->n_chunks, chunk, n, &from, &to);
        if (p->stack.late) fold_siblings(p);
        shmt_stack_push(&p->stack, chunk);
        shmt_shm_list_begin(p->store, chunk);
        if (from == to) {
            end_chunk(p, chunk);
            continue;
        }
        p->piece = p->step * spec->n_chunks + chunk;
        p->work = (struct shmtrain_work){.first = p->step * spec->batch + from,
                                         .n = to - from,
                                         .step = shmt_shm_global_step(p),
                                         .chunk = chunk,
                                         .epoch = p->epoch,
                                         .life = p->seat.life};
        return true;
    }
    return false;
}

int shmt_shm_has_batch(const struct shmt_shm_seat *p) {
    const struct shmt_shm_control *control = p->store->control;
    const uint64_t step = shmt_shm_global_step(p);
    /* relaxed: a flag that carries nothing but itself */
    if (load_relaxed(&control->abort)) return SHMTRAIN_E_STOPPED;
    /* relaxed, both: written by the chief before a meeting that I have passed, or later for a step that is not this one */
    if (step >= load_relaxed(&control->end_step) || step >= load_relaxed(&control->pause_step)) return 0;
    return shmt_spec_has_step(&p->store->spec, p->epoch, p->step);
}

static int claim(struct shmt_shm_seat *p) {
    for (;;) {
        int rc = shmt_shm_has_batch(p);
        if (rc != 1) return rc;
        if (p->store->layout.ready.n > 0 && p->from == p->to) shmt_shm_announce_rest(p);
        if (next_chunk(p)) return 1;
        rc = shmt_shm_finish_batch(p);
        if (rc < 0) return rc;
    }
}

/* Ends the piece in hand; after my last one of the batch, also the batch: a caller's clock is where it waits. */
static int publish(struct shmt_shm_seat *p, struct shmtrain_fate *out) {
    const uint32_t examples = (uint32_t)p->work.n;
    shmt_ledger_done(&p->store->ledger[p->piece], p->epoch, p->work.n);
    end_chunk(p, p->work.chunk);
    const int rc = p->chunk == p->to ? shmt_shm_finish_batch(p) : 0;
    *out = (struct shmtrain_fate){.clock = p->clock, .applied = examples};
    return rc;
}

/* Outside a piece (when a session only looks) there is no gradient buffer: the sink is not used then. */
static void memory(const struct shmt_shm_seat *p, struct shmt_shm_memory *out) {
    const uint32_t top = p->stack.n ? p->stack.n - 1 : 0;
    *out = (struct shmt_shm_memory){.weight = p->weight,
                                    .sink = shmt_shm_buffer(p->store, p->seat.rank, top),
                                    .touched = shmt_shm_map(p->store, p->seat.rank, top),
                                    .terms = shmt_shm_list(p->store, p->work.chunk)};
}

/* relaxed: between two meetings of a batch, which stand around the pieces, the chief counts nothing; it is measured all the
 * same. Of a copy of my own nobody else counts anything. */
static uint64_t updates(const struct shmt_shm_seat *p) {
    return p->store->layout.equal ? 0 : load_relaxed(&p->store->slot[0].counters.updates);
}

/* By the chief, while the parameters rest. */
static void welcome(struct shmt_shm_seat *chief, uint32_t rank) {
    if (chief->store->layout.equal) begin_copy(chief->store, rank);
}

static void leave(struct shmt_shm_seat *p) { shmt_own_free(p->nodes); }

const struct shmt_shm_engine SHMT_SHM_BATCHES = {
    .stage = {[SHMT_STAGE_WORK] = {.record = record_batch, .names_piece = true, .work = gather, .wait = shmt_shm_wait_clock},
              [SHMT_STAGE_NORM] = {.record = record_batch,
                                   .names_piece = true,
                                   .work = shmt_shm_measure,
                                   .wait = shmt_shm_wait_clock,
                                   .resume = resume_update},
              [SHMT_STAGE_REDUCE] = {.record = record_batch,
                                     .names_piece = true,
                                     .work = shmt_shm_reduce,
                                     .wait = shmt_shm_wait_clock,
                                     .resume = resume_update},
              [SHMT_STAGE_APPLY] = {.record = record_update,
                                    .names_piece = true,
                                    .work = apply,
                                    .wait = wait_for_update,
                                    .resume = resume_update}},
    .enter = enter,
    .leave = leave,
    .share = share,
    .claim = claim,
    .memory = memory,
    .complete = shmt_shm_complete,
    .publish = publish,
    .updates = updates,
    .welcome = welcome};
