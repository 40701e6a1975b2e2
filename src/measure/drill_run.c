/* One run of a drill, in a process of its own, as an application would do it: see drill_priv.h. */
#include <shmtrain/shmtrain.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "measure/drill_priv.h"

#define LEFT_WITH 3 /* the exit status of a worker that was told to leave */

static void tell_begun(void *arg, const struct shmtrain_report *so_far) {
    struct shmt_drill_stage *stage = arg;
    (void)so_far;
    store_relaxed(&stage->begun, 1); /* a flag that carries nothing but itself */
}

static void tell_saved(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_checkpoint *checkpoint) {
    struct shmt_drill_stage *stage = arg;
    (void)so_far;
    if (checkpoint->written) store_relaxed(&stage->saved, 1); /* as above */
}

/* What the hook is given. */
struct hooked {
    struct shmt_drill_stage *stage;
    uint32_t threads; /* of each worker */
};

/* In a worker: what a library does that ends its process. */
static int leave_if_told(void *arg, shmtrain_session *s, const struct shmtrain_work *work) {
    const struct hooked *hooked = arg;
    const uint32_t worker = shmtrain_rank(s) / hooked->threads;
    (void)work;
    if (worker >= SHMT_DRILL_WORKERS) return 0;
    _Atomic uint32_t *leave = &hooked->stage->leave[worker];
    uint32_t told = 1; /* relaxed, both: flags that carry nothing but themselves */
    if (load_relaxed(leave) == 0 || !swap_relaxed(leave, &told, 0)) return 0;
    _exit(LEFT_WITH);
}

/* "name=value name=value" */
static int set_all(struct shmtrain_store *store, const char *options) {
    char text[256], *at = text, *word;
    int rc = 0;
    snprintf(text, sizeof text, "%s", options);
    while (rc == 0 && (word = strsep(&at, " "))) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value++ = '\0';
        rc = shmtrain_store_set(store, word, value);
    }
    return rc;
}

static int set_number(struct shmtrain_store *store, const char *name, uint32_t value) {
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    return shmtrain_store_set(store, name, text);
}

static int configure_saving(struct shmtrain_store *store, const struct shmt_drill_mode *mode, const struct shmt_drill_leg *leg,
                            const struct shmt_drill_place *place) {
    char folder[sizeof place->folder + 8];
    snprintf(folder, sizeof folder, "%s/saved", place->folder);
    int rc = shmtrain_store_set(store, "checkpoint", folder);
    if (rc == 0) rc = shmtrain_store_set(store, "checkpoint-every", mode->saves_every);
    if (rc == 0) rc = set_number(store, "keep", SHMT_DRILL_KEEP);
    if (rc == 0 && leg->goes_on) rc = shmtrain_store_set(store, "resume", "1");
    return rc;
}

static int configure(struct shmtrain_store *store, const struct shmt_drill_mode *mode, const struct shmt_drill_leg *leg,
                     const struct shmt_drill_place *place) {
    int rc = set_number(store, "workers", leg->workers);
    if (rc == 0) rc = shmtrain_store_set(store, "bind", "none"); /* a drill is no measurement, and others may use the machine */
    if (rc == 0) rc = shmtrain_store_set(store, "max-respawns", "100000");
    if (rc == 0 && leg->skips) rc = shmtrain_store_set(store, "in-flight", "skip");
    if (rc == 0 && mode->continues) rc = shmtrain_store_set(store, "on-death", "continue");
    if (rc == 0 && mode->threads > 1) rc = set_number(store, "threads", mode->threads);
    if (rc == 0 && mode->has_guests) rc = set_number(store, "guests", SHMT_DRILL_GUESTS);
    if (rc == 0 && place->name[0]) rc = shmtrain_store_set(store, "name", place->name);
    if (rc == 0 && leg->saves) rc = configure_saving(store, mode, leg, place);
    return rc == 0 ? set_all(store, mode->options) : rc;
}

static void note(const struct shmtrain_report *r, struct shmt_drill_stage *stage) {
    stage->xxh64 = r->parameters_xxh64;
    stage->train_seconds = r->train_seconds;
    stage->respawns = r->respawns;
    stage->skipped = r->skipped;
    stage->item = r->item;
    stage->n_epochs = r->n_epochs < SHMT_DRILL_EPOCHS ? r->n_epochs : SHMT_DRILL_EPOCHS;
    for (uint32_t i = 0; i < stage->n_epochs; i++) stage->examples[i] = r->epoch[i].examples;
    for (uint32_t i = 0; i < r->n_workers; i++)
        if (r->worker[i].joined) stage->guest_examples += r->worker[i].examples;
    stage->late_share = r->examples > 0 ? (double)(r->dropped + r->folded) / (double)r->examples : 0;
    if (stage->n_epochs > 0) stage->loss = r->epoch[stage->n_epochs - 1].valid_loss;
}

static int train(struct shmtrain_store *store, const struct shmt_drill_mode *mode, const struct shmt_drill_leg *leg,
                 const struct shmt_drill_place *place, struct shmt_drill_stage *stage) {
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .arg = stage, .begin = tell_begun, .checkpoint = tell_saved};
    struct hooked hooked = {.stage = stage, .threads = mode->threads > 1 ? mode->threads : 1};
    const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks), .arg = &hooked, .before_step = leave_if_told};
    char model[sizeof place->folder + 8];
    snprintf(model, sizeof model, "%s/model", place->folder);
    shmtrain_store_listen(store, &listener);
    int rc = configure(store, mode, leg, place);
    if (rc == 0) rc = shmtrain_store_hooks(store, &hooks);
    if (rc == 0) rc = shmtrain_store_train(store, mode->data);
    if (rc == 0) note(shmtrain_store_report(store), stage);
    return rc == 0 ? shmtrain_store_save(store, model) : rc;
}

_Noreturn void shmt_drill_run(const struct shmt_drill_mode *mode, const struct shmt_drill_leg *leg,
                              const struct shmt_drill_place *place, struct shmt_drill_stage *stage) {
    struct shmtrain_store *store = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TMPDIR", place->folder, 1); /* what it leaves there is seen */
    stage->rc = shmtrain_store_create(&store);
    if (stage->rc == 0) {
        stage->rc = train(store, mode, leg, place, stage);
        if (stage->rc < 0) snprintf(stage->message, sizeof stage->message, "%s", shmtrain_store_message(store));
        shmtrain_store_destroy(store);
    }
    _exit(EXIT_SUCCESS);
}
