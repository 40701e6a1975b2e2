/* The carrier on MPI: frames go through a program of their own, which alone calls MPI (src/mpi), because MPI's state survives no fork and
 * differs from build to build. This end starts the program, and talks to it on a pair of sockets (mpi_stream.h). Who takes part, and as
 * which rank, says MPI's launcher; nothing is encrypted beyond what MPI does.
 *
 * Nothing is lost between two programs that live. MPI as Debian has it ends with its first process that dies, and then this carrier is of
 * no use any more. */
#pragma once

#include <stdbool.h>

#include "carriers/carrier.h"

struct shmt_mpi_spec {
    uint32_t self, n_hosts;     /* as the launcher's environment has them; MPI must say the same */
    const char *program;        /* its path */
    bool (*goes_on)(void *arg); /* asked while MPI starts, which takes until all hosts do it; false: given up */
    void *arg;
};

/* Starts the program, and waits until MPI has started on all hosts. Errors: _SYSTEM (no such program; MPI cannot start, and has said why;
 * other ranks than expected), _STOPPED, _MEMORY. */
int shmt_mpi_open(const struct shmt_mpi_spec *spec, struct shmt_carrier **out, struct shmt_error *e);

/* The name that a host has for MPI; valid as long as the carrier. */
const char *shmt_mpi_name_of(const struct shmt_carrier *carrier, uint32_t rank);
