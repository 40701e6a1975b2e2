/* The lists of a batch's terms: see shm_priv.h. Called by batches.c and apply.c. */
#include "backends/shm/shm_priv.h"
#include "store/path.h"

static bool are_kept(const struct shmt_store *store) { return store->layout.terms > 0; }

/* Of chunk `chunk`, as one who reads it sees it: memory of the store is believed as far as it goes. */
static uint32_t n_of(const struct shmt_store *store, uint32_t chunk) {
    const uint32_t n = store->terms_head[chunk].head.n;
    return n < store->layout.terms ? n : store->layout.terms;
}
static const uint32_t *ids_of(const struct shmt_store *store, uint32_t chunk) {
    return store->terms_id + (uint64_t)chunk * store->layout.terms;
}
static const float *values_of(const struct shmt_store *store, uint32_t chunk) {
    return store->terms_value + (uint64_t)chunk * store->layout.terms;
}

void shmt_shm_list_begin(const struct shmt_store *store, uint32_t chunk) {
    if (are_kept(store)) store->terms_head[chunk].head = (struct shmt_terms_head){0};
}

struct shmt_terms shmt_shm_list(const struct shmt_store *store, uint32_t chunk) {
    if (!are_kept(store)) return (struct shmt_terms){0};
    return (struct shmt_terms){.head = &store->terms_head[chunk].head,
                               .id = store->terms_id + (uint64_t)chunk * store->layout.terms,
                               .value = store->terms_value + (uint64_t)chunk * store->layout.terms,
                               .most = store->layout.terms};
}

bool shmt_shm_is_summed(const struct shmt_store *store, uint32_t chunk) {
    return !are_kept(store) || store->terms_head[chunk].head.summed;
}

void shmt_shm_count_listed(const struct shmt_store *store, uint32_t chunk, uint64_t floats, uint32_t *terms) {
    const uint32_t *id = ids_of(store, chunk), n = n_of(store, chunk);
    for (uint32_t k = 0; k < n; k++)
        if (id[k] < store->layout.flat.n) terms[id[k] / floats]++;
}

void shmt_shm_sum_lists(const struct shmt_shm_seat *p, uint64_t from, uint64_t to) {
    const struct shmt_store *store = p->store;
    const uint32_t slot = store->layout.stack, rank = p->seat.rank;
    const struct shmt_path *path = shmt_path_of(store->spec.cpu);
    float *sum = shmt_shm_buffer(store, rank, slot);
    uint8_t *touched = shmt_shm_map(store, rank, slot);
    for (uint32_t chunk = 0; chunk < store->spec.n_chunks; chunk++)
        path->terms_sum(ids_of(store, chunk), values_of(store, chunk), n_of(store, chunk), (uint32_t)from, (uint32_t)to, sum,
                        touched);
}
