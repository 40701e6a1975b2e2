/* Joining ids by threads: see load_ids.h. What the phases are is ids_join.h's; each is a team of its own, whose end publishes
 * what it has found to the next one. */
#include "loading/load_ids.h"

#include "base/atomic.h"
#include "data/ids_join.h"
#include "workers/drive.h"

struct phase {
    int (*run)(struct shmt_ids_join *join, uint32_t part, struct shmt_error *e);
    struct shmt_ids_join *join;
    uint32_t n_parts;
    _Atomic uint32_t next;  /* part to be dealt. relaxed: what a part needs was there before the threads were */
    _Atomic uint32_t abort; /* relaxed: all go home */
};

static int work(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct phase *phase = arg;
    int rc = 0;
    (void)rank;
    (void)team;
    while (rc == 0) {
        const uint32_t part = take_relaxed(&phase->next, 1);
        if (part >= phase->n_parts) return 0;
        rc = phase->run(phase->join, part, e);
    }
    return rc;
}

static int run_phase(struct shmt_call *call, struct shmt_ids_join *join,
                     int (*run)(struct shmt_ids_join *join, uint32_t part, struct shmt_error *e)) {
    struct phase phase = {.run = run, .join = join, .n_parts = join->n_sets};
    const struct shmt_team_spec spec = {.kind = &SHMT_TEAM_THREADS,
                                        .n = join->n_sets,
                                        .body = work,
                                        .arg = &phase,
                                        .abort = &phase.abort,
                                        .what = "numbering ids"};
    join->stop = &phase.abort;
    const int rc = shmt_drive(call, &spec, &(struct shmt_driver){0});
    join->stop = NULL;
    return rc;
}

int shmt_load_join_ids(struct shmt_call *call, struct shmt_ids *set, uint32_t n, const char *name, struct shmt_ids *out) {
    struct shmt_ids_join join = {.set = set, .n_sets = n, .n_parts = n, .name = name};
    int rc = run_phase(call, &join, shmt_ids_join_sort);
    if (rc == 0) rc = shmt_ids_join_cut(&join, &call->error);
    if (rc == 0) rc = run_phase(call, &join, shmt_ids_join_merge);
    if (rc == 0) rc = shmt_ids_join_close(&join, &call->error);
    if (rc == 0) rc = run_phase(call, &join, shmt_ids_join_number);
    shmt_ids_join_end(&join);
    if (rc == 0)
        *out = join.out;
    else
        shmt_ids_free(&join.out);
    return rc;
}
