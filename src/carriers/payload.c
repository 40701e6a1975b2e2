/* Counted bytes: see payload.h. */
#include "carriers/payload.h"

#include <stddef.h>
#include <stdlib.h>

/* Not memory of a life (base/own.h): the carrier's threads, and other fibers, may be the last to hold it. */
static void free_own(struct shmt_payload *payload, void *arg) {
    (void)arg;
    free(payload);
}

static void begin(struct shmt_payload *payload, const unsigned char *bytes, uint64_t n,
                  void (*done)(struct shmt_payload *payload, void *arg), void *arg) {
    *payload = (struct shmt_payload){.bytes = bytes, .n = n, .done = done, .arg = arg};
    store_relaxed(&payload->references, 1); /* relaxed: nobody else has it yet */
}

struct shmt_payload *shmt_payload_make(uint64_t n, unsigned char **bytes_out) {
    struct shmt_payload *payload = n <= SIZE_MAX - sizeof *payload ? malloc(sizeof *payload + n) : NULL;
    if (!payload) return NULL;
    *bytes_out = (unsigned char *)(payload + 1);
    begin(payload, *bytes_out, n, free_own, NULL);
    return payload;
}

void shmt_payload_borrow(struct shmt_payload *payload, const void *bytes, uint64_t n,
                         void (*done)(struct shmt_payload *payload, void *arg), void *arg) {
    begin(payload, bytes, n, done, arg);
}

struct shmt_payload *shmt_payload_hold(struct shmt_payload *payload) {
    if (payload) (void)take_relaxed(&payload->references, 1); /* relaxed: the caller's own reference keeps it alive */
    return payload;
}

void shmt_payload_drop(struct shmt_payload *payload) {
    /* release: I have read the bytes; acquire, for the last one: all others have. It pairs with itself. */
    if (payload && drop_acq_rel(&payload->references, 1) == 1) payload->done(payload, payload->arg);
}
