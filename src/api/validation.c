/* Validation of own worker functions: see validation.h. What calls the application's function is train/evaluate.c. */
#include "api/validation.h"

#include <stdlib.h>
#include <string.h>

#include "base/sized.h"

void shmt_validation_forget(struct shmtrain_store *store) {
    free((char *)(uintptr_t)store->validation.name); /* it is ours */
    store->validation = (struct shmtrain_validation){0};
}

int shmtrain_store_validate(struct shmtrain_store *store, const struct shmtrain_validation *validation) {
    struct shmtrain_validation v;
    int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    if (!validation) {
        shmt_validation_forget(store);
        return 0;
    }
    rc = shmt_sized_take(&v, sizeof v, validation, SHMT_FIRST_SIZE(struct shmtrain_validation, name), "validation",
                         &store->error);
    if (rc < 0) return rc;
    if (!v.score) return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "validation needs a function (score)");
    if (v.n_examples == 0 || v.n_examples > UINT32_MAX)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "validation has 1 to 4294967295 examples, not %llu",
                         (unsigned long long)v.n_examples);
    if (v.classifies > 1) return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "classifies is neither 0 nor 1");
    v.name = strdup(v.name ? v.name : "validation");
    if (!v.name) return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for the name of validation data");
    shmt_validation_forget(store);
    store->validation = v;
    return 0;
}

void shmt_validation_begin(struct shmtrain_store *store, shmtrain_worker *worker, void *arg) {
    const struct shmtrain_validation *v = &store->validation;
    store->job = (struct shmt_job){.worker = worker,
                                   .worker_arg = arg,
                                   .scorer = v->score,
                                   .scorer_arg = v->arg,
                                   .classifies = v->classifies != 0,
                                   .goal = {.validated = v->n_examples > 0}};
    if (v->n_examples == 0) return;
    free(store->valid_name);
    store->valid_name = strdup(v->name); /* the report outlives what is set for the next run */
    store->report.valid.name = store->valid_name ? store->valid_name : "";
    store->report.valid.examples = v->n_examples;
}
