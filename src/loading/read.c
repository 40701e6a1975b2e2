/* Data in memory, for whoever does not train a model on it: see read.h. */
#include "loading/read.h"

#include <shmtrain/store.h>
#include <stdlib.h>

#include "loading/load_place.h"
#include "loading/table.h"
#include "base/show.h"
#include "segment/budget.h"

static int check_memory(struct shmt_call *call, uint64_t bytes, const char *name) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(name, shown);
    return shmt_budget_need(bytes, shown, NULL, "free some, or use a part of it", &call->error);
}

/* Counts, and finds the columns. */
static int count(struct shmt_loading *loading, const struct shmt_load *like, struct shmt_load *out,
                 struct shmt_columns *columns) {
    int rc;
    if (like) {
        rc = shmt_load_columns(out, &like->columns, columns, &loading->call->error);
        return rc == 0 ? shmt_load_count(out, loading, columns) : rc;
    }
    rc = shmt_load_count(out, loading, NULL);
    return rc == 0 ? shmt_load_own_columns(out, loading, out->has_ids && out->totals.min_id > 0, 0, columns) : rc;
}

int shmt_read_load(struct shmt_loading *loading, const struct shmt_crew *crew, const struct shmt_reading_wish *wish,
                   struct shmt_load *out) {
    const uint32_t n_readers = (uint32_t)shmt_min_u64(crew->n_workers, shmt_topo_cpus(crew->topo));
    const struct shmt_placement anywhere = {.policy = SHMT_PLACE_OFF};
    const struct shmt_readers all = {.placement = &anywhere};
    const char *table = wish->like ? wish->like->table : NULL;
    const unsigned how = wish->like && !table ? SHMT_SOURCE_UNMARKED : 0;
    struct shmt_columns columns = {0};
    int rc = shmt_load_open(out, loading, wish->name, how, table, n_readers, wish->rows);
    if (rc == 0) rc = shmt_table_check_cache(loading, out, table, true);
    if (rc == 0) rc = check_memory(loading->call, shmt_rows_guess_bytes(out->source, wish->rows), wish->name);
    if (rc == 0) rc = count(loading, wish->like, out, &columns);
    if (rc < 0) return rc;
    out->weighted |= shmt_source_weights(out->source) != NULL;
    shmt_load_plan(out, &columns);
    rc = check_memory(loading->call, out->bytes + 2 * sizeof(uint32_t) * columns.n_features, wish->name);
    return rc == 0 ? shmt_load_fill(out, loading, crew, &all) : rc;
}

/* ---- for the application ---- */

/* What is handed out is its first member. */
struct read {
    struct shmtrain_data data;
    struct shmt_load load;
};

int shmt_read_data(struct shmt_loading *loading, const char *data, enum shmtrain_rows rows, const struct shmtrain_data *like,
                   const struct shmtrain_data **out) {
    struct shmt_crew crew = {0};
    if (!data || data[0] == '\0') return shmt_refuse(&loading->call->error, "name a file: the data has no name");
    if ((uint32_t)rows > SHMTRAIN_ROWS_EITHER)
        return shmt_refuse(&loading->call->error, "rows are sparse, dense or either (enum shmtrain_rows), not %u",
                           (uint32_t)rows);
    const struct shmt_reading_wish wish = {
        .name = data, .rows = shmt_rows_as(rows), .like = like ? &((const struct read *)(const void *)like)->load : NULL};
    struct read *made = calloc(1, sizeof *made);
    if (!made) return shmt_no_memory(&loading->call->error, "to read data");
    int rc =
        shmt_crew_make(loading->call, loading->config, shmt_backend_at(loading->config->backend), SHMT_SEAT_OF_FUNCTION, &crew);
    if (rc == 0) rc = shmt_read_load(loading, &crew, &wish, &made->load);
    shmt_crew_free(&crew);
    made->data = made->load.data;
    made->load.name = NULL; /* the caller's */
    if (rc == 0)
        *out = &made->data;
    else
        shmtrain_data_free(&made->data);
    return rc;
}

void shmtrain_data_free(const struct shmtrain_data *data) {
    struct read *read = (struct read *)(uintptr_t)data;
    if (!read) return;
    shmt_load_close(&read->load);
    free(read);
}
