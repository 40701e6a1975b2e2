/* Pulls and pushes: the session calls that move parameters and gradients. Each finds the span of its table, checks the caller's
 * rows once, and runs a kernel. Entering and ending work is in session.c. */
#include <string.h>

#include "base/sized.h"
#include "ps/flat.h"
#include "ps/norm.h"
#include "ps/session.h"
#include "ps/touch.h"
#include "sync/host.h"
#include "update/lock.h"

static int refuse(struct shmtrain_session *s, const char *call, const char *what) {
    return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s: %s", call, what);
}

static bool is_live(const struct shmtrain_session *s) { return shmt_policy_is_live(&s->spec->policy); }

/* Tables are called by their names; a row that does not exist by its number, and by how many there are. */
static int refuse_row(struct shmtrain_session *s, const char *call, int t, uint64_t row, uint64_t rows) {
    return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s: row %llu is beyond the end of table \"%s\", which has %llu row%s", call,
                     (unsigned long long)row, s->spec->table[t].name, (unsigned long long)rows, rows == 1 ? "" : "s");
}

/* The binding of table t for the item in hand (outside an item: for looking only). */
static int bind_table(struct shmtrain_session *s, const char *call, int t, struct shmt_binding **out) {
    if (s->error.status < 0) return s->error.status;
    if (t < 0 || (uint32_t)t >= s->spec->n_tables)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s: there is no table %d: tables are 0 to %u", call, t,
                         s->spec->n_tables - 1);
    struct shmt_binding *b = &s->table[t];
    if (!b->bound || !s->in_work) {
        const int rc = s->backend->seat->bind(s->seat, t, &b->span, &b->live);
        if (rc < 0) {
            s->error = s->seat->error;
            return rc;
        }
        b->span.race = shmt_spec_opens_race(s->spec) ? &s->race : NULL;
        if (s->cache) shmt_pull_cache_bind(s->cache, t, &b->span);
        b->bound = true;
    }
    *out = b;
    return 0;
}

static int bind_rows(struct shmtrain_session *s, const char *call, int t, uint64_t row, uint64_t n, struct shmt_binding **out) {
    const int rc = bind_table(s, call, t, out);
    if (rc < 0) return rc;
    const uint64_t rows = (*out)->span.rows;
    if (n <= rows && row <= rows - n) return 0;
    return refuse_row(s, call, t, shmt_max_u64(row, rows), rows);
}

static int refuse_without_item(struct shmtrain_session *s, const char *call) {
    if (s->inside) return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s may not be called in %s", call, s->inside);
    return refuse(s, call, "there is no item yet: call shmtrain_next first");
}

static int bind_to_push(struct shmtrain_session *s, const char *call, int t, struct shmt_binding **out) {
    if (!s->in_work && s->error.status == 0) return refuse_without_item(s, call);
    const int rc = bind_table(s, call, t, out);
    if (rc < 0 || s->spec->tuning[t].role != SHMTRAIN_FROZEN) return rc;
    return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s: table \"%s\" is frozen", call, s->spec->table[t].name);
}

/* By the rule, as the sparse calls do it. */
static int bind_trained(struct shmtrain_session *s, const char *call, int t) {
    if (s->spec->tuning[t].role == SHMTRAIN_TRAINED) return 0;
    return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s: table \"%s\" is a statistic, which only takes dense pushes", call,
                     s->spec->table[t].name);
}

/* `room` is for a csr of another version, which *x_inout points to then as this one knows it. */
static int bind_sparse(struct shmtrain_session *s, const char *call, int t, const struct shmtrain_csr **x_inout,
                       struct shmtrain_csr *room, struct shmt_binding **out) {
    const struct shmtrain_csr *x = *x_inout;
    int rc = bind_table(s, call, t, out);
    if (rc == 0 && x->size != sizeof *x) {
        rc = shmt_sized_take(room, sizeof *room, x, SHMT_FIRST_SIZE(struct shmtrain_csr, order), "csr", &s->error);
        *x_inout = x = room;
    }
    if (rc < 0) return rc;
    if ((*out)->span.width != 1) return refuse(s, call, "sparse calls need a table of width 1");
    if (x->reserved != 0)
        return refuse(s, call, "the reserved member of a csr is set: what it means, a later libshmtrain knows");
    return x->start && x->id && x->bias <= 1 ? 0 : refuse(s, call, "a csr needs start, id and a bias of 0 or 1");
}

static const struct shmt_kernels *kernels_for(const struct shmtrain_session *s, const struct shmtrain_csr *x) {
    return x->value ? s->with_values : s->all_ones;
}

/* ---- cached pulls: an item reads the worker's own copy of the parameters, and pushes to both ---- */

static bool is_cached(const struct shmtrain_session *s) { return s->cache && s->in_work; }

/* What a pull reads, and the kernels that read it. */
static const struct shmt_span *span_to_read(const struct shmtrain_session *s, int t, const struct shmt_binding *b) {
    return is_cached(s) ? shmt_pull_cache_span(s->cache, t) : &b->span;
}

static const struct shmt_kernels *kernels_to_read(const struct shmtrain_session *s, const struct shmtrain_csr *x) {
    return is_cached(s) ? shmt_pull_cache_kernels(s->cache, x->value != NULL, false) : kernels_for(s, x);
}

/* Before it is read. Whether something has to be fetched for that: always, where pulls are not cached. */
static bool freshen(const struct shmtrain_session *s, int t, const struct shmt_binding *b, uint64_t at, uint64_t n) {
    return !is_cached(s) || shmt_pull_cache_freshen(s->cache, t, &b->span, at, n) > 0;
}

static void freshen_examples(const struct shmtrain_session *s, int t, const struct shmt_binding *b,
                             const struct shmtrain_csr *x) {
    if (is_cached(s)) (void)shmt_pull_cache_freshen_examples(s->cache, t, &b->span, x);
}

/* For a trace: between these two the item is pulled or pushed. What is looked at outside of items is no part of the work. */
static void begin_event(const struct shmtrain_session *s, enum shmt_event_kind kind) {
    if (s->seat->trace && s->in_work) shmt_trace_turn(s->seat->trace, kind);
}
static void end_event(const struct shmtrain_session *s) { begin_event(s, SHMT_EVENT_COMPUTE); }

/* Staleness-aware (Zhang et al. 2016): the delay of the item's gradient, by which its rate is divided. One for all tables of the item, as
 * they are pushed one after the other. */
static void measure_delay(struct shmtrain_session *s) {
    const uint64_t delay = s->backend->seat->delay ? s->backend->seat->delay(s->seat) : 0;
    s->delay = (float)shmt_max_u64(delay, 1);
}

/* What table t is pushed with. Not by shmtrain_each, which reads a group's weights right before it changes them: its gradients are fresh,
 * whatever the item has pushed before. */
static struct shmt_update delayed_update(const struct shmtrain_session *s, int t) {
    struct shmt_update u = s->update;
    if (s->delay > 1) u.rate /= s->delay;
    return shmt_spec_tune(s->spec, (uint32_t)t, true, &u);
}

/* A slow worker's gradient is old when it comes. */
static void begin_push(struct shmtrain_session *s) {
    shmt_spend(SHMT_SPENT_COMPUTING, 1);
    shmt_spend(SHMT_SPENT_PUSHING, 1);
    if (s->slow) shmt_slow_pay(s->slow);
    if (s->spec->staleness_aware && is_live(s) && s->delay == 0) measure_delay(s);
    begin_event(s, SHMT_EVENT_PUSH);
}

/* Where memory takes virtual time, a worker pays here for what it has read and, in the live modes, for what it is about to write; pushes
 * that wait between loading and storing (race.h) pay there. Gradient buffers cost nothing, nor does looking outside of items: it is no
 * work. Where pulls are cached, lines cost something when they are renewed, which is paid for there. */
static void pay_for_reading(const struct shmtrain_session *s, const struct shmt_binding *b, uint64_t at, uint64_t n) {
    if (!shmt_host_touches() || !s->in_work || s->cache) return;
    shmt_touch_floats(&b->span, at, n, 0, false);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

static void pay_for_reading_examples(const struct shmtrain_session *s, const struct shmt_binding *b,
                                     const struct shmtrain_csr *x) {
    if (!shmt_host_touches() || !s->in_work || s->cache) return;
    shmt_pay_for_examples(&b->span, x, 0, false);
}

static uint32_t planes_of(const struct shmtrain_session *s, int t) {
    return s->spec->tuning[t].role == SHMTRAIN_TRAINED ? shmt_flat_planes(s->spec) : 0;
}

static void pay_for_writing(const struct shmtrain_session *s, int t, const struct shmt_binding *b, uint64_t at, uint64_t n) {
    if (!shmt_host_touches() || !is_live(s) || b->span.race) return;
    shmt_touch_floats(&b->span, at, n, planes_of(s, t), true);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

static void pay_for_writing_examples(const struct shmtrain_session *s, int t, const struct shmt_binding *b,
                                     const struct shmtrain_csr *x) {
    if (!shmt_host_touches() || !is_live(s) || b->span.race) return;
    shmt_pay_for_examples(&b->span, x, planes_of(s, t), true);
}

/* In the live modes every push is an update, but pushes to a model's further tables belong to those of the first one that the
 * item pushes to; in `aggregate` the backend counts the updates that it applies. */
static void count_updates(struct shmtrain_session *s, const struct shmt_binding *b, uint64_t n) {
    if (!s->counted) s->counted = b;
    if (is_live(s) && s->counted == b) bump_relaxed(&s->seat->counters->updates, n);
}

/* count-lost: updates of single floats. */
static void count_floats(struct shmtrain_session *s, uint64_t n) {
    if (s->spec->count_lost) bump_relaxed(&s->seat->counters->touched, n);
}

static void count_examples(struct shmtrain_session *s, const struct shmt_binding *b, const struct shmtrain_csr *x) {
    uint64_t nonzeros = 0;
    count_updates(s, b, x->n);
    if (!s->spec->count_lost) return;
    for (uint32_t k = 0; k < x->n; k++) {
        const uint64_t i = x->order ? x->order[k] : k;
        nonzeros += x->start[i + 1] - x->start[i] + x->bias;
    }
    count_floats(s, nonzeros);
}

/* clip-norm, live modes: of this push (n floats), for nobody ever sees the gradient of all tables. */
static float clip_of_push(const struct shmtrain_session *s, int t, const float *grad, uint64_t n, float scale) {
    if (!(s->spec->rule.clip_norm > 0) || !is_live(s) || s->spec->tuning[t].role != SHMTRAIN_TRAINED) return 1;
    return shmt_norm_clip_factor(s->spec, shmt_norm_square(grad, n), scale);
}

/* To the parameters, and to the worker's copy, so that it reads its own writes. */
static void push_floats(struct shmtrain_session *s, int t, const struct shmt_binding *b, uint64_t at, uint64_t n,
                        const float *grad, const struct shmt_update *u) {
    const bool statistic = s->spec->tuning[t].role == SHMTRAIN_STATISTIC;
    (statistic ? s->of_statistics : s->with_values)->push_dense(&b->span, at, n, grad, u);
    if (s->cache)
        shmt_pull_cache_kernels(s->cache, true, statistic)->push_dense(shmt_pull_cache_span(s->cache, t), at, n, grad, u);
}

static void push_examples(struct shmtrain_session *s, int t, const struct shmt_binding *b, const struct shmtrain_csr *x,
                          const float *slope, const struct shmt_update *u) {
    kernels_for(s, x)->push_sparse(&b->span, x, slope, u);
    if (s->cache)
        shmt_pull_cache_kernels(s->cache, x->value != NULL, false)->push_sparse(shmt_pull_cache_span(s->cache, t), x, slope, u);
}

/* Rows row .. row + n - 1 (n > 0) by the rule. Live modes: the gradient is a sum over `examples`, the update takes their mean;
 * `aggregate` adds up, and divides when it updates. L1 and L2 belong to the update, and to no row from l2_rows on. */
static void push_dense(struct shmtrain_session *s, int t, const struct shmt_binding *b, uint64_t row, uint64_t n,
                       const float *grad, uint64_t examples) {
    const uint64_t width = b->span.width, ruled = s->spec->l2_rows[t];
    const uint64_t n_ruled = row >= ruled ? 0 : shmt_min_u64(n, ruled - row);
    struct shmt_update u = delayed_update(s, t);
    u.scale = 1 / (float)examples;
    u.scale *= clip_of_push(s, t, grad, n * width, u.scale);
    pay_for_writing(s, t, b, row * width, n * width);
    if (n_ruled > 0) push_floats(s, t, b, row * width, n_ruled * width, grad, &u);
    count_floats(s, n * width);
    shmt_update_unrule(&u);
    if (n_ruled < n) push_floats(s, t, b, (row + n_ruled) * width, (n - n_ruled) * width, grad + n_ruled * width, &u);
}

int shmtrain_view(shmtrain_session *s, int t, uint64_t row, uint64_t n, const float **at_out, uint64_t *stride_out,
                  int *live_out) {
    struct shmt_binding *b = NULL;
    begin_event(s, SHMT_EVENT_PULL); /* of next to no length: whoever computes with the view reads the weights then */
    const int rc = bind_rows(s, "shmtrain_view", t, row, n, &b);
    if (rc == 0) (void)freshen(s, t, b, row * b->span.width, n * b->span.width);
    if (rc == 0) pay_for_reading(s, b, row * b->span.width, n * b->span.width);
    end_event(s);
    if (rc < 0) return rc;
    *at_out = span_to_read(s, t, b)->weight + row * b->span.width;
    *stride_out = b->span.width;
    if (live_out) *live_out = b->live;
    return 0;
}

int shmtrain_pull(shmtrain_session *s, int t, uint64_t row, uint64_t n, float *out) {
    struct shmt_binding *b = NULL;
    const int rc = bind_rows(s, "shmtrain_pull", t, row, n, &b);
    if (rc < 0) return rc;
    begin_event(s, SHMT_EVENT_PULL);
    const bool fetches = freshen(s, t, b, row * b->span.width, n * b->span.width);
    shmt_span_read(span_to_read(s, t, b), row * b->span.width, n * b->span.width, out);
    pay_for_reading(s, b, row * b->span.width, n * b->span.width);
    if (fetches) shmt_spend(SHMT_SPENT_PULLING, 1);
    end_event(s);
    return 0;
}

int shmtrain_lend(shmtrain_session *s, int t, float **grad_out) {
    struct shmt_binding *b = NULL;
    int rc = bind_to_push(s, "shmtrain_lend", t, &b);
    if (rc == 0 && !s->in_step) rc = shmt_session_check_inside(s, "shmtrain_lend");
    if (rc < 0) return rc;
    if (b->hooked)
        return shmt_fail(
            &s->error, SHMTRAIN_E_USAGE,
            "shmtrain_lend: the hook before_step has pushed to table \"%s\" before; a hook can only push to tables "
            "whose gradients the model does not borrow",
            s->spec->table[t].name);
    if (b->lent || b->pushed) return refuse(s, "shmtrain_lend", "allowed once per item and table, before any push");
    rc = s->backend->seat->lend(s->seat, t, grad_out);
    if (rc < 0) {
        s->error = s->seat->error;
        return rc;
    }
    b->lent = *grad_out;
    return 0;
}

/* A lent buffer is the item's gradient of the table: it is pushed once, whole, and nothing else is, because others may read it then. */
static int check_lent(struct shmtrain_session *s, const char *call, const struct shmt_binding *b, const float *grad,
                      uint64_t n) {
    if (!b->lent) return 0;
    if (b->pushed)
        return refuse(s, call, "the lent buffer was already pushed, and it is the item's whole gradient of the table");
    if (!b->pushed && (grad != b->lent || n != b->span.rows))
        return refuse(s, call, "a lent buffer must be pushed whole and first");
    return 0;
}

int shmtrain_push(shmtrain_session *s, int t, uint64_t row, uint64_t n, const float *grad) {
    struct shmt_binding *b = NULL;
    int rc = bind_to_push(s, "shmtrain_push", t, &b);
    if (rc == 0) rc = bind_rows(s, "shmtrain_push", t, row, n, &b);
    if (rc < 0) return rc;
    if ((rc = check_lent(s, "shmtrain_push", b, grad, n)) < 0) return rc;
    const bool in_place = b->lent && grad == b->span.sink; /* aggregate: the gradient already stands where it belongs */
    b->pushed = true;
    begin_push(s);
    if (!in_place) push_dense(s, t, b, row, n, grad, s->work.n);
    if (in_place && s->backend->seat->complete) s->backend->seat->complete(s->seat, t);
    end_event(s);
    count_updates(s, b, 1);
    return 0;
}

int shmtrain_need(shmtrain_session *s, int t, const struct shmtrain_csr *x) {
    struct shmtrain_csr room;
    struct shmt_binding *b = NULL;
    const int rc = bind_sparse(s, "shmtrain_need", t, &x, &room, &b);
    if (rc < 0) return rc;
    kernels_to_read(s, x)->need(span_to_read(s, t, b), x);
    return 0;
}

int shmtrain_dot(shmtrain_session *s, int t, const struct shmtrain_csr *x, float *dot_out) {
    struct shmtrain_csr room;
    struct shmt_binding *b = NULL;
    const int rc = bind_sparse(s, "shmtrain_dot", t, &x, &room, &b);
    if (rc < 0) return rc;
    begin_event(s, SHMT_EVENT_PULL);
    freshen_examples(s, t, b, x);
    kernels_to_read(s, x)->dot(span_to_read(s, t, b), x, dot_out);
    pay_for_reading_examples(s, b, x);
    end_event(s);
    return 0;
}

int shmtrain_push_sparse(shmtrain_session *s, int t, const struct shmtrain_csr *x, const float *slope) {
    struct shmtrain_csr room;
    struct shmt_binding *b = NULL;
    int rc = bind_to_push(s, "shmtrain_push_sparse", t, &b);
    if (rc == 0) rc = bind_trained(s, "shmtrain_push_sparse", t);
    if (rc == 0) rc = bind_sparse(s, "shmtrain_push_sparse", t, &x, &room, &b);
    if (rc == 0) rc = check_lent(s, "shmtrain_push_sparse", b, NULL, 0);
    if (rc < 0) return rc;
    begin_push(s);
    const struct shmt_update u = delayed_update(s, t);
    pay_for_writing_examples(s, t, b, x);
    push_examples(s, t, b, x, slope, &u);
    end_event(s);
    b->pushed = true;
    count_examples(s, b, x);
    return 0;
}

/* Examples first .. first + n - 1 of x; fewer where it ends before. */
static struct shmtrain_csr part_of(const struct shmtrain_csr *x, uint64_t first, uint32_t n) {
    struct shmtrain_csr part = *x;
    const uint32_t from = (uint32_t)shmt_min_u64(first, x->n);
    part.n = (uint32_t)shmt_min_u64(n, x->n - from);
    if (x->order)
        part.order = x->order + from;
    else
        part.start = x->start + from;
    return part;
}

/* What the kernel `each` does, with pulls, computing and pushes told apart: the same bits. For a trace, where time passes between a
 * group's pull and its push only if the host is told, and where pulls are cached: there a group's gradients are as old as what they
 * were computed from. Its kernels look ahead within a group only, so what the examples behind it need is asked for first. */
static void each_apart(struct shmtrain_session *s, int t, const struct shmt_binding *b, const struct shmtrain_csr *x,
                       uint32_t group, shmtrain_slope *slope, void *arg, struct shmt_update u) {
    enum { AHEAD = 8 };
    const struct shmt_kernels *k = kernels_to_read(s, x);
    const struct shmt_span *from = span_to_read(s, t, b);
    float dot[SHMT_MAX_GROUP], slopes[SHMT_MAX_GROUP];
    for (uint32_t first = 0, n; first < x->n; first += n) {
        const struct shmtrain_csr part = part_of(x, first, group), ahead = part_of(x, (uint64_t)first + AHEAD, group);
        n = part.n;
        begin_event(s, SHMT_EVENT_PULL);
        k->need(from, &ahead);
        freshen_examples(s, t, b, &part);
        k->dot(from, &part, dot);
        pay_for_reading_examples(s, b, &part);
        begin_event(s, SHMT_EVENT_COMPUTE);
        slope(arg, first, n, dot, slopes);
        shmt_spend(SHMT_SPENT_COMPUTING, (double)n / x->n);
        begin_event(s, SHMT_EVENT_PUSH);
        if (s->spec->staleness_aware && s->cache) {
            measure_delay(s);
            u = delayed_update(s, t);
        }
        pay_for_writing_examples(s, t, b, &part);
        push_examples(s, t, b, &part, slopes, &u);
    }
    end_event(s);
}

int shmtrain_each(shmtrain_session *s, int t, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope, void *arg) {
    struct shmtrain_csr room;
    struct shmt_binding *b = NULL;
    int rc = bind_to_push(s, "shmtrain_each", t, &b);
    if (rc == 0) rc = bind_trained(s, "shmtrain_each", t);
    if (rc == 0) rc = bind_sparse(s, "shmtrain_each", t, &x, &room, &b);
    if (rc == 0) rc = check_lent(s, "shmtrain_each", b, NULL, 0);
    if (rc < 0) return rc;
    if (group < 1 || group > 64) return refuse(s, "shmtrain_each", "a group has 1 to 64 examples");
    const struct shmt_update u = shmt_spec_tune(s->spec, (uint32_t)t, true, &s->update);
    if (s->seat->trace || shmt_host()->spend || s->cache)
        each_apart(s, t, b, x, group, slope, arg, u);
    else
        kernels_for(s, x)->each(&b->span, x, group, slope, arg, &u);
    b->pushed = true;
    count_examples(s, b, x);
    return 0;
}

static int check_ids(struct shmtrain_session *s, const char *call, int t, const struct shmt_binding *b, const uint32_t *id,
                     uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (id[i] >= b->span.rows) return refuse_row(s, call, t, id[i], b->span.rows);
    return 0;
}

int shmtrain_rows(shmtrain_session *s, int t, const uint32_t *id, uint32_t n, float *out) {
    struct shmt_binding *b = NULL;
    int rc = bind_table(s, "shmtrain_rows", t, &b);
    if (rc == 0) rc = check_ids(s, "shmtrain_rows", t, b, id, n);
    if (rc < 0) return rc;
    const uint64_t width = b->span.width;
    begin_event(s, SHMT_EVENT_PULL);
    bool fetches = n == 0;
    for (uint32_t i = 0; i < n; i++) {
        fetches |= freshen(s, t, b, id[i] * width, width);
        shmt_span_read(span_to_read(s, t, b), id[i] * width, width, out + i * width);
        pay_for_reading(s, b, id[i] * width, width);
    }
    if (fetches) shmt_spend(SHMT_SPENT_PULLING, 1);
    end_event(s);
    return 0;
}

int shmtrain_push_rows(shmtrain_session *s, int t, const uint32_t *id, uint32_t n, const float *grad) {
    struct shmt_binding *b = NULL;
    int rc = bind_to_push(s, "shmtrain_push_rows", t, &b);
    if (rc == 0) rc = check_ids(s, "shmtrain_push_rows", t, b, id, n);
    if (rc == 0) rc = check_lent(s, "shmtrain_push_rows", b, NULL, 0);
    if (rc < 0) return rc;
    const uint64_t width = b->span.width;
    begin_push(s);
    /* Live modes: each row is an update of its own, whatever else the item pushes; a row that repeats is updated again. */
    for (uint32_t i = 0; i < n; i++) push_dense(s, t, b, id[i], 1, grad + i * width, 1);
    end_event(s);
    b->pushed = true;
    count_updates(s, b, n);
    return 0;
}
