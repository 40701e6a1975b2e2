/* A comparison: the same training in several modes, one after the other, and, if that is asked for, with several numbers of
 * workers and several seeds. Made by asked.c (what is compared), compare.c (in which order) and runs.c (one run), worked out by
 * figures.c, spread.c and speedup.c, told by table.c, sentences.c, verdict.c, json.c, and the page: html.c. */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/compare/kept.h"
#include "cli/compare/plot.h"
#include "cli/output.h"

#define COMPARE_MODES   16
#define COMPARE_WORKERS 8 /* numbers of workers */
#define COMPARE_MOST    (COMPARE_MODES * COMPARE_WORKERS)
#define COMPARE_SEEDS   30
#define COMPARE_ENOUGH  3 /* seeds, from which on a difference may be a win */
#define COMPARE_NOTES   16

/* What a run comes to with one seed. Numbers that there are not are NaN. */
struct compare_seed {
    struct kept *kept; /* what it did; NULL: it failed */
    uint64_t seed;
    int status;         /* of the library, where it failed */
    double final_loss;  /* of its last epoch */
    double lowest_loss; /* of any epoch */
    double lowest_at;   /* how many epochs were done then */
    double to_target_s; /* seconds of training until the target */
    double to_target_epochs;
    double speed;    /* examples per second of training */
    double epoch_s;  /* seconds of training of its median epoch */
    double speed_up; /* the same of the fewest workers of the list, with the same mode and seed, over it */
};

/* One mode with one number of workers: a row of the table. Its figures are medians over its seeds. */
struct compare_run {
    char mode[48];    /* as it was asked for: "ssp:4" */
    char label[56];   /* the same, which no other mode has: "ssp:4 (2)" where it was asked for again */
    char name[72];    /* likewise, which no other run has: "ssp:4 -w 2" where several numbers of workers are compared */
    char mark;        /* the mode's letter, which no other mode has */
    unsigned which;   /* the mode's number in the list */
    uint32_t workers; /* 0: one number for all */
    bool tried;       /* false: a signal came before its turn */
    bool measured;    /* its seeds are; else there is one, the best of the trials */
    struct compare_seed seed[COMPARE_SEEDS]; /* (n_seeds) before it is measured: what the best rate has come to */
    unsigned n_seeds;
    struct kept *kept; /* of the seed whose final loss is the median; NULL: nothing was done */
    double auto_rate;  /* that of the first trial */
    bool scaled;       /* it put features on one scale */
    double l2;         /* that it chose; 0: it did not */
    double times;      /* its rate, as a multiple of that of the first trial */
    int status;        /* of the library, of a run that did nothing */
    char why[512];     /* its sentence */
    double final_loss, lowest_loss, to_target_s, to_target_epochs, epoch_s, speed_up;
};

struct comparison {
    const struct arguments *arguments;
    const char *data;
    char title[4096]; /* what the data is called */
    struct compare_run run[COMPARE_MOST];
    unsigned n;
    unsigned n_modes;
    uint32_t workers[COMPARE_WORKERS]; /* ascending */
    unsigned n_workers;                /* 0: one number for all, as in any run */
    unsigned seeds;                    /* that each mode is measured with: 1 or more */
    uint64_t first_seed;
    bool splits;          /* each seed sets other examples aside for validation */
    unsigned rates;       /* that each mode tries, of which the best one counts; 0: the rate is typed, or the default */
    bool untuned;         /* --tune 0: no verdict */
    bool broken;          /* an error that concerns all runs has ended it */
    bool stdout_is_taken; /* by the page: then the table goes to stderr */
    bool validates;       /* losses are those of validation data; else of training */
    double target;        /* NaN: there is none */
    bool target_is_given;
    char note[COMPARE_NOTES][256]; /* (n_notes) lines that were shown already */
    unsigned n_notes;
    unsigned n_runs, n_done; /* of the library, in all; so far */
    double began;            /* the first of them, in seconds of a clock */
    unsigned best;           /* the run with the lowest loss of any epoch, where there is a target */
    char replacing[200];     /* the options that replace what modes say, as "--write locked"; "": none was given */
};

/* Whether runs that count are made after each mode has its rate; else the best of those that tried rates counts. */
static inline bool compare_measures(const struct comparison *c) { return c->seeds > 1 || c->n_workers > 0; }

/* Whether its curves and panels are shown: of several numbers of workers, those of the largest. */
static inline bool compare_is_shown(const struct comparison *c, const struct compare_run *run) {
    return c->n_workers == 0 || run->workers == c->workers[c->n_workers - 1];
}

/* The report of a run, or NULL. */
static inline const struct shmtrain_report *compare_report(const struct compare_run *run) {
    return run->kept ? &run->kept->report : NULL;
}

/* ---- asked.c ---- */

/* What the command line asks for, into `c`, which is all zero. 0, or the exit status after one line on stderr. */
int compare_ask(struct comparison *c, struct shmtrain_store *store, const struct arguments *a);

/* The page that it asks for; path NULL: none. */
static inline struct output_wish compare_page(const struct arguments *a) {
    return (struct output_wish){"--html", a->html, "the page"};
}

/* ---- runs.c ---- */

/* Trains in run->mode with the first seed, once for each rate that is tried, and keeps what came out at the best one. What is
 * seen meanwhile goes to stderr. 0, or a negative status that would be the same in all modes. */
int compare_tune(struct comparison *c, struct compare_run *run);

/* Trains with seed number `k`, at the rate that was found; nothing where that failed. What a signal stops does not count, unless
 * there is nothing else. Returns as compare_tune. */
int compare_measure(struct comparison *c, struct compare_run *run, unsigned k);

/* ---- runs_told.c ---- */

/* Seconds of a clock that only runs forward. */
double compare_now(void);

/* How many runs there will be; the end of a run's trials; of a round with seed number `k`, which has taken so many seconds. */
void compare_say_plan(const struct comparison *c);
void compare_say_tuned(const struct comparison *c, const struct compare_run *run);
void compare_say_round(const struct comparison *c, unsigned k, double seconds);

/* ---- spread.c ---- */

enum compare_figure {
    COMPARE_TIME,   /* seconds to the target */
    COMPARE_EPOCHS, /* epochs to the target */
    COMPARE_LOSS,   /* final loss */
    COMPARE_LOWEST, /* lowest loss */
    COMPARE_SPEED,  /* examples per second */
    COMPARE_EPOCH,  /* seconds of an epoch */
    COMPARE_SPEED_UP,
    COMPARE_NONE /* none of them */
};

/* The middle and the ends of a run's figures over its seeds; all NaN where there are none. Times and losses that a seed does
 * not come to are infinite. */
struct compare_spread {
    double median, least, most;
    unsigned n;
};
struct compare_spread compare_spread_of(const struct compare_run *run, enum compare_figure figure);

/* Whether `a` is less than `b` with every seed: both have COMPARE_ENOUGH seeds, and the most of `a` is less than the least of
 * `b`. */
bool compare_is_below(const struct compare_run *a, const struct compare_run *b, enum compare_figure figure);

/* Whether `b` has done something that `a` may win over: it is another mode. */
bool compare_is_rival(const struct compare_run *a, const struct compare_run *b);

/* How many seeds each run has that has any: fewer than were asked for after a signal. */
unsigned compare_seeds_done(const struct comparison *c);

/* The seed whose final loss is the median (of an even number, the lower one of two); NULL: none has done anything. */
const struct compare_seed *compare_middle(const struct compare_run *run);

/* ---- speedup.c ---- */

/* Each run's seconds of an epoch, and its speed-up where several numbers of workers are compared. */
void compare_work_out_speed(struct comparison *c);

/* What a run's speed-up is over: the run of the same mode with the fewest workers of the list; NULL: the mode did not run with them,
 * and has no speed-up. */
const struct compare_run *compare_fewest(const struct comparison *c, const struct compare_run *run);

/* Cores that the runs may use; 0: unknown. */
uint32_t compare_cores(const struct comparison *c);

/* ---- figures.c ---- */

/* Gives each run a name, and a letter of it, if one is free. */
void compare_name(struct comparison *c);
void compare_letter(struct comparison *c);

/* The losses of a report, by epochs or (`by_time`) by seconds of training: (n), into a new array, which is the caller's. 0 points:
 * NULL. */
struct plot_point *compare_points(const struct comparison *c, const struct shmtrain_report *r, bool by_time, size_t *n_out);

/* The target, unless it is given, and when each run comes to it, from the reports. */
void compare_work_out(struct comparison *c);

/* The report of any run: what it says of data and machine is the same in all. NULL: nothing was trained at all. */
const struct shmtrain_report *compare_any_report(const struct comparison *c);
static inline bool compare_has_runs(const struct comparison *c) { return compare_any_report(c) != NULL; }

/* Whether a run, of several seeds the one in the middle, ended well above its own lowest loss: it overfits, or its rate is too
 * high. */
bool compare_got_worse(const struct compare_run *run);

/* What a run was, where that is not the mode that was asked for: "locked, staleness 0", "ssp:3". Returns `out`, "" where it
 * is. */
const char *compare_instead(const struct compare_run *run, char out[96]);

/* Gradients that came too late, as a share of all that were computed. */
double compare_dropped(const struct shmtrain_report *r);

/* ---- curves.c ---- */

/* A plot of curves, one for each mode that has points. It points into itself, and is the caller's until compare_release_plot. */
struct compare_plot {
    struct plot plot;
    struct plot_curve curve[COMPARE_MODES + 1];
    unsigned look[COMPARE_MODES + 1]; /* the mode whose each curve is */
    char title[64], at_name[32];
};

/* Losses over epochs or seconds: of several seeds the median run's, with the lowest and highest of all beside it. */
void compare_make_plot(const struct comparison *c, bool by_time, struct compare_plot *out);

/* Speed-ups over numbers of workers, and the perfect one, as far as there are cores. No curve without several numbers. */
void compare_make_speed_up(const struct comparison *c, struct compare_plot *out);
void compare_release_plot(struct compare_plot *made);

/* ---- table.c ---- */

/* The columns that there are; column 0 is the mode's name. */
enum {
    COLUMN_NAME,
    COLUMN_TIME,
    COLUMN_EPOCHS,
    COLUMN_SPEED,
    COLUMN_DELAY,
    COLUMN_WAITING,
    COLUMN_DROPPED,
    COLUMN_LOSS,
    COLUMN_WORKERS,
    COLUMN_EPOCH,
    COLUMN_SPEED_UP,
    COMPARE_COLUMNS
};
struct compare_column {
    const char *title; /* at most 10 characters */
    bool to_target;    /* it counts until the target */
    int width;         /* as text */
    enum compare_figure figure;
};
extern const struct compare_column COMPARE_TABLE[COMPARE_COLUMNS];

/* Column number i of the table of this comparison, -1 behind the last. */
int compare_column_at(const struct comparison *c, unsigned i);

/* One cell in words, and one of the seeds' figures in the words of its column. Both return `out`. */
const char *compare_cell(const struct comparison *c, const struct compare_run *run, unsigned column, char out[32]);
const char *compare_words(unsigned column, double x, char out[32]);

/* Whether a run has the best time, the fewest epochs or the lowest loss, if that is the column's; of several seeds, whether it is
 * apart from all others. */
bool compare_is_best(const struct comparison *c, const struct compare_run *run, unsigned column);

/* Three digits: "987", "1.23 k". Returns where they begin in `out`. */
const char *compare_short(double x, char out[16]);

/* Why a run has no figures: "refused: ...", "failed: ...", "not run". Returns `out`. */
const char *compare_why(const struct compare_run *run, char *out, size_t bytes);

/* The run with the least median of a figure, or NULL. */
const struct compare_run *compare_least(const struct comparison *c, enum compare_figure figure);

/* The table and its sentences, at most 80 columns wide. */
void compare_put_table(const struct comparison *c, FILE *out);

/* ---- sentences.c ---- */

/* What the figures say, as sentences: what the target is, how seeds are shown, at which rates, what ran under another name, who
 * was first, who sped up, whether that is noise, who got worse, who waited, what was dropped. Returns how many; the first one is
 * about the target. */
#define COMPARE_SENTENCES 11
#define COMPARE_WORDS     24576 /* bytes of a sentence; as many as the names of all runs need, with as much beside each */
unsigned compare_sentences(const struct comparison *c, char out[COMPARE_SENTENCES][COMPARE_WORDS]);

/* "validation loss", "train loss". */
const char *compare_loss_name(const struct comparison *c);

/* Adds to a text of a sentence. */
void compare_add(char *out, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- verdict.c ---- */

/* Who was first to the target and ended lowest, and whether that is more than the spread of the seeds; what more workers have
 * brought, and at which cost in loss. */
void compare_say_verdict(const struct comparison *c, char *out, size_t bytes);
void compare_say_speed_up(const struct comparison *c, char *out, size_t bytes);

/* ---- json.c, html.c ---- */

/* One JSON object in one line. 0, or -1: no memory. */
int compare_put_json(const struct comparison *c, FILE *out);

/* A page that needs nothing but itself. 0, or -1: no memory. */
int compare_put_html(const struct comparison *c, FILE *out);
