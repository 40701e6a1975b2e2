/* The program that calls MPI for a host's link (src/mpi): which one there is; and whether this process calls MPI itself. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

/* Its path, for the MPI of this name ("openmpi", "mpich"): beside the library or the program, as they are built, or where they are
 * installed (libexec/shmtrain). Errors: _SYSTEM, this shmtrain was built without it. Thread-safe. */
int shmt_mpi_program_find(const char *mpi, char out[PATH_MAX], struct shmt_error *e);

/* Whether this process has called MPI_Init: of any MPI that is loaded, also by a module that has it to itself (Python loads them so). */
bool shmt_mpi_is_in_use(void);
