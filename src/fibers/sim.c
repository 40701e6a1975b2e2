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

/* "2@5s" */
static bool parse_death(char *text, struct shmt_sim *out, const char **why_out) {
    uint64_t worker;
    double at_ns;
    char *at = strchr(text, '@');
    *why_out = "a worker and when it dies, as death=2@5s (at most 16 of them)";
    if (!at || out->n_deaths == SHMT_MAX_MISHAPS) return false;
    *at++ = '\0';
    if (!shmt_plain_count(text, &worker) || worker > UINT32_MAX || !parse_time(at, &at_ns)) return false;
    out->death[out->n_deaths++] = (struct shmt_mishap){.worker = (uint32_t)worker, .at_ns = (uint64_t)at_ns};
    return true;
}

/* "7@2s:1s" */
static bool parse_pause(char *text, struct shmt_sim *out, const char **why_out) {
    uint64_t worker;
    double at_ns, ns;
    char *at = strchr(text, '@'), *how_long = at ? strchr(at, ':') : NULL;
    *why_out = "a worker, when and for how long it stops, as pause=7@2s:1s (1ns or more, at most 16 of them)";
    if (!how_long || out->n_pauses == SHMT_MAX_MISHAPS) return false;
    *at++ = *how_long++ = '\0';
    if (!shmt_plain_count(text, &worker) || worker > UINT32_MAX || !parse_time(at, &at_ns)) return false;
    if (!parse_time(how_long, &ns) || ns < 1) return false;
    out->pause[out->n_pauses++] =
        (struct shmt_mishap){.worker = (uint32_t)worker, .at_ns = (uint64_t)at_ns, .pause_ns = (uint64_t)ns};
    return true;
}

static bool parse_look(char *text, struct shmt_sim *out, const char **why_out) {
    double ns;
    *why_out = "a time of 1ns to 1ms";
    if (!parse_time(text, &ns) || ns < 1 || ns > 1e6) return false;
    out->look_ns = (uint64_t)ns;
    return true;
}

static bool parse_compute(char *text, struct shmt_sim *out, const char **why_out) {
    return parse_cost(text, &out->compute, why_out);
}

static bool parse_pull(char *text, struct shmt_sim *out, const char **why_out) { return parse_cost(text, &out->pull, why_out); }

static bool parse_push(char *text, struct shmt_sim *out, const char **why_out) { return parse_cost(text, &out->push, why_out); }

/* One word of the text, "compute=10ms". */
static int parse_word(const char *given_as, char *word, struct shmt_sim *out, struct shmt_error *e) {
    static const struct {
        const char *name;
        bool (*parse)(char *text, struct shmt_sim *out, const char **why_out);
    } WORDS[] = {{"compute", parse_compute},     {"pull", parse_pull},   {"push", parse_push},  {"look", parse_look},
                 {"straggler", parse_straggler}, {"pause", parse_pause}, {"death", parse_death}};
    char whole[128];
    const char *why = "";
    char *value = strchr(word, '=');
    snprintf(whole, sizeof whole, "%s", word);
    if (value) *value++ = '\0';
    for (size_t i = 0; value && i < sizeof WORDS / sizeof *WORDS; i++) {
        if (strcmp(word, WORDS[i].name) != 0) continue;
        return WORDS[i].parse(value, out, &why) ? 0 : shmt_refuse(e, "%s \"%.60s\": expected %s", given_as, whole, why);
    }
    return shmt_refuse(e, "%s \"%.60s\": expected compute=, pull=, push=, look=, straggler=, pause= or death=", given_as,
                       whole);
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

static int check_worker(const char *given_as, const char *word, uint32_t worker, uint32_t n_workers, struct shmt_error *e) {
    return worker < n_workers ? 0 : shmt_refuse(e, "%s %s=%u: workers are 0 to %u", given_as, word, worker, n_workers - 1);
}

int shmt_sim_check(const struct shmt_sim *costs, const char *given_as, uint32_t n_workers, struct shmt_error *e) {
    int rc = 0;
    for (uint32_t i = 0; i < costs->n_stragglers && rc == 0; i++)
        rc = check_worker(given_as, "straggler", costs->straggler[i].worker, n_workers, e);
    for (uint32_t i = 0; i < costs->n_pauses && rc == 0; i++)
        rc = check_worker(given_as, "pause", costs->pause[i].worker, n_workers, e);
    for (uint32_t i = 0; i < costs->n_deaths && rc == 0; i++)
        rc = check_worker(given_as, "death", costs->death[i].worker, n_workers, e);
    return rc;
}
