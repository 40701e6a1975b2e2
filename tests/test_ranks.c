/* Generated data of more features than there are tables for: ranks in steps, numbers in disorder, and the examples that are
 * made of them follow the same law as those of tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "data/planted.h"
#include "data/ranks.h"
#include "data/source.h"

static void steps_are_stretches_of_ranks(void **state) {
    (void)state;
    for (uint32_t step = 0; step < 16 * SHMT_RANK_STEPS; step++) {
        const uint32_t first = shmt_rank_of_step(step), end = shmt_rank_of_step(step + 1);
        assert_true(first < end && (end - first == 1 || end - first <= first / SHMT_RANK_STEPS));
        assert_true(shmt_step_of_rank(first) == step && shmt_step_of_rank(end - 1) == step);
        assert_true(shmt_step_of_rank(end) == step + 1);
    }
    assert_int_equal(shmt_step_of_rank((1u << 27) - 1), 16 * SHMT_RANK_STEPS - 1);
}

static void a_scatter_is_a_permutation_that_can_be_taken_back(void **state) {
    static unsigned char seen[70000];
    (void)state;
    for (uint32_t n = 1; n < 70000; n += n < 300 ? 1 : 9973) {
        struct shmt_scatter scatter;
        shmt_scatter_make(n, n, &scatter);
        memset(seen, 0, n);
        for (uint32_t x = 0; x < n; x++) {
            const uint32_t at = shmt_scatter_at(&scatter, x);
            assert_true(at < n && !seen[at]++);
            assert_int_equal(shmt_scatter_back(&scatter, at), x);
        }
    }
}

static int compare(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* 4,096 of 2^26 numbers, on lines of 16: by chance 2 pairs of them or so share one. */
static void neighbours_are_scattered_over_all_numbers(void **state) {
    enum { N = 4096, PARTS = 16 };
    uint32_t line[N], in_part[PARTS] = {0}, shared = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct shmt_scatter scatter;
        shmt_scatter_make(1u << 26, seed, &scatter);
        for (uint32_t x = 0; x < N; x++) line[x] = shmt_scatter_at(&scatter, x) / 16;
        for (uint32_t x = 0; x < N; x++) in_part[line[x] / ((1u << 22) / PARTS)]++;
        qsort(line, N, sizeof *line, compare);
        for (uint32_t x = 1; x < N; x++) shared += line[x] == line[x - 1];
    }
    assert_true(shared < 20 * N / 50);
    for (int i = 0; i < PARTS; i++) assert_true(in_part[i] > 20 * N / PARTS / 2 && in_part[i] < 20 * N / PARTS * 2);
}

/* The sum of the weights of ranks from .. to - 1, as planted.h has them. */
static double weight_of(uint32_t n, uint32_t from, uint32_t to) {
    double sum = 0;
    for (uint32_t r = from; r < to; r++) sum += 1 / (((double)r + 20) * (1 + (double)r / (0.1 * n)));
    return sum;
}

/* Ten nonzeros: so few that drawing without repetition changes little. */
static void many_features_are_drawn_by_the_law(void **state) {
    enum { EXAMPLES = 20000 };
    static const uint32_t EDGES[] = {0, 10, 100, 1000, 10000, 100000, 1000000, SHMT_PLANTED_TABLED + 1000};
    enum { N = sizeof EDGES / sizeof *EDGES - 1 };
    struct shmt_planted planted = {.seed = 5, .n_features = EDGES[N], .nonzeros = 10};
    struct shmt_planted_example example;
    uint64_t drawn[N] = {0}, n = 0;
    double loss = 0;
    (void)state;
    assert_int_equal(shmt_planted_init(&planted, NULL), 0);
    assert_int_equal(shmt_planted_example_init(&planted, &example, NULL), 0);
    for (uint64_t i = 0; i < EXAMPLES; i++) {
        shmt_planted_draw(&planted, SHMT_PLANTED_TRAIN, i, &example);
        double square = 0;
        assert_int_equal(example.n, shmt_planted_size(&planted, SHMT_PLANTED_TRAIN, i));
        for (uint32_t k = 0; k < example.n; k++) {
            const uint32_t rank = shmt_scatter_back(&planted.scatter, example.id[k]);
            uint32_t bin = 0;
            assert_true(k == 0 || example.id[k] > example.id[k - 1]);
            while (rank >= EDGES[bin + 1]) bin++;
            drawn[bin]++;
            square += (double)example.value[k] * example.value[k];
        }
        assert_true(fabs(square - 1) < 1e-5);
        n += example.n;
        loss += example.loss;
    }
    const double all = weight_of(EDGES[N], 0, EDGES[N]);
    for (int i = 0; i < N; i++) {
        const double share = weight_of(EDGES[N], EDGES[i], EDGES[i + 1]) / all, is = (double)drawn[i] / (double)n;
        if (fabs(is - share) > 0.01) fail_msg("ranks from %u: %g instead of %g of all", EDGES[i], is, share);
    }
    assert_true(loss / EXAMPLES > 0.2 && loss / EXAMPLES < 0.35); /* as easy as other data */
    shmt_planted_example_fini(&example);
    shmt_planted_fini(&planted);
}

static void features_are_2_to_the_27_at_most(void **state) {
    struct shmt_source *source;
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_source_open("builtin:sparse:examples=5,features=134217728", 1, 0, &source, &e), 0);
    struct shmt_part part = {0};
    assert_int_equal(shmt_source_count(source, &SHMT_ALL_COLUMNS, 0, 1, NULL, &part), 0);
    assert_int_equal(part.max_id, (1u << 27) - 1);
    shmt_source_close(source);
    assert_int_equal(shmt_source_open("builtin:sparse:examples=5,features=134217729", 1, 0, &source, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "134217728"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_stretches_of_ranks),
        cmocka_unit_test(a_scatter_is_a_permutation_that_can_be_taken_back),
        cmocka_unit_test(neighbours_are_scattered_over_all_numbers),
        cmocka_unit_test(many_features_are_drawn_by_the_law),
        cmocka_unit_test(features_are_2_to_the_27_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
