/* The real program from outside, on a table that no worker's cache holds: each worker has a copy of the hot rows, says so, and
 * all together learn as one does. What replicas hold is tested in test_hot_rows.c, the choice in test_copies.c. */
#include "run_program.h"
#include "sanitized.h"

#include <string.h>

#define DATA "builtin:sparse:examples=100000,features=2000000,nonzeros=40"

static json_t *report_of(const char *workers, const char *optimizer, const char *const *more) {
    const char *argv[20] = {"shmtrain", "--json", "--quiet", "-w", workers, "-e", "10", "--optimizer", optimizer};
    size_t n = 9;
    for (; more && *more; more++) argv[n++] = *more;
    argv[n++] = DATA;
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
    return program_json(p);
}

static double final_loss(const json_t *report) {
    const json_t *epochs = json_object_get(report, "epochs");
    return program_number(json_array_get(epochs, json_array_size(epochs) - 1), "valid_loss");
}

/* The rates are small in the last epoch, so it does not matter much who came when. */
static void several_workers_learn_as_one_does(void **state) {
    static const char *const OPTIMIZERS[] = {"sgd", "adagrad"}, *const WORKERS[] = {"2", "8"};
    (void)state;
    SKIP_LEARNING_IF_SANITIZED();
    for (size_t o = 0; o < 2; o++) {
        json_t *one = report_of("1", OPTIMIZERS[o], NULL);
        const double loss = final_loss(one);
        assert_true(program_number(one, "hot_rows") == 0 && program_number(one, "n_replicas") == 1);
        json_decref(one);
        for (size_t w = 0; w < 2; w++) {
            json_t *r = report_of(WORKERS[w], OPTIMIZERS[o], NULL);
            print_message("  %s, -w %s: %.5f (one %.5f)\n", OPTIMIZERS[o], WORKERS[w], final_loss(r), loss);
            assert_true(program_number(r, "hot_rows") > 0 && program_number(r, "merges") > 0);
            assert_true(program_number(r, "n_replicas") == (w ? 8 : 2));
            assert_true(final_loss(r) <= 1.005 * loss);
            json_decref(r);
        }
    }
}

static void the_run_says_what_is_copied_and_replicas_one_forces_a_single_copy(void **state) {
    struct program *p = RUN("-w", "2", "-e", "1", DATA);
    (void)state;
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "rows, the rest shared"));
    assert_non_null(strstr(p->text[OUT], "most frequent rows per"));
    json_t *r = report_of("2", "sgd", (const char *const[]){"--replicas", "one", NULL});
    assert_true(program_number(r, "hot_rows") == 0 && program_number(r, "merges") == 0 && program_number(r, "n_replicas") == 1);
    json_decref(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(several_workers_learn_as_one_does),
        PROGRAM_TEST(the_run_says_what_is_copied_and_replicas_one_forces_a_single_copy),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
