/* Tests of guests (ps/backend_ops.h, struct shmt_guest_ops): processes that take a seat while a run goes on,
 * leave it between two epochs, or die in it. Every worker here is a process of its own; this one is the application that
 * made the store. Nothing waits for a time: the chief stays at the end of an epoch for as long as the test wants. */
#include "conformance.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "update/live.h"
#include "update/lock.h"

enum { N = 1000, ROWS = 40, EPOCHS = 4, SEATS = 5, UNIT = 7 };

/* The store's board: what workers and this process tell one another. */
struct board {
    _Atomic uint32_t ended;           /* chief: it is at the end of this epoch, counted from 1 */
    _Atomic uint32_t released;        /* test: epochs that it may leave */
    _Atomic uint32_t waits_for_guest; /* test: own workers keep their first item of this epoch (from 1) until a guest has one */
    _Atomic uint32_t guest_holds;     /* guest that is to die: it has an item in hand */
    float before[2], after[2];        /* such a guest: weight and state of the unit that it dies in, before and after */
    _Atomic uint32_t entered[SEATS];  /* guest: the chief may let it in */
    _Atomic uint64_t items[EPOCHS][SEATS]; /* that the seat has had */
    struct shmt_tally tally[EPOCHS];
    uint8_t seen[EPOCHS][N]; /* how often each example was handed out */
};

static struct board *board_of(const struct run *run) { return run->board; }

static void pause_a_little(void) { usleep(200); }

/* ---- what workers do ---- */

static int end_of_epoch(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct run *run = arg;
    struct board *board = board_of(run);
    struct shmt_tally tally;
    if (s->backend->seat->tally(s->seat, &tally) != 0) return SHMTRAIN_E_MEMORY;
    if (s->seat->rank != 0) return 0;
    board->tally[epoch] = tally;
    store_release(&board->ended, epoch + 1);
    while (load_acquire(&board->released) <= epoch) pause_a_little();
    return 0;
}

static uint64_t guest_items(const struct run *run, uint32_t epoch) {
    uint64_t n = 0;
    for (uint32_t seat = run->spec.n_seats - run->spec.n_guests; seat < run->spec.n_seats; seat++)
        n += load_relaxed(&board_of(run)->items[epoch][seat]);
    return n;
}

/* In the live modes a guest may find all work taken when it is slow; so the others wait for it with an item in hand. */
static void let_a_guest_have_one(const struct run *run, const shmtrain_session *s, uint32_t epoch) {
    const bool guest = s->seat->rank >= run->spec.n_seats - run->spec.n_guests;
    if (guest || load_relaxed(&board_of(run)->waits_for_guest) != epoch + 1) return;
    while (guest_items(run, epoch) == 0) pause_a_little();
}

/* Gradients whose sum depends on the order of additions, in the last bits. */
static void gradient_of(const uint32_t *example, uint64_t n, float *grad) {
    memset(grad, 0, ROWS * sizeof *grad);
    for (uint64_t i = 0; i < n; i++)
        for (uint32_t row = 0; row < ROWS; row++) grad[row] += (float)shmt_unit(shmt_hash64(9, example[i], row, 0)) - 0.4f;
}

static int work(struct run *run, shmtrain_session *s) {
    struct board *board = board_of(run);
    struct shmtrain_work w;
    uint32_t example[64];
    float grad[ROWS];
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        bump_relaxed(&board->items[w.epoch][s->seat->rank], 1);
        let_a_guest_have_one(run, s, w.epoch);
        if ((rc = shmtrain_order(s, &w, example)) < 0) return rc;
        for (uint64_t i = 0; i < w.n; i++) board->seen[w.epoch][example[i]]++;
        gradient_of(example, w.n, grad);
        if ((rc = shmtrain_push(s, 0, 0, ROWS, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* Takes an item, and locks, and does not come back. */
static int hold_for_ever(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    struct shmt_span span;
    int live;
    if (shmtrain_next(s, &w) != 1 || s->backend->seat->bind(s->seat, 0, &span, &live) != 0) return SHMTRAIN_E_USAGE;
    for (uint64_t unit = 0; span.locks.word && unit < ROWS; unit++) (void)shmt_unit_acquire(&span.locks, unit);
    store_release(&board_of(run)->guest_holds, (uint32_t)w.n);
    for (;;) pause();
}

/* ---- workers as processes ---- */

static int body(struct run *run, uint32_t rank, bool guest, int (*what)(struct run *, shmtrain_session *)) {
    struct shmt_error e = {0};
    shmtrain_session s;
    if (guest && run->k->backend->guests->reserve(run->store, rank, &e) != 1) return 2;
    if (shmt_session_enter(&s, run->k->backend, run->store, &run->spec, rank, 0, &e) < 0) return 3;
    store_release(&board_of(run)->entered[rank], 1); /* pairs with the acquire in has_come */
    s.epoch_end = end_of_epoch;
    s.epoch_end_arg = run;
    int rc = guest ? shmt_session_admit(&s) : 0;
    if (rc == 0) rc = what(run, &s);
    shmt_session_leave(&s);
    return rc == 0 ? 0 : rc == SHMTRAIN_E_STOPPED ? 5 : 4;
}

static pid_t spawn(struct run *run, uint32_t rank, bool guest, int (*what)(struct run *, shmtrain_session *)) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    alarm(60);
    _exit(body(run, rank, guest, what));
}

static void ended_with(pid_t pid, int code) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

static void ended_well(pid_t pid) { ended_with(pid, 0); }

/* Takes an item, and dies in the middle of a push to a row: the weight has changed, the state has not. As push kernels do it
 * (update/push_priv.h). */
static int stay_in_a_unit(struct run *run, shmtrain_session *s) {
    struct board *board = board_of(run);
    struct shmtrain_work w;
    struct shmt_span span;
    int live;
    if (shmtrain_next(s, &w) != 1 || s->backend->seat->bind(s->seat, 0, &span, &live) != 0) return SHMTRAIN_E_USAGE;
    if (!shmt_unit_acquire(&span.locks, UNIT)) return SHMTRAIN_E_USAGE;
    board->before[0] = span.sink[UNIT];
    board->before[1] = span.state[UNIT];
    shmt_undo_open(&span.undo, span.undo.first + UNIT, 1, span.sink + UNIT, span.state + UNIT, span.plane, 1);
    shmt_live_store(span.sink + UNIT, board->before[0] + 1000);
    board->after[0] = board->before[0] + 1000;
    board->after[1] = board->before[1];
    store_release(&board->guest_holds, (uint32_t)w.n);
    for (;;) pause();
}

/* ---- a run with guests ---- */

struct party {
    struct run run;
    uint32_t own;
    pid_t pid[SEATS];
};

static void invite(struct party *p, const struct kase *k, uint32_t own, uint32_t guests) {
    struct shmt_spec spec = spec_of(k, N, ROWS, 1);
    assert_true(sizeof(struct board) <= 1 << 16);
    spec.epochs = EPOCHS;
    spec.n_seats = own + guests;
    spec.n_guests = guests;
    spec.n_workers = own;
    begin(&p->run, k, spec);
    p->own = own;
    for (uint32_t rank = 0; rank < own; rank++) p->pid[rank] = spawn(&p->run, rank, false, work);
}

static void come(struct party *p, uint32_t rank, int (*what)(struct run *, shmtrain_session *)) {
    store_relaxed(&board_of(&p->run)->entered[rank], 0); /* of an earlier guest; the fork publishes it */
    p->pid[rank] = spawn(&p->run, rank, true, what);
}

/* The guest has entered, so that the chief will let it in. */
static void has_come(struct party *p, uint32_t rank) {
    while (load_acquire(&board_of(&p->run)->entered[rank]) == 0) pause_a_little();
    assert_int_equal(p->run.k->backend->guests->occupied(p->run.store, rank), p->pid[rank]);
}

/* The chief is at the end of this epoch (from 0) and stays there. */
static void is_at_end(const struct party *p, uint32_t epoch) {
    while (load_acquire(&board_of(&p->run)->ended) < epoch + 1) pause_a_little();
}

static void go_on_to(const struct party *p, uint32_t epoch) { store_release(&board_of(&p->run)->released, epoch); }

static void own_end_well(struct party *p) {
    for (uint32_t rank = 0; rank < p->own; rank++) ended_well(p->pid[rank]);
}

static void every_example_once(const struct party *p, uint32_t epoch) {
    for (int i = 0; i < N; i++) assert_int_equal(board_of(&p->run)->seen[epoch][i], 1);
    assert_int_equal(board_of(&p->run)->tally[epoch].examples, N);
}

static void read_all(const struct party *p, float *out) {
    assert_int_equal(p->run.k->backend->store->read(p->run.store, 0, 0, ROWS, out), 0);
}

/* ---- cases ---- */

/* Every backend that guests can join, in each mode; seats are processes of this test. */
static void (*the_test)(const struct kase *);

static void with_guests(const struct kase *k) {
    if (!(k->backend->caps & SHMT_CAP_JOIN) || k->kind != &SHMT_TEAM_PROCESSES || k->n_seats != 1) return;
    alarm(120);
    the_test(k);
}

static void each_with_guests(void (*test)(const struct kase *)) {
    the_test = test;
    each_case(with_guests);
}

static void works_without(const struct kase *k) {
    for (uint32_t own = 1; own <= 3; own++) {
        struct party p;
        invite(&p, k, own, 2);
        go_on_to(&p, EPOCHS);
        own_end_well(&p);
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) every_example_once(&p, epoch);
        end(&p.run);
    }
}

static void a_run_does_not_wait_for_guests_that_do_not_come(void **state) {
    (void)state;
    each_with_guests(works_without);
}

/* What `own` seats and nobody else make of it. */
static void alone(const struct kase *k, uint32_t own, float *out) {
    struct party p;
    invite(&p, k, own, 0);
    go_on_to(&p, EPOCHS);
    own_end_well(&p);
    read_all(&p, out);
    end(&p.run);
}

static void comes_and_goes(const struct kase *k) {
    for (uint32_t own = 1; own <= 3; own++) {
        float without[ROWS], with[ROWS];
        struct party p;
        alone(k, own, without);
        invite(&p, k, own, 2);
        store_relaxed(&board_of(&p.run)->waits_for_guest, 2);
        is_at_end(&p, 0);
        come(&p, own + 1, work);
        has_come(&p, own + 1);
        go_on_to(&p, 1); /* epoch 1 has a guest */
        is_at_end(&p, 1);
        k->backend->guests->request_leave(p.run.store, own + 1);
        go_on_to(&p, 2); /* epoch 2 has none */
        ended_well(p.pid[own + 1]);
        assert_int_equal(k->backend->guests->occupied(p.run.store, own + 1), 0);
        is_at_end(&p, 2);
        come(&p, own, work);
        come(&p, own + 1, work); /* its seat is free again */
        has_come(&p, own);
        has_come(&p, own + 1);
        go_on_to(&p, EPOCHS); /* epoch 3 has two */
        own_end_well(&p);
        ended_well(p.pid[own]);
        ended_well(p.pid[own + 1]);
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) every_example_once(&p, epoch);
        assert_true(guest_items(&p.run, 0) == 0 && guest_items(&p.run, 1) > 0 && guest_items(&p.run, 2) == 0);
        read_all(&p, with);
        if (shmt_policy_is_batched(&k->policy)) {
            assert_true(guest_items(&p.run, 3) > 0); /* chunks are dealt out */
            assert_memory_equal(with, without, sizeof with);
        }
        end(&p.run);
    }
}

static void guests_take_part_between_joining_and_leaving(void **state) {
    (void)state;
    each_with_guests(comes_and_goes);
}

/* The only own worker, which asks for a pause when a guest has come, and behind it keeps its item until the guest has one. */
static int work_and_pause(struct run *run, shmtrain_session *s) {
    struct board *board = board_of(run);
    const bool chief = s->seat->rank == 0;
    struct shmtrain_work w;
    uint32_t example[64];
    float grad[ROWS];
    bool asked = false;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        bump_relaxed(&board->items[w.epoch][s->seat->rank], 1);
        while (chief && load_acquire(&board->entered[1]) == 0) pause_a_little();
        if (chief && !asked) s->backend->store->request_snapshot(s->store);
        while (chief && asked && s->seat->n_present == 2 && guest_items(run, 0) == 0) pause_a_little();
        asked = true;
        if ((rc = shmtrain_order(s, &w, example)) < 0) return rc;
        for (uint64_t i = 0; i < w.n; i++) board->seen[w.epoch][example[i]]++;
        gradient_of(example, w.n, grad);
        if ((rc = shmtrain_push(s, 0, 0, ROWS, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void comes_in_a_pause(const struct kase *k) {
    struct shmt_spec spec = spec_of(k, N, ROWS, 1);
    float without[ROWS], with[ROWS];
    struct party p = {.own = 1};
    if (!(k->backend->caps & SHMT_CAP_PAUSE)) return;
    alone(k, 1, without);
    spec.epochs = EPOCHS;
    spec.n_seats = 2;
    spec.n_guests = 1;
    spec.pauses.allowed = 1;
    begin(&p.run, k, spec);
    go_on_to(&p, EPOCHS);
    p.pid[0] = spawn(&p.run, 0, false, work_and_pause);
    come(&p, 1, work_and_pause);
    own_end_well(&p);
    ended_well(p.pid[1]);
    assert_true(guest_items(&p.run, 0) > 0);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) every_example_once(&p, epoch);
    read_all(&p, with);
    if (shmt_policy_is_batched(&k->policy)) assert_memory_equal(with, without, sizeof with);
    end(&p.run);
}

static void guests_are_let_in_at_a_pause_too(void **state) {
    (void)state;
    each_with_guests(comes_in_a_pause);
}

/* As many as before, but others: whose gradients are added must not be remembered by number. */
static void takes_the_place(const struct kase *k) {
    float without[ROWS], with[ROWS];
    struct party p;
    alone(k, 2, without);
    invite(&p, k, 2, 2);
    is_at_end(&p, 0);
    come(&p, 3, work);
    has_come(&p, 3);
    go_on_to(&p, 1);
    is_at_end(&p, 1);
    k->backend->guests->request_leave(p.run.store, 3);
    come(&p, 2, work);
    has_come(&p, 2);
    go_on_to(&p, EPOCHS);
    own_end_well(&p);
    ended_well(p.pid[2]);
    ended_well(p.pid[3]);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) every_example_once(&p, epoch);
    read_all(&p, with);
    if (shmt_policy_is_batched(&k->policy)) assert_memory_equal(with, without, sizeof with);
    end(&p.run);
}

static void one_guest_may_come_for_another(void **state) {
    (void)state;
    each_with_guests(takes_the_place);
}

static void is_refused(const struct kase *k) {
    struct shmt_error e = {0};
    struct party p;
    invite(&p, k, 1, 2);
    is_at_end(&p, 0);
    assert_int_equal(k->backend->guests->reserve(p.run.store, 0, &e), 0); /* the chief's */
    assert_int_equal(k->backend->guests->reserve(p.run.store, 3, &e), 0); /* there is none */
    come(&p, 2, work);
    has_come(&p, 2);
    assert_int_equal(k->backend->guests->reserve(p.run.store, 2, &e), 0); /* taken */
    assert_int_equal(e.status, 0);
    go_on_to(&p, EPOCHS);
    own_end_well(&p);
    ended_well(p.pid[2]);
    assert_int_equal(k->backend->guests->reserve(p.run.store, 1, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "the run has ended"));
    end(&p.run);
}

static void seats_that_are_not_free_are_not_given(void **state) {
    (void)state;
    each_with_guests(is_refused);
}

/* It has its seat at the end of the last epoch, when nobody is let in any more. */
static void comes_too_late(const struct kase *k) {
    struct party p;
    invite(&p, k, 2, 1);
    go_on_to(&p, EPOCHS - 1);
    is_at_end(&p, EPOCHS - 1);
    come(&p, 2, work);
    has_come(&p, 2);
    go_on_to(&p, EPOCHS);
    own_end_well(&p);
    ended_well(p.pid[2]); /* `next` gives it nothing */
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) every_example_once(&p, epoch);
    assert_int_equal(guest_items(&p.run, EPOCHS - 1), 0);
    assert_int_equal(k->backend->guests->occupied(p.run.store, 2), 0);
    end(&p.run);
}

static void who_waits_while_the_run_ends_is_sent_away(void **state) {
    (void)state;
    each_with_guests(comes_too_late);
}

static void changes_its_mind(const struct kase *k) {
    struct party p;
    invite(&p, k, 1, 1);
    is_at_end(&p, 0);
    come(&p, 1, work);
    has_come(&p, 1);
    k->backend->guests->request_leave(p.run.store, 1);
    go_on_to(&p, EPOCHS);
    own_end_well(&p);
    ended_well(p.pid[1]);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) every_example_once(&p, epoch);
    assert_int_equal(k->backend->guests->occupied(p.run.store, 1), 0);
    end(&p.run);
}

static void who_asks_to_leave_before_it_was_let_in_is_let_go(void **state) {
    (void)state;
    each_with_guests(changes_its_mind);
}

/* ---- deaths ---- */

static void kill_and_reclaim(const struct party *p, uint32_t rank) {
    kill(p->pid[rank], SIGKILL);
    assert_int_equal(waitpid(p->pid[rank], NULL, 0), p->pid[rank]);
    assert_int_equal(p->run.k->backend->guests->reclaim(p->run.store, rank, true), 1);
    p->run.k->backend->store->wake(p->run.store);
    assert_int_equal(p->run.k->backend->guests->occupied(p->run.store, rank), 0);
}

/* Whether nothing but its item is missing when a guest dies: no gradient of an update, no slice of a merge. */
static bool does_without(const struct kase *k) {
    return shmt_policy_is_live(&k->policy) && !shmt_policy_merges_replicas(&k->policy);
}

static void dies_at_work(const struct kase *k) {
    struct party p;
    if (!does_without(k)) return;
    invite(&p, k, 2, 2);
    is_at_end(&p, 0);
    come(&p, 2, hold_for_ever);
    has_come(&p, 2);
    store_relaxed(&board_of(&p.run)->waits_for_guest, 2);
    go_on_to(&p, 1);
    while (load_acquire(&board_of(&p.run)->guest_holds) == 0) pause_a_little();
    bump_relaxed(&board_of(&p.run)->items[1][2], 1); /* the others may go on, and find locks that nobody will release */
    kill_and_reclaim(&p, 2);
    is_at_end(&p, 1);
    come(&p, 2, work); /* its seat can be taken again */
    has_come(&p, 2);
    go_on_to(&p, EPOCHS);
    own_end_well(&p);
    ended_well(p.pid[2]);
    /* What it had in hand is missing from that epoch, and nothing else. */
    assert_int_equal(board_of(&p.run)->tally[1].examples, N - load_relaxed(&board_of(&p.run)->guest_holds));
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        if (epoch != 1) every_example_once(&p, epoch);
    end(&p.run);
}

static void a_guest_that_dies_takes_one_item_with_it_where_nobody_needs_it(void **state) {
    (void)state;
    each_with_guests(dies_at_work);
}

static bool has_units(const struct kase *k) { return does_without(k) && k->policy.write == SHMT_WRITE_LOCKED; }

/* Nobody else pushes between its death and the look at the unit: the own worker keeps its first item of the epoch. */
static void dies_in_a_unit(const struct kase *k, bool may_die) {
    struct shmt_spec spec = spec_of(k, N, ROWS, 1);
    struct party p = {.own = 1};
    spec.rule = (struct shmt_rule){.kind = SHMT_RULE_ADAGRAD, .epsilon = 1};
    spec.epochs = EPOCHS;
    spec.n_seats = 2;
    spec.n_guests = 1;
    spec.may_die = may_die;
    begin(&p.run, k, spec);
    p.pid[0] = spawn(&p.run, 0, false, work);
    is_at_end(&p, 0);
    come(&p, 1, stay_in_a_unit);
    has_come(&p, 1);
    const struct board *board = board_of(&p.run);
    store_relaxed(&board_of(&p.run)->waits_for_guest, 2);
    go_on_to(&p, 1);
    while (load_acquire(&board->guest_holds) == 0) pause_a_little();
    kill_and_reclaim(&p, 1);
    const float *const expected = may_die ? board->before : board->after;
    assert_true(board->before[1] > 0 && board->after[0] != board->before[0]);
    assert_true(((const float *)shmt_array_at(k->backend, p.run.store, SHMT_ARRAY_WEIGHT))[UNIT] == expected[0]);
    assert_true(((const float *)shmt_array_at(k->backend, p.run.store, SHMT_ARRAY_STATE))[UNIT] == expected[1]);
    bump_relaxed(&board_of(&p.run)->items[1][1], 1); /* the own worker goes on, and pushes to that unit, too */
    go_on_to(&p, EPOCHS);
    own_end_well(&p);
    assert_int_equal(board->tally[1].examples, N - load_relaxed(&board->guest_holds));
    end(&p.run);
}

static void dies_where_deaths_are_provided_for(const struct kase *k) {
    if (has_units(k)) dies_in_a_unit(k, true);
}

static void dies_where_they_are_not(const struct kase *k) {
    if (has_units(k)) dies_in_a_unit(k, false);
}

static void the_unit_that_a_guest_dies_in_gets_its_old_bytes_back(void **state) {
    (void)state;
    each_with_guests(dies_where_deaths_are_provided_for);
}

static void without_old_bytes_such_a_unit_stays_and_is_nobodys(void **state) {
    (void)state;
    each_with_guests(dies_where_they_are_not);
}

static void dies_with_what_is_needed(const struct kase *k) {
    struct party p;
    if (does_without(k)) return;
    invite(&p, k, 2, 1);
    is_at_end(&p, 0);
    come(&p, 2, hold_for_ever);
    has_come(&p, 2);
    store_relaxed(&board_of(&p.run)->waits_for_guest, 2);
    go_on_to(&p, 1);
    while (load_acquire(&board_of(&p.run)->guest_holds) == 0) pause_a_little();
    bump_relaxed(&board_of(&p.run)->items[1][2], 1);
    kill(p.pid[2], SIGKILL);
    assert_int_equal(waitpid(p.pid[2], NULL, 0), p.pid[2]);
    assert_int_equal(k->backend->guests->reclaim(p.run.store, 2, true), 0);
    assert_int_not_equal(k->backend->guests->occupied(p.run.store, 2), 0);
    store_release(k->backend->store->abort_word(p.run.store), 3);
    k->backend->store->wake(p.run.store);
    for (uint32_t rank = 0; rank < 2; rank++) ended_with(p.pid[rank], 5);
    end(&p.run);
}

static void an_update_or_a_merge_cannot_do_without_a_dead_guest(void **state) {
    (void)state;
    each_with_guests(dies_with_what_is_needed);
}

static void dies_while_it_waits(const struct kase *k) {
    struct party p;
    invite(&p, k, 2, 1);
    is_at_end(&p, 0);
    come(&p, 2, work);
    has_come(&p, 2);
    kill_and_reclaim(&p, 2);
    go_on_to(&p, EPOCHS);
    own_end_well(&p);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) every_example_once(&p, epoch);
    end(&p.run);
}

static void who_dies_before_it_was_let_in_is_not_missed(void **state) {
    (void)state;
    each_with_guests(dies_while_it_waits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_does_not_wait_for_guests_that_do_not_come),
        cmocka_unit_test(guests_take_part_between_joining_and_leaving),
        cmocka_unit_test(guests_are_let_in_at_a_pause_too),
        cmocka_unit_test(one_guest_may_come_for_another),
        cmocka_unit_test(seats_that_are_not_free_are_not_given),
        cmocka_unit_test(who_waits_while_the_run_ends_is_sent_away),
        cmocka_unit_test(who_asks_to_leave_before_it_was_let_in_is_let_go),
        cmocka_unit_test(a_guest_that_dies_takes_one_item_with_it_where_nobody_needs_it),
        cmocka_unit_test(the_unit_that_a_guest_dies_in_gets_its_old_bytes_back),
        cmocka_unit_test(without_old_bytes_such_a_unit_stays_and_is_nobodys),
        cmocka_unit_test(an_update_or_a_merge_cannot_do_without_a_dead_guest),
        cmocka_unit_test(who_dies_before_it_was_let_in_is_not_missed),
    };
    return cmocka_run_group_tests_name("guests", tests, NULL, NULL);
}
