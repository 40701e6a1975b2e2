/* MPI_Barrier, for bench/peer_barriers.py: mpicc -O2 bench/peer_barrier.c -o peer_barrier; mpirun -n 2 --bind-to core ./peer_barrier N
 *
 * Prints the nanoseconds of one of N barriers right behind one another: the median of 21 matches, by the first rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MATCHES = 21 };

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 100000;
    double ns[MATCHES];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int match = 0; match < MATCHES; match++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double from = MPI_Wtime();
        for (int i = 0; i < n; i++) MPI_Barrier(MPI_COMM_WORLD);
        ns[match] = 1e9 * (MPI_Wtime() - from) / n;
    }
    qsort(ns, MATCHES, sizeof *ns, ascending);
    if (rank == 0) printf("%.1f\n", ns[MATCHES / 2]);
    return MPI_Finalize();
}
