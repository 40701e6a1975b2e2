/* Trains on arrays that the program has in memory, validates on others, and predicts a third. */
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRAIN = 2000, VALID = 500, ASK = 3 };

/* Points of the unit square; those above the diagonal are of class 1. */
static void draw(uint32_t n, float *point, float *label) {
    for (uint32_t i = 0; i < n; i++) {
        for (int j = 0; j < 2; j++) point[2 * i + j] = (float)(rand() % 1000) / 1000;
        label[i] = point[2 * i + 1] > point[2 * i];
    }
}

static int give(struct shmtrain_store *store, const char *name, uint32_t n, const float *point, const float *label) {
    const struct shmtrain_arrays arrays = {
        .size = sizeof arrays, .borrowed = 1, .n_examples = n, .n_features = 2, .dense = point, .label = label};
    return shmtrain_store_arrays(store, name, &arrays);
}

int main(void) {
    static float point[2 * TRAIN], label[TRAIN], valid_point[2 * VALID], valid_label[VALID];
    const float ask[2 * ASK] = {0.9F, 0.1F, 0.1F, 0.9F, 0.5F, 0.6F};
    float answer[ASK], probability[ASK];
    const struct shmtrain_predictions into = {sizeof into, 1, ASK, answer, probability};
    struct shmtrain_store *store = NULL;
    draw(TRAIN, point, label);
    draw(VALID, valid_point, valid_label);
    int rc = shmtrain_store_create(&store);
    if (rc == 0) rc = give(store, "train", TRAIN, point, label);
    if (rc == 0) rc = give(store, "valid", VALID, valid_point, valid_label);
    if (rc == 0) rc = give(store, "ask", ASK, ask, NULL);
    if (rc == 0) rc = shmtrain_store_set(store, "valid", "arrays:valid");
    if (rc == 0) rc = shmtrain_store_train(store, "arrays:train");
    if (rc == 0) rc = shmtrain_store_predict_into(store, "arrays:ask", &into);
    const struct shmtrain_report *report = store && rc == 0 ? shmtrain_store_report(store) : NULL;
    if (report) printf("accuracy %.3f\n", report->epoch[report->n_epochs - 1].valid_accuracy);
    for (int i = 0; rc == 0 && i < ASK; i++)
        printf("(%.1f, %.1f) is of class %g: %.3f\n", (double)ask[2 * i], (double)ask[2 * i + 1], (double)answer[i],
               (double)probability[i]);
    if (rc < 0) fprintf(stderr, "%s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    return rc < 0;
}
