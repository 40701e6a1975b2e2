/* What the parts of an exchange share: exchange.c (who is there, what comes and goes, the run), batches.c (sums of gradients), rounds.c
 * (changes of parameters), merges.c (what copies come to) and quorums.c (sums of those gradients that are in), of which the last three
 * share items.c. What hosts do together, a batch, a round or a merge, is a turn; turns have numbers, and all hosts do the same ones. */
#pragma once

#include "consistency/passing.h"
#include "link/exchange.h"
#include "link/parcel.h"

_Static_assert(SHMT_MAX_HOSTS <= SHMT_MOST_HOSTS, "each host of a run has a rank on the wire");

#define SHMT_GIVEN_UP "the run of this host was given up"

#define SHMT_PULSE_NS UINT64_C(5000000) /* of waits for workers */

/* Messages that are kept, in the order in which they came. */
struct shmt_kept_message {
    struct shmt_kept_message *next;
    struct shmt_message message;
};
struct shmt_kept_list {
    struct shmt_kept_message *first, *last;
    uint64_t bytes;
};

/* What has come from a host, of the turn in hand. */
struct shmt_heard {
    bool begun, end, stop;
    bool over;                   /* it has the whole run */
    uint64_t life;               /* of the host, as it was first seen; 0: it has not come */
    struct shmt_kept_list early; /* about the turn that follows the one in hand */
    /* rounds, merges, quorums */
    bool rests;       /* its workers have ended the epoch, */
    uint64_t busy_ns; /* ... after so much work (rounds) */
    bool out;         /* they have no items, and wait for more */
    struct shmt_headway headway;
    uint64_t clock;               /* of the slowest of them who works, in this epoch; UINT64_MAX: none does */
    struct shmt_kept_list blocks; /* of this turn */
    uint64_t next_block;          /* none of those that come is below */
};

struct shmt_exchange;
struct shmt_quorum;

/* What a family of turns does where they differ. */
struct shmt_turns {
    int (*plan)(struct shmt_exchange *x);  /* before the first one. _MEMORY */
    int (*begin)(struct shmt_exchange *x); /* behind `enter`, while workers have not begun; may be NULL */
    void (*free)(struct shmt_exchange *x); /* may be NULL */

    /* A message about the turn in hand. true: it keeps the message, else it is released. */
    bool (*take)(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel, struct shmt_message *message);

    /* Bytes of blocks that host `from` can send in a turn. */
    uint64_t (*most_bytes)(const struct shmt_exchange *x, uint32_t from);

    enum shmt_event_kind behind; /* what the link does behind a turn */

    /* All turns of an epoch, up to the meeting that ends it: 0, or a status. */
    int (*epoch)(struct shmt_exchange *x);
};
extern const struct shmt_turns SHMT_TURNS_BATCHES, SHMT_TURNS_ROUNDS, SHMT_TURNS_MERGES, SHMT_TURNS_QUORUMS;

struct shmt_exchange {
    struct shmt_exchange_place at;
    const struct shmt_turns *turns;
    struct shmt_seat *seat;
    struct shmt_error error; /* the first failure of the link */
    struct shmt_heard heard[SHMT_MAX_HOSTS];
    uint64_t number; /* the turn in hand; while none is, the next one */
    bool open;       /* one is in hand */
    bool stop;       /* somebody wants the run to end */
    bool has_ender;  /* it is known who has wanted it first */
    bool is_over;    /* this host has the whole run */
    uint32_t epoch;  /* the one in hand, from 0 */
    /* shown.c */
    struct shmt_far_traffic *traffic;
    struct shmt_lanes_counts before, at_turn; /* when the link took its seat; at the end of the last turn */
    uint64_t traced_bytes;                    /* sent: so many are in the trace, or were sent while it waited for hosts */
    uint64_t n_turns;                         /* that are done */
    struct shmt_trace trace;                  /* ring NULL: there is none */
    uint64_t n_floats, n_blocks;
    /* batches */
    uint64_t step;                           /* the batch in hand, within its epoch */
    uint32_t first_node[SHMT_MAX_HOSTS + 1]; /* of the others: those of host h are from first_node[h] on */
    uint32_t n_own;
    struct shmt_subtree own[SHMT_MAX_STACK];
    uint64_t stamp;        /* of what is sent before all gradients are in (ps/far.h); 0: they are */
    uint64_t sent_from;    /* blocks from this one on were sent before; n_blocks: none */
    bool anew;             /* ... and some of them have been computed anew since */
    float *left, *rounded; /* where sums are rounded: what that has left; room for the values of a list. NULL: they are not */
    /* rounds */
    float *base, *seen;               /* (n_floats) what all hosts agreed on last, and what my parameters were in this round, */
    float *change;                    /* (blocks) ... and what of their change I have sent, */
    unsigned char *changed;           /* (n_blocks) 1: of this block */
    uint64_t epoch_began_ns, busy_ns; /* of this host's workers: how long they have worked for the epoch; 0: they are at it */
    struct shmt_passing *passing;     /* passing.h; NULL: nothing is passed on */
    uint64_t begun_ns;                /* when the last of the other hosts has begun the round */
    uint64_t examples, since;         /* that this host had trained on when the round began; of those, since the one before */
    bool was_out;                     /* in the last round of this epoch */
    bool is_weighted;                 /* changes are shares, which are added up; else all take their mean */
    /* Of rounds that send less than has changed (feedback.h); NULL: they send all of it. */
    struct shmt_feedback *feedback;
    /* merges */
    uint32_t n_words;           /* weights, and planes of state */
    struct shmt_payload **sent; /* (n_sent) what I have sent about blocks in this turn; also quorums */
    uint64_t n_sent;
    struct shmt_merge_part *parts; /* (hosts.n) room for what all say of a block */
    struct shmt_quorum *quorum;    /* quorums.c */
};

/* ---- exchange.c ---- */

void shmt_exchange_fail(struct shmt_exchange *x, int status, const char *what, uint32_t host);

static inline bool shmt_exchange_is_other(const struct shmt_exchange *x, uint32_t host) {
    return host != x->at.spec->hosts.self;
}

/* What has come, and what comes by then; one message at least, or nothing. */
void shmt_exchange_receive(struct shmt_exchange *x, uint64_t until_ns);

/* To one host. Receives while there is no room. */
void shmt_exchange_send_to(struct shmt_exchange *x, uint32_t host, struct shmt_payload *payload);

/* To all others; takes over the payload; NULL: there was no memory for it. Receives while there is no room. */
void shmt_exchange_send(struct shmt_exchange *x, struct shmt_payload *payload);

/* A turn begins: what has come of it already is taken. `stop`: this host wants the run to end. */
void shmt_exchange_open(struct shmt_exchange *x, bool stop);

/* This host has nothing more to say in this turn: waits until all others have said so. x->stop says then whether anybody wants
 * the run to end. */
void shmt_exchange_close(struct shmt_exchange *x);

/* ---- shown.c ---- */

/* Before all others of them: the link takes its seat. */
void shmt_exchange_begin_showing(struct shmt_exchange *x);

/* Its traffic as it is now. */
void shmt_exchange_show(struct shmt_exchange *x);

/* From now on it does that. */
void shmt_exchange_does(struct shmt_exchange *x, enum shmt_event_kind kind);

/* Keeps a message; false: there is no memory. */
bool shmt_keep(struct shmt_kept_list *list, const struct shmt_message *message);
void shmt_kept_release(struct shmt_kept_list *list, struct shmt_lanes *lanes);

/* ---- cursors.c: merges and quorums ---- */

#define SHMT_NO_BLOCK UINT64_MAX

/* Where one is in what a host has sent about blocks. */
struct shmt_cursor {
    const struct shmt_kept_message *kept; /* of another host; */
    uint64_t at;                          /* ... or which of my own */
    struct shmt_parcel parcel;
    uint32_t i;     /* the entry that it stands at */
    uint64_t block; /* its block; SHMT_NO_BLOCK: there is none left */
};

/* Of all hosts; the least block that one of them stands at, or SHMT_NO_BLOCK; one goes on to its host's next entry. */
void shmt_cursors_open(const struct shmt_exchange *x, struct shmt_cursor cursor[SHMT_MAX_HOSTS]);
uint64_t shmt_cursors_next(const struct shmt_exchange *x, const struct shmt_cursor cursor[SHMT_MAX_HOSTS]);
void shmt_cursor_step(const struct shmt_exchange *x, struct shmt_cursor cursor[SHMT_MAX_HOSTS], uint32_t host);

/* What I send: room for so many blocks, of_parcel of them in each; one more of them; all that was sent in the turn, by anybody, is done
 * with. */
int shmt_sent_plan(struct shmt_exchange *x, uint64_t n_blocks, uint64_t of_parcel);
void shmt_sent_keep(struct shmt_exchange *x, struct shmt_payload *payload);
void shmt_blocks_forget(struct shmt_exchange *x);
void shmt_sent_free(struct shmt_exchange *x);

/* ---- items.c: rounds, merges and quorums ---- */

#define SHMT_NO_CLOCK UINT64_MAX

/* Other hosts want to hear of this one also where there are many blocks to look at. */
void shmt_exchange_breathe(struct shmt_exchange *x, uint64_t block);

/* This host's run is asked to end. */
bool shmt_exchange_is_asked_to_stop(const struct shmt_exchange *x);

/* A message about the turn in hand, of all kinds but those of blocks: notes how far its sender is, and what it has done. */
void shmt_exchange_take_items(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel);

/* Entries of blocks, of which there are n_blocks, and which ascend. true: the message is kept until all have come. */
bool shmt_exchange_keep_blocks(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel,
                               const struct shmt_message *message, uint64_t n_blocks);

/* As they have said when they began the turn. */
bool shmt_exchange_all_others_rest(const struct shmt_exchange *x);

/* The items of a host in this epoch: those of its share, and behind them those that it was passed. */
struct shmt_host_items {
    struct shmt_share share;
    uint64_t own, n;
    const uint64_t *passed; /* (n - own) */
};
void shmt_exchange_items_of(const struct shmt_exchange *x, uint32_t host, struct shmt_host_items *out);

/* The turn begins for the others. */
void shmt_exchange_say_begin(struct shmt_exchange *x, enum shmt_round_state state, const uint64_t number[SHMT_ROUND_NUMBERS]);

/* What this host has done of the epoch. */
void shmt_exchange_tell_items(struct shmt_exchange *x);

/* The items of the next epoch, by how long each host took for its own of this one (busy_ns). */
void shmt_exchange_deal_by_speed(struct shmt_exchange *x);
