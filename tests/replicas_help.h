/* What the tests of replicas in the shm backend share: runs of whole items that move a row by exactly 1, what must hold of all
 * copies, and reading parameters with their state. */
#pragma once

#include "conformance.h"

#include "backends/shm/replicas/replicas_priv.h"
#include "backends/shm/shm.h"
#include "ps/replicas.h"

enum { ITEM = 16, ITEMS = 60, EPOCHS = 3 }; /* examples of an item; items of an epoch, unless a test says so */

#define INF                      SHMT_STALENESS_INF
#define WORKER(write, s, h, how) ((struct shmt_policy){write, s, 0, SHMT_LATE_DROP, SHMT_REPLICAS_WORKER, h, how})
#define NODE(write, s, h, how)   ((struct shmt_policy){write, s, 0, SHMT_LATE_DROP, SHMT_REPLICAS_NODE, h, how})

struct kase case_of(struct shmt_policy policy, uint32_t n_seats, const struct shmt_team_kind *kind);

/* Whole items of a power of two of examples, at a rate of 1. Seats are on two nodes by turns, in name, where replicas are
 * nodes'. */
struct shmt_spec spec_of_items(const struct kase *k, uint64_t items, uint64_t rows);

struct shmt_rule rule_of(enum shmt_rule_kind kind);

/* Nobody goes on before all seats have begun an item number `mine` of theirs. The board's first words are used for that. */
void keep_step(const struct run *run, shmtrain_session *s, uint64_t mine);

/* Work: an item adds 1 to row 0, to its seat's row, and to the last row. In step: all do as much, if there is an item for
 * everybody each time. */
int add_ones(struct run *run, shmtrain_session *s);
int add_ones_in_step(struct run *run, shmtrain_session *s);

/* A run of that; fails the test where a push is lost, or copies differ when an epoch is over. */
void count_ones(struct shmt_policy policy, uint32_t n_seats, const struct shmt_team_kind *kind);

/* For run.epoch_end, when everybody rests: all copies are the master's, bases too, and that is what one sees. */
int check_copies(shmtrain_session *s, void *arg, uint32_t epoch);

/* The master's parameters, and behind them its state, in (1 + SHMT_MAX_PLANES) parts of as many floats as the table has rows;
 * what the rule does not keep is 0. */
void read_with_state(const struct run *run, float *out);

/* Of what was read so: no number, or less than 0 where the rule keeps squares, fails the test. */
void assert_state_is_possible(enum shmt_rule_kind rule, enum shmt_merge merge, uint64_t rows, const float *out);
