/* Chunks of a batch and the tree over them: see chunks.h. */
#include "consistency/chunks.h"

#include <string.h>

#define FEWEST_CHUNKS  8u
#define CHUNK_EXAMPLES 128u

uint32_t shmt_chunks_of_batch(uint32_t batch) {
    const uint32_t wanted = batch / CHUNK_EXAMPLES > FEWEST_CHUNKS ? batch / CHUNK_EXAMPLES : FEWEST_CHUNKS;
    const uint32_t most = wanted < batch ? wanted : batch;
    uint32_t chunks = 1;
    while (2 * chunks <= most && chunks < SHMT_MAX_CHUNKS) chunks *= 2;
    return chunks;
}

static uint64_t cut(uint32_t batch, uint32_t n_chunks, uint32_t chunk) { return (uint64_t)batch * chunk / n_chunks; }

void shmt_chunk_examples(uint32_t batch, uint32_t n_chunks, uint32_t chunk, uint64_t n, uint64_t *from_out, uint64_t *to_out) {
    const uint64_t from = cut(batch, n_chunks, chunk), to = cut(batch, n_chunks, chunk + 1);
    *from_out = from < n ? from : n;
    *to_out = to < n ? to : n;
}

void shmt_chunk_share(uint32_t n_chunks, uint32_t seat, uint32_t n_seats, uint32_t *from_out, uint32_t *to_out) {
    *from_out = (uint32_t)((uint64_t)n_chunks * seat / n_seats);
    *to_out = (uint32_t)((uint64_t)n_chunks * (seat + 1) / n_seats);
}

void shmt_chunk_share_of_host(uint32_t n_chunks, uint32_t host, uint32_t n_hosts, uint32_t seat, uint32_t n_seats,
                              uint32_t *from_out, uint32_t *to_out) {
    uint32_t from, to;
    shmt_chunk_share(n_chunks, host, n_hosts, &from, &to);
    shmt_chunk_share(to - from, seat, n_seats, from_out, to_out);
    *from_out += from;
    *to_out += from;
}

void shmt_stack_push(struct shmt_stack *stack, uint32_t chunk) {
    stack->at[stack->n] = (struct shmt_subtree){.first = chunk, .level = 0};
    stack->n++;
}

bool shmt_stack_may_merge(const struct shmt_stack *stack) {
    if (stack->n < 2) return false;
    const struct shmt_subtree left = stack->at[stack->n - 2], right = stack->at[stack->n - 1];
    const uint32_t width = 1u << left.level;
    return left.level == right.level && left.first % (2 * width) == 0 && right.first == left.first + width;
}

void shmt_stack_merge(struct shmt_stack *stack) {
    stack->n--;
    stack->at[stack->n - 1].level++;
}

static void merge_all(struct shmt_stack *stack) {
    while (shmt_stack_may_merge(stack)) shmt_stack_merge(stack);
}

void shmt_stack_after(uint32_t from, uint32_t to, bool late, struct shmt_stack *out, uint32_t *height_out) {
    uint32_t height = 0;
    memset(out, 0, sizeof *out);
    out->late = late;
    for (uint32_t chunk = from; chunk < to; chunk++) {
        if (late) merge_all(out);
        shmt_stack_push(out, chunk);
        if (out->n > height) height = out->n;
        if (!late) merge_all(out);
    }
    *height_out = height;
}

uint32_t shmt_far_nodes(uint32_t n_chunks, uint32_t n_hosts, uint32_t without, struct shmt_subtree *out, uint32_t *host_out) {
    uint32_t n = 0;
    for (uint32_t host = 0; host < n_hosts; host++) {
        struct shmt_stack stack;
        uint32_t from, to, height;
        if (host == without) continue;
        shmt_chunk_share(n_chunks, host, n_hosts, &from, &to);
        shmt_stack_after(from, to, false, &stack, &height);
        for (uint32_t k = 0; k < stack.n; k++, n++) {
            out[n] = stack.at[k];
            if (host_out) host_out[n] = host;
        }
    }
    return n;
}
