/* Stages: what is done around each, so that no engine does it. The seat writes a record of the stage, beside the last one (a death
 * leaves one of them whole), does its work, and comes to the meeting behind it, if there is one. What an earlier life has done of
 * it already is left out: see consistency/stages.h. What a stage is says its row: of the engine's table, or of SHMT_SHM_ENDS.
 *
 * Called by the engines and by the backend's entries, in the worker. */
#include "backends/shm/shm_priv.h"
#include "base/point.h"

static const struct shmt_shm_stage *stage_of(const struct shmt_shm_seat *p, enum shmt_run_stage which) {
    return which < SHMT_STAGE_FIT ? &p->engine->stage[which] : &SHMT_SHM_ENDS[which];
}

static void record(struct shmt_shm_seat *p, enum shmt_run_stage which) {
    const struct shmt_shm_stage *stage = stage_of(p, which);
    struct shmt_shm_slot *slot = p->slot;
    if (stage->record) stage->record(p);
    /* relaxed: a number to show; examples, and so pieces and batches, have 32 bits */
    store_relaxed(&slot->at, stage->names_piece ? ((uint64_t)p->epoch + 1) << 32 | p->now.piece : 0);
    const uint64_t number = load_relaxed(&slot->records) + 1; /* relaxed, here and below: read by my next life only */
    if (!p->store->spec.may_die) return;
    p->now.phase = p->phase;
    p->now.clock = p->clock;
    p->now.done = p->done;
    p->now.first = p->first;
    p->now.epoch = p->epoch;
    p->now.stage = (uint8_t)which;
    slot->record[number % 2] = p->now;
    fence_compiler();
    SHMT_POINT("note:before");
    store_relaxed(&slot->records, number);
    SHMT_POINT("note:after");
    fence_compiler();
}

enum shmt_task shmt_shm_begin_stage(struct shmt_shm_seat *p, enum shmt_run_stage which) {
    const enum shmt_task task = p->revived ? shmt_stage_task(which, p->now.stage, p->met) : SHMT_TASK_ALL;
    if (task == SHMT_TASK_NONE) return task;
    if (!p->revived || p->now.stage != which) record(p, which); /* a stage that is continued has its record */
    p->revived = false;
    p->in_work |= which == SHMT_STAGE_WORK;
    return task;
}

int shmt_shm_end_stage(struct shmt_shm_seat *p, enum shmt_run_stage which, enum shmt_task task) {
    const struct shmt_shm_stage *stage = stage_of(p, which);
    if (task == SHMT_TASK_NONE) return 0;
    if (task == SHMT_TASK_ALL && stage->work) stage->work(p);
    _Atomic uint64_t *const waits = stage->wait ? stage->wait(p) : NULL;
    return waits ? shmt_shm_meet(p, waits) : 0;
}

int shmt_shm_pass_stage(struct shmt_shm_seat *p, enum shmt_run_stage which) {
    return shmt_shm_end_stage(p, which, shmt_shm_begin_stage(p, which));
}

int shmt_shm_begin_work(struct shmt_shm_seat *p) {
    if (p->in_work) return 1;
    int rc = p->engine->begin ? p->engine->begin(p) : 1;
    if (rc == 1 && p->revived && stage_of(p, p->now.stage)->resume) rc = stage_of(p, p->now.stage)->resume(p);
    if (rc != 1) return rc;
    if (!p->in_work) (void)shmt_shm_begin_stage(p, SHMT_STAGE_WORK);
    return 1;
}

_Atomic uint64_t *shmt_shm_wait_clock(const struct shmt_shm_seat *p) { return &p->slot->counters.wait_clock_ns; }
_Atomic uint64_t *shmt_shm_wait_epoch(const struct shmt_shm_seat *p) { return &p->slot->counters.wait_epoch_ns; }

bool shmt_shm_is_at(const struct shmt_store *store, uint32_t rank, uint32_t epoch, uint64_t *piece_out) {
    const uint64_t at = load_relaxed(&store->slot[rank].at); /* relaxed: a number to show */
    if (at >> 32 != (uint64_t)epoch + 1) return false;
    *piece_out = at & UINT32_MAX;
    return true;
}

/* ---- examples and losses ---- */

/* The session counts a piece before it is done, and a death may come between the two. So it is noted what the counters are in
 * either case, in one of two places as records are; its next life asks the ledger. relaxed, all: read by my next life only. */
void shmt_shm_note_count(struct shmt_shm_seat *p, const struct shmt_shm_count *count) {
    const uint64_t number = load_relaxed(&p->slot->counts) + 1;
    p->slot->count[number % 2] = *count;
    fence_compiler();
    SHMT_POINT("note-count:before");
    store_relaxed(&p->slot->counts, number);
    SHMT_POINT("note-count:after");
    fence_compiler();
}

/* Behind the session's count of the piece in hand. */
void shmt_shm_count(struct shmt_shm_seat *p) {
    const struct shmt_counters *c = &p->slot->counters;
    const struct shmt_shm_count next = {.piece = p->piece,
                                        .epoch = (uint64_t)p->epoch + 1,
                                        .examples = {p->examples, load_relaxed(&c->examples)},
                                        .loss_bits = {p->loss_bits, load_relaxed(&c->loss_bits)}};
    if (!p->store->spec.may_die) return;
    shmt_shm_note_count(p, &next);
    p->examples = next.examples[1];
    p->loss_bits = next.loss_bits[1];
}
