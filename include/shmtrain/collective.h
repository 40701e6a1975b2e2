/* Collectives: barrier, broadcast, reductions and their kin, among the workers of a run on one host, or a group of them.
 *
 * Over several hosts (option hosts) they do not reach beyond this one: ranks are of its workers alone. There a call has to name a group,
 * and one without is refused (_USAGE), as its caller may mean the workers of all hosts, whose gradients are added up by pushing them
 * (shmtrain_push). shmtrain_group_of_range(s, 0, shmtrain_workers(s), 1, &here) is the group of all workers of this host. A worker that has
 * come to a collective waits for others of its host alone, as the hosts' parts of an epoch may have different numbers of pieces.
 *
 * They are for worker functions (shmtrain_store_run), beside next / pull / push / clock. All members of the group make the same call, with
 * the same kind, algorithm, type, operator, root and n, in the same order; a member that calls another one is refused by those that
 * read from it. Where workers are in several groups, the calls of all groups fit into one order that all workers keep. Ranks and roots
 * are places in the group, from 0; without a group they are shmtrain_rank. Runs that have a name have no collectives, and no more than
 * SHMTRAIN_COLLECTIVE_WORKERS workers can call them. One worker (backends plain and copy, too) is a group of one: results are copies.
 *
 * Buffers. `in` and `out` are of the type's elements and aligned to them. They do not overlap, but `in` may be `out` in reductions to
 * one result per member (shmtrain_reduce, shmtrain_all_reduce). What is read of whom goes through shared memory of the run: of a private
 * buffer piece by piece, as a copy; a buffer from shmtrain_collective_lend is read by the others where it lies.
 *
 * The order of a reduction is fixed, so the same inputs give the same bits each time, at all members. Of m members:
 *
 *     auto, flat, sliced   ((x0 + x1) + x2) + ... in the order of the members, whatever the sizes
 *     binomial, doubling,  along a tree; ring, pairwise: around the circle, from another member for each block:
 *     halving              docs/collectives.md draws them
 *
 * Minimum and maximum take `x < sofar ? x : sofar` (or >) in that order, which says what becomes of a NaN; integers
 * wrap around.
 *
 * Waiting. A blocking call returns when the caller's buffers are its own again. A started one makes progress inside of collective calls
 * of this session (start, test, wait, or a blocking call, which completes all that were started before it), and nowhere else: no
 * thread of the library works meanwhile. Operations of a session complete in the order in which they were started.
 *
 * Errors, of all calls: _USAGE (arguments that cannot be; members that call different things; an algorithm that the kind does not
 * have, or that needs a power of two of members; no collectives in this run), _DIED (a member has died, or has left its worker function,
 * and is waited for: the sentence names it), _STOPPED (the run ends), _MEMORY. As with all session calls, a call that has failed ends the
 * run. A worker that is started again after its death (option on-death) finds collectives closed, if it had taken part in one.
 *
 * Threads and processes: as <shmtrain/session.h>; workers may be either. */
#ifndef SHMTRAIN_COLLECTIVE_H
#define SHMTRAIN_COLLECTIVE_H

#include <shmtrain/session.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMTRAIN_COLLECTIVE_WORKERS 1024
#define SHMTRAIN_COLLECTIVE_GROUPS  15 /* that a worker can be a member of at a time, besides that of all */
#define SHMTRAIN_COLLECTIVE_STARTED 64 /* that a session can have under way at a time */

enum shmtrain_collective_kind {
    SHMTRAIN_BARRIER,        /* nobody returns before all have come; no buffers */
    SHMTRAIN_BROADCAST,      /* root's in (n) to everybody's out (n); root's out may be NULL or `in` */
    SHMTRAIN_SCATTER,        /* block i of root's in (members, n) to member i's out (n) */
    SHMTRAIN_GATHER,         /* everybody's in (n) to root's out (members, n) */
    SHMTRAIN_ALL_GATHER,     /* everybody's in (n) to everybody's out (members, n) */
    SHMTRAIN_REDUCE,         /* the reduction of everybody's in (n) to root's out (n) */
    SHMTRAIN_ALL_REDUCE,     /* likewise to everybody's out (n) */
    SHMTRAIN_REDUCE_SCATTER, /* block i of the reduction of everybody's in (members, n) to member i's out (n) */
    SHMTRAIN_ALL_TO_ALL      /* block i of member j's in (members, n) to block j of member i's out (members, n) */
};

enum shmtrain_type { SHMTRAIN_FLOAT, SHMTRAIN_DOUBLE, SHMTRAIN_INT32, SHMTRAIN_INT64 };

enum shmtrain_operator { SHMTRAIN_SUM, SHMTRAIN_MIN, SHMTRAIN_MAX, SHMTRAIN_PRODUCT, SHMTRAIN_OWN };

/* Flat and sliced use shared memory as it is; the others are the textbook's, as messages from member to member. Kinds that have them
 * stand behind each. [2^k]: the group has a power of two of members. */
enum shmtrain_algorithm {
    SHMTRAIN_AUTO,     /* the fastest by kind, size and members: flat or sliced */
    SHMTRAIN_FLAT,     /* all kinds: each member reads what it wants from the others */
    SHMTRAIN_SLICED,   /* reduce, all-reduce: each member reduces a slice, then the results are read */
    SHMTRAIN_RING,     /* all-gather, all-reduce, reduce-scatter: blocks go around (Patarasuk and Yuan 2009) */
    SHMTRAIN_DOUBLING, /* all-gather, all-reduce [2^k]: partners at distance 1, 2, 4, ... exchange all they have */
    SHMTRAIN_HALVING,  /* reduce-scatter, all-reduce [2^k]: halves at distance m/2, m/4, ... (Rabenseifner 2004) */
    SHMTRAIN_BINOMIAL, /* broadcast, scatter, gather, reduce, all-reduce: along a binomial tree */
    SHMTRAIN_BRUCK,    /* barrier, all-gather, all-to-all (Bruck et al. 1997); the barrier is the dissemination barrier */
    SHMTRAIN_PAIRWISE  /* reduce-scatter, all-to-all: in step s with the members at distance s */
};

/* An own operator: into[i] = into[i] op from[i] for n elements of the type. It is associative; the named algorithms of the textbook keep
 * to the orders above. Called in the worker, inside of collective calls, on parts of the buffers; it calls nothing of the session. */
typedef void shmtrain_combine(void *arg, void *into, const void *from, uint64_t n);

struct shmtrain_group;

/* How a collective is to be done. NULL in its place, or zeros behind `size`: the sum of floats over all workers, by auto. */
struct shmtrain_collective {
    uint32_t size;                /* sizeof(struct shmtrain_collective) */
    uint32_t type;                /* enum shmtrain_type */
    uint32_t op;                  /* enum shmtrain_operator; of reductions */
    uint32_t algorithm;           /* enum shmtrain_algorithm */
    struct shmtrain_group *group; /* NULL: all workers; over several hosts: not allowed */
    shmtrain_combine *combine;    /* SHMTRAIN_OWN */
    void *combine_arg;
};

/* ---- blocking ---- */

/* Shapes of `in` and `out` are above; n: elements of one block; `root`: a place in the group. Buffers that a member does not use may be
 * NULL there. n may be 0. Each waits until its part is done. */
SHMTRAIN_API int shmtrain_barrier(shmtrain_session *s, struct shmtrain_group *group);
SHMTRAIN_API int shmtrain_broadcast(shmtrain_session *s, const struct shmtrain_collective *how, uint32_t root, const void *in,
                                    void *out, uint64_t n);
SHMTRAIN_API int shmtrain_scatter(shmtrain_session *s, const struct shmtrain_collective *how, uint32_t root, const void *in,
                                  void *out, uint64_t n);
SHMTRAIN_API int shmtrain_gather(shmtrain_session *s, const struct shmtrain_collective *how, uint32_t root, const void *in,
                                 void *out, uint64_t n);
SHMTRAIN_API int shmtrain_all_gather(shmtrain_session *s, const struct shmtrain_collective *how, const void *in, void *out,
                                     uint64_t n);
SHMTRAIN_API int shmtrain_reduce(shmtrain_session *s, const struct shmtrain_collective *how, uint32_t root, const void *in,
                                 void *out, uint64_t n);
SHMTRAIN_API int shmtrain_all_reduce(shmtrain_session *s, const struct shmtrain_collective *how, const void *in, void *out,
                                     uint64_t n);
SHMTRAIN_API int shmtrain_reduce_scatter(shmtrain_session *s, const struct shmtrain_collective *how, const void *in, void *out,
                                         uint64_t n);
SHMTRAIN_API int shmtrain_all_to_all(shmtrain_session *s, const struct shmtrain_collective *how, const void *in, void *out,
                                     uint64_t n);

/* ---- started, and waited for ---- */

/* Starts an operation of `kind` (enum shmtrain_collective_kind; root counts where the kind has one) and returns at once: 0, and
 * *ticket_out (which may be NULL). Its buffers, and what `how` names, stay as they are until it is complete. Errors besides: _USAGE
 * (SHMTRAIN_COLLECTIVE_STARTED are under way). */
SHMTRAIN_API int shmtrain_collective_start(shmtrain_session *s, uint32_t kind, const struct shmtrain_collective *how,
                                           uint32_t root, const void *in, void *out, uint64_t n, uint64_t *ticket_out);

/* Makes what progress can be made without waiting: 1: the operation is complete, 0: not yet. */
SHMTRAIN_API int shmtrain_collective_test(shmtrain_session *s, uint64_t ticket);

/* Waits until the operation, and so all that were started before it, is complete. 0, or a status. */
SHMTRAIN_API int shmtrain_collective_wait(shmtrain_session *s, uint64_t ticket);

/* ---- memory that the others read where it lies ---- */

/* Lends `bytes` of the run's shared memory, aligned to 128 bytes and zero-filled at first, until the session ends. Each worker has as much
 * as shmtrain_store_lend has planned. Reductions to all members read and write lent buffers in place where `in` and `out` are lent at all
 * members (at some only: _USAGE); all other kinds read an `in` that is lent where it lies, whoever lends. A lent `in` that others
 * read is the caller's again when the call returns. Never waits. Errors besides: _MEMORY (no such room is left). */
SHMTRAIN_API int shmtrain_collective_lend(shmtrain_session *s, uint64_t bytes, void **out);

/* ---- groups ---- */

/* Groups are made by all workers of the run (over several hosts: of this one) together, in the same order: every worker makes the call,
 * with a list of ranks. The members of a list all give that list. Lists that differ have no common member, so one call can make several
 * groups, one for each colour, say. A worker that is not in its own list gets a group that it can ask, unite and destroy, and no more. The
 * order of the list is that of the members. All wait for one another. Errors besides: _USAGE (a rank that does not exist, or twice; lists
 * that differ and have a common member; more groups than SHMTRAIN_COLLECTIVE_GROUPS at one worker), _MEMORY. */
SHMTRAIN_API int shmtrain_group_of_list(shmtrain_session *s, const uint32_t *rank, uint32_t n, struct shmtrain_group **out);

/* Ranks first, first + step, ... below `end`; step at least 1. */
SHMTRAIN_API int shmtrain_group_of_range(shmtrain_session *s, uint32_t first, uint32_t end, uint32_t step,
                                         struct shmtrain_group **out);

/* All workers that give the same colour, in the order of their ranks. UINT32_MAX: none; the worker gets an empty group. */
SHMTRAIN_API int shmtrain_group_of_colour(shmtrain_session *s, uint32_t colour, struct shmtrain_group **out);

/* The members of a, then those of b that are not in a; those of a that are in b; those of a that are not in b. */
SHMTRAIN_API int shmtrain_group_union(shmtrain_session *s, const struct shmtrain_group *a, const struct shmtrain_group *b,
                                      struct shmtrain_group **out);
SHMTRAIN_API int shmtrain_group_intersection(shmtrain_session *s, const struct shmtrain_group *a,
                                             const struct shmtrain_group *b, struct shmtrain_group **out);
SHMTRAIN_API int shmtrain_group_difference(shmtrain_session *s, const struct shmtrain_group *a, const struct shmtrain_group *b,
                                           struct shmtrain_group **out);

/* Ends a group. By each worker that has it; waits only until the others have read what this one has lent or left in it. What was
 * started in it must be complete: _USAGE. Groups that are left end with the session. NULL is fine. */
SHMTRAIN_API int shmtrain_group_destroy(shmtrain_session *s, struct shmtrain_group *group);

SHMTRAIN_API uint32_t shmtrain_group_size(const struct shmtrain_group *group);
SHMTRAIN_API uint32_t shmtrain_group_rank(const struct shmtrain_group *group); /* my place in it; UINT32_MAX: none */
SHMTRAIN_API uint32_t shmtrain_group_member(const struct shmtrain_group *group,
                                            uint32_t i); /* the rank at place i; UINT32_MAX: there is none */

#ifdef __cplusplus
}
#endif
#endif
