/* Saving the trained model: parameters, and the few words that prediction needs. */
#include <stdio.h>
#include <stdlib.h>

#include "api/store_priv.h"
#include "train/model_file.h"

enum { MODEL, LABEL_LOW, LABEL_HIGH, FEATURES, BIAS, FIRST_FEATURE, N_NOTES };

static void write_notes(const struct shmtrain_store *store, char text[N_NOTES][32], struct shmt_note *note) {
    const char *keys[N_NOTES] = {"shmtrain.model",    "shmtrain.label_low", "shmtrain.label_high",
                                 "shmtrain.features", "shmtrain.bias",      "shmtrain.first_feature"};
    snprintf(text[MODEL], 32, "%s", store->trained.model ? store->trained.model : "");
    snprintf(text[LABEL_LOW], 32, "%.9g", (double)store->trained.label_low);
    snprintf(text[LABEL_HIGH], 32, "%.9g", (double)store->trained.label_high);
    snprintf(text[FEATURES], 32, "%llu", (unsigned long long)store->trained.n_features);
    snprintf(text[BIAS], 32, "%u", store->trained.bias);
    snprintf(text[FIRST_FEATURE], 32, "%u", store->trained.first_feature);
    for (int i = 0; i < N_NOTES; i++) note[i] = (struct shmt_note){keys[i], text[i]};
}

static int read_tables(struct shmtrain_store *store, struct shmt_tensor *tensor, float **value) {
    for (uint32_t t = 0; t < store->n_tables; t++) {
        const struct shmt_table_spec *table = &store->table[t].table;
        value[t] = malloc(shmt_table_floats(table) * sizeof(float));
        if (!value[t]) return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "no memory to save table \"%s\"", table->name);
        const int rc = shmtrain_store_read(store, (int)t, 0, table->rows, value[t]);
        if (rc < 0) return rc;
        tensor[t] = (struct shmt_tensor){.name = table->name, .rows = table->rows, .width = table->width, .value = value[t]};
    }
    return 0;
}

int shmtrain_store_save(struct shmtrain_store *store, const char *path) {
    struct shmt_tensor tensor[SHMT_MAX_TABLES];
    float *value[SHMT_MAX_TABLES] = {0};
    struct shmt_note note[N_NOTES];
    char text[N_NOTES][32];
    shmt_error_clear(&store->error);
    if (!store->has_run) return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "there is nothing to save before a run");
    write_notes(store, text, note);
    int rc = read_tables(store, tensor, value);
    if (rc == 0)
        rc = shmt_model_file_write(path, tensor, store->n_tables, note, store->trained.model ? N_NOTES : 0, &store->error);
    for (uint32_t t = 0; t < store->n_tables; t++) free(value[t]);
    return rc;
}
