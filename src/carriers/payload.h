/* Counted bytes: the body of a frame. Whoever sends it keeps a reference until the frame is acknowledged, and the carrier one until
 * it has handed the bytes on; the last one to drop its reference frees them. Nothing is copied for a repetition.
 *
 * The count may be changed by any thread; the bytes do not change while more than their maker has a reference. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

struct shmt_payload {
    const unsigned char *bytes;
    uint64_t n;
    void (*done)(struct shmt_payload *payload, void *arg); /* called for the last reference; it may free the payload */
    void *arg;
    _Atomic uint32_t references;
};

/* n bytes of its own, behind the struct, to be filled through *bytes_out, and one reference; NULL: not enough memory. */
struct shmt_payload *shmt_payload_make(uint64_t n, unsigned char **bytes_out);

/* Bytes that lie somewhere else, and stay there unchanged until `done` is called: one reference. */
void shmt_payload_borrow(struct shmt_payload *payload, const void *bytes, uint64_t n,
                         void (*done)(struct shmt_payload *payload, void *arg), void *arg);

struct shmt_payload *shmt_payload_hold(struct shmt_payload *payload); /* NULL: nothing is done, in either */
void shmt_payload_drop(struct shmt_payload *payload);
