/* Opening models: see opened.h. */
#include "train/opened.h"

#include <string.h>

#include "base/checked.h"
#include "base/line.h"
#include "base/own.h"
#include "base/show.h"

#define TABLE_NAME sizeof((struct shmt_table_spec){0}.name) /* with the 0 at the end */

/* What a model of the application's says of its tables is looked at once, here: who reads it later trusts it. */
static int check_tables(const struct shmt_opened *opened, const struct shmtrain_data *data,
                        const struct shmtrain_settings *with, struct shmt_error *e) {
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    const char *model = opened->model->name;
    const uint32_t n = shmt_opened_tables(opened, data, with, shape);
    if (n == 0)
        return shmt_refuse(e, "model %s has no parameters: it needs a table at least, a network a layer such as fc", model);
    if (n > SHMTRAIN_MODEL_TABLES)
        return shmt_refuse(e, "model %s says that it has %u tables: at most %d are possible", model, n, SHMTRAIN_MODEL_TABLES);
    for (uint32_t t = 0; t < n; t++) {
        if (!shape[t].name || shape[t].name[0] == '\0') return shmt_refuse(e, "model %s gives its table %u no name", model, t);
        if (strnlen(shape[t].name, TABLE_NAME) == TABLE_NAME)
            return shmt_refuse(e, "model %s: table \"%.31s...\": a name has at most %zu characters", model, shape[t].name,
                               TABLE_NAME - 1);
    }
    return 0;
}

int shmt_opened_begin(const struct shmtrain_model *model, const struct shmtrain_data *data,
                      const struct shmtrain_settings *with, struct shmt_opened *out, struct shmt_error *e) {
    char why[256] = "";
    void *state = NULL;
    const int rc = model->open ? model->open(data, with, &state, why, sizeof why) : 0;
    if (rc < 0) return shmt_fail(e, rc, "model %s: %s", model->name, why[0] ? why : shmtrain_status_name(rc));
    struct shmt_opened opened = {.model = model, .state = state};
    const int checked = check_tables(&opened, data, with, e);
    if (checked < 0) {
        shmt_opened_end(&opened);
        return checked;
    }
    *out = opened;
    return 0;
}

void shmt_opened_end(struct shmt_opened *opened) {
    if (opened->model && opened->model->close) opened->model->close(opened->state);
    *opened = (struct shmt_opened){0};
}

uint32_t shmt_opened_tables(const struct shmt_opened *opened, const struct shmtrain_data *data,
                            const struct shmtrain_settings *with, struct shmtrain_shape *shape_out) {
    memset(shape_out, 0, SHMTRAIN_MODEL_TABLES * sizeof *shape_out);
    return opened->model->tables(data, with, opened->state, shape_out);
}

uint32_t shmt_opened_layers(const struct shmt_opened *opened, const struct shmtrain_data *data,
                            const struct shmtrain_settings *with, struct shmtrain_model_layer *layer_out) {
    const struct shmtrain_model *model = opened->model;
    uint32_t n = 0;
    for (; model->describe && n < SHMTRAIN_MODEL_LAYERS; n++) {
        layer_out[n] = (struct shmtrain_model_layer){.channels = 0};
        if (model->describe(data, with, opened->state, n, &layer_out[n]) <= 0) break;
        layer_out[n].text[sizeof layer_out[n].text - 1] = '\0';
        shmt_show_plainly(layer_out[n].text);
    }
    return n;
}

int shmt_opened_check_shape(const struct shmtrain_shape *shape, struct shmt_error *e) {
    const enum shmtrain_start start = shape->start;
    struct shmt_tuning tuning;
    uint64_t l2_rows;
    shmt_opened_tune(shape, &l2_rows, &tuning);
    const int rc = shmt_tuning_check(&tuning, shape->name, e);
    if (rc < 0) return rc;
    if (start > SHMTRAIN_GLOROT)
        return shmt_refuse(e, "table \"%.31s\" has the start %d, which is none", shape->name, (int)start);
    if ((start == SHMTRAIN_HE || start == SHMTRAIN_GLOROT) && shape->fan_in == 0)
        return shmt_refuse(e, "table \"%.31s\" begins with random numbers, whose size follows from its fan_in, which is 0",
                           shape->name);
    return 0;
}

void shmt_opened_tune(const struct shmtrain_shape *shape, uint64_t *l2_rows_out, struct shmt_tuning *out) {
    *l2_rows_out = shape->l2_rows;
    *out = (struct shmt_tuning){.role = (uint32_t)shape->role, .rate = shape->rate, .decay = shape->decay};
    if (shape->role == SHMTRAIN_STATISTIC && shape->rate == 0) out->rate = SHMT_STATISTIC_SHARE;
}

uint64_t shmt_opened_workspace_bytes(const struct shmt_opened *opened, const struct shmtrain_data *data,
                                     const struct shmtrain_settings *with, uint64_t n) {
    const struct shmtrain_model *model = opened->model;
    const uint32_t most = (uint32_t)shmt_min_u64(UINT32_MAX, shmt_max_u64(n, SHMTRAIN_MODEL_GROUP));
    const uint64_t bytes = model->workspace ? model->workspace(data, with, opened->state, most) : 0;
    uint64_t whole;
    return shmt_round_up_u64(bytes, SHMT_LINE, &whole) ? whole : UINT64_MAX;
}

int shmt_opened_make_workspace(const struct shmt_opened *opened, const struct shmtrain_data *data,
                               const struct shmtrain_settings *with, uint64_t n, void **out, struct shmt_error *e) {
    const uint64_t bytes = shmt_opened_workspace_bytes(opened, data, with, n);
    *out = NULL;
    if (bytes == 0) return 0;
    if (bytes < INT64_MAX) *out = shmt_own_calloc(1, bytes);
    if (!*out)
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for the workspace of model %s (%llu bytes for each worker)",
                         opened->model->name, (unsigned long long)bytes);
    return 0;
}
