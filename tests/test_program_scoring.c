/* The real program from outside, with a saved model: data from standard input, data that has a bad line, caches beside data, and the
 * model in other formats. */
#include "run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

static const char *g_input; /* file that stands at standard input */
static off_t g_offset;      /* from where on */
static int g_pipe[2];

static int read_file(void) {
    const int in = open(g_input, O_RDONLY | O_CLOEXEC);
    return in < 0 || lseek(in, g_offset, SEEK_SET) < 0 || dup2(in, STDIN_FILENO) < 0 ? errno : 0;
}

static int read_pipe(void) { return dup2(g_pipe[0], STDIN_FILENO) < 0 || close(g_pipe[1]) != 0; }

static int make_all(void **state) {
    if (program_make_folder(state) < 0) return -1;
    FILE *f = fopen("t.svm", "w");
    if (!f) return -1;
    for (unsigned i = 0; i < 30000; i++) {
        const unsigned id = 1 + i * 2654435761u % 50;
        fprintf(f, "%d %u:1 %u:0.5\n", id % 3 ? 1 : -1, id, id + 1 + i % 7);
    }
    fclose(f);
    program_write_file("two", "-1 1:1\n1 2:1\n");
    const int status = RUN("-q", "-w", "1", "-e", "2", "-o", "model.st", "t.svm")->status;
    program_end_all(state);
    return status;
}

static char *text_of(struct program *p) {
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    return p->text[OUT];
}

/* ---- eval from standard input ---- */

static void eval_of_standard_input_is_that_of_the_file(void **state) {
    (void)state;
    const char *const piped[] = {"sh", "-c", "cat t.svm | \"$TEST_BUILDDIR\"/shmtrain eval --json model.st -", NULL};
    const char *file = text_of(RUN("eval", "--json", "model.st", "t.svm"));
    g_input = "t.svm";
    g_offset = 0;
    assert_string_equal(text_of(RUN_IN(read_file, "eval", "--json", "model.st", "-")), file);
    assert_string_equal(text_of(program_run(NULL, piped)), file);
    assert_string_equal(text_of(RUN_IN(read_file, "eval", "--json", "-w", "2", "--cache", "model.st", "-")), file);
}

/* A file that something has been read of goes on from there. */
static void standard_input_is_read_from_where_it_stands(void **state) {
    (void)state;
    program_write_file("titled", "a title\n-1 1:1\n1 2:1\n");
    g_input = "titled";
    g_offset = 8;
    char *expected = text_of(RUN("eval", "--json", "model.st", "two"));
    assert_string_equal(text_of(RUN_IN(read_file, "eval", "--json", "model.st", "-")), expected);
}

static void what_is_wrong_with_standard_input_is_said_of_it(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } BAD[] = {{"1 1:1\n-1 bad\n", "standard input:2:4: expected \"index:value\", found \"bad\""},
               {"1 1:1\n7 1:1\n", "standard input:2: label 7 is not one of the model's labels, which are -1 and 1"},
               {"", " is empty"},
               {"# nothing\n", "standard input has no example"}};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        program_write_file("bad", BAD[i].text);
        g_input = "bad";
        g_offset = 0;
        program_assert_refused(RUN_IN(read_file, "eval", "model.st", "-"), 1, BAD[i].words);
        const char *const piped[] = {"sh", "-c", "cat bad | \"$TEST_BUILDDIR\"/shmtrain eval model.st -", NULL};
        program_assert_refused(program_run(NULL, piped), 1, BAD[i].words);
    }
    program_write_file("beyond", "1 1:1 77:1\n-1 2:1\n");
    g_input = "beyond";
    struct program *p = RUN_IN(read_file, "eval", "model.st", "-");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "shmtrain: standard input has features 1 to 77, the model has 1 to "));
}

static void a_signal_ends_the_wait_for_standard_input(void **state) {
    (void)state;
    assert_int_equal(pipe(g_pipe), 0);
    struct program *p = START_IN(read_pipe, "eval", "model.st", "-");
    assert_int_equal(write(g_pipe[1], "1 1:1\n", 6), 6);
    usleep(200000); /* most likely it waits by then; where it does not, the signal kills it as any program */
    assert_int_equal(kill(p->pid, SIGTERM), 0);
    program_finish(p);
    close(g_pipe[0]);
    close(g_pipe[1]);
    if (p->status == -SIGTERM) return;
    program_assert_status(p, 128 + SIGTERM);
    assert_non_null(strstr(p->text[ERR], "shmtrain: stopped while reading "));
}

/* ---- a bad line ---- */

static void lines_before_a_bad_one_are_predicted_by_however_many(void **state) {
    (void)state;
    FILE *f = fopen("bad", "w");
    assert_non_null(f);
    for (int i = 0; i < 30000; i++) fprintf(f, i == 20000 ? "0 1:x\n" : "0 %d:1\n", 1 + i % 2);
    assert_int_equal(fclose(f), 0);
    static const char *const WORKERS[] = {"1", "2", "5"};
    for (int i = 0; i < 3; i++) {
        struct program *p = RUN("predict", "-w", WORKERS[i], "model.st", "bad");
        size_t lines = 0;
        program_assert_status(p, 1);
        for (const char *c = p->text[OUT]; *c; c++) lines += *c == '\n';
        assert_int_equal(lines, 20000);
        assert_string_equal(p->text[ERR], "shmtrain: bad:20001:5: expected a number after \"1:\", found \"x\"\n");
    }
    program_write_file("out", "before");
    program_assert_refused(RUN("predict", "-w", "2", "-o", "out", "model.st", "bad"), 1, "bad:20001:5: expected a number");
    struct stat out;
    assert_int_equal(stat("out", &out), 0);
    assert_int_equal(out.st_size, 6);
}

/* ---- caches ---- */

static void eval_and_predict_keep_a_cache_beside_the_data(void **state) {
    (void)state;
    const char *file = text_of(RUN("eval", "--json", "model.st", "t.svm"));
    const char *labels = text_of(RUN("predict", "model.st", "t.svm"));
    struct program *p = RUN("eval", "--json", "--cache", "model.st", "t.svm");
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "shmtrain: t.svm.shmcache was created from t.svm\n");
    assert_string_equal(p->text[OUT], file);
    assert_string_equal(text_of(RUN("eval", "--json", "--cache", "model.st", "t.svm")), file);
    assert_string_equal(text_of(RUN("predict", "--cache", "model.st", "t.svm")), labels);
    const int fd = open("t.svm.shmcache", O_WRONLY);
    assert_int_equal(pwrite(fd, "damage", 6, 60000), 6);
    close(fd);
    p = RUN("predict", "--cache", "-w", "2", "model.st", "t.svm");
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "shmtrain: t.svm.shmcache was recreated because it was damaged, from t.svm\n");
    assert_string_equal(p->text[OUT], labels);
    assert_int_equal(unlink("t.svm.shmcache"), 0);
}

/* ---- other formats ---- */

static void a_model_is_converted_there_and_back(void **state) {
    (void)state;
    program_assert_status(RUN("model", "convert", "model.st", "-o", "model.ll", "--format", "liblinear"), 0);
    program_assert_status(RUN("model", "convert", "model.ll", "-o", "back.st"), 0);
    program_assert_status(RUN("model", "convert", "model.st", "-o", "model.csv", "--format", "csv"), 0);
    char *scores = text_of(RUN("predict", "--scores", "model.st", "t.svm"));
    assert_string_equal(text_of(RUN("predict", "--scores", "model.ll", "t.svm")), scores);
    assert_string_equal(text_of(RUN("predict", "--scores", "back.st", "t.svm")), scores);
    FILE *f = fopen("model.csv", "r");
    char line[64] = "";
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line, "feature,weight\n");
    fclose(f);
    /* as training would have written it */
    program_assert_status(RUN("-q", "-w", "1", "-e", "2", "-o", "trained.ll", "--format", "liblinear", "t.svm"), 0);
    program_assert_status(program_run(NULL, (const char *const[]){"cmp", "trained.ll", "model.ll", NULL}), 0);
}

static void what_cannot_be_converted_is_refused_and_replaces_nothing(void **state) {
    (void)state;
    program_write_file("zero", "1 0:1\n-1 2:1\n");
    program_write_file("out", "before");
    program_assert_status(RUN("-q", "-w", "1", "-o", "zero.st", "zero"), 0);
    const struct refusal list[] = {
        {2, "model convert: name the file to write, as in -o FILE", {"model", "convert", "model.st"}},
        {2, "model shrink: expected model convert MODEL -o FILE", {"model", "shrink", "model.st"}},
        {2, "--output model.st is read as the model", {"model", "convert", "model.st", "-o", "model.st"}},
        {1, "cannot open the model none: No such file", {"model", "convert", "none", "-o", "out"}},
        {1, "two: byte 0: not a model file", {"model", "convert", "two", "-o", "out"}},
        {2, "model does not use --workers", {"model", "convert", "model.st", "-w", "2"}},
    };
    ASSERT_ALL_REFUSED(list);
    program_assert_refused(RUN("model", "convert", "zero.st", "-o", "out", "--format", "liblinear"), 2,
                           "the data has a feature 0, but LIBLINEAR counts from 1");
    program_assert_refused(RUN("model", "convert", "model.st", "-o", "out", "--format", "onnx"), 2,
                           "format onnx: expected safetensors, liblinear or csv");
    struct stat out;
    assert_int_equal(stat("out", &out), 0);
    assert_int_equal(out.st_size, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(eval_of_standard_input_is_that_of_the_file),
        PROGRAM_TEST(standard_input_is_read_from_where_it_stands),
        PROGRAM_TEST(what_is_wrong_with_standard_input_is_said_of_it),
        PROGRAM_TEST(a_signal_ends_the_wait_for_standard_input),
        PROGRAM_TEST(lines_before_a_bad_one_are_predicted_by_however_many),
        PROGRAM_TEST(eval_and_predict_keep_a_cache_beside_the_data),
        PROGRAM_TEST(a_model_is_converted_there_and_back),
        PROGRAM_TEST(what_cannot_be_converted_is_refused_and_replaces_nothing),
    };
    return cmocka_run_group_tests(tests, make_all, program_remove_folder);
}
