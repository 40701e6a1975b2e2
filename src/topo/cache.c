/* Which part of a cache each worker has: see topo.h.
 *
 * A machine that hwloc knows no such caches of counts as if each core had one of its own: hardware threads share it.
 *
 * What counts is who has the cache at one time. Workers that take turns on a processor evict each other, too, but a turn
 * lasts for milliseconds, and filling half of a second-level cache again takes some 20 to 50 us of them. */
#include "base/checked.h"
#include "topo/topo_priv.h"

/* The threads of a run, and which of them are looked at: all, or those on one node. */
struct run {
    const struct shmt_topo *topo;
    const struct shmt_place *place; /* (n_workers * n_threads) */
    uint32_t n_workers, n_threads;
    enum shmt_bound_to bind;
    uint32_t node; /* SHMT_BIND_NODE */
};

static int is_looked_at(const struct run *run, const struct shmt_place *place) {
    return run->bind != SHMT_BIND_NODE || place->node == run->node;
}

/* The objects that stand for caches. */
static hwloc_obj_type_t kind_of(hwloc_topology_t hwloc, uint32_t level) {
    const hwloc_obj_type_t cache = (hwloc_obj_type_t)(HWLOC_OBJ_L1CACHE + level - 1);
    if (hwloc_get_nbobjs_by_type(hwloc, cache) > 0) return cache;
    return hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

static int has(hwloc_obj_t cache, uint32_t cpu) { return hwloc_bitmap_isset(cache->cpuset, cpu); }

/* Usable processors of a cache; NULL: of all. */
static uint32_t count_seats(const struct run *run, hwloc_obj_t cache) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->topo->cpus; i++) {
        const struct shmt_place *place = &run->topo->seats[i].place;
        n += is_looked_at(run, place) && (!cache || has(cache, place->cpu));
    }
    return n;
}

/* Workers of which a thread has its place in the cache; NULL: of all. */
static uint32_t count_workers(const struct run *run, hwloc_obj_t cache) {
    uint32_t n = 0;
    for (uint32_t worker = 0; worker < run->n_workers; worker++) {
        const struct shmt_place *place = run->place + (size_t)worker * run->n_threads;
        uint32_t i = 0;
        while (i < run->n_threads && !(is_looked_at(run, &place[i]) && (!cache || has(cache, place[i].cpu)))) i++;
        n += i < run->n_threads;
    }
    return n;
}

static uint32_t count_threads(const struct run *run) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->n_workers * run->n_threads; i++) n += is_looked_at(run, &run->place[i]);
    return n;
}

/* Threads that the scheduler moves about are spread over the caches, no more at one time than there are processors: the most
 * that come to one cache. */
static uint32_t deal(const struct run *run, hwloc_obj_type_t kind) {
    const uint64_t running = shmt_min_u64(count_threads(run), count_seats(run, NULL));
    uint64_t dealt = 0;
    uint32_t each = 0;
    while (dealt < running) {
        const uint64_t before = dealt;
        hwloc_obj_t cache = NULL;
        dealt = 0;
        each++;
        while ((cache = hwloc_get_next_obj_by_type(run->topo->hwloc, kind, cache)))
            dealt += shmt_min_u64(each, count_seats(run, cache));
        if (dealt == before) break; /* processors without such a cache */
    }
    return each;
}

/* Workers that have a cache at one time, where `dealt` threads may come to it. */
static uint32_t sharers(const struct run *run, hwloc_obj_t cache, uint32_t dealt) {
    if (run->bind == SHMT_BIND_CORE) return count_workers(run, cache);
    return (uint32_t)shmt_min_u64(shmt_min_u64(dealt, count_seats(run, cache)), count_workers(run, NULL));
}

static uint64_t bytes_of(hwloc_obj_t cache) { return hwloc_obj_type_is_dcache(cache->type) ? cache->attr->cache.size : 0; }

/* Less for each: fewer bytes, or of caches of unknown size more workers. */
static int is_smaller(const struct shmt_cache_share *a, const struct shmt_cache_share *b) {
    if (b->n_workers == 0) return 1;
    if (a->bytes == 0 && b->bytes == 0) return a->n_workers > b->n_workers;
    return a->bytes / a->n_workers < b->bytes / b->n_workers;
}

static void look(const struct run *run, hwloc_obj_type_t kind, struct shmt_cache_share *out) {
    const uint32_t dealt = run->bind == SHMT_BIND_CORE ? 0 : deal(run, kind);
    hwloc_obj_t cache = NULL;
    while ((cache = hwloc_get_next_obj_by_type(run->topo->hwloc, kind, cache))) {
        const struct shmt_cache_share share = {bytes_of(cache), sharers(run, cache, dealt)};
        if (share.n_workers > 0 && is_smaller(&share, out)) *out = share;
    }
}

void shmt_topo_share_cache(const struct shmt_topo *topo, uint32_t level, const struct shmt_place *place, uint32_t n_workers,
                           uint32_t n_threads, enum shmt_bound_to bind, struct shmt_cache_share *out) {
    struct run run = {topo, place, n_workers, n_threads, bind, 0};
    const hwloc_obj_type_t kind = kind_of(topo->hwloc, level);
    *out = (struct shmt_cache_share){0};
    if (bind != SHMT_BIND_NODE) {
        look(&run, kind, out);
    } else {
        for (uint32_t i = 0; i < topo->all_nodes; i++) {
            run.node = topo->node[i].node;
            look(&run, kind, out);
        }
    }
    if (out->n_workers == 0) out->n_workers = 1;
}
