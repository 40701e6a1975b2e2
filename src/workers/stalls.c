/* Workers that stand still: see stalls.h. */
#include "workers/stalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workers/run.h"
#include "base/duration.h"
#include "ps/meter.h"
#include "sync/host.h"

#define LEAST_LOOK_NS 90000000 /* who drives looks up ten times a second */
#define MOST_LOOK_NS  1000000000
#define LOOKS         8                    /* within the time that is allowed */
#define LATE_NS       UINT64_C(2000000000) /* for a run to end by itself when its time limit is over, or its worker is stopped */
#define UNSEEN_NS     UINT64_C(10000000000) /* the same where somebody cannot be seen, and nobody is at work */

static void forget(struct shmt_stalls *s) {
    free(s->worker);
    free(s->seat);
    *s = (struct shmt_stalls){0};
}

void shmt_stalls_begin(struct shmt_run *run, const struct shmt_crew *crew) {
    const struct shmt_spec *spec = &run->spec;
    struct shmt_stalls *s = run->stalls;
    forget(s);
    s->timeout_ns = run->config->parsed.stall_timeout_ns;
    if (s->timeout_ns == 0 && !(run->config->time_limit > 0)) return; /* NaN: there is none */
    s->kind = crew->kind;
    if (s->timeout_ns > 0 && !s->kind->kill_worker && spec->n_guests == 0 && run->config->on_stall == SHMT_STALL_KILL)
        shmt_log(&run->call->log, "workers are %s here and cannot be killed: --on-stall kill has no effect", s->kind->name);
    s->seats = shmt_seats_of_worker(spec);
    s->n_workers = spec->n_workers + spec->n_guests / s->seats;
    s->worker = calloc(s->n_workers, sizeof *s->worker);
    s->seat = calloc((size_t)s->n_workers * s->seats, sizeof *s->seat);
    if (s->worker && s->seat) return;
    forget(s);
    shmt_log(&run->call->log, "not enough memory to watch for stalled workers: none will be reported");
}

bool shmt_stalls_is(const struct shmt_run *run, uint32_t worker) {
    const struct shmt_stalls *s = run->stalls;
    return worker < s->n_workers && s->worker[worker].told_ns != 0;
}

/* ---- looking ---- */

static const struct shmt_counters *counters_of(const struct shmt_run *run, uint32_t seat) {
    return run->backend->store->counters(run->job.store, seat);
}

/* Relaxed, all: numbers that only grow, or turn about; an old one is seen anew at the next look. */
static uint64_t digest(const struct shmt_counters *c) {
    const uint64_t word[] = {load_relaxed(&c->examples),      load_relaxed(&c->updates),   load_relaxed(&c->wait_clock_ns),
                             load_relaxed(&c->wait_epoch_ns), load_relaxed(&c->busy_ns),   load_relaxed(&c->evaluate_ns),
                             load_relaxed(&c->merge_ns),      load_relaxed(&c->loss_bits), load_relaxed(&c->merges),
                             load_relaxed(&c->pause_ns),      load_relaxed(&c->looks)};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) sum = (sum ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return sum;
}

static bool grows(const _Atomic uint64_t *word) { return shmt_meter_grows(load_relaxed(word)); } /* relaxed: as above */

/* Its time goes to work, which nobody else can do for it. Scoring is not told from the waits for it. */
static bool is_at_work(const struct shmt_counters *c) { return grows(&c->busy_ns) || grows(&c->merge_ns); }

static bool waits(const struct shmt_counters *c) {
    return grows(&c->wait_clock_ns) || grows(&c->wait_epoch_ns) || grows(&c->evaluate_ns) || grows(&c->pause_ns);
}

static bool is_guest(const struct shmt_run *run, uint32_t worker) { return worker >= run->spec.n_workers; }

/* The process in which a guest's thread works, into *life; all zeros: nobody works there. True: somebody does. */
static bool look_for_guest(const struct shmt_run *run, uint32_t seat, struct shmt_life *life) {
    *life = (struct shmt_life){0};
    if (run->backend->guests->occupant(run->job.store, seat, life) == SHMT_OCCUPANT_WORKS) return true;
    *life = (struct shmt_life){0};
    return false;
}

/* Likewise, of all its threads' seats, which are one process's. */
static bool look_for_guests_worker(const struct shmt_run *run, uint32_t worker, struct shmt_life *life) {
    const uint32_t seats = run->stalls->seats;
    for (uint32_t k = worker * seats; k < (worker + 1) * seats; k++)
        if (look_for_guest(run, k, life)) return true;
    return false;
}

/* Whether somebody trains on this seat. Who has died there may have left its counters growing. */
static bool is_taken(const struct shmt_run *run, uint32_t seat) {
    const uint32_t worker = seat / run->stalls->seats;
    struct shmt_life ignored;
    return is_guest(run, worker) ? look_for_guest(run, seat, &ignored) : run->stalls->worker[worker].there;
}

static bool is_same(const struct shmt_life *a, const struct shmt_life *b) {
    return a->process == b->process && a->space == b->space;
}

/* Notes what the counters of a worker's threads say. True: none of them says anything new. *still_ns_out: since when one that is
 * at work has said nothing; 0: there is none. */
static bool note_counters(struct shmt_run *run, uint32_t worker, uint64_t now_ns, uint64_t *still_ns_out) {
    struct shmt_stalls *s = run->stalls;
    bool all = true;
    *still_ns_out = 0;
    for (uint32_t k = worker * s->seats; k < (worker + 1) * s->seats; k++) {
        const struct shmt_counters *c = counters_of(run, k);
        struct shmt_stall_seat *seat = &s->seat[k];
        if (!c) continue;
        const uint64_t seen = digest(c);
        if (seat->since_ns == 0 || seen != seat->seen) {
            *seat = (struct shmt_stall_seat){.seen = seen, .since_ns = now_ns};
            all = false;
        } else if (is_at_work(c) && is_taken(run, k) && (*still_ns_out == 0 || seat->since_ns < *still_ns_out)) {
            *still_ns_out = seat->since_ns;
        }
    }
    return all;
}

/* ---- telling ---- */

/* Of the other workers. */
static uint32_t count_waiting(const struct shmt_run *run, uint32_t but) {
    const struct shmt_stalls *s = run->stalls;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_workers; i++) {
        bool any = false;
        for (uint32_t k = 0; k < s->seats && i != but && s->worker[i].told_ns == 0; k++) {
            const struct shmt_counters *c = counters_of(run, i * s->seats + k);
            any |= c && waits(c) && is_taken(run, i * s->seats + k);
        }
        n += any;
    }
    return n;
}

static void say_who(const struct shmt_run *run, uint32_t worker, char *out, size_t bytes) {
    const pid_t pid = run->stalls->worker[worker].pid;
    if (pid == 0)
        snprintf(out, bytes, "worker %u%s", worker, is_guest(run, worker) ? " (joined by name)" : "");
    else
        snprintf(out, bytes, "worker %u (process %d%s)", worker, (int)pid, is_guest(run, worker) ? ", joined by name" : "");
}

/* What a thread of it has in hand, the first that has anything; else where it is. */
static void say_where(const struct shmt_run *run, uint32_t worker, char *out, size_t bytes) {
    const struct shmt_stalls *s = run->stalls;
    const struct shmt_board *board = shmt_job_board(&run->job);
    const uint32_t epoch = (uint32_t)load_relaxed(&board->epochs_done); /* relaxed: for display */
    bool works = false;
    for (uint32_t k = worker * s->seats; k < (worker + 1) * s->seats; k++) {
        uint64_t item;
        const struct shmt_counters *c = counters_of(run, k);
        if (!c || !is_at_work(c)) continue;
        works = true;
        if (!run->backend->store->in_hand || !run->backend->store->in_hand(run->job.store, k, epoch, &item)) continue;
        snprintf(out, bytes, "in %s %llu of epoch %u", shmt_policy_is_batched(&run->spec.policy) ? "batch" : "item",
                 (unsigned long long)item, epoch + 1);
        return;
    }
    snprintf(out, bytes, works ? "working in epoch %u" : "between two items of epoch %u", epoch + 1);
}

static const char *words_of(char state) {
    switch (state) {
        case 'T':
            return "stopped by a signal (state T)";
        case 't':
            return "stopped by a debugger (state t)";
        case 'R':
            return "it is computing (state R)";
        case 'D':
            return "it is waiting for a device (state D)";
        case 'S':
            return "it is sleeping (state S)";
        default:
            return "";
    }
}

static void say_remedy(const struct shmt_run *run, uint32_t worker, char *out, size_t bytes) {
    const struct shmt_stall_worker *w = &run->stalls->worker[worker];
    if (w->state == 'T')
        snprintf(out, bytes, "kill -CONT %d lets it continue", (int)w->pid);
    else if (w->state == 't')
        snprintf(out, bytes, "the debugger can let it continue");
    else
        snprintf(out, bytes, "if its work takes this long, use a longer --stall-timeout%s",
                 shmt_policy_is_batched(&run->spec.policy) ? "" : ", or smaller items (--item)");
}

/* "worker 2 (process 4711) has made no progress for 30 s, in item 12 of epoch 3: stopped by a signal (state T); 3 others wait". */
static void say_stall(const struct shmt_run *run, uint32_t worker, uint64_t now_ns, char *out, size_t bytes) {
    const struct shmt_stall_worker *w = &run->stalls->worker[worker];
    char who[64], where[64], since[24];
    const uint32_t waiting = count_waiting(run, worker);
    const char *words = words_of(w->state);
    say_who(run, worker, who, sizeof who);
    say_where(run, worker, where, sizeof where);
    char others[32] = "no other worker waits";
    if (waiting > 0) snprintf(others, sizeof others, "%u other%s", waiting, waiting == 1 ? " waits" : "s wait");
    snprintf(out, bytes, "%s has made no progress for %s, %s%s%s; %s", who, shmt_duration_text(now_ns - w->told_ns, since),
             where, words[0] ? ": " : "", words, others);
}

/* ---- what is to be done ---- */

static void give_up(struct shmt_run *run, uint32_t worker, const char *what, const char *why) {
    _Atomic uint32_t *word = run->backend->store->abort_word(run->job.store);
    /* Somebody else may have set it already. Release: as in the supervisor. */
    if (load_relaxed(word) == 0) store_release(word, worker + 1);
    run->backend->store->wake(run->job.store);
    shmt_fail(&run->stalls->lost, SHMTRAIN_E_DIED, "%s: %s", what, why);
}

/* A guest's death, too, is dealt with as ever: its program ends, and the run goes on without it or fails (lease.c). What cannot be
 * killed from here may go on at any moment, with a lock in its hand, so nobody can go on without it. */
static void kill_guest(struct shmt_run *run, uint32_t worker, const char *what) {
    const struct shmt_stall_worker *w = &run->stalls->worker[worker];
    char why[128];
    if (shmt_life_kill(&w->life) == 0) {
        shmt_log(&run->call->log, "%s: it is killed (--on-stall kill)", what);
    } else if (errno == ESRCH && w->pid > 0) {
        shmt_log(&run->call->log, "%s: it has just ended by itself", what);
    } else {
        snprintf(why, sizeof why, "it cannot be killed (%s), so the run ends (--on-stall kill)",
                 w->pid == 0 ? "its process cannot be seen from here" : strerror(errno));
        give_up(run, worker, what, why);
    }
}

/* By the supervisor. Where the order does not reach it, the next look gives it again. */
static void kill_own(struct shmt_run *run, const struct shmt_team *team, uint32_t worker, const char *what) {
    struct shmt_stall_worker *w = &run->stalls->worker[worker];
    if (shmt_team_kill_worker(team, worker, w->pid) == 0) {
        shmt_log(&run->call->log, "%s: it is killed (--on-stall kill)", what);
        return;
    }
    shmt_log(&run->call->log, "%s: the supervisor cannot be told to kill it (%s): trying again (--on-stall kill)", what,
             strerror(errno));
    w->told_ns = 0;
}

/* A guest's thread cannot: it works in the process that has reserved its seat, which is the application that joined. */
static bool can_be_killed(const struct shmt_run *run, uint32_t worker) {
    const struct shmt_stall_worker *w = &run->stalls->worker[worker];
    if (!is_guest(run, worker)) return run->stalls->kind->kill_worker;
    const uint32_t seats = run->stalls->seats, process = (uint32_t)shmt_life_number(&w->life);
    for (uint32_t k = worker * seats; k < (worker + 1) * seats; k++)
        if (process != 0 && run->backend->guests->occupied(run->job.store, k) == process) return false;
    return true;
}

static void handle_stall(struct shmt_run *run, const struct shmt_team *team, uint32_t worker, uint64_t now_ns) {
    char what[320], remedy[128];
    say_stall(run, worker, now_ns, what, sizeof what);
    if (run->config->on_stall == SHMT_STALL_ABORT) {
        give_up(run, worker, what, "the run ends (--on-stall abort)");
    } else if (run->config->on_stall != SHMT_STALL_KILL || !can_be_killed(run, worker)) {
        say_remedy(run, worker, remedy, sizeof remedy);
        shmt_log(&run->call->log, "%s: %s", what, remedy);
    } else if (is_guest(run, worker)) {
        kill_guest(run, worker, what);
    } else {
        kill_own(run, team, worker, what);
    }
    run->report.stalls += run->stalls->worker[worker].told_ns != 0;
}

static void tell_end(struct shmt_run *run, uint32_t worker, uint64_t now_ns) {
    struct shmt_stall_worker *w = &run->stalls->worker[worker];
    char who[64], since[24];
    say_who(run, worker, who, sizeof who);
    shmt_log(&run->call->log, "%s continues after %s", who, shmt_duration_text(now_ns - w->told_ns, since));
    w->told_ns = 0;
}

/* From now on: what was seen before says nothing about it. */
static void count_from(struct shmt_stalls *s, uint32_t worker, uint64_t now_ns) {
    for (uint32_t k = worker * s->seats; k < (worker + 1) * s->seats; k++) s->seat[k].since_ns = now_ns;
}

/* Who is at work while another one is stopped may be trying to take a lock that this one holds, which counts as work. */
static bool is_one_stopped(const struct shmt_stalls *s) {
    bool any = false;
    for (uint32_t i = 0; i < s->n_workers; i++) any |= s->worker[i].stopped_ns != 0;
    return any;
}

enum observed { NOBODY, NEW, SAME };

/* Notes whose rest it is that is looked at. NEW: another one than at the last look, who begins anew. Of own workers nobody is
 * there when the others go on without one that has died. */
static enum observed observe_process(struct shmt_run *run, const struct shmt_team *team, uint32_t worker, uint64_t now_ns) {
    struct shmt_stalls *s = run->stalls;
    struct shmt_stall_worker *w = &s->worker[worker], now = {0};
    const bool guest = is_guest(run, worker), guest_there = guest && look_for_guests_worker(run, worker, &now.life);
    now.pid = guest ? shmt_life_pid(&now.life) : shmt_team_pid(team, worker);
    const bool fiber_or_thread = !guest && s->kind->shares_process && !shmt_team_goes_on_without(team, worker);
    now.there = guest ? guest_there : fiber_or_thread || now.pid > 0;
    if (fiber_or_thread) now.life.process = shmt_team_life(team, worker); /* all in one process */
    if (now.there && w->there && now.pid == w->pid && is_same(&now.life, &w->life)) return SAME;
    *w = now; /* what was told is about one that is gone */
    count_from(s, worker, now_ns);
    return now.there ? NEW : NOBODY;
}

static void look_at(struct shmt_run *run, const struct shmt_team *team, uint32_t worker, uint64_t now_ns) {
    struct shmt_stalls *s = run->stalls;
    struct shmt_stall_worker *w = &s->worker[worker];
    uint64_t still_ns;
    const bool resting = note_counters(run, worker, now_ns, &still_ns);
    if (observe_process(run, team, worker, now_ns) != SAME) return;
    w->state = resting && w->pid > 0 ? shmt_process_state(w->pid) : '\0';
    const bool stopped = shmt_state_is_stopped(w->state);
    w->stopped_ns = stopped ? w->stopped_ns ? w->stopped_ns : now_ns : 0;
    if (!stopped && w->told_ns == 0 && is_one_stopped(s)) {
        count_from(s, worker, now_ns);
        return;
    }
    const uint64_t since_ns = stopped ? w->stopped_ns : still_ns;
    const bool stalls = s->timeout_ns > 0 && since_ns != 0 && now_ns - since_ns >= s->timeout_ns;
    if (stalls && w->told_ns == 0) {
        w->told_ns = since_ns;
        handle_stall(run, team, worker, now_ns);
    } else if (w->told_ns != 0 && since_ns == 0) {
        tell_end(run, worker, now_ns);
    }
}

/* ---- when the time limit is over ---- */

/* A guest that cannot be seen, while all say for long that they wait for others: it is that one which is stopped. Whether who
 * scores, or pauses for a snapshot, works or waits, counters do not tell: then nobody is given up. */
static bool is_unseen_and_missing(const struct shmt_run *run, uint32_t worker, uint64_t now_ns) {
    const struct shmt_stalls *s = run->stalls;
    if (!is_guest(run, worker) || !s->worker[worker].there || s->worker[worker].pid > 0) return false;
    for (uint32_t k = 0; k < s->n_workers * s->seats; k++) {
        const struct shmt_counters *c = counters_of(run, k);
        if (!c || !is_taken(run, k)) continue;
        if (is_at_work(c) || grows(&c->evaluate_ns) || grows(&c->pause_ns)) return false;
        if (now_ns - s->seat[k].since_ns < UNSEEN_NS) return false;
    }
    return true;
}

/* Who has been told to end, and is stopped, will not. Who is at work, for however long, will. */
static void end_late_run(struct shmt_run *run, uint64_t now_ns) {
    struct shmt_stalls *s = run->stalls;
    if (now_ns - run->timed_out_ns < LATE_NS) return;
    for (uint32_t i = 0; i < s->n_workers && s->lost.status == 0; i++) {
        struct shmt_stall_worker *w = &s->worker[i];
        const bool stopped = w->stopped_ns != 0 && now_ns - w->stopped_ns >= LATE_NS;
        char what[320];
        if (!stopped && !is_unseen_and_missing(run, i, now_ns)) continue;
        if (w->told_ns == 0) run->report.stalls++;
        if (w->told_ns == 0) w->told_ns = stopped ? w->stopped_ns : now_ns - UNSEEN_NS;
        say_stall(run, i, now_ns, what, sizeof what);
        give_up(run, i, what, "the time limit has passed, so the run ends (--time-limit)");
    }
}

/* When we ourselves were stopped, or a listener took its time, nobody's rest counts that we have not seen. */
static void restart_waiting(struct shmt_stalls *s, uint64_t now_ns) {
    for (uint32_t i = 0; i < s->n_workers; i++) {
        if (s->worker[i].told_ns != 0) continue;
        s->worker[i].stopped_ns = 0;
        count_from(s, i, now_ns);
    }
}

int shmt_stalls_tick(struct shmt_run *run, const struct shmt_team *team) {
    struct shmt_stalls *s = run->stalls;
    if (s->n_workers == 0 || s->lost.status != 0) return s->lost.status;
    if (s->timeout_ns == 0 && !run->timed_out) return 0;
    const uint64_t now_ns = shmt_now_ns(), patience_ns = s->timeout_ns ? s->timeout_ns : LATE_NS;
    const uint64_t every_ns = shmt_max_u64(LEAST_LOOK_NS, shmt_min_u64(patience_ns / LOOKS, MOST_LOOK_NS));
    if (s->looked_ns != 0 && now_ns - s->looked_ns < every_ns) return 0;
    if (s->looked_ns != 0 && now_ns - s->looked_ns > 2 * every_ns + MOST_LOOK_NS) restart_waiting(s, now_ns);
    s->looked_ns = now_ns;
    /* relaxed: a flag; a run that ends already is nobody's concern */
    if (load_relaxed(run->backend->store->abort_word(run->job.store)) != 0) return 0;
    for (uint32_t i = 0; i < s->n_workers && s->lost.status == 0; i++) look_at(run, team, i, now_ns);
    if (run->timed_out && s->lost.status == 0) end_late_run(run, now_ns);
    return s->lost.status;
}

int shmt_stalls_end(struct shmt_run *run, int rc) {
    struct shmt_stalls *s = run->stalls;
    if (rc < 0 && s->lost.status != 0 && run->call->error.status == 0) shmt_fail(&run->call->error, rc, "%s", s->lost.text);
    forget(s);
    return rc;
}
