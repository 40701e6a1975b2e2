/* What work takes in virtual time: see sim.h. */
#include "fibers/sim.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/random.h"

#define MOST_NS    1e15 /* 11 days */
#define MOST_SIGMA 5.0
#define MEASURED   "measured"
#define UNSAID     -1.0 /* no time that can be typed */

static const struct shmt_sim USUAL = {
    .compute = {SHMT_COST_FIXED, UNSAID, 0},
    .example = {SHMT_COST_LOGNORMAL, 1e3, 0.3},
    .pull = {SHMT_COST_FIXED, 5e3, 0},
    .push = {SHMT_COST_FIXED, 5e3, 0},
    .memory = {.next_ns = SHMT_MEMORY_AS_FIRST, .cache_bytes = UINT64_C(1) << 20, .n_nodes = 1, .far = 1.7},
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
    if (sim->compute.ns != UNSAID) return;
    sim->compute = sim->example;
    sim->compute.ns *= (double)examples;
    if (sim->compute.shape == SHMT_COST_UNIFORM) sim->compute.param *= (double)examples;
}

double shmt_sim_times(const struct shmt_sim *costs, uint32_t worker) {
    double times = 1;
    for (uint32_t i = 0; i < costs->n_stragglers; i++)
        if (costs->straggler[i].worker == worker) times *= costs->straggler[i].times;
    return times;
}

bool shmt_sim_touches(const struct shmt_sim *costs) {
    return shmt_memory_costs_any(&costs->memory) || costs->race.ns > 0 || costs->race.param > 0;
}

/* ---- values ---- */

struct unit {
    const char *name;
    double size;
};

/* A number and one of these units, of which NULL ends the list: 10ms. No unit is no value. */
static bool parse_with_unit(const char *text, const struct unit *units, double *out) {
    double x;
    const char *unit = shmt_plain_decimal(text, &x);
    for (; unit && units->name; units++) {
        if (strcmp(unit, units->name) != 0) continue;
        *out = x * units->size;
        return true;
    }
    return false;
}

static bool parse_time(const char *text, double *ns_out) {
    static const struct unit UNITS[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
    return parse_with_unit(text, UNITS, ns_out) && *ns_out <= MOST_NS;
}

/* "SHAPE:FIRST:SECOND", or a time. False: it is neither; *why_out says what was expected. */
static bool parse_cost(char *text, void *to, const char **why_out) {
    struct shmt_cost *out = to;
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
        return shmt_plain_real(second, &out->param) && out->param <= MOST_SIGMA;
    }
    out->shape = SHMT_COST_UNIFORM;
    if (strcmp(text, "uniform") != 0 || !parse_time(second, &out->param)) return false;
    *why_out = "uniform:LEAST:MOST with the smaller time before the larger one";
    return out->ns <= out->param;
}

/* "4ms:exponential:30us" */
static bool parse_hiccup(char *text, void *to, const char **why_out) {
    struct shmt_sim *out = to;
    char *cost = strchr(text, ':');
    *why_out = "a time of computing and what happens once in it, as hiccup=4ms:30us or hiccup=4ms:exponential:30us";
    if (!cost) return false;
    *cost++ = '\0';
    if (!parse_time(text, &out->hiccup_every_ns) || out->hiccup_every_ns < 1) return false;
    return parse_cost(cost, &out->hiccup, why_out);
}

/* "3:5x" */
static bool parse_straggler(char *text, void *to, const char **why_out) {
    struct shmt_sim *out = to;
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
static bool parse_death(char *text, void *to, const char **why_out) {
    struct shmt_sim *out = to;
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
static bool parse_pause(char *text, void *to, const char **why_out) {
    struct shmt_sim *out = to;
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

static bool parse_look(char *text, void *to, const char **why_out) {
    double ns;
    *why_out = "a time of 1ns to 1ms";
    if (!parse_time(text, &ns) || ns < 1 || ns > 1e6) return false;
    *(uint64_t *)to = (uint64_t)ns;
    return true;
}

static bool parse_line(char *text, void *to, const char **why_out) {
    *why_out = "a time of at most 1ms with its unit, as 80ns";
    return parse_time(text, to) && *(double *)to <= 1e6;
}

static bool parse_bandwidth(char *text, void *to, const char **why_out) {
    static const struct unit UNITS[] = {{"MB/s", 1e-3}, {"GB/s", 1}, {"TB/s", 1e3}, {NULL, 0}}; /* bytes a nanosecond */
    *why_out = "bytes a second with their unit, as 20GB/s (from 1MB/s to 1000TB/s)";
    return parse_with_unit(text, UNITS, to) && *(double *)to >= 1e-3 && *(double *)to <= 1e6;
}

static bool parse_cache(char *text, void *to, const char **why_out) {
    static const struct unit UNITS[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {NULL, 0}};
    double bytes;
    *why_out = "a size from 1KiB to 1GiB with its unit, as 1MiB";
    if (!parse_with_unit(text, UNITS, &bytes) || bytes < 0x1p10 || bytes > 0x1p30) return false;
    *(uint64_t *)to = (uint64_t)bytes;
    return true;
}

static bool parse_nodes(char *text, void *to, const char **why_out) {
    uint64_t n;
    *why_out = "a number of NUMA nodes from 1 to 64";
    if (!shmt_plain_count(text, &n) || n < 1 || n > SHMT_MEMORY_MOST_NODES) return false;
    *(uint32_t *)to = (uint32_t)n;
    return true;
}

static bool parse_far(char *text, void *to, const char **why_out) {
    static const struct unit UNITS[] = {{"x", 1}, {NULL, 0}};
    *why_out = "how many times as much a line of another node costs, from 1x to 100x, as 1.7x";
    return parse_with_unit(text, UNITS, to) && *(double *)to >= 1 && *(double *)to <= 100;
}

/* ---- words ---- */

/* What each word may be, and where its value goes. */
static const struct word {
    const char *name;
    bool (*parse)(char *text, void *to, const char **why_out);
    size_t at; /* in struct shmt_sim */
} WORDS[] = {{"compute", parse_cost, offsetof(struct shmt_sim, compute)},
             {"example", parse_cost, offsetof(struct shmt_sim, example)},
             {"item", parse_cost, offsetof(struct shmt_sim, item)},
             {"pull", parse_cost, offsetof(struct shmt_sim, pull)},
             {"push", parse_cost, offsetof(struct shmt_sim, push)},
             {"aggregate", parse_cost, offsetof(struct shmt_sim, aggregate)},
             {"update", parse_cost, offsetof(struct shmt_sim, update)},
             {"look", parse_look, offsetof(struct shmt_sim, look_ns)},
             {"hiccup", parse_hiccup, 0},
             {"straggler", parse_straggler, 0},
             {"pause", parse_pause, 0},
             {"death", parse_death, 0},
             {"line", parse_line, offsetof(struct shmt_sim, memory.line_ns)},
             {"next", parse_line, offsetof(struct shmt_sim, memory.next_ns)},
             {"bandwidth", parse_bandwidth, offsetof(struct shmt_sim, memory.bandwidth)},
             {"cache", parse_cache, offsetof(struct shmt_sim, memory.cache_bytes)},
             {"nodes", parse_nodes, offsetof(struct shmt_sim, memory.n_nodes)},
             {"far", parse_far, offsetof(struct shmt_sim, memory.far)},
             {"race", parse_cost, offsetof(struct shmt_sim, race)}};
enum { N_WORDS = sizeof WORDS / sizeof *WORDS };

/* "compute=, pull= or measured": all that there are. */
static void list_words(char *out, size_t out_bytes) {
    size_t used = 0;
    for (size_t i = 0; i < N_WORDS && used < out_bytes; i++)
        used +=
            (size_t)snprintf(out + used, out_bytes - used, "%s=%s", WORDS[i].name, i + 1 < N_WORDS ? ", " : " or " MEASURED);
}

/* One word of the text, "compute=10ms". */
static int parse_word(const char *given_as, char *word, struct shmt_sim *out, struct shmt_error *e) {
    char whole[128], all[256];
    const char *why = "";
    const struct word *found = NULL;
    if (strcmp(word, MEASURED) == 0) {
        out->measured = true;
        return 0;
    }
    char *value = strchr(word, '=');
    snprintf(whole, sizeof whole, "%s", word);
    if (value) *value++ = '\0';
    for (size_t i = 0; i < N_WORDS; i++)
        if (strcmp(word, WORDS[i].name) == 0) found = &WORDS[i];
    if (value && found && found->parse(value, (char *)out + found->at, &why)) return 0;
    list_words(all, sizeof all);
    return shmt_refuse(e, "%s \"%.60s\": expected %s", given_as, whole, value && found ? why : all);
}

/* Whether a word of this name stands in the text. */
static bool names(const char *text, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = text; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, n) == 0 && at[n] == '=') return true;
    }
    return false;
}

/* What would have no effect is a mistake; a line's way may be measured. */
static int check_memory(const char *given_as, const struct shmt_sim *sim, struct shmt_error *e) {
    const struct shmt_memory_costs *memory = &sim->memory, *usual = &USUAL.memory;
    const bool named =
        memory->n_nodes != usual->n_nodes || memory->far != usual->far || memory->cache_bytes != usual->cache_bytes;
    if (named && !shmt_memory_costs_any(memory) && !sim->measured)
        return shmt_refuse(e, "%s: cache=, nodes= and far= are for line= or bandwidth=: name one of them, as line=80ns",
                           given_as);
    if (memory->next_ns != usual->next_ns && !(memory->line_ns > 0))
        return shmt_refuse(e, "%s: next= is for further lines of a call: name the first one's time, too, as line=80ns",
                           given_as);
    return 0;
}

int shmt_sim_parse(const char *given_as, const char *text, struct shmt_sim *out, struct shmt_error *e) {
    char words[SHMT_SIM_TEXT];
    *out = USUAL;
    if (strlen(text) >= sizeof words)
        return shmt_refuse(e, "%s: at most %zu characters are possible", given_as, sizeof words - 1);
    memcpy(words, text, strlen(text) + 1);
    char *rest = words, *word;
    while ((word = text[0] ? strsep(&rest, ",") : NULL)) {
        const int rc = parse_word(given_as, word, out, e);
        if (rc < 0) return rc;
    }
    if (names(text, "compute") && names(text, "example"))
        return shmt_refuse(e, "%s: compute= is an item's and example= an example's: name one of them", given_as);
    return check_memory(given_as, out, e);
}

/* ---- what was measured ---- */

/* A text that grows; what does not fit makes it `over`. */
struct text {
    char *out;
    size_t bytes, used;
    bool over;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->out + t->used, t->bytes - t->used, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= t->bytes - t->used)
        t->over = true;
    else
        t->used += (size_t)n;
}

/* Four digits: "62.31us". */
static void add_time(struct text *t, double ns) {
    const double least = ns < 1e-3 ? 0 : fmin(ns, MOST_NS); /* no exponent, which nobody may type */
    if (least < 1e3)
        add(t, "%.4gns", least);
    else if (least < 1e6)
        add(t, "%.4gus", least / 1e3);
    else if (least < 1e9)
        add(t, "%.4gms", least / 1e6);
    else
        add(t, "%.7gs", least / 1e9);
}

static void add_word(struct text *t, const char *name) { add(t, "%s%s=", t->used > 0 ? "," : "", name); }

/* Of a time that is not there nothing is said. */
static void add_named_time(struct text *t, const char *text, const char *name, double ns) {
    if (!(ns > 0) || names(text, name)) return;
    add_word(t, name);
    add_time(t, ns);
}

bool shmt_sim_complete(const char *text, const struct shmt_sim_found *found, char *out, size_t bytes) {
    SHMT_PLAIN_NUMBERS;
    struct text t = {.out = out, .bytes = bytes};
    if (!names(text, "example") && !names(text, "compute")) {
        add_word(&t, "example");
        add(&t, "lognormal:");
        add_time(&t, found->example_ns);
        add(&t, ":%.4g", fmin(found->sigma, MOST_SIGMA));
    }
    add_named_time(&t, text, "item", names(text, "compute") ? 0 : found->item_ns);
    if (!names(text, "hiccup") && found->hiccup_every_ns >= 1 && found->hiccup_ns > 0) {
        add_word(&t, "hiccup");
        add_time(&t, found->hiccup_every_ns);
        add(&t, ":exponential:");
        add_time(&t, found->hiccup_ns);
    }
    if (!names(text, "pull")) add(&t, "%spull=0ns", t.used > 0 ? "," : ""); /* examples take all of it */
    if (!names(text, "push")) add(&t, "%spush=0ns", t.used > 0 ? "," : "");
    add_named_time(&t, text, "aggregate", found->aggregate_ns);
    add_named_time(&t, text, "update", found->update_ns);
    add_named_time(&t, text, "line", fmin(found->line_ns, 1e6));
    if (!names(text, "line") && !names(text, "next") && found->line_ns >= 1e-3) {
        add_word(&t, "next");
        add_time(&t, fmin(found->next_ns, 1e6));
    }
    if (!names(text, "bandwidth") && found->bandwidth >= 1e-3)
        add(&t, "%sbandwidth=%.4gGB/s", t.used > 0 ? "," : "", fmin(found->bandwidth, 1e3));
    for (const char *at = text; *at; at += strspn(at, ",")) {
        const size_t n = strcspn(at, ",");
        const bool is_measured = n == strlen(MEASURED) && strncmp(at, MEASURED, n) == 0;
        if (!is_measured) add(&t, "%s%.*s", t.used > 0 ? "," : "", (int)n, at);
        at += n;
    }
    return !t.over;
}

static int check_worker(const char *given_as, const char *word, uint32_t worker, uint32_t n_workers, struct shmt_error *e) {
    return worker < n_workers ? 0 : shmt_refuse(e, "%s %s=%u: workers are 0 to %u", given_as, word, worker, n_workers - 1);
}

int shmt_sim_check(const struct shmt_sim *costs, const char *given_as, uint32_t n_workers, struct shmt_error *e) {
    int rc = 0;
    if (costs->memory.n_nodes > n_workers)
        return shmt_refuse(e, "%s nodes=%u: each node needs a worker, and there are %u", given_as, costs->memory.n_nodes,
                           n_workers);
    for (uint32_t i = 0; i < costs->n_stragglers && rc == 0; i++)
        rc = check_worker(given_as, "straggler", costs->straggler[i].worker, n_workers, e);
    for (uint32_t i = 0; i < costs->n_pauses && rc == 0; i++)
        rc = check_worker(given_as, "pause", costs->pause[i].worker, n_workers, e);
    for (uint32_t i = 0; i < costs->n_deaths && rc == 0; i++)
        rc = check_worker(given_as, "death", costs->death[i].worker, n_workers, e);
    return rc;
}
