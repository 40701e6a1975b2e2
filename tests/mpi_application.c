/* An application that calls MPI itself, and wants its processes to be the hosts of a run: it is told that this cannot be. */
#include <mpi.h>
#include <shmtrain/shmtrain.h>
#include <stdio.h>

/* As in src/mpi. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }

int main(int argc, char **argv) {
    struct shmtrain_store *store;
    MPI_Init(&argc, &argv);
    if (shmtrain_store_create(&store) < 0) return 3;
    int rc = shmtrain_store_set(store, "hosts", "mpi");
    if (rc == 0) rc = shmtrain_store_train(store, "builtin:sparse:examples=500");
    fprintf(stderr, "%s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    MPI_Finalize();
    return rc < 0 ? 2 : 0;
}
