/* Exact fits: see fit.h. */
#include "api/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/models.h"

static bool is_asked_for(const struct shmtrain_store *store) { return !isnan(store->config.tolerance); }

/* What says how steps are made, or that workers do not wait for each other. */
static const char *const OF_STEPS[] = {"optimizer", "rate",     "schedule", "power",   "decay-every", "decay-by",
                                       "warmup",    "momentum", "beta2",    "epsilon", "beta",        "batch",
                                       "chunks",    "item",     "group",    "slow"};
static const char *const OF_MODES[] = {"write",    "staleness",   "quorum", "late",
                                       "replicas", "merge-every", "merge",  "count-lost"};

static const char *any_given(const struct shmt_config *c, const char *const *option, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (shmt_config_is_given(c, option[i])) return option[i];
    return NULL;
}

static int check_options(struct shmtrain_store *store) {
    const struct shmt_config *c = &store->config;
    struct shmt_error *e = &store->error;
    const char *step = any_given(c, OF_STEPS, sizeof OF_STEPS / sizeof *OF_STEPS);
    const char *mode = any_given(c, OF_MODES, sizeof OF_MODES / sizeof *OF_MODES);
    if (step)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "--tolerance takes steps of its own, which have no %s: leave out --%s or --tolerance", step, step);
    if (mode || (strcmp(c->mode, "auto") != 0 && strcmp(c->mode, "sync") != 0))
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "with --tolerance all workers take each step together, as in sync: leave out --%s or --tolerance",
                         mode ? mode : "mode");
    if (c->checkpoint[0] != '\0')
        return shmt_fail(
            e, SHMTRAIN_E_USAGE,
            "with --tolerance a run writes no checkpoints: leave out --checkpoint; a model of it can be gone on from "
            "with --init-from");
    if (store->snapshots.wanted)
        return shmt_fail(
            e, SHMTRAIN_E_USAGE,
            "with --tolerance a run takes no snapshots: leave it out, or call shmtrain_store_will_snapshot(store, 0)");
    if (c->name[0] != '\0')
        return shmt_fail(e, SHMTRAIN_E_USAGE, "with --tolerance nobody can join or watch a run: leave out --name");
    if (strcmp(c->on_death, "continue") == 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "with --tolerance a run needs all its workers: use --on-death respawn, or abort");
    return 0;
}

int shmt_fit_check(struct shmtrain_store *store, const struct shmtrain_model *model) {
    const struct shmt_config *c = &store->config;
    struct shmt_error *e = &store->error;
    const double l2 = shmt_l2_of_config(c, model, 1);
    store->fits = false;
    if (!isnan(c->c) && strcmp(c->optimizer, "ftrl") == 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "--C is of the mean loss, and ftrl sums losses: use --l2 with --optimizer ftrl");
    if (!isnan(c->c) && c->l2 > 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "--C and --l2 both say how large L2 is: leave out one of them");
    if (!is_asked_for(store)) return 0;
    if (model != &SHMT_MODEL_LOGISTIC && model != &SHMT_MODEL_LINEAR && model != &SHMT_MODEL_SVM)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "--tolerance is for the models logistic, svm and linear, not for %.60s",
                         model->name);
    if (c->l1 > 0 && model == &SHMT_MODEL_SVM)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "--tolerance is for svm with L2 alone: leave out --l1");
    if (!(l2 > 0) && !(c->l1 > 0))
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "--tolerance needs L2 or L1, without which there may be no optimum: add --C X, --l2 X or --l1 X");
    const int rc = check_options(store);
    if (rc == 0) store->fits = true;
    return rc;
}

int shmt_fit_refuse(struct shmtrain_store *store) {
    store->fits = false;
    if (!is_asked_for(store)) return 0;
    return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "--tolerance is for models on data, not for worker functions");
}

double shmt_l2_of_config(const struct shmt_config *c, const struct shmtrain_model *model, uint64_t n_examples) {
    const double halves = model == &SHMT_MODEL_LINEAR ? 2 : 1;
    return isnan(c->c) ? c->l2 : 1 / (halves * c->c * (double)n_examples);
}

static enum shmt_solve_loss loss_of(const struct shmtrain_model *model) {
    return model == &SHMT_MODEL_LOGISTIC ? SHMT_SOLVE_LOGISTIC
           : model == &SHMT_MODEL_SVM    ? SHMT_SOLVE_HINGE
                                         : SHMT_SOLVE_SQUARED;
}

int shmt_fit_plan(struct shmtrain_store *store, const struct shmtrain_model *model, const struct shmt_load *train) {
    struct shmt_fit *fit = &store->fit;
    struct shmt_spec *spec = &store->spec;
    const uint32_t bias = store->job.settings.bias, columns = train->data.n_features;
    if (!store->fits) return 0;
    if (spec->n_examples > UINT32_MAX)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "--tolerance is for at most %u examples", UINT32_MAX);
    const struct shmt_solve_sizes sizes = {.n = spec->n_examples,
                                           .n_nonzeros = train->totals.n_nonzeros,
                                           .n_columns = columns,
                                           .bias = bias,
                                           .has_values = !train->totals.all_ones};
    *fit = (struct shmt_fit){0};
    shmt_solve_plan(&sizes, &fit->plan);
    fit->problem = (struct shmt_problem){.n = spec->n_examples,
                                         .n_columns = columns,
                                         .bias = bias,
                                         .loss = loss_of(model),
                                         .l2 = shmt_l2_of_config(&store->config, model, spec->n_examples),
                                         .l1 = store->config.l1,
                                         .tolerance = store->config.tolerance};
    fit->offset = shmt_ceil_div(store->job.board.bytes, SHMT_SOLVE_ALIGNMENT) * SHMT_SOLVE_ALIGNMENT;
    spec->board_bytes = fit->offset + fit->plan.bytes;
    spec->batch = (uint32_t)shmt_min_u64(spec->n_examples, UINT32_C(1) << 30); /* one update is an epoch, for who counts them */
    spec->n_chunks = 1;
    return 0;
}

void shmt_fit_begin(struct shmtrain_store *store) {
    struct shmt_problem *p = &store->fit.problem;
    if (!store->fits || !store->job.model) return;
    p->data = store->job.train;
    p->example = store->job.train_example;
    p->high =
        store->job.settings.classes ? store->job.settings.classes[store->job.settings.n_classes - 1] : p->data->label_high;
    p->weight = store->ops->weight(store->job.store, 0);
    store->job.fit = &store->fit;
}
