/* The real program from outside: ids of any 64 bits, listed or hashed, in text, caches and models. */
#include "run_program.h"
#include "seal_help.h"

#include <fcntl.h>

enum { IDS = 400, ROWS = 4000, EACH = 9 };

/* The same rows twice: with large ids, and with their numbers from 1 on. */
static void write_rows(const char *large, const char *small, uint64_t seed) {
    FILE *l = fopen(large, "w"), *s = fopen(small, "w");
    assert_non_null(l);
    assert_non_null(s);
    for (int i = 0; i < ROWS; i++) {
        uint32_t id = 0, sum = 0;
        char text[2][600] = {"", ""};
        for (int k = 0; k < EACH; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            id += 1 + (uint32_t)(seed >> 33) % (IDS / EACH);
            sum += id % 5;
            const size_t n[2] = {strlen(text[0]), strlen(text[1])};
            snprintf(text[0] + n[0], sizeof text[0] - n[0], " %llu:1", (unsigned long long)id * 45000000000000000u + 7);
            snprintf(text[1] + n[1], sizeof text[1] - n[1], " %u:1", id);
        }
        const int label = sum > 2 * EACH ? 1 : -1;
        fprintf(l, "%d%s\n", label, text[0]);
        fprintf(s, "%d%s\n", label, text[1]);
    }
    assert_int_equal(fclose(l), 0);
    assert_int_equal(fclose(s), 0);
}

static int make_all(void **state) {
    if (program_make_folder(state) < 0) return -1;
    write_rows("large.svm", "small.svm", 1);
    return 0;
}

static void run_ok(const char *const *argv) {
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
}
#define RUN_OK(...) run_ok((const char *const[]){"shmtrain", __VA_ARGS__, NULL})

/* What a command says on stdout, to be freed. */
static char *said(const char *const *argv) {
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
    return strdup(p->text[OUT]);
}
#define SAID(...) said((const char *const[]){"shmtrain", __VA_ARGS__, NULL})

#define TRAIN "-w", "2", "--mode", "sync", "-e", "3", "--valid", "0.1", "-q"

static void assert_same_predictions(const char *model, const char *data, const char *as_model, const char *as_data) {
    char *a = SAID("predict", model, data), *b = SAID("predict", as_model, as_data);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void large_ids_learn_what_their_numbers_would(void **state) {
    (void)state;
    RUN_OK(TRAIN, "-o", "large", "large.svm");
    RUN_OK(TRAIN, "-o", "small", "small.svm");
    assert_same_predictions("large", "large.svm", "small", "small.svm");
    struct program *p = RUN(TRAIN, "large.svm");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "large.svm has ids up to "));
    assert_non_null(strstr(p->text[ERR], " that occur get parameters"));
}

static void a_pipe_is_read_as_the_file(void **state) {
    (void)state;
    RUN_OK(TRAIN, "-o", "large", "large.svm");
    char *file = SAID("predict", "large", "large.svm");
    struct program *p =
        program_run(NULL, (const char *const[]){"sh", "-c", "\"$TEST_BUILDDIR\"/shmtrain predict large - < large.svm", NULL});
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], file);
    free(file);
}

static void a_cache_keeps_the_ids(void **state) {
    (void)state;
    RUN_OK("data", "convert", "large.svm", "-o", "large.cache");
    RUN_OK(TRAIN, "-o", "text", "large.svm");
    RUN_OK(TRAIN, "-o", "cached", "large.cache");
    RUN_OK("predict", "text", "large.cache");
    assert_same_predictions("text", "large.svm", "cached", "large.cache");
    char *a = SAID("data", "info", "large.svm"), *b = SAID("data", "info", "large.cache");
    assert_string_equal(strchr(a, '\n'), strchr(b, '\n'));
    free(a);
    free(b);
}

static void csv_has_the_ids_as_they_were(void **state) {
    (void)state;
    RUN_OK(TRAIN, "-o", "m.csv", "--format", "csv", "large.svm");
    char text[64] = "";
    FILE *f = fopen("m.csv", "r");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_non_null(strstr(text, "feature,weight\n45000000000000007,"));
}

static void liblinear_has_no_room_for_large_ids(void **state) {
    (void)state;
    struct program *p = RUN(TRAIN, "-o", "m.liblinear", "--format", "liblinear", "large.svm");
    assert_int_not_equal(p->status, 0);
    assert_non_null(strstr(p->text[ERR], "have a line for every id up to the largest"));
    assert_int_equal(access("m.liblinear", F_OK), -1);
}

static void hashed_ids_are_hashed_alike_wherever_they_come_from(void **state) {
    (void)state;
    RUN_OK("data", "convert", "large.svm", "-o", "hash.cache");
    RUN_OK(TRAIN, "--hash-bits", "6", "-o", "text6", "large.svm");
    RUN_OK(TRAIN, "--hash-bits", "6", "-o", "cache6", "hash.cache");
    assert_same_predictions("text6", "large.svm", "cache6", "hash.cache");
    char *wide, *listed;
    RUN_OK(TRAIN, "--hash-bits", "22", "-o", "text22", "large.svm"); /* so many bits that nothing falls together */
    RUN_OK(TRAIN, "-o", "listed", "large.svm");
    wide = SAID("eval", "text22", "large.svm");
    listed = SAID("eval", "listed", "large.svm");
    assert_memory_equal(wide, listed, (size_t)(strstr(listed, "accuracy") - listed)); /* the same loss */
    free(wide);
    free(listed);
}

static void ids_that_the_model_does_not_know_are_left_out(void **state) {
    (void)state;
    RUN_OK(TRAIN, "-o", "large", "large.svm");
    program_write_file("few.svm",
                       "1 7:1 45000000000000007:1\n1 45000000000000007:1 18446744073709551615:3\n1 45000000000000007:1\n");
    char *text = SAID("predict", "large", "few.svm", "--scores");
    char first[64] = "";
    assert_int_equal(sscanf(text, "%63s", first), 1);
    const char *second = strchr(text, '\n') + 1;
    assert_memory_equal(second, text, (size_t)(second - text));
    free(text);
}

/* The list in a model file is believed no more than the rest. */
static void a_list_of_ids_that_cannot_be_is_refused(void **state) {
    (void)state;
    RUN_OK(TRAIN, "-o", "large", "large.svm");
    uint8_t bytes[1 << 16];
    const int fd = open("large", O_RDWR);
    assert_true(fd >= 0);
    const ssize_t n = read(fd, bytes, sizeof bytes);
    assert_true(n > 16 && n < (ssize_t)sizeof bytes);
    memset(bytes + n - 16, 0xff, 8); /* behind it stands a smaller one */
    make_seal(bytes, (uint64_t)n);
    assert_int_equal(pwrite(fd, bytes, (size_t)n, 0), n);
    close(fd);
    program_assert_refused(RUN("eval", "large", "large.svm"), 1, "key \"feature_id\": its ids are not in ascending order");
}

/* All that is known of the ids is that they are there: no column is left. */
static void ids_of_zeros_alone_are_no_columns(void **state) {
    (void)state;
    program_write_file("zeros.svm", "1 18446744073709551615:0\n-1 5000000000:0\n");
    RUN_OK("data", "convert", "zeros.svm", "-o", "zeros.cache");
    RUN_OK("data", "info", "zeros.cache");
    RUN_OK("-q", "-e", "1", "-o", "zeros", "zeros.cache");
    RUN_OK("eval", "zeros", "zeros.svm");
}

static void dense_rows_take_ids_that_are_far_apart(void **state) {
    (void)state;
    FILE *f = fopen("wide.svm", "w");
    assert_non_null(f);
    for (int i = 0; i < 20000; i++) fprintf(f, "%d %d:1 %d:1\n", i % 3, 1 + i % 50 * 90000, 9000000 + i % 7);
    assert_int_equal(fclose(f), 0);
    RUN_OK("-M", "softmax", "-q", "-e", "1", "-o", "wide", "wide.svm"); /* 670 GiB, were it a range */
    RUN_OK("-M", "softmax", "-q", "-e", "1", "--hash-bits", "8", "wide.svm");
    RUN_OK("eval", "wide", "wide.svm");
}

/* Of a range that a sparse model takes as it is. */
static void dense_rows_have_no_room_for_ids_that_do_not_occur(void **state) {
    (void)state;
    FILE *f = fopen("holes.svm", "w"), *all = fopen("all.svm", "w");
    assert_true(f && all);
    for (int i = 0; i < 20000; i++) fprintf(f, "%d %d:1 %d:1\n", i % 3, 1 + i % 50 * 9000, 900000 + i % 7);
    for (int i = 0; i < 2000; i++) fprintf(all, "%d %d:1\n", i % 3, 1 + i);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(fclose(all), 0);
    struct program *p = RUN("-M", "softmax", "-e", "1", "-q", "-o", "holes", "holes.svm"); /* 67 GiB, were it a range */
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "holes.svm has ids up to 900006: only the 57 that occur get parameters"));
    RUN_OK("eval", "holes", "holes.svm");
    p = program_run(NULL, (const char *const[]){"sh", "-c", "\"$TEST_BUILDDIR\"/shmtrain -M softmax -e 1 - < holes.svm", NULL});
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "only the 57 that occur get parameters"));
    p = RUN("-M", "softmax", "-e", "1", "all.svm"); /* nothing would be saved */
    program_assert_status(p, 0);
    assert_null(strstr(p->text[ERR], "numbered"));
    p = RUN("-M", "linear", "-e", "1", "holes.svm");
    program_assert_status(p, 0);
    assert_null(strstr(p->text[ERR], "numbered"));
}

static void what_the_model_does_not_know_is_counted(void **state) {
    (void)state;
    RUN_OK(TRAIN, "-o", "large", "large.svm");
    program_write_file("few.svm", "1 7:1 45000000000000007:1\n-1 90000000000000001:1\n");
    struct program *p = RUN("eval", "large", "few.svm");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "few.svm: 2 of 3 nonzeros have ids that the model does not know: they are left out"));
}

static void what_has_no_ids_is_not_hashed(void **state) {
    (void)state;
    static const unsigned char images[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4},
                               labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};
    FILE *i = fopen("images", "wb"), *l = fopen("labels", "wb");
    assert_true(fwrite(images, sizeof images, 1, i) == 1 && fwrite(labels, sizeof labels, 1, l) == 1);
    assert_true(fclose(i) == 0 && fclose(l) == 0);
    program_assert_refused(RUN("--hash-bits", "8", "-q", "images"), 2, "images has no ids to hash: remove --hash-bits");
    program_assert_refused(RUN("--hash-bits", "40", "small.svm"), 2, "--hash-bits");
    RUN_OK(TRAIN, "-o", "large", "large.svm");
    program_assert_refused(RUN("eval", "large", "images"), 2, "images has elements without ids");
    RUN_OK("--hash-bits", "8", "-q", "-M", "softmax", "builtin:dense:examples=50,features=7,classes=3"); /* these have ids */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(large_ids_learn_what_their_numbers_would),
        PROGRAM_TEST(a_pipe_is_read_as_the_file),
        PROGRAM_TEST(a_cache_keeps_the_ids),
        PROGRAM_TEST(csv_has_the_ids_as_they_were),
        PROGRAM_TEST(liblinear_has_no_room_for_large_ids),
        PROGRAM_TEST(hashed_ids_are_hashed_alike_wherever_they_come_from),
        PROGRAM_TEST(ids_that_the_model_does_not_know_are_left_out),
        PROGRAM_TEST(a_list_of_ids_that_cannot_be_is_refused),
        PROGRAM_TEST(ids_of_zeros_alone_are_no_columns),
        PROGRAM_TEST(dense_rows_take_ids_that_are_far_apart),
        PROGRAM_TEST(dense_rows_have_no_room_for_ids_that_do_not_occur),
        PROGRAM_TEST(what_the_model_does_not_know_is_counted),
        PROGRAM_TEST(what_has_no_ids_is_not_hashed),
    };
    program_forget_options();
    return cmocka_run_group_tests_name("ids", tests, make_all, program_remove_folder);
}
