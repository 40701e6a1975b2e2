/* One pass over a source whose parts come one after the other (shmt_source_flows): packed files, what comes through pipes, several
 * files. Counting, or filling.
 *
 * Any number of threads call _count (or _fill) until it returns 0: each takes the next chunk of text, whole lines, and goes
 * through it while the others take theirs. Taking it from one file is for one thread at a time, because unpacking is; of several
 * files, several are unpacked at one time. What is found does not depend on who has taken what: parts come in the order of their
 * text, and chunks of a file are the same in each pass. */
#pragma once

#include "data/source.h"

struct shmt_flow;

/* *stop other than 0 ends all. A source that is_once can be opened once. Errors: _MEMORY. */
int shmt_flow_open(const struct shmt_source *source, const _Atomic uint32_t *stop, struct shmt_flow **out,
                   struct shmt_error *e);
void shmt_flow_close(struct shmt_flow *flow); /* NULL is fine */

/* Counts the next chunk, as shmt_source_count. 1: there may be more; what is wrong with it stands in its part. 0: that was all.
 * Errors: _MEMORY, _STOPPED. */
int shmt_flow_count(struct shmt_flow *flow, const struct shmt_columns *columns, struct shmt_row_buffer *rows,
                    struct shmt_error *e);

/* What was counted, in the order of the text: *parts_out (*n_out) is the caller's, to be freed. One thread, when all are done.
 * Errors: _MEMORY. */
int shmt_flow_take_parts(struct shmt_flow *flow, struct shmt_part **parts_out, uint32_t *n_out, struct shmt_error *e);

/* Fills in the next chunk, as shmt_source_fill. 1, 0: as above. Errors: those of shmt_source_fill, and _STOPPED. */
int shmt_flow_fill(struct shmt_flow *flow, struct shmt_part *parts, uint32_t n_parts, const struct shmt_arrays *into,
                   struct shmt_error *e);

/* Whether all parts were filled. One thread, when all are done. Errors: _DATA: there is less than was counted. */
int shmt_flow_check(const struct shmt_flow *flow, uint32_t n_parts, struct shmt_error *e);
