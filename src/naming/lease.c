/* The maker's side of a store with a name: see lease.h. */
#include "naming/lease.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "naming/manifest.h"
#include "segment/budget.h"
#include "workers/run.h"

#define HEADERS_BYTES (UINT64_C(64) << 10) /* of the three segments, and of their last pages: plenty */

static struct shmt_head *head_of(const struct shmt_run *run) {
    return shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_HEAD);
}

/* ---- the name ---- */

/* Whose it is, as far as can be said, and what helps: what is in use cannot simply be removed, and what is no file of ours
 * not at all. */
static int fail_taken(struct shmt_call *call, const char *name) {
    struct shmt_manifest manifest;
    struct shmt_spec spec;
    struct shmt_error ignored = {0}, why = {0};
    char whose[48] = "";
    int fd;
    if (shmt_named_open(name, SHMT_NAMED_STORE, SHMT_NAMED_LOOK, &fd, &why) < 0)
        return shmt_refuse(&call->error, "%s: use another name", why.text);
    const bool known = shmt_manifest_read(fd, name, &manifest, &spec, &ignored) == 0;
    const bool used = shmt_named_in_use(fd), has_places = known && spec.n_guests > 0 && shmt_named_runs(fd);
    close(fd);
    if (!used)
        return shmt_refuse(
            &call->error,
            "store %s already exists, from a run that has ended: remove it with shmtrain rm %s, or use another name", name,
            name);
    if (known) snprintf(whose, sizeof whose, ", created by process %d", manifest.pid);
    if (has_places)
        return shmt_refuse(
            &call->error,
            "store %s already exists and is in use%s: use another name (shmtrain ls), or join it (shmtrain join %s)", name,
            whose, name);
    return shmt_refuse(&call->error,
                       "store %s already exists and is in use%s: use another name (shmtrain ls lists those in use)", name,
                       whose);
}

void shmt_lease_close(struct shmt_run *run) {
    if (run->lease->open && run->lease->maker == getpid()) shmt_named_unlock(run->lease->fd);
    if (run->lease->open) close(run->lease->fd);
    *run->lease = (struct shmt_lease){0};
}

/* Its own earlier one makes room: it has it open, so nobody else's can be taken for it. */
static void renew(struct shmt_run *run) {
    const struct shmt_lease *lease = run->lease;
    if (lease->open && strcmp(lease->name, run->config->name) == 0 && shmt_named_is(lease->name, SHMT_NAMED_STORE, lease->fd))
        (void)shmt_named_unlink(lease->name, SHMT_NAMED_STORE, NULL);
    shmt_lease_close(run);
}

int shmt_lease_begin(struct shmt_run *run) {
    struct shmt_lease *lease = run->lease;
    const char *name = run->config->name;
    renew(run);
    if (name[0] == '\0') return 0;
    int rc = shmt_named_check(name, &run->call->error);
    if (rc < 0) return rc;
    if (!(run->backend->caps & SHMT_CAP_JOIN))
        return shmt_refuse(&run->call->error, "store %s cannot have a name with backend %s, which workers cannot join: use shm",
                           name, run->backend->name);
    rc = shmt_named_create(name, SHMT_NAMED_STORE, &lease->fd, &run->call->error);
    if (rc == 0 && shmt_named_remove_remnant(name)) {
        shmt_log(&run->call->log, "removed what was left of an earlier store %s, which was cut short", name);
        rc = shmt_named_create(name, SHMT_NAMED_STORE, &lease->fd, &run->call->error);
    }
    if (rc < 0) return rc;
    if (rc == 0) return fail_taken(run->call, name);
    snprintf(lease->name, sizeof lease->name, "%s", name);
    lease->open = lease->held = true;
    lease->maker = getpid();
    /* Whoever had the name before is gone; data that it left behind is nobody's. */
    for (int part = SHMT_NAMED_DATA; part < SHMT_NAMED_PARTS; part++)
        (void)shmt_named_unlink(name, (enum shmt_named_part)part, NULL);
    return 0;
}

/* ---- the data ---- */

int shmt_lease_decide(struct shmt_run *run, uint64_t train_bytes, uint64_t valid_bytes) {
    struct shmt_lease *lease = run->lease;
    struct shmt_need need;
    char text[2][32];
    uint64_t left, size, data_bytes, bytes;
    if (!lease->held || run->spec.n_guests == 0) return 0;
    const int rc = run->backend->plan(&run->spec, &need, &run->call->error);
    if (rc < 0) return rc;
    shmt_named_room(&left, &size);
    if (!shmt_add_u64(train_bytes, valid_bytes, &data_bytes)) data_bytes = UINT64_MAX;
    lease->shares = shmt_add_u64(data_bytes, need.total_bytes + HEADERS_BYTES, &bytes) && bytes <= left;
    if (lease->shares || need.total_bytes > left) return 0; /* nor will the store, which is an error */
    shmt_bytes_text(data_bytes, text[0], sizeof text[0]);
    shmt_bytes_text(left - need.total_bytes, text[1], sizeof text[1]);
    shmt_log(&run->call->log,
             "the data (%s) does not fit into /dev/shm (%s free): it stays private, so workers cannot join; observers can",
             text[0], text[1]);
    run->spec.n_seats -= run->spec.n_guests;
    run->spec.n_guests = 0;
    return 0;
}

int shmt_lease_make_file(void *arg, enum shmt_named_part part, int *out, struct shmt_error *e) {
    struct shmt_lease *lease = arg;
    *out = -1;
    /* Removed by force meanwhile: who would remove the data? */
    lease->shares = lease->shares && shmt_named_is(lease->name, SHMT_NAMED_STORE, lease->fd);
    if (!lease->shares) return 0;
    const int rc = shmt_named_create(lease->name, part, out, e);
    if (rc != 0) return rc < 0 ? rc : 0;
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "another process is creating the data of store %s", lease->name);
}

/* ---- what it says of itself ---- */

int shmt_lease_home(struct shmt_run *run, struct shmt_home *out) {
    const struct shmt_lease *lease = run->lease;
    if (!lease->held) return 0;
    out->fd = fcntl(lease->fd, F_DUPFD_CLOEXEC, 0);
    if (out->fd < 0) return shmt_fail_errno(&run->call->error, "cannot duplicate the descriptor of store %s", lease->name);
    out->has_fd = 1;
    return 0;
}

static uint64_t offset_of(const struct shmt_segment *segment, const void *array) {
    return array ? (uint64_t)((const unsigned char *)array - segment->base) - SHMT_SEGMENT_HEADER_BYTES : SHMT_NOWHERE;
}

/* NULL segment: guests do not get the arrays. */
static void describe(const struct shmtrain_data *data, const struct shmt_segment *segment, struct shmt_manifest_data *out) {
    if (!data) return;
    out->n_examples = data->n_examples;
    out->n_nonzeros = data->n_nonzeros;
    out->n_features = data->n_features;
    out->n_labels = data->n_labels;
    out->label_low = data->label_low;
    out->label_high = data->label_high;
    out->mean_square = data->mean_square;
    out->shape = shmt_manifest_shape(data);
    if (!segment) return;
    out->shared = 1;
    out->bytes = segment->bytes - SHMT_SEGMENT_HEADER_BYTES;
    out->start_off = offset_of(segment, data->start);
    out->id_off = offset_of(segment, data->id);
    out->value_off = offset_of(segment, data->value);
    out->dense_off = offset_of(segment, data->dense);
    out->label_off = offset_of(segment, data->label);
    out->weight_off = offset_of(segment, data->weight);
}

static void describe_report(const struct shmt_run *run, struct shmt_manifest *out) {
    const struct shmtrain_report *r = &run->report;
    snprintf(out->train.name, sizeof out->train.name, "%s", r->dataset.name);
    out->train.examples = r->dataset.examples;
    out->train.features = r->dataset.features;
    out->train.nonzeros = r->dataset.nonzeros;
    snprintf(out->valid.name, sizeof out->valid.name, "%s", r->valid.name);
    out->valid.examples = r->valid.examples;
    out->valid.features = r->valid.features;
    out->valid.nonzeros = r->valid.nonzeros;
    out->valid.best_loss = r->best_loss;
    out->load_seconds = r->load_seconds;
    out->page_bytes = r->page_bytes;
    out->numa_nodes = r->numa_nodes;
    out->with_accuracy = r->with_accuracy;
    out->with_auc = r->with_auc;
    snprintf(out->blas, sizeof out->blas, "%s", r->blas);
}

static void describe_model(const struct shmt_run *run, struct shmt_manifest *out) {
    const struct shmt_job *job = &run->job;
    const struct shmt_lease *lease = run->lease;
    out->group = 1;
    out->n_outputs = 1;
    out->n_valid = job->board.n_valid;
    if (!job->model) return;
    snprintf(out->model, sizeof out->model, "%s", job->model->name);
    snprintf(out->model_options, sizeof out->model_options, "%s", run->texts.joined);
    out->n_outputs = job->board.n_outputs;
    out->bias = job->settings.bias;
    out->group = job->settings.group;
    out->n_classes = job->settings.n_classes;
    if (job->settings.classes) memcpy(out->classes, job->settings.classes, out->n_classes * sizeof *out->classes);
    out->features = lease->features;
    out->share = lease->share;
    describe(job->train, lease->shares ? lease->train : NULL, &out->train);
    if (lease->share == 0) describe(job->valid, lease->shares ? lease->valid : NULL, &out->valid);
}

static void describe_fit(const struct shmt_run *run, struct shmt_manifest *out) {
    const struct shmtrain_report *r = &run->report;
    if (!run->fits) return;
    out->fit_tolerance = r->tolerance;
    out->fit_l1 = r->l1;
    out->fit_l2 = r->l2;
    out->fit_note_off = run->fit->offset + run->fit->plan.note_off;
    out->fit_live = run->fit->problem.live;
    out->fit_scaled = r->scaled;
    out->choice_examples = r->choice_examples;
    out->choice_parts = r->choice_parts;
    out->choice_held = r->choice_held;
    out->choice_most_fits = r->choice_most_fits;
}

void shmt_lease_publish(struct shmt_run *run, uint32_t n_threads) {
    struct shmt_lease *lease = run->lease;
    if (!lease->held) return;
    lease->made = true;
    struct shmt_head *head = head_of(run);
    struct shmt_manifest *m = &head->manifest; /* nobody else reads it yet */
    shmt_manifest_of_spec(&run->spec, m);
    m->made_at = (int64_t)time(NULL);
    m->began_ns = run->began_ns;
    m->uid = (uint32_t)geteuid();
    m->pid = (int32_t)getpid();
    m->n_threads = n_threads;
    describe_report(run, m);
    describe_model(run, m);
    describe_fit(run, m);
    shmt_manifest_seal(m);
    /* release: the manifest is whole; pairs with the acquire in visit.c (and with a read of the file) */
    store_release(&head->state, SHMT_STATE_RUNS);
}

/* ---- guests that die ---- */

static void lose(struct shmt_run *run, uint32_t rank, uint32_t pid) {
    char whose[40] = "";
    _Atomic uint32_t *abort_word = run->backend->store->abort_word(run->job.store);
    /* Somebody else may have set it already. Release: as in the supervisor. */
    if (load_relaxed(abort_word) == 0) store_release(abort_word, rank + 1);
    run->backend->store->wake(run->job.store);
    if (pid != SHMT_OCCUPIED_BY_NOBODY) snprintf(whose, sizeof whose, "process %u, ", pid);
    shmt_fail(&run->lease->lost, SHMTRAIN_E_DIED, "worker %u (%sjoined by name) died or gave up while training: %s is missing",
              rank / shmt_seats_of_worker(&run->spec), whose,
              shmt_policy_merges_replicas(&run->spec.policy) ? "its part of a merge" : "its gradient");
}

/* The process that was there, for sentences: the worker's, where it has said which that is, as in all other lines about it;
 * else that of the program which has joined. */
static uint32_t number_of(struct shmt_run *run, uint32_t rank) {
    struct shmt_life worker = {0};
    const enum shmt_occupant who = run->backend->guests->occupant(run->job.store, rank, &worker);
    const uint32_t number = who == SHMT_OCCUPANT_NONE ? 0 : (uint32_t)shmt_life_number(&worker);
    return number ? number : run->backend->guests->occupied(run->job.store, rank);
}

/* Its process has ended, or the mark of the seat is ours (`marked`): then nobody who lives has it, and nobody takes it. `named`: the worker
 * that a line was about. */
static void reclaim(struct shmt_run *run, uint32_t rank, bool marked, uint32_t *named) {
    const uint32_t pid = number_of(run, rank);
    if (pid == 0) return; /* it has left meanwhile */
    const int goes_on = run->backend->guests->reclaim(run->job.store, rank, marked);
    if (goes_on < 0) return;
    if (goes_on == 0) {
        lose(run, rank, pid);
        return;
    }
    run->backend->store->wake(run->job.store);
    if (pid == SHMT_OCCUPIED_BY_NOBODY) return; /* a line was about it */
    const uint32_t worker = rank / shmt_seats_of_worker(&run->spec);
    if (worker == *named) return; /* the same one's next thread */
    *named = worker;
    shmt_log(&run->call->log, "worker %u (process %u, joined by name) died or gave up: the others continue without it", worker,
             pid);
}

/* Whoever holds its mark: a child that its program has forked may, and a program that is stopped itself does not drop it. */
static bool has_ended(const struct shmt_run *run, uint32_t rank) {
    struct shmt_life worker;
    if (run->backend->guests->occupied(run->job.store, rank) == SHMT_OCCUPIED_BY_NOBODY) return true;
    if (run->backend->guests->occupant(run->job.store, rank, &worker) == SHMT_OCCUPANT_NONE) return false;
    return shmt_life_look(&worker) == SHMT_LIFE_IS_OVER;
}

/* Guests hold their mark from before they take the seat until after they have left. Nobody else sits down there while somebody
 * holds it. */
int shmt_lease_tick(struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    struct shmt_lease *lease = run->lease;
    uint32_t named = UINT32_MAX;
    if (!lease->held) return 0;
    for (uint32_t rank = spec->n_seats - spec->n_guests; rank < spec->n_seats && lease->lost.status == 0; rank++) {
        struct shmt_error ignored = {0}; /* where the system does not lock, nobody can tell: as if the guest were alive */
        if (run->backend->guests->occupied(run->job.store, rank) == 0) continue;
        const bool held = shmt_mark_hold(lease->fd, SHMT_MARK_GUEST(rank), &ignored) == 1;
        if (held || has_ended(run, rank)) reclaim(run, rank, held, &named);
        if (held) shmt_mark_drop(lease->fd, SHMT_MARK_GUEST(rank));
    }
    return lease->lost.status;
}

/* ---- the end ---- */

static void publish_outcome(struct shmt_run *run, int rc) {
    const struct shmtrain_report *r = &run->report;
    struct shmt_head *head = head_of(run);
    head->outcome = (struct shmt_outcome){.seconds = r->seconds,
                                          .train_seconds = r->train_seconds,
                                          .first_step_seconds = r->first_step_seconds,
                                          .examples_per_second = r->examples_per_second,
                                          .wait_fraction = r->wait_fraction,
                                          .lost_updates = r->lost_updates,
                                          .lost_lowest = r->lost_lowest,
                                          .lost_highest = r->lost_highest,
                                          .examples = r->examples,
                                          .updates = r->updates,
                                          .parameter_bytes = r->parameter_bytes,
                                          .parameters_xxh64 = r->parameters_xxh64,
                                          .status = rc,
                                          .stopped = r->stopped,
                                          .error = run->call->error};
    /* release: the outcome is whole; pairs with the acquire in visit.c */
    store_release(&head->state, rc < 0 ? SHMT_STATE_FAILED : SHMT_STATE_OVER);
    shmt_mark_drop(run->lease->fd, SHMT_MARK_RUN);
}

int shmt_lease_end(struct shmt_run *run, int rc) {
    struct shmt_lease *lease = run->lease;
    lease->train = lease->valid = NULL; /* the caller frees it */
    if (!lease->held) return rc;
    if (rc < 0 && run->call->error.status == 0) shmt_fail(&run->call->error, rc, "%s", lease->lost.text); /* the tick's */
    /* The names may be somebody else's by now, after a removal by force. */
    const bool mine = shmt_named_is(lease->name, SHMT_NAMED_STORE, lease->fd);
    for (int part = SHMT_NAMED_DATA; mine && lease->shares && part < SHMT_NAMED_PARTS; part++)
        (void)shmt_named_unlink(lease->name, (enum shmt_named_part)part, NULL);
    lease->held = false;
    if (lease->made) {
        publish_outcome(run, rc);
        return rc;
    }
    if (mine) (void)shmt_named_unlink(lease->name, SHMT_NAMED_STORE, NULL);
    shmt_lease_close(run);
    return rc;
}
