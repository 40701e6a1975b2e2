/* Dual ascent: one coordinate of the logistic loss whatever its numbers are, and the hinge where interior points lead nowhere. */
#include "solve_help.h"

#include "solve/ascent.h"

/* ---- one coordinate ---- */

/* f of ascent.h, which grows. */
static long double f(long double t, double before, double m, double c, double bend) {
    return t + m + (long double)bend * (c / (1 + expl(-t)) - before);
}

/* Where the dual is best, by bisection alone. */
static double best(double before, double m, double c, double bend) {
    const long double far = 1 + fabsl((long double)m) + (long double)bend * c;
    long double low = -far, high = far;
    for (int k = 0; k < 160; k++) {
        const long double t = 0.5L * (low + high);
        if (f(t, before, m, c, bend) < 0)
            low = t;
        else
            high = t;
    }
    return (double)(c / (1 + expl(-0.5L * (low + high))));
}

/* What rounding leaves open: m and bend * before are known to so much of themselves, and what f loses by that, u has of it. */
static double blur(double m, double c, double bend, double at) {
    const double curve = at * (1 - at / c), unknown = 4e-15 * (fabs(m) + bend * c);
    return 4e-15 * c + (unknown < 1 ? unknown * curve / (1 + bend * curve) : unknown / bend);
}

static void assert_best(double before, double m, double c, double bend) {
    const double u = shmt_ascent_best_of_logistic(before, m, c, bend), there = best(before, m, c, bend);
    const bool within = u >= 0 && u <= c;
    const bool near = fabs(u - there) <= 0.03 * fabs(before - there) + blur(m, c, bend, there);
    if (!within || !near)
        fail_msg("before %.17g, m %.17g, c %.17g, bend %.17g: %.17g, not %.17g", before, m, c, bend, u, there);
}

/* Values from 1e-8 to 1e8, C from 1e-6 to 1e6, weights from 1e-3 to 1e3; bend = |x|^2 C. */
static void a_coordinate_goes_to_its_best_whatever_the_numbers_are(void **state) {
    static const double PARTS[] = {0, 1e-300, 1e-12, 1e-3, 0.5, 0.999, 1};
    (void)state;
    for (int size = -8; size <= 8; size += 2)
        for (int price = -6; price <= 6; price += 3)
            for (int weight = -3; weight <= 3; weight += 3)
                for (int margin = -12; margin <= 16; margin += 2)
                    for (size_t k = 0; k < 2 * sizeof PARTS / sizeof *PARTS; k++) {
                        const double c = pow(10, weight), bend = pow(10, 2 * size + price);
                        assert_best(c * PARTS[k / 2], (k % 2 ? -1 : 1) * pow(10, margin), c, bend);
                    }
    g_seed = 3;
    for (int k = 0; k < 5000; k++) {
        const double c = pow(10, 6 * uniform() - 3), bend = pow(10, 44 * uniform() - 22), size = pow(10, 30 * uniform() - 12);
        assert_best(c * pow(uniform(), 4), uniform() < 0.5 ? size : -size, c, bend);
    }
}

static void what_is_no_number_moves_no_coordinate(void **state) {
    (void)state;
    assert_true(shmt_ascent_best_of_logistic(0.25, NAN, 1, 1) == 0.25);
    assert_true(shmt_ascent_best_of_logistic(0.25, 1, 1, NAN) == 0.25);
    assert_true(shmt_ascent_best_of_logistic(0.25, 1, 1, INFINITY) == 0.25);
}

/* ---- where interior points lead nowhere ---- */

/* Each row has the same seven columns, in order, whose values are huge. */
static void make_huge(struct lab *lab) {
    for (uint64_t at = 0; at < lab->start[N]; at++) {
        lab->id[at] = (uint32_t)(at % PER_ROW);
        lab->value[at] *= 1e8F;
    }
}

/* Of which two are the same, one is constant, and one tiny. */
static void make_uneven(struct lab *lab) {
    for (uint64_t i = 0; i < N; i++) {
        float *x = lab->value + lab->start[i];
        for (uint32_t k = 0; k < PER_ROW; k++) lab->id[lab->start[i] + k] = k;
        x[0] *= 1e8F;
        x[1] = x[0];
        x[2] = 1e8F;
        x[3] *= 1e-8F;
    }
}

static void ascent_takes_over_from_interior_points_that_lead_nowhere(void **state) {
    static const struct wish UNEVEN[] = {
        {.loss = SHMT_SOLVE_HINGE, .columns = 8, .bias = 1, .values = true, .l2 = 1e-4 / N, .spoil = make_huge},
        {.loss = SHMT_SOLVE_HINGE, .columns = 8, .bias = 1, .values = true, .l2 = 1e-4 / N, .spoil = make_uneven},
        {.loss = SHMT_SOLVE_HINGE, .columns = 8, .values = true, .weights = true, .l2 = 1e-4 / N, .spoil = make_uneven}};
    (void)state;
    unsigned n_returned = 0;
    for (size_t w = 0; w < sizeof UNEVEN / sizeof *UNEVEN; w++) {
        struct lab *one = make_lab(&UNEVEN[w]), *many = make_lab(&UNEVEN[w]);
        (void)fit(one, 1, false);
        (void)fit(many, 3, true);
        n_returned += one->state.ascends;
        if (one->state.end != SHMT_SOLVE_PROVED) fail_msg("number %zu: %.9g", w, shmt_newton_gap(&one->state));
        assert_memory_equal(many->parameter, one->parameter, sizeof one->parameter);
        assert_true(fabs(objective(one, UINT32_MAX, 0) - one->state.published) < 1e-9 * one->state.published);
        free_lab(one);
        free_lab(many);
    }
    assert_true(n_returned > 0);
}

static const struct wish LIVE = {
    .loss = SHMT_SOLVE_HINGE, .columns = 40, .bias = 1, .values = true, .l2 = 1e-2, .live = SHMT_LIVE_RACY};

static void of_four_that_are_halved_twice_one_ascends(void **state) {
    struct lab *one = make_lab(&LIVE), *four = make_lab(&LIVE);
    (void)state;
    four->state.halvings = 2;
    assert_int_equal(fit(four, 4, false), fit(one, 1, false));
    assert_memory_equal(four->parameter, one->parameter, sizeof one->parameter);
    free_lab(one);
    free_lab(four);
}

/* A gap that creeps, by a thousandth in each epoch, has none of 1,000 epochs enough. */
static void fewer_ascend_where_the_gap_hardly_falls(void **state) {
    static const double FALLS[] = {1, 0.999, 0.97};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct lab *lab = make_lab(&LIVE);
        lab->problem.tolerance = 1e-300;
        lab->state.gap = lab->state.slow_gap = 1e-30; /* nearer than it will ever be */
        for (unsigned epoch = 1; epoch <= 20; epoch++) {
            lab->state.gap *= FALLS[i];
            do_epoch(lab, 4, false);
            assert_int_equal(lab->state.end, SHMT_SOLVE_GOES_ON);
            assert_int_equal(lab->state.halvings, FALLS[i] < 0.98 ? 0 : epoch / 5);
            struct shmt_solve_state next;
            shmt_newton_next_epoch(&lab->state, &next);
            lab->state = next;
        }
        free_lab(lab);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_coordinate_goes_to_its_best_whatever_the_numbers_are),
        cmocka_unit_test(what_is_no_number_moves_no_coordinate),
        cmocka_unit_test(ascent_takes_over_from_interior_points_that_lead_nowhere),
        cmocka_unit_test(of_four_that_are_halved_twice_one_ascends),
        cmocka_unit_test(fewer_ascend_where_the_gap_hardly_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
