/* The program under a launcher of MPI (mpirun, mpiexec, srun). */
#pragma once

#include "cli/arguments.h"

/* Before anything else: the words of the command line, where "%r" is the rank of this process; argv itself where no launcher has started
 * it, or there is no memory. They last as long as the program. */
char **mpi_words(int argc, char **argv);

/* A run is over all processes that the launcher has started, unless --hosts says something else; the first one shows what it does, and
 * writes the model. 0, or the exit status. */
int mpi_settle(struct shmtrain_store *store, struct arguments *a);

/* This process's rank in such a run; -1: this is none. */
int mpi_rank(void);

/* Last: where this process fails before MPI has begun, the others are not left waiting for it. */
void mpi_end(int status);
