/* shmtrain train: trains a model, shows how it goes, saves it, and says what came out. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/talk.h"

#define DEFAULT_DATA "builtin:sparse"

struct talk {
    FILE *out; /* for people; NULL: --quiet */
    struct shmtrain_store *store;
};

/* A signal that came before the run began, when there was nothing to stop yet, stops it now. */
static void on_begin(void *arg, const struct shmtrain_report *r) {
    const struct talk *talk = arg;
    char text[1024];
    if (talk_caught()) shmtrain_store_stop(talk->store);
    if (!talk->out) return;
    shmtrain_report_opening(r, text, sizeof text);
    fprintf(talk->out, "%s\n", text);
    shmtrain_report_heading(r, text, sizeof text);
    fprintf(talk->out, "%s\n", text);
    fflush(talk->out);
}

static void say_epoch(void *arg, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch) {
    const struct talk *talk = arg;
    char text[256];
    if (!talk->out) return;
    shmtrain_report_line(r, epoch, text, sizeof text);
    fprintf(talk->out, "%s\n", text);
    fflush(talk->out);
}

static int say_result(struct shmtrain_store *store, const struct arguments *a) {
    const struct shmtrain_report *r = shmtrain_store_report(store);
    FILE *out = a->json ? stderr : stdout;
    char text[1024];
    shmtrain_report_summary(r, text, sizeof text);
    if (!a->quiet) fprintf(out, "\n%s", text);
    if (a->output && !a->quiet) fprintf(out, "saved       %s\n", a->output);
    if (a->json) {
        char *json = shmtrain_report_json(r);
        if (!json) return 1;
        fputs(json, stdout);
        free(json);
    }
    return talk_close_output();
}

int train_run(struct shmtrain_store *store, const struct arguments *a) {
    const char *data = a->n_operands > 0 ? a->operand[0] : DEFAULT_DATA;
    const int status = output_check(a->output);
    if (status != 0) return status;
    struct talk talk = {.out = a->quiet ? NULL : a->json ? stderr : stdout, .store = store};
    const struct shmtrain_listener listener = {.arg = &talk, .begin = on_begin, .epoch = say_epoch, .note = talk_note};
    shmtrain_store_listen(store, &listener);
    talk_catch_signals(store);
    int rc = shmtrain_store_train(store, data);
    if (rc == 0 && a->output) rc = shmtrain_store_save(store, a->output);
    if (rc < 0) return talk_fail(store, rc);
    return talk_exit_status(say_result(store, a));
}
