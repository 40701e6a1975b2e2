/* shmtrain join and watch: another program's run, by the name of its store. */
#include <time.h>

#include "cli/arguments.h"
#include "cli/show.h"
#include "cli/talk.h"

int join_run(struct shmtrain_store *store, const struct arguments *a) {
    struct show show;
    const int status = show_open(&show, store, a);
    if (status != 0) return status;
    show_listen(&show);
    talk_catch_signals(store);
    const int rc = shmtrain_store_join(store, a->operand[0], NULL, NULL);
    show_close(&show);
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
    const struct timespec tenth = {.tv_nsec = 100000000};
    struct show show;
    uint32_t n_shown = 0;
    const int status = show_open(&show, store, a);
    if (status != 0) return status;
    show_listen(&show); /* for notes */
    talk_catch_signals(NULL);
    int rc = shmtrain_store_observe(store, a->operand[0]);
    if (rc == 0) {
        show_begin(&show, shmtrain_store_report(store));
        while ((rc = look(&show, &n_shown)) == 1 && !talk_caught()) (void)nanosleep(&tenth, NULL); /* a signal: look at once */
    }
    show_close(&show);
    if (rc < 0) return talk_fail(store, rc);
    if (rc == 0) return show_result(&show, shmtrain_store_report(store), NULL);
    return talk_exit_status(talk_close_output());
}
