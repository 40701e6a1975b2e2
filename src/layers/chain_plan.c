/* From the text of --net to planned layers: see chain.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "layers/arguments.h"
#include "layers/chain.h"

enum { MOST_NUMBERS = INT32_MAX, MOST_SHOWN = 40 };

/* What planning goes along with. */
struct planning {
    const char *given_as, *text;
    const struct shmt_layer_kinds *own;
    struct shmt_chain *chain;
    uint32_t saved[SHMT_CHAIN_LAYERS], n_saved; /* layers that have saved and were not added yet, the latest one last */
    struct shmt_error *e;
};

static uint32_t column_of(const struct planning *p, uint32_t i) { return p->chain->from[i] + 1; }

static int refuse_name(const struct planning *p, uint32_t i, uint32_t letters) {
    const char *name = p->text + p->chain->from[i];
    const struct shmtrain_layer_kind *near = shmt_layer_kind_near(p->own, name, letters), *kind;
    char list[256] = "";
    uint64_t used = 0;
    for (uint32_t k = 0; !near && (kind = shmt_layer_kind_at(p->own, k)) != NULL && used < sizeof list; k++)
        used += (uint64_t)snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", kind->name);
    return shmt_refuse(p->e, "%s, column %u: there is no layer \"%.*s\": %s %s", p->given_as, column_of(p, i),
                       (int)(letters < MOST_SHOWN ? letters : MOST_SHOWN), name, near ? "did you mean" : "layers are",
                       near ? near->name : list);
}

/* Writes "32x24x24", or "128" where there is one place. */
static const char *extent_text(const struct shmtrain_extent *x, char *out, uint64_t bytes) {
    if (x->height == 1 && x->width == 1)
        snprintf(out, bytes, "%u", x->channels);
    else
        snprintf(out, bytes, "%ux%ux%u", x->channels, x->height, x->width);
    return out;
}

/* Who adds belongs to the latest who has saved, and has the same shape. */
static int match(struct planning *p, uint32_t i) {
    struct shmt_chain *chain = p->chain;
    const struct shmtrain_layer *layer = &chain->layer[i];
    char here[40], there[40];
    if (layer->kind->traits & SHMTRAIN_LAYER_SAVES) p->saved[p->n_saved++] = i;
    if (!(layer->kind->traits & SHMTRAIN_LAYER_ADDS)) return 0;
    if (p->n_saved == 0)
        return shmt_refuse(p->e, "%s, column %u: %s: nothing was saved before it: write save where the sum's other part is",
                           p->given_as, column_of(p, i), layer->kind->name);
    const uint32_t saver = p->saved[--p->n_saved];
    const struct shmtrain_extent *a = &layer->in, *b = &chain->layer[saver].in;
    chain->saver[i] = saver;
    chain->saver[saver] = i;
    if (a->channels == b->channels && a->height == b->height && a->width == b->width) return 0;
    return shmt_refuse(p->e, "%s, column %u: %s: here are %s numbers, but %s were saved in column %u: they must be as many",
                       p->given_as, column_of(p, i), layer->kind->name, extent_text(a, here, sizeof here),
                       extent_text(b, there, sizeof there), column_of(p, saver));
}

/* Asks the kind, and counts what it said. */
static int plan_layer(struct planning *p, uint32_t i, const uint32_t *column) {
    struct shmt_chain *chain = p->chain;
    struct shmtrain_layer *layer = &chain->layer[i];
    const struct shmtrain_layer_kind *kind = layer->kind;
    layer->wrong = -1;
    if (kind->plan(layer) < 0) {
        const bool at = layer->wrong >= 0 && layer->wrong < SHMTRAIN_LAYER_ARGUMENTS;
        return shmt_refuse(p->e, "%s, column %u: %s: %s%s%.*s", p->given_as, at ? column[layer->wrong] : column_of(p, i),
                           kind->name, at ? kind->argument[layer->wrong].name : "", at ? ": " : "", SHMTRAIN_LAYER_WHY,
                           layer->why);
    }
    const char *wrong = shmt_layer_wrong_plan(layer);
    if (wrong)
        return shmt_refuse(p->e, "%s, column %u: %s: its plan is wrong: %s", p->given_as, column_of(p, i), kind->name, wrong);
    if (shmtrain_extent_numbers(&layer->out) > MOST_NUMBERS)
        return shmt_refuse(p->e,
                           "%s, column %u: %s: one example would have %" PRIu64 " outputs, but at most 2^31 - 1 are possible",
                           p->given_as, column_of(p, i), kind->name, shmtrain_extent_numbers(&layer->out));
    chain->first_table[i] = chain->n_tables;
    chain->n_tables += layer->n_tables;
    if (chain->n_tables > SHMT_CHAIN_TABLES)
        return shmt_refuse(p->e, "%s, column %u: %s: the network has more than %d tables of parameters", p->given_as,
                           column_of(p, i), kind->name, SHMT_CHAIN_TABLES);
    for (uint32_t t = 0; t < layer->n_tables; t++) {
        if (!shmt_add_u64(chain->parameters, layer->table[t].rows * layer->table[t].width, &chain->parameters))
            return shmt_refuse(p->e, "%s, column %u: %s: the network would have 2^64 parameters or more", p->given_as,
                               column_of(p, i), kind->name);
        chain->mixes |= layer->table[t].role == SHMTRAIN_STATISTIC;
        if (layer->table[t].role != SHMTRAIN_FROZEN && chain->first_pushed > i) chain->first_pushed = i;
    }
    chain->multiplications += layer->multiplications;
    chain->needs_blas |= (kind->traits & SHMTRAIN_LAYER_BLAS) != 0;
    chain->mixes |= (kind->traits & SHMTRAIN_LAYER_MIXES) != 0;
    return match(p, i);
}

/* A relu whose work the layer before it does. */
static void clip(struct shmt_chain *chain, uint32_t i) {
    struct shmtrain_layer *before = i > 0 ? &chain->layer[i - 1] : NULL;
    if (!before || chain->layer[i].kind != &SHMT_LAYER_RELU || !(before->kind->traits & SHMTRAIN_LAYER_CLIPS)) return;
    before->relu = 1;
    before->reads |= SHMTRAIN_LAYER_READS_OUT;
    chain->clipped[i] = true;
}

static int plan_word(struct planning *p, uint32_t from, uint32_t letters) {
    struct shmt_chain *chain = p->chain;
    const uint32_t i = chain->n_layers;
    const char *word = p->text + from, *colon = memchr(word, ':', letters);
    const uint32_t name = colon ? (uint32_t)(colon - word) : letters;
    uint32_t column[SHMTRAIN_LAYER_ARGUMENTS] = {0};
    if (i == SHMT_CHAIN_LAYERS)
        return shmt_refuse(p->e, "%s, column %u: a network has at most %d layers", p->given_as, from + 1, SHMT_CHAIN_LAYERS);
    chain->from[i] = from;
    chain->letters[i] = letters;
    struct shmtrain_layer *layer = &chain->layer[i];
    *layer = (struct shmtrain_layer){.size = sizeof *layer, .number = i, .in = chain->out};
    layer->kind = shmt_layer_kind_find(p->own, word, name);
    if (!layer->kind) return refuse_name(p, i, name);
    int rc = shmt_layer_read((struct shmt_layer_text){p->given_as, word, letters, from + 1}, layer, column, p->e);
    if (rc == 0) rc = plan_layer(p, i, column);
    if (rc < 0) return rc;
    clip(chain, i);
    chain->out = layer->out;
    chain->n_layers++;
    return 0;
}

int shmt_chain_plan(const char *given_as, const char *text, struct shmtrain_extent in, const struct shmt_layer_kinds *own,
                    struct shmt_chain *out, struct shmt_error *e) {
    static const char BLANKS[] = " \t\n";
    struct planning p = {.given_as = given_as, .text = text, .own = own, .chain = out, .e = e};
    *out = (struct shmt_chain){.in = in, .out = in, .first_pushed = UINT32_MAX};
    uint64_t numbers;
    if (!shmt_extent_count(&in, &numbers))
        return shmt_refuse(e, "%s: an example of the data has 2^64 numbers or more", given_as);
    if (numbers == 0 || numbers > MOST_NUMBERS)
        return shmt_refuse(e, "%s: an example of the data has %" PRIu64 " numbers, but a network needs 1 to 2^31 - 1", given_as,
                           numbers);
    uint64_t at = strspn(text, BLANKS);
    for (uint64_t letters; text[at]; at += letters + strspn(text + at + letters, BLANKS)) {
        letters = strcspn(text + at, BLANKS);
        const int rc = at + letters > INT32_MAX ? shmt_refuse(e, "%s: the text is too long", given_as)
                                                : plan_word(&p, (uint32_t)at, (uint32_t)letters);
        if (rc < 0) return rc;
    }
    if (out->n_layers == 0) return shmt_refuse(e, "%s: there are no layers: write for example \"fc:128 relu fc:10\"", given_as);
    if (p.n_saved > 0)
        return shmt_refuse(e, "%s, column %u: save: nothing adds what it saves: write add where the sum is to be", given_as,
                           column_of(&p, p.saved[p.n_saved - 1]));
    if (out->first_pushed > out->n_layers) out->first_pushed = out->n_layers;
    return 0;
}
