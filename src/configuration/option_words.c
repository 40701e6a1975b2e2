/* The words that an option takes as its value, for those who offer them to a user: completion, forms. See
 * <shmtrain/store.h>. */
#include <stdio.h>
#include <string.h>

#include "configuration/options.h"
#include "base/cpu.h"
#include "models/models.h"

/* "a|b|c" in the caller's memory; what does not fit is cut off. */
struct list {
    char *out;
    size_t bytes, n;
};

static void add(struct list *list, const char *word) {
    if (list->n + 1 >= list->bytes) return;
    const int n = snprintf(list->out + list->n, list->bytes - list->n, "%s%s", list->n > 0 ? "|" : "", word);
    list->n += (size_t)n < list->bytes - list->n ? (size_t)n : list->bytes - list->n - 1;
}

static void add_modes(struct list *list) {
    const struct shmtrain_mode *mode;
    add(list, "auto");
    for (size_t i = 0; (mode = shmtrain_mode_at(i)); i++) add(list, mode->form);
}

static void add_models(struct list *list) {
    const struct shmtrain_model *model;
    for (size_t i = 0; (model = shmt_model_at(i)); i++) add(list, model->name);
}

static void add_cpus(struct list *list) {
    add(list, "auto");
    for (int cpu = 0; cpu < SHMT_N_CPUS; cpu++) add(list, shmt_cpu_name((enum shmt_cpu)cpu));
}

static void add_inf(struct list *list) { add(list, "inf"); }
static void add_spawns(struct list *list) { add(list, "processes|threads|fibers"); }
static void add_none(struct list *list) { add(list, "none"); }
static void add_balanced(struct list *list) { add(list, "balanced"); }

/* Options whose text is checked elsewhere; of the others their row says it. */
static const struct {
    const char *option;
    void (*add_words)(struct list *list);
} TEXTS[] = {{"mode", add_modes},    {"model", add_models},          {"cpu", add_cpus},
             {"staleness", add_inf}, {"class-weight", add_balanced}, {"stall-timeout", add_none},
             {"spawn", add_spawns}};

static void add_of_row(struct list *list, const struct shmt_option_row *row) {
    if (row->kind == SHMT_OPTION_SWITCH) add(list, "0|1");
    if (row->choices) add(list, row->choices);
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        if (strcmp(TEXTS[i].option, row->option.name) == 0) TEXTS[i].add_words(list);
}

void shmtrain_option_words(const struct shmtrain_option *option, char *out, size_t bytes) {
    const struct shmt_option_row *row;
    struct list list = {out, bytes, 0};
    if (bytes > 0) out[0] = '\0';
    for (size_t i = 0; (row = shmt_option_row_at(i)); i++)
        if (strcmp(row->option.name, option->name) == 0) add_of_row(&list, row);
}
