/* What a drill has come to, as lines of at most 80 columns, and as one JSON object. */
#include <math.h>
#include <string.h>

#include "bench/drill/drill.h"
#include "bench/json.h"

enum { COLUMNS = 80, INDENT = 12 };

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void put_mode(FILE *out, const struct shmt_drill_score *m) {
    char worst[24] = "-", verdict[32] = "as expected";
    if (m->runs == 0) return;
    if (isfinite(m->worst_respawn_ms)) snprintf(worst, sizeof worst, "%.1f", m->worst_respawn_ms);
    if (m->failed > 0) snprintf(verdict, sizeof verdict, "%u FAILED", m->failed);
    fprintf(out, "%-24.24s %5u %7llu %6llu %9llu %9s   %s\n", m->name, m->runs, (unsigned long long)m->deaths,
            (unsigned long long)m->stops, (unsigned long long)m->respawns, worst, verdict);
}

/* What the columns have no room for. */
static void put_special(FILE *out, const struct shmt_drill *d) {
    unsigned long long guest_deaths = 0, guest_examples = 0;
    uint32_t resumed = 0, cuts = 0, lost_hosts = 0;
    for (uint32_t i = 0; i < SHMT_DRILL_MODES; i++) {
        guest_deaths += d->mode[i].guest_deaths;
        guest_examples += d->mode[i].guest_examples;
        resumed += d->mode[i].resumed;
        cuts += d->mode[i].cuts;
        lost_hosts += d->mode[i].lost_hosts;
    }
    if (guest_examples > 0)
        fprintf(out, "Guests trained on %llu examples and died %llu time%s.\n", guest_examples, guest_deaths,
                plural(guest_deaths));
    if (cuts + lost_hosts > 0)
        fprintf(out, "Links between hosts were stopped %u time%s, and %u host%s killed.\n", cuts, plural(cuts), lost_hosts,
                lost_hosts == 1 ? " was" : "s were");
    if (resumed > 0)
        fprintf(out, "%u run%s killed and then resumed from a checkpoint.\n", resumed, resumed == 1 ? " was" : "s were");
}

/* Words with blanks between them, in as many lines as they take; the first one begins in this column. */
static void put_words(FILE *out, size_t column, const char *words) {
    for (const char *gap = ""; *words; gap = " ") {
        const size_t n = strcspn(words, " ");
        if (gap[0] && column + 1 + n > COLUMNS)
            column = (size_t)fprintf(out, "\n%*s%.*s", INDENT, "", (int)n, words) - 1;
        else
            column += (size_t)fprintf(out, "%s%.*s", gap, (int)n, words);
        words += n + strspn(words + n, " ");
    }
}

static void put_failures(FILE *out, const struct shmt_drill *d) {
    for (uint32_t i = 0; i < d->n_failures; i++) {
        const struct shmt_drill_failure *f = &d->failure[i];
        const int column = fprintf(out, "\n%s: ", f->mode) - 1;
        put_words(out, (size_t)column, f->why);
        fprintf(out, "\n  repeat it: shmtrain drill --rounds 1 --seed %llu\n", (unsigned long long)f->seed);
    }
    if (d->failed > d->n_failures) fprintf(out, "\n%u more are not shown.\n", d->failed - d->n_failures);
}

void shmt_drill_text(const struct shmt_drill *d, FILE *out) {
    fprintf(out, "%-24s %5s %7s %6s %9s %9s   %s\n", "mode", "runs", "deaths", "stops", "respawns", "worst ms", "ended");
    for (uint32_t i = 0; i < SHMT_DRILL_MODES; i++) put_mode(out, &d->mode[i]);
    fprintf(out, "\n%u run%s of %u workers in %.0f s, and %u undisturbed: ", d->rounds, plural(d->rounds), d->workers,
            d->seconds, d->quiet_runs);
    if (d->failed == 0)
        fprintf(out, "all ended as expected.\n");
    else
        fprintf(out, "%u failed.\n", d->failed);
    put_special(out, d);
    put_failures(out, d);
}

static json_t *mode_of(const struct shmt_drill_score *m) {
    return json_pack("{s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:o, s:o, s:o}", "name", m->name, "runs",
                     (int)m->runs, "failed", (int)m->failed, "deaths", (json_int_t)m->deaths, "stops", (json_int_t)m->stops,
                     "respawns", (json_int_t)m->respawns, "guest_deaths", (json_int_t)m->guest_deaths, "guest_examples",
                     (json_int_t)m->guest_examples, "resumed", (int)m->resumed, "cuts", (int)m->cuts, "lost_hosts",
                     (int)m->lost_hosts, "worst_respawn_ms", json_figure(m->worst_respawn_ms), "low_loss",
                     json_figure(m->low_loss), "high_loss", json_figure(m->high_loss));
}

void shmt_drill_json(const struct shmt_drill *d, FILE *out) {
    json_t *modes = json_array(), *failures = json_array();
    for (uint32_t i = 0; i < SHMT_DRILL_MODES; i++)
        if (d->mode[i].runs > 0) json_array_append_new(modes, mode_of(&d->mode[i]));
    for (uint32_t i = 0; i < d->n_failures; i++) {
        const struct shmt_drill_failure *f = &d->failure[i];
        json_array_append_new(
            failures, json_pack("{s:I, s:s, s:o}", "seed", (json_int_t)f->seed, "mode", f->mode, "why", json_sentence(f->why)));
    }
    json_print(json_pack("{s:I, s:I, s:I, s:i, s:I, s:f, s:o, s:o}", "seed", (json_int_t)d->seed, "rounds",
                         (json_int_t)d->rounds, "failed", (json_int_t)d->failed, "workers", (int)d->workers, "quiet_runs",
                         (json_int_t)d->quiet_runs, "seconds", d->seconds, "modes", modes, "failures", failures),
               out);
}
