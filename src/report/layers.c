/* What a model is made of, for the texts of files and plans: lines for people, and the fields of JSON. */
#include <inttypes.h>
#include <string.h>

#include "report/json_priv.h"
#include "report/words_priv.h"

#define MOST_TEXT 26 /* a longer one has a line of its own */

static json_t *shape_of(const void *layer) {
    const struct shmtrain_model_layer *l = layer;
    if (l->height == 1 && l->width == 1) return json_pack("[I]", (json_int_t)l->channels);
    return json_pack("[I,I,I]", (json_int_t)l->channels, (json_int_t)l->height, (json_int_t)l->width);
}

/* clang-format off */
const struct shmt_field SHMT_LAYER[] = {
    FIELD(model_layer, text), MADE(NULL, "shape", shape_of), FIELD(model_layer, parameters),
    FIELD(model_layer, multiplications), FIELD(model_layer, bytes),
    {0}};
/* clang-format on */

static void put_figures(FILE *f, const char *text, const char *shape, const struct shmtrain_model_layer *of) {
    char parameters[16], multiplications[16], bytes[16];
    fprintf(f, strlen(text) > MOST_TEXT ? "%s\n%-26s" : "%-26s", text, "");
    fprintf(f, " %14s %11s %15s %10s\n", shape, shmt_grouped_number((double)of->parameters, parameters),
            shmt_grouped_number((double)of->multiplications, multiplications), shmt_grouped_number((double)of->bytes, bytes));
}

void shmt_put_layers(FILE *f, const struct shmtrain_model_layer *layer, uint32_t n) {
    struct shmtrain_model_layer all = {.channels = 0};
    if (n == 0) return;
    fprintf(f, "\n%-26s %14s %11s %15s %10s\n", "layer", "output", "parameters", "multiplications", "bytes");
    for (uint32_t i = 0; i < n; i++) {
        char shape[48];
        if (layer[i].height == 1 && layer[i].width == 1)
            snprintf(shape, sizeof shape, "%" PRIu32, layer[i].channels);
        else
            snprintf(shape, sizeof shape, "%" PRIu32 " x %" PRIu32 " x %" PRIu32, layer[i].channels, layer[i].height,
                     layer[i].width);
        put_figures(f, layer[i].text, shape, &layer[i]);
        all.parameters += layer[i].parameters;
        all.multiplications += layer[i].multiplications;
        all.bytes += layer[i].bytes;
    }
    put_figures(f, "all", "", &all);
    fprintf(f, "multiplications and bytes are of one example: forward, and kept for its gradient\n");
}
