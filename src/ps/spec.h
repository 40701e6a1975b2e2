/* What a run is: all that a backend needs to know to make a store, and what follows from it by pure arithmetic.
 *
 * Made by `api` from the options and the data, constant from then on, and the same in every process. */
#pragma once

#include <shmtrain/table.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/checked.h"
#include "coll/memory.h"
#include "consistency/chunks.h"
#include "consistency/policy.h"
#include "data/order.h"
#include "update/rate.h"
#include "update/rule.h"
#include "update/table.h"

#define SHMT_MAX_TABLES 64
#define SHMT_MAX_SEATS  4096 /* far beyond any machine; the ledger's owner words have 16 bits for a seat */
#define SHMT_MAX_EPOCHS 1000000
#define SHMT_NO_LIMIT   UINT64_MAX

#define SHMT_MAX_CACHE_PULLS 65535 /* clocks: a seat keeps a note of each */

#define SHMT_MAX_NODES 64 /* NUMA nodes that memory is spread over; of more, the first ones are used */

enum shmt_placing { SHMT_PLACE_OFF, SHMT_PLACE_INTERLEAVE, SHMT_PLACE_BIND };
enum shmt_strategy { SHMT_SHARDS_ROUND_ROBIN, SHMT_SHARDS_GREEDY };

/* Which memory lies on which NUMA node. All zeros: one node, nothing to say. */
struct shmt_placement {
    uint32_t policy; /* enum shmt_placing: of the tables */
    uint32_t
        private_local;    /* 1: what one seat alone writes lies on its node, and data on its readers'; 0: over all nodes, too */
    uint32_t strategy;    /* enum shmt_strategy */
    uint32_t parts;       /* shards of each table; 0: one */
    uint32_t n_nodes;     /* that the workers are on; 0 counts as 1 */
    uint32_t page_bytes;  /* what parts of memory are aligned to: 4096 (or 0), or 2 MiB for huge pages */
    uint32_t transparent; /* 1: those are transparent ones, which are welcome; 0: reserved ones */
    uint32_t node[SHMT_MAX_NODES];     /* (n_nodes) the operating system's numbers */
    uint8_t seat_node[SHMT_MAX_SEATS]; /* (n_seats) index into node[] */
};

/* When a run rests for a moment, so that what it has learned so far can be kept (ps/snapshot.h). All zeros: never. */
struct shmt_pauses {
    uint64_t steps;   /* at every so many steps of the run: batches, in all modes but `sync` about so many items; 0: never */
    uint32_t epochs;  /* at the end of every so many epochs; 0: never */
    uint32_t allowed; /* 1: and when somebody asks; there is room for a snapshot. 0: never at all */
};

/* Whether the decisions of a run are kept, or taken from a run that was (ps/tape.h). All zeros: neither. */
enum shmt_tape_use { SHMT_TAPE_OFF, SHMT_TAPE_RECORD, SHMT_TAPE_REPLAY };
struct shmt_tape_plan {
    uint32_t use;    /* enum shmt_tape_use; in rounds alone */
    uint32_t epochs; /* replay: so many are on the tapes */
    uint64_t room;   /* gradients that the tape of each seat has room for */
};

/* How floats go from host to host. */
enum shmt_wire { SHMT_WIRE_F32, SHMT_WIRE_BF16 };

/* A run over many hosts, each of which has a store of its own, and this one's rank. All zeros: one host. */
struct shmt_hosts_plan {
    uint32_t n, self;
    uint32_t wire; /* enum shmt_wire */
    float top_k;   /* live modes: the share of the blocks that have changed which is sent in a round; 0 or 1: all of them */
    uint32_t n_workers, n_seats; /* of all hosts together; 0: not known, each has as many as this one */
};
#define SHMT_MAX_HOSTS 64

struct shmt_spec {
    uint32_t n_seats;  /* places at the store: one for each thread that trains */
    uint32_t n_guests; /* the last ones of them: free at first, for workers that join by name */
    uint32_t
        n_workers; /* what a user calls workers: n_seats / threads of each, where a model's threads have seats of their own */
    uint32_t epochs;
    uint64_t n_examples;
    uint64_t max_steps; /* SHMT_NO_LIMIT: as many as the epochs have */
    struct shmt_policy policy;
    uint32_t batch, n_chunks; /* aggregate: examples per update, and (sync) the parts in which they are dealt */
    uint32_t cpu;             /* enum shmt_cpu: which compilation of the inner loops all take */
    uint32_t item;            /* all but sync: examples per work item, which is a clock */
    struct shmt_order order;  /* seed, shuffling */
    struct shmt_rate rate;
    struct shmt_rule rule;
    struct shmt_pauses pauses;
    uint32_t first_epoch;  /* where the run begins: so many epochs are over, ... */
    uint64_t first_step;   /* ... and so many steps of this one: the first ones in `sync`, else any (`resume`) */
    uint64_t steps_before; /* of earlier runs, whose state this one goes on with: they count for adam's corrections */
    uint64_t race_ns;  /* racy, counted: so long a worker waits between loading parameters and storing them; 0: not at all */
    double race_share; /* ... in this share of the pushes of up to four parameters, 0 to 1 */
    bool race_virtual; /* racy, counted: memory, or race of option sim, takes virtual time there, seen by this program alone */
    bool count_lost;   /* racy: each float counts its updates, in the word that they are stored in (counted_priv.h) */
    bool fits;         /* an exact fit, which takes no work: epochs end whole, and each has a snapshot, if there is room */
    bool may_die;      /* processes at the seats: when one dies, others take over what it had in hand, so that is kept */
    bool may_lack;     /* ... or go on without it (but for the chief), from the next epoch on as if it had never been */
    bool skips;        /* live modes: ... but a piece that it was at, which counts as done, with no examples */
    bool unmeasured;   /* delays and waits for whom are not measured */
    bool l2_shares;    /* room for one l2 share per row (live modes; see span.h) */
    bool curvatures;   /* room for the curvature of the mean loss along each row of table 0 (merge damped, many hosts) */
    bool row_places;   /* the rows of table 0 are in another order than its features; room for the place of each */
    uint32_t cache_pulls;  /* live modes: age in clocks that a worker's own copy, which it reads, may have; 0: no copy */
    bool staleness_aware;  /* a gradient counts less by its delay: by its rate, or in rounds by its share of the sum */
    uint32_t trace_events; /* of each seat, kept for a trace; 0: none */
    uint32_t hot_floats;   /* replicas: they hold the first so many floats of the table, in units (shmt_spec_hot_unit), and the
                              unit with its last one; all others have one copy, the master's. 0: replicas hold everything */
    uint32_t n_tables;
    struct shmt_table_spec table[SHMT_MAX_TABLES];
    uint64_t l2_rows[SHMT_MAX_TABLES]; /* rows below this are regularised: all, or all but a bias row at the end */
    struct shmt_tuning tuning[SHMT_MAX_TABLES];
    uint32_t spin_ns;     /* how long waiters spin before they sleep, ... */
    uint32_t spin_seats;  /* ... as long as no more seats than that take part: it would be others' processors */
    uint64_t board_bytes; /* shared memory for whoever drives the run (evaluation) */
    struct shmt_coll_room
        coll; /* of collectives; none where the store has a name. No field of spec_fields.h: no other program sees it */
    struct shmt_tape_plan tape;   /* likewise: what has a name is neither recorded nor replayed */
    struct shmt_hosts_plan hosts; /* likewise: what has a name is of one host */
    uint64_t head_bytes;          /* bytes, for whoever gives the store a name: what those who join need to know */
    struct shmt_placement placement;
};

/* What a user calls a worker has a seat for each of its threads, or one for all; guests have as many as the run's own. Never
 * 0 in a spec that shmt_spec_check has passed. */
static inline uint32_t shmt_seats_of_worker(const struct shmt_spec *spec) {
    return (spec->n_seats - spec->n_guests) / spec->n_workers;
}

/* Whether there are other hosts, and so a seat for the link (ps/far.h). */
static inline bool shmt_spec_is_linked(const struct shmt_spec *spec) { return spec->hosts.n > 1; }

/* Of all hosts together: an update is of so many of these, and items are equal parts of a batch for so many seats. */
static inline uint32_t shmt_spec_all_workers(const struct shmt_spec *spec) {
    if (!shmt_spec_is_linked(spec)) return spec->n_workers;
    return spec->hosts.n_workers > 0 ? spec->hosts.n_workers : spec->hosts.n * spec->n_workers;
}
static inline uint32_t shmt_spec_all_seats(const struct shmt_spec *spec) {
    if (!shmt_spec_is_linked(spec)) return spec->n_seats - spec->n_guests;
    return spec->hosts.n_seats > 0 ? spec->hosts.n_seats : spec->hosts.n * spec->n_seats;
}

/* Whether sums of batches are rounded on their way: then this host, too, adds up those of its own that the others get (ps/far.h). */
static inline bool shmt_spec_rounds_sums(const struct shmt_spec *spec) {
    return shmt_spec_is_linked(spec) && spec->hosts.wire != SHMT_WIRE_F32 && shmt_policy_is_batched(&spec->policy);
}

/* The host whose subtrees are not put by the link (shmt_far_nodes): this one; or none. */
static inline uint32_t shmt_spec_far_without(const struct shmt_spec *spec) {
    return shmt_spec_rounds_sums(spec) ? spec->hosts.n : spec->hosts.self;
}

/* How hosts exchange what their workers learn, besides the sums of batches: all of them meet to merge their copies (link/merges.c), some
 * of them make an update together (link/quorums.c), or their links go through rounds while workers go on (link/rounds.c). */
static inline bool shmt_spec_merges_over_hosts(const struct shmt_spec *spec) {
    return shmt_spec_is_linked(spec) && shmt_policy_meets_to_merge(&spec->policy);
}
static inline bool shmt_spec_has_quorum_of_hosts(const struct shmt_spec *spec) {
    return shmt_spec_is_linked(spec) && shmt_policy_has_rounds(&spec->policy);
}
static inline bool shmt_spec_has_rounds_of_hosts(const struct shmt_spec *spec) {
    return shmt_spec_is_linked(spec) && shmt_policy_is_live(&spec->policy) && !shmt_policy_meets_to_merge(&spec->policy);
}

/* Hosts that are ahead get items of those that are behind (link/passing.c). Where clocks are bound, who is ahead waits anyway. */
static inline bool shmt_spec_passes_items(const struct shmt_spec *spec) {
    return shmt_spec_has_rounds_of_hosts(spec) && spec->policy.staleness == SHMT_STALENESS_INF;
}

/* Whether a pause may come in the middle of an epoch. Over many hosts they come behind epochs alone, where all have the same parameters. */
static inline bool shmt_spec_pauses_within(const struct shmt_spec *spec) {
    return spec->pauses.allowed && !shmt_spec_is_linked(spec);
}

/* Of a batch, those of this host's seat number `index` of n_present. */
static inline void shmt_spec_chunks_of(const struct shmt_spec *spec, uint32_t index, uint32_t n_present, uint32_t *from_out,
                                       uint32_t *to_out) {
    const uint32_t n_hosts = spec->hosts.n > 0 ? spec->hosts.n : 1;
    shmt_chunk_share_of_host(spec->n_chunks, spec->hosts.self, n_hosts, index, n_present, from_out, to_out);
}

/* Whether time passes between a racy push's loads and its stores. */
static inline bool shmt_spec_opens_race(const struct shmt_spec *spec) { return spec->race_ns > 0 || spec->race_virtual; }

/* An epoch is cut into steps: batches where updates are of whole batches (`sync`), else items. */
static inline uint64_t shmt_spec_step_examples(const struct shmt_spec *spec) {
    return shmt_policy_is_batched(&spec->policy) ? spec->batch : spec->item;
}

static inline uint64_t shmt_spec_steps(const struct shmt_spec *spec) {
    return shmt_ceil_div(spec->n_examples, shmt_spec_step_examples(spec));
}

/* What `next` deals: items, or in `sync` chunks of batches. All chunks are counted, also those of a short last batch that
 * have no examples. */
static inline uint64_t shmt_spec_pieces(const struct shmt_spec *spec) {
    return shmt_spec_steps(spec) * (shmt_policy_is_batched(&spec->policy) ? spec->n_chunks : 1);
}

/* How many a host can be passed in an epoch, those counted again that come back. */
static inline uint64_t shmt_spec_most_passed(const struct shmt_spec *spec) {
    return shmt_spec_passes_items(spec) ? 2 * shmt_spec_pieces(spec) : 0;
}

static inline uint32_t shmt_spec_hosts(const struct shmt_spec *spec) { return spec->hosts.n > 0 ? spec->hosts.n : 1; }

/* Examples in step `step` of an epoch. */
static inline uint64_t shmt_spec_examples_of_step(const struct shmt_spec *spec, uint64_t step) {
    const uint64_t each = shmt_spec_step_examples(spec);
    return shmt_min_u64(each, spec->n_examples - step * each);
}

/* The most examples that one work item can have. */
static inline uint64_t shmt_spec_largest_piece(const struct shmt_spec *spec) {
    const uint64_t piece = shmt_policy_is_batched(&spec->policy) ? shmt_ceil_div(spec->batch, spec->n_chunks) : spec->item;
    return shmt_min_u64(piece, spec->n_examples);
}

/* The rate of a step: a pure function of how much of the run lies before it, the same for all workers and backends. */
static inline float shmt_spec_rate(const struct shmt_spec *spec, uint32_t epoch, uint64_t step) {
    const double done = (double)(step * shmt_spec_step_examples(spec)) / (double)spec->n_examples;
    return shmt_rate_at(&spec->rate, (double)epoch + done);
}

/* What step `step` of epoch `epoch` is made with. */
static inline void shmt_spec_update(const struct shmt_spec *spec, uint32_t epoch, uint64_t step, struct shmt_update *out) {
    const uint64_t steps = spec->steps_before + epoch * shmt_spec_steps(spec) + step;
    shmt_update_make(&spec->rule, shmt_spec_rate(spec, epoch, step), steps, out);
}

/* Where updates come in rounds: what one is made with before which `step` steps of the epoch were done (more count as all) and
 * `updates` updates of the run were made. */
static inline void shmt_spec_update_of(const struct shmt_spec *spec, uint32_t epoch, uint64_t step, uint64_t updates,
                                       struct shmt_update *out) {
    const float rate = shmt_spec_rate(spec, epoch, shmt_min_u64(step, shmt_spec_steps(spec)));
    shmt_update_make(&spec->rule, rate, spec->steps_before + updates, out);
}

/* What is particular of table t in an update that is u otherwise; `ruled`: of its rows below l2_rows. */
static inline struct shmt_update shmt_spec_tune(const struct shmt_spec *spec, uint32_t t, bool ruled,
                                                const struct shmt_update *u) {
    const struct shmt_tuning *tuning = &spec->tuning[t];
    const bool trained = tuning->role == SHMTRAIN_TRAINED;
    struct shmt_update out = *u;
    if (!ruled || !trained) shmt_update_unrule(&out);
    if (!trained) {
        out.rate = tuning->rate;
        out.clip = 0;
    }
    if (trained) out.scale *= u->clip_factor;
    if (trained && ruled && u->trust) out.rate *= u->trust[t];
    if (trained && tuning->rate > 0) out.rate *= tuning->rate;
    if (trained && tuning->decay > 0) {
        out.l1 *= tuning->decay;
        out.l2 *= tuning->decay;
        out.weight_decay *= tuning->decay;
    }
    return out;
}

/* Whether step `step` of epoch `epoch` lies within max_steps. */
static inline bool shmt_spec_has_step(const struct shmt_spec *spec, uint32_t epoch, uint64_t step) {
    const uint64_t steps = shmt_spec_steps(spec);
    return step < steps && epoch * steps + step < spec->max_steps;
}

/* Floats that replicas hold of, or do not, are whole units: a page of the store, which is mapped as one or the other. */
static inline uint64_t shmt_spec_hot_unit(const struct shmt_spec *spec) {
    const struct shmt_placement *p = &spec->placement;
    return (p->page_bytes && !p->transparent ? p->page_bytes : 4096) / sizeof(float);
}

/* Checks everything that a caller could have got wrong; one sentence. */
int shmt_spec_check(const struct shmt_spec *spec, struct shmt_error *e);

/* The part of it that says whether hosts can exchange what such a policy learns, in the way that is asked for: by `policy`, `fits` and
 * `hosts` alone, which are known before anything else is. */
int shmt_spec_check_exchange(const struct shmt_spec *spec, struct shmt_error *e);
