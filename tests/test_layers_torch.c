/* Layers and networks against torch: outputs and gradients in doubles, which tests/layers_torch.py has written into layers_torch.h.
 *
 * A number may be off by TOLERANCE of the largest of its table: sums of up to 676 products in floats are off by some 1e-6, and
 * convolutions that save multiplications (Winograd) by some 1e-5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "layers_help.h"

struct torch_case {
    const char *text;
    struct shmtrain_extent in;
    uint32_t n;
    bool training;
    const float *number;
    uint64_t n_numbers;
};

#include "layers_torch.h"

#define TOLERANCE 5e-5

static const float *g_at; /* the next number of torch's */

/* As layers_torch.py makes them. */
static void set_tables(struct net *net) {
    for (uint32_t t = 0; t < net->chain.n_tables; t++) {
        const struct shmtrain_layer_table *table = shmt_chain_table(&net->chain, t, NULL);
        net_fill(net->table[t], net->size[t], 50 + t);
        for (uint64_t i = 0; i < net->size[t]; i++)
            net->table[t][i] = net->table[t][i] * 0.5f + (table->start == SHMTRAIN_ONES ? 1.0f : 0.0f);
    }
}

static void compare(const struct torch_case *c, const char *what, uint32_t t, const float *x, uint64_t n) {
    const uint64_t stride = n / TORCH_MOST + 1;
    double largest = 1e-3;
    for (uint64_t i = 0; i < n; i += stride) largest = fmax(largest, fabs((double)g_at[i / stride]));
    for (uint64_t i = 0; i < n; i += stride)
        if (!(fabs((double)x[i] - (double)g_at[i / stride]) <= TOLERANCE * largest))
            fail_msg("%s, %s %u, number %lu: %.9g, but torch has %.9g (the largest is %g)", c->text, what, t, (unsigned long)i,
                     (double)x[i], (double)g_at[i / stride], largest);
    g_at += (n + stride - 1) / stride;
}

static void check_case(const struct torch_case *c) {
    struct net net;
    net_make(&net, c->text, c->in, c->n, c->training);
    set_tables(&net);
    const uint64_t outputs = c->n * shmtrain_extent_numbers(&net.chain.out);
    g_at = c->number;
    compare(c, "output", 0, net_forward(&net), outputs);
    if (c->training) {
        float *slope = malloc(outputs * sizeof(float));
        assert_non_null(slope);
        net_fill(slope, outputs, 5);
        net_backward(&net, slope);
        free(slope);
        for (uint32_t t = 0; t < net.chain.n_tables; t++) compare(c, "gradient", t, net.gradient[t], net.size[t]);
    }
    assert_int_equal(g_at - c->number, c->n_numbers);
    net_free(&net);
}

static void layers_agree_with_torch(void **state) {
    (void)state;
    net_need_blas();
    for (uint32_t i = 0; i < sizeof TORCH_CASES / sizeof *TORCH_CASES; i++) check_case(&TORCH_CASES[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_agree_with_torch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
