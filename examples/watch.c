/* Looks on while another program trains: joins a store by its name, shows the loss until the run is over, and then the first
 * parameters of each table. It reads only, so the run does not notice.
 *
 *     event_loop 100 lab &  watch lab          or          shmtrain --name lab train.svm &  watch lab */
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void say_progress(const struct shmtrain_progress *now) {
    printf("epoch %u of %u, %3.0f %%: loss %.4g, %.3g examples/s\n", now->epoch, now->epochs,
           100 * (double)now->examples / (double)now->all_examples, now->loss, now->examples_per_second);
    fflush(stdout);
}

static int say_tables(struct shmtrain_store *store) {
    const char *name;
    uint64_t rows, width;
    for (int t = 0; shmtrain_store_table_at(store, t, &name, &rows, &width) == 0; t++) {
        float *row = malloc(width * sizeof *row);
        const int rc = row ? shmtrain_store_read(store, t, 0, 1, row) : SHMTRAIN_E_MEMORY;
        if (rc == 0)
            printf("table %s (%llu, %llu) begins with %g\n", name, (unsigned long long)rows, (unsigned long long)width,
                   (double)row[0]);
        free(row);
        if (rc < 0) return rc;
    }
    return 0;
}

int main(int argc, char **argv) {
    struct shmtrain_store *store = NULL;
    const struct shmtrain_progress *now;
    if (argc != 2) {
        fprintf(stderr, "usage: watch NAME\n");
        return 2;
    }
    int rc = shmtrain_store_create(&store);
    if (rc == 0)
        while ((rc = shmtrain_store_observe(store, argv[1])) == SHMTRAIN_E_AGAIN) usleep(100000); /* it is loading its data */
    if (rc == 0) {
        while ((rc = shmtrain_store_look(store, &now)) == 1) {
            if (now->epoch > 0) say_progress(now);
            usleep(200000);
        }
    }
    if (rc == 0) rc = say_tables(store);
    if (rc == 0) printf("the run has ended: %u epochs\n", shmtrain_store_report(store)->n_epochs);
    if (rc < 0) fprintf(stderr, "watch: %s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
