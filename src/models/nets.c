/* Models of networks: net, whose layers the user writes; mlp, of fully connected ones; cnn, the network of most introductions to
 * parameter servers. What they do is net.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/models.h"
#include "models/net.h"

#define MOST_TEXT 2048

/* Options of mlp and net. */
enum { OF_LAYERS = SHMT_NET_N_OPTIONS, OF_LOSS, N_OWN };

/* Rates at which networks that begin by He's numbers learn from updates of 64 to 128 examples: by momentum 0.9, which all modes and
 * ways of writing can have, a tenth of them. Chunks: each costs a pass over all weights, which in mlp do as little for an example as
 * weights can, one multiplication. Clipping: convolutions, each of whose weights has a gradient from every place of an image, begin with
 * gradients of several times the norm that is left later; mlp's are short, and it would pay a tenth of its time in `sync`. */
#define CLIP 1
#define TRAITS(its_rate, its_adaptive_rate, its_chunks, its_clip_norm)                                                     \
    {                                                                                                                      \
        .rows = SHMTRAIN_ROWS_DENSE, .pushes_tables = 1, .loops = 1, .blas = 1, .optimizer = "momentum", .rate = its_rate, \
        .adaptive_rate = its_adaptive_rate, .item = 64, .batch = 128, .chunks = its_chunks, .clip_norm = its_clip_norm     \
    }

#define NET(model, its_traits, says, open_it, own, n_own, check_it, adapt_it)                                              \
    {                                                                                                                      \
        .size = sizeof(struct shmtrain_model), .name = model, .about = says, .task = SHMTRAIN_CLASSES, .loss = "log loss", \
        .traits = its_traits, .options = own, .n_options = n_own, .check_option = check_it, .check = shmt_net_check,       \
        .open = open_it, .close = shmt_net_close, .tables = shmt_net_tables, .workspace = shmt_net_workspace,              \
        .begin = shmt_net_begin, .step = shmt_net_step, .score = shmt_net_score, .probabilities = shmt_net_probabilities,  \
        .describe = shmt_net_describe, .adapt = adapt_it                                                                   \
    }

/* ---- losses ---- */

/* The same of all models that have it. */
#define LOSS \
    { "loss", 0, "NAME", "log", "SHMTRAIN_LOSS", "Model and data", "mlp, net: log (classes) or squared (numbers)" }

static bool is_squared(const char *const *option) { return strcmp(option[OF_LOSS], "squared") == 0; }

/* Of options that both mlp and net have. */
static int check_shared(uint32_t i, const char *text, char *why_out, uint64_t bytes) {
    if (i < SHMT_NET_N_OPTIONS) return shmt_net_check_option(i, text, why_out, bytes);
    if (i != OF_LOSS || strcmp(text, "log") == 0 || strcmp(text, "squared") == 0) return 0;
    snprintf(why_out, bytes, "expected log or squared");
    return -1;
}

/* What the last layer has to have. */
static uint32_t outputs_of(const struct shmtrain_settings *with) { return is_squared(with->option) ? 1 : with->n_classes; }

/* The slopes of squared errors grow without bound, so that a rate which is too large does not just oscillate. */
#define OF_SQUARES 0.3f

static void adapt(const char *const *option, struct shmtrain_model *model) {
    if (!is_squared(option)) return;
    model->task = SHMTRAIN_REGRESSION;
    model->loss = "squared loss";
    model->check = shmt_net_check_numbers;
    model->traits.rate *= OF_SQUARES;
    model->traits.clip_norm = CLIP;
    model->probabilities = NULL;
}

/* ---- net ---- */

static const struct shmtrain_option OF_NET[N_OWN] = {
    SHMT_NET_OPTIONS,
    {"net", 0, "LAYERS", "", "SHMTRAIN_NET", "Model and data", "model net: layers, as shmtrain help networks has them"},
    LOSS};

static int open_net(const struct shmtrain_data *data, const struct shmtrain_settings *with, void **state_out, char *why_out,
                    uint64_t bytes) {
    const struct shmt_net_wish wish = {"--net", with->option[OF_LAYERS], is_squared(with->option)};
    if (wish.text[strspn(wish.text, " ")] != '\0') return shmt_net_open(&wish, data, with, state_out, why_out, bytes);
    snprintf(why_out, bytes, "name its layers: --net \"fc:64 relu fc:%u\"", outputs_of(with));
    return SHMTRAIN_E_USAGE;
}

const struct shmtrain_model SHMT_MODEL_NET =
    NET("net", TRAITS(0.3f, 0.001f, 4, CLIP), "a network of the layers of --net, log or squared loss", open_net, OF_NET, N_OWN,
        check_shared, adapt);

/* ---- mlp ---- */

static const struct shmtrain_option OF_MLP[N_OWN] = {SHMT_NET_OPTIONS,
                                                     {"layers", 0, "N-N-...", "auto", "SHMTRAIN_LAYERS", "Model and data",
                                                      "model mlp: features-hidden-...-classes; auto: 128 hidden"},
                                                     LOSS};

/* The next number of "784-128-10"; 0: there is none. */
static uint32_t next_width(const char **at) {
    char *end;
    if (**at < '0' || **at > '9') return 0;
    const unsigned long n = strtoul(*at, &end, 10);
    if (n == 0 || n > INT32_MAX || (*end != '-' && *end != '\0') || (*end == '-' && end[1] == '\0')) return 0;
    *at = *end == '-' ? end + 1 : end;
    return (uint32_t)n;
}

#define MOST_WIDTH (1 << 24)

/* As fc has them, in the words of --layers. */
static int check_sizes(const char *text, char *why_out, uint64_t bytes) {
    const char *at = text;
    (void)next_width(&at);
    while (*at) {
        const uint32_t width = next_width(&at);
        if (width <= MOST_WIDTH) continue;
        snprintf(why_out, bytes, "a layer of %u numbers is too large: at most %d are possible", width, MOST_WIDTH);
        return -1;
    }
    return 0;
}

static int check_mlp(uint32_t i, const char *text, char *why_out, uint64_t bytes) {
    uint32_t n = 0;
    if (i != OF_LAYERS) return check_shared(i, text, why_out, bytes);
    if (strcmp(text, "auto") == 0) return 0;
    for (const char *at = text; *at; n++)
        if (next_width(&at) == 0) {
            snprintf(why_out, bytes, "expected numbers with dashes between, such as 784-128-10");
            return -1;
        }
    if (n >= 2) return check_sizes(text, why_out, bytes);
    snprintf(why_out, bytes, "expected at least the numbers of features and classes, such as 784-128-10");
    return -1;
}

static int write_mlp(const char *layers, const struct shmtrain_data *data, char *text, char *why_out, uint64_t bytes) {
    const char *at = layers;
    const uint32_t features = next_width(&at);
    size_t used = 0;
    if (features != data->n_features) {
        snprintf(why_out, bytes, "--layers begins with %u, but the data has %u features", features, data->n_features);
        return SHMTRAIN_E_USAGE;
    }
    used += (size_t)snprintf(text, MOST_TEXT, "flatten");
    while (*at && used + 32 < MOST_TEXT) {
        const uint32_t width = next_width(&at);
        used += (size_t)snprintf(text + used, MOST_TEXT - used, " fc:%u%s", width, *at ? " relu" : "");
    }
    if (!*at) return 0;
    snprintf(why_out, bytes, "--layers has too many layers");
    return SHMTRAIN_E_USAGE;
}

static int open_mlp(const struct shmtrain_data *data, const struct shmtrain_settings *with, void **state_out, char *why_out,
                    uint64_t bytes) {
    char text[MOST_TEXT];
    const char *layers = with->option[OF_LAYERS];
    const struct shmt_net_wish wish = {"--layers", text, is_squared(with->option)};
    snprintf(text, sizeof text, "flatten fc:128 relu fc:%u", outputs_of(with));
    const int rc = strcmp(layers, "auto") == 0 ? 0 : write_mlp(layers, data, text, why_out, bytes);
    return rc < 0 ? rc : shmt_net_open(&wish, data, with, state_out, why_out, bytes);
}

const struct shmtrain_model SHMT_MODEL_MLP =
    NET("mlp", TRAITS(1.0f, 0.003f, 2, 0), "fully connected layers with relu between, log or squared loss", open_mlp, OF_MLP,
        N_OWN, check_mlp, adapt);

/* ---- cnn ---- */

static const struct shmtrain_option OF_CNN[] = {SHMT_NET_OPTIONS};

#define LEAST_SIDE 6 /* pixels: two convolutions of 3x3 leave 2, and pooling one */

static int open_cnn(const struct shmtrain_data *data, const struct shmtrain_settings *with, void **state_out, char *why_out,
                    uint64_t bytes) {
    char text[MOST_TEXT];
    if (data->height < 2 || data->width < 2) {
        snprintf(why_out, bytes, "the data are no images whose shape is known: use images, or --model mlp");
        return SHMTRAIN_E_DATA;
    }
    if (data->height < LEAST_SIDE || data->width < LEAST_SIDE) {
        snprintf(why_out, bytes, "it needs images of %dx%d pixels or more, but these have %ux%u: use --model mlp", LEAST_SIDE,
                 LEAST_SIDE, data->height, data->width);
        return SHMTRAIN_E_DATA;
    }
    snprintf(text, sizeof text, "conv:32:3 relu conv:64:3 relu pool:2 dropout:0.25 flatten fc:128 relu fc:20 relu fc:%u",
             with->n_classes);
    const struct shmt_net_wish wish = {"cnn", text, false};
    return shmt_net_open(&wish, data, with, state_out, why_out, bytes);
}

const struct shmtrain_model SHMT_MODEL_CNN =
    NET("cnn", TRAITS(0.3f, 0.001f, 4, CLIP), "images: two convolutions, three fully connected layers, log loss", open_cnn,
        OF_CNN, SHMT_NET_N_OPTIONS, shmt_net_check_option, NULL);
