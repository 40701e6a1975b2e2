/* Batches over many hosts: the turns of an exchange (exchange_priv.h) in `sync` and `allreduce`. A host's part of one is the sums of its
 * own subtrees.
 *
 * With --wire bf16 sums are rounded to bfloat16, which all hosts add up, the sender too, so that all have the same parameters. What
 * rounding leaves of a sum is added to the next one of the same subtree that is not zero (error feedback: Seide et al. 2014, Stich et
 * al. 2018); what it leaves of a term, to the next term of the same parameter. What is left at the end of the run is lost. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "link/bfloat16.h"
#include "link/exchange_priv.h"
#include "link/little_endian.h"
#include "sync/host.h"

/* ---- rounding ---- */

static bool rounds(const struct shmt_exchange *x) { return x->left != NULL; }

/* Of own sum `node`, or behind the last one of terms: what rounding has left so far. */
static float *left_of(const struct shmt_exchange *x, uint32_t node) { return x->left + node * x->n_blocks * SHMT_FAR_BLOCK; }

/* Rounds x and what was left. What is infinite leaves nothing. */
static inline float round_one(float x, float *left) {
    const float exact = x + *left, rounded = shmt_of_bfloat16(shmt_bfloat16(exact)), rest = exact - rounded;
    *left = rest - rest == 0 ? rest : 0;
    return rounded;
}

/* What this host adds up for an own sum is what the others get. */
static void round_block(struct shmt_exchange *x, uint32_t node, uint64_t block, float values[SHMT_FAR_BLOCK]) {
    float *left = left_of(x, node) + block * SHMT_FAR_BLOCK;
    for (uint32_t i = 0; i < SHMT_FAR_BLOCK; i++) values[i] = round_one(values[i], &left[i]);
    x->at.backend->far->put(x->seat, x->first_node[x->at.spec->hosts.self] + node, block, values);
}

/* The same of a list: its values are x->rounded from then on. false: it has a term that there cannot be. */
static bool round_terms(struct shmt_exchange *x, struct shmt_far_terms *terms) {
    float *left = left_of(x, x->n_own);
    if (terms->n > shmt_flat_terms(x->at.spec)) return false;
    for (uint32_t k = 0; k < terms->n; k++) {
        const uint64_t id = shmt_get_little((const unsigned char *)terms->id + k * sizeof(uint32_t), sizeof(uint32_t));
        float value;
        if (id >= x->n_floats) return false;
        memcpy(&value, (const unsigned char *)terms->value + k * sizeof value, sizeof value);
        x->rounded[k] = round_one(value, &left[id]);
    }
    terms->value = x->rounded;
    return true;
}

/* ---- what comes ---- */

static uint64_t examples_of(const struct shmt_exchange *x, uint32_t chunk) {
    const struct shmt_spec *spec = x->at.spec;
    const uint64_t n = shmt_spec_examples_of_step(spec, x->step);
    uint64_t from, to;
    shmt_chunk_examples(spec->batch, spec->n_chunks, chunk, n, &from, &to);
    return to - from;
}

static void put_pieces(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    uint32_t first, behind;
    shmt_chunk_share(x->at.spec->n_chunks, from, x->at.spec->hosts.n, &first, &behind);
    if (x->heard[from].begun || parcel->of != first || parcel->n != behind - first) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "says that it has done other parts of a batch than its own", from);
        return;
    }
    for (uint32_t i = 0; i < parcel->n; i++) {
        struct shmt_far_piece piece;
        shmt_parcel_piece(parcel, i, &piece);
        if (piece.examples != examples_of(x, first + i)) {
            shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has done another number of examples than its part of a batch has", from);
            return;
        }
        x->at.backend->far->put_piece(x->seat, first + i, &piece);
    }
    x->heard[from].begun = true;
    x->heard[from].stop = parcel->flag;
}

static void put_blocks(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    const uint32_t node = x->first_node[from] + parcel->of;
    if (parcel->of >= x->first_node[from + 1] - x->first_node[from]) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent a sum that is not its own", from);
        return;
    }
    for (uint32_t i = 0; i < parcel->n; i++) {
        float values[SHMT_FAR_BLOCK];
        const uint64_t block = shmt_parcel_block(parcel, i, values);
        if (block >= x->n_blocks || parcel->halves != rounds(x)) {
            shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent a sum of parameters that there are not", from);
            return;
        }
        x->at.backend->far->put(x->seat, node, block, values);
    }
}

/* Ids are looked at before they are put. */
static void put_terms(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    uint32_t first, behind;
    struct shmt_far_terms terms;
    shmt_chunk_share(x->at.spec->n_chunks, from, x->at.spec->hosts.n, &first, &behind);
    bool is_good = x->heard[from].begun && parcel->of >= first && parcel->of < behind && parcel->halves == rounds(x) &&
                   parcel->n <= shmt_flat_terms(x->at.spec);
    if (is_good) shmt_parcel_terms(parcel, x->rounded, &terms);
    for (uint32_t i = 0; is_good && i < terms.n; i++)
        is_good = shmt_get_little(parcel->entries + i * sizeof(uint32_t), sizeof(uint32_t)) < x->n_floats;
    if (!is_good || !x->at.backend->far->put_terms(x->seat, parcel->of, &terms))
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent a list of terms that there cannot be", from);
}

static bool take(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel, struct shmt_message *message) {
    (void)message;
    if (parcel->kind == SHMT_PARCEL_PIECES)
        put_pieces(x, from, parcel);
    else if (parcel->kind == SHMT_PARCEL_BLOCKS)
        put_blocks(x, from, parcel);
    else if (parcel->kind == SHMT_PARCEL_TERMS)
        put_terms(x, from, parcel);
    else if (parcel->kind != SHMT_PARCEL_END)
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent a message of another kind of run", from);
    else if (x->heard[from].begun)
        x->heard[from].end = true;
    else
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "ends a batch that it has not begun", from);
    return false;
}

static uint64_t most_bytes(const struct shmt_exchange *x, uint32_t from) {
    const uint64_t block = sizeof(uint64_t) + SHMT_FAR_BLOCK * sizeof(float);
    const uint64_t sums = (x->first_node[from + 1] - x->first_node[from]) * x->n_blocks * block;
    const uint64_t lists = shmt_flat_terms(x->at.spec) * (uint64_t)x->at.spec->n_chunks * (sizeof(uint32_t) + sizeof(float));
    return sums + lists;
}

/* ---- what goes ---- */

static void send_pieces(struct shmt_exchange *x) {
    uint32_t first, behind;
    unsigned char *entries;
    shmt_chunk_share(x->at.spec->n_chunks, x->at.spec->hosts.self, x->at.spec->hosts.n, &first, &behind);
    const struct shmt_parcel parcel = {
        .kind = SHMT_PARCEL_PIECES, .of = first, .n = behind - first, .number = x->number, .flag = x->stop};
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    for (uint32_t i = 0; payload && i < parcel.n; i++) {
        struct shmt_far_piece piece;
        x->at.backend->far->piece(x->seat, first + i, &piece);
        shmt_parcel_put_piece(entries, i, &piece);
    }
    shmt_exchange_send(x, payload);
}

/* Of a chunk of this host, where gradients are listed. */
static void send_terms(struct shmt_exchange *x, uint32_t chunk) {
    struct shmt_far_terms terms;
    unsigned char *entries;
    if (!x->at.backend->far->terms(x->seat, chunk, &terms) || (terms.n == 0 && !terms.summed)) return;
    const struct shmt_parcel parcel = {
        .kind = SHMT_PARCEL_TERMS, .of = chunk, .n = terms.n, .number = x->number, .flag = terms.summed, .halves = rounds(x)};
    if (rounds(x) && (!round_terms(x, &terms) || !x->at.backend->far->put_terms(x->seat, chunk, &terms)))
        shmt_fail(&x->error, SHMTRAIN_E_USAGE, "a list of gradients has terms of parameters that there are not");
    if (x->error.status != 0) return;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    if (payload) (rounds(x) ? shmt_parcel_put_half_terms : shmt_parcel_put_terms)(entries, &terms);
    shmt_exchange_send(x, payload);
}

static void send_lists(struct shmt_exchange *x) {
    uint32_t from, to;
    shmt_chunk_share(x->at.spec->n_chunks, x->at.spec->hosts.self, x->at.spec->hosts.n, &from, &to);
    for (uint32_t chunk = from; chunk < to && x->error.status == 0; chunk++) send_terms(x, chunk);
}

/* A block of an own sum, as it is when it is complete. false: it is zero, and so are `values`; or there is a failure. Before all
 * gradients are in, a worker that has died may be computing them anew: then it is waited for. */
static bool read_block(struct shmt_exchange *x, uint32_t node, uint64_t block, float values[SHMT_FAR_BLOCK]) {
    const struct shmt_far_ops *far = x->at.backend->far;
    struct shmt_far_ready again;
    for (;;) {
        memset(values, 0, SHMT_FAR_BLOCK * sizeof *values); /* in another life it may have been something else */
        const bool found = far->sum(x->seat, x->own[node], block, values);
        if (x->stamp == 0 || far->holds(x->seat, x->stamp)) return found;
        x->anew = true;
        const int rc = far->ready(x->seat, block + 1, &again);
        if (rc != 1 && x->error.status == 0) shmt_fail(&x->error, rc < 0 ? rc : SHMTRAIN_E_USAGE, SHMT_GIVEN_UP);
        if (x->error.status != 0) return false;
        x->stamp = again.stamp;
    }
}

/* Some blocks of an own sum. */
struct range {
    uint32_t node;
    uint64_t at, to; /* those that are still to be sent */
    bool whole;      /* also those that are zero: they have been sent, and may have been something else */
};

/* The next ones. NULL: there are none, or there is a failure. */
static struct shmt_payload *next_blocks(struct shmt_exchange *x, struct range *of) {
    const uint32_t most = (uint32_t)shmt_min_u64(SHMT_MOST_PARCEL_BLOCKS, of->to - of->at);
    const struct shmt_parcel parcel = {
        .kind = SHMT_PARCEL_BLOCKS, .of = of->node, .n = most, .number = x->number, .halves = rounds(x)};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    uint32_t n = 0;
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    for (; payload && of->at < of->to && n < most && x->error.status == 0; of->at++) {
        float values[SHMT_FAR_BLOCK];
        if (!read_block(x, of->node, of->at, values) && !of->whole) continue;
        if (rounds(x)) round_block(x, of->node, of->at, values);
        (rounds(x) ? shmt_parcel_put_half_block : shmt_parcel_put_block)(entries, n++, of->at, values);
    }
    if (payload && n > 0 && x->error.status == 0) {
        shmt_parcel_end(payload, n);
        return payload;
    }
    shmt_payload_drop(payload);
    return NULL;
}

/* Blocks from .. to - 1 of all own sums. */
static void send_blocks(struct shmt_exchange *x, uint64_t from, uint64_t to, bool whole) {
    for (uint32_t node = 0; node < x->n_own; node++) {
        struct range of = {.node = node, .at = from, .to = to, .whole = whole};
        while (of.at < of.to && x->error.status == 0) {
            struct shmt_payload *payload = next_blocks(x, &of);
            if (payload) shmt_exchange_send(x, payload);
        }
    }
}

/* While workers compute the gradients of earlier layers: what is complete goes, bucket by bucket, down to block 0. 0, or a status. */
static int send_ready(struct shmt_exchange *x) {
    const struct shmt_far_ops *far = x->at.backend->far;
    struct shmt_far_ready now;
    const uint64_t bucket = x->at.bucket ? x->at.bucket : SHMT_FAR_BUCKET;
    int rc = 0;
    while (x->error.status == 0 && x->sent_from > 0) {
        const uint64_t below = x->sent_from > bucket ? x->sent_from - bucket + 1 : 1;
        if ((rc = far->ready(x->seat, below, &now)) != 1) break;
        shmt_exchange_does(x, SHMT_EVENT_EXCHANGE);
        x->anew |= x->sent_from < x->n_blocks && now.stamp != x->stamp;
        x->stamp = now.stamp;
        send_blocks(x, now.from, x->sent_from, false);
        x->sent_from = now.from;
        shmt_exchange_does(x, SHMT_EVENT_WAIT);
    }
    return x->error.status != 0 ? x->error.status : rc < 0 ? rc : 0;
}

/* All gradients are in. What was sent of a sum that was computed anew since is sent once more, as the others are to add up what this
 * host does; where sums are rounded, it adds up what it has sent. */
static void send_rest(struct shmt_exchange *x) {
    const bool early = x->sent_from < x->n_blocks;
    const bool anew = early && (x->anew || !x->at.backend->far->holds(x->seat, x->stamp)) && !rounds(x);
    x->stamp = 0;
    if (anew) send_blocks(x, x->sent_from, x->n_blocks, true);
    send_blocks(x, 0, x->sent_from, false);
}

/* ---- an epoch ---- */

static int exchange_batch(struct shmt_exchange *x, const struct shmt_far_batch *batch) {
    if (batch->number != x->number) shmt_fail(&x->error, SHMTRAIN_E_USAGE, "the link has lost its place");
    x->step = batch->step;
    x->stamp = 0;
    x->sent_from = x->n_blocks;
    x->anew = false;
    shmt_exchange_open(x, false);
    int rc = send_ready(x);
    if (rc == 0) rc = x->at.backend->far->gather(x->seat);
    if (rc < 0) return rc;
    x->stop = rc == 1;
    shmt_exchange_does(x, SHMT_EVENT_EXCHANGE);
    if (x->error.status == 0) send_pieces(x);
    if (x->error.status == 0) send_lists(x);
    if (x->error.status == 0) send_rest(x);
    shmt_exchange_close(x);
    return x->error.status != 0 ? x->error.status : x->at.backend->far->publish(x->seat, x->stop);
}

static int epoch(struct shmt_exchange *x) {
    struct shmt_far_batch batch;
    int rc;
    while ((rc = x->at.backend->far->claim(x->seat, &batch)) == 1)
        if ((rc = exchange_batch(x, &batch)) < 0) break;
    return rc;
}

/* Room for what rounding leaves of each own sum and of terms, and for the values of one list. */
static int plan_rounding(struct shmt_exchange *x) {
    const uint64_t floats = (x->n_own + 1) * x->n_blocks * SHMT_FAR_BLOCK;
    if (!shmt_spec_rounds_sums(x->at.spec)) return 0;
    x->left = calloc(floats + 1, sizeof *x->left);
    x->rounded = malloc((shmt_flat_terms(x->at.spec) + 1) * sizeof *x->rounded);
    return x->left && x->rounded ? 0 : shmt_no_memory(&x->error, "for what rounding leaves of gradients");
}

static int plan(struct shmt_exchange *x) {
    const struct shmt_spec *spec = x->at.spec;
    struct shmt_subtree node[SHMT_MAX_HOSTS * SHMT_MAX_STACK];
    uint32_t host[SHMT_MAX_HOSTS * SHMT_MAX_STACK];
    struct shmt_stack stack;
    uint32_t from, to, height;
    shmt_chunk_share(spec->n_chunks, spec->hosts.self, spec->hosts.n, &from, &to);
    shmt_stack_after(from, to, false, &stack, &height);
    x->n_own = stack.n;
    memcpy(x->own, stack.at, stack.n * sizeof *stack.at);
    const uint32_t n_nodes = shmt_far_nodes(spec->n_chunks, spec->hosts.n, shmt_spec_far_without(spec), node, host);
    for (uint32_t k = 0; k < n_nodes; k++) x->first_node[host[k] + 1] = k + 1;
    for (uint32_t h = 0; h < spec->hosts.n; h++)
        if (x->first_node[h + 1] < x->first_node[h]) x->first_node[h + 1] = x->first_node[h];
    x->number = (uint64_t)spec->first_epoch * shmt_spec_steps(spec) + spec->first_step;
    return plan_rounding(x);
}

static void release(struct shmt_exchange *x) {
    free(x->left);
    free(x->rounded);
}

const struct shmt_turns SHMT_TURNS_BATCHES = {
    .plan = plan, .free = release, .take = take, .most_bytes = most_bytes, .behind = SHMT_EVENT_WAIT, .epoch = epoch};
