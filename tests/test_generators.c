/* The generators: the same bytes everywhere, any part alone, the shape that they promise, and a model that can be learned. */
#include "data_load.h"

#include <math.h>

#include "base/random.h"
#include "data/alias.h"
#include "data/order.h"
#include "data/planted.h"
#include "math/logistic.h"

static void assert_loads(struct loaded *l, const char *name, uint64_t seed, bool held_out, uint32_t n_parts) {
    const int status = load_name(l, name, seed, held_out, n_parts);
    if (status != 0) print_error("%s\n", l->error.text);
    assert_int_equal(status, 0);
}

/* ---- the same everywhere ---- */

/* The bytes on a little-endian machine. When the generator is changed on purpose, print the new ones; results of earlier
 * versions can then not be compared with later ones, which NEWS must say. */
static void the_bytes_are_frozen(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t seed, hash;
        bool held_out;
    } cases[] = {
        {"builtin:sparse:examples=2000", 1, 0x35a79889c84b0808, false},
        {"builtin:sparse:examples=2000", 1, 0x01e58501a7b57529, true},
        {"builtin:sparse:examples=500,features=1000,nonzeros=10", 42, 0xcda920e7148c9e45, false},
        {"builtin:dense:examples=500", 1, 0xb941ce002eaa9acd, false},
        {"builtin:dense:examples=500", 1, 0x6645a972504f0055, true},
        {"builtin:dense:examples=300,features=9,classes=2,noise=0.5", 42, 0xc067a14cc96b252d, false},
        {"builtin:digits:examples=200", 1, 0xd32ccbc21eae0b72, false},
        {"builtin:digits:examples=200", 1, 0xe60af268b72f7db1, true},
        {"builtin:digits:examples=100,noise=0", 42, 0x7bdf904f0ad7c406, false},
        {"builtin:line", 1, 0xa2da4f92cdacfb99, false},
        {"builtin:line:examples=100,noise=0.25", 7, 0x958198646211258d, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded l;
        assert_loads(&l, cases[i].name, cases[i].seed, cases[i].held_out, 1);
        const uint64_t hash = hash_data(&l);
        if (hash != cases[i].hash) print_error("%s: 0x%016llx\n", cases[i].name, (unsigned long long)hash);
        assert_int_equal(hash, cases[i].hash);
        load_free(&l);
    }
}

static void any_number_of_parts_gives_the_same_bytes(void **state) {
    (void)state;
    static const char *const names[] = {"builtin:sparse:examples=333,features=5000", "builtin:line:examples=100,noise=1",
                                        "builtin:sparse:examples=1", "builtin:dense:examples=50,classes=5",
                                        "builtin:digits:examples=30"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct loaded one, many;
        assert_loads(&one, names[i], 3, false, 1);
        const double best_loss = shmt_parts_best_loss(one.part, 1);
        for (uint32_t parts = 2; parts <= 17; parts++) {
            assert_loads(&many, names[i], 3, false, parts);
            assert_same_data(&one, &many);
            const double other = shmt_parts_best_loss(many.part, parts);
            assert_memory_equal(&best_loss, &other, sizeof other);
            load_free(&many);
        }
        load_free(&one);
    }
}

static void seeds_and_held_out_examples_differ(void **state) {
    (void)state;
    struct loaded a, seed, held_out;
    assert_loads(&a, "builtin:sparse:examples=100,valid=100", 1, false, 1);
    assert_loads(&seed, "builtin:sparse:examples=100,valid=100", 2, false, 1);
    assert_loads(&held_out, "builtin:sparse:examples=100,valid=100", 1, true, 1);
    assert_int_equal(held_out.totals.n_examples, 100);
    assert_true(hash_data(&a) != hash_data(&seed));
    assert_true(hash_data(&a) != hash_data(&held_out));
    load_free(&a);
    load_free(&seed);
    load_free(&held_out);
}

/* In the name it counts more than that of the run. */
static void a_seed_in_the_name_gives_the_same_data_whatever_the_run_has(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"builtin:sparse:examples=50", "builtin:sparse:examples=50,seed=7"},
        {"builtin:dense:examples=50", "builtin:dense:seed=7,examples=50"},
        {"builtin:line:noise=1", "builtin:line:noise=1,seed=7"},
        {"builtin:digits:examples=9", "builtin:digits:examples=9,seed=7"},
    };
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        struct loaded plain, named;
        assert_loads(&plain, names[i / 2][0], 7, i % 2 != 0, 1);
        assert_loads(&named, names[i / 2][1], 8, i % 2 != 0, 1);
        assert_same_data(&plain, &named);
        load_free(&plain);
        load_free(&named);
    }
}

static void a_larger_set_begins_with_the_smaller_one(void **state) {
    (void)state;
    struct loaded small, large;
    assert_loads(&small, "builtin:sparse:examples=50", 1, false, 2);
    assert_loads(&large, "builtin:sparse:examples=60", 1, false, 3);
    assert_memory_equal(small.arrays.id, large.arrays.id, small.totals.n_nonzeros * sizeof(uint32_t));
    assert_memory_equal(small.arrays.value, large.arrays.value, small.totals.n_nonzeros * sizeof(float));
    assert_memory_equal(small.arrays.label, large.arrays.label, 50 * sizeof(float));
    load_free(&small);
    load_free(&large);
}

/* ---- the shape of builtin:sparse ---- */

static void rows_are_shaped_like_news(void **state) {
    (void)state;
    struct loaded l;
    assert_loads(&l, "builtin:sparse:examples=20000", 5, false, 1);
    const uint64_t n = l.totals.n_examples;
    uint32_t *frequency = calloc(47236, sizeof *frequency), most = 0, shortest = UINT32_MAX, longest = 0;
    uint64_t positive = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t begin = l.arrays.start[i], end = l.arrays.start[i + 1];
        const uint32_t size = (uint32_t)(end - begin);
        shortest = size < shortest ? size : shortest;
        longest = size > longest ? size : longest;
        double square = 0;
        for (uint64_t k = begin; k < end; k++) {
            assert_true(l.arrays.id[k] < 47236 && l.arrays.value[k] > 0);
            assert_true(k == begin || l.arrays.id[k] > l.arrays.id[k - 1]);
            square += (double)l.arrays.value[k] * l.arrays.value[k];
            frequency[l.arrays.id[k]]++;
        }
        assert_true(fabs(square - 1) < 1e-6); /* rounding to float: 2^-24 relative for each value */
        assert_true(l.arrays.label[i] == -1 || l.arrays.label[i] == 1);
        positive += l.arrays.label[i] == 1;
    }
    for (uint32_t j = 0; j < 47236; j++) most = frequency[j] > most ? frequency[j] : most;
    assert_true(fabs((double)l.totals.n_nonzeros / (double)n - 74) < 1.5);
    assert_true(shortest >= 1 && shortest < 5 && longest > 200 && longest < 260);
    assert_true(most > n * 3 / 10 && most < n / 2); /* the most frequent word */
    assert_true(positive > n * 45 / 100 && positive < n * 55 / 100);
    assert_int_equal(l.totals.min_id, 0);
    assert_int_equal(l.totals.max_id, 47235);
    assert_int_equal(l.totals.labels.n, 2);
    assert_true(l.totals.mean_square == 1);
    free(frequency);
    load_free(&l);
}

static void frequent_features_are_scattered_over_the_ids(void **state) {
    (void)state;
    struct loaded l;
    assert_loads(&l, "builtin:sparse:examples=5000", 5, false, 1);
    uint64_t low = 0;
    for (uint64_t k = 0; k < l.totals.n_nonzeros; k++) low += l.arrays.id[k] < 47236 / 2;
    /* The 300 most frequent features hold half of the nonzeros; a coin for each gives 0.5 with a deviation of some 3 %. */
    assert_true(low > l.totals.n_nonzeros * 35 / 100 && low < l.totals.n_nonzeros * 65 / 100);
    load_free(&l);
}

static void the_alias_table_draws_with_the_given_weights(void **state) {
    (void)state;
    enum { N = 7, DRAWS = 700000 };
    static const double weight[N] = {1, 2, 4, 0.5, 10, 1e-9, 2.5};
    struct shmt_alias_slot slot[N];
    assert_int_equal(shmt_alias_make(weight, N, slot, NULL), 0);
    uint32_t count[N] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) count[shmt_alias_draw(slot, N, shmt_mix64(i))]++;
    for (uint32_t i = 0; i < N; i++) {
        const double expected = weight[i] / 20 * DRAWS;
        assert_true(fabs(count[i] - expected) <= 5 * sqrt(expected) + 1);
    }
}

/* ---- the planted model ---- */

static void the_best_possible_loss_is_about_the_same_for_other_keys(void **state) {
    (void)state;
    static const char *const names[] = {"builtin:sparse:examples=20000",
                                        "builtin:sparse:examples=20000,features=300,nonzeros=5",
                                        "builtin:sparse:examples=20000,features=500000,nonzeros=20",
                                        "builtin:sparse:examples=20000,features=20000,nonzeros=1000"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct loaded l;
        assert_loads(&l, names[i], 11, false, 2);
        const double best = shmt_parts_best_loss(l.part, 2);
        if (best < 0.22 || best > 0.36) print_error("%s: %g\n", names[i], best);
        assert_true(best > 0.22 && best < 0.36);
        load_free(&l);
    }
}

/* The labels follow the planted probabilities: among examples with margin about m, a share 1 / (1 + e^-m) is positive. */
static void the_planted_model_is_right_about_its_labels(void **state) {
    (void)state;
    enum { N = 40000, BINS = 12 };
    struct shmt_planted planted = {.seed = 3, .n_features = 47236, .nonzeros = 74};
    struct shmt_planted_example example;
    assert_int_equal(shmt_planted_init(&planted, NULL), 0);
    assert_int_equal(shmt_planted_example_init(&planted, &example, NULL), 0);
    double expected[BINS] = {0}, positive[BINS] = {0}, variance[BINS] = {0}, right = 0;
    for (uint64_t i = 0; i < N; i++) {
        shmt_planted_draw(&planted, SHMT_PLANTED_TRAIN, i, &example);
        assert_int_equal(example.n, shmt_planted_size(&planted, SHMT_PLANTED_TRAIN, i));
        double margin = 0;
        for (uint32_t k = 0; k < example.n; k++)
            margin += (double)shmt_planted_feature_of(&planted, example.id[k]).weight * example.value[k];
        const double p = 1 / (1 + exp(-margin));
        const int bin = margin < -6 ? 0 : margin >= 6 ? BINS - 1 : (int)(margin + 6);
        expected[bin] += p;
        variance[bin] += p * (1 - p);
        positive[bin] += example.label == 1;
        right += (margin > 0) == (example.label == 1);
        assert_true(fabs(example.loss - log1p(exp(-example.label * margin))) < 1e-5);
    }
    for (int bin = 0; bin < BINS; bin++) assert_true(fabs(positive[bin] - expected[bin]) < 5 * sqrt(variance[bin]) + 1);
    assert_true(right / N > 0.86 && right / N < 0.9);
    shmt_planted_example_fini(&example);
    shmt_planted_fini(&planted);
}

static float dot(const struct loaded *l, uint64_t i, const float *weight, float bias) {
    float sum = bias;
    for (uint64_t k = l->arrays.start[i]; k < l->arrays.start[i + 1]; k++) sum += weight[l->arrays.id[k]] * l->arrays.value[k];
    return sum;
}

/* One epoch of plain SGD; the rate falls with the square root of the epochs done. */
static void learn(const struct loaded *l, uint32_t epoch, float rate, float *weight, float *bias) {
    const uint64_t n = l->totals.n_examples;
    const struct shmt_order order = {1, n, true};
    uint32_t example[1024];
    for (uint64_t first = 0; first < n; first += 1024) {
        const uint32_t here = n - first < 1024 ? (uint32_t)(n - first) : 1024;
        shmt_order_fill(&order, epoch, first, here, example);
        const float rate_now = rate / sqrtf(1 + (float)epoch + (float)first / (float)n);
        for (uint32_t j = 0; j < here; j++) {
            const uint64_t i = example[j];
            const float y = l->arrays.label[i];
            float loss;
            const float step = -rate_now * y * shmt_logistic(y * dot(l, i, weight, *bias), &loss);
            *bias += 0.1f * step;
            for (uint64_t k = l->arrays.start[i]; k < l->arrays.start[i + 1]; k++)
                weight[l->arrays.id[k]] += step * l->arrays.value[k];
        }
    }
}

static void plain_sgd_comes_close_to_the_best_loss_in_five_epochs(void **state) {
    (void)state;
    struct loaded train, valid;
    assert_loads(&train, "builtin:sparse", 1, false, 2);
    assert_loads(&valid, "builtin:sparse", 1, true, 2);
    assert_int_equal(valid.totals.n_examples * 10, train.totals.n_examples);
    float *weight = calloc(47236, sizeof *weight), bias = 0;
    for (uint32_t epoch = 0; epoch < 5; epoch++) learn(&train, epoch, 0.5f, weight, &bias);
    double loss = 0, right = 0;
    const uint64_t n = valid.totals.n_examples;
    for (uint64_t i = 0; i < n; i++) {
        const float margin = valid.arrays.label[i] * dot(&valid, i, weight, bias);
        loss += shmt_logistic_loss(margin);
        right += margin > 0;
    }
    const double excess = loss / (double)n - shmt_parts_best_loss(valid.part, 2);
    if (excess > 0.03) print_error("%g above the best loss\n", excess);
    assert_true(excess > -0.005 && excess < 0.03);
    assert_true(right / (double)n > 0.85);
    free(weight);
    load_free(&train);
    load_free(&valid);
}

/* ---- columns, keys ---- */

static void ids_outside_the_columns_are_left_out(void **state) {
    (void)state;
    const struct shmt_columns columns[] = {COLUMNS(0, 100), COLUMNS(50, 1000), COLUMNS(0, 0), COLUMNS(0, 2999),
                                           COLUMNS(1, UINT32_MAX)};
    struct loaded all, some;
    assert_loads(&all, "builtin:sparse:examples=200,features=3000", 1, false, 1);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        struct shmt_source *source;
        assert_int_equal(shmt_source_open("builtin:sparse:examples=200,features=3000", 1, false, &source, NULL), 0);
        assert_int_equal(load_source(&some, source, 3, columns[c]), 0);
        uint64_t nonzero = 0;
        for (uint64_t i = 0; i < 200; i++) {
            assert_int_equal(some.arrays.start[i], nonzero);
            for (uint64_t k = all.arrays.start[i]; k < all.arrays.start[i + 1]; k++) {
                if (all.arrays.id[k] < columns[c].base || all.arrays.id[k] - columns[c].base >= columns[c].n_features) continue;
                assert_int_equal(some.arrays.id[nonzero], all.arrays.id[k] - columns[c].base);
                assert_true(some.arrays.value[nonzero++] == all.arrays.value[k]);
            }
        }
        assert_int_equal(some.totals.n_nonzeros, nonzero);
        assert_int_equal(some.arrays.start[200], nonzero);
        load_free(&some);
        shmt_source_close(source);
    }
    load_free(&all);
}

static void wrong_names_and_keys_are_refused_with_what_there_is(void **state) {
    (void)state;
    static const struct {
        const char *name, *sentence;
    } cases[] = {
        {"builtin:", "unknown data \"builtin:\"; use builtin:sparse, builtin:dense, builtin:digits or builtin:line"},
        {"builtin:spars:valid=3",
         "unknown data \"builtin:spars:valid=3\"; use builtin:sparse, builtin:dense, builtin:digits or builtin:line"},
        {"builtin:dense:labels=3",
         "builtin:dense has no key \"labels=3\"; its keys are examples, valid, features, classes, noise, seed, as in "
         "builtin:dense:examples=1000"},
        {"builtin:dense:classes=1", "builtin:dense: classes must be a whole number from 2 to 1024, not \"1\""},
        {"builtin:dense:features=0", "builtin:dense: features must be a whole number from 1 to 100000, not \"0\""},
        {"builtin:sparse:rows=3",
         "builtin:sparse has no key \"rows=3\"; its keys are examples, valid, features, nonzeros, seed, as in "
         "builtin:sparse:examples=1000"},
        {"builtin:line:noise",
         "builtin:line has no key \"noise\"; its keys are examples, valid, noise, seed, as in builtin:line:examples=1000"},
        {"builtin:digits:digits=3",
         "builtin:digits has no key \"digits=3\"; its keys are examples, valid, noise, seed, as in "
         "builtin:digits:examples=1000"},
        {"builtin:line:noise=-1", "builtin:line: noise must be a number from 0 to 1000000, not \"-1\""},
        {"builtin:line:noise=1x,valid=3", "builtin:line: noise must be a number from 0 to 1000000, not \"1x\""},
        {"builtin:line:noise=nan", "builtin:line: noise must be a number from 0 to 1000000, not \"nan\""},
        {"builtin:line:noise=3e36", "builtin:line: noise must be a number from 0 to 1000000, not \"3e36\""},
        {"builtin:sparse:examples=0", "builtin:sparse: examples must be a whole number from 1 to 4294967295, not \"0\""},
        {"builtin:sparse:examples=1e6", "builtin:sparse: examples must be a whole number from 1 to 4294967295, not \"1e6\""},
        {"builtin:sparse:examples=", "builtin:sparse: examples must be a whole number from 1 to 4294967295, not \"\""},
        {"builtin:sparse:examples= 5", "builtin:sparse: examples must be a whole number from 1 to 4294967295, not \" 5\""},
        {"builtin:sparse:examples=-5", "builtin:sparse: examples must be a whole number from 1 to 4294967295, not \"-5\""},
        {"builtin:sparse:examples=99999999999999999999999",
         "builtin:sparse: examples must be a whole number from 1 to 4294967295, not \"99999999999999999999999\""},
        {"builtin:sparse:features=100", "builtin:sparse: nonzeros must be at most a quarter of features, which is 25"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded l;
        assert_int_equal(load_name(&l, cases[i].name, 1, false, 1), SHMTRAIN_E_USAGE);
        assert_string_equal(l.error.text, cases[i].sentence);
    }
}

static void sources_say_what_they_are(void **state) {
    (void)state;
    static const char *const names[] = {"builtin:sparse:examples=1000,features=2000,nonzeros=20", "builtin:line:examples=1000",
                                        "builtin:dense:examples=1000"};
    static const char *const places[] = {"builtin:sparse example 17", "builtin:line example 17", "builtin:dense example 17"};
    for (size_t i = 0; i < 3; i++) {
        struct shmt_source *source;
        struct loaded l;
        char place[100], short_place[8];
        assert_int_equal(shmt_source_open(names[i], 1, false, &source, NULL), 0);
        assert_true(shmt_source_is_generator(source));
        shmt_source_place(source, 16, place, sizeof place);
        assert_string_equal(place, places[i]);
        shmt_source_place(source, 16, short_place, sizeof short_place);
        assert_string_equal(short_place, "builtin");
        assert_int_equal(load_source(&l, source, 1, SHMT_ALL_COLUMNS), 0);
        const double bytes = (double)(l.totals.n_examples * 12 + l.totals.n_nonzeros * 8);
        assert_true(fabs((double)shmt_source_guess_bytes(source, false) / bytes - 1) < 0.05);
        load_free(&l);
        shmt_source_close(source);
    }
    shmt_source_close(NULL);
}

/* ---- builtin:line ---- */

static void points_lie_on_the_line(void **state) {
    (void)state;
    struct loaded l;
    assert_loads(&l, "builtin:line", 1, false, 1);
    assert_int_equal(l.totals.n_examples, 1000);
    assert_int_equal(l.totals.n_nonzeros, 1000);
    assert_true(l.totals.labels.n > 900);
    assert_true(isnan(shmt_parts_best_loss(l.part, 1)));
    double mean = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        const float x = l.arrays.value[i];
        assert_int_equal(l.arrays.id[i], 0);
        assert_true(x > 0 && x < 1);
        assert_true(l.arrays.label[i] == (float)(0.1 * x + 0.3));
        mean += x / 1000;
    }
    assert_true(fabs(mean - 0.5) < 0.04);
    load_free(&l);
}

static void noise_has_the_deviation_that_was_asked_for(void **state) {
    (void)state;
    struct loaded l;
    assert_loads(&l, "builtin:line:examples=100,valid=20000,noise=0.5", 1, true, 3);
    assert_int_equal(l.totals.n_examples, 20000);
    double mean = 0, square = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        const double noise = l.arrays.label[i] - (0.1 * l.arrays.value[i] + 0.3);
        mean += noise / 20000;
        square += noise * noise / 20000;
    }
    assert_true(fabs(mean) < 0.02);
    assert_true(fabs(sqrt(square) - 0.5) < 0.015);
    load_free(&l);
}

/* ---- sums ---- */

static void sums_do_not_depend_on_their_order(void **state) {
    (void)state;
    struct shmt_sum up = {0, 0}, down = {0, 0}, halves[2] = {{0, 0}, {0, 0}};
    for (int i = 0; i < 1000; i++) shmt_sum_add(&up, shmt_unit(shmt_mix64((uint64_t)i)) * (i % 7 ? 1 : 1e9));
    for (int i = 1000; i-- > 0;) shmt_sum_add(&down, shmt_unit(shmt_mix64((uint64_t)i)) * (i % 7 ? 1 : 1e9));
    for (int i = 0; i < 1000; i++) shmt_sum_add(&halves[i % 2], shmt_unit(shmt_mix64((uint64_t)i)) * (i % 7 ? 1 : 1e9));
    shmt_sum_join(&halves[0], halves[1]);
    assert_memory_equal(&up, &down, sizeof up);
    assert_memory_equal(&up, halves, sizeof up);
}

static void sums_saturate_instead_of_wrapping(void **state) {
    (void)state;
    static const double huge[] = {0x1p64, 1e300, INFINITY, NAN};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        struct shmt_sum sum = {1, 0};
        shmt_sum_add(&sum, huge[i]);
        assert_true(shmt_sum_value(sum) == 0x1p64);
        shmt_sum_add(&sum, 1.5);
        assert_true(shmt_sum_value(sum) == 0x1p64);
    }
    struct shmt_sum full = {UINT64_MAX, UINT64_MAX / 2 + 1};
    shmt_sum_add(&full, 0.25);
    assert_true(full.whole == UINT64_MAX && full.fraction == UINT64_MAX / 4 * 3 + 3);
    shmt_sum_add(&full, 0.5);
    assert_true(full.whole == UINT64_MAX && full.fraction == UINT64_MAX);
    struct shmt_sum sum = {0, 0};
    for (int i = 0; i < 3; i++) shmt_sum_add(&sum, 0.75);
    assert_true(shmt_sum_value(sum) == 2.25);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_frozen),
        cmocka_unit_test(any_number_of_parts_gives_the_same_bytes),
        cmocka_unit_test(seeds_and_held_out_examples_differ),
        cmocka_unit_test(a_seed_in_the_name_gives_the_same_data_whatever_the_run_has),
        cmocka_unit_test(a_larger_set_begins_with_the_smaller_one),
        cmocka_unit_test(rows_are_shaped_like_news),
        cmocka_unit_test(frequent_features_are_scattered_over_the_ids),
        cmocka_unit_test(the_alias_table_draws_with_the_given_weights),
        cmocka_unit_test(the_best_possible_loss_is_about_the_same_for_other_keys),
        cmocka_unit_test(the_planted_model_is_right_about_its_labels),
        cmocka_unit_test(plain_sgd_comes_close_to_the_best_loss_in_five_epochs),
        cmocka_unit_test(ids_outside_the_columns_are_left_out),
        cmocka_unit_test(wrong_names_and_keys_are_refused_with_what_there_is),
        cmocka_unit_test(sources_say_what_they_are),
        cmocka_unit_test(points_lie_on_the_line),
        cmocka_unit_test(noise_has_the_deviation_that_was_asked_for),
        cmocka_unit_test(sums_do_not_depend_on_their_order),
        cmocka_unit_test(sums_saturate_instead_of_wrapping),
    };
    return cmocka_run_group_tests_name("generators", tests, NULL, NULL);
}
