/* Looking at data without training: loads it as a run would, and counts. What is counted is said in <shmtrain/data_info.h>. On
 * the application's thread: a few passes over the data, which a stop ends. */
#include <math.h>
#include <shmtrain/data_info.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loading/convert.h"
#include "loading/load.h"
#include "loading/read.h"
#include "loading/table.h"
#include "base/checked.h"
#include "base/show.h"
#include "files/csv_plan.h"
#include "segment/budget.h"

/* Of each feature. */
struct feature {
    uint32_t examples;
    float low, high; /* of its nonzeros */
};

struct look {
    struct shmt_call *call;
    const struct shmtrain_data *data;
    const struct shmt_columns *columns;
    struct shmtrain_data_info *out;
    struct feature *feature; /* (n_features) */
    uint32_t *most;          /* (MOST_TOP) a heap: how often the most frequent features occur, the least often one first */
    uint64_t *seen;          /* (n_slots) hashes of examples; 0: free */
    uint32_t marked[SHMTRAIN_INFO_COLUMNS]; /* examples with the mark of each column of numbers (csv_plan.h) */
    uint64_t n_slots;                       /* a power of two, twice the examples at least */
};

#define LOOK     16384 /* rows or features between two looks at a stop */
#define MOST_TOP 10000 /* of the most frequent features, whose share is told */

static bool is_stopped(const struct look *l) { return shmt_stop_asked(l->call); }

/* ---- rows ---- */

static float value_at(const struct shmtrain_data *data, uint64_t j) { return data->value ? data->value[j] : 1; }

static uint64_t hash_of(const struct shmtrain_data *data, uint64_t i) {
    const uint64_t from = data->start[i], n = data->start[i + 1] - from;
    uint32_t label;
    memcpy(&label, &data->label[i], sizeof label);
    uint64_t hash = XXH3_64bits_withSeed(n > 0 ? data->id + from : NULL, n * sizeof *data->id, label);
    if (data->value && n > 0) hash = XXH3_64bits_withSeed(data->value + from, n * sizeof *data->value, hash);
    return hash != 0 ? hash : 1;
}

/* Open addressing; true: it was there. */
static bool remember(struct look *l, uint64_t hash) {
    uint64_t at = hash & (l->n_slots - 1);
    while (l->seen[at] != 0 && l->seen[at] != hash) at = (at + 1) & (l->n_slots - 1);
    const bool was = l->seen[at] == hash;
    l->seen[at] = hash;
    return was;
}

static void look_at_row(struct look *l, uint64_t i) {
    const struct shmtrain_data *data = l->data;
    for (uint64_t j = data->start[i]; j < data->start[i + 1]; j++) {
        struct feature *f = &l->feature[data->id[j]];
        const float value = value_at(data, j);
        f->low = f->examples == 0 || value < f->low ? value : f->low;
        f->high = f->examples == 0 || value > f->high ? value : f->high;
        f->examples++;
        l->out->value_mean += (double)value;
    }
    l->out->duplicates += remember(l, hash_of(data, i));
}

static uint64_t row_of(const struct look *l, uint64_t i) { return l->data->start[i + 1] - l->data->start[i]; }

/* How many examples have at most `most` nonzeros; false: a stop was asked for. */
static bool count_rows_up_to(const struct look *l, uint64_t most, uint64_t *out) {
    *out = 0;
    for (uint64_t i = 0; i < l->data->n_examples; i++) {
        if (i % LOOK == 0 && is_stopped(l)) return false;
        *out += row_of(l, i) <= most;
    }
    return true;
}

/* The example in the middle, by size: the smallest size that more than half of the others do not exceed. Halving takes a pass
 * for each bit of the largest size, and no memory. */
static bool find_median(struct look *l) {
    uint64_t low = l->out->row_least, high = l->out->row_most;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        uint64_t n;
        if (!count_rows_up_to(l, middle, &n)) return false;
        if (n > l->data->n_examples / 2)
            high = middle;
        else
            low = middle + 1;
    }
    l->out->row_median = low;
    return true;
}

static bool look_at_rows(struct look *l) {
    const struct shmtrain_data *data = l->data;
    struct shmtrain_data_info *out = l->out;
    out->row_least = UINT64_MAX;
    for (uint64_t i = 0; i < data->n_examples; i++) {
        if (i % LOOK == 0 && is_stopped(l)) return false;
        look_at_row(l, i);
        out->empty += row_of(l, i) == 0;
        out->row_least = shmt_min_u64(out->row_least, row_of(l, i));
        out->row_most = shmt_max_u64(out->row_most, row_of(l, i));
        out->label_mean += (double)data->label[i];
    }
    out->label_mean /= (double)data->n_examples;
    if (data->n_nonzeros > 0) out->value_mean /= (double)data->n_nonzeros;
    return find_median(l);
}

/* ---- labels ---- */

static uint32_t class_of(const struct shmtrain_data_info *info, float label) {
    uint32_t low = 0, high = info->n_labels - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (info->label[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool look_at_labels(struct look *l) {
    const struct shmtrain_data *data = l->data;
    if (data->n_labels > SHMTRAIN_MAX_CLASSES) return true;
    memcpy(l->out->label, data->classes, data->n_labels * sizeof *data->classes);
    for (uint64_t i = 0; i < data->n_examples; i++) {
        if (i % LOOK == 0 && is_stopped(l)) return false;
        l->out->label_examples[class_of(l->out, data->label[i])]++;
    }
    return true;
}

/* ---- features ---- */

/* One more feature for the list of the most frequent ones; called by ascending id. */
static void offer(struct shmtrain_data_info *out, uint64_t id, uint64_t examples) {
    uint32_t at = SHMTRAIN_INFO_MOST_FOUND;
    while (at > 0 && examples > out->top_examples[at - 1]) at--;
    if (at == SHMTRAIN_INFO_MOST_FOUND) return;
    for (uint32_t i = SHMTRAIN_INFO_MOST_FOUND - 1; i > at; i--) {
        out->top_id[i] = out->top_id[i - 1];
        out->top_examples[i] = out->top_examples[i - 1];
    }
    out->top_id[at] = id;
    out->top_examples[at] = examples;
}

static void count_mark(struct look *l, uint64_t id, uint32_t examples) {
    uint32_t feature;
    if (!shmt_csv_is_mark(id, &feature)) return;
    for (uint32_t i = 0; i < l->out->n_columns && i < SHMTRAIN_INFO_COLUMNS; i++)
        if (l->out->column[i].feature == feature) l->marked[i] = examples;
}

static void look_at_scale(struct look *l, uint64_t id, const struct feature *f, float *smallest, float *largest) {
    const float size = fmaxf(fabsf(f->low), fabsf(f->high));
    if (size < *smallest) l->out->small_id = id;
    if (size > *largest) l->out->large_id = id;
    *smallest = fminf(size, *smallest);
    *largest = fmaxf(size, *largest);
}

/* One more count; the least one so far falls out, and the heap is set right from its top down. */
static void add_to_most(struct look *l, uint32_t examples) {
    uint32_t at = 0, *most = l->most;
    if (examples <= most[0]) return;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < MOST_TOP && most[child + 1] < most[child]) child++;
        if (child >= MOST_TOP || most[child] >= examples) break;
        most[at] = most[child];
        at = child;
    }
    most[at] = examples;
}

static bool look_at_features(struct look *l) {
    struct shmtrain_data_info *out = l->out;
    float smallest = INFINITY, largest = 0;
    for (uint64_t c = 0; c < l->data->n_features; c++) {
        const struct feature *f = &l->feature[c];
        if (c % LOOK == 0 && is_stopped(l)) return false;
        add_to_most(l, f->examples);
        if (f->examples == 0) continue;
        const uint64_t id = l->columns->ids ? l->columns->ids->id[c] : c + l->columns->base;
        const bool first = out->occurring++ == 0;
        out->value_low = first || f->low < out->value_low ? f->low : out->value_low;
        out->value_high = first || f->high > out->value_high ? f->high : out->value_high;
        out->octave[31 - __builtin_clz(f->examples)]++;
        out->once += f->examples == 1;
        if (f->examples > 1 && f->examples == l->data->n_examples && f->low == f->high && out->constant++ == 0)
            out->constant_id = id;
        offer(out, id, f->examples);
        count_mark(l, id, f->examples);
        look_at_scale(l, id, f, &smallest, &largest);
    }
    out->scale = out->occurring > 0 ? (double)largest / (double)smallest : 1;
    return true;
}

static int compare_descending(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void look_at_tops(struct look *l) {
    static const uint64_t TOPS[SHMTRAIN_INFO_TOPS] = {10, 100, 1000, MOST_TOP};
    uint64_t sum = 0, i = 0;
    qsort(l->most, MOST_TOP, sizeof *l->most, compare_descending);
    for (uint32_t top = 0; top < SHMTRAIN_INFO_TOPS; top++) {
        for (; i < TOPS[top]; i++) sum += l->most[i];
        l->out->top_share[top] = l->data->n_nonzeros > 0 ? (double)sum / (double)l->data->n_nonzeros : 1;
    }
}

/* ---- all ---- */

static uint64_t work_bytes(const struct look *l) {
    return l->data->n_features * sizeof *l->feature + MOST_TOP * sizeof *l->most + l->n_slots * sizeof *l->seen;
}

static int check_memory(struct shmt_call *call, const struct look *l, const char *name) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(name, shown);
    return shmt_budget_need(work_bytes(l), shown, NULL, "free some, or use a part of it", &call->error);
}

static void begin(const struct shmt_load *load, struct shmtrain_data_info *out) {
    const struct shmtrain_data *data = &load->data;
    *out = (struct shmtrain_data_info){.examples = data->n_examples,
                                       .skipped = load->totals.n_skipped,
                                       .nonzeros = data->n_nonzeros,
                                       .features = data->n_features,
                                       .first_id = load->totals.min_id,
                                       .last_id = load->totals.max_id,
                                       .n_labels = data->n_labels,
                                       .label_low = data->label_low,
                                       .label_high = data->label_high,
                                       .all_ones = data->value == NULL,
                                       .mean_square = data->mean_square,
                                       .best_loss = data->best_loss,
                                       .channels = data->channels,
                                       .height = data->height,
                                       .width = data->width};
    shmt_table_columns(load->table, out);
}

static int look_at(struct shmt_call *call, const struct shmt_load *load, struct shmtrain_data_info *out) {
    struct look l = {.call = call, .data = &load->data, .columns = &load->columns, .out = out, .n_slots = 2};
    while (l.n_slots < 2 * l.data->n_examples) l.n_slots *= 2;
    int rc = check_memory(call, &l, load->name);
    if (rc < 0) return rc;
    begin(load, out);
    l.feature = calloc((size_t)l.data->n_features + 1, sizeof *l.feature);
    l.most = calloc(MOST_TOP, sizeof *l.most);
    l.seen = calloc(l.n_slots, sizeof *l.seen);
    if (!l.feature || !l.most || !l.seen)
        rc = shmt_no_memory(&call->error, "to look at %s", load->name);
    else if (look_at_rows(&l) && look_at_labels(&l) && look_at_features(&l))
        look_at_tops(&l);
    else
        rc = shmt_fail(&call->error, SHMTRAIN_E_STOPPED, "stopped while looking at %s", load->name);
    if (rc == 0) shmt_table_missing(load->table, l.marked, out);
    free(l.seen);
    free(l.most);
    free(l.feature);
    return rc;
}

int shmt_data_info(struct shmt_loading *loading, const char *data, struct shmtrain_data_info *out) {
    struct shmt_crew crew = {0};
    struct shmt_load load = {0};
    const struct shmt_reading_wish wish = {.name = data, .rows = SHMT_ROWS_SPARSE};
    if (!data || data[0] == '\0') return shmt_refuse(&loading->call->error, "name a file: the data has no name");
    int rc =
        shmt_crew_make(loading->call, loading->config, shmt_backend_at(loading->config->backend), SHMT_SEAT_OF_FUNCTION, &crew);
    if (rc == 0) rc = shmt_read_load(loading, &crew, &wish, &load);
    if (rc == 0) rc = look_at(loading->call, &load, out);
    shmt_load_close(&load);
    shmt_crew_free(&crew);
    return rc;
}
