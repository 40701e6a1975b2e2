/* Networks for tests: see layers_help.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "layers_help.h"
#include "math/blas.h"
#include "skip.h"

void net_fill(float *x, uint64_t n, uint64_t seed) {
    for (uint64_t i = 0; i < n; i++) x[i] = (float)shmt_unit(shmt_hash64(seed, i, 0, 0)) * 2 - 1;
}

void net_need_blas(void) {
    struct shmt_error e = {0};
    if (shmt_blas_open(&e) < 0) SKIP("%s", e.text);
}

static void *must(void *p) {
    assert_non_null(p);
    return p;
}

static void make_tables(struct net *net) {
    for (uint32_t t = 0; t < net->chain.n_tables; t++) {
        const struct shmtrain_layer_table *table = shmt_chain_table(&net->chain, t, NULL);
        const uint64_t n = net->size[t] = table->rows * table->width;
        net->table[t] = must(malloc(n * sizeof(float)));
        net->gradient[t] = must(calloc(n, sizeof(float)));
        shmt_chain_begin(&net->chain, 7, t, net->table[t]);
        if (table->start == SHMTRAIN_HE || table->start == SHMTRAIN_GLOROT) continue;
        float *off = must(malloc(n * sizeof(float)));
        net_fill(off, n, 50 + t);
        for (uint64_t i = 0; i < n; i++) net->table[t][i] += 0.25f * off[i];
        free(off);
    }
}

/* Bytes behind a network's memory, which nobody writes. */
enum { GUARD = 1 << 16, UNTOUCHED = 0xff };

void net_make(struct net *net, const char *text, struct shmtrain_extent in, uint32_t n, bool training) {
    net_make_with(net, text, in, n, training, NULL);
}

void net_make_with(struct net *net, const char *text, struct shmtrain_extent in, uint32_t n, bool training,
                   const struct shmt_layer_kinds *own) {
    struct shmt_error e = {0};
    *net = (struct net){.n = n, .threads = 1, .training = training, .seed = 3, .epoch = 2};
    if (shmt_chain_plan("--net", text, in, own, &net->chain, &e) < 0) fail_msg("%s", e.text);
    if (shmt_chain_lay_out(&net->chain, n, training, &net->work, &e) < 0) fail_msg("%s", e.text);
    net->memory = must(aligned_alloc(64, net->work.bytes + GUARD));
    memset(net->memory, UNTOUCHED, net->work.bytes + GUARD); /* NaN: what is read has been written */
    net->work.memory = net->memory;
    const uint64_t numbers = n * shmtrain_extent_numbers(&in);
    net->in = must(malloc(numbers * sizeof(float)));
    net_fill(net->in, numbers, 9);
    net->example = must(malloc(n * sizeof(uint64_t)));
    for (uint32_t k = 0; k < n; k++) net->example[k] = 100 + k;
    make_tables(net);
}

void net_free(struct net *net) {
    const unsigned char *behind = (const unsigned char *)net->memory + net->work.bytes;
    for (uint32_t i = 0; i < GUARD; i++) assert_int_equal(behind[i], UNTOUCHED);
    for (uint32_t t = 0; t < net->chain.n_tables; t++) {
        free(net->table[t]);
        free(net->gradient[t]);
    }
    free(net->in);
    free(net->example);
    free(net->memory);
}

static struct shmt_chain_batch batch_of(struct net *net) {
    return (struct shmt_chain_batch){.n = net->n,
                                     .threads = net->threads,
                                     .in = net->in,
                                     .table = (const float *const *)(const void *)net->table,
                                     .gradient = net->gradient,
                                     .add = net->add,
                                     .seed = net->seed,
                                     .epoch = net->epoch,
                                     .example = net->example};
}

const float *net_forward(struct net *net) {
    const struct shmt_chain_batch batch = batch_of(net);
    return shmt_chain_forward(&net->work, &batch);
}

void net_backward(struct net *net, const float *slope) {
    const struct shmt_chain_batch batch = batch_of(net);
    memcpy(shmt_chain_slopes(&net->work), slope, net->n * shmtrain_extent_numbers(&net->chain.out) * sizeof(float));
    shmt_chain_backward(&net->work, &batch);
}
