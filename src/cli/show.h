/* A run as it is shown while it goes on, by the commands that train, join or watch: what it is, a line for each epoch, and
 * live lines on a terminal; in the end what came out. */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/display.h"

struct show {
    struct shmtrain_store *store;
    const struct arguments *arguments;
    struct display *display;
    FILE *out; /* for people: stderr where stdout is for JSON, or a file */
};

/* Whether --progress or SHMTRAIN_PROGRESS is a word that it may be. 0, or the exit status after one line on stderr. */
int show_check(const struct arguments *a);

/* `stdout_is_taken`: by a file that goes there, so that lines for people do not, as with --json. 0, or the exit status after
 * one line on stderr. */
int show_open(struct show *show, struct shmtrain_store *store, const struct arguments *a, bool stdout_is_taken);

/* These are a listener's functions, too, with the show as their argument. */
void show_begin(void *show, const struct shmtrain_report *r);
void show_epoch(void *show, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch);
void show_note(void *show, const char *line);
void show_steps(void *show, const struct shmtrain_report *r, const struct shmtrain_steps *steps);
void show_progress(void *show, const struct shmtrain_report *r, const struct shmtrain_progress *now);

/* All of these as the store's listener. */
void show_listen(struct show *show);

/* Takes away what is live; before anything else is printed. Once more is fine. */
void show_close(struct show *show);

/* What came out, as lines and as JSON, as asked for; `saved`: a further line's file, or NULL. The exit status. */
int show_result(const struct show *show, const struct shmtrain_report *r, const char *saved);
