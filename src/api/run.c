/* Runs: from a configured store to ended workers. train.c prepares the runs of models on data. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/store_priv.h"
#include "base/clock.h"
#include "consistency/chunks.h"
#include "segment/budget.h"

#define LOOK_MS  100    /* how often the application's thread looks up when nothing wakes it */
#define GRACE_MS 2000   /* after a death, until the workers that do not notice are killed */
#define SPIN_NS  200000 /* with a processor for each worker: a futex wake costs a quarter of this */

/* ---- driving a team ---- */

/* An eventfd, because a write to it is allowed everywhere: on other threads, in signal handlers and in workers. It lives as long
 * as the store, so whoever stops a run never meets memory of one that has just ended. */
bool shmt_stop_asked(struct shmtrain_store *store) {
    uint64_t asked;
    if (read(store->stop_fd, &asked, sizeof asked) > 0) store->stop_asked = true;
    return store->stop_asked;
}

void shmt_stop_forget(struct shmtrain_store *store) {
    (void)shmt_stop_asked(store);
    store->stop_asked = false;
}

int shmt_drive(struct shmtrain_store *store, const struct shmt_team_spec *spec, void (*tick)(struct shmtrain_store *store)) {
    struct shmt_team *team;
    bool killed = false;
    int rc = shmt_team_start(spec, &team, &store->error);
    if (rc < 0) return rc;
    while (!shmt_team_step(team)) {
        struct pollfd pollfd[2] = {{.fd = shmt_team_fd(team), .events = POLLIN}, {.fd = store->stop_fd, .events = POLLIN}};
        (void)poll(pollfd, 2, LOOK_MS); /* interrupted: look at once */
        if (tick) tick(store);
        if (!shmt_stop_asked(store)) continue;
        if (store->training)
            store->ops->stop(store->job.store);
        else if (!killed)
            shmt_team_kill(team);
        killed |= !store->training;
    }
    struct shmt_error ignored = {0};
    rc = shmt_team_finish(team, killed ? &ignored : &store->error);
    if (killed) return shmt_fail(&store->error, SHMTRAIN_E_STOPPED, "stopped while %s", spec->what);
    return rc;
}

/* ---- the spec ---- */

static int policy_of_config(struct shmtrain_store *store, struct shmt_policy *out) {
    const struct shmt_config *c = &store->config;
    int rc = shmt_policy_preset(c->mode, out, &store->error);
    if (rc == 0 && c->write[0]) rc = shmt_write_parse(c->write, &out->write, &store->error);
    if (rc == 0 && c->staleness[0]) out->staleness = strcmp(c->staleness, "inf") == 0 ? SHMT_STALENESS_INF : 0;
    return rc == 0 ? shmt_policy_check(out, &store->error) : rc;
}

/* Small data is dealt in smaller items, so that every worker gets some of it. */
static uint32_t item_of_config(const struct shmt_config *c, uint64_t n_examples, uint32_t n_seats) {
    const uint64_t fair = shmt_ceil_div(n_examples, 4 * (uint64_t)n_seats);
    return (uint32_t)shmt_max_u64(1, shmt_min_u64(c->item, fair));
}

/* The tree over the chunks is complete: their number is the next power of two, but never above the batch. */
static uint32_t chunks_of_config(const struct shmt_config *c) {
    uint32_t chunks = 1;
    if (c->chunks == 0) return shmt_chunks_of_batch((uint32_t)c->batch);
    while (chunks < c->chunks && 2 * (uint64_t)chunks <= c->batch) chunks *= 2;
    return chunks;
}

static const struct {
    const char *name;
    int kind;
} SCHEDULES[] = {
    {"constant", SHMT_RATE_CONSTANT}, {"inverse", SHMT_RATE_INVERSE}, {"step", SHMT_RATE_STEP}, {"cosine", SHMT_RATE_COSINE}};

/* Rules that scale each parameter's rate by themselves want a constant one; ftrl knows no other. */
static int schedule_of_config(const struct shmt_config *c, enum shmt_rule_kind rule) {
    for (size_t i = 0; i < sizeof SCHEDULES / sizeof *SCHEDULES; i++)
        if (strcmp(SCHEDULES[i].name, c->schedule) == 0) return SCHEDULES[i].kind;
    return rule == SHMT_RULE_SGD || rule == SHMT_RULE_MOMENTUM ? SHMT_RATE_INVERSE : SHMT_RATE_CONSTANT;
}

/* An automatic rate is 1 here; models that know their data set a better one. Single examples' gradients are noisy to the end,
 * so the live modes' rate goes down faster. */
static struct shmt_rate rate_of_config(const struct shmt_config *c, enum shmt_rule_kind rule, bool live) {
    return (struct shmt_rate){.base = isnan(c->rate) ? 1 : (float)c->rate,
                              .kind = schedule_of_config(c, rule),
                              .power = !isnan(c->power) ? (float)c->power
                                       : live           ? 2
                                                        : 0.5f,
                              .every = c->decay_every,
                              .factor = c->decay_by,
                              .warmup = c->warmup,
                              .epochs = (double)c->epochs};
}

static int rule_of_config(struct shmtrain_store *store, struct shmt_spec *spec) {
    const struct shmt_config *c = &store->config;
    enum shmt_rule_kind kind;
    const int rc = shmt_rule_parse(c->optimizer, &kind, &store->error);
    if (rc < 0) return rc;
    spec->rule = (struct shmt_rule){.kind = kind,
                                    .l1 = (float)c->l1,
                                    .l2 = (float)c->l2,
                                    .momentum = (float)c->momentum,
                                    .beta2 = (float)c->beta2,
                                    .epsilon = (float)c->epsilon,
                                    .beta = (float)c->beta};
    spec->rate = rate_of_config(c, kind, shmt_policy_is_live(&spec->policy));
    if (kind == SHMT_RULE_FTRL && (spec->rate.kind != SHMT_RATE_CONSTANT || c->warmup > 0))
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "ftrl works out each parameter's rate from its gradients: take --schedule constant without warm-up");
    return shmt_rule_check(&spec->rule, spec->policy.write, &store->error);
}

int shmt_spec_of_config(struct shmtrain_store *store, const struct shmt_crew *crew, uint64_t n_examples,
                        struct shmt_spec *out) {
    const struct shmt_config *c = &store->config;
    *out = (struct shmt_spec){.n_seats = crew->n_seats,
                              .n_workers = crew->n_workers,
                              .n_examples = n_examples,
                              .epochs = (uint32_t)c->epochs,
                              .max_steps = c->steps ? c->steps : SHMT_NO_LIMIT,
                              .batch = (uint32_t)c->batch,
                              .n_chunks = chunks_of_config(c),
                              .item = item_of_config(c, n_examples, crew->n_seats),
                              .order = {.seed = c->seed, .n_examples = n_examples, .shuffle = c->shuffle != 0},
                              .count_lost = c->count_lost != 0};
    out->spin_ns = crew->n_workers * crew->n_threads <= shmt_topo_cpus(crew->topo) ? SPIN_NS : 0;
    for (uint32_t t = 0; t < store->n_tables; t++) {
        out->table[t] = store->table[t].table;
        out->l2_rows[t] = store->table[t].l2_rows;
    }
    out->n_tables = store->n_tables;
    const int rc = policy_of_config(store, &out->policy);
    return rc < 0 ? rc : rule_of_config(store, out);
}

int shmt_check_memory(struct shmtrain_store *store, const struct shmt_backend_ops *ops, const struct shmt_spec *spec,
                      uint64_t data_bytes) {
    struct shmt_need need;
    struct shmt_budget budget;
    char parts[160], text[3][32];
    const int rc = ops->plan(spec, &need, &store->error);
    if (rc < 0) return rc;
    shmt_bytes_text(need.parameter_bytes, text[0], sizeof text[0]);
    shmt_bytes_text(need.state_bytes + need.gradient_bytes + need.other_bytes, text[1], sizeof text[1]);
    shmt_bytes_text(data_bytes, text[2], sizeof text[2]);
    snprintf(parts, sizeof parts, "parameters %s, state, gradients and work %s, data %s", text[0], text[1], text[2]);
    shmt_budget_read("", &budget);
    /* Reserved huge pages are not among the free memory. */
    uint64_t bytes = spec->placement.page_bytes == SHMT_HUGE_BYTES ? 0 : need.total_bytes;
    if (!shmt_add_u64(bytes, data_bytes, &bytes)) bytes = UINT64_MAX;
    return shmt_budget_check(&budget, bytes, "training", parts, "free some, or take fewer features, workers or examples",
                             &store->error);
}

/* Work that cannot be shared out among all is done all the same; it deserves a word. */
static void note_idle_workers(const struct shmtrain_store *store) {
    const struct shmt_spec *spec = &store->spec;
    if (shmt_policy_is_live(&spec->policy) || spec->n_seats <= spec->n_chunks) return;
    shmt_log(&store->log, "a batch of %u has work for %u of %u workers: for the others take more --chunks or a larger --batch",
             spec->batch, spec->n_chunks, spec->n_seats);
}

/* ---- workers ---- */

struct workers {
    struct shmtrain_store *store;
    const struct shmt_crew *crew;
};

/* One thread of one worker, in whose process `inner` runs the threads. */
struct lane {
    const struct workers *workers;
    uint32_t first_seat;
    struct shmt_team *outer;
};

static void notify(void *arg) { shmt_team_notify(arg); }

static int work_at_seat(const struct workers *w, uint32_t seat, struct shmt_team *team, struct shmt_error *e) {
    const struct shmt_crew *crew = w->crew;
    struct shmt_job job = w->store->job;
    job.notify = notify;
    job.notify_arg = team;
    shmt_machine_bind(&crew->machine, seat);
    return shmt_job_work(&job, seat, e);
}

static int lane_body(void *arg, uint32_t lane, struct shmt_team *inner, struct shmt_error *e) {
    const struct lane *l = arg;
    (void)inner;
    return work_at_seat(l->workers, l->first_seat + lane, l->outer, e);
}

static void rouse(const struct shmtrain_store *store) { store->ops->rouse(store->job.store); }
static void rouse_from_worker(void *arg) { rouse(((const struct workers *)arg)->store); }
static void rouse_from_lane(void *arg) { rouse(((const struct lane *)arg)->workers->store); }

static int worker_body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    const struct workers *w = arg;
    const uint32_t lanes = w->crew->n_seats / w->crew->n_workers;
    if (lanes == 1) return work_at_seat(w, rank, team, e);
    struct lane lane = {.workers = w, .first_seat = rank * lanes, .outer = team};
    const struct shmt_team_spec spec = {.kind = SHMT_TEAM_THREADS,
                                        .n = lanes,
                                        .body = lane_body,
                                        .arg = &lane,
                                        .abort = w->store->ops->abort_word(w->store->job.store),
                                        .roused = rouse_from_lane,
                                        .what = "training"};
    return shmt_team_run(&spec, e);
}

/* ---- a run ---- */

static int make_backend(struct shmtrain_store *store, const struct shmt_crew *crew, const float *l2_shares) {
    const struct shmt_home home = {.topo = crew->topo, .log = &store->log, .transparent = crew->machine.transparent};
    struct shmt_store *made;
    int rc = store->ops->create(&store->spec, &home, &made, &store->error);
    if (rc < 0) return rc;
    for (uint32_t t = 0; t < store->n_tables; t++) {
        struct shmt_declared *d = &store->table[t];
        if (d->value) rc = store->ops->write(made, (int)t, 0, d->table.rows, d->value);
        free(d->value);
        d->value = NULL;
    }
    if (l2_shares && store->spec.l2_shares)
        memcpy(store->ops->l2_share(made, 0), l2_shares, store->table[0].table.rows * sizeof *l2_shares);
    store->job.ops = store->ops;
    store->job.store = made;
    store->job.spec = &store->spec;
    store_relaxed(&store->live, made); /* this thread alone reads it */
    store->has_run = true;
    store->trained = (struct shmt_trained){0};
    return rc;
}

int shmt_run_job(struct shmtrain_store *store, const struct shmt_crew *crew, const float *l2_shares) {
    struct workers workers = {.store = store, .crew = crew};
    int rc = make_backend(store, crew, l2_shares);
    if (rc < 0) return rc;
    note_idle_workers(store);
    shmt_report_begin(store, crew);
    if (shmt_stop_asked(store)) store->ops->stop(store->job.store); /* then nobody begins at all */
    const struct shmt_team_spec spec = {.kind = crew->kind,
                                        .n = crew->n_workers,
                                        .body = worker_body,
                                        .arg = &workers,
                                        .abort = store->ops->abort_word(store->job.store),
                                        .roused = rouse_from_worker,
                                        .grace_ms = GRACE_MS,
                                        .what = "training"};
    store->training = true;
    rc = shmt_drive(store, &spec, shmt_report_progress);
    store->training = false;
    if (rc < 0) return rc;
    return shmt_report_finish(store);
}

int shmt_run_begin(struct shmtrain_store *store) {
    shmt_error_clear(&store->error);
    store->began_ns = shmt_now_ns();
    shmt_stop_forget(store);
    const int rc = shmt_store_take_parameters(store);
    if (rc < 0) return rc;
    store->ops = shmt_backend_find(store->config.backend);
    free(store->epochs);
    store->epochs = calloc(store->config.epochs, sizeof *store->epochs);
    if (!store->epochs)
        return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "no memory for the figures of %llu epochs",
                         (unsigned long long)store->config.epochs);
    store->report =
        (struct shmtrain_report){.epoch = store->epochs, .dataset = {.name = ""}, .valid = {.name = ""}, .best_loss = NAN};
    return 0;
}

int shmtrain_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg) {
    struct shmt_crew crew = {0};
    int rc = shmt_run_begin(store);
    if (rc == 0) rc = shmt_crew_make(store, store->ops, 1, &crew);
    if (rc == 0) rc = shmt_spec_of_config(store, &crew, store->n_examples, &store->spec);
    if (rc == 0) {
        if (isnan(store->config.power)) store->spec.rate.power = 0.5f; /* how noisy its gradients are, the application knows */
        store->job = (struct shmt_job){.worker = worker, .worker_arg = arg};
        shmt_board_plan(store->spec.epochs, 0, 1, &store->job.board);
        store->spec.board_bytes = store->job.board.bytes;
        rc = shmt_machine_settle(&crew.machine, store->ops, &store->spec, &store->error);
        if (rc == 0) rc = shmt_check_memory(store, store->ops, &store->spec, 0);
    }
    if (rc == 0) rc = shmt_run_job(store, &crew, NULL);
    shmt_crew_free(&crew);
    return rc;
}
