/* Arrays of the application: see arrays.h. */
#include "loading/arrays.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "segment/budget.h"

#define LONGEST 40

/* ---- names ---- */

static bool is_arrays_name(const char *name) { return strncmp(name, SHMT_GIVEN_PREFIX, strlen(SHMT_GIVEN_PREFIX)) == 0; }

static struct shmt_arrays_kept **find(struct shmt_arrays_kept **at, const char *full) {
    while (*at && strcmp((*at)->given.name, full) != 0) at = &(*at)->next;
    return at;
}

const struct shmt_given *shmt_arrays_find(const struct shmt_loading *loading, const char *name) {
    struct shmt_arrays_kept *first = loading->arrays;
    const struct shmt_arrays_kept *found = is_arrays_name(name) ? *find(&first, name) : NULL;
    return found ? &found->given : NULL;
}

int shmt_arrays_check_name(struct shmt_loading *loading, const char *name) {
    if (!is_arrays_name(name) || shmt_arrays_find(loading, name)) return 0;
    return shmt_refuse(&loading->call->error,
                       "no arrays are named \"%.60s\": shmtrain_store_arrays gives them a name; a file of this name is ./%.60s",
                       name, name);
}

static bool is_word(const char *name) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const size_t n = strlen(name);
    return n >= 1 && n <= LONGEST && strspn(name, LETTERS) == n;
}

static void drop(struct shmt_arrays_kept **at) {
    struct shmt_arrays_kept *kept = *at;
    if (!kept) return;
    *at = kept->next;
    shmt_given_free(&kept->given);
    free(kept);
}

void shmt_arrays_forget(struct shmt_loading *loading) {
    while (loading->arrays) drop(&loading->arrays);
}

/* ---- giving ---- */

static int copy(struct shmt_call *call, struct shmt_given *given) {
    const int rc = shmt_budget_need(shmt_given_copy_bytes(given), given->name, NULL, "free some, or let the arrays be borrowed",
                                    &call->error);
    return rc < 0 ? rc : shmt_given_copy(given, &call->error);
}

static int take(struct shmt_call *call, const struct shmtrain_arrays *arrays, struct shmt_given *given) {
    int rc = shmt_sized_take(&given->of, sizeof given->of, arrays, SHMT_FIRST_SIZE(struct shmtrain_arrays, weight), "arrays",
                             &call->error);
    if (rc == 0) rc = shmt_given_check(given, &call->error);
    return rc < 0 || given->of.borrowed ? rc : copy(call, given);
}

int shmt_arrays_give(struct shmt_loading *loading, const char *name, const struct shmtrain_arrays *arrays) {
    if (!name || !is_word(name))
        return shmt_refuse(&loading->call->error,
                           "arrays cannot be named \"%.60s\": a name has 1 to %d letters, digits, '_', '-' and '.'",
                           name ? name : "", LONGEST);
    struct shmt_arrays_kept *kept = calloc(1, sizeof *kept);
    if (!kept) return shmt_no_memory(&loading->call->error, "for the name of arrays");
    snprintf(kept->given.name, sizeof kept->given.name, SHMT_GIVEN_PREFIX "%s", name);
    int rc = arrays ? take(loading->call, arrays, &kept->given) : 0;
    if (rc == 0) drop(find(&loading->arrays, kept->given.name));
    if (rc < 0 || !arrays) {
        free(kept);
        return rc;
    }
    kept->next = loading->arrays;
    loading->arrays = kept;
    return 0;
}

/* ---- in place ---- */

static const char *misfit_of_dense(const struct shmt_load *load, const struct shmtrain_arrays *a) {
    if (!load->dense) return "the model needs sparse rows";
    if (a->stride != a->n_features) return "there are gaps between its rows (stride)";
    if (load->columns.base != 0 || load->columns.n_features != a->n_features) return "its features differ from the model's";
    return NULL;
}

static const char *misfit_of_sparse(const struct shmt_load *load, const struct shmtrain_arrays *a) {
    if (load->dense) return "the model needs dense rows";
    if (a->wide_id) return "its ids have 64 bits";
    if (a->start[0] != 0) return "its start must begin with 0";
    if (load->columns.base != 0) return "its ids begin at 1 (n_features above 0 makes them begin at 0)";
    if (load->totals.n_nonzeros != a->start[a->n_examples]) return "it has values that are 0, or ids that are not features";
    return NULL;
}

/* Why the arrays cannot be used as they are; NULL: they can. */
static const char *misfit(const struct shmt_load *load, const struct shmt_config *config, const struct shmt_spec *spec,
                          bool shared) {
    const struct shmtrain_arrays *a = &shmt_given_of(load->source)->of;
    const struct shmt_placement *p = &spec->placement;
    if (shared && config->name[0]) return "the run has a name";
    if (p->policy != SHMT_PLACE_OFF && p->n_nodes > 1) return "it is placed on several NUMA nodes";
    if (!shmt_columns_are_range(&load->columns)) return "its ids are hashed, or numbered by a list";
    if (spec->row_places) return "columns are numbered by how often they occur (--columns given keeps them)";
    return a->dense ? misfit_of_dense(load, a) : misfit_of_sparse(load, a);
}

void shmt_arrays_decide(struct shmt_load *load, const struct shmt_call *call, const struct shmt_config *config,
                        const struct shmt_spec *spec, bool shared) {
    const struct shmt_given *given = load->source ? shmt_given_of(load->source) : NULL;
    if (!given) return;
    const char *why = misfit(load, config, spec, shared);
    load->in_place = why == NULL;
    if (why && !given->own && !call->plans_only) shmt_log(&call->log, "%s is copied: %s", load->name, why);
}

/* Weights that options change are ours; else those that are there do. */
int shmt_arrays_take(struct shmt_load *load, struct shmt_error *e) {
    static const uint32_t NO_ID = 0;
    const struct shmtrain_arrays *a = &shmt_given_of(load->source)->of;
    struct shmtrain_data *data = &load->data;
    if (load->weighted && !(load->weight = malloc(a->n_examples * sizeof *load->weight)))
        return shmt_no_memory(e, "for %llu weights", (unsigned long long)a->n_examples);
    data->dense = a->dense;
    data->start = a->start;
    data->id = a->start ? a->id : NULL;
    if (a->start && !a->id) data->id = &NO_ID; /* as arrays of other sources: none is read of it */
    data->value = load->totals.all_ones ? NULL : a->value;
    data->label = a->label;
    data->weight = load->weight;
    return 0;
}

bool shmt_arrays_take_weights(const struct shmt_load *load) {
    const float *given = load->source ? shmt_source_weights(load->source) : NULL;
    if (given && load->weight) memcpy(load->weight, given, load->totals.n_examples * sizeof *given);
    return given != NULL;
}
