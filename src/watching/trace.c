/* Traces of runs: see trace.h.
 *
 * A worker is a process of the trace, each of its seats a thread; reading data is told in the rows of the workers, too, which
 * load with as many readers or fewer. The application has a row of its own, and so has the link to other hosts. Time 0 is when the run
 * began. */
#include "watching/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "watching/report.h"
#include "base/pipe.h"
#include "base/replace.h"
#include "configuration/output.h"
#include "loading/load.h"
#include "ps/far.h"
#include "report/trace_json.h"
#include "sync/host.h"

#define FIRST_WORKER 1000 /* numbers of processes and of further threads, apart enough to be told from one another by eye */
#define FIRST_THREAD 10000
#define APPLICATION  1
#define LINK         2
#define MOST_ARGS    6

static const struct {
    const char *name, *category;
} EVENTS[SHMT_EVENT_KINDS] = {[SHMT_EVENT_PULL] = {"pull", "stage"},
                              [SHMT_EVENT_COMPUTE] = {"compute", "stage"},
                              [SHMT_EVENT_PUSH] = {"push", "stage"},
                              [SHMT_EVENT_AGGREGATE] = {"aggregate", "stage"},
                              [SHMT_EVENT_UPDATE] = {"update", "stage"},
                              [SHMT_EVENT_WAIT] = {"wait", "wait"},
                              [SHMT_EVENT_MERGE] = {"merge", "merge"},
                              [SHMT_EVENT_EVALUATE] = {"evaluate", "evaluate"},
                              [SHMT_EVENT_SNAPSHOT] = {"snapshot", "snapshot"},
                              [SHMT_EVENT_EXCHANGE] = {"exchange", "network"},
                              [SHMT_EVENT_HOSTS] = {"wait for hosts", "wait"},
                              [SHMT_EVENT_ITEM] = {"item in hand", "unfinished"}};

/* In the live modes a push changes the parameters: aggregating and updating are the same act. */
static const char *name_of(const struct shmt_spec *spec, uint32_t kind) {
    return kind == SHMT_EVENT_PUSH && shmt_policy_is_live(&spec->policy) ? "push+update" : EVENTS[kind].name;
}

/* ---- before and while data is loaded ---- */

int shmt_trace_check(struct shmt_call *call, const struct shmt_config *config, const char *data) {
    const char *path = config->trace;
    if (path[0] == '\0') return 0;
    if (config->metrics[0] && shmt_output_is_same(path, config->metrics))
        return shmt_refuse(&call->error, "--trace and --metrics would write to the same file: name two files");
    const int rc = shmt_output_check(call, config, "--trace ", data, path);
    return rc < 0 ? rc : shmt_replace_check(path, "the trace", &call->error);
}

void shmt_trace_starts(struct shmt_run *run) { run->trained_ns = shmt_now_ns(); }

/* ---- writing ---- */

/* On its way. */
struct writing {
    struct shmt_run *run;
    struct shmt_trace_json json;
    struct shmt_event *event; /* (room + 1) of one seat */
    uint32_t threads;         /* seats of a worker */
    uint64_t zero_ns, end_ns;
    uint64_t events, lost;
};

static uint32_t pid_of(uint32_t worker) { return FIRST_WORKER + worker; }

static uint32_t tid_of(const struct writing *w, uint32_t seat) {
    return seat % w->threads == 0 ? pid_of(seat / w->threads) : FIRST_THREAD + seat;
}

/* From the beginning of the run; what is older, as only a damaged store has it, begins there. */
static uint64_t since_zero(const struct writing *w, uint64_t ns) { return ns > w->zero_ns ? ns - w->zero_ns : 0; }

static uint32_t add(struct shmt_trace_arg *arg, uint32_t n, const char *key, uint64_t number) {
    arg[n] = (struct shmt_trace_arg){.key = key, .number = number};
    return n + 1;
}

static uint32_t args_of(const struct writing *w, const struct shmt_event *event, bool open, struct shmt_trace_arg *arg) {
    uint32_t n = 0;
    const bool is_stage = event->kind <= SHMT_EVENT_UPDATE;
    if (open) {
        arg[n++] = (struct shmt_trace_arg){.key = "unfinished", .text = "the worker ended before this did"};
        return n;
    }
    n = add(arg, n, "epoch", (uint64_t)event->epoch + 1);
    if (is_stage) n = add(arg, n, "step", event->step);
    if (is_stage && event->kind <= SHMT_EVENT_PUSH) n = add(arg, n, "examples", event->count);
    if (event->kind == SHMT_EVENT_WAIT && event->count < w->run->spec.n_seats)
        n = add(arg, n, "for", event->count / w->threads);
    if (event->kind == SHMT_EVENT_WAIT && event->count == w->run->spec.n_seats)
        arg[n++] = (struct shmt_trace_arg){.key = "for", .text = "other hosts"}; /* the link's seat */
    if (event->kind <= SHMT_EVENT_PUSH && event->parts > 1) n = add(arg, n, "turns_added_up", event->parts);
    if (is_stage && event->kind > SHMT_EVENT_PUSH && event->parts > 1) n = add(arg, n, "blocks_added_up", event->parts);
    return n;
}

static void put_seat(struct writing *w, uint32_t seat) {
    const struct shmt_spec *spec = &w->run->spec;
    struct shmt_trace_arg arg[MOST_ARGS];
    uint64_t lost;
    bool open;
    const struct shmt_ring *ring = w->run->backend->store->ring(w->run->job.store, seat);
    const uint32_t n = shmt_ring_read(ring, spec->trace_events, w->end_ns, w->event, &lost, &open);
    for (uint32_t i = 0; i < n; i++) {
        const struct shmt_event *event = &w->event[i];
        const bool is_open = open && i == n - 1;
        const struct shmt_trace_line line = {.name = name_of(spec, event->kind),
                                             .category = EVENTS[event->kind].category,
                                             .pid = pid_of(seat / w->threads),
                                             .tid = tid_of(w, seat),
                                             .begin_ns = since_zero(w, event->begin_ns),
                                             .ns = event->ns,
                                             .arg = arg,
                                             .n_args = args_of(w, event, is_open, arg)};
        shmt_trace_json_event(&w->json, &line);
    }
    w->events += n;
    w->lost += lost;
}

/* ---- the link ---- */

static struct shmt_ring *link_ring(const struct writing *w) {
    const struct shmt_far_ops *far = w->run->backend->far;
    return far ? far->ring(w->run->job.store) : NULL;
}

/* Bytes a second in the turn whose exchange is event i: until the next one, or the end of the run. */
static void put_flow(struct writing *w, uint32_t i, uint32_t n) {
    const struct shmt_event *event = w->event;
    const uint64_t begin_ns = event[i].begin_ns;
    uint64_t received = 0, end_ns = w->end_ns;
    for (uint32_t k = i + 1; k < n && end_ns == w->end_ns; k++) {
        if (event[k].kind == SHMT_EVENT_HOSTS) received = event[k].count;
        if (event[k].kind == SHMT_EVENT_EXCHANGE) end_ns = event[k].begin_ns;
    }
    const double seconds = end_ns > begin_ns ? (double)(end_ns - begin_ns) * 1e-9 : 0;
    if (seconds <= 0) return;
    const struct shmt_trace_arg arg[] = {{.key = "sent B/s", .number = (uint64_t)(event[i].count / seconds)},
                                         {.key = "received B/s", .number = (uint64_t)((double)received / seconds)}};
    shmt_trace_json_counter(&w->json, "network", LINK, since_zero(w, begin_ns), arg, 2);
}

static void put_link_event(struct writing *w, const struct shmt_event *event, const char *turn) {
    struct shmt_trace_arg arg[MOST_ARGS];
    uint32_t n = add(arg, 0, "epoch", (uint64_t)event->epoch + 1);
    n = add(arg, n, turn, event->step);
    if (event->kind == SHMT_EVENT_EXCHANGE) n = add(arg, n, "sent_bytes", event->count);
    if (event->kind == SHMT_EVENT_HOSTS) n = add(arg, n, "received_bytes", event->count);
    const struct shmt_trace_line line = {.name = event->kind == SHMT_EVENT_WAIT ? "wait for workers" : EVENTS[event->kind].name,
                                         .category = EVENTS[event->kind].category,
                                         .pid = LINK,
                                         .tid = LINK,
                                         .begin_ns = since_zero(w, event->begin_ns),
                                         .ns = event->ns,
                                         .arg = arg,
                                         .n_args = n};
    shmt_trace_json_event(&w->json, &line);
}

static void put_link(struct writing *w) {
    const struct shmt_ring *ring = link_ring(w);
    const struct shmt_policy *policy = &w->run->spec.policy;
    const char *turn = shmt_policy_is_batched(policy) ? "batch" : shmt_policy_meets_to_merge(policy) ? "merge" : "round";
    uint64_t lost;
    bool open;
    if (!ring) return;
    const uint32_t n = shmt_ring_read(ring, w->run->spec.trace_events, 0, w->event, &lost, &open);
    for (uint32_t i = 0; i < n; i++) {
        put_link_event(w, &w->event[i], turn);
        if (w->event[i].kind == SHMT_EVENT_EXCHANGE) put_flow(w, i, n);
    }
    w->events += n;
    w->lost += lost;
}

static bool has_events(const struct writing *w, uint32_t seat) {
    return load_acquire(&w->run->backend->store->ring(w->run->job.store, seat)->written) > 0; /* as in shmt_ring_read */
}

/* What processes and threads are called. Guests that never came have no row. */
static void put_names(struct writing *w) {
    const struct shmt_spec *spec = &w->run->spec;
    const uint32_t own = spec->n_seats - spec->n_guests;
    char name[64];
    shmt_trace_json_process(&w->json, APPLICATION, "application", 0);
    shmt_trace_json_thread(&w->json, APPLICATION, APPLICATION, "the run", 0);
    if (link_ring(w)) shmt_trace_json_process(&w->json, LINK, "link to other hosts", spec->n_seats + 1);
    if (link_ring(w)) shmt_trace_json_thread(&w->json, LINK, LINK, "the link", 0);
    for (uint32_t seat = 0; seat < spec->n_seats; seat++) {
        const uint32_t worker = seat / w->threads, thread = seat % w->threads;
        if (seat >= own && !has_events(w, seat)) continue;
        snprintf(name, sizeof name, "worker %u%s", worker, seat >= own ? " (joined)" : "");
        if (thread == 0) shmt_trace_json_process(&w->json, pid_of(worker), name, worker + 1);
        snprintf(name, sizeof name, "thread %u", thread);
        shmt_trace_json_thread(&w->json, pid_of(worker), tid_of(w, seat), name, thread);
    }
}

static void put_passes(struct writing *w) {
    const struct shmt_readings *passes = &w->run->loading->passes;
    for (uint32_t i = 0; i < passes->n; i++) {
        const struct shmt_read_pass *pass = &passes->pass[i];
        const struct shmt_trace_arg arg[] = {{.key = "data", .text = pass->name}, {.key = "what", .text = pass->what}};
        for (uint32_t reader = 0; reader < pass->n; reader++) {
            const struct shmt_trace_line line = {.name = "load",
                                                 .category = "load",
                                                 .pid = pid_of(reader),
                                                 .tid = pid_of(reader),
                                                 .begin_ns = since_zero(w, pass->reading[reader].begin_ns),
                                                 .ns = pass->reading[reader].ns,
                                                 .arg = arg,
                                                 .n_args = 2};
            if (line.ns > 0) shmt_trace_json_event(&w->json, &line);
        }
    }
}

static void put_run(struct writing *w) {
    const uint64_t trained_ns = w->run->trained_ns;
    const struct shmt_trace_line load = {.name = "load",
                                         .category = "load",
                                         .pid = APPLICATION,
                                         .tid = APPLICATION,
                                         .ns = since_zero(w, trained_ns)},
                                 train = {.name = "train",
                                          .category = "train",
                                          .pid = APPLICATION,
                                          .tid = APPLICATION,
                                          .begin_ns = since_zero(w, trained_ns),
                                          .ns = w->end_ns - trained_ns};
    shmt_trace_json_event(&w->json, &load);
    shmt_trace_json_event(&w->json, &train);
}

static void put_other(struct writing *w) {
    const struct shmt_run *run = w->run;
    const struct shmt_trace_arg other[] = {{.key = "program", .text = "shmtrain"},
                                           {.key = "mode", .text = run->report.mode},
                                           {.key = "model", .text = run->report.model},
                                           {.key = "data", .text = run->report.dataset.name},
                                           {.key = "workers", .number = run->spec.n_workers},
                                           {.key = "events", .number = w->events},
                                           {.key = "events_lost", .number = w->lost},
                                           {.key = "failure", .text = run->call->error.text}};
    const uint32_t n = sizeof other / sizeof *other;
    shmt_trace_json_end(&w->json, other, run->call->error.status < 0 ? n : n - 1);
}

static void put_all(struct writing *w, FILE *out) {
    shmt_trace_json_begin(&w->json, out);
    put_names(w);
    put_run(w);
    put_passes(w);
    for (uint32_t seat = 0; seat < w->run->spec.n_seats; seat++) put_seat(w, seat);
    put_link(w);
    put_other(w);
}

/* 0, or -1 with errno. The descriptor stays open. */
static int put_file(struct writing *w, int fd) {
    const int copy = dup(fd);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    if (!out) {
        if (copy >= 0) close(copy);
        return -1;
    }
    struct shmt_quiet_pipe quiet;
    shmt_quiet_pipe_begin(&quiet);
    put_all(w, out);
    const bool failed = fflush(out) != 0 || ferror(out) != 0;
    const int saved = errno;
    shmt_quiet_pipe_end(&quiet);
    if (fclose(out) != 0 && !failed) return -1;
    errno = saved;
    return failed ? -1 : 0;
}

static int write_file(struct writing *w, struct shmt_error *e) {
    struct shmt_replacement file;
    w->event = malloc(((size_t)w->run->spec.trace_events + 1) * sizeof *w->event);
    if (!w->event) return shmt_no_memory(e, "to write the trace");
    int rc = shmt_replace_open(&file, w->run->config->trace, "the trace", e);
    if (rc == 0) rc = shmt_replace_close(&file, put_file(w, file.fd), e);
    free(w->event);
    return rc;
}

void shmt_trace_write(struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    struct shmt_error e = {0};
    if (run->config->trace[0] == '\0') return;
    struct writing w = {.run = run, .threads = shmt_seats_of_worker(spec), .zero_ns = run->began_ns, .end_ns = shmt_now_ns()};
    if (write_file(&w, &e) < 0)
        shmt_report_unwritten(run, "no trace was written: %s", e.text);
    else if (w.lost > 0)
        shmt_log(&run->call->log, "the trace has the last %u events of each thread: %llu older ones are missing",
                 spec->trace_events, (unsigned long long)w.lost);
}
