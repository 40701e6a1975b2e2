/* Loading data: see load.h. */
#include "loading/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loading/arrays.h"
#include "loading/cache.h"
#include "loading/load_ids.h"
#include "loading/load_place.h"
#include "loading/table.h"
#include "base/atomic.h"
#include "base/checked.h"
#include "data/flow.h"
#include "models/models.h"
#include "segment/budget.h"
#include "sync/host.h"
#include "workers/drive.h"

#define FILLED 20 /* one value in so many is other than 0 */

/* What the readers of one pass share: it fills, or counts, or gathers ids, or renumbers, or unpacks. */
struct pass {
    struct shmt_load *load;
    const struct shmt_arrays *into;     /* fill; or NULL */
    const struct shmt_columns *columns; /* count; or NULL */
    bool gathers;                       /* each reader's buffer gets the ids of its parts */
    const uint32_t *place;              /* renumber; or NULL */
    struct shmt_flow *flow;             /* what is to be read comes from here (flow.h); NULL: by parts */
    uint32_t n_parts;
    _Atomic uint32_t next;  /* part to be dealt. relaxed: what a part needs was there before the threads were */
    _Atomic uint32_t abort; /* relaxed: all go home */
};

/* As soon as it is known: of a pipe when it has been read. */
static bool keep_table(struct shmt_load *load) {
    const char *note = load->table ? NULL : shmt_source_note(load->source);
    if (note) load->table = strdup(note);
    return !note || load->table;
}

enum shmt_row_layout shmt_rows_as(enum shmtrain_rows rows) {
    static const enum shmt_row_layout LAYOUTS[] = {[SHMTRAIN_ROWS_SPARSE] = SHMT_ROWS_SPARSE,
                                                   [SHMTRAIN_ROWS_DENSE] = SHMT_ROWS_DENSE,
                                                   [SHMTRAIN_ROWS_EITHER] = SHMT_ROWS_EITHER};
    return LAYOUTS[rows];
}

enum shmt_row_layout shmt_rows_for(const struct shmtrain_model *model) {
    return shmt_rows_as((enum shmtrain_rows)model->traits.rows);
}

int shmt_load_open(struct shmt_load *load, struct shmt_loading *loading, const char *name, unsigned how, const char *table,
                   uint32_t n_readers, enum shmt_row_layout rows) {
    struct shmt_table_wish wish;
    int rc = shmt_arrays_check_name(loading, name);
    if (rc < 0) return rc;
    *load = (struct shmt_load){.name = name, .rows = rows, .dense = rows != SHMT_ROWS_SPARSE, .n_readers = n_readers};
    shmt_table_wish(loading, name, how, table, &wish);
    rc = shmt_source_open_as(&wish.source, &load->source, &loading->call->error);
    if (rc < 0) return rc;
    const char *title = shmt_source_title(load->source);
    if (title) snprintf(load->title, sizeof load->title, "%s", title);
    if (title) load->name = load->title;
    if (!keep_table(load)) return shmt_no_memory(&loading->call->error, "to read %s", name);
    load->has_ids = shmt_source_has_ids(load->source);
    load->has_labels = shmt_source_has_labels(load->source);
    load->shape = shmt_source_shape(load->source);
    load->n_parts = shmt_source_parts(load->source, n_readers);
    load->part = calloc(load->n_parts, sizeof *load->part);
    load->took_ns = calloc(n_readers, sizeof *load->took_ns);
    load->reading = calloc(n_readers, sizeof *load->reading);
    load->buffer = calloc(n_readers, sizeof *load->buffer);
    if (load->part && load->took_ns && load->reading && load->buffer) return 0;
    return shmt_no_memory(&loading->call->error, "to read %s", name);
}

uint64_t shmt_rows_guess_bytes(const struct shmt_source *source, enum shmt_row_layout rows) {
    const uint64_t bytes = shmt_source_guess_bytes(source, rows != SHMT_ROWS_SPARSE);
    return rows == SHMT_ROWS_EITHER ? shmt_min_u64(bytes, shmt_source_guess_bytes(source, false)) : bytes;
}

/* ---- passes ---- */

static void renumber(const struct shmt_load *load, const uint32_t *place, uint32_t part) {
    const uint64_t n = load->totals.n_nonzeros;
    uint32_t *id = shmt_segment_at(&load->segment, load->id_off, n * sizeof *id);
    const uint64_t from = (uint64_t)((unsigned __int128)n * part / load->n_parts);
    const uint64_t to = (uint64_t)((unsigned __int128)n * (part + 1) / load->n_parts);
    for (uint64_t j = from; j < to; j++) id[j] = place[id[j]];
}

static int fill(struct pass *pass, uint32_t i, struct shmt_error *e) {
    struct shmt_load *load = pass->load;
    if (!load->buffered) return shmt_source_fill(load->source, i, load->n_parts, load->part, pass->into, e);
    return shmt_row_buffer_fill(load->buffer, load->part, i, load->n_parts, pass->into, e);
}

/* Another count of rows that are there already. */
static int recount(struct pass *pass, uint32_t i, struct shmt_error *e) {
    struct shmt_part *part = &pass->load->part[i];
    return shmt_row_buffer_recount(&pass->load->buffer[part->buffer], pass->columns, part, e);
}

static int count(struct pass *pass, uint32_t reader, uint32_t i, struct shmt_error *e) {
    struct shmt_load *load = pass->load;
    struct shmt_row_buffer *buffer = &load->buffer[reader];
    if (load->buffered) return recount(pass, i, e);
    /* A bad line is no failure of the reader: the first one in the file counts, which another part may have. */
    (void)shmt_source_count(load->source, pass->columns, i, load->n_parts, buffer->most_bytes ? buffer : NULL, &load->part[i]);
    return 0;
}

/* Without buffers the source is read again. */
static void gather(struct pass *pass, uint32_t reader, uint32_t i) {
    struct shmt_load *load = pass->load;
    struct shmt_row_buffer *buffer = &load->buffer[reader];
    struct shmt_part *part = &load->part[i];
    const struct shmt_columns all = SHMT_ALL_COLUMNS;
    if (load->buffered)
        shmt_row_buffer_gather(&load->buffer[part->buffer], part, &buffer->ids);
    else
        (void)shmt_source_count(load->source, &all, i, load->n_parts, buffer, part);
}

/* 1: there may be more. */
static int read_flow(struct pass *pass, uint32_t reader, struct shmt_error *e) {
    struct shmt_load *load = pass->load;
    struct shmt_row_buffer *buffer = &load->buffer[reader];
    if (pass->into) return shmt_flow_fill(pass->flow, load->part, load->n_parts, pass->into, e);
    const struct shmt_columns all = SHMT_ALL_COLUMNS;
    return shmt_flow_count(pass->flow, pass->gathers ? &all : pass->columns,
                           pass->gathers || buffer->most_bytes ? buffer : NULL, e);
}

static int read_part(struct pass *pass, uint32_t reader, uint32_t i, struct shmt_error *e) {
    if (pass->into) return fill(pass, i, e);
    if (pass->gathers) gather(pass, reader, i);
    if (pass->gathers) return 0;
    if (pass->columns) return count(pass, reader, i, e);
    if (!pass->place) return shmt_source_unpack(pass->load->source, e);
    renumber(pass->load, pass->place, i);
    return 0;
}

/* 1: there may be more. */
static int read_next(struct pass *pass, uint32_t reader, struct shmt_error *e) {
    if (pass->flow) return read_flow(pass, reader, e);
    const uint32_t i = take_relaxed(&pass->next, 1);
    if (i >= pass->n_parts) return 0;
    const int rc = load_relaxed(&pass->abort) ? SHMTRAIN_E_STOPPED : read_part(pass, reader, i, e);
    return rc < 0 ? rc : 1;
}

static int work(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct pass *pass = arg;
    const uint64_t from_ns = shmt_now_ns();
    int rc;
    (void)team;
    while ((rc = read_next(pass, rank, e)) > 0) {}
    pass->load->reading[rank] = (struct shmt_reading){from_ns, shmt_now_ns() - from_ns};
    pass->load->took_ns[rank] += pass->load->reading[rank].ns;
    return rc;
}

static const char *name_of(const struct pass *pass) {
    return pass->into ? "fill" : pass->gathers ? "gather" : pass->columns ? "count" : pass->place ? "renumber" : "unpack";
}

/* Threads, because what they fill may be memory of this process alone, which workers inherit when they are forked. */
static int run_pass(struct shmt_loading *loading, struct pass *pass) {
    const uint32_t n = (uint32_t)shmt_min_u64(pass->load->n_readers, pass->n_parts);
    const struct shmt_team_spec spec = {
        .kind = &SHMT_TEAM_THREADS, .n = n, .body = work, .arg = pass, .abort = &pass->abort, .what = "reading data"};
    const int rc = shmt_drive(loading->call, &spec, &(struct shmt_driver){0});
    if (rc == 0) shmt_readings_add(&loading->passes, pass->load->name, name_of(pass), pass->load->reading, n);
    return rc;
}

/* What a count has found in a source that flows. */
static int take_parts(struct pass *pass, struct shmt_error *e) {
    struct shmt_load *load = pass->load;
    struct shmt_part *part;
    const int rc = shmt_flow_take_parts(pass->flow, &part, &load->n_parts, e);
    if (rc < 0) return rc;
    free(load->part);
    load->part = part;
    return 0;
}

/* A pass that reads the source. */
static int run_reading(struct shmt_loading *loading, struct pass *pass) {
    struct shmt_load *load = pass->load;
    if (load->buffered || !shmt_source_flows(load->source)) return run_pass(loading, pass);
    if (load->was_read && shmt_source_is_once(load->source))
        return shmt_no_memory(&loading->call->error,
                              "to keep the text of %s, which cannot be read twice: save it to a file first", load->name);
    load->was_read = true;
    int rc = shmt_flow_open(load->source, &pass->abort, &pass->flow, &loading->call->error);
    if (rc < 0) return rc;
    rc = run_pass(loading, pass);
    if (rc == 0)
        rc = pass->into ? shmt_flow_check(pass->flow, load->n_parts, &loading->call->error)
                        : take_parts(pass, &loading->call->error);
    shmt_flow_close(pass->flow);
    return rc;
}

/* By one reader. What a header announces is held against the memory first. */
static int unpack(struct shmt_load *load, struct shmt_loading *loading) {
    struct pass pass = {.load = load, .n_parts = 1};
    if (load->unpacked || !shmt_source_is_packed(load->source)) return 0;
    int rc = shmt_budget_need(shmt_rows_guess_bytes(load->source, load->rows), load->name, NULL,
                              "free some, or train on a part of it", &loading->call->error);
    if (rc == 0) rc = run_pass(loading, &pass);
    load->unpacked = rc == 0;
    return rc;
}

/* ---- count ---- */

/* What the rows may take until they have their place: half of what will be left then. */
static void make_buffers(struct shmt_load *load) {
    struct shmt_budget budget;
    shmt_budget_read("", &budget);
    const uint64_t guess = shmt_rows_guess_bytes(load->source, load->rows);
    const uint64_t left = budget.available_bytes > guess ? budget.available_bytes - guess : 0;
    for (uint32_t r = 0; r < load->n_readers; r++) {
        shmt_row_buffer_free(&load->buffer[r]);
        load->buffer[r] = (struct shmt_row_buffer){.number = r, .most_bytes = left / 2 / load->n_readers};
    }
}

static void free_buffers(struct shmt_load *load) {
    for (uint32_t r = 0; load->buffer && r < load->n_readers; r++) shmt_row_buffer_free(&load->buffer[r]);
    load->buffered = false;
}

bool shmt_load_drop_buffers(struct shmt_load *load) {
    if (!load->buffered || shmt_source_is_once(load->source)) return false;
    free_buffers(load);
    return true;
}

/* One that has given up has given up for all. */
static bool is_buffered(const struct shmt_load *load) {
    bool all = shmt_source_fills_buffers(load->source);
    for (uint32_t r = 0; r < load->n_readers; r++) all &= load->buffer[r].most_bytes > 0 && !load->buffer[r].given_up;
    return all;
}

/* Once, however often it is counted. */
static void note_remark(struct shmt_load *load, struct shmt_call *call) {
    const char *remark = load->told_remark ? NULL : shmt_source_remark(load->source);
    if (remark) shmt_log(&call->log, "%s: %s", load->name, remark);
    load->told_remark = true;
}

/* What was found that is no data. Once, however often it is counted. */
static void note_others(struct shmt_load *load, struct shmt_call *call) {
    char line[SHMT_ERROR_TEXT + 4 * SHMT_NAME_SHOWN];
    if (load->told_others) return;
    load->told_others = true;
    if (shmt_parts_empty(load->source, load->part, load->n_parts, line, sizeof line)) shmt_log(&call->log, "%s", line);
    if (load->totals.n_skipped == 0) return;
    shmt_parts_skipped(load->source, load->part, load->n_parts, line, sizeof line);
    shmt_log(&call->log, "%s", line);
}

int shmt_load_count(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_columns *columns) {
    const struct shmt_columns all = SHMT_ALL_COLUMNS;
    struct pass pass = {.load = load, .columns = columns ? columns : &all, .n_parts = load->n_parts};
    if (!load->buffered) make_buffers(load);
    int rc = unpack(load, loading);
    if (rc == 0) rc = run_reading(loading, &pass);
    if (rc < 0) return rc;
    load->buffered = is_buffered(load);
    if (!load->buffered) free_buffers(load);
    if (!keep_table(load)) return shmt_no_memory(&loading->call->error, "to read %s", load->name);
    note_remark(load, loading->call); /* it may be why a line is refused */
    rc = shmt_parts_total(load->source, load->part, load->n_parts, &load->totals, &loading->call->error);
    if (rc == 0) note_others(load, loading->call);
    return rc;
}

/* ---- columns ---- */

static int run_gather(struct shmt_load *load, struct shmt_loading *loading) {
    struct pass pass = {.load = load, .gathers = true, .n_parts = load->n_parts};
    for (uint32_t r = 0; r < load->n_readers; r++) {
        load->buffer[r].gathers = true;
        if (!load->buffered) load->buffer[r].given_up = true;
    }
    const int rc = run_reading(loading, &pass);
    for (uint32_t r = 0; r < load->n_readers; r++) load->buffer[r].gathers = false;
    return rc < 0 ? rc : shmt_parts_total(load->source, load->part, load->n_parts, &load->totals, &loading->call->error);
}

/* The ids that occur, in ascending order, into load->ids. */
static int list_ids(struct shmt_load *load, struct shmt_loading *loading) {
    struct shmt_ids *set = calloc(load->n_readers, sizeof *set);
    if (!set) return shmt_no_memory(&loading->call->error, "to read %s", load->name);
    int rc = run_gather(load, loading);
    for (uint32_t r = 0; r < load->n_readers; r++) {
        set[r] = load->buffer[r].ids;
        load->buffer[r].ids = (struct shmt_ids){0};
    }
    shmt_ids_free(&load->ids);
    if (rc == 0) rc = shmt_load_join_ids(loading->call, set, load->n_readers, load->name, &load->ids);
    for (uint32_t r = 0; r < load->n_readers; r++) shmt_ids_free(&set[r]);
    free(set);
    return rc;
}

static void note_list(const struct shmt_load *load, const struct shmt_call *call) {
    if (load->table) return; /* nobody has written these ids */
    shmt_log(&call->log, "%s has ids up to %llu: only the %u that occur get parameters", load->name,
             (unsigned long long)load->totals.max_id, load->ids.n);
}

/* Of ids from `base` on; as many as a count has room for at most. */
static uint64_t range_of(const struct shmt_totals *t, uint32_t base) {
    if (t->min_id > t->max_id) return 0;
    return t->max_id - base == UINT64_MAX ? UINT64_MAX : t->max_id - base + 1;
}

/* Nonzeros with whatever id; count has left out those that no table can have. */
static uint64_t all_nonzeros(const struct shmt_load *load) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < load->n_parts; i++)
        n += load->buffered ? load->part[i].buffered_nonzeros : load->part[i].n_nonzeros;
    return n;
}

/* Whether the ids that occur are to be listed, of so many: their list is there then. Dense rows have room for each column, so
 * there are fewer of them wherever that saves much; but a pipe is not read again for it. */
static int list_ids_of(struct shmt_load *load, struct shmt_loading *loading, uint64_t range, bool *listed_out) {
    const bool apart = shmt_ids_are_far_apart(range, all_nonzeros(load));
    const bool looks = (load->dense || load->wide) && (load->buffered || !shmt_source_is_once(load->source)) &&
                       shmt_ids_may_be_few(range, load->totals.n_examples, all_nonzeros(load));
    *listed_out = false;
    if (!shmt_source_has_any_ids(load->source) || !(apart || looks)) return 0;
    const int rc = list_ids(load, loading);
    if (rc == 0) *listed_out = apart || shmt_ids_are_few(load->ids.n, range);
    if (rc == 0 && !*listed_out) shmt_ids_free(&load->ids);
    return rc;
}

int shmt_load_own_columns(struct shmt_load *load, struct shmt_loading *loading, uint32_t base, uint32_t hash_bits,
                          struct shmt_columns *out) {
    const uint64_t range = range_of(&load->totals, base);
    uint64_t n;
    const uint64_t *listed = shmt_source_listed_ids(load->source, &n);
    bool lists = false;
    int rc = 0;
    *out = (struct shmt_columns){.base = base, .n_features = (uint32_t)range};
    if (hash_bits > 0) {
        if (!load->has_ids) return shmt_refuse(&loading->call->error, "%s has no ids to hash: remove --hash-bits", load->name);
        *out = (struct shmt_columns){.n_features = UINT32_C(1) << hash_bits, .hash_bits = hash_bits};
    } else if (listed) {
        shmt_ids_free(&load->ids);
        rc = shmt_ids_take(listed, n, &load->ids, &loading->call->error);
        load->ids.from = listed;
        *out = (struct shmt_columns){.n_features = load->ids.n, .ids = &load->ids};
    } else {
        rc = list_ids_of(load, loading, range, &lists);
        if (rc == 0 && !lists) return 0;
        *out = (struct shmt_columns){.n_features = load->ids.n, .ids = load->ids.n > 0 ? &load->ids : NULL};
    }
    if (rc == 0 && out->ids) note_list(load, loading->call);
    return rc == 0 ? shmt_load_count(load, loading, out) : rc;
}

int shmt_load_columns(const struct shmt_load *load, const struct shmt_columns *model, struct shmt_columns *out,
                      struct shmt_error *e) {
    *out = *model;
    if (load->has_ids) return 0;
    out->base = 0;
    if (shmt_columns_are_range(model)) return 0;
    return shmt_refuse(e, "%s has elements without ids, but the model's features have ids: use data with ids", load->name);
}

static void plan_sparse(struct shmt_load *load, struct shmt_layout *layout) {
    const struct shmt_totals *t = &load->totals;
    load->start_off = shmt_layout_add_pages(layout, t->n_examples + 1, sizeof(uint64_t));
    load->id_off = shmt_layout_add_pages(layout, t->n_nonzeros, sizeof(uint32_t));
    load->value_off = shmt_layout_add_pages(layout, t->all_ones ? 0 : t->n_nonzeros, sizeof(float));
}

/* Whether rows are filled enough to be a matrix, each of whose multiplications takes a small part of the time of one that goes by
 * nonzeros. */
static bool is_filled(const struct shmt_totals *t, uint32_t n_features) {
    return FILLED * (double)t->n_nonzeros >= (double)t->n_examples * n_features;
}

/* Whether columns are the elements, in their order: then the shape says what they are. */
static bool has_all_columns(const struct shmt_load *load) {
    const struct shmt_columns *columns = &load->columns;
    return shmt_columns_are_range(columns) && columns->base == 0 && shmt_example_shape_has(&load->shape, columns->n_features);
}

static void forget_shape(struct shmtrain_data *data) { data->channels = data->height = data->width = 0; }

void shmt_load_plan(struct shmt_load *load, const struct shmt_columns *columns) {
    const struct shmt_totals *t = &load->totals;
    struct shmt_layout layout = {0};
    load->columns = *columns;
    if (load->rows == SHMT_ROWS_EITHER) load->dense = is_filled(t, columns->n_features);
    if (load->dense)
        load->dense_off = shmt_layout_add_pages(&layout, t->n_examples, columns->n_features * sizeof(float));
    else
        plan_sparse(load, &layout);
    load->label_off = shmt_layout_add_pages(&layout, t->n_examples, sizeof(float));
    if (load->weighted) load->weight_off = shmt_layout_add_pages(&layout, t->n_examples, sizeof(float));
    load->bytes = layout.failed ? UINT64_MAX : layout.bytes;
    load->data = (struct shmtrain_data){.size = sizeof(struct shmtrain_data),
                                        .n_examples = t->n_examples,
                                        .n_nonzeros = t->n_nonzeros,
                                        .n_features = columns->n_features,
                                        .n_labels = t->labels.n,
                                        .label_low = t->label_low,
                                        .label_high = t->label_high,
                                        .mean_square = t->mean_square,
                                        .best_loss = NAN};
    if (has_all_columns(load)) {
        load->data.channels = load->shape.channels;
        load->data.height = load->shape.height;
        load->data.width = load->shape.width;
    }
    if (t->labels.n > SHMTRAIN_MAX_CLASSES) return;
    shmt_labels_ascending(&t->labels, load->classes);
    load->data.classes = load->classes;
}

/* Where the parts are written to. */
static struct shmt_arrays arrays_of(const struct shmt_load *load) {
    const struct shmt_totals *t = &load->totals;
    const struct shmt_segment *s = &load->segment;
    struct shmt_arrays into = {.columns = load->columns};
    into.label = shmt_segment_at(s, load->label_off, t->n_examples * sizeof(float));
    if (load->dense) {
        into.dense = shmt_segment_at(s, load->dense_off, t->n_examples * load->columns.n_features * sizeof(float));
        return into;
    }
    into.start = shmt_segment_at(s, load->start_off, (t->n_examples + 1) * sizeof(uint64_t));
    into.id = shmt_segment_at(s, load->id_off, t->n_nonzeros * sizeof(uint32_t));
    into.value = t->all_ones ? NULL : shmt_segment_at(s, load->value_off, t->n_nonzeros * sizeof(float));
    return into;
}

/* Memory of this process, which workers inherit, has huge pages nearly everywhere; shared memory seldom. */
static bool may_be_private(const struct shmt_load *load, const struct shmt_machine *machine) {
    return load->pages == SHMT_PAGES_ORDINARY && load->bytes >= SHMT_HUGE_BYTES && strcmp(machine->hugepages, "off") != 0 &&
           shmt_topo_transparent_private(machine->topo);
}

static int make_segment(struct shmt_load *load, struct shmt_call *call, const struct shmt_crew *crew,
                        const struct shmt_readers *readers) {
    struct shmt_segment_wish wish = {.name = "data",
                                     .fd = -1,
                                     .bytes = load->bytes,
                                     .page_bytes = shmt_pages_bytes(load->pages),
                                     .transparent = load->pages == SHMT_PAGES_TRANSPARENT,
                                     .is_private = may_be_private(load, &crew->machine),
                                     .topo = crew->topo,
                                     .log = &call->log,
                                     .stopped = shmt_call_is_stopped,
                                     .arg = call};
    const struct shmt_file_maker *maker = &load->file_maker;
    struct shmt_memory_range *range;
    int rc = shmt_load_ranges(load, readers, &range, &wish.n_ranges, &call->error);
    if (rc < 0) return rc;
    wish.range = range;
    if (maker->make) rc = maker->make(maker->arg, load->named_part, &wish.fd, &call->error);
    load->is_shared = wish.fd >= 0;
    if (wish.fd >= 0) wish.is_private = 0; /* guests will map it */
    if (rc == 0) rc = shmt_segment_create(&wish, &load->segment, &call->error);
    if (rc < 0 && wish.fd >= 0) close(wish.fd);
    free(range);
    return rc;
}

int shmt_load_fill(struct shmt_load *load, struct shmt_loading *loading, const struct shmt_crew *crew,
                   const struct shmt_readers *readers) {
    int rc;
    if (load->in_place) {
        rc = shmt_given_of(load->source) ? shmt_arrays_take(load, &loading->call->error)
                                         : shmt_cache_take(load, &loading->call->error);
        if (rc == 0) load->has_weights = shmt_arrays_take_weights(load);
        return rc;
    }
    rc = make_segment(load, loading->call, crew, readers);
    if (rc == SHMTRAIN_E_MEMORY && !load->is_shared &&
        shmt_load_drop_buffers(load)) /* without what was kept there may be room */
        rc = make_segment(load, loading->call, crew, readers);
    if (rc < 0) return rc;
    const struct shmt_arrays into = arrays_of(load);
    struct pass pass = {.load = load, .into = &into, .n_parts = load->n_parts};
    rc = run_reading(loading, &pass);
    free_buffers(load);
    if (rc < 0) return rc;
    if (load->weighted)
        load->weight = shmt_segment_at(&load->segment, load->weight_off, load->totals.n_examples * sizeof(float));
    load->has_weights = shmt_arrays_take_weights(load);
    shmt_source_close(load->source);
    load->source = NULL;
    load->data.start = into.start;
    load->data.id = into.id;
    load->data.value = into.value;
    load->data.dense = into.dense;
    load->data.label = into.label;
    load->data.weight = load->weight;
    load->data.best_loss = shmt_parts_best_loss(load->part, load->n_parts);
    return 0;
}

int shmt_load_renumber(struct shmt_load *load, struct shmt_loading *loading, const uint32_t *place) {
    struct pass pass = {.load = load, .place = place, .n_parts = load->n_parts};
    forget_shape(&load->data);
    return run_pass(loading, &pass);
}

uint64_t shmt_load_own_bytes(const struct shmt_load *load) {
    if (!load->in_place) return load->bytes;
    return load->weighted ? load->totals.n_examples * sizeof(float) : 0;
}

void shmt_load_close(struct shmt_load *load) {
    if (load->in_place) free(load->weight);
    if (load->segment.base) shmt_segment_detach(&load->segment);
    free_buffers(load);
    for (uint32_t r = 0; load->buffer && r < load->n_readers; r++) shmt_ids_free(&load->buffer[r].ids);
    shmt_ids_free(&load->ids);
    free(load->buffer);
    free(load->table);
    free(load->part);
    free(load->took_ns);
    free(load->reading);
    shmt_source_close(load->source);
    *load = (struct shmt_load){0};
}
