/* A run that goes on, as a few lines of text. Pure: the same state and screen give the same lines. Called by display.c many
 * times a second; what is seen on a terminal is decided here, how it gets there in display.c.
 *
 *     epoch  3/10  41 %  ━━━━ ━━━━ ━╸── ──── ──── ──── ──── ──── ──── ────  1 min 20 s left
 *     1.23 M examples/s   loss 0.31245   by epoch █▅▃▂▁ ↓ 0.01230
 *     network   12.3 MB/s sent   11.9 MB/s received   1.21 k exchanges
 *     4 workers   ▆ computing 87 %   ▁ waiting 11 %   · evaluating 2 %   delay 7.03 k
 *     0 ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▁▁   154 k   1 ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▁▁   151 k
 *     2 ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▁·   149 k   3 ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▁   158 k
 *
 * The bar is the whole run, one segment for each epoch. Workers that are too many for a bar each are summed up, and shown
 * with one character each. Only runs over several hosts have a line about the network. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct draw_worker {
    uint32_t rank;
    bool joined;  /* by name */
    bool stalled; /* it stands still, whatever the rest says */
    double examples_per_second;
    double compute, wait, merge; /* shares of its time; with draw_state.evaluates, what is missing is evaluation */
};

/* Numbers that are not known are NaN. */
struct draw_state {
    uint32_t epoch, epochs;  /* epoch 0: none has begun */
    bool fits;               /* exactly: `epochs` are the most that there may be, and no epoch has examples one by one */
    uint32_t fit, fits_most; /* ... fits that are done for the choice of L2, and at most; 0: nothing is being chosen */
    double share;            /* of this epoch's examples, 0 to 1 */
    double examples_per_second, loss, seconds_left;
    const double *losses_before; /* (n_before): of the epochs that are done, the oldest first */
    size_t n_before;
    bool evaluates;                   /* after each epoch, on validation data */
    bool merges;                      /* replicas */
    double delay;                     /* mean, in updates */
    double dropped, folded;           /* shares of the examples so far */
    bool has_network;                 /* there are other hosts: */
    double sent, received;            /* bytes in a second */
    uint64_t exchanges;               /* so far */
    const struct draw_worker *worker; /* (n_workers): those that are there */
    uint32_t n_workers;
};

struct draw_screen {
    unsigned columns, rows; /* of the screen; no line is longer than `columns`, the workers take at most a third of the rows */
    bool blocks;            /* UTF-8, and a font with block characters; else ASCII */
    bool colours;
};

/* Writes the lines, each with a line break, and returns how many: 1 to screen->rows - 1 (1 on the smallest screens). */
unsigned draw_frame(const struct draw_state *state, const struct draw_screen *screen, FILE *out);

/* The same in one line of at most 96 plain characters, without a line break, for where there is no terminal. */
void draw_words(const struct draw_state *state, char *out, size_t bytes);
