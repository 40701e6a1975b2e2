/* What a launcher of MPI says: see mpi_launch.h. Names of variables: Open MPI's manual of mpirun; the MPICH wiki's page on its process
 * manager (PMI 1 and 2, as Intel MPI and MVAPICH have it, and srun --mpi=pmi2); srun --mpi=pmix. */
#include "configuration/mpi_launch.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#include <shmtrain/hosts.h>

/* A number from 0 on; false: there is none. */
static bool read_number(const char *variable, uint32_t *out) {
    const char *text = getenv(variable);
    char *end;
    if (!text || text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    *out = (uint32_t)value;
    return errno == 0 && *end == '\0' && value <= INT_MAX;
}

bool shmt_mpi_launched(struct shmt_mpi_launch *out) {
    static const struct {
        const char *mpi, *rank, *n;
    } LAUNCHERS[] = {{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                     {"openmpi", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
                     {"mpich", "PMI_RANK", "PMI_SIZE"}};
    for (size_t i = 0; i < sizeof LAUNCHERS / sizeof *LAUNCHERS; i++) {
        *out = (struct shmt_mpi_launch){.mpi = LAUNCHERS[i].mpi};
        if (read_number(LAUNCHERS[i].rank, &out->rank) && read_number(LAUNCHERS[i].n, &out->n) && out->rank < out->n)
            return true;
    }
    return false;
}

int shmtrain_mpi_launched(uint32_t *rank_out, uint32_t *n_out) {
    struct shmt_mpi_launch launch;
    if (!rank_out || !n_out || !shmt_mpi_launched(&launch)) return 0;
    *rank_out = launch.rank;
    *n_out = launch.n;
    return 1;
}
