/* What a launcher of MPI says of a process in its environment, before MPI has started. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct shmt_mpi_launch {
    const char *mpi; /* "openmpi" or "mpich": whose protocol the launcher speaks */
    uint32_t rank, n;
};

/* false: no launcher that we know has started this process. Reads the environment: not while another thread changes it. */
bool shmt_mpi_launched(struct shmt_mpi_launch *out);
