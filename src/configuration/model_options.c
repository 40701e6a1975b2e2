/* Models' own options: see model_options.h. */
#include "configuration/model_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "models/models.h"

/* The number of an option of the model; n_options: it has none of this name. */
static uint32_t find(const struct shmtrain_model *model, const char *name, size_t length) {
    uint32_t i = 0;
    while (i < model->n_options &&
           (strncmp(model->options[i].name, name, length) != 0 || model->options[i].name[length] != '\0'))
        i++;
    return i;
}

static bool is_plain(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ') return false;
    return true;
}

static int check(const struct shmtrain_model *model, uint32_t i, const char *text, struct shmt_error *e) {
    const char *name = model->options[i].name;
    char why[200] = "";
    if (!is_plain(text)) return shmt_refuse(e, "%s: a control character is in its text", name);
    if (!model->check_option || model->check_option(i, text, why, sizeof why) == 0) return 0;
    return shmt_refuse(e, "%s \"%.300s\": %s", name, text, why[0] ? why : "the model does not take it");
}

static struct shmt_own_option *own(struct shmt_config *config, const char *name) {
    for (uint32_t i = 0; i < config->n_own; i++)
        if (strcmp(config->own[i].name, name) == 0) return &config->own[i];
    return NULL;
}

/* The text in one line: joined texts, and refusals, have one for each. NULL: no memory. */
static char *one_line(const char *text) {
    char *copy = strdup(text);
    for (char *at = copy; at && *at; at++)
        if (*at == '\n' || *at == '\t') *at = ' ';
    return copy;
}

/* It has its default again, whatever the model. */
static void forget(struct shmt_config *config, const char *name) {
    struct shmt_own_option *at = own(config, name);
    if (!at) return;
    free(at->name);
    free(at->text);
    *at = config->own[--config->n_own];
    config->own[config->n_own] = (struct shmt_own_option){0};
}

static int keep(struct shmt_config *config, const char *name, const char *text, struct shmt_error *e) {
    struct shmt_own_option *at = own(config, name);
    char *copy = strdup(text), *named = at ? NULL : strdup(name);
    if (!copy || (!at && (!named || config->n_own == SHMT_MOST_OWN))) {
        free(copy);
        free(named);
        return !copy || !named ? shmt_no_memory(e, "for option %s", name) : shmt_refuse(e, "too many options of models");
    }
    if (!at) {
        at = &config->own[config->n_own++];
        at->name = named;
    }
    free(at->text);
    at->text = copy;
    at->of_environment = false;
    return 0;
}

/* For the first of the models that have the option and take the text. */
static int set_of_models(struct shmt_config *config, const struct shmt_offered *offered, const char *name, const char *text,
                         struct shmt_error *e) {
    const struct shmtrain_model *model;
    struct shmt_error why = {0};
    bool known = false;
    for (size_t m = 0; (model = shmt_offered_at(offered, m)); m++) {
        const uint32_t i = find(model, name, strlen(name));
        if (i == model->n_options) continue;
        const bool taken = check(model, i, text, known ? NULL : &why) == 0;
        if (taken && text[0] == '\0' && model->options[i].standard[0] == '\0') return 0; /* as it is */
        if (taken) return keep(config, name, text, e);
        known = true;
    }
    if (known) return shmt_fail(e, why.status, "%s", why.text); /* what the first one says */
    return shmt_config_set(config, name, name, text, e);        /* which says that there is none */
}

int shmt_option_set(struct shmt_config *config, const struct shmt_offered *offered, const char *name, const char *value,
                    struct shmt_error *e) {
    if (shmt_config_has(name)) return shmt_config_set(config, name, name, value, e);
    if (value[0] == '\0' && own(config, name)) {
        forget(config, name);
        return 0;
    }
    char *text = one_line(value);
    const int rc = text ? set_of_models(config, offered, name, text, e) : shmt_no_memory(e, "for option %s", name);
    free(text);
    return rc;
}

/* Models may share an option: it is the same with all of them, and counts with the first. */
static bool is_of_an_earlier(size_t model, const char *name) {
    for (size_t m = 0; m < model; m++) {
        const struct shmtrain_model *earlier = shmt_model_at(m);
        if (find(earlier, name, strlen(name)) < earlier->n_options) return true;
    }
    return false;
}

/* Of the table, then those of built-in models, each name once. */
const struct shmtrain_option *shmtrain_option_at(size_t i) {
    const struct shmt_option_row *row;
    const struct shmtrain_model *model;
    size_t n = 0;
    while ((row = shmt_option_row_at(n)) && n < i) n++;
    if (row) return &row->option;
    for (size_t m = 0; (model = shmt_model_at(m)); m++)
        for (uint32_t k = 0; k < model->n_options; k++) {
            if (is_of_an_earlier(m, model->options[k].name)) continue;
            if (n++ == i) return &model->options[k];
        }
    return NULL;
}

int shmt_options_from_environment(struct shmt_config *config, const struct shmt_offered *offered, struct shmt_error *e) {
    const struct shmtrain_option *option;
    int rc = shmt_config_set_from_environment(config, e);
    for (size_t i = 0; rc == 0 && (option = shmtrain_option_at(i)); i++) {
        const char *value = shmt_config_has(option->name) ? NULL : getenv(option->environment);
        if (!value || !value[0]) continue;
        rc = shmt_option_set(config, offered, option->name, value, e);
        if (rc == 0) own(config, option->name)->of_environment = true;
    }
    return rc;
}

/* Text number i behind those before it: in `joined` as a line, in `apart` by itself. */
static int add(struct shmt_model_texts *texts, const struct shmtrain_model *model, uint32_t i, const char *text,
               struct shmt_error *e) {
    const size_t used = strlen(texts->joined), room = sizeof texts->joined - used;
    char *apart = i == 0 ? texts->apart : strchr(texts->option[i - 1], '\0') + 1;
    const int n = snprintf(texts->joined + used, room, "%s=%s\n", model->options[i].name, text);
    if (n < 0 || (size_t)n >= room)
        return shmt_refuse(e, "%s: the options of model %s are longer than %d characters", model->options[i].name, model->name,
                           SHMT_MODEL_TEXTS - 1);
    memcpy(apart, text, strlen(text) + 1); /* shorter than its line, so there is room */
    texts->option[i] = apart;
    return 0;
}

/* What stands in the environment is for the models that have it. */
static int refuse_strangers(const struct shmt_config *config, const struct shmtrain_model *model, struct shmt_error *e) {
    for (uint32_t i = 0; i < config->n_own; i++)
        if (!config->own[i].of_environment && find(model, config->own[i].name, strlen(config->own[i].name)) == model->n_options)
            return shmt_refuse(e, "model %s has no option %s", model->name, config->own[i].name);
    return 0;
}

int shmt_model_texts_of_config(const struct shmt_config *config, const struct shmtrain_model *model,
                               struct shmt_model_texts *out, struct shmt_error *e) {
    int rc = refuse_strangers(config, model, e);
    *out = (struct shmt_model_texts){0};
    for (uint32_t i = 0; rc == 0 && i < model->n_options; i++) {
        const char *text = model->options[i].standard;
        for (uint32_t k = 0; k < config->n_own; k++)
            if (strcmp(config->own[k].name, model->options[i].name) == 0) text = config->own[k].text;
        rc = check(model, i, text, e);
        if (rc == 0) rc = add(out, model, i, text, e);
    }
    return rc;
}

/* The text of an option among joined ones, into out (SHMT_MODEL_TEXTS); NULL: it is not there. */
static const char *text_in(const char *joined, const char *name, char *out) {
    const size_t length = strlen(name);
    for (const char *line = joined; *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        if (!end) return NULL; /* has been looked at before */
        if (strncmp(line, name, length) != 0 || line[length] != '=') continue;
        snprintf(out, SHMT_MODEL_TEXTS, "%.*s", (int)(end - line - (ptrdiff_t)length - 1), line + length + 1);
        return out;
    }
    return NULL;
}

/* Lines of NAME=TEXT, of options that the model has. */
static int check_joined(const char *joined, const struct shmtrain_model *model, struct shmt_error *e) {
    if (strlen(joined) >= SHMT_MODEL_TEXTS) return shmt_fail(e, SHMTRAIN_E_DATA, "it is too long");
    for (const char *line = joined; *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n'), *equals = strchr(line, '=');
        if (!end || !equals || equals > end) return shmt_fail(e, SHMTRAIN_E_DATA, "expected lines of NAME=TEXT");
        if (find(model, line, (size_t)(equals - line)) == model->n_options)
            return shmt_fail(e, SHMTRAIN_E_DATA, "model %s has no option \"%.*s\"", model->name,
                             (int)shmt_min_u64((uint64_t)(equals - line), 40), line);
    }
    return 0;
}

int shmt_model_texts_of_joined(const char *joined, const struct shmtrain_model *model, struct shmt_model_texts *out,
                               struct shmt_error *e) {
    struct shmt_error why = {0};
    char text[SHMT_MODEL_TEXTS];
    int rc = check_joined(joined, model, &why);
    *out = (struct shmt_model_texts){0};
    for (uint32_t i = 0; rc == 0 && i < model->n_options; i++) {
        const char *in = text_in(joined, model->options[i].name, text), *of = in ? in : model->options[i].standard;
        rc = check(model, i, of, &why);
        if (rc == 0) rc = add(out, model, i, of, &why);
    }
    return rc < 0 ? shmt_fail(e, SHMTRAIN_E_DATA, "%s", why.text) : 0;
}

/* ---- what texts make of a model ---- */

const struct shmtrain_model *shmt_model_adapt(const struct shmtrain_model *model, struct shmt_model_texts *texts) {
    struct shmtrain_model wished = *model, *out = &texts->adapted;
    if (!model->adapt) return model;
    model->adapt(texts->option, &wished);
    *out = *model;
    if (wished.task >= SHMTRAIN_BINARY && wished.task <= SHMTRAIN_CLASSES) out->task = wished.task;
    if (wished.loss) out->loss = wished.loss;
    out->threshold = wished.threshold;
    if (wished.traits.rate >= 0) out->traits.rate = wished.traits.rate;
    if (wished.traits.adaptive_rate >= 0) out->traits.adaptive_rate = wished.traits.adaptive_rate;
    out->check = wished.check;
    out->begin = wished.begin;
    out->probabilities = wished.probabilities;
    return out;
}

const struct shmtrain_model *shmt_model_of_joined(const struct shmt_offered *offered, const char *name, const char *joined,
                                                  struct shmt_model_texts *room) {
    const struct shmtrain_model *model = name ? shmt_model_named(offered, name) : NULL;
    if (!model || !model->adapt) return model;
    return shmt_model_texts_of_joined(joined, model, room, NULL) < 0 ? NULL : shmt_model_adapt(model, room);
}
