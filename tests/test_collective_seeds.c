/* Collectives under schedulers that mean harm (hostile.h): members are fibers, every operation is held against the reference, and in
 * every second run one of them dies at a point that the seed says. Then the others have an error that names who is gone, or have come to
 * their end before; nobody waits for ever, and what was complete before was right.
 *
 *   TEST_SEEDS=N   so many seeds; 400 unless said otherwise, or 60 under a sanitizer
 *   TEST_SEED=K    this one alone */
#include "collective_draw.h"
#include "deadline.h"
#include "hostile.h"
#include "sanitized.h"

#include "base/point.h"
#include "fibers/scheduler.h"

/* Of a run. None takes a third of it; who is not woken naps for 100 ms (sync/gate.c), and so does who waits for somebody who is gone, and
 * who waits for that one. */
#define MOST_NS UINT64_C(90000000)
#define NAP_NS  UINT64_C(100000000)

static struct {
    uint64_t seed;
    uint32_t victim; /* UINT32_MAX: nobody dies */
    uint64_t dies_at, passed;
    jmp_buf out[MOST];
    struct shmt_coll *coll[MOST];
    struct shmt_error error[MOST];
    bool left[MOST];
} g;

/* Not by cmocka: whoever finds it may stand on a fiber's stack. */
static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "FAILED: %s; again: TEST_SEED=%llu\n", why, (unsigned long long)g.seed);
    _exit(1);
}

void shmt_point(const char *name) {
    uint32_t who;
    if (!shmt_fiber_asks(&who)) return;
    if (who == g.victim && ++g.passed == g.dies_at) longjmp(g.out[who], 1);
    const uint64_t ns = hostile_delay(name, who, NULL);
    if (ns > 0) shmt_host()->sleep_until(shmt_now_ns() + ns);
}

void shmt_point_grows(const char *what, uint64_t before, uint64_t after) {
    if (after < before) give_up(what);
}

/* ---- a member ---- */

static void act(void *arg, uint32_t i) {
    struct hall *hall = arg;
    const struct shmt_coll_place place = {.room = hall->room,
                                          .words = hall->words,
                                          .exchange = hall->exchange,
                                          .exchange_stride = hall->stride,
                                          .n = hall->n,
                                          .self = i,
                                          .abort = &hall->abort,
                                          .spin_ns = g.seed / 5 % 2 ? 2000 : 0};
    if (shmt_coll_open(&place, &g.error[i], &g.coll[i]) < 0) give_up(g.error[i].text);
    const bool died = setjmp(g.out[i]) != 0;
    if (!died) hall->play(hall, g.coll[i]);
    if (died) shmt_host()->sleep_until(shmt_now_ns() + hostile_draw(50000)); /* until it is found */
    g.left[i] = true;
    shmt_coll_leave(hall->words, hall->n, i, false);
    if (!died) shmt_coll_close(g.coll[i]); /* of the dead the scheduler frees what they own */
}

/* ---- a run ---- */

static void go(struct hall *hall) {
    struct shmt_error e = {0};
    struct shmt_fibers *fibers;
    const struct shmt_fibers_spec spec = {
        .n = hall->n, .seed = g.seed, .stack_bytes = SHMT_FIBER_STACK, .sim = {.look_ns = 10}, .body = act, .arg = hall};
    if (shmt_fibers_make(&spec, &fibers, &e) < 0) give_up(e.text);
    const uint64_t most_ns = MOST_NS + (g.victim == UINT32_MAX ? 0 : hall->n * NAP_NS);
    while (!shmt_fibers_run(fibers, 1000))
        if (shmt_fibers_now_ns(fibers) > most_ns) give_up("somebody was not woken, or waits for who is gone");
    shmt_fibers_free(fibers);
}

/* An error names somebody who was gone. */
static void check_end(const struct hall *hall, uint32_t i) {
    const struct shmt_error *e = &g.error[i];
    unsigned who;
    if (e->status == 0 || i == g.victim) return;
    if (g.victim == UINT32_MAX) give_up(e->text);
    if (e->status != SHMTRAIN_E_DIED || sscanf(e->text, "worker %u", &who) != 1 || who >= hall->n || !g.left[who])
        give_up(e->text);
}

static void run_seed(uint64_t seed) {
    const uint32_t n = 1 + (uint32_t)(seed % MOST);
    memset(&g, 0, sizeof g);
    g.seed = seed;
    hostile_begin(seed, n);
    g.victim = n > 1 && seed / MOST % 2 ? (uint32_t)hostile_draw(n) : UINT32_MAX;
    g.dies_at = 1 + hostile_draw(400);
    struct hall *hall = build(n, seed, seed % 3 ? 256 : 4096, 2 * ROOM + 256, play_all);
    go(hall);
    if (hall->wrong) give_up(hall->why);
    for (uint32_t i = 0; i < n; i++) check_end(hall, i);
    clear_stage();
    tear_down(hall);
}

static void whatever_the_schedule_results_are_those_of_the_reference_and_nobody_waits_for_the_dead(void **state) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 40 : 400), only = hostile_asked("TEST_SEED", 0);
    (void)state;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) run_seed(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(
        whatever_the_schedule_results_are_those_of_the_reference_and_nobody_waits_for_the_dead, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
