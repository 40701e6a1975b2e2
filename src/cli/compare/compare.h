/* A comparison: the same training in several modes, one after the other. Made by compare.c (what is compared) and
 * runs.c (one run), worked out by figures.c, told by table.c, json.c and html.c. */
#ifndef SHMTRAIN_CLI_COMPARE_H
#define SHMTRAIN_CLI_COMPARE_H

#include <shmtrain/shmtrain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/compare/kept.h"
#include "cli/compare/plot.h"

#define COMPARE_MOST  16 /* modes */
#define COMPARE_NOTES 16

/* One mode. Numbers that there are not are NaN. */
struct compare_run {
    char mode[48];      /* as it was asked for: "ssp:4" */
    char name[56];      /* the same, which no other run has: "ssp:4 (2)" where it was asked for again */
    char mark;          /* its letter, which no other run has */
    bool tried;         /* false: a signal came before its turn */
    struct kept *kept;  /* what it did; NULL: nothing */
    double times;       /* its rate, as a multiple of that of the first trial */
    int status;         /* of the library, of a run that did nothing */
    char why[512];      /* its sentence */
    double final_loss;  /* of its last epoch */
    double lowest_loss; /* of any epoch */
    double lowest_at;   /* how many epochs were done then */
    double to_target_s; /* seconds of training until the target */
    double to_target_epochs;
};

struct comparison {
    const struct arguments *arguments;
    const char *data;
    char title[4096]; /* what the data is called */
    struct compare_run run[COMPARE_MOST];
    unsigned n;
    unsigned rates;       /* that each mode tries, of which the best one counts; 0: the rate is typed, or the default */
    bool untuned;         /* --tune 0: no verdict */
    bool stdout_is_taken; /* by the page: then the table goes to stderr */
    bool validates;       /* losses are those of validation data; else of training */
    double target;        /* NaN: there is none */
    bool target_is_given;
    char note[COMPARE_NOTES][256]; /* (n_notes) lines that were shown already */
    unsigned n_notes;
    unsigned best;       /* the run with the lowest loss of any epoch, where there is a target */
    char replacing[200]; /* the options that replace what modes say, as "--write locked"; "": none was given */
};

/* The report of a run, or NULL. */
static inline const struct shmtrain_report *compare_report(const struct compare_run *run) {
    return run->kept ? &run->kept->report : NULL;
}

/* ---- runs.c ---- */

/* Trains in run->mode, once for each rate that is tried, and keeps what came out at the best one. What is seen meanwhile goes to
 * stderr. 0, or a negative status that would be the same in all modes. */
int compare_train(struct comparison *c, struct compare_run *run);

/* ---- figures.c ---- */

/* Gives each run a name, and a letter of it, if one is free. */
void compare_name(struct comparison *c);
void compare_letter(struct comparison *c);

/* The losses of a run, by epochs or (`by_time`) by seconds of training: (n), into a new array, which is the caller's. 0 points:
 * NULL. */
struct plot_point *compare_points(const struct comparison *c, const struct compare_run *run, bool by_time, size_t *n_out);

/* The target, unless it is given, and when each run comes to it, from the reports. */
void compare_work_out(struct comparison *c);

/* The report of any run: what it says of data and machine is the same in all. NULL: nothing was trained at all. */
const struct shmtrain_report *compare_any_report(const struct comparison *c);
static inline bool compare_has_runs(const struct comparison *c) { return compare_any_report(c) != NULL; }

/* Whether a run ended well above its own lowest loss: it overfits, or its rate is too high. */
bool compare_got_worse(const struct compare_run *run);

/* What a run was, where that is not the mode that was asked for: "locked, staleness 0", "ssp:3". Returns `out`, "" where it
 * is. */
const char *compare_instead(const struct compare_run *run, char out[96]);

/* Gradients that came too late, as a share of all that were computed. */
double compare_dropped(const struct shmtrain_report *r);

/* The losses as a plot over epochs or seconds, with a curve for each run that has points. It points into itself, and is the
 * caller's until compare_release_plot. */
struct compare_plot {
    struct plot plot;
    struct plot_curve curve[COMPARE_MOST];
    unsigned run[COMPARE_MOST]; /* whose each curve is */
    char title[64];
};
void compare_make_plot(const struct comparison *c, bool by_time, struct compare_plot *out);
void compare_release_plot(struct compare_plot *made);

/* ---- table.c ---- */

/* The headings of the table's columns, and one cell in words; column 0 is the mode's name. */
#define COMPARE_COLUMNS 8
struct compare_column {
    const char *title; /* at most 10 characters */
    bool to_target;    /* it counts until the target */
    int width;         /* as text */
};
extern const struct compare_column COMPARE_TABLE[COMPARE_COLUMNS];
const char *compare_cell(const struct comparison *c, const struct compare_run *run, unsigned column, char out[32]);

/* Whether a run has the best time, the fewest epochs or the lowest loss, if that is the column's. */
bool compare_is_best(const struct comparison *c, const struct compare_run *run, unsigned column);

/* Three digits: "987", "1.23 k". Returns where they begin in `out`. */
const char *compare_short(double x, char out[16]);

/* Why a run has no figures: "refused: ...", "failed: ...", "not run". Returns `out`. */
const char *compare_why(const struct compare_run *run, char *out, size_t bytes);

/* What the figures say, as sentences: what the target is, at which rates, what ran under another name, who was first, whether that
 * is noise, who got worse, who waited, what was dropped. Returns how many; the first one is about the target. */
#define COMPARE_SENTENCES 8
#define COMPARE_WORDS     4096 /* bytes of a sentence; as many as the names of all modes need, with as much beside each */
unsigned compare_sentences(const struct comparison *c, char out[COMPARE_SENTENCES][COMPARE_WORDS]);

/* "validation loss", "train loss". */
const char *compare_loss_name(const struct comparison *c);

/* The table and its sentences, at most 80 columns wide. */
void compare_put_table(const struct comparison *c, FILE *out);

/* ---- json.c, html.c ---- */

/* One JSON object in one line. 0, or -1: no memory. */
int compare_put_json(const struct comparison *c, FILE *out);

/* A page that needs nothing but itself. */
void compare_put_html(const struct comparison *c, FILE *out);

#endif
