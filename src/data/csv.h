/* Tables as text: which files are, and how a model's plan of one is looked at. */
#pragma once

#include "data/source.h"
#include "files/csv_plan.h"

/* Of a name that ends in .csv or .tsv, perhaps packed (.csv.gz): a comma or a tab; 0: any other. */
char shmt_csv_is_name(const char *name);

/* The plan of a table whose lines come one after the other, of the first one of them; `wish` as for a source, `name` for
 * sentences. *out: {0} at first. 1: the line is none of the table's rows (a header; or empty or "sep=;", and *out is not
 * made yet: out->column is NULL, and it is to be given again with the next line). 0: it is the first row. Errors: as
 * shmt_source_open_as. */
int shmt_csv_begin(const struct shmt_source_wish *wish, const char *name, const char *line, uint64_t bytes,
                   struct shmt_csv_plan *out, struct shmt_error *e);
