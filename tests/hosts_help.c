/* Runs over many hosts on fibers: see hosts_help.h. */
#include "hosts_help.h"
#include "hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "fibers/scheduler.h"
#include "workers/crew.h"

struct world g;

_Noreturn void give_up(const char *why) {
    fprintf(stderr, "found in run %llu\nFAILED: %s; again: TEST_SEED=%llu\n", (unsigned long long)g.n_runs, why,
            (unsigned long long)g.seed);
    _exit(1);
}

void must(bool holds, const char *what) {
    if (!holds) give_up(what);
}

uint64_t draw(uint64_t below) { return shmt_below(shmt_hash64(g.seed, ++g.draws, 8, 8), below); }

/* ---- a worker ---- */

int note_epoch(struct shmtrain_session *s, void *arg, uint32_t epoch) {
    struct host *h = arg;
    struct shmt_tally tally;
    if (s->seat->rank != 0 || h->n_epochs > epoch) return 0; /* an earlier life has, and others may be in the next one */
    const int rc = s->backend->seat->tally(s->seat, &tally);
    h->loss[epoch] = tally.loss;
    h->examples[epoch] = tally.examples;
    h->lost[epoch] = tally.lost;
    h->n_epochs = epoch + 1;
    return rc;
}

/* As a supervisor does. */
void give_up_host(const struct host *h) {
    store_relaxed(shmt_backend_at(0)->store->abort_word(h->store), 1); /* relaxed: one thread */
    shmt_backend_at(0)->store->wake(h->store);
}

static void run_worker(struct host *h, uint32_t rank) {
    shmtrain_session s;
    int rc = shmt_session_enter(&s, shmt_backend_at(0), h->store, &h->spec, rank, h->life[rank], &h->error[rank]);
    if (rc < 0) give_up(h->error[rank].text);
    s.epoch_end = g.epoch_end ? g.epoch_end : note_epoch;
    s.epoch_end_arg = h;
    if (g.begins && shmt_session_stage(&s, SHMT_STAGE_BEGIN) != SHMT_TASK_NONE) rc = shmt_session_meet(&s);
    if (rc == 0) rc = g.work(h, &s);
    if (rc < 0) h->error[rank] = s.error;
    must(rc == 0 || rc == SHMTRAIN_E_STOPPED || h->spec.hosts.self == g.fails, s.error.text);
    if (rc == SHMTRAIN_E_DATA) give_up_host(h);
    h->status[rank] = rc;
    shmt_session_leave(&s);
}

/* ---- a link ---- */

static struct shmt_lanes *make_lanes(uint32_t host, uint64_t life) {
    struct shmt_error e = {0};
    struct shmt_lanes *lanes;
    const struct shmt_lanes_spec spec = {.carrier = shmt_loop_open(g.loop, host),
                                         .self = host,
                                         .n_hosts = g.n,
                                         .run = 1,
                                         .life = life,
                                         .window_bytes = SHMT_HEAD_BYTES + SHMT_MOST_BODY,
                                         .beat_ns = SHMT_LANES_BEAT,
                                         .suspect_ns = SHMT_LANES_SUSPECT,
                                         .lost_ns = SHMT_LANES_LOST};
    must(shmt_lanes_make(&spec, &lanes, &e) == 0, e.text);
    return lanes;
}

/* In each round a host says its rank so many times, and a round more often. */
static uint32_t text_of(uint32_t host, uint32_t round, unsigned char out[SHMT_MOST_AGREED]) {
    const uint32_t n = (host * 20000 + round * 7) % SHMT_MOST_AGREED;
    memset(out, (int)(host + round), n);
    return n;
}

static int agree(struct host *h, struct shmt_agreement *agreement, struct shmt_error *e) {
    unsigned char text[SHMT_MOST_AGREED];
    int rc = 0;
    for (uint32_t round = 1; round <= g.rounds && rc == 0; round++) {
        rc = shmt_agreement_gather(agreement, text, text_of(h->spec.hosts.self, round, text), 60000 * MS, e);
        for (uint32_t host = 0; host < g.n && rc == 0; host++) {
            uint32_t n;
            const unsigned char *said = shmt_agreement_text(agreement, host, &n);
            must(n == text_of(host, round, text) && memcmp(said, text, n) == 0, "a host has heard what was not said");
        }
    }
    if (rc < 0) shmt_lanes_part(h->lanes);
    return rc;
}

static bool is_liar(const struct host *h) { return g.lie && h->spec.hosts.self == g.liar; }

void send_lie(struct shmt_lanes *lanes, struct shmt_payload *payload) {
    struct shmt_error e = {0};
    must(payload && shmt_lanes_send(lanes, 1 - g.liar, SHMT_CHANNEL_EXCHANGE, payload, &e) == 1, "there is no room for a lie");
    shmt_payload_drop(payload);
}

static void tell_lie(struct shmt_lanes *lanes, const struct lie *lie) {
    const struct shmt_parcel parcel = {
        .kind = lie->kind, .of = lie->of, .n = lie->n, .number = lie->number, .flag = lie->flag, .halves = lie->halves};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    must(payload != NULL, "no memory for a lie");
    if (payload->n > 24) memset(entries, 0, payload->n - 24);
    const uint64_t each = lie->n > 0 ? (payload->n - 24) / lie->n : 0;
    for (uint32_t i = 0; i < lie->n && i < sizeof lie->entry / sizeof *lie->entry && each >= sizeof(uint64_t); i++)
        memcpy(entries + i * each, &lie->entry[i], sizeof(uint64_t));
    send_lie(lanes, payload);
}

void tell_lies(struct shmt_lanes *lanes, const struct lie *lie, size_t n) {
    for (size_t i = 0; i < n && lie[i].kind != 0; i++) tell_lie(lanes, &lie[i]);
}

/* Until the others have had enough of it. */
static void lie(struct host *h, struct shmt_agreement *agreement) {
    struct shmt_error e = {0};
    struct shmt_message m;
    const uint64_t until_ns = shmt_now_ns() + 1000 * MS;
    must(shmt_agreement_ready(agreement, &e) == 0, e.text);
    while (!shmt_agreement_all_ready(agreement) && shmt_now_ns() < until_ns) (void)shmt_agreement_idle(agreement, &e);
    g.lie(h->lanes);
    while (shmt_now_ns() < until_ns)
        if (shmt_lanes_receive(h->lanes, until_ns, &m, NULL, &e) == 1) shmt_lanes_release(h->lanes, &m);
}

static void run_link(struct host *h) {
    struct shmt_error *e = &h->error[MOST_WORKERS];
    struct shmt_agreement *agreement;
    h->lanes = make_lanes(h->spec.hosts.self, 100 + h->spec.hosts.self);
    must(shmt_agreement_make(h->lanes, h->spec.hosts.self, g.n, NULL, NULL, &agreement, e) == 0, e->text);
    const struct shmt_exchange_place place = {.backend = g.backend_of_link ? g.backend_of_link : shmt_backend_at(0),
                                              .store = h->store,
                                              .spec = &h->spec,
                                              .lanes = h->lanes,
                                              .agreement = agreement,
                                              .start_ns = 60000 * MS,
                                              .bucket = g.bucket,
                                              .begins = g.begins};
    int rc = agree(h, agreement, e);
    if (rc == 0 && is_liar(h))
        lie(h, agreement);
    else if (rc == 0)
        rc = shmt_exchange_run(&place, e);
    else
        give_up_host(h);
    struct shmt_lanes_counts counts;
    shmt_lanes_count(h->lanes, &counts);
    h->sent_bytes = counts.sent_bytes;
    h->status[MOST_WORKERS] = rc;
    shmt_agreement_free(agreement);
    shmt_lanes_free(h->lanes);
    h->lanes = NULL;
}

/* A later life of a host is heard of. */
static void start_anew(void) {
    struct shmt_error e = {0};
    struct shmt_message m;
    if (g.restarts == MOST_HOSTS) return;
    shmt_host()->sleep_until(shmt_now_ns() + g.cut_ns);
    struct shmt_lanes *lanes = make_lanes(g.restarts, 1000);
    const uint64_t until_ns = shmt_now_ns() + 100 * MS;
    while (shmt_now_ns() < until_ns)
        if (shmt_lanes_receive(lanes, until_ns, &m, NULL, &e) == 1) shmt_lanes_release(lanes, &m);
    shmt_lanes_free(lanes);
}

static void cut_cables(void) {
    if (g.cut == MOST_HOSTS) return;
    shmt_host()->sleep_until(shmt_now_ns() + g.cut_ns);
    for (uint32_t other = 0; other < g.n; other++) {
        shmt_loop_cut(g.loop, g.cut, other, true);
        shmt_loop_cut(g.loop, other, g.cut, true);
    }
}

static void run_fiber(void *arg, uint32_t i) {
    const uint32_t host = i / (MOST_WORKERS + 1), rank = i % (MOST_WORKERS + 1);
    struct host *h = &g.host[host];
    (void)arg;
    if (host == g.n) {
        cut_cables();
        start_anew();
    } else if (host == g.absent) {
        return;
    } else if (rank == MOST_WORKERS) {
        if (h->spec.hosts.n > 1) run_link(h);
    } else if (rank < h->spec.n_seats && !is_liar(h)) {
        run_worker(h, rank);
    }
}

/* As a supervisor does. */
static bool come_back(void *arg, uint32_t i) {
    struct host *h = &g.host[i / (MOST_WORKERS + 1)];
    (void)arg;
    shmt_backend_at(0)->store->reclaim(h->store, i % (MOST_WORKERS + 1), 1);
    shmt_backend_at(0)->store->wake(h->store);
    h->life[i % (MOST_WORKERS + 1)]++;
    return true;
}

/* One that has ended its work does not notice. */
static void kill_somebody(struct shmt_fibers *fibers) {
    const uint32_t host = (uint32_t)draw(g.n);
    if (g.kills-- > 0) shmt_fibers_kill(fibers, host * (MOST_WORKERS + 1) + (uint32_t)draw(g.host[host].spec.n_seats));
}

/* ---- a run ---- */

/* A quorum is of any number of them all; SHMT_QUORUM_MOST: of all but one. */
static void count_workers(uint32_t n) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < n; i++) all += g.host[i].spec.n_workers;
    uint32_t quorum = g.host[0].spec.policy.quorum;
    if (quorum == SHMT_QUORUM_MOST)
        quorum = all - 1;
    else if (quorum != SHMT_QUORUM_ALL)
        quorum = 1 + (uint32_t)draw(all);
    for (uint32_t i = 0; i < n; i++) {
        g.host[i].spec.hosts.n_workers = g.host[i].spec.hosts.n_seats = all;
        g.host[i].spec.policy.quorum = quorum;
    }
}

void make_hosts(const struct shmt_spec *spec, uint32_t n) {
    struct shmt_error e = {0};
    g.n = n;
    g.rounds = n > 1 ? (uint32_t)draw(4) : 0;
    memset(g.host, 0, sizeof g.host);
    for (uint32_t i = 0; i < n; i++) {
        struct host *h = &g.host[i];
        h->spec = *spec;
        h->spec.n_seats = h->spec.n_workers = n == 1 ? 1 : 1 + (uint32_t)draw(MOST_WORKERS);
        h->spec.hosts.n = n;
        h->spec.hosts.self = i;
        if (g.mixes) h->spec.policy.replicas = draw(2) ? SHMT_REPLICAS_EQUAL : SHMT_REPLICAS_ONE;
    }
    count_workers(n);
    for (uint32_t i = 0; i < n; i++) must(shmt_backend_at(0)->create(&g.host[i].spec, NULL, &g.host[i].store, &e) == 0, e.text);
}

void run(const struct shmt_loop_spec *network) {
    struct shmt_error e = {0};
    struct shmt_fibers *fibers = NULL;
    const struct shmt_fibers_spec spec = {.n = g.n * (MOST_WORKERS + 1) + 1,
                                          .seed = g.seed,
                                          .stack_bytes = SHMT_FIBER_STACK,
                                          .sim = {.look_ns = 20},
                                          .body = run_fiber,
                                          .died = come_back};
    must(shmt_loop_make(network, &g.loop, &e) == 0 && shmt_fibers_make(&spec, &fibers, &e) == 0, e.text);
    g.n_runs++;
    g.began_ns = shmt_fibers_now_ns(fibers);
    while (!shmt_fibers_run(fibers, g.kills > 0 ? 1 + draw(g.kill_steps ? g.kill_steps : 4000) : 1000)) {
        must(shmt_fibers_now_ns(fibers) < MOST_NS, "the run does not end");
        if (g.kills > 0) kill_somebody(fibers);
    }
    g.took_ns = shmt_fibers_now_ns(fibers) - g.began_ns;
    shmt_fibers_free(fibers);
    shmt_loop_free(g.loop);
}

void destroy_hosts(void) {
    for (uint32_t i = 0; i < g.n; i++) shmt_backend_at(0)->store->destroy(g.host[i].store);
}

static uint64_t floats_of(const struct shmt_spec *spec) {
    uint64_t floats = 0;
    for (uint32_t t = 0; t < spec->n_tables; t++) floats += shmt_table_floats(&spec->table[t]);
    return floats;
}

float *parameters_of(const struct host *h) {
    float *out = malloc(floats_of(&h->spec) * sizeof *out), *at = out;
    must(out != NULL, "there is no memory for the parameters");
    for (uint32_t t = 0; t < h->spec.n_tables; t++) {
        must(shmt_backend_at(0)->store->read(h->store, (int)t, 0, h->spec.table[t].rows, at) == 0,
             "the parameters cannot be read");
        at += shmt_table_floats(&h->spec.table[t]);
    }
    return out;
}

/* ---- what must hold ---- */

struct shmt_loop_spec hostile_network(void) {
    return (struct shmt_loop_spec){.n_hosts = g.n,
                                   .seed = g.seed,
                                   .delay_ns = 1000 + draw(MS),
                                   .jitter_ns = draw(2) ? 0 : draw(2 * MS),
                                   .loss = draw(2) ? 0 : (double)draw(10) / 100,
                                   .duplication = draw(2) ? 0 : (double)draw(10) / 100,
                                   .bytes_per_second = draw(2) ? 0 : 10000000 + draw(1000000000),
                                   .port_bytes = UINT64_C(8) << 20};
}

uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

void compare(const struct host *h, const struct host *one, const float *expected) {
    float *found = parameters_of(h);
    for (uint32_t k = 0; k <= MOST_WORKERS; k++)
        if (h->status[k] < 0) give_up(h->error[k].text);
    must(h->n_epochs == one->n_epochs, "a host has another number of epochs");
    for (uint32_t epoch = 0; epoch < h->n_epochs; epoch++) {
        must(h->examples[epoch] == one->examples[epoch], "a host counts other examples");
        must(bits_of(h->loss[epoch]) == bits_of(one->loss[epoch]), "a host has another loss");
    }
    must(memcmp(found, expected, floats_of(&h->spec) * sizeof *found) == 0, "a host has other parameters than one host alone");
    free(found);
}

void begin_seed(uint64_t seed) {
    g.seed = seed;
    g.draws = g.kills = 0;
    g.mixes = false;
    g.liar = 1;
    g.stops = g.cut = g.absent = g.fails = g.slow = g.restarts = MOST_HOSTS;
}

/* In batches workers add up; the link does in all other modes. What takes no time, as some things do on fibers, has no event. */
static bool does(const struct host *h, enum shmt_event_kind kind) {
    return kind == SHMT_EVENT_EXCHANGE || kind == SHMT_EVENT_HOSTS || kind == SHMT_EVENT_WAIT ||
           (kind == SHMT_EVENT_MERGE && !shmt_policy_is_batched(&h->spec.policy));
}

static void check_bytes(const struct host *h, const uint64_t bytes[SHMT_EVENT_KINDS]) {
    const struct shmt_far_traffic *t = shmt_backend_at(0)->far->traffic(h->store);
    must(bytes[SHMT_EVENT_EXCHANGE] <= load_relaxed(&t->sent_bytes),
         "a trace has more than was sent"); /* relaxed: one thread */
    must(bytes[SHMT_EVENT_HOSTS] <= load_relaxed(&t->received_bytes), "a trace has more than has come");
    must(bytes[SHMT_EVENT_HOSTS] > 0, "nothing has come while the link waited for it");
}

void check_trace(const struct host *h) {
    struct shmt_event event[TRACED + 1];
    uint64_t lost, until_ns = 0, bytes[SHMT_EVENT_KINDS] = {0};
    uint32_t times[SHMT_EVENT_KINDS] = {0};
    bool open;
    const struct shmt_ring *ring = shmt_backend_at(0)->far->ring(h->store);
    must((ring != NULL) == (h->spec.trace_events > 0), "a link traces, and nobody has asked for it; or the other way round");
    if (!ring) return;
    const uint32_t n = shmt_ring_read(ring, TRACED, UINT64_MAX, event, &lost, &open);
    must(n > 0 && !open, "a link has done nothing, or not ended it");
    for (uint32_t i = 0; i < n; i++) {
        const enum shmt_event_kind kind = (enum shmt_event_kind)event[i].kind;
        must(event[i].begin_ns >= until_ns, "events of a link overlap");
        must(does(h, kind), "a link does what a worker does");
        until_ns = event[i].begin_ns + event[i].ns;
        times[kind]++;
        if (kind == SHMT_EVENT_EXCHANGE || kind == SHMT_EVENT_HOSTS) bytes[kind] += event[i].count;
    }
    must(times[SHMT_EVENT_WAIT] + 1 >= times[SHMT_EVENT_HOSTS], "a link does not wait for workers between two turns");
    must(times[SHMT_EVENT_MERGE] + 1 >= (does(h, SHMT_EVENT_MERGE) ? times[SHMT_EVENT_HOSTS] : 0),
         "a link does not merge behind what has come");
    check_bytes(h, bytes);
}

void run_to_a_stop(struct shmt_spec *spec, uint64_t further_rows) {
    spec->epochs = MOST_EPOCHS;
    spec->n_examples = spec->order.n_examples = 300;
    spec->table[0].rows = spec->l2_rows[0] = spec->n_examples + further_rows;
    spec->item = 1;
    make_hosts(spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    g.stops = (uint32_t)draw(g.n);
    const struct shmt_loop_spec network = hostile_network();
    run(&network);
    must(g.host[0].n_epochs == 1 && g.host[0].examples[0] < 300, "the run goes on behind the stop");
}

void check_that_a_host_which_goes_ends_the_run(const struct shmt_spec *spec, bool lost) {
    const struct shmt_loop_spec network = {.n_hosts = 3, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
    const char *why = lost ? "host 1 is lost" : "host 1 has left the run";
    make_hosts(spec, 3);
    *(lost ? &g.cut : &g.fails) = 1;
    g.cut_ns = 100 * MS;
    run(&network);
    for (uint32_t i = 0; i < 3; i += 2) {
        const char *said = g.host[i].error[MOST_WORKERS].text;
        must(g.host[i].status[MOST_WORKERS] == SHMTRAIN_E_DIED, "a host goes on without another one");
        must(strcmp(said, why) == 0, said);
        for (uint32_t k = 0; k < g.host[i].spec.n_seats; k++)
            must(g.host[i].status[k] == SHMTRAIN_E_STOPPED, "a worker is not ended");
    }
    destroy_hosts();
}
