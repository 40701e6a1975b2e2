/* shmtrain topo: what a run would do with the machine, without training. */
#include "cli/arguments.h"
#include "cli/files.h"
#include "cli/talk.h"
#include "cli/task.h"

int topo_run(struct shmtrain_store *store, const struct arguments *a) {
    const struct shmtrain_plan *plan;
    int status = 0;
    if (!task_has_part(store, a, &status)) return status;
    talk_listen(store);
    const char *data = files_named(a, 0, NULL);
    if (a->n_operands > 0 && !data) return 2;
    if (data)
        talk_catch_signals(store); /* reading can be stopped; else there is nothing to stop, and a signal ends it at once */
    const int rc = shmtrain_store_plan(store, data, &plan);
    if (rc < 0) return talk_fail(store, rc);
    return talk_print(a->json ? shmtrain_plan_json(plan) : shmtrain_plan_text(plan));
}
