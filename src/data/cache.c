/* Caches as a source: see cache.h.
 *
 * A file that only its owner can change, on a file system of this machine, is mapped, and guarded: nobody can open it for writing
 * meanwhile, or the run ends with a sentence (base/guard.h). Any other one, and one that gets no guard, is read into memory of our own
 * first, because a file that is cut short while it is mapped kills whoever reads it (SIGBUS), and one that is changed after it
 * was checked reaches beyond its arrays. */
#include "data/cache_check.h"
#include "data/cache_loops.h"
#include "data/ids.h"
#include "data/source_priv.h"
#include "files/csv_plan.h"
#include "files/file.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/io.h"
#include "base/local.h"
#include "base/mapped.h"

struct cache {
    struct shmt_source source;
    struct shmt_source_ops ops; /* of this file: whether it has ids, whether it is to be unpacked (read into memory) */
    struct shmt_file file;
    struct shmt_cache_header header;
    unsigned char *memory; /* (header.file_bytes) the file, mapped or read */
    bool guarded;          /* it is mapped, and does not change */
    char *note;            /* of a table, our own; NULL: it is none */
    struct shmt_cache cache;
};

static const struct cache *cache_of(const struct shmt_source *source) { return (const struct cache *)source; }

/* ---- rows ---- */

/* To put a row's columns in, with room for the longest one of some. */
struct row {
    uint64_t *id;
    uint32_t *column;
    float *value;
    uint64_t n; /* columns of the last one */
};

static void row_free(struct row *row) {
    free(row->id);
    free(row->column);
    free(row->value);
}

static int row_make(const struct cache *of, uint64_t first, uint64_t end, struct row *out, struct shmt_error *e) {
    const uint64_t *start = of->cache.start;
    uint64_t longest = 1;
    for (uint64_t i = first; i < end; i++) longest = shmt_max_u64(longest, start[i + 1] - start[i]);
    *out = (struct row){.id = malloc(longest * sizeof *out->id),
                        .column = malloc(longest * sizeof *out->column),
                        .value = malloc(longest * sizeof *out->value)};
    if (out->id && out->column && out->value) return 0;
    row_free(out);
    return shmt_no_memory(e, "for a row of %s", of->file.name);
}

/* Example i as the caller counts its columns. */
static void row_get(struct row *row, const struct shmt_cache *c, const struct shmt_columns *columns, uint64_t i) {
    const uint64_t from = c->start[i], n = c->start[i + 1] - from;
    for (uint64_t j = 0; j < n; j++) {
        const uint32_t column = c->column ? c->column[c->id[from + j]] : c->id[from + j];
        row->id[j] = c->listed ? c->listed[column] : (uint64_t)column + c->base;
        row->value[j] = c->value ? c->value[from + j] : 1;
    }
    row->n = shmt_columns_place(columns, row->id, n, row->column, row->value);
}

/* ---- counting ---- */

static bool takes_all(const struct shmt_cache *c, const struct shmt_columns *columns) {
    if (c->listed) return columns->ids && columns->ids->from == c->listed;
    return shmt_columns_are_range(columns) && columns->base <= c->base &&
           (uint64_t)(c->base - columns->base) + c->n_columns <= columns->n_features;
}

/* Rows first .. end - 1 follow one another and stay within the nonzeros. */
static bool are_rows(const struct shmt_cache *c, uint64_t first, uint64_t end) {
    if ((first == 0 && c->start[0] != 0) || (end == c->n_examples && c->start[end] != c->n_nonzeros)) return false;
    return shmt_cache_loops_of(shmt_cpu_best())->do_follow(c->start + first, end - first, c->n_nonzeros);
}

/* Most labels were met before, and nothing is to be noted of them but their number. */
static void add_labels(struct shmt_part *out, const float *label, uint64_t first, uint64_t end) {
    enum { RUN = 128 };
    const struct shmt_cache_loops *loops = shmt_cache_loops_of(shmt_cpu_best());
    for (uint64_t i = first, n; i < end; i += n) {
        const struct shmt_labels *met = &out->labels;
        n = shmt_min_u64(RUN, end - i);
        if (met->n > 0 && met->n <= SHMT_CACHE_MOST_AMONG && loops->are_among(label + i, n, met->label, met->n))
            out->n_examples += n;
        else
            for (uint64_t k = i; k < i + n; k++) shmt_part_add_label(out, label[k], k);
    }
}

/* Whether all ids of the rows are columns; nobody has checked other parts' blocks. */
static bool are_columns(const struct shmt_cache *c, uint64_t from, uint64_t end) {
    bool all = true;
    for (uint64_t j = from; j < end && all; j++)
        all = c->id[j] < c->n_columns && (!c->column || c->column[c->id[j]] < c->n_columns);
    return all;
}

/* Row by row, where columns are others than those of the cache. */
static int count_rows(const struct cache *of, const struct shmt_columns *columns, uint64_t first, uint64_t end,
                      struct shmt_part *out) {
    const struct shmt_cache *c = &of->cache;
    struct row row;
    if (!are_columns(c, c->start[first], c->start[end]))
        return shmt_cache_damaged(of->file.name, "an id exceeds its number of columns", &out->error);
    const int rc = row_make(of, first, end, &row, &out->error);
    if (rc < 0) return rc;
    for (uint64_t i = first; i < end; i++) {
        double square = 0;
        row_get(&row, c, columns, i);
        for (uint64_t j = 0; j < row.n; j++) {
            square += (double)row.value[j] * row.value[j];
            out->all_ones &= row.value[j] == 1;
        }
        out->n_nonzeros += row.n;
        shmt_sum_add(&out->square, square);
    }
    row_free(&row);
    return 0;
}

/* Whether the ids of columns first .. end - 1 ascend, from the one before them on, within those that the header names. */
static bool do_ascend(const struct shmt_cache *c, uint64_t first, uint64_t end) {
    bool good = true;
    for (uint64_t i = first; c->listed && i < end; i++)
        good &= c->listed[i] <= c->max_id && (i > 0 ? c->listed[i] > c->listed[i - 1] : c->listed[0] >= c->min_id);
    return good;
}

/* Whether each column has one place; below 0: no memory to see it. */
static int are_places(const struct shmt_cache *c, struct shmt_error *e) {
    if (!c->column) return 1;
    uint64_t *met = calloc(c->n_columns / 64 + 1, sizeof *met);
    int each = 1;
    if (!met) return shmt_no_memory(e, "to check the order of %u columns", c->n_columns);
    for (uint32_t p = 0; p < c->n_columns && each; p++) {
        const uint32_t column = c->column[p];
        const uint64_t bit = UINT64_C(1) << column % 64;
        each = column < c->n_columns && !(met[column / 64] & bit);
        if (each) met[column / 64] |= bit;
    }
    free(met);
    return each;
}

/* What was read so far was what it is. */
static int check_guard(const struct cache *of, struct shmt_error *e) {
    if (!of->guarded || shmt_guard_holds(of->file.fd)) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s" SHMT_GUARD_BROKEN, of->file.name);
}

/* Checks a part of the file, and adds up a part of the examples. Sums over all are the header's, and in part 0. */
static int cache_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                       struct shmt_row_buffer *buffer, struct shmt_part *out) {
    (void)buffer; /* rows are in memory as they are */
    const struct cache *of = cache_of(source);
    const struct shmt_cache_header *h = &of->header;
    const struct shmt_cache *c = &of->cache;
    const uint64_t n_blocks = shmt_cache_blocks_before(h, SHMT_CACHE_HASHES);
    const uint64_t first = shmt_part_begin(c->n_examples, part, n_parts),
                   end = shmt_part_begin(c->n_examples, part + 1, n_parts);
    const int rc = shmt_cache_check_blocks(of->file.name, h, of->memory, shmt_part_begin(n_blocks, part, n_parts),
                                           shmt_part_begin(n_blocks, part + 1, n_parts), &out->error);
    if (rc < 0) return rc;
    if (!do_ascend(c, shmt_part_begin(c->n_columns, part, n_parts), shmt_part_begin(c->n_columns, part + 1, n_parts)))
        return shmt_cache_damaged(of->file.name, "the ids of its columns", &out->error);
    if (!are_rows(c, first, end)) return shmt_cache_damaged(of->file.name, "its rows", &out->error);
    const int each = part == 0 ? are_places(c, &out->error) : 1;
    if (each == 0) return shmt_cache_damaged(of->file.name, "one column has two places", &out->error);
    if (each < 0) return each;
    out->min_id = c->min_id;
    out->max_id = c->max_id;
    out->has_best_loss = !isnan(c->best_loss);
    if (part == 0 && out->has_best_loss) shmt_sum_add(&out->best_loss, c->best_loss * (double)c->n_examples);
    add_labels(out, c->label, first, end);
    if (!takes_all(c, columns)) {
        const int counted = count_rows(of, columns, first, end, out);
        return counted < 0 ? counted : check_guard(of, &out->error);
    }
    out->n_nonzeros = c->start[end] - c->start[first];
    out->all_ones = c->value == NULL;
    if (part == 0) out->square = (struct shmt_sum){h->square_whole, h->square_fraction};
    return check_guard(of, &out->error);
}

/* ---- filling ---- */

static int cache_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                      uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    const struct cache *of = cache_of(source);
    const struct shmt_cache *c = &of->cache;
    const uint64_t end_nonzero = first_nonzero + counted->n_nonzeros;
    uint64_t at = first_nonzero;
    struct row row;
    (void)part;
    (void)n_parts;
    const int rc = row_make(of, first, first + counted->n_examples, &row, e);
    if (rc < 0) return rc;
    bool same = true;
    for (uint64_t i = first; i < first + counted->n_examples && same; i++) {
        row_get(&row, c, &into->columns, i);
        same = row.n <= end_nonzero - at;
        if (!same) break;
        shmt_arrays_put(into, i, at, row.column, row.value, row.n);
        into->label[i] = c->label[i];
        at += row.n;
    }
    row_free(&row);
    if (same && at == end_nonzero) return check_guard(of, e);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", of->file.name);
}

static bool cache_reads(const struct shmt_source *source, const struct stat *file) {
    return shmt_file_is(&cache_of(source)->file, file);
}

/* What is mapped takes no memory that is not free as soon as it is needed; a copy may not be made at all. */
static uint64_t cache_guess_bytes(const struct shmt_source *source, bool dense) {
    const struct cache *of = cache_of(source);
    const uint64_t own = of->ops.unpack ? of->header.file_bytes : 0;
    const uint64_t arrays = dense ? shmt_dense_bytes((double)of->cache.n_examples, of->cache.n_columns) : 0;
    uint64_t bytes;
    return shmt_add_u64(own, arrays, &bytes) ? bytes : UINT64_MAX;
}

static uint64_t cache_read_bytes(const struct shmt_source *source) { return cache_of(source)->header.file_bytes; }

static int cache_unpack(const struct shmt_source *source, struct shmt_error *e) {
    const struct cache *of = cache_of(source);
    const int64_t n = shmt_io_read(of->file.fd, of->memory, of->header.file_bytes, 0);
    if (n < 0) return shmt_fail_errno(e, "cannot read %s", of->file.name);
    if ((uint64_t)n < of->header.file_bytes)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", of->file.name);
    return 0;
}

static const char *cache_note(const struct shmt_source *source) { return cache_of(source)->note; }

static struct shmt_example_shape cache_shape(const struct shmt_source *source) { return cache_of(source)->cache.shape; }

static void cache_close(struct shmt_source *source) {
    struct cache *of = (struct cache *)source;
    free(of->note);
    if (of->memory) shmt_mapped_forget(of->memory);
    if (of->memory) munmap(of->memory, of->header.file_bytes);
    if (of->guarded) shmt_guard_release(of->file.fd); /* children of the application may have the file open, too */
    shmt_file_close(&of->file);
    free(of);
}

static const struct shmt_source_ops OPS = {
    .is_generator = false,
    .count = cache_count,
    .fill = cache_fill,
    .reads = cache_reads,
    .guess_bytes = cache_guess_bytes,
    .read_bytes = cache_read_bytes,
    .note = cache_note,
    .shape = cache_shape,
    .close = cache_close,
};

/* ---- opening ---- */

struct shmt_guarded shmt_cache_guard(const struct shmt_source *source) {
    if (!shmt_cache_of(source) || !cache_of(source)->guarded) return (struct shmt_guarded){NULL, -1};
    return (struct shmt_guarded){source->name, cache_of(source)->file.fd};
}

const struct shmt_cache *shmt_cache_of(const struct shmt_source *source) {
    return source->ops->count == cache_count ? &cache_of(source)->cache : NULL;
}

static bool others_may_write(int fd) {
    struct stat s;
    return fstat(fd, &s) < 0 || (s.st_uid != geteuid() && s.st_uid != 0) || (s.st_mode & 022) != 0 || !shmt_is_local(fd);
}

static int get_memory(struct cache *of, struct shmt_error *e) {
    const uint64_t bytes = of->header.file_bytes;
    struct stat s;
    void *memory;
    of->guarded = !others_may_write(of->file.fd) && shmt_guard_take(of->file.fd);
    if (of->guarded && (fstat(of->file.fd, &s) < 0 || (uint64_t)s.st_size != bytes))
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", of->file.name);
    if (!of->guarded) {
        of->ops.unpack = cache_unpack;
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    } else {
        memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, of->file.fd, 0);
        if (memory != MAP_FAILED)
            (void)madvise(memory, bytes, MADV_HUGEPAGE); /* what is not in memory yet comes in large pieces */
    }
    if (memory == MAP_FAILED) return shmt_fail_errno(e, "cannot map %s", of->file.name);
    if (!of->ops.unpack) shmt_mapped_note(memory, bytes, of->file.name);
    of->memory = memory;
    return 0;
}

static const void *section(const struct cache *of, uint32_t part) {
    const struct shmt_cache_section *s = &of->header.section[part];
    return s->bytes > 0 ? of->memory + s->off : NULL;
}

static void describe(struct cache *of) {
    static const uint32_t NO_COLUMN = 0;
    const struct shmt_cache_header *h = &of->header;
    of->ops.lacks_ids = (h->flags & SHMT_CACHE_LACKS_IDS) != 0;
    of->cache = (struct shmt_cache){.n_examples = h->n_examples,
                                    .n_nonzeros = h->n_nonzeros,
                                    .n_columns = h->n_columns,
                                    .base = h->base,
                                    .lacks_ids = of->ops.lacks_ids,
                                    .min_id = h->min_id,
                                    .max_id = h->max_id,
                                    .best_loss = h->best_loss,
                                    .shape = {h->channels, h->height, h->width},
                                    .start = section(of, SHMT_CACHE_START),
                                    .id = section(of, SHMT_CACHE_ID),
                                    .value = section(of, SHMT_CACHE_VALUE),
                                    .label = section(of, SHMT_CACHE_LABEL),
                                    .column = section(of, SHMT_CACHE_COLUMN),
                                    .listed = section(of, SHMT_CACHE_LISTED),
                                    .note = of->note,
                                    .origin = {h->origin_bytes, h->origin_modified_s, h->origin_modified_ns, h->origin_sample}};
    if (!of->cache.id) of->cache.id = &NO_COLUMN; /* as arrays of other sources: none is read of it */
}

/* Reads as much of the header as there is. */
static int read_header(struct cache *of, struct shmt_error *e) {
    const ssize_t n = pread(of->file.fd, &of->header, sizeof of->header, 0);
    if (n < 0) return shmt_fail_errno(e, "cannot read %s", of->file.name);
    if ((size_t)n < sizeof of->header)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s is cut short (its header is incomplete): convert the data again",
                         of->file.name);
    return shmt_cache_check_header(of->file.name, &of->header, of->file.bytes, e);
}

/* How a table was read matters before anything is counted: it is read and checked at once. */
static int read_note(struct cache *of, struct shmt_error *e) {
    const struct shmt_cache_section *s = &of->header.section[SHMT_CACHE_NOTE];
    struct shmt_csv_plan plan;
    if (s->bytes == 0) return 0;
    of->note = malloc(s->bytes + 1);
    if (!of->note) return shmt_no_memory(e, "to open a file");
    const ssize_t n = pread(of->file.fd, of->note, s->bytes, (off_t)s->off);
    if (n < 0) return shmt_fail_errno(e, "cannot read %s", of->file.name);
    of->note[s->bytes] = '\0';
    if ((uint64_t)n < s->bytes || XXH3_64bits(of->note, s->bytes) != s->hash)
        return shmt_cache_damaged(of->file.name, "the checksum of its table's description is wrong", e);
    if (strlen(of->note) != s->bytes || shmt_csv_plan_parse(of->note, &plan, NULL) < 0)
        return shmt_cache_damaged(of->file.name, "its table's description", e);
    shmt_csv_plan_fini(&plan);
    return 0;
}

bool shmt_cache_begins(const char *path) {
    char magic[sizeof SHMT_CACHE_MAGIC - 1];
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) return false; /* to open a device may do something */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    const bool does =
        pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic && memcmp(magic, SHMT_CACHE_MAGIC, sizeof magic) == 0;
    close(fd);
    return does;
}

int shmt_cache_open(const char *path, struct shmt_source **out, struct shmt_error *e) {
    if (!shmt_cache_begins(path)) return 1;
    struct cache *of = calloc(1, sizeof *of);
    if (!of) return shmt_no_memory(e, "to open a file");
    of->ops = OPS;
    of->source = (struct shmt_source){&of->ops, of->file.name};
    int rc = shmt_file_open(path, &of->file, e);
    if (rc == 0) rc = read_header(of, e);
    if (rc == 0) rc = read_note(of, e);
    if (rc == 0) rc = get_memory(of, e);
    if (rc < 0) {
        cache_close(&of->source);
        return rc;
    }
    describe(of);
    *out = &of->source;
    return 0;
}
