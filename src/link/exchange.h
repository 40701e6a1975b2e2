/* Batches over many hosts: the body of the link, at the seat that it has in its host's store (ps/far.h).
 *
 * For each batch every host sends the sums of its own subtrees to every other host, with the losses of its chunks and whether it wants
 * to stop (an all-gather). Each then adds up all of them along the same tree, and applies the same update: the parameters are those of
 * one host, bit by bit, and no host has anything that the others lack. A batch is applied by a host only when it has the sums of all; it
 * ends the run behind it if one of them wanted that. Zero blocks are not sent.
 *
 * A host that has all of a batch may begin the next one while others still receive: what it sends about that is kept until they are
 * there, which is one batch at most, because it cannot get further without them. */
#pragma once

#include "link/agree.h"
#include "link/lanes.h"
#include "ps/far.h"
#include "ps/spec.h"

struct shmt_exchange_place {
    const struct shmt_backend *backend; /* one with `far` */
    struct shmt_store *store;
    const struct shmt_spec *spec; /* with other hosts, the same as everywhere but for its own rank and workers */
    struct shmt_lanes *lanes;
    struct shmt_agreement *agreement; /* of these lanes; all its rounds are over */
    uint64_t start_ns;                /* how long to wait for hosts that are not ready yet */
    bool (*goes_on)(void *arg); /* asked every few milliseconds; false: the run of this host has been given up. May be NULL */
    void *arg;
    uint32_t bucket; /* batches: at least so many blocks are sent at a time before all gradients are in; 0: SHMT_FAR_BUCKET */
    bool begins;     /* the workers meet before their first work, */
    bool scores;     /* ... and once more at the end of each epoch, behind their parts of the validation data */
    uint32_t
        *ender_out; /* the rank of a host that wanted the run to end before its last turn; the first of several. May be NULL;
                            left alone where there is none */
};

/* Takes the link's seat, and leaves it when the run is over: 0; or a status with its sentence: _DIED when another host is lost, _STOPPED
 * when this one's run was given up. In both cases this host's run has been given up. */
int shmt_exchange_run(const struct shmt_exchange_place *place, struct shmt_error *e);
