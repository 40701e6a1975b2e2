/* Rounds over many hosts: the turns of an exchange (exchange_priv.h) in the live modes. Workers update their host's parameters and wait for
 * nobody; meanwhile the link goes through round after round. In each, every host sends what its parameters have changed by since the
 * last one. Where the curvature of the loss is known (linear models), each sends the share of its change that the hosts' changes together
 * are to count (damped, update/merge.h), and they are added up; else all take the mean over those hosts that have changed a float (McMahan
 * et al. 2017), as replicas on one host do:
 *
 *     base' = base + mean of the changes, or sum of their shares       mine += base' - what I had seen
 *
 * `base` is the same on all hosts, bit by bit, because changes are added up in the order of ranks. What workers have changed since a host
 * looked is in its next round. An epoch is over when the workers of all hosts rest, and nothing has changed since: then everybody's
 * parameters become the base.
 *
 * A change is sent once, in an ordered channel that loses and repeats nothing: so each counts once. Where less is sent than has changed
 * (feedback.h), the rest stays a change, and a host whose workers rest sends all of it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "link/feedback.h"
#include "link/passing.h"
#include "sync/host.h"

/* Times as long as a round has taken until the next one begins, but for MOST_NS: a tenth of the time goes to rounds, and a twentieth of a
 * processor, which workers could have. */
#define PACE      9
#define BUSY_PACE 19
#define LEAST_NS  UINT64_C(2000000) /* between two rounds */
#define MOST_NS   UINT64_C(200000000)
#define BOUND_NS  UINT64_C(500000) /* where workers wait for what is known of other hosts */
#define GLANCE_NS \
    UINT64_C(200000) /* at this host's workers: at the end of an epoch they wait for the link; seldomer long before that, */
#define REST_NS  UINT64_C(2000000) /* ... as each look may take a processor from a worker */
#define NO_CLOCK SHMT_NO_CLOCK

static const struct shmt_far_live_ops *ops(const struct shmt_exchange *x) { return x->at.backend->far->live; }

/* Floats of a block: the last one may be shorter. */
static uint64_t floats_of(const struct shmt_exchange *x, uint64_t block) {
    return shmt_min_u64(SHMT_FAR_BLOCK, x->n_floats - block * SHMT_FAR_BLOCK);
}

/* ---- what comes ---- */

/* What is rounded is so by agreement, and never what ends an epoch. */
static bool keep_blocks(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel,
                        const struct shmt_message *message) {
    if (!parcel->halves || (x->at.spec->hosts.wire == SHMT_WIRE_BF16 && !x->heard[from].rests))
        return shmt_exchange_keep_blocks(x, from, parcel, message, x->n_blocks);
    shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has rounded changes that are to be sent as they are", from);
    return false;
}

static bool take(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel, struct shmt_message *message) {
    if (parcel->kind == SHMT_PARCEL_BLOCKS && x->heard[from].begun) return keep_blocks(x, from, parcel, message);
    if (parcel->kind == SHMT_PARCEL_PASSED) return shmt_passing_keep(x, from, parcel, message);
    shmt_exchange_take_items(x, from, parcel);
    return false;
}

static uint64_t most_bytes(const struct shmt_exchange *x, uint32_t from) {
    (void)from;
    const uint64_t passed = shmt_spec_most_passed(x->at.spec) * (sizeof(uint64_t) + sizeof(struct shmt_far_piece));
    return passed + x->n_blocks * (sizeof(float) * SHMT_FAR_BLOCK + sizeof(uint64_t));
}

/* ---- what goes ---- */

/* x->change: what has changed of a block since all hosts agreed on it, or the share of it that counts; as it is sent. */
static void look_at_block(struct shmt_exchange *x, uint64_t block) {
    const uint64_t at = block * SHMT_FAR_BLOCK, n = floats_of(x, block);
    const float *base = x->base + at;
    float *seen = x->seen + at, now[SHMT_FAR_BLOCK], share[SHMT_FAR_BLOCK], was[SHMT_FAR_BLOCK];
    ops(x)->read(x->seat, block, now);
    const bool differs = memcmp(now, base, n * sizeof *now) != 0;
    x->changed[block] = x->feedback ? shmt_feedback_is_due(x, block, differs, now) : differs;
    if (x->feedback) memcpy(was, seen, n * sizeof *was);
    memcpy(seen, now, n * sizeof *now);
    if (!x->changed[block]) return;
    const uint64_t examples = x->feedback ? shmt_feedback_examples(x, block) : x->since;
    if (x->is_weighted) ops(x)->shares(x->seat, block, examples, share);
    for (uint64_t i = 0; i < n; i++) x->change[at + i] = (seen[i] - base[i]) * (x->is_weighted ? share[i] : 1);
    if (x->feedback) shmt_feedback_round(x, block, n, x->is_weighted ? share : NULL, was);
}

/* The next blocks that have changed, from *block on. NULL: there are none, or no memory for them. */
static struct shmt_payload *next_changes(struct shmt_exchange *x, uint64_t *block) {
    const bool looks = !shmt_feedback_chooses(x); /* else all have been looked at */
    const struct shmt_parcel parcel = {.kind = SHMT_PARCEL_BLOCKS,
                                       .n = (uint32_t)shmt_min_u64(SHMT_MOST_PARCEL_BLOCKS, x->n_blocks - *block),
                                       .number = x->number,
                                       .halves = shmt_feedback_sends_halves(x)};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    uint32_t n = 0;
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    for (; payload && *block < x->n_blocks && n < parcel.n; ++*block) {
        const float *change = x->change + *block * SHMT_FAR_BLOCK;
        if (looks) look_at_block(x, *block);
        if (x->changed[*block])
            (parcel.halves ? shmt_parcel_put_half_block : shmt_parcel_put_block)(entries, n++, *block, change);
        shmt_exchange_breathe(x, *block);
    }
    if (payload && n > 0) {
        shmt_parcel_end(payload, n);
        return payload;
    }
    shmt_payload_drop(payload);
    return NULL;
}

static void choose_changes(struct shmt_exchange *x) {
    for (uint64_t block = 0; block < x->n_blocks; block++) {
        look_at_block(x, block);
        shmt_exchange_breathe(x, block);
    }
    shmt_feedback_choose(x);
}

static void send_changes(struct shmt_exchange *x) {
    if (shmt_feedback_chooses(x)) choose_changes(x);
    for (uint64_t block = 0; block < x->n_blocks && x->error.status == 0;) {
        struct shmt_payload *payload = next_changes(x, &block);
        if (payload) shmt_exchange_send(x, payload);
    }
}

/* ---- merging ---- */

/* Where one is in the blocks of a host. */
struct cursor {
    const struct shmt_kept_message *kept;
    struct shmt_parcel parcel;
    uint32_t i;
};

static void open_message(struct cursor *c) {
    const char *why;
    c->i = 0;
    if (c->kept) (void)shmt_parcel_read(c->kept->message.bytes, c->kept->message.n, &c->parcel, &why); /* as when it came */
}

/* The host's change of this block, if it has one: then the cursor goes on. */
static bool take_block(struct cursor *c, uint64_t block, float out[SHMT_FAR_BLOCK]) {
    if (!c->kept || shmt_parcel_block(&c->parcel, c->i, out) != block) return false;
    if (++c->i < c->parcel.n) return true;
    c->kept = c->kept->next;
    open_message(c);
    return true;
}

/* Adds up what hosts have changed a block by, in the order of ranks. Means also ask who has changed a float. */
struct total {
    float sum[SHMT_FAR_BLOCK], changed[SHMT_FAR_BLOCK], most[SHMT_FAR_BLOCK];
    bool counts;
};

static void add_change(struct total *total, const float *change, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) total->sum[i] += change[i];
    for (uint64_t i = 0; total->counts && i < n; i++)
        shmt_feedback_count(fabsf(change[i]), &total->most[i], &total->changed[i]);
}

/* What a block's base becomes. false: nobody has changed it. */
static bool merge_block(struct shmt_exchange *x, struct cursor *cursor, uint64_t block, float base_out[SHMT_FAR_BLOCK]) {
    const uint64_t at = block * SHMT_FAR_BLOCK, n = floats_of(x, block);
    const bool counts_all = shmt_feedback_counts_all(x);
    struct total total = {.counts = !x->is_weighted && !counts_all};
    float change[SHMT_FAR_BLOCK];
    bool any = false;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        const bool is_other = shmt_exchange_is_other(x, host);
        if (is_other ? !take_block(&cursor[host], block, change) : !x->changed[block]) continue;
        add_change(&total, is_other ? change : x->change + at, n);
        any = true;
    }
    for (uint64_t i = 0; any && i < n; i++) {
        const float parts = x->is_weighted ? 1 : counts_all ? (float)x->at.spec->hosts.n : fmaxf(1, total.changed[i]);
        base_out[i] = x->base[at + i] + total.sum[i] / parts;
    }
    return any;
}

/* `all_rest`: nobody pushes any more, and everybody gets the same bits. */
static void merge(struct shmt_exchange *x, bool all_rest) {
    struct cursor cursor[SHMT_MAX_HOSTS] = {0};
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        cursor[host].kept = x->heard[host].blocks.first;
        open_message(&cursor[host]);
    }
    for (uint64_t block = 0; block < x->n_blocks; block++) {
        shmt_exchange_breathe(x, block);
        const uint64_t at = block * SHMT_FAR_BLOCK, n = floats_of(x, block);
        float base[SHMT_FAR_BLOCK], change[SHMT_FAR_BLOCK];
        if (!merge_block(x, cursor, block, base)) continue;
        for (uint64_t i = 0; !x->feedback && i < n; i++) change[i] = base[i] - x->seen[at + i];
        if (x->feedback) shmt_feedback_bring(x, block, n, base, change);
        memcpy(x->base + at, base, n * sizeof *base);
        if (!all_rest) ops(x)->add(x->seat, block, change);
    }
    for (uint64_t block = 0; all_rest && block < x->n_blocks; block++)
        ops(x)->set(x->seat, block, x->base + block * SHMT_FAR_BLOCK);
    if (all_rest && x->feedback) shmt_feedback_start(x);
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) shmt_kept_release(&x->heard[host].blocks, x->at.lanes);
}

/* ---- a round ---- */

/* How far the slowest of the other hosts' workers is, in what is now merged here. */
static void tell_workers(struct shmt_exchange *x) {
    uint64_t least = NO_CLOCK;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (shmt_exchange_is_other(x, host)) least = shmt_min_u64(least, x->heard[host].clock);
    ops(x)->reach(x->seat, least);
    if (x->stop) ops(x)->stop(x->seat);
}

/* What a round has taken: work, and the network, but for waiting until others have begun it. */
struct taken {
    uint64_t work_ns, network_ns;
};

/* What this host's workers do, before I look at what has changed: where they rest, nothing changes behind it. Or a status. */
static int find_state(struct shmt_exchange *x) {
    const int rests = ops(x)->rests(x->seat);
    if (rests < 0) return rests;
    const bool out = shmt_passing_look(x);
    if (rests == 1 && x->busy_ns == 0) x->busy_ns = shmt_max_u64(1, shmt_passing_busy_ns(x));
    return rests == 1 ? SHMT_ROUND_RESTS : out ? SHMT_ROUND_OUT : SHMT_ROUND_WORKS;
}

/* Workers that have had no items since the last round have changed nothing; if something is left, it goes with the round in which they
 * rest. */
static bool sends_nothing(const struct shmt_exchange *x, int state) {
    return state == SHMT_ROUND_OUT && x->was_out && !x->feedback;
}

static void send_nothing(struct shmt_exchange *x) {
    memset(x->changed, 0, x->n_blocks);
    memcpy(x->seen, x->base, x->n_floats * sizeof *x->seen); /* what is merged is added to what is there */
}

/* Changes come before they are counted, an item later; and a worker that dies is counted back. */
static void count_examples(struct shmt_exchange *x) {
    const uint64_t examples = ops(x)->examples(x->seat);
    x->since = shmt_max_u64(x->at.spec->item, examples > x->examples ? examples - x->examples : 0);
    x->examples = shmt_max_u64(x->examples, examples);
}

static void say(struct shmt_exchange *x, int state, bool *told) {
    uint64_t number[SHMT_ROUND_NUMBERS] = {[SHMT_ROUND_CLOCK] =
                                               state == SHMT_ROUND_RESTS ? x->busy_ns : ops(x)->clock(x->seat)};
    shmt_passing_say(x, (enum shmt_round_state)state, number);
    shmt_exchange_say_begin(x, (enum shmt_round_state)state, number);
    if (x->error.status == 0) shmt_passing_send(x);
    if (x->error.status == 0 && sends_nothing(x, state)) send_nothing(x);
    if (x->error.status == 0 && !sends_nothing(x, state)) send_changes(x);
    if (x->error.status == 0 && state == SHMT_ROUND_RESTS && !*told) {
        shmt_exchange_tell_items(x);
        *told = true;
    }
}

/* 1: there is another one in this epoch; 0: it was the last one; or a status. *told: this host has said what it has done. */
static int do_round(struct shmt_exchange *x, bool *told, struct taken *taken) {
    const uint64_t began_ns = shmt_now_ns();
    const int state = find_state(x);
    if (state < 0) return state;
    shmt_exchange_does(x, SHMT_EVENT_EXCHANGE);
    shmt_exchange_open(x, shmt_exchange_is_asked_to_stop(x));
    if (!sends_nothing(x, state)) count_examples(x);
    if (x->feedback) shmt_feedback_begin(x, state == SHMT_ROUND_RESTS);
    if (x->error.status == 0) say(x, state, told);
    const uint64_t sent_ns = shmt_now_ns();
    shmt_exchange_close(x);
    if (x->error.status != 0) return x->error.status;
    const uint64_t closed_ns = shmt_now_ns(),
                   network_ns = closed_ns - shmt_min_u64(closed_ns, shmt_max_u64(sent_ns, x->begun_ns));
    const bool is_last = state == SHMT_ROUND_RESTS && shmt_exchange_all_others_rest(x);
    shmt_passing_settle(x, (enum shmt_round_state)state, sent_ns - began_ns + network_ns);
    merge(x, is_last);
    tell_workers(x);
    shmt_exchange_does(x, is_last ? SHMT_EVENT_WAIT : SHMT_EVENT_NONE); /* it rests until the next round */
    x->was_out = state == SHMT_ROUND_OUT;
    *taken = (struct taken){.work_ns = sent_ns - began_ns + shmt_now_ns() - closed_ns, .network_ns = network_ns};
    return x->error.status != 0 ? x->error.status : !is_last;
}

/* Whoever rests goes on at once; so does who has no items, or has some that others wait for. Behind a round that has closed the epoch,
 * workers are on their way to rest. */
static bool goes_on(struct shmt_exchange *x, bool closed) {
    if (ops(x)->rests(x->seat) != 0) return true;
    const bool out = shmt_passing_look(x);
    return !closed && (out || shmt_passing_is_asked(x));
}

/* Until the next round. Whoever has workers that wait for others' clocks goes on nearly at once. Carriers wait for whole milliseconds, so
 * this looks for itself. */
static void pace(struct shmt_exchange *x, const struct taken *taken) {
    const bool bound = x->at.spec->policy.staleness != SHMT_STALENESS_INF, closed = shmt_passing_is_closed(x);
    const uint64_t free_ns = PACE * taken->network_ns + BUSY_PACE * taken->work_ns;
    const uint64_t wait_ns = bound ? shmt_max_u64(BOUND_NS, (taken->network_ns + taken->work_ns) / 2)
                                   : shmt_max_u64(LEAST_NS, shmt_min_u64(MOST_NS, free_ns));
    const uint64_t until_ns = closed ? UINT64_MAX : shmt_now_ns() + wait_ns;
    while (x->error.status == 0 && shmt_now_ns() < until_ns && !goes_on(x, closed)) {
        const uint64_t left_ns = closed ? 0 : shmt_passing_left_ns(x) / 8;
        shmt_exchange_receive(x, 0);
        shmt_host()->sleep_until(
            shmt_min_u64(until_ns, shmt_now_ns() + shmt_max_u64(GLANCE_NS, shmt_min_u64(REST_NS, left_ns))));
    }
}

static int epoch(struct shmt_exchange *x) {
    bool told = false;
    int rc = ops(x)->begin(x->seat);
    if (rc != 1) return rc;
    x->epoch_began_ns = shmt_now_ns();
    x->busy_ns = 0;
    x->was_out = false;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) x->heard[host].rests = false;
    shmt_passing_begin(x);
    for (;;) {
        struct taken taken = {0};
        rc = do_round(x, &told, &taken);
        if (rc != 1) break;
        pace(x, &taken);
        if (x->error.status != 0) return x->error.status;
    }
    if (rc < 0) return rc;
    shmt_passing_end(x);
    /* whoever has to wait for the slowest worker's clock gains nothing by having more items */
    if (x->at.spec->policy.staleness == SHMT_STALENESS_INF) shmt_exchange_deal_by_speed(x);
    return ops(x)->end(x->seat, x->stop);
}

/* ---- the run ---- */

static int plan(struct shmt_exchange *x) {
    x->is_weighted = x->at.spec->curvatures;
    x->base = calloc(x->n_floats + 1, sizeof *x->base);
    x->seen = calloc(x->n_floats + 1, sizeof *x->seen);
    x->change = calloc(x->n_blocks * SHMT_FAR_BLOCK + 1, sizeof *x->change); /* behind the last float there are zeros */
    x->changed = calloc(x->n_blocks + 1, sizeof *x->changed);
    if (!x->base || !x->seen || !x->change || !x->changed)
        return shmt_no_memory(&x->error, "for the parameters that hosts have agreed on");
    const int rc = shmt_passing_make(x);
    return rc < 0 ? rc : shmt_feedback_plan(x);
}

static int begin(struct shmt_exchange *x) {
    for (uint64_t block = 0; block < x->n_blocks; block++) ops(x)->read(x->seat, block, x->base + block * SHMT_FAR_BLOCK);
    if (x->feedback) shmt_feedback_start(x);
    return 0;
}

static void release(struct shmt_exchange *x) {
    shmt_feedback_free(x);
    shmt_passing_free(x);
    free(x->base);
    free(x->seen);
    free(x->change);
    free(x->changed);
}

const struct shmt_turns SHMT_TURNS_ROUNDS = {.plan = plan,
                                             .begin = begin,
                                             .free = release,
                                             .take = take,
                                             .most_bytes = most_bytes,
                                             .behind = SHMT_EVENT_MERGE,
                                             .epoch = epoch};
