/* One line of LIBSVM text to one row.
 *
 *     line    = [ label [ "qid:" digits ] { index ":" value } ] [ "#" anything ]
 *
 * with spaces or tabs between the words; "\r" before the line break is accepted. Called for each line of a file (data/libsvm.c) or a
 * stream. It is a pure function of the line, works in memory of its caller, and does not look at what stands behind the line break
 * with which the line must end, though it may read SHMT_LINE_PAD bytes of it. */
#pragma once

#include <locale.h>

#include "files/row.h"

/* Returns 0 or SHMTRAIN_E_DATA with *fault_out. `line` ends with a line break; `c_locale`: the "C" locale. */
int shmt_libsvm_parse(const char *line, locale_t c_locale, struct shmt_row *row_out, struct shmt_line_fault *fault_out);
