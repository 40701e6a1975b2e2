/* L2 for steps of SGD: see penalty.h. */
#include "fitting/penalty.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fitting/fit.h"
#include "base/checked.h"
#include "configuration/offered.h"
#include "loading/weights.h"
#include "models/models.h"
#include "ps/replicas.h"
#include "segment/budget.h"
#include "solve/choose.h"
#include "solve/newton.h"
#include "sync/host.h"

#define FEWEST       50  /* examples: parts of fewer say nothing */
#define WORK         1e6 /* multiplications of an entry with a weight: those of the sample's examples */
#define LEAST_SAMPLE 2000
#define MOST_WORK    1e7 /* so that the sample is smaller where examples are long or classes are many ... */
#define LEAST_AT_ALL 500 /* ... but of fewer nothing is chosen, as it would take as long as a run */

/* How they are dealt, and how many parts are held out in turn: as many as are cheap, as a run of SGD is short; but of small samples,
 * which say little, most. */
#define PARTS        4
#define HELD_WORK    3e5 /* multiplications, as above, of all fits for one L2 */
#define HELD_OF_FEW  3
#define SMALL_SAMPLE 2000

bool shmt_penalty_is_chosen(const struct shmt_run *run, const struct shmtrain_model *model, uint64_t n_examples) {
    const struct shmt_config *c = run->config;
    const bool learned_further = c->init_from[0] != '\0' && !run->from; /* which goes before it */
    const enum shmt_rule_kind kind = shmt_offered_rule(c, model);
    const bool decays =
        (kind == SHMT_RULE_ADAMW || kind == SHMT_RULE_LAMB) && c->weight_decay != 0; /* which is what holds its weights back */
    return !run->fits && !run->is_generated && !decays && shmt_fit_may_choose(model) && n_examples >= FEWEST &&
           n_examples < SHMT_PENALTY_FEW && !learned_further && !shmt_config_names_size(c);
}

/* ---- the examples ---- */

/* Rows of their own for a sample, and for what is a matrix. */
struct rows {
    struct shmtrain_data data;
    uint64_t *start;
    uint32_t *id;
    float *value, *label, *weight;
};

static void free_rows(struct rows *rows) {
    free(rows->start);
    free(rows->id);
    free(rows->value);
    free(rows->label);
    free(rows->weight);
}

static uint64_t length_of(const struct shmtrain_data *data, uint64_t i) {
    uint64_t n = 0;
    if (!data->dense) return data->start[i + 1] - data->start[i];
    for (uint32_t j = 0; j < data->n_features; j++) n += data->dense[i * data->n_features + j] != 0;
    return n;
}

static uint64_t copy_row(const struct shmtrain_data *data, uint64_t i, const struct rows *out, uint64_t at) {
    const float *row = data->dense ? data->dense + i * data->n_features : NULL;
    for (uint32_t j = 0; row && j < data->n_features; j++) {
        if (row[j] == 0) continue;
        out->id[at] = j;
        out->value[at++] = row[j];
    }
    for (uint64_t from = row ? 0 : data->start[i]; !row && from < data->start[i + 1]; from++) {
        out->id[at] = data->id[from];
        out->value[at++] = data->value ? data->value[from] : 1;
    }
    return at;
}

static bool has_room(uint64_t bytes) {
    struct shmt_error e = {0};
    return shmt_budget_need(bytes, "the choice of L2", NULL, "", &e) == 0;
}

/* The sample, with weights whose mean is 1. false: no memory. */
static bool make_rows(const struct shmtrain_data *data, const uint32_t *train_example, const struct shmt_sample *sample,
                      double mean_weight, struct rows *out) {
    const uint64_t n = sample->n;
    uint64_t n_nonzeros = 0;
    for (uint64_t k = 0; k < n; k++) n_nonzeros += length_of(data, shmt_sample_at(sample, train_example, k));
    if (!has_room((n + 1) * sizeof *out->start + n * 2 * sizeof(float) + n_nonzeros * (sizeof *out->id + sizeof *out->value)))
        return false;
    out->start = malloc((n + 1) * sizeof *out->start);
    out->id = malloc(shmt_max_u64(1, n_nonzeros) * sizeof *out->id);
    out->value = malloc(shmt_max_u64(1, n_nonzeros) * sizeof *out->value);
    out->label = malloc(n * sizeof *out->label);
    out->weight = data->weight ? malloc(n * sizeof *out->weight) : NULL;
    if (!out->start || !out->id || !out->value || !out->label || (data->weight && !out->weight)) return false;
    uint64_t at = 0;
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t i = shmt_sample_at(sample, train_example, k);
        out->start[k] = at;
        out->label[k] = data->label[i];
        if (out->weight) out->weight[k] = (float)((double)data->weight[i] / mean_weight);
        at = copy_row(data, i, out, at);
    }
    out->start[n] = at;
    out->data = *data;
    out->data.dense = NULL;
    out->data.start = out->start;
    out->data.id = out->id;
    out->data.value = out->value;
    out->data.label = out->label;
    out->data.weight = out->weight;
    out->data.n_examples = n;
    out->data.n_nonzeros = at;
    return true;
}

/* Columns are numbered by those that occur in the sample: of millions, as hashes are, most would cost each step and change nothing. The
 * order stays. false: no memory. */
static bool gather_columns(struct rows *rows) {
    const uint32_t n = rows->data.n_features;
    uint32_t *place = calloc((size_t)n + 1, sizeof *place), used = 0;
    if (!place) return false;
    for (uint64_t at = 0; at < rows->data.n_nonzeros; at++) place[rows->id[at]] = 1;
    for (uint32_t j = 0; j < n; j++) {
        const uint32_t occurs = place[j];
        place[j] = used;
        used += occurs;
    }
    for (uint64_t at = 0; at < rows->data.n_nonzeros; at++) rows->id[at] = place[rows->id[at]];
    rows->data.n_features = used > 0 ? used : 1;
    free(place);
    return true;
}

/* ---- the choice ---- */

static void describe(const struct shmt_run *run, const struct shmtrain_model *model, const struct rows *rows, float *weight,
                     struct shmt_problem *out) {
    const struct shmtrain_settings *with = &run->job.settings;
    const struct shmtrain_data *data = &rows->data;
    const bool wide = model == &SHMT_MODEL_SOFTMAX;
    *out = (struct shmt_problem){.data = data,
                                 .n = data->n_examples,
                                 .n_all = data->n_examples,
                                 .n_columns = data->n_features,
                                 .bias = with->bias,
                                 .n_classes = wide ? with->n_classes : 1,
                                 .stride = data->n_features,
                                 .loss = shmt_fit_loss_of(model),
                                 .high = with->classes ? with->classes[with->n_classes - 1] : data->label_high,
                                 .tolerance = 1,
                                 .weight = weight,
                                 .classes = with->classes};
    if (wide) out->bias_weight = weight + (uint64_t)out->n_classes * out->stride;
    const double work = (double)data->n_nonzeros * out->n_classes, cheap = ceil(HELD_WORK / fmax(1, work));
    const uint64_t least = out->n < SMALL_SAMPLE ? HELD_OF_FEW : 1;
    out->n_parts = PARTS;
    out->n_held = (uint32_t)shmt_min_u64(PARTS, shmt_max_u64(least, (uint64_t)cheap));
    out->seed = run->config->seed;
}

/* By whoever stops the run, or by its time limit: the run ends as soon as it has begun, whatever L2 is. */
static bool is_over(struct shmt_run *run) {
    const double took = (double)(shmt_now_ns() - run->began_ns) * 1e-9;
    return shmt_stop_asked(run->call) || took >= run->config->time_limit; /* NaN: there is none */
}

/* Alone, phase by phase. false: no memory. */
static bool choose(struct shmt_run *run, const struct shmt_problem *p, const struct shmt_solve_plan *plan, void *memory,
                   struct shmt_choice *out) {
    struct shmt_solve_memory m;
    struct shmt_solve_state state;
    shmt_solve_memory_at(plan, memory, &m);
    shmt_newton_begin(p, false, &state);
    for (uint64_t round = 0; state.choice.open && !is_over(run); round++) {
        const struct shmt_solve_state before = state;
        const struct shmt_pass pass = {
            .problem = p, .plan = plan, .memory = &m, .state = &before, .round = round, .part = 0, .n_parts = 1};
        if (shmt_newton_work(&pass) < 0) return false;
        shmt_newton_next(&pass, &state);
    }
    *out = state.choice;
    return true;
}

/* Of ftrl L2 stands against the sum of all gradients. With so much for all updates of the run together it goes the way that
 * gradients lead in a time of 1 / l2, whose end is about where L2 leads (Ali, Kolter and Tibshirani 2019). */
static double for_rule(const struct shmt_spec *spec, const struct shmtrain_model *model, double l2) {
    const uint64_t together = !shmt_policy_is_live(&spec->policy) ? spec->batch : model->traits.pushes_tables ? spec->item : 1;
    const double updates = (double)shmt_ceil_div(spec->n_examples, together) * spec->epochs / shmt_replicas_averaged(spec);
    return spec->rule.kind == SHMT_RULE_FTRL ? l2 * updates : l2;
}

/* false: no memory. */
static bool choose_of(struct shmt_run *run, const struct shmtrain_model *model, const struct rows *rows,
                      struct shmt_penalty *out) {
    struct shmt_problem p;
    struct shmt_solve_plan plan;
    struct shmt_choice choice;
    const uint32_t n_classes = model == &SHMT_MODEL_SOFTMAX ? run->job.settings.n_classes : 1;
    const uint64_t n_weights = ((uint64_t)rows->data.n_features + 1) * n_classes;
    float *weight = calloc(n_weights, sizeof *weight);
    if (!weight) return false;
    describe(run, model, rows, weight, &p);
    const struct shmt_solve_sizes sizes = {.n = p.n,
                                           .n_nonzeros = rows->data.n_nonzeros,
                                           .n_columns = p.n_columns,
                                           .bias = p.bias,
                                           .n_classes = p.n_classes,
                                           .n_held = p.n_held,
                                           .has_values = true};
    shmt_solve_plan(&sizes, &plan);
    const uint64_t bytes = shmt_ceil_div(plan.bytes, SHMT_SOLVE_ALIGNMENT) * SHMT_SOLVE_ALIGNMENT;
    void *memory = has_room(bytes) ? aligned_alloc(SHMT_SOLVE_ALIGNMENT, bytes) : NULL;
    if (memory) memset(memory, 0, bytes);
    const bool done = memory && choose(run, &p, &plan, memory, &choice);
    if (done)
        *out = (struct shmt_penalty){.examples = p.n,
                                     .parts = p.n_parts,
                                     .held = p.n_held,
                                     .fits = choice.fits,
                                     .loss = choice.least,
                                     .l2 = shmt_choice_l2(choice.best_strength, run->spec.n_examples)};
    free(memory);
    free(weight);
    return done;
}

/* N l2 is what carries over from a sample to all. 0: the least one is too much work. */
static uint64_t sample_of(const struct shmt_run *run, const struct shmtrain_model *model, const struct shmtrain_data *data) {
    const uint64_t n = run->spec.n_examples;
    const double classes = model == &SHMT_MODEL_SOFTMAX ? (double)run->job.settings.n_classes : 1;
    const double entries = data->dense ? (double)data->n_features : (double)data->n_nonzeros / (double)data->n_examples;
    const double work = fmax(1, classes * entries); /* of an example */
    const double enough = fmin(fmax(LEAST_SAMPLE, WORK / work), fmax(LEAST_AT_ALL, MOST_WORK / work));
    const uint64_t sample = shmt_min_u64(n, (uint64_t)enough);
    return (double)sample * work > MOST_WORK ? 0 : sample;
}

void shmt_penalty_forget(struct shmt_run *run) { *run->penalty = (struct shmt_penalty){.loss = NAN}; }

int shmt_penalty_choose(struct shmt_run *run, const struct shmtrain_model *model, const struct shmtrain_data *data,
                        const uint32_t *train_example) {
    struct rows rows = {.start = NULL};
    shmt_penalty_forget(run);
    if (!shmt_penalty_is_chosen(run, model, run->spec.n_examples) || run->from) return 0;
    const struct shmt_weights_of trained = {train_example, run->spec.n_examples};
    const struct shmt_sample sample = {run->config->seed, sample_of(run, model, data), run->spec.n_examples};
    const double mean_weight = shmt_weights_mean(data, &trained);
    if (sample.n == 0) {
        run->spec.rule.l2 = 0;
        shmt_log(&run->call->log, "no L2 is chosen, as examples are long or classes are many: --l2 X names one");
        return 0;
    }
    const bool made = make_rows(data, train_example, &sample, mean_weight, &rows) && gather_columns(&rows) &&
                      choose_of(run, model, &rows, run->penalty);
    free_rows(&rows);
    if (!made) shmt_log(&run->call->log, "there is no memory for the choice of L2: it is 0");
    if (!(run->penalty->loss < INFINITY)) shmt_penalty_forget(run);
    run->penalty->l2 *= mean_weight; /* a factor that all weights have in common changes nothing */
    run->spec.rule.l2 = (float)for_rule(&run->spec, model, run->penalty->l2);
    return 0;
}

void shmt_penalty_describe(const struct shmt_run *run, struct shmtrain_report *out) {
    const struct shmt_penalty *p = run->penalty;
    if (run->fits || p->examples == 0) return;
    out->choice_examples = p->examples;
    out->choice_parts = p->parts;
    out->choice_held = p->held;
    out->choice_fits = out->choice_most_fits = p->fits;
    out->choice_loss = p->loss;
}
