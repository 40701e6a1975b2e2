/* Looking for libraries: see probe.h. */
#include "workers/probe.h"

#include <stdio.h>
#include <sys/mman.h>

#include "workers/drive.h"
#include "math/blas.h"
#include "math/parallel.h"
#include "models/models.h"

int shmt_probe_look(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct shmt_found_libraries *found = arg;
    (void)rank;
    (void)team;
    const int rc = shmt_blas_open(e);
    snprintf(found->blas, sizeof found->blas, "%s", shmt_blas_name());
    found->shared = shmt_blas_is_shared();
    found->openmp = found->wants_threads && shmt_parallel_open();
    return rc;
}

/* Workers of this process load the libraries into it; so does this thread, which may still be alone in it. */
static int look_by_worker(struct shmt_call *call, const struct shmt_crew *crew, struct shmt_found_libraries *found) {
    const struct shmt_team_spec spec = {
        .kind = crew->kind, .n = 1, .body = shmt_probe_look, .arg = found, .what = "loading OpenBLAS"};
    if (crew->kind->shares_process) return shmt_probe_look(found, 0, NULL, &call->error);
    return shmt_drive(call, &spec, &(struct shmt_driver){0});
}

static void lower_threads(const struct shmt_call *call, const struct shmt_found_libraries *found, struct shmt_crew *crew) {
    const bool in_one_process = crew->n_threads > 1 || (crew->kind->shares_process && crew->n_workers > 1);
    if (in_one_process && !found->shared)
        shmt_log(&call->log,
                 "this OpenBLAS lets only one thread of a process multiply at a time: install libopenblas0-pthread");
    if (crew->n_threads == 1 || (found->shared && found->openmp)) return;
    if (!found->openmp)
        shmt_log(&call->log, "each worker has 1 of %u threads, because there is no OpenMP: install libgomp1", crew->n_threads);
    crew->n_threads = 1;
}

int shmt_probe_libraries(struct shmt_run *run, const struct shmtrain_model *model, struct shmt_crew *crew) {
    if (!model->traits.blas) return 0;
    struct shmt_found_libraries *found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return shmt_fail_errno(&run->call->error, "not enough memory to look for OpenBLAS");
    found->wants_threads = crew->n_threads > 1;
    const int rc = look_by_worker(run->call, crew, found);
    if (rc == 0) {
        snprintf(run->blas, sizeof run->blas, "%s", found->blas);
        lower_threads(run->call, found, crew);
    }
    munmap(found, sizeof *found);
    return rc;
}
