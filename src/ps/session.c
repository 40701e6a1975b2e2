/* Sessions: how worker code enters the store, gets work and ends it. The pulls and pushes are in exchange.c.
 *
 * Relies on a backend that keeps the contract of backend_ops.h. Guarantees what <shmtrain/session.h> promises, the same on
 * every backend: in particular that calls out of order are refused with a sentence and change nothing. */
#include "ps/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/random.h"
#include "base/sized.h"
#include "ps/meter.h"
#include "ps/strata.h"
#include "update/path.h"

#define RACE_PURPOSE 0x72616365 /* "race" */

static const struct shmt_kernels *find_kernels(const struct shmt_spec *spec, const struct shmt_rule *rule, bool values) {
    const struct shmt_path *path = shmt_path_of(spec->cpu);
    if (shmt_policy_has_rounds(&spec->policy)) return path->of_rounds(values);
    if (spec->count_lost) return shmt_kernels_that_count(rule->kind, values, shmt_rule_restrains(rule));
    return path->find(spec->policy.write, rule->kind, values, shmt_rule_restrains(rule));
}

static void open_race(struct shmtrain_session *s, uint32_t rank, uint32_t life) {
    s->race = (struct shmt_race){.window_ns = s->spec->race_ns,
                                 .share = s->spec->race_share,
                                 .seed = shmt_hash64(s->spec->order.seed, RACE_PURPOSE, rank, life),
                                 .abort = s->backend->store->abort_word(s->store),
                                 .stop = s->backend->store->stop_word(s->store)};
}

int shmt_session_enter(struct shmtrain_session *s, const struct shmt_backend *backend, struct shmt_store *store,
                       const struct shmt_spec *spec, uint32_t rank, uint32_t life, struct shmt_error *e) {
    memset(s, 0, sizeof *s);
    s->backend = backend;
    s->store = store;
    s->spec = spec;
    s->epoch = spec->first_epoch;
    s->with_values = find_kernels(spec, &spec->rule, true);
    s->all_ones = find_kernels(spec, &spec->rule, false);
    s->of_statistics = find_kernels(spec, &(struct shmt_rule){.kind = SHMT_RULE_SGD}, true);
    if (!s->with_values || !s->all_ones)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "there is no kernel for %s with write %s", shmt_rule_name(spec->rule.kind),
                         shmt_write_name(spec->policy.write));
    const int rc = backend->seat->enter(store, rank, life, &s->seat, e);
    if (rc < 0) return rc;
    shmt_meter_begin(s->seat);
    if (shmt_spec_opens_race(spec)) open_race(s, rank, life);
    s->epoch = s->seat->first_epoch;
    const int cached = spec->cache_pulls ? shmt_pull_cache_create(spec, backend, s->seat, &s->cache, e) : 0;
    if (cached < 0) shmt_session_leave(s);
    return cached;
}

void shmt_session_leave(struct shmtrain_session *s) {
    shmt_coll_close(s->coll);
    s->coll = NULL;
    if (s->seat) shmt_meter_turn(s->seat, NULL);
    if (s->seat && s->seat->trace) shmt_trace_item_ends(s->seat->trace); /* of one that failed in the middle of it */
    shmt_pull_cache_destroy(s->cache);
    s->cache = NULL;
    if (s->seat) s->backend->seat->leave(s->seat);
    s->seat = NULL;
}

/* Keeps the sentence of a failed backend entry with the session. */
static int seat_failed(struct shmtrain_session *s, int status) {
    if (s->error.status == 0 && s->seat->error.status != 0) s->error = s->seat->error;
    if (status == SHMTRAIN_E_STOPPED) shmt_fail(&s->error, status, "the run was stopped");
    return status;
}

/* For display: one writer, and a double in a word. */
static void add_loss(_Atomic uint64_t *bits, double loss) {
    uint64_t sum_bits = load_relaxed(bits);
    double sum;
    memcpy(&sum, &sum_bits, sizeof sum);
    sum += loss;
    memcpy(&sum_bits, &sum, sizeof sum_bits);
    store_relaxed(bits, sum_bits);
}

/* What all do last while the parameters are quiet: their parts of a snapshot, if one is taken. As `turn`. */
static int leave_rest(struct shmtrain_session *s) {
    int rc = s->spec->pauses.allowed ? s->backend->seat->copy(s->seat) : 0;
    if (rc == 1 && s->copy) s->copy(s, s->copy_arg);
    const bool kept = rc == 1 && s->kept && s->seat->rank == 0;
    if (rc >= 0) rc = s->backend->seat->turn(s->seat);
    s->seat->behind = false;
    if (rc >= 0 && kept) s->kept(s->kept_arg);
    return rc < 0 ? seat_failed(s, rc) : rc;
}

/* Everybody meets, looks at the quiet parameters, and goes on together. 1: another epoch, 0: the run is over. */
static int end_epoch(struct shmtrain_session *s) {
    shmt_meter_turn(s->seat, &s->seat->counters->evaluate_ns);
    int rc = s->epoch_end ? s->epoch_end(s, s->epoch_end_arg, s->epoch) : 0;
    if (rc == 0 && s->hooks && !s->seat->behind) rc = shmt_hooks_after_epoch(s);
    if (rc < 0 || (rc = leave_rest(s)) < 0) return rc;
    s->epoch++;
    return rc;
}

/* Nobody has work: the epoch is over, or the run pauses. 1: there is more, 0: the run is over. */
int shmt_session_end_leg(struct shmtrain_session *s) {
    if (s->seat->trace) shmt_trace_step(s->seat->trace, s->epoch, 0);
    int rc = shmt_session_stage(s, SHMT_STAGE_END) == SHMT_TASK_NONE ? 0 : s->backend->seat->meet(s->seat);
    if (rc == 0 && s->spec->pauses.allowed) rc = s->backend->seat->pause(s->seat);
    if (rc < 0) return seat_failed(s, rc);
    if (rc == 0) return end_epoch(s);
    shmt_meter_turn(s->seat, &s->seat->counters->pause_ns);
    return leave_rest(s);
}

static int begin_work(struct shmtrain_session *s, struct shmtrain_work *out, uint64_t out_bytes) {
    const uint64_t steps = shmt_spec_steps(s->spec);
    shmt_spec_update(s->spec, s->work.epoch, s->work.step - s->work.epoch * steps, &s->update);
    memset(s->table, 0, sizeof s->table); /* what was bound for looking between items has no place to push to */
    s->work.size = sizeof s->work;
    s->in_work = true;
    s->counted = NULL;
    s->delay = 0;
    s->loss = 0;
    if (s->cache) shmt_pull_cache_begin(s->cache);
    if (s->seat->trace) shmt_trace_item(s->seat->trace, &s->work, s->work.step - s->work.epoch * steps);
    shmt_spend(SHMT_SPENT_ITEM, (double)s->work.n / (double)shmt_spec_largest_piece(s->spec));
    if (s->slow) shmt_slow_begin(s->slow, &s->work);
    if (s->hooks) {
        const int rc = shmt_hooks_before_step(s);
        if (rc < 0) return rc;
    }
    shmt_sized_give(out, out_bytes, &s->work, sizeof s->work);
    return 1;
}

int shmt_session_check_inside(shmtrain_session *s, const char *call) {
    if (!s->inside) return 0;
    return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s may not be called in %s", call, s->inside);
}

int shmtrain_next_sized(shmtrain_session *s, struct shmtrain_work *out, uint64_t out_bytes) {
    if (s->error.status != 0 || shmt_session_check_inside(s, "shmtrain_next") < 0) return s->error.status;
    if (s->in_work)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "shmtrain_next was called before shmtrain_clock ended the previous item");
    while (!s->over) {
        shmt_meter_turn(s->seat, &s->seat->counters->busy_ns);
        int rc = s->hooks && !s->seat->behind ? shmt_hooks_before_epoch(s) : 0;
        if (rc < 0) return rc;
        rc = s->backend->seat->claim(s->seat, &s->work);
        if (rc < 0) return seat_failed(s, rc);
        if (rc == 1) return begin_work(s, out, out_bytes);
        rc = shmt_session_end_leg(s);
        if (rc < 0) return rc;
        s->over = rc == 0;
    }
    shmt_meter_turn(s->seat, NULL);
    return 0;
}

/* A buffer that was lent and not pushed holds no gradient, but the backend would take it for one. */
static int check_lent(struct shmtrain_session *s) {
    for (uint32_t t = 0; t < s->spec->n_tables; t++) {
        if (!s->table[t].lent || s->table[t].pushed) continue;
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE,
                         "table \"%s\": the lent gradient buffer was not pushed before shmtrain_clock", s->spec->table[t].name);
    }
    return 0;
}

static void count_step(struct shmtrain_session *s) {
    struct shmt_bell *bell = s->bell;
    if (s->work.chunk == 0 && ++bell->done % bell->every == 0) bell->ring(bell->arg);
}

int shmtrain_clock_sized(shmtrain_session *s, struct shmtrain_fate *out, uint64_t out_bytes) {
    struct shmtrain_fate fate = {0};
    int rc;
    if (s->error.status != 0 || shmt_session_check_inside(s, "shmtrain_clock") < 0) return s->error.status;
    if (!s->in_work)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "shmtrain_clock was called without an item: call shmtrain_next first");
    if ((rc = check_lent(s)) < 0) return rc;
    shmt_spend(SHMT_SPENT_COMPUTING, 1);
    if (s->slow) shmt_slow_pay(s->slow);
    s->in_work = false;
    if (s->seat->trace) shmt_trace_item_ends(s->seat->trace);
    memset(s->table, 0, sizeof s->table);
    bump_relaxed(&s->seat->counters->examples, s->work.n);
    add_loss(&s->seat->counters->loss_bits, s->loss);
    if ((rc = s->backend->seat->publish(s->seat, &fate)) < 0) return seat_failed(s, rc);
    fate.size = sizeof fate;
    if (out) shmt_sized_give(out, out_bytes, &fate, sizeof fate);
    if (s->bell) count_step(s);
    return s->hooks ? shmt_hooks_after_step(s, &fate) : 0;
}

int shmtrain_order(shmtrain_session *s, const struct shmtrain_work *work, uint32_t *example_out) {
    const uint64_t n = s->spec->n_examples;
    if (work->n > n || work->first > n - work->n)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "shmtrain_order: places beyond the last of %llu examples",
                         (unsigned long long)n);
    shmt_strata_order(s->spec, work->epoch, work->first, work->n, example_out);
    return 0;
}

int shmtrain_report(shmtrain_session *s, double loss_sum) {
    if (shmt_session_check_inside(s, "shmtrain_report") < 0) return s->error.status;
    if (!s->in_work)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE,
                         "shmtrain_report was called without an item: call it before shmtrain_clock");
    s->loss = loss_sum;
    s->backend->seat->report(s->seat, loss_sum);
    return 0;
}

int shmt_session_admit(shmtrain_session *s) {
    const int rc = s->backend->guests->admit(s->seat);
    if (rc < 0) return seat_failed(s, rc);
    s->over = rc == 0;
    s->epoch = s->seat->first_epoch;
    return 0;
}

enum shmt_task shmt_session_stage(shmtrain_session *s, enum shmt_run_stage stage) {
    return s->backend->seat->stage ? s->backend->seat->stage(s->seat, stage) : SHMT_TASK_ALL;
}

int shmt_session_meet(shmtrain_session *s) {
    const int rc = s->backend->seat->meet(s->seat);
    return rc < 0 ? seat_failed(s, rc) : 0;
}

int shmt_session_judge(shmtrain_session *s, const char *whose, int rc) {
    struct shmt_error *e = &s->error;
    if ((rc != SHMTRAIN_E_STOPPED && rc != SHMTRAIN_E_AGAIN) || e->status == rc) return rc;
    if (e->status != 0) return e->status;
    if (rc == SHMTRAIN_E_AGAIN)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "%s returned SHMTRAIN_E_AGAIN, which is no way for a run to end", whose);
    return shmt_fail(e, SHMTRAIN_E_USAGE,
                     "%s returned SHMTRAIN_E_STOPPED, but no session call had returned it; use shmtrain_store_stop", whose);
}

int shmt_session_take_result(shmtrain_session *s, const char *whose, int rc) {
    s->inside = NULL;
    if (rc == 0) return s->error.status;
    if (rc > 0) return shmt_fail(&s->error, SHMTRAIN_E_USAGE, "%s returned %d: expected 0 or a negative status", whose, rc);
    rc = shmt_session_judge(s, whose, rc);
    return shmt_fail(&s->error, rc, "%s ended with %s", whose, shmtrain_status_name(rc));
}

uint64_t shmtrain_item_max(const shmtrain_session *s) { return shmt_spec_largest_piece(s->spec); }

/* What a worker has to say may come from anywhere: no line break reaches the sentence. */
int shmtrain_fail(shmtrain_session *s, int status, const char *format, ...) {
    char text[SHMT_ERROR_TEXT];
    va_list args;
    SHMT_PLAIN_NUMBERS;
    if (s->error.status != 0) return s->error.status;
    if (status >= 0 || status == SHMTRAIN_E_STOPPED || status == SHMTRAIN_E_AGAIN)
        return shmt_fail(&s->error, SHMTRAIN_E_USAGE,
                         "shmtrain_fail with status %d: it takes a negative one, but neither SHMTRAIN_E_STOPPED nor _AGAIN",
                         status);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
    return shmt_fail(&s->error, status, "%s", text);
}

uint32_t shmtrain_rank(const shmtrain_session *s) { return s->seat->rank; }
uint32_t shmtrain_workers(const shmtrain_session *s) { return s->spec->n_workers; }
uint32_t shmtrain_host(const shmtrain_session *s) { return s->spec->hosts.self; }
uint32_t shmtrain_hosts(const shmtrain_session *s) { return s->spec->hosts.n > 0 ? s->spec->hosts.n : 1; }
uint64_t shmtrain_global_step(const shmtrain_session *s) { return s->work.step; }
const char *shmtrain_session_message(const shmtrain_session *s) { return s->error.text; }
