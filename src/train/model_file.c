/* Writing models: see model_file.h. */
#include "train/model_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_LINKS 40 /* that lead to one another: as many as the system follows */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "model files are written as the memory is");

static json_t *tensor_entry(const struct shmt_tensor *tensor, uint64_t *offset) {
    const uint64_t bytes = tensor->rows * tensor->width * sizeof(float);
    json_t *shape = tensor->width == 1 ? json_pack("[I]", (json_int_t)tensor->rows)
                                       : json_pack("[I,I]", (json_int_t)tensor->rows, (json_int_t)tensor->width);
    json_t *entry = json_pack("{s:s,s:o,s:[I,I]}", "dtype", "F32", "shape", shape, "data_offsets", (json_int_t)*offset,
                              (json_int_t)(*offset + bytes));
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
        if (write_all(fd, tensor[i].value, tensor[i].rows * tensor[i].width * sizeof(float)) < 0) return -1;
    return fsync(fd);
}

/* The rename itself must survive a crash of the machine, too. A folder that cannot be synced (some file systems) is no
 * failure. */
static void sync_folder(const char *path) {
    char *copy = strdup(path);
    if (!copy) return;
    const int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* The folder of `path` with its final '/', or "" when it is the current one. */
static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* A new file beside `path`, with the permissions of the one that it will replace. The name is ours alone: O_EXCL. It is short
 * whatever the other one is: what may stand there may be written there. */
static int open_temporary(const char *path, char *temporary, size_t bytes) {
    struct stat old;
    for (unsigned i = 0; i < 100; i++) {
        const int n = snprintf(temporary, bytes, "%.*s.shmtrain-%ld-%u.tmp", (int)folder_bytes(path), path, (long)getpid(), i);
        if (n < 0 || (size_t)n >= bytes) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd >= 0 && stat(path, &old) == 0) (void)fchmod(fd, old.st_mode & 0777);
        return fd;
    }
    return -1;
}

static int write_and_rename(const char *path, const char *header, const struct shmt_tensor *tensor, uint32_t n_tensors,
                            struct shmt_error *e) {
    char temporary[PATH_MAX];
    const int fd = open_temporary(path, temporary, sizeof temporary);
    if (fd < 0) return shmt_fail_errno(e, "cannot write the model to %s", path);
    int rc = 0;
    if (write_contents(fd, header, tensor, n_tensors) < 0)
        rc = shmt_fail_errno(e, "cannot write the model to %s (what was there before is untouched)", path);
    if (close(fd) < 0 && rc == 0) rc = shmt_fail_errno(e, "cannot write the model to %s", path);
    if (rc == 0 && rename(temporary, path) < 0) rc = shmt_fail_errno(e, "cannot write the model to %s", path);
    if (rc < 0) unlink(temporary);
    if (rc == 0) sync_folder(path);
    return rc;
}

/* A pipe or a device is written to as it is: a rename would put a file in its place. */
static int write_special(const char *path, const char *header, const struct shmt_tensor *tensor, uint32_t n_tensors,
                         struct shmt_error *e) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return shmt_fail_errno(e, "cannot write the model to %s", path);
    int rc = write_contents(fd, header, tensor, n_tensors);
    if (rc < 0 && errno != EINVAL && errno != EROFS) rc = shmt_fail_errno(e, "cannot write the model to %s", path);
    close(fd);
    return rc < 0 && e->status != 0 ? e->status : 0; /* what cannot be synced (EINVAL) is written all the same */
}

/* One symbolic link further: `path` (PATH_MAX) becomes what it points to, seen from its folder. 1: done, 0: it is no link, -1:
 * errno. */
static int follow_link(char *path) {
    char target[PATH_MAX];
    const ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0) return errno == EINVAL || errno == ENOENT ? 0 : -1;
    target[n] = '\0';
    const size_t folder = target[0] == '/' ? 0 : folder_bytes(path);
    if (folder + (size_t)n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path + folder, target, (size_t)n + 1);
    return 1;
}

/* The file itself behind symbolic links, also when there is none yet: it is what is written, and the links stay. */
static int resolve(const char *path, char out[PATH_MAX]) {
    int more = 1;
    if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (int i = 0; more == 1; i++) {
        if (i > MOST_LINKS) {
            errno = ELOOP;
            return -1;
        }
        more = follow_link(out);
    }
    return more;
}

int shmt_model_file_write(const char *path, const struct shmt_tensor *tensor, uint32_t n_tensors, const struct shmt_note *note,
                          uint32_t n_notes, struct shmt_error *e) {
    struct stat there;
    char real[PATH_MAX];
    char *header = make_header(tensor, n_tensors, note, n_notes);
    if (!header) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to write the model to %s", path);
    const bool exists = stat(path, &there) == 0;
    int rc;
    if (exists && S_ISDIR(there.st_mode))
        rc = shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write the model to %s: it is a folder, name a file in it", path);
    else if (exists && !S_ISREG(there.st_mode))
        rc = write_special(path, header, tensor, n_tensors, e);
    else if (resolve(path, real) < 0)
        rc = shmt_fail_errno(e, "cannot write the model to %s", path);
    else
        rc = write_and_rename(real, header, tensor, n_tensors, e);
    free(header);
    return rc;
}
