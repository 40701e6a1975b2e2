/* The order of an epoch: that it is a permutation, the same for everybody, different each time, and that it mixes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "data/order.h"

static uint32_t *whole_epoch(uint64_t seed, uint32_t epoch, uint32_t n, bool shuffle) {
    uint32_t *example = malloc(n * sizeof *example);
    assert_non_null(example);
    const struct shmt_order order = {seed, n, shuffle};
    shmt_order_fill(&order, epoch, 0, n, example);
    return example;
}

static const uint32_t SIZES[] = {1,    2,    3,    4,    5,    63,   64,   65,    127,   128,    129,     640,
                                 4000, 4095, 4096, 4097, 4159, 4160, 4161, 12345, 65536, 100000, 1000003, 1048577};

static void each_example_comes_once_per_epoch(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++) {
        const uint32_t n = SIZES[k];
        for (uint32_t epoch = 0; epoch < 5; epoch++) {
            uint32_t *example = whole_epoch(17, epoch, n, true);
            unsigned char *seen = calloc(n, 1);
            for (uint32_t i = 0; i < n; i++) {
                assert_true(example[i] < n);
                assert_int_equal(seen[example[i]]++, 0);
            }
            free(seen);
            free(example);
        }
    }
}

static void any_part_of_the_order_can_be_asked_for(void **state) {
    (void)state;
    const uint32_t n = 9001, steps[] = {1, 7, 64, 1000, 4096, 5000};
    uint32_t *example = whole_epoch(5, 2, n, true), part[5000];
    const struct shmt_order order = {5, n, true};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        for (uint32_t first = 0; first < n; first += steps[k]) {
            const uint32_t here = n - first < steps[k] ? n - first : steps[k];
            shmt_order_fill(&order, 2, first, here, part);
            assert_memory_equal(part, example + first, here * sizeof *part);
        }
    }
    free(example);
}

static void the_largest_data_is_in_range(void **state) {
    (void)state;
    const struct shmt_order order = {3, UINT32_MAX, true};
    uint32_t example[4096];
    for (uint64_t first = 0; first < UINT32_MAX; first += (uint64_t)1 << 28) {
        shmt_order_fill(&order, 1, first, 4096, example);
        for (uint32_t i = 0; i < 4096; i++) assert_true(example[i] < UINT32_MAX);
    }
    shmt_order_fill(&order, 1, UINT32_MAX - (uint64_t)1, 1, example);
    assert_true(example[0] < UINT32_MAX);
}

static void without_shuffling_a_place_is_its_example(void **state) {
    (void)state;
    const struct shmt_order order = {9, 1000, false};
    uint32_t example[100];
    shmt_order_fill(&order, 3, 850, 100, example);
    for (uint32_t i = 0; i < 100; i++) assert_int_equal(example[i], 850 + i);
}

static uint32_t n_equal(const uint32_t *a, const uint32_t *b, uint32_t n) {
    uint32_t equal = 0;
    for (uint32_t i = 0; i < n; i++) equal += a[i] == b[i];
    return equal;
}

static void epochs_and_seeds_have_different_orders(void **state) {
    (void)state;
    const uint32_t n = 100000;
    uint32_t *a = whole_epoch(1, 0, n, true), *epoch = whole_epoch(1, 1, n, true), *seed = whole_epoch(2, 0, n, true);
    uint32_t *none = whole_epoch(1, 0, n, false);
    /* Two random permutations agree in one place on average. Blocks may agree as wholes, so a few dozen are nothing unusual. */
    assert_true(n_equal(a, epoch, n) < 200);
    assert_true(n_equal(a, seed, n) < 200);
    assert_true(n_equal(a, none, n) < 200);
    free(a);
    free(epoch);
    free(seed);
    free(none);
}

static uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }

static void runs_of_eight_stay_together_and_end_up_far_apart(void **state) {
    (void)state;
    enum { RUN = 8 };
    const uint32_t n = 100000, whole = n - n % 4096; /* the last window is shuffled one by one */
    uint32_t *example = whole_epoch(4, 0, n, true);
    uint64_t jumps = 0, broken = 0, neighbours = 0;
    for (uint32_t i = 0; i < whole; i += RUN) {
        for (uint32_t k = 1; k < RUN; k++) broken += example[i + k] != example[i] + k;
        if (i == 0) continue;
        jumps += distance(example[i], example[i - RUN]);
        neighbours += distance(example[i], example[i - RUN]) == RUN;
    }
    /* Two random examples are n / 3 apart on average; within a window a run is next to another once in some 250 times. The
     * short block in their midst breaks some runs in two. */
    assert_true(jumps / (whole / RUN) > n / 4 && jumps / (whole / RUN) < n / 2);
    assert_true(neighbours < whole / RUN / 100);
    assert_true(broken < whole / RUN / 4);
    free(example);
}

static void small_data_are_shuffled_one_by_one(void **state) {
    (void)state;
    const uint32_t n = 4095;
    uint32_t *example = whole_epoch(4, 0, n, true), neighbours = 0;
    for (uint32_t i = 1; i < n; i++) neighbours += distance(example[i], example[i - 1]) == 1;
    assert_true(neighbours < n / 500);
    free(example);
}

static void a_window_uses_the_memory_of_its_blocks_only(void **state) {
    (void)state;
    const uint32_t n = 100000;
    uint32_t *example = whole_epoch(6, 3, n, true);
    for (uint32_t first = 0; first + 4096 <= n; first += 4096) {
        unsigned char seen[100000 / 64 + 1] = {0};
        uint32_t blocks = 0;
        for (uint32_t i = 0; i < 4096; i++) blocks += seen[example[first + i] / 64]++ == 0;
        assert_true(blocks <= 66);
    }
    free(example);
}

/* Pearson's statistic for where `n` things came up in `draws` draws; its mean is n - 1, its variance 2 (n - 1). */
static double chi_square(const uint32_t *count, uint32_t n, uint32_t draws) {
    const double expected = (double)draws / n;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (count[i] - expected) * (count[i] - expected) / expected;
    return sum;
}

static void over_epochs_every_example_is_as_likely_at_a_place(void **state) {
    (void)state;
    enum { N = 1000, EPOCHS = 100000 };
    const uint64_t places[] = {0, 500, 999};
    const struct shmt_order order = {8, N, true};
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        uint32_t count[N] = {0}, example;
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
            shmt_order_fill(&order, epoch, places[k], 1, &example);
            count[example]++;
        }
        assert_true(chi_square(count, N, EPOCHS) < 999 + 6 * 45); /* six standard deviations */
    }
}

static void places_of_different_runs_are_independent_over_epochs(void **state) {
    (void)state;
    enum { N = 6400, EPOCHS = 100000, BINS = 20 };
    const struct shmt_order order = {8, N, true};
    uint32_t count[BINS * BINS] = {0}, example[2];
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        shmt_order_fill(&order, epoch, 1231, 2, example); /* 1231 ends one run, 1232 begins the next */
        count[example[0] * BINS / N * BINS + example[1] * BINS / N]++;
    }
    assert_true(chi_square(count, BINS * BINS, EPOCHS) < 399 + 6 * 28);
}

/* A run that is resumed must go on in the order in which it began, also with a later version. */
static void the_order_is_frozen(void **state) {
    (void)state;
    static const uint32_t frozen[8] = {73976, 33274, 84852, 39110, 14873, 6412, 6441, 80980};
    uint32_t example[8];
    const struct shmt_order order = {7, 100000, true};
    for (uint32_t i = 0; i < 4; i++) {
        shmt_order_fill(&order, 3, 10 * i, 1, &example[i]);
        shmt_order_fill(&order, 3, 99990 + i, 1, &example[4 + i]); /* of the last window, which is short */
    }
    assert_memory_equal(example, frozen, sizeof frozen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_example_comes_once_per_epoch),
        cmocka_unit_test(any_part_of_the_order_can_be_asked_for),
        cmocka_unit_test(the_largest_data_is_in_range),
        cmocka_unit_test(without_shuffling_a_place_is_its_example),
        cmocka_unit_test(epochs_and_seeds_have_different_orders),
        cmocka_unit_test(runs_of_eight_stay_together_and_end_up_far_apart),
        cmocka_unit_test(small_data_are_shuffled_one_by_one),
        cmocka_unit_test(a_window_uses_the_memory_of_its_blocks_only),
        cmocka_unit_test(over_epochs_every_example_is_as_likely_at_a_place),
        cmocka_unit_test(places_of_different_runs_are_independent_over_epochs),
        cmocka_unit_test(the_order_is_frozen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
