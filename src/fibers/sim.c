/* What work takes in virtual time: see sim.h. */
#include "fibers/sim.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/random.h"

#define MOST_NS    1e15 /* 11 days */
#define EXAMPLE_NS 1000
#define UNSAID     -1.0 /* no time that can be typed */

static const struct shmt_sim USUAL = {.compute = {SHMT_COST_LOGNORMAL, UNSAID, 0.3},
                                      .pull = {SHMT_COST_FIXED, 5e3, 0},
                                      .push = {SHMT_COST_FIXED, 5e3, 0},
                                      .look_ns = 50};

/* ---- draws ---- */

/* e^x, of additions, multiplications and moves of bits alone: libm's differ from machine to machine. |x| at most 700. */
static double exponential(double x) {
    const double ln2 = 0.693147180559945309417, n = floor(x / ln2 + 0.5), r = x - n * ln2;
    double sum = 1, term = 1;
    for (int k = 1; k < 18; k++) {
        term *= r / k;
        sum += term;
    }
    return ldexp(sum, (int)n);
}

/* log x, likewise; x above 0. By atanh's series of (m - 1) / (m + 1), with m between 0.5 and 1. */
static double logarithm(double x) {
    int e;
    const double m = frexp(x, &e), z = (m - 1) / (m + 1), square = z * z;
    double sum = 0, power = z;
    for (int k = 1; k < 80; k += 2) {
        sum += power / k;
        power *= square;
    }
    return 2 * sum + e * 0.693147180559945309417;
}

/* Mean 0, deviation 1: the sum of twelve uniform numbers (Irwin, Hall 1927), whose tails end at 6. */
static double bell_of(uint64_t bits) {
    uint64_t sum = 0;
    for (uint64_t word = 0; word < 3; word++) {
        const uint64_t drawn = shmt_mix64(bits + word);
        for (int part = 0; part < 64; part += 16) sum += drawn >> part & 0xffff;
    }
    return ((double)sum + 6) / 65536 - 6;
}

uint64_t shmt_cost_draw(const struct shmt_cost *cost, uint64_t seed, uint64_t who, uint64_t drawn) {
    const uint64_t bits = cost->shape == SHMT_COST_FIXED ? 0 : shmt_hash64(seed, 0x636f7374, who, drawn);
    double ns = cost->ns;
    if (cost->shape == SHMT_COST_LOGNORMAL) ns *= exponential(cost->param * bell_of(bits));
    if (cost->shape == SHMT_COST_EXPONENTIAL) ns *= -logarithm(1 - shmt_unit(bits));
    if (cost->shape == SHMT_COST_UNIFORM) ns += (cost->param - cost->ns) * shmt_unit(bits);
    return (uint64_t)fmax(0, fmin(ns, MOST_NS));
}

void shmt_sim_settle(struct shmt_sim *sim, uint64_t examples) {
    if (sim->compute.ns == UNSAID) sim->compute.ns = EXAMPLE_NS * (double)examples;
}

double shmt_sim_times(const struct shmt_sim *costs, uint32_t worker) {
    double times = 1;
    for (uint32_t i = 0; i < costs->n_stragglers; i++)
        if (costs->straggler[i].worker == worker) times *= costs->straggler[i].times;
    return times;
}

/* ---- words ---- */

/* "10ms"; no unit is no time. */
static bool parse_time(const char *text, double *ns_out) {
    static const struct {
        const char *unit;
        double ns;
    } UNITS[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double x;
    const char *unit = shmt_plain_decimal(text, &x);
    for (size_t i = 0; unit && i < sizeof UNITS / sizeof *UNITS; i++) {
        if (strcmp(unit, UNITS[i].unit) != 0) continue;
        *ns_out = x * UNITS[i].ns;
        return *ns_out <= MOST_NS;
    }
    return false;
}

/* "SHAPE:FIRST:SECOND", or a time. False: it is neither; *why_out says what was expected. */
static bool parse_cost(char *text, struct shmt_cost *out, const char **why_out) {
    char *first = strchr(text, ':'), *second = NULL;
    *why_out =
        "a time with its unit, as 10ms (ns, us, ms or s), lognormal:MEDIAN:SIGMA, exponential:MEAN or uniform:LEAST:MOST";
    *out = (struct shmt_cost){.shape = SHMT_COST_FIXED};
    if (!first) return parse_time(text, &out->ns);
    *first++ = '\0';
    if ((second = strchr(first, ':'))) *second++ = '\0';
    if (!parse_time(first, &out->ns)) return false;
    if (strcmp(text, "exponential") == 0) {
        out->shape = SHMT_COST_EXPONENTIAL;
        return !second;
    }
    if (!second) return false;
    if (strcmp(text, "lognormal") == 0) {
        out->shape = SHMT_COST_LOGNORMAL;
        *why_out = "lognormal:MEDIAN:SIGMA with a sigma of 0 to 5, as lognormal:10ms:0.3";
        return shmt_plain_real(second, &out->param) && out->param <= 5;
    }
    out->shape = SHMT_COST_UNIFORM;
    if (strcmp(text, "uniform") != 0 || !parse_time(second, &out->param)) return false;
    *why_out = "uniform:LEAST:MOST with the smaller time before the larger one";
    return out->ns <= out->param;
}

/* "3:5x" */
static bool parse_straggler(char *text, struct shmt_sim *out, const char **why_out) {
    uint64_t worker;
    double times;
    char *factor = strchr(text, ':');
    *why_out = "a worker and how many times as long it takes, as straggler=3:5x (at most 16 of them)";
    if (!factor || out->n_stragglers == SHMT_MAX_STRAGGLERS) return false;
    *factor++ = '\0';
    const char *unit = shmt_plain_decimal(factor, &times);
    if (!shmt_plain_count(text, &worker) || worker > UINT32_MAX || !unit || strcmp(unit, "x") != 0) return false;
    if (times < 1 || times > 1e6) return false;
    out->straggler[out->n_stragglers].worker = (uint32_t)worker;
    out->straggler[out->n_stragglers++].times = times;
    return true;
}

static bool parse_look(const char *text, struct shmt_sim *out, const char **why_out) {
    double ns;
    *why_out = "a time of 1ns to 1ms";
    if (!parse_time(text, &ns) || ns < 1 || ns > 1e6) return false;
    out->look_ns = (uint64_t)ns;
    return true;
}

/* One word of the text, "compute=10ms". */
static int parse_word(const char *given_as, char *word, struct shmt_sim *out, struct shmt_error *e) {
    char whole[128];
    const char *why = "";
    char *value = strchr(word, '=');
    snprintf(whole, sizeof whole, "%s", word);
    if (value) *value++ = '\0';
    struct shmt_cost *cost = strcmp(word, "compute") == 0 ? &out->compute
                             : strcmp(word, "pull") == 0  ? &out->pull
                             : strcmp(word, "push") == 0  ? &out->push
                                                          : NULL;
    const bool is_straggler = strcmp(word, "straggler") == 0, is_look = strcmp(word, "look") == 0;
    if (!value || (!cost && !is_straggler && !is_look))
        return shmt_refuse(e, "%s \"%.60s\": expected compute=, pull=, push=, look= or straggler=", given_as, whole);
    const bool well = cost           ? parse_cost(value, cost, &why)
                      : is_straggler ? parse_straggler(value, out, &why)
                                     : parse_look(value, out, &why);
    return well ? 0 : shmt_refuse(e, "%s \"%.60s\": expected %s", given_as, whole, why);
}

int shmt_sim_parse(const char *given_as, const char *text, struct shmt_sim *out, struct shmt_error *e) {
    char words[1024];
    *out = USUAL;
    if (strlen(text) >= sizeof words)
        return shmt_refuse(e, "%s: at most %zu characters are possible", given_as, sizeof words - 1);
    memcpy(words, text, strlen(text) + 1);
    char *rest = words, *word;
    while ((word = text[0] ? strsep(&rest, ",") : NULL)) {
        const int rc = parse_word(given_as, word, out, e);
        if (rc < 0) return rc;
    }
    return 0;
}

int shmt_sim_check(const struct shmt_sim *costs, const char *given_as, uint32_t n_workers, struct shmt_error *e) {
    for (uint32_t i = 0; i < costs->n_stragglers; i++)
        if (costs->straggler[i].worker >= n_workers)
            return shmt_refuse(e, "%s straggler=%u: workers are 0 to %u", given_as, costs->straggler[i].worker, n_workers - 1);
    return 0;
}
