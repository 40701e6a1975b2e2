/* Agreement: every host says something, and then has what each of them has said (an all-gather of small texts, on channel
 * SHMT_CHANNEL_AGREE; docs/wire.md). Used before stores are made, so that hosts whose data or options differ find out before they work.
 *
 * Rounds are numbered from 1, and all hosts do the same rounds. A host has a text of everybody when a round is over, but it does not know
 * that the others have: they may still be in it. So batches begin with READY (shmt_agreement_ready): who is ready takes messages about
 * batches, and who has heard it from all may send some.
 *
 * One thread, the one that owns the lanes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "link/lanes.h"

#define SHMT_CHANNEL_AGREE 0
#define SHMT_MOST_AGREED   65536 /* bytes of a text */

struct shmt_agreement;

/* `goes_on` is asked every few milliseconds of a wait, and ends it by returning false; NULL: nobody is asked. Errors: _MEMORY. */
int shmt_agreement_make(struct shmt_lanes *lanes, uint32_t self, uint32_t n_hosts, bool (*goes_on)(void *arg), void *arg,
                        struct shmt_agreement **out, struct shmt_error *e);
void shmt_agreement_free(struct shmt_agreement *agreement); /* NULL: nothing is done */

/* The next round. Waits for hosts that have not come until start_ns have passed; whoever has come, until it is lost. Errors: _DIED: a host
 * has not come, is lost or has restarted; _USAGE: what it says makes no sense; _STOPPED: `goes_on` said no; _MEMORY; of the carrier. */
int shmt_agreement_gather(struct shmt_agreement *agreement, const void *text, uint32_t n, uint64_t start_ns,
                          struct shmt_error *e);

/* What host `rank` has said in the round that is over, valid until the next one. */
const unsigned char *shmt_agreement_text(const struct shmt_agreement *agreement, uint32_t rank, uint32_t *n_out);

/* Tells the others that this host takes messages about batches from now on. */
int shmt_agreement_ready(struct shmt_agreement *agreement, struct shmt_error *e);

/* Whether all others have said so. */
bool shmt_agreement_all_ready(const struct shmt_agreement *agreement);

/* Takes what comes within a few milliseconds, between two rounds. Errors as of gather. */
int shmt_agreement_idle(struct shmt_agreement *agreement, struct shmt_error *e);

/* A message that came on channel SHMT_CHANNEL_AGREE to somebody else; it is released. Errors as above. */
int shmt_agreement_take(struct shmt_agreement *agreement, struct shmt_message *message, struct shmt_error *e);

/* Nobody who has come is lost, or has restarted. _DIED */
int shmt_agreement_check_peers(struct shmt_agreement *agreement, struct shmt_error *e);
