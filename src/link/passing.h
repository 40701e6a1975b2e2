/* Items that hosts pass on to one another within an epoch (docs/architecture.md, "Many hosts"): those that are behind to those that are
 * ahead. Part of the rounds of the live modes. Each ROUND says how far its host is; so at the end of a round all know it of all, and each
 * plans the same (consistency/passing.h). In the next one a host that is behind takes items of its own that nobody has begun, and tells
 * all hosts whose they are now; these work on them from the end of that round on. An epoch is closed by the first round to which no host
 * comes with items left, or in which the run is asked to stop: until then workers without items wait for some. */
#pragma once

#include <stdbool.h>

#include "link/exchange_priv.h"

/* Sets x->passing, or leaves it NULL, where nothing is passed on. _MEMORY */
int shmt_passing_make(struct shmt_exchange *x);
void shmt_passing_free(struct shmt_exchange *x);

/* All that follows does nothing, or says what holds without, where x->passing is NULL. */

/* An epoch begins; it ends, and all rest. */
void shmt_passing_begin(struct shmt_exchange *x);
void shmt_passing_end(struct shmt_exchange *x);

/* Looks whether this host's workers have items: true: they have none, and wait for more, or rest. Counts for how long. */
bool shmt_passing_look(struct shmt_exchange *x);

/* Nobody passes on any more in this epoch, and workers have not come to rest yet. */
bool shmt_passing_is_closed(const struct shmt_exchange *x);

/* This host has items to give, as planned, or to a host that has begun to wait for some. */
bool shmt_passing_is_asked(const struct shmt_exchange *x);

/* How long this host's workers will take for the items that it has, about; 0: soon, or not known. */
uint64_t shmt_passing_left_ns(const struct shmt_exchange *x);

/* What this host says of itself in ROUND: its numbers from SHMT_ROUND_LEFT on. */
void shmt_passing_say(struct shmt_exchange *x, enum shmt_round_state state, uint64_t number[SHMT_ROUND_NUMBERS]);

/* As planned at the end of the last round. */
void shmt_passing_send(struct shmt_exchange *x);

/* PASSED of the round in hand; true: the message is kept. */
bool shmt_passing_keep(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel,
                       const struct shmt_message *message);

/* The round is over, to which this host came with `state`: what was passed on is whose it is now, and the next is planned. way_ns: how long
 * it took. */
void shmt_passing_settle(struct shmt_exchange *x, enum shmt_round_state state, uint64_t way_ns);

/* How many of shmt_exchange_items_of a host has to do: not those that it has given away. */
uint64_t shmt_passing_dealt(const struct shmt_exchange *x, uint32_t host);

/* What it was passed (n_out), in the order in which all hosts have it. */
const uint64_t *shmt_passing_received(const struct shmt_exchange *x, uint32_t host, uint64_t *n_out);

/* Of this epoch until now, while this host's workers were not out of items. */
uint64_t shmt_passing_busy_ns(const struct shmt_exchange *x);
