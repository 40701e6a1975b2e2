/* The body of one worker: see job.h. Evaluation is in evaluate.c. */
#include "train/job.h"

#include <math.h>

#include "base/own.h"
#include "train/ahead.h"
#include "base/point.h"
#include "sync/host.h"

/* What one worker needs while it works; private to it. */
struct body {
    const struct shmt_job *job;
    shmtrain_session session;
    struct shmt_fitting fitting; /* of an exact fit */
    struct shmt_slow slow;
    struct shmt_bell bell;
    uint32_t *example; /* (largest item) the order of the item in hand */
    struct shmt_ahead ahead;
    uint64_t guard_asked_ns;
};

static int end_epoch(shmtrain_session *s, void *arg, uint32_t epoch) {
    const struct body *body = arg;
    struct shmt_board *board = shmt_job_board(body->job);
    /* relaxed, all: the chief's own word, also of an earlier life, or all have met since it was written */
    uint64_t began_ns = load_relaxed(&board->epoch_ns);
    if (began_ns == 0) began_ns = load_relaxed(&board->first_step_ns);
    if (epoch == s->spec->first_epoch && began_ns) began_ns -= body->job->before_ns;
    const bool ours = body->job->model && !body->job->is_offered; /* whose losses have been looked at, item by item */
    int rc = ours ? 0 : shmt_job_check_numbers(s, epoch);
    if (rc == 0) rc = shmt_job_evaluate(s, body->job, epoch, began_ns, body->job->fit ? &body->fitting.state : NULL);
    SHMT_POINT("epoch-end:before");
    if (s->seat->rank == 0) store_relaxed(&board->epoch_ns, shmt_now_ns()); /* the next one */
    SHMT_POINT("epoch-end:after");
    return rc;
}

/* Its program shows the epochs from this one on. */
static int begin_as_guest(struct body *body) {
    const int rc = shmt_session_admit(&body->session);
    const uint32_t mine = body->session.epoch + 1;
    uint32_t first = 0; /* of the others, so far */
    if (rc < 0 || body->session.over) return rc;
    /* relaxed: one number, for display */
    while ((first == 0 || mine < first) && !swap_relaxed(body->job->admitted, &first, mine)) continue;
    return rc;
}

/* All begin together: on small data who starts first would else have done the others' work before they are there. The first
 * epoch begins when the first of them goes on, which on a busy machine may be long before the chief gets a processor. Guests
 * come when the others have begun. */
static int begin(struct body *body) {
    if (body->job->guest) return begin_as_guest(body);
    /* an earlier life has passed it */
    if (shmt_session_stage(&body->session, SHMT_STAGE_BEGIN) == SHMT_TASK_NONE) return 0;
    const int rc = shmt_session_meet(&body->session);
    const uint64_t now_ns = shmt_now_ns();
    SHMT_POINT("begin:met");
    uint64_t not_yet = 0; /* or whoever was first */
    /* relaxed: one number, read by the chief behind another meeting, and for display */
    while (rc == 0 && not_yet == 0 && !swap_relaxed(&shmt_job_board(body->job)->first_step_ns, &not_yet, now_ns)) continue;
    SHMT_POINT("begin:after");
    return rc;
}

static int refuse_loss(struct body *body, double loss) {
    char remedy[96];
    shmt_job_remedy(body->job, remedy, sizeof remedy);
    return shmt_fail(&body->session.error, SHMTRAIN_E_NUMBERS, "the loss became %s in epoch %u: %s",
                     isnan(loss) ? "not a number" : "infinite", body->session.work.epoch + 1, remedy);
}

static int refuse_data(shmtrain_session *s, const struct shmt_guarded *data) {
    return shmt_fail(&s->error, SHMTRAIN_E_DATA, "%s" SHMT_GUARD_BROKEN, data->name);
}

int shmt_job_check_data(shmtrain_session *s, const struct shmt_guarded *data) {
    return !data->name || shmt_guard_holds(data->fd) ? 0 : refuse_data(s, data);
}

static int check_train(struct body *body) {
    const struct shmt_guarded *data = &body->job->train_guard;
    return !data->name || shmt_guard_held_lately(data->fd, &body->guard_asked_ns) ? 0 : refuse_data(&body->session, data);
}

int shmt_job_make_workspace(shmtrain_session *s, const struct shmt_job *job, const struct shmtrain_data *data, uint64_t n) {
    if (!job->model) return 0;
    return shmt_opened_make_workspace(&job->opened, data, &job->settings, n, &s->workspace, &s->error);
}

static int step_model(shmtrain_session *s, const struct shmt_job *job, const struct shmtrain_batch *batch, double *loss_out) {
    s->inside = "the step of a model";
    s->in_step = true;
    const struct shmtrain_pass pass = shmt_job_pass(s, job, 1);
    const int rc = job->model->step(s, &pass, batch, loss_out);
    s->in_step = false;
    return shmt_session_take_result(s, s->inside, rc);
}

/* One work item: order -> model step -> report -> clock. Before it the data was as it should be, and behind it, it still is. */
static int step(struct body *body, const struct shmtrain_work *work) {
    const struct shmt_job *job = body->job;
    shmtrain_session *s = &body->session;
    const struct shmtrain_batch batch = {
        .size = sizeof(struct shmtrain_batch), .data = job->train, .example = body->example, .n = (uint32_t)work->n};
    double loss = 0;
    int rc = check_train(body);
    if (rc == 0) rc = shmt_ahead_order(&body->ahead, s, job, work, body->example);
    if (rc == 0) rc = step_model(s, job, &batch, &loss);
    if (rc == 0) rc = check_train(body);
    if (rc == 0 && !isfinite(loss)) rc = refuse_loss(body, loss);
    if (rc == 0) rc = shmtrain_report(s, loss);
    return rc == 0 ? shmtrain_clock(s, NULL) : rc;
}

static int train_model(struct body *body) {
    const uint64_t most = shmt_spec_largest_piece(body->job->spec);
    struct shmtrain_work work;
    int rc;
    body->example = shmt_own_malloc(most, sizeof *body->example);
    if (!body->example) return shmt_no_memory(&body->session.error, "for the order of %llu examples", (unsigned long long)most);
    while ((rc = shmtrain_next(&body->session, &work)) == 1)
        if ((rc = step(body, &work)) < 0) break;
    shmt_own_free(body->example);
    return rc;
}

/* The application's function; it must have taken all its work, or the others would wait for it. */
static int run_worker(struct body *body) {
    int rc = body->job->worker(&body->session, body->job->worker_arg);
    if (rc == 0) rc = body->session.error.status; /* of a call whose failure it has not passed on, or of shmtrain_fail */
    if (rc < 0 || body->session.over) return rc;
    return shmt_refuse(&body->session.error, "the worker function returned %d before shmtrain_next had returned 0", rc);
}

static void copy_fit(shmtrain_session *s, void *arg) { shmt_fitting_copy(arg, s); }

static int run_body(struct body *body) {
    if (!body->job->fit) return body->job->model ? train_model(body) : run_worker(body);
    shmt_fitting_begin(&body->fitting, body->job, &body->session);
    body->session.copy = copy_fit;
    body->session.copy_arg = &body->fitting;
    return shmt_fitting_run(&body->fitting, &body->session);
}

/* Threads of one worker are slowed down alike. */
static void begin_slow(struct body *body, uint32_t rank) {
    const struct shmt_job *job = body->job;
    const uint32_t worker = rank / shmt_seats_of_worker(job->spec);
    if (!job->slow || !shmt_slow_concerns(job->slow, worker)) return;
    body->slow = (struct shmt_slow){.plan = job->slow,
                                    .worker = worker,
                                    .busy_ns = &body->session.seat->counters->busy_ns,
                                    .factor = 1,
                                    .stop = job->backend->store->stop_word(job->store),
                                    .abort = job->backend->store->abort_word(job->store)};
    body->session.slow = &body->slow;
}

int shmt_job_work(const struct shmt_job *job, uint32_t rank, uint32_t life, struct shmt_error *e) {
    struct body body = {.job = job};
    int rc = shmt_session_enter(&body.session, job->backend, job->store, job->spec, rank, life, e);
    if (rc < 0) return rc;
    body.session.epoch_end = end_epoch;
    body.session.epoch_end_arg = &body;
    body.session.kept = job->notify;
    body.session.kept_arg = job->notify_arg;
    body.session.hooks = job->hooks;
    if (job->ring_every > 0 && job->notify) {
        body.bell = (struct shmt_bell){.every = job->ring_every, .ring = job->notify, .arg = job->notify_arg};
        body.session.bell = &body.bell;
    }
    begin_slow(&body, rank);
    rc = begin(&body);
    if (rc == 0) rc = shmt_job_make_workspace(&body.session, job, job->train, shmt_spec_largest_piece(job->spec));
    if (rc == 0 && !body.session.over) rc = shmt_session_judge(&body.session, "a worker", run_body(&body));
    if (rc < 0) {
        *e = body.session.error;
        shmt_fail(e, rc, "the worker function ended with %s", shmtrain_status_name(rc));
    }
    shmt_own_free(body.session.workspace);
    shmt_session_leave(&body.session);
    return rc < 0 ? rc : 0;
}
