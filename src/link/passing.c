/* See passing.h. */
#include "link/passing.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "sync/host.h"

#define LEAST_ITEMS 2 /* of each worker, to tell how long they take for one, while nobody waits for the answer */

/* What a host was passed, by its ranks and then by the order in which it was said; and what it gave away. */
struct received {
    uint64_t n, room, *item;
    uint64_t given;
    uint64_t in_round[2]; /* of both, in this round, since it has said what it has left */
};

_Static_assert(SHMT_MAX_HOSTS < UINT8_MAX, "an item's owner is a byte");

struct shmt_passing {
    struct received of[SHMT_MAX_HOSTS];
    uint8_t *owner; /* (pieces) 0: whose share it is of; else 1 + the host that it was passed to last in this epoch */
    uint64_t pieces;
    struct shmt_kept_list come[SHMT_MAX_HOSTS]; /* PASSED of this round, */
    uint64_t n_come[SHMT_MAX_HOSTS];            /* ... and items in them */
    struct {
        struct shmt_payload *payload;
        uint32_t to;
    } sent[SHMT_MAX_HOSTS]; /* by me in this round */
    uint32_t n_sent;
    uint64_t planned[SHMT_MAX_HOSTS]; /* items that I give in the next round */
    bool in_vain;                     /* I was to give some in this one, and had none */
    struct shmt_headway mine;         /* as I have said */
    uint64_t way_ns;                  /* that the last round took */
    uint64_t began_ns, began_examples;
    uint64_t out_since_ns, out_ns; /* 0: workers have items; for how long they had none before */
    bool closed;
};

static const struct shmt_far_live_ops *live(const struct shmt_exchange *x) { return x->at.backend->far->live; }
static const struct shmt_far_passing_ops *ops(const struct shmt_exchange *x) { return x->at.backend->far->passing; }
static uint32_t self(const struct shmt_exchange *x) { return x->at.spec->hosts.self; }

int shmt_passing_make(struct shmt_exchange *x) {
    if (!shmt_spec_passes_items(x->at.spec)) return 0;
    struct shmt_passing *p = x->passing = calloc(1, sizeof *p);
    if (p) p->pieces = shmt_spec_pieces(x->at.spec);
    if (p) p->owner = calloc(p->pieces + 1, sizeof *p->owner);
    return p && p->owner ? 0 : shmt_no_memory(&x->error, "for items that are passed on");
}

static void forget_round(struct shmt_exchange *x) {
    struct shmt_passing *p = x->passing;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        shmt_kept_release(&p->come[host], x->at.lanes);
        p->n_come[host] = 0;
    }
    while (p->n_sent > 0) shmt_payload_drop(p->sent[--p->n_sent].payload);
}

void shmt_passing_free(struct shmt_exchange *x) {
    if (!x->passing) return;
    forget_round(x);
    for (uint32_t host = 0; host < SHMT_MAX_HOSTS; host++) free(x->passing->of[host].item);
    free(x->passing->owner);
    free(x->passing);
    x->passing = NULL;
}

void shmt_passing_begin(struct shmt_exchange *x) {
    struct shmt_passing *p = x->passing;
    if (!p) return;
    memset(p->owner, 0, p->pieces * sizeof *p->owner);
    memset(p->planned, 0, sizeof p->planned);
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) p->of[host].n = p->of[host].given = 0;
    p->began_ns = shmt_now_ns();
    p->out_since_ns = p->out_ns = 0;
    p->closed = false;
}

void shmt_passing_end(struct shmt_exchange *x) {
    if (x->passing) x->passing->began_examples = live(x)->examples(x->seat);
}

/* ---- this host ---- */

bool shmt_passing_look(struct shmt_exchange *x) {
    struct shmt_passing *p = x->passing;
    if (!p) return false;
    uint64_t since_ns;
    const bool out = ops(x)->is_out(x->seat, &since_ns);
    if (out && p->out_since_ns == 0) p->out_since_ns = shmt_max_u64(p->began_ns, shmt_min_u64(since_ns, shmt_now_ns()));
    if (!out && p->out_since_ns != 0) {
        p->out_ns += shmt_now_ns() - p->out_since_ns;
        p->out_since_ns = 0;
    }
    return out;
}

bool shmt_passing_is_closed(const struct shmt_exchange *x) { return x->passing && x->passing->closed; }

uint64_t shmt_passing_busy_ns(const struct shmt_exchange *x) {
    const struct shmt_passing *p = x->passing;
    const uint64_t until_ns = p && p->out_since_ns != 0 ? p->out_since_ns : shmt_now_ns();
    return p ? until_ns - p->began_ns - p->out_ns : until_ns - x->epoch_began_ns;
}

/* About as many as this host's workers have done in this epoch: those that an earlier life has done count, too. */
static uint64_t count_done(const struct shmt_exchange *x) {
    const uint64_t now = live(x)->examples(x->seat), before = x->passing->began_examples;
    return (now - shmt_min_u64(now, before)) / x->at.spec->item;
}

/* Each worker has one in hand. */
static uint64_t count_left(const struct shmt_exchange *x) {
    const uint64_t all = shmt_passing_dealt(x, self(x));
    return all - shmt_min_u64(all, count_done(x) + x->at.spec->n_seats);
}

/* Those that workers have in hand are half done, on average. Few tell little; but if somebody waits, that is better than nothing. */
static uint64_t time_for_one(const struct shmt_exchange *x) {
    const uint64_t done = count_done(x), n_seats = x->at.spec->n_seats;
    bool somebody_waits = false;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        somebody_waits |= shmt_exchange_is_other(x, host) && x->heard[host].out;
    return somebody_waits || done >= LEAST_ITEMS * n_seats ? 2 * shmt_passing_busy_ns(x) / (2 * done + n_seats) : 0;
}

uint64_t shmt_passing_left_ns(const struct shmt_exchange *x) {
    return x->passing ? shmt_min_u64(count_left(x), UINT32_MAX) * shmt_min_u64(time_for_one(x), UINT32_MAX) : 0;
}

void shmt_passing_say(struct shmt_exchange *x, enum shmt_round_state state, uint64_t number[SHMT_ROUND_NUMBERS]) {
    struct shmt_passing *p = x->passing;
    if (!p) return;
    p->mine = (struct shmt_headway){.left = state == SHMT_ROUND_OUT ? 0 : count_left(x),
                                    .waits = state == SHMT_ROUND_OUT,
                                    .each_ns = time_for_one(x),
                                    .way_ns = p->way_ns};
    number[SHMT_ROUND_LEFT] = p->mine.left;
    number[SHMT_ROUND_EACH] = p->mine.each_ns;
    number[SHMT_ROUND_WAY] = p->mine.way_ns;
}

static uint64_t count_planned(const struct shmt_exchange *x) {
    uint64_t n = 0;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) n += x->passing->planned[host];
    return n;
}

/* It waits since the last round: a host that is out goes on at once, and what it says of the next round has come already. Of those that
 * were out in the last one the plan knows. */
static bool waits_anew(const struct shmt_exchange *x, uint32_t host) {
    const struct shmt_kept_message *first = x->heard[host].early.first;
    struct shmt_parcel parcel;
    const char *why;
    return !x->heard[host].out && first && shmt_parcel_read(first->message.bytes, first->message.n, &parcel, &why) &&
           parcel.kind == SHMT_PARCEL_ROUND && parcel.of == SHMT_ROUND_OUT;
}

bool shmt_passing_is_asked(const struct shmt_exchange *x) {
    if (!x->passing) return false;
    bool asked = count_planned(x) > 0;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) asked |= shmt_exchange_is_other(x, host) && waits_anew(x, host);
    return asked && !x->passing->in_vain && count_left(x) > 0;
}

/* ---- giving ---- */

static struct shmt_payload *take_items(struct shmt_exchange *x, uint32_t to, uint64_t n) {
    const struct shmt_parcel parcel = {.kind = SHMT_PARCEL_PASSED, .of = to, .n = (uint32_t)n, .number = x->number};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    uint32_t taken = 0;
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    for (uint64_t item; payload && taken < n && ops(x)->give(x->seat, &item);) shmt_parcel_put_number(entries, taken++, item);
    if (payload && taken > 0) {
        shmt_parcel_end(payload, taken);
        return payload;
    }
    shmt_payload_drop(payload);
    return NULL;
}

void shmt_passing_send(struct shmt_exchange *x) {
    struct shmt_passing *p = x->passing;
    if (p) p->in_vain = false;
    for (uint32_t host = 0; p && host < x->at.spec->hosts.n && x->error.status == 0; host++) {
        const uint64_t n = shmt_min_u64(p->planned[host], SHMT_MOST_PARCEL_PASSED);
        struct shmt_payload *payload = n > 0 ? take_items(x, host, n) : NULL;
        p->planned[host] = 0;
        p->in_vain |= n > 0 && !payload;
        if (!payload) continue;
        p->sent[p->n_sent].payload = shmt_payload_hold(payload);
        p->sent[p->n_sent++].to = host;
        shmt_exchange_send(x, payload);
    }
}

/* ---- receiving ---- */

/* By all that was passed on before this round; a message that comes twice in it is found when the round is over. */
static bool may_pass(const struct shmt_exchange *x, uint32_t from, uint64_t item) {
    const struct shmt_passing *p = x->passing;
    const struct shmt_shares *dealt = live(x)->dealt(x->seat);
    return item < p->pieces && (p->owner[item] ? p->owner[item] - 1u : dealt->owner[item % dealt->n_slots]) == from;
}

bool shmt_passing_keep(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel,
                       const struct shmt_message *message) {
    bool fits = x->passing && x->heard[from].begun && parcel->of < x->at.spec->hosts.n && parcel->of != from && !parcel->flag &&
                parcel->n > 0 && parcel->n <= x->passing->pieces - x->passing->n_come[from];
    for (uint32_t i = 0; fits && i < parcel->n; i++) fits = may_pass(x, from, shmt_parcel_number(parcel, i));
    if (!fits) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "passes on items that are not its own", from);
        return false;
    }
    x->passing->n_come[from] += parcel->n;
    if (shmt_keep(&x->passing->come[from], message)) return true;
    shmt_no_memory(&x->error, "for items of %s", shmt_lanes_name(x->at.lanes, from));
    return false;
}

static bool make_room(struct received *of, uint64_t n) {
    if (of->n + n <= of->room) return true;
    const uint64_t room = 2 * (of->n + n);
    uint64_t *item = realloc(of->item, room * sizeof *item);
    if (!item) return false;
    of->item = item;
    of->room = room;
    return true;
}

/* Workers begin them before the next look. */
static void have_items(struct shmt_exchange *x) {
    struct shmt_passing *p = x->passing;
    if (p->out_since_ns != 0) p->out_ns += shmt_now_ns() - shmt_min_u64(shmt_now_ns(), p->out_since_ns);
    p->out_since_ns = 0;
}

static void hand_over(struct shmt_exchange *x, uint32_t from, const unsigned char *bytes, uint64_t n_bytes) {
    struct shmt_passing *p = x->passing;
    struct shmt_parcel parcel;
    const char *why;
    (void)shmt_parcel_read(bytes, n_bytes, &parcel, &why); /* as when it came */
    struct received *to = &p->of[parcel.of];
    if (parcel.n > shmt_spec_most_passed(x->at.spec) - to->n) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "passes on more items than a host can be passed", from);
        return;
    }
    if (!make_room(to, parcel.n)) {
        shmt_no_memory(&x->error, "for items that are passed on");
        return;
    }
    for (uint32_t i = 0; i < parcel.n; i++) {
        const uint64_t item = shmt_parcel_number(&parcel, i);
        if (!may_pass(x, from, item)) {
            shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "passes on an item twice", from);
            return;
        }
        p->owner[item] = (uint8_t)(parcel.of + 1);
        to->item[to->n + i] = item;
    }
    p->of[from].given += parcel.n;
    p->of[from].in_round[1] += parcel.n;
    to->in_round[0] += parcel.n;
    to->n += parcel.n;
    if (parcel.of == self(x)) have_items(x);
    if (parcel.of == self(x)) ops(x)->pass(x->seat, to->item + to->n - parcel.n, parcel.n);
}

/* In the order of ranks: the lists are the same on all hosts. */
static void hand_all_over(struct shmt_exchange *x) {
    struct shmt_passing *p = x->passing;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) p->of[host].in_round[0] = p->of[host].in_round[1] = 0;
    for (uint32_t host = 0; host < x->at.spec->hosts.n && x->error.status == 0; host++) {
        const struct shmt_kept_message *kept = p->come[host].first;
        for (; kept && x->error.status == 0; kept = kept->next) hand_over(x, host, kept->message.bytes, kept->message.n);
        for (uint32_t i = 0; host == self(x) && i < p->n_sent && x->error.status == 0; i++)
            hand_over(x, host, p->sent[i].payload->bytes, p->sent[i].payload->n);
    }
    forget_round(x);
}

/* ---- the end of a round ---- */

/* What it has said, and what it was passed since, or has given. */
static struct shmt_headway headway_of(const struct shmt_exchange *x, uint32_t host) {
    const struct received *of = &x->passing->of[host];
    struct shmt_headway out = shmt_exchange_is_other(x, host) ? x->heard[host].headway : x->passing->mine;
    out.left += of->in_round[0];
    out.left -= shmt_min_u64(out.left, of->in_round[1]);
    out.waits = out.waits && of->in_round[0] == 0;
    return out;
}

/* Nobody plans anything where somebody's workers have ended the epoch, as the run is asked to stop; nor where the run ends within the epoch
 * (max_steps), so that some items are nobody's. No host is passed more than there is room for, whoever else plans the same. */
static void plan(struct shmt_exchange *x) {
    struct shmt_passing *p = x->passing;
    const uint32_t n_hosts = x->at.spec->hosts.n;
    struct shmt_headway of[SHMT_MAX_HOSTS] = {0};
    if (!shmt_spec_has_step(x->at.spec, x->epoch, p->pieces - 1)) return;
    for (uint32_t host = 0; host < n_hosts; host++) {
        if (shmt_exchange_is_other(x, host) && x->heard[host].rests) return;
        of[host] = headway_of(x, host);
    }
    shmt_passing_plan(of, n_hosts, self(x), p->planned);
    for (uint32_t host = 0; host < n_hosts; host++)
        p->planned[host] = shmt_min_u64(p->planned[host], (shmt_spec_most_passed(x->at.spec) - p->of[host].n) / n_hosts);
}

static bool all_are_out(const struct shmt_exchange *x, enum shmt_round_state mine) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (shmt_exchange_is_other(x, host) && !x->heard[host].rests && !x->heard[host].out) return false;
    return mine != SHMT_ROUND_WORKS;
}

void shmt_passing_settle(struct shmt_exchange *x, enum shmt_round_state state, uint64_t way_ns) {
    struct shmt_passing *p = x->passing;
    if (!p) return;
    p->way_ns = way_ns;
    hand_all_over(x);
    if (x->error.status != 0 || p->closed) return;
    p->closed = x->stop || all_are_out(x, state);
    if (p->closed)
        ops(x)->close(x->seat);
    else if (state != SHMT_ROUND_RESTS)
        plan(x);
}

/* ---- whose items are whose ---- */

uint64_t shmt_passing_dealt(const struct shmt_exchange *x, uint32_t host) {
    struct shmt_host_items items;
    shmt_exchange_items_of(x, host, &items);
    return items.n - (x->passing ? x->passing->of[host].given : 0);
}

const uint64_t *shmt_passing_received(const struct shmt_exchange *x, uint32_t host, uint64_t *n_out) {
    *n_out = x->passing ? x->passing->of[host].n : 0;
    return x->passing ? x->passing->of[host].item : NULL;
}
