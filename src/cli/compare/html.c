/* A comparison as one page of HTML that needs nothing but itself: no script, no font, no image from elsewhere. It is
 * well-formed XML, too. Words of the table are table.c's, figures are chart.h's, the style is style.c's. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/compare/chart.h"
#include "cli/compare/compare.h"
#include "cli/compare/style.h"
#include "cli/compare/markup.h"

#define MOST_BARS 32 /* workers that are drawn */

static const char *base_name(const char *data) {
    const char *slash = strrchr(data, '/');
    return slash && slash[1] != '\0' ? slash + 1 : data;
}

/* ---- the top ---- */

/* As a shell takes it. */
static void put_word(FILE *out, const char *word) {
    static const char SAFE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
    if (word[0] != '\0' && word[strspn(word, SAFE)] == '\0') {
        markup_text(out, word);
        return;
    }
    fputc('\'', out);
    for (const char *quote; (quote = strchr(word, '\'')); word = quote + 1) {
        markup_part(out, word, (size_t)(quote - word));
        fputs("'\\''", out);
    }
    markup_text(out, word);
    fputc('\'', out);
}

/* "-w 2" stays in one line: a browser would tear it behind the dash. */
static void put_sentence(FILE *out, const char *words) {
    for (const char *at; (at = strstr(words, "-w ")); words = at) {
        markup_part(out, words, (size_t)(at - words));
        const size_t n = 3 + strcspn(at + 3, " ");
        fputs("<span class=\"whole\">", out);
        markup_part(out, at, n);
        fputs("</span>", out);
        at += n;
    }
    markup_text(out, words);
}

static void put_top(const struct comparison *c, FILE *out) {
    char sentence[COMPARE_SENTENCES][COMPARE_WORDS];
    const unsigned n = compare_sentences(c, sentence);
    fprintf(out, "<header>\n<h1>Consistency modes compared</h1>\n<p class=\"sub\">");
    for (unsigned i = 0; i < c->n; i++) {
        if (!compare_is_shown(c, &c->run[i])) continue;
        fputs(c->run[i].which == 0 ? "" : i + 1 < c->n ? ", " : " and ", out);
        markup_text(out, c->run[i].label);
    }
    fputs(" on ", out);
    markup_text(out, base_name(c->title));
    fprintf(out, "</p>\n<pre><code>shmtrain");
    for (int i = 1; i < c->arguments->argc; i++) {
        fputs(" <span>", out);
        put_word(out, c->arguments->argv[i]);
        fputs("</span>", out);
    }
    fprintf(out, "</code></pre>\n");
    for (unsigned i = 1; i < n; i++) {
        fprintf(out, "<p>");
        put_sentence(out, sentence[i]);
        fprintf(out, "</p>\n");
    }
    fprintf(out, "</header>\n");
}

/* ---- the table ---- */

/* From the least to the most of several seeds; nothing where none has come to it. */
static void put_ends(const struct compare_run *run, unsigned column, FILE *out) {
    const struct compare_spread s = compare_spread_of(run, COMPARE_TABLE[column].figure);
    char least[32], most[32];
    if (s.n < 2 || !isfinite(s.least)) return;
    fputs("<small>", out);
    markup_format(out, "%s to %s", compare_words(column, s.least, least),
                  isfinite(s.most) ? compare_words(column, s.most, most) : "never");
    fputs("</small>", out);
}

static void put_figures(const struct comparison *c, const struct compare_run *run, FILE *out) {
    char cell[32];
    int column;
    for (unsigned i = 1; (column = compare_column_at(c, i)) >= 0; i++) {
        const bool best = compare_is_best(c, run, (unsigned)column);
        fprintf(out, "<td%s data-label=\"%s%s\">%s", best ? " class=\"best\"" : "", COMPARE_TABLE[column].title,
                COMPARE_TABLE[column].to_target ? " to the target" : "", best ? "<b>" : "");
        markup_text(out, compare_cell(c, run, (unsigned)column, cell));
        if (best) fprintf(out, "</b>");
        put_ends(run, (unsigned)column, out);
        fprintf(out, "</td>");
    }
}

static unsigned count_columns(const struct comparison *c) {
    unsigned n = 0;
    while (compare_column_at(c, n) >= 0) n++;
    return n;
}

static void put_row(const struct comparison *c, unsigned i, struct chart *chart) {
    const struct compare_run *run = &c->run[i];
    FILE *out = chart->out;
    char why[600];
    fprintf(out, "<tr><th scope=\"row\">");
    chart_key(chart, run->which);
    fputc(' ', out);
    markup_text(out, run->kept ? run->label : run->name);
    fprintf(out, "%s</th>", run->kept && run->kept->report.stopped ? " (stopped)" : "");
    if (run->kept) {
        put_figures(c, run, out);
    } else {
        fprintf(out, "<td class=\"why\" colspan=\"%u\">", count_columns(c) - 1);
        markup_text(out, compare_why(run, why, sizeof why));
        fprintf(out, "</td>");
    }
    fprintf(out, "</tr>\n");
}

static void put_table(const struct comparison *c, struct chart *chart) {
    FILE *out = chart->out;
    char sentence[COMPARE_SENTENCES][COMPARE_WORDS];
    const unsigned n = compare_sentences(c, sentence);
    fprintf(out, "<section>\n<h2>What each mode cost and gave</h2>\n<table class=\"wide\">\n<caption>");
    if (n > 0) put_sentence(out, sentence[0]);
    fprintf(out, "</caption>\n<thead><tr>");
    int column;
    for (unsigned i = 0; (column = compare_column_at(c, i)) >= 0; i++) {
        fprintf(out, "<th scope=\"col\">");
        markup_text(out, COMPARE_TABLE[column].title);
        fprintf(out, COMPARE_TABLE[column].to_target ? "<small>to the target</small></th>" : "</th>");
    }
    fprintf(out, "</tr></thead>\n<tbody>\n");
    for (unsigned i = 0; i < c->n; i++) put_row(c, i, chart);
    fprintf(out, "</tbody>\n</table>\n</section>\n");
}

/* ---- figures ---- */

static void put_curves(const struct comparison *c, bool by_time, struct chart *chart) {
    struct compare_plot made;
    compare_make_plot(c, by_time, &made);
    if (by_time) made.plot.x_title = "seconds of training"; /* a page has room for that */
    fprintf(chart->out, "<figure>\n<h3>%c%s</h3>\n", made.title[0] - 'a' + 'A', made.title + 1);
    chart_lines(chart, &made.plot, made.look);
    fprintf(chart->out, "<figcaption>%s</figcaption>\n</figure>\n",
            by_time ? "Hardware efficiency: what counts in the end, waiting and all."
                    : "Statistical efficiency: what a pass over the data is worth in each mode.");
    compare_release_plot(&made);
}

static void put_legend(const struct comparison *c, struct chart *chart) {
    FILE *out = chart->out;
    fprintf(out, "<ul class=\"legend\">\n");
    for (unsigned i = 0; i < c->n; i++) {
        if (!c->run[i].kept || !compare_is_shown(c, &c->run[i])) continue;
        fprintf(out, "<li>");
        chart_key(chart, c->run[i].which);
        markup_text(out, c->run[i].label);
        fprintf(out, "</li>\n");
    }
    fprintf(out, "</ul>\n");
}

/* Of the largest number of workers, where there are several: else curves and panels would be too many to read. */
static void put_heading(const struct comparison *c, const char *words, FILE *out) {
    fprintf(out, "<section>\n<h2>%s", words);
    if (c->n_workers > 0) fprintf(out, ", with %u workers", c->workers[c->n_workers - 1]);
    fprintf(out, "</h2>\n");
}

static void put_plots(const struct comparison *c, struct chart *chart) {
    FILE *out = chart->out;
    put_heading(c, "Loss over epochs, loss over time", out);
    if (c->seeds > 1) {
        fprintf(out,
                "<p class=\"note\">The band around a curve is from the lowest to the highest loss of %u seeds; the curve is "
                "the run whose final loss is the median.</p>\n",
                c->seeds);
    }
    put_legend(c, chart);
    fprintf(out, "<div class=\"pair\">\n");
    put_curves(c, false, chart);
    put_curves(c, true, chart);
    fprintf(out, "</div>\n</section>\n");
}

static void put_speed_up(const struct comparison *c, struct chart *chart) {
    FILE *out = chart->out;
    struct compare_plot made;
    compare_make_speed_up(c, &made);
    if (made.plot.n_curves > 0) {
        fprintf(out, "<section>\n<h2>What more workers bring</h2>\n");
        put_legend(c, chart);
        fprintf(out, "<figure class=\"single\">\n<h3>Speed-up over %u worker%s</h3>\n", c->workers[0],
                c->workers[0] == 1 ? "" : "s");
        chart_lines(chart, &made.plot, made.look);
        fprintf(out,
                "<figcaption>Of the median epoch's seconds of training. Perfect is as many times as fast as there are "
                "workers, as far as there are cores%s. Speed is a gain where the loss is kept: see the table.</figcaption>\n"
                "</figure>\n</section>\n",
                c->seeds > 1 ? "; bars are from the lowest to the highest of all seeds" : "");
    }
    compare_release_plot(&made);
}

static void put_figure_head(FILE *out, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_figure_head(FILE *out, const char *name, const char *format, ...) {
    va_list args;
    fprintf(out, "<figure>\n<h3>");
    markup_text(out, name);
    fprintf(out, "</h3>\n<figcaption>");
    va_start(args, format);
    markup_arguments(out, format, args);
    va_end(args);
    fprintf(out, "</figcaption>\n");
}

static void put_workers(const struct comparison *c, struct chart *chart) {
    FILE *out = chart->out;
    const struct shmtrain_report *any = compare_any_report(c);
    if (!any || any->n_workers == 0) return;
    put_heading(c, "What the workers did with their time", out);
    fprintf(out,
            "<ul class=\"legend\">\n"
            "<li><i class=\"compute\"></i>computing</li>\n<li><i class=\"wait\"></i>waiting for others</li>\n"
            "<li><i class=\"meet\"></i>waiting at the end of epochs</li>\n<li><i class=\"merge\"></i>merging</li>\n</ul>\n"
            "<div class=\"many\">\n");
    for (unsigned i = 0; i < c->n; i++) {
        const struct shmtrain_report *r = compare_report(&c->run[i]);
        if (!r || !compare_is_shown(c, &c->run[i])) continue;
        put_figure_head(out, c->run[i].label, "waiting %.1f %%, at epochs' ends %.1f %%, merging %.1f %%%s",
                        100 * r->wait_fraction, 100 * r->wait_epoch_fraction, 100 * r->merge_fraction,
                        r->n_workers > MOST_BARS ? "; not all workers are shown" : "");
        chart_workers(chart, c->run[i].label, r);
        fprintf(out, "</figure>\n");
    }
    fprintf(out, "</div>\n</section>\n");
}

/* Three digits each: the panels' heads are one line. */
static void put_delay_head(FILE *out, const char *name, const struct shmtrain_delay *delay) {
    char text[4][16];
    put_figure_head(out, name, "mean %s, median %s, 99 %% up to %s, most %s", compare_short(delay->mean, text[0]),
                    compare_short(delay->p50, text[1]), compare_short(delay->p99, text[2]), compare_short(delay->max, text[3]));
}

static void put_delays(const struct comparison *c, struct chart *chart) {
    FILE *out = chart->out;
    chart->most_delay = 0;
    for (unsigned i = 0; i < c->n; i++) {
        const struct shmtrain_report *r = compare_report(&c->run[i]);
        if (r && compare_is_shown(c, &c->run[i]) && r->delay.n_buckets > 0)
            chart->most_delay = fmax(chart->most_delay, (double)r->delay.bucket[r->delay.n_buckets - 1].to);
    }
    put_heading(c, "Delays", out);
    fprintf(out,
            "<p class=\"note\">How many updates of others came between the moment at which a worker "
            "read the parameters and the one at which its gradient reached them, and in which share of the samples.</p>\n"
            "<div class=\"many\">\n");
    for (unsigned i = 0; i < c->n; i++) {
        const struct shmtrain_report *r = compare_report(&c->run[i]);
        if (!r || !compare_is_shown(c, &c->run[i])) continue;
        if (r->delay.samples == 0)
            put_figure_head(out, c->run[i].label, "not measured");
        else
            put_delay_head(out, c->run[i].label, &r->delay);
        chart_delays(chart, c->run[i].label, c->run[i].which, &r->delay);
        fprintf(out, "</figure>\n");
    }
    fprintf(out, "</div>\n</section>\n");
}

/* ---- what ran ---- */

static void put_seed(const struct compare_run *run, const struct compare_seed *seed, FILE *out) {
    static const unsigned COLUMNS[] = {COLUMN_TIME, COLUMN_EPOCHS, COLUMN_LOSS};
    const double figure[] = {seed->to_target_s, seed->to_target_epochs, seed->final_loss};
    char cell[32];
    fprintf(out, "<tr><th scope=\"row\">");
    markup_text(out, run->name);
    fprintf(out, "</th><td data-label=\"seed\">%" PRIu64 "</td>", seed->seed);
    for (size_t i = 0; i < sizeof COLUMNS / sizeof *COLUMNS; i++)
        fprintf(out, "<td data-label=\"%s\">%s</td>", COMPARE_TABLE[COLUMNS[i]].title,
                compare_words(COLUMNS[i], figure[i], cell));
    fprintf(out, "<td data-label=\"lowest loss\">%s</td>", compare_words(COLUMN_LOSS, seed->lowest_loss, cell));
    fprintf(out, "<td data-label=\"s/epoch\">%s</td></tr>\n", compare_words(COLUMN_EPOCH, seed->epoch_s, cell));
}

static void put_seeds(const struct comparison *c, FILE *out) {
    if (c->seeds < 2) return;
    fprintf(out,
            "<section>\n<h2>Every seed</h2>\n<table class=\"wide\">\n<thead><tr><th scope=\"col\">mode</th>"
            "<th scope=\"col\">seed</th><th scope=\"col\">seconds<small>to the target</small></th>"
            "<th scope=\"col\">epochs<small>to the target</small></th><th scope=\"col\">final loss</th>"
            "<th scope=\"col\">lowest loss</th><th scope=\"col\">s/epoch</th></tr></thead>\n<tbody>\n");
    for (unsigned i = 0; i < c->n; i++)
        for (unsigned k = 0; k < c->run[i].n_seeds; k++) put_seed(&c->run[i], &c->run[i].seed[k], out);
    fprintf(out, "</tbody>\n</table>\n</section>\n");
}

static void put_fact(FILE *out, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_fact(FILE *out, const char *name, const char *format, ...) {
    va_list args;
    fprintf(out, "<dt>%s</dt><dd>", name);
    va_start(args, format);
    markup_arguments(out, format, args);
    va_end(args);
    fprintf(out, "</dd>\n");
}

static void put_facts(const struct comparison *c, FILE *out) {
    const struct shmtrain_report *r = compare_any_report(c);
    if (!r) return;
    fprintf(out, "<dl>\n");
    put_fact(out, "Data", "%s: %" PRIu64 " examples, %" PRIu64 " features, %" PRIu64 " nonzeros", r->dataset.name,
             r->dataset.examples, r->dataset.features, r->dataset.nonzeros);
    if (r->valid.name[0] != '\0') put_fact(out, "Validation", "%s: %" PRIu64 " examples", r->valid.name, r->valid.examples);
    if (isfinite(r->best_loss)) put_fact(out, "Best possible", "%.5f, of the model that made the data", r->best_loss);
    put_fact(out, "Model", "%s, %s, l1 %.4g, l2 %.4g", r->model, r->optimizer, r->l1, r->l2);
    if (c->seeds > 1)
        put_fact(out, "Seeds", "%" PRIu64 " to %" PRIu64, c->first_seed, c->first_seed + c->seeds - 1);
    else
        put_fact(out, "Seed", "%" PRIu64, r->seed);
    if (c->n_workers == 0) put_fact(out, "Workers", "%u%s", r->workers, r->threads > 1 ? " of several threads" : "");
    if (r->cores > 0) put_fact(out, "Cores", "%u", r->cores);
    if (r->threads > 1) put_fact(out, "Threads", "%u in each worker", r->threads);
    if (r->slow[0] != '\0') put_fact(out, "Slowed down", "%s", r->slow);
    if (r->race_seconds > 0)
        put_fact(out, "Race window", "%g us between load and store, in %g %% of pushes", 1e6 * r->race_seconds,
                 100 * r->race_share);
    put_fact(out, "Memory", "%u NUMA node%s%s%s, pages of %" PRIu64 " KiB", r->numa_nodes, r->numa_nodes == 1 ? "" : "s",
             r->numa_nodes > 1 ? ", " : "", r->numa_nodes > 1 ? r->numa : "", r->page_bytes / 1024);
    if (r->blas[0] != '\0') put_fact(out, "BLAS", "%s", r->blas);
    put_fact(out, "Program", "shmtrain %s, %s backend", PACKAGE_VERSION, r->backend);
    fprintf(out, "</dl>\n");
}

static void put_choice(FILE *out, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_choice(FILE *out, const char *label, const char *format, ...) {
    va_list args;
    fprintf(out, "<td data-label=\"%s\">", label);
    va_start(args, format);
    markup_arguments(out, format, args);
    va_end(args);
    fprintf(out, "</td>");
}

static const char *const CHOICES[] = {"write", "staleness", "quorum", "replicas", "rate", "epochs", "updates"};
#define N_CHOICES (sizeof CHOICES / sizeof *CHOICES)

static void put_choices(const struct compare_run *run, FILE *out) {
    const struct shmtrain_report *r = &run->kept->report;
    fprintf(out, "<tr><th scope=\"row\">");
    markup_text(out, run->name);
    fprintf(out, "</th>");
    put_choice(out, CHOICES[0], "%s", r->write);
    if (r->staleness == UINT64_MAX)
        put_choice(out, CHOICES[1], "no bound");
    else
        put_choice(out, CHOICES[1], "%" PRIu64, r->staleness);
    if (strcmp(r->write, "aggregate") == 0)
        put_choice(out, CHOICES[2], "%u of %u%s%s", r->quorum, r->workers, r->quorum < r->workers ? ", late: " : "",
                   r->quorum < r->workers ? r->late : "");
    else
        put_choice(out, CHOICES[2], "-");
    if (r->merge_every > 0)
        put_choice(out, CHOICES[3], "%s (%u), %s every %u", r->replicas, r->n_replicas, r->merge, r->merge_every);
    else
        put_choice(out, CHOICES[3], "%s", r->replicas);
    put_choice(out, CHOICES[4], "%.4g %s", r->rate, r->schedule);
    put_choice(out, CHOICES[5], "%u", r->n_epochs);
    put_choice(out, CHOICES[6], "%" PRIu64, r->updates);
    fprintf(out, "</tr>\n");
}

static void put_setting(const struct comparison *c, FILE *out) {
    fprintf(out, "<section>\n<h2>What ran</h2>\n");
    put_facts(c, out);
    if (compare_has_runs(c)) {
        fprintf(out, "<table class=\"wide\">\n<thead><tr><th scope=\"col\">mode</th>");
        for (unsigned i = 0; i < N_CHOICES; i++) fprintf(out, "<th scope=\"col\">%s</th>", CHOICES[i]);
        fprintf(out, "</tr></thead>\n<tbody>\n");
        for (unsigned i = 0; i < c->n; i++)
            if (c->run[i].kept) put_choices(&c->run[i], out);
        fprintf(out, "</tbody>\n</table>\n");
    }
    fprintf(out, "</section>\n");
}

/* ---- the page ---- */

void compare_put_html(const struct comparison *c, FILE *out) {
    struct chart chart = {.out = out, .workers = MOST_BARS};
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>shmtrain compare: ");
    markup_text(out, base_name(c->title));
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", COMPARE_STYLE);
    put_top(c, out);
    put_table(c, &chart);
    if (compare_has_runs(c)) {
        put_speed_up(c, &chart);
        put_plots(c, &chart);
        put_workers(c, &chart);
        put_delays(c, &chart);
    }
    put_seeds(c, out);
    put_setting(c, out);
    fprintf(out, "</main>\n</body>\n</html>\n");
}
