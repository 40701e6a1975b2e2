/* Lines as they come from a descriptor, for predictions (stream.c). Unlike the reader of files (files/lines.h) it knows no end
 * and no offset, and hands out what there is before it waits for more. Packed ones (gz, ...) are unpacked. */
#pragma once

#include "configuration/call.h"
#include "files/unpack.h"

struct shmt_stream_lines {
    struct shmt_call *call; /* whose stop ends a wait */
    int fd;
    const char *name;
    uint64_t number;             /* of the line that was handed out last, from 1 */
    char *buffer;                /* [next, filled) has come and is not handed out */
    uint64_t room, next, filled; /* room: without the byte for a last line's end */
    uint64_t searched;           /* bytes from next on that have no line break */
    bool ended;
    bool told;                  /* whether they are packed: `unpack` is NULL when they are not */
    struct shmt_unpack *unpack; /* of packed ones; they come in blocks, and what is in a block comes when all of it is there */
    char *head;                 /* (n_head) packed bytes that had come before that was known */
    uint64_t n_head, head_at;   /* head_at: how many of them were taken */
};

int shmt_stream_lines_open(struct shmt_stream_lines *lines, struct shmt_call *call, int fd, const char *name);
void shmt_stream_lines_close(struct shmt_stream_lines *lines);

/* 1: the next line, which ends with a line break, valid until the next call; 0: it has not come yet, or there is none
 * (lines->ended). Never waits. */
int shmt_stream_lines_next(struct shmt_stream_lines *lines, char **line_out, uint64_t *bytes_out);

/* Whether shmt_stream_lines_read would wait. */
bool shmt_stream_lines_must_wait(const struct shmt_stream_lines *lines);

/* Waits for more and reads it; to be called when there is no next line. Errors: _STOPPED, _SYSTEM, _MEMORY, _DATA (a line is too
 * long). */
int shmt_stream_lines_read(struct shmt_stream_lines *lines);
