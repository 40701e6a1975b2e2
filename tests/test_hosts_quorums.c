/* A quorum over many hosts (src/link/quorums.c), on fibers and a network that loses, repeats and reorders frames: each round is of K
 * workers of all hosts, or of all who have work; each update is the sum of exactly their gradients, and all hosts have the same
 * parameters behind it, bit by bit; each example counts once, or is said to be dropped; workers die and go on; nobody waits for one that
 * is in no round.
 *
 *   TEST_SEEDS=N   that many seeds; 700 unless said otherwise, or 20 under a sanitizer
 *   TEST_SEED=K    this one alone */
#include "deadline.h"
#include "hostile.h"
#include "hosts_help.h"
#include "sanitized.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "workers/crew.h"

#define SHARED    8 /* rows behind those of examples, which all push to */
#define MOST_ROWS 5000
#define WIDE      600 /* rows of a large table for each one of the first */
#define KEPT      4   /* rounds that one host may be behind another, and more */
#define MOST_SEEN 4096

/* What the test sees of the run: all hosts are fibers of this thread. */
static struct {
    bool checks_sums; /* weights are what plain sums make of them */
    uint32_t trained[MOST_ROWS];
    float grad[MOST_HOSTS][MOST_WORKERS][MOST_ROWS]; /* the one that is in hand, or offered */
    uint32_t examples[MOST_HOSTS][MOST_WORKERS];     /* of it */
    uint64_t pulled[MOST_HOSTS][MOST_WORKERS];       /* updates that its weights had had */
    uint64_t applied, dropped, folded;               /* as workers were told */
    uint64_t in_rounds;                              /* examples of all rounds */
    uint64_t rounds;                                 /* that some host has closed */
    struct shmt_far_round round[MOST_SEEN];          /* as the first host has closed them */
    double plain[KEPT][MOST_ROWS];                   /* weights behind the last of these, by plain sums, */
    float found[KEPT][MOST_ROWS];                    /* ... and as the first host had them that had made them */
    uint64_t settled;                                /* rounds that some host has made */
    uint64_t step_ns;                                /* that an item takes, at most */
    uint64_t at_slow;                                /* rounds that were closed while a slow worker was at its first item */
    bool has_slow;
    uint64_t in_parts; /* how often a link had more to apply, or to clear, than it does at a time, or somebody was at it */
} seen;

static uint32_t seen_lives, seen_late; /* in all runs */

/* ---- what links do ---- */

static struct shmt_seat *link_seat[MOST_HOSTS];
static int (*lie)(struct shmt_far_look *look); /* what a host's link says instead of what it has seen */
static uint32_t liar;

static const struct shmt_far_quorum_ops *quorums(void) { return shmt_backend_at(0)->far->quorums; }

static uint32_t host_of(const struct shmt_seat *seat) {
    for (uint32_t host = 0; host < g.n; host++)
        if (link_seat[host] == seat) return host;
    give_up("a link without a seat");
}

static int enter(struct shmt_store *store, uint32_t rank, uint32_t life, struct shmt_seat **out, struct shmt_error *e) {
    const int rc = shmt_backend_at(0)->seat->enter(store, rank, life, out, e);
    for (uint32_t host = 0; host < g.n && rc == 0; host++)
        if (g.host[host].store == store) link_seat[host] = *out;
    return rc;
}

static void leave(struct shmt_seat *seat) {
    link_seat[host_of(seat)] = NULL;
    shmt_backend_at(0)->seat->leave(seat);
}

static void look(struct shmt_seat *seat, struct shmt_far_look *out) {
    quorums()->look(seat, out);
    if (lie && host_of(seat) == liar) (void)lie(out);
}

static uint64_t slot(uint64_t round) { return round % KEPT; }

/* What the members' gradients make of the weights, added up plainly. */
static void add_plainly(const struct shmt_far_round *of, const uint64_t in[MOST_HOSTS]) {
    const double *before = seen.plain[slot(of->round + KEPT - 1)];
    double *after = seen.plain[slot(of->round)];
    const struct shmt_spec *spec = &g.host[0].spec;
    uint64_t examples = 0;
    memcpy(after, before, sizeof seen.plain[0]);
    for (uint32_t host = 0; host < g.n; host++)
        for (uint32_t k = 0; k < g.host[host].spec.n_seats; k++) {
            if (!(in[host] >> k & 1)) continue;
            examples += seen.examples[host][k];
            const uint64_t delay = of->round - seen.pulled[host][k];
            const double share = spec->staleness_aware && delay > 1 ? 1 / (double)delay : 1;
            for (uint64_t row = 0; row < spec->table[0].rows; row++) after[row] -= share * (double)seen.grad[host][k][row];
        }
    must(examples == of->examples, "a round says that it is of other examples than its members have");
    for (uint64_t row = 0; row < spec->table[0].rows; row++)
        after[row] = before[row] + (after[row] - before[row]) * (double)spec->rate.base / (double)examples;
}

/* As workers stand when the host that decides closes it: more of them may have run out of work since it has decided, and none has begun. */
static void check_quorum(const struct shmt_far_round *of, const uint64_t in[MOST_HOSTS]) {
    uint32_t arrived = 0, late = 0, working = 0;
    for (uint32_t host = 0; host < g.n; host++) {
        struct shmt_far_look now;
        if (!link_seat[host]) return; /* it has given up: the others will hear of it */
        quorums()->look(link_seat[host], &now);
        must(now.round == of->round, "a host closes a round before the one that decides, which has begun no other one");
        must((in[host] & ~now.in[0]) == 0, "a round is of workers who have not come");
        arrived += (uint32_t)__builtin_popcountll(in[host] & ~now.late[0]);
        late += (uint32_t)__builtin_popcountll(in[host] & now.late[0]);
        working += now.working;
    }
    seen_late += late;
    const uint32_t needed = shmt_policy_needed(g.host[0].spec.policy.quorum, working - late);
    must(arrived >= needed && arrived + late > 0, "a round is closed before enough workers have come");
}

/* Which of a host's workers are in a round, from when it is decided until the first host closes it. */
static uint64_t members[KEPT][MOST_HOSTS];

static void choose(struct shmt_seat *seat, const uint64_t *in) {
    struct shmt_far_look now;
    quorums()->look(seat, &now);
    members[slot(now.round)][host_of(seat)] = in[0];
    quorums()->choose(seat, in);
}

/* A host closes a round: all say the same of it. The first one that does so finds all members at rest. */
static void close_round(struct shmt_seat *seat, const struct shmt_far_round *of) {
    must(of->round < MOST_SEEN && of->round <= seen.rounds, "a host closes a round that is not decided");
    struct shmt_far_round *first = &seen.round[of->round];
    if (of->round == seen.rounds) {
        const uint64_t *in = members[slot(of->round)];
        check_quorum(of, in);
        add_plainly(of, in);
        memset(members[slot(of->round)], 0, sizeof members[0]);
        *first = *of;
        seen.rounds++;
        seen.in_rounds += of->examples;
    }
    must(first->step == of->step && first->examples == of->examples, "hosts close other rounds");
    quorums()->close(seat, of);
}

/* All that is closed is applied on this host: its weights are those of all hosts. Or somebody was at it when the link looked. */
static int settle(struct shmt_seat *seat) {
    if (draw(8) == 0) return 0;
    const struct host *h = &g.host[host_of(seat)];
    const uint64_t rows = h->spec.table[0].rows;
    float found[MOST_ROWS];
    struct shmt_far_look now;
    const int rc = quorums()->settle(seat);
    seen.in_parts += rc == 0;
    quorums()->look(seat, &now);
    if (rc != 1 || now.round == 0) return rc;
    const uint64_t at = slot(now.round - 1);
    must(shmt_backend_at(0)->store->read(h->store, 0, 0, rows, found) == 0, "the parameters cannot be read");
    if (now.round <= seen.settled) {
        must(memcmp(found, seen.found[at], rows * sizeof *found) == 0, "an update leaves hosts with other parameters");
        return rc;
    }
    seen.settled = now.round;
    memcpy(seen.found[at], found, rows * sizeof *found);
    for (uint64_t row = 0; row < rows; row++) {
        const double plain = seen.plain[at][row], off = fabs(plain - (double)found[row]);
        must(!seen.checks_sums || off <= 1e-5 * (1 + fabs(plain)), "an update is not that of its members");
        seen.plain[at][row] = (double)found[row];
    }
    return rc;
}

static struct shmt_seat_ops spied_seat;
static struct shmt_far_quorum_ops spied_quorums;
static struct shmt_far_ops spied_far;
static struct shmt_backend spied;

static void spy_on_links(void) {
    spied = *shmt_backend_at(0);
    spied_seat = *spied.seat;
    spied_far = *spied.far;
    spied_quorums = *spied.far->quorums;
    spied_seat.enter = enter;
    spied_seat.leave = leave;
    spied_quorums.look = look;
    spied_quorums.choose = choose;
    spied_quorums.close = close_round;
    spied_quorums.settle = settle;
    spied_far.quorums = &spied_quorums;
    spied.seat = &spied_seat;
    spied.far = &spied_far;
    g.backend_of_link = &spied;
}

/* ---- a worker ---- */

static float part_of(uint64_t example, uint32_t epoch) {
    return (float)(int64_t)(shmt_hash64(g.seed, example, epoch, 3) % 2001) / 1000.0f - 1;
}

static int train_piece(const struct host *h, shmtrain_session *s, const struct shmtrain_work *w) {
    const uint32_t host = h->spec.hosts.self, k = s->seat->rank;
    float *grad = seen.grad[host][k];
    int rc = 0;
    memset(grad, 0, sizeof seen.grad[0][0]);
    seen.examples[host][k] = (uint32_t)w->n;
    for (uint64_t i = w->first; i < w->first + w->n && rc == 0; i++) {
        const float part = part_of(i, w->epoch);
        const uint64_t others = h->spec.table[0].rows - SHARED, shared = others + i % SHARED;
        const uint64_t own = i * others / h->spec.n_examples; /* in any block */
        seen.trained[i]++;
        rc = shmtrain_push(s, 0, own, 1, &part);
        if (rc == 0) rc = shmtrain_push(s, 0, shared, 1, &part);
        if (rc == 0 && h->spec.n_tables > 1) rc = shmtrain_push(s, 1, own * WIDE, 1, &part);
        grad[own] += part;
        grad[shared] += part;
        if (g.kills > 0) shmt_host()->sleep_until(shmt_now_ns() + draw(1000)); /* somebody dies in the middle of an item */
    }
    shmtrain_report(s, (double)w->n);
    return rc;
}

static void note_fate(const struct shmtrain_fate *fate) {
    seen.applied += fate->applied;
    seen.dropped += fate->dropped;
    seen.folded += fate->folded;
}

static int work(struct host *h, shmtrain_session *s) {
    struct shmtrain_work w;
    struct shmtrain_fate fate;
    struct shmt_far_look now;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const bool is_slow =
            seen.has_slow && h->spec.hosts.self == 1 && s->seat->rank == 0 && w.epoch == 0 && seen.at_slow == 0;
        if (!link_seat[h->spec.hosts.self]) continue; /* the run is given up */
        quorums()->look(link_seat[h->spec.hosts.self], &now);
        seen.pulled[h->spec.hosts.self][s->seat->rank] = now.round;
        if (seen.step_ns > 0) shmt_host()->sleep_until(shmt_now_ns() + draw(seen.step_ns));
        rc = train_piece(h, s, &w);
        if (is_slow) shmt_host()->sleep_until(shmt_now_ns() + 5000 * MS);
        if (is_slow) seen.at_slow = seen.rounds;
        if (rc == 0 && h->spec.hosts.self == g.stops && w.step >= 5)
            set_bits_relaxed(shmt_backend_at(0)->store->stop_word(h->store), SHMT_STOP_ASKED);
        if (rc == 0 && h->spec.hosts.self == g.fails && w.step >= 5) rc = shmtrain_fail(s, SHMTRAIN_E_DATA, "no");
        if (rc == 0) rc = shmtrain_clock(s, &fate);
        if (rc < 0) break;
        note_fate(&fate);
    }
    return rc;
}

/* A chief that has died behind its epoch comes here once more, also when the others have gone on to the next one. */
static int note_once(struct shmtrain_session *s, void *arg, uint32_t epoch) {
    return s->seat->behind ? 0 : note_epoch(s, arg, epoch);
}

/* ---- a run ---- */

static struct shmt_rule rule_of(uint32_t number) {
    static const enum shmt_rule_kind KINDS[] = {SHMT_RULE_SGD,      SHMT_RULE_SGD,  SHMT_RULE_SGD,
                                                SHMT_RULE_MOMENTUM, SHMT_RULE_ADAM, SHMT_RULE_FTRL};
    const enum shmt_rule_kind kind = KINDS[number % (sizeof KINDS / sizeof *KINDS)];
    const bool has_momentum = kind == SHMT_RULE_MOMENTUM || kind == SHMT_RULE_ADAM;
    return (struct shmt_rule){.kind = kind,
                              .momentum = has_momentum ? 0.5f : 0,
                              .beta2 = 0.9f,
                              .epsilon = 1e-6f,
                              .beta = 1,
                              .clip_norm = draw(4) == 0 ? 0.5f : 0};
}

static struct shmt_spec spec_for(uint32_t rule) {
    const struct kase k = {
        .policy = {.write = SHMT_WRITE_AGGREGATE, .quorum = 1, .late = draw(2) ? SHMT_LATE_DROP : SHMT_LATE_FOLD},
        .n_seats = 1};
    const uint64_t item = 1 + draw(8), examples = 20 + draw(200), rows = draw(4) ? examples + SHARED : MOST_ROWS;
    struct shmt_spec spec = spec_of(&k, examples, rows, 1);
    spec.epochs = 1 + (uint32_t)draw(MOST_EPOCHS);
    spec.item = (uint32_t)item;
    spec.rule = rule_of(rule);
    spec.rate.kind =
        spec.rule.kind == SHMT_RULE_FTRL || spec.rule.kind == SHMT_RULE_SGD ? SHMT_RATE_CONSTANT : SHMT_RATE_COSINE;
    spec.rate.epochs = spec.epochs;
    spec.cpu = SHMT_CPU_PORTABLE;
    spec.order.shuffle = false; /* place i is example i */
    spec.staleness_aware = k.policy.late == SHMT_LATE_FOLD && draw(4) == 0;
    seen.checks_sums = spec.rule.kind == SHMT_RULE_SGD && !(spec.rule.clip_norm > 0);
    return spec;
}

static void begin_quorums(uint64_t seed) {
    begin_seed(seed);
    memset(&seen, 0, sizeof seen);
    memset(members, 0, sizeof members);
    memset(link_seat, 0, sizeof link_seat);
    lie = NULL;
    seen.step_ns = draw(4) ? 1 + draw(5 * MS) : 0;
}

/* The chief's counters are right only behind the end of an epoch: of all, all updates. */
static uint64_t updates_of(const struct host *h) {
    uint64_t n = 0;
    for (uint32_t k = 0; k < h->spec.n_seats; k++)
        n += load_relaxed(&shmt_backend_at(0)->store->counters(h->store, k)->updates); /* relaxed: all have ended */
    return n;
}

static void check_all(bool whole) {
    const struct shmt_spec *spec = &g.host[0].spec;
    float *first = parameters_of(&g.host[0]);
    uint64_t examples = 0;
    for (uint32_t i = 0; i < g.n; i++) compare(&g.host[i], &g.host[0], first);
    for (uint32_t i = 0; i < g.n; i++)
        must(updates_of(&g.host[i]) == seen.rounds, "a host counts other updates than were made");
    for (uint32_t epoch = 0; epoch < g.host[0].n_epochs; epoch++) {
        must(g.host[0].loss[epoch] == (double)g.host[0].examples[epoch], "an epoch has not all losses, or more");
        must(!whole || g.host[0].examples[epoch] == spec->n_examples, "an epoch has not all examples, or more");
        examples += g.host[0].examples[epoch];
    }
    must(!whole || g.host[0].n_epochs == spec->epochs, "an epoch is missing");
    must(seen.in_rounds <= examples, "an example is in two updates");
    if (!spec->may_die) {
        must(seen.applied + seen.folded == seen.in_rounds,
             "workers were told otherwise of their gradients than they were used");
        must(seen.applied + seen.folded + seen.dropped == examples, "an example is neither used nor dropped");
    }
    must(spec->policy.late == SHMT_LATE_DROP || spec->may_die || seen.dropped == 0, "a late gradient was dropped");
    must(spec->policy.late == SHMT_LATE_DROP || seen.in_rounds == examples, "an example that was to be folded is missing");
    free(first);
    destroy_hosts();
}

/* In every third run workers die, wherever they stand: in an item, behind their offer, at a slice. */
static void run_seed(uint64_t seed) {
    begin_quorums(seed);
    struct shmt_spec spec = spec_for((uint32_t)draw(6));
    spec.may_die = draw(3) == 0;
    if (spec.may_die && spec.staleness_aware) seen.checks_sums = false; /* what a life that has died had pulled is not seen */
    spec.trace_events = seed % 3 == 0 ? TRACED : 0;
    make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    if (spec.may_die) g.kills = 1 + (uint32_t)draw(6);
    const struct shmt_loop_spec network = hostile_network();
    run(&network);
    for (uint32_t i = 0; i < g.n * MOST_WORKERS; i++) seen_lives += g.host[i / MOST_WORKERS].life[i % MOST_WORKERS];
    for (uint64_t i = 0; i < spec.n_examples; i++)
        must(spec.may_die ? seen.trained[i] >= spec.epochs : seen.trained[i] == spec.epochs,
             "an example was trained on twice, or not at all");
    for (uint32_t i = 0; i < g.n && seen.rounds * 4 < TRACED; i++) check_trace(&g.host[i]);
    check_all(true);
}

static void each_update_is_of_a_quorum_of_all_hosts_and_the_same_on_each(void **state) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 20 : 700), only = hostile_asked("TEST_SEED", 0);
    (void)state;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) run_seed(seed);
    printf("%llu runs, all as expected; %u workers died, %u gradients were folded\n", (unsigned long long)g.n_runs, seen_lives,
           seen_late);
    assert_true(only > 0 || n < 20 || (seen_lives > n / 10 && seen_late > n));
}

/* What a link applies alone, and clears behind it, is done by parts, between which it hears the other hosts. */
static void large_parameters_are_applied_by_parts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        static float found[MOST_ROWS], large[MOST_ROWS * WIDE];
        begin_quorums(seed);
        struct shmt_spec spec = spec_for(0);
        spec.epochs = 1;
        spec.n_examples = spec.order.n_examples = 40;
        spec.rule.clip_norm = 0; /* which looks at everything */
        spec.table[0].rows = spec.l2_rows[0] = MOST_ROWS;
        spec.table[1] = spec.table[0];
        spec.table[1].rows = spec.l2_rows[1] = MOST_ROWS * WIDE;
        spec.table[1].name[0]++;
        spec.n_tables = 2;
        make_hosts(&spec, 2);
        const struct shmt_loop_spec network = {.n_hosts = 2, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
        run(&network);
        must(seen.in_parts >= 2 * seen.rounds, "a link does all of a large update at once");
        for (uint32_t i = 0; i < g.n; i++) {
            const struct shmt_store_ops *ops = shmt_backend_at(0)->store;
            must(ops->read(g.host[i].store, 0, 0, MOST_ROWS, found) == 0, "the parameters cannot be read");
            must(ops->read(g.host[i].store, 1, 0, MOST_ROWS * WIDE, large) == 0, "the parameters cannot be read");
            for (uint64_t row = 0; row < MOST_ROWS - SHARED; row++)
                must(found[row] == large[row * WIDE], "a part of an update is missing, or was made twice");
        }
        check_all(true);
    }
}

/* All but one worker make an update; the others go on while that one is at its item. */
static void nobody_waits_for_a_worker_that_is_in_no_round(void **state) {
    const struct shmt_loop_spec network = {.n_hosts = 2, .delay_ns = MS / 10, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin_quorums(seed);
        struct shmt_spec spec = spec_for(0);
        spec.n_examples = spec.order.n_examples = 200;
        spec.table[0].rows = spec.l2_rows[0] = spec.n_examples + SHARED;
        spec.item = 1;
        spec.epochs = 1;
        seen.step_ns = MS;
        seen.has_slow = true;
        spec.policy.quorum = SHMT_QUORUM_MOST; /* all but one */
        make_hosts(&spec, 2);
        const uint32_t all = g.host[0].spec.hosts.n_workers;
        run(&network);
        must(seen.at_slow >= 100 / all, "others wait for a worker that is in no round");
        check_all(true);
    }
}

/* What was begun by then is the same everywhere. */
static void a_stop_that_one_host_asks_for_ends_the_epoch_of_all(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        begin_quorums(seed);
        struct shmt_spec spec = spec_for((uint32_t)draw(6));
        run_to_a_stop(&spec, SHARED);
        check_all(false);
    }
}

/* The first items of the epoch were done before, by whomever: they count once in the place of an update, by which its rate goes. */
static void who_goes_on_within_an_epoch_counts_what_was_done_once(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct shmt_error e = {0};
        begin_quorums(seed);
        struct shmt_spec spec = spec_for((uint32_t)draw(6));
        spec.epochs = 1;
        spec.first_step = shmt_spec_steps(&spec) / 2;
        make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
        uint32_t done[MOST_ROWS] = {0};
        double loss[MOST_ROWS] = {0};
        for (uint64_t step = 0; step < spec.first_step; step++) {
            done[step] = (uint32_t)shmt_spec_examples_of_step(&spec, step);
            loss[step] = (double)done[step];
        }
        for (uint32_t i = 0; i < g.n; i++)
            must(shmt_backend_at(0)->store->resume(g.host[i].store, done, loss, &e) == 0, e.text);
        const struct shmt_loop_spec network = hostile_network();
        run(&network);
        must(seen.round[0].step >= spec.first_step && seen.round[0].step < shmt_spec_steps(&spec),
             "an update is not at its place");
        must(g.host[0].examples[0] == spec.n_examples, "an example is missing, or counted twice");
        must(seen.applied + seen.folded + seen.dropped == spec.n_examples - spec.first_step * spec.item,
             "what was done is done again");
        for (uint32_t i = 0; i < g.n; i++) must(updates_of(&g.host[i]) == seen.rounds, "a host counts other updates");
        destroy_hosts();
    }
}

static bool link_says(uint32_t host, const char *text) {
    const struct host *h = &g.host[host];
    return h->status[MOST_WORKERS] < 0 && strcmp(h->error[MOST_WORKERS].text, text) == 0;
}

static void a_host_that_is_lost_or_fails_ends_the_run_of_the_others(void **state) {
    const struct shmt_loop_spec network = {.n_hosts = 3, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin_quorums(seed);
        struct shmt_spec spec = spec_for(0);
        seen.step_ns = 10 * MS;
        spec.n_examples = spec.order.n_examples = 600;
        spec.table[0].rows = spec.l2_rows[0] = spec.n_examples + SHARED;
        spec.item = 1;
        spec.epochs = 3;
        make_hosts(&spec, 3);
        if (seed % 2) g.cut = (uint32_t)(seed / 2 % 2);
        if (seed % 2 == 0) g.fails = (uint32_t)(seed / 2 % 2);
        g.cut_ns = 100 * MS;
        const uint32_t gone = seed % 2 ? g.cut : g.fails;
        char why[40];
        snprintf(why, sizeof why, seed % 2 ? "host %u is lost" : "host %u has left the run", gone);
        run(&network);
        for (uint32_t i = 0; i < 3; i++) {
            if (i == gone) continue;
            must(link_says(i, why), g.host[i].error[MOST_WORKERS].text);
            for (uint32_t k = 0; k < g.host[i].spec.n_seats; k++)
                must(g.host[i].status[k] == SHMTRAIN_E_STOPPED, "a worker is not ended");
        }
        destroy_hosts();
    }
}

/* ---- what hosts cannot mean ---- */

static int of_another_round(struct shmt_far_look *now) { return (int)now->round++; }
static int too_many_examples(struct shmt_far_look *now) { return (int)(now->examples += 1000); }
static int late_who_has_not_come(struct shmt_far_look *now) { return (int)(now->late[0] |= 8); }
static int more_than_all(struct shmt_far_look *now) { return (int)(now->working += 100); }
static int who_does_not_work(struct shmt_far_look *now) { return (int)(now->in[0] |= 15); }

static void a_host_that_says_what_cannot_be_ends_the_run_and_is_named(void **state) {
    static int (*const LIES[])(struct shmt_far_look *) = {of_another_round, too_many_examples, late_who_has_not_come,
                                                          more_than_all, who_does_not_work};
    const struct shmt_loop_spec network = {.n_hosts = 2, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    for (size_t i = 0; i < sizeof LIES / sizeof *LIES; i++) {
        begin_quorums(i + 1);
        const struct shmt_spec spec = spec_for(0);
        make_hosts(&spec, 2);
        liar = 1;
        lie = LIES[i];
        run(&network);
        must(link_says(0, "host 1 says that workers have come to a round that there cannot be"),
             g.host[0].error[MOST_WORKERS].text);
        destroy_hosts();
    }
}

static const struct false_message {
    uint32_t liar;
    const char *what;
    struct lie lie[2];
} FALSE_MESSAGES[] = {
    {0,
     "host 0 decides on a round that there cannot be", /* it is of a worker of host 1 that never came */
     {{.kind = SHMT_PARCEL_DECIDED, .of = 1, .n = 6, .entry = {0, 0, 1, 0, 0, UINT64_C(1) << 63}}}},
    {1,
     "host 1 ends an epoch where the others do not",
     {{.kind = SHMT_PARCEL_ROUND, .of = SHMT_ROUND_RESTS, .n = SHMT_ROUND_NUMBERS}, {.kind = SHMT_PARCEL_END}}}};
static const struct false_message *told;

static void tell(struct shmt_lanes *lanes) { tell_lies(lanes, told->lie, 2); }

/* The checks of messages one by one: test_hosts_lies.c. */
static void what_fits_no_round_is_refused(void **state) {
    const struct shmt_loop_spec network = {.n_hosts = 2, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    for (size_t i = 0; i < sizeof FALSE_MESSAGES / sizeof *FALSE_MESSAGES; i++) {
        begin_quorums(i + 1);
        told = &FALSE_MESSAGES[i];
        g.liar = told->liar;
        g.lie = tell;
        const struct shmt_spec spec = spec_for(0);
        make_hosts(&spec, 2);
        g.host[0].spec.policy.quorum = g.host[1].spec.policy.quorum = 1; /* the liar's workers never come */
        run(&network);
        must(link_says(1 - g.liar, told->what), g.host[1 - g.liar].error[MOST_WORKERS].text);
        destroy_hosts();
        g.lie = NULL;
    }
}

static void what_a_quorum_cannot_be_over_hosts_is_refused(void **state) {
    struct shmt_error e = {0};
    (void)state;
    begin_quorums(1);
    struct shmt_spec spec = spec_for(0);
    spec.hosts = (struct shmt_hosts_plan){.n = 3, .n_workers = 7, .n_seats = 7};
    spec.policy.quorum = 6;
    assert_int_equal(shmt_spec_check(&spec, &e), 0);
    spec.policy.quorum = 8;
    assert_int_equal(shmt_spec_check(&spec, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "cannot wait for 8 of 7 workers"));
    spec.hosts.n_workers = spec.hosts.n_seats = 10000;
    spec.policy.quorum = SHMT_MAX_SEATS + 1;
    memset(&e, 0, sizeof e);
    assert_int_equal(shmt_spec_check(&spec, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "at most 4096 workers"));
    spec.policy.quorum = 6;
    spec.hosts.wire = SHMT_WIRE_BF16;
    memset(&e, 0, sizeof e);
    assert_int_equal(shmt_spec_check(&spec, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "the gradients of a quorum are sent whole"));
    spec.hosts.wire = SHMT_WIRE_F32;
    spec.policy.quorum = SHMT_QUORUM_ALL;
    spec.policy.staleness = 2;
    memset(&e, 0, sizeof e);
    assert_int_equal(shmt_spec_check(&spec, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "are possible so far"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_quorum_cannot_be_over_hosts_is_refused),
        cmocka_unit_test_setup(each_update_is_of_a_quorum_of_all_hosts_and_the_same_on_each, deadline),
        cmocka_unit_test_setup(large_parameters_are_applied_by_parts, deadline),
        cmocka_unit_test_setup(nobody_waits_for_a_worker_that_is_in_no_round, deadline),
        cmocka_unit_test_setup(a_stop_that_one_host_asks_for_ends_the_epoch_of_all, deadline),
        cmocka_unit_test_setup(who_goes_on_within_an_epoch_counts_what_was_done_once, deadline),
        cmocka_unit_test_setup(a_host_that_is_lost_or_fails_ends_the_run_of_the_others, deadline),
        cmocka_unit_test_setup(a_host_that_says_what_cannot_be_ends_the_run_and_is_named, deadline),
        cmocka_unit_test_setup(what_fits_no_round_is_refused, deadline)};
    spy_on_links();
    g.work = work;
    g.begins = true;
    g.epoch_end = note_once;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
