/* The body of the link: see exchange.h. One thread; messages are taken in its calls of the lanes, and whenever its seat waits. */
#include "link/exchange_priv.h"

#include <stdlib.h>

#include "base/checked.h"
#include "sync/host.h"

#define LAST_PULSES 4
#define EARLY_BYTES 65536 /* besides blocks and losses: heads */
#define PIECE_BYTES 32

void shmt_exchange_fail(struct shmt_exchange *x, int status, const char *what, uint32_t host) {
    shmt_fail(&x->error, status, "%s %s", shmt_lanes_name(x->at.lanes, host), what);
}

/* ---- messages that are kept ---- */

bool shmt_keep(struct shmt_kept_list *list, const struct shmt_message *message) {
    struct shmt_kept_message *kept = malloc(sizeof *kept);
    if (!kept) return false;
    *kept = (struct shmt_kept_message){.message = *message};
    list->bytes += message->n;
    if (list->last)
        list->last->next = kept;
    else
        list->first = kept;
    list->last = kept;
    return true;
}

void shmt_kept_release(struct shmt_kept_list *list, struct shmt_lanes *lanes) {
    for (struct shmt_kept_message *kept = list->first, *next; kept; kept = next) {
        next = kept->next;
        shmt_lanes_release(lanes, &kept->message);
        free(kept);
    }
    *list = (struct shmt_kept_list){0};
}

/* ---- what comes ---- */

static void keep_early(struct shmt_exchange *x, struct shmt_message *message) {
    struct shmt_heard *heard = &x->heard[message->from];
    const uint64_t pieces = shmt_spec_pieces(x->at.spec) * PIECE_BYTES;
    const uint64_t most = 2 * (EARLY_BYTES + pieces + x->turns->most_bytes(x, message->from));
    const bool may_be = heard->early.bytes + message->n <= most;
    if (may_be && shmt_keep(&heard->early, message)) return;
    if (may_be) shmt_no_memory(&x->error, "for messages of %s", shmt_lanes_name(x->at.lanes, message->from));
    if (!may_be) shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent more about a batch than there is", message->from);
    shmt_lanes_release(x->at.lanes, message);
}

/* The sender has the whole run: it ends where mine does. */
static void take_over(struct shmt_exchange *x, uint32_t from, uint64_t number) {
    const uint64_t end = x->open ? x->number + 1 : x->number;
    if (number != end || (x->open && !x->heard[from].end))
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "ends the run at another batch", from);
    x->heard[from].over = true;
}

/* About the turn that follows the one in hand, or the next one where none is. */
static bool is_early(const struct shmt_exchange *x, uint32_t from, uint64_t number) {
    if (x->is_over || x->heard[from].over) return false;
    return x->open ? number == x->number + 1 && x->heard[from].end : number == x->number;
}

/* true: it is kept. */
static bool take_parcel(struct shmt_exchange *x, struct shmt_message *message, const struct shmt_parcel *parcel) {
    const uint32_t from = message->from;
    if (!x->open || parcel->number != x->number) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "is at another batch", from);
        return false;
    }
    if (x->heard[from].end) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "goes on behind the end of a batch", from);
        return false;
    }
    return x->turns->take(x, from, parcel, message);
}

/* The message is released, or kept. */
static void take(struct shmt_exchange *x, struct shmt_message *message) {
    const uint32_t from = message->from;
    struct shmt_parcel parcel;
    const char *why;
    if (message->channel == SHMT_CHANNEL_AGREE && !x->is_over) { /* behind the run: of the sender's next one */
        (void)shmt_agreement_take(x->at.agreement, message, &x->error);
        return;
    }
    if (x->is_over && (message->channel == SHMT_CHANNEL_AGREE || message->life != x->heard[from].life)) {
        shmt_lanes_release(x->at.lanes, message);
        return;
    }
    if (x->heard[from].life == 0) x->heard[from].life = message->life; /* others may still be missing */
    if (message->channel != SHMT_CHANNEL_EXCHANGE || !shmt_parcel_read(message->bytes, message->n, &parcel, &why)) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent a message that makes no sense", from);
    } else if (message->life != x->heard[from].life) {
        shmt_exchange_fail(x, SHMTRAIN_E_DIED, "has restarted", from);
    } else if (parcel.kind == SHMT_PARCEL_OVER) {
        take_over(x, from, parcel.number);
    } else if (is_early(x, from, parcel.number)) {
        keep_early(x, message);
        return;
    } else if (take_parcel(x, message, &parcel)) {
        return;
    }
    shmt_lanes_release(x->at.lanes, message);
}

/* What was kept is about the turn that is now in hand. */
static void take_early(struct shmt_exchange *x, uint32_t host) {
    struct shmt_kept_message *kept = x->heard[host].early.first, *next;
    x->heard[host].early = (struct shmt_kept_list){0};
    for (; kept; kept = next) {
        next = kept->next;
        take(x, &kept->message);
        free(kept);
    }
}

/* ---- who is there ---- */

static bool is_lost(const struct shmt_exchange *x, uint32_t host) {
    return shmt_lanes_peer(x->at.lanes, host, NULL) == SHMT_PEER_LOST;
}

/* A host that has the whole run may leave; and so may all, as far as I am concerned, when I have it. */
static void look_at_peers(struct shmt_exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        uint64_t life;
        if (!shmt_exchange_is_other(x, host) || x->is_over || x->heard[host].over) continue;
        (void)shmt_lanes_peer(x->at.lanes, host, &life);
        (void)shmt_lanes_check(x->at.lanes, host, &x->error);
        if (x->heard[host].life != 0 && life != x->heard[host].life)
            shmt_exchange_fail(x, SHMTRAIN_E_DIED, "has restarted", host);
    }
}

static bool is_given_up(const struct shmt_exchange *x) {
    /* relaxed: a flag that carries nothing but itself */
    return load_relaxed(x->at.backend->store->abort_word(x->at.store)) != 0;
}

void shmt_exchange_receive(struct shmt_exchange *x, uint64_t until_ns) {
    struct shmt_message message;
    bool changed = false;
    int rc = 1;
    while (rc == 1 && x->error.status == 0) {
        rc = shmt_lanes_receive(x->at.lanes, until_ns, &message, &changed, &x->error);
        if (rc == 1) take(x, &message);
        until_ns = 0;
    }
    shmt_exchange_show(x);
    if (rc == 0 && changed) look_at_peers(x);
    if (x->error.status != 0) return;
    if (is_given_up(x) || (x->at.goes_on && !x->at.goes_on(x->at.arg))) shmt_fail(&x->error, SHMTRAIN_E_STOPPED, SHMT_GIVEN_UP);
}

/* The run of this host ends. */
static void give_up(const struct shmt_exchange *x) {
    _Atomic uint32_t *const abort = x->at.backend->store->abort_word(x->at.store);
    /* release, as all do who set it: nothing is read on its strength; waiters look with relaxed loads */
    if (!is_given_up(x)) store_release(abort, 1);
    x->at.backend->store->wake(x->at.store);
}

/* While the seat waits. */
static void pulse(void *arg) {
    struct shmt_exchange *x = arg;
    if (x->error.status == 0) shmt_exchange_receive(x, 0);
    if (x->error.status != 0) give_up(x);
}

/* Behind it, nobody is surprised by what others send about turns. */
static void wait_for_hosts(struct shmt_exchange *x) {
    const uint64_t until_ns = shmt_now_ns() + x->at.start_ns;
    (void)shmt_agreement_ready(x->at.agreement, &x->error);
    while (x->error.status == 0 && !shmt_agreement_all_ready(x->at.agreement) && shmt_now_ns() < until_ns)
        shmt_exchange_receive(x, shmt_now_ns() + SHMT_PULSE_NS);
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (shmt_exchange_is_other(x, host) && shmt_lanes_peer(x->at.lanes, host, NULL) == SHMT_PEER_UNKNOWN)
            (void)shmt_lanes_fail_absent(x->at.lanes, host, &x->error);
    if (x->error.status == 0 && !shmt_agreement_all_ready(x->at.agreement))
        shmt_fail(&x->error, SHMTRAIN_E_DIED, "not all hosts are ready");
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (shmt_exchange_is_other(x, host)) (void)shmt_lanes_peer(x->at.lanes, host, &x->heard[host].life);
}

/* ---- what goes ---- */

/* Nobody's payload. */
static void send_to(struct shmt_exchange *x, uint32_t host, struct shmt_payload *payload) {
    while (x->error.status == 0 && !((x->is_over || x->heard[host].over) && is_lost(x, host)) &&
           shmt_lanes_send(x->at.lanes, host, SHMT_CHANNEL_EXCHANGE, payload, &x->error) == 0)
        shmt_exchange_receive(x, shmt_now_ns() + SHMT_PULSE_NS);
}

void shmt_exchange_send_to(struct shmt_exchange *x, uint32_t host, struct shmt_payload *payload) {
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    send_to(x, host, payload);
    shmt_payload_drop(payload);
}

void shmt_exchange_send(struct shmt_exchange *x, struct shmt_payload *payload) {
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (shmt_exchange_is_other(x, host)) send_to(x, host, payload);
    shmt_payload_drop(payload);
}

static void send_bare(struct shmt_exchange *x, enum shmt_parcel_kind kind) {
    unsigned char *entries;
    const struct shmt_parcel parcel = {.kind = kind, .number = x->number};
    shmt_exchange_send(x, shmt_parcel_make(&parcel, &entries));
}

/* ---- a turn ---- */

void shmt_exchange_open(struct shmt_exchange *x, bool stop) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (x->heard[host].over) shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has ended the run before its last batch", host);
    x->open = true;
    x->stop = stop;
    for (uint32_t host = 0; host < x->at.spec->hosts.n && x->error.status == 0; host++) {
        x->heard[host].begun = x->heard[host].end = x->heard[host].stop = false;
        take_early(x, host);
    }
}

static bool all_have_ended(const struct shmt_exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (shmt_exchange_is_other(x, host) && !x->heard[host].end) return false;
    return true;
}

/* What all want behind that, they want because of the first. */
static void note_enders(struct shmt_exchange *x) {
    const bool mine = x->stop, is_known = x->has_ender;
    for (uint32_t host = x->at.spec->hosts.n; host-- > 0;) {
        if (!(shmt_exchange_is_other(x, host) ? x->heard[host].stop : mine)) continue;
        x->stop = x->has_ender = true;
        if (x->at.ender_out && !is_known) *x->at.ender_out = host;
    }
}

void shmt_exchange_close(struct shmt_exchange *x) {
    if (x->error.status == 0) send_bare(x, SHMT_PARCEL_END);
    shmt_exchange_does(x, SHMT_EVENT_HOSTS);
    while (x->error.status == 0 && !all_have_ended(x)) shmt_exchange_receive(x, shmt_now_ns() + SHMT_PULSE_NS);
    shmt_exchange_does(x, x->turns->behind);
    if (x->error.status != 0) return;
    note_enders(x);
    x->open = false;
    x->number++;
    x->n_turns++;
    shmt_exchange_show(x);
}

/* ---- the run ---- */

static int meet_at(struct shmt_exchange *x, enum shmt_run_stage stage) {
    (void)x->at.backend->seat->stage(x->seat, stage);
    return x->at.backend->seat->meet(x->seat);
}

static int run_epoch(struct shmt_exchange *x) {
    shmt_exchange_does(x, SHMT_EVENT_WAIT);
    int rc = x->turns->epoch(x);
    if (rc == 0) rc = meet_at(x, SHMT_STAGE_END);
    if (rc == 0 && x->at.spec->pauses.allowed)
        rc = x->at.backend->seat->pause(x->seat); /* a copy may be taken; nobody pauses */
    if (rc == 0 && x->at.scores) rc = meet_at(x, SHMT_STAGE_SCORE);
    if (rc == 0) rc = x->at.backend->seat->turn(x->seat);
    x->epoch++;
    return rc;
}

/* Every host that is not lost has the whole run, and knows that I have it. */
static bool all_have_finished(const struct shmt_exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (shmt_exchange_is_other(x, host) && !is_lost(x, host) && !x->heard[host].over) return false;
    return shmt_lanes_are_empty(x->at.lanes);
}

/* The others may not have all of the last turn yet, and my last acknowledgement has to reach them. */
static void finish(struct shmt_exchange *x) {
    x->is_over = true;
    send_bare(x, SHMT_PARCEL_OVER);
    while (x->error.status == 0 && !all_have_finished(x)) shmt_exchange_receive(x, shmt_now_ns() + SHMT_PULSE_NS);
    for (int i = 0; i < LAST_PULSES && x->error.status == 0; i++) shmt_exchange_receive(x, shmt_now_ns() + SHMT_PULSE_NS);
}

/* What the seat has returned. */
static void note_failure(struct shmt_exchange *x, int rc) {
    if (x->error.status == 0 && rc < 0)
        shmt_fail(&x->error, rc, "%s", x->seat->error.status ? x->seat->error.text : SHMT_GIVEN_UP);
}

static void run(struct shmt_exchange *x) {
    const struct shmt_backend *backend = x->at.backend;
    int rc = x->turns->plan(x);
    if (rc == 0) rc = backend->seat->enter(x->at.store, x->at.spec->n_seats, 0, &x->seat, &x->error);
    if (rc < 0) return;
    x->epoch = x->at.spec->first_epoch;
    shmt_exchange_begin_showing(x);
    backend->far->pulse(x->seat, SHMT_PULSE_NS, pulse, x);
    if (x->turns->begin && x->turns->begin(x) < 0) return;
    wait_for_hosts(x);
    if (x->error.status == 0 && x->at.begins) note_failure(x, meet_at(x, SHMT_STAGE_BEGIN));
    rc = 1;
    while (x->error.status == 0 && rc == 1) {
        rc = run_epoch(x);
        note_failure(x, rc);
    }
    shmt_exchange_does(x, SHMT_EVENT_NONE);
    if (x->error.status == 0) finish(x);
}

static void release(struct shmt_exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        shmt_kept_release(&x->heard[host].early, x->at.lanes);
        shmt_kept_release(&x->heard[host].blocks, x->at.lanes);
    }
    if (x->turns->free) x->turns->free(x);
}

static const struct shmt_turns *turns_of(const struct shmt_spec *spec) {
    if (shmt_policy_is_batched(&spec->policy)) return &SHMT_TURNS_BATCHES;
    if (shmt_policy_has_rounds(&spec->policy)) return &SHMT_TURNS_QUORUMS;
    return shmt_policy_meets_to_merge(&spec->policy) ? &SHMT_TURNS_MERGES : &SHMT_TURNS_ROUNDS;
}

int shmt_exchange_run(const struct shmt_exchange_place *place, struct shmt_error *e) {
    struct shmt_exchange *x = calloc(1, sizeof *x);
    struct shmt_flat flat;
    if (!x) return shmt_no_memory(e, "for the link");
    shmt_flat_plan(place->spec, &flat);
    x->at = *place;
    x->turns = turns_of(place->spec);
    x->n_floats = flat.n;
    x->n_blocks = shmt_far_blocks(flat.n);
    if (x->turns != &SHMT_TURNS_BATCHES && !place->begins)
        shmt_fail(&x->error, SHMTRAIN_E_USAGE, "workers of live modes have to meet before the link looks at their parameters");
    if (x->error.status == 0) run(x);
    if (x->error.status != 0) {
        give_up(x);
        shmt_lanes_part(place->lanes);
    }
    if (x->seat) place->backend->seat->leave(x->seat);
    release(x);
    const int rc = x->error.status;
    if (rc < 0) shmt_fail(e, rc, "%s", x->error.text);
    free(x);
    return rc;
}
