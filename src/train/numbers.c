/* Parameters that are no finite numbers, found where the application's functions or models have left them: see job.h. */
#include <math.h>
#include <stdio.h>

#include "train/job.h"
#include "base/checked.h"
#include "math/finite.h"

#define LARGE_LABELS 1e15

void shmt_job_remedy(const struct shmt_job *job, char *out, uint64_t bytes) {
    const bool numbers = job->model && job->model->task == SHMTRAIN_REGRESSION && job->train;
    const double size = numbers ? fmax(fabs((double)job->train->label_low), fabs((double)job->train->label_high)) : 0;
    if (size > LARGE_LABELS)
        snprintf(out, bytes, "labels are as large as %.4g: scale them to about 1", size);
    else
        snprintf(out, bytes, "use a smaller rate than %g (option rate)", (double)job->spec->rate.base);
}

static const char *name_of(const float *row, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (isnan(row[i])) return "not a number";
    return "infinite";
}

static uint64_t number_of_row(const struct shmt_bad_rows *rows, uint64_t lies_at) {
    for (uint64_t i = 0; i < rows->table->rows; i++)
        if (rows->place[i] == lies_at) return i;
    return lies_at;
}

int shmt_numbers_refuse(const struct shmt_bad_rows *rows, struct shmt_error *e) {
    const uint64_t width = rows->table->width;
    const float *row = rows->row;
    uint64_t number = rows->first;
    while (shmt_all_finite(row, width)) row += width, number++;
    if (rows->place) number = number_of_row(rows, number);
    if (rows->rate == 0)
        return shmt_fail(
            e, SHMTRAIN_E_NUMBERS,
            "%s row %llu of table \"%s\" is %s: the optimum is too far away for 32-bit numbers: scale the features and "
            "labels to about 1, or use more L2 (option l2, or a smaller C)",
            rows->when, (unsigned long long)number, rows->table->name, name_of(row, width));
    return shmt_fail(e, SHMTRAIN_E_NUMBERS, "%s row %llu of table \"%s\" is %s: use a smaller rate than %g (option rate)%s",
                     rows->when, (unsigned long long)number, rows->table->name, name_of(row, width), (double)rows->rate,
                     rows->pushed ? ", or look at what is pushed" : "");
}

/* Rows row .. row + n - 1 of table t; the first bad one is named. */
static int check_rows(shmtrain_session *s, int t, uint64_t row, uint64_t n, uint32_t epoch) {
    const float *at;
    uint64_t width;
    char when[32];
    const int rc = shmtrain_view(s, t, row, n, &at, &width, NULL);
    if (rc < 0 || shmt_all_finite(at, n * width)) return rc;
    snprintf(when, sizeof when, "after epoch %u", epoch + 1);
    const struct shmt_bad_rows bad = {.table = &s->spec->table[t],
                                      .row = at,
                                      .first = row,
                                      .when = when,
                                      .rate = s->spec->rate.base,
                                      .pushed = true,
                                      .place = s->backend->store->array(s->store, SHMT_ARRAY_ROW_PLACE, t, 0).at};
    return shmt_numbers_refuse(&bad, &s->error);
}

/* Own seats share the rows, so that all of them together read each parameter once. */
int shmt_job_check_numbers(shmtrain_session *s, uint32_t epoch) {
    const uint64_t seats = s->spec->n_seats - s->spec->n_guests, rank = s->seat->rank;
    int rc = 0;
    for (uint32_t t = 0; t < s->spec->n_tables && rank < seats && rc == 0; t++) {
        const uint64_t rows = s->spec->table[t].rows, each = shmt_ceil_div(rows, seats);
        const uint64_t first = shmt_min_u64(rows, rank * each), n = shmt_min_u64(each, rows - first);
        if (n > 0) rc = check_rows(s, (int)t, first, n, epoch);
    }
    return rc;
}
