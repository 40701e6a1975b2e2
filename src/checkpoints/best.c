/* The parameters of the best epoch: see best.h. */
#include "checkpoints/best.h"

#include "watching/report.h"

#include "base/checked.h"
#include "base/line.h"

int shmt_best_plan(struct shmt_run *run, bool validates) {
    struct shmt_spec *spec = &run->spec;
    uint64_t floats = 0;
    run->job.best_off = 0;
    if (run->config->keep != SHMT_KEEP_BEST) return 0;
    if (run->config->checkpoint[0] != '\0') /* a run that goes on from one has not seen the epochs before */
        return shmt_refuse(&run->call->error, "--keep best goes without --checkpoint: leave out one of them");
    if (!validates)
        return shmt_refuse(&run->call->error,
                           "--keep best is of the validation loss: add --valid FILE, or a share, as in --valid 0.1");
    for (uint32_t t = 0; t < spec->n_tables; t++) floats += shmt_table_floats(&spec->table[t]);
    run->job.best_off = shmt_ceil_div(spec->board_bytes, SHMT_LINE) * SHMT_LINE;
    spec->board_bytes = run->job.best_off + floats * sizeof(float);
    return 0;
}

void shmt_best_restore(struct shmt_run *run) {
    struct shmtrain_report *r = &run->report;
    const struct shmt_spec *spec = &run->spec;

    if (run->job.best_off == 0) return;
    shmt_report_progress(run); /* who listens to epochs hears of all */
    const uint32_t best = shmt_job_best_epoch(r->epoch, r->n_epochs);
    if (best == 0) return;
    r->kept_epoch = best;
    if (best == r->n_epochs) return;
    const unsigned char *board = shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_BOARD);
    const float *at = (const float *)(const void *)(board + run->job.best_off);
    for (uint32_t t = 0; t < spec->n_tables; at += shmt_table_floats(&spec->table[t++]))
        (void)run->backend->store->write(run->job.store, (int)t, 0, spec->table[t].rows, at);
}
