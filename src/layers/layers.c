/* The list of layers, and finding one by its name. */
#include "layers/layers.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct shmtrain_layer_kind *const BUILT_IN[] = {
    &SHMT_LAYER_FC,        &SHMT_LAYER_CONV,    &SHMT_LAYER_POOL, &SHMT_LAYER_FLATTEN, &SHMT_LAYER_RELU,
    &SHMT_LAYER_TANH,      &SHMT_LAYER_SIGMOID, &SHMT_LAYER_GELU, &SHMT_LAYER_DROPOUT, &SHMT_LAYER_BATCHNORM,
    &SHMT_LAYER_LAYERNORM, &SHMT_LAYER_SAVE,    &SHMT_LAYER_ADD,
};
enum { N_BUILT_IN = sizeof BUILT_IN / sizeof *BUILT_IN, MOST_LETTERS = 32, MOST_EDITS = 2 };

const struct shmtrain_layer_kind *shmt_layer_kind_at(const struct shmt_layer_kinds *own, uint32_t i) {
    if (i < N_BUILT_IN) return BUILT_IN[i];
    return own && i - N_BUILT_IN < own->n ? own->own[i - N_BUILT_IN] : NULL;
}

const struct shmtrain_layer_kind *shmt_layer_kind_find(const struct shmt_layer_kinds *own, const char *name, uint64_t length) {
    const struct shmtrain_layer_kind *kind;
    for (uint32_t i = 0; (kind = shmt_layer_kind_at(own, i)) != NULL; i++)
        if (strlen(kind->name) == length && memcmp(kind->name, name, length) == 0) return kind;
    return NULL;
}

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Letters to change, insert or leave out (Levenshtein), for names of at most MOST_LETTERS. */
static uint32_t edits(const char *a, uint32_t n_a, const char *b, uint32_t n_b) {
    uint32_t row[MOST_LETTERS + 1];
    for (uint32_t j = 0; j <= n_b; j++) row[j] = j;
    for (uint32_t i = 1; i <= n_a; i++) {
        uint32_t diagonal = row[0];
        row[0] = i;
        for (uint32_t j = 1; j <= n_b; j++) {
            const uint32_t changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = lesser(lesser(row[j], row[j - 1]) + 1, changed);
        }
    }
    return row[n_b];
}

const struct shmtrain_layer_kind *shmt_layer_kind_near(const struct shmt_layer_kinds *own, const char *name, uint64_t length) {
    const struct shmtrain_layer_kind *kind, *best = NULL;
    uint32_t fewest = MOST_EDITS + 1;
    if (length > MOST_LETTERS) return NULL;
    for (uint32_t i = 0; (kind = shmt_layer_kind_at(own, i)) != NULL; i++) {
        const uint32_t letters = (uint32_t)strlen(kind->name);
        const uint32_t apart = letters <= MOST_LETTERS ? edits(name, (uint32_t)length, kind->name, letters) : fewest;
        if (apart < fewest && apart < length) {
            fewest = apart;
            best = kind;
        }
    }
    return best;
}

/* The name in capitals, where it stands for a value. */
static void write_capitals(const char *name, char *out, uint64_t bytes) {
    uint64_t i = 0;
    for (; name[i] && i + 1 < bytes; i++) out[i] = (char)toupper((unsigned char)name[i]);
    out[i] = '\0';
}

void shmt_layer_syntax(const struct shmtrain_layer_kind *kind, char *out, uint64_t bytes) {
    uint64_t used = (uint64_t)snprintf(out, bytes, "%s", kind->name);
    for (uint32_t i = 0; i < SHMTRAIN_LAYER_ARGUMENTS && kind->argument[i].name && used < bytes; i++) {
        const struct shmtrain_layer_argument *a = &kind->argument[i];
        char name[MOST_LETTERS];
        write_capitals(a->name, name, sizeof name);
        const bool is_number = a->type != SHMTRAIN_LAYER_WORD;
        int more;
        if (!a->assumed)
            more = snprintf(out + used, bytes - used, ":%s", name);
        else if (!a->words)
            more = snprintf(out + used, bytes - used, "[:%s=%s]", a->name, a->assumed[0] ? a->assumed : name);
        else
            more = snprintf(out + used, bytes - used, "[:%s=%s%s%s]", a->name, is_number ? name : "", is_number ? "|" : "",
                            a->words);
        used += (uint64_t)more;
    }
}
