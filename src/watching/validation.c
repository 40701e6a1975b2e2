/* Validation of own worker functions: see validation.h. What calls the application's function is train/evaluate.c. */
#include "watching/validation.h"

#include <stdlib.h>
#include <string.h>

#include "base/sized.h"

void shmt_validation_forget(struct shmt_run *run) {
    free((char *)(uintptr_t)run->validation.name); /* it is ours */
    run->validation = (struct shmtrain_validation){0};
}

int shmt_validation_take(struct shmt_run *run, const struct shmtrain_validation *validation) {
    struct shmtrain_validation v;
    if (!validation) {
        shmt_validation_forget(run);
        return 0;
    }
    const int rc = shmt_sized_take(&v, sizeof v, validation, SHMT_FIRST_SIZE(struct shmtrain_validation, name), "validation",
                                   &run->call->error);
    if (rc < 0) return rc;
    if (!v.score) return shmt_refuse(&run->call->error, "validation needs a function (score)");
    if (v.n_examples == 0 || v.n_examples > UINT32_MAX)
        return shmt_refuse(&run->call->error, "validation has 1 to 4294967295 examples, not %llu",
                           (unsigned long long)v.n_examples);
    if (v.classifies > 1) return shmt_refuse(&run->call->error, "classifies is neither 0 nor 1");
    v.name = strdup(v.name ? v.name : "validation");
    if (!v.name) return shmt_no_memory(&run->call->error, "for the name of validation data");
    shmt_validation_forget(run);
    run->validation = v;
    return 0;
}

void shmt_validation_begin(struct shmt_run *run, shmtrain_worker *worker, void *arg) {
    const struct shmtrain_validation *v = &run->validation;
    run->job = (struct shmt_job){.worker = worker,
                                 .worker_arg = arg,
                                 .scorer = v->score,
                                 .scorer_arg = v->arg,
                                 .classifies = v->classifies != 0,
                                 .goal = {.validated = v->n_examples > 0}};
    if (v->n_examples == 0) return;
    free(run->valid_name);
    run->valid_name = strdup(v->name); /* the report outlives what is set for the next run */
    run->report.valid.name = run->valid_name ? run->valid_name : "";
    run->report.valid.examples = v->n_examples;
}
