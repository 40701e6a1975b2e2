/* Layers: the parts that networks (--net) are made of, as a few functions on memory that the caller gives.
 *
 * The built-in layers see of the library this header alone, and beside it arithmetic of ours, which is not public: products of
 * matrices by a BLAS, loops that threads share. So yours can do what they do. A layer knows nothing of workers, sessions or files:
 * it is given examples and parameters, and computes outputs or gradients.
 *
 * A text such as "conv:32:3 relu pool:2 dropout:0.25 flatten fc:10" names the layers, the first one first, each with its arguments
 * behind colons: by position, or as name=value. The library reads the arguments as the kind's table says, asks `plan` once for each
 * layer, adds up the memory, and calls `forward` and `backward` for each batch of examples.
 *
 * Activations of n examples are (n, height, width, channels), the channels of one place side by side ("NHWC"). Data come as
 * (channels, height, width), and are turned before the first layer. A layer behind `flatten` sees height * width * channels
 * numbers in that order, as an extent of (that many, 1, 1).
 *
 * All functions are called in workers, in several processes and threads at once: they keep no state but in the layer (written by
 * `plan` alone) and in the memory of a pass. They neither wait nor allocate. Results depend on what they are given and on n, and
 * not on pass->threads. */
#ifndef SHMTRAIN_LAYER_H
#define SHMTRAIN_LAYER_H

#include <shmtrain/table.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMTRAIN_LAYER_ARGUMENTS 8
#define SHMTRAIN_LAYER_TABLES    4
#define SHMTRAIN_LAYER_OWN       16
#define SHMTRAIN_LAYER_WHY       160
#define SHMTRAIN_LAYER_NAME      16 /* bytes of a name, with the final 0 */

/* The shape of one example between two layers. */
struct shmtrain_extent {
    uint32_t channels, height, width;
};

/* Numbers of one example. */
static inline uint64_t shmtrain_extent_numbers(const struct shmtrain_extent *of) {
    return (uint64_t)of->channels * of->height * of->width;
}

/* ---- arguments ---- */

enum shmtrain_layer_argument_type {
    SHMTRAIN_LAYER_WHOLE, /* a whole number: `low` <= value <= `high` */
    SHMTRAIN_LAYER_REAL,  /* a number: `low` <= value < `high` */
    SHMTRAIN_LAYER_PAIR,  /* "3" for both, or "3x5": height and width, each a whole number within `low` and `high` */
    SHMTRAIN_LAYER_WORD,  /* one of `words` */
    SHMTRAIN_LAYER_ABOVE  /* a number: `low` < value <= `high`, as a float, too */
};

/* How an argument is written. In a kind's table the ones that have to be given stand first. */
struct shmtrain_layer_argument {
    const char *name;
    enum shmtrain_layer_argument_type type;
    double low, high;
    const char *words; /* "max|mean": words that are allowed; beside a number (pad=same), or NULL */
    const char
        *assumed; /* the value where it is not given; NULL: it has to be given; "": `given` is then 0, and the plan decides */
};

/* What was given. */
struct shmtrain_layer_value {
    uint32_t given;         /* 1: the text has it; 0: it is what is assumed */
    uint32_t word;          /* 1 + the place in `words`; 0: it is a number */
    double number;          /* _WHOLE, _REAL, _ABOVE */
    uint32_t height, width; /* _PAIR */
};

/* ---- what is planned ---- */

/* A parameter table, (rows, width), row-major. */
struct shmtrain_layer_table {
    const char *name; /* within the layer: "weight" */
    uint64_t rows, width;
    enum shmtrain_role role;
    enum shmtrain_start start;
    uint32_t decays; /* 1: L2 and weight decay shrink it */
    float rate;      /* times the rate of the run; 0 counts as 1. SHMTRAIN_STATISTIC: the share itself */
    float decay;     /* times the decay of the run; 0 counts as 1 */
    uint64_t fan_in, fan_out;
    uint64_t reserved[4]; /* 0 */
};

/* What backward reads of what forward has read and written: the caller keeps that until then. Without a flag it may be gone. */
enum { SHMTRAIN_LAYER_READS_IN = 1, SHMTRAIN_LAYER_READS_OUT = 2 };

enum shmtrain_layer_traits {
    /* `out` may be `in`, and `d_in` may be `d_out`; they are where the caller can do so. */
    SHMTRAIN_LAYER_IN_PLACE = 1,

    /* Only the shape changes: out = in, d_in = d_out. Neither forward nor backward is called. */
    SHMTRAIN_LAYER_NOTHING = 2,

    /* The two ends of a sum, of one shape: each has an `out` that is as its `in`. A layer that ADDS reads pass->saved, the inputs (not
     * the outputs, if it computes any) of the latest layer that SAVES and that none has added yet. Backward it writes pass->d_saved, and
     * the layer that SAVES, whose backward is called even if it is one that does NOTHING, adds pass->d_saved to its d_in. Who ADDS
     * computes: it is none that does NOTHING. */
    SHMTRAIN_LAYER_SAVES = 4,
    SHMTRAIN_LAYER_ADDS = 8,

    /* It can do the work of a `relu` that follows it at no cost: see `relu` below. Not with NOTHING. */
    SHMTRAIN_LAYER_CLIPS = 16,

    /* Of built-in layers: it multiplies by the library's BLAS, which has to be there. */
    SHMTRAIN_LAYER_BLAS = 32,

    /* In training, what an example becomes depends on the others of the pass, as in batch normalisation (a layer that has a table with
     * the role of a statistic is taken for one): all examples of a work item
     * then go through the network in one pass. Without it they may come in several, whose gradients are added (pass->add), so that the
     * memory of large layers is that of a few examples. */
    SHMTRAIN_LAYER_MIXES = 64
};

struct shmtrain_layer_kind;

/* One layer of a network. */
struct shmtrain_layer {
    uint32_t size; /* as the library knows it: SHMTRAIN_HAS */

    /* Set before `plan`: */
    uint32_t number; /* place in the network, from 0 */
    const struct shmtrain_layer_kind *kind;
    struct shmtrain_layer_value argument[SHMTRAIN_LAYER_ARGUMENTS];
    struct shmtrain_extent in;

    /* Set by `plan`; all 0 before: */
    struct shmtrain_extent out;
    uint32_t n_tables;
    struct shmtrain_layer_table table[SHMTRAIN_LAYER_TABLES];
    uint64_t multiplications; /* of forward, for one example */
    uint32_t reads;           /* SHMTRAIN_LAYER_READS_... */
    union {
        uint32_t whole[SHMTRAIN_LAYER_OWN];
        float real[SHMTRAIN_LAYER_OWN];
    } own; /* what the kind wants to know later */

    /* Set by `plan` where it refuses: what is wrong, as an end to "fc: " or "stride: ", and the argument that is; -1: the layer. */
    char why[SHMTRAIN_LAYER_WHY];
    int32_t wrong;

    uint32_t
        relu; /* set after `plan`, with trait CLIPS: forward clips its outputs below at 0, and backward counts d_out as 0 where
                      the output is 0 */
    uint64_t reserved[8];
};

/* ---- what is computed ---- */

/* Memory for n examples, in bytes; it is aligned to 64. */
struct shmtrain_layer_memory {
    uint64_t kept;    /* what forward leaves for backward */
    uint64_t scratch; /* for the time of one call: the same memory serves all layers */
};

/* One pass over n >= 1 examples. */
struct shmtrain_layer_pass {
    uint32_t size; /* as the library knows it: SHMTRAIN_HAS */
    uint32_t n;
    uint32_t threads;  /* that loops may use */
    uint32_t training; /* 1: backward follows, dropout drops, statistics are those of the n examples */

    const float *const *table; /* (n_tables) parameters. Others may change them meanwhile (live modes) */
    const float *in;           /* (n, extent in) */
    float *out;                /* (n, extent out) */

    /* Backward. Gradients are sums over the n examples. */
    const float *d_out;     /* (n, extent out): the loss's derivatives by `out` */
    float *d_in;            /* (n, extent in); NULL: nobody needs it, as before the first layer */
    float *const *gradient; /* (n_tables); NULL for frozen ones */
    uint32_t add;           /* 0: gradients are written, whatever was there; 1: they are added to what is there */

    const float *saved; /* trait ADDS: (n, extent in), the inputs of the layer that SAVES */
    float *d_saved;     /* (n, extent in): ADDS writes it (NULL: nobody needs it), SAVES reads it */

    void *kept, *scratch;

    /* What random numbers are made of, with the layer's number: the same for an example in whatever worker and batch it is. */
    uint64_t seed, epoch;
    const uint64_t *example; /* (n) numbers in the data */
    uint64_t reserved[8];
};

struct shmtrain_layer_kind {
    uint32_t size;     /* sizeof(struct shmtrain_layer_kind) */
    uint32_t traits;   /* SHMTRAIN_LAYER_IN_PLACE | ... */
    const char *name;  /* in the text: a small letter, then small letters and digits */
    const char *about; /* one line */
    struct shmtrain_layer_argument argument[SHMTRAIN_LAYER_ARGUMENTS]; /* up to the first one without a name */

    /* From arguments and `in`: `out`, tables and costs. Returns 0, or -1 with `why` and `wrong`. Sums that do not fit in 64 bits need
     * no care where all arguments and extents fit in 32: the library refuses extents of 2^31 numbers and more. Pure. */
    int (*plan)(struct shmtrain_layer *layer);

    /* The memory of a pass over n examples, which is not less for more of them; `training` as in the pass. NULL: none. Pure. */
    void (*memory)(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out);

    void (*forward)(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass);

    /* Gradients of tables, and d_in: after a forward with `training`, with the same n, examples and kept memory. The parameters
     * are those of the forward but for what others have changed (table, above). */
    void (*backward)(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass);
    uint64_t reserved[4];
};

#ifdef __cplusplus
}
#endif
#endif
