/* Caches in runs: see cache.h. Converting is in convert.c. */
#include "loading/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loading/convert.h"
#include "base/show.h"
#include "base/target.h"
#include "configuration/output.h"
#include "data/cache.h"
#include "data/given.h"
#include "models/models.h"
#include "workers/run.h"

#define NO_PLACE UINT32_MAX

/* ---- beside a text ---- */

/* What of a cache of this name there is. */
enum kept { NONE, FRESH, STALE, OTHERWISE, BROKEN, FOREIGN };

/* A table's plan says all that options can say of it. */
static bool is_read_alike(const char *note, const char *table) {
    return note && table ? strcmp(note, table) == 0 : note == table;
}

static enum kept look(const struct shmt_config *config, const struct shmt_load *load, const char *path,
                      const struct shmt_cache_origin *origin) {
    struct shmt_source *source;
    struct shmt_error why = {0};
    if (!shmt_cache_begins(path)) return FOREIGN;
    if (shmt_source_open(path, config->seed, 0, &source, &why) < 0) return BROKEN;
    const struct shmt_cache *cache = shmt_cache_of(source);
    enum kept kept = !cache ? FOREIGN : shmt_cache_origin_is(&cache->origin, origin) ? FRESH : STALE;
    if (kept == FRESH && !is_read_alike(cache->note, load->table)) kept = OTHERWISE;
    shmt_source_close(source);
    return kept;
}

/* Several files at once have no origin that we know again, nor has what comes through a pipe, and generated data needs none.
 * Of a table that is read as another one was, a cache would say that other one's plan, and not how the two went together. */
static bool can_be_kept(const struct shmt_config *config, const struct shmt_load *load, const char *name, unsigned how,
                        const char *table) {
    if (shmt_given_of(load->source)) return false;
    if (strcmp(name, "-") == 0 || strchr(name, '\n') || shmt_source_is_once(load->source)) return false;
    if (!load->has_ids || (load->table && table) || config->skip_bad_lines) return false;
    const unsigned otherwise = SHMT_SOURCE_UNLABELLED | SHMT_SOURCE_SCORED | SHMT_SOURCE_UNMARKED;
    if (load->table && !table && (how & otherwise)) return false; /* a cache has labels, marks and zero points of its own */
    return !shmt_source_is_generator(load->source) && !shmt_cache_of(load->source);
}

/* Said of what somebody may have expected a cache of. */
static void note_not_kept(struct shmt_call *call, const struct shmt_config *config, const struct shmt_load *load, unsigned how,
                          const char *table) {
    if (shmt_cache_of(load->source) || shmt_given_of(load->source)) return;
    if (load->table && table)
        shmt_log(&call->log,
                 "--cache has no effect on %s: a cache keeps a table's own columns, but this one is read with those of another "
                 "table",
                 load->name);
    else if (config->skip_bad_lines && load->has_ids && !shmt_source_is_generator(load->source))
        shmt_log(&call->log, "--cache has no effect with --skip-bad-lines: a cache does not record which lines were left out");
    else if (load->table && (how & SHMT_SOURCE_UNLABELLED))
        shmt_log(&call->log, "--cache has no effect on %s: a cache has labels, but labels are not read here", load->name);
    else if (load->table && (how & (SHMT_SOURCE_SCORED | SHMT_SOURCE_UNMARKED)))
        shmt_log(&call->log,
                 "--cache has no effect on %s: a cache keeps a table's own numbers, but the model is of data without columns",
                 load->name);
    else if (shmt_source_flows(load->source))
        shmt_log(&call->log,
                 "--cache has no effect on %s: a cache is kept beside a single file; use shmtrain data convert to make one",
                 load->name);
}

static int make(struct shmt_loading *loading, const struct shmt_crew *crew, const char *name, const char *path, enum kept kept,
                bool *made_out) {
    static const char *const WHY[] = {[NONE] = "created from",
                                      [STALE] = "recreated because it was older than",
                                      [OTHERWISE] = "recreated because other options apply, from",
                                      [BROKEN] = "recreated because it was damaged, from"};
    char shown[SHMT_NAME_SHOWN], of[SHMT_NAME_SHOWN];
    struct shmt_error failed = {0};
    *made_out = false;
    const int rc = shmt_convert(loading, crew, name, path, &failed);
    if (rc == SHMTRAIN_E_MEMORY) failed = loading->call->error; /* the run alone may have enough */
    if (rc < 0 && rc != SHMTRAIN_E_MEMORY) return rc;
    shmt_show_name(path, shown);
    shmt_show_name(name, of);
    *made_out = failed.status == 0;
    if (*made_out)
        shmt_log(&loading->call->log, "%s was %s %s", shown, WHY[kept], of);
    else
        shmt_log(&loading->call->log, "%s: the run continues without a cache", failed.text);
    return 0;
}

/* Opens the other one of both in place of what `load` is. */
static int reopen(struct shmt_load *load, struct shmt_loading *loading, const char *name, const char *path, bool kept) {
    const uint32_t n_readers = load->n_readers;
    const enum shmt_row_layout rows = load->rows;
    const bool weighted = load->weighted;
    shmt_load_close(load);
    const int rc = shmt_load_open(load, loading, kept ? path : name, 0, NULL, n_readers, rows);
    load->name = name; /* what the run was asked to train on */
    load->kept = kept;
    load->weighted = weighted;
    return rc;
}

/* Whether something has the cache's name that may be one; writing says that it is a folder. Others may have put a link there. */
static int find(struct shmt_call *call, const char *path, bool *out) {
    char shown[SHMT_NAME_SHOWN];
    struct shmt_target target;
    const int rc = shmt_target_find(path, &target), code = errno;
    const bool planted = rc == 0 && shmt_target_is_planted(&target); /* it may say what it likes of the text */
    shmt_target_close(&target);
    shmt_show_name(path, shown);
    if (rc < 0 || planted)
        return shmt_fail(&call->error, SHMTRAIN_E_SYSTEM, "--cache: %s cannot be used: %s", shown,
                         planted ? SHMT_TARGET_PLANTED : shmt_target_why(&target, code));
    *out = target.exists && !S_ISDIR(target.there.st_mode);
    return 0;
}

/* `load` is open, of the text `name`; in the end of one of both. */
static int open_kept(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_crew *crew, const char *name,
                     const char *path) {
    struct shmt_cache_origin origin;
    char shown[SHMT_NAME_SHOWN];
    int rc = shmt_cache_origin_of(name, &origin, &loading->call->error);
    bool there = false;
    if (rc == 0) rc = find(loading->call, path, &there);
    if (rc < 0) return rc;
    const enum kept kept = there ? look(loading->config, load, path, &origin) : NONE;
    there = kept == FRESH;
    if (kept == FOREIGN) {
        shmt_show_name(path, shown);
        return shmt_refuse(&loading->call->error, "%s is not a cache and would be replaced: move it, or do not use --cache",
                           shown);
    }
    if (!there && !loading->call->plans_only) rc = make(loading, crew, name, path, kept, &there);
    return rc < 0 || !there ? rc : reopen(load, loading, name, path, true);
}

static char *path_of(struct shmt_call *call, const char *name) {
    char *path;
    if (asprintf(&path, "%s" SHMT_CACHE_ENDING, name) >= 0) return path;
    shmt_no_memory(&call->error, "for a name");
    return NULL;
}

int shmt_cache_load_open(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_crew *crew, const char *name,
                         unsigned how, const char *table, uint32_t n_readers, enum shmt_row_layout rows) {
    int rc = shmt_load_open(load, loading, name, how, table, n_readers, rows);
    if (rc < 0 || !loading->config->cache) return rc;
    if (!can_be_kept(loading->config, load, name, how, table)) {
        note_not_kept(loading->call, loading->config, load, how, table);
        return rc;
    }
    char *path = path_of(loading->call, name);
    rc = path ? open_kept(load, loading, crew, name, path) : SHMTRAIN_E_MEMORY;
    free(path);
    return rc;
}

int shmt_cache_load_count(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_crew *crew,
                          const struct shmt_columns *columns) {
    const char *name = load->name;
    bool there = false;
    int rc = shmt_load_count(load, loading, columns);
    if (rc != SHMTRAIN_E_DATA || !load->kept) return rc;
    char *path = path_of(loading->call, name);
    if (!path) return SHMTRAIN_E_MEMORY;
    shmt_error_clear(&loading->call->error);
    rc = loading->call->plans_only ? 0 : make(loading, crew, name, path, BROKEN, &there);
    if (rc == 0) rc = reopen(load, loading, name, path, there);
    free(path);
    return rc == 0 ? shmt_load_count(load, loading, columns) : rc;
}

/* ---- in place ---- */

static const struct shmt_cache *cache_of(const struct shmt_load *load) {
    return load->source ? shmt_cache_of(load->source) : NULL;
}

bool shmt_cache_is_ordered(const struct shmt_load *load) {
    const struct shmt_cache *c = cache_of(load);
    return c && c->column;
}

/* An application's model begins with what it reads in the data, whose columns would be places; ours look at labels alone. */
static bool begins_by_columns(const struct shmtrain_model *model) {
    const struct shmtrain_model *ours;
    if (!model->begin) return false;
    for (size_t i = 0; (ours = shmt_model_at(i)); i++)
        if (ours == model) return false;
    return true;
}

static bool has_wanted_columns(const struct shmt_load *load, const struct shmt_cache *c, const struct shmt_spec *spec,
                               const struct shmtrain_model *model, bool leads) {
    if (load->columns.hash_bits > 0 || (load->columns.ids != NULL) != (c->listed != NULL)) return false;
    if (c->listed && load->columns.ids->from != c->listed) return false;
    if (load->columns.base > c->base) return false;
    if ((uint64_t)(c->base - load->columns.base) + c->n_columns > load->columns.n_features) return false;
    if (!c->column) return !spec->row_places && c->base == load->columns.base;
    return spec->row_places && leads && !begins_by_columns(model);
}

void shmt_cache_decide(struct shmt_load *load, const struct shmt_config *config, const struct shmt_spec *spec,
                       const struct shmtrain_model *model, bool leads) {
    const struct shmt_cache *c = cache_of(load);
    const struct shmt_placement *p = &spec->placement;
    const bool is_placed = p->policy != SHMT_PLACE_OFF && p->n_nodes > 1;
    load->in_place =
        c && !load->dense && config->name[0] == '\0' && !is_placed && has_wanted_columns(load, c, spec, model, leads);
}

int shmt_cache_take(struct shmt_load *load, struct shmt_error *e) {
    const struct shmt_cache *c = cache_of(load);
    struct shmtrain_data *data = &load->data;
    if (load->weighted && !(load->weight = malloc(c->n_examples * sizeof *load->weight)))
        return shmt_no_memory(e, "for %llu weights", (unsigned long long)c->n_examples);
    data->start = c->start;
    data->id = c->id;
    data->value = c->value;
    data->label = c->label;
    data->weight = load->weight;
    data->best_loss = c->best_loss;
    if (c->column) data->channels = data->height = data->width = 0; /* ids are places, which have no shape */
    return 0;
}

int shmt_cache_places(const struct shmt_load *load, uint64_t rows, uint32_t **out, struct shmt_error *e) {
    const struct shmt_cache *c = cache_of(load);
    const uint32_t shift = c->base - load->columns.base, n_features = load->columns.n_features;
    uint32_t next = c->n_columns, *place = malloc(rows * sizeof *place);
    bool each = true;
    if (!place) return shmt_no_memory(e, "to order %llu rows of parameters", (unsigned long long)rows);
    for (uint32_t f = 0; f < n_features; f++) place[f] = NO_PLACE;
    for (uint32_t p = 0; p < c->n_columns && each; p++) {
        const uint32_t f = c->column[p] + shift; /* below n_features: checked when it was counted */
        each = place[f] == NO_PLACE;
        place[f] = p;
    }
    if (!each) {
        free(place);
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s is damaged (one column has two places): remove it, or convert the data again",
                         load->name);
    }
    for (uint32_t f = 0; f < n_features; f++) /* features of ids that only the validation data has */
        if (place[f] == NO_PLACE) place[f] = next++;
    for (uint64_t row = n_features; row < rows; row++) place[row] = (uint32_t)row;
    *out = place;
    return 0;
}
