/* Judging the system: what the kernel does for us, OpenBLAS and OpenMP with their variables. See vitals.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/vitals.h"

/* ---- the kernel ---- */

static void judge_calls(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    const struct shmt_calls *call = &v->call;
    const uint32_t before = c->n;
    if (!call->memfd)
        shmt_checkup_add(c, SHMTRAIN_STOPS, "kernel",
                         v->filtered ? "docker run --security-opt seccomp=unconfined ..." : "df -h /dev/shm; free",
                         "cannot create shared memory: %s", call->memfd_refused);
    if (!call->ofd_locks)
        shmt_checkup_add(c, SHMTRAIN_STOPS, "kernel", "a Linux of 3.15 or later",
                         "no locks of open files (F_OFD_SETLK): runs with a name (--name) cannot start");
    if (!call->pidfd)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "kernel", "a Linux of 5.3 or later, or a container without a seccomp filter",
                         "no pidfd_open: a worker's death is noticed up to 50 ms late");
    if (!call->populate)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "kernel", "a Linux of 5.14 or later",
                         "no MADV_POPULATE_WRITE: the first pass over memory causes page faults");
    if (c->n == before)
        shmt_checkup_add(c, SHMTRAIN_FINE, "kernel", "", "%.60s: memfd with seals, pidfd, locks of open files, populate%s",
                         v->kernel, v->filtered ? " (seccomp filters)" : "");
}

/* ---- OpenBLAS, OpenMP ---- */

static void judge_blas(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    if (!v->blas[0])
        shmt_checkup_add(c, SHMTRAIN_STOPS, "BLAS",
                         getenv("SHMTRAIN_BLAS") ? "unset SHMTRAIN_BLAS" : "sudo apt-get install libopenblas0",
                         "softmax cannot run, everything else can: %.180s", v->blas_refused);
    else if (!v->blas_shared)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "BLAS", "sudo apt-get install libopenblas0-pthread",
                         "%s, the serial variant: --threads above 1 has no effect", v->blas);
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "BLAS", "", "%s", v->blas);
    if (v->blas[0] && !v->openmp)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "OpenMP", "sudo apt-get install libgomp1",
                         "not installed: --threads has no effect on dense models");
}

static const char *set_to(const char *variable) {
    const char *value = getenv(variable);
    return value && value[0] ? value : NULL;
}

/* What slows, whatever its value; NULL: none is set. */
static const struct variable {
    const char *name, *why;
} VARIABLES[] = {
    {"OPENBLAS_CORETYPE", "OpenBLAS uses that kernel instead of the one for this processor"},
    {"OMP_THREAD_LIMIT", "loops of --threads use no more threads than that"},
    {"OMP_PROC_BIND", "threads of several workers may share a core"},
    {"GOMP_CPU_AFFINITY", "threads of several workers share a core"},
    {"OMP_DYNAMIC", "loops of --threads may use fewer threads"},
};

/* Workers set the numbers of threads for themselves (math/blas.h, math/parallel.h). */
static void judge_variables(struct shmtrain_checkup *c) {
    const uint32_t before = c->n;
    char remedy[64];
    for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++) {
        const char *value = set_to(VARIABLES[i].name);
        if (!value || strcasecmp(value, "false") == 0) continue;
        snprintf(remedy, sizeof remedy, "unset %s", VARIABLES[i].name);
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "BLAS threads", remedy, "%s is %.40s: %s", VARIABLES[i].name, value,
                         VARIABLES[i].why);
    }
    const char *wait = set_to("OMP_WAIT_POLICY");
    if (wait && strcasecmp(wait, "active") == 0)
        shmt_checkup_add(c, SHMTRAIN_SLOWS, "BLAS threads", "unset OMP_WAIT_POLICY",
                         "OMP_WAIT_POLICY is active: waiting threads keep processors busy");
    if (c->n > before) return;
    const char *blas = set_to("OPENBLAS_NUM_THREADS"), *omp = set_to("OMP_NUM_THREADS");
    if (blas || omp)
        shmt_checkup_add(c, SHMTRAIN_FINE, "BLAS threads", "", "%s is %.40s, which does not matter: --threads decides",
                         blas ? "OPENBLAS_NUM_THREADS" : "OMP_NUM_THREADS", blas ? blas : omp);
    else
        shmt_checkup_add(c, SHMTRAIN_FINE, "BLAS threads", "", "no variable of OpenBLAS or OpenMP is set; --threads decides");
}

void shmt_judge_system(const struct shmt_vitals *v, struct shmtrain_checkup *c) {
    judge_calls(v, c);
    judge_blas(v, c);
    judge_variables(c);
}
