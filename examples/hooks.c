/* Watches a built-in model while it is trained, without a line of worker code: how long work items take, and when the first
 * weight has come to rest, which ends the run.
 *
 *     hooks            or            hooks train.svm */
#include <shmtrain/shmtrain.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define RESTS 0.002 /* of it, in an epoch */

/* Workers are processes, so what all of them count lies in shared memory. */
struct shared {
    _Atomic uint64_t items, ns, longest_ns;
};

/* What each worker has for itself: its copy, as of the fork. */
struct watch {
    struct shared *shared;
    uint64_t began_ns;
    float before; /* the first weight, an epoch ago */
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int before_step(void *arg, shmtrain_session *s, const struct shmtrain_work *work) {
    struct watch *watch = arg;
    (void)s;
    (void)work;
    watch->began_ns = now_ns();
    return 0;
}

static int after_step(void *arg, shmtrain_session *s, const struct shmtrain_work *work, const struct shmtrain_fate *fate) {
    const struct watch *watch = arg;
    struct shared *shared = watch->shared;
    const uint64_t ns = now_ns() - watch->began_ns;
    uint64_t longest = atomic_load(&shared->longest_ns);
    (void)s;
    (void)work;
    (void)fate;
    atomic_fetch_add(&shared->items, 1);
    atomic_fetch_add(&shared->ns, ns);
    while (ns > longest && !atomic_compare_exchange_weak(&shared->longest_ns, &longest, ns)) continue;
    return 0;
}

/* Parameters are quiet, so whoever looks sees the same; one of all decides. */
static int after_epoch(void *arg, shmtrain_session *s, uint32_t epoch) {
    struct watch *watch = arg;
    float weight;
    if (shmtrain_rank(s) != 0) return 0;
    const int rc = shmtrain_pull(s, 0, 0, 1, &weight); /* table 0, row 0 */
    if (rc < 0) return rc;
    const double moved = fabs((double)weight - (double)watch->before);
    watch->before = weight;
    return epoch > 0 && moved < RESTS; /* 1: the run ends here */
}

static int train(struct shmtrain_store *store, const char *data, struct shared *shared) {
    struct watch watch = {.shared = shared};
    const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks),
                                         .arg = &watch,
                                         .before_step = before_step,
                                         .after_step = after_step,
                                         .after_epoch = after_epoch};
    int rc = shmtrain_store_set(store, "workers", "2");
    if (rc == 0) rc = shmtrain_store_set(store, "epochs", "100");
    if (rc == 0) rc = shmtrain_store_hooks(store, &hooks);
    return rc == 0 ? shmtrain_store_train(store, data) : rc;
}

int main(int argc, char **argv) {
    struct shmtrain_store *store = NULL;
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return EXIT_FAILURE;
    int rc = shmtrain_store_create(&store);
    if (rc == 0) rc = train(store, argc > 1 ? argv[1] : "builtin:sparse:examples=20000,features=500", shared);
    if (rc == 0) {
        const struct shmtrain_report *r = shmtrain_store_report(store);
        const uint64_t items = atomic_load(&shared->items);
        printf("%u epochs, %s\n", r->n_epochs, r->stopped ? "until the first weight had come to rest" : "all of them");
        printf("%llu items of %.3f ms on average, the longest took %.3f ms\n", (unsigned long long)items,
               items > 0 ? (double)atomic_load(&shared->ns) / (double)items * 1e-6 : 0,
               (double)atomic_load(&shared->longest_ns) * 1e-6);
    }
    if (rc < 0) fprintf(stderr, "hooks: %s\n", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    munmap(shared, sizeof *shared);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
