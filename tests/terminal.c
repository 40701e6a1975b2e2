/* A small terminal: see terminal.h. */
#include "terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void terminal_init(struct terminal *t, unsigned columns, unsigned rows) {
    memset(t, 0, sizeof *t);
    assert_in_range(columns, 1, TERMINAL_COLUMNS);
    assert_in_range(rows, 1, TERMINAL_ROWS);
    t->columns = columns;
    t->rows = rows;
}

static void drop_first_row(struct terminal *t) {
    memmove(t->cell[0], t->cell[1], (TERMINAL_ROWS - 1) * sizeof t->cell[0]);
    memset(t->cell[TERMINAL_ROWS - 1], 0, sizeof t->cell[0]);
    t->n_scrolled++;
}

void terminal_resize(struct terminal *t, unsigned columns, unsigned rows) {
    assert_in_range(columns, 1, TERMINAL_COLUMNS);
    assert_in_range(rows, 1, TERMINAL_ROWS);
    for (; t->row >= rows; t->row--) drop_first_row(t);
    for (unsigned row = 0; row < TERMINAL_ROWS; row++) {
        const unsigned from = row < rows ? columns : 0;
        memset(t->cell[row][from], 0, (TERMINAL_COLUMNS - from) * sizeof t->cell[0][0]);
    }
    t->columns = columns;
    t->rows = rows;
    if (t->column > columns) t->column = columns;
}

static void line_feed(struct terminal *t) {
    if (t->row + 1 < t->rows)
        t->row++;
    else
        drop_first_row(t);
}

/* The cursor may stand behind the last column; only one more character begins a new row. */
static void put(struct terminal *t, const char *character) {
    if (t->column == t->columns) {
        t->n_wrapped++;
        t->column = 0;
        line_feed(t);
    }
    snprintf(t->cell[t->row][t->column++], sizeof t->cell[0][0], "%s", character);
}

static void erase(struct terminal *t, unsigned row, unsigned from) {
    if (from == t->columns) fail_msg("erased behind the last column: some terminals erase that column then");
    for (unsigned column = from; column < t->columns; column++) t->cell[row][column][0] = '\0';
}

static void obey(struct terminal *t) {
    const char *e = t->escape, last = e[t->n_escape - 1];
    if (strcmp(e, "[?2026h") == 0) {
        t->in_update = true;
    } else if (strcmp(e, "[?2026l") == 0) {
        t->in_update = false;
        t->n_frames++;
        if (t->frame) t->frame(t);
    } else if (strcmp(e, "[K") == 0 || strcmp(e, "[J") == 0) {
        erase(t, t->row, t->column);
        for (unsigned row = t->row + 1; last == 'J' && row < t->rows; row++) erase(t, row, 0);
    } else if (last == 'A' && e[0] == '[' && e[1] != '?') {
        const unsigned n = last == e[1] ? 1 : (unsigned)strtoul(e + 1, NULL, 10);
        assert_in_range(n, 1, t->row); /* never above the screen */
        t->row -= n;
    } else if (last == 'm' && e[0] == '[') {
        t->n_coloured++;
    } else if (!t->is_typed_at) { /* what is typed is echoed, also in the middle of one */
        fail_msg("the terminal does not know ESC %s", e);
    }
}

static void take_escape(struct terminal *t, char c) {
    assert_true(t->n_escape + 1 < sizeof t->escape);
    t->escape[t->n_escape - 1] = c;
    t->escape[t->n_escape] = '\0';
    const bool ends = t->n_escape > 1 && c >= '@' && c <= '~';
    if (ends) {
        obey(t);
        t->n_escape = 0;
    } else {
        t->n_escape++;
    }
}

/* A character of UTF-8 is complete when it has as many bytes as its first one says. */
static void take_character(struct terminal *t, char c) {
    const unsigned char first = (unsigned char)(t->n_character > 0 ? t->character[0] : c);
    const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    t->character[t->n_character++] = c;
    if (t->n_character < bytes) return;
    t->character[bytes] = '\0';
    t->n_character = 0;
    put(t, t->character);
}

/* As terminals do: what moves the cursor counts within an escape sequence, too, and another one ends those that are not
 * complete. */
void terminal_take(struct terminal *t, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char c = bytes[i];
        if (c == '\r')
            t->column = 0;
        else if (c == '\n')
            line_feed(t);
        else if (c == '\033')
            t->n_escape = 1, t->n_character = 0;
        else if (t->n_escape > 0)
            take_escape(t, c);
        else if ((unsigned char)c >= ' ')
            take_character(t, c);
        else
            fail_msg("the terminal does not know the character %d", c);
    }
}

const char *terminal_line(const struct terminal *t, unsigned row) {
    static char text[TERMINAL_COLUMNS * 4 + 1];
    size_t n = 0, end = 0;
    for (unsigned column = 0; column < t->columns; column++) {
        const char *character = t->cell[row][column][0] ? t->cell[row][column] : " ";
        memcpy(text + n, character, strlen(character));
        n += strlen(character);
        if (character[0] != ' ') end = n;
    }
    text[end] = '\0';
    return text;
}

unsigned terminal_height(const struct terminal *t) {
    unsigned height = t->rows;
    while (height > 0 && terminal_line(t, height - 1)[0] == '\0') height--;
    return height;
}

bool terminal_shows(const struct terminal *t, const char *words) {
    for (unsigned row = 0; row < t->rows; row++)
        if (strstr(terminal_line(t, row), words)) return true;
    return false;
}

void terminal_print(const struct terminal *t) {
    for (unsigned row = 0; row < terminal_height(t); row++) print_error("|%s\n", terminal_line(t, row));
    print_error("cursor at %u, %u\n", t->row, t->column);
}
