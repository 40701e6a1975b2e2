/* The lines of one part of a file: see lines.h. */
#include "files/lines.h"

#include "files/row.h"
#include "base/checked.h"
#include "base/io.h"

#include <stdlib.h>
#include <string.h>

#define BEHIND     (1 + SHMT_LINE_PAD)   /* the line break of the last line, and what parsers may read */
#define FIRST_ROOM ((uint64_t)256 << 10) /* half of a small second-level cache */

/* Moves what is left to the front of the buffer, makes the buffer larger when that alone fills it, and reads on. */
static int refill(struct shmt_lines *lines, struct shmt_error *e) {
    const uint64_t left = lines->filled - lines->next;
    memmove(lines->buffer, lines->buffer + lines->next, left);
    lines->at += lines->next;
    lines->next = 0;
    lines->filled = left;
    if (left == lines->room) {
        if (left >= SHMT_LINE_BYTES_MAX) {
            return shmt_fail(e, SHMTRAIN_E_DATA, "%s:%llu: this line is longer than %llu MiB; is the file text?", lines->name,
                             (unsigned long long)shmt_lines_number(lines->fd, lines->at),
                             (unsigned long long)(SHMT_LINE_BYTES_MAX >> 20));
        }
        char *larger = realloc(lines->buffer, 2 * lines->room + BEHIND);
        if (!larger) return shmt_no_memory(e, "for a line of %s", lines->name);
        lines->buffer = larger;
        lines->room *= 2;
    }
    const uint64_t from = lines->at + left, bytes = shmt_min_u64(lines->room - left, lines->file_bytes - from);
    const int64_t n = shmt_io_read(lines->fd, lines->buffer + left, bytes, from);
    if (n < 0) return shmt_fail_errno(e, "cannot read %s", lines->name);
    if (n == 0) return shmt_fail(e, SHMTRAIN_E_DATA, "%s became shorter while it was being read", lines->name);
    lines->filled += (uint64_t)n;
    memset(lines->buffer + lines->filled, 0, BEHIND);
    return 0;
}

int shmt_lines_next(struct shmt_lines *lines, char **line_out, uint64_t *bytes_out, uint64_t *at_out, struct shmt_error *e) {
    if (lines->at + lines->next >= lines->end) return 0;
    uint64_t searched = 0;
    for (;;) {
        char *line = lines->buffer + lines->next;
        const uint64_t have = lines->filled - lines->next;
        char *stop = have > searched ? memchr(line + searched, '\n', have - searched) : NULL;
        if (!stop && have > 0 && lines->at + lines->filled == lines->file_bytes) {
            stop = line + have; /* the last line has no line break: there is room for one */
            *stop = '\n';
        }
        if (stop) {
            *line_out = line;
            *bytes_out = (uint64_t)(stop - line) + 1;
            *at_out = lines->at + lines->next;
            lines->next = shmt_min_u64(lines->next + *bytes_out, lines->filled);
            return 1;
        }
        searched = have;
        const int status = refill(lines, e);
        if (status != 0) return status;
    }
}

/* A part begins with the first line that starts in it. The search for that line begins one byte earlier: the byte may be the
 * line break behind which the part's first line starts. */
static int skip_to_first_line(struct shmt_lines *lines, uint64_t begin, struct shmt_error *e) {
    if (begin == 0) return 0;
    lines->at = begin - 1;
    while (lines->at < lines->end) {
        const uint64_t bytes = shmt_min_u64(lines->room, lines->file_bytes - lines->at);
        const int64_t n = shmt_io_read(lines->fd, lines->buffer, bytes, lines->at);
        if (n < 0) return shmt_fail_errno(e, "cannot read %s", lines->name);
        if (n == 0) return shmt_fail(e, SHMTRAIN_E_DATA, "%s became shorter while it was being read", lines->name);
        const char *stop = memchr(lines->buffer, '\n', (uint64_t)n);
        if (stop) {
            lines->filled = (uint64_t)n;
            memset(lines->buffer + lines->filled, 0, BEHIND);
            lines->next = (uint64_t)(stop - lines->buffer) + 1;
            return 0;
        }
        lines->at += (uint64_t)n;
    }
    return 0;
}

int shmt_lines_open_range(struct shmt_lines *lines, int fd, const char *name, uint64_t file_bytes, uint64_t begin, uint64_t end,
                          struct shmt_error *e) {
    *lines = (struct shmt_lines){.fd = fd, .name = name, .file_bytes = file_bytes, .end = end, .room = FIRST_ROOM};
    lines->buffer = malloc(lines->room + BEHIND);
    if (!lines->buffer) return shmt_no_memory(e, "to read %s", name);
    const int status = skip_to_first_line(lines, begin, e);
    if (status != 0) shmt_lines_close(lines);
    return status;
}

int shmt_lines_open(struct shmt_lines *lines, int fd, const char *name, uint64_t file_bytes, uint32_t part, uint32_t n_parts,
                    struct shmt_error *e) {
    const uint64_t begin = (uint64_t)((unsigned __int128)file_bytes * part / n_parts);
    const uint64_t end = (uint64_t)((unsigned __int128)file_bytes * (part + (uint64_t)1) / n_parts);
    return shmt_lines_open_range(lines, fd, name, file_bytes, begin, end, e);
}

void shmt_lines_open_text(struct shmt_lines *lines, char *text, uint64_t bytes) {
    *lines =
        (struct shmt_lines){.fd = -1, .buffer = text, .borrowed = true, .filled = bytes, .file_bytes = bytes, .end = bytes};
}

void shmt_lines_close(struct shmt_lines *lines) {
    if (!lines->borrowed) free(lines->buffer);
    lines->buffer = NULL;
}

uint64_t shmt_lines_number(int fd, uint64_t at) {
    char buffer[32768];
    uint64_t number = 1, from = 0;
    while (from < at) {
        const int64_t n = shmt_io_read(fd, buffer, shmt_min_u64(sizeof buffer, at - from), from);
        if (n <= 0) return 0;
        const char *p = buffer, *const end = buffer + n;
        while ((p = memchr(p, '\n', (uint64_t)(end - p)))) {
            number++;
            p++;
        }
        from += (uint64_t)n;
    }
    return number;
}
