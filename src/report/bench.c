/* Figures of shmtrain bench as lines of at most 80 columns, and as one JSON object. */
#include <shmtrain/bench.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/plain.h"
#include "report/json_priv.h"
#include "report/words_priv.h"

/* Four digits: "25.48", "1234", "0.0123"; at most 8 characters. "-": not measured. */
static const char *figure(double x, char out[24]) {
    if (!isfinite(x))
        snprintf(out, 24, "-");
    else if (x >= 1e7)
        snprintf(out, 24, "%.3g", x);
    else if (x >= 1000)
        snprintf(out, 24, "%.0f", x);
    else
        snprintf(out, 24, "%.*f", x < 1 ? 4 : x < 10 ? 3 : x < 100 ? 2 : 1, x);
    return out;
}

static void put_floors(FILE *out, const struct shmtrain_bench *b) {
    char low[24], median[24], high[24];
    fprintf(out, "%-40s %8s%-9s %s\n", "what this machine does at best", "median", "", "quartiles");
    for (uint32_t i = 0; i < b->n_floors; i++) {
        const struct shmtrain_bench_floor *f = &b->floor[i];
        fprintf(out, "%-40.40s %8s", f->name, figure(f->value.median, median));
        if (isfinite(f->value.median))
            fprintf(out, " %-8.8s %s .. %s\n", f->unit, figure(f->value.low, low), figure(f->value.high, high));
        else
            fprintf(out, " could not be measured\n");
    }
}

static void put_operations(FILE *out, const struct shmtrain_bench *b) {
    char ours[24], floor[24];
    fprintf(out, "\n%-33s %8s %-10s  %s\n", "what shmtrain makes of it", "median", "", "share, with quartiles");
    for (uint32_t i = 0; i < b->n_operations; i++) {
        const struct shmtrain_bench_operation *o = &b->operation[i];
        fprintf(out, "%-33.33s %8s %-10.10s", o->name, figure(o->ours.median, ours), o->unit);
        if (isfinite(o->share.median))
            fprintf(out, "  %5.1f %%  [%.1f .. %.1f]\n", 100 * o->share.median, 100 * o->share.low, 100 * o->share.high);
        else
            fprintf(out, "      - %%\n");
        fprintf(out, "  of %-40.40s %s %s\n", o->floor_name, figure(o->floor.median, floor), o->unit);
    }
}

char *shmtrain_bench_text(const struct shmtrain_bench *bench) {
    SHMT_PLAIN_NUMBERS;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    fprintf(out, "%u core%s, path %s, %u rounds in %.0f s, streaming over %.0f MiB%s\n\n", bench->cores,
            shmt_plural(bench->cores), bench->cpu, bench->rounds, bench->seconds, (double)bench->bytes / (1 << 20),
            bench->quick ? "; quick: rough" : "");
    put_floors(out, bench);
    put_operations(out, bench);
    if (bench->noisy > 0)
        fprintf(out,
                "\nOther programs used the processors in %u of %u rounds: do not trust these\nfigures. Measure again when "
                "nothing else runs (shmtrain doctor).\n",
                bench->noisy, bench->rounds);
    else if (bench->again > 0)
        fprintf(out, "\n%u round%s measured again, because other programs used the processors.\n", bench->again,
                bench->again == 1 ? " was" : "s were");
    if (bench->cores == 1) fprintf(out, "\nOne core: figures for two cores are missing.\n");
    const int failed = ferror(out);
    if (fclose(out) == 0 && !failed) return text;
    free(text);
    return NULL;
}

static json_t *quartiles(const struct shmtrain_quartiles *q) {
    json_t *o = json_object();
    json_object_set_new(o, "low", shmt_json_number(q->low));
    json_object_set_new(o, "median", shmt_json_number(q->median));
    json_object_set_new(o, "high", shmt_json_number(q->high));
    return o;
}

char *shmtrain_bench_json(const struct shmtrain_bench *bench) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = json_object(), *floors = json_array(), *operations = json_array();
    for (uint32_t i = 0; i < bench->n_floors; i++) {
        const struct shmtrain_bench_floor *f = &bench->floor[i];
        json_t *one = json_object();
        json_object_set_new(one, "name", shmt_json_text(f->name));
        json_object_set_new(one, "unit", shmt_json_text(f->unit));
        json_object_set_new(one, "value", quartiles(&f->value));
        json_array_append_new(floors, one);
    }
    for (uint32_t i = 0; i < bench->n_operations; i++) {
        const struct shmtrain_bench_operation *p = &bench->operation[i];
        json_t *one = json_object();
        json_object_set_new(one, "name", shmt_json_text(p->name));
        json_object_set_new(one, "unit", shmt_json_text(p->unit));
        json_object_set_new(one, "value", quartiles(&p->ours));
        json_object_set_new(one, "floor_name", shmt_json_text(p->floor_name));
        json_object_set_new(one, "floor", quartiles(&p->floor));
        json_object_set_new(one, "share", quartiles(&p->share));
        json_array_append_new(operations, one);
    }
    json_object_set_new(o, "quick", json_boolean(bench->quick));
    json_object_set_new(o, "cores", shmt_json_whole(bench->cores));
    json_object_set_new(o, "cpu", shmt_json_text(bench->cpu));
    json_object_set_new(o, "rounds", shmt_json_whole(bench->rounds));
    json_object_set_new(o, "measured_again", shmt_json_whole(bench->again));
    json_object_set_new(o, "noisy_rounds", shmt_json_whole(bench->noisy));
    json_object_set_new(o, "seconds", shmt_json_number(bench->seconds));
    json_object_set_new(o, "streamed_bytes", shmt_json_whole(bench->bytes));
    json_object_set_new(o, "floors", floors);
    json_object_set_new(o, "operations", operations);
    return shmt_json_line(o);
}
