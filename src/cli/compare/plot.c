/* Curves as text: see plot.h. */
#include "cli/compare/plot.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/plot_range.h"

#define COLUMNS_A_TICK 12
#define ROWS_A_TICK    3
#define MOST_COLUMNS   256
#define AROUND         2 /* rows below the canvas: the axis, its numbers */

/* One character of the canvas. */
struct cell {
    uint32_t marks;  /* a bit for each curve that has a point here */
    uint8_t line;    /* 1 + the curve that passes between two points; 0: none */
    uint8_t between; /* 1: the target's line; 2: the upright one */
};

struct canvas {
    unsigned columns, rows;
    struct cell *cell; /* (rows, columns), the first row is the highest */
    struct scale x, y;
};

static unsigned clamp(double share, unsigned n) {
    const double at = share * (n - 1) + 0.5;
    return at <= 0 ? 0 : at >= n ? n - 1 : (unsigned)at;
}

static unsigned column_of(const struct canvas *c, double x) { return clamp(scale_place(&c->x, x), c->columns); }
static unsigned row_of(const struct canvas *c, double y) { return c->rows - 1 - clamp(scale_place(&c->y, y), c->rows); }

static struct cell *cell_at(const struct canvas *c, unsigned column, unsigned row) {
    return &c->cell[(size_t)row * c->columns + column];
}

/* ---- curves on the canvas ---- */

/* Bresenham's: one cell for each step along the longer side, without the ends. */
static void draw_segment(struct canvas *c, unsigned curve, const unsigned from[2], const unsigned to[2]) {
    const int dx = (int)to[0] - (int)from[0], dy = (int)to[1] - (int)from[1];
    const int n = abs(dx) > abs(dy) ? abs(dx) : abs(dy);
    for (int i = 1; i < n; i++) {
        const unsigned column = from[0] + (unsigned)lround((double)dx * i / n),
                       row = from[1] + (unsigned)lround((double)dy * i / n);
        struct cell *cell = cell_at(c, column, row);
        if (cell->line == 0) cell->line = (uint8_t)(curve + 1);
    }
}

static void draw_curve(struct canvas *c, unsigned curve, const struct plot_curve *of) {
    unsigned before[2], at[2];
    bool has_before = false;
    for (size_t i = 0; i < of->n; i++) {
        const struct plot_point *p = &of->point[i];
        if (!plot_has(p)) continue;
        at[0] = column_of(c, p->x);
        at[1] = row_of(c, p->y);
        cell_at(c, at[0], at[1])->marks |= UINT32_C(1) << curve;
        if (has_before) draw_segment(c, curve, before, at);
        memcpy(before, at, sizeof before);
        has_before = true;
    }
}

static void draw_target(struct canvas *c, double target) {
    const unsigned row = row_of(c, target);
    for (unsigned column = 0; column < c->columns; column++) cell_at(c, column, row)->between = 1;
}

static void draw_upright(struct canvas *c, double at) {
    const unsigned column = column_of(c, at);
    for (unsigned row = 0; row < c->rows; row++) cell_at(c, column, row)->between = 2;
}

/* Of the curves that meet in a cell, the one whose turn it is in this column. */
static unsigned whose_turn(uint32_t marks, unsigned column) {
    unsigned n = 0, turn;
    for (uint32_t rest = marks; rest != 0; rest &= rest - 1) n++;
    turn = column % n;
    for (unsigned curve = 0;; curve++)
        if ((marks >> curve & 1) != 0 && turn-- == 0) return curve;
}

/* ---- lines ---- */

static enum pen_colour colour_of(unsigned curve) {
    static const enum pen_colour COLOURS[] = {PEN_CYAN, PEN_YELLOW, PEN_GREEN, PEN_RED, PEN_BOLD, PEN_PLAIN};
    return COLOURS[curve % (sizeof COLOURS / sizeof *COLOURS)];
}

/* Neighbours of one colour, which are written at once: a terminal is told each colour once. */
struct brush {
    struct pen *pen;
    enum pen_colour colour;
    char text[256];
};

static void flush_brush(struct brush *b) {
    if (b->text[0] != '\0') pen_text(b->pen, b->colour, b->text);
    b->text[0] = '\0';
}

static void brush(struct brush *b, enum pen_colour colour, const char *glyph) {
    size_t used = strlen(b->text);
    if (colour != b->colour || used + 8 > sizeof b->text) {
        flush_brush(b);
        used = 0;
    }
    b->colour = colour;
    snprintf(b->text + used, sizeof b->text - used, "%s", glyph);
}

static void put_cell(const struct plot *plot, const struct canvas *c, unsigned column, unsigned row, bool blocks,
                     struct brush *to) {
    const struct cell *cell = cell_at(c, column, row);
    if (cell->marks != 0) {
        const unsigned curve = whose_turn(cell->marks, column);
        const char mark[2] = {plot->curve[curve].mark, '\0'};
        brush(to, colour_of(curve), mark);
    } else if (cell->line != 0) {
        brush(to, colour_of(cell->line - 1u), blocks ? "·" : ".");
    } else if (cell->between == 2) {
        brush(to, PEN_DIM, blocks ? "┊" : ":");
    } else if (cell->between != 0) {
        brush(to, PEN_DIM, blocks ? "╌" : column % 2 == 0 ? "-" : " ");
    } else {
        brush(to, PEN_PLAIN, " ");
    }
}

/* Columns in front of the canvas: the numbers' and the axis's. */
static unsigned margin_of(const struct canvas *c) {
    unsigned width = 1;
    char words[16];
    for (unsigned i = 0; i < c->y.n_ticks; i++) {
        const unsigned n = (unsigned)strlen(scale_words(&c->y, i, words));
        width = n > width ? n : width;
    }
    return width + 2;
}

static void put_row(const struct plot *plot, const struct canvas *c, unsigned row, bool blocks, struct pen *pen) {
    char words[16] = "";
    for (unsigned i = 0; i < c->y.n_ticks; i++)
        if (row_of(c, c->y.tick[i]) == row) scale_words(&c->y, i, words);
    pen_format(pen, PEN_PLAIN, "%*s ", (int)margin_of(c) - 2, words);
    if (words[0] != '\0')
        pen_text(pen, PEN_DIM, blocks ? "┤" : "+");
    else
        pen_text(pen, PEN_DIM, blocks ? "│" : "|");
    unsigned last = 0; /* no blanks at the end of the line */
    for (unsigned column = 0; column < c->columns; column++) {
        const struct cell *cell = cell_at(c, column, row);
        if (cell->marks != 0 || cell->line != 0 || cell->between == 2 || (cell->between != 0 && (blocks || column % 2 == 0)))
            last = column + 1;
    }
    struct brush to = {.pen = pen};
    for (unsigned column = 0; column < last; column++) put_cell(plot, c, column, row, blocks, &to);
    flush_brush(&to);
    pen_end_line(pen);
}

static void put_axis(const struct canvas *c, bool blocks, struct pen *pen) {
    pen_format(pen, PEN_PLAIN, "%*s", (int)margin_of(c) - 1, "");
    struct brush to = {.pen = pen};
    brush(&to, PEN_DIM, blocks ? "└" : "+");
    for (unsigned column = 0; column < c->columns; column++) {
        bool is_tick = false;
        for (unsigned i = 0; i < c->x.n_ticks; i++) is_tick = is_tick || column_of(c, c->x.tick[i]) == column;
        brush(&to, PEN_DIM, is_tick ? blocks ? "┴" : "+" : blocks ? "─" : "-");
    }
    flush_brush(&to);
    pen_end_line(pen);
}

/* Each number below its tick, where there is room; then what is counted. */
static void put_numbers(const struct plot *plot, const struct canvas *c, struct pen *pen) {
    const unsigned margin = margin_of(c), all = margin + c->columns;
    const unsigned title = (unsigned)strlen(plot->x_title);
    unsigned end = 0; /* of what is written */
    for (unsigned i = 0; i < c->x.n_ticks; i++) {
        char words[16];
        const unsigned n = (unsigned)strlen(scale_words(&c->x, i, words)), middle = margin + column_of(c, c->x.tick[i]);
        unsigned at = middle > n / 2 ? middle - n / 2 : 0;
        if (at + n + 2 + title > all && i > 0) continue; /* the title's place */
        if (at + n > all) at = all > n ? all - n : 0;
        if (i > 0 && at < end + 2) continue;
        pen_move(pen, at);
        pen_text(pen, PEN_PLAIN, words);
        end = at + n;
    }
    if (all > title) pen_move(pen, all - title);
    pen_text(pen, PEN_PLAIN, plot->x_title);
    pen_end_line(pen);
}

/* ---- the legend ---- */

/* Goes on in the next line where a word does not fit any more. */
static void put_entry(struct pen *pen, enum pen_colour colour, const char *sign, const char *name) {
    const unsigned n = pen_width(sign) + 1 + pen_width(name);
    if (pen->column > 0 && pen_left(pen) < 3 + n) pen_end_line(pen);
    pen_text(pen, PEN_PLAIN, pen->column > 0 ? "   " : "");
    pen_text(pen, colour, sign);
    pen_format(pen, PEN_PLAIN, " %s", name);
}

static void put_legend(const struct plot *plot, const struct canvas *c, const struct plot_screen *screen, struct pen *pen) {
    char title[96];
    snprintf(title, sizeof title, "%s%s%s", plot->title, c->y.log ? ", log scale" : "",
             c->x.log ? c->y.log ? "s" : ", log scale of x" : "");
    pen_text(pen, PEN_BOLD, title);
    for (unsigned i = 0; i < plot->n_curves; i++) {
        const char mark[2] = {plot->curve[i].mark, '\0'};
        put_entry(pen, colour_of(i), mark, plot->curve[i].name);
    }
    if (plot_shows_target(plot, &c->y)) put_entry(pen, PEN_DIM, screen->blocks ? "╌╌╌" : "- -", "target");
    if (plot_shows_at(plot, &c->x)) put_entry(pen, PEN_DIM, screen->blocks ? "┊" : ":", plot->at_name);
    pen_end_line(pen);
}

/* ---- all of it ---- */

static unsigned lines_of_legend(const struct plot *plot, const struct canvas *c, const struct plot_screen *screen) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *nowhere = open_memstream(&text, &bytes);
    struct pen pen = {.out = nowhere, .columns = screen->columns};
    if (!nowhere) return 1;
    put_legend(plot, c, screen, &pen);
    fclose(nowhere);
    free(text);
    return pen.lines;
}

/* Its size, which the numbers beside it and the legend above it leave; and its axes. */
static bool lay_out(const struct plot *plot, const struct plot_screen *screen, struct canvas *c) {
    const unsigned columns = screen->columns < MOST_COLUMNS ? screen->columns : MOST_COLUMNS;
    if (!plot_range(plot, columns / COLUMNS_A_TICK, screen->rows / ROWS_A_TICK, &c->x, &c->y)) return false;
    const unsigned above = lines_of_legend(plot, c, screen), margin = margin_of(c);
    if (screen->rows < above + AROUND + 2 || columns < margin + 2) return false;
    c->columns = columns - margin;
    c->rows = screen->rows - above - AROUND;
    return true;
}

unsigned plot_draw(const struct plot *plot, const struct plot_screen *screen, FILE *out) {
    struct pen pen = {.out = out, .columns = screen->columns, .colours = screen->colours};
    struct canvas c = {0};
    if (plot->n_curves > PLOT_CURVES || !lay_out(plot, screen, &c)) return 0;
    c.cell = calloc((size_t)c.rows * c.columns, sizeof *c.cell);
    if (!c.cell) return 0;
    if (plot_shows_target(plot, &c.y)) draw_target(&c, plot->target);
    if (plot_shows_at(plot, &c.x)) draw_upright(&c, plot->at);
    for (unsigned i = 0; i < plot->n_curves; i++) draw_curve(&c, i, &plot->curve[i]);
    put_legend(plot, &c, screen, &pen);
    for (unsigned row = 0; row < c.rows; row++) put_row(plot, &c, row, screen->blocks, &pen);
    put_axis(&c, screen->blocks, &pen);
    put_numbers(plot, &c, &pen);
    free(c.cell);
    return pen.lines;
}
