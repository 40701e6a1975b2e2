/* Tables and their slices: see table.h. */
#include "update/table.h"

#include <math.h>
#include <shmtrain/table.h>
#include <stdbool.h>

#include <string.h>

#include "base/checked.h"
#include "base/line.h"

enum { LINE_FLOATS = SHMT_LINE / sizeof(float) };

static int check_name(const char *name, size_t size, struct shmt_error *e) {
    static const char GOOD[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    const size_t length = strnlen(name, size);
    size_t good = 0;
    if (length == 0) return shmt_refuse(e, "a table needs a name");
    while (good < length && strchr(GOOD, name[good])) good++;
    if (good < length) /* before its length: it stands in the sentence */
        return shmt_refuse(
            e, "the table name \"%.*s...\" continues with a character that is not a letter, a digit, '_', '-' or '.'",
            (int)good, name);
    if (length == size) return shmt_refuse(e, "table \"%.31s...\": a name has at most %zu characters", name, size - 1);
    return 0;
}

int shmt_table_check(const struct shmt_table_spec *table, struct shmt_error *e) {
    uint64_t floats, bytes;
    const int rc = check_name(table->name, sizeof table->name, e);
    if (rc < 0) return rc;
    if (table->rows == 0 || table->width == 0)
        return shmt_refuse(e, "table \"%s\" has no %s: give at least 1", table->name, table->rows == 0 ? "rows" : "width");
    if (!shmt_mul_u64(table->rows, table->width, &floats) || !shmt_mul_u64(floats, sizeof(float), &bytes) ||
        !shmt_round_up_u64(bytes, SHMT_LINE, &bytes) || bytes > INT64_MAX)
        return shmt_refuse(e, "table \"%s\" is too large: %llu rows of width %u need more than 2^63 bytes", table->name,
                           (unsigned long long)table->rows, table->width);
    return 0;
}

uint64_t shmt_table_floats(const struct shmt_table_spec *table) { return table->rows * table->width; }

void shmt_slice(uint64_t n, uint32_t part, uint32_t n_parts, uint64_t *from_out, uint64_t *to_out) {
    const uint64_t lines = shmt_ceil_div(n, LINE_FLOATS), each = lines / n_parts, longer = lines % n_parts;
    const uint64_t first = part * each + shmt_min_u64(part, longer), end = first + each + (part < longer);
    *from_out = shmt_min_u64(first * LINE_FLOATS, n);
    *to_out = shmt_min_u64(end * LINE_FLOATS, n);
}

int shmt_tuning_check(const struct shmt_tuning *tuning, const char *name, struct shmt_error *e) {
    const bool share = tuning->role != SHMTRAIN_STATISTIC || (tuning->rate > 0 && tuning->rate <= 1);
    if (tuning->role > SHMTRAIN_FROZEN)
        return shmt_refuse(e, "table \"%.31s\" has the role %u, which is none", name, tuning->role);
    if (!isfinite(tuning->rate) || tuning->rate < 0 || !share)
        return shmt_refuse(e, "table \"%.31s\" has a rate of %g: use 0 or more, and of a statistic up to 1", name,
                           (double)tuning->rate);
    if (!isfinite(tuning->decay) || tuning->decay < 0)
        return shmt_refuse(e, "table \"%.31s\" has a decay of %g: use 0 or more", name, (double)tuning->decay);
    return 0;
}
