/* Tests of runtime: workers whose processes die, and that are started again or left out. */
#include "team_help.h"

#define MOST 3

/* What `on_death` sees, and what it answers; in a mapping of its own, because bodies do not need it. */
static struct deaths {
    _Atomic uint32_t n_deaths, life[N_MAX], files[N_MAX];
    _Atomic int32_t reported_by;
    enum shmt_team_outcome answer;
} * deaths;

static int map_deaths(void **state) {
    deaths = mmap(NULL, sizeof *deaths, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (deaths == MAP_FAILED) return -1;
    deaths->answer = SHMT_TEAM_RESPAWNS;
    return set_up(state);
}

static int unmap_deaths(void **state) {
    munmap(deaths, sizeof *deaths);
    return tear_down(state);
}

static enum shmt_team_outcome on_death(void *arg, uint32_t rank, uint32_t life) {
    (void)arg;
    atomic_fetch_add(&deaths->n_deaths, 1);
    store_relaxed(&deaths->life[rank], life + 1);
    store_relaxed(&deaths->reported_by, getpid());
    return deaths->answer;
}

static void say_where(void *arg, uint32_t rank, char *out, size_t room) {
    (void)arg;
    snprintf(out, room, "at item %u", 10 * rank);
}

/* Worker 1 dies in its first *number lives, each time in another way; the others wait for its end. */
BODY(die_some_times) {
    (void)arg, (void)e;
    const uint32_t life = shmt_team_life(team, rank);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (rank != 1) {
        while (load_acquire(&shared->go) == 0 && load_acquire(&shared->abort) == 0) sleep_ms(1);
        return 0;
    }
    store_relaxed(&deaths->files[life], (uint32_t)count_entries("/proc/self/fd"));
    if (life < load_relaxed(&shared->number)) {
        if (life % 3 == 0) raise(SIGKILL);
        if (life % 3 == 1) raise(SIGSEGV);
        _exit(0);
    }
    store_release(&shared->go, 1);
    return 0;
}

static struct shmt_team_spec dying(uint32_t times) {
    struct shmt_team_spec spec = spec_of(&SHMT_TEAM_PROCESSES, 3, die_some_times);
    store_relaxed(&shared->number, times);
    store_relaxed(&shared->abort, 0);
    store_relaxed(&shared->go, 0);
    store_relaxed(&deaths->n_deaths, 0);
    spec.on_death = on_death;
    spec.most_respawns = MOST;
    spec.last_words = say_where;
    return spec;
}

static void who_dies_is_started_again(void **state) {
    (void)state;
    for (fake.no_pidfds = 0; fake.no_pidfds < 2; fake.no_pidfds++) {
        const struct shmt_team_spec spec = dying(MOST);
        struct shmt_error e = {0};
        assert_int_equal(shmt_team_run(&spec, &e), 0);
        assert_int_equal(shared->abort, 0);
        assert_int_equal(deaths->n_deaths, MOST);
        assert_int_equal(deaths->life[1], MOST);
        assert_int_not_equal(deaths->reported_by, getpid());
    }
}

static void a_new_life_has_no_descriptor_more_than_the_first(void **state) {
    (void)state;
    const struct shmt_team_spec spec = dying(MOST);
    struct shmt_error e = {0};
    assert_int_equal(shmt_team_run(&spec, &e), 0);
    for (uint32_t life = 1; life <= MOST; life++) assert_int_equal(deaths->files[life], deaths->files[0]);
}

static void who_dies_too_often_fails_with_place_and_number(void **state) {
    (void)state;
    const struct shmt_team_spec spec = dying(MOST + 1);
    struct shmt_error e = {0};
    assert_int_equal(shmt_team_run(&spec, &e), SHMTRAIN_E_DIED);
    assert_int_equal(shared->abort, 2);
    assert_string_equal(strchr(e.text, ')'),
                        ") was killed by signal 9 (Killed) while testing at item 10; it had been restarted 3 times before");
}

static void the_others_go_on_without_who_is_left_out(void **state) {
    (void)state;
    struct shmt_team_spec spec = dying(1);
    struct shmt_team *team;
    struct shmt_team_death death;
    struct shmt_error e = {0};
    uint64_t n = 0;
    deaths->answer = SHMT_TEAM_CONTINUES;
    assert_int_equal(shmt_team_start(&spec, &team, &e), 0);
    while (!shmt_team_death_at(team, 0, &death, &n)) sleep_ms(1);
    assert_int_equal(n, 1);
    assert_int_equal(death.rank, 1);
    assert_int_equal(death.life, 0);
    assert_int_equal(death.outcome, SHMT_TEAM_CONTINUES);
    assert_int_equal(shmt_team_pid(team, 1), 0);
    store_release(&shared->go, 1);
    assert_int_equal(shmt_team_finish(team, &e), 0);
}

static void deaths_are_recorded_in_order(void **state) {
    (void)state;
    const struct shmt_team_spec spec = dying(MOST);
    const char *const how[MOST] = {"was killed by signal 9 (Killed)", "was killed by signal 11 (Segmentation fault)",
                                   "called exit(0)"};
    struct shmt_team *team;
    struct shmt_team_death death;
    struct shmt_error e = {0};
    char text[80];
    assert_int_equal(shmt_team_start(&spec, &team, &e), 0);
    while (!shmt_team_step(team)) sleep_ms(1);
    for (uint32_t i = 0; i < MOST; i++) {
        assert_true(shmt_team_death_at(team, i, &death, NULL));
        assert_int_equal(death.life, i);
        assert_int_equal(death.outcome, SHMT_TEAM_RESPAWNS);
        shmt_team_tell_death(&death, text, sizeof text);
        assert_string_equal(text, how[i]);
    }
    assert_false(shmt_team_death_at(team, MOST, &death, NULL));
    assert_int_equal(shmt_team_finish(team, &e), 0);
}

static void an_error_is_no_death(void **state) {
    (void)state;
    struct shmt_team_spec spec = dying(0);
    struct shmt_error e = {0};
    spec.body = fail_second;
    assert_int_equal(shmt_team_run(&spec, &e), SHMTRAIN_E_DATA);
    assert_int_equal(deaths->n_deaths, 0);
}

/* The supervisor's own count of forks: three first lives, then none. */
static void a_worker_that_cannot_be_started_again_fails_and_says_why(void **state) {
    (void)state;
    const struct shmt_team_spec spec = dying(1);
    struct shmt_error e = {0};
    fake.fork_left = 4; /* the supervisor and three workers */
    assert_int_equal(shmt_team_run(&spec, &e), SHMTRAIN_E_DIED);
    assert_string_equal(strchr(e.text, ')'),
                        ") was killed by signal 9 (Killed) while testing at item 10; it could not be "
                        "restarted: Resource temporarily unavailable");
}

static void nobody_is_started_again_when_the_team_is_killed(void **state) {
    (void)state;
    struct shmt_team_spec spec = dying(0);
    struct shmt_team *team;
    struct shmt_error e = {0};
    spec.body = hang;
    assert_int_equal(shmt_team_start(&spec, &team, &e), 0);
    for (uint32_t rank = 0; rank < 3; rank++) await(&shared->entered[rank]);
    shmt_team_kill(team);
    assert_int_equal(shmt_team_finish(team, &e), SHMTRAIN_E_STOPPED);
    assert_int_equal(deaths->n_deaths, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_dies_is_started_again, map_deaths, unmap_deaths),
        cmocka_unit_test_setup_teardown(a_new_life_has_no_descriptor_more_than_the_first, map_deaths, unmap_deaths),
        cmocka_unit_test_setup_teardown(who_dies_too_often_fails_with_place_and_number, map_deaths, unmap_deaths),
        cmocka_unit_test_setup_teardown(the_others_go_on_without_who_is_left_out, map_deaths, unmap_deaths),
        cmocka_unit_test_setup_teardown(deaths_are_recorded_in_order, map_deaths, unmap_deaths),
        cmocka_unit_test_setup_teardown(an_error_is_no_death, map_deaths, unmap_deaths),
        cmocka_unit_test_setup_teardown(a_worker_that_cannot_be_started_again_fails_and_says_why, map_deaths, unmap_deaths),
        cmocka_unit_test_setup_teardown(nobody_is_started_again_when_the_team_is_killed, map_deaths, unmap_deaths),
    };
    return cmocka_run_group_tests_name("runtime, started again", tests, NULL, NULL);
}
