/* Lines by steps: see log_every.h. */
#include "watching/log_every.h"

#include <math.h>
#include <string.h>

#include "watching/metrics.h"
#include "sync/host.h"
#include "workers/run.h"

static uint64_t first_ns_of(const struct shmt_run *run) {
    return load_relaxed(&shmt_job_board(&run->job)->first_step_ns); /* relaxed: for display */
}

/* Steps of a run that this one goes on from were told there. */
void shmt_steps_begin(struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    *run->steps = (struct shmt_steps){.step = spec->first_epoch * shmt_spec_steps(spec) + spec->first_step,
                                      .examples = shmt_job_board(&run->job)->before_examples};
}

uint64_t shmt_steps_ring_every(const struct shmt_spec *spec, uint64_t every) {
    if (every == 0 || shmt_policy_is_batched(&spec->policy)) return every; /* one seat has the first chunk of every batch */
    return shmt_max_u64(1, every / spec->n_seats);
}

/* What all seats have done. relaxed: for display, each number whole. */
static void add_up(const struct shmt_run *run, uint64_t *examples_out, double *loss_out) {
    *examples_out = 0;
    *loss_out = 0;
    for (uint32_t seat = 0; seat < run->spec.n_seats; seat++) {
        const struct shmt_counters *c = run->backend->store->counters(run->job.store, seat);
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
static uint64_t steps_of(const struct shmt_run *run, uint64_t examples) {
    const struct shmt_spec *spec = &run->spec;
    const struct shmtrain_report *r = &run->report;
    const bool cut = r->n_epochs > 0 && r->epoch[r->n_epochs - 1].partial;
    const uint64_t whole = cut ? r->n_epochs - 1 : r->n_epochs;
    const uint64_t told = cut ? r->examples - r->epoch[r->n_epochs - 1].examples : r->examples;
    const uint64_t here = examples > told ? examples - told : 0;
    const uint64_t rest = steps_in(spec, here % spec->n_examples);
    return (whole + here / spec->n_examples) * shmt_spec_steps(spec) + shmt_min_u64(rest, shmt_spec_steps(spec));
}

uint64_t shmt_steps_told(const struct shmt_run *run) { return steps_of(run, run->report.examples); }

void shmt_steps_tick(struct shmt_run *run) {
    const uint64_t every = run->config->log_every, now_ns = shmt_now_ns(), first_ns = first_ns_of(run);
    struct shmt_steps *before = run->steps;
    struct shmtrain_steps now = {.size = sizeof(struct shmtrain_steps), .epochs = run->spec.epochs};
    double loss;
    if (every == 0 || first_ns == 0) return;
    add_up(run, &now.examples, &loss);
    now.examples += shmt_job_board(&run->job)->before_examples;
    now.step = steps_of(run, now.examples);
    if (now.step / every <= before->step / every || now.examples <= before->examples) return;
    const uint64_t since_ns = before->at_ns ? before->at_ns : first_ns;
    const double examples = (double)(now.examples - before->examples);
    now.epoch = (uint32_t)shmt_min_u64((now.step - 1) / shmt_spec_steps(&run->spec) + 1, now.epochs);
    now.seconds = now_ns > first_ns ? (double)(now_ns - first_ns) * 1e-9 : 0;
    now.loss = loss != 0 ? (loss - before->loss) / examples : NAN; /* 0: nobody reports any */
    now.examples_per_second = now_ns > since_ns ? examples / (double)(now_ns - since_ns) * 1e9 : 0;
    *before = (struct shmt_steps){.at_ns = now_ns, .step = now.step, .examples = now.examples, .loss = loss};
    shmt_metrics_steps(run, &now);
    if (run->listener.steps) run->listener.steps(run->listener.arg, &run->report, &now);
}
