/* shmtrain join and watch: another program's run, by the name of its store. */
#include <stdbool.h>
#include <time.h>

#include "cli/arguments.h"
#include "cli/show.h"
#include "cli/talk.h"

static void pause_for_tenth(void) {
    const struct timespec tenth = {.tv_nsec = 100000000};
    (void)nanosleep(&tenth, NULL); /* a signal: look at once */
}

typedef int attempt(struct shmtrain_store *store, const char *name);

/* Until the run has been prepared: whoever starts both programs at once need not know how long that takes. */
static int once_ready(struct shmtrain_store *store, const struct arguments *a, attempt *try) {
    int rc;
    for (bool told = a->quiet; (rc = try(store, a->operand[0])) == SHMTRAIN_E_AGAIN && !talk_caught(); told = true) {
        if (!told) talk_note(NULL, shmtrain_store_message(store));
        pause_for_tenth();
    }
    return rc;
}

static int join_with_its_model(struct shmtrain_store *store, const char *name) {
    return shmtrain_store_join(store, name, NULL, NULL);
}

int join_run(struct shmtrain_store *store, const struct arguments *a) {
    struct show show;
    const int status = show_open(&show, store, a, false);
    if (status != 0) return status;
    show_listen(&show);
    talk_catch_signals(store);
    const int rc = once_ready(store, a, join_with_its_model);
    show_close(&show);
    if (rc == SHMTRAIN_E_AGAIN) return talk_exit_status(1); /* interrupted before it came to that */
    if (rc < 0) return talk_fail(store, rc);
    if (!talk_caught()) return show_result(&show, shmtrain_store_report(store), NULL);
    if (!a->quiet) fprintf(show.out, "left %s: its run goes on\n", a->operand[0]);
    return talk_exit_status(talk_close_output());
}

/* Shows what is new. Returns what shmtrain_store_look does. */
static int look(struct show *show, uint32_t *n_shown) {
    const struct shmtrain_progress *now;
    const int rc = shmtrain_store_look(show->store, &now);
    const struct shmtrain_report *r = shmtrain_store_report(show->store);
    for (; rc >= 0 && *n_shown < r->n_epochs; ++*n_shown) show_epoch(show, r, &r->epoch[*n_shown]);
    if (rc == 1) show_progress(show, r, now);
    return rc;
}

int watch_run(struct shmtrain_store *store, const struct arguments *a) {
    struct show show;
    uint32_t n_shown = 0;
    const int status = show_open(&show, store, a, false);
    if (status != 0) return status;
    show_listen(&show); /* for notes */
    talk_catch_signals(NULL);
    int rc = once_ready(store, a, shmtrain_store_observe);
    if (rc == 0) {
        show_begin(&show, shmtrain_store_report(store));
        while ((rc = look(&show, &n_shown)) == 1 && !talk_caught()) pause_for_tenth();
    }
    show_close(&show);
    if (rc == SHMTRAIN_E_AGAIN) return talk_exit_status(1);
    if (rc < 0) return talk_fail(store, rc);
    if (rc == 0) return show_result(&show, shmtrain_store_report(store), NULL);
    return talk_exit_status(talk_close_output());
}
