/* Schedulers that mean harm, for workers that are fibers: at each labelled point (base/point.h) a strategy says how long the others may go
 * on before this one does. By chance; or the longer the rarer the point is; or one of them is always last; or all wait at one point. */
#pragma once

#include <stdint.h>

/* Seed and number of workers say all that follows. */
void hostile_begin(uint64_t seed, uint32_t workers);

/* In virtual nanoseconds; 0: it goes on at once. *passed_out (may be NULL): how many times the point was passed, this one with it. */
uint64_t hostile_delay(const char *point, uint32_t who, uint64_t *passed_out);

/* What the environment has for a variable; else `standard`. */
uint64_t hostile_asked(const char *variable, uint64_t standard);

/* The next number of the seed's, below that. */
uint64_t hostile_draw(uint64_t below);
