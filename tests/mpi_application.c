/* Applications whose processes are to be the hosts of a run:
 *
 *     mpi_application init    calls MPI itself, and is told that this cannot be
 *     mpi_application twice   has two runs, of which the second one cannot begin MPI again */
#include <mpi.h>
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <string.h>

/* As in src/mpi. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }

#define DATA "builtin:sparse:examples=500"

int main(int argc, char **argv) {
    const int calls_mpi = argc > 1 && strcmp(argv[1], "init") == 0;
    struct shmtrain_store *store;
    if (calls_mpi) MPI_Init(&argc, &argv);
    if (shmtrain_store_create(&store) < 0) return 3;
    int rc = shmtrain_store_set(store, "hosts", "mpi");
    if (rc == 0) rc = shmtrain_store_train(store, DATA);
    if (!calls_mpi && rc == 0) fprintf(stderr, "the first run is over\n");
    if (!calls_mpi && rc == 0) rc = shmtrain_store_train(store, DATA);
    fprintf(stderr, "%s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    if (calls_mpi) MPI_Finalize();
    return rc < 0 ? 2 : 0;
}
