/* Multinomial logistic regression:
 *
 *     minimise  mean over i of -a_i log p(y_i | x_i)  +  l2 / 2 * |W|^2        p(c | x) = e^(z_c) / sum over d of e^(z_d)
 *                                                                              z = W x + b, b not regularised
 *
 * with W (classes, features) the table "weight", b (classes, 1) the table "bias" (only with settings.bias), classes in the
 * order of settings.classes, and a_i the example's weight. For n examples as rows of X (n, features), with targets Y (n,
 * classes) of zeros and ones:
 *
 *     Z = X W^T + b        P = softmax of each row of Z        G = a (P - Y)        dW = G^T X        db = column sums of G
 *
 * On dense rows the two products are OpenBLAS's; on sparse rows they go by the nonzeros. dW is written into the buffer that the
 * store lends: in `aggregate` that is the gradient itself. Examples are taken TILE at a time, dense ones gathered into one block
 * where they are shuffled, so that the memory for them does not grow with the item; all but the first tile's products are added to
 * what is there.
 *
 * Bits do not depend on the number of threads: each product is cut into blocks of fixed sizes, each block is computed by one
 * thread, and no sum goes across blocks. In the live modes others change W while a product reads it. RACE(hogwild): each
 * element is whole, some may be older than others, as a reader of live rows must expect. */
#include <limits.h>
#include <string.h>

#include "math/blas.h"
#include "math/parallel.h"
#include "math/softmax.h"
#include "models/examples_priv.h"
#include "models/models.h"

enum {
    TILE = 256,     /* examples at a time: enough for several threads, few enough to stay in the second-level cache */
    ROWS = 16,      /* examples of one block, where there are few classes; as fast as many in one product */
    CLASSES = 128,  /* outputs of one block; with more of them ... */
    WIDE_ROWS = 64, /* ... a block has so many examples, or W would be read too often */
    FEATURES = 256  /* columns of dW in one block */
};

/* What the loops take, in nanoseconds: for a multiplication of a product of either kind, a number that is copied, and one that goes
 * through softmax. Rough: it decides how many threads are worth it. */
#define PRODUCT_NS 0.02
#define NONZERO_NS 1.0 /* one of a product that goes by nonzeros */
#define COPY_NS    0.4
#define SOFTMAX_NS 2.0

_Static_assert(SHMTRAIN_MAX_CLASSES == 1024, "so it is said below");
_Static_assert(TILE >= SHMTRAIN_MODEL_GROUP, "what is scored at once fits into one tile");

static const char *check(const struct shmtrain_data *data) {
    if (data->n_labels < 2) return "only one label, but softmax needs two or more";
    return data->n_labels > SHMTRAIN_MAX_CLASSES ? "more than 1024 labels, which is softmax's limit" : NULL;
}

/* Data without any features has a column of weights that nobody uses: there is no table of width 0. */
static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)state;
    const uint32_t features = data->n_features ? data->n_features : 1;
    out[0] = (struct shmtrain_shape){.name = "weight", .rows = with->n_classes, .width = features, .l2_rows = with->n_classes};
    out[1] = (struct shmtrain_shape){.name = "bias", .rows = with->n_classes, .width = 1, .l2_rows = 0};
    return with->bias ? 2 : 1;
}

/* ---- the workspace ---- */

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* What the blocks of a tile work on. The buffers lie in the seat's workspace, in this order. */
struct tile {
    const struct shmtrain_batch *batch;
    const struct shmtrain_settings *with;
    uint32_t features, classes;
    const float *weight, *bias; /* (classes, features), (classes) or NULL */
    uint32_t first, n;          /* examples first .. first + n - 1 of the batch */
    bool sparse;                /* its rows are */
    const float *x;             /* (n, features); NULL: sparse */
    float *loss;                /* (TILE) */
    uint32_t *target;           /* (TILE) class of each example */
    float *z;                   /* (TILE, classes): scores, then slopes */
    float *gathered;            /* (TILE, features); NULL where examples are sparse, or stand one behind the other */
    float *dw, *db;             /* lent gradients */
};

/* Dense examples are gathered where they are shuffled. */
static uint64_t workspace(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                          uint32_t n) {
    (void)state;
    const uint64_t gathered = data->dense ? data->n_features : 0, rows = lesser(TILE, n);
    return (2 * (uint64_t)TILE + (uint64_t)TILE * with->n_classes + rows * gathered) * sizeof(float);
}

static int begin(struct tile *t, shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch) {
    const struct shmtrain_data *data = batch->data;
    const struct shmtrain_settings *with = pass->with;
    uint64_t stride;
    *t = (struct tile){.batch = batch,
                       .with = with,
                       .features = data->n_features,
                       .classes = with->n_classes,
                       .sparse = data->start && !data->dense};
    struct shmt_error e = {0};
    int rc = !t->sparse && shmt_blas_open(&e) < 0 ? shmtrain_fail(s, e.status, "%s", e.text) : 0;
    if (rc == 0) rc = shmtrain_view(s, 0, 0, t->classes, &t->weight, &stride, NULL);
    if (rc == 0 && with->bias) rc = shmtrain_view(s, 1, 0, t->classes, &t->bias, &stride, NULL);
    if (rc < 0) return rc;
    if (t->features > INT_MAX)
        return shmtrain_fail(s, SHMTRAIN_E_DATA, "softmax has at most %d features, but the data has %u", INT_MAX, t->features);
    t->loss = pass->workspace;
    t->target = (uint32_t *)(void *)(t->loss + TILE);
    t->z = t->loss + 2 * TILE;
    t->gathered = batch->example && !t->sparse ? t->z + (uint64_t)TILE * t->classes : NULL;
    return 0;
}

/* ---- one tile ---- */

static uint64_t example_at(const struct tile *t, uint32_t k) { return shmt_example_at(t->batch, t->first + k); }

/* Rows that one block of examples has, and classes; they follow from the number of classes alone. */
static uint32_t block_rows(const struct tile *t) { return t->classes <= CLASSES ? ROWS : WIDE_ROWS; }
static uint32_t row_blocks(const struct tile *t) { return (t->n + block_rows(t) - 1) / block_rows(t); }
static uint32_t class_blocks(const struct tile *t) { return (t->classes + CLASSES - 1) / CLASSES; }

static uint32_t worth(const struct tile *t, uint64_t n, uint32_t each, double ns) {
    return shmt_parallel_worth(t->with->threads, (double)n * each * ns);
}

/* What one of the two products takes: of sparse rows by the usual number of nonzeros. */
static double product_ns(const struct tile *t) {
    const struct shmtrain_data *data = t->batch->data;
    const double n = (double)t->n * t->classes;
    if (!t->sparse) return n * t->features * PRODUCT_NS;
    return n * (double)data->n_nonzeros / (double)(data->n_examples > 0 ? data->n_examples : 1) * NONZERO_NS;
}

static void gather_row(void *arg, uint64_t k) {
    const struct tile *t = arg;
    memcpy(t->gathered + k * t->features, t->batch->data->dense + example_at(t, (uint32_t)k) * t->features,
           t->features * sizeof(float));
}

/* Nonzeros of an example: `value` NULL, all are 1. */
struct row {
    const uint32_t *id;
    const float *value;
    uint64_t n;
};

static struct row row_of(const struct tile *t, uint32_t k) {
    const struct shmtrain_data *data = t->batch->data;
    const uint64_t example = example_at(t, k), at = data->start[example];
    return (struct row){data->id + at, data->value ? data->value + at : NULL, data->start[example + 1] - at};
}

/* In four sums, for one waits for its last addition. */
static float product(struct row x, const float *w) {
    float sum[4] = {0};
    uint64_t at = 0;
    for (; at + 4 <= x.n; at += 4)
        for (uint32_t i = 0; i < 4; i++) sum[i] += w[x.id[at + i]] * (x.value ? x.value[at + i] : 1);
    for (; at < x.n; at++) sum[0] += w[x.id[at]] * (x.value ? x.value[at] : 1);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Z = X W^T + b of an example, by its nonzeros. */
static void score_sparse(void *arg, uint64_t k) {
    const struct tile *t = arg;
    const struct row x = row_of(t, (uint32_t)k);
    for (uint32_t c = 0; c < t->classes; c++)
        t->z[k * t->classes + c] = (t->bias ? t->bias[c] : 0) + product(x, t->weight + (uint64_t)c * t->features);
}

/* dW = G^T X of a class, by nonzeros, examples in their order. */
static void slope_sparse(void *arg, uint64_t c) {
    const struct tile *t = arg;
    float *dw = t->dw + c * t->features;
    if (t->first == 0) memset(dw, 0, t->features * sizeof *dw);
    for (uint32_t k = 0; k < t->n; k++) {
        const struct row x = row_of(t, k);
        const float g = t->z[(uint64_t)k * t->classes + c];
        for (uint64_t at = 0; at < x.n; at++) dw[x.id[at]] += g * (x.value ? x.value[at] : 1);
    }
}

/* Z = X W^T + b, one block of it. */
static void score_block(void *arg, uint64_t i) {
    const struct tile *t = arg;
    const uint32_t row = (uint32_t)(i / class_blocks(t)) * block_rows(t), class = (uint32_t)(i % class_blocks(t)) * CLASSES;
    const struct shmt_matrix z = {.at = t->z + (uint64_t)row * t->classes + class,
                                  .rows = lesser(block_rows(t), t->n - row),
                                  .cols = lesser(CLASSES, t->classes - class),
                                  .stride = t->classes};
    for (uint32_t k = 0; k < z.rows; k++)
        for (uint32_t c = 0; c < z.cols; c++) z.at[k * z.stride + c] = t->bias ? t->bias[class + c] : 0;
    if (t->features == 0) return;
    const struct shmt_factor x = {t->x + (uint64_t)row * t->features, t->features, false},
                             w = {t->weight + (uint64_t) class * t->features, t->features, true};
    shmt_sgemm(x, w, t->features, 1, z);
}

/* Losses of a block of examples, and G in the place of Z. */
static void judge_block(void *arg, uint64_t i) {
    const struct tile *t = arg;
    const uint32_t from = (uint32_t)i * ROWS, to = lesser(from + ROWS, t->n);
    const float *weights = t->batch->data->weight;
    for (uint32_t k = from; k < to; k++) {
        float *z = t->z + (uint64_t)k * t->classes;
        const float weight = weights ? weights[example_at(t, k)] : 1;
        t->loss[k] = weight * shmt_softmax(t->classes, z, t->target[k]);
        z[t->target[k]] -= 1;
        for (uint32_t c = 0; c < t->classes && weights; c++) z[c] *= weight;
    }
}

/* dW = G^T X, one block of it: some classes, some features. */
static void slope_block(void *arg, uint64_t i) {
    const struct tile *t = arg;
    const uint32_t class = (uint32_t)(i % class_blocks(t)) * CLASSES, column = (uint32_t)(i / class_blocks(t)) * FEATURES;
    const struct shmt_matrix dw = {.at = t->dw + (uint64_t) class * t->features + column,
                                   .rows = lesser(CLASSES, t->classes - class),
                                   .cols = lesser(FEATURES, t->features - column),
                                   .stride = t->features};
    const struct shmt_factor g = {t->z + class, t->classes, true}, x = {t->x + column, t->features, false};
    shmt_sgemm(g, x, t->n, t->first == 0 ? 0 : 1, dw);
}

/* db: the column sums of G, examples in their order. */
static void add_bias(const struct tile *t) {
    if (t->first == 0) memset(t->db, 0, t->classes * sizeof(float));
    for (uint32_t k = 0; k < t->n; k++)
        for (uint32_t c = 0; c < t->classes; c++) t->db[c] += t->z[(uint64_t)k * t->classes + c];
}

/* Puts examples first .. first + n - 1 in place, and computes Z. */
static int score_tile(shmtrain_session *s, struct tile *t, uint32_t first, uint32_t n) {
    t->first = first;
    t->n = n;
    for (uint32_t k = 0; k < n; k++) {
        const int rc = shmt_class_of_label(s, t->with, t->batch->data->label[example_at(t, k)], &t->target[k]);
        if (rc < 0) return rc;
    }
    if (t->sparse) {
        shmt_parallel(shmt_parallel_worth(t->with->threads, product_ns(t)), n, score_sparse, t);
        return 0;
    }
    if (t->gathered) shmt_parallel(worth(t, n, t->features, COPY_NS), n, gather_row, t);
    t->x = t->gathered ? t->gathered : t->features ? t->batch->data->dense + example_at(t, 0) * t->features : NULL;
    shmt_parallel(shmt_parallel_worth(t->with->threads, product_ns(t)), (uint64_t)row_blocks(t) * class_blocks(t), score_block,
                  t);
    return 0;
}

static void judge_tile(struct tile *t) {
    shmt_parallel(worth(t, t->n, t->classes, SOFTMAX_NS), (t->n + ROWS - 1) / ROWS, judge_block, t);
}

static double add_losses(const struct tile *t) {
    double sum = 0;
    for (uint32_t k = 0; k < t->n; k++) sum += (double)t->loss[k];
    return sum;
}

/* ---- the model ---- */

static int add_gradients(shmtrain_session *s, struct tile *t, double *loss_out) {
    const uint64_t columns = (t->features + FEATURES - 1) / FEATURES,
                   blocks = t->sparse ? t->classes : columns * class_blocks(t);
    for (uint32_t first = 0; first < t->batch->n; first += TILE) {
        const int rc = score_tile(s, t, first, lesser(TILE, t->batch->n - first));
        if (rc < 0) return rc;
        judge_tile(t);
        shmt_parallel(shmt_parallel_worth(t->with->threads, product_ns(t)), blocks, t->sparse ? slope_sparse : slope_block, t);
        if (t->db) add_bias(t);
        *loss_out += add_losses(t);
    }
    return 0;
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    struct tile t;
    double loss = 0;
    int rc = begin(&t, s, pass, batch);
    if (rc == 0) rc = shmtrain_lend(s, 0, &t.dw);
    if (rc == 0 && t.bias) rc = shmtrain_lend(s, 1, &t.db);
    if (rc == 0 && t.features == 0) memset(t.dw, 0, t.classes * sizeof(float));
    if (rc == 0) rc = add_gradients(s, &t, &loss);
    if (rc == 0) rc = shmtrain_push(s, 0, 0, t.classes, t.dw);
    if (rc == 0 && t.bias) rc = shmtrain_push(s, 1, 0, t.classes, t.db);
    if (rc == 0) *loss_out = loss;
    return rc;
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    struct tile t;
    int rc = begin(&t, s, pass, batch);
    if (rc == 0) rc = score_tile(s, &t, 0, batch->n);
    if (rc != 0) return rc;
    memcpy(score_out, t.z, (uint64_t)batch->n * t.classes * sizeof(float));
    judge_tile(&t);
    *loss_out = add_losses(&t);
    return 0;
}

static void probabilities(uint32_t n, uint32_t outputs, float *score_out) {
    for (uint64_t i = 0; i < n; i++) (void)shmt_softmax(outputs, score_out + i * outputs, 0);
}

const struct shmtrain_model SHMT_MODEL_SOFTMAX = {
    .size = sizeof(struct shmtrain_model),
    .name = "softmax",
    .about = "two to 1024 classes, log loss",
    .task = SHMTRAIN_CLASSES,
    .loss = "log loss",
    /* The curvature is the largest eigenvalue of diag(p) - p p^T. */
    .traits = {.rows = SHMTRAIN_ROWS_EITHER, .pushes_tables = 1, .loops = 1, .blas = 1, .curvature = 0.5f},
    .check = check,
    .tables = tables,
    .workspace = workspace,
    .step = step,
    .score = score,
    .probabilities = probabilities,
};
