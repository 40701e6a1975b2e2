/* The real program from outside: text whose end, or whose beginning, is not where one looks for it. */
#define _XOPEN_SOURCE 700
#include "run_program.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ROWS "1 1:1\n-1 2:1\n1 1:2\n-1 2:2\n"

/* ---- where rows begin ---- */

static void append(FILE *f, const char *line, int n) {
    for (int i = 0; i < n; i++) assert_true(fputs(line, f) >= 0);
}

static void write_blank(const char *name, int before, int behind) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    append(f, "\n", before);
    append(f, "label,a,b\n", 1);
    append(f, "\n", behind);
    append(f, "1,2,3\n0,1,1\n", 20);
    assert_int_equal(fclose(f), 0);
}

/* Each of its readers has a range of the bytes, and most of them see blank lines only, or the header not first. */
static void a_table_is_the_same_for_any_number_of_readers(void **state) {
    (void)state;
    static const int BLANK[][2] = {{400, 0}, {0, 400}, {150, 600}};
    char hash[17], other[17];
    for (size_t i = 0; i < sizeof BLANK / sizeof *BLANK; i++) {
        write_blank("blank.csv", BLANK[i][0], BLANK[i][1]);
        HASH(hash, "--mode", "sync", "-e", "2", "-w", "1", "blank.csv");
        HASH(other, "--mode", "sync", "-e", "2", "-w", "2", "blank.csv");
        assert_string_equal(other, hash);
        HASH(other, "--mode", "sync", "-e", "2", "-w", "8", "blank.csv");
        assert_string_equal(other, hash);
    }
}

/* ---- where a stream ends ---- */

/* A reader is waiting for the second pipe, which stays open, when the first one turns out to be bad. */
static void a_bad_file_ends_waiting_for_a_later_one(void **state) {
    (void)state;
    assert_int_equal(mkfifo("late", 0600), 0);
    assert_int_equal(mkfifo("silent", 0600), 0);
    const int late = open("late", O_RDWR | O_CLOEXEC), silent = open("silent", O_RDWR | O_CLOEXEC);
    struct program *p = START("-w", "2", "late", "silent");
    program_wait_for_readers(p);
    usleep(200000); /* where it is too short, there is less to see, and nothing to fail */
    const int bad = open("late", O_WRONLY | O_CLOEXEC);
    close(late);
    assert_int_equal(write(bad, ROWS "bad\n", strlen(ROWS "bad\n")), strlen(ROWS "bad\n"));
    close(bad);
    program_finish(p);
    program_assert_refused(p, 1, "late:5:1: expected a label (a number), found \"bad\"");
    close(silent);
}

static int g_terminal; /* its other side is standard input */

static int at_a_terminal(void) {
    const int in = open(ptsname(g_terminal), O_RDWR | O_NOCTTY);
    return in < 0 || dup2(in, STDIN_FILENO) < 0;
}

/* A second one would be for whoever reads the terminal next. */
static void one_end_is_enough_at_a_terminal(void **state) {
    (void)state;
    static const char *const TYPED[] = {ROWS "\4", "1 1:1\n\4"};
    for (size_t i = 0; i < sizeof TYPED / sizeof *TYPED; i++) {
        g_terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(g_terminal >= 0 && grantpt(g_terminal) == 0 && unlockpt(g_terminal) == 0);
        struct program *p = START_IN(at_a_terminal, "data", "info", "-");
        program_wait_for_readers(p);
        assert_int_equal(write(g_terminal, TYPED[i], strlen(TYPED[i])), strlen(TYPED[i]));
        program_finish(p);
        program_assert_status(p, 0);
        close(g_terminal);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_table_is_the_same_for_any_number_of_readers),
        PROGRAM_TEST(a_bad_file_ends_waiting_for_a_later_one),
        PROGRAM_TEST(one_end_is_enough_at_a_terminal),
    };
    return cmocka_run_group_tests_name("program streams", tests, program_make_folder, program_remove_folder);
}
