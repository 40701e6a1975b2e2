/* What `shmtrain scale` shows, as one JSON object; docs/simulator.md says what each key is. See scale.h. */
#include <jansson.h>
#include <math.h>

#include "cli/scale/scale.h"

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *cell_of(const struct scaling *s, const struct scale_mode *mode, unsigned node, unsigned workers) {
    const struct scale_cell *cell = &mode->cell[node][workers];
    const struct scale_spread spread = scale_speed_up(s, mode, node, workers);
    json_t *o = json_object(), *speeds = json_array();
    json_object_set_new(o, "workers", json_integer(s->workers[workers]));
    json_object_set_new(o, "nodes", json_integer(s->nodes[node]));
    json_object_set_new(o, "speed_up", number(spread.median));
    json_object_set_new(o, "speed_up_least", number(spread.least));
    json_object_set_new(o, "speed_up_most", number(spread.most));
    json_object_set_new(o, "train_loss", number(scale_loss(s, cell)));
    for (unsigned i = 0; i < s->seeds; i++)
        json_array_append_new(speeds, cell->speed[i] > 0 ? number(cell->speed[i]) : json_null());
    json_object_set_new(o, "examples_per_second", speeds);
    if (cell->why[0] != '\0') json_object_set_new(o, "refused", json_string(cell->why));
    return o;
}

static json_t *mode_of(const struct scaling *s, const struct scale_mode *mode) {
    json_t *o = json_object(), *costs = json_array(), *cells = json_array();
    for (unsigned seed = 0; seed < s->seeds; seed++) json_array_append_new(costs, json_string(mode->costs[seed]));
    for (unsigned node = 0; node < s->n_nodes; node++)
        for (unsigned w = 0; w < s->n_workers; w++)
            if (scale_has_cell(s, node, w)) json_array_append_new(cells, cell_of(s, mode, node, w));
    json_object_set_new(o, "mode", json_string(mode->name));
    json_object_set_new(o, "sim", costs);
    json_object_set_new(o, "predicted", cells);
    return o;
}

static json_t *published(void) {
    json_t *all = json_array();
    const struct scale_published *p;
    for (unsigned i = 0; (p = scale_published_at(i)); i++) {
        json_t *o = json_object();
        json_object_set_new(o, "what", json_string(p->what));
        json_object_set_new(o, "where", json_string(p->where));
        json_object_set_new(o, "workers", p->workers > 0 ? json_integer(p->workers) : json_null());
        json_object_set_new(o, "speed_up", number(p->speed_up));
        if (p->words[0] != '\0') json_object_set_new(o, "words", json_string(p->words));
        json_array_append_new(all, o);
    }
    return all;
}

int scale_put_json(const struct scaling *s, FILE *out) {
    json_t *o = json_object(), *modes = json_array();
    json_object_set_new(o, "data", json_string_nocheck(s->title));
    json_object_set_new(o, "first_seed", json_integer((json_int_t)s->first_seed));
    json_object_set_new(o, "seeds", json_integer(s->seeds));
    for (unsigned m = 0; m < s->n_modes; m++) json_array_append_new(modes, mode_of(s, &s->mode[m]));
    json_object_set_new(o, "modes", modes);
    int rc = json_object_set_new(o, "published", published());
    if (rc == 0 && json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(12)) < 0 && !ferror(out)) rc = -1;
    if (rc == 0) fputc('\n', out);
    json_decref(o);
    return rc;
}
