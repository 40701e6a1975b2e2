/* One run of a drill, in a process of its own, as an application would do it: see drill_priv.h. */
#include <shmtrain/shmtrain.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/drill/drill_priv.h"
#include "bench/runs/options.h"

#define GUESTS    "8" /* places for workers that join by name */
#define LEFT_WITH 3   /* the exit status of a worker that was told to leave */

static void tell_begun(void *arg, const struct shmtrain_report *so_far) {
    struct shmt_drill_shared *shared = arg;
    (void)so_far;
    store_relaxed(&shared->begun, 1); /* a flag that carries nothing but itself */
}

static void tell_saved(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_checkpoint *checkpoint) {
    struct shmt_drill_shared *shared = arg;
    (void)so_far;
    if (checkpoint->written) store_relaxed(&shared->saved, 1); /* as above */
}

/* What the hook is given. */
struct hooked {
    struct shmt_drill_shared *shared;
    uint32_t threads; /* of each worker */
};

/* In a worker: what a library does that ends its process. */
static int leave_if_told(void *arg, shmtrain_session *s, const struct shmtrain_work *work) {
    const struct hooked *hooked = arg;
    const uint32_t worker = shmtrain_rank(s) / hooked->threads;
    (void)work;
    if (worker >= SHMT_DRILL_WORKERS) return 0;
    _Atomic uint32_t *leave = &hooked->shared->leave[worker];
    uint32_t told = 1; /* relaxed, both: flags that carry nothing but themselves */
    if (load_relaxed(leave) == 0 || !swap_relaxed(leave, &told, 0)) return 0;
    _exit(LEFT_WITH);
}

static int configure(struct shmtrain_store *store, const struct shmt_drill_mode *mode, const struct shmt_drill_leg *leg,
                     const struct shmt_drill_place *place) {
    char options[512], folder[sizeof place->folder + 8];
    /* A drill is no measurement, and others may use the machine: nobody is bound. */
    snprintf(options, sizeof options, "workers=%u bind=none max-respawns=100000 %s%s%s%s", leg->workers, mode->options,
             leg->skips ? " in-flight=skip" : "", mode->continues ? " on-death=continue" : "",
             mode->has_guests ? " guests=" GUESTS : "");
    int rc = shmt_handle_options(store, options);
    if (rc == 0 && place->name[0]) rc = shmtrain_store_set(store, "name", place->name);
    snprintf(options, sizeof options, "hosts=%s rank=%u", leg->list, leg->host);
    if (rc == 0 && leg->hosts > 1) rc = shmt_handle_options(store, options);
    if (rc < 0 || !leg->saves) return rc;
    snprintf(folder, sizeof folder, "%s/saved%s", place->folder, leg->host > 0 ? "1" : ""); /* there may be blanks in it */
    snprintf(options, sizeof options, "keep=%d%s", SHMT_DRILL_KEEP, leg->goes_on ? " resume=1" : "");
    rc = shmtrain_store_set(store, "checkpoint", folder);
    if (rc == 0) rc = shmtrain_store_set(store, "checkpoint-every", mode->saves_every);
    return rc == 0 ? shmt_handle_options(store, options) : rc;
}

static void note(const struct shmtrain_report *r, struct shmt_drill_shared *shared) {
    shared->xxh64 = r->parameters_xxh64;
    shared->train_seconds = r->train_seconds;
    shared->respawns = r->respawns;
    shared->skipped = r->skipped;
    shared->item = r->item;
    shared->n_epochs = r->n_epochs < SHMT_DRILL_EPOCHS ? r->n_epochs : SHMT_DRILL_EPOCHS;
    for (uint32_t i = 0; i < shared->n_epochs; i++) shared->examples[i] = r->epoch[i].examples;
    for (uint32_t i = 0; i < r->n_workers; i++)
        if (r->worker[i].joined) shared->guest_examples += r->worker[i].examples;
    shared->late_share = r->examples > 0 ? (double)(r->dropped + r->folded) / (double)r->examples : 0;
    if (shared->n_epochs > 0) shared->loss = r->epoch[shared->n_epochs - 1].valid_loss;
}

static int train(struct shmtrain_store *store, const struct shmt_drill_mode *mode, const struct shmt_drill_leg *leg,
                 const struct shmt_drill_place *place, struct shmt_drill_shared *shared) {
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .arg = shared, .begin = tell_begun, .checkpoint = tell_saved};
    struct hooked hooked = {.shared = shared, .threads = mode->threads > 1 ? mode->threads : 1};
    const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks), .arg = &hooked, .before_step = leave_if_told};
    char model[sizeof place->folder + 8];
    snprintf(model, sizeof model, "%s/model", place->folder);
    shmtrain_store_listen(store, &listener);
    int rc = configure(store, mode, leg, place);
    if (rc == 0) rc = shmtrain_store_hooks(store, &hooks);
    if (rc == 0) rc = shmtrain_store_train(store, mode->data);
    if (rc == 0) note(shmtrain_store_report(store), shared);
    return rc == 0 && leg->host == 0 ? shmtrain_store_save(store, model) : rc;
}

_Noreturn void shmt_drill_train(const struct shmt_drill_mode *mode, const struct shmt_drill_leg *leg,
                                const struct shmt_drill_place *place, struct shmt_drill_shared *shared) {
    struct shmtrain_store *store = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TMPDIR", place->folder, 1); /* what it leaves there is seen */
    shared->rc = shmtrain_store_create(&store);
    if (shared->rc == 0) {
        shared->rc = train(store, mode, leg, place, shared);
        if (shared->rc < 0) snprintf(shared->message, sizeof shared->message, "%s", shmtrain_store_message(store));
        shmtrain_store_destroy(store);
    }
    _exit(EXIT_SUCCESS);
}
