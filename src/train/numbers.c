/* Parameters that are no finite numbers, found where own worker functions have left them: see job.h. */
#include <math.h>

#include "base/checked.h"
#include "math/finite.h"
#include "train/job.h"

const char *shmt_not_finite_name(const float *row, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (isnan(row[i])) return "not a number";
    return "infinite";
}

/* Rows row .. row + n - 1 of table t; the first bad one is named. */
static int check_rows(shmtrain_session *s, int t, uint64_t row, uint64_t n, uint32_t epoch) {
    const float *at;
    uint64_t width;
    const int rc = shmtrain_view(s, t, row, n, &at, &width, NULL);
    if (rc < 0 || shmt_all_finite(at, n * width)) return rc;
    uint64_t i = 0;
    while (i + 1 < n && shmt_all_finite(at + i * width, width)) i++;
    return shmt_fail(&s->error, SHMTRAIN_E_NUMBERS,
                     "after epoch %u row %llu of table \"%s\" is %s: use a smaller rate than %g (option rate), or look at what "
                     "is pushed",
                     epoch + 1, (unsigned long long)(row + i), s->spec->table[t].name,
                     shmt_not_finite_name(at + i * width, width), (double)s->spec->rate.base);
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
