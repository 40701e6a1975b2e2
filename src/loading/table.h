/* Tables as text (CSV, TSV) in runs: from the options to a wish, and the line that says how one is read. */
#pragma once

#include <shmtrain/data_info.h>

#include "loading/load.h"
#include "data/source.h"
#include "files/csv_wish.h"

struct shmt_checkpoint_in;
struct shmt_parameters;

/* A wish with what it points to. */
struct shmt_table_wish {
    struct shmt_source_wish source;
    struct shmt_csv_wish csv;
};

/* From here to the end of a run its table is read so that the parameters that it begins with are of the same numbers: what missing
 * ones count as, and what columns are counted from, are as in the table of --init-from or of the checkpoint. */
void shmt_table_begin(struct shmt_loading *loading, const struct shmt_checkpoint_in *from);
void shmt_table_end(struct shmt_loading *loading);

/* What the options say of data. `table`: the plan of the table that the model was trained on, as text; NULL: none. Pointers
 * into `loading` and the arguments; *out must stay where it is. */
void shmt_table_wish(struct shmt_loading *loading, const char *name, unsigned how, const char *table,
                     struct shmt_table_wish *out);

/* A model of a table says which columns have categories, and this is to be scored: a --categorical that says anything else
 * would be ignored. Errors: _USAGE. */
int shmt_table_check_options(struct shmt_call *call, const struct shmt_config *config, struct shmt_parameters *params);

/* Whether lines as they come are those of a table: the options say so, or the model was trained on one. */
bool shmt_table_is_expected(const struct shmt_config *config, const struct shmt_parameters *params);

/* A line of the log: how the table is read that is trained on; nothing of other data. */
void shmt_table_log(const struct shmt_call *call, const struct shmt_config *config, const struct shmt_load *load);

/* Data that is a table's cache was read when the cache was made: for a `model` of another table (NULL: there is none;
 * `labelled`: labels are needed) its features and labels must be the same, and else a --label that says anything else would
 * be ignored. Errors: _DATA, _USAGE. */
int shmt_table_check_cache(struct shmt_loading *loading, const struct shmt_load *load, const char *model, bool labelled);

/* A table that is read for a model, or beside training data, without columns: of no cache, or pipe, that counts numbers from
 * elsewhere or marks missing ones, which means nothing there. Errors: _DATA. */
int shmt_table_check_unmarked(struct shmt_call *call, const struct shmt_load *load);

/* A line of the log when a `table` (as text; NULL: none), which a model was trained on, counts a column from elsewhere and is to
 * score `name`, which has no columns: its numbers must be counted from there already. */
void shmt_table_note_far(const struct shmt_call *call, const char *table, const char *name);

/* The same of its labels, which the model that is there knows as words; nothing when they are numbers. */
void shmt_table_log_words(const struct shmt_call *call, const struct shmt_parameters *params);

/* A line of the log: in which columns numbers are missing, of data whose columns are known. */
void shmt_table_log_marks(const struct shmt_call *call, const struct shmt_load *load);

/* The columns of a table (NULL: it is none) for people; and where numbers are missing in them, of so many examples with the mark
 * of each. */
void shmt_table_columns(const char *table, struct shmtrain_data_info *out);
void shmt_table_missing(const char *table, const uint32_t marked[SHMTRAIN_INFO_COLUMNS], struct shmtrain_data_info *out);
