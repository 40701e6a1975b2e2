/* A host of a run over two that says what it cannot: by the messages of src/link/parcel.h, in each family of modes. The other host's link
 * ends its run with a sentence that names the liar, its workers are not left waiting, and nothing outside of the store is touched. */
#include "deadline.h"
#include "hosts_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/parcel.h"

#define ITEMS    16
#define EXAMPLES (2 * ITEMS)

enum mode { BATCHES, ROUNDS, SSP, MERGES, QUORUMS };

struct liar {
    const char *what; /* that is said of it */
    enum mode mode;
    struct lie lie[4];
};

static const struct liar *told;

static int work(struct host *h, shmtrain_session *s) {
    struct shmtrain_work w;
    const float up = 1;
    int rc;
    (void)h;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        rc = shmtrain_push(s, 0, w.first, 1, &up);
        shmtrain_report(s, 1);
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

static void tell(struct shmt_lanes *lanes) { tell_lies(lanes, told->lie, sizeof told->lie / sizeof *told->lie); }

static void tell_nonsense(struct shmt_lanes *lanes) {
    unsigned char *bytes;
    struct shmt_payload *payload = shmt_payload_make(40, &bytes);
    must(payload != NULL, "no memory for a lie");
    memset(bytes, 0xa5, 40);
    send_lie(lanes, payload);
}

static struct shmt_spec spec_for(enum mode mode) {
    struct kase k = {.policy = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF, .quorum = SHMT_QUORUM_ALL},
                     .n_seats = 1};
    if (mode == SSP) k.policy.staleness = 2;
    if (mode == BATCHES || mode == QUORUMS) {
        k.policy.write = SHMT_WRITE_AGGREGATE;
        k.policy.staleness = 0;
    }
    if (mode == QUORUMS) k.policy.quorum = 1;
    if (mode == MERGES) {
        k.policy.replicas = SHMT_REPLICAS_WORKER;
        k.policy.staleness = 0;
        k.policy.merge_every = 2;
    }
    struct shmt_spec spec = spec_of(&k, EXAMPLES, EXAMPLES, 1);
    spec.epochs = 1;
    spec.item = 1;
    if (mode == BATCHES) {
        spec.batch = 8;
        spec.n_chunks = 4;
    }
    spec.order.shuffle = false;
    return spec;
}

/* By the other host. */
static void is_refused(enum mode mode, uint32_t liar, const char *what, void (*lie)(struct shmt_lanes *lanes)) {
    const struct host *victim = &g.host[1 - liar];
    char expected[200];
    const struct shmt_loop_spec network = {.n_hosts = 2, .delay_ns = MS / 10, .port_bytes = UINT64_C(8) << 20};
    begin_seed(1);
    g.work = work;
    g.begins = mode != BATCHES;
    g.lie = lie;
    g.liar = liar;
    const struct shmt_spec spec = spec_for(mode);
    make_hosts(&spec, 2);
    if (mode == QUORUMS) g.host[0].spec.policy.quorum = g.host[1].spec.policy.quorum = 1; /* the liar's workers never come */
    run(&network);
    snprintf(expected, sizeof expected, "host %u %s", liar, what);
    const char *said = victim->error[MOST_WORKERS].text;
    if (strcmp(said, expected) != 0) fprintf(stderr, "expected: %s\nsaid: %s\n", expected, said);
    must(strcmp(said, expected) == 0, "a lie is believed, or taken for another one");
    must(victim->status[MOST_WORKERS] == SHMTRAIN_E_USAGE, "a lie has another status");
    for (uint32_t k = 0; k < victim->spec.n_seats; k++)
        must(victim->status[k] == SHMTRAIN_E_STOPPED, "a worker is left waiting");
    destroy_hosts();
}

#define ROUND(state) \
    { .kind = SHMT_PARCEL_ROUND, .of = (state), .n = SHMT_ROUND_NUMBERS }
#define PASSED(host, ...)                                                          \
    {                                                                              \
        .kind = SHMT_PARCEL_PASSED, .of = (host), .n = 1, .entry = { __VA_ARGS__ } \
    }
#define BLOCKS(...)                                                                                                     \
    {                                                                                                                   \
        .kind = SHMT_PARCEL_BLOCKS, .n = sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), .entry = { __VA_ARGS__ } \
    }
#define END \
    { .kind = SHMT_PARCEL_END }
#define WORDS(k, words, count, ...)                                        \
    {                                                                      \
        .kind = (k), .of = (words), .n = (count), .entry = { __VA_ARGS__ } \
    }

/* Members of host 0, and of host 1. */
#define DECIDED(round, examples, end_for, in0, in1) WORDS(SHMT_PARCEL_DECIDED, 1, 6, round, 0, examples, end_for, in0, in1)
#define NO_ROUND(...)                                                       \
    {                                                                       \
        "decides on a round that there cannot be", QUORUMS, { __VA_ARGS__ } \
    }
#define OVER(in)                                                                                        \
    {                                                                                                   \
        .kind = SHMT_PARCEL_DECIDED, .of = 1, .n = 6, .flag = true, .entry = { 0, 0, (in), 0, (in), 0 } \
    }

static const struct liar LIARS[] = {
    {"is at another batch", ROUNDS, {{.kind = SHMT_PARCEL_ROUND, .n = SHMT_ROUND_NUMBERS, .number = 5}}},
    {"goes on behind the end of a batch", ROUNDS, {ROUND(SHMT_ROUND_WORKS), END, END}},
    {"ends the run at another batch", ROUNDS, {ROUND(SHMT_ROUND_WORKS), {.kind = SHMT_PARCEL_OVER, .number = 7}}},
    {"begins a round in the middle", ROUNDS, {BLOCKS(0)}},
    {"begins a round twice", ROUNDS, {ROUND(SHMT_ROUND_WORKS), ROUND(SHMT_ROUND_WORKS)}},
    {"begins a round that there is not", ROUNDS, {ROUND(3)}},
    {"begins a round that there is not", SSP, {ROUND(SHMT_ROUND_OUT)}},
    {"has sent changes of parameters that there are not, or not in order", ROUNDS, {ROUND(SHMT_ROUND_WORKS), BLOCKS(1)}},
    {"has sent changes of parameters that there are not, or not in order",
     ROUNDS,
     {ROUND(SHMT_ROUND_WORKS), BLOCKS(0), BLOCKS(0)}},
    {"has rounded changes that are to be sent as they are",
     ROUNDS,
     {ROUND(SHMT_ROUND_WORKS), {.kind = SHMT_PARCEL_BLOCKS, .n = 1, .halves = true}}},
    {"has sent a message of another kind of run", ROUNDS, {ROUND(SHMT_ROUND_WORKS), {.kind = SHMT_PARCEL_TERMS, .n = 1}}},
    {"says that it has done other items than its own", ROUNDS, {ROUND(SHMT_ROUND_WORKS), {.kind = SHMT_PARCEL_PIECES, .n = 1}}},
    {"says that it has done other items than its own",
     ROUNDS,
     {ROUND(SHMT_ROUND_RESTS), {.kind = SHMT_PARCEL_PIECES, .of = ITEMS, .n = 1}}},
    {"has done another number of examples than an item has",
     ROUNDS,
     {ROUND(SHMT_ROUND_RESTS), {.kind = SHMT_PARCEL_PIECES, .n = 1, .entry = {2}}}},
    {"passes on items that are not its own", ROUNDS, {PASSED(0, 1)}}, /* before the round */
    {"passes on items that are not its own", ROUNDS, {ROUND(SHMT_ROUND_WORKS), PASSED(0, 0)}},
    {"passes on items that are not its own", ROUNDS, {ROUND(SHMT_ROUND_WORKS), PASSED(0, UINT64_MAX)}},
    {"passes on items that are not its own", ROUNDS, {ROUND(SHMT_ROUND_WORKS), PASSED(1, 1)}},
    {"passes on items that are not its own", ROUNDS, {ROUND(SHMT_ROUND_WORKS), PASSED(2, 1)}},
    {"passes on items that are not its own", SSP, {ROUND(SHMT_ROUND_WORKS), PASSED(0, 1)}},
    {"passes on an item twice", ROUNDS, {ROUND(SHMT_ROUND_WORKS), PASSED(0, 1), PASSED(0, 1), END}},
    {"has sent changes of parameters that there are not, or not in order",
     MERGES,
     {ROUND(SHMT_ROUND_WORKS), {.kind = SHMT_PARCEL_PARTS, .n = 1, .entry = {99}}}},
    {"has sent a message of another kind of run", MERGES, {ROUND(SHMT_ROUND_WORKS), BLOCKS(0)}},
    {"begins a round that there is not", MERGES, {ROUND(SHMT_ROUND_OUT)}},
    {"ends a batch that it has not begun", BATCHES, {END}},
    {"says that it has done other parts of a batch than its own", BATCHES, {{.kind = SHMT_PARCEL_PIECES, .n = 2}}},
    {"has done another number of examples than its part of a batch has",
     BATCHES,
     {{.kind = SHMT_PARCEL_PIECES, .of = 2, .n = 2, .entry = {9, 2}}}},
    {"has sent a sum that is not its own", BATCHES, {{.kind = SHMT_PARCEL_BLOCKS, .of = 1, .n = 1}}},
    {"has sent a sum of parameters that there are not", BATCHES, {BLOCKS(1)}},
    {"has sent a list of terms that there cannot be", BATCHES, {{.kind = SHMT_PARCEL_TERMS, .of = 2, .n = 1}}},
    {"has sent a message of another kind of run", BATCHES, {ROUND(SHMT_ROUND_WORKS)}},
    {"says that workers have come to a round that there cannot be", QUORUMS, {WORDS(SHMT_PARCEL_CAME, 1, 6, 1, 0, 0, 1)}},
    {"says that workers have come to a round that there cannot be", QUORUMS, {WORDS(SHMT_PARCEL_CAME, 1, 5, 0, 0, 0, 1)}},
    {"says that workers have come to a round that there cannot be", QUORUMS, {WORDS(SHMT_PARCEL_CAME, 0, 4, 0, 0, 0, 1)}},
    {"decides on a round that there cannot be", QUORUMS, {WORDS(SHMT_PARCEL_DECIDED, 1, 6, 0, 0, 1, 0)}},
    {"begins a round in the middle", QUORUMS, {{.kind = SHMT_PARCEL_TERMS, .n = 1}}},
    {"begins a round in the middle", QUORUMS, {{.kind = SHMT_PARCEL_BLOCKS, .n = 1, .halves = true}}},
    {"has sent changes of parameters that there are not, or not in order", QUORUMS, {BLOCKS(0), BLOCKS(0)}},
    {"has sent changes of parameters that there are not, or not in order", QUORUMS, {BLOCKS(1)}},
    {"has sent gradients of workers that are in no round", QUORUMS, {BLOCKS(0), END}},
    {"ends an epoch where the others do not", QUORUMS, {ROUND(SHMT_ROUND_RESTS), END}}};

/* Host 0, which decides on rounds. */
static const struct liar DECIDERS[] = {
    {"ends an epoch where the others do not", QUORUMS, {DECIDED(0, 1, 0, 1, 0), ROUND(SHMT_ROUND_RESTS), END}},
    NO_ROUND(DECIDED(5, 1, 0, 1, 0)),
    NO_ROUND(DECIDED(0, 1, 3, 1, 0)),                          /* the run ends for a host that there is not */
    NO_ROUND(DECIDED(0, 2, 0, 1, 0)),                          /* more examples than an item has */
    NO_ROUND(DECIDED(0, 1, 0, 3, 0)),                          /* fewer than members */
    NO_ROUND(DECIDED(0, 1, 0, 0, UINT64_C(1) << 63)),          /* a worker that never came */
    NO_ROUND(DECIDED(0, 0, 0, 0, 0)),                          /* of nobody */
    NO_ROUND(OVER(1)),                                         /* of somebody where nobody has work */
    NO_ROUND(OVER(0)),                                         /* this host's workers have */
    NO_ROUND(WORDS(SHMT_PARCEL_DECIDED, 1, 5, 0, 0, 1, 0, 1)), /* host 1 is left out */
    NO_ROUND(DECIDED(0, 1, 0, 1, 0), DECIDED(0, 1, 0, 1, 0))};

static void are_refused(const struct liar *liars, size_t n, uint32_t host) {
    for (told = liars; told < liars + n; told++) is_refused(told->mode, host, told->what, tell);
}

static void what_a_host_cannot_say_ends_the_run_of_the_others(void **state) {
    (void)state;
    are_refused(LIARS, sizeof LIARS / sizeof *LIARS, 1);
    are_refused(DECIDERS, sizeof DECIDERS / sizeof *DECIDERS, 0);
}

static void a_message_that_makes_no_sense_ends_the_run_of_the_others(void **state) {
    (void)state;
    for (int mode = BATCHES; mode <= QUORUMS; mode++)
        for (uint32_t liar = 0; liar < 2; liar++)
            is_refused((enum mode)mode, liar, "has sent a message that makes no sense", tell_nonsense);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_a_host_cannot_say_ends_the_run_of_the_others, deadline),
        cmocka_unit_test_setup(a_message_that_makes_no_sense_ends_the_run_of_the_others, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
