/* What a run has cost: see costs.h. Counters may be those of a named store, which somebody may have damaged: numbers from there
 * are only added, and ranks are looked at before they are used. */
#include "workers/costs.h"

#include <math.h>
#include <stdlib.h>

#include "workers/run.h"
#include "ps/delay.h"
#include "ps/meter.h"

#define WORTH_A_WORD 0.01 /* of the workers' time: a share of waiting that is less is about nobody */
#define MOSTLY       0.6  /* of the waiting: more than half, for a seat's sums may be too large by an eighth (ps/waits.h) */

_Static_assert(SHMTRAIN_WAITED_FOR <= SHMT_WAITED_FOR, "a worker knows at least as many as are reported");

/* ---- loading ---- */

void shmt_costs_forget(struct shmt_run *run) {
    struct shmt_costs *c = run->costs;
    free(c->load_seconds);
    free(c->worker);
    free(c->bucket);
    *c = (struct shmt_costs){0};
}

void shmt_costs_loaded(struct shmt_run *run, const uint64_t *ns, uint32_t n) {
    struct shmt_costs *c = run->costs;
    if (n > c->n_loaded) {
        double *seconds = realloc(c->load_seconds, n * sizeof *seconds);
        if (!seconds) return;
        for (uint32_t i = c->n_loaded; i < n; i++) seconds[i] = 0;
        c->load_seconds = seconds;
        c->n_loaded = n;
    }
    for (uint32_t i = 0; i < n; i++) c->load_seconds[i] += (double)ns[i] * 1e-9;
}

/* Of a worker of this run's own; those who came by name read nothing, and of others' runs nobody knows. */
static double load_seconds_of(const struct shmt_run *run, uint32_t worker) {
    const struct shmt_costs *c = run->costs;
    if (c->of_others && worker < run->spec.n_workers) return NAN;
    return worker < c->n_loaded ? c->load_seconds[worker] : 0;
}

/* ---- one worker ---- */

/* What all of it is gathered in. */
struct sums {
    uint32_t n_workers, seats; /* guests included; of each */
    uint64_t now_ns;
    uint64_t *waited;     /* (n_workers) ns; zero between two uses; NULL: no memory */
    uint64_t *waited_all; /* likewise: for whom the run's own workers have waited, in all */
    struct shmt_delay_sum delay;
    uint64_t examples, updates, dropped, folded, merges;
    uint64_t worked_ns, waited_ns, waited_epoch_ns, merged_ns; /* of the run's own seats: guests are not there all the time */
    uint64_t paused_ns;
    uint64_t waited_hosts_ns; /* of waited_ns: for the link, which comes when the other hosts have sent what they have */
};

/* relaxed, here and below: the workers have ended and been waited for, or it is for display */
static const struct shmt_counters *counters_of(const struct shmt_run *run, uint32_t seat) {
    return run->backend->store->counters(run->job.store, seat);
}

/* The worker that entry i of a seat's list is about; false: none. */
static bool entry_of(const struct shmt_run *run, const struct sums *s, uint32_t seat, uint32_t i, uint32_t *worker_out) {
    const uint32_t rank = load_relaxed(&counters_of(run, seat)->waited_for[i].rank);
    *worker_out = (rank - 1) / s->seats;
    return rank >= 1 && *worker_out < s->n_workers;
}

/* Those whom the threads of worker w have waited for, the longest first. */
static void take_waits(const struct shmt_run *run, struct sums *s, uint32_t w, struct shmtrain_worker_report *out) {
    const uint32_t first = w * s->seats, end = first + s->seats;
    uint32_t whom;
    for (uint32_t seat = first; seat < end; seat++)
        for (uint32_t i = 0; i < SHMT_WAITED_FOR; i++) {
            if (!entry_of(run, s, seat, i, &whom)) continue;
            const uint64_t ns = load_relaxed(&counters_of(run, seat)->waited_for[i].ns);
            s->waited[whom] += ns;
            if (!out->joined) s->waited_all[whom] += ns;
        }
    for (;;) {
        uint32_t longest = UINT32_MAX;
        for (uint32_t seat = first; seat < end; seat++)
            for (uint32_t i = 0; i < SHMT_WAITED_FOR; i++)
                if (entry_of(run, s, seat, i, &whom) && s->waited[whom] > 0 &&
                    (longest == UINT32_MAX || s->waited[whom] > s->waited[longest]))
                    longest = whom;
        if (longest == UINT32_MAX) return;
        if (out->n_waited_for < SHMTRAIN_WAITED_FOR)
            out->waited_for[out->n_waited_for++] =
                (struct shmtrain_waited_for){.worker = longest, .seconds = (double)s->waited[longest] * 1e-9};
        s->waited[longest] = 0;
    }
}

/* Of an own seat. */
static uint64_t waited_for_hosts(const struct shmt_run *run, const struct shmt_counters *c) {
    uint64_t ns = 0;
    for (uint32_t i = 0; i < SHMT_WAITED_FOR && shmt_spec_is_linked(&run->spec); i++)
        if (load_relaxed(&c->waited_for[i].rank) == run->spec.n_seats + 1) ns += load_relaxed(&c->waited_for[i].ns);
    return ns;
}

static double seconds(const _Atomic uint64_t *word, uint64_t now_ns) { return (double)shmt_meter_read(word, now_ns) * 1e-9; }

static void add_seat(const struct shmt_counters *c, bool own, struct sums *s, struct shmtrain_worker_report *w) {
    w->examples += load_relaxed(&c->examples);
    w->dropped += load_relaxed(&c->dropped);
    w->folded += load_relaxed(&c->folded);
    w->compute_seconds += seconds(&c->busy_ns, s->now_ns);
    w->merge_seconds += seconds(&c->merge_ns, s->now_ns);
    w->wait_seconds += seconds(&c->wait_clock_ns, s->now_ns);
    w->wait_epoch_seconds += seconds(&c->wait_epoch_ns, s->now_ns);
    w->evaluate_seconds += seconds(&c->evaluate_ns, s->now_ns);
    w->checkpoint_seconds += seconds(&c->pause_ns, s->now_ns);
    s->updates += load_relaxed(&c->updates);
    s->merges += load_relaxed(&c->merges);
    if (!own) return;
    s->worked_ns += shmt_meter_read(&c->busy_ns, s->now_ns);
    s->waited_ns += shmt_meter_read(&c->wait_clock_ns, s->now_ns);
    s->waited_epoch_ns += shmt_meter_read(&c->wait_epoch_ns, s->now_ns);
    s->merged_ns += shmt_meter_read(&c->merge_ns, s->now_ns);
    s->paused_ns += shmt_meter_read(&c->pause_ns, s->now_ns);
}

static void take_worker(const struct shmt_run *run, struct sums *s, uint32_t i, struct shmtrain_worker_report *w) {
    const bool own = i < run->spec.n_workers;
    uint64_t samples = 0, delay = 0;
    *w = (struct shmtrain_worker_report){.joined = !own, .load_seconds = load_seconds_of(run, i)};
    for (uint32_t seat = i * s->seats; seat < (i + 1) * s->seats; seat++) {
        const struct shmt_counters *c = counters_of(run, seat);
        add_seat(c, own, s, w);
        if (own) s->waited_hosts_ns += waited_for_hosts(run, c);
        samples += load_relaxed(&c->delays.samples);
        delay += load_relaxed(&c->delays.sum);
        shmt_delay_add(&s->delay, &c->delays);
    }
    w->delay = samples > 0 ? (double)delay / (double)samples : NAN;
    s->examples += w->examples;
    s->dropped += w->dropped;
    s->folded += w->folded;
    if (s->waited && s->waited_all) take_waits(run, s, i, w);
}

/* A place that nobody has taken. */
static bool is_empty(const struct shmtrain_worker_report *w) {
    return w->joined && w->examples == 0 && w->compute_seconds <= 0 && w->evaluate_seconds <= 0 && w->wait_epoch_seconds <= 0;
}

/* ---- all of them ---- */

/* How many updates a work item makes, on average: its examples of a sparse model, one of a dense one. */
static double updates_of_item(const struct shmt_spec *spec, const struct sums *s) {
    if (!shmt_policy_is_live(&spec->policy) || s->examples == 0 || s->updates == 0) return 1;
    return (double)spec->item * (double)s->updates / (double)s->examples;
}

static void take_delay(struct shmt_run *run, const struct sums *s) {
    struct shmtrain_delay *d = &run->report.delay;
    const struct shmt_delay_sum *sum = &s->delay;
    struct shmtrain_delays *bucket = sum->samples > 0 ? calloc(SHMT_DELAY_BUCKETS, sizeof *bucket) : NULL;
    *d = (struct shmtrain_delay){.samples = sum->samples,
                                 .mean = shmt_delay_mean(sum),
                                 .p50 = shmt_delay_quantile(sum, 0.5),
                                 .p99 = shmt_delay_quantile(sum, 0.99),
                                 .max = sum->samples > 0 ? (double)sum->max : NAN,
                                 .bucket = bucket};
    d->clocks = d->mean / updates_of_item(&run->spec, s);
    run->costs->bucket = bucket;
    for (uint32_t i = 0; bucket && i < SHMT_DELAY_BUCKETS; i++)
        if (sum->bucket[i] > 0)
            bucket[d->n_buckets++] =
                (struct shmtrain_delays){.from = shmt_delay_from(i), .to = shmt_delay_to(i), .samples = sum->bucket[i]};
}

/* Whom the waiting within epochs was mostly for, which wait_fraction is the amount of: that and nothing else, so that no
 * sentence blames a worker for other waits than it counts. With two equal workers it is nobody. */
static uint32_t waits_mostly_for(const struct sums *s, double wait_fraction) {
    if (!s->waited_all || wait_fraction < WORTH_A_WORD) return UINT32_MAX;
    for (uint32_t i = 0; i < s->n_workers; i++)
        if ((double)s->waited_all[i] > MOSTLY * (double)s->waited_ns) return i;
    return UINT32_MAX;
}

static void take_totals(struct shmt_run *run, const struct sums *s) {
    struct shmtrain_report *r = &run->report;
    /* Of what they know of themselves, as in each worker's row: who begins an epoch later than the chief is not there
     * before. */
    const double all = (double)(s->worked_ns + s->waited_ns + s->waited_epoch_ns + s->merged_ns);
    r->updates = s->updates;
    r->dropped = s->dropped;
    r->folded = s->folded;
    r->merges = s->merges;
    r->checkpoint_seconds = (double)s->paused_ns * 1e-9 / (run->spec.n_seats - run->spec.n_guests);
    r->wait_fraction = all > 0 ? (double)s->waited_ns / all : 0;
    r->wait_hosts_fraction = all > 0 ? fmin(r->wait_fraction, (double)s->waited_hosts_ns / all) : 0;
    r->waits_mostly_for = waits_mostly_for(s, r->wait_fraction);
    r->wait_epoch_fraction = all > 0 ? (double)s->waited_epoch_ns / all : 0;
    r->merge_fraction = all > 0 ? (double)s->merged_ns / all : 0;
}

void shmt_costs_take(struct shmt_run *run, uint64_t now_ns) {
    const struct shmt_spec *spec = &run->spec;
    struct shmtrain_report *r = &run->report;
    struct sums s = {.seats = shmt_seats_of_worker(spec), .now_ns = now_ns};
    s.n_workers = (uint32_t)shmt_min_u64(spec->n_workers + spec->n_guests / s.seats, spec->n_seats / s.seats);
    struct shmtrain_worker_report spare, *worker = calloc(s.n_workers, sizeof *worker);
    s.waited = calloc(s.n_workers, sizeof *s.waited);
    s.waited_all = calloc(s.n_workers, sizeof *s.waited_all);
    free(run->costs->worker);
    free(run->costs->bucket);
    r->worker = run->costs->worker = worker;
    r->n_workers = 0;
    for (uint32_t i = 0; i < s.n_workers; i++) {
        struct shmtrain_worker_report *w = worker ? &worker[i] : &spare;
        take_worker(run, &s, i, w);
        if (worker && !is_empty(w)) r->n_workers = i + 1;
    }
    take_delay(run, &s);
    take_totals(run, &s);
    free(s.waited);
    free(s.waited_all);
}
