/* One line of a table as text to one row, by a plan. Called for each line of a file (data/csv.c) or a stream. It is a pure function
 * of line and plan, works in memory of its caller, and never looks behind the line break with which the line must end. */
#pragma once

#include <locale.h>

#include "files/csv_plan.h"
#include "files/row.h"

/* The most nonzeros of a line of so many bytes: a missing number is two, and need not even be a byte; one that is there may be
 * marked. */
static inline uint64_t shmt_csv_row_max(const struct shmt_csv_plan *plan, uint64_t line_bytes) {
    return SHMT_ROW_MAX(line_bytes) + 2 * (uint64_t)plan->n_columns;
}

/* Returns 0 or with *fault_out SHMTRAIN_E_DATA, or SHMTRAIN_E_USAGE where lines must not be left out. `line` ends with a
 * line break; `c_locale`: the "C" locale. */
int shmt_csv_parse(const struct shmt_csv_plan *plan, const char *line, locale_t c_locale, struct shmt_row *row_out,
                   struct shmt_line_fault *fault_out);
