/* The data that a command is given: one file, or several, which are one to the library. */
#pragma once

#include "cli/arguments.h"

/* The operands from number `first` on as one name (shmtrain_data_files); `standard` (may be NULL) when there are none. Valid as
 * long as the program. NULL after one line on stderr. */
const char *files_named(const struct arguments *a, int first, const char *standard);

/* Data for those who name none: what the run's model can learn from. */
const char *files_standard(const struct arguments *a);

/* What they are called: the name, "standard input", "3 files (a.svm, b.svm, ...)". */
void files_title(const struct arguments *a, int first, const char *standard, char *out, size_t bytes);

/* 0, or 2 after one line: something among them is no file that can be read once more, and `command` does so. */
int files_refuse_pipes(const struct arguments *a, int first, const char *command);
