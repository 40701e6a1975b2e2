/* How items of an epoch are dealt to hosts, and passed on between them: consistency/shares.h, passing.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "consistency/passing.h"
#include "consistency/shares.h"

/* ---- shares of hosts ---- */

/* Whatever shares there are, each item is one host's, and nobody else's. */
static void assert_each_item_is_somebodys(const struct shmt_shares *shares, uint64_t items) {
    uint8_t had[1000] = {0};
    assert_true(items <= sizeof had);
    for (uint32_t host = 0; host < shares->n_hosts; host++) {
        struct shmt_share share;
        shmt_share_of(shares, host, &share);
        assert_true(share.n_own > 0);
        for (uint64_t i = 0, n = shmt_share_items(&share, items); i < n; i++) {
            const uint64_t item = shmt_share_item(&share, i);
            assert_true(item < items && !had[item]);
            had[item] = 1;
        }
    }
    for (uint64_t i = 0; i < items; i++) assert_int_equal(had[i], 1);
}

static void each_item_is_one_hosts_whatever_the_shares(void **state) {
    static const uint64_t ITEMS[] = {0, 1, 2, 63, 255, 256, 257, 999};
    (void)state;
    for (uint32_t n = 1; n <= 64; n++) {
        struct shmt_shares shares;
        uint64_t busy[64], done[64];
        shmt_shares_equal(n, &shares);
        for (uint32_t round = 0; round < 6; round++) {
            for (size_t k = 0; k < sizeof ITEMS / sizeof *ITEMS; k++) assert_each_item_is_somebodys(&shares, ITEMS[k]);
            for (uint32_t host = 0; host < n; host++) { /* also what cannot be */
                busy[host] = 1 + shmt_hash64(n, round, host, 0) % (round % 2 ? 100 : UINT64_MAX - 1);
                done[host] = 8 + shmt_hash64(n, round, host, 1) % (round % 3 ? 1000 : UINT64_MAX / 2);
            }
            const struct shmt_shares last = shares;
            shmt_shares_by_speed(&last, done, busy, &shares);
        }
    }
}

/* Hosts of speeds that stay take the same time after some epochs, to a few percent. */
static void shares_follow_speeds(void **state) {
    static const uint64_t PACE[3] = {1000, 1300, 4000}; /* ns for an item */
    struct shmt_shares shares, next;
    uint64_t busy[3], done[3], least = 0, most = 0;
    (void)state;
    shmt_shares_equal(3, &shares);
    for (uint32_t epoch = 0; epoch < 8; epoch++) {
        least = UINT64_MAX, most = 0;
        for (uint32_t host = 0; host < 3; host++) {
            struct shmt_share share;
            shmt_share_of(&shares, host, &share);
            done[host] = shmt_share_items(&share, 100000);
            busy[host] = done[host] * PACE[host];
            least = busy[host] < least ? busy[host] : least;
            most = busy[host] > most ? busy[host] : most;
        }
        if (epoch == 0) assert_true(most > 3 * least);
        shmt_shares_by_speed(&shares, done, busy, &next);
        shares = next;
    }
    assert_true((double)most < 1.07 * (double)least);
}

static void what_differs_little_or_was_not_measured_changes_no_share(void **state) {
    static const uint64_t BUSY[][2] = {{1000, 1000}, {1000, 1040}, {0, 1000}, {0, 0}}, DONE[] = {50000, 50000}, FEW[] = {8, 7};
    struct shmt_shares equal, next;
    (void)state;
    shmt_shares_equal(2, &equal);
    for (size_t i = 0; i < sizeof BUSY / sizeof *BUSY; i++) {
        shmt_shares_by_speed(&equal, DONE, BUSY[i], &next);
        assert_memory_equal(&next, &equal, sizeof equal);
    }
    shmt_shares_by_speed(&equal, FEW, (const uint64_t[]){1, 1000}, &next);
    assert_memory_equal(&next, &equal, sizeof equal);
}

/* Some of the items were passed on, so that all were done at the same time: their speeds still tell. */
static void who_did_the_items_of_others_gets_more_of_its_own(void **state) {
    static const uint64_t DONE[] = {75000, 25000}, BUSY[] = {1000000, 1000000};
    struct shmt_shares equal, next;
    struct shmt_share share;
    (void)state;
    shmt_shares_equal(2, &equal);
    shmt_shares_by_speed(&equal, DONE, BUSY, &next);
    shmt_share_of(&next, 0, &share);
    assert_int_equal(share.n_own, 160);                                   /* of 256: half of the way from 128 to 192 */
    shmt_shares_by_speed(&equal, (const uint64_t[]){99, 1}, BUSY, &next); /* one has passed on nearly all of its 50 */
    shmt_share_of(&next, 1, &share);
    assert_in_range(share.n_own, 64, 67);
}

/* ---- passing items on ---- */

#define MS 1000000

static uint64_t all_of(const uint64_t *n, uint32_t n_hosts) {
    uint64_t sum = 0;
    for (uint32_t host = 0; host < n_hosts; host++) sum += n[host];
    return sum;
}

static void hosts_that_are_behind_pass_items_on(void **state) {
    static const struct shmt_headway HALF[] = {{100, MS, MS, false}, {0, MS, MS, true}},
                                     SLOW[] = {{300, 3 * MS, MS, false}, {300, MS, MS, false}},
                                     MANY[] = {{10, MS, 0, false}, {90, MS, 0, false}, {0, MS, 0, true}, {60, MS, 0, false}},
                                     NEW[] = {{100, MS, MS, false}, {0, 0, MS, true}};
    static const struct shmt_headway LAST[] = {{1, MS, 0, false}, {0, MS, 0, true}},
                                     SLOWER[] = {{1, MS, 0, false}, {0, 9 * MS, 0, true}};
    uint64_t n[4];
    (void)state;
    shmt_passing_plan(LAST, 2, 0, n); /* who gives it has another one in hand */
    assert_int_equal(n[1], 1);
    shmt_passing_plan(SLOWER, 2, 0, n); /* who waits would be done later with it */
    assert_int_equal(all_of(n, 2), 0);
    shmt_passing_plan(HALF, 2, 0, n);
    assert_true(n[0] == 0 && n[1] == 50);
    shmt_passing_plan(HALF, 2, 1, n);
    assert_int_equal(all_of(n, 2), 0);
    shmt_passing_plan(SLOW, 2, 0, n); /* then each has 450 ms to go */
    assert_int_equal(n[1], 150);
    shmt_passing_plan(MANY, 4, 1, n); /* 40 each */
    assert_true(n[0] == 30 && n[2] == 20 && n[3] == 0);
    shmt_passing_plan(MANY, 4, 3, n);
    assert_true(n[0] == 0 && n[2] == 20);
    shmt_passing_plan(NEW, 2, 0, n); /* who had no item at all is as fast as the others */
    assert_int_equal(n[1], 50);
}

static void what_brings_the_end_hardly_nearer_is_not_passed_on(void **state) {
    static const struct shmt_headway NEAR[] = {{100, MS, MS, false}, {90, MS, MS, false}}, /* 5 % */
        FAR_AWAY[] = {{100, MS, 30 * MS, false}, {0, MS, MS, true}},                       /* it would come too late */
        UNKNOWN[] = {{100, 0, 0, false}, {100, MS, 0, false}, {0, MS, 0, true}},           /* one cannot tell */
        NONE[] = {{0, MS, 0, true}, {0, MS, 0, true}};
    const struct shmt_headway *const CASES[] = {NEAR, FAR_AWAY, UNKNOWN, NONE};
    uint64_t n[2];
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (uint32_t self = 0; self < 2; self++) {
            shmt_passing_plan(CASES[i], 2, self, n);
            assert_int_equal(all_of(n, 2), 0);
        }
}

/* Also of numbers that cannot be: nobody gives more than it has, nor gets more than brings it to what it should have. */
static void plans_of_all_hosts_fit_together(void **state) {
    struct shmt_headway of[64];
    uint64_t n[64], to[64];
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const uint32_t n_hosts = 1 + (uint32_t)(shmt_hash64(seed, 0, 0, 0) % 64);
        uint64_t left = 0;
        for (uint32_t host = 0; host < n_hosts; host++) {
            const uint64_t most = seed % 4 ? 1000 : UINT32_MAX, r = shmt_hash64(seed, host, 1, 0);
            of[host] = (struct shmt_headway){.left = r % 3 ? r % most : 0,
                                             .waits = r % 3 == 0,
                                             .each_ns = r % 7 || seed % 2 ? 1 + r % (seed % 5 ? 10 * MS : UINT64_MAX) : 0};
            left += of[host].left;
        }
        memset(to, 0, sizeof to);
        for (uint32_t self = 0; self < n_hosts; self++) {
            shmt_passing_plan(of, n_hosts, self, n);
            assert_true(all_of(n, n_hosts) <= of[self].left && n[self] == 0);
            for (uint32_t host = 0; host < n_hosts; host++) to[host] += n[host];
        }
        for (uint32_t host = 0; host < n_hosts; host++) assert_true(to[host] == 0 || to[host] + of[host].left <= left);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_item_is_one_hosts_whatever_the_shares),
        cmocka_unit_test(shares_follow_speeds),
        cmocka_unit_test(what_differs_little_or_was_not_measured_changes_no_share),
        cmocka_unit_test(who_did_the_items_of_others_gets_more_of_its_own),
        cmocka_unit_test(hosts_that_are_behind_pass_items_on),
        cmocka_unit_test(what_brings_the_end_hardly_nearer_is_not_passed_on),
        cmocka_unit_test(plans_of_all_hosts_fit_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
