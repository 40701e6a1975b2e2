/* Smoothed progress: see follow.h. */
#include "cli/follow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_SECONDS 1.0 /* what is older counts for little */

void follow_init(struct follow *f) {
    memset(f, 0, sizeof *f);
    f->state.sent = f->state.received = NAN;
    f->state.examples_per_second = f->state.loss = f->state.seconds_left = f->state.delay = NAN;
}

void follow_fini(struct follow *f) {
    free(f->smooth);
    free(f->known);
    free(f->shown);
    free(f->losses);
    follow_init(f);
}

/* What has grown stays when something else cannot: nothing is lost, and the sizes say what all of them have. */
static int make_room_for_ranks(struct follow *f, uint32_t n) {
    struct draw_worker *smooth = reallocarray(f->smooth, n, sizeof *smooth);
    if (!smooth) return -1;
    f->smooth = smooth;
    struct draw_worker *shown = reallocarray(f->shown, n, sizeof *shown);
    if (!shown) return -1;
    f->shown = shown;
    f->state.worker = shown;
    bool *known = reallocarray(f->known, n, sizeof *known);
    if (!known) return -1;
    memset(known + f->n_ranks, 0, (n - f->n_ranks) * sizeof *known);
    f->known = known;
    f->n_ranks = n;
    return 0;
}

static int make_room_for_losses(struct follow *f, size_t n) {
    double *losses = reallocarray(f->losses, n, sizeof *losses);
    if (!losses) return -1;
    f->losses = losses;
    f->state.losses_before = losses;
    f->n_losses = n;
    return 0;
}

/* Moves a number towards a new one; one that is not known yet becomes it. */
static void smooth(double *number, double to, double weight) {
    if (isnan(to)) return;
    *number = isnan(*number) ? to : *number + weight * (to - *number);
}

static void follow_worker(struct follow *f, uint32_t rank, const struct shmtrain_worker_progress *now, double weight) {
    struct draw_worker *w = &f->smooth[rank];
    if (!f->known[rank]) *w = (struct draw_worker){.examples_per_second = NAN, .compute = NAN, .wait = NAN, .merge = NAN};
    f->known[rank] = true;
    w->rank = rank;
    w->joined = now->joined;
    w->stalled = now->stalled;
    if (weight == 0) return;
    smooth(&w->examples_per_second, now->examples_per_second, weight);
    smooth(&w->compute, now->compute_fraction, weight);
    smooth(&w->wait, now->wait_fraction, weight);
    smooth(&w->merge, now->merge_fraction, weight);
}

static void follow_workers(struct follow *f, const struct shmtrain_progress *now, double weight) {
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < now->n_workers; rank++) {
        if (!now->worker[rank].here) {
            f->known[rank] = false;
            continue;
        }
        follow_worker(f, rank, &now->worker[rank], weight);
        f->shown[n++] = f->smooth[rank];
    }
    f->state.worker = f->shown;
    f->state.n_workers = n;
}

/* Those of the epochs before this one; 0, or -1 when there is no memory. */
static int follow_losses(struct follow *f, const struct shmtrain_report *report, uint32_t epoch) {
    size_t n = 0;
    if (report->n_epochs > f->n_losses && make_room_for_losses(f, report->n_epochs) < 0) return -1;
    for (uint32_t i = 0; i < report->n_epochs; i++)
        if (report->epoch[i].epoch < epoch) f->losses[n++] = report->epoch[i].train_loss;
    f->state.losses_before = f->losses;
    f->state.n_before = n;
    return 0;
}

/* Sums over the whole run: nothing to smooth. */
static void follow_costs(struct draw_state *s, const struct shmtrain_report *report, const struct shmtrain_progress *now) {
    double examples = 0;
    for (uint32_t i = 0; i < now->n_workers; i++) examples += (double)now->worker[i].examples;
    s->delay = now->delay;
    s->dropped = examples > 0 ? (double)now->dropped / examples : 0;
    s->folded = examples > 0 ? (double)now->folded / examples : 0;
    s->merges = report->merge && report->merge[0] != '\0';
}

static void follow_network(struct draw_state *s, const struct shmtrain_progress *now, double weight) {
    s->has_network = now->hosts > 1;
    if (!s->has_network) return;
    s->exchanges = now->exchanges;
    if (weight == 0) return;
    smooth(&s->sent, now->sent_bytes_per_second, weight);
    smooth(&s->received, now->received_bytes_per_second, weight);
}

static bool validates(const struct shmtrain_report *report) { return report->valid.name && report->valid.name[0] != '\0'; }

int follow_update(struct follow *f, const struct shmtrain_report *report, const struct shmtrain_progress *now, bool pause) {
    struct draw_state *s = &f->state;
    if (now->n_workers > f->n_ranks && make_room_for_ranks(f, now->n_workers) < 0) return -1;
    if (follow_losses(f, report, now->epoch) < 0) return -1;
    const double passed = now->seconds - f->seconds, weight = !pause && passed > 0 ? passed / (passed + MEMORY_SECONDS) : 0;
    f->seconds = now->seconds;
    s->epoch = now->epoch;
    s->epochs = now->epochs;
    s->evaluates = validates(report);
    s->fits = report->tolerance > 0; /* NaN: not */
    s->fits_most = s->fits && report->n_epochs == 0 && report->choice_examples > 0 ? report->choice_most_fits : 0;
    s->fit = report->choice_fits;
    s->share = now->all_examples > 0 ? (double)now->examples / (double)now->all_examples : 0;
    s->loss = now->loss;
    s->seconds_left = now->seconds_left;
    follow_costs(s, report, now);
    follow_network(s, now, weight);
    if (weight > 0) smooth(&s->examples_per_second, now->examples_per_second, weight);
    follow_workers(f, now, weight);
    return 0;
}

int follow_epoch(struct follow *f, const struct shmtrain_report *report, const struct shmtrain_epoch *epoch) {
    struct draw_state *s = &f->state;
    if (s->epochs == 0 || s->epoch > epoch->epoch) return 0; /* no state yet, or a later one */
    const bool is_last = epoch->partial || epoch->epoch == s->epochs;
    if (follow_losses(f, report, is_last ? epoch->epoch : epoch->epoch + 1) < 0) return -1;
    s->epoch = is_last ? epoch->epoch : epoch->epoch + 1;
    if (!epoch->partial) s->share = is_last ? 1 : 0;
    if (is_last) s->seconds_left = 0;
    s->loss = epoch->train_loss;
    s->fits_most = 0; /* the choice is made */
    return 0;
}
