/* Lines by steps: see steps.h. */
#include "api/steps.h"

#include <math.h>
#include <string.h>

#include "api/store_priv.h"
#include "base/clock.h"

static const struct shmt_board *board_of(const struct shmtrain_store *store) { return store->ops->board(store->job.store); }

static uint64_t first_ns_of(const struct shmtrain_store *store) {
    return load_relaxed(&board_of(store)->first_step_ns); /* relaxed: for display */
}

/* Steps of a run that this one goes on from were told there. */
void shmt_steps_begin(struct shmtrain_store *store) {
    const struct shmt_spec *spec = &store->spec;
    store->steps = (struct shmt_steps){.step = spec->first_epoch * shmt_spec_steps(spec) + spec->first_step,
                                       .examples = board_of(store)->before_examples};
}

uint64_t shmt_steps_ring_every(const struct shmt_spec *spec, uint64_t every) {
    if (every == 0 || shmt_policy_is_batched(&spec->policy)) return every; /* one seat has the first chunk of every batch */
    return shmt_max_u64(1, every / spec->n_seats);
}

/* What all seats have done. relaxed: for display, each number whole. */
static void add_up(const struct shmtrain_store *store, uint64_t *examples_out, double *loss_out) {
    *examples_out = 0;
    *loss_out = 0;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) {
        const struct shmt_counters *c = store->ops->counters(store->job.store, seat);
        if (!c) continue;
        const uint64_t bits = load_relaxed(&c->loss_bits);
        double loss;
        memcpy(&loss, &bits, sizeof loss);
        *examples_out += load_relaxed(&c->examples);
        *loss_out += loss;
    }
}

/* Of a batch that is not complete the first chunk counts: who has it rings when it has done it. */
static uint64_t steps_in(const struct shmt_spec *spec, uint64_t examples) {
    const uint64_t each = shmt_spec_step_examples(spec);
    return shmt_policy_is_batched(&spec->policy) ? shmt_ceil_div(examples, each) : examples / each;
}

/* Those of the epochs that were told, of which the last one may have been cut off, and what has been done since. */
static uint64_t steps_of(const struct shmtrain_store *store, uint64_t examples) {
    const struct shmt_spec *spec = &store->spec;
    const struct shmtrain_report *r = &store->report;
    const bool cut = r->n_epochs > 0 && r->epoch[r->n_epochs - 1].partial;
    const uint64_t whole = cut ? r->n_epochs - 1 : r->n_epochs;
    const uint64_t told = cut ? r->examples - r->epoch[r->n_epochs - 1].examples : r->examples;
    const uint64_t here = examples > told ? examples - told : 0;
    const uint64_t rest = steps_in(spec, here % spec->n_examples);
    return (whole + here / spec->n_examples) * shmt_spec_steps(spec) + shmt_min_u64(rest, shmt_spec_steps(spec));
}

uint64_t shmt_steps_told(const struct shmtrain_store *store) { return steps_of(store, store->report.examples); }

void shmt_steps_tick(struct shmtrain_store *store) {
    const uint64_t every = store->config.log_every, now_ns = shmt_now_ns(), first_ns = first_ns_of(store);
    struct shmt_steps *before = &store->steps;
    struct shmtrain_steps now = {.size = sizeof(struct shmtrain_steps), .epochs = store->spec.epochs};
    double loss;
    if (every == 0 || first_ns == 0) return;
    add_up(store, &now.examples, &loss);
    now.examples += board_of(store)->before_examples;
    now.step = steps_of(store, now.examples);
    if (now.step / every <= before->step / every || now.examples <= before->examples) return;
    const uint64_t since_ns = before->at_ns ? before->at_ns : first_ns;
    const double examples = (double)(now.examples - before->examples);
    now.epoch = (uint32_t)shmt_min_u64((now.step - 1) / shmt_spec_steps(&store->spec) + 1, now.epochs);
    now.seconds = now_ns > first_ns ? (double)(now_ns - first_ns) * 1e-9 : 0;
    now.loss = loss != 0 ? (loss - before->loss) / examples : NAN; /* 0: nobody reports any */
    now.examples_per_second = now_ns > since_ns ? examples / (double)(now_ns - since_ns) * 1e9 : 0;
    *before = (struct shmt_steps){.at_ns = now_ns, .step = now.step, .examples = now.examples, .loss = loss};
    shmt_metrics_steps(store, &now);
    if (store->listener.steps) store->listener.steps(store->listener.arg, &store->report, &now);
}
