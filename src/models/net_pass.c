/* What a network does with the examples of a work item, and of a batch that is scored. See net.c. Large layers take them in parts, whose
 * gradients are added: their activations are then near, and memory is that of a part.
 *
 * A work item goes through the four stages of any parameter server. Pull: the tables are looked at where they are. Compute: forward,
 * losses, backward, on the seat's workspace. Push: the gradients, which were written into lent buffers, layer by layer from the last one
 * to the first. Aggregate and update are the store's. In the live modes others change tables while a layer reads them. RACE(hogwild):
 * each number is whole, some may be older than others. */
#include <stdlib.h>
#include <string.h>

#include "layers/losses.h"
#include "math/blas.h"
#include "math/softmax.h"
#include "models/examples_priv.h"
#include "models/models.h"
#include "models/net_priv.h"

/* ---- the workspace ---- */

#define LINE 64

/* Where things lie in it for a call of n examples, each from a line on; the chain's own memory comes last. */
struct places {
    uint64_t example, target, weight, slope, rows, work, bytes;
};

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint64_t round_up(uint64_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

static int lay_out(const struct shmt_chain *chain, uint32_t n, bool training, struct shmt_chain_work *work, struct places *out,
                   struct shmt_error *e) {
    const uint64_t in = shmtrain_extent_numbers(&chain->in);
    const int rc = shmt_chain_lay_out(chain, n, training, work, e);
    if (rc < 0) return rc;
    out->example = 0;
    out->target = round_up(n * sizeof(uint64_t));
    out->weight = out->target + round_up(n * sizeof(uint32_t));
    out->slope =
        out->weight + round_up(n * sizeof(float)); /* where nothing goes backwards: the chain has room for it otherwise */
    out->rows = out->slope + (training ? 0 : round_up(n * shmtrain_extent_numbers(&chain->out) * sizeof(float)));
    out->work = out->rows + round_up(n * in * sizeof(float));
    out->bytes = out->work + round_up(work->bytes);
    return 0;
}

uint64_t shmt_net_workspace(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                            uint32_t n) {
    const struct net *net = state;
    struct shmt_chain_work work;
    struct places step, score;
    (void)data;
    (void)with;
    n = lesser(n, net->part);
    if (lay_out(&net->chain, n, true, &work, &step, NULL) < 0) return UINT64_MAX;
    if (lay_out(&net->chain, lesser(SHMTRAIN_MODEL_GROUP, net->part), false, &work, &score, NULL) < 0) return UINT64_MAX;
    return step.bytes > score.bytes ? step.bytes : score.bytes;
}

/* ---- one part of the examples ---- */

struct call {
    shmtrain_session *session;
    const struct net *net;
    const struct shmt_chain *chain;
    const struct shmtrain_batch *examples;
    struct shmt_chain_work work;
    struct shmt_chain_batch batch;
    uint32_t *target; /* classes */
    float *slope;     /* scoring: (n, outputs) */
    float *number;    /* labels on the scale of `scale`, where the loss is squared: in the same place */
    float *weight;    /* NULL: all are 1 */
    const float *table[SHMT_CHAIN_TABLES];
    const float *normal; /* table "input"; NULL: there is none */
    const float *scale;  /* table "output": mean, deviation; NULL: there is none */
    float *const *gradient;
    int rc; /* of pushes between layers */
};

static int find_targets(const struct call *call, const struct shmtrain_settings *with) {
    int rc = 0;
    for (uint32_t k = 0; k < call->batch.n && call->scale; k++)
        call->number[k] = (call->examples->data->label[shmt_example_at(call->examples, k)] - call->scale[0]) / call->scale[1];
    if (call->scale) return 0;
    for (uint32_t k = 0; k < call->batch.n && rc == 0; k++)
        rc = shmt_class_of_label(call->session, with, call->examples->data->label[shmt_example_at(call->examples, k)],
                                 &call->target[k]);
    return rc;
}

static int pull(struct call *call) {
    uint64_t stride;
    int rc = 0;
    for (uint32_t t = 0; t < call->chain->n_tables && rc == 0; t++)
        rc = shmtrain_view(call->session, (int)t, 0, shmt_chain_table(call->chain, t, NULL)->rows, &call->table[t], &stride,
                           NULL);
    if (rc == 0 && call->net->normalises)
        rc = shmtrain_view(call->session, (int)shmt_net_input_table(call->net), 0, shmt_net_input_rows(call->net),
                           &call->normal, &stride, NULL);
    if (rc == 0 && call->net->squared)
        rc = shmtrain_view(call->session, (int)shmt_net_output_table(call->net), 0, 1, &call->scale, &stride, NULL);
    return rc;
}

static int begin(struct call *call, shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                 float *const *gradient) {
    const struct net *net = pass->state;
    unsigned char *memory = pass->workspace;
    struct shmt_error e = {0};
    struct places places;
    *call = (struct call){.session = s, .net = net, .chain = &net->chain, .examples = batch, .gradient = gradient};
    if (shmt_blas_open(&e) < 0 || lay_out(&net->chain, batch->n, pass->training != 0, &call->work, &places, &e) < 0)
        return shmtrain_fail(s, e.status, "%s", e.text);
    call->work.memory = memory + places.work;
    call->target = (uint32_t *)(void *)(memory + places.target);
    call->number = (float *)(void *)(memory + places.target);
    call->slope = (float *)(void *)(memory + places.slope);
    call->weight = batch->data->weight ? (float *)(void *)(memory + places.weight) : NULL;
    uint64_t *example = (uint64_t *)(void *)(memory + places.example);
    for (uint32_t k = 0; k < batch->n; k++) {
        example[k] = shmt_example_at(batch, k);
        if (call->weight) call->weight[k] = batch->data->weight[example[k]];
    }
    call->batch = (struct shmt_chain_batch){.n = batch->n,
                                            .threads = pass->with->threads,
                                            .table = call->table,
                                            .gradient = gradient,
                                            .seed = pass->with->seed,
                                            .epoch = pass->epoch,
                                            .example = example};
    int rc = pull(call);
    if (rc == 0) rc = find_targets(call, pass->with);
    if (rc < 0) return rc;
    const struct shmt_net_examples examples = {.net = net,
                                               .data = batch->data,
                                               .first = batch->first,
                                               .listed = batch->example != NULL,
                                               .training = pass->training != 0,
                                               .normal = call->normal,
                                               .rows = (float *)(void *)(memory + places.rows),
                                               .turned = shmt_chain_turned(&call->work)};
    call->batch.in = shmt_net_gather(&examples, &call->batch);
    return 0;
}

static double losses_of(const struct call *call, const float *out, float *slope, bool scoring) {
    const struct shmt_loss_batch batch = {.n = call->batch.n,
                                          .outputs = (uint32_t)shmtrain_extent_numbers(&call->chain->out),
                                          .out = out,
                                          .weight = call->weight,
                                          .slope = slope};
    if (!call->scale) return shmt_loss_classes(&batch, call->target, scoring);
    return (double)call->scale[1] * (double)call->scale[1] * shmt_loss_squared(&batch, call->number);
}

static int lend(shmtrain_session *s, const struct net *net, float **gradient_out) {
    int rc = 0;
    for (uint32_t t = 0; t < net->chain.n_tables && rc == 0; t++)
        if (shmt_chain_table(&net->chain, t, NULL)->role != SHMTRAIN_FROZEN) rc = shmtrain_lend(s, (int)t, &gradient_out[t]);
    return rc;
}

/* The layer's gradients are whole, and those before it still to come. */
static void push(void *arg, uint32_t layer) {
    struct call *call = arg;
    const uint32_t from = call->chain->first_table[layer], to = from + call->chain->layer[layer].n_tables;
    for (uint32_t t = from; t < to && call->rc == 0; t++)
        if (call->gradient[t])
            call->rc = shmtrain_push(call->session, (int)t, 0, shmt_chain_table(call->chain, t, NULL)->rows, call->gradient[t]);
}

/* Gradients are whole, and pushed, behind the last part. */
static int step_part(struct call *call, uint32_t first, bool is_last, double *loss_inout) {
    const float *out = shmt_chain_forward(&call->work, &call->batch);
    *loss_inout += losses_of(call, out, shmt_chain_slopes(&call->work), false);
    call->batch.add = first > 0;
    call->batch.ready = is_last ? push : NULL;
    call->batch.arg = call;
    shmt_chain_backward(&call->work, &call->batch);
    return call->rc;
}

static void score_part(struct call *call, float *score_out, double *loss_inout) {
    const float *out = shmt_chain_forward(&call->work, &call->batch);
    memcpy(score_out, out, call->batch.n * shmtrain_extent_numbers(&call->chain->out) * sizeof *out);
    *loss_inout += losses_of(call, score_out, call->slope, true);
    for (uint32_t k = 0; k < call->batch.n && call->scale; k++) score_out[k] = score_out[k] * call->scale[1] + call->scale[0];
}

/* ---- all of them ---- */

/* Examples first .. first + n - 1 of a batch. */
static struct shmtrain_batch part_of(const struct shmtrain_batch *batch, uint32_t first, uint32_t n) {
    struct shmtrain_batch part = *batch;
    part.n = n;
    part.first += first;
    if (part.example) part.example += first;
    return part;
}

int shmt_net_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    const struct net *net = pass->state;
    float *gradient[SHMT_CHAIN_TABLES] = {NULL};
    int rc = lend(s, net, gradient);
    *loss_out = 0;
    for (uint32_t first = 0, n; first < batch->n && rc == 0; first += n) {
        struct call call;
        n = lesser(batch->n - first, net->part);
        const struct shmtrain_batch part = part_of(batch, first, n);
        rc = begin(&call, s, pass, &part, gradient);
        if (rc == 0) rc = step_part(&call, first, first + n == batch->n, loss_out);
    }
    return rc;
}

int shmt_net_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                   double *loss_out) {
    const struct net *net = pass->state;
    int rc = 0;
    *loss_out = 0;
    for (uint32_t first = 0, n; first < batch->n && rc == 0; first += n) {
        struct call call;
        n = lesser(batch->n - first, net->part);
        const struct shmtrain_batch part = part_of(batch, first, n);
        rc = begin(&call, s, pass, &part, NULL);
        if (rc == 0) score_part(&call, score_out + first * shmtrain_extent_numbers(&net->chain.out), loss_out);
    }
    return rc;
}

void shmt_net_probabilities(uint32_t n, uint32_t outputs, float *score) {
    for (uint64_t i = 0; i < n; i++) (void)shmt_softmax(outputs, score + i * outputs, 0);
}
