/* Where a fit stands, as a small value that is the same in all who work on it.
 *
 * A fit is a row of phases with a meeting behind each. In a phase every part computes its share; behind the meeting everyone
 * finds the next state from this one and from the sums that all have left (shmt_newton_next, a pure function). So nobody
 * decides for the others, and a worker that takes over after a death finds the state by what the chief has saved, and by the sums
 * (train/fit.c). */
#pragma once

#include <stdint.h>

#include "solve/problem.h"

/* Sums over blocks of rows or of columns. A phase leaves those that are its own; all others keep what they were. */
enum shmt_solve_sums {
    SHMT_SUM_LENGTH,   /* squares of the numbers of entries, by rows */
    SHMT_SUM_DISORDER, /* rows whose columns do not ascend */
    SHMT_SUM_LOSS,     /* c_i loss_i, by rows */
    SHMT_SUM_UP,       /* u_i above 0, by rows */
    SHMT_SUM_DOWN,     /* -u_i of the others, by rows */
    SHMT_SUM_WEIGHT,   /* c_i, by rows */
    SHMT_SUM_CURVE,    /* c_i loss''_i, by rows */
    SHMT_SUM_DUAL,     /* conjugates of the losses at the dual point, by rows */
    SHMT_SUM_TERMS,    /* sizes of what is added up in DUAL, by rows */
    SHMT_SUM_SCALED,   /* of the vector `scaled`, by rows */
    SHMT_SUM_HELD,     /* choice: c_i loss_i of the examples that are held out, by rows, ... */
    SHMT_SUM_HEAVY,    /* ... and their c_i */
    SHMT_SUM_PENALTY,  /* l2_j/2 w_j^2 + l1 |w_j| of the point, by columns, without the bias */
    SHMT_SUM_IMAGE,    /* l2_j v_j^2: of the primal image of the dual point, by columns */
    SHMT_SUM_ALONG,    /* gradient . direction, by columns */
    SHMT_SUM_MOST,     /* the largest |x_j . u*| / N of each block of columns, u* the dual point */
    SHMT_SUM_SHORT,    /* as DUAL, of the dual point made so short that none of these is above l1 */
    SHMT_SUM_LEAST,    /* choice: the smallest square of a scale in each block of columns; MOST: the largest one */
    SHMT_SUM_PRODUCTS, /* interior points: of what is 0 at the minimum, by rows, as the four that follow; ... */
    SHMT_SUM_FIRST,    /* ... how this changes with a step, ... */
    SHMT_SUM_SECOND,   /* ... and with its square */
    SHMT_SUM_REACH,    /* the largest part of what must stay above 0 that a whole step takes off, of each block */
    SHMT_SUM_WISH,     /* of what u is to become */
    SHMT_SUM_CROSS,    /* dual ascent: l2_j v_j direction_j, by columns, v the image of u */
    SHMT_SUM_LENGTHS,  /* ... l2_j direction_j^2 */
    SHMT_SUM_GAIN,     /* ... of the sum of |u_i|, by rows */
    SHMT_SUM_CHANGE,   /* ... of the sum of u_i */
    SHMT_SUM_MORE,     /* coordinate descent, by part 0 alone: 1: it has not come as near as it was to */
    SHMT_SUM_RZ,       /* residual . preconditioned residual, by columns */
    SHMT_SUM_PQ,       /* search . product, by columns */
    SHMT_SUM_STRANGE,  /* going on: of examples, what was kept of them is impossible for so many */
    SHMT_SUM_NOTHING,  /* of phases that have no sum */
    SHMT_SUM_STOP,     /* by the chief alone: 1: the run is to end */
    SHMT_SOLVE_SUMS
};

/* Softmax: sums over blocks of rows for each class, without the examples that are held out. */
enum shmt_solve_class_sums {
    SHMT_CLASS_COUNT,  /* c_i of the class's examples */
    SHMT_CLASS_SHARE,  /* c_i p_ik */
    SHMT_CLASS_CURVE,  /* c_i p_ik (1 - p_ik) */
    SHMT_CLASS_SCALED, /* of the vectors `scaled` */
    SHMT_SOLVE_CLASS_SUMS
};

enum shmt_solve_phase {
    SHMT_PHASE_COUNT,       /* entries of each column, slab by slab; the first point */
    SHMT_PHASE_PLACE,       /* where columns begin */
    SHMT_PHASE_TURN,        /* rows into columns */
    SHMT_PHASE_SCALES,      /* choice (choose.h): of the columns */
    SHMT_PHASE_KEEP,        /* ... a fit of it is kept, and the next one begins */
    SHMT_PHASE_SCORE,       /* the objective at the point that is tried */
    SHMT_PHASE_SLOPE,       /* the gradient there, and the dual point */
    SHMT_PHASE_BOUND,       /* with L1: what the dual point proves */
    SHMT_PHASE_CYCLE,       /* with L1: coordinate descent (cycle.h) */
    SHMT_PHASE_HESSIAN,     /* Newton's equations, as a matrix */
    SHMT_PHASE_SUM,         /* ... added up, where they were taken by rows (hessian.h) */
    SHMT_PHASE_FACTOR,      /* ... solved */
    SHMT_PHASE_BEGIN,       /* conjugate gradients: from no step at all */
    SHMT_PHASE_ROWS,        /* ... D X p */
    SHMT_PHASE_COLUMNS,     /* ... H p = X' D X p / N + l2 p */
    SHMT_PHASE_STEP,        /* ... direction and residual */
    SHMT_PHASE_SEARCH,      /* ... the next p */
    SHMT_PHASE_AIM,         /* interior points (interior.h): Newton's equations for them */
    SHMT_PHASE_REACH,       /* ... how far the direction leads */
    SHMT_PHASE_CORRECT,     /* ... what is aimed at then */
    SHMT_PHASE_AGAIN,       /* ... the equations solved for that */
    SHMT_PHASE_MOVE,        /* the next point to be tried */
    SHMT_PHASE_START,       /* hinge: from nothing */
    SHMT_PHASE_SHARE_IMAGE, /* dual ascent (ascent.h): the image, where all are to change it */
    SHMT_PHASE_ASCEND,      /* ... coordinate by coordinate */
    SHMT_PHASE_GAIN,        /* ... what the direction changes, example by example, ... */
    SHMT_PHASE_IMAGE,       /* ... and in the space of weights */
    SHMT_PHASE_ADVANCE,     /* ... the step along it */
    SHMT_PHASE_WEIGH,       /* ... the objective there */
    SHMT_PHASE_FIND,        /* going on (keep.h): what was kept of each example */
    SHMT_PHASE_PUBLISH,     /* the point becomes the parameters */
    SHMT_PHASE_VERIFY,      /* the objective of these, which are floats */
    SHMT_PHASE_OVER         /* of this epoch */
};

/* Why a fit has come to its end. */
enum shmt_solve_end {
    SHMT_SOLVE_GOES_ON,
    SHMT_SOLVE_PROVED,
    SHMT_SOLVE_EXHAUSTED /* numbers have not enough digits for a step that comes nearer */
};

/* The choice of L2, and of whether columns are divided by their scales (choose.h). */
struct shmt_choice {
    uint32_t open;            /* 1: it is being made */
    uint32_t sampled;         /* 1: from a sample of the examples */
    uint32_t scaled;          /* 1: L2 is of the scaled columns */
    uint32_t strength;        /* number of the value of L2 */
    uint32_t part, last_part; /* of the examples: held out from this fit, and from the one before */
    uint32_t fresh;           /* 1: this fit begins a path, from nothing */
    uint32_t steps;           /* Newton steps of this fit */
    uint32_t fits;            /* that are done */
    uint32_t has_scales;      /* 1: a scaled path is worth trying */
    uint32_t worse;           /* values in a row that were worse than the best of the path */
    uint32_t improved;        /* 1: the candidate before was the best so far */
    uint32_t left;            /* 1: the candidate before was left behind `last_part`, as the first of its path */
    uint32_t best_scaled, best_strength;
    double held, heavy;                    /* of this candidate, by the parts so far: sums of losses and of weights */
    double so_far[SHMT_CHOICE_PARTS];      /* ... and the mean behind each part */
    double best_so_far[SHMT_CHOICE_PARTS]; /* of the best candidate */
    double path, least;                    /* the lowest mean of all parts, of this path and of all */
};

struct shmt_solve_state {
    uint32_t phase, end;  /* enum shmt_solve_phase, enum shmt_solve_end */
    uint32_t epoch;       /* Newton steps that are done */
    uint32_t at;          /* w[at] is the point, w[1 - at] the one that is tried */
    uint32_t tried;       /* 1: the point in w[1 - at] is judged next; 0: w[at] itself, the first one */
    uint32_t halved;      /* how often the step was */
    uint32_t inner;       /* steps of conjugate gradients; its vectors are those of number inner % 2 */
    uint32_t direct;      /* 1: by the Hessian, 0: by conjugate gradients */
    uint32_t most_inner;  /* steps of conjugate gradients that cost as much as the Hessian */
    uint32_t pays;        /* 1: the Hessian may be worth it */
    uint32_t most_sweeps; /* with L1: of coordinate descent without it */
    uint32_t cycles;      /* 1: with L1, by coordinate descent */
    uint32_t face;        /* 1: with L1, this step leaves weights that are 0 alone */
    uint32_t ascends;     /* 1: by dual ascent, without Newton */
    uint32_t ascending;   /* 1: the columns of each row ascend */
    uint32_t interior;    /* 1: by interior points */
    uint32_t live;        /* 1: ... by all at once */
    uint32_t halvings;    /* live: how often there were made half as many that ascend */
    uint32_t slow;        /* live: epochs since the gap has fallen by more than a little, or since a halving */
    uint32_t may_leave;   /* 1: dual ascent may be left for interior points, */
    uint32_t leaves;      /* ... and is left now */
    uint32_t corrects;    /* interior points: which of the two directions */
    uint32_t returns;     /* ... 1: they lead nowhere, and dual ascent goes on from their u, */
    uint32_t resumes;     /* ... which it has begun to do */
    uint32_t remakes;     /* 1: it goes on from what was kept (keep.h), and makes the rest of it again */
    uint32_t strange;     /* 1: that is of other data, or damaged */
    uint32_t warms;       /* 1: of a sample, for a point to begin with */
    uint32_t warm_steps;  /* ... Newton steps of it */
    uint32_t stopped;     /* 1: somebody asked for it; 2: while L2 was being chosen */
    uint32_t begun;       /* 1: a point has been judged */
    uint32_t rough;       /* 1: the step leads to floats, which parameters are, for the proof is far, ... */
    uint32_t exact;       /* ... and the point that is judged consists of them: its P is that of the parameters */
    uint32_t stepped;     /* 1: this epoch's step is made */
    uint32_t idle;        /* epochs in a row in which the gap has not fallen by a part worth mention */
    uint32_t unproved;    /* how often the parameters were not near enough, though their point was */
    double step;          /* along the direction */
    double price;         /* of interior points, in visits of all coordinates by dual ascent */
    double nearer;        /* dual ascent: the gap before the step */
    double gain, change;  /* dual ascent: of the sums of |u_i| and of u, by the whole direction */
    double l2;            /* of the objective; of column j it is shmt_pass_l2 */
    struct shmt_choice choice;
    double held, heavy;  /* choice: as HELD and HEAVY, of the point */
    double part;         /* of the distance from a model's minimum that the step may leave */
    double along;        /* gradient . direction */
    double loss;         /* of the point: mean loss */
    double pull, curve;  /* of the point that is judged: sums of u_i and of the curvatures */
    double up, down;     /* what u_i above and below 0 are multiplied by for the dual point, ... */
    double shift;        /* ... and what is taken off then, as a part of c_i; softmax: t (wide.h) */
    double shorter;      /* with L1: what the dual point is multiplied by in SHMT_SUM_SHORT */
    double primal, dual; /* P of the point, and a lower bound of the minimum */
    double size;         /* the sum of |u_i| */
    double best;         /* P of the point that has become the parameters */
    double gap;          /* of the parameters, the least so far */
    double stuck;        /* what it was when it had last fallen */
    double slow_gap;     /* live: what it was when it had last fallen by more than a little */
    double image;        /* the sum of IMAGE */
    double weight;       /* interior points: the sum of c_i */
    double product;      /* ... the mean of what is 0 at the minimum, and what the step aims at */
    double target;
    double small;      /* ... of the mean curvature: examples with less give the Hessian's diagonal alone */
    double wish;       /* ... as SHMT_SUM_WISH */
    double rz, rz_end; /* conjugate gradients: as SHMT_SUM_RZ, now and where they end */
    double alpha, beta;
    double scaled;    /* as SHMT_SUM_SCALED */
    double published; /* P of the parameters; NaN: not judged yet */
};
