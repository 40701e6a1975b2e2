/* Every layer's gradients against central finite differences.
 *
 * The objective is the sum of s_i out_i with slopes s made of a seed, in doubles. A number is moved by STEP up and down: an output of
 * size 1 is rounded by 2^-24, which the difference sees divided by 2 STEP, about 1.5e-5 for each output that moves; the third
 * derivative adds STEP^2 / 6. Inputs are a shuffled grid, whose numbers lie further apart than two steps and away from 0: so no
 * relu changes sides, and no maximum its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "layers_help.h"

#define STEP 0x1p-8f

enum { MOST_TRIED = 60, GRID = 192 };

static float g_step = STEP;

/* One layer, called as a chain would. */
struct bare {
    struct net net;
    const struct shmtrain_layer *layer;
    struct shmtrain_layer_pass pass;
    float *out, *d_in, *slope, *saved, *d_saved;
    uint64_t n_in, n_out;
};

static float *numbers(uint64_t n) {
    float *x = malloc((n ? n : 1) * sizeof(float));
    assert_non_null(x);
    for (uint64_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

/* Numbers within -1.5 .. 1.5, four steps apart, in an order made of a seed; layers with maxima have no more of them than GRID. */
static void fill_grid(float *x, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) x[i] = ((float)(i % GRID) - (float)(n < GRID ? n : GRID) / 2 + 0.25f) * 4 * STEP;
    for (uint64_t i = n; i-- > 1;) {
        const uint64_t j = shmt_below(shmt_hash64(4, i, 0, 0), i + 1);
        const float kept = x[i];
        x[i] = x[j];
        x[j] = kept;
    }
}

static void make(struct bare *b, const char *text, struct shmtrain_extent in, uint32_t n) {
    *b = (struct bare){0};
    net_make(&b->net, text, in, n, true);
    b->layer = &b->net.chain.layer[b->net.chain.n_layers - 1];
    b->n_in = n * shmtrain_extent_numbers(&b->layer->in);
    b->n_out = n * shmtrain_extent_numbers(&b->layer->out);
    b->out = numbers(b->n_out);
    b->d_in = numbers(b->n_in);
    b->saved = numbers(b->n_in);
    b->d_saved = numbers(b->n_in);
    b->slope = numbers(b->n_out);
    net_fill(b->slope, b->n_out, 21);
    net_fill(b->saved, b->n_in, 22);
    fill_grid(b->net.in, b->n_in);
    b->pass = (struct shmtrain_layer_pass){.size = sizeof b->pass,
                                           .n = n,
                                           .threads = 1,
                                           .training = 1,
                                           .table = (const float *const *)(const void *)b->net.table,
                                           .in = b->net.in,
                                           .out = b->out,
                                           .d_out = b->slope,
                                           .d_in = b->d_in,
                                           .gradient = b->net.gradient,
                                           .saved = b->saved,
                                           .d_saved = b->d_saved,
                                           .kept = b->net.work.memory + b->net.work.kept[b->net.chain.n_layers - 1],
                                           .scratch = b->net.work.memory + b->net.work.scratch,
                                           .seed = 3,
                                           .epoch = 2,
                                           .example = b->net.example};
}

static void end(struct bare *b) {
    net_free(&b->net);
    free(b->out);
    free(b->d_in);
    free(b->slope);
    free(b->saved);
    free(b->d_saved);
}

static double objective(const struct bare *b) {
    double sum = 0;
    b->layer->kind->forward(b->layer, &b->pass);
    for (uint64_t i = 0; i < b->n_out; i++) sum += (double)b->slope[i] * (double)b->out[i];
    return sum;
}

/* `x` (n) is what the objective depends on; its gradient. */
static void check(const struct bare *b, const char *what, float *x, const float *gradient, uint64_t n) {
    const uint64_t stride = n / MOST_TRIED + 1;
    double largest = 0;
    for (uint64_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)gradient[i]));
    assert_true(largest > 0 && largest < 1e6);
    for (uint64_t i = 0; i < n; i += stride) {
        const float kept = x[i];
        x[i] = kept + g_step;
        const double up = objective(b);
        x[i] = kept - g_step;
        const double difference = (up - objective(b)) / (2 * (double)g_step);
        x[i] = kept;
        if (fabs(difference - (double)gradient[i]) > 1e-3 * largest + 2e-4)
            fail_msg("%s, number %lu of %s: the gradient is %g, the difference %g", b->layer->kind->name, (unsigned long)i,
                     what, (double)gradient[i], difference);
    }
}

/* All gradients of a layer that ends `text`; a second backward with `add` doubles those of tables. */
static void check_layer(const char *text, struct shmtrain_extent in, uint32_t n) {
    struct bare b;
    make(&b, text, in, n);
    (void)objective(&b);
    b.layer->kind->backward(b.layer, &b.pass);
    const uint32_t n_tables = b.layer->n_tables;
    float *d_in = numbers(b.n_in), *gradient[SHMTRAIN_LAYER_TABLES] = {NULL};
    memcpy(d_in, b.d_in, b.n_in * sizeof *d_in);
    for (uint32_t t = 0; t < n_tables; t++) {
        gradient[t] = numbers(b.net.size[t]);
        memcpy(gradient[t], b.net.gradient[t], b.net.size[t] * sizeof(float));
    }
    b.pass.add = 1;
    b.layer->kind->backward(b.layer, &b.pass);
    for (uint32_t t = 0; t < n_tables; t++) {
        for (uint64_t i = 0; i < b.net.size[t]; i++) /* rounding apart: where sums are added piece by piece */
            assert_true(fabs((double)b.net.gradient[t][i] - 2 * (double)gradient[t][i]) <=
                        1e-4 * (1 + fabs((double)gradient[t][i])));
        if (b.layer->table[t].role == SHMTRAIN_TRAINED)
            check(&b, b.layer->table[t].name, b.net.table[t], gradient[t], b.net.size[t]);
        free(gradient[t]);
    }
    check(&b, "in", b.net.in, d_in, b.n_in);
    free(d_in);
    end(&b);
}

static void fully_connected(void **state) {
    (void)state;
    net_need_blas();
    check_layer("fc:7", (struct shmtrain_extent){1, 5, 3}, 4);
    check_layer("fc:3:bias=no", (struct shmtrain_extent){11, 1, 1}, 2);
    check_layer("fc:130", (struct shmtrain_extent){5, 1, 1}, 131); /* more than one block */
}

static void activations(void **state) {
    (void)state;
    check_layer("relu", (struct shmtrain_extent){9, 1, 1}, 5);
    check_layer("tanh", (struct shmtrain_extent){9, 1, 1}, 5);
    check_layer("sigmoid", (struct shmtrain_extent){9, 1, 1}, 5);
    check_layer("gelu", (struct shmtrain_extent){9, 1, 1}, 5);
}

static void convolutions(void **state) {
    (void)state;
    net_need_blas();
    check_layer("conv:4:3", (struct shmtrain_extent){1, 6, 7}, 3);
    check_layer("conv:3:2x3:stride=2x1:pad=1x2", (struct shmtrain_extent){2, 5, 6}, 2);
    check_layer("conv:4:3:stride=2:pad=same:groups=2", (struct shmtrain_extent){6, 7, 4}, 2);
    check_layer("conv:6:3:groups=6:pad=1:bias=no", (struct shmtrain_extent){6, 4, 4}, 2); /* depthwise */
    check_layer("conv:8:3:stride=2", (struct shmtrain_extent){3, 7, 6}, 3);               /* short rows */
    check_layer("conv:16:1", (struct shmtrain_extent){3, 4, 5}, 35);
    check_layer("conv:8:1", (struct shmtrain_extent){1, 3, 3}, 2);
    check_layer("conv:5:1", (struct shmtrain_extent){3, 4, 5}, 3);   /* rows are the inputs */
    check_layer("conv:2:5", (struct shmtrain_extent){2, 5, 5}, 35);  /* two parts */
    check_layer("conv:3:3", (struct shmtrain_extent){1, 40, 40}, 2); /* more than one tile */
}

/* By Winograd: tiles that end outside, padding on some sides, panels of 8 filters, two parts. A change of one input rounds all outputs
 * of its tiles anew; but the sum is linear, so that steps may be large. */
static void convolutions_of_three_by_three(void **state) {
    (void)state;
    net_need_blas();
    g_step = 0.5f;
    check_layer("conv:8:3", (struct shmtrain_extent){8, 6, 6}, 1);
    check_layer("conv:24:3:pad=1", (struct shmtrain_extent){8, 7, 5}, 2);
    check_layer("conv:16:3:pad=same:bias=no", (struct shmtrain_extent){24, 4, 9}, 2);
    check_layer("conv:8:3:pad=2x0", (struct shmtrain_extent){16, 5, 6}, 33);
    g_step = STEP;
}

static void pooling(void **state) {
    (void)state;
    check_layer("pool:2", (struct shmtrain_extent){3, 5, 4}, 3);
    check_layer("pool:3x2:max:stride=1x2", (struct shmtrain_extent){2, 5, 6}, 2); /* windows overlap */
    check_layer("pool:2:mean", (struct shmtrain_extent){3, 4, 5}, 2);
    check_layer("pool:3:mean:stride=1", (struct shmtrain_extent){2, 4, 4}, 2);
}

static void dropout(void **state) {
    (void)state;
    check_layer("dropout:0.25", (struct shmtrain_extent){3, 2, 3}, 4);
}

static void normalisations(void **state) {
    (void)state;
    check_layer("batchnorm", (struct shmtrain_extent){3, 2, 3}, 5);
    check_layer("batchnorm", (struct shmtrain_extent){2, 9, 7}, 9); /* more than one block of rows */
    check_layer("batchnorm:epsilon=0.01", (struct shmtrain_extent){6, 1, 1}, 8);
    check_layer("batchnorm", (struct shmtrain_extent){6, 1, 1}, 1); /* by running statistics */
    check_layer("layernorm", (struct shmtrain_extent){3, 2, 3}, 5);
    check_layer("layernorm:0.01", (struct shmtrain_extent){523, 1, 1}, 2); /* more than one block of numbers */
}

static void residual_sums(void **state) {
    (void)state;
    check_layer("save add", (struct shmtrain_extent){3, 2, 3}, 4);
}

/* Whole chains, by the gradients of their tables: who hands what to whom. Smooth, but for convolutions that clip. */
static void check_chain(const char *text, struct shmtrain_extent in, uint32_t n) {
    struct net net;
    net_make(&net, text, in, n, true);
    const uint64_t outputs = n * shmtrain_extent_numbers(&net.chain.out);
    float *slope = numbers(outputs);
    net_fill(slope, outputs, 21);
    (void)net_forward(&net);
    net_backward(&net, slope);
    for (uint32_t t = 0; t < net.chain.n_tables; t++) {
        double largest = 0;
        if (shmt_chain_table(&net.chain, t, NULL)->role != SHMTRAIN_TRAINED) continue;
        for (uint64_t i = 0; i < net.size[t]; i++) largest = fmax(largest, fabs((double)net.gradient[t][i]));
        for (uint64_t i = 0; i < net.size[t]; i += net.size[t] / MOST_TRIED + 1) {
            const float kept = net.table[t][i];
            double value[2] = {0, 0};
            for (int down = 0; down < 2; down++) {
                net.table[t][i] = down ? kept - STEP : kept + STEP;
                const float *out = net_forward(&net);
                for (uint64_t k = 0; k < outputs; k++) value[down] += (double)slope[k] * (double)out[k];
            }
            net.table[t][i] = kept;
            const double difference = (value[0] - value[1]) / (2 * (double)STEP);
            if (fabs(difference - (double)net.gradient[t][i]) > 5e-3 * largest + 1e-3)
                fail_msg("%s, table %u, number %lu: the gradient is %g, the difference %g", text, t, (unsigned long)i,
                         (double)net.gradient[t][i], difference);
        }
    }
    free(slope);
    net_free(&net);
}

static void chains(void **state) {
    static const struct shmtrain_extent IN = {2, 6, 5};
    (void)state;
    net_need_blas();
    check_chain("conv:4:3 tanh pool:2:mean flatten fc:6 sigmoid fc:3", IN, 3);
    check_chain("conv:4:3:pad=same save conv:4:3:pad=same tanh conv:4:1 add gelu save tanh save sigmoid add add fc:3", IN, 3);
    check_chain("save conv:2:3:pad=same tanh add fc:3", IN, 3); /* the data themselves are saved */
    check_chain("conv:4:3 batchnorm tanh dropout:0.5 flatten layernorm fc:4 tanh", IN, 4);
    check_chain("dropout:0.25 tanh fc:4 dropout:0.25 dropout:0.25 tanh", IN, 4); /* in place, and not */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fully_connected), cmocka_unit_test(activations),
        cmocka_unit_test(convolutions),    cmocka_unit_test(convolutions_of_three_by_three),
        cmocka_unit_test(pooling),         cmocka_unit_test(dropout),
        cmocka_unit_test(normalisations),  cmocka_unit_test(residual_sums),
        cmocka_unit_test(chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
