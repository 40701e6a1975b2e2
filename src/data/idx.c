/* Images (or other examples) and labels in two IDX files, those of MNIST for instance, as a source. The examples come alone
 * where nobody needs labels.
 *
 * Called through source.h. The values of an example are its elements, row by row; unsigned bytes become 0 .. 1. Both files are
 * unpacked whole into one anonymous mapping, which is set aside when they are opened, takes memory when they are unpacked, and
 * goes when the source is closed: from there any part is read at once, and files that change cannot disturb. Every file is
 * treated so, packed or not; it is a quarter of what its floats will take. */
#include "data/idx_file.h"
#include "data/source_priv.h"

#include "base/checked.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct idx {
    struct shmt_source source;
    struct shmt_idx_file images, labels;
    unsigned char *memory; /* elements of the images, then of the labels */
    uint64_t memory_bytes;
};

static const struct idx *idx_of(const struct shmt_source *source) { return (const struct idx *)source; }

static float label_of(const struct idx *idx, uint64_t example) {
    float label = 0;
    if (idx->labels.n_dims == 0) return label; /* they were not asked for */
    shmt_idx_file_example(&idx->labels, idx->memory + idx->images.bytes, example, false, &label);
    return label;
}

static void draw(const struct idx *idx, uint64_t example, float *value) {
    shmt_idx_file_example(&idx->images, idx->memory, example, true, value);
}

/* ---- counting and filling ---- */

/* Of the values of an example, those that are columns: [columns->base, end). */
static uint64_t end_of_columns(const struct idx *idx, const struct shmt_columns *columns) {
    return shmt_min_u64(idx->images.n_each, columns->base + (uint64_t)columns->n_features);
}

static int refuse_number(const struct shmt_idx_file *file, uint64_t element, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s, byte %llu: expected a number between -3.4e38 and 3.4e38", file->file.name,
                     shmt_idx_file_state(file), (unsigned long long)(file->header_bytes + element * file->element_bytes + 1));
}

static int count_example(const struct idx *idx, const struct shmt_columns *columns, uint64_t example, const float *value,
                         struct shmt_part *out) {
    const uint64_t end = end_of_columns(idx, columns);
    double square = 0;
    uint64_t nonzeros = 0;
    uint32_t all_ones = out->all_ones;
    for (uint64_t j = 0; j < idx->images.n_each; j++) {
        if (!isfinite(value[j])) return refuse_number(&idx->images, example * idx->images.n_each + j, &out->error);
    }
    for (uint64_t j = columns->base; j < end; j++) {
        square += (double)value[j] * (double)value[j];
        nonzeros += value[j] != 0;
        all_ones &= value[j] == 0 || value[j] == 1;
    }
    const float label = label_of(idx, example);
    if (!isfinite(label)) return refuse_number(&idx->labels, example, &out->error);
    out->all_ones = all_ones;
    out->n_nonzeros += nonzeros;
    out->min_id = 0;
    out->max_id = idx->images.n_each - 1;
    shmt_sum_add(&out->square, square);
    shmt_part_add_label(out, label, example);
    return 0;
}

static int no_memory(const struct idx *idx, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for an example of %s", idx->images.file.name);
}

static int idx_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                     struct shmt_stage *stage, struct shmt_part *out) {
    (void)stage; /* images are in memory by then */
    const struct idx *idx = idx_of(source);
    const uint64_t first = shmt_part_begin(idx->images.dim[0], part, n_parts),
                   end = shmt_part_begin(idx->images.dim[0], part + 1, n_parts);
    float *value = malloc(idx->images.n_each * sizeof *value);
    int status = value ? 0 : no_memory(idx, &out->error);
    for (uint64_t i = first; i < end && status == 0; i++) {
        draw(idx, i, value);
        status = count_example(idx, columns, i, value, out);
    }
    free(value);
    return status;
}

/* Moves the nonzeros among value[base .. end) to its beginning, their columns beside them; returns their number. */
static uint64_t squeeze(float *value, uint32_t *id, uint32_t base, uint64_t end) {
    uint64_t n = 0;
    for (uint64_t j = base; j < end; j++) {
        if (value[j] == 0) continue;
        id[n] = (uint32_t)(j - base);
        value[n++] = value[j];
    }
    return n;
}

static int idx_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                    uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    (void)part;
    (void)n_parts;
    const struct idx *idx = idx_of(source);
    const uint64_t n_each = idx->images.n_each, end = end_of_columns(idx, &into->columns);
    float *value = malloc(n_each * sizeof *value);
    uint32_t *id = malloc(n_each * sizeof *id);
    const int status = value && id ? 0 : no_memory(idx, e);
    for (uint64_t i = first, nonzero = first_nonzero; i < first + counted->n_examples && status == 0; i++) {
        draw(idx, i, value);
        const uint64_t n = squeeze(value, id, into->columns.base, end);
        shmt_arrays_put(into, i, nonzero, id, value, n);
        into->label[i] = label_of(idx, i);
        nonzero += n;
    }
    free(value);
    free(id);
    return status;
}

/* How many values are nonzeros is not known before they are unpacked; of drawings on a background, a quarter. */
static uint64_t idx_guess_bytes(const struct shmt_source *source, bool dense) {
    const struct idx *idx = idx_of(source);
    const double n = idx->images.dim[0], n_each = (double)idx->images.n_each;
    const double sparse = n * (n_each / 4 * (sizeof(uint32_t) + sizeof(float)) + sizeof(uint64_t) + sizeof(float));
    const double own = (double)idx->memory_bytes, arrays = dense ? (double)shmt_dense_bytes(n, idx->images.n_each) : sparse;
    return own + arrays < 0x1p64 ? (uint64_t)(own + arrays) : UINT64_MAX;
}

static int idx_unpack(const struct shmt_source *source, struct shmt_error *e) {
    const struct idx *idx = idx_of(source);
    const int status = shmt_idx_file_unpack(&idx->images, idx->memory, e);
    if (status != 0 || idx->labels.n_dims == 0) return status;
    return shmt_idx_file_unpack(&idx->labels, idx->memory + idx->images.bytes, e);
}

static void idx_place(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes) {
    snprintf(out, bytes, "%s example %llu", idx_of(source)->labels.file.name, (unsigned long long)at + 1);
}

static bool idx_reads(const struct shmt_source *source, const struct stat *file) {
    return shmt_file_is(&idx_of(source)->images.file, file) || shmt_file_is(&idx_of(source)->labels.file, file);
}

static void idx_close(struct shmt_source *source) {
    struct idx *idx = (struct idx *)source;
    if (idx->memory) munmap(idx->memory, idx->memory_bytes);
    shmt_idx_file_close(&idx->images);
    shmt_idx_file_close(&idx->labels);
    free(idx);
}

static const struct shmt_source_ops OPS = {
    .is_generator = false,
    .lacks_ids = true,
    .count = idx_count,
    .fill = idx_fill,
    .reads = idx_reads,
    .guess_bytes = idx_guess_bytes,
    .unpack = idx_unpack,
    .place = idx_place,
    .close = idx_close,
};

/* ---- opening ---- */

/* Opens the images that `name` names: the file of this name, or, where there is none, what stands before a comma in it; what
 * stands behind it goes into *labels_out (to be freed; NULL: not named). Returns as shmt_idx_file_open. */
static int open_images(struct idx *idx, const char *name, char **labels_out, struct shmt_error *e) {
    int found = shmt_idx_file_open(name, &idx->images, e);
    if (found != 0 || !strchr(name, ',') || access(name, F_OK) == 0) return found;
    char *images = strdup(name);
    if (!images) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory to open a file");
    for (char *comma = strchr(images, ','); comma && found == 0; comma = strchr(comma + 1, ',')) {
        *comma = '\0';
        found = shmt_idx_file_open(images, &idx->images, e);
        if (found > 0 && !(*labels_out = strdup(comma + 1)))
            found = shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory to open a file");
        *comma = ',';
    }
    free(images);
    return found;
}

/* The name of the labels that belong to images of this name, with or without ".gz" at its end; NULL when there is no "images"
 * in it, or no memory. */
static char *name_labels(const char *images, bool gz) {
    const char *file = strrchr(images, '/'), *word = NULL;
    for (const char *at = file ? file : images; (at = strstr(at, "images")); at++) word = at;
    char *name;
    if (!word || asprintf(&name, "%.*slabels%s%s", (int)(word - images), images, word + strlen("images"), gz ? ".gz" : "") < 0)
        return NULL;
    const size_t n = strlen(name), twice = strlen(".gz.gz"), once = strlen(".gz");
    if (gz && n >= twice && strcmp(name + n - twice, ".gz.gz") == 0) name[n - once] = '\0';
    if (!gz && n >= once && strcmp(name + n - once, ".gz") == 0) name[n - once] = '\0';
    char *dims = strstr(file ? name + (file - images) : name, "idx");
    if (dims && dims[3] >= '1' && dims[3] <= '9') dims[3] = '1';
    return name;
}

/* Packed like the images, or else the other way. */
static int find_labels(const struct idx *idx, const char *images, char **out, struct shmt_error *e) {
    const size_t n = strlen(images);
    const bool gz = n >= 3 && strcmp(images + n - 3, ".gz") == 0;
    char *first = name_labels(images, gz), *second = name_labels(images, !gz);
    char first_shown[SHMT_NAME_SHOWN] = "", second_shown[SHMT_NAME_SHOWN] = "";
    if (first && access(first, F_OK) == 0) {
        *out = first;
        free(second);
        return 0;
    }
    if (second && access(second, F_OK) == 0) {
        *out = second;
        free(first);
        return 0;
    }
    if (first) shmt_show_name(first, first_shown);
    if (second) shmt_show_name(second, second_shown);
    free(first);
    free(second);
    if (!first_shown[0])
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s has no labels: its name does not contain \"images\", so its labels cannot be found; name both "
                         "files, as IMAGES,LABELS",
                         idx->images.file.name);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has no labels: neither %s nor %s exists; name both files, as IMAGES,LABELS",
                     idx->images.file.name, first_shown, second_shown);
}

static int open_labels(struct idx *idx, const char *path, struct shmt_error *e) {
    struct shmt_idx_file *labels = &idx->labels;
    int found = shmt_idx_file_open(path, labels, e);
    if (found < 0) return found;
    if (found == 0) {
        struct shmt_file file;
        const int status = shmt_file_open(path, &file, e);
        if (status != 0) return status;
        shmt_file_close(&file);
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s, byte 1: an IDX file of labels starts with 0 0, and this does not", file.name);
    }
    if (labels->n_dims != 1)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s, byte 4: labels have one dimension, but this file has %u", labels->file.name,
                         shmt_idx_file_state(labels), labels->n_dims);
    if (labels->dim[0] == idx->images.dim[0]) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has %u labels, but %s has %u examples: do they belong together?",
                     labels->file.name, labels->dim[0], idx->images.file.name, idx->images.dim[0]);
}

/* Shared, so that what one process unpacks is seen by those that count and fill. Pages are taken as they are written. */
static int set_memory_aside(struct idx *idx, struct shmt_error *e) {
    void *memory = MAP_FAILED;
    if (shmt_add_u64(idx->images.bytes, idx->labels.bytes, &idx->memory_bytes) && idx->memory_bytes < (uint64_t)1 << 62)
        memory = mmap(NULL, idx->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory: %llu MiB are needed to unpack %s",
                         (unsigned long long)(idx->images.bytes >> 20), idx->images.file.name);
    idx->memory = memory;
    return 0;
}

int shmt_idx_open(const char *name, bool labelled, struct shmt_source **out, struct shmt_error *e) {
    char *labels = NULL;
    struct idx *idx = calloc(1, sizeof *idx);
    if (!idx) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory to open a file");
    idx->images.file.fd = idx->labels.file.fd = -1;
    idx->source = (struct shmt_source){&OPS, idx->images.file.name};
    const int found = open_images(idx, name, &labels, e);
    int status = found > 0 ? 0 : found == 0 ? 1 : found;
    if (status == 0 && !labels && labelled) status = find_labels(idx, name, &labels, e);
    if (status == 0 && labels) status = open_labels(idx, labels, e);
    if (status == 0) status = set_memory_aside(idx, e);
    free(labels);
    if (status != 0) {
        idx_close(&idx->source);
        return status;
    }
    *out = &idx->source;
    return 0;
}
