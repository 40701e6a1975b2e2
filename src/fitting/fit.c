/* Exact fits: see fit.h. */
#include "fitting/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fitting/defaults.h"
#include "fitting/fit_keep.h"
#include "base/checked.h"
#include "base/random.h"
#include "configuration/offered.h"
#include "models/models.h"
#include "solve/choose.h"
#include "workers/deaths.h"

#define DEFAULT_TOLERANCE 1e-3

/* What is chosen is chosen from so many examples that one step of all its fits is this much work, but not from fewer than LEAST_SAMPLE,
 * from more than MOST_SAMPLE only where that is a small share of all. Then one of SAMPLE_PARTS parts is held out. */
#define SAMPLE_WORK  2e7 /* multiplications of an entry with a weight */
#define LEAST_SAMPLE 10000
#define MOST_SAMPLE  50000
#define SAMPLE_SHARE 20
#define SAMPLE_PARTS 10
#define OF_SAMPLE    1
/* Without a choice: from so many examples on, a fit begins where that of a part of them ends, if that has so many for each number that is
 * fitted. Of fewer the minimum is elsewhere: with RCV1's 47,000 columns a fit that began there took twice as long. */
#define WARM_FROM    4000
#define WARM_SHARE   8
#define WARM_COLUMNS 8

static bool is_asked_for(const struct shmt_config *config) { return !isnan(config->tolerance); }

/* What says how steps are made, or that workers do not wait for each other. */
static const char *const OF_STEPS[] = {"optimizer",  "rate",      "schedule",        "power",   "decay-every", "decay-by",
                                       "warmup",     "momentum",  "beta2",           "epsilon", "beta",        "batch",
                                       "chunks",     "item",      "group",           "slow",    "rho",         "weight-decay",
                                       "clip-value", "clip-norm", "staleness-aware", NULL};
static const char *const OF_MODES[] = {"write", "staleness",  "quorum",      "late",        "replicas", "merge-every",
                                       "merge", "count-lost", "race-window", "cache-pulls", NULL};

/* What a fit can have, or its end, but nobody means a fit who asks for it. */
static const char *const OF_SGD[] = {"epochs",    "steps", "patience", "target-loss", "log-every",
                                     "init-from", "name",  "trace",    NULL};

bool shmt_model_is_fitted(const struct shmtrain_model *model) {
    return model == &SHMT_MODEL_LOGISTIC || model == &SHMT_MODEL_LINEAR || model == &SHMT_MODEL_SVM ||
           model == &SHMT_MODEL_SOFTMAX;
}

/* Whether the fit may choose L2. Of svm, dual ascent cannot go on from another L2. */
bool shmt_fit_may_choose(const struct shmtrain_model *model) {
    return model && shmt_model_is_fitted(model) && model != &SHMT_MODEL_SVM;
}

/* L1 is for one score of an example that is smooth. */
static bool may_have_l1(const struct shmtrain_model *model) {
    return model == &SHMT_MODEL_LOGISTIC || model == &SHMT_MODEL_LINEAR;
}

/* Nothing is chosen behind the back of who types L1 or L2; --l2 0 is typed, too. */
static bool chooses(const struct shmt_config *c, const struct shmtrain_model *model) {
    return shmt_fit_may_choose(model) && isnan(c->c) && !shmt_config_is_given(c, "l2") && !(c->l1 > 0);
}

/* Without L1 or L2 there may be no optimum. */
static bool is_bounded(const struct shmt_config *c, const struct shmtrain_model *model) {
    return shmt_l2_of_config(c, model, 1) > 0 || c->l1 > 0 || chooses(c, model);
}

/* Nobody has said how the model is to be learned, nor asked for what steps of SGD alone have. Generated data is there to show the
 * store at work. Fits of svm may take very long, and L2 cannot be chosen. */
static bool is_default(const struct shmt_run *run, const struct shmtrain_model *model) {
    const struct shmt_config *c = run->config;
    if (!shmt_fit_may_choose(model) || run->is_generated || c->keep == SHMT_KEEP_BEST || c->parsed.hosts.n > 1) return false;
    if (run->from && !shmt_fit_resumes_from(run)) return false; /* of steps of SGD, which goes on with these */
    if (!is_bounded(c, model) || (c->l1 > 0 && (!may_have_l1(model) || c->scale == SHMT_SCALING_YES))) return false;
    return strcmp(c->mode, "auto") == 0 && !shmt_config_any_given(c, OF_STEPS) && !shmt_config_any_given(c, OF_MODES) &&
           !shmt_config_any_given(c, OF_SGD) && c->on_death != SHMT_DEATH_CONTINUES;
}

/* In live modes a fit is dual ascent by all workers at once. */
static enum shmt_solve_live live_of(const struct shmt_config *c) {
    return strcmp(c->mode, "hogwild") == 0 ? SHMT_LIVE_RACY : strcmp(c->mode, "async") == 0 ? SHMT_LIVE_ATOMIC : SHMT_LIVE_NO;
}

/* Which has no weights of 0, goes on from no other L2, and is of one score of an example. */
static int check_live(struct shmt_call *call, const struct shmt_config *c, const struct shmtrain_model *model) {
    struct shmt_error *e = &call->error;
    if (live_of(c) == SHMT_LIVE_NO) return 0;
    if (model == &SHMT_MODEL_SOFTMAX)
        return shmt_refuse(e, "--tolerance with --mode %s is for logistic, svm and linear: leave out --mode", c->mode);
    if (c->l1 > 0) return shmt_refuse(e, "--tolerance with --mode %s is for L2 alone: leave out --mode or --l1", c->mode);
    if (c->scale == SHMT_SCALING_YES)
        return shmt_refuse(e, "--tolerance with --mode %s is of features as they are: leave out --mode or --scale", c->mode);
    if (chooses(c, model))
        return shmt_refuse(e, "--tolerance with --mode %s does not choose L2: add --C X or --l2 X, or leave out --mode",
                           c->mode);
    return 0;
}

static int check_options(struct shmt_call *call, const struct shmt_config *c, const struct shmtrain_model *model) {
    struct shmt_error *e = &call->error;
    const char *step = shmt_config_any_given(c, OF_STEPS);
    const char *mode = shmt_config_any_given(c, OF_MODES);
    if (step)
        return shmt_refuse(e, "--tolerance takes steps of its own, which have no %s: leave out --%s or --tolerance", step,
                           step);
    if (mode || (strcmp(c->mode, "auto") != 0 && strcmp(c->mode, "sync") != 0 && live_of(c) == SHMT_LIVE_NO))
        return shmt_refuse(e,
                           "with --tolerance all workers take each step together, in the modes sync, async and hogwild: leave "
                           "out --%s or --tolerance",
                           mode ? mode : "mode");
    const int rc = check_live(call, c, model);
    if (rc < 0) return rc;
    if (c->init_from[0] != '\0' && live_of(c) != SHMT_LIVE_NO)
        return shmt_refuse(
            e, "--tolerance with --mode %s begins at nothing, as all dual ascent: leave out --init-from, or --mode", c->mode);
    if (c->init_from[0] != '\0' && model == &SHMT_MODEL_SVM)
        return shmt_refuse(e,
                           "--tolerance with svm begins at nothing, as all dual ascent: leave out --init-from, or --tolerance");
    if (c->scale == SHMT_SCALING_YES && (model == &SHMT_MODEL_SVM || c->l1 > 0))
        return shmt_refuse(e, "--scale is for logistic, softmax and linear with L2 alone: leave it out");
    if (c->keep == SHMT_KEEP_BEST)
        return shmt_refuse(e, "--tolerance proves the last epoch's parameters: leave out --keep best or --tolerance");
    if (shmt_config_is_given(c, "guests") && c->guests > 0)
        return shmt_refuse(
            e, "with --tolerance nobody can join a run, but others can watch one with a --name: leave out --guests");
    if (c->on_death == SHMT_DEATH_CONTINUES)
        return shmt_refuse(e, "with --tolerance a run needs all its workers: use --on-death respawn, or abort");
    return 0;
}

/* Of a fit that was asked for. */
static int check_asked(struct shmt_call *call, const struct shmt_config *c, const struct shmtrain_model *model) {
    struct shmt_error *e = &call->error;
    if (!shmt_model_is_fitted(model))
        return shmt_refuse(e, "--tolerance is for the models logistic, softmax, svm and linear, not for %.60s", model->name);
    if (c->l1 > 0 && !may_have_l1(model))
        return shmt_refuse(e, "--tolerance is for %.60s with L2 alone: leave out --l1", model->name);
    if (!is_bounded(c, model))
        return shmt_refuse(e, "--tolerance needs L2 or L1, without which there may be no optimum: add --C X, --l2 X or --l1 X");
    return check_options(call, c, model);
}

int shmt_fit_check(struct shmt_run *run, const struct shmtrain_model *model, const char *source) {
    const struct shmt_config *c = run->config;
    struct shmt_error *e = &run->call->error;
    run->fits = run->scales = false;
    run->is_generated = strncmp(source, "builtin:", 8) == 0;
    if (!isnan(c->c) && shmt_offered_rule(c, model) == SHMT_RULE_FTRL)
        return shmt_refuse(e, "--C is of the mean loss, and ftrl sums losses: use --l2 with --optimizer ftrl");
    if (!isnan(c->c) && c->l2 > 0) return shmt_refuse(e, "--C and --l2 both say how large L2 is: leave out one of them");
    const int rc = is_asked_for(run->config) ? check_asked(run->call, run->config, model) : 0;
    if (rc < 0) return rc;
    run->fits = is_asked_for(run->config) || is_default(run, model);
    return run->fits ? 0 : shmt_defaults_scale(run, model);
}

int shmt_fit_refuse(struct shmt_run *run) {
    run->fits = run->scales = run->is_generated = false;
    if (run->config->scale == SHMT_SCALING_YES)
        return shmt_refuse(&run->call->error, "--scale is for models on data, not for worker functions");
    if (run->config->keep == SHMT_KEEP_BEST)
        return shmt_refuse(&run->call->error, "--keep best is for models on data, not for worker functions");
    if (!is_asked_for(run->config)) return 0;
    return shmt_refuse(&run->call->error, "--tolerance is for models on data, not for worker functions");
}

double shmt_l2_of_config(const struct shmt_config *c, const struct shmtrain_model *model, uint64_t n_examples) {
    const double halves = model == &SHMT_MODEL_LINEAR ? 2 : 1;
    return isnan(c->c) ? c->l2 : 1 / (halves * c->c * (double)n_examples);
}

enum shmt_solve_loss shmt_fit_loss_of(const struct shmtrain_model *model) {
    return model == &SHMT_MODEL_LOGISTIC  ? SHMT_SOLVE_LOGISTIC
           : model == &SHMT_MODEL_SVM     ? SHMT_SOLVE_HINGE
           : model == &SHMT_MODEL_SOFTMAX ? SHMT_SOLVE_SOFTMAX
                                          : SHMT_SOLVE_SQUARED;
}

static enum shmt_solve_scale scale_of(const struct shmt_config *c, const struct shmtrain_model *model) {
    if (c->scale == SHMT_SCALING_YES) return SHMT_SCALE_YES;
    return c->scale == SHMT_SCALING_AUTO && chooses(c, model) ? SHMT_SCALE_CHOSEN : SHMT_SCALE_NO;
}

/* So many examples are the sample; 0: a choice is made from all. */
static uint64_t sample_of(const struct shmt_problem *p, uint64_t n_nonzeros) {
    const double work = (double)n_nonzeros * p->n_classes / (double)shmt_max_u64(1, p->n); /* of an example */
    const double enough = fmin(MOST_SAMPLE, fmax(LEAST_SAMPLE, SAMPLE_WORK / fmax(work, 1)));
    const uint64_t n = shmt_max_u64((uint64_t)enough, p->n / SAMPLE_SHARE);
    return p->n > n ? n : 0;
}

/* So many examples are fitted first, for a point to begin with; 0: all are at once. Dual ascent begins at nothing; and where the Hessian
 * is at hand, the least squares' minimum is one step away. */
static uint64_t warm_sample_of(const struct shmt_run *run, const struct shmt_problem *p) {
    const bool at_once = p->loss == SHMT_SOLVE_SQUARED && p->l1 == 0 && p->n_columns <= SHMT_SOLVE_DIRECT;
    if (p->loss == SHMT_SOLVE_HINGE || p->live != SHMT_LIVE_NO || at_once || p->n < WARM_FROM) return 0;
    if (shmt_fit_resumes_from(run) || run->config->init_from[0] != '\0') return 0;
    const uint64_t n = p->n / WARM_SHARE;
    return n / WARM_COLUMNS >= (uint64_t)p->n_columns * p->n_classes ? n : 0;
}

/* How examples are dealt, and how many of the parts are held out. Of many, fewer say enough. */
static void plan_choice(const struct shmt_config *config, struct shmt_problem *p, uint64_t n_sample) {
    static const struct {
        uint64_t below;
        uint32_t parts, held;
    } DEAL[] = {{2000, 5, 5}, {20000, 3, 3}, {UINT64_MAX, 5, 2}};
    size_t i = 0;
    while (p->n >= DEAL[i].below) i++;
    p->n_parts = n_sample > 0 ? SAMPLE_PARTS : DEAL[i].parts;
    p->n_held = n_sample > 0 ? 1 : DEAL[i].held;
    p->seed = config->seed;
}

static void set_room(struct shmt_run *run) {
    struct shmt_fit *fit = run->fit;
    fit->offset = shmt_ceil_div(run->job.board.bytes, SHMT_SOLVE_ALIGNMENT) * SHMT_SOLVE_ALIGNMENT;
    fit->sample_offset = fit->offset + fit->plan.bytes;
    fit->keep_offset = fit->sample_offset + (fit->samples ? fit->sample_plan.row_bytes : 0);
    run->spec.board_bytes = fit->keep_offset + (fit->keeps ? fit->keep.bytes : 0);
}

static void plan_sample(struct shmt_fit *fit, uint64_t n, uint64_t n_nonzeros) {
    shmt_solve_plan_sample(&fit->plan, n, n_nonzeros, &fit->sample_plan);
    fit->samples = true;
}

int shmt_fit_plan(struct shmt_run *run, const struct shmtrain_model *model, const struct shmt_load *train) {
    struct shmt_fit *fit = run->fit;
    struct shmt_spec *spec = &run->spec;
    const uint32_t bias = run->job.settings.bias, columns = train->data.n_features;
    const uint32_t n_classes = model == &SHMT_MODEL_SOFTMAX ? run->job.settings.n_classes : 1;
    if (!run->fits) return 0;
    if (spec->n_examples > UINT32_MAX) return shmt_refuse(&run->call->error, "at most %u examples are possible", UINT32_MAX);
    shmt_fit_free(fit);
    fit->problem =
        (struct shmt_problem){.n = spec->n_examples,
                              .n_all = spec->n_examples,
                              .n_columns = columns,
                              .bias = bias,
                              .n_classes = n_classes,
                              .stride = columns,
                              .loss = shmt_fit_loss_of(model),
                              .l2 = shmt_l2_of_config(run->config, model, spec->n_examples),
                              .l1 = run->config->l1,
                              .tolerance = isnan(run->config->tolerance) ? DEFAULT_TOLERANCE : run->config->tolerance};
    fit->problem.scale = scale_of(run->config, model);
    fit->problem.live = is_asked_for(run->config) ? live_of(run->config) : SHMT_LIVE_NO;
    const bool chosen = shmt_fit_resumes_from(run) != NULL; /* by the run that this one goes on from, or nothing was */
    uint64_t n_sample = chooses(run->config, model) ? sample_of(&fit->problem, train->totals.n_nonzeros) : 0;
    if (chooses(run->config, model)) plan_choice(run->config, &fit->problem, n_sample);
    if (chooses(run->config, model)) fit->chosen_from = n_sample > 0 ? n_sample : spec->n_examples;
    if (chosen) n_sample = 0;
    if (!chooses(run->config, model)) n_sample = warm_sample_of(run, &fit->problem);
    const struct shmt_solve_sizes sizes = {.n = spec->n_examples,
                                           .n_nonzeros = train->totals.n_nonzeros,
                                           .n_columns = columns,
                                           .bias = bias,
                                           .n_classes = n_classes,
                                           .n_held = chosen ? 0 : fit->problem.n_held,
                                           .has_scales = fit->problem.scale != SHMT_SCALE_NO,
                                           .has_values = !train->totals.all_ones,
                                           .is_hinge = model == &SHMT_MODEL_SVM,
                                           .is_live = fit->problem.live != SHMT_LIVE_NO,
                                           .has_l1 = fit->problem.l1 > 0};
    shmt_solve_plan(&sizes, &fit->plan);
    if (n_sample > 0) plan_sample(fit, n_sample, sizes.n_nonzeros / (sizes.n / n_sample)); /* about as many */
    fit->keeps = spec->pauses.allowed && run->config->checkpoint[0] != '\0';
    shmt_keep_plan(&fit->plan, &fit->keep);
    set_room(run);
    spec->fits = true;
    spec->batch = (uint32_t)shmt_min_u64(spec->n_examples, UINT32_C(1) << 30); /* one update is an epoch, for who counts them */
    spec->n_chunks = 1;
    return 0;
}

uint64_t shmt_sample_at(const struct shmt_sample *sample, const uint32_t *train_example, uint64_t k) {
    const uint64_t from = k * sample->all / sample->n, to = (k + 1) * sample->all / sample->n;
    const uint64_t i = from + shmt_below(shmt_hash64(sample->seed, k, OF_SAMPLE, 0), to - from); /* not as parts are dealt */
    return train_example ? train_example[i] : i;
}

int shmt_fit_sample(struct shmt_run *run, const struct shmtrain_data *data, const uint32_t *train_example) {
    struct shmt_fit *fit = run->fit;
    uint64_t n_nonzeros = 0;
    if (!run->fits || !fit->samples) return 0;
    fit->drawn = malloc(fit->sample_plan.of.n * sizeof *fit->drawn);
    if (!fit->drawn) return shmt_no_memory(&run->call->error, "for a sample of the examples");
    const struct shmt_sample sample = {run->config->seed, fit->sample_plan.of.n, fit->problem.n};
    for (uint64_t k = 0; k < sample.n; k++) {
        fit->drawn[k] = (uint32_t)shmt_sample_at(&sample, train_example, k);
        n_nonzeros += data->start[fit->drawn[k] + 1] - data->start[fit->drawn[k]];
    }
    plan_sample(fit, fit->sample_plan.of.n, n_nonzeros);
    set_room(run);
    return 0;
}

bool shmt_fit_give_up(struct shmt_run *run, const struct shmtrain_model *model) {
    if (!run->fits || is_asked_for(run->config) || shmt_fit_resumes_from(run)) return false;
    run->fits = false;
    run->call->error = (struct shmt_error){0};
    shmt_fit_free(run->fit);
    (void)shmt_defaults_scale(run, model); /* nothing is in its way where a fit was possible */
    shmt_log(&run->call->log, "an exact fit needs more memory than there is: the model takes steps of SGD instead");
    return true;
}

void shmt_fit_free(struct shmt_fit *fit) {
    free(fit->drawn);
    *fit = (struct shmt_fit){0};
}

void shmt_fit_begin(struct shmt_run *run) {
    struct shmt_problem *p = &run->fit->problem;
    if (!run->fits || !run->job.model) return;
    p->data = run->job.train;
    p->example = run->job.train_example;
    p->high = run->job.settings.classes ? run->job.settings.classes[run->job.settings.n_classes - 1] : p->data->label_high;
    p->weight = shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_WEIGHT);
    p->classes = run->job.settings.classes;
    p->bias_weight = p->bias && p->loss == SHMT_SOLVE_SOFTMAX
                         ? run->backend->store->array(run->job.store, SHMT_ARRAY_WEIGHT, 1, 0).at
                         : NULL;
    run->fit->sample = run->fit->problem;
    if (run->fit->samples) {
        run->fit->sample.n = run->fit->sample_plan.of.n;
        run->fit->sample.example = run->fit->drawn;
    }
    run->job.fit = run->fit;
}

void shmt_fit_describe(const struct shmt_run *run, struct shmtrain_report *out) {
    const struct shmt_fit *fit = run->fit;
    out->optimizer = "exact";
    if (fit->problem.live != SHMT_LIVE_NO) {
        out->mode = fit->problem.live == SHMT_LIVE_RACY ? "hogwild" : "async";
        out->write = shmt_write_name(fit->problem.live == SHMT_LIVE_RACY ? SHMT_WRITE_RACY : SHMT_WRITE_ATOMIC);
    }
    out->schedule = "none";
    out->l1 = fit->problem.l1;
    out->l2 = fit->problem.l2;
    out->tolerance = fit->problem.tolerance;
    out->scaled = fit->problem.scale == SHMT_SCALE_YES;
    out->choice_examples = fit->chosen_from;
    out->choice_parts = fit->problem.n_parts;
    out->choice_held = fit->problem.n_held;
    out->choice_most_fits = shmt_choice_most_fits(&fit->problem);
}

void shmt_fit_report(const struct shmt_run *run, struct shmtrain_report *out) {
    struct shmt_solve_memory memory;
    if (!run->job.fit || run->fit->problem.n_held == 0) return;
    unsigned char *board = shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_BOARD);
    shmt_solve_memory_at(&run->fit->plan, board + run->fit->offset, &memory);
    out->choice_fits = load_relaxed(&memory.note->fits); /* for display */
    if (out->n_epochs == 0) return;
    out->l2 = memory.note->l2;
    out->scaled = memory.note->scaled;
    out->choice_loss = memory.note->loss < INFINITY ? memory.note->loss : NAN;
}
