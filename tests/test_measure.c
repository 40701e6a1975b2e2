/* Tests of measuring: figures, helpers, floors that come to an end with a number, and what shmtrain bench prints. Never of how
 * long anything took. */
#include "bench/floors/barriers.h"
#include "bench/runs/examples.h"
#include "bench/floors/figure.h"
#include "bench/floors/floors.h"
#include "bench/floors/stream.h"
#include "bench/measure/measure.h"
#include "bench/runs/text_file.h"

#include <math.h>
#include <setjmp.h>
#include <shmtrain/shmtrain.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

/* ---- figures ---- */

static void quartiles_lie_between_neighbours_by_distance(void **state) {
    (void)state;
    struct shmt_figure f = {0};
    static const double X[] = {40, 10, 30, 20};
    for (int i = 0; i < 4; i++) shmt_figure_add(&f, X[i]);
    assert_true(shmt_figure_quartile(&f, 1) == 17.5);
    assert_true(shmt_figure_median(&f) == 25);
    assert_true(shmt_figure_quartile(&f, 3) == 32.5);
    shmt_figure_add(&f, 100);
    assert_true(shmt_figure_median(&f) == 30);
}

static void a_figure_without_rounds_is_no_number(void **state) {
    (void)state;
    const struct shmt_figure f = {0};
    assert_true(isnan(shmt_figure_median(&f)));
}

static void more_rounds_than_a_figure_has_room_for_are_left_out(void **state) {
    (void)state;
    struct shmt_figure f = {0};
    for (int i = 0; i < SHMT_MOST_ROUNDS + 10; i++) shmt_figure_add(&f, i);
    assert_int_equal(f.n, SHMT_MOST_ROUNDS);
}

/* Others may use the machine or not: without time to waste every round counts, and is counted as noisy at most. */
static void every_round_counts_where_no_time_may_be_wasted(void **state) {
    (void)state;
    struct shmt_rounds r = {0};
    for (int i = 0; i < 3; i++) {
        shmt_round_begin(&r);
        assert_true(shmt_round_end(&r));
    }
    assert_int_equal(r.n_again, 0);
    assert_true(r.n_noisy <= 3);
}

/* ---- helpers ---- */

enum { MEETINGS = 200 };
struct crew {
    struct shmt_meeting meeting;
    _Atomic uint32_t turn[3];
    uint32_t n_early; /* by rank 0: who was seen behind a meeting without having come */
};

static void meet_often(void *arg, uint32_t rank) {
    struct crew *crew = arg;
    for (uint32_t i = 1; i <= MEETINGS; i++) {
        store_relaxed(&crew->turn[rank], i);
        shmt_meet_all(&crew->meeting, rank, 3);
        for (int other = 0; other < 3; other++)
            if (rank == 0 && load_relaxed(&crew->turn[other]) < i) crew->n_early++;
    }
}

static void nobody_leaves_a_meeting_before_all_have_come(void **state) {
    (void)state;
    struct crew *crew = shmt_measure_shared(sizeof *crew);
    shmt_helpers_run(3, meet_often, crew);
    for (int i = 0; i < 3; i++) assert_int_equal(load_relaxed(&crew->turn[i]), MEETINGS);
    assert_int_equal(crew->n_early, 0);
    shmt_measure_unshare(crew, sizeof *crew);
}

static void break_down(void *arg, uint32_t rank) {
    (void)arg;
    if (rank == 1) shmt_measure_fail("no luck for %u", rank);
}

static void say(const char *sentence) { dprintf(STDOUT_FILENO, "%s\n", sentence); }

static void what_goes_wrong_in_a_helper_is_said_and_ends_all(void **state) {
    (void)state;
    int ends[2], status;
    char text[128] = "";
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        shmt_measure_on_failure(say);
        shmt_helpers_run(2, break_down, NULL);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(strncmp(text, "no luck for 1\n", 14), 0);
}

/* ---- floors ---- */

static void floors_are_numbers(void **state) {
    (void)state;
    const struct shmt_floor_sizes sizes = {
        .bytes = 1 << 20, .multiplications = 1000, .jumps = 1000, .trips = 10, .wakes = 3, .matches = 2};
    struct shmt_floors *f = shmt_floors_make(&sizes);
    assert_true(shmt_floor_read(f, 1) > 0);
    assert_true(shmt_floor_read(f, 3) > 0);
    assert_true(shmt_floor_write(f, 2) > 0);
    assert_true(shmt_floor_random(f) > 0);
    assert_false(shmt_floor_random_huge(f) <= 0); /* NaN where there are none */
    assert_true(shmt_floor_compute_factor(f) > 0);
    assert_false(shmt_floor_sgemm(f, 16) <= 0);
    if (shmt_measure_cores() >= 2) { /* two on one core would take turns for as long as a time slice */
        assert_true(isfinite(shmt_floor_line(f)));
        assert_true(isfinite(shmt_floor_wake(f)));
    }
    shmt_floors_free(f);
}

static void barriers_of_two_and_of_many_come_to_an_end(void **state) {
    (void)state;
    struct shmt_barriers b;
    shmt_barriers_run(2, 5, 1, &b);
    for (int kind = 0; kind < SHMT_BARRIERS; kind++) assert_true(b.ns[kind] > 0);
    shmt_barriers_run(5, 5, 1, &b);
    assert_true(b.ns[SHMT_BARRIER_LINE] == 0); /* a ball is for two */
    for (int kind = SHMT_BARRIER_MEETING; kind < SHMT_BARRIERS; kind++) assert_true(b.ns[kind] > 0);
}

/* One example per line, and what is loaded from them is as much. */
static void text_holds_examples_and_can_be_loaded(void **state) {
    (void)state;
    struct shmtrain_data data;
    struct shmt_text_file file;
    shmt_make_examples(1 << 16, 500, 12, &data);
    shmt_text_file_make(&data, 1 << 30, &file);
    uint64_t lines = 0, colons = 0;
    for (uint64_t i = 0; i < file.bytes; i++) {
        lines += ((const char *)file.at)[i] == '\n';
        colons += ((const char *)file.at)[i] == ':';
    }
    assert_int_equal(lines, data.n_examples);
    assert_int_equal(colons, data.n_nonzeros);
    assert_true(shmt_text_file_load(&file, 2) > 0);
    shmt_text_file_free(&file);
}

/* ---- what is printed ---- */

static void add_quartiles(struct shmt_figure *f, double low, double median, double high) {
    const double x[] = {low, low, median, high, high};
    for (int i = 0; i < 5; i++) shmt_figure_add(f, x[i]);
}

/* Of two floors and two operations the second one could not be measured. */
static struct shmt_bench *made_up(void) {
    struct shmt_bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    *b = (struct shmt_bench){.quick = true,
                             .cores = 128,
                             .rounds = 9,
                             .noisy = 2,
                             .seconds = 100,
                             .bytes = 512 << 20,
                             .cpu = "avx512",
                             .n_floors = 2,
                             .n_operations = 2};
    for (int i = 0; i < 2; i++) {
        struct shmt_bench_line *f = &b->floor[i], *o = &b->operation[i];
        memset(f->name, 'n', sizeof f->name - 1);
        memset(o->name, 'n', sizeof o->name - 1);
        f->unit = "GFLOP/s";
        o->unit = "ns/example";
        o->on = "ffffffffffffffffffffffffffffffffffffffffffffffffffff";
    }
    add_quartiles(&b->floor[0].of, 123456789, 123456789, 123456789);
    b->operation[0].of = b->operation[0].floor = b->floor[0].of;
    add_quartiles(&b->operation[0].share, 0.123, 1, 1.5);
    return b;
}

static char *printed(void (*print)(const struct shmt_bench *bench, FILE *out)) {
    struct shmt_bench *b = made_up();
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    print(b, out);
    assert_int_equal(fclose(out), 0);
    free(b);
    return text;
}

static void lines_are_at_most_80_columns_wide(void **state) {
    (void)state;
    char *text = printed(shmt_bench_text);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
    assert_non_null(strstr(text, "100.0 %  [12.3 .. 150.0]\n"));
    assert_non_null(strstr(text, "      - %\n"));
    assert_non_null(strstr(text, " could not be measured\n"));
    assert_non_null(strstr(text, "Other programs used the processors in 2 of 9 rounds"));
    free(text);
}

static void json_has_null_for_what_could_not_be_measured(void **state) {
    (void)state;
    char *text = printed(shmt_bench_json);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    assert_int_equal(json_integer_value(json_object_get(o, "noisy_rounds")), 2);
    const json_t *floors = json_object_get(o, "floors"), *operations = json_object_get(o, "operations");
    assert_int_equal(json_array_size(floors), 2);
    assert_int_equal(json_array_size(operations), 2);
    const json_t *value = json_object_get(json_array_get(floors, 0), "value");
    assert_true(json_number_value(json_object_get(value, "median")) == 123456789);
    value = json_object_get(json_array_get(operations, 0), "share");
    assert_true(json_number_value(json_object_get(value, "high")) == 1.5);
    value = json_object_get(json_array_get(operations, 1), "share");
    assert_true(json_is_null(json_object_get(value, "median")));
    json_decref(o);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quartiles_lie_between_neighbours_by_distance),
        cmocka_unit_test(a_figure_without_rounds_is_no_number),
        cmocka_unit_test(more_rounds_than_a_figure_has_room_for_are_left_out),
        cmocka_unit_test(every_round_counts_where_no_time_may_be_wasted),
        cmocka_unit_test(nobody_leaves_a_meeting_before_all_have_come),
        cmocka_unit_test(what_goes_wrong_in_a_helper_is_said_and_ends_all),
        cmocka_unit_test(floors_are_numbers),
        cmocka_unit_test(barriers_of_two_and_of_many_come_to_an_end),
        cmocka_unit_test(text_holds_examples_and_can_be_loaded),
        cmocka_unit_test(lines_are_at_most_80_columns_wide),
        cmocka_unit_test(json_has_null_for_what_could_not_be_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
