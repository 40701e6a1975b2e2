/* A run at one moment: see progress.h.
 *
 * Counters are their seats' own and read while they grow: each is whole, all together are of about one moment. The records of
 * the epochs that are done say exactly what belongs to them; what the counters have beyond is the epoch that goes on. */
#include "watching/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watching/metrics.h"
#include "ps/far.h"
#include "ps/meter.h"
#include "sync/host.h"
#include "workers/run.h"
#include "workers/stalls.h"

#define TICK_NS 95000000 /* a little less than a tenth of a second: who drives looks ten times a second */

/* Sums over a worker's seats, or over all. */
struct sums {
    uint64_t examples, busy_ns, evaluate_ns, merge_ns, pause_ns;
    uint64_t dropped, folded;
    uint64_t delay, delay_samples;
    double loss;
};

/* At a seat. */
struct look {
    struct sums sums;
    uint32_t who; /* had it: the process of a guest, 0: nobody; OWN: the run */
};
#define OWN UINT32_MAX

struct shmt_progress_watch {
    const struct shmt_store *of;             /* whose numbers these are; another store begins anew */
    uint64_t began_ns;                       /* of which run of it */
    uint64_t at_ns;                          /* of the last look; 0: none */
    uint64_t told_ns;                        /* when it was told */
    uint32_t n_workers, seats;               /* seats of each */
    struct look *before;                     /* (n_workers, seats) at each seat, the last time */
    struct shmtrain_worker_progress *worker; /* (n_workers) */
    uint64_t sent_before, received_before;   /* bytes, the last time */
    struct shmtrain_progress now;
};

static void free_watch(struct shmt_progress_watch *w) {
    if (!w) return;
    free(w->before);
    free(w->worker);
    free(w);
}

void shmt_progress_forget(struct shmt_run *run) {
    for (int i = 0; i < SHMT_N_WATCHES; i++) {
        free_watch(run->watch[i]);
        run->watch[i] = NULL;
    }
}

static struct shmt_progress_watch *make_watch(const struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    struct shmt_progress_watch *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->of = run->job.store;
    w->began_ns = run->began_ns;
    w->seats = shmt_seats_of_worker(spec);
    w->n_workers = spec->n_workers + spec->n_guests / w->seats;
    w->before = calloc((size_t)w->n_workers * w->seats, sizeof *w->before);
    w->worker = calloc(w->n_workers, sizeof *w->worker);
    if (w->before && w->worker) return w;
    free_watch(w);
    return NULL;
}

/* NULL: no memory. */
static struct shmt_progress_watch *watch_of(struct shmt_run *run, int which) {
    struct shmt_progress_watch *w = run->watch[which];
    if (w && w->of == run->job.store && w->began_ns == run->began_ns) return w;
    free_watch(w);
    return run->watch[which] = make_watch(run);
}

/* ---- counting ---- */

static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void add_seat(const struct shmt_run *run, uint32_t seat, uint64_t now_ns, struct sums *sums) {
    const struct shmt_counters *c = run->backend->store->counters(run->job.store, seat);
    if (!c) return;
    /* relaxed, all: for display */
    sums->examples += load_relaxed(&c->examples);
    sums->busy_ns += shmt_meter_read(&c->busy_ns, now_ns);
    sums->evaluate_ns += shmt_meter_read(&c->evaluate_ns, now_ns);
    sums->merge_ns += shmt_meter_read(&c->merge_ns, now_ns);
    sums->pause_ns += shmt_meter_read(&c->pause_ns, now_ns);
    sums->dropped += load_relaxed(&c->dropped);
    sums->folded += load_relaxed(&c->folded);
    sums->delay += load_relaxed(&c->delays.sum);
    sums->delay_samples += load_relaxed(&c->delays.samples);
    sums->loss += double_of(load_relaxed(&c->loss_bits));
}

static uint32_t occupant(const struct shmt_run *run, uint32_t seat) {
    if (seat < run->spec.n_seats - run->spec.n_guests) return OWN;
    return run->backend->guests->occupied(run->job.store, seat);
}

/* A time may have been set back, by a guest in the place of one that has died. */
static uint64_t grown(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

static void add_times(const struct sums *before, const struct sums *now, struct sums *since) {
    since->busy_ns += grown(now->busy_ns, before->busy_ns);
    since->evaluate_ns += grown(now->evaluate_ns, before->evaluate_ns);
    since->merge_ns += grown(now->merge_ns, before->merge_ns);
    since->pause_ns += grown(now->pause_ns, before->pause_ns);
}

static void add_results(const struct sums *of, struct sums *to) {
    to->examples += of->examples;
    to->loss += of->loss;
    to->dropped += of->dropped;
    to->folded += of->folded;
    to->delay += of->delay;
    to->delay_samples += of->delay_samples;
}

static double mean_delay(const struct sums *s) {
    return s->delay_samples > 0 ? (double)s->delay / (double)s->delay_samples : NAN;
}

/* Where nothing is validated, the ends of epochs are one more wait for the others, or for the chief. So are a guest's time
 * before it is let in, and anybody's who has no work left: what is neither work, merging nor evaluation, nor a
 * pause for a checkpoint. */
static void divide_time(const struct shmt_run *run, const struct sums *since, double ns, struct shmtrain_worker_progress *p) {
    const bool validates = run->job.board.n_valid > 0;
    p->compute_fraction = fmin(1, (double)since->busy_ns / ns);
    p->merge_fraction = fmin(1, (double)since->merge_ns / ns);
    const double evaluates = validates ? fmin(1, (double)since->evaluate_ns / ns) : 0;
    const double rests = fmin(1, (double)since->pause_ns / ns);
    p->wait_fraction = fmax(0, 1 - p->compute_fraction - p->merge_fraction - evaluates - rests);
}

/* Worker i since the last look, `ns` ago; 0: the last speeds stay. A guest may have fewer threads than there are seats in its place:
 * times are those of the seats that somebody had all the time. */
static void look_at_worker(const struct shmt_run *run, struct shmt_progress_watch *w, uint32_t i, uint64_t now_ns, double ns,
                           struct sums *all) {
    struct shmtrain_worker_progress *p = &w->worker[i];
    struct sums now = {0}, since = {0};
    uint32_t n_timed = 0;
    p->here = false;
    for (uint32_t k = 0; k < w->seats; k++) {
        struct look *before = &w->before[i * w->seats + k], here = {.who = occupant(run, i * w->seats + k)};
        add_seat(run, i * w->seats + k, now_ns, &here.sums);
        add_results(&here.sums, &now);
        since.examples += grown(here.sums.examples, before->sums.examples);
        if (here.who != 0) p->here = true;
        if (here.who != 0 && (here.who == before->who || here.who == OWN)) {
            add_times(&before->sums, &here.sums, &since);
            n_timed++;
        }
        if (ns > 0) *before = here;
    }
    p->joined = i >= run->spec.n_workers;
    p->stalled = shmt_stalls_is(run, i);
    p->examples = now.examples;
    p->dropped = now.dropped;
    p->folded = now.folded;
    p->delay = mean_delay(&now);
    add_results(&now, all);
    if (ns <= 0) return;
    p->examples_per_second = (double)since.examples / ns * 1e9;
    p->compute_fraction = p->merge_fraction = p->wait_fraction = 0;
    if (n_timed > 0) divide_time(run, &since, ns * n_timed, p);
}

static void look_at_workers(const struct shmt_run *run, struct shmt_progress_watch *w, uint64_t now_ns, double ns,
                            struct sums *all) {
    double speed = 0;
    for (uint32_t i = 0; i < w->n_workers; i++) {
        look_at_worker(run, w, i, now_ns, ns, all);
        speed += w->worker[i].examples_per_second;
    }
    w->now.examples_per_second = speed;
    w->now.dropped = all->dropped;
    w->now.folded = all->folded;
    w->now.delay = mean_delay(all);
    w->now.n_workers = w->n_workers;
    w->now.worker = w->worker;
}

/* What the link has done since it came, and since the last look, `ns` ago; 0: the last speeds stay. */
static void look_at_link(const struct shmt_run *run, struct shmt_progress_watch *w, double ns) {
    const struct shmt_far_ops *far = run->backend->far;
    const struct shmt_far_traffic *traffic = far ? far->traffic(run->job.store) : NULL;
    struct shmtrain_progress *now = &w->now;
    now->hosts = traffic ? run->spec.hosts.n : 1;
    if (!traffic) return;
    /* relaxed, all: for display */
    now->sent_bytes = load_relaxed(&traffic->sent_bytes);
    now->received_bytes = load_relaxed(&traffic->received_bytes);
    now->exchanges = load_relaxed(&traffic->turns);
    if (ns <= 0) return;
    now->sent_bytes_per_second = (double)grown(now->sent_bytes, w->sent_before) / ns * 1e9;
    now->received_bytes_per_second = (double)grown(now->received_bytes, w->received_before) / ns * 1e9;
    w->sent_before = now->sent_bytes;
    w->received_before = now->received_bytes;
}

/* ---- what follows ---- */

/* Examples of the whole run. */
static double all_examples(const struct shmt_spec *spec) {
    const double epochs = (double)spec->epochs * (double)spec->n_examples;
    if (spec->max_steps == SHMT_NO_LIMIT) return epochs;
    return fmin(epochs, (double)spec->max_steps * (double)shmt_spec_step_examples(spec));
}

static void look_at_epoch(const struct shmt_run *run, struct shmt_progress_watch *w, const struct sums *all) {
    const struct shmt_spec *spec = &run->spec;
    struct shmt_board *board = shmt_job_board(&run->job);
    const struct shmtrain_epoch *record = shmt_board_epochs(board, &run->job.board);
    /* acquire: pairs with the chief's release; the records are whole. A named store may have been damaged: no more than there
     * are */
    const uint32_t done = (uint32_t)shmt_min_u64(load_acquire(&board->epochs_done), spec->epochs);
    /* What was done before this run began is in the records, and perhaps in a part of an epoch, and in no counter. */
    const double loss_all = all->loss + board->before_loss;
    const uint64_t examples_all = all->examples + board->before_examples;
    uint64_t examples = 0;
    double loss = 0;
    for (uint32_t i = 0; i < done; i++) {
        examples += record[i].examples;
        if (record[i].examples > 0) loss += record[i].train_loss * (double)record[i].examples;
    }
    const uint64_t here = examples_all > examples ? shmt_min_u64(examples_all - examples, spec->n_examples) : 0;
    struct shmtrain_progress *now = &w->now;
    now->size = sizeof *now;
    now->epochs = spec->epochs;
    now->epoch = load_relaxed(&board->first_step_ns) ? (uint32_t)shmt_min_u64(done + 1, spec->epochs) : 0; /* for display */
    now->all_examples = spec->n_examples;
    now->examples = done == spec->epochs ? spec->n_examples : here;
    now->loss = here > 0 && loss_all != 0 ? (loss_all - loss) / (double)here : NAN; /* 0: nobody reports any */
    if (done > 0 && here == 0) now->loss = record[done - 1].train_loss;
    const double done_so_far = (double)examples + (double)here;
    const double done_here = done_so_far - (double)board->before_examples, left = fmax(0, all_examples(spec) - done_so_far);
    now->seconds_left = done_here > 0 ? now->seconds * left / done_here : NAN;
}

/* A run that is over keeps the figures that it ended with. */
static void look_at_end(const struct shmt_run *run, struct shmt_progress_watch *w) {
    const struct shmtrain_report *r = &run->report;
    w->now.examples_per_second = r->examples_per_second;
    w->now.seconds = fmax(0, r->seconds - r->load_seconds);
    w->now.seconds_left = 0;
    if (r->n_epochs == 0) return;
    const struct shmtrain_epoch *last = &r->epoch[r->n_epochs - 1];
    w->now.epoch = last->epoch;
    w->now.examples = last->examples;
    w->now.loss = last->train_loss;
}

/* NULL: no memory. */
static const struct shmtrain_progress *look(struct shmt_run *run, int which, bool is_over) {
    struct shmt_progress_watch *w = watch_of(run, which);
    struct sums all = {0};
    if (!w) return NULL;
    const uint64_t now_ns = shmt_now_ns(),
                   first_ns = load_relaxed(&shmt_job_board(&run->job)->first_step_ns); /* relaxed: for display */
    const uint64_t since_ns = w->at_ns ? w->at_ns : first_ns;
    const double ns = since_ns && now_ns > since_ns + 1000000 ? (double)(now_ns - since_ns) : 0;
    look_at_workers(run, w, now_ns, ns, &all);
    look_at_link(run, w, ns);
    if (ns > 0) w->at_ns = now_ns;
    w->now.seconds = first_ns && now_ns > first_ns ? (double)(now_ns - first_ns) * 1e-9 : 0;
    look_at_epoch(run, w, &all);
    if (is_over) look_at_end(run, w);
    return &w->now;
}

/* Whether there is somebody to tell of a run that goes on. */
static bool is_wanted(const struct shmt_run *run, int which) {
    return which == SHMT_WATCH_METRICS ? run->metrics->begun : which == SHMT_WATCH_LISTENER && run->listener.progress;
}

/* When it was told of this run; 0: not yet, or nobody wants to know. */
static uint64_t told_ns(const struct shmt_run *run, int which) {
    const struct shmt_progress_watch *w = run->watch[which];
    if (!is_wanted(run, which) || !w || w->of != run->job.store || w->began_ns != run->began_ns) return 0;
    return w->told_ns;
}

int shmt_progress_due_ms(const struct shmt_run *run, int most) {
    const uint64_t now_ns = shmt_now_ns();
    for (int which = 0; which < SHMT_N_WATCHES; which++) {
        const uint64_t told = told_ns(run, which), due_ns = told + TICK_NS;
        if (!told) continue;
        most = due_ns <= now_ns ? 1 : (int)shmt_min_u64((due_ns - now_ns) / 1000000 + 1, (uint64_t)most);
    }
    return most;
}

static void tell(struct shmt_run *run, int which) {
    const struct shmtrain_listener *to = &run->listener;
    if (!is_wanted(run, which) || shmt_now_ns() < told_ns(run, which) + TICK_NS) return;
    const struct shmtrain_progress *now = look(run, which, false);
    if (!now) return; /* no memory for it: a display less */
    run->watch[which]->told_ns = shmt_now_ns();
    if (which == SHMT_WATCH_METRICS)
        shmt_metrics_progress(run, now);
    else
        to->progress(to->arg, &run->report, now);
}

void shmt_progress_tick(struct shmt_run *run) {
    tell(run, SHMT_WATCH_METRICS);
    tell(run, SHMT_WATCH_LISTENER);
}

const struct shmtrain_progress *shmt_progress_look(struct shmt_run *run, bool is_over) {
    return look(run, SHMT_WATCH_CALLER, is_over);
}
