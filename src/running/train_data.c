/* The data of a run, from its names to its columns and labels: see train_priv.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "running/train_priv.h"
#include "data/cache.h"
#include "loading/cache.h"
#include "loading/table.h"
#include "loading/weights.h"
#include "segment/budget.h"

/* ---- data ---- */

/* More readers than processors would only get in one another's way. */
static uint32_t readers_of(const struct shmt_crew *crew) {
    return (uint32_t)shmt_min_u64(crew->n_workers, shmt_topo_cpus(crew->topo));
}

/* What has come through a pipe does not come again. */
static int check_pipes(struct shmt_training *s) {
    if (!shmt_source_share_pipe(s->train.source, s->valid.source)) return 0;
    return shmt_refuse(&s->run->call->error,
                       "%s is both the data and --valid, but can be read only once: use a share, as in --valid 0.1",
                       s->valid.name);
}

/* Examples have one weight, but for that of their class. */
static int check_weights(struct shmt_training *s) {
    if (!shmt_source_weights(s->train.source) || !s->run->config->weights[0]) return 0;
    return shmt_refuse(&s->run->call->error, "%s has weights of its own: remove --weights", s->train.name);
}

/* `known`: whether the training data is a table; of a pipe that is known late. */
static int open_valid(struct shmt_training *s, bool known) {
    const char *table = s->train.table;
    const unsigned how = table || !known ? 0 : SHMT_SOURCE_UNMARKED;
    return shmt_cache_load_open(&s->valid, s->run->loading, &s->crew, s->run->config->valid, how, table, s->train.n_readers,
                                s->train.rows);
}

/* --valid: a number between 0 and 1 is a share of the data, "none" is nothing, anything else a file; generated data has its
 * own. */
int shmt_train_open_data(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    const char *valid = run->config->valid;
    const uint32_t n_readers = readers_of(&s->crew);
    const enum shmt_row_layout rows = run->fits ? SHMT_ROWS_SPARSE : shmt_rows_for(s->model); /* fits are by nonzeros */
    double share;
    int rc = shmt_cache_load_open(&s->train, run->loading, &s->crew, s->source, 0, NULL, n_readers, rows);
    if (rc == 0) rc = shmt_table_check_cache(run->loading, &s->train, NULL, true);
    if (rc < 0) return rc;
    shmt_table_log(run->call, run->config, &s->train);
    s->train.wide = s->model->traits.rows != SHMTRAIN_ROWS_SPARSE;
    s->train.weighted = shmt_weights_wanted(run->config) || shmt_source_weights(s->train.source);
    rc = check_weights(s);
    if (rc < 0) return rc;
    if (valid[0] == '\0') {
        s->has_valid = shmt_source_is_generator(s->train.source);
        return s->has_valid ? shmt_load_open(&s->valid, run->loading, s->source, SHMT_SOURCE_HELD_OUT, NULL, n_readers, rows)
                            : 0;
    }
    if (strcmp(valid, "none") == 0) return 0;
    if (!shmt_valid_share(valid, &share)) {
        s->has_valid = true;
        rc = open_valid(s, !shmt_source_is_once(s->train.source));
        if (rc == 0 && s->train.table) rc = shmt_table_check_cache(run->loading, &s->valid, s->train.table, true);
        return rc < 0 ? rc : check_pipes(s);
    }
    if (!(share > 0 && share < 1))
        return shmt_refuse(&run->call->error,
                           "--valid %.60s: a share must be between 0 and 1; for a file of this name write ./%.60s", valid,
                           valid);
    s->share = share;
    return 0;
}

/* Before anything is read: a file that cannot fit is refused at once, as far as its size tells. */
int shmt_train_check_guess(struct shmt_training *s) {
    if (s->train.dense && s->run->config->hash_bits > 0) return 0; /* sources do not know how many columns there will be */
    uint64_t bytes = shmt_rows_guess_bytes(s->train.source, s->train.rows);
    if (s->has_valid && !shmt_add_u64(bytes, shmt_rows_guess_bytes(s->valid.source, s->valid.rows), &bytes)) bytes = UINT64_MAX;
    return shmt_budget_need(bytes, "the data, by the size of its files,", NULL, "free some, or train on a part of it",
                            &s->run->call->error);
}

/* Whether an id 0 occurs. */
static bool begins_at_zero(const struct shmt_load *load) { return load->has_ids && load->totals.min_id == 0; }

/* Training and validation on data of both kinds, one with ids from 1 and one without any: one line says how they meet. */
static void note_kinds(const struct shmt_training *s, uint32_t base) {
    const struct shmt_load *with = s->train.has_ids ? &s->train : &s->valid;
    if (!s->has_valid || s->train.has_ids == s->valid.has_ids || with->totals.min_id == 0) return;
    if (base > 0)
        shmt_log(&s->run->call->log, "%s has elements without ids: they are counted from 1, like the features of %s",
                 s->valid.name, with->name);
    else
        shmt_log(&s->run->call->log,
                 "%s has features from %llu, but the elements of %s are counted from 0: if its ids start at 1, each is one too "
                 "large",
                 with->name, (unsigned long long)with->totals.min_id, s->train.name);
}

/* The columns of a table that comes through a pipe are known when it has been counted: the other one is then read by them. */
static int match_valid(struct shmt_training *s) {
    const bool is_guessed = s->has_valid && s->valid.table && shmt_source_is_once(s->train.source) &&
                            (s->valid.kept || !shmt_cache_of(s->valid.source));
    if (!is_guessed || (s->train.table && strcmp(s->train.table, s->valid.table) == 0)) return 0;
    shmt_load_close(&s->valid);
    return open_valid(s, true);
}

/* That of two pipes is known too late. */
static int check_tables(struct shmt_training *s) {
    const char *train = s->train.table, *valid = s->valid.table;
    if (!s->has_valid || !valid || (train && strcmp(train, valid) == 0)) return 0;
    if (!train) return shmt_table_check_unmarked(s->run->call, &s->valid);
    if (shmt_cache_of(s->valid.source) && !s->valid.kept)
        return shmt_table_check_cache(s->run->loading, &s->valid, train, true);
    return shmt_refuse(
        &s->run->call->error,
        "%s is read before the columns of %s are known: save that to a file first, or use a share, as in --valid 0.1",
        s->valid.name, s->train.name);
}

/* Images of another shape may have as many numbers, or fewer, which would be filled up. */
static int check_shapes(struct shmt_training *s) {
    const struct shmt_example_shape *a = &s->train.shape, *b = &s->valid.shape;
    if (!s->has_valid || !shmt_example_shapes_differ(a, b)) return 0;
    return shmt_fail(&s->run->call->error, SHMTRAIN_E_DATA,
                     "%s has images of %ux%ux%u, but %s has images of %ux%ux%u: validate on images of that shape",
                     s->valid.name, b->channels, b->height, b->width, s->train.name, a->channels, a->height, a->width);
}

/* Counts both sets, and finds the columns that they share: those of the training data. Ids begin at 0 when either has a 0, or
 * training counts elements, and at 1 otherwise. */
int shmt_train_count_data(struct shmt_training *s) {
    const bool was_known = s->train.table != NULL;
    int rc = shmt_cache_load_count(&s->train, s->run->loading, &s->crew, NULL);
    if (!was_known) shmt_table_log(s->run->call, s->run->config, &s->train);
    if (rc == 0 && !was_known) rc = match_valid(s);
    if (rc == 0 && s->has_valid) rc = shmt_cache_load_count(&s->valid, s->run->loading, &s->crew, NULL);
    if (rc == 0) rc = check_tables(s);
    if (rc == 0) rc = check_shapes(s);
    if (rc < 0) return rc;
    if (s->has_valid && !s->valid.table) shmt_table_note_far(s->run->call, s->train.table, s->valid.name);
    const struct shmt_totals *v = &s->valid.totals;
    const bool zero = !s->train.has_ids || begins_at_zero(&s->train) || (s->has_valid && begins_at_zero(&s->valid));
    struct shmt_columns columns;
    rc = shmt_load_own_columns(&s->train, s->run->loading, zero ? 0 : 1, (uint32_t)s->run->config->hash_bits, &columns);
    if (rc < 0) return rc;
    shmt_load_plan(&s->train, &columns);
    shmt_table_log_marks(s->run->call, &s->train);
    if (!s->has_valid) return 0;
    s->valid.rows = s->train.dense ? SHMT_ROWS_DENSE : SHMT_ROWS_SPARSE; /* as of either */
    s->valid.dense = s->train.dense;
    if (shmt_columns_are_range(&columns)) note_kinds(s, columns.base);
    rc = shmt_load_columns(&s->valid, &columns, &columns, &s->run->call->error);
    const bool beyond = v->min_id <= v->max_id && v->max_id - columns.base >= columns.n_features;
    if (rc == 0 && (beyond || !shmt_columns_are_range(&columns))) rc = shmt_load_count(&s->valid, s->run->loading, &columns);
    if (rc == 0) shmt_load_plan(&s->valid, &columns);
    return rc;
}

/* ---- does the model fit the data? ---- */

/* Names the place of the first label that is too much for the model: the third one, or the one behind the last class. */
static int refuse_labels(struct shmt_training *s, const struct shmt_load *load, const char *why) {
    static const char *const WHICH[] = {"all are", "the second is", "the third is"};
    char place[300] = "", number[40];
    const struct shmt_labels *labels = &load->totals.labels;
    const uint32_t most = s->model->task == SHMTRAIN_CLASSES ? SHMT_LABELS_KEPT : 3;
    const uint32_t i = (uint32_t)shmt_min_u64(labels->n, most) - 1;
    shmt_source_place(load->source, labels->at[i], place, sizeof place);
    snprintf(number, sizeof number, "label number %u is", i + 1);
    return shmt_fail(&s->run->call->error, SHMTRAIN_E_DATA, "%s: the data has %s (%s %g)", place, why,
                     i < 3 ? WHICH[i] : number, (double)labels->label[i]);
}

/* A model that tells classes apart; one without a threshold does not. */
static bool is_classifier(const struct shmtrain_model *model) {
    return model->task == SHMTRAIN_CLASSES || (model->task == SHMTRAIN_BINARY && !isnan(model->threshold));
}

/* Validation labels must be labels of the training data, or they would silently count as another one. */
static int check_valid_labels(struct shmt_training *s) {
    const struct shmt_totals *t = &s->train.totals, *v = &s->valid.totals;
    char place[300] = "", of[40] = "labels ";
    if (t->labels.n > SHMTRAIN_MAX_CLASSES) return 0; /* not all are known */
    for (uint32_t i = 0; i < v->labels.n; i++) {
        const float label = v->labels.label[i];
        if (shmt_labels_have(&t->labels, label)) continue;
        shmt_source_place(s->valid.source, v->labels.at[i], place, sizeof place);
        if (t->labels.n > 2) snprintf(of, sizeof of, "%u labels from ", t->labels.n);
        return shmt_fail(&s->run->call->error, SHMTRAIN_E_DATA,
                         "%s: label %g does not occur in the training data, which has %s%g %s %g", place, (double)label, of,
                         (double)t->label_low, t->labels.n > 2 ? "to" : "and", (double)t->label_high);
    }
    return 0;
}

int shmt_train_check_model(struct shmt_training *s) {
    if (s->train.data.n_features == 0 && !s->run->job.settings.bias)
        return shmt_fail(&s->run->call->error, SHMTRAIN_E_DATA,
                         "%s has no features at all: learn a bias (--bias 1), or use other data", s->source);
    s->run->job.settings.n_classes = s->train.data.n_labels;
    s->run->job.settings.classes = s->train.data.classes;
    const char *why = s->model->check ? s->model->check(&s->train.data) : NULL;
    if (why) return refuse_labels(s, &s->train, why);
    const int rc = shmt_weights_check(s->run->config, s->model, &s->train.data, &s->run->call->error);
    if (rc < 0) return rc;
    return s->has_valid && is_classifier(s->model) ? check_valid_labels(s) : 0;
}
