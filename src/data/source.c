/* Sources of examples, whatever their kind: which one a name means, the keys of generators, and adding up parts. See
 * source.h. */
#include "data/cache_priv.h"
#include "data/csv.h"
#include "data/given.h"
#include "data/source_priv.h"
#include "data/row_buffer.h"
#include "base/checked.h"
#include "base/show.h"
#include "files/array_file.h"
#include "files/names.h"
#include "files/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUILTIN "builtin:"

#define PART_BYTES ((uint64_t)2 << 20) /* of arrays: some milliseconds of parsing */
#define MOST_PARTS 256                 /* what is found in a part takes 15 KiB */

static const struct {
    const char *name;
    int (*open)(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e);
} GENERATORS[] = {
    {"sparse", shmt_sparse_open}, {"dense", shmt_dense_open}, {"line", shmt_line_open}, {"digits", shmt_digits_open}};

enum { ANY_KIND, TABLE };

/* What the caller says, or else the name. */
static int text_kind(const struct shmt_source_wish *wish, struct shmt_error *e) {
    const char *format = wish->format;
    if (!format || format[0] == '\0' || strcmp(format, "auto") == 0) return shmt_csv_is_name(wish->name) ? TABLE : ANY_KIND;
    if (strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0) return TABLE;
    if (strcmp(format, "libsvm") == 0) return ANY_KIND;
    return shmt_refuse(e, "--input-format %.20s: expected auto, libsvm, csv or tsv", format);
}

static bool is_pipe(const char *name) {
    struct stat s;
    return strcmp(name, "-") == 0 || (stat(name, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode));
}

/* What a file is that is none of text; NULL: it may be one. */
static const char *other_kind(const char *name) {
    struct shmt_array_file array;
    if (strncmp(name, BUILTIN, strlen(BUILTIN)) == 0) return "generated";
    if (is_pipe(name)) return NULL;
    if (shmt_cache_begins(name)) return "a cache";
    if (shmt_array_file_is_archive(name)) return "an archive";
    if (shmt_array_file_open(name, &array, NULL) <= 0) return NULL;
    shmt_array_file_close(&array);
    return array.format == SHMT_ARRAY_IDX ? "an IDX file" : "a NumPy file";
}

/* Of several files each must be text, and all of one kind, which is returned; a pipe has no name to tell it by. */
static int list_kind(const struct shmt_source_wish *wish, struct shmt_error *e) {
    const uint32_t n = shmt_names_count(wish->name);
    struct shmt_source_wish one = *wish;
    char shown[SHMT_NAME_SHOWN];
    int rc = 0, kind = -1;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        char *name = shmt_names_at(wish->name, i);
        if (!name) return shmt_no_memory(e, "to open %u files", n);
        const char *is = other_kind(name);
        shmt_show_name(name, shown);
        one.name = name;
        const int its = text_kind(&one, e);
        if (shmt_cifar_is(name))
            rc = shmt_refuse(e, "%s is a CIFAR-10 file, and the others are not all such files: use those of one kind", shown);
        else if (is)
            rc = shmt_refuse(e, "%s is %s, but only text files can be combined: use this file alone", shown, is);
        else if (kind >= 0 && its != kind && !is_pipe(name))
            rc = shmt_refuse(
                e,
                "%s: by their names some files are tables and some are not: say what they all are, as in --input-format libsvm",
                shown);
        if (kind < 0 && !is_pipe(name)) kind = its;
        free(name);
    }
    return rc < 0 ? rc : kind < 0 ? text_kind(wish, e) : kind;
}

/* Of arrays of the application. */
static bool labels_are_needed(const struct shmt_source_wish *wish) {
    if (wish->how & SHMT_SOURCE_UNLABELLED) return false;
    return (wish->how & SHMT_SOURCE_ANY_LABELS) == 0 || wish->given->of.label;
}

int shmt_source_open_as(const struct shmt_source_wish *wish, struct shmt_source **out, struct shmt_error *e) {
    if (wish->given) return shmt_given_open(wish->given, labels_are_needed(wish), out, e);
    const bool held_out = (wish->how & SHMT_SOURCE_HELD_OUT) != 0;
    const char *name = wish->name;
    if (strncmp(name, BUILTIN, strlen(BUILTIN)) == 0) {
        const char *kind = name + strlen(BUILTIN);
        const size_t n = strcspn(kind, ":");
        for (uint32_t i = 0; i < sizeof GENERATORS / sizeof *GENERATORS; i++) {
            if (strlen(GENERATORS[i].name) != n || memcmp(kind, GENERATORS[i].name, n) != 0) continue;
            return GENERATORS[i].open(kind[n] == ':' ? kind + n + 1 : NULL, wish->seed, held_out, out, e);
        }
        return shmt_refuse(e, "unknown data \"%.100s\"; use builtin:sparse, builtin:dense, builtin:digits or builtin:line",
                           name);
    }
    if (held_out) {
        return shmt_refuse(e, "%.200s has no held-out examples of its own; name a second file that has them", name);
    }
    const bool several = shmt_names_count(name) > 1;
    int status = shmt_cifar_open(name, out, e);
    if (status <= 0) return status;
    const int kind = several ? list_kind(wish, e) : text_kind(wish, e);
    if (kind < 0) return kind;
    if (several || is_pipe(name)) /* a pipe: who opens it takes what it has */
        return kind == TABLE ? shmt_csv_open(wish, out, e) : shmt_libsvm_open(wish, out, e);
    status = shmt_cache_open(name, out, e);
    if (status <= 0) return status;
    if (kind == TABLE) return shmt_csv_open(wish, out, e);
    status = shmt_array_source_open(name, wish->how, out, e);
    return status > 0 ? shmt_libsvm_open(wish, out, e) : status;
}

int shmt_source_open(const char *name, uint64_t seed, unsigned how, struct shmt_source **out, struct shmt_error *e) {
    const struct shmt_source_wish wish = {.name = name, .seed = seed, .how = how};
    return shmt_source_open_as(&wish, out, e);
}

const char *shmt_source_note(const struct shmt_source *source) { return source->ops->note ? source->ops->note(source) : NULL; }

const char *shmt_source_remark(const struct shmt_source *source) {
    return source->ops->remark ? source->ops->remark(source) : NULL;
}

const float *shmt_source_weights(const struct shmt_source *source) {
    return source->ops->weights ? source->ops->weights(source) : NULL;
}

bool shmt_source_has_labels(const struct shmt_source *source) {
    return !source->ops->has_labels || source->ops->has_labels(source);
}

struct shmt_example_shape shmt_source_shape(const struct shmt_source *source) {
    return source->ops->shape ? source->ops->shape(source) : (struct shmt_example_shape){0};
}

void shmt_source_close(struct shmt_source *source) {
    if (source) source->ops->close(source);
}

bool shmt_source_is_generator(const struct shmt_source *source) { return source->ops->is_generator; }

bool shmt_source_has_ids(const struct shmt_source *source) { return !source->ops->lacks_ids; }

bool shmt_source_reads(const struct shmt_source *source, const struct stat *file) {
    return source->ops->reads && source->ops->reads(source, file);
}

uint64_t shmt_source_guess_bytes(const struct shmt_source *source, bool dense) {
    return source->ops->guess_bytes(source, dense);
}

uint64_t shmt_dense_bytes(double n_examples, uint64_t n_features) {
    const double bytes = n_examples * ((double)n_features + 1) * sizeof(float); /* 1: the label */
    return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

void shmt_source_place(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes) {
    if (source->ops->place) {
        source->ops->place(source, at, out, bytes);
    } else {
        snprintf(out, bytes, "%s example %llu", source->name, (unsigned long long)at + 1);
    }
}

bool shmt_source_is_packed(const struct shmt_source *source) { return source->ops->unpack != NULL; }

int shmt_source_unpack(const struct shmt_source *source, struct shmt_error *e) {
    return source->ops->unpack ? source->ops->unpack(source, e) : 0;
}

void shmt_part_begin_count(struct shmt_part *part, const struct shmt_row_buffer *buffer) {
    memset(part, 0, sizeof *part);
    part->min_id = UINT64_MAX;
    part->label_low = INFINITY;
    part->label_high = -INFINITY;
    part->all_ones = 1;
    if (!buffer) return;
    part->buffer = buffer->number;
    part->buffered_example = buffer->n_examples;
    part->buffered_nonzero = buffer->n_nonzeros;
}

void shmt_part_end_count(struct shmt_part *part, const struct shmt_row_buffer *buffer) {
    if (buffer) part->buffered_nonzeros = buffer->n_nonzeros - part->buffered_nonzero;
}

bool shmt_source_has_any_ids(const struct shmt_source *source) { return source->ops->has_any_ids; }

const uint64_t *shmt_source_listed_ids(const struct shmt_source *source, uint64_t *n_out) {
    const struct shmt_cache *cache = shmt_cache_of(source);
    *n_out = cache ? cache->n_columns : 0;
    return cache ? cache->listed : NULL;
}

bool shmt_source_flows(const struct shmt_source *source) { return source->ops->flows && source->ops->flows(source); }

bool shmt_source_is_once(const struct shmt_source *source) { return source->ops->is_once && source->ops->is_once(source); }

bool shmt_source_share_pipe(const struct shmt_source *a, const struct shmt_source *b) {
    return a->ops == b->ops && a->ops->share_pipe && a->ops->share_pipe(a, b);
}

const char *shmt_source_title(const struct shmt_source *source) {
    return source->ops->title ? source->ops->title(source) : NULL;
}

bool shmt_source_fills_buffers(const struct shmt_source *source) { return source->ops->fills_buffers; }

uint32_t shmt_source_parts(const struct shmt_source *source, uint32_t n_readers) {
    const uint64_t bytes = source->ops->read_bytes ? source->ops->read_bytes(source) : shmt_source_guess_bytes(source, false);
    const uint64_t parts = bytes / PART_BYTES, most = shmt_max_u64(MOST_PARTS, 4 * n_readers);
    return (uint32_t)shmt_max_u64(n_readers, shmt_min_u64(parts, most));
}

int shmt_source_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                      struct shmt_row_buffer *buffer, struct shmt_part *out) {
    struct shmt_row_buffer *into = source->ops->fills_buffers ? buffer : NULL;
    shmt_part_begin_count(out, into);
    const int rc = source->ops->count(source, columns, part, n_parts, into, out);
    shmt_part_end_count(out, into);
    return rc;
}

void shmt_parts_before(const struct shmt_part *parts, uint32_t part, uint64_t *first_out, uint64_t *first_nonzero_out) {
    *first_out = *first_nonzero_out = 0;
    for (uint32_t i = 0; i < part; i++) {
        *first_out += parts[i].n_examples;
        *first_nonzero_out += parts[i].n_nonzeros;
    }
}

int shmt_source_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *parts,
                     const struct shmt_arrays *into, struct shmt_error *e) {
    uint64_t first, first_nonzero;
    shmt_parts_before(parts, part, &first, &first_nonzero);
    const int status = source->ops->fill(source, part, n_parts, &parts[part], first, first_nonzero, into, e);
    if (status != 0) return status;
    if (part + 1 == n_parts && into->start)
        into->start[first + parts[part].n_examples] = first_nonzero + parts[part].n_nonzeros;
    return 0;
}

void shmt_arrays_put(const struct shmt_arrays *into, uint64_t example, uint64_t nonzero, const uint32_t *id, const float *value,
                     uint64_t n) {
    if (into->dense) {
        const uint64_t n_features = into->columns.n_features;
        float *row = into->dense + example * n_features;
        for (uint64_t j = 0; j < n_features; j++) row[j] = 0;
        for (uint64_t i = 0; i < n; i++) row[id[i]] = value[i];
        return;
    }
    into->start[example] = nonzero;
    if (n == 0) return; /* memcpy takes no null pointer, and data without nonzeros may have no arrays */
    memcpy(into->id + nonzero, id, n * sizeof *id);
    if (into->value) memcpy(into->value + nonzero, value, n * sizeof *value);
}

void shmt_part_add_label(struct shmt_part *part, float label, uint64_t at) {
    part->n_examples++;
    part->label_low = label < part->label_low ? label : part->label_low;
    part->label_high = label > part->label_high ? label : part->label_high;
    shmt_labels_add(&part->labels, label, at);
}

static const struct shmt_part *first_skipped(const struct shmt_part *parts, uint32_t n_parts) {
    uint32_t i = 0;
    while (i + 1 < n_parts && parts[i].n_skipped == 0) i++;
    return &parts[i];
}

void shmt_parts_skipped(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts, char *out,
                        uint64_t bytes) {
    char place[SHMT_NAME_SHOWN + 32];
    uint64_t n = 0;
    for (uint32_t i = 0; i < n_parts; i++) n += parts[i].n_skipped;
    const struct shmt_part *first = first_skipped(parts, n_parts);
    shmt_source_place(source, first->skipped_at, place, sizeof place);
    snprintf(out, bytes, "skipped %llu bad line%s of %s; the first: %s:%llu: %s", (unsigned long long)n, n == 1 ? "" : "s",
             source->name, place, (unsigned long long)first->skipped.column, first->skipped.text);
}

bool shmt_parts_empty(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts, char *out,
                      uint64_t bytes) {
    const char *first = "";
    const uint32_t n = source->ops->empty_files ? source->ops->empty_files(source, parts, n_parts, &first) : 0;
    if (n == 1)
        snprintf(out, bytes, "%s is empty and adds no examples", first);
    else if (n > 1)
        snprintf(out, bytes, "%s and %u other%s of %s are empty and add no examples", first, n - 1, n == 2 ? "" : "s",
                 source->name);
    return n > 0;
}

/* With bad lines only there is nothing to go on with. */
static int refuse_all(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts, struct shmt_error *e) {
    char place[SHMT_NAME_SHOWN + 32];
    const struct shmt_part *first = first_skipped(parts, n_parts);
    shmt_source_place(source, first->skipped_at, place, sizeof place);
    return shmt_fail(e, SHMTRAIN_E_DATA, "all lines of %s are bad; the first: %s:%llu: %s", source->name, place,
                     (unsigned long long)first->skipped.column, first->skipped.text);
}

int shmt_parts_total(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts, struct shmt_totals *out,
                     struct shmt_error *e) {
    struct shmt_totals t;
    memset(&t, 0, sizeof t); /* padding, too: totals are compared as bytes */
    t.min_id = UINT64_MAX;
    t.label_low = INFINITY;
    t.label_high = -INFINITY;
    t.all_ones = true;
    struct shmt_sum square = {0, 0};
    for (uint32_t i = 0; i < n_parts; i++) {
        const struct shmt_part *p = &parts[i];
        if (p->error.status != 0) return shmt_fail(e, p->error.status, "%s", p->error.text);
        t.n_examples += p->n_examples;
        t.n_nonzeros += p->n_nonzeros;
        t.n_skipped += p->n_skipped;
        t.min_id = p->min_id < t.min_id ? p->min_id : t.min_id;
        t.max_id = p->max_id > t.max_id ? p->max_id : t.max_id;
        t.all_ones = t.all_ones && p->all_ones;
        t.label_low = p->label_low < t.label_low ? p->label_low : t.label_low;
        t.label_high = p->label_high > t.label_high ? p->label_high : t.label_high;
        shmt_labels_join(&t.labels, &p->labels);
        shmt_sum_join(&square, p->square);
    }
    if (n_parts == 0) return shmt_fail(e, SHMTRAIN_E_DATA, "all of %s are empty", source->name); /* several files */
    if (t.n_examples == 0 && t.n_skipped > 0) return refuse_all(source, parts, n_parts, e);
    if (t.n_examples == 0)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s has no examples, only %s", source->name,
                         shmt_source_note(source) ? "a header" : "blank lines and comments");
    if (t.n_examples > UINT32_MAX) {
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s has %llu examples; at most 4294967295 are possible", source->name,
                         (unsigned long long)t.n_examples);
    }
    t.labels.last = 0; /* which one was met last depends on the parts */
    t.mean_square = shmt_sum_value(square) / (double)t.n_examples;
    *out = t;
    return 0;
}

double shmt_parts_best_loss(const struct shmt_part *parts, uint32_t n_parts) {
    struct shmt_sum loss = {0, 0};
    uint64_t n_examples = 0;
    for (uint32_t i = 0; i < n_parts; i++) {
        if (!parts[i].has_best_loss) return NAN;
        shmt_sum_join(&loss, parts[i].best_loss);
        n_examples += parts[i].n_examples;
    }
    return n_examples > 0 ? shmt_sum_value(loss) / (double)n_examples : NAN;
}

/* One value into what its key points to. `text` ends with `end`. */
static int read_value(const char *generator, const struct shmt_key *key, const char *text, const char *end,
                      struct shmt_error *e) {
    char *stop;
    errno = 0;
    if (key->whole) {
        const unsigned long long whole = strtoull(text, &stop, 10);
        if (stop == end && end > text && *text >= '0' && *text <= '9' && errno == 0 && whole >= key->low &&
            whole <= key->high) {
            *key->whole = whole;
            return 0;
        }
        return shmt_refuse(e, "%s: %s must be a whole number from %llu to %llu, not \"%.*s\"", generator, key->name,
                           (unsigned long long)key->low, (unsigned long long)key->high, (int)(end - text), text);
    }
    float real = -1;
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return shmt_fail_errno(e, "cannot make the C locale");
    const bool good = shmt_number_read(text, c_locale, &real) == end && real >= 0 && real <= SHMT_KEY_MOST;
    freelocale(c_locale);
    if (good) {
        *key->real = real;
        return 0;
    }
    return shmt_refuse(e, "%s: %s must be a number from 0 to %d, not \"%.*s\"", generator, key->name, SHMT_KEY_MOST,
                       (int)(end - text), text);
}

static int refuse_key(const char *generator, const char *text, size_t n, const struct shmt_key *keys, uint32_t n_keys,
                      struct shmt_error *e) {
    char list[200] = "";
    for (uint32_t i = 0; i < n_keys; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", keys[i].name);
    }
    return shmt_refuse(e, "%s has no key \"%.*s\"; its keys are %s, as in %s:%s=1000", generator, (int)(n < 60 ? n : 60), text,
                       list, generator, keys[0].name);
}

int shmt_keys_read(const char *generator, const char *text, const struct shmt_key *keys, uint32_t n_keys,
                   struct shmt_error *e) {
    if (!text) return 0;
    while (*text) {
        const size_t n = strcspn(text, ","), n_name = strcspn(text, "=,");
        const struct shmt_key *key = NULL;
        for (uint32_t i = 0; i < n_keys && n_name < n; i++) {
            if (strlen(keys[i].name) == n_name && memcmp(text, keys[i].name, n_name) == 0) key = &keys[i];
        }
        if (!key) return refuse_key(generator, text, n, keys, n_keys, e);
        const int status = read_value(generator, key, text + n_name + 1, text + n, e);
        if (status != 0) return status;
        text += n + (text[n] == ',');
    }
    return 0;
}
