/* What all benches share: see bench.h. */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WASTE_NS 20000000000u /* of throwing rounds away, over the whole bench */

enum { MOST_FIGURES = 16 };

static struct shmt_rounds rounds = {.most_waste_ns = MOST_WASTE_NS};

struct bench_options bench_options_read(int argc, char **argv, uint32_t n_rounds) {
    struct bench_options o = {.rounds = n_rounds};
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            o.quick = true;
            o.rounds = 2;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            const unsigned long n = strtoul(argv[++i], &end, 10);
            if (*end != '\0' || n < 1 || n > SHMT_MOST_ROUNDS) bench_fail("--rounds: 1 to %d", SHMT_MOST_ROUNDS);
            o.rounds = (uint32_t)n;
        } else {
            bench_fail("%s: the options are --quick and --rounds N", argv[i]);
        }
    }
    return o;
}

uint64_t bench_far_bytes(const struct bench_options *o) { return o->quick ? 1 << 20 : 4 * shmt_measure_cache_bytes(); }

void bench_head(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void bench_rounds(const struct bench_options *o, struct shmt_figure *figure, uint32_t n, bench_round *round, void *arg) {
    double x[MOST_FIGURES];
    if (n > MOST_FIGURES) bench_fail("more than %d figures", MOST_FIGURES);
    for (uint32_t done = 0; done < o->rounds;) {
        shmt_round_begin(&rounds);
        round(arg, x);
        if (!o->quick && !shmt_round_end(&rounds)) continue;
        for (uint32_t i = 0; i < n; i++) shmt_figure_add(&figure[i], x[i]);
        done++;
    }
}

void bench_show(const struct shmt_figure *figure, uint32_t n) {
    for (const struct shmt_figure *f = figure; f < figure + n; f++)
        printf("  %-46s %9.3f %-11s [%.3f .. %.3f] of %u\n", f->name, shmt_figure_median(f), f->unit,
               shmt_figure_quartile(f, 1), shmt_figure_quartile(f, 3), f->n);
    fflush(stdout);
}

void bench_show_noise(void) {
    if (rounds.n_again + rounds.n_noisy > 0)
        printf("  others used the processors: %u rounds measured again, %u kept all the same\n", rounds.n_again,
               rounds.n_noisy);
}
