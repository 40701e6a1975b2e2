/* Operations on collectives that are drawn from a seed, the same for all members, and what they come to. For tests; shared by those
 * whose members are threads and processes, and those of fibers. */
#pragma once

#include "collective_help.h"

struct draw {
    struct shmt_coll_op op;
    uint32_t type;
    bool in_place, lent, started;
    uint64_t number;
};

/* Memory of a member, for every operation the same. */
struct buffers {
    unsigned char *in, *out, *lent_in, *lent_out;
};
enum { ROOM = 1000 * MOST * 8 };

bool is_rooted(uint32_t kind);

/* Whether a group of so many members has the algorithm for the kind. */
bool has_algorithm(uint32_t kind, uint32_t algorithm, uint32_t members);

/* Makes my part of the operation and holds the result against the reference; false: an error, or a complaint was made. */
bool run_one(struct hall *hall, struct shmt_coll *c, struct draw *d, const struct buffers *b);

/* A scene: all kinds of operations in all kinds of groups. */
void play_all(struct hall *hall, struct shmt_coll *c);

/* Frees what members have not freed who did not come to the end of it. */
void clear_stage(void);
