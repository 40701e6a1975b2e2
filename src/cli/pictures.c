/* Images as text: see pictures.h. */
#include "cli/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, CAPTION = 26, MOST_ACROSS = 16, CAPTION_BYTES = 160 };

struct pictures {
    struct pictures_wish wish;
    uint32_t columns, lines; /* of one picture; a line has two rows of cells */
    uint32_t shrink;         /* pixels of a cell, each way */
    uint32_t width, across;  /* of a place, and how many there are in a row */
    uint32_t n;              /* that wait in the row */
    float *cell;             /* (across, 2 * lines, columns) 0: black, 1: white */
    bool wrong[MOST_ACROSS];
    char caption[MOST_ACROSS][CAPTION_BYTES];
    uint64_t n_right, n_labelled;
    double off; /* of numbers, by how much, added up */
    bool of_numbers;
};

struct pictures *pictures_open(const struct pictures_wish *wish) {
    struct pictures *p = calloc(1, sizeof *p);
    if (p) p->wish = *wish;
    return p;
}

/* ---- from pixels to cells ---- */

static uint32_t at_least(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* By the first one. */
static int lay_out(struct pictures *p, const struct shmtrain_image *image) {
    const uint32_t most = at_least(p->wish.columns, 1);
    if (p->cell) return 0;
    p->shrink = (image->width + most - 1) / most;
    p->columns = (image->width + p->shrink - 1) / p->shrink;
    p->lines = ((image->height + p->shrink - 1) / p->shrink + 1) / 2;
    p->width = at_least(p->columns, CAPTION < most ? CAPTION : most);
    p->across = (most + GAP) / (p->width + GAP);
    if (p->across > MOST_ACROSS) p->across = MOST_ACROSS;
    p->cell = malloc((uint64_t)p->across * 2 * p->lines * p->columns * sizeof *p->cell);
    return p->cell ? 0 : -1;
}

/* What the eye makes of a colour (ITU-R BT.601); of other channels, their mean. */
static float brightness(const struct shmtrain_image *image, uint64_t place) {
    static const float COLOURS[3] = {0.299f, 0.587f, 0.114f};
    const uint64_t places = (uint64_t)image->height * image->width;
    float sum = 0;
    for (uint32_t c = 0; c < image->channels; c++)
        sum += image->pixel[c * places + place] * (image->channels == 3 ? COLOURS[c] : 1 / (float)image->channels);
    return sum;
}

/* Black and white of an image: 0 and 1, which bytes come between, else its own least and most. */
static void find_range(const struct shmtrain_image *image, float *low, float *high) {
    const uint64_t places = (uint64_t)image->height * image->width;
    *low = 0;
    *high = 1;
    float least = brightness(image, 0), most = least;
    for (uint64_t i = 1; i < places; i++) {
        const float x = brightness(image, i);
        least = fminf(least, x);
        most = fmaxf(most, x);
    }
    if (least >= 0 && most <= 1.001f) return;
    *low = least;
    *high = most > least ? most : least + 1;
}

/* The mean of a cell's pixels that are there; beyond the edge it is black. */
static float shade(const struct pictures *p, const struct shmtrain_image *image, uint32_t row, uint32_t column) {
    float sum = 0;
    uint32_t n = 0;
    for (uint32_t y = row * p->shrink; y < (row + 1) * p->shrink && y < image->height; y++)
        for (uint32_t x = column * p->shrink; x < (column + 1) * p->shrink && x < image->width; x++, n++)
            sum += brightness(image, (uint64_t)y * image->width + x);
    return n > 0 ? sum / (float)n : NAN;
}

static float *cells_of(const struct pictures *p, uint32_t k) { return p->cell + (uint64_t)k * 2 * p->lines * p->columns; }

static void fill(const struct pictures *p, const struct shmtrain_image *image, float *cell) {
    float low, high;
    find_range(image, &low, &high);
    for (uint32_t row = 0; row < 2 * p->lines; row++)
        for (uint32_t column = 0; column < p->columns; column++) {
            const float x = (shade(p, image, row, column) - low) / (high - low);
            cell[(uint64_t)row * p->columns + column] = isnan(x) ? 0 : fminf(fmaxf(x, 0), 1);
        }
}

/* ---- from cells to lines ---- */

static const char *glyph(const struct pictures *p, float top, float bottom) {
    static const char *const HALVES[] = {" ", "▄", "▀", "█"}, *const SHADES[] = {" ", ".", ":", "-", "=",
                                                                                 "+", "*", "#", "%", "@"};
    if (p->wish.ink == PICTURES_ASCII) return SHADES[(int)((top + bottom) / 2 * 9 + 0.5f)];
    return p->wish.ink == PICTURES_GREYS ? "▀" : HALVES[2 * (top > 0.5f) + (bottom > 0.5f)];
}

/* The number of a grey among the terminal's colours. */
static int grey(float x) { return 232 + (int)(x * 23 + 0.5f); }

static void write_greys(FILE *out, float top, float bottom, int *top_was, int *bottom_was) {
    const int above = grey(top), below = grey(bottom);
    if (above != *top_was || below != *bottom_was) fprintf(out, "\033[38;5;%d;48;5;%dm", above, below);
    *top_was = above;
    *bottom_was = below;
}

/* Blanks up to where place k begins. */
static void move_to(const struct pictures *p, uint32_t *at, uint32_t k) {
    const uint32_t to = k * (p->width + GAP);
    fprintf(p->wish.out, "%*s", (int)(to - *at), "");
    *at = to;
}

/* One line of one picture, without blanks at its end. */
static void write_cells(const struct pictures *p, uint32_t k, uint32_t line, uint32_t *at) {
    const float *top = cells_of(p, k) + (uint64_t)2 * line * p->columns, *bottom = top + p->columns;
    const bool greys = p->wish.ink == PICTURES_GREYS;
    int above = -1, below = -1;
    uint32_t end = p->columns;
    while (!greys && end > 0 && glyph(p, top[end - 1], bottom[end - 1])[0] == ' ') end--;
    if (end == 0) return;
    move_to(p, at, k);
    for (uint32_t i = 0; i < end; i++) {
        if (greys) write_greys(p->wish.out, top[i], bottom[i], &above, &below);
        fputs(glyph(p, top[i], bottom[i]), p->wish.out);
    }
    if (greys) fputs("\033[0m", p->wish.out);
    *at += end;
}

static bool begins_character(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

/* As much of it as its place has room for. */
static void write_caption(const struct pictures *p, uint32_t k, uint32_t *at) {
    const char *text = p->caption[k];
    const bool red = p->wish.colours && p->wrong[k];
    uint32_t characters = 0;
    size_t bytes = 0;
    for (; text[bytes]; bytes++) {
        if (begins_character(text[bytes]) && characters++ == p->width) break;
    }
    move_to(p, at, k);
    fprintf(p->wish.out, "%s%.*s%s", red ? "\033[31m" : "", (int)bytes, text, red ? "\033[0m" : "");
    *at += characters < p->width ? characters : p->width;
}

static void write_row(struct pictures *p) {
    for (uint32_t line = 0; line <= p->lines; line++) {
        uint32_t at = 0;
        for (uint32_t k = 0; k < p->n; k++)
            if (line < p->lines)
                write_cells(p, k, line, &at);
            else
                write_caption(p, k, &at);
        fputc('\n', p->wish.out);
    }
    p->n = 0;
}

/* ---- one after the other ---- */

/* A number is not wrong, but off by something. */
static void say_number(struct pictures *p, const struct shmtrain_image *image, const char *predicted, const char *label) {
    const double off = (double)image->predicted - (double)image->label;
    char is[80] = "";
    if (label) snprintf(is, sizeof is, ", is %.50s (%+.3g)", label, off);
    snprintf(p->caption[p->n], CAPTION_BYTES, "%llu: %.50s%s", (unsigned long long)image->example + 1, predicted, is);
    p->wrong[p->n] = false;
    p->of_numbers = true;
    p->n_labelled += label != NULL;
    if (label) p->off += fabs(off);
}

static void say(struct pictures *p, const struct shmtrain_image *image, const char *predicted, const char *label) {
    static const char *const WRONG[] = {[PICTURES_ASCII] = "x ", [PICTURES_BLOCKS] = "✗ ", [PICTURES_GREYS] = "✗ "};
    const bool wrong = label && image->label != image->predicted;
    char chance[32] = "", is[64] = "";
    if (!isnan(image->probability)) snprintf(chance, sizeof chance, " (%.1f %%)", 100 * (double)image->probability);
    if (label) snprintf(is, sizeof is, ", is %.50s", label);
    snprintf(p->caption[p->n], CAPTION_BYTES, "%s%llu: %.50s%s%s",
             wrong   ? WRONG[p->wish.ink]
             : label ? "  "
                     : "",
             (unsigned long long)image->example + 1, predicted, chance, is);
    p->wrong[p->n] = wrong;
    p->n_labelled += label != NULL;
    p->n_right += label && !wrong;
}

int pictures_add(struct pictures *p, const struct shmtrain_image *image, const char *predicted, const char *label) {
    if (lay_out(p, image) < 0) return -1;
    fill(p, image, cells_of(p, p->n));
    if (image->is_number)
        say_number(p, image, predicted, label);
    else
        say(p, image, predicted, label);
    if (++p->n == p->across) write_row(p);
    return 0;
}

void pictures_close(struct pictures *p) {
    if (!p) return;
    if (p->n > 0) write_row(p);
    if (p->n_labelled > 0 && p->of_numbers)
        fprintf(p->wish.out, "off by %.4g on average of %llu\n", p->off / (double)p->n_labelled,
                (unsigned long long)p->n_labelled);
    else if (p->n_labelled > 0)
        fprintf(p->wish.out, "%llu of %llu right (%.2f %%)\n", (unsigned long long)p->n_right,
                (unsigned long long)p->n_labelled, 100 * (double)p->n_right / (double)p->n_labelled);
    pictures_discard(p);
}

void pictures_discard(struct pictures *p) {
    if (p) free(p->cell);
    free(p);
}
