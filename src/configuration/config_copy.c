/* A configuration for a run beside another one. */
#include <stdlib.h>
#include <string.h>

#include "configuration/options.h"

static char **text_of(struct shmt_config *config, const struct shmt_option_row *row) {
    if (row->kind != SHMT_OPTION_WORD && row->kind != SHMT_OPTION_TEXT) return NULL;
    return (char **)(void *)((unsigned char *)config + row->offset);
}

/* All texts of *config become its own. False: not all of them. */
static bool take_texts(struct shmt_config *config, const struct shmt_config *from) {
    const struct shmt_option_row *row;
    bool all = true;
    for (size_t i = 0; (row = shmt_option_row_at(i)); i++) {
        char **at = text_of(config, row);
        if (at && *at) all = (*at = strdup(*at)) != NULL && all;
    }
    for (uint32_t i = 0; i < config->n_own; i++) {
        config->own[i].name = strdup(from->own[i].name);
        config->own[i].text = strdup(from->own[i].text);
        all = all && config->own[i].name && config->own[i].text;
    }
    return all;
}

int shmt_config_copy(const struct shmt_config *from, struct shmt_config *out, struct shmt_error *e) {
    *out = *from;
    if (take_texts(out, from)) return 0;
    shmt_config_fini(out);
    return shmt_no_memory(e, "for a configuration");
}

int shmt_config_reset(struct shmt_config *config, const char *name, struct shmt_error *e) {
    const struct shmt_option_row *row;
    for (size_t i = 0; (row = shmt_option_row_at(i)); i++) {
        if (strcmp(row->option.name, name) != 0) continue;
        const int rc = shmt_config_set(config, name, name, row->option.standard, e);
        config->given[i] = false;
        return rc;
    }
    return shmt_refuse(e, "there is no option \"%.60s\"", name);
}
