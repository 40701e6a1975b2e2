/* A worker's own copy of the parameters: see pull_cache.h.
 *
 * Times are the worker's own clocks. A line is marked with the one at which it was copied, and for each of the last N + 1 clocks there
 * is a note of the look that was taken then: the least clock of all before anything was copied. Those notes only grow, so one
 * comparison with a mark says whether a line may be read: what was copied before clock `oldest` may not. A line that was copied more
 * than N clocks ago never may, as nobody's clock counts for more than one's own. */
#include "ps/pull_cache.h"

#include "base/own.h"
#include "ps/touch.h"
#include "sync/host.h"
#include "update/live.h"
#include "update/lock.h"
#include "update/path.h"

#define LINE SHMT_TOUCH_FLOATS

/* A look that was taken at clock `mark` - 1; mark 0: none. */
struct note {
    uint64_t mark;
    struct shmt_look look;
};

struct shmt_pull_cache {
    const struct shmt_spec *spec;
    const struct shmt_backend *backend;
    struct shmt_seat *seat;
    const struct shmt_kernels *with_values, *all_ones, *of_statistics;
    struct shmt_flat flat;
    uint32_t planes;
    uint64_t age;      /* N */
    uint64_t clock;    /* of the piece in hand */
    uint64_t oldest;   /* the first clock whose copies may be read still */
    uint64_t pulled;   /* the least mark that the piece has read; UINT64_MAX: it has read nothing */
    float *copy;       /* (1 + planes, flat.n) */
    uint64_t *mark;    /* (flat.n / LINE) the clock at which the line was copied, plus 1; 0: never */
    struct note *note; /* (age + 1) that of clock c in place c mod (age + 1) */
    struct shmt_span span[SHMT_MAX_TABLES];
};

/* ---- life ---- */

static bool add_product(uint64_t *sum, uint64_t a, uint64_t b) {
    uint64_t bytes;
    return shmt_mul_u64(a, b, &bytes) && shmt_add_u64(*sum, bytes, sum);
}

uint64_t shmt_pull_cache_bytes(const struct shmt_spec *spec) {
    struct shmt_flat flat;
    uint64_t bytes = sizeof(struct shmt_pull_cache);
    if (spec->cache_pulls == 0) return 0;
    shmt_flat_plan(spec, &flat);
    const bool fits = add_product(&bytes, flat.n, (UINT64_C(1) + shmt_flat_planes(spec)) * sizeof(float)) &&
                      add_product(&bytes, flat.n / LINE, sizeof(uint64_t)) &&
                      add_product(&bytes, UINT64_C(1) + spec->cache_pulls, sizeof(struct note));
    return fits ? bytes : UINT64_MAX;
}

uint64_t shmt_pull_caches_bytes(const struct shmt_spec *spec) {
    uint64_t bytes = 0;
    return add_product(&bytes, spec->n_seats, shmt_pull_cache_bytes(spec)) ? bytes : UINT64_MAX;
}

static void find_kernels(struct shmt_pull_cache *cache) {
    const struct shmt_rule *rule = &cache->spec->rule;
    const struct shmt_path *path = shmt_path_of(cache->spec->cpu);
    const bool restrains = shmt_rule_restrains(rule);
    cache->with_values = path->find(SHMT_WRITE_RACY, rule->kind, true, restrains);
    cache->all_ones = path->find(SHMT_WRITE_RACY, rule->kind, false, restrains);
    cache->of_statistics = path->find(SHMT_WRITE_RACY, SHMT_RULE_SGD, true, false);
}

int shmt_pull_cache_create(const struct shmt_spec *spec, const struct shmt_backend *backend, struct shmt_seat *seat,
                           struct shmt_pull_cache **out, struct shmt_error *e) {
    struct shmt_pull_cache *cache = shmt_own_calloc(1, sizeof *cache);
    struct shmt_flat flat;
    shmt_flat_plan(spec, &flat);
    if (cache) {
        *cache = (struct shmt_pull_cache){.spec = spec,
                                          .backend = backend,
                                          .seat = seat,
                                          .flat = flat,
                                          .age = spec->cache_pulls,
                                          .planes = shmt_flat_planes(spec)};
        find_kernels(cache);
        cache->copy = shmt_own_calloc((1 + cache->planes) * cache->flat.n, sizeof *cache->copy);
        cache->mark = shmt_own_calloc(cache->flat.n / LINE, sizeof *cache->mark);
        cache->note = shmt_own_calloc(cache->age + 1, sizeof *cache->note);
    }
    if (!cache || !cache->copy || !cache->mark || !cache->note) {
        shmt_pull_cache_destroy(cache);
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a worker's copy of %llu parameters (cache-pulls)",
                         (unsigned long long)flat.n);
    }
    *out = cache;
    return 0;
}

void shmt_pull_cache_destroy(struct shmt_pull_cache *cache) {
    if (!cache) return;
    shmt_own_free(cache->copy);
    shmt_own_free(cache->mark);
    shmt_own_free(cache->note);
    shmt_own_free(cache);
}

/* ---- what may be read ---- */

static struct note *note_of(const struct shmt_pull_cache *cache, uint64_t clock) {
    return &cache->note[clock % (cache->age + 1)];
}

/* Whether what was copied at `clock`, of the last N before the one in hand, is too old; also where nothing was. */
static bool is_too_old(const struct shmt_pull_cache *cache, uint64_t clock) {
    const struct note *note = note_of(cache, clock);
    return note->mark != clock + 1 || cache->clock - note->look.slowest > cache->age;
}

void shmt_pull_cache_begin(struct shmt_pull_cache *cache) {
    const uint64_t clock = cache->clock = cache->backend->seat->clock(cache->seat);
    cache->oldest = shmt_max_u64(cache->oldest, clock > cache->age ? clock - cache->age : 0);
    while (cache->oldest < clock && is_too_old(cache, cache->oldest)) cache->oldest++;
    cache->pulled = UINT64_MAX;
    cache->seat->pulled = (struct shmt_pulled){UINT64_MAX, UINT64_MAX};
}

/* Before the first line of an item is copied. */
static void look(struct shmt_pull_cache *cache) {
    struct note *note = note_of(cache, cache->clock);
    if (note->mark == cache->clock + 1) return;
    cache->backend->seat->look(cache->seat, &note->look);
    note->mark = cache->clock + 1;
}

/* Delay counts from the oldest that the piece has read. */
static void note_pulled(struct shmt_pull_cache *cache, uint64_t mark) {
    if (mark >= cache->pulled) return;
    const struct shmt_look *look = &note_of(cache, mark - 1)->look;
    cache->pulled = mark;
    cache->seat->pulled = (struct shmt_pulled){.updates = look->updates, .clocks = look->clocks};
}

/* ---- renewing ---- */

void shmt_pull_cache_bind(struct shmt_pull_cache *cache, int t, const struct shmt_span *shared) {
    float *const copy = cache->copy + cache->flat.start[t];
    cache->span[t] = (struct shmt_span){.weight = copy,
                                        .sink = copy,
                                        .l2_share = shared->l2_share,
                                        .state = cache->planes ? copy + cache->flat.n : NULL,
                                        .plane = cache->flat.n,
                                        .rows = shared->rows,
                                        .width = shared->width};
}

const struct shmt_span *shmt_pull_cache_span(const struct shmt_pull_cache *cache, int t) { return &cache->span[t]; }

/* Lines from .. to - 1 of the table, which may end within the last one. The look comes first: what others had pushed before the
 * clocks that it has seen is in what is copied then. */
static void renew(struct shmt_pull_cache *cache, int t, const struct shmt_span *shared, uint64_t from, uint64_t to) {
    const struct shmt_span *mine = &cache->span[t];
    const uint64_t at = from * LINE, n = shmt_min_u64(to * LINE, shared->rows * shared->width) - at;
    look(cache);
    shmt_span_read(shared, at, n, mine->sink + at);
    for (uint32_t k = 0; k < cache->planes; k++)
        shmt_live_read(mine->state + k * mine->plane + at, shared->state + k * shared->plane + at, n);
    uint64_t *mark = cache->mark + cache->flat.start[t] / LINE;
    for (uint64_t line = from; line < to; line++) mark[line] = cache->clock + 1;
    if (shmt_host_touches()) shmt_touch_floats(shared, at, n, cache->planes, false);
}

uint64_t shmt_pull_cache_freshen(struct shmt_pull_cache *cache, int t, const struct shmt_span *shared, uint64_t at,
                                 uint64_t n) {
    const uint64_t *mark = cache->mark + cache->flat.start[t] / LINE;
    const uint64_t end = shmt_ceil_div(at + n, LINE), least = cache->oldest + 1;
    uint64_t renewed = 0;
    for (uint64_t line = at / LINE; n > 0 && line < end; line++) {
        uint64_t to = line;
        while (to < end && mark[to] < least) to++;
        if (to > line) renew(cache, t, shared, line, to);
        renewed += to - line;
        line = to > line ? to - 1 : line;
        note_pulled(cache, mark[line]);
    }
    if (renewed > 0 && shmt_host_touches()) shmt_spend(SHMT_SPENT_TOUCHING, 1);
    return renewed;
}

/* The line of one row, of a table of width 1. */
static uint64_t freshen_row(struct shmt_pull_cache *cache, int t, const struct shmt_span *shared, uint64_t row) {
    const uint64_t line = row / LINE, *mark = cache->mark + cache->flat.start[t] / LINE + line;
    const bool renews = *mark <= cache->oldest;
    if (renews) renew(cache, t, shared, line, line + 1);
    note_pulled(cache, *mark);
    return renews;
}

uint64_t shmt_pull_cache_freshen_examples(struct shmt_pull_cache *cache, int t, const struct shmt_span *shared,
                                          const struct shmtrain_csr *x) {
    uint64_t renewed = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        const uint64_t i = x->order ? x->order[k] : k;
        for (uint64_t at = x->start[i]; at < x->start[i + 1]; at++) renewed += freshen_row(cache, t, shared, x->id[at]);
        if (x->bias) renewed += freshen_row(cache, t, shared, shared->rows - 1);
    }
    if (renewed > 0 && shmt_host_touches()) shmt_spend(SHMT_SPENT_TOUCHING, 1);
    return renewed;
}

const struct shmt_kernels *shmt_pull_cache_kernels(const struct shmt_pull_cache *cache, bool values, bool statistic) {
    return statistic ? cache->of_statistics : values ? cache->with_values : cache->all_ones;
}
