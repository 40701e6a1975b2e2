/* What the files of numa_probe share: counting checks, changing the machine for a moment, and looking where things are. */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stdint.h>

#include "topo/topo.h"

#define MOST_NODES 64

/* One line "ok WHAT" or "not ok WHAT"; `what` is formatted. */
void check(int good, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern const char *check_name; /* stands before each line */
extern unsigned n_failed;

/* ---- probe_look.c ---- */

/* Lines that a run has logged. */
struct notes {
    char text[4096];
};

/* Trains on `data`, and compares where shards, state, gradients and data lie, before the first step, with the plan that the
 * same options give. Prints checks. */
struct look {
    struct shmtrain_store *store; /* the one that trains */
    const struct shmtrain_plan *plan;
    struct shmt_topo *topo;
    struct notes notes;
    uint64_t page_bytes; /* that are expected; 0: not checked */
    int refused;         /* nothing can be asked or bound */
    int overflows;       /* a node is full: memory need not lie where the plan says */
    int looked;
};
void look_at_training(struct look *look, const char *data);

/* Pages of each node (MOST_NODES of them, by the plan's index) that lie wholly within a range; returns how many there are in
 * all. */
uint64_t pages_on(const struct look *look, const void *at, uint64_t bytes, uint64_t page, uint64_t *on);

/* The plan's index of a node. */
uint32_t index_of(const struct look *look, int32_t node);

/* ---- probe_workers.c ---- */

/* Runs a worker function of its own and compares on which processors it runs, and where it sees the parameters, with the
 * plan. */
void look_at_workers(struct look *look);

/* The same, while a process that was forked before joins by name, as a guest that has the next place. The store has one. */
void look_at_guest(struct look *look);

/* ---- probe_world.c ---- */

/* Takes memory of a node until so many MiB are free there; it stays taken until this process ends. */
void fill_node(uint32_t node, uint64_t mib_left);

/* A figure of /proc/meminfo, in KiB. */
uint64_t meminfo_kib(const char *key);
