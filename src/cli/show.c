/* Showing a run: see show.h. */
#include "cli/show.h"

#include <stdlib.h>

#include "cli/talk.h"

static int check_choice(const char *given_as, const char *value) {
    if (!value || value[0] == '\0' || display_knows(value)) return 0;
    return talk_refuse("%s %.60s: expected one of " DISPLAY_CHOICES, given_as, value);
}

int show_check(const struct arguments *a) {
    if (a->progress) return check_choice("--progress", a->progress);
    return check_choice("SHMTRAIN_PROGRESS", getenv("SHMTRAIN_PROGRESS"));
}

int show_open(struct show *show, struct shmtrain_store *store, const struct arguments *a, bool stdout_is_taken) {
    const int status = show_check(a);
    if (status != 0) return status;
    FILE *out = a->json || stdout_is_taken ? stderr : stdout;
    *show = (struct show){.store = store, .arguments = a, .out = out};
    show->display = display_open(display_choose(a->progress, a->quiet, fileno(out)), out);
    if (show->display) return 0;
    talk_refuse("not enough memory to begin");
    return 1;
}

/* A signal that came before the run began, when there was nothing to stop yet, stops it now. */
void show_begin(void *arg, const struct shmtrain_report *r) {
    const struct show *show = arg;
    char text[2048];
    if (talk_caught()) shmtrain_store_stop(show->store);
    if (show->arguments->quiet) return;
    shmtrain_report_opening(r, text, sizeof text);
    fprintf(show->out, "%s\n", text);
    fflush(show->out);
    shmtrain_report_heading(r, text, sizeof text);
    display_line(show->display, text);
}

void show_epoch(void *arg, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch) {
    const struct show *show = arg;
    char text[256];
    shmtrain_report_choice(r, text, sizeof text);
    if (epoch->epoch == 1 && text[0] != '\0') display_line(show->display, text);
    shmtrain_report_line(r, epoch, text, sizeof text);
    display_epoch(show->display, r, epoch, text);
}

void show_note(void *arg, const char *line) {
    const struct show *show = arg;
    display_clear(show->display);
    talk_note(NULL, line);
}

void show_steps(void *arg, const struct shmtrain_report *r, const struct shmtrain_steps *steps) {
    const struct show *show = arg;
    char text[160];
    (void)r;
    shmtrain_steps_line(steps, text, sizeof text);
    display_line(show->display, text);
}

void show_progress(void *arg, const struct shmtrain_report *r, const struct shmtrain_progress *now) {
    const struct show *show = arg;
    display_progress(show->display, r, now);
}

void show_listen(struct show *show) {
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener),
                                               .arg = show,
                                               .begin = show_begin,
                                               .epoch = show_epoch,
                                               .note = show_note,
                                               .progress = show_progress,
                                               .steps = show_steps};
    shmtrain_store_listen(show->store, &listener);
}

void show_close(struct show *show) {
    display_close(show->display);
    show->display = NULL;
}

int show_result(const struct show *show, const struct shmtrain_report *r, const char *saved) {
    const struct arguments *a = show->arguments;
    char text[4096];
    shmtrain_report_summary(r, text, sizeof text);
    if (!a->quiet) fprintf(show->out, "\n%s", text);
    if (saved && !a->quiet) fprintf(show->out, "saved       %s\n", saved);
    if (a->json) {
        char *json = shmtrain_report_json(r);
        if (!json) return 1;
        fputs(json, stdout);
        free(json);
    }
    const int status = talk_close_output();
    return status == 0 && r->unwritten[0] != '\0' ? 1 : status; /* a note has told */
}
