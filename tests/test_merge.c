/* Merging copies of the parameters: the arithmetic of update/merge.h against plain loops in double, what it must keep, and which
 * word of which rule is merged how. Damped merging is in test_merge_damped.c, what merging does in a run in test_replicas.c. */
#include "merge_help.h"

#include <pthread.h>

#include "update/live.h"
#include "update/parts.h"

static const struct shmt_merging MEAN = {SHMT_MERGING_MEAN, 1, false}, SUM = {SHMT_MERGING_SUM, 1, false};

/* ---- together ---- */

/* What the master's word i becomes, in double. */
static double mean_of_changes(uint32_t n, uint32_t i) {
    double sum = 0, count = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (same_bits(before->replica[k][i], before->master[i])) continue;
        sum += (double)before->replica[k][i] - (double)before->master[i];
        count++;
    }
    return (double)before->master[i] + (count > 0 ? sum / count : 0);
}

static double sum_of_changes(uint32_t n, uint32_t i) {
    double sum = before->master[i];
    for (uint32_t k = 0; k < n; k++) sum += (double)before->replica[k][i] - (double)before->master[i];
    return sum;
}

static void check_equal_copies(uint32_t n) {
    for (uint32_t k = 0; k < n; k++) assert_memory_equal(after->replica[k], after->master, sizeof after->master);
}

static void together_mean_and_sum_are_those_of_the_changes(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= MOST; n++)
        for (uint32_t tenths = 0; tenths <= 10; tenths += 5) {
            fill(tenths, false, false);
            assert_int_equal(shmt_merge_all(MEAN, after->master, after->at, n, N, NULL), tenths > 0);
            for (uint32_t i = 0; i < N; i++) assert_near(after->master[i], mean_of_changes(n, i));
            check_equal_copies(n);
            fill(tenths, false, false);
            assert_int_equal(shmt_merge_all(SUM, after->master, after->at, n, N, NULL), tenths > 0);
            for (uint32_t i = 0; i < N; i++) assert_near(after->master[i], sum_of_changes(n, i));
            check_equal_copies(n);
        }
}

/* The mean of what all have changed is the plain one: parameter averaging. */
static void together_a_word_that_all_have_changed_becomes_the_mean_of_all(void **state) {
    (void)state;
    fill(10, false, false);
    shmt_merge_all(MEAN, after->master, after->at, MOST, N, NULL);
    for (uint32_t i = 0; i < 200; i++) {
        double mean = 0;
        for (uint32_t k = 0; k < MOST; k++) mean += (double)before->replica[k][i] / MOST;
        assert_near(after->master[i], mean);
    }
}

static void together_what_cancels_out_leaves_nothing(void **state) {
    static const struct shmt_merging *const HOW[] = {&MEAN, &SUM};
    (void)state;
    for (size_t h = 0; h < 2; h++) {
        fill(0, false, false);
        for (uint32_t i = 0; i < N; i++) {
            after->master[i] = 0;
            for (uint32_t k = 0; k < 4; k++)
                after->replica[k][i] = k % 2 ? 1e-37f : -1e-37f; /* so that nothing small is lost */
        }
        assert_int_equal(shmt_merge_all(*HOW[h], after->master, after->at, 4, N, NULL), true);
        for (uint32_t i = 0; i < N; i++) assert_true(after->master[i] == 0);
        check_equal_copies(4);
    }
}

static void together_what_one_alone_has_changed_is_taken_bit_by_bit(void **state) {
    static const float ODD[] = {-0.0f, 1e-42f, 3e38f, 0.1f};
    (void)state;
    for (int sum = 0; sum < 2; sum++) {
        fill(0, false, false);
        for (uint32_t i = 0; i < 4; i++) after->master[i] = before->master[i] = i == 0 ? 0.0f : 1.7f;
        for (uint32_t k = 0; k < MOST; k++) memcpy(after->replica[k], after->master, sizeof after->master);
        for (uint32_t i = 0; i < 4; i++) after->replica[i][i] = ODD[i];
        after->replica[4][N - 1] = 0.3f; /* the step that is not whole */
        assert_true(shmt_merge_all(sum ? SUM : MEAN, after->master, after->at, MOST, N, NULL));
        for (uint32_t i = 0; i < 4; i++) assert_true(same_bits(after->master[i], ODD[i]));
        assert_true(same_bits(after->master[N - 1], 0.3f));
        assert_memory_equal(after->master + 4, before->master + 4, (N - 5) * sizeof(float));
        check_equal_copies(MOST);
    }
}

static void together_what_is_no_number_shows(void **state) {
    (void)state;
    for (int sum = 0; sum < 2; sum++) {
        fill(5, false, false);
        after->replica[1][7] = NAN;
        shmt_merge_all(sum ? SUM : MEAN, after->master, after->at, MOST, N, NULL);
        assert_true(isnan(after->master[7]) && isnan(after->replica[0][7]) && !isnan(after->master[8]));
    }
}

/* ---- elastic ---- */

static void elastic_pulls_both_ways_and_keeps_the_sum(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= MOST; n++) {
        const struct shmt_merging how = shmt_merging_of(SHMT_MERGE_ELASTIC, SHMT_RULE_SGD, 0, n);
        const double a = 0.9 / n;
        assert_int_equal(how.kind, SHMT_MERGING_ELASTIC);
        assert_near(how.share, a);
        fill(7, false, false);
        assert_true(shmt_merge_all(how, after->master, after->at, n, N, NULL));
        for (uint32_t i = 0; i < N; i++) {
            double m = before->master[i], kept = before->master[i], now = after->master[i];
            for (uint32_t k = 0; k < n; k++) {
                const double d = a * ((double)before->replica[k][i] - (double)before->master[i]);
                assert_near(after->replica[k][i], (double)before->replica[k][i] - d);
                m += d;
                kept += (double)before->replica[k][i];
                now += (double)after->replica[k][i];
            }
            assert_near(after->master[i], m);
            assert_true(fabs(now - kept) < 1e-5);
        }
    }
}

/* Of replicas that rest, the master becomes the mean in the end: a step takes 0.9 of what is missing. */
static void elastic_comes_to_the_mean_of_those_who_rest(void **state) {
    const struct shmt_merging how = shmt_merging_of(SHMT_MERGE_ELASTIC, SHMT_RULE_SGD, 0, 4);
    (void)state;
    fill(10, false, false);
    for (int step = 0; step < 100; step++) shmt_merge_all(how, after->master, after->at, 4, N, NULL);
    for (uint32_t i = 0; i < N; i++) {
        double mean = (double)before->master[i] / 5;
        for (uint32_t k = 0; k < 4; k++) mean += (double)before->replica[k][i] / 5;
        assert_true(fabs((double)after->master[i] - mean) < 1e-5);
    }
}

/* ---- over many hosts ---- */

/* What hosts of n_each copies make of all of them: each has a master of its own. */
static void merge_parts(struct shmt_merging how, uint32_t n_hosts, uint32_t n_each, float *out) {
    static struct shmt_merge_part part[MOST];
    for (uint64_t at = 0; at < N; at += SHMT_PART_FLOATS) {
        const uint64_t n = N - at < SHMT_PART_FLOATS ? N - at : SHMT_PART_FLOATS, half = n / 2;
        uint32_t n_parts = 0;
        for (uint32_t host = 0; host < n_hosts; host++) {
            float *copy[MOST], *behind[MOST];
            bool any = false;
            for (uint32_t k = 0; k < n_each; k++) copy[k] = before->replica[host * n_each + k] + at;
            for (uint32_t k = 0; k < n_each; k++) behind[k] = copy[k] + half;
            part[n_parts] = (struct shmt_merge_part){0}; /* in two steps, as where two tables meet */
            any |= shmt_merge_part_take(how, before->master + at, copy, n_each, half, 0, &part[n_parts]);
            any |= shmt_merge_part_take(how, before->master + at + half, behind, n_each, n - half, half, &part[n_parts]);
            n_parts += any;
        }
        shmt_merge_parts(how, before->master + at, part, n_parts, half, 0, out + at);
        shmt_merge_parts(how, before->master + at + half, part, n_parts, n - half, half, out + at + half);
    }
}

static void parts_of_hosts_come_to_what_one_host_makes_of_all_copies(void **state) {
    static const struct shmt_merging AVERAGE = {SHMT_MERGING_AVERAGE, 1, false}, *const HOW[] = {&MEAN, &SUM, &AVERAGE};
    float out[N];
    (void)state;
    for (int i = 0; i < 27; i++) {
        const struct shmt_merging how = *HOW[i % 3];
        const uint32_t n_each = i / 9 == 0 ? 1 : i / 9 == 1 ? 2 : 4;
        fill((uint32_t)(i / 3 % 3) * 5, false, false);
        for (uint32_t k = 0; k < 3; k++) before->replica[k][k] = after->replica[k][k] = k == 0 ? -0.0f : NAN;
        merge_parts(how, MOST / n_each, n_each, out);
        shmt_merge_all(how, after->master, after->at, MOST, N, NULL);
        for (uint32_t k = 0; k < N; k++) {
            uint32_t changed = 0;
            for (uint32_t r = 0; r < MOST; r++) changed += !same_bits(before->replica[r][k], before->master[k]);
            if (n_each == 1 || changed < 2)
                assert_true(same_bits(out[k], after->master[k])); /* the same sums */
            else if (!isnan(after->master[k]))
                assert_near(out[k], (double)after->master[k]);
            assert_int_equal(isnan(out[k]), isnan(after->master[k]));
        }
    }
}

static void weights_that_follow_and_state_of_ones_own_are_no_parts(void **state) {
    static const struct shmt_merging FOLLOWS = {SHMT_MERGING_FOLLOWS, 1, false}, OWN = {SHMT_MERGING_OWN, 1, false};
    struct shmt_merge_part part;
    (void)state;
    fill(10, false, false);
    assert_false(shmt_merge_part_take(FOLLOWS, before->master, before->at, MOST, 100, 0, &part));
    assert_false(shmt_merge_part_take(OWN, before->master, before->at, MOST, 100, 0, &part));
}

/* ---- alone ---- */

/* What each of them becomes, in double. */
static void check_alone(struct shmt_merging how, uint32_t k) {
    for (uint32_t i = 0; i < N; i++) {
        const double m = before->master[i], r = before->replica[k][i], b = before->base[k][i], share = how.share;
        const double d = how.kind == SHMT_MERGING_SUM || how.kind == SHMT_MERGING_MEAN ? share * (r - b) : share * (r - m);
        const bool moved = how.kind == SHMT_MERGING_ELASTIC || !same_bits(before->replica[k][i], before->base[k][i]);
        assert_near(after->master[i], moved ? m + d : m);
        if (how.kind == SHMT_MERGING_ELASTIC) {
            assert_near(after->replica[k][i], r - d);
            continue;
        }
        assert_true(same_bits(after->replica[k][i], after->master[i]) && same_bits(after->base[k][i], after->master[i]));
    }
}

static void alone_a_replica_brings_its_changes_and_takes_what_is_there(void **state) {
    static const struct shmt_merging HOW[] = {{SHMT_MERGING_SUM, 1, false},
                                              {SHMT_MERGING_MEAN, 0.25f, false},
                                              {SHMT_MERGING_AVERAGE, 0.25f, false},
                                              {SHMT_MERGING_AVERAGE, 1, true},
                                              {SHMT_MERGING_ELASTIC, 0.9f / 8, false}};
    (void)state;
    for (size_t h = 0; h < sizeof HOW / sizeof *HOW; h++)
        for (int shared = 0; shared < 3; shared++) {
            fill(6, HOW[h].positive, true);
            float *base = HOW[h].kind == SHMT_MERGING_ELASTIC ? NULL : after->base[2];
            const bool changed = shared
                                     ? shmt_merge_shared(HOW[h], shared == 2, after->master, after->replica[2], base, N, NULL)
                                     : shmt_merge_one(HOW[h], after->master, after->replica[2], base, N, NULL);
            assert_true(changed);
            check_alone(HOW[h], 2);
            if (base) assert_false(shmt_merge_looks_due(HOW[h], after->master, after->replica[2], base, N));
            if (base)
                assert_false(shmt_merge_one(HOW[h], after->master, after->replica[2], base, N, NULL)); /* nothing is left */
        }
}

static void alone_a_single_replica_is_taken_bit_by_bit(void **state) {
    static const enum shmt_merge MERGES[] = {SHMT_MERGE_MEAN, SHMT_MERGE_SUM};
    (void)state;
    for (int m = 0; m < 2; m++)
        for (uint32_t word = 0; word < 2; word++)
            for (int shared = 0; shared < 2; shared++) {
                const struct shmt_merging how = shmt_merging_of(MERGES[m], SHMT_RULE_MOMENTUM, word, 1);
                fill(5, false, false);
                if (shared)
                    shmt_merge_shared(how, false, after->master, after->replica[0], after->base[0], N, NULL);
                else
                    shmt_merge_one(how, after->master, after->replica[0], after->base[0], N, NULL);
                assert_memory_equal(after->master, before->replica[0], sizeof after->master);
                assert_memory_equal(after->replica[0], before->replica[0], sizeof after->master);
            }
}

/* Whole numbers add up exactly: all changes of all replicas are in the master, whenever each of them merges. */
static void alone_sums_lose_nothing_in_any_order(void **state) {
    double expected[N] = {0};
    (void)state;
    memset(after, 0, sizeof *after);
    for (uint64_t round = 0; round < 200; round++) {
        const uint64_t h = shmt_hash64(round, 1, 2, 3), k = h % MOST;
        for (uint32_t i = (uint32_t)(h >> 32) % 7; i < N; i += 1 + (uint32_t)(h >> 40) % 5) {
            after->replica[k][i] += 1;
            expected[i]++;
        }
        if (h >> 20 & 1) shmt_merge_one(SUM, after->master, after->replica[k], after->base[k], N, NULL);
    }
    for (int twice = 0; twice < 2; twice++)
        for (uint32_t k = 0; k < MOST; k++) shmt_merge_one(SUM, after->master, after->replica[k], after->base[k], N, NULL);
    for (uint32_t i = 0; i < N; i++) {
        assert_true((double)after->master[i] == expected[i]);
        for (uint32_t k = 0; k < MOST; k++) assert_true(after->replica[k][i] == after->master[i]);
    }
}

/* Second moments that decay at their own pace in each replica: a sum of stale differences would pass below 0. */
static void averages_of_squares_never_fall_below_zero(void **state) {
    (void)state;
    fill(0, true, false);
    const struct shmt_merging how = shmt_merging_of(SHMT_MERGE_SUM, SHMT_RULE_ADAM, 2, MOST);
    assert_true(how.kind == SHMT_MERGING_AVERAGE && how.positive);
    for (uint64_t round = 0; round < 300; round++) {
        const uint64_t h = shmt_hash64(round, 4, 4, 4), k = round < 100 ? h % 2 : h % MOST; /* the others come late */
        for (uint32_t i = 0; i < N; i++) after->replica[k][i] *= (float)(h % 7) / 8;
        if (round % 5 == 4) {
            shmt_merge_all(how, after->master, after->at, MOST, N, NULL);
            for (uint32_t i = 0; i < MOST; i++) memcpy(after->base[i], after->master, sizeof after->master);
        } else {
            shmt_merge_one(how, after->master, after->replica[k], after->base[k], N, NULL);
        }
        for (uint32_t i = 0; i < N; i++) assert_true(after->master[i] >= 0 && after->replica[k][i] >= 0);
    }
}

/* ---- alone, while others push ---- */

enum { PUSHES = 200 * N };

struct pusher {
    float *replica;
    bool atomic;
    _Atomic uint32_t over;
};

static void *push_ones(void *arg) {
    struct pusher *p = arg;
    for (uint64_t i = 0; i < PUSHES; i++) {
        _Atomic float *word = (_Atomic float *)(p->replica + i % N);
        float found = load_relaxed(word);
        if (p->atomic)
            while (!swap_relaxed(word, &found, found + 1)) continue;
        else
            shmt_live_store(p->replica + i % N, found + 1);
    }
    store_release(&p->over, 1); /* pairs with the acquire in push_while_merging */
    return NULL;
}

/* Two replicas, each with somebody who pushes ones to it while it is merged: the sum of the master in the end. */
static double push_while_merging(bool atomic) {
    struct pusher pusher[2];
    pthread_t thread[2];
    double sum = 0;
    memset(after, 0, sizeof *after);
    for (int k = 0; k < 2; k++) {
        pusher[k] = (struct pusher){.replica = after->replica[k], .atomic = atomic};
        assert_int_equal(pthread_create(&thread[k], NULL, push_ones, &pusher[k]), 0);
    }
    for (int round = 0; !load_acquire(&pusher[0].over) || !load_acquire(&pusher[1].over); round++) /* pairs with push_ones */
        shmt_merge_shared(SUM, atomic, after->master, after->replica[round % 2], after->base[round % 2], N, NULL);
    for (int k = 0; k < 2; k++) pthread_join(thread[k], NULL);
    for (int round = 0; round < 4; round++)
        shmt_merge_one(SUM, after->master, after->replica[round % 2], after->base[round % 2], N, NULL);
    for (uint32_t i = 0; i < N; i++) sum += (double)after->master[i];
    assert_memory_equal(after->replica[0], after->master, sizeof after->master);
    assert_memory_equal(after->replica[1], after->master, sizeof after->master);
    return sum;
}

static void pushes_beside_a_merge_are_lost_only_where_pushes_may_be(void **state) {
    (void)state;
    assert_true(push_while_merging(true) == 2 * PUSHES);
    assert_true(push_while_merging(false) <= 2 * PUSHES); /* nothing comes twice */
}

/* ---- state ---- */

struct row {
    enum shmt_rule_kind rule;
    uint32_t word;
    const char *kinds; /* with mean, sum, elastic; damped as sum, of which it takes a share */
    bool positive;
};

/* The table of update/merge.h. */
static void each_word_of_a_rule_is_merged_as_the_table_says(void **state) {
    static const enum shmt_merging_kind KIND[] = {
        ['M'] = SHMT_MERGING_MEAN,    ['S'] = SHMT_MERGING_SUM, ['A'] = SHMT_MERGING_AVERAGE,
        ['E'] = SHMT_MERGING_ELASTIC, ['O'] = SHMT_MERGING_OWN, ['F'] = SHMT_MERGING_FOLLOWS};
    static const struct row TABLE[] = {
        {SHMT_RULE_SGD, 0, "MSE", false},     {SHMT_RULE_MOMENTUM, 0, "MSE", false}, {SHMT_RULE_MOMENTUM, 1, "AAO", false},
        {SHMT_RULE_ADAGRAD, 0, "MSE", false}, {SHMT_RULE_ADAGRAD, 1, "MSO", true},   {SHMT_RULE_ADAM, 0, "MSE", false},
        {SHMT_RULE_ADAM, 1, "AAO", false},    {SHMT_RULE_ADAM, 2, "AAO", true},      {SHMT_RULE_ADAM, 3, "AAO", true},
        {SHMT_RULE_ADAM, 4, "AAO", true},     {SHMT_RULE_FTRL, 0, "FFF", false},     {SHMT_RULE_FTRL, 1, "MSO", false},
        {SHMT_RULE_FTRL, 2, "MSO", true},     {SHMT_RULE_NESTEROV, 0, "MSE", false}, {SHMT_RULE_NESTEROV, 1, "AAO", false},
        {SHMT_RULE_RMSPROP, 0, "MSE", false}, {SHMT_RULE_RMSPROP, 1, "AAO", true},   {SHMT_RULE_ADADELTA, 0, "MSE", false},
        {SHMT_RULE_ADADELTA, 1, "AAO", true}, {SHMT_RULE_ADADELTA, 2, "AAO", true},  {SHMT_RULE_ADAMW, 0, "MSE", false},
        {SHMT_RULE_ADAMW, 1, "AAO", false},   {SHMT_RULE_ADAMW, 2, "AAO", true},     {SHMT_RULE_ADAMW, 3, "AAO", true},
        {SHMT_RULE_ADAMW, 4, "AAO", true}};
    (void)state;
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
        const struct row *row = &TABLE[i];
        const struct shmt_merging mean = shmt_merging_of(SHMT_MERGE_MEAN, row->rule, row->word, 4);
        const struct shmt_merging sum = shmt_merging_of(SHMT_MERGE_SUM, row->rule, row->word, 4);
        assert_int_equal(mean.kind, KIND[(int)row->kinds[0]]);
        assert_int_equal(sum.kind, KIND[(int)row->kinds[1]]);
        assert_int_equal(shmt_merging_of(SHMT_MERGE_ELASTIC, row->rule, row->word, 4).kind, KIND[(int)row->kinds[2]]);
        assert_int_equal(shmt_merging_of(SHMT_MERGE_DAMPED, row->rule, row->word, 4).kind, KIND[(int)row->kinds[1]]);
        assert_true(mean.positive == row->positive && sum.positive == row->positive);
        if (mean.kind == SHMT_MERGING_MEAN || mean.kind == SHMT_MERGING_AVERAGE) assert_true(mean.share == 0.25f);
        if (sum.kind == SHMT_MERGING_SUM) assert_true(sum.share == 1);
    }
}

static void state_of_ones_own_stays_and_its_mean_is_the_masters(void **state) {
    const struct shmt_merging own = shmt_merging_of(SHMT_MERGE_ELASTIC, SHMT_RULE_ADAGRAD, 1, MOST);
    (void)state;
    fill(8, true, false);
    assert_false(shmt_merge_all(own, after->master, after->at, MOST, N, NULL));
    assert_false(shmt_merge_one(own, after->master, after->replica[0], NULL, N, NULL));
    assert_false(shmt_merge_shared(own, false, after->master, after->replica[0], NULL, N, NULL));
    assert_memory_equal(after->master, before->master, sizeof after->master);
    assert_memory_equal(after->replica, before->replica, sizeof after->replica);
    shmt_merge_collect(after->master, after->at, MOST, N);
    for (uint32_t i = 0; i < N; i++) {
        double mean = 0;
        for (uint32_t k = 0; k < MOST; k++) mean += (double)before->replica[k][i] / MOST;
        assert_near(after->master[i], mean);
    }
    assert_memory_equal(after->replica, before->replica, sizeof after->replica);
}

/* ftrl's weights after a merge are those of its formula; a rule whose weights do not follow keeps them. */
static void weights_of_ftrl_follow_from_what_was_merged(void **state) {
    const struct shmt_rule rule = {.kind = SHMT_RULE_FTRL, .l1 = 0.3f, .l2 = 0.1f, .beta = 1, .epsilon = 1e-6f};
    struct shmt_update u;
    float words[2][N], weight[N], kept[N];
    (void)state;
    shmt_update_make(&rule, 0.2f, 0, &u);
    for (uint32_t i = 0; i < N; i++) {
        weight[i] = kept[i] = number(i, 1, 1);
        words[0][i] = number(i, 2, 1);
        words[1][i] = fabsf(number(i, 3, 1));
    }
    shmt_merge_follow(SHMT_RULE_SGD, weight, words[0], N, N, &u);
    assert_memory_equal(weight, kept, sizeof weight);
    shmt_merge_follow(SHMT_RULE_FTRL, weight, words[0], N, N, &u);
    for (uint32_t i = 0; i < N; i++) {
        const double z = words[0][i], n = words[1][i], l1 = (double)0.3f;
        const double w = fabs(z) <= l1 ? 0 : -(z - copysign(l1, z)) / ((1 + sqrt(n)) / (double)0.2f + (double)0.1f);
        assert_near(weight[i], w);
    }
    u.l1 = u.l2 = u.beta = 0;
    words[1][5] = 0; /* never updated, and nothing holds it: it rests */
    weight[5] = 0.7f;
    shmt_merge_follow(SHMT_RULE_FTRL, weight, words[0], N, N, &u);
    assert_true(weight[5] == 0.7f);
}

static void elastic_ftrl_is_refused_in_a_sentence(void **state) {
    struct shmt_policy policy = {.replicas = SHMT_REPLICAS_WORKER, .merge_every = 1, .merge = SHMT_MERGE_ELASTIC};
    struct shmt_rule rule = {.kind = SHMT_RULE_FTRL};
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_merge_check(&rule, &policy, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "--merge mean, sum or damped"));
    policy.replicas = SHMT_REPLICAS_ONE;
    assert_int_equal(shmt_merge_check(&rule, &policy, NULL), 0);
    policy.replicas = SHMT_REPLICAS_NODE;
    policy.merge = SHMT_MERGE_SUM;
    assert_int_equal(shmt_merge_check(&rule, &policy, NULL), 0);
    policy.merge = SHMT_MERGE_ELASTIC;
    rule.kind = SHMT_RULE_ADAM;
    assert_int_equal(shmt_merge_check(&rule, &policy, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(together_mean_and_sum_are_those_of_the_changes),
        cmocka_unit_test(together_a_word_that_all_have_changed_becomes_the_mean_of_all),
        cmocka_unit_test(together_what_cancels_out_leaves_nothing),
        cmocka_unit_test(together_what_one_alone_has_changed_is_taken_bit_by_bit),
        cmocka_unit_test(together_what_is_no_number_shows),
        cmocka_unit_test(parts_of_hosts_come_to_what_one_host_makes_of_all_copies),
        cmocka_unit_test(weights_that_follow_and_state_of_ones_own_are_no_parts),
        cmocka_unit_test(elastic_pulls_both_ways_and_keeps_the_sum),
        cmocka_unit_test(elastic_comes_to_the_mean_of_those_who_rest),
        cmocka_unit_test(alone_a_replica_brings_its_changes_and_takes_what_is_there),
        cmocka_unit_test(alone_a_single_replica_is_taken_bit_by_bit),
        cmocka_unit_test(alone_sums_lose_nothing_in_any_order),
        cmocka_unit_test(averages_of_squares_never_fall_below_zero),
        cmocka_unit_test(pushes_beside_a_merge_are_lost_only_where_pushes_may_be),
        cmocka_unit_test(each_word_of_a_rule_is_merged_as_the_table_says),
        cmocka_unit_test(state_of_ones_own_stays_and_its_mean_is_the_masters),
        cmocka_unit_test(weights_of_ftrl_follow_from_what_was_merged),
        cmocka_unit_test(elastic_ftrl_is_refused_in_a_sentence),
    };
    return cmocka_run_group_tests(tests, make_copies, free_copies);
}
