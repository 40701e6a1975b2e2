/* Reading models: see model_read.h. */
#include "files/model_read.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "files/liblinear_read.h"
#include "base/checked.h"
#include "base/io.h"
#include "base/show.h"

#define AGAIN "use another copy of it, or create it again"
#define SAVED "name a file that shmtrain or LIBLINEAR has saved"

/* A tensor and where its floats lie, counted from the end of the header. */
struct entry {
    struct shmt_tensor tensor;
    uint64_t begin, end;
};

struct shmt_model_in {
    char name[SHMT_NAME_SHOWN]; /* for sentences */
    int fd;
    uint64_t bytes, data_off; /* of the file; where the header ends */
    json_t *root;             /* owns all names and notes */
    const json_t *notes;      /* NULL: none */
    uint64_t seal_off;        /* of its digits; 0: it has none */
    uint32_t n, n_all;        /* tables; tensors, of which these are the first */
    struct entry entry[SHMT_MODEL_MOST_TENSORS];
    bool is_liblinear; /* then root and the one entry say what ours would say, and the weights are text */
    struct shmt_liblinear liblinear;
};

const char *shmt_model_show(const char *text, char out[48]) {
    size_t n = 0;
    for (; text[n] && n < 40; n++) out[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    memcpy(out + n, text[n] ? "..." : "", text[n] ? 4 : 1);
    return out;
}

/* ---- the file ---- */

static int read_at(const struct shmt_model_in *in, void *to, uint64_t bytes, uint64_t off, struct shmt_error *e) {
    const int64_t n = shmt_io_read(in->fd, to, bytes, off);
    if (n < 0) return shmt_fail_errno(e, "cannot read the model %s", in->name);
    if ((uint64_t)n == bytes) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: the file ends at byte %llu; it became shorter while it was being read", in->name,
                     (unsigned long long)off + (unsigned long long)n);
}

/* O_NONBLOCK: a pipe that nobody writes to is refused, too, and not waited for. */
static int open_file(struct shmt_model_in *in, const char *path, struct shmt_error *e) {
    struct stat st;
    in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in->fd < 0 || fstat(in->fd, &st) < 0) return shmt_fail_errno(e, "cannot open the model %s", in->name);
    if (S_ISDIR(st.st_mode)) return shmt_fail(e, SHMTRAIN_E_DATA, "%s is a folder: name a model file", in->name);
    if (!S_ISREG(st.st_mode)) return shmt_fail(e, SHMTRAIN_E_DATA, "%s is not a regular file: name a model file", in->name);
    in->bytes = (uint64_t)st.st_size;
    return 0;
}

/* ---- the header ---- */

/* Where the digits of the seal are, as we write it; in the values of other notes its quotes are escaped. */
static uint64_t find_seal(const char *text, uint64_t n) {
    static const char KEY[] = "\"" SHMT_MODEL_SEAL "\":\"";
    const char *at = memmem(text, n, KEY, sizeof KEY - 1);
    const uint64_t off = at ? (uint64_t)(at - text) + sizeof KEY - 1 : n;
    return off + SHMT_SEAL_CHARS < n && text[off + SHMT_SEAL_CHARS] == '"' ? 8 + off : 0;
}

static int parse_header(struct shmt_model_in *in, char *text, uint64_t n, struct shmt_error *e) {
    json_error_t error;
    const int rc = read_at(in, text, n, 8, e);
    if (rc < 0) return rc;
    if (text[0] != '{')
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s: byte 8: not a model file (safetensors): no \"{\"; " SAVED, in->name);
    in->root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!in->root)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s: byte %llu: not a model file, or a damaged one: the header is not JSON; " SAVED, in->name,
                         8 + (unsigned long long)(error.position > 0 ? error.position : 0));
    in->seal_off = find_seal(text, n);
    return 0;
}

static int read_header(struct shmt_model_in *in, struct shmt_error *e) {
    uint64_t n; /* little-endian, as this machine is (model_file.c) */
    if (in->bytes < sizeof n + 2)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s has %llu bytes: not a model file (safetensors); " SAVED, in->name,
                         (unsigned long long)in->bytes);
    const int rc = read_at(in, &n, sizeof n, 0, e);
    if (rc < 0) return rc;
    if (n < 2 || n > SHMT_MODEL_MOST_HEADER || n > in->bytes - sizeof n)
        return shmt_fail(
            e, SHMTRAIN_E_DATA,
            "%s: byte 0: not a model file, or one cut short: its header would have %llu bytes, but the file has %llu; " SAVED,
            in->name, (unsigned long long)n, (unsigned long long)in->bytes);
    char *text = malloc(n);
    if (!text) return shmt_no_memory(e, "for the header of %s", in->name);
    in->data_off = sizeof n + n;
    const int parsed = parse_header(in, text, n, e);
    free(text);
    return parsed;
}

/* ---- what it says ---- */

static int refuse(const struct shmt_model_in *in, const char *key, const char *why, struct shmt_error *e) {
    char shown[48];
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: key \"%s\": %s", in->name, shmt_model_show(key, shown), why);
}

static int take_notes(struct shmt_model_in *in, json_t *notes, struct shmt_error *e) {
    const char *key;
    json_t *value;
    if (!json_is_object(notes)) return refuse(in, "__metadata__", "expected an object of strings", e);
    json_object_foreach(notes, key, value) {
        if (!json_is_string(value)) return refuse(in, key, "expected a string, as all of __metadata__", e);
    }
    in->notes = notes;
    return 0;
}

/* A whole number of the file: not negative, and no more than `most`. */
static bool take_number(const json_t *value, uint64_t most, uint64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (uint64_t)json_integer_value(value);
    return *out <= most;
}

/* The shape may be that of a vector or of a matrix. */
static int take_shape(const struct shmt_model_in *in, const char *key, const json_t *shape, struct entry *entry,
                      struct shmt_error *e) {
    const size_t n = json_is_array(shape) ? json_array_size(shape) : 0;
    entry->tensor.width = 1;
    if (n < 1 || n > 2 || !take_number(json_array_get(shape, 0), in->bytes, &entry->tensor.rows) ||
        (n == 2 && !take_number(json_array_get(shape, 1), in->bytes, &entry->tensor.width)))
        return refuse(in, key, "expected a \"shape\" of one or two sizes, no larger than the file", e);
    return 0;
}

static int take_offsets(const struct shmt_model_in *in, const char *key, const json_t *offsets, struct entry *entry,
                        struct shmt_error *e) {
    const uint64_t most = in->bytes - in->data_off, each = shmt_dtype_bytes(entry->tensor.dtype);
    uint64_t bytes;
    char why[120];
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !take_number(json_array_get(offsets, 0), most, &entry->begin) ||
        !take_number(json_array_get(offsets, 1), most, &entry->end) || entry->begin > entry->end) {
        snprintf(why, sizeof why, "expected two \"data_offsets\" within the file's %llu bytes of data (is it cut short?)",
                 (unsigned long long)most);
        return refuse(in, key, why, e);
    }
    if (shmt_mul_u64(entry->tensor.rows, entry->tensor.width, &bytes) && shmt_mul_u64(bytes, each, &bytes) &&
        bytes == entry->end - entry->begin)
        return 0;
    snprintf(why, sizeof why, "the \"data_offsets\" do not match the \"shape\" of %llu-bit %s", (unsigned long long)each * 8,
             strcmp(key, SHMT_MODEL_IDS) == 0        ? "ids"
             : entry->tensor.dtype <= SHMT_DTYPE_F64 ? "floats"
                                                     : "numbers");
    return refuse(in, key, why, e);
}

static bool find_dtype(const char *name, enum shmt_dtype *out) {
    for (int d = 0; d < SHMT_N_DTYPES; d++) {
        *out = (enum shmt_dtype)d;
        if (strcmp(shmt_dtype_name(*out), name) == 0) return true;
    }
    return false;
}

/* Tables are of floats, and have no '/' in their names. What else there may be: the ids of features, and in checkpoints all
 * that has one. */
static bool is_table(const struct shmt_tensor *tensor) { return tensor->dtype == SHMT_DTYPE_F32 && !strchr(tensor->name, '/'); }

static bool is_allowed(const struct shmt_model_in *in, const struct shmt_tensor *tensor) {
    if (strcmp(tensor->name, SHMT_MODEL_IDS) == 0 && tensor->dtype == SHMT_DTYPE_U64) return true;
    return (shmt_model_note(in, SHMT_MODEL_CHECKPOINT) || shmt_model_note(in, SHMT_MODEL_RECORD)) && strchr(tensor->name, '/');
}

static int take_tensor(struct shmt_model_in *in, const char *key, const json_t *value, struct shmt_error *e) {
    const char *type = json_string_value(json_object_get(value, "dtype"));
    struct entry entry = {.tensor = {.name = key}};
    if (in->n_all == SHMT_MODEL_MOST_TENSORS) return refuse(in, key, "this is one tensor too many: not a model of shmtrain", e);
    if (!type) return refuse(in, key, "expected a tensor with \"dtype\", \"shape\" and \"data_offsets\"", e);
    const bool known = find_dtype(type, &entry.tensor.dtype), added = known && is_allowed(in, &entry.tensor);
    if (!known || (!added && entry.tensor.dtype != SHMT_DTYPE_F32))
        return refuse(in, key, "the \"dtype\" is not F32: not a model of shmtrain", e);
    int rc = take_shape(in, key, json_object_get(value, "shape"), &entry, e);
    if (rc == 0 && added && strcmp(key, SHMT_MODEL_IDS) == 0 && entry.tensor.width != 1)
        return refuse(in, key, "expected a \"shape\" of one size", e);
    if (rc == 0) rc = take_offsets(in, key, json_object_get(value, "data_offsets"), &entry, e);
    if (rc == 0) in->entry[in->n_all++] = entry;
    return rc;
}

static bool overlap(const struct entry *a, const struct entry *b) { return a->begin < b->end && b->begin < a->end; }

/* Tensors that overlap, or bytes that belong to none, are signs of damage. */
static int check_cover(const struct shmt_model_in *in, struct shmt_error *e) {
    uint64_t sum = 0, data = in->bytes - in->data_off;
    for (uint32_t i = 0; i < in->n_all; i++) {
        const struct entry *a = &in->entry[i];
        bool apart = true;
        if (!shmt_add_u64(sum, a->end - a->begin, &sum)) sum = UINT64_MAX;
        for (uint32_t k = 0; k < i; k++) apart &= !overlap(a, &in->entry[k]);
        if (!apart) return refuse(in, a->tensor.name, "overlaps another tensor", e);
    }
    if (sum == data) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: the file has %llu bytes of data, but its tensors have %llu", in->name,
                     (unsigned long long)data, (unsigned long long)sum);
}

/* Tables in front, each kind in the file's order. */
static void put_tables_first(struct shmt_model_in *in) {
    struct entry sorted[SHMT_MODEL_MOST_TENSORS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < in->n_all; i++)
        if (is_table(&in->entry[i].tensor) || !is_allowed(in, &in->entry[i].tensor)) sorted[n++] = in->entry[i];
    in->n = n;
    for (uint32_t i = 0; i < in->n_all; i++)
        if (!is_table(&in->entry[i].tensor) && is_allowed(in, &in->entry[i].tensor)) sorted[n++] = in->entry[i];
    memcpy(in->entry, sorted, n * sizeof *sorted);
}

static int take_entries(struct shmt_model_in *in, struct shmt_error *e) {
    const char *key;
    json_t *value, *notes = json_object_get(in->root, "__metadata__");
    int rc = notes ? take_notes(in, notes, e) : 0;
    if (rc < 0) return rc;
    json_object_foreach(in->root, key, value) {
        if (value != notes && (rc = take_tensor(in, key, value, e)) < 0) return rc;
    }
    put_tables_first(in);
    return check_cover(in, e);
}

/* ---- LIBLINEAR's ---- */

static void note_count(json_t *notes, const char *key, uint64_t n) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    json_object_set_new(notes, key, json_string(text));
}

/* Labels as a list: label_at[0 .. n - 1] are numbers of them. */
static int note_labels(json_t *notes, const char *key, const struct shmt_liblinear *l, const uint16_t *label_at) {
    char *text = malloc(l->n_labels * (size_t)12 + 1);
    size_t used = 0;
    if (!text) return -1;
    for (uint32_t i = 0; i < l->n_labels; i++)
        used += (size_t)sprintf(text + used, "%s%d", i > 0 ? "," : "", (int)l->label[label_at[i]]);
    const int rc = json_object_set_new(notes, key, json_string(text));
    free(text);
    return rc;
}

/* Where outputs are equal (an example without features), LIBLINEAR takes the second of two labels, or the first of several. */
static int note_classes(json_t *notes, const struct shmt_liblinear *l) {
    uint16_t ascending[SHMTRAIN_MAX_CLASSES], ties[SHMTRAIN_MAX_CLASSES];
    const bool second_first = l->n_outputs == 1;
    for (uint32_t i = 0; i < l->n_labels; i++) {
        ascending[l->place[i]] = (uint16_t)i;
        ties[i] = (uint16_t)(second_first ? 1 - i : i);
    }
    int rc = note_labels(notes, "shmtrain.classes", l, ascending);
    if (rc == 0) rc = note_labels(notes, "shmtrain.ties", l, ties);
    json_object_set_new(notes, "shmtrain.label_low", json_sprintf("%d", (int)l->label[ascending[0]]));
    json_object_set_new(notes, "shmtrain.label_high", json_sprintf("%d", (int)l->label[ascending[l->n_labels - 1]]));
    return rc;
}

static int take_liblinear(struct shmt_model_in *in, struct shmt_error *e) {
    struct shmt_liblinear *l = &in->liblinear;
    int rc = shmt_liblinear_open(in->fd, in->bytes, in->name, l, e);
    if (rc < 0) return rc;
    json_t *notes = in->root = json_object();
    in->notes = notes;
    json_object_set_new(notes, "shmtrain.model", json_string(l->model));
    json_object_set_new(notes, "shmtrain.label_low", json_string("0"));
    json_object_set_new(notes, "shmtrain.label_high", json_string("0"));
    note_count(notes, "shmtrain.features", l->n_features);
    note_count(notes, "shmtrain.first_feature", 1);
    note_count(notes, "shmtrain.bias", l->has_bias);
    if (l->n_labels > 0 && note_classes(notes, l) < 0) return shmt_no_memory(e, "to read %s", in->name);
    in->entry[0] = (struct entry){.tensor = {.name = "weight", .rows = l->n_features + l->has_bias, .width = l->n_outputs}};
    in->n = in->n_all = 1;
    in->is_liblinear = true;
    return 0;
}

/* ---- the seal ---- */

/* XXH64 of all from byte 8 on, with zeros for its own digits. */
static int find_checksum(const struct shmt_model_in *in, char found[SHMT_SEAL_CHARS + 1], struct shmt_error *e) {
    enum { AT_ONCE = 1 << 18 };
    XXH64_state_t *hash = XXH64_createState();
    unsigned char *bytes = malloc(AT_ONCE);
    int rc = hash && bytes ? 0 : shmt_no_memory(e, "to check %s", in->name);
    if (hash) XXH64_reset(hash, 0);
    for (uint64_t off = 8; off < in->bytes && rc == 0; off += AT_ONCE) {
        const uint64_t n = shmt_min_u64(AT_ONCE, in->bytes - off);
        rc = read_at(in, bytes, n, off, e);
        for (uint64_t i = 0; i < SHMT_SEAL_CHARS && rc == 0; i++)
            if (in->seal_off + i >= off && in->seal_off + i < off + n) bytes[in->seal_off + i - off] = '0';
        if (rc == 0) XXH64_update(hash, bytes, n);
    }
    if (rc == 0) snprintf(found, SHMT_SEAL_CHARS + 1, "%016llx", (unsigned long long)XXH64_digest(hash));
    XXH64_freeState(hash);
    free(bytes);
    return rc;
}

/* All checkpoints and records have a seal, and models since they name their format: one that is missing there is damage. */
static int check_seal(const struct shmt_model_in *in, struct shmt_error *e) {
    const char *seal = shmt_model_note(in, SHMT_MODEL_SEAL), *format = shmt_model_note(in, SHMT_MODEL_FORMAT);
    char found[SHMT_SEAL_CHARS + 1], shown[48];
    const bool sealed = shmt_model_note(in, SHMT_MODEL_CHECKPOINT) || shmt_model_note(in, SHMT_MODEL_RECORD);
    if (!seal && !format && !sealed) return 0;
    if (!seal || in->seal_off == 0)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s is damaged: key \"" SHMT_MODEL_SEAL "\": is missing in __metadata__; " AGAIN,
                         in->name);
    const int rc = find_checksum(in, found, e);
    if (rc < 0) return rc;
    if (strcmp(found, seal) != 0)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s is damaged: its checksum does not match its contents; " AGAIN, in->name);
    if (!format || strcmp(format, SHMT_MODEL_FORMAT_NOW) == 0) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA,
                     "%s: key \"" SHMT_MODEL_FORMAT "\": expected " SHMT_MODEL_FORMAT_NOW
                     ", not %s: a newer shmtrain has written it, which can read it",
                     in->name, shmt_model_show(format, shown));
}

/* What the file is meant to be, by its beginning. */
static int take_file(struct shmt_model_in *in, struct shmt_error *e) {
    char begin[16];
    const uint64_t n = in->bytes < sizeof begin ? in->bytes : sizeof begin;
    int rc = read_at(in, begin, n, 0, e);
    if (rc < 0) return rc;
    if (shmt_liblinear_begins(begin, n)) return take_liblinear(in, e);
    rc = read_header(in, e);
    return rc == 0 ? take_entries(in, e) : rc;
}

void shmt_model_tell_seal(const struct shmt_model_in *in, const struct shmt_log *log) {
    if (in->is_liblinear || shmt_model_note(in, SHMT_MODEL_SEAL)) return;
    shmt_log(log, "%s has no seal, so damage to it goes unnoticed: shmtrain model convert writes it again with one", in->name);
}

static int open_model(const char *path, bool checked, struct shmt_model_in **out, struct shmt_error *e) {
    struct shmt_model_in *in = calloc(1, sizeof *in);
    if (!in) return shmt_no_memory(e, "to read a model");
    in->fd = -1;
    shmt_show_name(path, in->name);
    int rc = open_file(in, path, e);
    if (rc == 0) rc = take_file(in, e);
    if (rc == 0 && checked && !in->is_liblinear) rc = check_seal(in, e);
    if (rc < 0)
        shmt_model_close(in);
    else
        *out = in;
    return rc;
}

int shmt_model_open(const char *path, struct shmt_model_in **out, struct shmt_error *e) {
    return open_model(path, true, out, e);
}

int shmt_model_open_header(const char *path, struct shmt_model_in **out, struct shmt_error *e) {
    return open_model(path, false, out, e);
}

void shmt_model_close(struct shmt_model_in *in) {
    if (!in) return;
    json_decref(in->root);
    if (in->fd >= 0) close(in->fd);
    free(in);
}

const char *shmt_model_note(const struct shmt_model_in *in, const char *key) {
    return json_string_value(json_object_get(in->notes, key));
}

uint32_t shmt_model_n_tensors(const struct shmt_model_in *in) { return in->n; }
uint32_t shmt_model_n_all(const struct shmt_model_in *in) { return in->n_all; }
const struct shmt_tensor *shmt_model_tensor(const struct shmt_model_in *in, uint32_t i) { return &in->entry[i].tensor; }
bool shmt_model_is_liblinear(const struct shmt_model_in *in) { return in->is_liblinear; }
uint64_t shmt_model_bytes(const struct shmt_model_in *in) { return in->bytes; }

bool shmt_model_find(const struct shmt_model_in *in, const char *name, uint32_t *out) {
    for (*out = 0; *out < in->n_all; ++*out)
        if (strcmp(in->entry[*out].tensor.name, name) == 0) return true;
    return false;
}

int shmt_model_read_tensor(const struct shmt_model_in *in, uint32_t i, void *out, struct shmt_error *e) {
    const struct entry *entry = &in->entry[i];
    if (in->is_liblinear) return shmt_liblinear_weights(&in->liblinear, in->fd, out, e);
    return read_at(in, out, entry->end - entry->begin, in->data_off + entry->begin, e);
}

int shmt_model_read_part(const struct shmt_model_in *in, uint32_t i, uint64_t from, uint64_t n, void *out,
                         struct shmt_error *e) {
    const struct entry *entry = &in->entry[i];
    const uint64_t each = shmt_dtype_bytes(entry->tensor.dtype);
    return read_at(in, out, n * each, in->data_off + entry->begin + from * each, e);
}

static bool find_ids(const struct shmt_model_in *in, uint32_t *out) {
    return shmt_model_find(in, SHMT_MODEL_IDS, out) && in->entry[*out].tensor.dtype == SHMT_DTYPE_U64;
}

bool shmt_model_has_ids(const struct shmt_model_in *in, uint64_t *n_out) {
    uint32_t i;
    const bool has = find_ids(in, &i);
    *n_out = has ? in->entry[i].tensor.rows : 0;
    return has;
}

int shmt_model_read_ids(const struct shmt_model_in *in, uint64_t *out, struct shmt_error *e) {
    uint32_t i;
    if (!find_ids(in, &i)) return shmt_fail(e, SHMTRAIN_E_DATA, "%s: it has no ids of features", in->name);
    return shmt_model_read_tensor(in, i, out, e);
}
