/* What the carrier on MPI (mpi_carrier.h) and the program that calls MPI (src/mpi) say to one another: records on a pair of stream
 * sockets. Both are of one build and on one machine, so a record is a plain struct with bytes behind it; but each is checked, because the
 * other one may be dying. Neither end ever waits in here: the program has to serve MPI meanwhile, and the link its run.
 *
 * Used by one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "carriers/carrier.h"

#define SHMT_MPI_NAME    64 /* bytes of a host's name, its end included */
#define SHMT_MPI_VERSION 1  /* of what is said here: programs of an older installation may lie about */
#define SHMT_MPI_KEPT    64 /* frames on their way to one peer, at most */

enum shmt_mpi_kind {
    SHMT_MPI_HELLO =
        1, /* program: MPI has started; `peer`: this host's rank, `count`: the version; names of all (SHMT_MPI_NAME each) */
    SHMT_MPI_FRAME, /* both: a frame to or from `peer`, its head and its body */
    SHMT_MPI_SENT,  /* program: `count` frames to `peer` are not ours any more */
    SHMT_MPI_LEAVE  /* carrier: its last word; the program is to end MPI, and itself */
};

struct shmt_mpi_record {
    uint32_t kind, peer, count;
    uint32_t n; /* bytes behind it */
};

#define SHMT_MPI_MOST_BYTES (SHMT_HEAD_BYTES + SHMT_MOST_BODY)

struct shmt_mpi_stream {
    int fd; /* belongs to the stream; does not block */
    /* what comes: bytes read ahead, and the record that is being put together */
    unsigned char *ahead;
    uint32_t from, to;
    struct shmt_mpi_record record;
    unsigned char *bytes; /* NULL: none is */
    uint32_t have;
    /* what goes: a record at a time */
    unsigned char start[sizeof(struct shmt_mpi_record) + SHMT_HEAD_BYTES];
    uint32_t n_start;
    const unsigned char *body; /* the sender's, until the stream is idle */
    uint64_t n_body, sent;
};

/* Takes the socket over. -1: no memory; then it is closed. */
int shmt_mpi_stream_open(struct shmt_mpi_stream *stream, int fd);
void shmt_mpi_stream_close(struct shmt_mpi_stream *stream);

/* The next record that has come whole. 1: *out, and *bytes_out to be freed by the caller (NULL: there are none); 0: nothing yet; -1: the
 * other end is closed, has sent what is no record, or there is no memory. */
int shmt_mpi_stream_take(struct shmt_mpi_stream *stream, struct shmt_mpi_record *out, unsigned char **bytes_out);

/* Whether all of the last record is sent, so that another may be put. */
bool shmt_mpi_stream_is_idle(const struct shmt_mpi_stream *stream);

/* Begins to send a record, of an idle stream: `head` (SHMT_HEAD_BYTES; NULL: none) is copied, the n_body bytes behind it have to stay until
 * the stream is idle. 0; -1: the other end is closed. */
int shmt_mpi_stream_put(struct shmt_mpi_stream *stream, enum shmt_mpi_kind kind, uint32_t peer, uint32_t count,
                        const unsigned char *head, const unsigned char *body, uint64_t n_body);

/* Sends more of it, as much as there is room for. 0; -1. */
int shmt_mpi_stream_flush(struct shmt_mpi_stream *stream);
