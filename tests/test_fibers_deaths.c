/* Fibers that die or pause: wherever they stand, nothing of them runs on, others do not notice, what they had allocated is freed, and a
 * team deals with it as with the death of a process. With AddressSanitizer, that nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/own.h"
#include "fibers/scheduler.h"
#include "runtime/team.h"
#include "sync/host.h"

#define MOST  64
#define BEGIN UINT64_C(1000000)

static struct {
    uint32_t lives[MOST], most_lives, deaths, closed, noted;
    uint64_t at[MOST]; /* when each has come to its end */
    _Atomic uint32_t word;
} g;

static bool died(void *arg, uint32_t i) {
    (void)arg;
    g.deaths++;
    return g.lives[i] < g.most_lives;
}

static struct shmt_fibers *make(uint32_t n, const char *sim, uint32_t most_lives, void (*body)(void *arg, uint32_t i)) {
    struct shmt_fibers_spec spec = {.n = n, .seed = 3, .begin_ns = BEGIN, .stack_bytes = 64 << 10, .body = body, .died = died};
    struct shmt_fibers *f = NULL;
    struct shmt_error e = {0};
    memset(&g, 0, sizeof g);
    g.most_lives = most_lives;
    if (shmt_sim_parse("--sim", sim, &spec.sim, &e) < 0 || shmt_fibers_make(&spec, &f, &e) < 0) fail_msg("%s", e.text);
    return f;
}

static void run_to_end(struct shmt_fibers *f) {
    while (!shmt_fibers_run(f, 1000)) continue;
    shmt_fibers_free(f);
}

/* ---- memory ---- */

static void count_close(void *memory) { g.closed += *(unsigned char *)memory == 7; }

static void what_a_life_owns_is_freed_with_it(void **state) {
    struct shmt_own own = {0};
    (void)state;
    memset(&g, 0, sizeof g);
    shmt_own_use(&own);
    unsigned char *first = shmt_own_calloc(3, 1000), *second = shmt_own_closed_by(5, count_close),
                  *third = shmt_own_malloc(0, 1);
    assert_int_equal((uintptr_t)first % 64 | (uintptr_t)second % 64, 0);
    for (int i = 0; i < 3000; i++) assert_int_equal(first[i], 0);
    second[0] = 7;
    shmt_own_free(third);
    shmt_own_free(NULL);
    shmt_own_use(NULL);
    unsigned char *nobodys = shmt_own_malloc(10, 10);
    shmt_own_drop(&own);
    assert_int_equal(g.closed, 1);
    assert_null(own.newest);
    nobodys[99] = 1;
    shmt_own_free(nobodys);
    assert_null(shmt_own_malloc(SIZE_MAX, 2));
    assert_null(shmt_own_calloc(1, SIZE_MAX - 8));
}

/* ---- deaths ---- */

/* Deeper and deeper, with memory in hand, asking all the time: deaths find it on frames of every kind. */
static int ask_deeply(uint32_t i, int depth) {
    volatile char frame[300];
    unsigned char *memory = shmt_own_malloc(100, 3), *closed = shmt_own_closed_by(9, count_close);
    frame[depth % 300] = (char)depth;
    memset(memory, depth, 300);
    closed[0] = 7;
    if (depth % 3 == 0) shmt_host()->wait(&g.word, 0, 700);
    if (depth % 3 == 1) shmt_sleep_ns(900);
    if (depth % 3 == 2) shmt_spend(SHMT_SPENT_PUSHING, 1);
    if (i == 1 && depth == 5 && g.lives[i] == 1) shmt_fiber_die();
    const int sum = depth < 20 ? ask_deeply(i, depth + 1) : frame[depth % 300];
    shmt_own_free(closed);
    shmt_own_free(memory);
    return sum + frame[depth % 300];
}

static void live_deeply(void *arg, uint32_t i) {
    (void)arg;
    g.lives[i]++;
    const int sum = ask_deeply(i, 0);
    g.at[i] = shmt_now_ns();
    g.noted += sum > 0;
}

static void killed_many_times_they_leave_nothing_behind(void **state) {
    (void)state;
    struct shmt_fibers *f = make(8, "", 200, live_deeply);
    shmt_fibers_kill(f, 7); /* before it has begun */
    assert_int_equal(g.deaths, 1);
    for (uint32_t k = 0; k < 1000; k++) {
        (void)shmt_fibers_run(f, 1 + k % 13);
        shmt_fibers_kill(f, k % 5);
    }
    run_to_end(f);
    assert_int_equal(g.lives[5], 1); /* nobody has touched these */
    assert_int_equal(g.lives[6], 1);
    assert_int_equal(g.lives[7], 1);
    assert_true(g.deaths > 500 && g.closed > 1000);
    for (uint32_t i = 1; i < 5; i++) assert_true(g.lives[i] > 50);
    assert_true(g.noted >= 3);
}

static void who_is_not_begun_again_is_gone(void **state) {
    (void)state;
    run_to_end(make(3, "death=2@4us,death=0@4us", 1, live_deeply));
    assert_int_equal(g.deaths, 3); /* 1 by itself */
    assert_int_equal(g.noted, 0);
}

static void a_next_life_begins_when_the_last_one_dies(void **state) {
    (void)state;
    run_to_end(make(4, "death=2@4us,death=2@9us,death=3@100s", 9, live_deeply));
    assert_int_equal(g.lives[2], 3);
    assert_int_equal(g.lives[1], 2);
    assert_int_equal(g.lives[0], 1);
    assert_int_equal(g.lives[3], 1); /* it had ended */
    assert_in_range(g.at[2] - g.at[0], 8000, 12000);
}

/* Three wait, the middle one dies: the others are woken as if it had never waited. */
static void wait_for_the_word(void *arg, uint32_t i) {
    (void)arg;
    g.lives[i]++;
    if (i == 3) shmt_sleep_ns(5000);
    if (i == 3) store_relaxed(&g.word, 1);
    if (i == 3) shmt_host()->wake(&g.word);
    while (load_relaxed(&g.word) == 0) shmt_host()->wait(&g.word, 0, UINT64_C(1000000000));
    g.at[i] = shmt_now_ns();
}

static void the_dead_wait_in_no_queue(void **state) {
    (void)state;
    for (uint32_t who = 0; who < 3; who++) {
        char sim[32];
        snprintf(sim, sizeof sim, "death=%u@3us", who);
        run_to_end(make(4, sim, 1, wait_for_the_word));
        for (uint32_t i = 0; i < 4; i++) assert_true(i == who ? g.at[i] == 0 : g.at[i] < BEGIN + 7000);
    }
}

/* ---- pauses ---- */

static void compute_and_sleep(void *arg, uint32_t i) {
    (void)arg;
    if (i < 2) shmt_spend(SHMT_SPENT_PULLING, 1);
    if (i >= 2) shmt_host()->sleep_until(BEGIN + 100000);
    g.at[i] = shmt_now_ns();
}

/* What it computes takes longer by the pause; a sleep is over then, or ends later. */
static void a_pause_holds_up_whoever_it_meets(void **state) {
    static const uint64_t WANT[] = {100000, 130000, 100000, 120000};
    (void)state;
    run_to_end(
        make(4, "pull=100us,pause=1@50us:30us,pause=2@50us:30us,pause=3@50us:70us,pause=3@60us:10us", 1, compute_and_sleep));
    for (uint32_t i = 0; i < 4; i++) assert_in_range(g.at[i] - BEGIN, WANT[i], WANT[i] + 1000);
}

static void who_pauses_is_woken_and_goes_on_later(void **state) {
    (void)state;
    run_to_end(make(4, "pause=1@3us:20us", 1, wait_for_the_word));
    assert_true(g.at[0] < BEGIN + 7000);
    assert_in_range(g.at[1] - BEGIN, 23000, 24000);
    run_to_end(make(4, "pause=1@3us:20us,death=1@4us", 2, wait_for_the_word));
    assert_int_equal(g.lives[1], 2); /* whoever is stopped can be killed, and its next life is not stopped */
    assert_true(g.at[1] < BEGIN + 7000);
}

/* ---- teams ---- */

static struct {
    enum shmt_team_outcome outcome;
    uint32_t asked, begun;
    _Atomic uint32_t abort;
} t;

static enum shmt_team_outcome on_death(void *arg, uint32_t rank, uint32_t life) {
    (void)arg;
    assert_int_equal(rank, 1);
    assert_int_equal(life, t.asked++);
    return t.outcome;
}

static int look_for_long(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    (void)arg, (void)e;
    if (rank == 1) t.begun++;
    if (rank == 1) assert_int_equal(shmt_team_life(team, rank), t.asked);
    for (int i = 0; i < 1000; i++) {
        if (load_relaxed(&t.abort) != 0) return SHMTRAIN_E_STOPPED;
        shmt_sleep_ns(1000);
    }
    return 0;
}

static int run_team(enum shmt_team_outcome outcome, const char *sim, uint32_t most_respawns, struct shmt_error *e) {
    struct shmt_virtual virtual = {.seed = 1, .stack_bytes = 64 << 10};
    if (shmt_sim_parse("--sim", sim, &virtual.sim, e) < 0) return e->status;
    memset(&t, 0, sizeof t);
    t.outcome = outcome;
    const struct shmt_team_spec spec = {.kind = &SHMT_TEAM_FIBERS,
                                        .n = 3,
                                        .body = look_for_long,
                                        .abort = &t.abort,
                                        .on_death = on_death,
                                        .most_respawns = most_respawns,
                                        .virtual = &virtual,
                                        .what = "testing"};
    struct shmt_team *team;
    int rc = shmt_team_start(&spec, &team, e);
    if (rc < 0) return rc;
    while (!shmt_team_step(team)) continue;
    struct shmt_team_death death;
    char who[32];
    if (outcome != SHMT_TEAM_FAILS && t.asked <= most_respawns) {
        assert_true(shmt_team_death_at(team, 0, &death, NULL));
        assert_int_equal(death.outcome, outcome);
        shmt_team_tell_who(&death, who, sizeof who);
        assert_string_equal(who, "worker 1");
    }
    assert_int_equal(shmt_team_goes_on_without(team, 1), outcome == SHMT_TEAM_CONTINUES);
    return shmt_team_finish(team, e);
}

static void a_team_does_what_on_death_says(void **state) {
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(run_team(SHMT_TEAM_RESPAWNS, "death=1@10us,death=1@20us", 2, &e), 0);
    assert_int_equal(t.begun, 3);
    assert_int_equal(run_team(SHMT_TEAM_CONTINUES, "death=1@10us", 2, &e), 0);
    assert_int_equal(t.begun, 1);
    assert_int_equal(run_team(SHMT_TEAM_FAILS, "death=1@10us", 2, &e), SHMTRAIN_E_DIED);
    assert_string_equal(e.text, "worker 1 was killed while testing");
    assert_int_equal(t.abort, 2);
    memset(&e, 0, sizeof e);
    assert_int_equal(run_team(SHMT_TEAM_RESPAWNS, "death=1@10us,death=1@20us", 1, &e), SHMTRAIN_E_DIED);
    assert_string_equal(e.text, "worker 1 was killed while testing; it had been restarted 1 time before");
}

static void a_worker_is_killed_by_its_team(void **state) {
    struct shmt_team *team;
    struct shmt_error e = {0};
    (void)state;
    memset(&t, 0, sizeof t);
    t.outcome = SHMT_TEAM_RESPAWNS;
    const struct shmt_team_spec spec = {.kind = &SHMT_TEAM_FIBERS,
                                        .n = 3,
                                        .body = look_for_long,
                                        .abort = &t.abort,
                                        .on_death = on_death,
                                        .most_respawns = 5,
                                        .what = "testing"};
    assert_int_equal(shmt_team_start(&spec, &team, &e), 0);
    assert_int_equal(shmt_team_kill_worker(team, 1, 0), 0);
    assert_int_equal(shmt_team_kill_worker(team, 7, 0), 0);  /* there is none */
    assert_int_equal(shmt_team_kill_worker(team, 1, 99), 0); /* nor such a process */
    assert_int_equal(t.asked, 1);
    assert_int_equal(shmt_team_finish(team, &e), 0);
    assert_int_equal(t.begun, 1); /* the life before had not begun */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_life_owns_is_freed_with_it),
        cmocka_unit_test(killed_many_times_they_leave_nothing_behind),
        cmocka_unit_test(who_is_not_begun_again_is_gone),
        cmocka_unit_test(a_next_life_begins_when_the_last_one_dies),
        cmocka_unit_test(the_dead_wait_in_no_queue),
        cmocka_unit_test(a_pause_holds_up_whoever_it_meets),
        cmocka_unit_test(who_pauses_is_woken_and_goes_on_later),
        cmocka_unit_test(a_team_does_what_on_death_says),
        cmocka_unit_test(a_worker_is_killed_by_its_team),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
