/* The real program with hundreds of workers: memory that a worker enters does not depend on how many there are. What it looks at
 * does: at a meeting each worker looks at the words of all others, and that is not counted here. Figures of times, up to 2,048
 * workers, are for a quiet machine and not for a test (bench/bench_start, bench_barrier). */
#include "run_program.h"

#include <sys/resource.h>

#include "sanitized.h"
#include "skip.h"

/* Pages that the program and its workers have entered into their page tables, for each worker. */
static double faults_per_worker(const char *workers) {
    struct rusage before, after;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &before), 0);
    struct program *p = RUN("-w", workers, "-e", "1", "--quiet", "builtin:sparse:examples=20000");
    program_assert_status(p, 0);
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &after), 0);
    return (double)(after.ru_minflt - before.ru_minflt) / atof(workers);
}

/* Merging copies once took a page for each pair of workers: 256 of them twice as many each as 64. */
static void a_worker_enters_as_many_pages_among_256_as_among_64(void **state) {
    (void)state;
    if (SANITIZED) SKIP("sanitizers need more memory");
    const double few = faults_per_worker("64"), many = faults_per_worker("256");
    if (many > 1.3 * few) fail_msg("%.0f pages for each of 256 workers, %.0f for each of 64", many, few);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_worker_enters_as_many_pages_among_256_as_among_64),
    };
    return cmocka_run_group_tests_name("many workers", tests, program_make_folder, program_remove_folder);
}
