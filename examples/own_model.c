/* A model of your own: linear regression by Huber's loss, which does not let a few labels that are far off draw the line. With
 * e = w . x + b - label it is e^2 / 2 up to |e| = delta, and grows like a straight line from there on (Huber 1964). It has what
 * built-in models have: every mode, checkpoints, validation, files, and an option of its own.
 *
 *     own_model
 *     own_model train.svm delta=0.5 mode=sync workers=4 */
#include <math.h>
#include <shmtrain/model.h>
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the option, and what the model keeps of it ---- */

static const struct shmtrain_option OPTIONS[] = {{.name = "delta",
                                                  .argument = "X",
                                                  .standard = "1",
                                                  .environment = "SHMTRAIN_DELTA",
                                                  .group = "Model",
                                                  .help = "errors above X count linearly, not squared"}};

/* The number that a text is, if it is above 0; else 0. */
static float delta_of(const char *text) {
    char *end;
    const float delta = strtof(text, &end);
    return end > text && *end == '\0' && delta > 0 && isfinite(delta) ? delta : 0;
}

static int check_option(uint32_t i, const char *text, char *why_out, uint64_t bytes) {
    (void)i; /* there is one */
    if (delta_of(text) > 0) return 0;
    snprintf(why_out, bytes, "expected a number above 0");
    return -1;
}

static int open_model(const struct shmtrain_data *data, const struct shmtrain_settings *with, void **state_out, char *why_out,
                      uint64_t bytes) {
    float *delta = malloc(sizeof *delta);
    (void)data;
    if (!delta) {
        snprintf(why_out, bytes, "no memory");
        return SHMTRAIN_E_MEMORY;
    }
    *delta = delta_of(with->option[0]);
    *state_out = delta;
    return 0;
}

/* ---- the parameters: a weight for each feature, and a bias ---- */

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)state;
    out[0] = (struct shmtrain_shape){
        .name = "weight", .rows = (uint64_t)data->n_features + with->bias, .width = 1, .l2_rows = data->n_features};
    return 1;
}

static int compare(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The bias begins at the label in the middle: steps towards labels that are far off are short. */
static void begin(const struct shmtrain_batch *train, const struct shmtrain_settings *with, const void *state, uint32_t t,
                  float *value) {
    float *label = malloc((size_t)train->n * sizeof *label);
    (void)state;
    (void)t;            /* there is one */
    if (!label) return; /* it begins at 0 */
    for (uint32_t k = 0; k < train->n; k++)
        label[k] = train->data->label[train->example ? train->example[k] : train->first + k];
    qsort(label, train->n, sizeof *label, compare);
    if (with->bias && train->n > 0) value[train->data->n_features] = label[train->n / 2];
    free(label);
}

/* ---- training and scoring: examples of a batch, as rows ---- */

struct work {
    const struct shmtrain_batch *batch;
    float delta;
    double loss; /* of the examples so far */
};

static struct work work_of(const struct shmtrain_pass *pass, const struct shmtrain_batch *batch) {
    return (struct work){.batch = batch, .delta = *(const float *)pass->state};
}

static struct shmtrain_csr rows_of(const struct shmtrain_pass *pass, const struct shmtrain_batch *batch) {
    const struct shmtrain_data *data = batch->data;
    return (struct shmtrain_csr){.size = sizeof(struct shmtrain_csr),
                                 .n = batch->n,
                                 .bias = pass->with->bias,
                                 .start = batch->example ? data->start : data->start + batch->first,
                                 .id = data->id,
                                 .value = data->value,
                                 .order = batch->example};
}

/* Losses of examples first .. first + n - 1 are added up; slope_out[k]: d loss / d output. */
static void slopes(void *arg, uint32_t first, uint32_t n, const float *output, float *slope_out) {
    struct work *w = arg;
    const struct shmtrain_data *data = w->batch->data;
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t i = w->batch->example ? w->batch->example[first + k] : w->batch->first + first + k;
        const float weight = data->weight ? data->weight[i] : 1, error = output[k] - data->label[i],
                    near = fminf(fabsf(error), w->delta);
        slope_out[k] = weight * copysignf(near, error);
        w->loss += (double)(weight * near * (fabsf(error) - near / 2));
    }
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    struct work w = work_of(pass, batch);
    const struct shmtrain_csr x = rows_of(pass, batch);
    const int rc = shmtrain_each(s, 0, &x, pass->with->group, slopes, &w);
    if (rc == 0) *loss_out = w.loss;
    return rc;
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    float unused[SHMTRAIN_MODEL_GROUP];
    struct work w = work_of(pass, batch);
    const struct shmtrain_csr x = rows_of(pass, batch);
    const int rc = shmtrain_dot(s, 0, &x, score_out);
    if (rc < 0) return rc;
    slopes(&w, 0, batch->n, score_out, unused);
    *loss_out = w.loss;
    return 0;
}

static const struct shmtrain_model HUBER = {.size = sizeof(struct shmtrain_model),
                                            .name = "huber",
                                            .about = "any labels, of which some are far off",
                                            .task = SHMTRAIN_REGRESSION,
                                            .loss = "huber loss",
                                            .traits = {.columns_alike = 1, .curvature = 1},
                                            .options = OPTIONS,
                                            .n_options = 1,
                                            .check_option = check_option,
                                            .open = open_model,
                                            .close = free,
                                            .tables = tables,
                                            .begin = begin,
                                            .step = step,
                                            .score = score};

/* ---- a program that trains it ---- */

static void show_epoch(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *e) {
    (void)arg;
    (void)so_far;
    printf("epoch %u: %s %.4f\n", e->epoch, HUBER.loss, e->train_loss);
    fflush(stdout);
}

/* "mode=sync"; but not "builtin:digits:examples=500". */
static int is_option(const char *text) { return text[strcspn(text, ":=/.")] == '='; }

int main(int argc, char **argv) {
    const int named = argc > 1 && !is_option(argv[1]);
    const struct shmtrain_listener listener = {.size = sizeof listener, .epoch = show_epoch};
    struct shmtrain_store *store = NULL;
    int rc = shmtrain_store_create(&store);
    if (rc == 0) rc = shmtrain_store_offer(store, &HUBER);
    if (rc == 0) rc = shmtrain_store_set(store, "model", "huber");
    for (int i = named ? 2 : 1; i < argc && rc == 0; i++) {
        char *value = strchr(argv[i], '=');
        if (value) *value++ = '\0';
        rc = shmtrain_store_set(store, argv[i], value ? value : "");
    }
    if (rc == 0) rc = shmtrain_store_listen(store, &listener);
    if (rc == 0) rc = shmtrain_store_train(store, named ? argv[1] : "builtin:line");
    if (rc < 0) fprintf(stderr, "own_model: %s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
