/* Copies of reports: see kept.h. */
#include "cli/compare/kept.h"

#include <stdlib.h>
#include <string.h>

/* A copy of `bytes` bytes, or NULL where there is nothing to copy; what failed is noted. */
static void *keep(struct kept *kept, const void *from, size_t bytes) {
    if (!from || bytes == 0 || kept->failed) return NULL;
    void *copy = kept->n_parts < KEPT_PARTS ? malloc(bytes) : NULL;
    if (!copy) {
        kept->failed = true;
        return NULL;
    }
    memcpy(copy, from, bytes);
    kept->part[kept->n_parts++] = copy;
    return copy;
}

static void keep_text(struct kept *kept, const char **text) {
    const char *copy = *text ? keep(kept, *text, strlen(*text) + 1) : NULL;
    *text = copy ? copy : "";
}

static void keep_texts(struct kept *kept) {
    struct shmtrain_report *r = &kept->report;
    const char **const texts[] = {&r->mode,         &r->write,         &r->backend,   &r->model, &r->optimizer,
                                  &r->schedule,     &r->mode_reason,   &r->replicas,  &r->merge, &r->late,
                                  &r->slow,         &r->copies_reason, &r->unwritten, &r->numa,  &r->blas,
                                  &r->dataset.name, &r->valid.name,    &r->sim};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) keep_text(kept, texts[i]);
}

static void keep_arrays(struct kept *kept) {
    struct shmtrain_report *r = &kept->report;
    r->epoch = keep(kept, r->epoch, r->n_epochs * sizeof *r->epoch);
    r->worker = keep(kept, r->worker, r->n_workers * sizeof *r->worker);
    r->delay.bucket = keep(kept, r->delay.bucket, r->delay.n_buckets * sizeof *r->delay.bucket);
    if (!r->worker) r->n_workers = 0;
    if (!r->delay.bucket) r->delay.n_buckets = 0;
}

struct kept *kept_create(const struct shmtrain_report *report) {
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept) return NULL;
    kept->report = *report;
    kept->json = shmtrain_report_json(report);
    keep_texts(kept);
    keep_arrays(kept);
    if (kept->json && !kept->failed) return kept;
    kept_destroy(kept);
    return NULL;
}

void kept_destroy(struct kept *kept) {
    if (!kept) return;
    for (unsigned i = 0; i < kept->n_parts; i++) free(kept->part[i]);
    free(kept->json);
    free(kept);
}
