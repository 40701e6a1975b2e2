/* Where loaded data shall lie: see load_place.h.
 *
 * Strata (ps/strata.h) say which examples belong to which node. Where an example's nonzeros begin is not known before the
 * data is there; it is interpolated between the parts that were counted, which is near enough for pages. */
#include "loading/load_place.h"

#include <stdlib.h>

#include "ps/strata.h"

#define ANYWHERE   (-2)
#define OVER_ALL   (-1)
#define MAX_ARRAYS 5

/* Example `first` of the run, as the source counts. */
static uint64_t of_source(const struct shmt_load *load, const struct shmt_readers *readers, uint64_t first) {
    if (first >= readers->spec->n_examples) return load->totals.n_examples;
    return readers->train_example && first > 0 ? readers->train_example[first] : first;
}

static int is_by_node(const struct shmt_readers *readers) {
    const struct shmt_placement *p = readers->placement;
    if (p->n_nodes < 2 || !p->private_local || !readers->spec) return 0;
    /* Unshuffled batches are consecutive examples: all nodes read all over the data. */
    if (shmt_policy_is_batched(&readers->spec->policy)) return readers->spec->order.shuffle;
    return !shmt_spec_is_linked(readers->spec); /* many hosts have one order for all nodes */
}

int shmt_load_stretches(const struct shmt_load *load, const struct shmt_readers *readers, struct shmt_stretch **out,
                        uint32_t *n_out, struct shmt_error *e) {
    const struct shmt_placement *p = readers->placement;
    const int by_node = is_by_node(readers);
    const uint32_t strata = by_node ? shmt_strata_count(readers->spec) : 1;
    struct shmt_stretch *stretch = calloc(strata, sizeof *stretch);
    if (!stretch) return shmt_no_memory(e, "to place %u parts of the data", strata);
    uint32_t n = 0;
    for (uint32_t i = 0; by_node && i < strata; i++) {
        struct shmt_stratum s;
        shmt_strata_at(readers->spec, i, &s);
        const uint64_t from = of_source(load, readers, s.first), to = of_source(load, readers, s.first + s.n);
        if (from >= to) continue;
        if (n > 0 && stretch[n - 1].node == (int32_t)s.node)
            stretch[n - 1].to = to;
        else
            stretch[n++] = (struct shmt_stretch){from, to, (int32_t)s.node};
    }
    if (n == 0) {
        const int32_t node = p->policy == SHMT_PLACE_OFF ? ANYWHERE : p->n_nodes == 1 ? 0 : OVER_ALL;
        stretch[n++] = (struct shmt_stretch){0, load->totals.n_examples, node};
    }
    *out = stretch;
    *n_out = n;
    return 0;
}

/* ---- bytes ---- */

/* How many nonzeros stand before example `example`. */
static uint64_t nonzeros_before(const struct shmt_load *load, uint64_t example) {
    uint64_t examples = 0, nonzeros = 0;
    for (uint32_t i = 0; i < load->n_parts; i++) {
        const struct shmt_part *part = &load->part[i];
        if (example < examples + part->n_examples)
            return nonzeros + (uint64_t)((unsigned __int128)part->n_nonzeros * (example - examples) / part->n_examples);
        examples += part->n_examples;
        nonzeros += part->n_nonzeros;
    }
    return nonzeros;
}

/* An array of the segment, with the bytes of the examples before one, and of one example. */
struct array {
    uint64_t off, per_example, per_nonzero;
};

static uint32_t arrays_of(const struct shmt_load *load, struct array *out) {
    uint32_t n = 0;
    if (load->dense) {
        out[n++] = (struct array){load->dense_off, load->columns.n_features * sizeof(float), 0};
    } else {
        out[n++] = (struct array){load->start_off, sizeof(uint64_t), 0};
        out[n++] = (struct array){load->id_off, 0, sizeof(uint32_t)};
        if (!load->totals.all_ones) out[n++] = (struct array){load->value_off, 0, sizeof(float)};
    }
    out[n++] = (struct array){load->label_off, sizeof(float), 0};
    if (load->weighted) out[n++] = (struct array){load->weight_off, sizeof(float), 0};
    return n;
}

static uint64_t bytes_before(const struct shmt_load *load, const struct array *array, uint64_t example) {
    if (array->per_nonzero) return nonzeros_before(load, example) * array->per_nonzero;
    return example * array->per_example;
}

uint64_t shmt_load_stretch_bytes(const struct shmt_load *load, const struct shmt_stretch *stretch) {
    struct array array[MAX_ARRAYS];
    uint64_t bytes = 0;
    const uint32_t n = arrays_of(load, array);
    for (uint32_t i = 0; i < n; i++)
        bytes += bytes_before(load, &array[i], stretch->to) - bytes_before(load, &array[i], stretch->from);
    return bytes;
}

static void set_nodes(const struct shmt_placement *p, int32_t node, struct shmt_memory_range *out) {
    if (node >= 0) {
        out->policy = SHMT_MEMORY_BIND;
        out->n_nodes = 1;
        out->node[0] = p->node[node];
        return;
    }
    out->policy = SHMT_MEMORY_INTERLEAVE;
    out->n_nodes = p->n_nodes;
    for (uint32_t i = 0; i < p->n_nodes; i++) out->node[i] = p->node[i];
}

int shmt_load_ranges(const struct shmt_load *load, const struct shmt_readers *readers, struct shmt_memory_range **out,
                     uint32_t *n_out, struct shmt_error *e) {
    struct shmt_stretch *stretch;
    struct array array[MAX_ARRAYS];
    uint32_t n_stretches, n = 0;
    *out = NULL;
    *n_out = 0;
    if (readers->placement->policy == SHMT_PLACE_OFF) return 0;
    const int rc = shmt_load_stretches(load, readers, &stretch, &n_stretches, e);
    if (rc < 0) return rc;
    const uint32_t n_arrays = arrays_of(load, array);
    struct shmt_memory_range *range = calloc((size_t)n_stretches * n_arrays, sizeof *range);
    for (uint32_t a = 0; range && a < n_arrays; a++) {
        for (uint32_t i = 0; i < n_stretches; i++) {
            const uint64_t from = bytes_before(load, &array[a], stretch[i].from);
            const uint64_t to = bytes_before(load, &array[a], stretch[i].to);
            if (to <= from) continue;
            range[n].off = array[a].off + from;
            range[n].bytes = to - from;
            set_nodes(readers->placement, stretch[i].node, &range[n++]);
        }
    }
    free(stretch);
    if (!range) return shmt_no_memory(e, "to place %u parts of the data", n_stretches);
    *out = range;
    *n_out = n;
    return 0;
}
