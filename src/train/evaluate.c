/* The end of an epoch: losses are added up, and the validation data is scored by all workers together on quiet parameters.
 *
 * Chunks of validation examples are fixed, each is added up by one worker, and the chunks along a tree: the printed numbers
 * have the same bits for every number of workers, as far as the parameters have. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "math/auc.h"
#include "math/tree.h"
#include "train/job.h"

static int score_chunk(shmtrain_session *s, const struct shmt_job *job, uint64_t chunk, float *score, double *loss_out) {
    const uint64_t from = chunk * SHMT_VALID_CHUNK, to = shmt_min_u64(from + SHMT_VALID_CHUNK, job->board.n_valid);
    double sum = 0;
    for (uint64_t at = from; at < to; at += SHMTRAIN_MODEL_GROUP) {
        const struct shmtrain_batch batch = {.data = job->valid,
                                             .example = job->valid_example ? job->valid_example + at : NULL,
                                             .first = at,
                                             .n = (uint32_t)shmt_min_u64(SHMTRAIN_MODEL_GROUP, to - at)};
        double loss = 0;
        const int rc = job->model->score(s, &batch, &job->settings, score + at, &loss);
        if (rc < 0) return rc;
        sum += loss;
    }
    *loss_out = sum;
    return 0;
}

/* My share of the chunks. */
static int score_share(shmtrain_session *s, const struct shmt_job *job, void *board) {
    const uint64_t n = job->board.n_chunks, seats = job->spec->n_seats, rank = s->seat->rank;
    double *loss = shmt_board_losses(board, &job->board);
    for (uint64_t chunk = n * rank / seats; chunk < n * (rank + 1) / seats; chunk++) {
        const int rc = score_chunk(s, job, chunk, shmt_board_scores(board, &job->board), &loss[chunk]);
        if (rc < 0) return rc;
    }
    return 0;
}

static double accuracy_of(const struct shmt_job *job, const float *score) {
    const uint64_t n = job->board.n_valid;
    uint64_t right = 0;
    for (uint64_t i = 0; i < n; i++)
        right += (score[i] > job->model->threshold) == (job->valid_label[i] == job->train->label_high);
    return (double)right / (double)n;
}

static int judge(shmtrain_session *s, const struct shmt_job *job, void *board, struct shmtrain_epoch *out) {
    const float *score = shmt_board_scores(board, &job->board);
    out->valid_loss = shmt_tree_sum(shmt_board_losses(board, &job->board), job->board.n_chunks) / (double)job->board.n_valid;
    if (isnan(job->model->threshold)) return 0; /* no classifier */
    out->valid_accuracy = accuracy_of(job, score);
    void *scratch = malloc(shmt_auc_scratch_bytes(job->board.n_valid));
    if (!scratch) return shmt_fail(&s->error, SHMTRAIN_E_MEMORY, "no memory to sort the scores of the validation data");
    out->valid_auc = shmt_auc(score, job->valid_label, job->train->label_high, job->board.n_valid, scratch);
    free(scratch);
    return 0;
}

/* The chief pins up what the epoch gave, and tells the application. */
static int pin_up(shmtrain_session *s, const struct shmt_job *job, uint32_t epoch, uint64_t trained_ns) {
    void *memory = job->ops->board(job->store);
    struct shmt_board *board = memory;
    struct shmt_tally tally = {0};
    int rc = job->ops->tally(s->seat, &tally);
    if (rc < 0) return rc;
    struct shmtrain_epoch record = {.epoch = epoch + 1,
                                    .partial = tally.examples < job->spec->n_examples,
                                    .examples = tally.examples,
                                    .seconds = (double)trained_ns * 1e-9,
                                    .train_loss = tally.examples ? tally.loss / (double)tally.examples : NAN,
                                    .valid_loss = NAN,
                                    .valid_accuracy = NAN,
                                    .valid_auc = NAN};
    if (job->valid && (rc = judge(s, job, memory, &record)) < 0) return rc;
    shmt_board_epochs(memory, &job->board)[epoch] = record;
    /* release: the record is whole; pairs with the application's acquire */
    store_release(&board->epochs_done, epoch + 1);
    if (job->notify) job->notify(job->notify_arg);
    return 0;
}

int shmt_job_evaluate(shmtrain_session *s, const struct shmt_job *job, uint32_t epoch, uint64_t started_ns) {
    const uint64_t trained_ns = started_ns ? shmt_now_ns() - started_ns : 0;
    if (job->valid) {
        int rc = score_share(s, job, job->ops->board(job->store));
        if (rc == 0) rc = shmt_session_meet(s);
        if (rc < 0) return rc;
    }
    return s->seat->rank == 0 ? pin_up(s, job, epoch, trained_ns) : 0;
}
