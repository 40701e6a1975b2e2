/* The worked example of parameter servers: many workers teach one small convolutional network to read digits. Each worker goes through
 * the four stages, which are numbered below: it pulls the weights, computes the gradient of its examples and pushes it; the store
 * aggregates what all have pushed, and updates the weights. Data and options may be named, else it draws digits:
 *
 *     mnist_cnn
 *     mnist_cnn workers=8 mode=async
 *     mnist_cnn mnist/train-images-idx3-ubyte.gz mnist/t10k-images-idx3-ubyte.gz workers=2 mode=async epochs=5 */
#include <math.h>
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 28, KERNEL = 5, TAPS = KERNEL * KERNEL, FILTERS = 8, MAP = SIDE - KERNEL + 1, HALF = MAP / 2 };
enum { POOLED = HALF * HALF * FILTERS, DIGITS = 10 };

/* The parameters, or a gradient by them: a convolution and a fully connected layer; the last row of each is for biases. */
struct network {
    float conv[TAPS + 1][FILTERS], fc[POOLED + 1][DIGITS];
};
enum { WEIGHTS = sizeof(struct network) / sizeof(float) };

/* What one image makes of it. */
struct activity {
    float map[MAP * MAP][FILTERS]; /* the convolution at 24 x 24 places */
    float pooled[POOLED];          /* the largest of each 2 x 2 of these, or 0 if it is below (relu) */
    int from[POOLED];              /* the place that has the largest */
    float probability[DIGITS];
};

static const struct shmtrain_data *g_train, *g_test;

static float pixel_at(const float *image, int place, int tap) {
    return image[(place / MAP + tap / KERNEL) * SIDE + place % MAP + tap % KERNEL];
}

static void forward(const struct network *net, const float *image, struct activity *a) {
    float score[DIGITS], most = -INFINITY, sum = 0;
    for (int place = 0; place < MAP * MAP; place++) {
        memcpy(a->map[place], net->conv[TAPS], sizeof a->map[place]);
        for (int tap = 0; tap < TAPS; tap++)
            for (int f = 0; f < FILTERS; f++) a->map[place][f] += pixel_at(image, place, tap) * net->conv[tap][f];
    }
    memcpy(score, net->fc[POOLED], sizeof score);
    for (int h = 0; h < POOLED; h++) {
        const int f = h % FILTERS, corner = h / FILTERS / HALF * 2 * MAP + h / FILTERS % HALF * 2;
        const int places[] = {corner, corner + 1, corner + MAP, corner + MAP + 1};
        a->pooled[h] = 0;
        for (int i = 0; i < 4; i++)
            if (a->map[places[i]][f] > a->pooled[h]) a->pooled[h] = a->map[a->from[h] = places[i]][f];
        for (int c = 0; c < DIGITS; c++) score[c] += a->pooled[h] * net->fc[h][c];
    }
    for (int c = 0; c < DIGITS; c++) most = fmaxf(most, score[c]);
    for (int c = 0; c < DIGITS; c++) sum += a->probability[c] = expf(score[c] - most);
    for (int c = 0; c < DIGITS; c++) a->probability[c] /= sum;
}

static double loss_of(const struct activity *a, int digit) { return -log(fmax((double)a->probability[digit], 1e-30)); }

/* Adds the gradient of the image's loss to `gradient`. */
static void backward(const struct network *net, const float *image, int digit, const struct activity *a,
                     struct network *gradient) {
    float slope[DIGITS]; /* of the loss by the scores */
    for (int c = 0; c < DIGITS; c++) gradient->fc[POOLED][c] += slope[c] = a->probability[c] - (float)(c == digit);
    for (int h = 0; h < POOLED; h++) {
        float by_pooled = 0;
        if (a->pooled[h] <= 0) continue;
        for (int c = 0; c < DIGITS; c++) {
            by_pooled += slope[c] * net->fc[h][c];
            gradient->fc[h][c] += slope[c] * a->pooled[h];
        }
        for (int tap = 0; tap < TAPS; tap++) gradient->conv[tap][h % FILTERS] += by_pooled * pixel_at(image, a->from[h], tap);
        gradient->conv[TAPS][h % FILTERS] += by_pooled;
    }
}

/* The worker function: the same in every mode, whether workers wait for one another or not. */
static int work(shmtrain_session *s, void *arg) {
    struct network net, gradient;
    struct activity a;
    struct shmtrain_work w;
    uint32_t *example = malloc(shmtrain_item_max(s) * sizeof *example);
    int rc = 0;
    (void)arg;
    if (!example) return shmtrain_fail(s, SHMTRAIN_E_MEMORY, "no memory for the order of examples");
    while (rc == 0 && (rc = shmtrain_next(s, &w)) == 1) {
        double loss = 0;
        rc = shmtrain_order(s, &w, example); /* which examples are mine */

        /* 1. Pull the weights as they are now. */
        if (rc == 0) rc = shmtrain_pull(s, 0, 0, WEIGHTS, &net.conv[0][0]);

        /* 2. Compute the gradient of the loss, summed over my examples. */
        memset(&gradient, 0, sizeof gradient);
        for (uint64_t k = 0; k < w.n && rc == 0; k++) {
            const float *image = g_train->dense + (uint64_t)example[k] * SIDE * SIDE;
            const int digit = (int)g_train->label[example[k]];
            forward(&net, image, &a);
            loss += loss_of(&a, digit);
            backward(&net, image, digit, &a, &gradient);
        }

        /* 3. Push it. */
        if (rc == 0) rc = shmtrain_push(s, 0, 0, WEIGHTS, &gradient.conv[0][0]);
        if (rc == 0) rc = shmtrain_report(s, loss);

        /* 4. Aggregate and update. In mode sync I wait here until all gradients of the batch are in; the store adds them up along a
         * tree, and takes one step by their mean. In mode async it took a step by my mean when I pushed, and nobody waits. */
        if (rc == 0) rc = shmtrain_clock(s, NULL);
    }
    free(example);
    return rc;
}

/* Test images first .. first + n - 1, at the end of each epoch: their loss, and how many are taken for what they are. */
static int score(shmtrain_session *s, void *arg, uint64_t first, uint64_t n, double *loss_out, uint64_t *right_out) {
    struct network net;
    struct activity a;
    const int rc = shmtrain_pull(s, 0, 0, WEIGHTS, &net.conv[0][0]);
    (void)arg;
    for (uint64_t i = first; i < first + n && rc == 0; i++) {
        const int digit = (int)g_test->label[i];
        int best = 0;
        forward(&net, g_test->dense + i * SIDE * SIDE, &a);
        for (int c = 1; c < DIGITS; c++) best = a.probability[c] > a.probability[best] ? c : best;
        *loss_out += loss_of(&a, digit);
        *right_out += best == digit;
    }
    return rc;
}

static void show_epoch(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *e) {
    (void)arg;
    (void)so_far;
    printf("epoch %u: loss %.4f, %.2f %% of the test images right\n", e->epoch, e->train_loss, 100 * e->valid_accuracy);
    fflush(stdout);
}

/* Options from "NAME=VALUE" on, after those that suit this network. */
static int set_options(struct shmtrain_store *store, char **pair) {
    int rc = shmtrain_store_set(store, "epochs", "3");
    if (rc == 0) rc = shmtrain_store_set(store, "rate", "0.1");
    if (rc == 0) rc = shmtrain_store_set(store, "batch", "64");
    if (rc == 0) rc = shmtrain_store_set(store, "item", "32");
    for (; rc == 0 && *pair; pair++) {
        char *value = strchr(*pair, '=');
        if (value) *value++ = '\0';
        rc = shmtrain_store_set(store, *pair, value ? value : "");
    }
    return rc;
}

static int read_images(struct shmtrain_store *store, const char *name, const struct shmtrain_data **out) {
    const int rc = shmtrain_store_read_data(store, name, SHMTRAIN_ROWS_DENSE, g_train, out);
    if (rc < 0 ||
        ((*out)->n_features == SIDE * SIDE && (*out)->height == SIDE && (*out)->label_low >= 0 && (*out)->label_high < DIGITS))
        return rc;
    fprintf(stderr, "mnist_cnn: %s has no images of 28 x 28 pixels with labels 0 to 9\n", name);
    exit(EXIT_FAILURE);
}

/* Weights begin at random, of a size that keeps that of what goes through them (He et al. 2015). */
static int make_weights(struct shmtrain_store *store) {
    static struct network net;
    for (int i = 0; i < TAPS * FILTERS; i++)
        net.conv[i / FILTERS][i % FILTERS] = ((float)rand() / (float)RAND_MAX - 0.5F) * sqrtf(24.0F / TAPS);
    for (int i = 0; i < POOLED * DIGITS; i++)
        net.fc[i / DIGITS][i % DIGITS] = ((float)rand() / (float)RAND_MAX - 0.5F) * sqrtf(24.0F / POOLED);
    const int table = shmtrain_store_table(store, "weights", WEIGHTS, 1); /* the first: 0 */
    return table < 0 ? table : shmtrain_store_write(store, 0, 0, WEIGHTS, &net.conv[0][0]);
}

/* "mode=sync"; but not "builtin:digits:examples=500". */
static int is_option(const char *text) { return text[strcspn(text, ":=/.")] == '='; }

int main(int argc, char **argv) {
    const int named = argc > 1 && !is_option(argv[1]); /* training and test images */
    const struct shmtrain_listener listener = {.size = sizeof listener, .epoch = show_epoch};
    struct shmtrain_store *store = NULL;
    if (named && (argc == 2 || is_option(argv[2]))) {
        fputs("usage: mnist_cnn [TRAIN TEST] [OPTION=VALUE...]\n", stderr);
        return EXIT_FAILURE;
    }
    int rc = shmtrain_store_create(&store);
    if (rc == 0) rc = set_options(store, argv + (named ? 3 : 1));
    if (rc == 0) rc = read_images(store, named ? argv[1] : "builtin:digits", &g_train);
    if (rc == 0) rc = read_images(store, named ? argv[2] : "builtin:digits:examples=2000,seed=2", &g_test);
    if (rc == 0) rc = make_weights(store);
    if (rc == 0) rc = shmtrain_store_examples(store, g_train->n_examples);
    if (rc == 0)
        rc = shmtrain_store_validate(
            store,
            &(struct shmtrain_validation){
                .size = sizeof(struct shmtrain_validation), .classifies = 1, .n_examples = g_test->n_examples, .score = score});
    if (rc == 0) rc = shmtrain_store_listen(store, &listener);
    if (rc == 0) rc = shmtrain_store_run(store, work, NULL);
    if (rc < 0) fprintf(stderr, "mnist_cnn: %s\n", shmtrain_store_message(store));
    shmtrain_data_free(g_test);
    shmtrain_data_free(g_train);
    shmtrain_store_destroy(store);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
