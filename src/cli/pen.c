/* Lines of limited width: see pen.h. */
#include "cli/pen.h"

#include <stdarg.h>

/* Everybody's palette: the eight colours that terminals let people choose. */
static const char *const CODES[] = {
    [PEN_PLAIN] = "",         [PEN_BOLD] = "\033[1m",    [PEN_DIM] = "\033[2m",  [PEN_RED] = "\033[31m",
    [PEN_GREEN] = "\033[32m", [PEN_YELLOW] = "\033[33m", [PEN_CYAN] = "\033[36m"};
#define CODE_END "\033[0m"

unsigned pen_left(const struct pen *pen) { return pen->columns > pen->column ? pen->columns - pen->column : 0; }

static bool begins_character(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

unsigned pen_width(const char *text) {
    unsigned n = 0;
    for (; *text; text++) n += begins_character(*text);
    return n;
}

/* The bytes of the first `most` characters. */
static size_t bytes_of(const char *text, unsigned most) {
    const char *at = text;
    for (; *at; at++)
        if (begins_character(*at) && most-- == 0) break;
    return (size_t)(at - text);
}

void pen_text(struct pen *pen, enum pen_colour colour, const char *text) {
    const size_t n = bytes_of(text, pen_left(pen));
    const bool coloured = pen->colours && colour != PEN_PLAIN && n > 0;
    fprintf(pen->out, "%s%.*s%s", coloured ? CODES[colour] : "", (int)n, text, coloured ? CODE_END : "");
    const unsigned width = pen_width(text);
    pen->column += width < pen_left(pen) ? width : pen_left(pen);
}

void pen_format(struct pen *pen, enum pen_colour colour, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pen_text(pen, colour, text);
}

void pen_repeat(struct pen *pen, enum pen_colour colour, const char *glyph, unsigned n) {
    if (n > pen_left(pen)) n = pen_left(pen);
    if (n == 0) return;
    const bool coloured = pen->colours && colour != PEN_PLAIN;
    if (coloured) fputs(CODES[colour], pen->out);
    for (unsigned i = 0; i < n; i++) fputs(glyph, pen->out);
    if (coloured) fputs(CODE_END, pen->out);
    pen->column += n;
}

void pen_move(struct pen *pen, unsigned column) {
    if (column > pen->column) pen_repeat(pen, PEN_PLAIN, " ", column - pen->column);
}

void pen_end_line(struct pen *pen) {
    fputc('\n', pen->out);
    pen->column = 0;
    pen->lines++;
}

const char *pen_short(double x, char out[16]) {
    static const char *const UNITS[] = {"", " k", " M", " G", " T"};
    char digits[16];
    size_t unit = 0;
    if (!(x >= 0 && x < 9e14)) {
        snprintf(out, 16, "%6s", "-");
        return out;
    }
    while (x >= 999.5) {
        x /= 1000;
        unit++;
    }
    /* Three digits; the limits are where rounding would give a fourth. */
    snprintf(digits, sizeof digits, "%.*f%s", unit == 0 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, UNITS[unit]);
    snprintf(out, 16, "%6s", digits);
    return out;
}
