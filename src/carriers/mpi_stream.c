/* Records between the carrier on MPI and its program: see mpi_stream.h. */
#include "carriers/mpi_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checked.h"

#define AHEAD_BYTES 65536 /* many short frames come by one call */

int shmt_mpi_stream_open(struct shmt_mpi_stream *s, int fd) {
    *s = (struct shmt_mpi_stream){.fd = fd, .ahead = malloc(AHEAD_BYTES)};
    const int flags = fcntl(fd, F_GETFL);
    if (s->ahead && flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0) return 0;
    shmt_mpi_stream_close(s);
    return -1;
}

void shmt_mpi_stream_close(struct shmt_mpi_stream *s) {
    if (s->fd >= 0) close(s->fd);
    free(s->ahead);
    free(s->bytes);
    *s = (struct shmt_mpi_stream){.fd = -1};
}

/* ---- what comes ---- */

/* Into n bytes at `to`: how many have come; 0: none yet; -1: the other end is closed. */
static int64_t read_some(const struct shmt_mpi_stream *s, unsigned char *to, uint64_t n) {
    const ssize_t got = recv(s->fd, to, n, MSG_DONTWAIT);
    if (got > 0) return got;
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* 1: more bytes lie ahead; 0: none have come; -1. */
static int read_ahead(struct shmt_mpi_stream *s) {
    if (s->from > 0) memmove(s->ahead, s->ahead + s->from, s->to - s->from);
    s->to -= s->from;
    s->from = 0;
    const int64_t got = read_some(s, s->ahead + s->to, AHEAD_BYTES - s->to);
    if (got > 0) s->to += (uint32_t)got;
    return got > 0 ? 1 : (int)got;
}

/* From what lies ahead. 1: a record has begun; 0: it is not there yet; -1: it is none. */
static int begin_record(struct shmt_mpi_stream *s) {
    if (s->to - s->from < sizeof s->record) return 0;
    memcpy(&s->record, s->ahead + s->from, sizeof s->record);
    s->from += (uint32_t)sizeof s->record;
    if (s->record.kind < SHMT_MPI_HELLO || s->record.kind > SHMT_MPI_LEAVE || s->record.n > SHMT_MPI_MOST_BYTES) return -1;
    s->bytes = malloc(s->record.n > 0 ? s->record.n : 1);
    s->have = 0;
    return s->bytes ? 1 : -1;
}

/* 1: all of the record's bytes are there; 0; -1. */
static int fill_record(struct shmt_mpi_stream *s) {
    const uint32_t ahead = (uint32_t)shmt_min_u64(s->record.n - s->have, s->to - s->from);
    memcpy(s->bytes + s->have, s->ahead + s->from, ahead);
    s->from += ahead;
    s->have += ahead;
    while (s->have < s->record.n) {
        const int64_t got = read_some(s, s->bytes + s->have, s->record.n - s->have);
        if (got <= 0) return (int)got;
        s->have += (uint32_t)got;
    }
    return 1;
}

int shmt_mpi_stream_take(struct shmt_mpi_stream *s, struct shmt_mpi_record *out, unsigned char **bytes_out) {
    int rc = 1;
    while (!s->bytes && (rc = begin_record(s)) == 0)
        if ((rc = read_ahead(s)) <= 0) return rc;
    if (rc == 1) rc = fill_record(s);
    if (rc <= 0) return rc;
    *out = s->record;
    *bytes_out = s->bytes;
    s->bytes = NULL;
    if (out->n > 0) return 1;
    free(*bytes_out);
    *bytes_out = NULL;
    return 1;
}

/* ---- what goes ---- */

bool shmt_mpi_stream_is_idle(const struct shmt_mpi_stream *s) { return s->sent == s->n_start + s->n_body; }

int shmt_mpi_stream_put(struct shmt_mpi_stream *s, enum shmt_mpi_kind kind, uint32_t peer, uint32_t count,
                        const unsigned char *head, const unsigned char *body, uint64_t n_body) {
    const uint32_t n_head = head ? SHMT_HEAD_BYTES : 0;
    const struct shmt_mpi_record record = {.kind = kind, .peer = peer, .count = count, .n = n_head + (uint32_t)n_body};
    memcpy(s->start, &record, sizeof record);
    if (head) memcpy(s->start + sizeof record, head, n_head);
    s->n_start = (uint32_t)sizeof record + n_head;
    s->body = body;
    s->n_body = n_body;
    s->sent = 0;
    return shmt_mpi_stream_flush(s);
}

int shmt_mpi_stream_flush(struct shmt_mpi_stream *s) {
    while (!shmt_mpi_stream_is_idle(s)) {
        const uint64_t of_start = shmt_min_u64(s->sent, s->n_start), of_body = s->sent - of_start;
        struct iovec part[2] = {{.iov_base = s->start + of_start, .iov_len = s->n_start - of_start},
                                {.iov_len = s->n_body - of_body}};
        if (s->n_body > 0) part[1].iov_base = (void *)(uintptr_t)(s->body + of_body); /* sendmsg only reads them */
        const struct msghdr message = {.msg_iov = part, .msg_iovlen = s->n_body > 0 ? 2 : 1};
        const ssize_t sent = sendmsg(s->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EAGAIN ? 0 : -1;
        s->sent += (uint64_t)sent;
    }
    return 0;
}
