/* Reclaiming the seats of dead guests (naming/lease.h), with a backend of one guest's seat, and marks and lives that are the test's.
 * Real guests: test_join_deaths.c. */
#include "naming/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "workers/run.h"

enum { PROGRAM = 500, WORKER = 600 };

static struct play {
    struct shmt_call call;
    struct shmt_lease lease;
    struct shmt_run run;
    _Atomic uint32_t abort;
    uint32_t occupied;
    enum shmt_occupant who;
    bool mark_is_free, ended;
    int goes_on;
    uint32_t n_reclaimed;
    char log[400];
} play;

int __wrap_shmt_mark_hold(int fd, uint64_t mark, struct shmt_error *e);
int __wrap_shmt_mark_hold(int fd, uint64_t mark, struct shmt_error *e) {
    (void)fd;
    (void)e;
    assert_int_equal(mark, SHMT_MARK_GUEST(1));
    return play.mark_is_free;
}

void __wrap_shmt_mark_drop(int fd, uint64_t mark);
void __wrap_shmt_mark_drop(int fd, uint64_t mark) {
    (void)fd;
    (void)mark;
}

enum shmt_living __wrap_shmt_life_look(const struct shmt_life *life);
enum shmt_living __wrap_shmt_life_look(const struct shmt_life *life) {
    assert_int_equal(life->process, play.who == SHMT_OCCUPANT_COMES ? PROGRAM : WORKER);
    return play.ended ? SHMT_LIFE_IS_OVER : SHMT_LIFE_GOES_ON;
}

static uint32_t occupied(struct shmt_store *store, uint32_t rank) {
    (void)store;
    assert_int_equal(rank, 1);
    return play.occupied;
}

static enum shmt_occupant occupant(struct shmt_store *store, uint32_t rank, struct shmt_life *out) {
    (void)store;
    (void)rank;
    if (play.who != SHMT_OCCUPANT_NONE) *out = (struct shmt_life){play.who == SHMT_OCCUPANT_COMES ? PROGRAM : WORKER, 1};
    return play.who;
}

static int reclaim(struct shmt_store *store, uint32_t rank, bool marked) {
    (void)store;
    (void)rank;
    assert_int_equal(marked, play.mark_is_free);
    play.n_reclaimed++;
    return play.goes_on;
}

static _Atomic uint32_t *abort_word(struct shmt_store *store) {
    (void)store;
    return &play.abort;
}

static void wake(struct shmt_store *store) { (void)store; }

static const struct shmt_guest_ops GUESTS = {.occupied = occupied, .occupant = occupant, .reclaim = reclaim};
static const struct shmt_store_ops STORE = {.abort_word = abort_word, .wake = wake};
static const struct shmt_backend BACKEND = {.store = &STORE, .guests = &GUESTS};

static void keep(void *arg, const char *line) {
    (void)arg;
    snprintf(play.log, sizeof play.log, "%s", line);
}

static int look(uint32_t program, enum shmt_occupant who, bool mark_is_free, bool ended, int goes_on) {
    play = (struct play){.occupied = program, .who = who, .mark_is_free = mark_is_free, .ended = ended, .goes_on = goes_on};
    play.call.log.line = keep;
    play.lease.held = true;
    play.run = (struct shmt_run){
        .call = &play.call, .backend = &BACKEND, .spec = {.n_seats = 2, .n_guests = 1, .n_workers = 1}, .lease = &play.lease};
    return shmt_lease_tick(&play.run);
}

static void the_seat_of_a_living_guest_is_not_reclaimed(void **state) {
    (void)state;
    assert_int_equal(look(PROGRAM, SHMT_OCCUPANT_WORKS, false, false, 1), 0);
    assert_int_equal(look(PROGRAM, SHMT_OCCUPANT_COMES, false, false, 1), 0);
    assert_int_equal(look(0, SHMT_OCCUPANT_NONE, true, false, 1), 0);
    assert_int_equal(play.n_reclaimed, 0);
}

static void the_seat_of_a_dead_guest_is_reclaimed_whoever_holds_its_mark(void **state) {
    (void)state;
    assert_int_equal(look(PROGRAM, SHMT_OCCUPANT_WORKS, false, true, 1), 0);
    assert_int_equal(play.n_reclaimed, 1);
    assert_non_null(strstr(play.log, "worker 1 (process 600, joined by name) died"));
    assert_int_equal(look(PROGRAM, SHMT_OCCUPANT_WORKS, true, false, 1), 0); /* the mark alone says so */
    assert_int_equal(play.n_reclaimed, 1);
}

static void so_is_that_of_a_guest_that_dies_before_it_enters(void **state) {
    (void)state;
    assert_int_equal(look(PROGRAM, SHMT_OCCUPANT_COMES, false, true, 1), 0);
    assert_int_equal(play.n_reclaimed, 1);
    assert_non_null(strstr(play.log, "worker 1 (process 500, joined by name) died"));
}

/* The chief has counted it in while its seat was reclaimed. */
static void a_seat_without_a_guest_is_reclaimed_once_more(void **state) {
    (void)state;
    assert_int_equal(look(SHMT_OCCUPIED_BY_NOBODY, SHMT_OCCUPANT_NONE, false, false, 1), 0);
    assert_int_equal(play.n_reclaimed, 1);
    assert_string_equal(play.log, "");
}

static void nothing_is_said_when_somebody_else_has_come(void **state) {
    (void)state;
    assert_int_equal(look(PROGRAM, SHMT_OCCUPANT_WORKS, false, true, -1), 0);
    assert_int_equal(play.n_reclaimed, 1);
    assert_string_equal(play.log, "");
}

static void a_run_that_cannot_go_on_says_for_whom(void **state) {
    (void)state;
    assert_int_equal(look(PROGRAM, SHMT_OCCUPANT_WORKS, true, false, 0), SHMTRAIN_E_DIED);
    assert_non_null(strstr(play.lease.lost.text, "worker 1 (process 600, joined by name) died"));
    assert_int_equal(look(PROGRAM, SHMT_OCCUPANT_NONE, true, false, 0), SHMTRAIN_E_DIED);
    assert_non_null(strstr(play.lease.lost.text, "worker 1 (process 500, joined by name) died"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seat_of_a_living_guest_is_not_reclaimed),
        cmocka_unit_test(the_seat_of_a_dead_guest_is_reclaimed_whoever_holds_its_mark),
        cmocka_unit_test(so_is_that_of_a_guest_that_dies_before_it_enters),
        cmocka_unit_test(a_seat_without_a_guest_is_reclaimed_once_more),
        cmocka_unit_test(nothing_is_said_when_somebody_else_has_come),
        cmocka_unit_test(a_run_that_cannot_go_on_says_for_whom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
