/* Lines as they come: see stream_lines.h. */
#include "scoring/stream_lines.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "files/file.h"
#include "files/row.h"

#define BEHIND     (1 + SHMT_LINE_PAD) /* the line break of the last line, and what parsers may read */
#define MAGIC      6                   /* bytes that tell whether it is packed */
#define UNPACKED   (1 << 16)           /* bytes that are unpacked at once */
#define FIRST_ROOM ((uint64_t)256 << 10)
#define MOST_LINE  ((uint64_t)1 << 28) /* as in files: a longer one is no text */

int shmt_stream_lines_open(struct shmt_stream_lines *lines, struct shmt_call *call, int fd, const char *name) {
    *lines = (struct shmt_stream_lines){.call = call, .fd = fd, .name = name, .room = FIRST_ROOM};
    lines->buffer = malloc(lines->room + BEHIND);
    return lines->buffer ? 0 : shmt_no_memory(&call->error, "to read %s", name);
}

void shmt_stream_lines_close(struct shmt_stream_lines *lines) {
    shmt_unpack_close(lines->unpack);
    free(lines->head);
    free(lines->buffer);
}

int shmt_stream_lines_next(struct shmt_stream_lines *lines, char **line_out, uint64_t *bytes_out) {
    char *line = lines->buffer + lines->next;
    const uint64_t have = lines->filled - lines->next;
    char *stop = have > lines->searched ? memchr(line + lines->searched, '\n', have - lines->searched) : NULL;
    lines->searched = stop ? 0 : have;
    if (!stop && lines->ended && have > 0) { /* the last line has no line break: there is room for one */
        stop = line + have;
        *stop = '\n';
        lines->searched = 0;
    }
    if (!stop) return 0;
    *line_out = line;
    *bytes_out = (uint64_t)(stop - line) + 1;
    lines->next = shmt_min_u64(lines->next + *bytes_out, lines->filled);
    lines->number++;
    return 1;
}

bool shmt_stream_lines_must_wait(const struct shmt_stream_lines *lines) {
    struct pollfd pollfd = {.fd = lines->fd, .events = POLLIN};
    return poll(&pollfd, 1, 0) == 0;
}

/* Until there is something to read, or a stop. */
static int wait_for_more(struct shmt_stream_lines *lines) {
    struct pollfd pollfd[2] = {{.fd = lines->fd, .events = POLLIN}, {.fd = lines->call->stop_fd, .events = POLLIN}};
    do {
        if (shmt_stop_asked(lines->call))
            return shmt_fail(&lines->call->error, SHMTRAIN_E_STOPPED, "stopped while reading %s", lines->name);
        pollfd[0].revents = 0;
        if (poll(pollfd, 2, -1) < 0 && errno != EINTR)
            return shmt_fail_errno(&lines->call->error, "cannot wait for %s", lines->name);
    } while (pollfd[0].revents == 0);
    return 0;
}

/* Moves what is left to the front, and makes the buffer larger when that alone fills it. */
static int make_room(struct shmt_stream_lines *lines) {
    const uint64_t left = lines->filled - lines->next;
    memmove(lines->buffer, lines->buffer + lines->next, left);
    lines->next = 0;
    lines->filled = left;
    if (left < lines->room) return 0;
    if (left >= MOST_LINE)
        return shmt_fail(&lines->call->error, SHMTRAIN_E_DATA, "%s:%llu: this line is longer than %llu MiB; is it text?",
                         lines->name, (unsigned long long)lines->number + 1, (unsigned long long)(MOST_LINE >> 20));
    char *larger = realloc(lines->buffer, 2 * lines->room + BEHIND);
    if (!larger) return shmt_no_memory(&lines->call->error, "for a line of %s", lines->name);
    lines->buffer = larger;
    lines->room *= 2;
    return 0;
}

/* What has come, once there is some; 0 at the end. */
static int64_t read_some(struct shmt_stream_lines *lines, void *into, uint64_t bytes) {
    for (;;) {
        const int rc = wait_for_more(lines);
        if (rc < 0) return rc;
        const ssize_t n = read(lines->fd, into, bytes);
        if (n >= 0) return n;
        if (errno != EINTR && errno != EAGAIN) return shmt_fail_errno(&lines->call->error, "cannot read %s", lines->name);
    }
}

/* ---- packed ones ---- */

/* For the unpacker: the head first. */
static int64_t next_packed(void *arg, void *into, uint64_t bytes, struct shmt_error *e) {
    struct shmt_stream_lines *lines = arg;
    const uint64_t n = shmt_min_u64(bytes, lines->n_head - lines->head_at);
    if (n > 0) {
        memcpy(into, lines->head + lines->head_at, n);
        lines->head_at += n;
        return (int64_t)n;
    }
    const int64_t come = read_some(lines, into, bytes);
    if (come < 0) *e = lines->call->error;
    return come;
}

/* Nothing has been handed out yet, for no packed text begins with a line: what has come is the head. */
static int begin_unpacking(struct shmt_stream_lines *lines) {
    lines->head = malloc(lines->filled);
    if (!lines->head) return shmt_no_memory(&lines->call->error, "to unpack %s", lines->name);
    memcpy(lines->head, lines->buffer, lines->filled);
    lines->n_head = lines->filled;
    lines->filled = lines->searched = 0;
    lines->ended = false;
    return shmt_unpack_open_from(&(struct shmt_unpack_from){next_packed, lines, lines->name}, &lines->unpack,
                                 &lines->call->error);
}

static int64_t unpack_some(struct shmt_stream_lines *lines) {
    const uint64_t bytes = shmt_min_u64(lines->room - lines->filled, UNPACKED);
    struct shmt_error *e = &lines->call->error;
    const int64_t n = shmt_unpack_read(lines->unpack, lines->buffer + lines->filled, bytes, e);
    const int rc = n >= 0 && (uint64_t)n < bytes ? shmt_unpack_finish(lines->unpack, e) : 0;
    return rc < 0 ? rc : n;
}

/* ---- reading ---- */

static int read_into_buffer(struct shmt_stream_lines *lines) {
    const int64_t n =
        lines->unpack ? unpack_some(lines) : read_some(lines, lines->buffer + lines->filled, lines->room - lines->filled);
    if (n < 0) return (int)n;
    lines->filled += (uint64_t)n;
    memset(lines->buffer + lines->filled, 0, BEHIND);
    lines->ended = n == 0;
    return 0;
}

/* Whether enough has come to see it. Until then there is no line: nothing is held back. */
static bool shows_kind(const struct shmt_stream_lines *lines) {
    return lines->ended || lines->filled >= MAGIC || memchr(lines->buffer, '\n', lines->filled);
}

int shmt_stream_lines_read(struct shmt_stream_lines *lines) {
    int rc = make_room(lines);
    if (rc == 0) rc = read_into_buffer(lines);
    if (rc < 0 || lines->told || !shows_kind(lines)) return rc;
    lines->told = true;
    if (!shmt_file_unpacker(lines->buffer, lines->filled)) return 0;
    rc = begin_unpacking(lines);
    return rc == 0 ? read_into_buffer(lines) : rc;
}
