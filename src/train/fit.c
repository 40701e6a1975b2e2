/* An exact fit as a run: see fit.h.
 *
 * The seat's `round` is the number of the phase that it is at; a next life finds it there. Before the meeting of phase L the chief
 * saves its state in place L mod 2, where the sums of the phase are, too. Who has not come to that meeting when it dies holds all
 * others there: the next life finds the state that follows from phase L - 1, and does its part. Who has come to it may have let the others
 * go on to phase L + 1, which takes the place of L - 1; or they, and the chief, are still at work in phase L. So the next life waits in
 * that meeting first, and finds the state of phase L behind it: that stays until all have met once more. */
#include "train/fit.h"

#include <math.h>

#include "train/job.h"
#include "base/point.h"
#include "ps/meter.h"

static struct shmt_pass pass_of(const struct shmt_fitting *f, const shmtrain_session *s, const struct shmt_solve_state *state,
                                uint64_t round) {
    const struct shmt_fit *fit = f->job->fit;
    const bool sampled = state->choice.sampled != 0;
    return (struct shmt_pass){.problem = sampled ? &fit->sample : &fit->problem,
                              .plan = sampled ? &fit->sample_plan : &fit->plan,
                              .memory = sampled ? &f->of_sample : &f->memory,
                              .state = state,
                              .round = round,
                              .part = s->seat->rank,
                              .n_parts = f->job->spec->n_seats};
}

/* An epoch that is over is followed by the next one. */
static void go_on(struct shmt_solve_state *state) {
    const struct shmt_solve_state over = *state;
    if (over.phase == SHMT_PHASE_OVER) shmt_newton_next_epoch(&over, state);
}

void shmt_fitting_begin(struct shmt_fitting *f, const struct shmt_job *job, const struct shmtrain_session *s) {
    unsigned char *board = shmt_array_at(job->backend, job->store, SHMT_ARRAY_BOARD);
    *f = (struct shmt_fitting){.job = job, .session = s, .lost = s->seat->life > 0};
    shmt_solve_memory_at(&job->fit->plan, board + job->fit->offset, &f->memory);
    if (job->fit->samples)
        shmt_solve_memory_of_sample(&job->fit->sample_plan, board + job->fit->sample_offset, &f->memory, &f->of_sample);
    if (job->fit->keeps) shmt_keep_at(&job->fit->plan, &job->fit->keep, board + job->fit->keep_offset, &f->keep);
    if (job->fit->from)
        shmt_keep_begin(&job->fit->problem, job->fit->from, s->spec->first_epoch, &f->state);
    else
        shmt_newton_begin(&job->fit->problem, job->fit->samples, &f->state);
}

void shmt_fitting_copy(struct shmt_fitting *f, const shmtrain_session *s) {
    const struct shmt_pass pass = pass_of(f, s, &f->state, s->seat->round);
    if (f->job->fit->keeps) shmt_keep_copy(&pass, &f->keep);
}

/* As an earlier life had it. */
static void find_state(struct shmt_fitting *f, const shmtrain_session *s, bool has_met) {
    const uint64_t round = s->seat->round;
    f->lost = false;
    if (has_met) {
        f->state = f->memory.saved[round % 2];
    } else if (round > 0) {
        const struct shmt_solve_state before = f->memory.saved[(round - 1) % 2];
        const struct shmt_pass pass = pass_of(f, s, &before, round - 1);
        shmt_newton_next(&pass, &f->state);
        go_on(&f->state);
    }
}

static int check_data(const struct shmt_fitting *f, shmtrain_session *s) {
    return shmt_job_check_data(s, &f->job->train_guard);
}

/* Within a phase. Relaxed, all: a number for those who watch; two flags, which whoever does not see them yet sees the next time. Of those
 * who see a stop one is enough, and the meeting publishes what it has noted (memory.h). */
static bool goes_on(void *arg) {
    struct shmt_fitting *f = arg;
    const struct shmt_job *job = f->job;
    bump_relaxed(&f->session->seat->counters->looks, 1);
    if (!shmt_newton_may_skip(&f->state)) return true;
    SHMT_POINT("fit:look");
    if (f->leaves) return false;
    if (load_relaxed(job->backend->store->stop_word(job->store)) == 0 &&
        load_relaxed(job->backend->store->abort_word(job->store)) == 0)
        return true;
    f->leaves = true;
    shmt_solve_skip(&f->memory, f->session->seat->round);
    return false;
}

/* My part of a phase. The chief leaves what a next life of anybody needs. */
static int work(struct shmt_fitting *f, shmtrain_session *s) {
    struct shmt_pass pass = pass_of(f, s, &f->state, s->seat->round);
    int rc = check_data(f, s);
    if (rc < 0) return rc;
    f->leaves = false;
    pass.goes_on = goes_on;
    pass.goes_on_arg = f;
    if (shmt_newton_work(&pass) < 0) return shmt_no_memory(&s->error, "for a step of the fit");
    if ((rc = check_data(f, s)) < 0) return rc;
    if (s->seat->rank != 0) return 0;
    SHMT_POINT("fit:saving");
    f->memory.saved[pass.round % 2] = f->state;
    store_relaxed(&f->memory.note->fits, f->state.choice.fits); /* for display */
    /* relaxed: a flag; the meeting that follows publishes what I have seen of it */
    shmt_solve_sum(&f->memory, pass.round, SHMT_SUM_STOP)[0] =
        load_relaxed(f->job->backend->store->stop_word(f->job->store)) != 0;
    SHMT_POINT("fit:saved");
    return 0;
}

int shmt_fitting_refuse(struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA,
                     "--resume: at the checkpoint's point the objective of this data is not what it was, or a dual variable is "
                     "impossible: use the data of its run, or start a new run in another folder");
}

/* The phase, and the state behind it. */
static int do_phase(struct shmt_fitting *f, shmtrain_session *s) {
    const enum shmt_task task = shmt_session_stage(s, SHMT_STAGE_FIT);
    if (f->lost && task == SHMT_TASK_ALL) find_state(f, s, false);
    int rc = task == SHMT_TASK_ALL ? work(f, s) : 0;
    SHMT_POINT("fit:phase");
    if (rc == 0 && task != SHMT_TASK_NONE) rc = shmt_session_meet(s);
    if (rc < 0) return rc;
    SHMT_POINT("fit:met");
    if (f->lost) find_state(f, s, true);
    const struct shmt_solve_state before = f->state;
    const struct shmt_pass pass = pass_of(f, s, &before, s->seat->round);
    shmt_newton_next(&pass, &f->state);
    return f->state.strange ? shmt_fitting_refuse(&s->error) : 0;
}

/* All seats take part as long as the run goes on (fitting/fit.c), whoever has left behind its end. Each epoch counts the examples that I
 * score as mine; also in a next life. */
static void count_examples(const struct shmt_fitting *f, const shmtrain_session *s, uint32_t epochs) {
    uint64_t first, behind;
    shmt_solve_share(f->job->fit->problem.n, s->seat->rank, f->job->spec->n_seats, &first, &behind);
    /* relaxed, both: for display */
    store_relaxed(&s->seat->counters->examples, (epochs - s->spec->first_epoch) * (behind - first));
    if (s->seat->rank == 0) store_relaxed(&s->seat->counters->updates, epochs);
}

/* For the application, which reads it when the epoch is published. */
static void note_choice(const struct shmt_fitting *f) {
    struct shmt_solve_note *note = f->memory.note;
    note->scaled = f->state.choice.scaled;
    const bool is_made = f->state.stopped < 2;
    note->l2 = is_made ? f->state.l2 : NAN;
    note->loss = is_made ? f->state.choice.least : INFINITY;
}

/* 1: another epoch; 0: the run is over. */
static int do_epoch(struct shmt_fitting *f, shmtrain_session *s) {
    shmt_meter_turn(s->seat, &s->seat->counters->busy_ns);
    count_examples(f, s, f->state.epoch);
    int rc = s->hooks && !s->seat->behind ? shmt_hooks_before_epoch(s) : 0;
    if (rc < 0) return rc;
    while (f->state.phase != SHMT_PHASE_OVER) {
        if ((rc = do_phase(f, s)) < 0) return rc;
        if (f->state.phase != SHMT_PHASE_OVER) s->seat->round++;
    }
    count_examples(f, s, f->state.epoch + 1);
    if (s->seat->rank == 0 && f->state.epoch == 0) note_choice(f);
    if (s->seat->rank == 0 && f->job->fit->keeps) *f->keep.over = f->state; /* for the application, when all have ended */
    s->seat->cut = f->state.stopped != 0;
    rc = shmt_session_end_leg(s);
    if (rc == 1) {
        s->seat->round++;
        go_on(&f->state);
    }
    return rc;
}

int shmt_fitting_run(struct shmt_fitting *f, shmtrain_session *s) {
    int rc;
    while ((rc = do_epoch(f, s)) == 1) continue;
    s->over = rc == 0;
    shmt_meter_turn(s->seat, NULL);
    return rc;
}
