/* Memory in virtual time: lines that others have written, queues of bytes, nodes, and the race that this opens. */
#include "fibers_help.h"

#include <string.h>

#include "base/random.h"

enum { LINE = 64, LOOK = 1 };

/* What a touch takes; others run meanwhile. */
static uint64_t time_of_touch(const char *at, uint64_t bytes, bool writes) {
    const uint64_t before = shmt_now_ns();
    shmt_touch(at, bytes, writes);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
    return shmt_now_ns() - before - LOOK;
}

static _Alignas(64) char g_memory[4 << 20];

/* One after the other: a worker touches so many lines, and with one node, or with each worker on its own, it takes so long. */
static const struct touch {
    uint32_t worker, line, n;
    bool writes;
    uint64_t near_ns, far_ns;
} TOUCHES[] = {
    {0, 0, 1, false, 0, 0},   {1, 0, 1, false, 0, 0},                            /* nobody has written it */
    {0, 0, 1, true, 80, 80},                                                     /* the other one has a copy */
    {0, 0, 1, true, 0, 0},                                                       /* mine alone */
    {0, 0, 1, false, 0, 0},   {1, 0, 1, false, 80, 160}, {1, 0, 1, false, 0, 0}, /* a copy */
    {0, 0, 1, false, 0, 0},                                                      /* likewise */
    {1, 0, 1, true, 80, 160}, {0, 0, 1, true, 80, 160},  {0, 1, 1, true, 0, 0},  /* to each its own */
    {1, 2, 1, true, 0, 0},    {0, 1, 1, true, 0, 0},     {1, 2, 1, true, 0, 0},
    {0, 0, 3, false, 80, 160} /* of three lines one is another's */
};
enum { N_TOUCHES = sizeof TOUCHES / sizeof *TOUCHES };

static void touch_in_turn(void *arg, uint32_t i) {
    (void)arg;
    for (uint32_t k = 0; k < N_TOUCHES; k++) {
        const struct touch *t = &TOUCHES[k];
        if (t->worker != i) continue;
        shmt_host()->sleep_until(BEGIN + (k + 1) * 10000);
        g_at[k] = time_of_touch(g_memory + t->line * LINE, (uint64_t)t->n * LINE, t->writes);
    }
}

static void lines_that_others_have_written_cost_time(void **state) {
    (void)state;
    run_all(2, 1, "look=1ns,line=80ns", touch_in_turn);
    for (uint32_t k = 0; k < N_TOUCHES; k++)
        if (g_at[k] != TOUCHES[k].near_ns) fail_msg("touch %u: %d ns", k, (int)g_at[k]);
}

static void lines_of_another_node_cost_more(void **state) {
    (void)state;
    run_all(2, 1, "look=1ns,line=80ns,nodes=2,far=2x", touch_in_turn);
    for (uint32_t k = 0; k < N_TOUCHES; k++)
        if (g_at[k] != TOUCHES[k].far_ns) fail_msg("touch %u: %d ns", k, (int)g_at[k]);
}

static void nothing_is_touched_where_memory_takes_no_time(void **state) {
    (void)state;
    run_all(2, 1, "look=1ns", touch_in_turn);
    for (uint32_t k = 0; k < N_TOUCHES; k++) assert_int_equal(g_at[k], 0);
}

/* What a call fetches, it fetches side by side. */
static void read_three(void *arg, uint32_t i) {
    (void)arg;
    shmt_host()->sleep_until(BEGIN + (i + 1) * 10000);
    g_at[i] = time_of_touch(g_memory, 3 * LINE, i == 0);
}

static void further_lines_of_a_call_cost_what_next_says(void **state) {
    (void)state;
    run_all(2, 1, "look=1ns,line=80ns,next=7ns", read_three);
    assert_int_equal(g_at[1], 80 + 2 * 7);
    run_all(2, 1, "look=1ns,line=80ns", read_three);
    assert_int_equal(g_at[1], 3 * 80);
}

static void write_at_the_same_time(void *arg, uint32_t i) {
    (void)arg;
    shmt_host()->sleep_until(BEGIN + 10000);
    const uint64_t took = time_of_touch(g_memory, LINE, true);
    g_at[took / 80]++;
    if (took % 80 > 8) fail_msg("%u: %d ns", i, (int)took); /* looks at the clock, on the way there */
}

static void a_line_comes_to_one_at_a_time(void **state) {
    (void)state;
    memset(g_at, 0, sizeof g_at);
    run_all(5, 1, "look=1ns,line=80ns", write_at_the_same_time);
    for (uint32_t k = 0; k < 5; k++) assert_int_equal(g_at[k], 1);
}

/* Each its own ten lines, at the same time, twice, and then 32 more, twice. */
static void read_own_lines(void *arg, uint32_t i) {
    const char *mine = g_memory + i * 1024 * LINE;
    (void)arg;
    shmt_host()->sleep_until(BEGIN + 10000);
    g_at[4 * i] = time_of_touch(mine, 10 * LINE, false);
    shmt_host()->sleep_until(BEGIN + 20000);
    g_at[4 * i + 1] = time_of_touch(mine, 10 * LINE, false);
    shmt_host()->sleep_until(BEGIN + 30000 + i * 10000);
    g_at[4 * i + 2] = time_of_touch(mine + 100 * LINE, 32 * LINE, false);
    shmt_host()->sleep_until(BEGIN + 50000 + i * 10000);
    g_at[4 * i + 3] = time_of_touch(mine + 100 * LINE, 32 * LINE, false);
}

static void bytes_pass_through_one_queue_for_each_node(void **state) {
    (void)state;
    run_all(2, 1, "look=1ns,bandwidth=1GB/s,cache=1MiB", read_own_lines);
    const uint64_t first = g_at[0] < g_at[4] ? g_at[0] : g_at[4], second = g_at[0] < g_at[4] ? g_at[4] : g_at[0];
    assert_int_equal(first, 640);
    assert_in_range(second, 1270, 1280); /* has come with it, or a look later */
    assert_int_equal(g_at[1], 0);        /* from its cache */
    assert_int_equal(g_at[2], 2048);
    assert_int_equal(g_at[3], 0);
    run_all(2, 1, "look=1ns,bandwidth=1GB/s,nodes=2", read_own_lines);
    assert_int_equal(g_at[0], 640);
    assert_int_equal(g_at[4], 640);
    run_all(2, 1, "look=1ns,bandwidth=1GB/s,cache=1KiB", read_own_lines); /* 16 lines */
    assert_int_equal(g_at[3], 2048);
}

/* The longer of both counts: lines one after the other, or bytes. */
static void write_another_ones_lines(void *arg, uint32_t i) {
    (void)arg;
    shmt_host()->sleep_until(BEGIN + (i + 1) * 10000);
    g_at[i] = time_of_touch(g_memory, 10 * LINE, true);
}

static void lines_and_bytes_go_side_by_side(void **state) {
    (void)state;
    run_all(2, 1, "look=1ns,line=80ns,bandwidth=1GB/s", write_another_ones_lines);
    assert_int_equal(g_at[0], 640);
    assert_int_equal(g_at[1], 800);
    run_all(2, 1, "look=1ns,line=50ns,bandwidth=1GB/s", write_another_ones_lines);
    assert_int_equal(g_at[1], 640);
}

/* Many lines, over and over, by chance. */
static const char *g_base;

static void touch_by_chance(void *arg, uint32_t i) {
    (void)arg;
    for (uint64_t k = 0; k < 3000; k++) {
        const uint64_t bits = shmt_mix64(i << 16 | k);
        shmt_touch(g_base + (bits >> 8) % 5000 * LINE, 1 + (bits & 0x7f), bits >> 63);
        if (k % 8 == 0) shmt_spend(SHMT_SPENT_TOUCHING, 1);
    }
    g_at[i] = shmt_now_ns();
}

static void addresses_do_not_matter(void **state) {
    static const char SIM[] = "line=80ns,bandwidth=3GB/s,cache=64KiB,nodes=3,far=1.7x";
    uint64_t at[9];
    (void)state;
    g_base = g_memory;
    run_all(9, 2, SIM, touch_by_chance);
    memcpy(at, g_at, sizeof at);
    for (uint64_t shift = 1; shift < 20000; shift = 7 * shift + 3) {
        g_base = g_memory + shift * LINE;
        run_all(9, 2, SIM, touch_by_chance);
        assert_memory_equal(at, g_at, sizeof at);
    }
}

/* Reading, then writing: in between another one writes, and is undone. */
static void add_to_a_counter(void *arg, uint32_t i) {
    static uint32_t counter;
    (void)arg;
    if (i == 0) counter = 0;
    shmt_host()->sleep_until(BEGIN + 10000 + i * 60);
    const uint32_t read = counter;
    shmt_touch(&counter, sizeof counter, true);
    shmt_spend(SHMT_SPENT_RACING, 1);
    counter = read + 1;
    g_at[i] = counter;
}

static void a_race_opens_between_reading_and_writing(void **state) {
    (void)state;
    run_all(4, 1, "look=1ns,race=100ns", add_to_a_counter);
    assert_int_equal(g_at[3], 2); /* others come every 60 ns: every second one is lost */
    run_all(4, 1, "look=1ns,race=50ns", add_to_a_counter);
    assert_int_equal(g_at[3], 4);
    run_all(4, 1, "look=1ns,line=100ns", add_to_a_counter);
    assert_int_equal(g_at[3], 3); /* the first writer pays nothing */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_others_have_written_cost_time),
        cmocka_unit_test(lines_of_another_node_cost_more),
        cmocka_unit_test(nothing_is_touched_where_memory_takes_no_time),
        cmocka_unit_test(further_lines_of_a_call_cost_what_next_says),
        cmocka_unit_test(a_line_comes_to_one_at_a_time),
        cmocka_unit_test(bytes_pass_through_one_queue_for_each_node),
        cmocka_unit_test(lines_and_bytes_go_side_by_side),
        cmocka_unit_test(addresses_do_not_matter),
        cmocka_unit_test(a_race_opens_between_reading_and_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
