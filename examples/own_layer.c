/* A layer of the application's own in a network: relu with a slope below 0 that is learned, one for each channel (PReLU; He, Zhang, Ren
 * and Sun, "Delving deep into rectifiers", 2015), trained on digits, in every mode like the built-in layers.
 *
 *     own_layer            or            own_layer DATA OPTION=VALUE ... */
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From the shape of the input: that of the output, the parameters, and what backward will read. */
static int plan(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->n_tables = 1;
    layer->table[0] = (struct shmtrain_layer_table){.name = "slope", .rows = layer->in.channels, .width = 1};
    layer->multiplications = shmtrain_extent_numbers(&layer->in);
    layer->reads = SHMTRAIN_LAYER_READS_IN;
    return 0;
}

/* Activations of n examples are (n, height, width, channels). */
static uint64_t numbers(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    return pass->n * shmtrain_extent_numbers(&layer->in);
}

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const float *slope = pass->table[0];
    for (uint64_t i = 0; i < numbers(layer, pass); i++)
        pass->out[i] = pass->in[i] > 0 ? pass->in[i] : slope[i % layer->in.channels] * pass->in[i];
}

/* Gradients are sums over the examples. */
static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint32_t channels = layer->in.channels;
    const float *slope = pass->table[0];
    float *gradient = pass->gradient[0];
    if (!pass->add) memset(gradient, 0, channels * sizeof *gradient);
    for (uint64_t i = 0; i < numbers(layer, pass); i++) {
        const int above = pass->in[i] > 0;
        if (!above) gradient[i % channels] += pass->d_out[i] * pass->in[i];
        if (pass->d_in) pass->d_in[i] = above ? pass->d_out[i] : slope[i % channels] * pass->d_out[i];
    }
}

static const struct shmtrain_layer_kind PRELU = {.size = sizeof(struct shmtrain_layer_kind),
                                                 .name = "prelu",
                                                 .about = "relu with a slope below 0 that is learned",
                                                 .plan = plan,
                                                 .forward = forward,
                                                 .backward = backward};

static int set_options(struct shmtrain_store *store, char **pair) {
    int rc = shmtrain_store_set(store, "model", "net");
    if (rc == 0) rc = shmtrain_store_set(store, "net", "conv:8:5 prelu pool:2 flatten fc:32 prelu fc:10");
    if (rc == 0) rc = shmtrain_store_set(store, "epochs", "6");
    for (; rc == 0 && *pair; pair++) {
        char *value = strchr(*pair, '=');
        if (value) *value++ = '\0';
        rc = shmtrain_store_set(store, *pair, value ? value : "");
    }
    return rc;
}

int main(int argc, char **argv) {
    struct shmtrain_store *store = NULL;
    int rc = shmtrain_store_create(&store);
    if (rc == 0) rc = shmtrain_store_offer_layer(store, &PRELU);
    if (rc == 0) rc = set_options(store, argv + (argc > 2 ? 2 : argc));
    if (rc == 0) rc = shmtrain_store_train(store, argc > 1 ? argv[1] : "builtin:digits:examples=5000");
    if (rc == 0) {
        const struct shmtrain_report *report = shmtrain_store_report(store);
        const char *table;
        printf("accuracy %.3f\n", report->epoch[report->n_epochs - 1].valid_accuracy);
        for (int t = 0; shmtrain_store_table_at(store, t, &table, NULL, NULL) == 0; t++) {
            float slope = 0;
            if (!strstr(table, ".prelu.") || shmtrain_store_read(store, t, 0, 1, &slope) < 0) continue;
            printf("the first slope of layer %s is %.3f\n", table, (double)slope);
        }
    }
    if (rc < 0) fprintf(stderr, "own_layer: %s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
