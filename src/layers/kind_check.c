/* What an application's layers are held against: kinds when they are offered, and what they have planned before anything is made of
 * it. See layers.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "layers/arguments.h"
#include "layers/layers.h"

/* The name of a table in a store, "95.KIND.TABLE", has at most 31 characters. */
enum { MOST_NAME = SHMTRAIN_LAYER_NAME - 1, MOST_TABLE_NAME = 12 };

/* What a kind outside of the library may say of itself. */
#define TRAITS                                                                                                              \
    (SHMTRAIN_LAYER_IN_PLACE | SHMTRAIN_LAYER_NOTHING | SHMTRAIN_LAYER_SAVES | SHMTRAIN_LAYER_ADDS | SHMTRAIN_LAYER_CLIPS | \
     SHMTRAIN_LAYER_MIXES)

/* A small letter, then small letters and digits. */
static bool is_name(const char *name, size_t most) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    return name && islower((unsigned char)name[0]) && strspn(name, LETTERS) == strlen(name) && strlen(name) <= most;
}

static int check_argument(const struct shmtrain_layer_kind *kind, uint32_t i, struct shmt_error *e) {
    const struct shmtrain_layer_argument *a = &kind->argument[i];
    if (!is_name(a->name, MOST_NAME))
        return shmt_refuse(e, "layer %s: the name of argument %u is not up to %d small letters and digits", kind->name, i + 1,
                           MOST_NAME);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(kind->argument[k].name, a->name) == 0)
            return shmt_refuse(e, "layer %s has two arguments %s", kind->name, a->name);
    if ((uint32_t)a->type > SHMTRAIN_LAYER_ABOVE)
        return shmt_refuse(e, "layer %s: argument %s has the type %d, which is none", kind->name, a->name, (int)a->type);
    if (a->type == SHMTRAIN_LAYER_WORD ? !a->words || !a->words[0]
                                       : !(a->low >= 0 && a->low <= a->high && a->high <= INT32_MAX))
        return shmt_refuse(e, "layer %s: argument %s needs %s", kind->name, a->name,
                           a->type == SHMTRAIN_LAYER_WORD ? "words" : "bounds, with 0 <= low <= high < 2^31");
    if (!a->assumed && i > 0 && kind->argument[i - 1].assumed)
        return shmt_refuse(e, "layer %s: argument %s has to be given, so it stands before those that need not be", kind->name,
                           a->name);
    if (!a->assumed || shmt_layer_assumes_well(a)) return 0;
    return shmt_refuse(e, "layer %s: argument %s cannot be \"%s\", which is assumed", kind->name, a->name, a->assumed);
}

static int check_functions(const struct shmtrain_layer_kind *kind, struct shmt_error *e) {
    const uint32_t both = SHMTRAIN_LAYER_SAVES | SHMTRAIN_LAYER_ADDS;
    const bool computes = (kind->traits & SHMTRAIN_LAYER_NOTHING) == 0;
    if (!kind->plan) return shmt_refuse(e, "layer %s needs the function plan", kind->name);
    if (!computes && (kind->traits & (SHMTRAIN_LAYER_ADDS | SHMTRAIN_LAYER_CLIPS)))
        return shmt_refuse(e, "layer %s %s, so it computes: leave out the trait NOTHING", kind->name,
                           kind->traits & SHMTRAIN_LAYER_ADDS ? "adds" : "clips");
    if (computes && (!kind->forward || !kind->backward))
        return shmt_refuse(e, "layer %s needs the functions forward and backward", kind->name);
    if ((kind->traits & SHMTRAIN_LAYER_SAVES) && !kind->backward)
        return shmt_refuse(e, "layer %s saves for a sum, so it needs the function backward", kind->name);
    if (kind->traits & ~(uint32_t)TRAITS)
        return shmt_refuse(e, "layer %s has the traits %#x, of which an application's layer may have %#x", kind->name,
                           kind->traits, (unsigned)TRAITS);
    if ((kind->traits & both) == both)
        return shmt_refuse(e, "layer %s both saves for a sum and adds: these are two layers", kind->name);
    return 0;
}

int shmt_layer_kind_check(const struct shmtrain_layer_kind *kind, const struct shmt_layer_kinds *own, struct shmt_error *e) {
    static const struct shmtrain_layer_kind NONE = {0};
    if (!is_name(kind->name, MOST_NAME))
        return shmt_refuse(e, "a layer needs a name: a small letter, then up to %d small letters and digits", MOST_NAME - 1);
    if (shmt_layer_kind_find(own, kind->name, strlen(kind->name)))
        return shmt_refuse(e, "layer \"%s\" exists already", kind->name);
    int rc = check_functions(kind, e);
    for (uint32_t i = 0; rc == 0 && i < SHMTRAIN_LAYER_ARGUMENTS && kind->argument[i].name; i++)
        rc = check_argument(kind, i, e);
    if (rc < 0) return rc;
    if (memcmp(kind->reserved, NONE.reserved, sizeof NONE.reserved) == 0) return 0;
    return shmt_refuse(e, "layer %s sets a reserved member, which a later libshmtrain may know", kind->name);
}

/* ---- what was planned ---- */

static const char *wrong_in_table(const struct shmtrain_layer *layer, uint32_t t) {
    const struct shmtrain_layer_table *table = &layer->table[t];
    if (!is_name(table->name, MOST_TABLE_NAME)) return "a table's name is not up to 12 small letters and digits";
    for (uint32_t k = 0; k < t; k++)
        if (strcmp(layer->table[k].name, table->name) == 0) return "two tables have one name";
    if (table->rows == 0 || table->width == 0 || table->rows > UINT32_MAX || table->width > UINT32_MAX)
        return "a table has not 1 to 2^32 - 1 rows, and numbers in each";
    return NULL;
}

static bool is_one_shape(const struct shmtrain_extent *a, const struct shmtrain_extent *b) {
    return a->channels == b->channels && a->height == b->height && a->width == b->width;
}

bool shmt_extent_count(const struct shmtrain_extent *of, uint64_t *out) {
    uint64_t places;
    return shmt_mul_u64(of->height, of->width, &places) && shmt_mul_u64(places, of->channels, out);
}

const char *shmt_layer_wrong_plan(const struct shmtrain_layer *layer) {
    const uint32_t traits = layer->kind->traits;
    const uint64_t in = shmtrain_extent_numbers(&layer->in);
    uint64_t out;
    if (!shmt_extent_count(&layer->out, &out)) return "one example would have 2^64 outputs or more";
    if (out == 0) return "it has no outputs";
    if ((traits & (SHMTRAIN_LAYER_SAVES | SHMTRAIN_LAYER_ADDS)) && !is_one_shape(&layer->in, &layer->out))
        return "its traits say that it is an end of a sum, but its outputs have not the shape of its inputs";
    if ((traits & (SHMTRAIN_LAYER_IN_PLACE | SHMTRAIN_LAYER_NOTHING)) && in != out)
        return "its traits say that it has as many outputs as inputs, but it has not";
    if (layer->n_tables > SHMTRAIN_LAYER_TABLES) return "it has more than 4 tables";
    for (uint32_t t = 0; t < layer->n_tables; t++) {
        const char *wrong = wrong_in_table(layer, t);
        if (wrong) return wrong;
    }
    return NULL;
}
