/* Runs over many hosts on fibers: each host has a store and workers of its own, and a link; all of them are fibers of one thread, on a
 * network that loses, repeats and reorders frames (src/carriers/loop.h). For tests of the link. */
#pragma once

#include "conformance.h"

#include "link/parcel.h"
#include "carriers/loop.h"
#include "link/exchange.h"
#include "sync/host.h"

#define MOST_HOSTS   4
#define MOST_WORKERS 3
#define MOST_EPOCHS  3
#define TRACED       200 /* events of a link that are kept, where a spec asks for any */
#define MS           UINT64_C(1000000)
#define MOST_NS      (UINT64_C(10000000) * MS) /* with losses each of a thousand batches may take some seconds */

struct host {
    struct shmt_spec spec;
    struct shmt_store *store;
    struct shmt_lanes *lanes;
    struct shmt_error error[MOST_WORKERS + 1]; /* of workers, and of the link */
    int status[MOST_WORKERS + 1];
    double loss[MOST_EPOCHS]; /* as the chief has seen them */
    uint64_t examples[MOST_EPOCHS], lost[MOST_EPOCHS];
    uint32_t n_epochs;
    uint64_t sent_bytes;         /* by its link */
    uint32_t life[MOST_WORKERS]; /* of each worker: how often it has died */
};

struct world {
    uint64_t seed, draws, n_runs;
    int (*work)(struct host *h, shmtrain_session *s);                         /* of each worker */
    int (*epoch_end)(struct shmtrain_session *s, void *host, uint32_t epoch); /* NULL: note_epoch */
    void (*lie)(struct shmt_lanes *lanes);      /* in the place of its part of the exchange; NULL: all are honest. Of ... */
    uint32_t liar;                              /* ... this host, of two; 1 unless said otherwise */
    const struct shmt_backend *backend_of_link; /* NULL: that of all */
    uint32_t bucket;                            /* of links; 0: the usual one */
    bool mixes;                                 /* batches: some hosts have equal copies, others not (make_hosts) */
    bool begins;                                /* workers meet before their first work */
    uint32_t n;
    uint32_t rounds; /* that they agree in before they begin */
    struct shmt_loop *loop;
    struct host host[MOST_HOSTS];
    uint32_t stops; /* the host that asks for an end in the middle of the run; MOST_HOSTS: none */
    uint32_t cut;   /* the host whose cables are cut at cut_ns, for good; MOST_HOSTS: none */
    uint64_t cut_ns;
    uint32_t absent;     /* the host that does not come; MOST_HOSTS: none */
    uint32_t fails;      /* the host one of whose workers fails in the middle of the run; MOST_HOSTS: none */
    uint32_t slow;       /* the host one of whose batches takes longer than silence may; MOST_HOSTS: none */
    uint32_t restarts;   /* the host whose link starts anew at cut_ns, while the others count on it; MOST_HOSTS: none */
    uint32_t kills;      /* of workers, of any host at any time, that are still to come; each goes on with another life */
    uint64_t kill_steps; /* at most so many steps of fibers lie between two of them; 0: 4000 */
    uint64_t began_ns, took_ns;
};

extern struct world g;

/* A message that a liar sends: the head, and the first number of each entry. */
struct lie {
    enum shmt_parcel_kind kind; /* 0: none */
    uint32_t of, n;
    uint64_t number, entry[8];
    bool flag, halves;
};

/* To the other host of two. */
void send_lie(struct shmt_lanes *lanes, struct shmt_payload *payload);
void tell_lies(struct shmt_lanes *lanes, const struct lie *lie, size_t n);

/* As the chief sees the epoch. */
int note_epoch(struct shmtrain_session *s, void *host, uint32_t epoch);

_Noreturn void give_up(const char *why);
void must(bool holds, const char *what); /* or the test fails, and says with which seed */
uint64_t draw(uint64_t below);
void begin_seed(uint64_t seed); /* nothing happens to anybody */

void make_hosts(const struct shmt_spec *spec, uint32_t n);
struct shmt_loop_spec hostile_network(void);
void run(const struct shmt_loop_spec *network);
void destroy_hosts(void);

void give_up_host(const struct host *h); /* as a supervisor does */
float *parameters_of(const struct host *h);
uint64_t bits_of(double x);

/* All have ended well, with the same epochs, examples, losses and parameters, bit by bit. */
void compare(const struct host *h, const struct host *one, const float *expected);

/* What the trace of a link says: in the order of turns, one thing after the other, and no byte counts twice. */
void check_trace(const struct host *h);

/* Of such a spec, some hosts with 300 items, and `further_rows` rows behind those of examples: one of them asks for an end in the middle of
 * the first epoch, and the run ends with that. */
void run_to_a_stop(struct shmt_spec *spec, uint64_t further_rows);

/* Of three hosts, host 1 is lost in the middle of the run that the spec describes, or else one of its workers fails: the others' runs
 * end, and say why. The run has to last for more than 100 ms. */
void check_that_a_host_which_goes_ends_the_run(const struct shmt_spec *spec, bool lost);
