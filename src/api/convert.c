/* Converting data to a cache: loads it as a run would, orders its columns by frequency, and writes what is in memory then. */
#include "api/convert.h"

#include <stdlib.h>
#include <string.h>

#include "api/arrays.h"
#include "api/load_place.h"
#include "api/output.h"
#include "api/places.h"
#include "api/table.h"
#include "base/replace.h"
#include "base/show.h"
#include "data/cache.h"
#include "segment/budget.h"

/* Tables of fewer rows are in the first-level cache in whatever order (places.c), and columns as given suit every model. */
#define FEW_COLUMNS 4096

static int check_memory(struct shmtrain_store *store, uint64_t bytes, const char *name) {
    struct shmt_budget budget;
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(name, shown);
    shmt_budget_read("", &budget);
    return shmt_budget_check(&budget, bytes, shown, NULL, "free some, or convert a part of it", &store->error);
}

int shmt_convert_load(struct shmtrain_store *store, const struct shmt_crew *crew, const char *name, struct shmt_load *out) {
    const uint32_t n_readers = (uint32_t)shmt_min_u64(crew->n_workers, shmt_topo_cpus(crew->topo));
    const struct shmt_placement anywhere = {.policy = SHMT_PLACE_OFF};
    const struct shmt_readers all = {.placement = &anywhere};
    int rc = shmt_load_open(out, store, name, 0, NULL, n_readers, SHMT_ROWS_SPARSE);
    if (rc == 0) rc = shmt_table_check_cache(store, out, NULL, true);
    if (rc == 0) rc = check_memory(store, shmt_source_guess_bytes(out->source, false), name);
    if (rc == 0) rc = shmt_load_count(out, store, NULL);
    if (rc < 0) return rc;
    struct shmt_columns columns;
    rc = shmt_load_own_columns(out, store, out->has_ids && out->totals.min_id > 0, 0, &columns);
    if (rc < 0) return rc;
    shmt_load_plan(out, &columns);
    rc = check_memory(store, out->bytes + 2 * sizeof(uint32_t) * columns.n_features, name);
    return rc == 0 ? shmt_load_fill(out, store, crew, &all) : rc;
}

static bool is_stopped(void *arg) { return shmt_stop_asked(arg); }

static int stopped(struct shmtrain_store *store) {
    return shmt_fail(&store->error, SHMTRAIN_E_STOPPED, "stopped while ordering columns");
}

/* column[place[f]] = f, for n of them. */
static int invert(struct shmtrain_store *store, const uint32_t *place, uint32_t n, uint32_t *column) {
    enum { LOOK = 1 << 16 };
    for (uint32_t f = 0; f < n; f++) {
        if (f % LOOK == 0 && shmt_stop_asked(store)) return stopped(store);
        column[place[f]] = f;
    }
    return 0;
}

/* The columns in the order of their places, to be freed; the data goes by places from here on. */
static int order(struct shmt_load *load, struct shmtrain_store *store, uint32_t **out) {
    const uint32_t n = load->columns.n_features;
    uint32_t *place = NULL, *column = malloc(n * sizeof *column);
    int rc = column ? 0 : shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory to order %u columns", n);
    if (rc == 0 && shmt_stop_asked(store)) rc = stopped(store);
    if (rc == 0) rc = shmt_places_make(&load->data, n, &place, &store->error);
    if (rc == 0) rc = shmt_load_renumber(load, store, place);
    if (rc == 0) rc = invert(store, place, n, column);
    free(place);
    if (rc == 0)
        *out = column;
    else
        free(column);
    return rc;
}

static int check_origin(struct shmtrain_store *store, const char *name, const struct shmt_cache_origin *origin) {
    struct shmt_cache_origin now;
    char shown[SHMT_NAME_SHOWN];
    if (origin->bytes == 0) return 0;
    const int rc = shmt_cache_origin_of(name, &now, &store->error);
    if (rc < 0 || shmt_cache_origin_is(origin, &now)) return rc;
    shmt_show_name(name, shown);
    return shmt_fail(&store->error, SHMTRAIN_E_DATA, "%s changed while it was being read", shown);
}

static void describe(const struct shmt_load *load, const uint32_t *column, const struct shmt_cache_origin *origin,
                     struct shmt_cache *out) {
    const struct shmtrain_data *data = &load->data;
    *out = (struct shmt_cache){.n_examples = data->n_examples,
                               .n_nonzeros = data->n_nonzeros,
                               .n_columns = data->n_features,
                               .base = load->columns.base,
                               .lacks_ids = !load->has_ids,
                               .min_id = data->n_features > 0 ? load->totals.min_id : UINT64_MAX,
                               .max_id = data->n_features > 0 ? load->totals.max_id : 0,
                               .best_loss = data->best_loss,
                               .start = data->start,
                               .id = data->id,
                               .value = data->value,
                               .label = data->label,
                               .column = column,
                               .listed = load->columns.ids ? load->columns.ids->id : NULL,
                               .note = load->table,
                               .origin = *origin};
}

int shmt_convert(struct shmtrain_store *store, const struct shmt_crew *crew, const char *name, const char *path,
                 struct shmt_error *failed) {
    struct shmt_load load = {0};
    struct shmt_error no_file = {0};
    struct shmt_cache_origin origin = {0};
    struct shmt_cache cache;
    uint32_t *column = NULL;
    (void)shmt_cache_origin_of(name, &origin, &no_file); /* generated data has none */
    int rc = shmt_convert_load(store, crew, name, &load);
    if (rc == 0) rc = check_origin(store, name, &origin);
    if (rc == 0 && load.columns.n_features >= FEW_COLUMNS) rc = order(&load, store, &column);
    if (rc == 0) {
        const struct shmt_cache_stop stop = {is_stopped, store};
        describe(&load, column, &origin, &cache);
        if (shmt_cache_write(path, &cache, &stop, failed) == SHMTRAIN_E_STOPPED)
            rc = shmt_fail(&store->error, SHMTRAIN_E_STOPPED, "%s", failed->text);
    }
    free(column);
    shmt_load_close(&load);
    return rc;
}

/* ---- for the application ---- */

static int convert(struct shmtrain_store *store, const char *data, const char *path) {
    struct shmt_crew crew = {0};
    char shown[SHMT_NAME_SHOWN];
    if (!data || data[0] == '\0') return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "name a file: the data has no name");
    shmt_show_name(path, shown);
    if (shmt_replace_is_stream(path))
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "cannot write the cache to %s: a cache is not written in order: name a file", shown);
    const struct shmt_given *given = shmt_arrays_find(store, data);
    if (given && given->of.weight)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "%s has weights, which a cache cannot hold: convert it without them, and use option weights", data);
    int rc = shmt_output_check(store, "", data, path);
    if (rc == 0) rc = shmt_replace_check(path, "the cache", &store->error);
    if (rc == 0) rc = shmt_crew_make(store, shmt_backend_find(store->config.backend), SHMT_SEAT_OF_FUNCTION, &crew);
    if (rc == 0) {
        struct shmt_error failed = {0};
        rc = shmt_convert(store, &crew, data, path, &failed);
        if (rc == 0 && failed.status < 0) rc = shmt_fail(&store->error, failed.status, "%s", failed.text);
    }
    shmt_crew_free(&crew);
    return rc;
}

int shmtrain_store_convert(struct shmtrain_store *store, const char *data, const char *path) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_call_given(store, data, "the name of data");
    if (rc == 0) rc = shmt_call_given(store, path, "a path");
    if (rc == 0) rc = convert(store, data, path);
    shmt_call_leave(store);
    return rc;
}
