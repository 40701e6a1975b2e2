/* The end of an epoch: losses are added up, and the validation data is scored by all workers together on quiet parameters.
 *
 * Chunks of validation examples are fixed, each is added up by one worker, and the chunks along a tree: the printed numbers
 * have the same bits for every number of workers, as far as the parameters have. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "train/job.h"
#include "base/point.h"
#include "math/auc.h"
#include "math/tree.h"
#include "ps/far.h"
#include "sync/host.h"

/* Whether the outputs of one example say its label. The larger label of two is that of the training data: validation data may
 * lack it. */
static bool is_right(const struct shmt_job *job, const float *output, float label) {
    uint32_t best = 0;
    if (job->model->task == SHMTRAIN_BINARY) return (output[0] > job->model->threshold) == (label == job->train->label_high);
    for (uint32_t c = 1; c < job->board.n_outputs; c++)
        if (output[c] > output[best]) best = c;
    return job->settings.classes[best] == label;
}

/* What a chunk gave. */
struct sums {
    double loss;
    uint64_t right;
};

int shmt_job_score_batch(shmtrain_session *s, const struct shmt_job *job, const struct shmtrain_batch *batch, float *score_out,
                         double *loss_out) {
    s->inside = "the score of a model";
    const struct shmtrain_pass pass = shmt_job_pass(s, job, 0);
    const int rc = job->model->score(s, &pass, batch, score_out, loss_out);
    return shmt_session_take_result(s, s->inside, rc);
}

/* Examples from .. to - 1 by the model; scores go to the board. */
static int score_by_model(shmtrain_session *s, const struct shmt_job *job, void *board, uint64_t from, uint64_t to,
                          struct sums *out) {
    const uint32_t outputs = job->board.n_outputs;
    float *score = shmt_board_scores(board, &job->board);
    for (uint64_t at = from; at < to; at += SHMTRAIN_MODEL_GROUP) {
        const struct shmtrain_batch batch = {.size = sizeof(struct shmtrain_batch),
                                             .data = job->valid,
                                             .example = job->valid_example ? job->valid_example + at : NULL,
                                             .first = at,
                                             .n = (uint32_t)shmt_min_u64(SHMTRAIN_MODEL_GROUP, to - at)};
        double loss = 0;
        const int rc = shmt_job_score_batch(s, job, &batch, score + at * outputs, &loss);
        if (rc < 0) return rc;
        out->loss += loss;
    }
    for (uint64_t i = from; i < to && job->model->task != SHMTRAIN_REGRESSION; i++)
        out->right += is_right(job, score + i * outputs, job->valid_label[i]);
    return 0;
}

/* The same by the application's function. */
static int score_by_function(shmtrain_session *s, const struct shmt_job *job, uint64_t from, uint64_t to, struct sums *out) {
    s->inside = "the validation function";
    int rc = job->scorer(s, job->scorer_arg, from, to - from, &out->loss, &out->right);
    rc = shmt_session_take_result(s, s->inside, rc);
    if (rc < 0) return rc;
    if (!isfinite(out->loss))
        return shmt_fail(&s->error, SHMTRAIN_E_NUMBERS, "the validation function's loss of examples %llu to %llu is %s",
                         (unsigned long long)from, (unsigned long long)to - 1, isnan(out->loss) ? "not a number" : "infinite");
    if (out->right <= to - from) return 0;
    return shmt_refuse(&s->error, "the validation function says that %llu of %llu predictions are right",
                       (unsigned long long)out->right, (unsigned long long)(to - from));
}

/* One chunk: its scores and sums go to the board. Before it the data was as it should be, and behind it, it still is. */
static int score_chunk(shmtrain_session *s, const struct shmt_job *job, void *board, uint64_t chunk) {
    const uint64_t from = chunk * job->board.chunk, to = shmt_min_u64(from + job->board.chunk, job->board.n_valid);
    struct sums sums = {0};
    int rc = shmt_job_check_data(s, &job->valid_guard);
    if (rc == 0) rc = job->model ? score_by_model(s, job, board, from, to, &sums) : score_by_function(s, job, from, to, &sums);
    if (rc == 0) rc = shmt_job_check_data(s, &job->valid_guard);
    if (rc < 0) return rc;
    shmt_board_losses(board, &job->board)[chunk] = sums.loss;
    SHMT_POINT("score:before");
    /* release: scores and loss are whole; pairs with the acquire in is_scored */
    store_release(&shmt_board_notes(board, &job->board)[chunk], ((uint64_t)s->epoch + 1) << 32 | sums.right);
    SHMT_POINT("score:after");
    return 0;
}

int shmt_job_score(shmtrain_session *s, const struct shmt_job *job, uint64_t part, uint64_t n_parts) {
    const uint64_t n = job->board.n_chunks;
    void *board = shmt_job_board(job);
    for (uint64_t chunk = n * part / n_parts; chunk < n * (part + 1) / n_parts; chunk++) {
        const int rc = score_chunk(s, job, board, chunk);
        if (rc < 0) return rc;
    }
    return 0;
}

static int measure_auc(shmtrain_session *s, const struct shmt_job *job, void *board, double *out) {
    const uint64_t n = job->board.n_valid;
    const int rc = shmt_job_check_data(s, &job->valid_guard); /* it has the labels */
    if (rc < 0) return rc;
    void *scratch = malloc(shmt_auc_scratch_bytes(n));
    if (!scratch) return shmt_no_memory(&s->error, "to sort the scores of the validation data");
    *out = shmt_auc(shmt_board_scores(board, &job->board), job->valid_label, job->train->label_high, n, scratch);
    free(scratch);
    return shmt_job_check_data(s, &job->valid_guard);
}

/* A guest that died in the middle of evaluation has left chunks behind, with what they had in an earlier epoch. */
static bool is_scored(const shmtrain_session *s, const struct shmt_job *job, void *board, uint64_t chunk) {
    return load_acquire(&shmt_board_notes(board, &job->board)[chunk]) >> 32 == (uint64_t)s->epoch + 1;
}

static int judge(shmtrain_session *s, const struct shmt_job *job, void *board, struct shmtrain_epoch *out) {
    const uint64_t n_chunks = job->board.n_chunks;
    const double n = (double)job->board.n_valid;
    uint64_t right = 0;
    for (uint64_t chunk = 0; chunk < n_chunks; chunk++) {
        const int rc = is_scored(s, job, board, chunk) ? 0 : score_chunk(s, job, board, chunk);
        if (rc < 0) return rc;
        right += load_relaxed(&shmt_board_notes(board, &job->board)[chunk]) & UINT32_MAX; /* acquired above, or mine */
    }
    out->valid_loss = shmt_tree_sum(shmt_board_losses(board, &job->board), n_chunks) / n;
    const bool counts = job->model ? job->model->task != SHMTRAIN_REGRESSION : job->classifies;
    if (counts) out->valid_accuracy = (double)right / n;
    return job->model && job->model->task == SHMTRAIN_BINARY ? measure_auc(s, job, board, &out->valid_auc) : 0;
}

/* Nobody begins another epoch then: the chief says so to all in `turn`, which follows. */
static void end_if_reached(const struct shmt_job *job, struct shmt_board *board, uint32_t n,
                           const struct shmt_solve_state *fit) {
    if (shmt_board_epochs(board, &job->board)[n - 1].partial) return; /* it has ended for another reason */
    enum shmt_end end = shmt_goal_reached(&job->goal, shmt_board_epochs(board, &job->board), n);
    if (fit && fit->end != SHMT_SOLVE_GOES_ON) end = fit->end == SHMT_SOLVE_PROVED ? SHMT_END_TOLERANCE : SHMT_END_PRECISION;
    if (end == SHMT_END_NOT || (n == job->spec->epochs && !fit)) return;
    store_relaxed(&board->ended_by, end); /* published with the record */
    set_bits_relaxed(job->backend->store->stop_word(job->store), SHMT_STOP_REACHED);
}

/* A fit takes no work items: what it has found says its state. */
static void add_fit(const struct shmt_job *job, const struct shmt_solve_state *fit, struct shmtrain_epoch *out) {
    out->partial = fit->stopped;
    out->examples = job->spec->n_examples;
    out->train_loss = fit->loss;
    out->objective = fit->published;
    out->bound = fit->begun ? fit->dual : NAN;
}

uint32_t shmt_job_best_epoch(const struct shmtrain_epoch *epoch, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(epoch[i].valid_loss) && (best == 0 || epoch[i].valid_loss < epoch[best - 1].valid_loss)) best = i + 1;
    return best;
}

/* Parameters are quiet. A copy that a life did not finish is made again by the next one: the record is pinned up behind it. */
static void keep_best(const struct shmt_job *job, void *board, uint32_t epoch) {
    const struct shmt_spec *spec = job->spec;
    float *to = (float *)(void *)((unsigned char *)board + job->best_off);
    if (job->best_off == 0 || shmt_job_best_epoch(shmt_board_epochs(board, &job->board), epoch + 1) != epoch + 1) return;
    for (uint32_t t = 0; t < spec->n_tables; to += shmt_table_floats(&spec->table[t++]))
        (void)job->backend->store->read(job->store, (int)t, 0, spec->table[t].rows, to);
}

/* The epoch's share of lost updates, for their spread. Parameters are quiet. */
static void note_lost(const struct shmt_job *job, struct shmt_board *board) {
    uint64_t touched = 0, counted;
    if (!job->backend->store->lost(job->store, false, &counted)) return;
    /* relaxed: all have met */
    for (uint32_t seat = 0; seat < job->spec->n_seats; seat++)
        touched += load_relaxed(&job->backend->store->counters(job->store, seat)->touched);
    if (touched > board->touched && counted >= board->counted) {
        const double share = shmt_board_lost_share(counted - board->counted, touched - board->touched);
        board->lost_lowest = board->lost_epochs == 0 ? share : fmin(board->lost_lowest, share);
        board->lost_highest = fmax(board->lost_highest, share);
        board->lost_epochs++;
    }
    board->touched = touched;
    board->counted = counted;
}

/* What the link has done in this epoch: it has met us behind its last turn. */
static void note_traffic(const struct shmt_job *job, struct shmtrain_epoch *out) {
    struct shmt_far_traffic *t = job->backend->far ? job->backend->far->traffic(job->store) : NULL;
    if (!t) return;
    /* relaxed, all: we have met; and the chief's own words */
    const uint64_t sent = load_relaxed(&t->sent_bytes), received = load_relaxed(&t->received_bytes),
                   turns = load_relaxed(&t->turns);
    out->sent_bytes = sent - load_relaxed(&t->told_sent_bytes);
    out->received_bytes = received - load_relaxed(&t->told_received_bytes);
    out->exchanges = turns - load_relaxed(&t->told_turns);
    store_relaxed(&t->told_sent_bytes, sent);
    store_relaxed(&t->told_received_bytes, received);
    store_relaxed(&t->told_turns, turns);
}

/* The chief pins up what the epoch gave, and tells the application. */
static int record_epoch(shmtrain_session *s, const struct shmt_job *job, uint32_t epoch, uint64_t trained_ns,
                        const struct shmt_solve_state *fit) {
    void *memory = shmt_job_board(job);
    struct shmt_board *board = memory;
    struct shmt_tally tally = {0};
    if (load_relaxed(&board->epochs_done) > epoch) return 0; /* by an earlier life; relaxed: the chief's own word */
    int rc = job->backend->seat->tally(s->seat, &tally);
    if (rc < 0) return rc;
    struct shmtrain_epoch record = {.epoch = epoch + 1,
                                    .partial = tally.examples + tally.lost < job->spec->n_examples,
                                    .examples = tally.examples,
                                    .seconds = (double)trained_ns * 1e-9,
                                    .train_loss = tally.examples ? tally.loss / (double)tally.examples : NAN,
                                    .valid_loss = NAN,
                                    .valid_accuracy = NAN,
                                    .valid_auc = NAN,
                                    .objective = NAN,
                                    .bound = NAN};
    if (fit) add_fit(job, fit, &record);
    if (shmt_job_validates(job) && (rc = judge(s, job, memory, &record)) < 0) return rc;
    note_traffic(job, &record);
    shmt_board_epochs(memory, &job->board)[epoch] = record;
    note_lost(job, board);
    keep_best(job, memory, epoch);
    end_if_reached(job, board, epoch + 1, fit);
    SHMT_POINT("pin-up:before");
    /* release: the record is whole; pairs with the application's acquire */
    store_release(&board->epochs_done, epoch + 1);
    SHMT_POINT("pin-up:after");
    if (job->notify) job->notify(job->notify_arg);
    return 0;
}

/* A guest has the run's model, and not its maker's function: then own seats share the work. */
static int score_part(shmtrain_session *s, const struct shmt_job *job) {
    const struct shmt_spec *spec = job->spec;
    if (job->model) return shmt_job_score(s, job, s->seat->index, s->seat->n_present);
    return job->scorer ? shmt_job_score(s, job, s->seat->rank, spec->n_seats - spec->n_guests) : 0;
}

int shmt_job_evaluate(shmtrain_session *s, const struct shmt_job *job, uint32_t epoch, uint64_t started_ns,
                      const struct shmt_solve_state *fit) {
    const uint64_t trained_ns = started_ns ? shmt_now_ns() - started_ns : 0;
    if (shmt_job_validates(job)) {
        const enum shmt_task task = shmt_session_stage(s, SHMT_STAGE_SCORE);
        int rc = task == SHMT_TASK_ALL ? score_part(s, job) : 0;
        if (rc == 0 && task != SHMT_TASK_NONE) rc = shmt_session_meet(s);
        if (rc < 0) return rc;
    }
    return s->seat->rank == 0 ? record_epoch(s, job, epoch, trained_ns, fit) : 0;
}
