/* Rounds with a quorum over many hosts: the turns of an exchange (exchange_priv.h) where an update is of the gradients of K workers,
 * whichever of all hosts they are of (backup workers, Chen et al. 2016). In each turn
 *
 *     every host tells the one that decides who of it has come, whenever that has changed;
 *     that host's link closes the round as soon as enough are there, and tells all whose gradients it is made of;
 *     every host with members sends the sum of their gradients, of the blocks that are not zero, to all others;
 *     each adds up the sums of all, in the order of ranks, and closes the round for its workers, who apply that one sum.
 *
 * So all hosts make the same updates, and have the same parameters behind each, bit by bit. Nobody waits for a worker that is in no round;
 * but a turn is as slow as the slowest link. A worker that comes to a round and is not in it is late: its gradient is dropped, or offered
 * for the next one, as on one host.
 *
 * A turn in which nobody of any host has work left ends the epoch: then hosts tell what was done of items, and how long their workers took,
 * by which the next epoch's items are dealt.
 *
 * The decision has no generation: a host that is lost ends the run of all others, so that no round is decided twice. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "consistency/quorum.h"
#include "link/exchange_priv.h"
#include "sync/host.h"

#define DECIDER    0
#define GLANCE_NS  UINT64_C(100000)  /* between two looks at this host's workers, at least; */
#define GLANCES    32                /* ... of a longer round so many; */
#define LONG_NS    UINT64_C(2000000) /* ... and at most */
#define CARRIER_NS UINT64_C(1000000) /* carriers wait for whole milliseconds */
#define SETTLE_NS  UINT64_C(50000)   /* at those who are applying the update before */
#define CAME_WORDS 4                 /* before the seats': round, items, examples, working */
#define HEAD_WORDS 4                 /* likewise of a decision: round, step, examples, end_for */

struct shmt_quorum {
    /* what I have told the host that decides */
    bool has_told, told_stop;
    struct shmt_far_look told;
    /* the host that decides: what each host has said */
    bool known[SHMT_MAX_HOSTS]; /* in this epoch */
    uint32_t words[SHMT_MAX_HOSTS];
    struct shmt_far_look came[SHMT_MAX_HOSTS];
    uint32_t ender; /* the host that has asked for the end of the run first + 1; 0: nobody has */
    /* the round in hand */
    bool decided, over; /* over: nobody has work left in the epoch */
    uint32_t end_for;   /* the host for which the run ends with this epoch + 1; 0: it does not */
    struct shmt_far_round round;
    uint32_t members[SHMT_MAX_HOSTS];
    uint64_t in[SHMT_SEAT_WORDS];
};

static const struct shmt_far_quorum_ops *ops(const struct shmt_exchange *x) { return x->at.backend->far->quorums; }

static bool decides(const struct shmt_exchange *x) { return x->at.spec->hosts.self == DECIDER; }

static uint32_t own_words(const struct shmt_exchange *x) { return (uint32_t)shmt_ceil_div(x->at.spec->n_seats, 64); }

static uint32_t count(const uint64_t *bits, uint32_t n_words) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_words; i++) n += (uint32_t)__builtin_popcountll(bits[i]);
    return n;
}

static bool has_all(const uint64_t *bits, const uint64_t *some, uint32_t n_words) {
    for (uint32_t i = 0; i < n_words; i++)
        if (some[i] & ~bits[i]) return false;
    return true;
}

/* ---- who has come ---- */

static void tell(struct shmt_exchange *x, const struct shmt_far_look *now, bool stop) {
    const uint32_t words = own_words(x);
    const struct shmt_parcel parcel = {
        .kind = SHMT_PARCEL_CAME, .of = words, .n = CAME_WORDS + 2 * words, .number = x->number, .flag = stop};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    const uint64_t head[CAME_WORDS] = {now->round, now->items, now->examples, now->working};
    for (uint32_t i = 0; payload && i < CAME_WORDS; i++) shmt_parcel_put_number(entries, i, head[i]);
    for (uint32_t i = 0; payload && i < words; i++) {
        shmt_parcel_put_number(entries, CAME_WORDS + i, now->in[i]);
        shmt_parcel_put_number(entries, CAME_WORDS + words + i, now->late[i]);
    }
    shmt_exchange_send_to(x, DECIDER, payload);
}

/* Who has come to a round that is decided is no news; how many have work is, and that this host is asked to end. */
static void tell_news(struct shmt_exchange *x, const struct shmt_far_look *now) {
    struct shmt_quorum *q = x->quorum;
    const bool stop = shmt_exchange_is_asked_to_stop(x);
    const uint64_t bytes = own_words(x) * sizeof *now->in;
    const bool here = q->decided || (memcmp(q->told.in, now->in, bytes) == 0 && memcmp(q->told.late, now->late, bytes) == 0);
    if (q->has_told && q->told_stop == stop && q->told.working == now->working && here) return;
    q->has_told = true;
    q->told_stop = stop;
    q->told = *now;
    tell(x, now, stop);
}

static void note_ender(struct shmt_quorum *q, uint32_t host) {
    if (q->ender == 0) q->ender = host + 1;
}

/* Whether a host may say so of itself. */
static bool may_be(const struct shmt_exchange *x, const struct shmt_far_look *came, uint32_t words) {
    const uint32_t n = count(came->in, words);
    return has_all(came->in, came->late, words) && n <= came->working && came->working <= shmt_spec_all_seats(x->at.spec) &&
           came->examples >= n && came->examples <= (uint64_t)n * x->at.spec->item &&
           came->items <= shmt_spec_pieces(x->at.spec);
}

static void take_came(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    struct shmt_quorum *q = x->quorum;
    struct shmt_far_look mine, came = {0};
    bool good = decides(x) && parcel->of > 0 && parcel->n == CAME_WORDS + 2 * parcel->of &&
                shmt_parcel_number(parcel, 3) <= SHMT_MAX_SEATS;
    if (good) {
        ops(x)->look(x->seat, &mine);
        came = (struct shmt_far_look){.round = shmt_parcel_number(parcel, 0),
                                      .items = shmt_parcel_number(parcel, 1),
                                      .examples = shmt_parcel_number(parcel, 2),
                                      .working = (uint32_t)shmt_parcel_number(parcel, 3)};
        for (uint32_t i = 0; i < parcel->of; i++) {
            came.in[i] = shmt_parcel_number(parcel, CAME_WORDS + i);
            came.late[i] = shmt_parcel_number(parcel, CAME_WORDS + parcel->of + i);
        }
        good = came.round == mine.round && may_be(x, &came, parcel->of);
    }
    if (!good) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "says that workers have come to a round that there cannot be", from);
        return;
    }
    q->known[from] = true;
    q->words[from] = parcel->of;
    q->came[from] = came;
    if (parcel->flag) note_ender(q, from);
}

/* ---- the decision ---- */

/* Of all hosts' seats: the quorum is of workers, which may have several each. */
static uint32_t asked_of_all(const struct shmt_spec *spec) {
    const uint64_t seats = (uint64_t)spec->policy.quorum * shmt_spec_all_seats(spec);
    return (uint32_t)shmt_min_u64(shmt_ceil_div(seats, shmt_spec_all_workers(spec)), UINT32_MAX);
}

/* The round is of all who have come; else (`over`) of nobody. */
static void decide(struct shmt_exchange *x, bool over) {
    struct shmt_quorum *q = x->quorum;
    uint64_t items = 0;
    uint32_t n = 0;
    q->decided = true;
    q->over = over;
    q->end_for = q->ender; /* a host that asks from now on does so for the next turn */
    q->round = (struct shmt_far_round){.round = q->came[DECIDER].round, .in = q->in};
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        const struct shmt_far_look *came = &q->came[host];
        q->members[host] = over ? 0 : count(came->in, q->words[host]);
        n += q->members[host];
        items += came->items;
        q->round.examples += over ? 0 : came->examples;
    }
    if (!over) memcpy(q->in, q->came[DECIDER].in, sizeof q->in);
    q->round.step = items - shmt_min_u64(items, n);
}

static void publish(struct shmt_exchange *x) {
    const struct shmt_quorum *q = x->quorum;
    const uint32_t n_hosts = x->at.spec->hosts.n;
    uint32_t words = 0;
    for (uint32_t host = 0; host < n_hosts; host++) words = q->words[host] > words ? q->words[host] : words;
    const struct shmt_parcel parcel = {
        .kind = SHMT_PARCEL_DECIDED, .of = words, .n = HEAD_WORDS + n_hosts * words, .number = x->number, .flag = q->over};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    const uint64_t head[HEAD_WORDS] = {q->round.round, q->round.step, q->round.examples, q->end_for};
    for (uint32_t i = 0; payload && i < HEAD_WORDS; i++) shmt_parcel_put_number(entries, i, head[i]);
    for (uint32_t i = 0; payload && i < n_hosts * words; i++)
        shmt_parcel_put_number(entries, HEAD_WORDS + i, q->over ? 0 : q->came[i / words].in[i % words]);
    shmt_exchange_send(x, payload);
}

/* As soon as enough are there. While it is not known how many of a host have work, all that are asked for have to come. */
static void decide_if_enough(struct shmt_exchange *x, const struct shmt_far_look *now) {
    struct shmt_quorum *q = x->quorum;
    struct shmt_attendance all = {0};
    bool all_known = true;
    q->came[DECIDER] = *now;
    q->known[DECIDER] = true;
    q->words[DECIDER] = own_words(x);
    if (shmt_exchange_is_asked_to_stop(x)) note_ender(q, DECIDER);
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        const struct shmt_far_look *came = &q->came[host];
        const uint32_t in = count(came->in, q->words[host]), late = count(came->late, q->words[host]);
        all.arrived += in - late;
        all.late += late;
        all.working += came->working;
        all_known = all_known && q->known[host];
    }
    const bool over = all_known && all.working == 0,
               enough = all_known && shmt_attendance_is_enough(&all, asked_of_all(x->at.spec));
    if (!over && !enough && all.arrived < asked_of_all(x->at.spec)) return;
    decide(x, over);
    publish(x);
}

/* false: it is of another round, or of seats of this host that have not come, or it ends the epoch while some have work; or its numbers do
 * not go together. Whether the members of other hosts have come is for those to say: their links read the same decision. */
static bool take_decision(struct shmt_exchange *x, const struct shmt_parcel *parcel) {
    struct shmt_quorum *q = x->quorum;
    const uint32_t n_hosts = x->at.spec->hosts.n, self = x->at.spec->hosts.self;
    struct shmt_far_look mine;
    uint64_t all = 0;
    if (q->decided || parcel->n != HEAD_WORDS + n_hosts * parcel->of) return false;
    ops(x)->look(x->seat, &mine);
    memset(q->in, 0, sizeof q->in);
    for (uint32_t host = 0; host < n_hosts; host++) {
        q->members[host] = 0;
        for (uint32_t i = 0; i < parcel->of; i++) {
            const uint64_t bits = shmt_parcel_number(parcel, HEAD_WORDS + host * parcel->of + i);
            if (host == self) q->in[i] = bits;
            q->members[host] += count(&bits, 1);
        }
        all += q->members[host];
    }
    q->decided = true;
    q->over = parcel->flag;
    q->round = (struct shmt_far_round){.round = shmt_parcel_number(parcel, 0),
                                       .step = shmt_parcel_number(parcel, 1),
                                       .examples = shmt_parcel_number(parcel, 2),
                                       .in = q->in};
    const uint64_t ender = shmt_parcel_number(parcel, 3);
    q->end_for = (uint32_t)shmt_min_u64(ender, n_hosts);
    return q->round.round == mine.round && ender <= n_hosts && has_all(mine.in, q->in, SHMT_SEAT_WORDS) &&
           (all == 0) == q->over && (!q->over || mine.working == 0) && q->round.examples >= all &&
           q->round.examples <= all * x->at.spec->item;
}

/* ---- what comes ---- */

static bool take(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel, struct shmt_message *message) {
    if (parcel->kind == SHMT_PARCEL_BLOCKS && !parcel->halves)
        return shmt_exchange_keep_blocks(x, from, parcel, message, x->n_blocks);
    if (parcel->kind == SHMT_PARCEL_CAME) {
        take_came(x, from, parcel);
    } else if (parcel->kind == SHMT_PARCEL_DECIDED) {
        if (from != DECIDER || !take_decision(x, parcel))
            shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "decides on a round that there cannot be", from);
    } else if (parcel->kind == SHMT_PARCEL_END) {
        x->heard[from].end = true;
    } else {
        shmt_exchange_take_items(x, from, parcel);
    }
    return false;
}

/* A host may tell of each of its seats. */
static uint64_t most_bytes(const struct shmt_exchange *x, uint32_t from) {
    const uint64_t seats = shmt_min_u64(shmt_spec_all_seats(x->at.spec), SHMT_MAX_SEATS);
    const uint64_t told = (CAME_WORDS + 2 * shmt_ceil_div(seats, 64) + 3) * sizeof(uint64_t);
    (void)from;
    return x->n_blocks * (sizeof(float) * SHMT_FAR_BLOCK + sizeof(uint64_t)) + (2 * seats + 2) * told;
}

/* ---- waiting for the decision ---- */

static bool all_have_come(const struct shmt_far_look *now) { return count(now->in, SHMT_SEAT_WORDS) >= now->working; }

/* Until it is worth a look at this host's workers, or something comes. */
static void wait_for_news(struct shmt_exchange *x, const struct shmt_far_look *now, uint64_t since_ns) {
    const uint64_t now_ns = shmt_now_ns();
    const uint64_t glance_ns = shmt_max_u64(GLANCE_NS, shmt_min_u64(LONG_NS, (now_ns - since_ns) / GLANCES));
    const uint64_t wait_ns = all_have_come(now) ? SHMT_PULSE_NS : glance_ns;
    shmt_exchange_receive(x, wait_ns >= CARRIER_NS ? now_ns + wait_ns : 0);
    if (wait_ns < CARRIER_NS && !x->quorum->decided && x->error.status == 0) shmt_host()->sleep_until(now_ns + wait_ns);
}

/* The decision may be there already: also then this host looks at its workers, and tells. */
static void await_decision(struct shmt_exchange *x) {
    struct shmt_quorum *q = x->quorum;
    const uint64_t since_ns = shmt_now_ns();
    for (bool first = true; x->error.status == 0 && (first || !q->decided); first = false) {
        struct shmt_far_look now;
        ops(x)->look(x->seat, &now);
        if (now.working == 0 && x->busy_ns == 0) x->busy_ns = shmt_max_u64(1, shmt_now_ns() - x->epoch_began_ns);
        if (decides(x))
            decide_if_enough(x, &now);
        else
            tell_news(x, &now);
        if (q->decided || x->error.status != 0) break;
        wait_for_news(x, &now, since_ns);
    }
    x->stop = q->end_for > 0;
    if (!x->stop || x->error.status != 0) return;
    if (x->at.ender_out && !x->has_ender) *x->at.ender_out = q->end_for - 1;
    x->has_ender = true;
    x->at.backend->far->live->stop(x->seat);
}

/* ---- an update ---- */

/* All has had the update before: at once, where this host has members of this one. The other hosts are heard meanwhile. */
static int settle(struct shmt_exchange *x) {
    int rc = 0;
    while (rc == 0 && x->error.status == 0) {
        const uint64_t began_ns = shmt_now_ns();
        rc = ops(x)->settle(x->seat);
        if (rc != 0) break;
        shmt_exchange_receive(x, 0);
        shmt_host()->sleep_until(began_ns + SETTLE_NS); /* unless there was enough to do */
    }
    return rc < 0 ? rc : x->error.status;
}

/* The next blocks of my members' sum that are not zero, from *block on. NULL: there are none, or no memory for them. */
static struct shmt_payload *next_blocks(struct shmt_exchange *x, uint64_t *block) {
    const struct shmt_parcel parcel = {.kind = SHMT_PARCEL_BLOCKS,
                                       .n = (uint32_t)shmt_min_u64(SHMT_MOST_PARCEL_BLOCKS, x->n_blocks - *block),
                                       .number = x->number};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    uint32_t n = 0;
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    for (; payload && *block < x->n_blocks && n < parcel.n; ++*block) {
        float values[SHMT_FAR_BLOCK] = {0};
        if (ops(x)->sum(x->seat, *block, values)) shmt_parcel_put_block(entries, n++, *block, values);
        shmt_exchange_breathe(x, *block);
    }
    if (payload && n > 0) {
        shmt_parcel_end(payload, n);
        return payload;
    }
    shmt_payload_drop(payload);
    return NULL;
}

/* They are kept, too: all hosts add up what all have been sent. */
static void send_sum(struct shmt_exchange *x) {
    ops(x)->choose(x->seat, x->quorum->in);
    for (uint64_t block = 0; block < x->n_blocks && x->error.status == 0;) {
        struct shmt_payload *payload = next_blocks(x, &block);
        if (!payload) continue;
        shmt_sent_keep(x, payload);
        shmt_exchange_send(x, payload);
    }
}

/* Hosts say what belongs to the round that was decided, and no more. */
static void check_turn(struct shmt_exchange *x) {
    const struct shmt_quorum *q = x->quorum;
    for (uint32_t host = 0; host < x->at.spec->hosts.n && x->error.status == 0; host++) {
        const struct shmt_heard *heard = &x->heard[host];
        if (!shmt_exchange_is_other(x, host)) continue;
        if (heard->begun != q->over || (q->over && !heard->rests))
            shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "ends an epoch where the others do not", host);
        else if (q->members[host] == 0 && heard->blocks.first)
            shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent gradients of workers that are in no round", host);
    }
}

/* Of each block, in the order of ranks. */
static void add_up(struct shmt_exchange *x) {
    struct shmt_cursor cursor[SHMT_MAX_HOSTS];
    shmt_cursors_open(x, cursor);
    for (uint64_t block; (block = shmt_cursors_next(x, cursor)) != SHMT_NO_BLOCK;) {
        float total[SHMT_FAR_BLOCK], part[SHMT_FAR_BLOCK];
        uint32_t n = 0;
        for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
            if (cursor[host].block != block) continue;
            (void)shmt_parcel_block(&cursor[host].parcel, cursor[host].i, n == 0 ? total : part);
            for (uint32_t i = 0; n > 0 && i < SHMT_FAR_BLOCK; i++) total[i] += part[i];
            n++;
            shmt_cursor_step(x, cursor, host);
        }
        ops(x)->put(x->seat, block, total);
        shmt_exchange_breathe(x, block);
    }
    shmt_blocks_forget(x);
}

static int make_update(struct shmt_exchange *x) {
    const int rc = settle(x);
    if (rc < 0) return rc;
    shmt_exchange_does(x, SHMT_EVENT_EXCHANGE);
    if (x->quorum->members[x->at.spec->hosts.self] > 0) send_sum(x);
    shmt_exchange_close(x);
    if (x->error.status == 0) check_turn(x);
    if (x->error.status != 0) return x->error.status;
    add_up(x);
    if (x->error.status != 0) return x->error.status;
    ops(x)->close(x->seat, &x->quorum->round);
    return 1;
}

/* ---- an epoch ---- */

static int end_epoch(struct shmt_exchange *x) {
    shmt_exchange_does(x, SHMT_EVENT_EXCHANGE);
    const uint64_t number[SHMT_ROUND_NUMBERS] = {[SHMT_ROUND_CLOCK] = x->busy_ns};
    shmt_exchange_say_begin(x, SHMT_ROUND_RESTS, number);
    shmt_exchange_tell_items(x);
    shmt_exchange_close(x);
    if (x->error.status == 0) check_turn(x);
    if (x->error.status != 0) return x->error.status;
    shmt_exchange_does(x, SHMT_EVENT_WAIT);
    shmt_exchange_deal_by_speed(x);
    const int rc = settle(x);
    return rc < 0 ? rc : ops(x)->end(x->seat, x->stop);
}

/* 1: there is another one in this epoch; 0: it was the last one; or a status. */
static int do_round(struct shmt_exchange *x) {
    struct shmt_quorum *q = x->quorum;
    q->decided = false;
    memset(q->told.in, 0, sizeof q->told.in);
    memset(q->told.late, 0, sizeof q->told.late);
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        q->came[host].examples = 0;
        memset(q->came[host].in, 0, sizeof q->came[host].in);
        memset(q->came[host].late, 0, sizeof q->came[host].late);
        x->heard[host].next_block = 0;
    }
    shmt_exchange_open(x, false); /* whether hosts end is decided, too */
    shmt_exchange_does(x, SHMT_EVENT_WAIT);
    await_decision(x);
    if (x->error.status != 0) return x->error.status;
    return q->over ? end_epoch(x) : make_update(x);
}

static int epoch(struct shmt_exchange *x) {
    struct shmt_quorum *q = x->quorum;
    int rc = x->at.backend->far->live->begin(x->seat);
    if (rc != 1) return rc;
    x->epoch_began_ns = shmt_now_ns();
    x->busy_ns = 0;
    q->has_told = false;
    memset(q->known, 0, sizeof q->known);
    memset(q->came, 0, sizeof q->came);
    while (rc == 1) rc = do_round(x);
    return rc;
}

/* ---- the run ---- */

static int plan(struct shmt_exchange *x) {
    x->quorum = calloc(1, sizeof *x->quorum);
    if (!x->quorum) return shmt_no_memory(&x->error, "for the gradients of all hosts");
    return shmt_sent_plan(x, x->n_blocks, SHMT_MOST_PARCEL_BLOCKS);
}

static void release(struct shmt_exchange *x) {
    shmt_sent_free(x);
    free(x->quorum);
}

const struct shmt_turns SHMT_TURNS_QUORUMS = {
    .plan = plan, .free = release, .take = take, .most_bytes = most_bytes, .behind = SHMT_EVENT_MERGE, .epoch = epoch};
