/* Figures of shmtrain bench as lines of at most 80 columns, and as one JSON object. */
#include <math.h>

#include "bench/json.h"
#include "bench/measure/measure.h"

/* Four digits: "25.48", "1234", "0.0123"; at most 8 characters. "-": not measured. */
static const char *number(double x, char out[24]) {
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

/* Quartile q. */
static const char *figure(const struct shmt_figure *f, uint32_t q, char out[24]) {
    return number(shmt_figure_quartile(f, q), out);
}

static void put_floors(FILE *out, const struct shmt_bench *b) {
    char low[24], median[24], high[24];
    fprintf(out, "%-40s %8s%-9s %s\n", "what this machine does at best", "median", "", "quartiles");
    for (uint32_t i = 0; i < b->n_floors; i++) {
        const struct shmt_bench_line *f = &b->floor[i];
        fprintf(out, "%-40.40s %8s", f->name, figure(&f->of, 2, median));
        if (f->of.n > 0)
            fprintf(out, " %-8.8s %s .. %s\n", f->unit, figure(&f->of, 1, low), figure(&f->of, 3, high));
        else
            fprintf(out, " could not be measured\n");
    }
}

static void put_operations(FILE *out, const struct shmt_bench *b) {
    char ours[24], floor[24];
    fprintf(out, "\n%-33s %8s %-10s  %s\n", "what shmtrain makes of it", "median", "", "share, with quartiles");
    for (uint32_t i = 0; i < b->n_operations; i++) {
        const struct shmt_bench_line *o = &b->operation[i];
        fprintf(out, "%-33.33s %8s %-10.10s", o->name, figure(&o->of, 2, ours), o->unit);
        if (o->share.n > 0)
            fprintf(out, "  %5.1f %%  [%.1f .. %.1f]\n", 100 * shmt_figure_median(&o->share),
                    100 * shmt_figure_quartile(&o->share, 1), 100 * shmt_figure_quartile(&o->share, 3));
        else
            fprintf(out, "      - %%\n");
        fprintf(out, "  of %-40.40s %s %s\n", o->on, figure(&o->floor, 2, floor), o->unit);
    }
}

void shmt_bench_text(const struct shmt_bench *b, FILE *out) {
    fprintf(out, "%u core%s, path %s, %u rounds in %.0f s, streaming over %.0f MiB%s\n\n", b->cores, b->cores == 1 ? "" : "s",
            b->cpu, b->rounds, b->seconds, (double)b->bytes / (1 << 20), b->quick ? "; quick: rough" : "");
    put_floors(out, b);
    put_operations(out, b);
    if (b->noisy > 0)
        fprintf(out,
                "\nOther programs used the processors in %u of %u rounds: do not trust these\nfigures. Measure again when "
                "nothing else runs (shmtrain doctor).\n",
                b->noisy, b->rounds);
    else if (b->again > 0)
        fprintf(out, "\n%u round%s measured again, because other programs used the processors.\n", b->again,
                b->again == 1 ? " was" : "s were");
    if (b->cores == 1) fprintf(out, "\nOne core: figures for two cores are missing.\n");
}

static json_t *quartiles(const struct shmt_figure *f) {
    return json_pack("{s:o, s:o, s:o}", "low", json_figure(shmt_figure_quartile(f, 1)), "median",
                     json_figure(shmt_figure_median(f)), "high", json_figure(shmt_figure_quartile(f, 3)));
}

void shmt_bench_json(const struct shmt_bench *b, FILE *out) {
    json_t *floors = json_array(), *operations = json_array();
    for (uint32_t i = 0; i < b->n_floors; i++) {
        const struct shmt_bench_line *f = &b->floor[i];
        json_array_append_new(floors,
                              json_pack("{s:s, s:s, s:o}", "name", f->name, "unit", f->unit, "value", quartiles(&f->of)));
    }
    for (uint32_t i = 0; i < b->n_operations; i++) {
        const struct shmt_bench_line *o = &b->operation[i];
        json_array_append_new(operations, json_pack("{s:s, s:s, s:o, s:s, s:o, s:o}", "name", o->name, "unit", o->unit, "value",
                                                    quartiles(&o->of), "floor_name", o->on, "floor", quartiles(&o->floor),
                                                    "share", quartiles(&o->share)));
    }
    json_print(
        json_pack("{s:b, s:i, s:s, s:i, s:i, s:i, s:f, s:I, s:o, s:o}", "quick", b->quick, "cores", (int)b->cores, "cpu",
                  b->cpu, "rounds", (int)b->rounds, "measured_again", (int)b->again, "noisy_rounds", (int)b->noisy, "seconds",
                  b->seconds, "streamed_bytes", (json_int_t)b->bytes, "floors", floors, "operations", operations),
        out);
}
