/* Newton's method with its proof: what it finds is the minimum, the proof is one, and all numbers have the same bits whoever
 * does which part, and how often. Parts are done one after the other here; with processes see test_program_tolerance.c. */
#include "solve_help.h"

#include "solve/cholesky.h"
#include "solve/choose.h"

static uint32_t count_zeros(const struct lab *lab) {
    uint32_t n = 0;
    for (uint32_t j = 0; j < lab->problem.n_columns; j++) n += lab->parameter[j] == 0;
    return n;
}

static void what_is_found_is_the_minimum(void **state) {
    (void)state;
    for (size_t w = 0; w < N_WISHES; w++) {
        struct lab *lab = make_lab(&WISHES[w]);
        (void)fit(lab, 1, false);
        assert_int_equal(lab->state.end, SHMT_SOLVE_PROVED);
        assert_true(lab->state.direct == 0 || WISHES[w].columns == 40);
        assert_true(!WISHES[w].interior || lab->state.interior);
        if (WISHES[w].l1 > 0) assert_true(count_zeros(lab) > 0);
        const double at = objective(lab, UINT32_MAX, 0);
        assert_true(fabs(at - lab->state.published) < 1e-12 * at);
        assert_true(lab->state.dual <= at * (1 + 1e-13)); /* to rounding */
        const double tolerance = lab->problem.tolerance;
        assert_true(at - lab->state.dual <= tolerance * lab->state.dual);
        for (uint32_t j = 0; j < (WISHES[w].columns + WISHES[w].bias) * lab->problem.n_classes; j += 13) {
            const double h = 1e-3;
            assert_true(objective(lab, j, h) > at * (1 - tolerance) && objective(lab, j, -h) > at * (1 - tolerance));
            const double slope = (objective(lab, j, h) - objective(lab, j, -h)) / (2 * h);
            /* |g|^2 <= 2 (curvature) (P - P*): with a curvature of a few and a gap of 1e-6 of some tenths */
            assert_true(fabs(slope) < 5e-3 || WISHES[w].loss == SHMT_SOLVE_HINGE || WISHES[w].l1 > 0); /* which have corners */
        }
        free_lab(lab);
    }
}

/* The bound holds at each epoch, also far from the end. */
static void the_proof_is_no_promise_of_more(void **state) {
    (void)state;
    for (size_t w = 0; w < N_WISHES; w++) {
        struct lab *lab = make_lab(&WISHES[w]);
        lab->problem.tolerance = WISHES[w].loss == SHMT_SOLVE_HINGE ? 1e-8 : 1e-9;
        (void)fit(lab, 1, false);
        const double least = objective(lab, UINT32_MAX, 0);
        free_lab(lab);
        lab = make_lab(&WISHES[w]);
        for (int epoch = 0; epoch < 6 && lab->state.end == SHMT_SOLVE_GOES_ON; epoch++) {
            do_epoch(lab, 2, false);
            assert_true(lab->state.dual <= least * (1 + 1e-12)); /* least: not below the minimum */
            struct shmt_solve_state next;
            shmt_newton_next_epoch(&lab->state, &next);
            lab->state = next;
        }
        free_lab(lab);
    }
}

static void bits_do_not_follow_the_number_of_parts(void **state) {
    static const uint32_t PARTS[] = {2, 3, 8, 31};
    (void)state;
    for (size_t w = 0; w < N_WISHES; w++) {
        if (WISHES[w].live != SHMT_LIVE_NO) continue; /* which promises none of this, nor what follows */
        struct lab *one = make_lab(&WISHES[w]);
        const uint32_t epochs = fit(one, 1, false);
        for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) {
            struct lab *many = make_lab(&WISHES[w]);
            assert_int_equal(fit(many, PARTS[k], false), epochs);
            assert_memory_equal(many->parameter, one->parameter, sizeof one->parameter);
            assert_memory_equal(&many->state, &one->state, sizeof one->state);
            free_lab(many);
        }
        free_lab(one);
    }
}

static void a_part_that_is_done_again_gives_the_same(void **state) {
    (void)state;
    for (size_t w = 0; w < N_WISHES; w++) {
        if (WISHES[w].live != SHMT_LIVE_NO) continue;
        struct lab *once = make_lab(&WISHES[w]), *twice = make_lab(&WISHES[w]);
        (void)fit(once, 3, false);
        (void)fit(twice, 3, true);
        assert_memory_equal(twice->parameter, once->parameter, sizeof once->parameter);
        assert_memory_equal(&twice->state, &once->state, sizeof once->state);
        free_lab(once);
        free_lab(twice);
    }
}

/* A stop in any phase ends the epoch soon, at a point that was judged. */
static void stop_at(const struct wish *wish, uint64_t at) {
    struct lab *lab = make_lab(wish);
    struct shmt_solve_state next;
    while (lab->round < at && lab->state.end == SHMT_SOLVE_GOES_ON) {
        do_phase(lab, 2, false);
        if (lab->state.phase != SHMT_PHASE_OVER) continue;
        shmt_newton_next_epoch(&lab->state, &next);
        lab->state = next;
    }
    const struct shmt_pass pass[2] = {pass_of(lab, &lab->state, 0, 2), pass_of(lab, &lab->state, 1, 2)};
    for (int part = 0; part < 2; part++) assert_int_equal(shmt_newton_work(&pass[part]), 0);
    shmt_solve_sum(&lab->memory, lab->round, SHMT_SUM_STOP)[0] = 1;
    shmt_newton_next(&pass[0], &next);
    lab->state = next;
    lab->round++;
    int more = 0;
    for (; lab->state.phase != SHMT_PHASE_OVER; more++) do_phase(lab, 2, false);
    assert_true(more <= 3);
    for (uint32_t j = 0; j <= wish->columns; j++) assert_true(isfinite(lab->parameter[j]));
    if (wish->parts > 0 && lab->state.choice.least < 0.69) assert_true(count_zeros(lab) < wish->columns);
    assert_true(lab->state.published >= lab->state.dual || !lab->state.begun);
    const bool warmed = lab->state.warm_steps > 0; /* the parameters are a point, if one of a sample */
    if ((lab->state.begun || warmed) && lab->state.stopped)
        assert_true(fabs(objective(lab, UINT32_MAX, 0) - lab->state.published) < 1e-12 * lab->state.published);
    free_lab(lab);
}

static void a_stop_ends_it_in_any_phase(void **state) {
    (void)state;
    for (size_t w = 0; w < N_WISHES; w++) {
        const bool chooses = WISHES[w].parts > 0;
        const uint64_t end = chooses ? 400 : 40, stride = chooses ? 7 : 1;
        for (uint64_t at = 0; at < end; at += stride) stop_at(&WISHES[w], at);
    }
}

/* ---- the choice ---- */

/* The mean loss on a part of a fit to all others with L2 typed: of the sums of losses and weights. */
static void fit_without(const struct wish *wish, uint32_t part, double l2, bool scaled, double *loss, double *heavy) {
    struct wish typed = *wish;
    typed.parts = 0;
    typed.weights = true;
    typed.l2 = l2;
    struct lab *lab = make_lab(&typed);
    lab->problem.scale = scaled ? SHMT_SCALE_YES : SHMT_SCALE_NO;
    shmt_newton_begin(&lab->problem, false, &lab->state);
    for (uint64_t i = 0; i < N; i++) lab->weight[i] = shmt_below(shmt_mix64(5 + i), wish->parts) == part ? 0 : 1;
    (void)fit(lab, 1, false);
    for (uint64_t i = 0; i < N; i++) {
        if (lab->weight[i] > 0) continue;
        *loss += loss_of(lab, i, (struct moved){UINT32_MAX, 0});
        *heavy += 1;
    }
    free_lab(lab);
}

static double loss_without(const struct wish *wish, uint32_t strength, bool scaled) {
    double loss = 0, heavy = 0;
    for (uint32_t part = 0; part < wish->parts; part++)
        fit_without(wish, part, shmt_choice_l2(strength, N), scaled, &loss, &heavy);
    return loss / heavy;
}

static void what_is_chosen_does_best_on_examples_that_it_has_not_seen(void **state) {
    static const struct wish CHOICES[] = {
        {.loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .values = true, .parts = 3, .scale = SHMT_SCALE_CHOSEN},
        {.loss = SHMT_SOLVE_SQUARED, .columns = 40, .bias = 1, .values = true, .parts = 5, .scale = SHMT_SCALE_CHOSEN},
        {.loss = SHMT_SOLVE_SOFTMAX,
         .columns = 40,
         .bias = 1,
         .values = true,
         .classes = 4,
         .parts = 3,
         .scale = SHMT_SCALE_CHOSEN}};
    (void)state;
    for (size_t w = 0; w < sizeof CHOICES / sizeof *CHOICES; w++) {
        struct lab *lab = make_lab(&CHOICES[w]);
        double least = INFINITY;
        (void)fit(lab, 2, false);
        for (uint32_t k = 0; k < 2 * SHMT_CHOICE_STRENGTHS; k++) least = fmin(least, loss_without(&CHOICES[w], k / 2, k % 2));
        const struct shmt_choice *c = &lab->state.choice;
        const double chosen = loss_without(&CHOICES[w], c->best_strength, c->best_scaled);
        assert_true(chosen < 1.01 * least);
        assert_true(fabs(c->least - chosen) < 0.01 * chosen); /* fits of a choice end earlier */
        assert_true(lab->state.l2 == shmt_choice_l2(c->best_strength, N) && c->scaled == c->best_scaled);
        free_lab(lab);
    }
}

/* Fits of the second value of L2, of n examples in five parts: those of the first one have a mean loss of 0.5, these of `mean`. */
static uint32_t fits_of_the_second(uint64_t n, double mean, double *path_out) {
    const struct shmt_problem problem = {.n = n, .n_all = n, .n_parts = 5, .n_held = 5};
    const struct shmt_pass pass = {.problem = &problem};
    struct shmt_solve_state s = {.choice = {.open = 1, .fresh = 1, .path = INFINITY, .least = INFINITY}, .heavy = 1};
    for (int part = 0; part < 5; part++) {
        s.held = 0.5;
        shmt_choose_next(&pass, &s);
    }
    assert_true(s.choice.strength == 1 && s.choice.fits == 5 && s.choice.improved);
    while (s.choice.strength == 1 && s.choice.open) {
        s.held = mean;
        shmt_choose_next(&pass, &s);
    }
    *path_out = s.choice.path;
    return s.choice.fits - 5;
}

static void a_candidate_that_is_far_worse_so_far_is_left(void **state) {
    double path;
    (void)state;
    assert_int_equal(fits_of_the_second(1000, 0.6, &path), 1);  /* 200 examples say so */
    assert_int_equal(fits_of_the_second(500, 0.6, &path), 2);   /* ... of two parts */
    assert_int_equal(fits_of_the_second(100, 0.6, &path), 5);   /* not even all */
    assert_int_equal(fits_of_the_second(1000, 0.54, &path), 5); /* worse, but not by a tenth */
    assert_true(path == 0.5);
    assert_int_equal(fits_of_the_second(1000, 0.4, &path), 5); /* better */
    assert_true(fabs(path - 0.4) < 1e-12);
}

static void a_column_has_the_scale_of_its_definition(void **state) {
    (void)state;
    struct lab *lab = make_lab(&(struct wish){
        .loss = SHMT_SOLVE_LOGISTIC, .columns = 40, .bias = 1, .values = true, .l2 = 1e-3, .scale = SHMT_SCALE_YES});
    (void)fit(lab, 1, false);
    for (uint32_t j = 0; j < 40; j++) {
        double sum = 0, squares = 0, here = 0;
        for (uint64_t at = 0; at < lab->start[N]; at++) {
            const double x = lab->id[at] == j ? (double)lab->value[at] : 0;
            sum += x;
            squares += x * x;
            here += lab->id[at] == j;
        }
        if (here == 0) continue;
        const double variance = squares / N - sum / N * (sum / N); /* of all rows, zeros with them */
        assert_true(fabs(lab->memory.scale[j] - variance * N / here) < 1e-9 * squares);
    }
    free_lab(lab);
}

/* Whatever has gone wrong with a bound that is above the objective, it proves nothing. */
static void a_bound_above_the_objective_is_no_proof(void **state) {
    (void)state;
    struct shmt_solve_state s = {.published = 0.5, .dual = 0.4};
    assert_true(fabs(shmt_newton_gap(&s) - 0.25) < 1e-15);
    s.dual = 0.5 * (1 + 1e-15);
    assert_true(shmt_newton_gap(&s) == 0);
    s.dual = 0.51;
    assert_true(isinf(shmt_newton_gap(&s)));
}

/* A second fit from where the first one has ended has nothing to do, and says so. */
static void from_the_minimum_there_is_no_step(void **state) {
    (void)state;
    struct lab *lab = make_lab(&WISHES[0]), *again = make_lab(&WISHES[0]);
    (void)fit(lab, 1, false);
    memcpy(again->parameter, lab->parameter, sizeof lab->parameter);
    assert_int_equal(fit(again, 1, false), 1);
    assert_int_equal(again->state.end, SHMT_SOLVE_PROVED);
    assert_memory_equal(again->parameter, lab->parameter, sizeof lab->parameter);
    free_lab(lab);
    free_lab(again);
}

static void what_floats_cannot_hold_ends_without_a_proof(void **state) {
    (void)state;
    struct lab *lab = make_lab(&WISHES[4]);
    lab->problem.tolerance = 1e-16;
    (void)fit(lab, 1, false);
    assert_int_equal(lab->state.end, SHMT_SOLVE_EXHAUSTED);
    assert_true(shmt_newton_gap(&lab->state) < 1e-10);
    free_lab(lab);
}

static void cholesky_solves(void **state) {
    enum { M = 9 };
    double a[M * M], r[M * M], b[M], x[M];
    (void)state;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) a[i * M + j] = (i == j ? 3 : 0) + 1.0 / (1 + i + j);
    for (int i = 0; i < M; i++) b[i] = cos(i);
    for (uint64_t j = 0; j < M; j++) shmt_cholesky_row(M, a, r, j);
    shmt_cholesky_solve(M, r, b, x);
    for (int i = 0; i < M; i++) {
        double sum = b[i];
        for (int j = 0; j < M; j++) sum += a[i * M + j] * x[j];
        assert_true(fabs(sum) < 1e-13);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cholesky_solves),
        cmocka_unit_test(what_is_found_is_the_minimum),
        cmocka_unit_test(the_proof_is_no_promise_of_more),
        cmocka_unit_test(bits_do_not_follow_the_number_of_parts),
        cmocka_unit_test(a_part_that_is_done_again_gives_the_same),
        cmocka_unit_test(a_stop_ends_it_in_any_phase),
        cmocka_unit_test(what_is_chosen_does_best_on_examples_that_it_has_not_seen),
        cmocka_unit_test(a_candidate_that_is_far_worse_so_far_is_left),
        cmocka_unit_test(a_column_has_the_scale_of_its_definition),
        cmocka_unit_test(a_bound_above_the_objective_is_no_proof),
        cmocka_unit_test(from_the_minimum_there_is_no_step),
        cmocka_unit_test(what_floats_cannot_hold_ends_without_a_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
