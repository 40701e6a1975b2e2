/* What the page of a comparison shows beside --json's object: what has been put into words for the terminal, and its curves with their
 * axes. So each of them has one author. See page.h; how it is drawn: page.html. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/compare/page.h"
#include "cli/compare/plot_range.h"

#define X_TICKS 5
#define Y_TICKS 6

/* ---- tables ---- */

static json_t *columns_of(const struct comparison *c) {
    json_t *list = json_array();
    int column;
    for (unsigned i = 0; (column = compare_column_at(c, i)) >= 0; i++) {
        const struct compare_column *k = &COMPARE_TABLE[column];
        json_array_append_new(list, k->to_target ? json_pack("[ss]", k->title, "to the target") : json_string(k->title));
    }
    return list;
}

/* The ends are those of several seeds; nothing where none has come to it. */
static json_t *cell_of(const struct comparison *c, const struct compare_run *run, unsigned column) {
    const struct compare_spread s = compare_spread_of(run, COMPARE_TABLE[column].figure);
    char cell[32], least[32], most[32], ends[80] = "";
    if (s.n >= 2 && isfinite(s.least))
        snprintf(ends, sizeof ends, "%s to %s", compare_words(column, s.least, least),
                 isfinite(s.most) ? compare_words(column, s.most, most) : "never");
    return json_pack("{ss ss sb}", "text", compare_cell(c, run, column, cell), "ends", ends, "best",
                     compare_is_best(c, run, column));
}

static json_t *cells_of(const struct comparison *c, const struct compare_run *run) {
    json_t *list = json_array();
    int column;
    for (unsigned i = 1; (column = compare_column_at(c, i)) >= 0; i++)
        json_array_append_new(list, cell_of(c, run, (unsigned)column));
    return list;
}

static json_t *seeds_of(const struct compare_run *run) {
    json_t *list = json_array();
    for (unsigned k = 0; k < run->n_seeds; k++) {
        const struct compare_seed *seed = &run->seed[k];
        char number[24], time[32], epochs[32], last[32], lowest[32], epoch[32];
        snprintf(number, sizeof number, "%" PRIu64, seed->seed);
        json_array_append_new(list, json_pack("[ssssss]", number, compare_words(COLUMN_TIME, seed->to_target_s, time),
                                              compare_words(COLUMN_EPOCHS, seed->to_target_epochs, epochs),
                                              compare_words(COLUMN_LOSS, seed->final_loss, last),
                                              compare_words(COLUMN_LOSS, seed->lowest_loss, lowest),
                                              compare_words(COLUMN_EPOCH, seed->epoch_s, epoch)));
    }
    return list;
}

static json_t *run_of(const struct comparison *c, const struct compare_run *run) {
    char why[600];
    return json_pack("{ss ss si sb so so so}", "label", run->label, "name", run->name, "look", (int)run->which, "shown",
                     compare_is_shown(c, run), "cells", cells_of(c, run), "seeds", seeds_of(run), "why",
                     run->kept ? json_null() : compare_text(compare_why(run, why, sizeof why)));
}

static json_t *runs_of(const struct comparison *c) {
    json_t *list = json_array();
    for (unsigned i = 0; i < c->n; i++) json_array_append_new(list, run_of(c, &c->run[i]));
    return list;
}

/* ---- curves ---- */

static json_t *axis_of(const struct scale *s) {
    json_t *ticks = json_array();
    char words[16];
    for (unsigned i = 0; i < s->n_ticks; i++)
        json_array_append_new(ticks, json_pack("[fs]", s->tick[i], scale_words(s, i, words)));
    return json_pack("{sf sf sb so}", "from", s->from, "to", s->to, "log", s->log, "ticks", ticks);
}

/* Each point with the least and the most of several seeds, where there are any. */
static json_t *curve_of(const struct plot_curve *curve, unsigned look) {
    json_t *points = json_array();
    for (size_t i = 0; i < curve->n; i++) {
        const struct plot_point *p = &curve->point[i];
        if (!plot_has(p)) continue;
        json_t *point = json_pack("[ff]", p->x, p->y);
        if (curve->span) json_array_append_new(point, compare_number(curve->span[i].least));
        if (curve->span) json_array_append_new(point, compare_number(curve->span[i].most));
        json_array_append_new(points, point);
    }
    return json_pack("{ss si sb so}", "name", curve->name, "look", (int)look, "guide", curve->is_guide, "points", points);
}

/* Releases the plot. null: no point is to be shown. */
static json_t *plot_of(struct compare_plot *made) {
    const struct plot *plot = &made->plot;
    struct scale x, y;
    json_t *o = json_null();
    if (plot_range(plot, X_TICKS, Y_TICKS, &x, &y)) {
        json_t *curves = json_array();
        for (unsigned i = 0; i < plot->n_curves; i++) json_array_append_new(curves, curve_of(&plot->curve[i], made->look[i]));
        o = json_pack("{ss ss so so sb so so ss so}", "title", plot->title, "x_title", plot->x_title, "x", axis_of(&x), "y",
                      axis_of(&y), "linear", plot->linear, "target",
                      compare_number(plot_shows_target(plot, &y) ? plot->target : NAN), "at",
                      compare_number(plot_shows_at(plot, &x) ? plot->at : NAN), "at_name", plot->at_name ? plot->at_name : "",
                      "curves", curves);
    }
    compare_release_plot(made);
    return o;
}

static json_t *losses_of(const struct comparison *c, bool by_time) {
    struct compare_plot made;
    compare_make_plot(c, by_time, &made);
    if (by_time) made.plot.x_title = "seconds of training"; /* a page has room for that */
    return plot_of(&made);
}

static json_t *speed_up_of(const struct comparison *c) {
    struct compare_plot made;
    compare_make_speed_up(c, &made);
    snprintf(made.title, sizeof made.title, "speed-up over %u worker%s", c->workers[0], c->workers[0] == 1 ? "" : "s");
    return plot_of(&made);
}

/* ---- all of it ---- */

static json_t *sentences_of(const struct comparison *c) {
    char sentence[COMPARE_SENTENCES][COMPARE_WORDS];
    const unsigned n = compare_sentences(c, sentence);
    json_t *list = json_array();
    for (unsigned i = 0; i < n; i++) json_array_append_new(list, compare_text(sentence[i]));
    return list;
}

static json_t *command_of(const struct comparison *c) {
    json_t *list = json_array();
    for (int i = 1; i < c->arguments->argc; i++) json_array_append_new(list, compare_text(c->arguments->argv[i]));
    return list;
}

const char *compare_base_name(const char *data) {
    const char *slash = strrchr(data, '/');
    return slash && slash[1] != '\0' ? slash + 1 : data;
}

/* Numbers of 64 bits are words: JavaScript would round them. */
static json_t *seed_of(const struct comparison *c) {
    const struct shmtrain_report *r = compare_any_report(c);
    char words[48];
    const uint64_t first = c->seeds < 2 && r ? r->seed : c->first_seed;
    const int used = snprintf(words, sizeof words, "%" PRIu64, first);
    if (c->seeds > 1) snprintf(words + used, sizeof words - (size_t)used, " to %" PRIu64, first + c->seeds - 1);
    return json_string(words);
}

json_t *compare_page_json(const struct comparison *c) {
    return json_pack("{so ss so so so so si so si s{so so so}}", "name", compare_text(compare_base_name(c->title)), "version",
                     PACKAGE_VERSION, "command", command_of(c), "sentences", sentences_of(c), "columns", columns_of(c), "runs",
                     runs_of(c), "seeds", (int)c->seeds, "seed", seed_of(c), "most_workers",
                     c->n_workers > 0 ? (int)c->workers[c->n_workers - 1] : 0, "plots", "speed_up", speed_up_of(c), "epochs",
                     losses_of(c, false), "seconds", losses_of(c, true));
}
