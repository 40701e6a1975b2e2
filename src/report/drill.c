/* What a drill has come to, as lines of at most 80 columns, and as one JSON object. */
#include <shmtrain/drill.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/plain.h"
#include "report/json_priv.h"
#include "report/words_priv.h"

static void put_mode(FILE *out, const struct shmtrain_drill_mode *m) {
    char worst[24] = "-", verdict[32] = "as expected";
    if (m->runs == 0) return;
    if (isfinite(m->worst_respawn_ms)) snprintf(worst, sizeof worst, "%.1f", m->worst_respawn_ms);
    if (m->failed > 0) snprintf(verdict, sizeof verdict, "%u FAILED", m->failed);
    fprintf(out, "%-24.24s %5u %7llu %6llu %9llu %9s   %s\n", m->name, m->runs, (unsigned long long)m->deaths,
            (unsigned long long)m->stops, (unsigned long long)m->respawns, worst, verdict);
}

/* What the columns have no room for. */
static void put_special(FILE *out, const struct shmtrain_drill *d) {
    unsigned long long guest_deaths = 0, guest_examples = 0;
    uint32_t resumed = 0;
    for (uint32_t i = 0; i < d->n_modes; i++) {
        guest_deaths += d->mode[i].guest_deaths;
        guest_examples += d->mode[i].guest_examples;
        resumed += d->mode[i].resumed;
    }
    if (guest_examples > 0)
        fprintf(out, "Guests trained on %llu examples and died %llu time%s.\n", guest_examples, guest_deaths,
                shmt_plural(guest_deaths));
    if (resumed > 0) fprintf(out, "%u run%s were killed and then resumed from a checkpoint.\n", resumed, shmt_plural(resumed));
}

static void put_failures(FILE *out, const struct shmtrain_drill *d) {
    for (uint32_t i = 0; i < d->n_failures; i++) {
        const struct shmtrain_drill_failure *f = &d->failure[i];
        char lines[512] = "";
        shmt_add(lines, sizeof lines, "%s: ", f->mode);
        shmt_add_words(lines, sizeof lines, f->why);
        fprintf(out, "\n%s\n  repeat it: shmtrain drill --rounds 1 --seed %llu\n", lines, (unsigned long long)f->seed);
    }
    if (d->failed > d->n_failures) fprintf(out, "\n%u more are not shown.\n", d->failed - d->n_failures);
}

char *shmtrain_drill_text(const struct shmtrain_drill *drill) {
    SHMT_PLAIN_NUMBERS;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    fprintf(out, "%-24s %5s %7s %6s %9s %9s   %s\n", "mode", "runs", "deaths", "stops", "respawns", "worst ms", "ended");
    for (uint32_t i = 0; i < drill->n_modes; i++) put_mode(out, &drill->mode[i]);
    fprintf(out, "\n%u run%s of %u workers in %.0f s, and %u undisturbed: ", drill->rounds, shmt_plural(drill->rounds),
            drill->workers, drill->seconds, drill->quiet_runs);
    if (drill->failed == 0)
        fprintf(out, "all ended as expected.\n");
    else
        fprintf(out, "%u failed.\n", drill->failed);
    put_special(out, drill);
    put_failures(out, drill);
    const int failed = ferror(out);
    if (fclose(out) == 0 && !failed) return text;
    free(text);
    return NULL;
}

static json_t *mode_of(const struct shmtrain_drill_mode *m) {
    json_t *o = json_object();
    json_object_set_new(o, "name", shmt_json_text(m->name));
    json_object_set_new(o, "runs", shmt_json_whole(m->runs));
    json_object_set_new(o, "failed", shmt_json_whole(m->failed));
    json_object_set_new(o, "deaths", shmt_json_whole(m->deaths));
    json_object_set_new(o, "stops", shmt_json_whole(m->stops));
    json_object_set_new(o, "respawns", shmt_json_whole(m->respawns));
    json_object_set_new(o, "guest_deaths", shmt_json_whole(m->guest_deaths));
    json_object_set_new(o, "guest_examples", shmt_json_whole(m->guest_examples));
    json_object_set_new(o, "resumed", shmt_json_whole(m->resumed));
    json_object_set_new(o, "worst_respawn_ms", shmt_json_number(m->worst_respawn_ms));
    json_object_set_new(o, "low_loss", shmt_json_number(m->low_loss));
    json_object_set_new(o, "high_loss", shmt_json_number(m->high_loss));
    return o;
}

char *shmtrain_drill_json(const struct shmtrain_drill *drill) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = json_object(), *modes = json_array(), *failures = json_array();
    for (uint32_t i = 0; i < drill->n_modes; i++)
        if (drill->mode[i].runs > 0) json_array_append_new(modes, mode_of(&drill->mode[i]));
    for (uint32_t i = 0; i < drill->n_failures; i++) {
        json_t *one = json_object();
        json_object_set_new(one, "seed", shmt_json_whole(drill->failure[i].seed));
        json_object_set_new(one, "mode", shmt_json_text(drill->failure[i].mode));
        json_object_set_new(one, "why", shmt_json_text(drill->failure[i].why));
        json_array_append_new(failures, one);
    }
    json_object_set_new(o, "seed", shmt_json_whole(drill->seed));
    json_object_set_new(o, "rounds", shmt_json_whole(drill->rounds));
    json_object_set_new(o, "failed", shmt_json_whole(drill->failed));
    json_object_set_new(o, "workers", shmt_json_whole(drill->workers));
    json_object_set_new(o, "quiet_runs", shmt_json_whole(drill->quiet_runs));
    json_object_set_new(o, "seconds", shmt_json_number(drill->seconds));
    json_object_set_new(o, "modes", modes);
    json_object_set_new(o, "failures", failures);
    return shmt_json_line(o);
}
