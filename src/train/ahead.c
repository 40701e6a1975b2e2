/* Looking ahead from item to item: see ahead.h. Called by job.c. */
#include "train/ahead.h"

#include <string.h>

#include "base/checked.h"
#include "consistency/chunks.h"
#include "ps/session.h"
#include "ps/strata.h"

#define CACHE_LINE 64
#define MOST_LINES 16 /* of one array of an example */

/* Places *first_out .. *first_out + *n_out - 1; 0 of them: there is no next item, or nothing is known of it. */
static void find_next(const shmtrain_session *s, const struct shmtrain_work *work, uint64_t *first_out, uint64_t *n_out) {
    const struct shmt_spec *spec = s->spec;
    uint32_t mine, end, chunk = work->chunk + 1;
    uint64_t step = work->first / spec->batch, from, to;
    *n_out = 0;
    shmt_chunk_share(spec->n_chunks, s->seat->index, s->seat->n_present, &mine, &end);
    if (chunk >= end) {
        chunk = mine;
        step++;
    }
    if (step >= shmt_spec_steps(spec)) return;
    shmt_chunk_examples(spec->batch, spec->n_chunks, chunk, shmt_spec_examples_of_step(spec, step), &from, &to);
    *first_out = step * spec->batch + from;
    *n_out = to - from <= SHMT_AHEAD_EXAMPLES ? to - from : 0;
}

static void fetch(const void *from, uint64_t bytes) {
    const uint64_t lines = shmt_min_u64(bytes / CACHE_LINE + 1, MOST_LINES);
    for (uint64_t i = 0; i < lines; i++) __builtin_prefetch((const char *)from + i * CACHE_LINE, 0, 2);
}

static void fetch_example(const struct shmtrain_data *data, uint32_t i) {
    const uint64_t from = data->start[i], n = data->start[i + 1] - from;
    fetch(data->id + from, n * sizeof *data->id);
    if (data->value) fetch(data->value + from, n * sizeof *data->value);
    __builtin_prefetch(data->label + i, 0, 2);
}

static void translate(const struct shmt_job *job, uint32_t *example, uint64_t n) {
    if (job->train_example)
        for (uint64_t k = 0; k < n; k++) example[k] = job->train_example[example[k]];
}

static void look(struct shmt_ahead *ahead, const shmtrain_session *s, const struct shmt_job *job,
                 const struct shmtrain_work *work) {
    find_next(s, work, &ahead->first, &ahead->n);
    ahead->epoch = work->epoch;
    if (ahead->n == 0) return;
    shmt_strata_order(s->spec, work->epoch, ahead->first, ahead->n, ahead->example);
    translate(job, ahead->example, ahead->n);
    for (uint64_t k = 0; k < ahead->n; k++) fetch_example(job->train, ahead->example[k]);
}

int shmt_ahead_order(struct shmt_ahead *ahead, shmtrain_session *s, const struct shmt_job *job,
                     const struct shmtrain_work *work, uint32_t *example_out) {
    if (ahead->n == work->n && ahead->first == work->first && ahead->epoch == work->epoch) {
        memcpy(example_out, ahead->example, work->n * sizeof *example_out);
    } else {
        const int rc = shmtrain_order(s, work, example_out);
        if (rc < 0) return rc;
        translate(job, example_out, work->n);
    }
    if (shmt_policy_is_batched(&s->spec->policy) && job->train->start) look(ahead, s, job, work);
    return 0;
}
