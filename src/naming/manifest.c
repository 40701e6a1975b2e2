/* Writing manifests, and reading specs out of them: see manifest.h. What is checked before is in manifest_check.c. */
#include "naming/manifest.h"

#include <stddef.h>
#include <string.h>
#include <xxhash.h>

#include "naming/manifest_priv.h"

/* Other programs read it: a field more, less or elsewhere is another version. */
_Static_assert(sizeof(struct shmt_manifest) == 16528 && offsetof(struct shmt_manifest, place_node) == 360 &&
                   offsetof(struct shmt_manifest, table) == 4720 && offsetof(struct shmt_manifest, train) == 15592,
               "the layout of version 13");
/* But for the room of collectives, cached pulls, tapes, and other hosts, which runs with a name do not have. */
_Static_assert(sizeof(struct shmt_spec) ==
                   9304 + sizeof(struct shmt_coll_room) + 8 + sizeof(struct shmt_tape_plan) + sizeof(struct shmt_hosts_plan),
               "what is new in it belongs into the manifest, too: a row in ps/spec_fields.c, or a word here");
_Static_assert(offsetof(struct shmt_head, manifest) == SHMT_LINE, "the state has a line of its own");

static void put_tables(const struct shmt_spec *spec, struct shmt_manifest *out) {
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        struct shmt_manifest_table *table = &out->table[t];
        memcpy(table->name, spec->table[t].name, sizeof table->name);
        table->rows = spec->table[t].rows;
        table->width = spec->table[t].width;
        table->l2_rows = spec->l2_rows[t];
        table->tuning = spec->tuning[t];
    }
}

void shmt_manifest_of_spec(const struct shmt_spec *spec, struct shmt_manifest *out) {
    *out = (struct shmt_manifest){.n_tables = spec->n_tables, .deaths = spec->may_die | spec->may_lack << 1, .cpu = spec->cpu};
    shmt_spec_pack(spec, out->spec);
    memcpy(out->place_node, spec->placement.node, sizeof out->place_node);
    memcpy(out->place_seat_node, spec->placement.seat_node, sizeof out->place_seat_node);
    put_tables(spec, out);
}

enum { ROW_BITS = 20, CHANNEL_BITS = 12 };

uint32_t shmt_manifest_shape(const struct shmtrain_data *data) {
    if (data->channels >> CHANNEL_BITS != 0 || data->height >> ROW_BITS != 0) return 0;
    return data->channels << ROW_BITS | data->height;
}

void shmt_manifest_take_shape(uint32_t shape, struct shmtrain_data *data) {
    const uint32_t channels = shape >> ROW_BITS, height = shape & ((1u << ROW_BITS) - 1);
    const uint64_t rows = (uint64_t)channels * height;
    const bool fits = rows > 0 && data->n_features > 0 && data->n_features % rows == 0;
    data->channels = fits ? channels : 0;
    data->height = fits ? height : 0;
    data->width = fits ? (uint32_t)(data->n_features / rows) : 0;
}

uint64_t shmt_manifest_sum(const struct shmt_manifest *manifest) {
    const size_t from = offsetof(struct shmt_manifest, made_at);
    return XXH64((const unsigned char *)manifest + from, sizeof *manifest - from, SHMT_MANIFEST_VERSION);
}

void shmt_manifest_seal(struct shmt_manifest *manifest) {
    manifest->magic = SHMT_MANIFEST_MAGIC;
    manifest->version = SHMT_MANIFEST_VERSION;
    manifest->bytes = sizeof *manifest;
    manifest->check = shmt_manifest_sum(manifest);
}

static void tables_of(const struct shmt_manifest *m, struct shmt_spec *out) {
    out->n_tables = m->n_tables;
    for (uint32_t t = 0; t < m->n_tables && t < SHMT_MAX_TABLES; t++) {
        const struct shmt_manifest_table *table = &m->table[t];
        memcpy(out->table[t].name, table->name, sizeof table->name);
        out->table[t].rows = table->rows;
        out->table[t].width = table->width;
        out->l2_rows[t] = table->l2_rows;
        out->tuning[t] = table->tuning;
    }
}

const struct shmt_spec_field *shmt_manifest_spec(const struct shmt_manifest *m, struct shmt_spec *out) {
    *out = (struct shmt_spec){.cpu = m->cpu,
                              .may_die = (m->deaths & 1) != 0,
                              .may_lack = (m->deaths & 2) != 0,
                              .head_bytes = sizeof(struct shmt_head)};
    memcpy(out->placement.node, m->place_node, sizeof m->place_node);
    memcpy(out->placement.seat_node, m->place_seat_node, sizeof m->place_seat_node);
    tables_of(m, out);
    return shmt_spec_unpack(m->spec, out);
}

void shmt_manifest_board(const struct shmt_manifest *m, uint32_t epochs, struct shmt_board_plan *out) {
    if (m->model[0])
        shmt_board_plan(epochs, m->n_valid, m->n_outputs, out);
    else
        shmt_board_plan_of_function(epochs, m->n_valid, out);
}
