/* bench_layers: training networks on one thread, against what the same products take by themselves.
 *
 * usage: bench_layers [--quick] [--rounds N]
 *
 * A step is forward, loss and backward of 128 examples, without any store. "Products alone" are those that every fc and conv layer
 * stands for, three of them each (outputs, gradients of weights, gradients of inputs), by sgemm, on columns that are there already: a
 * convolution that saves multiplications can be faster than that. Images go in from an array that no cache holds, in an order by chance:
 * normalised, and normalised and changed as by --augment; what that takes is shown as a share of the step, which it is no part of. In
 * parts, as models/net.c takes large items: the same 128 examples, some of them at a time. At last the products that make gradients of
 * weights, of few examples each, by ourselves and by sgemm. Times are the thread's processor time. */
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "bench.h"
#include "layers/augment.h"
#include "layers/chain.h"
#include "layers/images.h"
#include "layers/losses.h"
#include "layers/outer_products.h"
#include "math/blas.h"

struct network {
    struct shmt_chain chain;
    struct shmt_chain_work work;
    struct shmt_chain_batch batch;
    float *table[SHMT_CHAIN_TABLES], *gradient[SHMT_CHAIN_TABLES], *in, *a, *b, *c;
    uint64_t *example;
    uint32_t *target;
    uint32_t n, repeats, products_n; /* examples of a step; of products */

    float *images, *normal, *rows; /* (n_images, channels, height, width); as images.h has them; where they go */
    uint64_t n_images, drawn;
};

#define CNN "conv:32:3 relu conv:64:3 relu pool:2 dropout:0.25 flatten fc:128 relu fc:20 relu fc:10"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *take(uint64_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) bench_fail("not enough memory for %.0f MB", (double)bytes * 1e-6);
    return p;
}

static float *numbers(uint64_t n, uint64_t seed) {
    float *x = take(n * sizeof *x);
    for (uint64_t i = 0; i < n; i++) x[i] = (float)shmt_unit(shmt_hash64(seed, i, 0, 0)) * 2 - 1;
    return x;
}

/* The products of a layer: (rows, width) x (width, filters) for one example. */
struct product {
    uint64_t rows, width, filters;
    bool inputs; /* whether there is a third one */
};

static struct product product_of(const struct shmt_chain *chain, uint32_t i) {
    const struct shmtrain_layer *layer = &chain->layer[i];
    return (struct product){(uint64_t)layer->out.height * layer->out.width, layer->table[0].width, layer->out.channels,
                            i > chain->first_pushed};
}

static bool multiplies(const struct shmt_chain *chain, uint32_t i) {
    return chain->layer[i].kind == &SHMT_LAYER_FC || chain->layer[i].kind == &SHMT_LAYER_CONV;
}

static void make_products(struct network *net) {
    uint64_t a = 1, b = 1, c = 1;
    for (uint32_t i = 0; i < net->chain.n_layers; i++) {
        if (!multiplies(&net->chain, i)) continue;
        const struct product p = product_of(&net->chain, i);
        const uint64_t sizes[] = {p.rows * net->products_n * p.width, p.width * p.filters,
                                  p.rows * net->products_n * p.filters};
        a = sizes[0] > a ? sizes[0] : a;
        b = sizes[1] > b ? sizes[1] : b;
        c = sizes[2] > c ? sizes[2] : c;
    }
    net->a = numbers(a, 1);
    net->b = numbers(b, 2);
    net->c = numbers(c, 3);
}

static void make_images(struct network *net, uint64_t bytes) {
    const struct shmtrain_extent *of = &net->chain.in;
    const uint64_t pixels = shmtrain_extent_numbers(of);
    net->n_images = bytes / sizeof(float) / pixels;
    net->images = numbers(net->n_images * pixels, 6);
    net->normal = numbers(2 * of->channels, 7);
    net->rows = take(net->n * pixels * sizeof(float));
}

static void put_images(struct network *net, const struct shmt_augment *augment) {
    const struct shmtrain_extent *of = &net->chain.in;
    const uint64_t pixels = shmtrain_extent_numbers(of);
    const struct shmt_images how = {.of = *of, .normal = net->normal, .last = of->channels > 1};
    uint64_t next = shmt_below(shmt_mix64(net->drawn), net->n_images);
    for (uint32_t k = 0; k < net->n; k++) {
        const uint64_t example = next;
        next = shmt_below(shmt_mix64(++net->drawn), net->n_images);
        shmt_images_ask(net->images + next * pixels, pixels);
        shmt_images_put(&how, shmt_augment_draw(augment, 1, 0, example), net->images + example * pixels,
                        net->rows + k * pixels);
    }
}

static void normalise(struct network *net) { put_images(net, &(const struct shmt_augment){0}); }

static void augment(struct network *net) {
    put_images(net, &(const struct shmt_augment){.shift = 2, .crop = 4, .flips = true});
}

static void make(struct network *net, const char *text, struct shmtrain_extent in, uint32_t n, uint32_t repeats) {
    struct shmt_error e = {0};
    net->n = n;
    net->repeats = repeats;
    net->products_n = n;
    if (shmt_chain_plan("--net", text, in, NULL, &net->chain, &e) < 0 ||
        shmt_chain_lay_out(&net->chain, n, true, &net->work, &e) < 0)
        bench_fail("%s", e.text);
    net->work.memory = take(net->work.bytes);
    net->in = numbers(n * shmtrain_extent_numbers(&in), 4);
    net->example = take(n * sizeof *net->example);
    net->target = take(n * sizeof *net->target);
    for (uint32_t k = 0; k < n; k++) {
        net->example[k] = k;
        net->target[k] = k % net->chain.out.channels;
    }
    for (uint32_t t = 0; t < net->chain.n_tables; t++) {
        const struct shmtrain_layer_table *table = shmt_chain_table(&net->chain, t, NULL);
        net->table[t] = take(table->rows * table->width * sizeof(float));
        net->gradient[t] = take(table->rows * table->width * sizeof(float));
        shmt_chain_begin(&net->chain, 5, t, net->table[t]);
    }
    net->batch = (struct shmt_chain_batch){.n = n,
                                           .threads = 1,
                                           .in = net->in,
                                           .table = (const float *const *)(const void *)net->table,
                                           .gradient = net->gradient,
                                           .example = net->example};
    make_products(net);
}

/* Forward, loss and backward of the step's first batch.n examples. */
static void pass(struct network *net) {
    const float *out = shmt_chain_forward(&net->work, &net->batch);
    const struct shmt_loss_batch loss = {
        .n = net->batch.n, .outputs = net->chain.out.channels, .out = out, .slope = shmt_chain_slopes(&net->work)};
    (void)shmt_loss_classes(&loss, net->target, false);
    shmt_chain_backward(&net->work, &net->batch);
}

/* All examples, `part` at a time. Which ones they are changes nothing in what it takes. */
static void step_in_parts(struct network *net, uint32_t part) {
    net->batch.n = part;
    for (uint32_t first = 0; first < net->n; first += part) {
        net->batch.add = first > 0;
        pass(net);
    }
}

static void step(struct network *net) { step_in_parts(net, net->n); }
static void step_by_half(struct network *net) { step_in_parts(net, net->n / 2); }
static void step_by_quarter(struct network *net) { step_in_parts(net, net->n / 4); }
static void step_by_eighth(struct network *net) { step_in_parts(net, net->n > 8 ? net->n / 8 : 1); }

static void multiply(struct network *net) {
    for (uint32_t i = 0; i < net->chain.n_layers; i++) {
        if (!multiplies(&net->chain, i)) continue;
        const struct product p = product_of(&net->chain, i);
        const uint32_t rows = (uint32_t)(p.rows * net->products_n), width = (uint32_t)p.width, filters = (uint32_t)p.filters;
        const struct shmt_factor x = {net->a, width, false}, w = {net->b, width, false}, w_turned = {net->b, width, true},
                                 g = {net->c, filters, false}, g_turned = {net->c, filters, true};
        shmt_sgemm(x, w_turned, width, 0, (struct shmt_matrix){net->c, rows, filters, filters});
        shmt_sgemm(g_turned, x, rows, 0, (struct shmt_matrix){net->b, filters, width, width});
        if (p.inputs) shmt_sgemm(g, w, filters, 0, (struct shmt_matrix){net->a, rows, width, width});
    }
}

static double images_per_second(struct network *net, void (*work)(struct network *)) {
    const double from = now();
    for (uint32_t i = 0; i < net->repeats; i++) work(net);
    return net->n * net->repeats / (now() - from);
}

static void round_of(void *arg, double *x) {
    struct network *net = arg;
    x[0] = images_per_second(net, step);
    x[1] = images_per_second(net, multiply);
    x[2] = x[0] / x[1];
    x[3] = x[0] / images_per_second(net, normalise);
    x[4] = x[0] / images_per_second(net, augment);
    x[5] = images_per_second(net, step_by_half) / x[0];
    x[6] = images_per_second(net, step_by_quarter) / x[0];
    x[7] = images_per_second(net, step_by_eighth) / x[0];
}

static void measure(const struct bench_options *o, const char *name, const char *text, struct shmtrain_extent in,
                    uint32_t repeats) {
    struct network *net = take(sizeof *net);
    struct shmt_figure figures[] = {{.name = "a step, one thread", .unit = "images/s"},
                                    {.name = "its products alone, by sgemm", .unit = "images/s"},
                                    {.name = "a step against them", .unit = "of them"},
                                    {.name = "images go in, normalised", .unit = "of a step"},
                                    {.name = "... and changed (shift:2 flip crop:4)", .unit = "of a step"},
                                    {.name = "a step in two parts", .unit = "of its speed"},
                                    {.name = "... in four", .unit = "of its speed"},
                                    {.name = "... in eight", .unit = "of its speed"}};
    enum { FIGURES = sizeof figures / sizeof *figures };
    *net = (struct network){0};
    make(net, text, in, o->quick ? 4 : 128, o->quick ? 1 : repeats);
    make_images(net, (uint64_t)(o->quick ? 1 : 100) << 20);
    step(net);
    bench_head("%s: %s, %s", name, text, shmt_blas_name());
    bench_rounds(o, figures, FIGURES, round_of, net);
    bench_show(figures, FIGURES);
}

/* ---- gradients of weights ---- */

struct sums {
    struct shmt_outer_products of;
    uint32_t repeats;
};

static double outer_seconds(const struct sums *s, void (*multiply_by)(const struct shmt_outer_products *)) {
    const double from = now();
    for (uint32_t i = 0; i < s->repeats; i++) multiply_by(&s->of);
    return (now() - from) / s->repeats;
}

static void round_of_sums(void *arg, double *x) {
    const struct sums *s = arg;
    const double flops = 2.0 * s->of.k * s->of.m * s->of.n;
    x[0] = flops / outer_seconds(s, shmt_outer_multiply) * 1e-9;
    x[1] = flops / outer_seconds(s, shmt_outer_multiply_by_blas) * 1e-9;
    x[2] = x[0] / x[1];
}

static void measure_sums(const struct bench_options *o, uint32_t k, uint32_t m, uint32_t n) {
    struct shmt_figure figures[] = {{.name = "sums of outer products", .unit = "GFLOP/s"},
                                    {.name = "by sgemm", .unit = "GFLOP/s"},
                                    {.name = "ours against it", .unit = "of its speed"}};
    struct sums s = {.of = {.g = numbers((uint64_t)k * m, 1),
                            .x = numbers((uint64_t)k * n, 2),
                            .c = numbers((uint64_t)m * n, 3),
                            .k = k,
                            .m = m,
                            .n = n,
                            .threads = 1,
                            .scratch = numbers(shmt_outer_scratch(k, m), 4)},
                     .repeats = o->quick ? 1 : 20};
    bench_head("gradient of fc:%u with %u inputs, of %u examples", m, n, k);
    bench_rounds(o, figures, 3, round_of_sums, &s);
    bench_show(figures, 3);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 9);
    struct shmt_error e = {0};
    if (shmt_blas_open(&e) < 0) bench_fail("%s", e.text);
    const struct shmtrain_extent mnist = {1, 28, 28}, cifar = {3, 32, 32};
    measure(&o, "mlp", "fc:128 relu fc:10", mnist, 20);
    measure(&o, "cnn", CNN, mnist, 2);
    measure(&o, "cnn, CIFAR-10", CNN, cifar, 2);
    for (uint32_t k = 16; k <= 128; k *= 2) measure_sums(&o, k, 128, 9216);
    for (uint32_t k = 32; k <= 128; k *= 2) measure_sums(&o, k, 128, 784);
    bench_show_noise();
    return 0;
}
