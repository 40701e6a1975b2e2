/* What SGD takes that nobody names: see defaults.h. */
#include "api/defaults.h"

#include <math.h>
#include <string.h>

#include "api/fit.h"
#include "api/penalty.h"

#define EPOCHS        10
#define EPOCHS_OF_FEW 20
#define SLOWER        2 /* times that: where L2 sees to it that no noise is learned; and of ftrl, whose rates never come to 0 */
#define MANY_EXAMPLES 200000
#define FIT_EPOCHS    1000 /* steps; usual are 5 to 20, but for svm some hundred */

/* Chosen, or typed. */
static bool has_l2(const struct shmtrain_store *store, const struct shmtrain_model *model, uint64_t n_examples) {
    const struct shmt_config *c = &store->config;
    return shmt_penalty_is_chosen(store, model, n_examples) || c->l2 > 0 || !isnan(c->c);
}

uint64_t shmt_defaults_epochs(const struct shmtrain_store *store, const struct shmtrain_model *model, uint64_t n_examples) {
    const bool few = model && !store->is_generated && n_examples < MANY_EXAMPLES;
    if (store->config.epochs > 0) return store->config.epochs;
    if (store->fits) return FIT_EPOCHS;
    const bool slow = strcmp(store->config.optimizer, "ftrl") == 0 || has_l2(store, model, n_examples);
    return (few && n_examples < SHMT_PENALTY_FEW && slow ? SLOWER : 1) * (few ? EPOCHS_OF_FEW : EPOCHS);
}

/* What knows the parameters of a run while it goes on, or hands them to another one. */
static const char *const OF_OTHERS[] = {"checkpoint", "resume", "name", "init-from", NULL};

int shmt_defaults_scale(struct shmtrain_store *store, const struct shmtrain_model *model) {
    static const char *const SIZES[] = {"rate", "l1", "l2", "C", NULL};
    const struct shmt_config *c = &store->config;
    const char *other = shmt_config_any_given(c, OF_OTHERS);
    const bool asked = strcmp(c->scale, "yes") == 0,
               possible = shmt_model_is_fitted(model) && !other && !store->snapshots.wanted && !store->hooks.ask_stop;
    store->scales =
        possible && strcmp(c->scale, "no") != 0 && (asked || (!store->is_generated && !shmt_config_any_given(c, SIZES)));
    if (!asked || possible) return 0;
    if (other)
        return shmt_fail(
            &store->error, SHMTRAIN_E_USAGE,
            "--scale yes turns parameters into those for features as they are when the run is over: leave out --scale, or "
            "--%s",
            other);
    return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                     "--scale yes is for the models that come with shmtrain, without snapshots and hooks: leave it out");
}
