/* Images (or other examples) and labels in two arrays, as a source: IDX files, those of MNIST for instance, NumPy files, or two members
 * of a NumPy archive. The examples come alone where nobody needs labels.
 *
 * Called through source.h. What is done with the arrays when they are in memory is in matrix.c. */
#include "data/matrix.h"
#include "files/array_file.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arrays {
    struct shmt_matrix matrix; /* first */
    struct shmt_array_file images, labels;
};

static const struct arrays *arrays_of(const struct shmt_source *source) { return (const struct arrays *)source; }

static bool has_labels(const struct arrays *of) { return of->labels.n_dims > 0; /* else nobody needs them */ }

static bool arrays_has_labels(const struct shmt_source *source) { return has_labels(arrays_of(source)); }

static int arrays_unpack(const struct shmt_source *source, struct shmt_error *e) {
    const struct arrays *of = arrays_of(source);
    const int status = shmt_array_file_unpack(&of->images, of->matrix.memory, e);
    if (status != 0 || !has_labels(of)) return status;
    return shmt_array_file_unpack(&of->labels, of->matrix.memory + of->images.bytes, e);
}

static void where(const struct shmt_matrix *matrix, bool is_label, uint64_t example, uint64_t j, char *out, uint64_t bytes) {
    const struct arrays *of = arrays_of(&matrix->source);
    const struct shmt_array_file *file = is_label ? &of->labels : &of->images;
    snprintf(out, bytes, "%s%s, byte %llu", file->file.name, file->state,
             (unsigned long long)(file->header_bytes + shmt_elements_at(&file->elements, example, j) + 1));
}

static void arrays_place(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes) {
    const struct shmt_array_file *labels = &arrays_of(source)->labels;
    snprintf(out, bytes, "%s%s example %llu", labels->file.name, labels->member[0] ? labels->state : "",
             (unsigned long long)at + 1);
}

static bool arrays_reads(const struct shmt_source *source, const struct stat *file) {
    return shmt_file_is(&arrays_of(source)->images.file, file) || shmt_file_is(&arrays_of(source)->labels.file, file);
}

static void arrays_close(struct shmt_source *source) {
    struct arrays *of = (struct arrays *)source;
    shmt_matrix_free_room(&of->matrix);
    shmt_array_file_close(&of->images);
    shmt_array_file_close(&of->labels);
    free(of);
}

static const struct shmt_source_ops OPS = {
    .is_generator = false,
    .lacks_ids = true,
    .count = shmt_matrix_count,
    .fill = shmt_matrix_fill,
    .reads = arrays_reads,
    .guess_bytes = shmt_matrix_guess_bytes,
    .unpack = arrays_unpack,
    .has_labels = arrays_has_labels,
    .shape = shmt_matrix_shape,
    .place = arrays_place,
    .close = arrays_close,
};

/* ---- opening the examples ---- */

/* How the arrays of an archive are usually called: the examples, then their labels. */
static const char *const MEMBERS[][2] = {{"x", "y"},
                                         {"X", "y"},
                                         {"x_train", "y_train"},
                                         {"X_train", "y_train"},
                                         {"images", "labels"},
                                         {"train_images", "train_labels"},
                                         {"data", "labels"},
                                         {"data", "target"},
                                         {"arr_0", "arr_1"}};
enum { N_MEMBERS = sizeof MEMBERS / sizeof *MEMBERS };

static int refuse_members(const char *path, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(path, shown);
    return shmt_fail(
        e, SHMTRAIN_E_DATA,
        "%s is a zip archive without arrays of a usual name (x and y, images and labels, x_train and y_train, ...): "
        "name both, as %s:EXAMPLES,LABELS",
        shown, shown);
}

/* The first pair of which the archive has the examples. */
static int open_usual_members(struct arrays *of, const char *path, const char **labels_out, struct shmt_error *e) {
    int found = 0;
    for (uint32_t i = 0; i < N_MEMBERS && found == 0; i++) {
        found = shmt_array_file_open_member(path, MEMBERS[i][0], &of->images, e);
        *labels_out = MEMBERS[i][1];
    }
    return found == 0 ? refuse_members(path, e) : found;
}

/* A file of the name, or, where it is an archive, its usual member. */
static int open_images_at(struct arrays *of, const char *path, const char **member_out, struct shmt_error *e) {
    if (!shmt_array_file_is_archive(path)) return shmt_array_file_open(path, &of->images, e);
    return open_usual_members(of, path, member_out, e);
}

/* Where the names of two files or members are joined. */
struct names {
    char *archive;      /* "FILE:MEMBER" and "FILE:MEMBER,MEMBER": the file, which is an archive; NULL: there is none */
    char *labels;       /* what stands behind the comma; NULL: nothing */
    const char *member; /* of an archive: the labels that belong to a usual name */
};

static void free_names(struct names *names) {
    free(names->archive);
    free(names->labels);
}

/* "FILE:EXAMPLES" or "FILE:EXAMPLES,LABELS" of an archive. 0: the name is none of these. */
static int open_named_members(struct arrays *of, const char *name, struct names *out, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    const char *colon = strrchr(name, ':');
    if (!colon) return 0;
    char *path = strndup(name, (size_t)(colon - name)), *member = strdup(colon + 1);
    int found = path && member ? 0 : shmt_no_memory(e, "to open a file");
    if (found == 0 && shmt_array_file_is_archive(path)) {
        char *comma = strchr(member, ',');
        if (comma && !(out->labels = strdup(comma + 1))) found = shmt_no_memory(e, "to open a file");
        if (comma) *comma = '\0';
        if (found == 0) found = shmt_array_file_open_member(path, member, &of->images, e);
        shmt_show_name(path, shown);
        if (found == 0) found = shmt_fail(e, SHMTRAIN_E_DATA, "%s has no array \"%.60s\"", shown, member);
        out->archive = path;
        path = NULL;
    }
    free(path);
    free(member);
    return found;
}

/* "EXAMPLES,LABELS", of two files. */
static int open_joined(struct arrays *of, const char *name, struct names *out, struct shmt_error *e) {
    int found = 0;
    char *images = strdup(name);
    if (!images) return shmt_no_memory(e, "to open a file");
    for (char *comma = strchr(images, ','); comma && found == 0; comma = strchr(comma + 1, ',')) {
        *comma = '\0';
        found = open_images_at(of, images, &out->member, e);
        if (found > 0 && !(out->labels = strdup(comma + 1))) found = shmt_no_memory(e, "to open a file");
        *comma = ',';
    }
    free(images);
    return found;
}

/* Opens the examples that `name` names: the file of this name; or, where there is none, one of the forms above. Returns as
 * shmt_array_file_open. */
static int open_images(struct arrays *of, const char *name, struct names *out, struct shmt_error *e) {
    int found = open_images_at(of, name, &out->member, e);
    if (found != 0 || access(name, F_OK) == 0) return found;
    found = open_named_members(of, name, out, e);
    return found == 0 && strchr(name, ',') ? open_joined(of, name, out, e) : found;
}

/* ---- finding their labels ---- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* The last place of a word in the file's name: "images", or "x" that stands alone. */
static const char *find_word(const char *path, size_t *length_out, const char **other_out) {
    const char *file = strrchr(path, '/'), *from = file ? file : path, *word = NULL;
    for (const char *at = from; (at = strstr(at, "images")); at++) word = at;
    *length_out = strlen("images");
    *other_out = "labels";
    if (word) return word;
    for (const char *at = from; *at; at++)
        if ((*at == 'x' || *at == 'X') && (at == path || !is_letter(at[-1])) && !is_letter(at[1])) word = at;
    *length_out = 1;
    *other_out = "y";
    return word;
}

/* The name of the labels that belong to examples of this name, with or without ".gz" at its end; NULL when there is no "images" in
 * it, no "x", or no memory. */
static char *name_labels(const char *images, bool gz) {
    const char *file = strrchr(images, '/'), *other;
    size_t length;
    const char *word = find_word(images, &length, &other);
    char *name;
    if (!word || asprintf(&name, "%.*s%s%s%s", (int)(word - images), images, other, word + length, gz ? ".gz" : "") < 0)
        return NULL;
    const size_t n = strlen(name), twice = strlen(".gz.gz"), once = strlen(".gz");
    if (gz && n >= twice && strcmp(name + n - twice, ".gz.gz") == 0) name[n - once] = '\0';
    if (!gz && n >= once && strcmp(name + n - once, ".gz") == 0) name[n - once] = '\0';
    char *dims = strstr(file ? name + (file - images) : name, "idx");
    if (dims && dims[3] >= '1' && dims[3] <= '9') dims[3] = '1';
    return name;
}

static int refuse_unlabelled(const struct arrays *of, const char *first, const char *second, struct shmt_error *e) {
    char first_shown[SHMT_NAME_SHOWN] = "", second_shown[SHMT_NAME_SHOWN] = "";
    const char *name = of->images.file.name;
    if (first) shmt_show_name(first, first_shown);
    if (second) shmt_show_name(second, second_shown);
    if (!first_shown[0])
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s has no labels: its name does not contain %s, so its labels cannot be found; name both "
                         "files, as IMAGES,LABELS",
                         name, of->images.format == SHMT_ARRAY_IDX ? "\"images\"" : "\"x\" or \"images\" as a word");
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has no labels: neither %s nor %s exists; name both files, as IMAGES,LABELS", name,
                     first_shown, second_shown);
}

/* Packed like the images, or else the other way. */
static int find_labels(const struct arrays *of, const char *images, bool must, char **out, struct shmt_error *e) {
    const size_t n = strlen(images);
    const bool gz = n >= 3 && strcmp(images + n - 3, ".gz") == 0;
    char *name[2] = {name_labels(images, gz), name_labels(images, !gz)};
    int found = 0;
    while (found < 2 && !(name[found] && access(name[found], F_OK) == 0)) found++;
    int rc = 0;
    if (found < 2)
        *out = name[found];
    else if (must)
        rc = refuse_unlabelled(of, name[0], name[1], e);
    if (found != 0) free(name[0]);
    if (found != 1) free(name[1]);
    return rc;
}

/* ---- opening the labels ---- */

/* What is open may be no labels. */
static int check_labels(struct arrays *of, struct shmt_error *e) {
    const struct shmt_array_file *labels = &of->labels, *images = &of->images;
    const bool column = labels->n_dims == 2 && labels->dim[1] == 1; /* as Keras has those of CIFAR */
    if (labels->n_dims != 1 && !column)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s, byte %d: labels have one dimension, but this file has %u",
                         labels->file.name, labels->state, labels->format == SHMT_ARRAY_IDX ? 4 : 11, labels->n_dims);
    if (labels->dim[0] == images->dim[0]) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s%s has %llu labels, but %s%s has %llu examples: do they belong together?",
                     labels->file.name, labels->member[0] ? labels->state : "", (unsigned long long)labels->dim[0],
                     images->file.name, images->member[0] ? images->state : "", (unsigned long long)images->dim[0]);
}

static int open_labels(struct arrays *of, const char *path, struct shmt_error *e) {
    int found = shmt_array_file_open(path, &of->labels, e);
    if (found < 0) return found;
    if (found == 0) {
        struct shmt_file file;
        const int status = shmt_file_open(path, &file, e);
        if (status != 0) return status;
        shmt_file_close(&file);
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s, byte 1: an IDX file of labels starts with 0 0, and this does not", file.name);
    }
    return check_labels(of, e);
}

/* Of an archive: `member`, or what is called as the examples are. */
static int open_label_member(struct arrays *of, const char *path, const char *member, bool must, struct shmt_error *e) {
    char *other = member ? strdup(member) : name_labels(of->images.member, false);
    int found = other ? shmt_array_file_open_member(path, other, &of->labels, e) : 0;
    if (found == 0 && must)
        found =
            shmt_fail(e, SHMTRAIN_E_DATA, "%s has no labels%s%.60s%s for its array \"%s\": name both, as FILE:EXAMPLES,LABELS",
                      of->images.file.name, other ? " \"" : "", other ? other : "", other ? "\"" : "", of->images.member);
    free(other);
    return found <= 0 ? found : check_labels(of, e);
}

/* Labels of the examples that are open, if they are named or wanted. */
static int take_labels(struct arrays *of, const char *name, struct names *names, unsigned how, struct shmt_error *e) {
    const bool labelled = (how & SHMT_SOURCE_UNLABELLED) == 0, must = (how & SHMT_SOURCE_ANY_LABELS) == 0;
    if (of->images.member[0]) {
        const char *path = names->archive ? names->archive : name;
        if (names->labels && !names->archive) return open_labels(of, names->labels, e);
        if (!labelled && !names->labels) return 0;
        return open_label_member(of, path, names->labels ? names->labels : names->member, must || names->labels, e);
    }
    int status = !names->labels && labelled ? find_labels(of, name, must, &names->labels, e) : 0;
    if (status == 0 && names->labels) status = open_labels(of, names->labels, e);
    return status;
}

/* ---- */

static int set_memory_aside(struct arrays *of, struct shmt_error *e) {
    struct shmt_matrix *m = &of->matrix;
    m->n = of->images.dim[0];
    m->value = of->images.elements;
    m->label = of->labels.elements;
    m->label.first = of->images.bytes;
    if (!shmt_add_u64(of->images.bytes, of->labels.bytes, &m->memory_bytes)) m->memory_bytes = UINT64_MAX;
    return shmt_matrix_make_room(m, e);
}

int shmt_array_source_open(const char *name, unsigned how, struct shmt_source **out, struct shmt_error *e) {
    struct names names = {0};
    struct arrays *of = calloc(1, sizeof *of);
    if (!of) return shmt_no_memory(e, "to open a file");
    of->images.file.fd = of->labels.file.fd = -1;
    of->matrix.source = (struct shmt_source){&OPS, of->images.file.name};
    of->matrix.where = where;
    const int found = open_images(of, name, &names, e);
    int status = found > 0 ? 0 : found == 0 ? 1 : found;
    if (status == 0) status = take_labels(of, name, &names, how, e);
    if (status == 0) status = set_memory_aside(of, e);
    free_names(&names);
    if (status != 0) {
        arrays_close(&of->matrix.source);
        return status;
    }
    *out = &of->matrix.source;
    return 0;
}
