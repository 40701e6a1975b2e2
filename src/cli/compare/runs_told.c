/* What a comparison says on stderr while it runs: how many runs there will be, what has come of each, how long it will take. See
 * compare.h. */
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "cli/compare/compare.h"
#include "cli/display.h"

#define LONG_LEFT 2.0 /* seconds that are worth a word */

double compare_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum progress_kind kind_of(const struct comparison *c) {
    return display_choose(c->arguments->progress, c->arguments->quiet, STDERR_FILENO);
}

static void say_factor(unsigned n, const char *one, const char *many, bool *first) {
    if (n > 1) fprintf(stderr, "%s%u %s", *first ? "" : " x ", n, many);
    if (n == 1) fprintf(stderr, "%s1 %s", *first ? "" : " x ", one);
    *first = false;
}

void compare_say_plan(const struct comparison *c) {
    const bool tunes = c->rates > 1;
    bool first = true;
    if (!compare_measures(c) || kind_of(c) == PROGRESS_NONE) return;
    fprintf(stderr, "shmtrain: %u runs: ", c->n_runs);
    say_factor(c->n_modes, "mode", "modes", &first);
    if (c->n_workers > 0) say_factor(c->n_workers, "number of workers", "numbers of workers", &first);
    if (tunes) fprintf(stderr, " x (%u rates + ", c->rates);
    first = tunes;
    say_factor(c->seeds, "seed", "seeds", &first);
    fprintf(stderr, "%s\n", tunes ? ")" : "");
}

/* By what the runs so far have taken. */
static void say_left(const struct comparison *c) {
    const double taken = compare_now() - c->began;
    const double left = c->n_done > 0 ? taken / c->n_done * (c->n_runs - c->n_done) : 0;
    if (c->n_done < c->n_runs && left >= LONG_LEFT) fprintf(stderr, ", about %.0f s left", left);
    fprintf(stderr, "\n");
}

/* Lines that stay: as the program's lines in a log, or below the one that said that it begins. */
static void say_head(enum progress_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say_head(enum progress_kind kind, const char *format, ...) {
    va_list args;
    if (kind != PROGRESS_PLAIN) {
        fprintf(stderr, "      ");
        return;
    }
    fprintf(stderr, "shmtrain: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

void compare_say_tuned(const struct comparison *c, const struct compare_run *run) {
    const struct shmtrain_report *r = compare_report(run);
    const enum progress_kind kind = kind_of(c);
    if (kind == PROGRESS_NONE) return;
    say_head(kind, "%u of %u, %s: ", (unsigned)(run - c->run) + 1, c->n, run->name);
    if (!r || r->n_epochs == 0) {
        fprintf(stderr, "%s\n", r ? "stopped" : run->why);
        return;
    }
    const struct shmtrain_epoch *last = &r->epoch[r->n_epochs - 1];
    const bool validated = r->valid.name[0] != '\0';
    fprintf(stderr, "%u epoch%s in %.3f s, %s loss %.5f%s", r->n_epochs, r->n_epochs == 1 ? "" : "s", r->seconds,
            validated ? "validation" : "train", validated ? last->valid_loss : last->train_loss, r->stopped ? ", stopped" : "");
    say_left(c);
}

void compare_say_round(const struct comparison *c, unsigned k, double seconds) {
    const enum progress_kind kind = kind_of(c);
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) n += c->run[i].kept != NULL;
    if (kind == PROGRESS_NONE) return;
    say_head(kind, "seed %llu (%u of %u): ", (unsigned long long)(c->first_seed + k), k + 1, c->seeds);
    fprintf(stderr, "%u run%s in %.1f s", n, n == 1 ? "" : "s", seconds);
    say_left(c);
}
