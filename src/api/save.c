/* Saving the trained model: parameters, and the few words that prediction needs. */
#include <stdio.h>
#include <stdlib.h>

#include "api/store_priv.h"
#include "base/plain.h"
#include "train/model_file.h"

#define N_NOTES       9
#define MOST_OF_CLASS 16 /* characters of a label with its comma: -1.23456789e-38, */

/* The notes' texts; the classes are the longest one. */
struct notes {
    char text[N_NOTES][32], classes[SHMTRAIN_MAX_CLASSES * MOST_OF_CLASS + 1];
    struct shmt_note note[N_NOTES];
    uint32_t n;
};

static char *add_note(struct notes *notes, const char *key) {
    char *text = notes->text[notes->n];
    notes->note[notes->n++] = (struct shmt_note){key, text};
    return text;
}

static void add_classes(struct notes *notes, const struct shmt_trained *trained) {
    size_t used = 0;
    for (uint32_t i = 0; i < trained->n_classes; i++)
        used += (size_t)snprintf(notes->classes + used, sizeof notes->classes - used, "%s%.9g", i > 0 ? "," : "",
                                 (double)trained->classes[i]);
    if (trained->n_classes > 0) notes->note[notes->n++] = (struct shmt_note){"shmtrain.classes", notes->classes};
}

static void write_notes(const struct shmtrain_store *store, struct notes *notes) {
    const struct shmt_trained *t = &store->trained;
    const struct shmtrain_model *model = t->model ? shmt_store_model_named(store, t->model) : NULL;
    notes->n = 0;
    if (!model) return;
    SHMT_PLAIN_NUMBERS;
    notes->note[notes->n++] = (struct shmt_note){"shmtrain.model", model->name};
    notes->note[notes->n++] = (struct shmt_note){"shmtrain.task", shmt_task_name(model->task)};
    snprintf(add_note(notes, "shmtrain.label_low"), 32, "%.9g", (double)t->label_low);
    snprintf(add_note(notes, "shmtrain.label_high"), 32, "%.9g", (double)t->label_high);
    snprintf(add_note(notes, "shmtrain.features"), 32, "%llu", (unsigned long long)t->n_features);
    snprintf(add_note(notes, "shmtrain.bias"), 32, "%u", t->bias);
    snprintf(add_note(notes, "shmtrain.first_feature"), 32, "%u", t->first_feature);
    if (t->lacks_ids) notes->note[notes->n++] = (struct shmt_note){"shmtrain.feature_ids", "none"};
    add_classes(notes, t);
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
    struct notes notes;
    int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    if (!store->has_run) return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "there is nothing to save before a run");
    write_notes(store, &notes);
    rc = read_tables(store, tensor, value);
    if (rc == 0) rc = shmt_model_file_write(path, tensor, store->n_tables, notes.note, notes.n, &store->error);
    for (uint32_t t = 0; t < store->n_tables; t++) free(value[t]);
    return rc;
}
