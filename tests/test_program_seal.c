/* Damage to models and checkpoints: whatever bit of a file turns, every reader refuses it in a line; files without a seal are
 * taken, with a line. Through the library at every byte, by the real program at some of them. */
#include "run_program.h"

#include <fcntl.h>
#include <math.h>
#include <shmtrain/shmtrain.h>
#include <sys/stat.h>

#define MODEL      "good.model"
#define DATA       "data.svm"
#define DAMAGED    "damaged"
#define CHECKPOINT "saved/checkpoint-000000000004.safetensors"

static int make_files(void **state) {
    if (program_make_folder(state) != 0) return -1;
    FILE *f = fopen(DATA, "w");
    if (!f) return -1;
    for (int i = 0; i < 60; i++) fprintf(f, "%d %d:1 %d:0.5\n", i % 2 * 2 - 1, i % 3 + 1, i % 4 + 4);
    fclose(f);
    program_assert_status(RUN("-q", "-w", "1", "-o", MODEL, DATA), 0);
    program_assert_status(RUN("-q", "-w", "1", "--mode", "sync", "--batch", "15", "-e", "1", "--checkpoint", "saved", DATA), 0);
    return program_end_all(state);
}

static int remove_files(void **state) {
    program_drop_folder("saved");
    return program_remove_folder(state);
}

static unsigned char *read_whole(const char *path, size_t *n_out) {
    struct stat s;
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("there is no %s", path);
    assert_int_equal(fstat(fileno(f), &s), 0);
    unsigned char *bytes = malloc((size_t)s.st_size + 1);
    assert_non_null(bytes);
    *n_out = fread(bytes, 1, (size_t)s.st_size, f);
    bytes[*n_out] = '\0';
    fclose(f);
    assert_int_equal(*n_out, s.st_size);
    return bytes;
}

static void write_whole(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* ---- through the library ---- */

static void library_refuses(struct shmtrain_store *store, size_t bit) {
    static struct shmtrain_file_info info;
    if (shmtrain_store_load(store, DAMAGED) >= 0) fail_msg("bit %zu: the file is loaded", bit);
    assert_non_null(strstr(shmtrain_store_message(store), DAMAGED));
    assert_null(strchr(shmtrain_store_message(store), '\n'));
    if (shmtrain_store_inspect(store, DAMAGED, &info) >= 0) fail_msg("bit %zu: the file is shown", bit);
}

/* One bit of each byte of the file, and all of those at its beginning. */
static void turn_bits_of(const char *path) {
    struct shmtrain_store *store;
    size_t n;
    unsigned char *bytes = read_whole(path, &n);
    assert_int_equal(shmtrain_store_create(&store), 0);
    write_whole(DAMAGED, bytes, n);
    assert_int_equal(shmtrain_store_load(store, DAMAGED), 0);
    for (size_t bit = 0; bit < 8 * n; bit += bit < 16 * 8 ? 1 : 9) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_whole(DAMAGED, bytes, n);
        library_refuses(store, bit);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    shmtrain_store_destroy(store);
    free(bytes);
}

static void no_bit_of_a_file_turns_unseen(void **state) {
    (void)state;
    turn_bits_of(MODEL);
    turn_bits_of(CHECKPOINT);
}

/* ---- by the program ---- */

static struct program *read_by(size_t reader, const char *path) {
    switch (reader) {
        case 0:
            return RUN("eval", path, DATA);
        case 1:
            return RUN("predict", path, DATA);
        case 2:
            return RUN("model", "convert", path, "-o", "converted", "--format", "liblinear");
        case 3:
            return RUN("inspect", path);
        case 4:
            return RUN("-q", "-w", "1", "-e", "1", "--init-from", path, DATA);
        default:
            return RUN("predict", path, "-");
    }
}
enum { N_READERS = 6 };

/* At a place in each part of the file all of them; elsewhere one of them. */
static void damage(const char *path, size_t step) {
    size_t n, reader = 0;
    unsigned char *bytes = read_whole(path, &n);
    const char *text = (const char *)bytes + 8;
    const size_t parts[] = {0,
                            12,
                            (size_t)(strstr(text, "shmtrain.format") - text) + 8,
                            n - 2,
                            (size_t)(strstr(text, "shmtrain.xxh64") - text) + 8,
                            (size_t)(strstr(text, "xxh64\":\"") - text) + 18};
    for (size_t i = 0; i < sizeof parts / sizeof *parts + n / step; i++) {
        const bool is_part = i < sizeof parts / sizeof *parts;
        const size_t at = is_part ? parts[i] : (i - sizeof parts / sizeof *parts) * step;
        bytes[at] ^= (unsigned char)(1 << at % 8);
        write_whole(DAMAGED, bytes, n);
        for (size_t k = 0; k < (is_part ? N_READERS : 1); k++, reader++) {
            program_assert_refused(read_by(reader % N_READERS, DAMAGED), 1, DAMAGED);
            program_end_all(NULL);
        }
        bytes[at] ^= (unsigned char)(1 << at % 8);
    }
    assert_int_equal(access("converted", F_OK), -1);
    free(bytes);
}

static void every_command_refuses_a_damaged_model(void **state) {
    (void)state;
    damage(MODEL, 5);
}

static void every_command_refuses_a_damaged_checkpoint(void **state) {
    (void)state;
    damage(CHECKPOINT, 29);
}

static void the_sentence_says_what_is_wrong_and_what_to_do(void **state) {
    (void)state;
    size_t n;
    unsigned char *bytes = read_whole(MODEL, &n);
    bytes[n - 3] ^= 0x10;
    write_whole(DAMAGED, bytes, n);
    struct program *p = RUN("eval", DAMAGED, DATA);
    program_assert_status(p, 1);
    assert_string_equal(p->text[ERR],
                        "shmtrain: damaged is damaged: its checksum does not match its contents; use another copy "
                        "of it, or create it again\n");
    free(bytes);
}

/* ---- files without one ---- */

/* As older versions have written it: without the last two notes. */
static void write_unsealed(const char *path) {
    size_t n;
    unsigned char *bytes = read_whole(MODEL, &n);
    uint64_t header;
    memcpy(&header, bytes, 8);
    char *from = strstr((char *)bytes + 8, ",\"shmtrain.format\"");
    assert_non_null(from);
    const size_t gone = (size_t)(strchr(from, '}') - from);
    memmove(from, from + gone, (size_t)(bytes + n - (unsigned char *)from) - gone);
    header -= gone;
    memcpy(bytes, &header, 8);
    write_whole(path, bytes, n - gone);
    free(bytes);
}

static void a_model_without_a_seal_is_taken_with_a_line(void **state) {
    (void)state;
    char sealed[4096];
    write_unsealed("older");
    snprintf(sealed, sizeof sealed, "%s", RUN("predict", MODEL, DATA)->text[OUT]);
    assert_true(strlen(sealed) > 60);
    for (size_t reader = 0; reader < N_READERS; reader++) {
        struct program *p = read_by(reader, "older");
        program_assert_status(p, 0);
        assert_non_null(strstr(p->text[ERR], "older has no seal, so damage to it goes unnoticed"));
        p = read_by(reader, MODEL);
        program_assert_status(p, 0);
        assert_null(strstr(p->text[ERR], "seal"));
    }
    assert_string_equal(RUN("predict", "older", DATA)->text[OUT], sealed);
    program_assert_status(RUN("model", "convert", "older", "-o", "newer", "--format", "safetensors"), 0);
    size_t n, m;
    unsigned char *a = read_whole("newer", &n), *b = read_whole(MODEL, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

/* It has no room for a seal, and nothing is said about that. */
static void text_has_none(void **state) {
    (void)state;
    program_assert_status(RUN("model", "convert", MODEL, "-o", "text", "--format", "liblinear"), 0);
    struct program *p = RUN("eval", "text", DATA);
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
}

/* Also one that begins in the middle of a file: what is before it is no part of it. */
static void what_goes_through_a_pipe_or_a_descriptor_is_sealed(void **state) {
    (void)state;
    static const char *const SHELL[] = {"\"$TEST_BUILDDIR\"/shmtrain model convert " MODEL
                                        " -o /dev/stdout --format safetensors | cat > piped",
                                        "{ printf before; \"$TEST_BUILDDIR\"/shmtrain model convert " MODEL
                                        " -o /dev/stdout --format safetensors; } > whole; tail -c +7 whole > piped"};
    size_t n, m;
    unsigned char *good = read_whole(MODEL, &n);
    for (size_t i = 0; i < sizeof SHELL / sizeof *SHELL; i++) {
        program_assert_status(program_run(NULL, (const char *const[]){"sh", "-c", SHELL[i], NULL}), 0);
        unsigned char *bytes = read_whole("piped", &m);
        assert_int_equal(n, m);
        assert_memory_equal(bytes, good, n);
        free(bytes);
    }
    free(good);
}

/* ---- other languages ---- */

static struct program *run_example(const char *model) {
    const char *source = getenv("TEST_SRCDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/examples/predict.py", source ? source : ".");
    struct program *p = program_run(NULL, (const char *const[]){"python3", path, model, DATA, NULL});
    if (p->status == 127) {
        print_message("skipped: there is no python3\n");
        skip();
    }
    return p;
}

static void python_checks_it_too(void **state) {
    (void)state;
    size_t n;
    unsigned char *bytes = read_whole(MODEL, &n);
    struct program *p = run_example(MODEL);
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    for (size_t at = n - 4; at > 100; at -= 41) {
        bytes[at] ^= 4;
        write_whole(DAMAGED, bytes, n);
        p = run_example(DAMAGED);
        program_assert_status(p, 1);
        assert_string_equal(p->text[OUT], "");
        assert_non_null(strstr(p->text[ERR], "damaged is damaged"));
        bytes[at] ^= 4;
    }
    write_unsealed("older");
    p = run_example("older");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "older has no seal"));
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(no_bit_of_a_file_turns_unseen),
        PROGRAM_TEST(every_command_refuses_a_damaged_model),
        PROGRAM_TEST(every_command_refuses_a_damaged_checkpoint),
        PROGRAM_TEST(the_sentence_says_what_is_wrong_and_what_to_do),
        PROGRAM_TEST(a_model_without_a_seal_is_taken_with_a_line),
        PROGRAM_TEST(text_has_none),
        PROGRAM_TEST(what_goes_through_a_pipe_or_a_descriptor_is_sealed),
        PROGRAM_TEST(python_checks_it_too),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
