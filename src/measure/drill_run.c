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

/* In a worker: what a library does that ends its process. */
static int leave_if_told(void *arg, shmtrain_session *s, const struct shmtrain_work *work) {
    struct shmt_drill_stage *stage = arg;
    const uint32_t rank = shmtrain_rank(s);
    (void)work;
    /* relaxed, both: flags that carry nothing but themselves */
    if (rank >= SHMT_DRILL_WORKERS || load_relaxed(&stage->leave[rank]) == 0) return 0;
    store_relaxed(&stage->leave[rank], 0);
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

static int configure(struct shmtrain_store *store, const struct shmt_drill_mode *mode, bool skips,
                     const struct shmt_drill_place *place) {
    char workers[16];
    snprintf(workers, sizeof workers, "%u", SHMT_DRILL_WORKERS);
    int rc = shmtrain_store_set(store, "workers", workers);
    if (rc == 0) rc = shmtrain_store_set(store, "bind", "none"); /* a drill is no measurement, and others may use the machine */
    if (rc == 0) rc = shmtrain_store_set(store, "max-respawns", "100000");
    if (rc == 0 && skips) rc = shmtrain_store_set(store, "in-flight", "skip");
    if (rc == 0 && place->name[0]) rc = shmtrain_store_set(store, "name", place->name);
    return rc == 0 ? set_all(store, mode->options) : rc;
}

static void note(const struct shmtrain_report *r, struct shmt_drill_stage *stage) {
    stage->xxh64 = r->parameters_xxh64;
    stage->train_seconds = r->train_seconds;
    stage->respawns = r->respawns;
    stage->item = r->item;
    stage->n_epochs = r->n_epochs < SHMT_DRILL_EPOCHS ? r->n_epochs : SHMT_DRILL_EPOCHS;
    for (uint32_t i = 0; i < stage->n_epochs; i++) stage->examples[i] = r->epoch[i].examples;
    stage->late_share = r->examples > 0 ? (double)(r->dropped + r->folded) / (double)r->examples : 0;
    if (stage->n_epochs > 0) stage->loss = r->epoch[stage->n_epochs - 1].valid_loss;
}

static int train(struct shmtrain_store *store, const struct shmt_drill_mode *mode, bool skips,
                 const struct shmt_drill_place *place, struct shmt_drill_stage *stage) {
    const struct shmtrain_listener listener = {.arg = stage, .begin = tell_begun};
    const struct shmtrain_hooks hooks = {.arg = stage, .before_step = leave_if_told};
    char model[sizeof place->folder + 8];
    snprintf(model, sizeof model, "%s/model", place->folder);
    shmtrain_store_listen(store, &listener);
    int rc = configure(store, mode, skips, place);
    if (rc == 0) rc = shmtrain_store_hooks(store, &hooks);
    if (rc == 0) rc = shmtrain_store_train(store, mode->data);
    if (rc == 0) note(shmtrain_store_report(store), stage);
    return rc == 0 ? shmtrain_store_save(store, model) : rc;
}

_Noreturn void shmt_drill_run(const struct shmt_drill_mode *mode, bool skips, const struct shmt_drill_place *place,
                              struct shmt_drill_stage *stage) {
    struct shmtrain_store *store = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TMPDIR", place->folder, 1); /* what it leaves there is seen */
    stage->rc = shmtrain_store_create(&store);
    if (stage->rc == 0) {
        stage->rc = train(store, mode, skips, place, stage);
        if (stage->rc < 0) snprintf(stage->message, sizeof stage->message, "%s", shmtrain_store_message(store));
        shmtrain_store_destroy(store);
    }
    _exit(EXIT_SUCCESS);
}
