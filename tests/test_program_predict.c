/* The real program between pipes: predictions for lines as they come. */
#include "run_program.h"

#include <fcntl.h>
#include <signal.h>

static int g_in[2], g_out[2];

static void make_model(void) {
    program_write_file("examples", "-1 1:1\n1 2:1\n-1 1:2\n1 2:2\n");
    program_assert_status(RUN("-q", "-o", "model", "examples"), 0);
}

static int read_pipe(void) { return dup2(g_in[0], STDIN_FILENO) < 0 || close(g_in[1]) != 0; }

static void say(const char *line) { assert_int_equal(write(g_in[1], line, strlen(line)), strlen(line)); }

static void one_line_in_is_one_line_out_while_the_pipe_stays_open(void **state) {
    (void)state;
    make_model();
    assert_int_equal(pipe(g_in), 0);
    struct program *p = START_IN(read_pipe, "predict", "model", "-");
    say("0 1:1\n");
    program_wait_for(p, OUT, "-1\n");
    say("0 2:1\n0 2:2\n");
    program_wait_for(p, OUT, "-1\n1\n1\n");
    say("0 1:1\n0 bad\n");
    close(g_in[0]);
    program_finish(p);
    close(g_in[1]);
    program_assert_status(p, 1);
    assert_string_equal(p->text[OUT], "-1\n1\n1\n-1\n");
    assert_string_equal(p->text[ERR], "shmtrain: standard input:5:3: expected \"index:value\", found \"bad\"\n");
}

static void a_signal_ends_the_wait_for_a_line(void **state) {
    (void)state;
    make_model();
    assert_int_equal(pipe(g_in), 0);
    struct program *p = START_IN(read_pipe, "predict", "--scores", "model", "-");
    say("0 1:1\n");
    program_wait_for(p, OUT, "-1 ");
    assert_int_equal(kill(p->pid, SIGTERM), 0);
    program_finish(p);
    close(g_in[0]);
    close(g_in[1]);
    program_assert_status(p, 128 + SIGTERM);
}

/* Whoever reads our output has gone; there is more of it than a pipe takes. */
static int write_to_nobody(void) {
    const int in = open("many", O_RDONLY | O_CLOEXEC);
    return in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(g_out[1], STDOUT_FILENO) < 0;
}

static int write_to_nobody_unasked(void) {
    signal(SIGPIPE, SIG_IGN);
    return write_to_nobody();
}

static void a_closed_pipe_ends_it_quietly(void **state) {
    (void)state;
    make_model();
    FILE *f = fopen("many", "w");
    assert_non_null(f);
    for (int i = 0; i < 100000; i++) fprintf(f, "0 %d:1\n", 1 + i % 2);
    assert_int_equal(fclose(f), 0);
    static const char *const DATA[] = {"-", "many"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(g_out), 0);
        close(g_out[0]);
        struct program *p = START_IN(write_to_nobody_unasked, "predict", "model", DATA[i]);
        program_finish(p);
        program_assert_status(p, 128 + SIGPIPE);
        assert_string_equal(p->text[ERR], "");
        p = START_IN(write_to_nobody, "predict", "model", DATA[i]);
        program_finish(p);
        assert_int_equal(p->status, -SIGPIPE);
        assert_string_equal(p->text[ERR], "");
        close(g_out[1]);
    }
}

static int read_many(void) {
    const int in = open("many", O_RDONLY | O_CLOEXEC);
    return in < 0 || dup2(in, STDIN_FILENO) < 0;
}

static void a_file_of_predictions_is_whole_or_as_it_was(void **state) {
    (void)state;
    make_model();
    program_write_file("many", "0 1:1\n0 2:1\n");
    struct program *p = START_IN(read_many, "predict", "model", "-", "-o", "out");
    program_finish(p);
    program_assert_status(p, 0);
    program_assert_status(program_run(NULL, (const char *const[]){"grep", "-c", "", "out", NULL}), 0);
    program_write_file("many", "0 1:1\nbad\n");
    p = START_IN(read_many, "predict", "model", "-", "-o", "out");
    program_finish(p);
    program_assert_status(p, 1);
    p = program_run(NULL, (const char *const[]){"cat", "out", NULL});
    assert_string_equal(p->text[OUT], "-1\n1\n");
}

/* Not as 1e+06, which no line of the data says. */
static void whole_labels_are_written_as_data_has_them(void **state) {
    (void)state;
    program_write_file("codes", "1000000 1:1\n20000000 2:1\n1000000 1:1\n20000000 2:1\n");
    program_assert_status(RUN("-q", "-M", "softmax", "-e", "20", "-o", "codes.model", "codes"), 0);
    struct program *p = RUN("predict", "codes.model", "codes");
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "1000000\n20000000\n1000000\n20000000\n");
    program_assert_status(RUN("model", "convert", "codes.model", "-o", "codes.csv", "--format", "csv"), 0);
    p = program_run(NULL, (const char *const[]){"cut", "-d,", "-f3", "codes.csv", NULL});
    assert_non_null(strstr(p->text[OUT], "class\n1000000\n20000000\n1000000\n"));
}

static bool shell(const char *command) {
    return program_run(NULL, (const char *const[]){"sh", "-c", command, NULL})->status == 0;
}

/* What a file is answered, its lines are answered on standard input. */
static void assert_same_answers(const char *data) {
    char command[80];
    snprintf(command, sizeof command, "cp %s many", data);
    assert_true(shell(command));
    struct program *file = RUN("predict", "model", data), *p = START_IN(read_many, "predict", "model", "-");
    program_finish(p);
    program_assert_status(file, 0);
    program_assert_status(p, 0);
    assert_true(file->bytes[OUT] > 0);
    assert_string_equal(p->text[OUT], file->text[OUT]);
}

static void packed_lines_are_answered_like_a_packed_file(void **state) {
    (void)state;
    make_model();
    FILE *f = fopen("rows", "w");
    assert_non_null(f);
    for (int i = 0; i < 30000; i++) fprintf(f, "0 %d:1\n", 1 + i * 7 % 5 % 2);
    assert_int_equal(fclose(f), 0);
    assert_true(shell("gzip -c rows > rows.gz; xz -c rows > rows.xz || cp rows.gz rows.xz; echo '0 2:1' > one; gzip one"));
    assert_same_answers("rows");
    assert_same_answers("rows.gz");
    assert_same_answers("rows.xz");
    assert_same_answers("one.gz");
    assert_true(shell("head -c 200 rows.gz > many"));
    struct program *p = START_IN(read_many, "predict", "model", "-");
    program_finish(p);
    program_assert_status(p, 1);
    assert_non_null(strstr(p->text[ERR], "standard input is damaged: unpacking failed after byte"));
}

static void make_table_model(void) {
    program_write_file("t.csv", "y,a,b,c\n1,2,red,0\n0,1,blue,1\n1,3,red,0\n0,0,blue,1\n");
    program_assert_status(RUN("-q", "-o", "model", "--categorical", "b", "t.csv"), 0);
}

static void a_tables_first_line_may_name_its_delimiter(void **state) {
    (void)state;
    make_table_model();
    program_write_file("sep.csv", "sep=^\ny^a^b^c\n1^2^red^0\n0^1^blue^1\n");
    assert_same_answers("sep.csv");
    program_write_file("sep.csv", "\xef\xbb\xbfsep=;\n1;2;red;0\n0;1;blue;1\n");
    assert_same_answers("sep.csv");
}

static void what_would_be_ignored_is_refused(void **state) {
    (void)state;
    make_table_model();
    const struct refusal list[] = {
        {2, "--label names column \"a\" of t.csv, which is a feature of the model", {"eval", "--label", "a", "model", "t.csv"}},
        {2, "--label names column \"a\" of t.csv, which is", {"predict", "--label", "a", "model", "t.csv"}},
        {2,
         "--label none: labels are needed here, too, so name the label's column of t.csv",
         {"eval", "--label", "none", "model", "t.csv"}},
        {2, "--label z: t.csv has no such column", {"eval", "--label", "z", "model", "t.csv"}},
        {2, "--label z: t.csv has no such column", {"predict", "--label", "z", "model", "t.csv"}},
        {2,
         "--categorical c: the model has no categories in this column",
         {"predict", "--categorical", "b,c", "model", "t.csv"}},
        {2, "predict does not use --skip-bad-lines: it answers each line", {"predict", "--skip-bad-lines", "model", "t.csv"}},
        {2, "predict does not use --skip-bad-lines: it answers each line", {"predict", "--skip-bad-lines", "model", "-"}},
    };
    ASSERT_ALL_REFUSED(list);
    program_assert_status(RUN("eval", "--label", "y", "--categorical", "b", "model", "t.csv"), 0);
    program_assert_status(RUN("eval", "--label", "1", "--skip-bad-lines", "model", "t.csv"), 0);
    program_assert_status(RUN("predict", "--label", "none", "model", "t.csv"), 0);
}

/* ---- images ---- */

enum { IMAGES = 20, SIDE = 4 };

static void write_bytes(const char *name, const unsigned char *header, size_t n, const unsigned char *bytes, size_t n_bytes) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(header, 1, n, f), n);
    assert_int_equal(fwrite(bytes, 1, n_bytes, f), n_bytes);
    assert_int_equal(fclose(f), 0);
}

/* White on the left, label 0, or on the right, label 1; one label is wrong. */
static void make_images(void) {
    static const unsigned char OF_IMAGES[] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE},
                               OF_LABELS[] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    unsigned char pixel[IMAGES * SIDE * SIDE], label[IMAGES];
    for (int i = 0; i < IMAGES * SIDE * SIDE; i++)
        pixel[i] = i % SIDE / 2 == i / SIDE / SIDE % 2 ? 255 : (unsigned char)(i / SIDE / SIDE);
    for (int i = 0; i < IMAGES; i++) label[i] = (unsigned char)(i % 2);
    label[1] = 0;
    write_bytes("side-images", OF_IMAGES, sizeof OF_IMAGES, pixel, sizeof pixel);
    write_bytes("bare", OF_IMAGES, sizeof OF_IMAGES, pixel, sizeof pixel);
    write_bytes("side-labels", OF_LABELS, sizeof OF_LABELS, label, sizeof label);
    program_assert_status(RUN("-q", "-M", "softmax", "-o", "side.model", "side-images"), 0);
}

/* Percent change with the fit: they are left out. */
static void assert_begins(const char *text, const char *line, const char *end) {
    const char *at = strstr(text, line);
    if (!at || !strstr(at, end)) fail_msg("\"%s\" ... \"%s\" is not in: %s", line, end, text);
}

static void images_are_shown_with_what_they_are_taken_for(void **state) {
    (void)state;
    make_images();
    struct program *p = RUN("predict", "--show", "side.model", "side-images");
    program_assert_status(p, 0);
    assert_begins(p->text[OUT], "@@                            @@\n@@                            @@\n  1: 0 (", "%), is 0");
    assert_begins(p->text[OUT], "\n  1: 0 (", "%), is 0");
    assert_begins(p->text[OUT], "x 2: 1 (", "%), is 0");
    assert_begins(p->text[OUT], "\n19 of 20 right (95.00 %)\n", "");
    for (const char *at = p->text[OUT]; *at; at = strchr(at, '\n') + 1) assert_in_range(strcspn(at, "\n"), 2, 80);
    p = RUN("predict", "--show", "side.model", "bare", "-o", "shown");
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "");
    p = program_run(NULL, (const char *const[]){"cat", "shown", NULL});
    assert_begins(p->text[OUT], "\n1: 0 (", "%)  ");
    assert_null(strstr(p->text[OUT], "right"));
    assert_null(strstr(p->text[OUT], ", is"));
}

static void what_has_no_pixels_is_not_shown(void **state) {
    (void)state;
    make_model();
    make_images();
    const struct refusal list[] = {
        {1,
         "examples: the data are no images whose shape is known, which shmtrain help images has",
         {"predict", "--show", "model", "examples"}},
        {1, "the data are no images whose shape is known", {"predict", "--show", "side.model", "builtin:sparse:examples=9"}},
        {2, "--show has probabilities of its own: leave out --scores", {"predict", "--show", "--scores", "side.model", "bare"}},
        {2, "eval does not use --show", {"eval", "--show", "side.model", "side-images"}},
    };
    ASSERT_ALL_REFUSED(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(one_line_in_is_one_line_out_while_the_pipe_stays_open),
        PROGRAM_TEST(a_signal_ends_the_wait_for_a_line),
        PROGRAM_TEST(a_closed_pipe_ends_it_quietly),
        PROGRAM_TEST(a_file_of_predictions_is_whole_or_as_it_was),
        PROGRAM_TEST(whole_labels_are_written_as_data_has_them),
        PROGRAM_TEST(packed_lines_are_answered_like_a_packed_file),
        PROGRAM_TEST(a_tables_first_line_may_name_its_delimiter),
        PROGRAM_TEST(what_would_be_ignored_is_refused),
        PROGRAM_TEST(images_are_shown_with_what_they_are_taken_for),
        PROGRAM_TEST(what_has_no_pixels_is_not_shown),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
