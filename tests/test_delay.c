/* ps: delays by size, and whom a seat waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "ps/delay.h"
#include "ps/waits.h"

static int deadline(void **state) {
    (void)state;
    alarm(60);
    return 0;
}

/* ---- buckets ---- */

/* Each bucket begins where the one before ends: every delay is in exactly one. */
static void buckets_follow_one_another(void **state) {
    (void)state;
    assert_true(shmt_delay_from(0) == 0);
    for (uint32_t b = 0; b < SHMT_DELAY_BUCKETS; b++) {
        assert_true(shmt_delay_from(b) <= shmt_delay_to(b));
        if (b > 0) assert_true(shmt_delay_from(b) == shmt_delay_to(b - 1) + 1);
        assert_int_equal(shmt_delay_bucket(shmt_delay_from(b)), b);
        assert_int_equal(shmt_delay_bucket(shmt_delay_to(b)), b);
    }
    assert_true(shmt_delay_to(SHMT_DELAY_BUCKETS - 1) == UINT64_MAX);
}

static void each_delay_is_between_the_ends_of_its_bucket(void **state) {
    (void)state;
    for (uint32_t power = 0; power < 64; power++)
        for (int64_t near = -3; near <= 3; near++) {
            const uint64_t delay = (UINT64_C(1) << power) + (uint64_t)near;
            const uint32_t b = shmt_delay_bucket(delay);
            if (b >= SHMT_DELAY_BUCKETS || delay < shmt_delay_from(b) || delay > shmt_delay_to(b))
                fail_msg("%llu is not in bucket %u", (unsigned long long)delay, b);
        }
}

static void small_delays_have_a_bucket_each_and_others_are_known_up_to_an_eighth(void **state) {
    (void)state;
    for (uint64_t delay = 0; delay < 16; delay++) assert_int_equal(shmt_delay_bucket(delay), delay);
    for (uint32_t b = 16; b + 1 < SHMT_DELAY_BUCKETS; b++)
        assert_true(8 * (shmt_delay_to(b) - shmt_delay_from(b) + 1) <= shmt_delay_from(b));
    assert_true(shmt_delay_from(SHMT_DELAY_BUCKETS - 1) >= UINT64_C(1) << 42);
}

/* ---- sums ---- */

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Delays of all sizes, in two seats; quantiles are held against the sorted list. */
static void quantiles_are_the_ends_of_the_right_buckets(void **state) {
    enum { N = 5000 };
    static uint64_t sorted[N];
    static struct shmt_delays seats[2];
    struct shmt_delay_sum sum = {0};
    double total = 0;
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        sorted[i] = shmt_mix64(i) >> (24 + shmt_mix64(i + N) % 40);
        shmt_delay_note(&seats[i % 2], sorted[i]);
        total += (double)sorted[i];
    }
    shmt_delay_add(&sum, &seats[0]);
    shmt_delay_add(&sum, &seats[1]);
    qsort(sorted, N, sizeof *sorted, by_size);
    assert_true(sum.samples == N && sum.max == sorted[N - 1]);
    assert_true(fabs(shmt_delay_mean(&sum) * N / total - 1) < 1e-12);
    for (int percent = 1; percent <= 100; percent++) {
        const uint64_t exact = sorted[N * percent / 100 - 1];
        const double told = shmt_delay_quantile(&sum, percent / 100.0);
        const uint64_t end = shmt_delay_to(shmt_delay_bucket(exact));
        if (told != (double)(end < sum.max ? end : sum.max))
            fail_msg("%d %%: %.0f, but the sample is %llu", percent, told, (unsigned long long)exact);
        assert_true(told >= (double)exact && (told - (double)exact) * 8 < fmax(1, (double)exact));
    }
}

static void one_sample_is_all_quantiles(void **state) {
    struct shmt_delays seat = {0};
    struct shmt_delay_sum sum = {0};
    (void)state;
    shmt_delay_note(&seat, 1025);
    shmt_delay_add(&sum, &seat);
    assert_true(shmt_delay_quantile(&sum, 0) == 1025 && shmt_delay_quantile(&sum, 0.5) == 1025);
    assert_true(shmt_delay_quantile(&sum, 1) == 1025 && shmt_delay_mean(&sum) == 1025);
}

static void without_samples_nothing_is_known(void **state) {
    const struct shmt_delay_sum sum = {0};
    (void)state;
    assert_true(isnan(shmt_delay_mean(&sum)) && isnan(shmt_delay_quantile(&sum, 0.5)));
}

/* ---- whom one waits for ---- */

static uint64_t ns_of(const struct shmt_waited_for *list, uint32_t rank) {
    for (uint32_t i = 0; i < SHMT_WAITED_FOR; i++)
        if (load_relaxed(&list[i].rank) == rank + 1) return load_relaxed(&list[i].ns);
    return 0;
}

static void few_are_known_exactly(void **state) {
    struct shmt_waited_for list[SHMT_WAITED_FOR];
    (void)state;
    memset(list, 0, sizeof list);
    for (uint64_t i = 0; i < 800; i++) shmt_waits_note(list, (uint32_t)(i % SHMT_WAITED_FOR), 1 + i % SHMT_WAITED_FOR);
    for (uint32_t rank = 0; rank < SHMT_WAITED_FOR; rank++)
        assert_true(ns_of(list, rank) == 800 / SHMT_WAITED_FOR * (rank + 1));
}

/* Of many, whoever took more of the time than the places are parts of it is in the list, with no less than its time, and too
 * much by at most one such part. */
static void heavy_ones_are_never_missed(void **state) {
    enum { RANKS = 1000, NOTES = 20000 };
    struct shmt_waited_for list[SHMT_WAITED_FOR];
    static uint64_t exact[RANKS];
    uint64_t all = 0, listed = 0;
    uint32_t n_heavy = 0;
    (void)state;
    memset(list, 0, sizeof list);
    for (uint64_t i = 0; i < NOTES; i++) {
        const uint64_t random = shmt_mix64(i);
        const uint32_t rank = random % 3 == 0 ? 17 : random % 4 == 0 ? 999 : (uint32_t)(random >> 8) % RANKS;
        const uint64_t ns = 1 + (random >> 40) % 1000;
        shmt_waits_note(list, rank, ns);
        exact[rank] += ns;
        all += ns;
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const uint64_t told = ns_of(list, rank);
        if (told == 0) assert_true(exact[rank] <= all / SHMT_WAITED_FOR);
        if (told > 0) assert_true(told >= exact[rank] && told - exact[rank] <= all / SHMT_WAITED_FOR);
        n_heavy += exact[rank] > all / SHMT_WAITED_FOR;
        listed += told;
    }
    assert_int_equal(n_heavy, 2);
    assert_true(listed == all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_follow_one_another),
        cmocka_unit_test(each_delay_is_between_the_ends_of_its_bucket),
        cmocka_unit_test(small_delays_have_a_bucket_each_and_others_are_known_up_to_an_eighth),
        cmocka_unit_test(quantiles_are_the_ends_of_the_right_buckets),
        cmocka_unit_test(one_sample_is_all_quantiles),
        cmocka_unit_test(without_samples_nothing_is_known),
        cmocka_unit_test(few_are_known_exactly),
        cmocka_unit_test(heavy_ones_are_never_missed),
    };
    return cmocka_run_group_tests_name("delay", tests, deadline, NULL);
}
