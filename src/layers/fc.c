/* A fully connected layer: every output is a weighted sum of all inputs,
 *
 *     Z = X W^T + b        dW = G^T X        db = column sums of G        dX = G W
 *
 * with X (n, inputs), W (outputs, inputs) the table "weight", b (outputs) the table "bias", and G (n, outputs) the derivatives by Z.
 * Each product is cut into blocks of fixed sizes, and no sum goes across blocks. */
#include <stdbool.h>
#include <string.h>

#include "layers/layers.h"
#include "layers/outer_products.h"
#include "math/blas.h"
#include "math/parallel.h"

enum { OUTPUTS, BIAS };                         /* arguments */
enum { WEIGHT_TABLE, BIAS_TABLE };              /* tables */
enum { ROWS = 128, COLS = 128, INPUTS = 1024 }; /* of a block: examples, outputs, inputs */
#define PRODUCT_NS 0.02                         /* of one multiplication; it decides how many threads are worth it */

static int plan(struct shmtrain_layer *layer) {
    const uint64_t inputs = shmtrain_extent_numbers(&layer->in);
    const uint32_t outputs = (uint32_t)layer->argument[OUTPUTS].number;
    layer->out = (struct shmtrain_extent){outputs, 1, 1};
    layer->n_tables = layer->argument[BIAS].word == 1 ? 2 : 1;
    layer->table[WEIGHT_TABLE] = (struct shmtrain_layer_table){.name = "weight",
                                                               .rows = outputs,
                                                               .width = inputs,
                                                               .start = SHMTRAIN_HE,
                                                               .decays = 1,
                                                               .fan_in = inputs,
                                                               .fan_out = outputs};
    layer->table[BIAS_TABLE] = (struct shmtrain_layer_table){.name = "bias", .rows = 1, .width = outputs};
    layer->multiplications = inputs * outputs;
    layer->reads = SHMTRAIN_LAYER_READS_IN;
    return 0;
}

static void memory(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out) {
    if (training) out->scratch = shmt_outer_scratch(n, layer->out.channels) * sizeof(float);
}

/* What blocks work on. */
struct work {
    const struct shmtrain_layer_pass *pass;
    uint32_t inputs, outputs;
    bool has_bias;
};

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t blocks_of(uint32_t n, uint32_t size) { return (n + size - 1) / size; }

static struct work work_of(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    return (struct work){pass, (uint32_t)layer->table[WEIGHT_TABLE].width, layer->out.channels, layer->n_tables > BIAS_TABLE};
}

/* All blocks of a product with `rows` x `cols` results of n * inputs * outputs multiplications. */
static void run(struct work *w, uint64_t blocks, shmt_tile *block) {
    const double ns = (double)w->pass->n * w->inputs * w->outputs * PRODUCT_NS;
    shmt_parallel(shmt_parallel_worth(w->pass->threads, ns), blocks, block, w);
}

static void forward_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const uint32_t across = blocks_of(w->outputs, COLS), row = (uint32_t)(i / across) * ROWS,
                   col = (uint32_t)(i % across) * COLS;
    const struct shmt_matrix z = {w->pass->out + (uint64_t)row * w->outputs + col, lesser(ROWS, w->pass->n - row),
                                  lesser(COLS, w->outputs - col), w->outputs};
    const struct shmt_factor x = {w->pass->in + (uint64_t)row * w->inputs, w->inputs, false},
                             weight = {w->pass->table[WEIGHT_TABLE] + (uint64_t)col * w->inputs, w->inputs, true};
    for (uint32_t k = 0; w->has_bias && k < z.rows; k++)
        memcpy(z.at + k * z.stride, w->pass->table[BIAS_TABLE] + col, z.cols * sizeof(float));
    shmt_sgemm(x, weight, w->inputs, w->has_bias ? 1 : 0, z);
}

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    run(&w, (uint64_t)blocks_of(pass->n, ROWS) * blocks_of(w.outputs, COLS), forward_block);
}

/* dX = G W, one block of it: some examples, some inputs. */
static void input_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const uint32_t across = blocks_of(w->inputs, INPUTS), row = (uint32_t)(i / across) * ROWS,
                   col = (uint32_t)(i % across) * INPUTS;
    const struct shmt_matrix dx = {w->pass->d_in + (uint64_t)row * w->inputs + col, lesser(ROWS, w->pass->n - row),
                                   lesser(INPUTS, w->inputs - col), w->inputs};
    const struct shmt_factor g = {w->pass->d_out + (uint64_t)row * w->outputs, w->outputs, false},
                             weight = {w->pass->table[WEIGHT_TABLE] + col, w->inputs, false};
    shmt_sgemm(g, weight, w->outputs, 0, dx);
}

/* db, examples in their order. */
static void add_bias(const struct work *w) {
    float *db = w->pass->gradient[BIAS_TABLE];
    if (!w->pass->add) memset(db, 0, w->outputs * sizeof *db);
    for (uint32_t k = 0; k < w->pass->n; k++)
        for (uint32_t c = 0; c < w->outputs; c++) db[c] += w->pass->d_out[(uint64_t)k * w->outputs + c];
}

static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    shmt_outer_multiply(&(struct shmt_outer_products){.g = pass->d_out,
                                                      .x = pass->in,
                                                      .c = pass->gradient[WEIGHT_TABLE],
                                                      .k = pass->n,
                                                      .m = w.outputs,
                                                      .n = w.inputs,
                                                      .threads = pass->threads,
                                                      .add = pass->add,
                                                      .scratch = pass->scratch});
    if (w.has_bias) add_bias(&w);
    if (pass->d_in) run(&w, (uint64_t)blocks_of(pass->n, ROWS) * blocks_of(w.inputs, INPUTS), input_block);
}

const struct shmtrain_layer_kind SHMT_LAYER_FC = {
    .size = sizeof(struct shmtrain_layer_kind),
    .traits = SHMTRAIN_LAYER_BLAS,
    .name = "fc",
    .about = "fully connected: every output is a weighted sum of all inputs",
    .argument = {{.name = "outputs", .type = SHMTRAIN_LAYER_WHOLE, .low = 1, .high = 1 << 24},
                 {.name = "bias", .type = SHMTRAIN_LAYER_WORD, .words = "yes|no", .assumed = "yes"}},
    .plan = plan,
    .memory = memory,
    .forward = forward,
    .backward = backward,
};
