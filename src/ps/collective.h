/* Collectives of a session: the calls of <shmtrain/collective.h>, in the memory that the store has for them. */
#pragma once

#include "ps/spec.h"

/* The room that a run of a worker function gives to collectives, into spec->coll: of spec->n_seats workers, which may lend `lend_bytes`
 * each. None where guests may come, whom nobody waits for. */
void shmt_collective_plan(struct shmt_spec *spec, bool named, uint64_t lend_bytes);
