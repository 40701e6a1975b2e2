/* The command's runs: each in a store of its own. See scale.h. */
#include "cli/scale/scale.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/display.h"
#include "cli/talk.h"

#define EPOCHS "3"

/* A run that is made. */
struct turn {
    struct scaling *s;
    struct scale_mode *mode;
    unsigned seed, node, workers; /* numbers of the lists */
    bool measures;                /* it finds the costs that the others of its mode and seed take */
};

static int configure(const struct turn *t, struct shmtrain_store *store) {
    const struct scaling *s = t->s;
    char costs[SCALE_COSTS + 32], spawn[40];
    const uint32_t nodes = s->nodes[t->node];
    int rc = arguments_configure_one(s->arguments, store);
    snprintf(spawn, sizeof spawn, "fibers:%" PRIu64, s->first_seed + t->seed);
    snprintf(costs, sizeof costs, "%s", t->measures ? s->sim : t->mode->costs[t->seed]);
    if (nodes > 1) snprintf(costs + strlen(costs), 32, ",nodes=%u", nodes);
    if (rc == 0 && !arguments_value(s->arguments, "epochs")) rc = shmtrain_store_set(store, "epochs", EPOCHS);
    if (rc == 0) rc = shmtrain_store_set(store, "spawn", spawn);
    if (rc == 0) rc = shmtrain_store_set(store, "sim", costs);
    if (rc == 0) rc = arguments_set_number(store, "seed", s->first_seed + t->seed);
    if (rc == 0) rc = arguments_set_number(store, "workers", s->workers[t->workers]);
    return rc == 0 ? shmtrain_store_set(store, "mode", t->mode->name) : rc;
}

static void keep(const struct turn *t, const struct shmtrain_report *r) {
    struct scale_cell *cell = &t->mode->cell[t->node][t->workers];
    if (t->measures) snprintf(t->mode->costs[t->seed], SCALE_COSTS, "%s", r->sim);
    cell->speed[t->seed] = r->examples_per_second;
    cell->loss[t->seed] = r->n_epochs > 0 ? r->epoch[r->n_epochs - 1].train_loss : (double)NAN;
}

/* What has to do with the mode and its workers, or may have, is a word in the table; the rest would be the same in all runs. */
static int fail(const struct turn *t, const struct shmtrain_store *store, int rc) {
    struct scale_cell *cell = &t->mode->cell[t->node][t->workers];
    if (rc == SHMTRAIN_E_DATA || rc == SHMTRAIN_E_SYSTEM) return talk_fail(store, rc);
    snprintf(cell->why, sizeof cell->why, "%s", shmtrain_store_message(store));
    return 0;
}

static bool shows(const struct scaling *s) {
    return display_choose(s->arguments->progress, s->arguments->quiet, STDERR_FILENO) == PROGRESS_BAR;
}

static void show(const struct turn *t) {
    const struct scaling *s = t->s;
    if (!shows(s)) return;
    fprintf(stderr, "\rrun %u of %u: %s, %u workers\033[K", s->n_done, s->n_runs, t->mode->name, s->workers[t->workers]);
    fflush(stderr);
}

static void show_nothing(const struct scaling *s) {
    if (shows(s)) fprintf(stderr, "\r\033[K");
}

/* 0; or what is wrong with all runs alike: then it has been said. */
static int run(const struct turn *t) {
    struct scaling *s = t->s;
    struct shmtrain_store *store = NULL;
    s->n_done++;
    show(t);
    if (shmtrain_store_create(&store) < 0) return talk_refuse("not enough memory to begin") - 1;
    int rc = configure(t, store), status = 0;
    talk_catch_signals(store);
    if (rc == 0 && !talk_caught()) rc = shmtrain_store_train(store, s->data);
    talk_catch_signals(NULL);
    if (rc < 0 && !talk_caught()) show_nothing(s);
    if (rc < 0 && !talk_caught()) status = fail(t, store, rc);
    if (rc == 0 && !talk_caught()) keep(t, shmtrain_store_report(store));
    shmtrain_store_destroy(store);
    return talk_caught() ? talk_exit_status(1) : status;
}

/* The first run that the mode can have measures. */
static int run_seed(struct scaling *s, struct scale_mode *mode, unsigned seed) {
    int status = 0;
    for (unsigned node = 0; node < s->n_nodes && status == 0; node++)
        for (unsigned w = 0; w < s->n_workers && status == 0; w++) {
            const struct turn turn = {
                .s = s, .mode = mode, .seed = seed, .node = node, .workers = w, .measures = mode->costs[seed][0] == '\0'};
            if (scale_has_cell(s, node, w)) status = run(&turn);
        }
    return status;
}

static bool has_any(const struct scaling *s) {
    for (unsigned m = 0; m < s->n_modes; m++)
        if (scale_base(s, &s->mode[m]) < s->n_workers) return true;
    return false;
}

/* Nothing could be run at all. */
static int refuse_all(const struct scaling *s) {
    return has_any(s) ? 0 : talk_refuse("%s: %s", s->mode[0].name, s->mode[0].cell[0][0].why);
}

static int run_all(struct scaling *s) {
    const enum progress_kind kind = display_choose(s->arguments->progress, s->arguments->quiet, STDERR_FILENO);
    int status = 0;
    for (unsigned m = 0; m < s->n_modes && status == 0; m++)
        for (unsigned seed = 0; seed < s->seeds && status == 0; seed++) {
            status = run_seed(s, &s->mode[m], seed);
            if (kind == PROGRESS_PLAIN && status == 0 && s->mode[m].costs[seed][0] != '\0')
                fprintf(stderr, "shmtrain: %s, seed %u of %u: %u of %u runs are done\n", s->mode[m].name, seed + 1, s->seeds,
                        s->n_done, s->n_runs);
        }
    show_nothing(s);
    return status == 0 ? refuse_all(s) : status;
}

int scale_run(struct shmtrain_store *store, const struct arguments *a) {
    struct scaling *s = calloc(1, sizeof *s);
    if (!s) return talk_refuse("not enough memory to begin") - 1;
    int status = scale_ask(s, store, a);
    if (status == 0) status = run_all(s);
    const bool shows_results = status == 0 || (talk_caught() && has_any(s)); /* a signal leaves what there is */
    if (shows_results && a->json && scale_put_json(s, stdout) < 0) status = talk_refuse("not enough memory for the result") - 1;
    if (shows_results && !a->json) scale_put_text(s, stdout);
    free(s);
    const int closed = talk_close_output();
    return talk_exit_status(status != 0 ? status : closed);
}
