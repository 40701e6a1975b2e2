/* Networks as texts: what they are planned to be, refusals with their columns, how parameters begin, bits that do not depend on
 * threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers_help.h"

static const struct shmtrain_extent DIGIT = {1, 28, 28}, COLOUR = {3, 32, 32};

static struct shmt_chain g_chain;

static void plan(const char *text, struct shmtrain_extent in) {
    struct shmt_error e = {0};
    if (shmt_chain_plan("--net", text, in, NULL, &g_chain, &e) < 0) fail_msg("%s: %s", text, e.text);
}

static void refuse(const char *text, struct shmtrain_extent in, const char *sentence) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_chain_plan("--net", text, in, NULL, &g_chain, &e), SHMTRAIN_E_USAGE);
    if (strcmp(e.text, sentence) != 0) fail_msg("\"%s\"\n  is refused by: %s\n  and not by:    %s", text, e.text, sentence);
}

static void a_perceptron_is_planned(void **state) {
    struct shmt_chain_row row;
    static const char TEXT[] = "  fc:128 \trelu\n fc:10 ";
    (void)state;
    plan(TEXT, DIGIT);
    assert_int_equal(g_chain.n_layers, 3);
    assert_int_equal(g_chain.n_tables, 4);
    assert_int_equal(g_chain.parameters, 784 * 128 + 128 + 128 * 10 + 10);
    assert_int_equal(g_chain.multiplications, 784 * 128 + 128 * 10);
    assert_int_equal(g_chain.out.channels, 10);
    assert_int_equal(g_chain.first_pushed, 0);
    assert_string_equal(shmt_chain_table(&g_chain, 2, NULL)->name, "weight");
    assert_int_equal(shmt_chain_table(&g_chain, 2, NULL)->width, 128);
    shmt_chain_row(&g_chain, TEXT, 0, &row);
    assert_string_equal(row.text, "fc:128");
    assert_int_equal(row.bytes, 512);
    shmt_chain_row(&g_chain, TEXT, 1, &row);
    assert_string_equal(row.text, "relu");
    assert_int_equal(row.bytes, 0); /* in place */
}

/* Of data as they are, which nobody may overwrite, a first layer needs a copy; data with their channels last are one. */
static void a_first_layer_in_place_takes_a_copy_of_plain_features(void **state) {
    struct shmt_chain_row row;
    (void)state;
    plan("dropout fc:3", (struct shmtrain_extent){20, 1, 1});
    shmt_chain_row(&g_chain, "dropout fc:3", 0, &row);
    assert_int_equal(row.bytes, 20 * sizeof(float));
    plan("dropout fc:3", (struct shmtrain_extent){5, 2, 2});
    shmt_chain_row(&g_chain, "dropout fc:3", 0, &row);
    assert_int_equal(row.bytes, 0);
}

/* Of the tutorials' network, what everybody else counts, too. */
static void the_tutorials_network_is_planned(void **state) {
    static const char TEXT[] = "conv:32:3 relu conv:64:3 relu pool:2 flatten fc:128 relu fc:20 relu fc:10";
    struct shmt_chain_row row;
    (void)state;
    plan(TEXT, DIGIT);
    assert_int_equal(g_chain.n_layers, 11);
    assert_int_equal(g_chain.n_tables, 10);
    assert_int_equal(g_chain.parameters, (9 + 1) * 32 + (288 + 1) * 64 + (9216 + 1) * 128 + (128 + 1) * 20 + (20 + 1) * 10);
    shmt_chain_row(&g_chain, TEXT, 2, &row);
    assert_int_equal(row.multiplications, 24 * 24 * 64 * 288);
    assert_int_equal(row.out.channels, 64);
    assert_int_equal(row.out.height, 24);
    shmt_chain_row(&g_chain, TEXT, 3, &row);
    assert_int_equal(row.bytes, 0); /* the convolution does it */
    shmt_chain_row(&g_chain, TEXT, 4, &row);
    assert_int_equal(row.bytes, 12 * 12 * 64 * 6); /* a float and the place of the largest */
    assert_int_equal(g_chain.layer[6].in.channels, 9216);
}

static void shapes_follow_from_padding_and_stride(void **state) {
    (void)state;
    plan("conv:8:3:stride=2:pad=same conv:8:2x4:pad=1x0 pool:3:mean:stride=2", COLOUR);
    assert_int_equal(g_chain.layer[0].out.height, 16);
    assert_int_equal(g_chain.layer[1].out.height, 17);
    assert_int_equal(g_chain.layer[1].out.width, 13);
    assert_int_equal(g_chain.out.height, 8);
    assert_int_equal(g_chain.out.width, 6);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    refuse("conv:8:33", COLOUR,
           "--net, column 8: conv: kernel: a kernel of 33x33 does not fit into 32x32 places: take a smaller one, or pad");
    refuse("conv:8:3:groups=2", COLOUR, "--net, column 17: conv: groups: 2 does not divide both 3 channels and 8 filters");
    refuse(
        "conv:8:3:pad=some", COLOUR,
        "--net, column 14: conv: pad \"some\": expected a whole number from 0 to 1024, or height x width as in 3x5, or same");
    refuse("conv:8", COLOUR,
           "--net, column 1: conv needs kernel: write conv:FILTERS:KERNEL[:stride=1][:pad=PAD|same][:groups=1][:bias=yes|no]");
    refuse("conv:8:3 pool:31", COLOUR,
           "--net, column 15: pool: window: a window of 31x31 does not fit into 30x30 places: take a smaller one");
    refuse("pool:2:most", COLOUR, "--net, column 8: pool: of \"most\": expected max|mean");
    refuse("pool:2:2", DIGIT, "--net, column 8: pool: of \"2\": expected max|mean: did you mean stride=2");
    refuse("pool:2:of=2", DIGIT, "--net, column 11: pool: of \"2\": expected max|mean");
    refuse("conv:1000000:3:pad=same", (struct shmtrain_extent){1, 100, 100},
           "--net, column 1: conv: one example would have 10000000000 outputs, but at most 2^31 - 1 are possible");
}

static void sums_need_two_parts_of_one_shape(void **state) {
    (void)state;
    refuse("fc:5 add", DIGIT, "--net, column 6: add: nothing was saved before it: write save where the sum's other part is");
    refuse("fc:5 save fc:5", DIGIT, "--net, column 6: save: nothing adds what it saves: write add where the sum is to be");
    refuse("save conv:4:3 add", COLOUR,
           "--net, column 15: add: here are 4x30x30 numbers, but 3x32x32 were saved in column 1: they must be as many");
    refuse("save save fc:5 add", DIGIT,
           "--net, column 16: add: here are 5 numbers, but 1x28x28 were saved in column 6: they must be as many");
    refuse("dropout:1", DIGIT, "--net, column 9: dropout: chance \"1\": expected a number from 0 to below 1");
    refuse("dropout:0.999999", DIGIT, "--net, column 9: dropout: chance: everything would be dropped");
}

static void names_and_arguments_are_checked(void **state) {
    (void)state;
    refuse("", DIGIT, "--net: there are no layers: write for example \"fc:128 relu fc:10\"");
    refuse("fc:10 rellu", DIGIT, "--net, column 7: there is no layer \"rellu\": did you mean relu");
    refuse("fc", DIGIT, "--net, column 1: fc needs outputs: write fc:OUTPUTS[:bias=yes|no]");
    refuse("fc:ten", DIGIT, "--net, column 4: fc: outputs \"ten\": expected a whole number from 1 to 16777216");
    refuse("fc:0", DIGIT, "--net, column 4: fc: outputs \"0\": expected a whole number from 1 to 16777216");
    refuse("fc:", DIGIT, "--net, column 4: fc: outputs \"\": expected a whole number from 1 to 16777216");
    refuse("fc:1.5", DIGIT, "--net, column 4: fc: outputs \"1.5\": expected a whole number from 1 to 16777216");
    refuse("fc:4294967297", DIGIT, "--net, column 4: fc: outputs \"4294967297\": expected a whole number from 1 to 16777216");
    refuse("fc:8:bias=maybe", DIGIT, "--net, column 11: fc: bias \"maybe\": expected yes|no");
    refuse("fc:8:no:9", DIGIT, "--net, column 9: fc has no room for 9: write fc:OUTPUTS[:bias=yes|no]");
    refuse("relu fc:8:bais=no", DIGIT, "--net, column 11: fc has no bais: write fc:OUTPUTS[:bias=yes|no]");
    refuse("fc:8:outputs=9", DIGIT, "--net, column 6: fc: outputs is given twice: leave one out");
    refuse("fc:9", (struct shmtrain_extent){1, 0, 5},
           "--net: an example of the data has 0 numbers, but a network needs 1 to 2^31 - 1");
}

/* A share is above 0 and may be all; what is added to variances is above 0, as a float, too. */
static void shares_and_what_is_added_to_variances_are_above_0(void **state) {
    static const char *const TEXTS[][2] = {{"batchnorm:momentum=0", "momentum \"0\""},
                                           {"batchnorm:1.01", "momentum \"1.01\""},
                                           {"batchnorm:epsilon=0", "epsilon \"0\""},
                                           {"batchnorm:epsilon=1e-60", "epsilon \"1e-60\""},
                                           {"layernorm:0.0", "epsilon \"0.0\""}};
    char sentence[160];
    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        const char *word = TEXTS[i][0];
        snprintf(sentence, sizeof sentence, "--net, column %u: %.9s: %s: expected a number above 0, at most 1",
                 (unsigned)strcspn(word, strchr(word, '=') ? "=" : ":") + 2, word, TEXTS[i][1]);
        refuse(word, DIGIT, sentence);
    }
    plan("batchnorm:1", DIGIT);
    assert_true(shmt_chain_table(&g_chain, 2, NULL)->rate == 1);
    plan("batchnorm:1e-3", DIGIT);
    assert_true(shmt_chain_table(&g_chain, 2, NULL)->rate == 1e-3f);
}

static double number_of(const char *text) {
    plan(text, DIGIT);
    return g_chain.layer[0].argument[0].number;
}

static void numbers_are_read_as_everybody_writes_them(void **state) {
    static const char *const BAD[] = {"", ".", "+.5", "-.5", "1e", "e-1", "0x1p-1", "nan", "inf", ".5.", "1e-1e", "0,5"};
    char text[32];
    struct shmt_error e = {0};
    (void)state;
    assert_true(number_of("dropout:.5") == 0.5);
    assert_true(number_of("dropout:0.5") == 0.5);
    assert_true(number_of("dropout:0") == 0);
    assert_true(number_of("dropout:5e-1") == 0.5);
    assert_true(number_of("layernorm:1E-5") == 1e-5);
    assert_true(number_of("layernorm:epsilon=0.00001") == 1e-5);
    assert_true(number_of("layernorm") == 1e-5);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        snprintf(text, sizeof text, "dropout:%s", BAD[i]);
        if (shmt_chain_plan("--net", text, DIGIT, NULL, &g_chain, &e) == 0) fail_msg("\"%s\" is taken", text);
    }
}

static void far_names_are_answered_with_all(void **state) {
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_chain_plan("--net", "transformer", COLOUR, NULL, &g_chain, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "there is no layer \"transformer\": layers are fc, conv,"));
}

/* `word`, n times. */
static void repeat(char *out, const char *word, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) out = stpcpy(out, word);
}

static void a_network_has_a_limit(void **state) {
    char text[6 * 100 + 1];
    struct shmt_error e = {0};
    (void)state;
    repeat(text, "fc:2 ", 33);
    assert_int_equal(shmt_chain_plan("--net", text, DIGIT, NULL, &g_chain, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "column 161: fc: the network has more than 64 tables"));
    e = (struct shmt_error){0};
    repeat(text, "relu ", 97);
    assert_int_equal(shmt_chain_plan("--net", text, DIGIT, NULL, &g_chain, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "column 481: a network has at most 96 layers"));
}

/* An application's own kind stands beside the built-in ones. */
static int plan_half(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->out.channels /= 2;
    layer->own.whole[0] = layer->out.channels;
    if (layer->in.channels % 2 == 0) return 0;
    snprintf(layer->why, sizeof layer->why, "%u channels cannot be halved", layer->in.channels);
    return -1;
}

static void forward_half(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint32_t m = layer->own.whole[0];
    for (uint64_t k = 0; k < pass->n; k++)
        for (uint32_t c = 0; c < m; c++) pass->out[k * m + c] = pass->in[2 * k * m + c] + pass->in[2 * k * m + m + c];
}

static void backward_half(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint32_t m = layer->own.whole[0];
    for (uint64_t k = 0; k < pass->n && pass->d_in; k++)
        for (uint32_t c = 0; c < 2 * m; c++) pass->d_in[2 * k * m + c] = pass->d_out[k * m + c % m];
}

static void an_application_has_layers_of_its_own(void **state) {
    static const struct shmtrain_layer_kind HALF = {.size = sizeof HALF,
                                                    .name = "half",
                                                    .about = "sums of pairs",
                                                    .plan = plan_half,
                                                    .forward = forward_half,
                                                    .backward = backward_half};
    static const struct shmtrain_layer_kind *const OWN[] = {&HALF};
    const struct shmt_layer_kinds kinds = {OWN, 1};
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_chain_plan("--net", "fc:10 half relu", DIGIT, &kinds, &g_chain, &e), 0);
    assert_int_equal(g_chain.out.channels, 5);
    assert_int_equal(shmt_chain_plan("--net", "fc:9 half", DIGIT, &kinds, &g_chain, &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text, "--net, column 6: half: 9 channels cannot be halved");
}

static void tables_begin_within_their_bounds(void **state) {
    static float a[50 * 784], b[50 * 784];
    (void)state;
    plan("fc:50", DIGIT);
    const double bound = sqrt(6.0 / 784);
    double squares = 0, sum = 0;
    shmt_chain_begin(&g_chain, 1, 0, a);
    for (uint32_t i = 0; i < 50 * 784; i++) {
        assert_true(fabs((double)a[i]) <= bound);
        sum += (double)a[i];
        squares += (double)a[i] * (double)a[i];
    }
    assert_true(fabs(sum) < 4 * sqrt(50 * 784 * 2.0 / 784)); /* four standard deviations of the sum */
    assert_true(fabs(squares / (50 * 784) * 784 / 2 - 1) < 0.02);
    shmt_chain_begin(&g_chain, 2, 0, b);
    assert_memory_not_equal(a, b, sizeof a);
    shmt_chain_begin(&g_chain, 1, 0, b);
    assert_memory_equal(a, b, sizeof a);
    shmt_chain_begin(&g_chain, 1, 1, b);
    for (uint32_t i = 0; i < 50; i++) assert_true(b[i] == 0);
}

/* ---- runs ---- */

static void note_layer(void *arg, uint32_t layer) {
    char *told = arg;
    sprintf(told + strlen(told), " %u", layer);
}

static void gradients_are_told_of_layer_by_layer(void **state) {
    char told[64] = "";
    struct net net;
    (void)state;
    net_need_blas();
    net_make(&net, "relu fc:5 tanh fc:3", (struct shmtrain_extent){2, 2, 2}, 3, true);
    const struct shmt_chain_batch batch = {.n = 3,
                                           .threads = 1,
                                           .in = net.in,
                                           .table = (const float *const *)(const void *)net.table,
                                           .gradient = net.gradient,
                                           .example = net.example,
                                           .ready = note_layer,
                                           .arg = told};
    (void)shmt_chain_forward(&net.work, &batch);
    net_fill(shmt_chain_slopes(&net.work), 9, 1);
    shmt_chain_backward(&net.work, &batch);
    assert_string_equal(told, " 3 1");
    net_free(&net);
}

/* Outputs and gradients of a batch, on 1, 2 and 4 threads. */
static void check_threads(const char *text, struct shmtrain_extent in, uint32_t n) {
    struct net one, many;
    net_make(&one, text, in, n, true);
    const uint64_t outputs = n * shmtrain_extent_numbers(&one.chain.out);
    float *slope = malloc(outputs * sizeof(float));
    assert_non_null(slope);
    net_fill(slope, outputs, 5);
    const float *want = net_forward(&one);
    net_backward(&one, slope);
    for (uint32_t threads = 2; threads <= 4; threads += 2) {
        net_make(&many, text, in, n, true);
        many.threads = threads;
        assert_memory_equal(net_forward(&many), want, outputs * sizeof(float));
        net_backward(&many, slope);
        for (uint32_t t = 0; t < one.chain.n_tables; t++)
            assert_memory_equal(many.gradient[t], one.gradient[t], one.size[t] * sizeof(float));
        net_free(&many);
    }
    free(slope);
    net_free(&one);
}

static void threads_change_no_bit(void **state) {
    (void)state;
    net_need_blas();
    check_threads("fc:300 tanh fc:150 gelu fc:10", DIGIT, 150);
    check_threads("conv:8:3:pad=same batchnorm relu save dropout tanh add layernorm flatten fc:10", COLOUR, 70);
    check_threads("conv:8:5 relu pool:2 conv:16:3:pad=same:stride=2 relu pool:2:mean flatten fc:10", COLOUR, 70);
}

/* An example's mask is the same in whatever batch it is; another epoch, seed or layer has another one. */
static void masks_follow_the_example(void **state) {
    enum { N = 12, NUMBERS = 103 };
    static const struct shmtrain_extent IN = {NUMBERS, 1, 1};
    struct net all, some;
    float whole[N * NUMBERS];
    (void)state;
    net_make(&all, "relu dropout:0.25", IN, N, true);
    for (uint32_t i = 0; i < N * NUMBERS; i++) all.in[i] = 1;
    memcpy(whole, net_forward(&all), sizeof whole);
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < N * NUMBERS; i++) {
        assert_true(whole[i] == 0 || whole[i] == 4.0f / 3);
        dropped += whole[i] == 0;
    }
    assert_true(dropped > 250 && dropped < 370); /* 309 are expected, with a standard deviation of 15 */
    for (uint32_t first = 0; first < N; first += 5) {
        const uint32_t n = N - first < 5 ? N - first : 5;
        net_make(&some, "relu dropout:0.25", IN, n, true);
        for (uint32_t i = 0; i < n * NUMBERS; i++) some.in[i] = 1;
        for (uint32_t k = 0; k < n; k++) some.example[k] = all.example[first + k];
        assert_memory_equal(net_forward(&some), whole + first * NUMBERS, n * NUMBERS * sizeof(float));
        net_free(&some);
    }
    all.epoch++;
    assert_memory_not_equal(net_forward(&all), whole, sizeof whole);
    all.epoch--;
    all.seed++;
    assert_memory_not_equal(net_forward(&all), whole, sizeof whole);
    net_free(&all);
    net_make(&all, "dropout:0.25 relu", IN, N, true);
    for (uint32_t i = 0; i < N * NUMBERS; i++) all.in[i] = 1;
    assert_memory_not_equal(net_forward(&all), whole, sizeof whole);
    net_free(&all);
}

/* Running statistics move by their share towards what a batch shows; chunks of a batch add up. */
static void statistics_are_means_over_examples(void **state) {
    static const struct shmtrain_extent IN = {1, 1, 1};
    static const float DATA[4] = {1, 3, 5, 11};
    struct net net;
    (void)state;
    net_make(&net, "batchnorm:0.25", IN, 4, true);
    assert_int_equal(shmt_chain_table(&net.chain, 2, NULL)->role, SHMTRAIN_STATISTIC);
    assert_true(shmt_chain_table(&net.chain, 2, NULL)->rate == 0.25f);
    memcpy(net.in, DATA, sizeof DATA);
    net.table[2][0] = 2;
    net.table[3][0] = 10;
    (void)net_forward(&net);
    net_backward(&net, DATA);
    assert_true(fabs((double)net.gradient[2][0] - 4 * (2 - 5)) < 1e-5);
    assert_true(fabs((double)net.gradient[3][0] - 4 * (10 - 56 / 3.0)) < 1e-4); /* unbiased */
    net.add = true;
    (void)net_forward(&net);
    net_backward(&net, DATA);
    assert_true(fabs((double)net.gradient[2][0] - 8 * (2 - 5)) < 1e-5);
    net_free(&net);
    net_make(&net, "batchnorm", IN, 4, false);
    memcpy(net.in, DATA, sizeof DATA);
    net.table[0][0] = 3;
    net.table[1][0] = 0.5f;
    net.table[2][0] = 2;
    net.table[3][0] = 16;
    assert_true(fabs((double)net_forward(&net)[3] - (3 * 9 / 4.0 + 0.5)) < 1e-4);
    net_free(&net);
}

/* One number for each channel has no variance: it is normalised by what was seen before, and moves it nowhere. */
static void one_example_and_place_leave_statistics_as_they_are(void **state) {
    static const struct shmtrain_extent IN = {5, 1, 1};
    float slope[5];
    struct net training, scoring;
    (void)state;
    net_make(&training, "batchnorm", IN, 1, true);
    net_make(&scoring, "batchnorm", IN, 1, false);
    const float *out = net_forward(&training);
    assert_memory_equal(out, net_forward(&scoring), sizeof slope);
    assert_true(out[0] != training.table[1][0]); /* not the shift alone */
    net_fill(slope, 5, 8);
    memset(training.gradient[2], 0xff, sizeof slope);
    net_backward(&training, slope);
    for (uint32_t c = 0; c < 5; c++) assert_true(training.gradient[2][c] == 0 && training.gradient[3][c] == 0);
    training.add = true;
    training.gradient[3][4] = 7;
    (void)net_forward(&training);
    net_backward(&training, slope);
    assert_true(training.gradient[3][4] == 7);
    assert_true(training.gradient[1][4] == 2 * slope[4]);
    net_free(&training);
    net_free(&scoring);
}

/* Work that was laid out for more examples. */
static void the_last_batch_may_be_smaller(void **state) {
    static const char TEXT[] = "conv:8:3:pad=1 relu conv:8:3 batchnorm pool:2 dropout:0.5 layernorm fc:3";
    enum { MANY = 70, FEW = 33 };
    static const struct shmtrain_extent IN = {2, 8, 8};
    struct net many, few;
    float slope[FEW * 3];
    (void)state;
    net_need_blas();
    net_make(&many, TEXT, IN, MANY, true);
    net_make(&few, TEXT, IN, FEW, true);
    assert_true(many.chain.needs_blas);
    many.n = FEW;
    net_fill(slope, FEW * 3, 1);
    assert_memory_equal(net_forward(&many), net_forward(&few), sizeof slope);
    net_backward(&many, slope);
    net_backward(&few, slope);
    for (uint32_t t = 0; t < few.chain.n_tables; t++)
        assert_memory_equal(many.gradient[t], few.gradient[t], few.size[t] * sizeof(float));
    net_free(&many);
    net_free(&few);
    plan("tanh pool:2 flatten", DIGIT);
    assert_false(g_chain.needs_blas);
}

/* Scoring, which keeps nothing, computes the same outputs. */
static void scoring_has_the_bits_of_training(void **state) {
    struct net training, scoring;
    (void)state;
    net_need_blas();
    net_make(&training, "conv:4:3 relu pool:2 fc:30 tanh fc:20 relu fc:10 sigmoid", COLOUR, 7, true);
    net_make(&scoring, "conv:4:3 relu pool:2 fc:30 tanh fc:20 relu fc:10 sigmoid", COLOUR, 7, false);
    assert_memory_equal(net_forward(&training), net_forward(&scoring), 70 * sizeof(float));
    assert_true(scoring.work.bytes < training.work.bytes);
    net_free(&training);
    net_free(&scoring);
}

static void only_batch_normalisation_mixes_examples(void **state) {
    (void)state;
    plan("conv:4:3 relu layernorm dropout:0.5 pool:2 save tanh add fc:10", DIGIT);
    assert_false(g_chain.mixes);
    plan("conv:4:3 relu batchnorm pool:2 fc:10", DIGIT);
    assert_true(g_chain.mixes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_batch_normalisation_mixes_examples),
        cmocka_unit_test(a_perceptron_is_planned),
        cmocka_unit_test(a_first_layer_in_place_takes_a_copy_of_plain_features),
        cmocka_unit_test(the_tutorials_network_is_planned),
        cmocka_unit_test(shapes_follow_from_padding_and_stride),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(sums_need_two_parts_of_one_shape),
        cmocka_unit_test(names_and_arguments_are_checked),
        cmocka_unit_test(shares_and_what_is_added_to_variances_are_above_0),
        cmocka_unit_test(numbers_are_read_as_everybody_writes_them),
        cmocka_unit_test(far_names_are_answered_with_all),
        cmocka_unit_test(a_network_has_a_limit),
        cmocka_unit_test(an_application_has_layers_of_its_own),
        cmocka_unit_test(tables_begin_within_their_bounds),
        cmocka_unit_test(gradients_are_told_of_layer_by_layer),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(masks_follow_the_example),
        cmocka_unit_test(statistics_are_means_over_examples),
        cmocka_unit_test(one_example_and_place_leave_statistics_as_they_are),
        cmocka_unit_test(scoring_has_the_bits_of_training),
        cmocka_unit_test(the_last_batch_may_be_smaller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
