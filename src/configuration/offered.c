/* Models and layers, the library's and those of the application: see offered.h. */
#include "configuration/offered.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "layers/layers.h"
#include "models/models.h"

const struct shmtrain_model *shmt_offered_at(const struct shmt_offered *offered, size_t i) {
    size_t n_built_in = 0;
    while (shmt_model_at(n_built_in)) n_built_in++;
    if (i < n_built_in) return shmt_model_at(i);
    return i - n_built_in < offered->n ? &offered->model[i - n_built_in] : NULL;
}

const struct shmtrain_model *shmt_model_named(const struct shmt_offered *offered, const char *name) {
    const struct shmtrain_model *model;
    for (size_t i = 0; (model = shmt_offered_at(offered, i)) && strcmp(model->name, name) != 0; i++) continue;
    return model ? model : shmt_model_scoring(name);
}

bool shmt_offered_has(const struct shmt_offered *offered, const struct shmtrain_model *model) {
    for (uint32_t i = 0; i < offered->n; i++)
        if (strcmp(model->name, offered->model[i].name) == 0) return true; /* perhaps as its options make it */
    return false;
}

enum shmt_rule_kind shmt_offered_rule(const struct shmt_config *config, const struct shmtrain_model *model) {
    enum shmt_rule_kind kind = SHMT_RULE_SGD;
    if (config->optimizer != SHMT_OPTIMIZER_AUTO) return (enum shmt_rule_kind)(config->optimizer - SHMT_OPTIMIZER_FIRST);
    if (model && model->traits.optimizer)
        (void)shmt_rule_parse(model->traits.optimizer, &kind, NULL); /* checked when offered */
    return kind;
}

static int check_traits(const struct shmtrain_model *model, struct shmt_error *e) {
    const struct shmtrain_traits *t = &model->traits;
    static const struct shmtrain_traits NONE = {0};
    enum shmt_rule_kind kind;
    const float number[] = {t->curvature, t->rate, t->adaptive_rate, t->clip_norm};
    if (t->rows > SHMTRAIN_ROWS_EITHER)
        return shmt_refuse(e, "model \"%s\" wants rows %u, which is none", model->name, t->rows);
    if (t->pushes_tables > 1 || t->loops > 1 || t->blas > 1 || t->columns_alike > 1)
        return shmt_refuse(e, "model \"%s\" has a trait that is neither 0 nor 1", model->name);
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (!isfinite(number[i]) || number[i] < 0)
            return shmt_refuse(e, "model \"%s\" has a curvature, rate or norm of %g: use 0 or more", model->name,
                               (double)number[i]);
    if (t->chunks & (t->chunks - 1))
        return shmt_refuse(e, "model \"%s\" wants %u chunks: use a power of two", model->name, t->chunks);
    if (t->optimizer && shmt_rule_parse(t->optimizer, &kind, NULL) < 0)
        return shmt_refuse(e, "model \"%s\" wants optimizer \"%.31s\", which there is not", model->name, t->optimizer);
    if (memcmp(t->reserved, NONE.reserved, sizeof NONE.reserved) == 0) return 0;
    return shmt_refuse(e, "model \"%s\" sets a reserved trait, which a later libshmtrain may know", model->name);
}

/* Names that stand in lines, behind which nothing of the library's or another option's is. */
static int check_options(const struct shmtrain_model *model, struct shmt_error *e) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    if (model->n_options > SHMTRAIN_MODEL_OPTIONS || (model->n_options > 0 && !model->options))
        return shmt_refuse(e, "model \"%s\" has %u options: there may be %d", model->name, model->n_options,
                           SHMTRAIN_MODEL_OPTIONS);
    for (uint32_t i = 0; i < model->n_options; i++) {
        const struct shmtrain_option *o = &model->options[i];
        if (!o->name || !o->name[0] || strspn(o->name, LETTERS) != strlen(o->name) || strlen(o->name) > 31 || !o->standard)
            return shmt_refuse(
                e, "model \"%s\": an option needs a default, and a name of up to 31 small letters, digits and dashes",
                model->name);
        if (shmt_config_has(o->name))
            return shmt_refuse(e, "model \"%s\": there is an option %s already, of the library", model->name, o->name);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(model->options[k].name, o->name) == 0)
                return shmt_refuse(e, "model \"%s\" has two options %s", model->name, o->name);
    }
    return 0;
}

int shmt_offered_add(struct shmt_offered *offered, const struct shmtrain_model *model, struct shmt_error *e) {
    const struct shmtrain_model *other;
    struct shmtrain_model whole;
    const int rc =
        shmt_sized_take(&whole, sizeof whole, model, SHMT_FIRST_SIZE(struct shmtrain_model, probabilities), "model", e);
    if (rc < 0) return rc;
    if (!whole.name || !whole.name[0] || !whole.tables || !whole.step || !whole.score)
        return shmt_refuse(e, "a model needs a name, tables, step and score");
    int refused = check_traits(&whole, e);
    if (refused == 0) refused = check_options(&whole, e);
    if (refused == 0 && !whole.open != !whole.close)
        refused = shmt_refuse(e, "model \"%s\" has one of open and close: it needs both, or neither", whole.name);
    if (refused < 0) return refused;
    if (whole.task < SHMTRAIN_BINARY || whole.task > SHMTRAIN_CLASSES)
        return shmt_refuse(e, "model \"%s\" has the task %d, which is none", whole.name, (int)whole.task);
    if (!whole.loss) whole.loss = "loss";
    if (!whole.about) whole.about = "";
    for (size_t i = 0; (other = shmt_offered_at(offered, i)); i++)
        if (strcmp(other->name, whole.name) == 0) return shmt_refuse(e, "model \"%s\" exists already", whole.name);
    if (offered->n == SHMT_MAX_OFFERED) return shmt_refuse(e, "at most %d own models", SHMT_MAX_OFFERED);
    offered->model[offered->n++] = whole;
    return 0;
}

/* ---- layers ---- */

int shmt_offered_add_layer(struct shmt_offered *offered, const struct shmtrain_layer_kind *kind, struct shmt_error *e) {
    const struct shmt_layer_kinds own = {offered->layer, offered->n_layers};
    struct shmtrain_layer_kind whole;
    int rc =
        shmt_sized_take(&whole, sizeof whole, kind, SHMT_FIRST_SIZE(struct shmtrain_layer_kind, reserved), "layer_kind", e);
    if (rc == 0) rc = shmt_layer_kind_check(&whole, &own, e);
    if (rc < 0) return rc;
    if (offered->n_layers == SHMT_MAX_OFFERED_LAYERS) return shmt_refuse(e, "at most %d own layers", SHMT_MAX_OFFERED_LAYERS);
    struct shmtrain_layer_kind *ours = malloc(sizeof *ours);
    if (!ours) return shmt_no_memory(e, "for layer %s", whole.name);
    *ours = whole;
    offered->layer[offered->n_layers++] = ours;
    return 0;
}

const struct shmtrain_layer_kind *shmt_offered_layer(const struct shmt_offered *offered, const char *name) {
    for (uint32_t i = 0; i < offered->n_layers; i++)
        if (strcmp(offered->layer[i]->name, name) == 0) return offered->layer[i];
    return NULL;
}

void shmt_offered_tell(const struct shmt_offered *offered, struct shmtrain_settings *settings) {
    settings->layers = offered->layer;
    settings->n_layers = offered->n_layers;
}

void shmt_offered_free(struct shmt_offered *offered) {
    for (uint32_t i = 0; i < offered->n_layers; i++) free((struct shmtrain_layer_kind *)(uintptr_t)offered->layer[i]);
    *offered = (struct shmt_offered){0};
}
