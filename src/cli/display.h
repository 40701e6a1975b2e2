/* What one sees while a run goes on: finished epochs as lines, and on a terminal below them a few lines that live. Used by the
 * commands that train or watch.
 *
 * The terminal's modes and its cursor are left as they are, so there is nothing to restore, whatever ends the program. Between
 * two frames the cursor rests at the beginning of the live lines: what anybody else prints is printed over them, and the next
 * frame is drawn below it. One display at a time; all calls but the one for signal handlers on the thread that opened it. */
#pragma once

#include <shmtrain/report.h>
#include <stdbool.h>
#include <stdio.h>

struct display;

enum progress_kind {
    PROGRESS_NONE,  /* nothing */
    PROGRESS_PLAIN, /* a line for each epoch; where an epoch takes longer, one a minute */
    PROGRESS_BAR,   /* these lines, and live ones below them */
};

#define DISPLAY_CHOICES "auto|bar|plain|none"

/* Whether `option` is one of these. */
bool display_knows(const char *option);

/* What a descriptor is like: a terminal that obeys escape sequences; with letters and a font for block characters; whose user
 * has not switched colours off (NO_COLOR); so wide (80 where nobody knows). */
bool display_obeys_escapes(int fd);
bool display_has_blocks(void);
bool display_wants_colours(void);
unsigned display_columns(int fd);

/* What to show on a descriptor. option: as above; "" or NULL: the environment's SHMTRAIN_PROGRESS, or auto. A bar needs a
 * terminal that obeys escape sequences: elsewhere it is plain. quiet: none. */
enum progress_kind display_choose(const char *option, bool quiet, int fd);

/* `out` is for people; it stays the caller's, and open until display_close. Catches SIGTSTP where there is a bar. NULL: no
 * memory. */
struct display *display_open(enum progress_kind kind, FILE *out);

/* A line that stays: a finished epoch, a heading. No line break. */
void display_line(struct display *display, const char *text);

/* Likewise, of an epoch that is over: what lives below shows nothing older. */
void display_epoch(struct display *display, const struct shmtrain_report *report, const struct shmtrain_epoch *epoch,
                   const char *text);

/* The run as it is now: a frame. */
void display_progress(struct display *display, const struct shmtrain_report *report, const struct shmtrain_progress *now);

/* Takes the live lines away until the next frame, so that others can print. */
void display_clear(struct display *display);

/* The same from a signal handler, whether a display is open or not, before it prints or ends the program. */
void display_clear_in_handler(void);

/* Takes the live lines away for good; lines stay. NULL is fine. */
void display_close(struct display *display);
