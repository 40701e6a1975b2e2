/* Text that comes as it comes: see input.h. */
#include "files/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/unpack.h"
#include "base/atomic.h"
#include "base/io.h"
#include "base/checked.h"

#define STANDARD_INPUT "standard input"
#define LOOK_MS        50        /* how often a stop is looked for while nothing comes */
#define HEAD_BYTES     (1 << 16) /* of a pipe, to see whether it is packed */
#define MAGIC_BYTES    8

struct shmt_input {
    const struct shmt_text_file *file;
    struct shmt_input_until until; /* its words relaxed: they tell nothing but themselves */
    struct shmt_unpack *unpack;    /* NULL: its bytes are text as they are */
    int fd;                        /* of a pipe; ours */
    bool ended;                    /* a terminal would go on behind its end */
    uint64_t n_head, head_at;      /* bytes of the head, and how many of them were taken */
    char head[HEAD_BYTES];
};

/* ---- files ---- */

static bool is_standard_input(const char *path) { return strcmp(path, "-") == 0; }

/* A regular file that standard input stands at the beginning of is read like any other file. */
static bool is_pipe(const char *path, const struct stat *s) {
    if (!S_ISREG(s->st_mode)) return true;
    return is_standard_input(path) && lseek(STDIN_FILENO, 0, SEEK_CUR) != 0;
}

static int look(const char *path, struct shmt_text_file *out, struct stat *s, struct shmt_error *e) {
    if (is_standard_input(path))
        strcpy(out->file.name, STANDARD_INPUT);
    else
        shmt_show_name(path, out->file.name);
    if ((is_standard_input(path) ? fstat(STDIN_FILENO, s) : stat(path, s)) == 0) return 0;
    return shmt_fail_errno(e, "cannot open %s", out->file.name);
}

static int open_regular(struct shmt_text_file *out, struct shmt_error *e) {
    char magic[MAGIC_BYTES];
    const bool standard = is_standard_input(out->path);
    const int rc = shmt_file_open(standard ? "/dev/stdin" : out->path, &out->file, e);
    if (rc < 0) return rc;
    if (standard) strcpy(out->file.name, STANDARD_INPUT);
    const int64_t n = shmt_io_read(out->file.fd, magic, sizeof magic, 0);
    if (n < 0) return shmt_fail_errno(e, "cannot read %s", out->file.name);
    if (shmt_file_unpacker(magic, (uint64_t)n)) out->kind = SHMT_TEXT_PACKED;
    return 0;
}

int shmt_text_file_open(const char *path, bool alone, struct shmt_text_file *out, struct shmt_error *e) {
    struct stat s;
    *out = (struct shmt_text_file){.kind = SHMT_TEXT_PLAIN, .file.fd = -1, .path = strdup(path)};
    if (!out->path) return shmt_no_memory(e, "to open a file");
    const int rc = look(path, out, &s, e);
    if (rc < 0) return rc;
    out->dev = s.st_dev;
    out->ino = s.st_ino;
    if (!S_ISDIR(s.st_mode) && is_pipe(path, &s))
        out->kind = SHMT_TEXT_PIPE;
    else if (S_ISREG(s.st_mode) && s.st_size == 0 && !alone)
        out->kind = SHMT_TEXT_EMPTY;
    else
        return open_regular(out, e);
    return 0;
}

void shmt_text_file_close(struct shmt_text_file *file) {
    shmt_file_close(&file->file);
    free(file->path);
    file->path = NULL;
}

/* ---- bytes as they come ---- */

/* Waits until there is something, or the end. A FIFO that nobody has opened for writing yet has no end. */
static int wait_for_bytes(const struct shmt_input *input, struct shmt_error *e) {
    struct pollfd p = {.fd = input->fd, .events = POLLIN};
    for (;;) {
        if (load_relaxed(input->until.stop) != 0 || load_relaxed(input->until.end) <= input->until.number)
            return shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped while waiting for %s", input->file->file.name);
        const int n = poll(&p, 1, LOOK_MS);
        if (n > 0) return 0;
        if (n < 0 && errno != EINTR) return shmt_fail_errno(e, "cannot wait for %s", input->file->file.name);
    }
}

static int64_t read_pipe(struct shmt_input *input, void *into, uint64_t bytes, struct shmt_error *e) {
    while (!input->ended) {
        const int rc = wait_for_bytes(input, e);
        if (rc < 0) return rc;
        const ssize_t n = read(input->fd, into, bytes);
        input->ended = n == 0;
        if (n > 0) return n;
        if (n < 0 && errno != EINTR && errno != EAGAIN) return shmt_fail_errno(e, "cannot read %s", input->file->file.name);
    }
    return 0;
}

/* For the unpacker and for ourselves: the head first. */
static int64_t next_bytes(void *arg, void *into, uint64_t bytes, struct shmt_error *e) {
    struct shmt_input *input = arg;
    const uint64_t n = shmt_min_u64(bytes, input->n_head - input->head_at);
    if (n == 0) return read_pipe(input, into, bytes, e);
    memcpy(into, input->head + input->head_at, n);
    input->head_at += n;
    return (int64_t)n;
}

static int open_pipe(struct shmt_input *input, struct shmt_error *e) {
    const struct shmt_text_file *file = input->file;
    input->fd = is_standard_input(file->path) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                              : open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (input->fd < 0) return shmt_fail_errno(e, "cannot open %s", file->file.name);
    while (input->n_head < MAGIC_BYTES) {
        const int64_t n = read_pipe(input, input->head + input->n_head, HEAD_BYTES - input->n_head, e);
        if (n < 0) return (int)n;
        if (n == 0) break;
        input->n_head += (uint64_t)n;
    }
    if (!shmt_file_unpacker(input->head, input->n_head)) return 0;
    return shmt_unpack_open_from(&(struct shmt_unpack_from){next_bytes, input, file->file.name}, &input->unpack, e);
}

int shmt_input_open(const struct shmt_text_file *file, const struct shmt_input_until *until, struct shmt_input **out,
                    struct shmt_error *e) {
    struct shmt_input *input = calloc(1, sizeof *input);
    if (!input) return shmt_no_memory(e, "to read %s", file->file.name);
    input->file = file;
    input->until = *until;
    input->fd = -1;
    const int rc = file->kind == SHMT_TEXT_PIPE ? open_pipe(input, e) : shmt_unpack_open(&file->file, &input->unpack, e);
    if (rc < 0) {
        shmt_input_close(input);
        return rc;
    }
    *out = input;
    return 0;
}

int64_t shmt_input_read(struct shmt_input *input, void *into, uint64_t bytes, struct shmt_error *e) {
    uint64_t have = 0;
    if (input->unpack) {
        const int64_t n = shmt_unpack_read(input->unpack, into, bytes, e);
        const int rc = n >= 0 && (uint64_t)n < bytes ? shmt_unpack_finish(input->unpack, e) : 0;
        return rc < 0 ? rc : n;
    }
    while (have < bytes) {
        const int64_t n = next_bytes(input, (char *)into + have, bytes - have, e);
        if (n < 0) return n;
        if (n == 0) break;
        have += (uint64_t)n;
    }
    return (int64_t)have;
}

void shmt_input_close(struct shmt_input *input) {
    if (!input) return;
    shmt_unpack_close(input->unpack);
    if (input->fd >= 0) close(input->fd);
    free(input);
}
