/* Checkpoints of exact fits: see fit_keep.h. */
#include "fitting/fit_keep.h"

#include <string.h>

#include "fitting/fit.h"
#include "base/plain.h"
#include "ps/snapshot.h"
#include "solve/choose.h"
#include "train/fit.h"
#include "train/goal.h"
#include "workers/run.h"

const struct shmt_checkpoint_fit *shmt_fit_resumes_from(const struct shmt_run *run) {
    const struct shmt_checkpoint_in *from = run->from;
    return from && shmt_checkpoint_of(from)->fit.is ? &shmt_checkpoint_of(from)->fit : NULL;
}

static void memory_of(const struct shmt_run *run, struct shmt_store *of, struct shmt_solve_memory *out) {
    unsigned char *board = shmt_array_at(run->backend, of, SHMT_ARRAY_BOARD);
    shmt_solve_memory_at(&run->fit->plan, board + run->fit->offset, out);
}

static void keep_of(const struct shmt_run *run, struct shmt_keep *out) {
    unsigned char *board = shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_BOARD);
    shmt_keep_at(&run->fit->plan, &run->fit->keep, board + run->fit->keep_offset, out);
}

/* ---- what is written ---- */

bool shmt_fit_can_resume(const struct shmt_run *run, const struct shmt_snapshot *snapshot) {
    struct shmt_keep keep;
    struct shmt_solve_memory memory;
    keep_of(run, &keep);
    memory_of(run, run->job.store, &memory);
    const bool whole = keep.over->phase == SHMT_PHASE_OVER && !keep.over->stopped;
    const struct shmt_pass all = {
        .problem = &run->fit->problem, .plan = &run->fit->plan, .memory = &memory, .state = keep.over, .n_parts = 1};
    if (whole) shmt_keep_copy(&all, &keep);
    return keep.state->phase == SHMT_PHASE_OVER && snapshot->at.epoch == keep.state->epoch + 1;
}

void shmt_fit_fill(const struct shmt_run *run, struct shmt_checkpoint_fit *out) {
    const struct shmt_fit *fit = run->fit;
    struct shmt_keep keep;
    keep_of(run, &keep);
    *out = (struct shmt_checkpoint_fit){.is = true,
                                        .live = fit->problem.live,
                                        .l1 = fit->problem.l1,
                                        .l2 = fit->problem.l2,
                                        .tolerance = fit->problem.tolerance,
                                        .rows = (uint64_t)fit->plan.of.n_columns + fit->plan.of.bias,
                                        .width = fit->plan.of.n_classes,
                                        .point = keep.point,
                                        .place = shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_ROW_PLACE)};
    shmt_keep_numbers(keep.state, &out->kept);
    if (keep.state->ascends) out->n_dual = fit->plan.of.n;
    if (keep.state->interior) out->n_inner = fit->plan.of.n;
    out->dual = keep.dual;
    out->stands = keep.inner;
}

/* ---- what is read ---- */

bool shmt_fit_suits(const struct shmt_run *run, const struct shmt_checkpoint_fit *with) {
    const struct shmt_solve_sizes *of = &run->fit->plan.of;
    const bool examples =
        with->kept.interior ? shmt_solve_has_inner(&run->fit->plan) : with->n_dual == (shmt_solve_has_dual(of) ? of->n : 0);
    return with->rows == (uint64_t)of->n_columns + of->bias && with->width == of->n_classes && examples &&
           with->kept.scaled <= of->has_scales && (!with->kept.direct || run->fit->plan.direct);
}

static void restore_point(const struct shmt_run *run, struct shmt_store *made, const struct shmt_checkpoint_fit *with,
                          double *out) {
    const uint32_t *place = shmt_array_at(run->backend, made, SHMT_ARRAY_ROW_PLACE);
    for (uint64_t row = 0; row < with->rows; row++)
        memcpy(out + (place ? place[row] : row) * with->width, with->point + row * with->width, with->width * sizeof *out);
}

static void restore_note(const struct shmt_fit *fit, struct shmt_solve_note *note) {
    const struct shmt_kept_fit *kept = fit->from;
    store_relaxed(&note->fits, kept->fits); /* relaxed: nobody else is there yet */
    note->scaled = kept->scaled;
    note->l2 = kept->chosen ? shmt_choice_l2(kept->strength, fit->problem.n_all) : fit->problem.l2;
    note->loss = kept->choice_loss;
}

/* Alone, phase by phase, until it could go on. */
static int check_data(struct shmt_run *run, const struct shmt_checkpoint *with, const struct shmt_solve_memory *memory) {
    struct shmt_solve_state state;
    SHMT_PLAIN_NUMBERS;
    shmt_keep_begin(&run->fit->problem, &with->fit.kept, with->at.epoch, &state);
    for (uint64_t round = 0; state.remakes && !state.strange; round++) {
        const struct shmt_solve_state before = state;
        const struct shmt_pass pass = {.problem = &run->fit->problem,
                                       .plan = &run->fit->plan,
                                       .memory = memory,
                                       .state = &before,
                                       .round = round,
                                       .n_parts = 1};
        if (shmt_newton_work(&pass) < 0) return shmt_no_memory(&run->call->error, "to check a checkpoint's fit");
        shmt_newton_next(&pass, &state);
    }
    return state.strange ? shmt_fitting_refuse(&run->call->error) : 0;
}

int shmt_fit_restore(struct shmt_run *run, struct shmt_store *made, bool done, uint32_t *out) {
    const struct shmt_checkpoint_fit *with = shmt_fit_resumes_from(run);
    struct shmt_solve_memory memory;
    *out = SHMT_END_NOT;
    if (!with || !run->fits) return 0;
    memory_of(run, made, &memory);
    restore_point(run, made, with, memory.w[0]);
    for (uint64_t i = 0; i < with->n_dual; i++) memory.slope[i].pull = with->dual[i];
    if (with->n_inner > 0) memcpy(memory.inner[0], with->stands, with->n_inner * sizeof *memory.inner[0]);
    run->fit->from = &with->kept;
    restore_note(run->fit, memory.note);
    if (shmt_keep_gap(&with->kept) <= run->fit->problem.tolerance)
        *out = SHMT_END_TOLERANCE;
    else if (with->kept.exhausted)
        *out = SHMT_END_PRECISION;
    const bool goes_on = *out == SHMT_END_NOT && !done;
    return goes_on ? 0 : check_data(run, shmt_checkpoint_of(run->from), &memory);
}
