/* For tests of the live display's lines: a run in the middle of it, drawn and cut into lines. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/draw.h"
#include "deadline.h"

#define MOST_LINES   64
#define MOST_WORKERS 5000

#define EACH(i, list) (size_t i = 0; i < sizeof(list) / sizeof *(list); i++)

static const double LOSSES[] = {0.5, 0.4, 0.35, 0.325};

/* A run in the middle of its fifth epoch, all of whose workers do the same. */
static inline struct draw_state middle(uint32_t n_workers) {
    static struct draw_worker worker[MOST_WORKERS];
    assert_true(n_workers <= MOST_WORKERS);
    for (uint32_t i = 0; i < n_workers; i++)
        worker[i] = (struct draw_worker){.rank = i, .examples_per_second = 150000, .compute = 0.75, .wait = 0.125};
    return (struct draw_state){.epoch = 5,
                               .epochs = 10,
                               .share = 0.5,
                               .examples_per_second = 1234567,
                               .loss = 0.3125,
                               .seconds_left = 80,
                               .losses_before = LOSSES,
                               .n_before = 4,
                               .evaluates = true,
                               .worker = worker,
                               .n_workers = n_workers};
}

static const struct draw_screen ASCII_80 = {.columns = 80, .rows = 24};
static const struct draw_screen BLOCKS_80 = {.columns = 80, .rows = 24, .blocks = true};

/* What was drawn, cut into lines. */
struct drawn {
    char *text;
    unsigned n;
    const char *line[MOST_LINES];
};

static inline struct drawn draw(const struct draw_state *state, const struct draw_screen *screen) {
    struct drawn d = {0};
    size_t bytes;
    FILE *out = open_memstream(&d.text, &bytes);
    assert_non_null(out);
    const unsigned n = draw_frame(state, screen, out);
    fclose(out);
    assert_true(bytes > 0 && d.text[bytes - 1] == '\n');
    for (char *at = d.text, *end; (end = strchr(at, '\n')); at = end + 1) {
        assert_true(d.n < MOST_LINES);
        *end = '\0';
        d.line[d.n++] = at;
    }
    assert_int_equal(d.n, n);
    return d;
}

/* Characters that take a column: no escape sequences, no further bytes of UTF-8. */
static inline unsigned width(const char *line) {
    unsigned n = 0;
    for (const char *at = line; *at; at++) {
        if (*at == '\033')
            while (*at != 'm') at++;
        else
            n += ((unsigned char)*at & 0xc0) != 0x80;
    }
    return n;
}

static inline unsigned count(const char *text, const char *what) {
    unsigned n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

static inline void assert_has(const char *line, const char *words) {
    if (!strstr(line, words)) fail_msg("\"%s\" is not in \"%s\"", words, line);
}
