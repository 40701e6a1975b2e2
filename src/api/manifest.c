/* Writing manifests, and reading specs out of them: see manifest.h. What is checked before is in manifest_check.c. */
#include "api/manifest.h"

#include <stddef.h>
#include <string.h>
#include <xxhash.h>

#include "api/manifest_priv.h"

/* Other programs read it: a field more, less or elsewhere is another version. */
_Static_assert(sizeof(struct shmt_manifest) == 10296 && offsetof(struct shmt_manifest, table) == 4696 &&
                   offsetof(struct shmt_manifest, train) == 9360,
               "the layout of version 10");
_Static_assert(sizeof(struct shmt_spec) == 5128,
               "its new words belong into the manifest, too: here, in manifest.h and manifest_check.c");
_Static_assert(offsetof(struct shmt_head, manifest) == SHMT_LINE, "the state has a line of its own");

static void put_placement(const struct shmt_placement *p, struct shmt_manifest *out) {
    out->place_policy = p->policy;
    out->place_private_local = p->private_local;
    out->place_strategy = p->strategy;
    out->place_parts = p->parts;
    out->place_n_nodes = p->n_nodes;
    out->place_page_bytes = p->page_bytes;
    out->place_transparent = p->transparent;
    memcpy(out->place_node, p->node, sizeof out->place_node);
    memcpy(out->place_seat_node, p->seat_node, sizeof out->place_seat_node);
}

static void put_tables(const struct shmt_spec *spec, struct shmt_manifest *out) {
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        struct shmt_manifest_table *table = &out->table[t];
        memcpy(table->name, spec->table[t].name, sizeof table->name);
        table->rows = spec->table[t].rows;
        table->width = spec->table[t].width;
        table->l2_rows = spec->l2_rows[t];
    }
}

void shmt_manifest_of_spec(const struct shmt_spec *spec, struct shmt_manifest *out) {
    *out = (struct shmt_manifest){
        .n_seats = spec->n_seats,
        .n_guests = spec->n_guests,
        .n_workers = spec->n_workers,
        .epochs = spec->epochs,
        .n_examples = spec->n_examples,
        .max_steps = spec->max_steps,
        .steps_before = spec->steps_before,
        .staleness = spec->policy.staleness,
        .seed = spec->order.seed,
        .quorum = spec->policy.quorum,
        .late = spec->policy.late,
        .replicas = spec->policy.replicas,
        .merge_every = spec->policy.merge_every,
        .merge = spec->policy.merge,
        .deaths = spec->may_die | spec->may_lack << 1,
        .unmeasured = spec->unmeasured,
        .trace_events = spec->trace_events,
        .cpu = spec->cpu,
        .write = spec->policy.write,
        .batch = spec->batch,
        .n_chunks = spec->n_chunks,
        .item = spec->item,
        .shuffle = spec->order.shuffle,
        .count_lost = spec->count_lost,
        .race_ns = spec->race_ns,
        .race_share = spec->race_share,
        .l2_shares = spec->l2_shares,
        .curvatures = spec->curvatures,
        .hot_floats = spec->hot_floats,
        .row_places = spec->row_places,
        .spin_ns = spec->spin_ns,
        .spin_seats = spec->spin_seats,
        .rule = spec->rule.kind,
        .rate_kind = (uint32_t)spec->rate.kind,
        .l1 = spec->rule.l1,
        .l2 = spec->rule.l2,
        .momentum = spec->rule.momentum,
        .beta2 = spec->rule.beta2,
        .epsilon = spec->rule.epsilon,
        .beta = spec->rule.beta,
        .rate_base = spec->rate.base,
        .rate_power = spec->rate.power,
        .rate_every = spec->rate.every,
        .rate_factor = spec->rate.factor,
        .rate_warmup = spec->rate.warmup,
        .rate_epochs = spec->rate.epochs,
        .board_bytes = spec->board_bytes,
        .first_epoch = spec->first_epoch,
        .first_step = spec->first_step,
        .pause_steps = spec->pauses.steps,
        .pause_epochs = spec->pauses.epochs,
        .may_pause = spec->pauses.allowed,
        .n_tables = spec->n_tables,
    };
    put_placement(&spec->placement, out);
    put_tables(spec, out);
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
    for (uint32_t t = 0; t < m->n_tables; t++) {
        const struct shmt_manifest_table *table = &m->table[t];
        memcpy(out->table[t].name, table->name, sizeof table->name);
        out->table[t].rows = table->rows;
        out->table[t].width = table->width;
        out->l2_rows[t] = table->l2_rows;
    }
}

/* Where the run began, when it may pause, and what it does without. */
static void course_of(const struct shmt_manifest *m, struct shmt_spec *out) {
    out->first_epoch = (uint32_t)m->first_epoch;
    out->first_step = m->first_step;
    out->pauses.steps = m->pause_steps;
    out->pauses.epochs = m->pause_epochs;
    out->pauses.allowed = m->may_pause;
    out->may_die = (m->deaths & 1) != 0;
    out->may_lack = (m->deaths & 2) != 0;
}

void shmt_manifest_spec(const struct shmt_manifest *m, struct shmt_spec *out) {
    *out = (struct shmt_spec){
        .n_seats = m->n_seats,
        .n_guests = m->n_guests,
        .n_workers = m->n_workers,
        .n_examples = m->n_examples,
        .epochs = m->epochs,
        .max_steps = m->max_steps,
        .steps_before = m->steps_before,
        .policy = {.write = (enum shmt_write)m->write,
                   .staleness = m->staleness,
                   .quorum = m->quorum,
                   .late = (enum shmt_late)m->late,
                   .replicas = (enum shmt_replicas)m->replicas,
                   .merge_every = m->merge_every,
                   .merge = (enum shmt_merge)m->merge},
        .unmeasured = m->unmeasured != 0,
        .trace_events = m->trace_events,
        .cpu = m->cpu,
        .batch = m->batch,
        .n_chunks = m->n_chunks,
        .item = m->item,
        .order = {.seed = m->seed, .n_examples = m->n_examples, .shuffle = m->shuffle != 0},
        .rate = {.base = m->rate_base,
                 .kind = (int)m->rate_kind,
                 .power = m->rate_power,
                 .every = m->rate_every,
                 .factor = m->rate_factor,
                 .warmup = m->rate_warmup,
                 .epochs = m->rate_epochs},
        .rule = {.kind = m->rule,
                 .l1 = m->l1,
                 .l2 = m->l2,
                 .momentum = m->momentum,
                 .beta2 = m->beta2,
                 .epsilon = m->epsilon,
                 .beta = m->beta},
        .count_lost = m->count_lost != 0,
        .race_ns = m->race_ns,
        .race_share = m->race_share,
        .l2_shares = m->l2_shares != 0,
        .curvatures = m->curvatures != 0,
        .hot_floats = m->hot_floats,
        .row_places = m->row_places != 0,
        .spin_ns = m->spin_ns,
        .spin_seats = m->spin_seats,
        .board_bytes = m->board_bytes,
        .head_bytes = sizeof(struct shmt_head),
        .placement = {.policy = m->place_policy,
                      .private_local = m->place_private_local,
                      .strategy = m->place_strategy,
                      .parts = m->place_parts,
                      .n_nodes = m->place_n_nodes,
                      .page_bytes = m->place_page_bytes,
                      .transparent = m->place_transparent},
    };
    memcpy(out->placement.node, m->place_node, sizeof m->place_node);
    memcpy(out->placement.seat_node, m->place_seat_node, sizeof m->place_seat_node);
    tables_of(m, out);
    course_of(m, out);
}

void shmt_manifest_board(const struct shmt_manifest *m, struct shmt_board_plan *out) {
    if (m->model[0])
        shmt_board_plan((uint32_t)m->epochs, m->n_valid, m->n_outputs, out);
    else
        shmt_board_plan_of_function((uint32_t)m->epochs, m->n_valid, out);
}
