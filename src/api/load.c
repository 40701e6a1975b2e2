/* Loading data with all workers: see load.h. */
#include "api/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/load_place.h"
#include "base/clock.h"
#include "segment/budget.h"

/* What the workers of one pass share, as of the fork: it fills, or counts, or renumbers, or unpacks. */
struct pass {
    struct shmt_load *load;
    const struct shmt_arrays *into;     /* fill; or NULL */
    const struct shmt_columns *columns; /* count; or NULL */
    const uint32_t *place;              /* renumber; or NULL */
};

static size_t shared_bytes(const struct shmt_load *load) {
    return load->n_parts * (sizeof *load->part + sizeof *load->took_ns + sizeof *load->reading);
}

int shmt_load_open(struct shmt_load *load, struct shmtrain_store *store, const char *name, unsigned how, uint32_t n_parts,
                   bool dense) {
    *load = (struct shmt_load){.name = name, .dense = dense, .n_parts = n_parts};
    const int rc = shmt_source_open(name, store->config.seed, how, &load->source, &store->error);
    if (rc < 0) return rc;
    load->has_ids = shmt_source_has_ids(load->source);
    void *memory = mmap(NULL, shared_bytes(load), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return shmt_fail_errno(&store->error, "no memory to read %s", name);
    load->part = memory;
    load->took_ns = (uint64_t *)(void *)(load->part + n_parts);
    load->reading = (struct shmt_reading *)(void *)(load->took_ns + n_parts);
    return 0;
}

static void renumber(const struct shmt_load *load, const uint32_t *place, uint32_t rank) {
    const uint64_t n = load->totals.n_nonzeros;
    uint32_t *id = shmt_segment_at(&load->segment, load->id_off, n * sizeof *id);
    const uint64_t from = n * rank / load->n_parts, to = n * (rank + 1) / load->n_parts;
    for (uint64_t j = from; j < to; j++) id[j] = place[id[j]];
}

static int read_part(const struct pass *pass, uint32_t rank, struct shmt_error *e) {
    struct shmt_load *load = pass->load;
    if (pass->into) return shmt_source_fill(load->source, rank, load->n_parts, load->part, pass->into, e);
    if (pass->place) renumber(load, pass->place, rank);
    if (pass->place) return 0;
    if (!pass->columns) return shmt_source_unpack(load->source, e);
    /* A bad line is no failure of the worker: the first one in the file counts, which another part may have. */
    (void)shmt_source_count(load->source, pass->columns, rank, load->n_parts, &load->part[rank]);
    return 0;
}

static int work(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    const struct pass *pass = arg;
    const uint64_t from_ns = shmt_now_ns();
    (void)team;
    const int rc = read_part(pass, rank, e);
    pass->load->reading[rank] = (struct shmt_reading){from_ns, shmt_now_ns() - from_ns};
    pass->load->took_ns[rank] += pass->load->reading[rank].ns;
    return rc;
}

static int run_pass(struct shmtrain_store *store, const struct shmt_crew *crew, struct pass *pass, uint32_t n) {
    const struct shmt_team_spec spec = {.kind = crew->kind, .n = n, .body = work, .arg = pass, .what = "reading data"};
    const char *what = pass->into ? "fill" : pass->columns ? "count" : pass->place ? "renumber" : "unpack";
    const int rc = shmt_drive(store, &spec, &(struct shmt_driver){0});
    if (rc == 0) shmt_trace_loaded(store, pass->load->name, what, pass->load->reading, n);
    return rc;
}

/* By one worker, so that a stop ends it. What a header announces is held against the memory first. */
static int unpack(struct shmt_load *load, struct shmtrain_store *store, const struct shmt_crew *crew) {
    struct pass pass = {.load = load};
    struct shmt_budget budget;
    if (load->unpacked || !shmt_source_is_packed(load->source)) return 0;
    shmt_budget_read("", &budget);
    int rc = shmt_budget_check(&budget, shmt_source_guess_bytes(load->source, load->dense), load->name, NULL,
                               "free some, or train on a part of it", &store->error);
    if (rc == 0) rc = run_pass(store, crew, &pass, 1);
    load->unpacked = rc == 0;
    return rc;
}

int shmt_load_count(struct shmt_load *load, struct shmtrain_store *store, const struct shmt_crew *crew,
                    const struct shmt_columns *columns) {
    const struct shmt_columns all = SHMT_ALL_COLUMNS;
    struct pass pass = {.load = load, .columns = columns ? columns : &all};
    memset(load->part, 0, load->n_parts * sizeof *load->part);
    int rc = unpack(load, store, crew);
    if (rc == 0) rc = run_pass(store, crew, &pass, load->n_parts);
    if (rc < 0) return rc;
    return shmt_parts_total(load->source, load->part, load->n_parts, &load->totals, &store->error);
}

struct shmt_columns shmt_load_columns(const struct shmt_load *load, const struct shmt_columns *model) {
    return (struct shmt_columns){load->has_ids ? model->base : 0, model->n_features};
}

static void plan_sparse(struct shmt_load *load, struct shmt_layout *layout) {
    const struct shmt_totals *t = &load->totals;
    load->start_off = shmt_layout_add_pages(layout, t->n_examples + 1, sizeof(uint64_t));
    load->id_off = shmt_layout_add_pages(layout, t->n_nonzeros, sizeof(uint32_t));
    load->value_off = shmt_layout_add_pages(layout, t->all_ones ? 0 : t->n_nonzeros, sizeof(float));
}

void shmt_load_plan(struct shmt_load *load, const struct shmt_columns *columns) {
    const struct shmt_totals *t = &load->totals;
    struct shmt_layout layout = {0};
    load->columns = *columns;
    if (load->dense)
        load->dense_off = shmt_layout_add_pages(&layout, t->n_examples, columns->n_features * sizeof(float));
    else
        plan_sparse(load, &layout);
    load->label_off = shmt_layout_add_pages(&layout, t->n_examples, sizeof(float));
    if (load->weighted) load->weight_off = shmt_layout_add_pages(&layout, t->n_examples, sizeof(float));
    load->bytes = layout.failed ? UINT64_MAX : layout.bytes;
    load->data = (struct shmtrain_data){.n_examples = t->n_examples,
                                        .n_nonzeros = t->n_nonzeros,
                                        .n_features = columns->n_features,
                                        .n_labels = t->labels.n,
                                        .label_low = t->label_low,
                                        .label_high = t->label_high,
                                        .mean_square = t->mean_square,
                                        .best_loss = NAN};
    if (t->labels.n > SHMTRAIN_MAX_CLASSES) return;
    shmt_labels_ascending(&t->labels, load->classes);
    load->data.classes = load->classes;
}

/* Where the parts are written to. */
static struct shmt_arrays arrays_of(const struct shmt_load *load) {
    const struct shmt_totals *t = &load->totals;
    const struct shmt_segment *s = &load->segment;
    struct shmt_arrays into = {.columns = load->columns};
    into.label = shmt_segment_at(s, load->label_off, t->n_examples * sizeof(float));
    if (load->dense) {
        into.dense = shmt_segment_at(s, load->dense_off, t->n_examples * load->columns.n_features * sizeof(float));
        return into;
    }
    into.start = shmt_segment_at(s, load->start_off, (t->n_examples + 1) * sizeof(uint64_t));
    into.id = shmt_segment_at(s, load->id_off, t->n_nonzeros * sizeof(uint32_t));
    into.value = t->all_ones ? NULL : shmt_segment_at(s, load->value_off, t->n_nonzeros * sizeof(float));
    return into;
}

static int make_segment(struct shmt_load *load, struct shmtrain_store *store, const struct shmt_crew *crew,
                        const struct shmt_readers *readers) {
    struct shmt_segment_wish wish = {.name = "data",
                                     .fd = -1,
                                     .bytes = load->bytes,
                                     .page_bytes = shmt_pages_bytes(load->pages),
                                     .transparent = load->pages == SHMT_PAGES_TRANSPARENT,
                                     .topo = crew->topo,
                                     .log = &store->log};
    struct shmt_memory_range *range;
    int rc = shmt_load_ranges(load, readers, &range, &wish.n_ranges, &store->error);
    if (rc < 0) return rc;
    wish.range = range;
    if (load->shared != SHMT_NAMED_STORE) rc = shmt_lease_data_file(store, load->shared, &wish.fd);
    if (rc == 0) rc = shmt_segment_create(&wish, &load->segment, &store->error);
    if (rc < 0 && wish.fd >= 0) close(wish.fd);
    free(range);
    return rc;
}

int shmt_load_fill(struct shmt_load *load, struct shmtrain_store *store, const struct shmt_crew *crew,
                   const struct shmt_readers *readers) {
    int rc = make_segment(load, store, crew, readers);
    if (rc < 0) return rc;
    const struct shmt_arrays into = arrays_of(load);
    struct pass pass = {.load = load, .into = &into};
    rc = run_pass(store, crew, &pass, load->n_parts);
    if (rc < 0) return rc;
    shmt_source_close(load->source);
    load->source = NULL;
    load->data.start = into.start;
    load->data.id = into.id;
    load->data.value = into.value;
    load->data.dense = into.dense;
    load->data.label = into.label;
    if (load->weighted)
        load->weight = shmt_segment_at(&load->segment, load->weight_off, load->totals.n_examples * sizeof(float));
    load->data.weight = load->weight;
    load->data.best_loss = shmt_parts_best_loss(load->part, load->n_parts);
    return 0;
}

int shmt_load_renumber(struct shmt_load *load, struct shmtrain_store *store, const struct shmt_crew *crew,
                       const uint32_t *place) {
    struct pass pass = {.load = load, .place = place};
    return run_pass(store, crew, &pass, load->n_parts);
}

void shmt_load_close(struct shmt_load *load) {
    if (load->segment.base) shmt_segment_detach(&load->segment);
    if (load->part) munmap(load->part, shared_bytes(load));
    shmt_source_close(load->source);
    *load = (struct shmt_load){0};
}
