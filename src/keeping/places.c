/* The order of a table's rows: see places.h. */
#include "keeping/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/checked.h"

/* A table of so many rows is in the first-level cache, in whatever order. */
#define FEW_ROWS 4096

/* Enough to know the frequent ones from the others: a feature in one example of a thousand is seen some 30 times in data like
 * news. */
#define SAMPLE_NONZEROS (1u << 21)

/* Of more it does not matter which is the most frequent one. */
#define MOST_COUNTED (1u << 21)

/* ---- making them ---- */

bool shmt_places_may_be_used(const struct shmtrain_model *model, const struct shmtrain_data *data,
                             const struct shmt_spec *spec) {
    const uint64_t rows = spec->table[0].rows, columns = data->n_features;
    if (!model->traits.columns_alike || model->traits.rows != SHMTRAIN_ROWS_SPARSE) return false;
    /* All columns are ruled alike, and what stands behind them stays there. */
    return rows >= columns && spec->l2_rows[0] >= columns && rows <= UINT32_MAX;
}

bool shmt_places_are_worthwhile(const struct shmtrain_model *model, const struct shmtrain_data *data,
                                const struct shmt_spec *spec) {
    const uint64_t rows = spec->table[0].rows;
    uint64_t touched = UINT64_MAX;
    if (rows <= FEW_ROWS || !shmt_places_may_be_used(model, data, spec)) return false;
    /* A run that touches a row less than once has no use of its being elsewhere. */
    return !shmt_mul_u64(data->n_nonzeros, spec->epochs, &touched) || touched >= rows;
}

/* The sample: every so many examples. */
static uint64_t stride(const struct shmtrain_data *data) {
    return shmt_max_u64(1, shmt_ceil_div(data->n_nonzeros, SAMPLE_NONZEROS));
}

uint64_t shmt_places_work_bytes(const struct shmtrain_data *data, const struct shmt_spec *spec) {
    if (!spec->row_places) return 0;
    const uint64_t most = shmt_min_u64(MOST_COUNTED, shmt_ceil_div(data->n_examples, stride(data)) + 1);
    return (spec->table[0].rows + most) * sizeof(uint32_t);
}

/* How often each column occurs in the sample. Returns the largest count. */
static uint32_t count_sample(const struct shmtrain_data *data, uint32_t *count) {
    const uint64_t each = stride(data);
    uint32_t most = 0;
    for (uint64_t i = 0; i < data->n_examples; i += each) {
        for (uint64_t j = data->start[i]; j < data->start[i + 1]; j++) {
            uint32_t *c = &count[data->id[j]];
            *c += *c < MOST_COUNTED - 1;
            if (*c > most) most = *c;
        }
    }
    return most;
}

/* Counts become places, by a counting sort: next[c] is the place of the next column that was counted c times. */
static void places_of_counts(uint32_t *count, uint32_t n, uint32_t most, uint32_t *next) {
    uint32_t before = 0;
    for (uint32_t i = 0; i < n; i++) next[count[i]]++;
    for (uint64_t c = (uint64_t)most + 1; c-- > 0;) {
        const uint32_t columns = next[c];
        next[c] = before;
        before += columns;
    }
    for (uint32_t i = 0; i < n; i++) count[i] = next[count[i]]++;
}

int shmt_places_make(const struct shmtrain_data *data, uint64_t rows, uint32_t **out, struct shmt_error *e) {
    uint32_t *place = calloc(rows, sizeof *place), *next = NULL, most = 0;
    if (place) {
        most = count_sample(data, place);
        next = calloc((size_t)most + 1, sizeof *next);
    }
    if (!next) {
        free(place);
        return shmt_no_memory(e, "to order %llu rows of parameters", (unsigned long long)rows);
    }
    places_of_counts(place, data->n_features, most, next);
    for (uint64_t row = data->n_features; row < rows; row++) place[row] = (uint32_t)row;
    free(next);
    *out = place;
    return 0;
}

/* ---- those of a store ---- */

/* NULL: each row is at its own number. */
static const _Atomic uint32_t *places_of(const struct shmt_backend *backend, struct shmt_store *live, int t) {
    _Static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "places are seen as words and as atomic words");
    return backend->store->array(live, SHMT_ARRAY_ROW_PLACE, t, 0).at;
}

/* A place of `rows`; it may be somebody else's memory, so that it is read once. relaxed: they were written before there were
 * workers, and before the store was published. */
static bool find(const _Atomic uint32_t *place, uint64_t row, uint64_t rows, uint64_t *out) {
    *out = load_relaxed(&place[row]);
    return *out < rows;
}

static int refuse(const char *name, struct shmt_error *e) {
    return shmt_refuse(e, "store %s is refused: its features do not all have rows of their own", name);
}

static int refuse_held(const struct shmt_held *held, struct shmt_error *e) {
    return refuse(held->owner ? held->owner : "(without a name)", e);
}

/* Bit by bit in a map of all rows. */
static bool are_all_different(const _Atomic uint32_t *place, uint64_t rows, uint64_t *map) {
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t at;
        if (!find(place, row, rows, &at)) return false;
        const uint64_t bit = UINT64_C(1) << at % 64;
        if (map[at / 64] & bit) return false;
        map[at / 64] |= bit;
    }
    return true;
}

int shmt_places_check(const char *name, const struct shmt_backend *backend, struct shmt_store *live,
                      const struct shmt_spec *spec, struct shmt_error *e) {
    const _Atomic uint32_t *place = places_of(backend, live, 0);
    if (!place) return 0;
    const uint64_t rows = spec->table[0].rows;
    uint64_t *map = calloc(rows / 64 + 1, sizeof *map);
    if (!map) return shmt_no_memory(e, "to check the %llu rows of store %s", (unsigned long long)rows, name);
    const bool are = are_all_different(place, rows, map);
    free(map);
    return are ? 0 : refuse(name, e);
}

/* ---- rows, by feature ---- */

int shmt_places_read(const struct shmt_held *held, int t, uint64_t row, uint64_t n, float *out, struct shmt_error *e) {
    const _Atomic uint32_t *place = places_of(held->backend, held->store, t);
    const struct shmt_table_spec *table = &held->spec->table[t];
    if (!place) return held->backend->store->read(held->store, t, row, n, out);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at;
        if (!find(place, row + i, table->rows, &at)) return refuse_held(held, e);
        (void)held->backend->store->read(held->store, t, at, 1, out + i * table->width);
    }
    return 0;
}

int shmt_places_write(const struct shmt_held *held, int t, uint64_t row, uint64_t n, const float *in, struct shmt_error *e) {
    const _Atomic uint32_t *place = places_of(held->backend, held->store, t);
    const struct shmt_table_spec *table = &held->spec->table[t];
    if (!place) return held->backend->store->write(held->store, t, row, n, in);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at;
        if (!find(place, row + i, table->rows, &at)) return refuse_held(held, e);
        (void)held->backend->store->write(held->store, t, at, 1, in + i * table->width);
    }
    return 0;
}

/* A whole table from one array into another, one of which is by place: `from`, or else `to`. */
static int move(const struct shmt_held *held, int t, bool from_places, float *to, const float *from, struct shmt_error *e) {
    const _Atomic uint32_t *place = places_of(held->backend, held->store, t);
    const struct shmt_table_spec *table = &held->spec->table[t];
    const uint64_t width = table->width, bytes = width * sizeof *to;
    if (!place) {
        memcpy(to, from, table->rows * bytes);
        return 0;
    }
    for (uint64_t row = 0; row < table->rows; row++) {
        uint64_t at;
        if (!find(place, row, table->rows, &at)) return refuse_held(held, e);
        memcpy(to + (from_places ? row : at) * width, from + (from_places ? at : row) * width, bytes);
    }
    return 0;
}

int shmt_places_take_state(const struct shmt_held *held, int t, uint32_t plane, float *out, struct shmt_error *e) {
    return move(held, t, true, out, held->backend->store->array(held->store, SHMT_ARRAY_STATE, t, plane).at, e);
}

int shmt_places_give_state(const struct shmt_held *held, int t, uint32_t plane, const float *in, struct shmt_error *e) {
    return move(held, t, false, held->backend->store->array(held->store, SHMT_ARRAY_STATE, t, plane).at, in, e);
}

/* Writes what stands there once more, by the entry that begins a state with it. */
static int begin_state(const struct shmt_held *held, int t, struct shmt_error *e) {
    const struct shmt_table_spec *table = &held->spec->table[t];
    const uint64_t at_once = shmt_max_u64(1, (1 << 16) / table->width);
    float *rows = malloc(at_once * table->width * sizeof *rows);
    if (!rows) return shmt_no_memory(e, "to begin table \"%s\"", table->name);
    for (uint64_t row = 0; row < table->rows; row += at_once) {
        const uint64_t n = shmt_min_u64(at_once, table->rows - row);
        (void)held->backend->store->read(held->store, t, row, n, rows);
        (void)held->backend->store->write(held->store, t, row, n, rows);
    }
    free(rows);
    return 0;
}

int shmt_places_give(const struct shmt_held *held, int t, const float *in, bool with_state, struct shmt_error *e) {
    if (!with_state && !places_of(held->backend, held->store, t))
        return held->backend->store->write(held->store, t, 0, held->spec->table[t].rows, in);
    const int rc = move(held, t, false, held->backend->store->array(held->store, SHMT_ARRAY_WEIGHT, t, 0).at, in, e);
    return rc == 0 && !with_state ? begin_state(held, t, e) : rc;
}
