/* A small terminal for tests of the live display: takes what a program writes, and knows what would be seen. It obeys the
 * escape sequences that the display uses, and fails the test at any other. Cells hold one character of UTF-8 each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TERMINAL_COLUMNS 256
#define TERMINAL_ROWS    128

struct terminal {
    unsigned columns, rows, row, column;
    char cell[TERMINAL_ROWS][TERMINAL_COLUMNS][5];
    char escape[32], character[5]; /* what has begun */
    size_t n_escape, n_character;
    unsigned n_wrapped;  /* lines that were longer than the screen is wide */
    unsigned n_frames;   /* synchronized updates that have ended */
    unsigned n_coloured; /* sequences of colours */
    unsigned n_scrolled; /* lines that have left at the top */
    bool in_update;
    bool is_typed_at;                  /* sequences that it does not know are none, then: what was echoed has come in between */
    void (*frame)(struct terminal *t); /* after each update; may be NULL */
};

void terminal_init(struct terminal *t, unsigned columns, unsigned rows);

/* Lines keep their beginnings, as on a terminal that does not wrap them anew. */
void terminal_resize(struct terminal *t, unsigned columns, unsigned rows);
void terminal_take(struct terminal *t, const char *bytes, size_t n);

/* Row `row` without the blanks at its end, valid until the next call; the number of rows up to the last one that is not
 * empty. */
const char *terminal_line(const struct terminal *t, unsigned row);
unsigned terminal_height(const struct terminal *t);

/* Whether some row holds these words; shows the screen when a test fails. */
bool terminal_shows(const struct terminal *t, const char *words);
void terminal_print(const struct terminal *t);
