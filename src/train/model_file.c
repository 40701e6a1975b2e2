/* Writing models: see model_file.h. */
#include "train/model_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pipe.h"
#include "base/replace.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "model files are written as the memory is");

static uint64_t bytes_of(const struct shmt_tensor *tensor) {
    return tensor->rows * tensor->width * (tensor->id ? sizeof *tensor->id : sizeof *tensor->value);
}

static json_t *tensor_entry(const struct shmt_tensor *tensor, uint64_t *offset) {
    const uint64_t bytes = bytes_of(tensor);
    json_t *shape = tensor->width == 1 ? json_pack("[I]", (json_int_t)tensor->rows)
                                       : json_pack("[I,I]", (json_int_t)tensor->rows, (json_int_t)tensor->width);
    json_t *entry = json_pack("{s:s,s:o,s:[I,I]}", "dtype", tensor->id ? "U64" : "F32", "shape", shape, "data_offsets",
                              (json_int_t)*offset, (json_int_t)(*offset + bytes));
    *offset += bytes;
    return entry;
}

/* The header's text, padded; to be freed. */
static char *make_header(const struct shmt_tensor *tensor, uint32_t n_tensors, const struct shmt_note *note, uint32_t n_notes) {
    uint64_t offset = 0;
    json_t *root = json_object(), *metadata = json_object();
    for (uint32_t i = 0; i < n_notes; i++) json_object_set_new(metadata, note[i].key, json_string(note[i].value));
    json_object_set_new(root, "__metadata__", metadata);
    for (uint32_t i = 0; i < n_tensors; i++) json_object_set_new(root, tensor[i].name, tensor_entry(&tensor[i], &offset));
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

static int write_all(int fd, const void *from, uint64_t bytes) {
    const unsigned char *at = from;
    while (bytes > 0) {
        const ssize_t n = write(fd, at, bytes < (1u << 30) ? bytes : 1u << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        at += n;
        bytes -= (uint64_t)n;
    }
    return 0;
}

static int write_contents(int fd, const char *header, const struct shmt_tensor *tensor, uint32_t n_tensors) {
    const uint64_t n = strlen(header); /* 8 bytes, little-endian, as the format has it */
    if (write_all(fd, &n, sizeof n) < 0 || write_all(fd, header, n) < 0) return -1;
    for (uint32_t i = 0; i < n_tensors; i++)
        if (write_all(fd, tensor[i].id ? (const void *)tensor[i].id : tensor[i].value, bytes_of(&tensor[i])) < 0) return -1;
    return 0;
}

int shmt_model_file_write(const char *path, const struct shmt_tensor *tensor, uint32_t n_tensors, const struct shmt_note *note,
                          uint32_t n_notes, struct shmt_error *e) {
    struct shmt_replacement file;
    char *header = make_header(tensor, n_tensors, note, n_notes);
    if (!header) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to write the model");
    int rc = shmt_replace_open(&file, path, "the model", e);
    if (rc == 0) {
        struct shmt_quiet_pipe quiet;
        shmt_quiet_pipe_begin(&quiet);
        const int written = write_contents(file.fd, header, tensor, n_tensors);
        shmt_quiet_pipe_end(&quiet);
        rc = shmt_replace_close(&file, written, e);
    }
    free(header);
    return rc;
}
