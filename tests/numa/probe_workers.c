/* Looking where workers run and what they see of the parameters, those that are forked and one that joins by name: see
 * probe.h. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "probe.h"

#define ROWS        65536
#define PAGE        4096
#define MOST_EPOCHS "20000" /* the run is stopped when the guest has been there */

/* What a worker sees of itself. */
struct spot {
    uint32_t cpu, node, n_allowed, on_plan_cpu;
    uint64_t on[MOST_NODES]; /* pages of the parameters, by node */
    _Atomic uint32_t done;   /* pairs with the application's look: release, acquire */
};

struct errand {
    struct look *look;
    struct shmt_place *place; /* of every seat, guests counted: what the plan begins with */
    struct spot *spot;        /* shared with the workers */
    uint32_t guest;           /* its rank; UINT32_MAX: none is waited for */
};

static int see(shmtrain_session *s, void *arg) {
    const struct errand *errand = arg;
    const uint32_t rank = shmtrain_rank(s);
    struct spot *spot = &errand->spot[rank];
    struct shmtrain_work work;
    const float *at;
    uint64_t stride;
    int live, rc;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || syscall(SYS_getcpu, &spot->cpu, &spot->node, NULL) != 0)
        return SHMTRAIN_E_SYSTEM;
    spot->n_allowed = (uint32_t)CPU_COUNT(&set);
    spot->on_plan_cpu = CPU_ISSET(errand->place[rank * errand->look->plan->n_threads].cpu, &set) != 0;
    if ((rc = shmtrain_view(s, 0, 0, ROWS, &at, &stride, &live)) < 0) return rc;
    (void)pages_on(errand->look, at, ROWS * sizeof *at, PAGE, spot->on);
    store_release(&spot->done, 1);
    while ((rc = shmtrain_next(s, &work)) == 1)
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    return rc;
}

static int is_used(const struct look *look, uint32_t i) {
    const struct shmtrain_plan_node *node = &look->plan->node[i];
    int any = 0, here = 0;
    for (uint32_t k = 0; k < look->plan->n_places; k++) {
        const uint32_t of = index_of(look, (int32_t)look->plan->place[k].node);
        any |= look->plan->node[of].usable != 0;
        here |= of == i;
    }
    return node->usable && (here || !any);
}

static void compare(const struct errand *errand, uint32_t rank, const char *who) {
    const struct look *look = errand->look;
    const struct spot *spot = &errand->spot[rank];
    const struct shmt_place *place = &errand->place[rank * look->plan->n_threads];
    uint32_t n_allowed = look->plan->n_threads;
    uint64_t pages = 0, there = 0;
    if (strcmp(look->plan->bind, "node") == 0) n_allowed = look->plan->node[index_of(look, (int32_t)place->node)].cpus;
    if (strcmp(look->plan->bind, "none") != 0) {
        check(spot->node == place->node, "%s %u runs on node %u", who, rank, place->node);
        check(spot->on_plan_cpu && spot->n_allowed == n_allowed, "%s %u is bound to %u processors, %u among them", who, rank,
              n_allowed, place->cpu);
    }
    if (strcmp(look->plan->numa, "off") == 0) return;
    for (uint32_t i = 0; i < look->plan->n_nodes; i++) {
        pages += spot->on[i];
        if (is_used(look, i)) there += spot->on[i];
    }
    check(pages == ROWS * sizeof(float) / PAGE && there == pages, "%s %u sees %llu of %llu pages on the run's nodes", who, rank,
          (unsigned long long)there, (unsigned long long)pages);
}

/* Room for what `n` workers say, and their places. */
static int begin(struct errand *errand, struct look *look, uint32_t n) {
    struct shmt_error e = {0};
    *errand = (struct errand){.look = look, .guest = UINT32_MAX};
    errand->spot = mmap(NULL, n * sizeof *errand->spot, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    errand->place = calloc((size_t)n * look->plan->n_threads, sizeof *errand->place);
    if (errand->spot == MAP_FAILED || !errand->place) return 0;
    if (shmt_topo_plan_groups(look->topo, n, look->plan->n_threads, errand->place, &e) != 0) return 0;
    for (uint32_t i = 0; i < look->plan->n_places; i++)
        if (errand->place[i].cpu != look->plan->place[i].cpu) return 0;
    return shmtrain_store_table(look->store, "w", ROWS, 1) == 0 && shmtrain_store_examples(look->store, 64 * n) == 0;
}

static void run(struct errand *errand) {
    struct look *look = errand->look;
    const int rc = shmtrain_store_run(look->store, see, errand);
    check(rc == 0, "a worker function runs%s%s", rc ? ": " : "", rc ? shmtrain_store_message(look->store) : "");
    for (uint32_t rank = 0; rank < look->plan->n_workers; rank++) compare(errand, rank, "worker");
}

void look_at_workers(struct look *look) {
    struct errand errand;
    const int begun = begin(&errand, look, look->plan->n_workers);
    check(begun, "there is room for what workers say");
    if (begun) run(&errand);
}

/* ---- a guest ---- */

/* Joins as soon as there is something to join. */
static int visit(struct errand *errand, const char *name) {
    const struct timespec nap = {.tv_nsec = 20 * 1000000};
    struct shmtrain_store *store;
    int rc = SHMTRAIN_E_USAGE;
    if (shmtrain_store_create(&store) != 0 || shmtrain_store_set(store, "workers", "1") != 0) return 1;
    for (int i = 0; i < 500 && (rc == SHMTRAIN_E_USAGE || rc == SHMTRAIN_E_AGAIN); i++) {
        if (i > 0) (void)nanosleep(&nap, NULL);
        rc = shmtrain_store_join(store, name, see, errand);
    }
    if (rc != 0) printf("# joining: %s\n", shmtrain_store_message(store));
    fflush(stdout);
    shmtrain_store_destroy(store);
    return rc != 0;
}

static void stop_when_seen(void *arg, const struct shmtrain_report *report, const struct shmtrain_epoch *epoch) {
    const struct errand *errand = arg;
    (void)report, (void)epoch;
    if (load_acquire(&errand->spot[errand->guest].done)) shmtrain_store_stop(errand->look->store);
}

void look_at_guest(struct look *look) {
    static const char NAME[] = "numa-probe";
    struct errand errand;
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .arg = &errand, .epoch = stop_when_seen};
    const int begun = begin(&errand, look, look->plan->n_workers + 1) && shmtrain_store_set(look->store, "name", NAME) == 0 &&
                      shmtrain_store_set(look->store, "guests", "1") == 0 &&
                      shmtrain_store_set(look->store, "epochs", MOST_EPOCHS) == 0;
    check(begun, "there is room for what a guest says");
    if (!begun) return;
    errand.guest = look->plan->n_workers;
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) _exit(visit(&errand, NAME));
    shmtrain_store_listen(look->store, &listener);
    run(&errand);
    int status = -1;
    check(waitpid(pid, &status, 0) == pid && status == 0, "a process joins by name and leaves");
    compare(&errand, errand.guest, "guest");
    check(memcmp(errand.spot[0].on, errand.spot[errand.guest].on, sizeof errand.spot->on) == 0,
          "the guest sees the pages where worker 0 sees them");
    char message[256];
    check(shmtrain_named_remove(NAME, 1, message, sizeof message) == 0, "the named store is removed");
}
