/* For tests of plans: stores with options, and plans for machines that we do not have (HWLOC_SYNTHETIC: 4 nodes, 16 cores, 2
 * threads). */
#pragma once

#include "api_help.h"

#include <stdint.h>
#include <stdio.h>

#define BIG    "numa:4(memory=4GiB) core:16 pu:2"
#define SPARSE "builtin:sparse:examples=8000,features=100000,nonzeros=5"
#define GIB    ((uint64_t)1 << 30)

static char notes[1024];

static inline void note(void *arg, const char *line) {
    (void)arg;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", line);
}

/* A store with pairs "option", "value", ..., NULL. */
static inline struct shmtrain_store *store_with(const char *const *option) {
    static const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = note};
    struct shmtrain_store *store;
    notes[0] = '\0';
    assert_int_equal(shmtrain_store_create(&store), 0);
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_set(store, "valid", "none"));
    for (; *option; option += 2) WELL(store, shmtrain_store_set(store, option[0], option[1]));
    return store;
}

#define OPTIONS(...) \
    (const char *const[]) { __VA_ARGS__, NULL }

static inline const struct shmtrain_plan *plan_on(struct shmtrain_store *store, const char *machine, const char *data) {
    const struct shmtrain_plan *plan;
    if (machine) setenv("HWLOC_SYNTHETIC", machine, 1);
    const int rc = shmtrain_store_plan(store, data, &plan);
    unsetenv("HWLOC_SYNTHETIC");
    if (rc < 0) fail_msg("%s", shmtrain_store_message(store));
    return plan;
}
