/* What worker code calls: a session with the parameter store.
 *
 * A worker function is written once, against next / pull / push / clock, and runs on every backend and in every mode:
 *
 *     static int work(shmtrain_session *s, void *arg) {
 *         struct shmtrain_work w;
 *         int rc;
 *         while ((rc = shmtrain_next(s, &w)) == 1) {
 *             ... pull, compute the gradient of examples w.first .. w.first + w.n - 1, push ...
 *             if ((rc = shmtrain_clock(s, NULL)) < 0) break;
 *         }
 *         return rc;
 *     }
 *
 * It keeps its state in its argument and the session, not in static variables, and it waits only in session calls.
 *
 * Threads: a session belongs to the thread that was given it. Calls return 0 (next: 1) or a negative status of status.h; an
 * invalid call (such as a row that does not exist; but see shmtrain_csr) returns SHMTRAIN_E_USAGE and leaves its sentence with
 * the session. A call that has failed ends the run, whatever the worker function (or hook, or model) returns then, and its
 * sentence is shmtrain_store_message. SHMTRAIN_E_STOPPED means: return it, the run is ending. A worker leaves its own sentence
 * by shmtrain_fail.
 *
 * What divides a gradient. The same worker function is right in every mode, if shmtrain_push gets the sum of the gradients of
 * an item's examples, and the sparse calls get the gradient of each example by itself:
 *
 *                                    live modes (`racy`, `atomic`, `locked`)          `aggregate` (sync, backup, ...)
 *     shmtrain_push                  one update, divided by the item's examples       added up with all other pushes of the
 *     shmtrain_push_rows             an update for each row, divided by nothing       update, and divided by the examples
 *     shmtrain_push_sparse, _each    an update for each example, divided by nothing   that the update is of
 *
 * So in the live modes a dense gradient of 64 examples moves the parameters once, by the mean, and rows that are pushed example
 * by example move them 64 times: their rate is that of an example, not of a mean.
 *
 * Parameters that are no finite numbers at the end of an epoch end the run (SHMTRAIN_E_NUMBERS), naming table and row; with
 * models, a loss that is none ends it at once. */
#ifndef SHMTRAIN_SESSION_H
#define SHMTRAIN_SESSION_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shmtrain_session shmtrain_session;

/* One work item: the places first .. first + n - 1 of this epoch's order are mine. A function that reads its data in order may
 * use places as example numbers; shmtrain_order gives the shuffled example at each place. */
struct shmtrain_work {
    uint32_t size;  /* of what was filled */
    uint32_t chunk; /* which part of the batch (`sync`), else 0 */
    uint64_t first, n;
    uint64_t step;  /* number of this step: of the batch in `sync`, else of the item; from 0, over all epochs */
    uint32_t epoch; /* from 0 */
    uint32_t life;  /* how often this worker had to be started again */
};

/* What became of what I pushed in the clock that shmtrain_clock has just ended. */
struct shmtrain_fate {
    uint32_t size; /* of what was filled */
    uint32_t reserved;
    /* A number that never falls. `sync`: batches that are applied. With replicas: clocks that I have completed. Other live
     * modes, and `aggregate` with staleness: the same, but when an epoch ends everybody's becomes the largest of all. With a
     * quorum: updates that are decided on, whoever's gradients they consist of. */
    uint64_t clock;
    uint32_t applied, dropped, folded; /* examples: in time; too late, thrown away; too late, in a later update */
    uint32_t reserved_too;
};

/* n examples in compressed sparse rows. Example k is row i = order ? order[k] : k of the arrays: its nonzeros are start[i] ..
 * start[i + 1] - 1, columns id[] (distinct within a row), values value[] (NULL: all 1). With `bias`, the last row of the table
 * is a further column that every example has, with value 1. Tables of width 1 only.
 *
 * Columns are not checked: looking at each once more would cost as much as using it. They must be below the table's rows (with
 * bias: rows - 1). Data that shmtrain has loaded is checked once, when it is read. */
struct shmtrain_csr {
    uint32_t size; /* sizeof(struct shmtrain_csr) */
    uint32_t n;
    uint32_t bias; /* 0 or 1 */
    uint32_t reserved;
    const uint64_t *start;
    const uint32_t *id;
    const float *value;
    const uint32_t *order;
};

/* Turns dot products into slopes: slope_out[k] = d loss / d dot of example first + k of the csr (its place there, not order[]).
 * (n) each, n at most 64. */
typedef void shmtrain_slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out);

/* ---- work: the two calls that may wait ---- */

/* The next work item of mine: 1 and *out, or 0 when the run is over, or a negative status. Waits at the end of an epoch until
 * all have finished it. The item before it must have been ended by shmtrain_clock. */
SHMTRAIN_API int shmtrain_next_sized(shmtrain_session *s, struct shmtrain_work *out, uint64_t out_bytes);
static inline int shmtrain_next(shmtrain_session *s, struct shmtrain_work *out) {
    return shmtrain_next_sized(s, out, sizeof *out);
}

/* The largest `n` that shmtrain_next will give in this run, so that buffers can be made before the first item. */
SHMTRAIN_API uint64_t shmtrain_item_max(const shmtrain_session *s);

/* What I pushed for this item is complete. Waits as the mode says; all views end. `out` may be NULL. */
SHMTRAIN_API int shmtrain_clock_sized(shmtrain_session *s, struct shmtrain_fate *out, uint64_t out_bytes);
static inline int shmtrain_clock(shmtrain_session *s, struct shmtrain_fate *out) {
    return shmtrain_clock_sized(s, out, sizeof *out);
}

/* The examples at the places of the item: (work->n, see shmtrain_item_max) into example_out; shuffled by (seed, epoch, place),
 * or as they are when `shuffle` is off. */
SHMTRAIN_API int shmtrain_order(shmtrain_session *s, const struct shmtrain_work *work, uint32_t *example_out);

/* The loss of the item, summed over its examples, as the model saw them before their updates; optional, once per item. */
SHMTRAIN_API int shmtrain_report(shmtrain_session *s, double loss_sum);

/* ---- dense: rows of table t, row-major (n, width) ---- */

/* A look at rows row .. row + n - 1 without a copy: *at_out points to the first, rows are *stride_out floats apart. *live_out:
 * 1, others' updates (and my own) show up while I look, each element whole; 0, nothing changes before my next clock. Valid
 * until then; read only. */
SHMTRAIN_API int shmtrain_view(shmtrain_session *s, int t, uint64_t row, uint64_t n, const float **at_out, uint64_t *stride_out,
                               int *live_out);

/* A steady copy of the rows: (n, width) into out. */
SHMTRAIN_API int shmtrain_pull(shmtrain_session *s, int t, uint64_t row, uint64_t n, float *out);

/* Lends the buffer in which the whole table's gradient (rows, width) is to be written, to be given to shmtrain_push. Its
 * contents are undefined; every element must be written. Once per item and table, before any other push of the item to it; and none
 * may follow that of the buffer, in no mode: in allreduce others read it from then on. */
SHMTRAIN_API int shmtrain_lend(shmtrain_session *s, int t, float **grad_out);

/* Pushes a gradient (n, width) for these rows, the sum over the item's examples. grad == the lent buffer (then row 0, n =
 * rows): taken without a copy. Live modes: one update, of the gradient divided by the item's examples (work->n). `aggregate`:
 * it is added up, and divided by the examples of the update. Several pushes for an item, in the live modes, are several
 * updates. */
SHMTRAIN_API int shmtrain_push(shmtrain_session *s, int t, uint64_t row, uint64_t n, const float *grad);

/* ---- sparse: by groups of examples, on a table of width 1 ---- */

/* "These rows next": a hint (prefetch), and on backends that fetch, the request. */
SHMTRAIN_API int shmtrain_need(shmtrain_session *s, int t, const struct shmtrain_csr *x);

/* dot_out[k] = sum of value * weight over example k, (n). */
SHMTRAIN_API int shmtrain_dot(shmtrain_session *s, int t, const struct shmtrain_csr *x, float *dot_out);

/* Pushes the gradient sum over k of slope[k] * x_k. Live modes: example by example, each an update of its own, divided by
 * nothing. `aggregate`: added up, and divided by the examples of the update. */
SHMTRAIN_API int shmtrain_push_sparse(shmtrain_session *s, int t, const struct shmtrain_csr *x, const float *slope);

/* For each group of `group` examples (1 .. 64): dot products, slopes by the callback, push. The fast path of linear models. In
 * the live modes group 1 is plain stochastic gradient descent; larger groups keep more rows in flight: their dot products are
 * taken before any of them is updated. What divides: as in shmtrain_push_sparse. */
SHMTRAIN_API int shmtrain_each(shmtrain_session *s, int t, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope,
                               void *arg);

/* Gathers rows id[0..n) of a table of any width into out (n, width). */
SHMTRAIN_API int shmtrain_rows(shmtrain_session *s, int t, const uint32_t *id, uint32_t n, float *out);

/* Pushes gradients (n, width) for rows id[0..n). Live modes: each row is an update of its own, divided by nothing, with L1 and
 * L2 of its own; a row that is there twice is updated twice, one after the other. `aggregate`: added up, also of rows that are
 * there twice, and divided by the examples of the update. */
SHMTRAIN_API int shmtrain_push_rows(shmtrain_session *s, int t, const uint32_t *id, uint32_t n, const float *grad);

/* Leaves a sentence of the worker's own, as printf would write it (at most 500 bytes; line breaks become blanks), and returns
 * `status`. The run ends with it, whatever the worker function (or hook, or model) returns, which is best that:
 * `return shmtrain_fail(s, SHMTRAIN_E_DATA, "example %u ...", i);`. shmtrain_store_message of the program that runs it has the
 * sentence then; a session call that has failed before keeps its own, and its status is returned. From then on all session calls
 * that may wait return it. Errors: _USAGE (`status` is not negative, or SHMTRAIN_E_STOPPED or _AGAIN, with which no function of
 * the application may end a run). */
SHMTRAIN_API int shmtrain_fail(shmtrain_session *s, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- who I am ---- */
SHMTRAIN_API uint32_t shmtrain_rank(const shmtrain_session *s); /* 0 .. workers - 1; beyond: joined by name */
SHMTRAIN_API uint32_t shmtrain_workers(const shmtrain_session *s);

/* This host among those of the run, from 0, and how many there are (options rank, hosts): 0 and 1 where it runs on one. Ranks of workers
 * are counted on each host for itself, and collectives are among those of one host (<shmtrain/collective.h>). */
SHMTRAIN_API uint32_t shmtrain_host(const shmtrain_session *s);
SHMTRAIN_API uint32_t shmtrain_hosts(const shmtrain_session *s);
SHMTRAIN_API uint64_t shmtrain_global_step(const shmtrain_session *s);        /* the step of my current item */
SHMTRAIN_API const char *shmtrain_session_message(const shmtrain_session *s); /* the sentence of the last failed call, or "" */

#ifdef __cplusplus
}
#endif
#endif
