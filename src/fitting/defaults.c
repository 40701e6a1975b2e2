/* What SGD takes that nobody names: see defaults.h. */
#include "fitting/defaults.h"

#include <math.h>

#include "fitting/fit.h"
#include "fitting/penalty.h"
#include "configuration/offered.h"

#define EPOCHS        10
#define EPOCHS_OF_FEW 20
#define SLOWER        2 /* times that: where L2 sees to it that no noise is learned; and of ftrl, whose rates never come to 0 */
#define MANY_EXAMPLES 200000
#define FIT_EPOCHS    1000 /* steps; usual are 5 to 20, but for svm some hundred */

/* Chosen, or typed. */
static bool has_l2(const struct shmt_run *run, const struct shmtrain_model *model, uint64_t n_examples) {
    const struct shmt_config *c = run->config;
    return shmt_penalty_is_chosen(run, model, n_examples) || c->l2 > 0 || !isnan(c->c);
}

uint64_t shmt_defaults_epochs(const struct shmt_run *run, const struct shmtrain_model *model, uint64_t n_examples) {
    const bool few = model && !run->is_generated && n_examples < MANY_EXAMPLES;
    if (run->config->epochs > 0) return run->config->epochs;
    if (run->fits) return FIT_EPOCHS;
    const bool slow = shmt_offered_rule(run->config, model) == SHMT_RULE_FTRL || has_l2(run, model, n_examples);
    return (few && n_examples < SHMT_PENALTY_FEW && slow ? SLOWER : 1) * (few ? EPOCHS_OF_FEW : EPOCHS);
}

/* What knows the parameters of a run while it goes on, or hands them to another one. */
static const char *const OF_OTHERS[] = {"checkpoint", "resume", "name", "init-from", NULL};

int shmt_defaults_scale(struct shmt_run *run, const struct shmtrain_model *model) {
    const struct shmt_config *c = run->config;
    const char *other = shmt_config_any_given(c, OF_OTHERS);
    const bool asked = c->scale == SHMT_SCALING_YES,
               possible = shmt_model_is_fitted(model) && !other && !run->wants_snapshots && !run->hooks.ask_stop;
    run->scales = possible && c->scale != SHMT_SCALING_NO && (asked || (!run->is_generated && !shmt_config_names_size(c)));
    if (!asked || possible) return 0;
    if (other)
        return shmt_refuse(
            &run->call->error,
            "--scale yes turns parameters into those for features as they are when the run is over: leave out --scale, or --%s",
            other);
    if (model && model->describe)
        return shmt_refuse(&run->call->error,
                           "--scale yes is for models of features alone: networks bring these on one scale by --normalise: "
                           "leave out --scale");
    return shmt_refuse(&run->call->error,
                       "--scale yes is for the models that come with shmtrain, without snapshots and hooks: leave it out");
}
