/* Workers slowed down on purpose. What option `slow` takes and refuses; what a plan makes of an item; that time is lost
 * exactly, on a clock that the test turns; and what comes of it in runs: counted in items, never in seconds. */
#include "api_help.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "configuration/slow.h"
#include "sync/host.h"

#define MS UINT64_C(1000000)

/* ---- what is taken ---- */

static struct shmt_slow_plan plan_of(const char *text) {
    struct shmt_slow_plan plan;
    struct shmt_error e = {0};
    if (shmt_slow_parse("--slow", text, &plan, &e) != 0) fail_msg("%s", e.text);
    return plan;
}

static void factors_and_times_are_taken(void **state) {
    (void)state;
    static const struct {
        const char *text;
        struct shmt_slow_entry entry;
    } TAKEN[] = {
        {"3:5x", {3, 1, 5, 0}},
        {"0:1x", {0, 1, 1, 0}},
        {"4095:1.5x", {4095, 1, 1.5, 0}},
        {"1:1000000x", {1, 1, 1e6, 0}},
        {"3:+2ms", {3, 1, 1, 2 * MS}},
        {"3:+2s", {3, 1, 1, 2000 * MS}},
        {"3:+2us", {3, 1, 1, 2000}},
        {"3:+0.5us", {3, 1, 1, 500}},
        {"3:+3600s", {3, 1, 1, 3600000 * MS}},
        {"random:0.1:10x", {SHMT_SLOW_CHANCE, 0.1, 10, 0}},
        {"random:1:+5ms", {SHMT_SLOW_CHANCE, 1, 1, 5 * MS}},
        {"random:0:2x", {SHMT_SLOW_CHANCE, 0, 2, 0}},
    };
    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++) {
        const struct shmt_slow_plan plan = plan_of(TAKEN[i].text);
        assert_int_equal(plan.n, 1);
        assert_int_equal(plan.entry[0].worker, TAKEN[i].entry.worker);
        assert_true(plan.entry[0].share == TAKEN[i].entry.share && plan.entry[0].factor == TAKEN[i].entry.factor);
        assert_int_equal(plan.entry[0].more_ns, TAKEN[i].entry.more_ns);
    }
}

/* Whatever is written in the form that is read comes back. */
static void all_that_is_written_is_read_back(void **state) {
    (void)state;
    uint32_t x = 1;
    for (int round = 0; round < 2000; round++) {
        char text[2048] = "";
        struct shmt_slow_entry want[SHMT_SLOW_MOST];
        const uint32_t n = 1 + (uint32_t)round % SHMT_SLOW_MOST;
        for (uint32_t i = 0; i < n; i++) {
            const size_t used = strlen(text);
            const bool by_chance = (x = x * 1664525u + 1013904223u) >> 31, is_factor = x >> 30 & 1;
            const uint32_t who = x >> 10 & 0xfff, how = 1 + (x >> 4 & 0xff);
            want[i] = (struct shmt_slow_entry){by_chance ? SHMT_SLOW_CHANCE : who, by_chance ? who / 4096.0 : 1,
                                               is_factor ? how : 1, is_factor ? 0 : how * MS};
            snprintf(text + used, sizeof text - used, by_chance ? "%srandom:%.12f:%s%u%s" : "%s%.0f:%s%u%s", i > 0 ? "," : "",
                     by_chance ? want[i].share : who, is_factor ? "" : "+", how, is_factor ? "x" : "ms");
        }
        const struct shmt_slow_plan plan = plan_of(text);
        assert_int_equal(plan.n, n);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(plan.entry[i].worker, want[i].worker);
            assert_true(plan.entry[i].share == want[i].share && plan.entry[i].factor == want[i].factor);
            assert_int_equal(plan.entry[i].more_ns, want[i].more_ns);
        }
    }
    assert_int_equal(plan_of("").n, 0);
}

static void what_is_no_plan_is_refused_in_one_line_with_its_entry(void **state) {
    (void)state;
#define WHO   "expected WORKER:HOW or random:SHARE:HOW, as in 3:5x, 3:+2ms or random:0.1:10x"
#define SHARE "expected random:SHARE:HOW with a share from 0 to 1, as in random:0.1:10x"
#define HOW   "expected a factor from 1x to 1000000x, or a time up to an hour for each work item, as in +2ms (us, ms or s)"
    static const char *const REFUSED[][2] = {
        {"3", "--slow 3: " WHO},
        {"x", "--slow x: " WHO},
        {",", "--slow \"\": " WHO},
        {"3:5x,", "--slow \"\": " WHO},
        {"3:5x,,4:2x", "--slow \"\": " WHO},
        {"1:2x,a:2x", "--slow a:2x: " WHO},
        {"4096:2x", "--slow 4096:2x: " WHO},
        {"1.5:2x", "--slow 1.5:2x: " WHO},
        {"-1:2x", "--slow -1:2x: " WHO},
        {" 1:2x", "--slow  1:2x: " WHO},
        {":2x", "--slow :2x: " WHO},
        {"random", "--slow random: " WHO},
        {"random:2x", "--slow random:2x: " SHARE},
        {"random:2:10x", "--slow random:2:10x: " SHARE},
        {"random:nan:2x", "--slow random:nan:2x: " SHARE},
        {"random:1.1:2x", "--slow random:1.1:2x: " SHARE},
        {"random:-0.1:2x", "--slow random:-0.1:2x: " SHARE},
        {"random:0.1,1:2x", "--slow random:0.1: " SHARE},
        {"3:", "--slow 3:: " HOW},
        {"3:x", "--slow 3:x: " HOW},
        {"3:5", "--slow 3:5: " HOW},
        {"3:0.9x", "--slow 3:0.9x: " HOW},
        {"3:0x", "--slow 3:0x: " HOW},
        {"3:-5x", "--slow 3:-5x: " HOW},
        {"3:nanx", "--slow 3:nanx: " HOW},
        {"3:infx", "--slow 3:infx: " HOW},
        {"3:1e2x", "--slow 3:1e2x: " HOW},
        {"3:5,5x", "--slow 3:5: " HOW},
        {"3:1000001x", "--slow 3:1000001x: " HOW},
        {"3:2ms", "--slow 3:2ms: " HOW},
        {"3:+2", "--slow 3:+2: " HOW},
        {"3:+ms", "--slow 3:+ms: " HOW},
        {"3:+2m", "--slow 3:+2m: " HOW},
        {"3:+2 ms", "--slow 3:+2 ms: " HOW},
        {"3:++2ms", "--slow 3:++2ms: " HOW},
        {"3:+2.5.5ms", "--slow 3:+2.5.5ms: " HOW},
        {"3:+3601s", "--slow 3:+3601s: " HOW},
        {"3:+5x", "--slow 3:+5x: " HOW},
        {"3:5x:6x", "--slow 3:5x:6x: " HOW},
    };
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        struct shmt_slow_plan plan = {.n = 7};
        struct shmt_error e = {0};
        if (shmt_slow_parse("--slow", REFUSED[i][0], &plan, &e) != SHMTRAIN_E_USAGE) fail_msg("takes %s", REFUSED[i][0]);
        assert_string_equal(e.text, REFUSED[i][1]);
        assert_int_equal(plan.n, 7); /* nothing was changed */
    }
}

/* No beginning of a good text, and no text with one character replaced, is read beyond its end or leads anywhere but to a
 * plan or a sentence. */
static void broken_texts_are_harmless(void **state) {
    static const char GOOD[] = "3:5x,1:+2.5ms,random:0.25:10x";
    static const char *const BAD = "0123456789:,x+.msu- r\x7f\xff";
    struct shmt_slow_plan plan;
    char text[sizeof GOOD];
    (void)state;
    for (size_t n = 0; n < sizeof GOOD; n++)
        for (const char *c = BAD; *c; c++) {
            struct shmt_error e = {0};
            memcpy(text, GOOD, sizeof GOOD);
            if (n < sizeof GOOD - 1) text[n] = *c;
            const int rc = shmt_slow_parse("x", text, &plan, &e);
            assert_true(rc == 0 ? plan.n >= 1 && plan.n <= 4 : rc == SHMTRAIN_E_USAGE && e.text[0] != '\0');
            text[n] = '\0';
            (void)shmt_slow_parse("x", text, &plan, &e);
        }
    char many[65 * 5 + 1] = "";
    for (size_t i = 0; i < 65; i++) memcpy(many + 5 * i, i < 64 ? "1:2x," : "1:2x", i < 64 ? 5 : 4);
    struct shmt_error e = {0};
    assert_int_equal(shmt_slow_parse("x", many, &plan, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "at most 64 entries"));
}

static void a_worker_that_is_not_there_is_refused(void **state) {
    (void)state;
    const struct shmt_slow_plan plan = plan_of("random:0.5:2x,7:2x,8:+1ms,9:5x");
    struct shmt_error e = {0};
    const char *text = "random:0.5:2x,7:2x,8:+1ms,9:5x";
    assert_int_equal(shmt_slow_check(&plan, text, 10, &e), 0);
    assert_int_equal(shmt_slow_check(&plan, text, 8, &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text, "--slow 8:+1ms: there are 8 workers, 0 to 7");
    shmt_error_clear(&e);
    assert_int_equal(shmt_slow_check(&plan, text, 1, &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text, "--slow 7:2x: there is only worker 0");
}

/* ---- what becomes of an item ---- */

static void factors_multiply_and_times_add_up(void **state) {
    (void)state;
    const struct shmt_slow_plan plan = plan_of("3:5x,3:2x,3:+2ms,3:+1ms,4:7x");
    const struct shmtrain_work work = {.first = 64, .n = 64};
    double factor;
    uint64_t more_ns;
    shmt_slow_of_item(&plan, 3, &work, &factor, &more_ns);
    assert_true(factor == 10);
    assert_int_equal(more_ns, 3 * MS);
    shmt_slow_of_item(&plan, 2, &work, &factor, &more_ns);
    assert_true(factor == 1 && more_ns == 0);
    assert_true(shmt_slow_concerns(&plan, 3) && shmt_slow_concerns(&plan, 4));
    assert_false(shmt_slow_concerns(&plan, 2));
}

static uint32_t hits(const struct shmt_slow_plan *plan, uint32_t worker, uint32_t epoch) {
    uint32_t n = 0;
    for (uint64_t item = 0; item < 10000; item++) {
        const struct shmtrain_work work = {.first = 64 * item, .n = 64, .epoch = epoch};
        double factor;
        uint64_t more_ns;
        shmt_slow_of_item(plan, worker, &work, &factor, &more_ns);
        assert_true(factor == 1 || factor == 10);
        n += factor == 10 ? 1 + (uint32_t)(item * item % 9973) : 0; /* how many, and which */
    }
    return n;
}

static void chance_is_a_function_of_seed_epoch_and_item(void **state) {
    (void)state;
    struct shmt_slow_plan plan = plan_of("random:0.1:10x");
    uint32_t n = 0;
    for (uint64_t item = 0; item < 10000; item++) {
        double factor;
        uint64_t more_ns;
        shmt_slow_of_item(&plan, 0, &(struct shmtrain_work){.first = item}, &factor, &more_ns);
        n += factor > 1;
    }
    assert_in_range(n, 850, 1150);                          /* 1,000, and five standard deviations of 30 */
    assert_int_equal(hits(&plan, 0, 0), hits(&plan, 5, 0)); /* whoever does it */
    assert_int_not_equal(hits(&plan, 0, 0), hits(&plan, 0, 1));
    const uint32_t with_seed_0 = hits(&plan, 0, 0);
    plan.seed = 1;
    assert_int_not_equal(hits(&plan, 0, 0), with_seed_0);
    assert_true(shmt_slow_concerns(&plan, 77));
}

/* ---- lost time, on a clock of the test's own ---- */

static uint64_t g_now_ns, g_slept_ns, g_late_ns, g_sleeps;
static _Atomic uint32_t g_abort, g_stop;
static uint64_t g_stop_at_ns; /* 0: never */

static uint64_t now_ns(void) { return g_now_ns; }

static void sleep_until(uint64_t at_ns) {
    const uint64_t wake_ns = at_ns + g_late_ns;
    assert_true(wake_ns > g_now_ns && wake_ns - g_now_ns <= 50 * MS + g_late_ns);
    g_slept_ns += wake_ns - g_now_ns;
    g_now_ns = wake_ns;
    g_sleeps++;
    if (g_stop_at_ns && g_now_ns >= g_stop_at_ns) store_relaxed(&g_stop, 1);
}

static const struct shmt_host_ops HOST = {.now_ns = now_ns, .sleep_until = sleep_until};

static int fake_time(void **state) {
    shmt_host_use(&HOST);
    g_now_ns = 1000 * MS;
    g_slept_ns = g_late_ns = g_sleeps = g_stop_at_ns = 0;
    store_relaxed(&g_abort, 0);
    store_relaxed(&g_stop, 0);
    return deadline(state);
}

static int real_time(void **state) {
    (void)state;
    shmt_host_use(&SHMT_HOST_MACHINE);
    return 0;
}

/* A worker's, as its seat's meter has it: growing since now, or at rest. */
static _Atomic uint64_t g_busy_ns;
static void turn_busy(bool grows) {
    const uint64_t word = load_relaxed(&g_busy_ns);
    store_relaxed(&g_busy_ns, grows ? word - g_now_ns : word + g_now_ns);
}

static struct shmt_slow slow_by(const struct shmt_slow_plan *plan) {
    store_relaxed(&g_busy_ns, 0 - g_now_ns);
    return (struct shmt_slow){
        .plan = plan, .worker = 3, .abort = &g_abort, .stop = &g_stop, .busy_ns = &g_busy_ns, .factor = 1};
}

/* n items of `item_ns` each by worker 3, and an update of `update_ns` behind each. */
static void work_and_update(const struct shmt_slow_plan *plan, uint64_t n, uint64_t item_ns, uint64_t update_ns) {
    struct shmt_slow slow = slow_by(plan);
    for (uint64_t i = 0; i < n; i++) {
        shmt_slow_begin(&slow, &(struct shmtrain_work){.first = i});
        g_now_ns += item_ns / 2;
        if (i % 2) shmt_slow_pay(&slow); /* before a push: however often, the sum is the same */
        g_now_ns += item_ns - item_ns / 2;
        shmt_slow_pay(&slow);
        turn_busy(false);
        g_now_ns += 5 * MS; /* waiting costs nothing */
        turn_busy(true);
        g_now_ns += update_ns;
    }
}

static void work(const struct shmt_slow_plan *plan, uint64_t n, uint64_t item_ns) { work_and_update(plan, n, item_ns, 0); }

static void assert_near(uint64_t is_ns, uint64_t expected_ns, uint64_t within_ns) {
    if (is_ns + within_ns < expected_ns || is_ns > expected_ns + within_ns)
        fail_msg("%llu ns were lost, not %llu", (unsigned long long)is_ns, (unsigned long long)expected_ns);
}

static void time_is_lost_exactly_however_short_items_are(void **state) {
    (void)state;
    const struct shmt_slow_plan five = plan_of("3:5x"), more = plan_of("3:+7us"), both = plan_of("3:2x,3:+2ms");
    for (uint64_t late_ns = 0; late_ns <= 60000; late_ns += 30000) {
        for (uint64_t item_ns = 100; item_ns <= 100 * MS; item_ns *= 10) {
            fake_time(state);
            g_late_ns = late_ns;
            work(&five, 1000, item_ns);
            assert_near(g_slept_ns, 1000 * 4 * item_ns, 60000 + late_ns);
        }
        fake_time(state);
        g_late_ns = late_ns;
        work(&more, 1000, 200);
        assert_near(g_slept_ns, 1000 * 7000, 60000 + late_ns);
        fake_time(state);
        g_late_ns = late_ns;
        work(&both, 1000, 3 * MS);
        assert_near(g_slept_ns, 1000 * 5 * MS, 60000 + late_ns);
    }
    fake_time(state);
    work(&five, 15, 1000);
    assert_int_equal(g_sleeps, 0); /* what no sleep can measure waits for more */
}

/* The last update of all has no item behind it that would pay for it. */
static void what_a_worker_does_between_items_is_slow_too(void **state) {
    (void)state;
    const struct shmt_slow_plan five = plan_of("3:5x"), other = plan_of("2:5x"), more = plan_of("3:+2ms");
    work_and_update(&five, 100, 1 * MS, 3 * MS);
    assert_near(g_slept_ns, 4 * (100 + 99 * 3) * MS, 60000);
    fake_time(state);
    work_and_update(&five, 100000, 100, 300);
    assert_near(g_slept_ns, 4 * 100000 * 400, 60000 + 1200);
    fake_time(state);
    work_and_update(&other, 100, 1 * MS, 3 * MS);
    assert_int_equal(g_sleeps, 0);
    work_and_update(&more, 100, 1 * MS, 3 * MS);
    assert_near(g_slept_ns, 200 * MS, 60000);
}

/* Chance: an update belongs to the item before it, and takes its factor. */
static void an_update_is_as_slow_as_its_item(void **state) {
    (void)state;
    const struct shmt_slow_plan plan = plan_of("random:0.5:3x");
    uint64_t expected_ns = 0;
    for (uint64_t i = 0; i < 200; i++) {
        double factor;
        uint64_t more_ns;
        shmt_slow_of_item(&plan, 3, &(struct shmtrain_work){.first = i}, &factor, &more_ns);
        if (factor > 1) expected_ns += 2 * (1 * MS + (i < 199 ? 3 * MS : 0));
    }
    work_and_update(&plan, 200, 1 * MS, 3 * MS);
    assert_near(g_slept_ns, expected_ns, 60000);
}

static void a_stop_or_an_abort_ends_a_sleep_within_a_slice(void **state) {
    (void)state;
    const struct shmt_slow_plan hour = plan_of("3:+3600s");
    g_stop_at_ns = g_now_ns + 120 * MS;
    work(&hour, 1, 0);
    assert_near(g_slept_ns, 150 * MS, 0);
    work(&hour, 100, 0); /* nothing is lost any more */
    assert_near(g_slept_ns, 150 * MS, 0);
    fake_time(state);
    store_relaxed(&g_abort, 1);
    work(&hour, 1, 0);
    assert_int_equal(g_sleeps, 0);
}

/* A process that was stopped in its sleep for a minute does not make up for it. */
static void a_long_interruption_is_no_credit(void **state) {
    (void)state;
    const struct shmt_slow_plan plan = plan_of("3:+1ms");
    g_late_ns = 60000 * MS;
    work(&plan, 1, 0);
    struct shmt_slow slow = slow_by(&plan);
    shmt_slow_begin(&slow, &(struct shmtrain_work){.first = 0});
    shmt_slow_pay(&slow);
    assert_true(slow.debt_ns >= -50.0 * (double)MS);
}

/* ---- runs ---- */

/* Memory that processes share, too. */
static uint32_t *shared_words(void) {
    uint32_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(words, MAP_FAILED);
    return words;
}

static struct shmtrain_store *make_slow(const char *spawn, const char *mode, const char *slow) {
    struct shmtrain_store *store = make(spawn, "2", "1", 200);
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "item", "1"));
    WELL(store, shmtrain_store_set(store, "slow", slow));
    return store;
}

static int count_items(shmtrain_session *s, void *arg) {
    uint32_t *items = arg;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        items[shmtrain_rank(s)]++;
        const struct timespec t = {.tv_nsec = 200000};
        nanosleep(&t, NULL); /* the item */
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_slow_worker_does_far_fewer_items(void **state) {
    (void)state;
    static const char *const SLOW[] = {"1:20x", "1:+20ms", "1:+20ms,0:1x", "random:0:5x,1:+20ms"};
    uint32_t *items = shared_words();
    for (size_t i = 0; i < sizeof SLOW / sizeof *SLOW; i++)
        for (int spawn = 0; spawn < 2; spawn++) {
            struct shmtrain_store *store = make_slow(SPAWNS[spawn], "async", SLOW[i]);
            items[0] = items[1] = 0;
            WELL(store, shmtrain_store_run(store, count_items, items));
            assert_int_equal(items[0] + items[1], 200);
            assert_true(items[1] >= 1 && 2 * items[1] < items[0]); /* about 10 of 200 */
            WELL(store, shmtrain_store_set(store, "slow", ""));    /* of the next run */
            assert_string_equal(shmtrain_store_report(store)->slow, SLOW[i]);
            shmtrain_store_destroy(store);
        }
    munmap(items, 4096);
}

/* Worker 0 stops the run, or fails, while worker 1 sleeps for an hour. */
struct end {
    struct shmtrain_store *store;
    bool fails;
};

static int end_while_the_other_sleeps(shmtrain_session *s, void *arg) {
    const struct end *end = arg;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
        if (shmtrain_rank(s) == 0 && end->fails) return SHMTRAIN_E_DATA;
        if (shmtrain_rank(s) == 0) shmtrain_store_stop(end->store);
    }
    return rc;
}

static void a_stop_or_a_failure_does_not_wait_for_it(void **state) {
    (void)state;
    for (int spawn = 0; spawn < 2; spawn++)
        for (int fails = 0; fails < 2; fails++) {
            struct shmtrain_store *store = make_slow(SPAWNS[spawn], "async", "1:+3600s");
            struct end end = {store, fails};
            const int rc = shmtrain_store_run(store, end_while_the_other_sleeps, &end);
            assert_int_equal(rc, fails ? SHMTRAIN_E_DATA : 0);
            shmtrain_store_destroy(store);
        }
}

static uint64_t trained(const char *slow) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    static const char *const OPTIONS[][2] = {{"workers", "2"}, {"mode", "sync"}, {"epochs", "2"}, {"batch", "64"}};
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        WELL(store, shmtrain_store_set(store, OPTIONS[i][0], OPTIONS[i][1]));
    WELL(store, shmtrain_store_set(store, "slow", slow));
    WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,valid=50,features=50,nonzeros=4"));
    const uint64_t hash = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return hash;
}

static void in_sync_it_changes_no_bit(void **state) {
    (void)state;
    const uint64_t hash = trained("");
    assert_int_equal(trained("1:5x"), hash);
    assert_int_equal(trained("0:+100us,random:0.05:+1ms"), hash);
}

static void a_run_refuses_a_worker_that_is_not_there(void **state) {
    (void)state;
    struct shmtrain_store *store = make_slow("threads", "async", "0:2x,2:2x");
    uint32_t items[2] = {0, 0};
    refused(store, shmtrain_store_run(store, count_items, items), SHMTRAIN_E_USAGE, "--slow 2:2x: there are 2 workers, 0 to 1");
    refused(store, shmtrain_store_set(store, "slow", "2:2"), SHMTRAIN_E_USAGE, "slow 2:2: expected a factor from 1x");
    WELL(store, shmtrain_store_set(store, "slow", ""));
    WELL(store, shmtrain_store_run(store, count_items, items));
    assert_int_equal(items[0] + items[1], 200);
    shmtrain_store_destroy(store);
}

int main(void) {
#define TEST(f)      cmocka_unit_test_setup(f, deadline)
#define FAKE_TEST(f) cmocka_unit_test_setup_teardown(f, fake_time, real_time)
    const struct CMUnitTest tests[] = {
        TEST(factors_and_times_are_taken),
        TEST(all_that_is_written_is_read_back),
        TEST(what_is_no_plan_is_refused_in_one_line_with_its_entry),
        TEST(broken_texts_are_harmless),
        TEST(a_worker_that_is_not_there_is_refused),
        TEST(factors_multiply_and_times_add_up),
        TEST(chance_is_a_function_of_seed_epoch_and_item),
        FAKE_TEST(time_is_lost_exactly_however_short_items_are),
        FAKE_TEST(what_a_worker_does_between_items_is_slow_too),
        FAKE_TEST(an_update_is_as_slow_as_its_item),
        FAKE_TEST(a_stop_or_an_abort_ends_a_sleep_within_a_slice),
        FAKE_TEST(a_long_interruption_is_no_credit),
        TEST(a_slow_worker_does_far_fewer_items),
        TEST(a_stop_or_a_failure_does_not_wait_for_it),
        TEST(in_sync_it_changes_no_bit),
        TEST(a_run_refuses_a_worker_that_is_not_there),
    };
    return cmocka_run_group_tests_name("slow", tests, NULL, NULL);
}
