/* The parameters of the best epoch: see best.h. */
#include "api/best.h"

#include <math.h>

#include "base/checked.h"
#include "base/line.h"

int shmt_best_plan(struct shmtrain_store *store, bool validates) {
    struct shmt_spec *spec = &store->spec;
    uint64_t floats = 0;
    store->job.best_off = 0;
    if (store->config.keep != SHMT_KEEP_BEST) return 0;
    if (store->config.checkpoint[0] != '\0') /* a run that goes on from one has not seen the epochs before */
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "--keep best goes without --checkpoint: leave out one of them");
    if (!validates)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "--keep best is of the validation loss: add --valid FILE, or a share, as in --valid 0.1");
    for (uint32_t t = 0; t < spec->n_tables; t++) floats += shmt_table_floats(&spec->table[t]);
    store->job.best_off = shmt_ceil_div(spec->board_bytes, SHMT_LINE) * SHMT_LINE;
    spec->board_bytes = store->job.best_off + floats * sizeof(float);
    return 0;
}

void shmt_best_restore(struct shmtrain_store *store) {
    struct shmtrain_report *r = &store->report;
    const struct shmt_spec *spec = &store->spec;
    const float *at;
    if (store->job.best_off == 0) return;
    shmt_report_progress(store); /* who listens to epochs hears of all */
    const uint32_t best = shmt_job_best_epoch(r->epoch, r->n_epochs);
    if (best == 0) return;
    r->kept_epoch = best;
    if (best == r->n_epochs) return;
    at = (const float *)(const void *)((unsigned char *)store->ops->board(store->job.store) + store->job.best_off);
    for (uint32_t t = 0; t < spec->n_tables; at += shmt_table_floats(&spec->table[t++]))
        (void)store->ops->write(store->job.store, (int)t, 0, spec->table[t].rows, at);
}
