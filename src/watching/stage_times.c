/* Times of stages: see stage_times.h. */
#include "watching/stage_times.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ps/trace.h"
#include "workers/run.h"

#define FAR_LONGER 0.26 /* the logarithm of 1.3 */
#define FAR_SIGMAS 4
#define FEWEST     4

/* What has been gathered. */
struct gathering {
    double *step; /* (n) logarithms of what steps took for an example; */
    double examples_of_all;
    uint64_t n, aggregate_ns, update_ns, updates;
    uint64_t key; /* the step at hand */
    uint64_t ns;
    uint32_t examples; /* of its items, or the last one of them; 0: none */
    bool whole;        /* its beginning was seen */
};

static void end_step(struct gathering *g) {
    if (g->whole && g->ns > 0 && g->examples > 0) {
        g->step[g->n++] = log((double)g->ns / g->examples);
        g->examples_of_all += g->examples;
    }
    g->ns = 0;
    g->examples = 0;
}

static void take(struct gathering *g, const struct shmt_event *event, bool first) {
    const uint64_t key = (uint64_t)event->epoch << 32 | event->step;
    if (event->kind == SHMT_EVENT_AGGREGATE) g->aggregate_ns += event->ns;
    if (event->kind == SHMT_EVENT_UPDATE) g->update_ns += event->ns;
    g->updates += event->kind == SHMT_EVENT_UPDATE;
    if (event->kind > SHMT_EVENT_PUSH) return;
    if (first || key != g->key) {
        end_step(g);
        g->whole = !first;
        g->key = key;
    }
    g->ns += event->ns;
    g->examples = event->count;
}

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Half of the distance between the places that a normal distribution has one deviation below and above its middle. */
static double spread(double *x, uint64_t n) {
    if (n < 4) return 0;
    qsort(x, n, sizeof *x, by_size);
    return (x[(uint64_t)(0.8413 * (double)(n - 1))] - x[(uint64_t)(0.1587 * (double)(n - 1))]) / 2;
}

void shmt_stage_find_hiccups(const double *x, uint64_t n, double examples, double sigma, double *every_ns_out, double *ns_out) {
    double usual_ns = 0, more_ns = 0;
    uint64_t n_longer = 0;
    for (uint64_t i = 0; i < n; i++) {
        const double middle = x[n / 2];
        const bool is_longer = x[i] >= middle + fmax(FAR_LONGER, FAR_SIGMAS * sigma);
        usual_ns += examples * exp(is_longer ? middle : x[i]);
        more_ns += is_longer ? examples * (exp(x[i]) - exp(middle)) : 0;
        n_longer += is_longer;
    }
    const bool counts = n_longer >= FEWEST;
    *every_ns_out = counts ? usual_ns / (double)n_longer : 0;
    *ns_out = counts ? more_ns / (double)n_longer : 0;
}

int shmt_stage_times_take(const struct shmt_run *run, uint32_t seat, struct shmt_stage_times *out) {
    const uint32_t room = run->spec.trace_events;
    struct shmt_event *event = calloc((size_t)room + 1, sizeof *event);
    struct gathering g = {.step = calloc((size_t)room + 1, sizeof *g.step)};
    uint64_t lost;
    bool open;
    *out = (struct shmt_stage_times){0};
    if (!event || !g.step) {
        free(event);
        free(g.step);
        return shmt_no_memory(&run->call->error, "for the times of stages");
    }
    const uint32_t n = shmt_ring_read(run->backend->store->ring(run->job.store, seat), room, 0, event, &lost, &open);
    for (uint32_t i = 0; i < n; i++) take(&g, &event[i], i == 0);
    /* the last one may have been left in the middle */
    out->steps = g.n;
    out->sigma = spread(g.step, g.n);
    const double each = g.n > 0 ? g.examples_of_all / (double)g.n : 0;
    shmt_stage_find_hiccups(g.step, g.n, each, out->sigma, &out->hiccup_every_ns, &out->hiccup_ns);
    if (g.updates > 0) out->aggregate_ns = (double)g.aggregate_ns / (double)g.updates;
    if (g.updates > 0) out->update_ns = (double)g.update_ns / (double)g.updates;
    free(event);
    free(g.step);
    return 0;
}
