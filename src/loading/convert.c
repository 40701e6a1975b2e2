/* Converting data to a cache: loads it as a run would, orders its columns by frequency, and writes what is in memory then. */
#include "loading/convert.h"

#include <stdlib.h>

#include "loading/arrays.h"
#include "loading/read.h"
#include "base/replace.h"
#include "base/show.h"
#include "configuration/output.h"
#include "data/cache.h"
#include "keeping/places.h"

/* Tables of fewer rows are in the first-level cache in whatever order (places.c), and columns as given suit every model. */
#define FEW_COLUMNS 4096

static int stopped(struct shmt_call *call) {
    return shmt_fail(&call->error, SHMTRAIN_E_STOPPED, "stopped while ordering columns");
}

/* column[place[f]] = f, for n of them. */
static int invert(struct shmt_call *call, const uint32_t *place, uint32_t n, uint32_t *column) {
    enum { LOOK = 1 << 16 };
    for (uint32_t f = 0; f < n; f++) {
        if (f % LOOK == 0 && shmt_stop_asked(call)) return stopped(call);
        column[place[f]] = f;
    }
    return 0;
}

/* The columns in the order of their places, to be freed; the data goes by places from here on. */
static int order(struct shmt_load *load, struct shmt_loading *loading, uint32_t **out) {
    const uint32_t n = load->columns.n_features;
    uint32_t *place = NULL, *column = malloc(n * sizeof *column);
    int rc = column ? 0 : shmt_no_memory(&loading->call->error, "to order %u columns", n);
    if (rc == 0 && shmt_stop_asked(loading->call)) rc = stopped(loading->call);
    if (rc == 0) rc = shmt_places_make(&load->data, n, &place, &loading->call->error);
    if (rc == 0) rc = shmt_load_renumber(load, loading, place);
    if (rc == 0) rc = invert(loading->call, place, n, column);
    free(place);
    if (rc == 0)
        *out = column;
    else
        free(column);
    return rc;
}

static int check_origin(struct shmt_call *call, const char *name, const struct shmt_cache_origin *origin) {
    struct shmt_cache_origin now;
    char shown[SHMT_NAME_SHOWN];
    if (origin->bytes == 0) return 0;
    const int rc = shmt_cache_origin_of(name, &now, &call->error);
    if (rc < 0 || shmt_cache_origin_is(origin, &now)) return rc;
    shmt_show_name(name, shown);
    return shmt_fail(&call->error, SHMTRAIN_E_DATA, "%s changed while it was being read", shown);
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
                               .shape = load->shape,
                               .start = data->start,
                               .id = data->id,
                               .value = data->value,
                               .label = data->label,
                               .column = column,
                               .listed = load->columns.ids ? load->columns.ids->id : NULL,
                               .note = load->table,
                               .origin = *origin};
}

int shmt_convert(struct shmt_loading *loading, const struct shmt_crew *crew, const char *name, const char *path,
                 struct shmt_error *failed) {
    struct shmt_load load = {0};
    struct shmt_error no_file = {0};
    struct shmt_cache_origin origin = {0};
    struct shmt_cache cache;
    uint32_t *column = NULL;
    (void)shmt_cache_origin_of(name, &origin, &no_file); /* generated data has none */
    const struct shmt_reading_wish wish = {.name = name, .rows = SHMT_ROWS_SPARSE};
    int rc = shmt_read_load(loading, crew, &wish, &load);
    if (rc == 0) rc = check_origin(loading->call, name, &origin);
    if (rc == 0 && load.columns.n_features >= FEW_COLUMNS) rc = order(&load, loading, &column);
    if (rc == 0) {
        const struct shmt_cache_stop stop = {shmt_call_is_stopped, loading->call};
        describe(&load, column, &origin, &cache);
        if (shmt_cache_write(path, &cache, &stop, failed) == SHMTRAIN_E_STOPPED)
            rc = shmt_fail(&loading->call->error, SHMTRAIN_E_STOPPED, "%s", failed->text);
    }
    free(column);
    shmt_load_close(&load);
    return rc;
}

/* ---- for the application ---- */

int shmt_convert_file(struct shmt_loading *loading, const char *data, const char *path) {
    struct shmt_crew crew = {0};
    char shown[SHMT_NAME_SHOWN];
    if (!data || data[0] == '\0') return shmt_refuse(&loading->call->error, "name a file: the data has no name");
    shmt_show_name(path, shown);
    if (shmt_replace_is_stream(path))
        return shmt_refuse(&loading->call->error, "cannot write the cache to %s: a cache is not written in order: name a file",
                           shown);
    const struct shmt_given *given = shmt_arrays_find(loading, data);
    if (given && given->of.weight)
        return shmt_refuse(&loading->call->error,
                           "%s has weights, which a cache cannot hold: convert it without them, and use option weights", data);
    int rc = shmt_output_check_read(loading->call, loading->config, "", data, path);
    if (rc == 0) rc = shmt_replace_check(path, "the cache", &loading->call->error);
    if (rc == 0)
        rc = shmt_crew_make(loading->call, loading->config, shmt_backend_at(loading->config->backend), SHMT_SEAT_OF_FUNCTION,
                            &crew);
    if (rc == 0) {
        struct shmt_error failed = {0};
        rc = shmt_convert(loading, &crew, data, path, &failed);
        if (rc == 0 && failed.status < 0) rc = shmt_fail(&loading->call->error, failed.status, "%s", failed.text);
    }
    shmt_crew_free(&crew);
    return rc;
}
