/* The body of the link: see exchange.h. One thread; messages are taken in its calls of the lanes, and whenever its seat waits. */
#include "link/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "link/parcel.h"
#include "sync/host.h"

_Static_assert(SHMT_MAX_HOSTS <= SHMT_MOST_HOSTS, "each host of a run has a rank on the wire");

#define PULSE_NS    UINT64_C(5000000) /* of waits for workers */
#define LAST_PULSES 4
#define GIVEN_UP    "the run of this host was given up"
#define EARLY_BYTES 65536 /* besides blocks: losses, and heads */

/* A message about the batch behind the one in hand. */
struct early {
    struct early *next;
    struct shmt_message message;
};

/* What has come from a host, of the batch in hand. */
struct heard {
    bool pieces, end, stop;
    bool over;     /* it has the whole run */
    uint64_t life; /* of the host, as it was first seen; 0: it has not come */
    struct early *first, *last;
    uint64_t early_bytes;
};

struct exchange {
    struct shmt_exchange_place at;
    struct shmt_seat *seat;
    struct shmt_error error; /* the first failure of the link */
    struct heard heard[SHMT_MAX_HOSTS];
    uint64_t number; /* the batch in hand; while none is, the next one */
    uint64_t step;   /* the batch in hand, within its epoch */
    bool open;       /* one is in hand */
    bool stop;
    bool is_over; /* this host has the whole run */
    uint64_t n_blocks;
    uint32_t first_node[SHMT_MAX_HOSTS + 1]; /* of the others: those of host h are from first_node[h] on */
    uint32_t n_own;
    struct shmt_subtree own[SHMT_MAX_STACK];
};

static void fail(struct exchange *x, int status, const char *what, uint32_t host) {
    shmt_fail(&x->error, status, "%s %s", shmt_lanes_name(x->at.lanes, host), what);
}

/* ---- what comes ---- */

static uint64_t examples_of(const struct exchange *x, uint32_t chunk) {
    const struct shmt_spec *spec = x->at.spec;
    const uint64_t n = shmt_spec_examples_of_step(spec, x->step);
    uint64_t from, to;
    shmt_chunk_examples(spec->batch, spec->n_chunks, chunk, n, &from, &to);
    return to - from;
}

static void put_pieces(struct exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    uint32_t first, behind;
    shmt_chunk_share(x->at.spec->n_chunks, from, x->at.spec->hosts.n, &first, &behind);
    if (x->heard[from].pieces || parcel->of != first || parcel->n != behind - first) {
        fail(x, SHMTRAIN_E_USAGE, "says that it has done other parts of a batch than its own", from);
        return;
    }
    for (uint32_t i = 0; i < parcel->n; i++) {
        struct shmt_far_piece piece;
        shmt_parcel_piece(parcel, i, &piece);
        if (piece.examples != examples_of(x, first + i)) {
            fail(x, SHMTRAIN_E_USAGE, "has done another number of examples than its part of a batch has", from);
            return;
        }
        x->at.backend->far->put_piece(x->seat, first + i, &piece);
    }
    x->heard[from].pieces = true;
    x->heard[from].stop = parcel->stop;
}

static void put_blocks(struct exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    if (!x->heard[from].pieces) {
        fail(x, SHMTRAIN_E_USAGE, "begins a batch in the middle", from);
        return;
    }
    const uint32_t node = x->first_node[from] + parcel->of;
    if (parcel->of >= x->first_node[from + 1] - x->first_node[from]) {
        fail(x, SHMTRAIN_E_USAGE, "has sent a sum that is not its own", from);
        return;
    }
    for (uint32_t i = 0; i < parcel->n; i++) {
        float values[SHMT_FAR_BLOCK];
        const uint64_t block = shmt_parcel_block(parcel, i, values);
        if (block >= x->n_blocks) {
            fail(x, SHMTRAIN_E_USAGE, "has sent a sum of parameters that there are not", from);
            return;
        }
        x->at.backend->far->put(x->seat, node, block, values);
    }
}

static void take_parcel(struct exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    if (x->heard[from].end)
        fail(x, SHMTRAIN_E_USAGE, "goes on behind the end of a batch", from);
    else if (parcel->kind == SHMT_PARCEL_PIECES)
        put_pieces(x, from, parcel);
    else if (parcel->kind == SHMT_PARCEL_BLOCKS)
        put_blocks(x, from, parcel);
    else if (x->heard[from].pieces)
        x->heard[from].end = true;
    else
        fail(x, SHMTRAIN_E_USAGE, "ends a batch that it has not begun", from);
}

static void keep(struct exchange *x, struct shmt_message *message) {
    struct heard *heard = &x->heard[message->from];
    const uint64_t nodes = x->first_node[message->from + 1] - x->first_node[message->from];
    const uint64_t most = 2 * (EARLY_BYTES + nodes * x->n_blocks * sizeof(float) * SHMT_FAR_BLOCK);
    const bool may_be = heard->early_bytes + message->n <= most;
    struct early *early = may_be ? malloc(sizeof *early) : NULL;
    if (!early) {
        if (may_be) shmt_no_memory(&x->error, "for messages of %s", shmt_lanes_name(x->at.lanes, message->from));
        if (!may_be) fail(x, SHMTRAIN_E_USAGE, "has sent more about a batch than there is", message->from);
        shmt_lanes_release(x->at.lanes, message);
        return;
    }
    heard->early_bytes += message->n;
    *early = (struct early){.message = *message};
    if (heard->last)
        heard->last->next = early;
    else
        heard->first = early;
    heard->last = early;
}

/* The sender has the whole run: it ends where mine does. */
static void take_over(struct exchange *x, uint32_t from, uint64_t number) {
    const uint64_t end = x->open ? x->number + 1 : x->number;
    if (number != end || (x->open && !x->heard[from].end)) fail(x, SHMTRAIN_E_USAGE, "ends the run at another batch", from);
    x->heard[from].over = true;
}

/* About the batch that follows the one in hand, or the next one where none is. */
static bool is_early(const struct exchange *x, uint32_t from, uint64_t number) {
    if (x->is_over || x->heard[from].over) return false;
    return x->open ? number == x->number + 1 && x->heard[from].end : number == x->number;
}

/* The message is released, or kept. */
static void take(struct exchange *x, struct shmt_message *message) {
    const uint32_t from = message->from;
    struct shmt_parcel parcel;
    const char *why;
    if (message->channel == SHMT_CHANNEL_AGREE) {
        (void)shmt_agreement_take(x->at.agreement, message, &x->error);
        return;
    }
    if (x->heard[from].life == 0) x->heard[from].life = message->life; /* others may still be missing */
    if (message->channel != SHMT_CHANNEL_EXCHANGE || !shmt_parcel_read(message->bytes, message->n, &parcel, &why)) {
        fail(x, SHMTRAIN_E_USAGE, "has sent a message that makes no sense", from);
    } else if (message->life != x->heard[from].life) {
        fail(x, SHMTRAIN_E_DIED, "has restarted", from);
    } else if (parcel.kind == SHMT_PARCEL_OVER) {
        take_over(x, from, parcel.number);
    } else if (is_early(x, from, parcel.number)) {
        keep(x, message);
        return;
    } else if (!x->open || parcel.number != x->number) {
        fail(x, SHMTRAIN_E_USAGE, "is at another batch", from);
    } else {
        take_parcel(x, from, &parcel);
    }
    shmt_lanes_release(x->at.lanes, message);
}

/* What was kept is about the batch that is now in hand. */
static void take_early(struct exchange *x, uint32_t host) {
    struct heard *heard = &x->heard[host];
    struct early *early = heard->first, *next;
    heard->first = heard->last = NULL;
    heard->early_bytes = 0;
    for (; early; early = next) {
        next = early->next;
        take(x, &early->message);
        free(early);
    }
}

static void free_early(struct exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        for (struct early *early = x->heard[host].first, *next; early; early = next) {
            next = early->next;
            shmt_lanes_release(x->at.lanes, &early->message);
            free(early);
        }
}

/* ---- who is there ---- */

static bool is_other(const struct exchange *x, uint32_t host) { return host != x->at.spec->hosts.self; }

static bool is_lost(const struct exchange *x, uint32_t host) {
    return shmt_lanes_peer(x->at.lanes, host, NULL) == SHMT_PEER_LOST;
}

/* A host that has the whole run may leave; and so may all, as far as I am concerned, when I have it. */
static void look_at_peers(struct exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        uint64_t life;
        if (!is_other(x, host) || x->is_over || x->heard[host].over) continue;
        if (shmt_lanes_peer(x->at.lanes, host, &life) == SHMT_PEER_LOST) fail(x, SHMTRAIN_E_DIED, "is lost", host);
        if (x->heard[host].life != 0 && life != x->heard[host].life) fail(x, SHMTRAIN_E_DIED, "has restarted", host);
    }
}

static bool is_given_up(const struct exchange *x) {
    /* relaxed: a flag that carries nothing but itself */
    return load_relaxed(x->at.backend->store->abort_word(x->at.store)) != 0;
}

/* What has come, and what comes by then; one message at least, or nothing. */
static void receive(struct exchange *x, uint64_t until_ns) {
    struct shmt_message message;
    bool changed = false;
    int rc = 1;
    while (rc == 1 && x->error.status == 0) {
        rc = shmt_lanes_receive(x->at.lanes, until_ns, &message, &changed, &x->error);
        if (rc == 1) take(x, &message);
        until_ns = 0;
    }
    if (rc == 0 && changed) look_at_peers(x);
    if (x->error.status != 0) return;
    if (is_given_up(x) || (x->at.goes_on && !x->at.goes_on(x->at.arg))) shmt_fail(&x->error, SHMTRAIN_E_STOPPED, GIVEN_UP);
}

/* The run of this host ends. */
static void give_up(const struct exchange *x) {
    _Atomic uint32_t *const abort = x->at.backend->store->abort_word(x->at.store);
    /* release, as all do who set it: nothing is read on its strength; waiters look with relaxed loads */
    if (!is_given_up(x)) store_release(abort, 1);
    x->at.backend->store->wake(x->at.store);
}

/* While the seat waits. */
static void pulse(void *arg) {
    struct exchange *x = arg;
    if (x->error.status == 0) receive(x, 0);
    if (x->error.status != 0) give_up(x);
}

/* Behind it, nobody is surprised by what others send about batches. */
static void wait_for_hosts(struct exchange *x) {
    const uint64_t until_ns = shmt_now_ns() + x->at.start_ns;
    (void)shmt_agreement_ready(x->at.agreement, &x->error);
    while (x->error.status == 0 && !shmt_agreement_all_ready(x->at.agreement) && shmt_now_ns() < until_ns)
        receive(x, shmt_now_ns() + PULSE_NS);
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (is_other(x, host) && shmt_lanes_peer(x->at.lanes, host, NULL) == SHMT_PEER_UNKNOWN)
            fail(x, SHMTRAIN_E_DIED, "has not come", host);
    if (x->error.status == 0 && !shmt_agreement_all_ready(x->at.agreement))
        shmt_fail(&x->error, SHMTRAIN_E_DIED, "not all hosts are ready");
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (is_other(x, host)) (void)shmt_lanes_peer(x->at.lanes, host, &x->heard[host].life);
}

/* ---- what goes ---- */

/* To all others; takes over the payload. Receives while there is no room. */
static void send(struct exchange *x, struct shmt_payload *payload) {
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        while (is_other(x, host) && x->error.status == 0 && !((x->is_over || x->heard[host].over) && is_lost(x, host)) &&
               shmt_lanes_send(x->at.lanes, host, SHMT_CHANNEL_EXCHANGE, payload, &x->error) == 0)
            receive(x, shmt_now_ns() + PULSE_NS);
    shmt_payload_drop(payload);
}

static void send_pieces(struct exchange *x) {
    uint32_t first, behind;
    unsigned char *entries;
    shmt_chunk_share(x->at.spec->n_chunks, x->at.spec->hosts.self, x->at.spec->hosts.n, &first, &behind);
    const struct shmt_parcel parcel = {
        .kind = SHMT_PARCEL_PIECES, .of = first, .n = behind - first, .number = x->number, .stop = x->stop};
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    for (uint32_t i = 0; payload && i < parcel.n; i++) {
        struct shmt_far_piece piece;
        x->at.backend->far->piece(x->seat, first + i, &piece);
        shmt_parcel_put_piece(entries, i, &piece);
    }
    send(x, payload);
}

/* The next blocks of an own sum that are not zero, from *block on. NULL: there are none, or no memory for them. */
static struct shmt_payload *next_blocks(struct exchange *x, uint32_t node, uint64_t *block) {
    const uint32_t most = (uint32_t)shmt_min_u64(SHMT_MOST_PARCEL_BLOCKS, x->n_blocks - *block);
    const struct shmt_parcel parcel = {.kind = SHMT_PARCEL_BLOCKS, .of = node, .n = most, .number = x->number};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    uint32_t n = 0;
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    for (; payload && *block < x->n_blocks && n < most; ++*block) {
        float values[SHMT_FAR_BLOCK] = {0};
        if (x->at.backend->far->sum(x->seat, x->own[node], *block, values)) shmt_parcel_put_block(entries, n++, *block, values);
    }
    if (payload && n > 0) {
        shmt_parcel_end(payload, n);
        return payload;
    }
    shmt_payload_drop(payload);
    return NULL;
}

static void send_blocks(struct exchange *x, uint32_t node) {
    for (uint64_t block = 0; block < x->n_blocks && x->error.status == 0;) {
        struct shmt_payload *payload = next_blocks(x, node, &block);
        if (payload) send(x, payload);
    }
}

static void send_end(struct exchange *x) {
    unsigned char *entries;
    const struct shmt_parcel parcel = {.kind = SHMT_PARCEL_END, .number = x->number};
    send(x, shmt_parcel_make(&parcel, &entries));
}

/* ---- a batch ---- */

static bool all_have_ended(const struct exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (is_other(x, host) && !x->heard[host].end) return false;
    return true;
}

static void begin_batch(struct exchange *x, const struct shmt_far_batch *batch) {
    if (batch->number != x->number) shmt_fail(&x->error, SHMTRAIN_E_USAGE, "the link has lost its place");
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (x->heard[host].over) fail(x, SHMTRAIN_E_USAGE, "has ended the run before its last batch", host);
    x->open = true;
    x->stop = batch->stop;
    x->step = batch->step;
    for (uint32_t host = 0; host < x->at.spec->hosts.n && x->error.status == 0; host++) {
        x->heard[host].pieces = x->heard[host].end = x->heard[host].stop = false;
        take_early(x, host);
    }
}

static void note_enders(struct exchange *x) {
    for (uint32_t host = x->at.spec->hosts.n; host-- > 0;) {
        if (is_other(x, host) ? !x->heard[host].stop : !x->stop) continue;
        if (x->at.ender_out) *x->at.ender_out = host;
    }
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) x->stop |= is_other(x, host) && x->heard[host].stop;
}

static int exchange_batch(struct exchange *x, const struct shmt_far_batch *batch) {
    begin_batch(x, batch);
    if (x->error.status == 0) send_pieces(x);
    for (uint32_t node = 0; node < x->n_own && x->error.status == 0; node++) send_blocks(x, node);
    if (x->error.status == 0) send_end(x);
    while (x->error.status == 0 && !all_have_ended(x)) receive(x, shmt_now_ns() + PULSE_NS);
    if (x->error.status != 0) return x->error.status;
    note_enders(x);
    x->open = false;
    x->number++;
    return x->at.backend->far->publish(x->seat, x->stop);
}

static int meet_at(struct exchange *x, enum shmt_run_stage stage) {
    (void)x->at.backend->seat->stage(x->seat, stage);
    return x->at.backend->seat->meet(x->seat);
}

static int run_epoch(struct exchange *x) {
    const struct shmt_backend *b = x->at.backend;
    struct shmt_far_batch batch;
    int rc;
    while ((rc = b->far->claim(x->seat, &batch)) == 1)
        if ((rc = exchange_batch(x, &batch)) < 0) break;
    if (rc == 0) rc = meet_at(x, SHMT_STAGE_END);
    if (rc == 0 && x->at.scores) rc = meet_at(x, SHMT_STAGE_SCORE);
    return rc < 0 ? rc : b->seat->turn(x->seat);
}

/* ---- the run ---- */

static void plan(struct exchange *x) {
    const struct shmt_spec *spec = x->at.spec;
    struct shmt_subtree node[SHMT_MAX_HOSTS * SHMT_MAX_STACK];
    uint32_t host[SHMT_MAX_HOSTS * SHMT_MAX_STACK];
    struct shmt_stack stack;
    uint32_t from, to, height;
    shmt_chunk_share(spec->n_chunks, spec->hosts.self, spec->hosts.n, &from, &to);
    shmt_stack_after(from, to, false, &stack, &height);
    x->n_own = stack.n;
    memcpy(x->own, stack.at, stack.n * sizeof *stack.at);
    const uint32_t n_nodes = shmt_far_nodes(spec->n_chunks, spec->hosts.n, spec->hosts.self, node, host);
    for (uint32_t k = 0; k < n_nodes; k++) x->first_node[host[k] + 1] = k + 1;
    for (uint32_t h = 0; h < spec->hosts.n; h++)
        if (x->first_node[h + 1] < x->first_node[h]) x->first_node[h + 1] = x->first_node[h];
    struct shmt_flat flat;
    shmt_flat_plan(spec, &flat);
    x->n_blocks = shmt_far_blocks(flat.n);
    x->number = (uint64_t)spec->first_epoch * shmt_spec_steps(spec) + spec->first_step;
}

/* Every host that is not lost has the whole run, and knows that I have it. */
static bool all_have_finished(const struct exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (is_other(x, host) && !is_lost(x, host) && !x->heard[host].over) return false;
    return shmt_lanes_are_empty(x->at.lanes);
}

/* The others may not have all of the last batch yet, and my last acknowledgement has to reach them. */
static void finish(struct exchange *x) {
    const struct shmt_parcel parcel = {.kind = SHMT_PARCEL_OVER, .number = x->number};
    unsigned char *entries;
    x->is_over = true;
    send(x, shmt_parcel_make(&parcel, &entries));
    while (x->error.status == 0 && !all_have_finished(x)) receive(x, shmt_now_ns() + PULSE_NS);
    for (int i = 0; i < LAST_PULSES && x->error.status == 0; i++) receive(x, shmt_now_ns() + PULSE_NS);
}

/* What the seat has returned. */
static void note_failure(struct exchange *x, int rc) {
    if (x->error.status == 0 && rc < 0) shmt_fail(&x->error, rc, "%s", x->seat->error.status ? x->seat->error.text : GIVEN_UP);
}

int shmt_exchange_run(const struct shmt_exchange_place *place, struct shmt_error *e) {
    struct exchange *x = calloc(1, sizeof *x);
    int rc;
    if (!x) return shmt_no_memory(e, "for the link");
    x->at = *place;
    plan(x);
    rc = place->backend->seat->enter(place->store, place->spec->n_seats, 0, &x->seat, &x->error);
    if (rc == 0) place->backend->far->pulse(x->seat, PULSE_NS, pulse, x);
    if (rc == 0) wait_for_hosts(x);
    if (x->error.status == 0 && place->begins) note_failure(x, meet_at(x, SHMT_STAGE_BEGIN));
    for (rc = 1; x->error.status == 0 && rc == 1;) note_failure(x, rc = run_epoch(x));
    if (x->error.status == 0) finish(x);
    if (x->error.status != 0) {
        give_up(x);
        shmt_lanes_part(place->lanes);
    }
    if (x->seat) place->backend->seat->leave(x->seat);
    free_early(x);
    rc = x->error.status;
    if (rc < 0) shmt_fail(e, rc, "%s", x->error.text);
    free(x);
    return rc;
}
