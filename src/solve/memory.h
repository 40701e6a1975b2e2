/* The shared memory of a fit: all that those who work on it write and read, in one block, by offsets alone.
 *
 * Nothing in it is atomic but the note, and the image that live ascents change (ascent.h). In each phase a word is written by one part
 * or by none, and what a phase reads no part of it writes; the meetings between phases order the two. So a part may be done again
 * after a death, and gives the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "solve/problem.h"
#include "solve/state.h"

#define SHMT_SOLVE_BLOCKS    512  /* whose sums are added up, at most */
#define SHMT_SOLVE_DIRECT    1024 /* columns up to which the whole Hessian is taken, at most */
#define SHMT_SOLVE_SLABS     16   /* parts in which rows are turned into columns, at most */
#define SHMT_SOLVE_ALIGNMENT 128

/* What memory is needed for. */
struct shmt_solve_sizes {
    uint64_t n, n_nonzeros;
    uint32_t n_columns, bias;
    uint32_t n_classes; /* softmax: numbers of each column and example; others: 1 */
    uint32_t n_held;    /* choice: parts that are held out; 0: nothing is chosen */
    bool has_scales;    /* of columns (choose.h) */
    bool has_values;    /* not all of them are 1 */
    bool is_hinge;
    bool is_live; /* dual ascent by all at once */
    bool has_l1;
    bool heaped; /* with heaps (heaps.h) whether they pay or not: for tests */
};

/* Rows, and columns with the bias behind, are cut into blocks. Blocks depend on the sizes alone, and sums are taken block by
 * block: their bits do not follow the number of workers. */
struct shmt_solve_plan {
    struct shmt_solve_sizes of;
    uint64_t row_block;          /* rows of one */
    uint32_t col_block, n_slabs; /* columns of one; slabs are of whole row blocks */
    uint32_t n_row_blocks, n_col_blocks;
    uint32_t n_groups;   /* heaps (heaps.h); 0: sums for columns are taken by columns */
    uint32_t heap_width; /* numbers of a column in each */
    uint32_t n_matrices; /* groups that add up the Hessian (hessian.h); 0: it is taken by columns */
    bool direct;         /* there is room for the Hessian */
    bool turns;          /* rows are turned into columns */
    uint64_t saved_off, note_off, sums_off, start_off, count_off, cursor_off, row_off, value_off, slope_off, score_off,
        heap_off, scaled_off, square_off, inner_off, class_off, heft_off, by_classes_off, columns_off, hessian_off,
        matrices_off;
    uint64_t row_bytes, bytes; /* of the arrays by rows and by entries, which come first; of all */
};

/* Pure. */
void shmt_solve_plan(const struct shmt_solve_sizes *sizes, struct shmt_solve_plan *out);

/* For n of the examples of `of`, whose columns and what is of these it shares (shmt_solve_memory_of_sample). */
void shmt_solve_plan_sample(const struct shmt_solve_plan *of, uint64_t n, uint64_t n_nonzeros, struct shmt_solve_plan *out);

/* Of an example, at the point that was scored last. */
struct shmt_solve_slope {
    double pull, curve; /* u_i = -c_i loss'(z_i), c_i loss''(z_i) */
};

/* Of an example, hinge: see interior.h. */
struct shmt_interior {
    double dual, slack;
};

/* What others may know of a choice: written by the chief; and who has left a phase. */
struct shmt_solve_note {
    _Atomic uint32_t fits; /* relaxed: for display */
    uint32_t scaled;       /* the rest: before the end of the first epoch is published, and constant from then on */
    double l2, loss; /* what was chosen, with the mean loss on examples that were held out; NaN and infinite: nothing was */
    /* A phase that a part has left before it was done, plus 1, in place phase mod 2: by all who leave it, before its meeting. Relaxed: the
     * meeting orders it. Whoever leaves it means the same number. */
    _Atomic uint64_t left[2];
};

/* The block as one process sees it. n: examples, m: columns with the bias. Softmax has n_classes numbers in the place of each in
 * what is (m), in `score` (probabilities) and in `scaled`, no slopes and no Hessian. Columns (start .. value) are there where
 * plan.turns says so. */
struct shmt_solve_memory {
    struct shmt_solve_state *saved; /* (2) by the chief: the states of this phase and of the one before */
    struct shmt_solve_note *note;
    double *sums;                    /* (2, SHMT_SOLVE_SUMS, SHMT_SOLVE_BLOCKS) likewise, by all */
    uint64_t *start;                 /* (n_columns + 1) column j owns the entries start[j] .. start[j + 1] - 1, ... */
    uint32_t *count;                 /* (n_slabs, n_columns) */
    uint64_t *cursor;                /* (n_slabs, n_columns) */
    uint32_t *row;                   /* (n_nonzeros) ... whose rows ascend */
    float *value;                    /* (n_nonzeros); NULL: all 1 */
    struct shmt_solve_slope *slope;  /* (n) */
    double *score;                   /* (n) z_i at the point that was scored last; dual ascent: u */
    double *scaled;                  /* (n) curve_i * (x_i . search); on a line x_i . direction; dual ascent: u */
    double *heap;                    /* (n_groups, n_columns, heap_width) sums over rows (heaps.h) */
    double *square;                  /* (n) dual ascent: |x_i|^2 */
    struct shmt_interior *inner[2];  /* (n) interior points, as the two that follow: at w[0] and w[1] */
    double *wish;                    /* (n) what u is to become by a whole step */
    double *along[2];                /* (n) x_i . direction, of the two directions */
    uint32_t *class_of;              /* (n) softmax, as the two that follow: each example's */
    double *heft;                    /* (n) c_i; 0 while it is held out */
    double *by_classes;              /* (2, SHMT_SOLVE_CLASS_SUMS, n_row_blocks, n_classes) as sums */
    double *w[2];                    /* (m) the point, and the one that is tried */
    double *gradient;                /* (m) */
    double *diagonal;                /* (m) of the Hessian */
    double *direction[2];            /* (m) */
    double *residual[2];             /* (m) conjugate gradients, as the three that follow */
    double *search[2];               /* (m) */
    double *preconditioned[2];       /* (m) */
    double *product;                 /* (m) */
    double *scale;                   /* (m) squares of the columns' scales; NULL: nobody asks for them */
    double *best;                    /* (m) choice: the best candidate so far */
    double *kept[SHMT_CHOICE_PARTS]; /* (m) each ... where each part's path has come to */
    double *hessian;                 /* (m, m) NULL: there is no room */
    double *factor;                  /* (m, m) of the Hessian */
    double *matrices;                /* (n_matrices, m, m) parts of it */
};

/* Room for n things of `size` bytes behind *bytes: where they begin. They are on lines of their own. */
uint64_t shmt_solve_add(uint64_t *bytes, uint64_t n, uint64_t size);

/* Whether steps may be dual ascents: of the hinge, or by all at once. */
bool shmt_solve_has_dual(const struct shmt_solve_sizes *of);

/* Whether the problem may come to interior points: of the hinge, with the whole Hessian. */
bool shmt_solve_has_inner(const struct shmt_solve_plan *plan);

void shmt_solve_memory_at(const struct shmt_solve_plan *plan, void *base, struct shmt_solve_memory *out);

/* By a plan for a sample: arrays by rows lie at `base`; all others are shared with `of`. */
void shmt_solve_memory_of_sample(const struct shmt_solve_plan *plan, void *base, const struct shmt_solve_memory *of,
                                 struct shmt_solve_memory *out);

/* Of `n` things part `part` of `n_parts` has from *from to *to - 1. */
static inline void shmt_solve_share(uint64_t n, uint32_t part, uint32_t n_parts, uint64_t *from, uint64_t *to) {
    *from = n * part / n_parts;
    *to = n * (part + UINT64_C(1)) / n_parts;
}

/* Column blocks with about as many entries for each part. Columns are turned by then. */
void shmt_solve_share_columns(const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m, uint32_t part,
                              uint32_t n_parts, uint64_t *from, uint64_t *to);

/* As shmt_solve_share_columns, for what pairs the entries of a column with those of the columns behind it: of the first columns a part has
 * fewer. */
void shmt_solve_share_pairs(const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m, uint32_t part,
                            uint32_t n_parts, uint64_t *from, uint64_t *to);

/* I leave the phase of this round undone; whether anybody has, behind its meeting. */
static inline void shmt_solve_skip(const struct shmt_solve_memory *m, uint64_t round) {
    store_relaxed(&m->note->left[round % 2], round + 1);
}
static inline bool shmt_solve_is_skipped(const struct shmt_solve_memory *m, uint64_t round) {
    return load_relaxed(&m->note->left[round % 2]) == round + 1;
}

static inline double *shmt_solve_sum(const struct shmt_solve_memory *m, uint64_t round, enum shmt_solve_sums which) {
    return m->sums + ((round % 2) * SHMT_SOLVE_SUMS + which) * SHMT_SOLVE_BLOCKS;
}

/* NOTHING is not left: it would be by rows and by columns of the same phase, which are different parts'. */
static inline void shmt_solve_put_number(const struct shmt_solve_memory *m, uint64_t round, enum shmt_solve_sums which,
                                         uint64_t block, double sum) {
    if (which != SHMT_SUM_NOTHING) shmt_solve_sum(m, round, which)[block] = sum;
}
