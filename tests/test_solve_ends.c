/* Fits that are stopped in the middle of a phase: it is left soon, and what is left of it harms nothing. Whole phases: test_solve.c. */
#include "solve/hessian.h"
#include "sanitized.h"
#include "solve_help.h"

enum { PARTS = 2, SOON = 8 }; /* looks of a part that leaves a phase: one for each loop that it has to come out of */

/* Until that phase. False: the fit is over before. */
static bool come_to(struct lab *lab, uint64_t round) {
    while (lab->round < round && lab->state.end == SHMT_SOLVE_GOES_ON) {
        do_phase(lab, PARTS, false);
        if (lab->state.phase != SHMT_PHASE_OVER) continue;
        struct shmt_solve_state next;
        shmt_newton_next_epoch(&lab->state, &next);
        lab->state = next;
    }
    return lab->state.end == SHMT_SOLVE_GOES_ON;
}

/* Parameters, and what is said of them. */
static void assert_whole(const struct lab *lab, const struct wish *wish) {
    for (uint32_t j = 0; j < (wish->columns + wish->bias) * lab->problem.n_classes; j++)
        assert_true(isfinite(lab->parameter[j]));
    assert_true(lab->state.published >= lab->state.dual || !lab->state.begun);
    if (lab->state.begun && lab->state.stopped)
        assert_true(fabs(objective(lab, UINT32_MAX, 0) - lab->state.published) < 1e-12 * lab->state.published);
}

/* Work that is left at its k-th look is not done at all for the state behind it. False: it has no such look. */
static bool leave_at(const struct wish *wish, uint64_t round, uint64_t k) {
    struct lab *lab = make_lab(wish);
    struct shmt_solve_state next;
    if (!come_to(lab, round)) {
        free_lab(lab);
        return false;
    }
    lab->looks = 0;
    lab->leave_at = k;
    for (uint32_t part = 0; part < PARTS; part++) {
        const struct shmt_pass pass = pass_of(lab, &lab->state, part, PARTS);
        assert_int_equal(shmt_newton_work(&pass), 0);
    }
    const bool left = shmt_solve_is_skipped(&lab->memory, lab->round);
    if (left) assert_true(lab->looks < k + PARTS * SOON);
    shmt_solve_sum(&lab->memory, lab->round, SHMT_SUM_STOP)[0] = 0; /* the chief has not seen it */
    const struct shmt_pass pass = pass_of(lab, &lab->state, 0, PARTS);
    shmt_newton_next(&pass, &next);
    assert_true(!left || next.stopped);
    lab->state = next;
    lab->round++;
    for (int more = 0; left && lab->state.phase != SHMT_PHASE_OVER; more++) {
        assert_true(more < 4);
        do_phase(lab, PARTS, false);
    }
    if (left) assert_whole(lab, wish);
    free_lab(lab);
    return left;
}

static void a_phase_may_be_left_at_any_look(void **state) {
    (void)state;
    unsigned n_left = 0;
    for (size_t w = 0; w < N_WISHES; w++)
        for (uint64_t round = 0; round < (SANITIZED ? 4 : 24); round++)
            for (uint64_t k = 1; k <= 64; k = 2 * k + round % 2) n_left += leave_at(&WISHES[w], round, k);
    assert_true(n_left > (SANITIZED ? 150 : 1000));
}

/* What takes long looks up often: in each phase of a fit, by what it works on. */
static void each_long_phase_looks_up(void **state) {
    uint64_t looks[SHMT_PHASE_OVER + 1] = {0};
    bool seen[SHMT_PHASE_OVER + 1] = {false};
    (void)state;
    for (size_t w = 0; w < N_WISHES; w++) {
        struct lab *lab = make_lab(&WISHES[w]);
        for (lab->round = 0; lab->round < 120 && lab->state.end == SHMT_SOLVE_GOES_ON;) {
            const uint32_t phase = lab->state.phase;
            const struct shmt_pass pass = pass_of(lab, &lab->state, 0, 1);
            const bool by_rows = phase == SHMT_PHASE_HESSIAN && shmt_hessian_by_rows(&pass);
            lab->looks = 0;
            do_phase(lab, 1, false);
            if (by_rows) {
                assert_true(lab->looks >= 6);
                continue;
            }
            looks[phase] = !seen[phase] || lab->looks < looks[phase] ? lab->looks : looks[phase];
            seen[phase] = true;
            if (lab->state.phase != SHMT_PHASE_OVER) continue;
            struct shmt_solve_state next;
            shmt_newton_next_epoch(&lab->state, &next);
            lab->state = next;
        }
        free_lab(lab);
    }
    static const struct {
        enum shmt_solve_phase phase;
        uint64_t least;
    } LEAST[] = {{SHMT_PHASE_COUNT, 6},  {SHMT_PHASE_PLACE, 1},    {SHMT_PHASE_TURN, 1},    {SHMT_PHASE_SCORE, 6},
                 {SHMT_PHASE_SLOPE, 40}, {SHMT_PHASE_CYCLE, 1},    {SHMT_PHASE_FACTOR, 40}, {SHMT_PHASE_HESSIAN, 40},
                 {SHMT_PHASE_ROWS, 6},   {SHMT_PHASE_COLUMNS, 40}, {SHMT_PHASE_REACH, 6},   {SHMT_PHASE_ASCEND, 4},
                 {SHMT_PHASE_IMAGE, 40}, {SHMT_PHASE_WEIGH, 6},    {SHMT_PHASE_VERIFY, 6},  {SHMT_PHASE_GAIN, 6},
                 {SHMT_PHASE_SUM, 40}};
    for (size_t i = 0; i < sizeof LEAST / sizeof *LEAST; i++) {
        const enum shmt_solve_phase phase = LEAST[i].phase;
        if (!seen[phase]) fail_msg("no fit had phase %d", phase);
        if (looks[phase] < LEAST[i].least) fail_msg("phase %d: %llu looks", phase, (unsigned long long)looks[phase]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phase_may_be_left_at_any_look),
        cmocka_unit_test(each_long_phase_looks_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
