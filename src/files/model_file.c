/* Writing models: see model_file.h. */
#include "files/model_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/pipe.h"
#include "base/replace.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "model files are written as the memory is");

#define ZEROS "0000000000000000"
_Static_assert(sizeof ZEROS - 1 == SHMT_SEAL_CHARS, "a seal that is not known yet");

static const struct {
    const char *name;
    uint64_t bytes;
} DTYPES[SHMT_N_DTYPES] = {
    [SHMT_DTYPE_F32] = {"F32", 4}, [SHMT_DTYPE_F64] = {"F64", 8}, [SHMT_DTYPE_U32] = {"U32", 4}, [SHMT_DTYPE_U64] = {"U64", 8}};

const char *shmt_dtype_name(enum shmt_dtype dtype) { return DTYPES[dtype].name; }
uint64_t shmt_dtype_bytes(enum shmt_dtype dtype) { return DTYPES[dtype].bytes; }

static uint64_t row_bytes(const struct shmt_tensor *tensor) { return tensor->width * DTYPES[tensor->dtype].bytes; }

static json_t *tensor_entry(const struct shmt_tensor *tensor, uint64_t *offset) {
    const uint64_t bytes = tensor->rows * row_bytes(tensor);
    json_t *shape = tensor->width == 1 ? json_pack("[I]", (json_int_t)tensor->rows)
                                       : json_pack("[I,I]", (json_int_t)tensor->rows, (json_int_t)tensor->width);
    json_t *entry = json_pack("{s:s,s:o,s:[I,I]}", "dtype", DTYPES[tensor->dtype].name, "shape", shape, "data_offsets",
                              (json_int_t)*offset, (json_int_t)(*offset + bytes));
    *offset += bytes;
    return entry;
}

/* ---- a file on its way ---- */

struct writing {
    const struct shmt_tensor *tensor;
    const struct shmt_note *note;
    uint32_t n_tensors, n_notes;
    int fd; /* -1: nothing is written yet, and the seal is found */
    XXH64_state_t *hash;
    char *header;  /* its text, padded; to be freed */
    char *seal_at; /* the digits in it */
};

static char *make_header(const struct writing *w) {
    uint64_t offset = 0;
    json_t *root = json_object(), *metadata = json_object();
    for (uint32_t i = 0; i < w->n_notes; i++) json_object_set_new(metadata, w->note[i].key, json_string(w->note[i].value));
    json_object_set_new(metadata, SHMT_MODEL_FORMAT, json_string(SHMT_MODEL_FORMAT_NOW));
    json_object_set_new(metadata, SHMT_MODEL_SEAL, json_string(ZEROS));
    json_object_set_new(root, "__metadata__", metadata);
    for (uint32_t i = 0; i < w->n_tensors; i++)
        json_object_set_new(root, w->tensor[i].name, tensor_entry(&w->tensor[i], &offset));
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (!text) return NULL;
    const size_t n = strlen(text), padded = (n + 7) / 8 * 8;
    char *header = realloc(text, padded + 1);
    if (!header) {
        free(text);
        return NULL;
    }
    memset(header + n, ' ', padded - n);
    header[padded] = '\0';
    return header;
}

/* Where the digits are. Within a value of another note the bytes before them cannot stand: quotes are escaped. */
static char *find_seal(char *header) {
    static const char KEY[] = "\"" SHMT_MODEL_SEAL "\":\"";
    char *at = header ? strstr(header, KEY) : NULL;
    return at ? at + sizeof KEY - 1 : NULL;
}

static int write_all(struct writing *w, const void *from, uint64_t bytes) {
    XXH64_update(w->hash, from, bytes);
    return w->fd < 0 ? 0 : shmt_io_write(w->fd, from, bytes);
}

/* Rows that stand elsewhere than in the file are brought together some at a time. Places may come from shared memory. */
static int write_placed(struct writing *w, const struct shmt_tensor *tensor) {
    const uint64_t each = row_bytes(tensor), at_once = shmt_max_u64(1, (1 << 16) / shmt_max_u64(1, each));
    const unsigned char *data = tensor->data;
    unsigned char *rows = malloc(at_once * each + 1);
    int rc = rows ? 0 : -1;
    for (uint64_t row = 0; row < tensor->rows && rc == 0; row += at_once) {
        const uint64_t n = shmt_min_u64(at_once, tensor->rows - row);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t place = tensor->place[row + i];
            if (place < tensor->rows)
                memcpy(rows + i * each, data + place * each, each);
            else
                rc = -1;
        }
        if (rc < 0)
            errno = EBADMSG; /* somebody has damaged the store */
        else
            rc = write_all(w, rows, n * each);
    }
    const int why = errno;
    free(rows);
    errno = why;
    return rc;
}

static int write_tensor(struct writing *w, const struct shmt_tensor *tensor) {
    return tensor->place ? write_placed(w, tensor) : write_all(w, tensor->data, tensor->rows * row_bytes(tensor));
}

/* What the seal is of: all behind the header's length. */
static int write_sealed(struct writing *w) {
    XXH64_reset(w->hash, 0);
    if (write_all(w, w->header, strlen(w->header)) < 0) return -1;
    for (uint32_t i = 0; i < w->n_tensors; i++)
        if (write_tensor(w, &w->tensor[i]) < 0) return -1;
    return 0;
}

static void make_seal(const struct writing *w) {
    char digits[SHMT_SEAL_CHARS + 1];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH64_digest(w->hash));
    memcpy(w->seal_at, digits, SHMT_SEAL_CHARS);
}

/* Into the place that the header keeps for it. */
static int put_seal(const struct writing *w) {
    return shmt_io_write_at(w->fd, w->seal_at, SHMT_SEAL_CHARS, sizeof(uint64_t) + (uint64_t)(w->seal_at - w->header));
}

/* A file gets its seal last, found on the way; what is written from its beginning to its end only (a pipe), or is not ours from
 * its beginning, is gone through twice. */
static int write_contents(struct writing *w, int fd, bool special) {
    const uint64_t n = strlen(w->header); /* 8 bytes, little-endian, as the format has it */
    if (special) {
        w->fd = -1;
        if (write_sealed(w) < 0) return -1;
        make_seal(w);
    }
    w->fd = fd;
    if (write_all(w, &n, sizeof n) < 0 || write_sealed(w) < 0) return -1;
    if (special) return 0;
    make_seal(w);
    return put_seal(w);
}

static int write_file(struct writing *w, const char *path, const char *what, bool own, struct shmt_error *e) {
    struct shmt_replacement file;
    char *const header = make_header(w);
    w->header = header;
    w->seal_at = find_seal(header);
    w->hash = XXH64_createState();
    if (w->hash) XXH64_reset(w->hash, 0);
    int rc = w->hash && w->seal_at ? 0 : shmt_no_memory(e, "to write %s", what);
    if (rc == 0) rc = (own ? shmt_replace_open_own : shmt_replace_open)(&file, path, what, e);
    if (rc == 0) {
        struct shmt_quiet_pipe quiet;
        shmt_quiet_pipe_begin(&quiet);
        const int written = write_contents(w, file.fd, file.special);
        shmt_quiet_pipe_end(&quiet);
        rc = shmt_replace_close(&file, written, e);
    }
    XXH64_freeState(w->hash);
    free(header);
    return rc;
}

int shmt_model_file_write(const char *path, const struct shmt_tensor *tensor, uint32_t n_tensors, const struct shmt_note *note,
                          uint32_t n_notes, struct shmt_error *e) {
    struct writing w = {.tensor = tensor, .note = note, .n_tensors = n_tensors, .n_notes = n_notes};
    return write_file(&w, path, "the model", false, e);
}

int shmt_model_file_write_own(const char *path, const char *what, const struct shmt_tensor *tensor, uint32_t n_tensors,
                              const struct shmt_note *note, uint32_t n_notes, struct shmt_error *e) {
    struct writing w = {.tensor = tensor, .note = note, .n_tensors = n_tensors, .n_notes = n_notes};
    return write_file(&w, path, what, true, e);
}
