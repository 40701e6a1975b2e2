/* Live modes over many hosts (src/link/rounds.c), on fibers and a network that loses, repeats and reorders frames: each example counts
 * once, on every host; all have the same bits at the end of each epoch; nobody is further ahead of another host's slowest worker than
 * the staleness allows.
 *
 *   TEST_SEEDS=N   that many seeds; 5,000 unless said otherwise, or 20 under a sanitizer
 *   TEST_SEED=K    this one alone */
#include "deadline.h"
#include "hostile.h"
#include "hosts_help.h"
#include "sanitized.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/random.h"
#include "link/feedback.h"
#include "workers/crew.h"

#define SHARED 8                 /* rows behind those of examples, which all push to */
#define STEP   (1 + 1.0f / 4096) /* of an example's row: no bfloat16, and exact sums */

static struct {
    uint64_t clock[MOST_HOSTS][MOST_WORKERS]; /* of this epoch; UINT64_MAX: it has no work (any more) */
    bool in_hand[MOST_HOSTS][MOST_WORKERS];   /* it is at an item */
    uint64_t dealt[MOST_HOSTS];               /* items of this epoch */
    uint64_t stops_behind;                    /* so many items of its own the host stops that asks for it */
    uint32_t trained[4096];                   /* how often each example was, by anybody */
    uint64_t step_ns;                         /* that an item takes, at most */
    uint64_t slow[MOST_HOSTS];                /* 0, or how many times as long as that it takes there */
    uint64_t had[MOST_EPOCHS][MOST_HOSTS];    /* items, by epoch */
} seen;

/* ---- a worker ---- */

/* Example i brings its own row a step up: with plain steps of rate 1, and a gradient of which an item takes the mean. */
static int train_piece(shmtrain_session *s, const struct shmtrain_work *w, uint64_t n_examples) {
    const float up = -STEP * (float)w->n;
    int rc = 0;
    for (uint64_t i = w->first; i < w->first + w->n && rc == 0; i++) {
        float at = 0, pull_back;
        const uint64_t shared = n_examples + i % SHARED;
        seen.trained[i]++;
        rc = shmtrain_push(s, 0, i, 1, &up);
        if (rc == 0) rc = shmtrain_pull(s, 0, shared, 1, &at);
        pull_back = 0.1f * (float)w->n * (at - 3);
        if (rc == 0) rc = shmtrain_push(s, 0, shared, 1, &pull_back);
    }
    shmtrain_report(s, (double)w->n);
    return rc;
}

/* With a bound, shares stay equal. */
static uint64_t items_of(const struct host *h, uint32_t host) {
    struct shmt_shares shares;
    struct shmt_share share;
    shmt_shares_equal(h->spec.hosts.n, &shares);
    shmt_share_of(&shares, host, &share);
    return shmt_share_items(&share, shmt_spec_pieces(&h->spec));
}

/* Who is at no item, and will get none, is not waited for. */
static bool has_work(const struct host *h, uint32_t k) {
    const uint32_t host = h->spec.hosts.self;
    return seen.clock[host][k] != UINT64_MAX && (seen.in_hand[host][k] || seen.dealt[host] < items_of(h, host));
}

/* What has been counted: by the clocks themselves, as all hosts are fibers of this thread. */
static void check_bound(const struct host *h, const shmtrain_session *s) {
    const uint64_t mine = seen.clock[h->spec.hosts.self][s->seat->rank], bound = h->spec.policy.staleness;
    if (h->spec.may_die || h->spec.policy.replicas != SHMT_REPLICAS_ONE) return; /* theirs is on stretches of several clocks */
    for (uint32_t host = 0; host < g.n; host++)
        for (uint32_t k = 0; k < g.host[host].spec.n_seats; k++)
            must(bound == SHMT_STALENESS_INF || !has_work(&g.host[host], k) || mine <= seen.clock[host][k] + bound,
                 "a worker is too far ahead of one on another host");
}

static int work(struct host *h, shmtrain_session *s) {
    uint64_t *clock = &seen.clock[h->spec.hosts.self][s->seat->rank];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (*clock == UINT64_MAX) *clock = 0;
        seen.in_hand[h->spec.hosts.self][s->seat->rank] = true;
        seen.dealt[h->spec.hosts.self]++;
        seen.had[w.epoch][h->spec.hosts.self]++;
        check_bound(h, s);
        const uint64_t slow = seen.slow[h->spec.hosts.self], ns = seen.step_ns > 0 ? draw(seen.step_ns) : 0;
        if (ns > 0) shmt_host()->sleep_until(shmt_now_ns() + (slow > 0 ? slow : 1) * ns);
        if (g.kills > 0) shmt_host()->sleep_until(shmt_now_ns() + draw(1000)); /* somebody dies in the middle of an item */
        rc = train_piece(s, &w, h->spec.n_examples);
        if (rc == 0 && h->spec.hosts.self == g.stops && seen.dealt[g.stops] > seen.stops_behind)
            set_bits_relaxed(shmt_backend_at(0)->store->stop_word(h->store), SHMT_STOP_ASKED);
        if (rc == 0 && h->spec.hosts.self == g.fails && w.step >= 5) rc = shmtrain_fail(s, SHMTRAIN_E_DATA, "no");
        if (rc == 0) ++*clock;
        seen.in_hand[h->spec.hosts.self][s->seat->rank] = false;
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

/* shmtrain_next goes over the ends of epochs by itself: there clocks begin anew. */
static void rest(struct host *h) {
    seen.dealt[h->spec.hosts.self] = 0;
    for (uint32_t k = 0; k < MOST_WORKERS; k++) seen.clock[h->spec.hosts.self][k] = UINT64_MAX;
}

/* ---- a run ---- */

static struct shmt_spec spec_for(void) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC, SHMT_WRITE_LOCKED};
    const uint64_t bounds[] = {SHMT_STALENESS_INF, SHMT_STALENESS_INF, 0, 1, 4};
    const uint64_t item = UINT64_C(1) << draw(6), examples = item * (10 + draw(60)); /* whole items: means are exact */
    const bool copies = draw(3) == 0;
    struct kase k = {.policy = {.write = WRITES[draw(3)], .staleness = bounds[draw(5)], .quorum = SHMT_QUORUM_ALL},
                     .n_seats = 1};
    if (copies) {
        k.policy.replicas = SHMT_REPLICAS_WORKER;
        k.policy.merge = SHMT_MERGE_SUM; /* alone: what is in one copy alone comes into the master as it is */
        k.policy.merge_every = 1 + (uint32_t)draw(3);
        if (k.policy.staleness == 0) k.policy.staleness = SHMT_STALENESS_INF;
    }
    struct shmt_spec spec = spec_of(&k, examples, examples + SHARED, 1);
    spec.epochs = 1 + (uint32_t)draw(MOST_EPOCHS);
    spec.item = (uint32_t)item;
    spec.rate.base = 1;
    spec.rate.kind = SHMT_RATE_CONSTANT;
    spec.rule = (struct shmt_rule){.kind = SHMT_RULE_SGD};
    spec.cpu = SHMT_CPU_PORTABLE;
    spec.curvatures = draw(2) == 0; /* which are 0 here: shares are 1 */
    spec.order.shuffle = false;     /* place i is example i */
    if (draw(2)) spec.hosts.wire = SHMT_WIRE_BF16;
    if (draw(3) == 0) spec.hosts.top_k = (float)(1 + draw(60)) / 100;
    if (spec.hosts.top_k > 0) spec.curvatures = true; /* else of what one host alone changes, others take a part */
    return spec;
}

static int note_and_rest(struct shmtrain_session *s, void *arg, uint32_t epoch) {
    const int rc = note_epoch(s, arg, epoch);
    if (s->seat->rank == 0) rest(arg);
    return rc;
}

static void begin_live(uint64_t seed) {
    begin_seed(seed);
    memset(&seen, 0, sizeof seen);
    memset(seen.clock, 0xff, sizeof seen.clock);
    seen.step_ns = draw(2) ? 0 : 1 + draw(3 * MS);
}

/* What every host has: each example once in each epoch, and the same bits. */
static void check(const struct host *h, const float *first) {
    float *found = parameters_of(h);
    compare(h, &g.host[0], first);
    for (uint32_t epoch = 0; epoch < h->n_epochs; epoch++) {
        must(h->examples[epoch] == h->spec.n_examples, "an epoch has not all examples, or more");
        must(h->loss[epoch] == (double)h->spec.n_examples, "an epoch has not all losses, or more");
    }
    for (uint64_t i = 0; i < h->spec.n_examples; i++)
        must(found[i] == STEP * (float)h->spec.epochs, "an example was lost, or counted twice");
    for (uint64_t i = 0; i < h->spec.n_examples; i++)
        must(seen.trained[i] == h->spec.epochs, "an example was trained on twice, or not at all");
    free(found);
}

static void run_seed(uint64_t seed) {
    begin_live(seed);
    const struct shmt_spec spec = spec_for();
    make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    const struct shmt_loop_spec network = hostile_network();
    run(&network);
    float *first = parameters_of(&g.host[0]);
    for (uint32_t i = 0; i < g.n; i++) check(&g.host[i], first);
    free(first);
    destroy_hosts();
}

static void each_example_counts_once_and_all_hosts_have_the_same_bits(void **state) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 20 : 5000), only = hostile_asked("TEST_SEED", 0);
    (void)state;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) run_seed(seed);
    printf("%llu runs, all as expected\n", (unsigned long long)g.n_runs);
}

/* Whose item a dead worker had in hand is done again by its next life, also if another host has passed it on. */
static void whoever_dies_each_example_counts_once_and_all_hosts_have_the_same_bits(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (SANITIZED ? 20 : 400); seed++) {
        begin_live(seed);
        struct shmt_spec spec = spec_for();
        spec.may_die = true;
        seen.step_ns = 1 + draw(2 * MS);
        make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
        seen.slow[draw(g.n)] = draw(3) ? 0 : 20;
        g.kills = 1 + (uint32_t)draw(10);
        const struct shmt_loop_spec network = hostile_network();
        run(&network);
        float *first = parameters_of(&g.host[0]);
        for (uint32_t i = 0; i < g.n; i++) compare(&g.host[i], &g.host[0], first);
        for (uint32_t epoch = 0; epoch < spec.epochs; epoch++)
            must(g.host[0].examples[epoch] == spec.n_examples && g.host[0].loss[epoch] == (double)spec.n_examples,
                 "an epoch has not all examples, or more");
        for (uint64_t i = 0; i < spec.n_examples; i++) must(seen.trained[i] >= spec.epochs, "an example was not trained on");
        free(first);
        destroy_hosts();
    }
}

/* What was trained by then is the same everywhere. */
static void a_stop_that_one_host_asks_for_ends_the_epoch_of_all(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        begin_live(seed);
        struct shmt_spec spec = spec_for();
        spec.epochs = MOST_EPOCHS;
        spec.item = 1;
        make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
        g.stops = (uint32_t)draw(g.n);
        if (seed % 2) { /* in the middle, when items have been passed on to it */
            seen.step_ns = 1 + draw(2 * MS);
            seen.slow[(g.stops + 1) % g.n] = 20;
            seen.stops_behind = spec.n_examples / g.n / 2 + draw(spec.n_examples / g.n);
        }
        const struct shmt_loop_spec network = hostile_network();
        run(&network);
        float *first = parameters_of(&g.host[0]);
        if (seed % 2 == 0) must(g.host[0].n_epochs == 1, "the run goes on behind the stop");
        for (uint32_t i = 0; i < g.n; i++) compare(&g.host[i], &g.host[0], first);
        double sum = 0, n = 0;
        for (uint64_t i = 0; i < spec.n_examples; i++) sum += (double)first[i];
        for (uint32_t epoch = 0; epoch < g.host[0].n_epochs; epoch++) {
            n += (double)g.host[0].examples[epoch];
            for (uint32_t i = 0; i < g.n; i++) must(g.host[i].lost[epoch] == 0, "what nobody has begun is said to be lost");
        }
        must(sum == (double)STEP * n, "an example was lost, or counted twice");
        free(first);
        destroy_hosts();
    }
}

/* A host's blocks go in other rounds than those of the others, who may yet change them. */
static void of_blocks_that_are_chosen_each_change_counts_one_part_in_the_hosts(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        begin_live(seed);
        struct shmt_spec spec = spec_for();
        spec.curvatures = false;
        spec.hosts.top_k = 0.3f;
        make_hosts(&spec, seed % 2 ? 2 : 4); /* so that parts are exact */
        const struct shmt_loop_spec network = hostile_network();
        run(&network);
        float *first = parameters_of(&g.host[0]);
        for (uint32_t i = 0; i < g.n; i++) compare(&g.host[i], &g.host[0], first);
        for (uint64_t i = 0; i < spec.n_examples; i++)
            must(first[i] == STEP * (float)spec.epochs / (float)g.n, "a change counts more or less than its part");
        free(first);
        destroy_hosts();
    }
}

/* Two hosts in virtual time, whose network is quick: of 4000 examples, as many rounds as there are. */
static uint64_t bytes_with(enum shmt_wire wire, float top_k) {
    begin_live(1);
    seen.step_ns = 3 * MS;
    struct shmt_spec spec = spec_for();
    spec.policy = (struct shmt_policy){.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF, .quorum = SHMT_QUORUM_ALL};
    spec.n_examples = spec.order.n_examples = 4000;
    spec.table[0].rows = spec.l2_rows[0] = spec.n_examples + SHARED;
    spec.item = 8;
    spec.epochs = 1;
    spec.curvatures = true;
    spec.hosts.wire = wire;
    spec.hosts.top_k = top_k;
    make_hosts(&spec, 2);
    const struct shmt_loop_spec network = {.n_hosts = 2, .delay_ns = MS / 10, .port_bytes = UINT64_C(8) << 20};
    run(&network);
    float *first = parameters_of(&g.host[0]);
    for (uint32_t i = 0; i < g.n; i++) check(&g.host[i], first);
    free(first);
    destroy_hosts();
    return g.host[0].sent_bytes;
}

static void halves_and_chosen_blocks_are_fewer_bytes(void **state) {
    const uint64_t all = bytes_with(SHMT_WIRE_F32, 1), halves = bytes_with(SHMT_WIRE_BF16, 1),
                   chosen = bytes_with(SHMT_WIRE_F32, 0.2f), both = bytes_with(SHMT_WIRE_BF16, 0.2f);
    (void)state;
    printf("%llu bytes; bf16 %llu, top-k %llu, both %llu\n", (unsigned long long)all, (unsigned long long)halves,
           (unsigned long long)chosen, (unsigned long long)both);
    assert_true(halves < all * 3 / 4);
    assert_true(chosen < all * 3 / 4);
    assert_true(both < halves && both < chosen);
}

static void a_host_that_is_lost_or_fails_ends_the_run_of_the_others(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin_live(seed);
        seen.step_ns = 3 * MS;
        struct shmt_spec spec = spec_for();
        spec.n_examples = spec.order.n_examples = 1000; /* of 1.5 ms, for at most 9 workers */
        spec.table[0].rows = spec.l2_rows[0] = spec.n_examples + SHARED;
        spec.item = 1;
        spec.epochs = 3;
        check_that_a_host_which_goes_ends_the_run(&spec, seed % 2 == 1);
    }
}

/* So that nobody waits long at the end of an epoch; each example still counts once. */
static void a_slow_host_gets_fewer_items(void **state) {
    const struct shmt_loop_spec network = {.n_hosts = 2, .delay_ns = MS / 10, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        begin_live(seed);
        seen.step_ns = 2 * MS;
        seen.slow[1] = 9; /* slower by far, whatever the numbers of workers */
        struct shmt_spec spec = spec_for();
        spec.policy =
            (struct shmt_policy){.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF, .quorum = SHMT_QUORUM_ALL};
        spec.n_examples = spec.order.n_examples = 512;
        spec.table[0].rows = spec.l2_rows[0] = spec.n_examples + SHARED;
        spec.item = 1;
        spec.epochs = MOST_EPOCHS;
        make_hosts(&spec, 2);
        run(&network);
        float *first = parameters_of(&g.host[0]);
        for (uint32_t i = 0; i < g.n; i++) check(&g.host[i], first);
        free(first);
        const double pace0 = (double)g.host[0].spec.n_seats, pace1 = (double)g.host[1].spec.n_seats / 9;
        const double fair = 512 * pace1 / (pace0 + pace1), had = (double)seen.had[MOST_EPOCHS - 1][1];
        must(had < (256 + fair) / 2, "a slow host has as many items as before");
        must((double)seen.had[0][1] < (256 + fair) / 2, "a slow host does not pass on what it cannot do in time");
        destroy_hosts();
    }
}

/* ---- what is sent of what has changed ---- */

#define BLOCKS 8

static struct {
    struct shmt_exchange x;
    struct shmt_spec spec;
    float base[BLOCKS * SHMT_FAR_BLOCK], seen[BLOCKS * SHMT_FAR_BLOCK], change[BLOCKS * SHMT_FAR_BLOCK];
    unsigned char changed[BLOCKS];
} alone;

static void make_feedback(enum shmt_wire wire, float top_k) {
    memset(&alone, 0, sizeof alone);
    alone.spec.hosts = (struct shmt_hosts_plan){.n = 2, .wire = wire, .top_k = top_k};
    alone.x = (struct shmt_exchange){.at.spec = &alone.spec,
                                     .n_floats = BLOCKS * SHMT_FAR_BLOCK,
                                     .n_blocks = BLOCKS,
                                     .base = alone.base,
                                     .seen = alone.seen,
                                     .change = alone.change,
                                     .changed = alone.changed};
    assert_int_equal(shmt_feedback_plan(&alone.x), 0);
    shmt_feedback_start(&alone.x);
}

/* The first float of each block reads so; as a round looks at it. */
static void look(const float *now) {
    for (uint64_t block = 0; block < BLOCKS; block++) {
        const uint64_t at = block * SHMT_FAR_BLOCK;
        float read[SHMT_FAR_BLOCK] = {now[block]}, was[SHMT_FAR_BLOCK];
        const bool differs = memcmp(read, alone.base + at, sizeof read) != 0;
        alone.changed[block] = shmt_feedback_is_due(&alone.x, block, differs, read);
        memcpy(was, alone.seen + at, sizeof was);
        memcpy(alone.seen + at, read, sizeof read);
        if (!alone.changed[block]) continue;
        for (uint32_t i = 0; i < SHMT_FAR_BLOCK; i++) alone.change[at + i] = read[i] - alone.base[at + i];
        shmt_feedback_round(&alone.x, block, SHMT_FAR_BLOCK, NULL, was);
    }
}

static void are_changed(const char *expected) {
    for (uint64_t block = 0; block < BLOCKS; block++) assert_int_equal(alone.changed[block], expected[block] - '0');
}

static void the_largest_changes_are_sent_first(void **state) {
    (void)state;
    make_feedback(SHMT_WIRE_F32, 0.25f);
    alone.x.examples = 100;
    alone.x.since = 10;
    shmt_feedback_begin(&alone.x, false);
    look((float[BLOCKS]){1, -3, 0, 2.5f, 2, 3, 0.1f, 1});
    are_changed("11011111");
    shmt_feedback_choose(&alone.x);
    are_changed("01000100"); /* a quarter of seven: two, whatever their signs */
    assert_int_equal(shmt_feedback_examples(&alone.x, 3), 10);
    shmt_feedback_start(&alone.x);
    look((float[BLOCKS]){1, 1, 1, 1, 1, NAN, 1, 1e30f});
    shmt_feedback_choose(&alone.x);
    are_changed("00000101"); /* what is no number is not left behind */
    shmt_feedback_start(&alone.x);
    look((float[BLOCKS]){0, 1, 1, 1, 1, 1, 0, 0});
    shmt_feedback_choose(&alone.x);
    are_changed("01100000"); /* of equals the first */
    shmt_feedback_start(&alone.x);
    look((float[BLOCKS]){0, 0, 0, 0, 1e-30f, 0, 0, 0});
    shmt_feedback_choose(&alone.x);
    are_changed("00001000"); /* one at least */
    shmt_feedback_free(&alone.x);
}

/* Its share is that of a change of all the examples since it was sent last. */
static void a_block_that_waits_is_sent_later_and_its_examples_are_counted_from_when_it_began(void **state) {
    static const float NOW[BLOCKS] = {4, 3, 2};
    (void)state;
    make_feedback(SHMT_WIRE_F32, 0.3f);
    for (uint64_t round = 1; round <= 3; round++) {
        alone.x.examples = 1000 + 10 * round;
        alone.x.since = 10;
        shmt_feedback_begin(&alone.x, false);
        look(NOW); /* nobody changes them any more */
        are_changed(round == 1 ? "11100000" : round == 2 ? "01100000" : "00100000");
        for (uint64_t block = round - 1; block < 3; block++)
            assert_int_equal(shmt_feedback_examples(&alone.x, block), 10 * round);
        shmt_feedback_choose(&alone.x);
        are_changed(round == 1 ? "10000000" : round == 2 ? "01000000" : "00100000");
        for (uint64_t block = 0; block < BLOCKS; block++) {
            const float agreed[SHMT_FAR_BLOCK] = {block < round ? NOW[block] : 0};
            float change[SHMT_FAR_BLOCK];
            shmt_feedback_bring(&alone.x, block, SHMT_FAR_BLOCK, agreed, change);
            assert_true(change[0] == 0); /* nobody else has changed anything */
            memcpy(alone.base + block * SHMT_FAR_BLOCK, agreed, sizeof agreed);
        }
    }
    shmt_feedback_free(&alone.x);
}

static void what_rounding_leaves_waits_for_the_next_change_or_for_rest(void **state) {
    static const float ODD[BLOCKS] = {1 + 0x1p-12f}, MORE[BLOCKS] = {2 + 0x1p-12f};
    const float agreed[SHMT_FAR_BLOCK] = {1}, then[SHMT_FAR_BLOCK] = {2};
    float change[SHMT_FAR_BLOCK];
    (void)state;
    make_feedback(SHMT_WIRE_BF16, 1);
    shmt_feedback_begin(&alone.x, false);
    assert_true(shmt_feedback_sends_halves(&alone.x));
    look(ODD);
    are_changed("10000000");
    assert_true(alone.change[0] == 1);
    shmt_feedback_bring(&alone.x, 0, SHMT_FAR_BLOCK, agreed, change);
    memcpy(alone.base, agreed, sizeof agreed);
    assert_true(change[0] == 0);
    look(ODD); /* as it was left */
    are_changed("00000000");
    look(MORE);
    are_changed("10000000");
    assert_true(alone.change[0] == 1); /* and what had been left, which is rounded again */
    shmt_feedback_bring(&alone.x, 0, SHMT_FAR_BLOCK, then, change);
    memcpy(alone.base, then, sizeof then);
    look(MORE);
    are_changed("00000000");
    shmt_feedback_begin(&alone.x, true);
    assert_false(shmt_feedback_sends_halves(&alone.x));
    look(MORE);
    are_changed("10000000");
    assert_true(alone.change[0] == 0x1p-12f);
    shmt_feedback_free(&alone.x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_changes_are_sent_first),
        cmocka_unit_test(a_block_that_waits_is_sent_later_and_its_examples_are_counted_from_when_it_began),
        cmocka_unit_test(what_rounding_leaves_waits_for_the_next_change_or_for_rest),
        cmocka_unit_test_setup(a_slow_host_gets_fewer_items, deadline),
        cmocka_unit_test_setup(each_example_counts_once_and_all_hosts_have_the_same_bits, deadline),
        cmocka_unit_test_setup(whoever_dies_each_example_counts_once_and_all_hosts_have_the_same_bits, deadline),
        cmocka_unit_test_setup(a_stop_that_one_host_asks_for_ends_the_epoch_of_all, deadline),
        cmocka_unit_test_setup(of_blocks_that_are_chosen_each_change_counts_one_part_in_the_hosts, deadline),
        cmocka_unit_test_setup(halves_and_chosen_blocks_are_fewer_bytes, deadline),
        cmocka_unit_test_setup(a_host_that_is_lost_or_fails_ends_the_run_of_the_others, deadline)};
    g.work = work;
    g.begins = true;
    g.epoch_end = note_and_rest;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
