/* Learns y = 0.1 x + 0.3 with four workers that share two parameters. */
#include <shmtrain/shmtrain.h>
#include <stdio.h>
static int work(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc = 0;
    (void)arg;
    while (rc >= 0 && (rc = shmtrain_next(s, &w)) == 1) {
        float p[2], grad[2] = {0, 0}; /* slope and intercept */
        shmtrain_pull(s, 0, 0, 2, p);
        for (uint64_t i = w.first; i < w.first + w.n; i++) {
            const float x = (float)i / 1000, error = p[0] * x + p[1] - (0.1f * x + 0.3f);
            grad[0] += error * x;
            grad[1] += error;
        }
        if ((rc = shmtrain_push(s, 0, 0, 2, grad)) == 0) rc = shmtrain_clock(s, NULL); /* table 0, rows 0 and 1 */
    }
    return rc;
}
int main(void) {
    struct shmtrain_store *store = NULL;
    float p[2];
    const int ok = shmtrain_store_create(&store) == 0 && shmtrain_store_set(store, "workers", "4") == 0 &&
                   shmtrain_store_set(store, "epochs", "200") == 0 && shmtrain_store_table(store, "line", 2, 1) == 0 &&
                   shmtrain_store_examples(store, 1000) == 0 && shmtrain_store_run(store, work, NULL) == 0 &&
                   shmtrain_store_read(store, 0, 0, 2, p) == 0;
    if (ok) printf("y = %.3f x + %.3f\n", (double)p[0], (double)p[1]);
    if (!ok) printf("%s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
}
