/* How a batch is cut into chunks, who computes which, and in which order their gradients are added.
 *
 * The batch is cut into C chunks, C a power of two that follows from the configuration alone. Gradients are added along the
 * complete binary tree over chunks 0 .. C-1, whoever computed them, so the sum has the same bits for every number of workers. A
 * worker gets neighbouring chunks and adds the complete subtrees among them as it goes, on a stack: at most log2 C + 1 buffers.
 * What stands on the stack in the end is the same for all who know the range, so the others can find it without being told. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHMT_MAX_CHUNKS 1024
#define SHMT_MAX_STACK  24 /* at least 2 log2(SHMT_MAX_CHUNKS) + 1 */

/* The number of chunks for a batch of `batch` examples where nobody asks for another: 8, so that 8 workers have work, and from
 * 2,048 examples on one for 128 to 255 of them; at most SHMT_MAX_CHUNKS, never more than examples. Adding two sparse gradients
 * costs as much as computing dozens of examples, so chunks are no smaller than they must be. */
uint32_t shmt_chunks_of_batch(uint32_t batch);

/* Examples of chunk `chunk`, counted from the first example of a batch that has n examples (the last one of an epoch may be
 * short, its cuts stay where they are): from *from_out to before *to_out; empty when equal. */
void shmt_chunk_examples(uint32_t batch, uint32_t n_chunks, uint32_t chunk, uint64_t n, uint64_t *from_out, uint64_t *to_out);

/* The chunks of one of n_seats workers: from *from_out to before *to_out. */
void shmt_chunk_share(uint32_t n_chunks, uint32_t seat, uint32_t n_seats, uint32_t *from_out, uint32_t *to_out);

/* The same where hosts share the batch, and the n_seats workers of each its part. */
void shmt_chunk_share_of_host(uint32_t n_chunks, uint32_t host, uint32_t n_hosts, uint32_t seat, uint32_t n_seats,
                              uint32_t *from_out, uint32_t *to_out);

/* A complete subtree: the chunks first .. first + 2^level - 1. */
struct shmt_subtree {
    uint32_t first, level;
};

/* The stack of subtrees that a worker has after some of its chunks; place i of the stack is buffer i. Start with {.late = ...}.
 * Siblings are added as soon as both are there, so that in the end few are left; or `late`, when the next chunk is put on the stack,
 * so that whoever adds up those of all workers adds the last ones as well, and nobody writes their sum. */
struct shmt_stack {
    uint32_t n;
    bool late;
    struct shmt_subtree at[SHMT_MAX_STACK];
};

/* Puts chunk `chunk` on the stack: its gradient is in buffer stack->n - 1 afterwards. */
void shmt_stack_push(struct shmt_stack *stack, uint32_t chunk);

/* True when the two topmost subtrees are siblings: add buffer n - 1 into buffer n - 2, then call shmt_stack_merge. To be asked again
 * until it is false: behind each chunk, or `late` before the next one is pushed. */
bool shmt_stack_may_merge(const struct shmt_stack *stack);
void shmt_stack_merge(struct shmt_stack *stack);

/* The stack after all chunks from .. to - 1, and the largest height that it had on the way (the buffers that are needed). */
void shmt_stack_after(uint32_t from, uint32_t to, bool late, struct shmt_stack *out, uint32_t *height_out);

/* The subtrees in which hosts exchange their sums: the largest ones of each host's chunks, in the order of hosts; without those of host
 * `without` (n_hosts: of all). out[k].first and .level; host_out[k] (may be NULL): whose it is. Their number, at most
 * n_hosts * SHMT_MAX_STACK. */
uint32_t shmt_far_nodes(uint32_t n_chunks, uint32_t n_hosts, uint32_t without, struct shmt_subtree *out, uint32_t *host_out);
