/* An application's kinds among built-in ones, by what traits allow: chains with them have gradients that are right and stay within
 * their memory, and plans that cannot be are refused. How kinds are offered and trained: test_own_layers.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers_help.h"

static struct shmt_chain g_chain;

static int plan_same(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    return 0;
}

/* ---- sums ---- */

/* d_in = times d_out + d_saved. */
static void backward_by(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass, float times) {
    const uint64_t n = pass->n * shmtrain_extent_numbers(&layer->in);
    for (uint64_t i = 0; i < n && pass->d_in; i++) pass->d_in[i] = times * pass->d_out[i] + pass->d_saved[i];
}

static void backward_mark(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    backward_by(layer, pass, 1);
}

/* What `save` is, but that its derivatives want a buffer of their own. */
static const struct shmtrain_layer_kind MARK = {.size = sizeof MARK,
                                                .traits = SHMTRAIN_LAYER_SAVES | SHMTRAIN_LAYER_NOTHING,
                                                .name = "mark",
                                                .about = "saves",
                                                .plan = plan_same,
                                                .backward = backward_mark};

static void forward_twice(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint64_t n = pass->n * shmtrain_extent_numbers(&layer->in);
    for (uint64_t i = 0; i < n; i++) pass->out[i] = 2 * pass->in[i];
}

static void backward_twice(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    backward_by(layer, pass, 2);
}

/* It saves, and it computes, too: as much as may be in place. */
static const struct shmtrain_layer_kind TWICE = {.size = sizeof TWICE,
                                                 .traits = SHMTRAIN_LAYER_SAVES | SHMTRAIN_LAYER_IN_PLACE,
                                                 .name = "twice",
                                                 .about = "saves, and doubles",
                                                 .plan = plan_same,
                                                 .forward = forward_twice,
                                                 .backward = backward_twice};

static int plan_wide(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->out.channels *= 2;
    return 0;
}

static const struct shmtrain_layer_kind WIDE = {.size = sizeof WIDE,
                                                .traits = SHMTRAIN_LAYER_SAVES,
                                                .name = "wide",
                                                .about = "saves, and has two channels for each",
                                                .plan = plan_wide,
                                                .forward = forward_twice,
                                                .backward = backward_twice};

static int plan_up(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->out.height *= (uint32_t)layer->argument[0].number;
    layer->out.width *= (uint32_t)layer->argument[0].number;
    return 0;
}

static const struct shmtrain_layer_kind UP = {
    .size = sizeof UP,
    .name = "up",
    .about = "more places",
    .argument = {{.name = "times", .type = SHMTRAIN_LAYER_WHOLE, .low = 1, .high = 1 << 30}},
    .plan = plan_up,
    .forward = forward_twice,
    .backward = backward_twice};

static const struct shmtrain_layer_kind *const OWN[] = {&MARK, &TWICE, &WIDE, &UP};
static const struct shmt_layer_kinds KINDS = {OWN, sizeof OWN / sizeof *OWN};

/* Two texts of networks whose outputs and gradients are the same. */
static void check_alike(const char *text, const char *other, struct shmtrain_extent in, uint32_t n) {
    struct net a, b;
    net_make_with(&a, text, in, n, true, &KINDS);
    net_make_with(&b, other, in, n, true, &KINDS);
    const uint64_t outputs = n * shmtrain_extent_numbers(&a.chain.out);
    float *slope = malloc(outputs * sizeof *slope);
    assert_non_null(slope);
    net_fill(slope, outputs, 4);
    assert_memory_equal(net_forward(&a), net_forward(&b), outputs * sizeof *slope);
    net_backward(&a, slope);
    net_backward(&b, slope);
    assert_int_equal(a.chain.n_tables, b.chain.n_tables);
    for (uint32_t t = 0; t < a.chain.n_tables; t++)
        assert_memory_equal(a.gradient[t], b.gradient[t], a.size[t] * sizeof(float));
    free(slope);
    net_free(&a);
    net_free(&b);
}

static void derivatives_have_room_with_every_trait(void **state) {
    (void)state;
    check_alike("layernorm mark tanh add pool:2 pool:2", "layernorm save tanh add pool:2 pool:2",
                (struct shmtrain_extent){1, 64, 64}, 4);
    check_alike("layernorm mark mark tanh add add pool:4 pool:2", "layernorm save save tanh add add pool:4 pool:2",
                (struct shmtrain_extent){3, 16, 16}, 3);
}

/* x + 2 x, and for each part its derivatives. */
static void who_saves_may_compute(void **state) {
    enum { N = 3, NUMBERS = 2 * 5 * 5 };
    static const struct shmtrain_extent IN = {2, 5, 5};
    float slope[N * NUMBERS];
    struct net sum, alone;
    (void)state;
    net_make_with(&sum, "layernorm twice add", IN, N, true, &KINDS);
    net_make(&alone, "layernorm", IN, N, true);
    const float *three = net_forward(&sum), *one = net_forward(&alone);
    for (uint32_t i = 0; i < N * NUMBERS; i++) assert_true(three[i] == 3 * one[i]);
    net_fill(slope, N * NUMBERS, 6);
    net_backward(&sum, slope);
    for (uint32_t i = 0; i < N * NUMBERS; i++) slope[i] *= 3;
    net_backward(&alone, slope);
    for (uint32_t t = 0; t < alone.chain.n_tables; t++)
        assert_memory_equal(sum.gradient[t], alone.gradient[t], alone.size[t] * sizeof(float));
    net_free(&sum);
    net_free(&alone);
}

/* ---- statistics ---- */

static int plan_centre(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->n_tables = 1;
    layer->table[0] = (struct shmtrain_layer_table){
        .name = "mean", .rows = 1, .width = layer->in.channels, .role = SHMTRAIN_STATISTIC, .rate = 0.1f};
    return 0;
}

static void forward_centre(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint64_t n = pass->n * shmtrain_extent_numbers(&layer->in);
    for (uint64_t i = 0; i < n; i++) pass->out[i] = pass->in[i] - pass->table[0][i % layer->in.channels];
}

static void backward_centre(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    for (uint32_t c = 0; c < layer->in.channels; c++) pass->gradient[0][c] = 17;
    assert_null(pass->d_in); /* nobody needs it */
}

static const struct shmtrain_layer_kind CENTRE = {.size = sizeof CENTRE,
                                                  .name = "centre",
                                                  .about = "less a running mean",
                                                  .plan = plan_centre,
                                                  .forward = forward_centre,
                                                  .backward = backward_centre};

/* It is before all that is trained. */
static void a_first_layer_of_statistics_gets_its_backward(void **state) {
    static const struct shmtrain_layer_kind *const own[] = {&CENTRE};
    const struct shmt_layer_kinds kinds = {own, 1};
    float slope[3 * 5];
    struct net net;
    (void)state;
    net_make_with(&net, "relu centre layernorm", (struct shmtrain_extent){5, 1, 1}, 3, true, &kinds);
    assert_int_equal(net.chain.first_pushed, 1);
    (void)net_forward(&net);
    net_fill(slope, 15, 3);
    net_backward(&net, slope);
    for (uint32_t c = 0; c < 5; c++) assert_true(net.gradient[0][c] == 17);
    net_free(&net);
}

/* ---- plans ---- */

static void refuse(const char *text, struct shmtrain_extent in, const char *sentence) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_chain_plan("--net", text, in, &KINDS, &g_chain, &e), SHMTRAIN_E_USAGE);
    if (strcmp(e.text, sentence) != 0) fail_msg("\"%s\"\n  is refused by: %s\n  and not by:    %s", text, e.text, sentence);
}

static void ends_of_sums_keep_their_shape(void **state) {
    (void)state;
    refuse("fc:4 wide add", (struct shmtrain_extent){1, 4, 4},
           "--net, column 6: wide: its plan is wrong: its traits say that it is an end of a sum, but its outputs have not the "
           "shape "
           "of its inputs");
}

static void numbers_beyond_64_bits_are_not_taken_for_few(void **state) {
    (void)state;
    refuse("fc:4096 up:67108864", (struct shmtrain_extent){1, 4, 4}, /* 2^12 * 2^26 * 2^26 */
           "--net, column 9: up: its plan is wrong: one example would have 2^64 outputs or more");
    refuse("fc:4096 up:33554432", (struct shmtrain_extent){1, 4, 4},
           "--net, column 9: up: one example would have 4611686018427387904 outputs, but at most 2^31 - 1 are possible");
    refuse("relu", (struct shmtrain_extent){4096, 67108864, 67108864},
           "--net: an example of the data has 2^64 numbers or more");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derivatives_have_room_with_every_trait),        cmocka_unit_test(who_saves_may_compute),
        cmocka_unit_test(a_first_layer_of_statistics_gets_its_backward), cmocka_unit_test(ends_of_sums_keep_their_shape),
        cmocka_unit_test(numbers_beyond_64_bits_are_not_taken_for_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
