/* Bars of workers, histograms of delays, as SVG: see chart.h. */
#include <math.h>

#include "cli/compare/chart_priv.h"
#include "cli/compare/markup.h"
#include "cli/compare/scale.h"

#define WIDTH 320.0
#define LEFT  34.0
#define RIGHT 12.0

/* ---- workers ---- */

#define BAR    13.0
#define STEP   17.0
#define TOP    4.0
#define BOTTOM 34.0

/* The parts of a bar, in their order; classes are the page's. */
static const struct {
    const char *kind, *words;
} PARTS[] = {{"compute", "computing"}, {"wait", "waiting"}, {"meet", "waiting at the end of epochs"}, {"merge", "merging"}};
#define N_PARTS (sizeof PARTS / sizeof *PARTS)

static void seconds_of(const struct shmtrain_worker_report *w, double out[N_PARTS]) {
    out[0] = w->compute_seconds;
    out[1] = w->wait_seconds;
    out[2] = w->wait_epoch_seconds;
    out[3] = w->merge_seconds;
    for (unsigned i = 0; i < N_PARTS; i++) out[i] = out[i] > 0 ? out[i] : 0; /* NaN: nobody knows */
}

static double sum_of(const struct shmtrain_worker_report *w) {
    double part[N_PARTS], sum = 0;
    seconds_of(w, part);
    for (unsigned i = 0; i < N_PARTS; i++) sum += part[i];
    return sum;
}

/* Bar i shows worker rank_of(i): all of them, or some at equal distances. */
static uint32_t rank_of(const struct shmtrain_report *r, unsigned bars, unsigned i) {
    return bars <= 1 ? 0 : (uint32_t)((uint64_t)i * (r->n_workers - 1) / (bars - 1));
}

static void put_bar(struct chart *chart, const struct shmtrain_report *r, uint32_t rank, double y, double all) {
    double part[N_PARTS], x = LEFT;
    char words[16];
    seconds_of(&r->worker[rank], part);
    snprintf(words, sizeof words, "%u", rank);
    chart_words(chart, "number", "end", LEFT - 6, y + BAR - 3, words);
    for (unsigned i = 0; i < N_PARTS; i++) {
        const double width = part[i] / all * (WIDTH - LEFT - RIGHT);
        if (width < 0.05) continue;
        fprintf(chart->out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>", PARTS[i].kind, x,
                y, width, BAR);
        markup_format(chart->out, "worker %u: %s %.1f %%, %.3f s", rank, PARTS[i].words, 100 * part[i] / all, part[i]);
        fprintf(chart->out, "</title></rect>\n");
        x += width;
    }
}

static void put_percents(struct chart *chart, double bottom) {
    for (unsigned i = 0; i <= 4; i++) {
        char words[16];
        const double x = LEFT + i * 0.25 * (WIDTH - LEFT - RIGHT);
        snprintf(words, sizeof words, "%u%s", 25 * i, i == 4 ? " %" : "");
        chart_line(chart, "grid", x, TOP, x, bottom);
        chart_words(chart, "number", i == 4 ? "end" : "middle", i == 4 ? WIDTH : x, bottom + 14, words);
    }
    chart_words(chart, "name", "start", LEFT, bottom + 28, "of the longest worker's training time");
}

void chart_workers(struct chart *chart, const char *name, const struct shmtrain_report *r) {
    const unsigned bars = r->n_workers < chart->workers ? r->n_workers : chart->workers;
    const double bottom = TOP + bars * STEP;
    double all = 0;
    char title[160];
    for (uint32_t i = 0; i < r->n_workers; i++) all = fmax(all, sum_of(&r->worker[i]));
    if (bars == 0 || !(all > 0)) return;
    snprintf(title, sizeof title, "What the workers of %s did with their time", name);
    chart_begin(chart, WIDTH, bottom + BOTTOM, title);
    for (unsigned i = 0; i < bars; i++) {
        double part[N_PARTS];
        const uint32_t rank = rank_of(r, bars, i);
        seconds_of(&r->worker[rank], part);
        markup_format(chart->out, "Worker %u: computing %.0f %%, waiting %.0f %%, merging %.0f %%. ", rank, 100 * part[0] / all,
                      100 * (part[1] + part[2]) / all, 100 * part[3] / all);
    }
    chart_described(chart);
    put_percents(chart, bottom);
    for (unsigned i = 0; i < bars; i++) put_bar(chart, r, rank_of(r, bars, i), TOP + i * STEP, all);
    chart_end(chart);
}

/* ---- delays ---- */

#define PANEL       136.0
#define PANEL_TOP   10.0
#define PANEL_BELOW 34.0
#define PANEL_LEFT  42.0
#define LEAST_SHARE 1e-4 /* where the axis of shares begins */
#define DECADES     4

/* The axis is that of 1 + delay, so that there is a place for 0. */
static double place_of(const struct scale *s, double delay) {
    return PANEL_LEFT + scale_place(s, 1 + delay) * (WIDTH - PANEL_LEFT - RIGHT);
}

static double height_of(double share) {
    const double place = 1 + log10(fmax(share, LEAST_SHARE)) / DECADES;
    return fmax(place * (PANEL - PANEL_BELOW - PANEL_TOP), 1); /* what is rare is there, too */
}

/* 0, 1, 10, ... "100 k", as many as there is room for. */
static void put_delay_axis(struct chart *chart, const struct scale *s, double bottom) {
    static const char *const UNITS[] = {"", " k", " M", " G", " T", " P", " E"};
    double end = -1;
    for (int power = -1; power < 20; power++) {
        const double delay = power < 0 ? 0 : pow(10, power), x = place_of(s, delay);
        char words[24];
        if (1 + delay > s->to || x < end) continue;
        snprintf(words, sizeof words, "%.0f%s", power < 0 ? 0 : pow(10, power % 3), UNITS[power < 0 ? 0 : power / 3]);
        chart_line(chart, "axis", x, bottom, x, bottom + 4);
        chart_words(chart, "number", "middle", x, bottom + 16, words);
        end = x + 34;
    }
    chart_line(chart, "axis", PANEL_LEFT, bottom, WIDTH - RIGHT, bottom);
    chart_words(chart, "name", "end", WIDTH - RIGHT, bottom + 30, "updates of others (log scale)");
}

static void put_share_axis(struct chart *chart, double bottom) {
    static const char *const SHARES[] = {"0.1 %", "1 %", "10 %", "100 %"};
    for (int i = 0; i < DECADES; i++) {
        const double y = bottom - height_of(LEAST_SHARE * pow(10, i + 1));
        chart_line(chart, "grid", PANEL_LEFT, y, WIDTH - RIGHT, y);
        chart_words(chart, "number", "end", PANEL_LEFT - 5, y + 3.5, SHARES[i]);
    }
}

void chart_delays(struct chart *chart, const char *name, unsigned look, const struct shmtrain_delay *delay) {
    const double bottom = PANEL - PANEL_BELOW;
    struct scale s;
    char title[160];
    if (delay->samples == 0 || delay->n_buckets == 0) return;
    scale_log(&s, 1, fmax(10, chart->most_delay + 2), 6);
    snprintf(title, sizeof title, "Delays in %s", name);
    chart_begin(chart, WIDTH, PANEL, title);
    markup_format(chart->out, "%llu samples: mean %.4g, median %.4g, 99th percentile %.4g, largest %.4g updates.",
                  (unsigned long long)delay->samples, delay->mean, delay->p50, delay->p99, delay->max);
    chart_described(chart);
    put_share_axis(chart, bottom);
    for (uint32_t i = 0; i < delay->n_buckets; i++) {
        const struct shmtrain_delays *b = &delay->bucket[i];
        const double x = place_of(&s, (double)b->from), share = (double)b->samples / (double)delay->samples;
        fprintf(chart->out, "<rect class=\"bar c%u\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n",
                look % CHART_COLOURS, x, bottom - height_of(share), place_of(&s, (double)b->to + 1) - x, height_of(share));
    }
    put_delay_axis(chart, &s, bottom);
    chart_end(chart);
}
