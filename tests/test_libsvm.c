/* The LIBSVM reader: the grammar, every refusal with its sentence, parts, and files that are odd or change while being read. */
#include "data_load.h"

#include "data/libsvm_line.h"
#include "data/number.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/random.h"

static char g_folder[4096]; /* made for this run, removed after it */
static char g_path[4200];   /* the file of the test that runs */
static locale_t g_c_locale;

/* What the reader's pread does: by default what it is asked to. */
static uint64_t g_pread_most = UINT64_MAX; /* bytes per call; 0: it fails */
static bool g_pread_interrupted;           /* every second call */

ssize_t __real_pread(int fd, void *into, size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void *into, size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void *into, size_t bytes, off_t at) {
    static _Thread_local bool interrupt;
    interrupt = g_pread_interrupted && !interrupt;
    if (interrupt || g_pread_most == 0) {
        errno = interrupt ? EINTR : EIO;
        return -1;
    }
    return __real_pread(fd, into, bytes < g_pread_most ? bytes : g_pread_most, at);
}

static int make_folder(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(g_folder, sizeof g_folder, "%s/shmtrain-data-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(g_folder) || chdir(g_folder) != 0) return -1;
    strcpy(g_path, "t.svm"); /* relative, so that sentences are short and known */
    g_c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return g_c_locale ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    freelocale(g_c_locale);
    unlink(g_path);
    return chdir("/") == 0 && rmdir(g_folder) == 0 ? 0 : -1;
}

static void write_bytes(const char *bytes, uint64_t n) {
    FILE *f = fopen(g_path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *text) { write_bytes(text, strlen(text)); }

static void assert_loads(struct loaded *l, uint32_t n_parts) {
    const int status = load_name(l, g_path, 0, false, n_parts);
    if (status != 0) print_error("%s\n", l->error.text);
    assert_int_equal(status, 0);
}

static void assert_refused(const char *sentence, int status) {
    struct loaded l;
    assert_int_equal(load_name(&l, g_path, 0, false, 3), status);
    assert_string_equal(l.error.text, sentence);
    load_free(&l);
}

/* ---- what is accepted ---- */

static void labels_and_features_are_read(void **state) {
    (void)state;
    write_text("+1 1:0.5 3:-2e-1 10:3\n-1 2:1e3\n");
    struct loaded l;
    assert_loads(&l, 1);
    const uint64_t start[] = {0, 3, 4};
    const uint32_t id[] = {1, 3, 10, 2};
    const float value[] = {0.5f, -0.2f, 3, 1000}, label[] = {1, -1};
    assert_int_equal(l.totals.n_examples, 2);
    assert_int_equal(l.totals.n_nonzeros, 4);
    assert_memory_equal(l.arrays.start, start, sizeof start);
    assert_memory_equal(l.arrays.id, id, sizeof id);
    assert_memory_equal(l.arrays.value, value, sizeof value);
    assert_memory_equal(l.arrays.label, label, sizeof label);
    assert_int_equal(l.totals.min_id, 1);
    assert_int_equal(l.totals.max_id, 10);
    assert_false(l.totals.all_ones);
    assert_true(l.totals.label_low == -1 && l.totals.label_high == 1);
    load_free(&l);
}

/* Each of these texts is the same as "1 2:3 4:5" and "0". */
static void blanks_comments_and_query_ids_change_nothing(void **state) {
    (void)state;
    static const char *const same[] = {
        "1 2:3 4:5\n0\n",
        "1 2:3 4:5\n0",
        "1 2:3 4:5\r\n0\r\n",
        "1\t2:3\t \t4:5 \t\n\n   \n\t0   ",
        "  1 2:3 4:5\n 0\n\n\n",
        "# head\n1 2:3 4:5 # end\n  # middle\n0#\n#",
        "1 2:3 4:5#6:7\n0 # \001 \377 anything \"\n",
        "1 qid:3 2:3 4:5\n0 qid:12345678901234567890\n",
        "\r\n1 2:3 4:5\r\n\r\n0",
        "+1.0e+0 002:3.0 4:0.5E1\n-0 7:0 9:0.0e5\n",
    };
    write_text(same[0]);
    struct loaded first, other;
    assert_loads(&first, 1);
    for (size_t i = 1; i < sizeof same / sizeof *same; i++) {
        write_text(same[i]);
        assert_loads(&other, 2);
        assert_int_equal(other.totals.n_examples, 2);
        assert_memory_equal(first.arrays.start, other.arrays.start, 3 * sizeof(uint64_t));
        assert_memory_equal(first.arrays.id, other.arrays.id, 2 * sizeof(uint32_t));
        assert_memory_equal(first.arrays.value, other.arrays.value, 2 * sizeof(float));
        assert_true(other.arrays.label[0] == 1 && other.arrays.label[1] == 0);
        load_free(&other);
    }
    load_free(&first);
}

static void zeros_are_no_nonzeros_but_their_ids_count(void **state) {
    (void)state;
    write_text("1 0:0 3:1 7:1 9:-0.0\n1 2:1e-60\n");
    struct loaded l;
    assert_loads(&l, 2);
    assert_int_equal(l.totals.n_nonzeros, 2);
    assert_int_equal(l.arrays.id[0], 3);
    assert_int_equal(l.totals.min_id, 0);
    assert_int_equal(l.totals.max_id, 9);
    assert_true(l.totals.all_ones);
    assert_null(l.arrays.value);
    load_free(&l);
}

static void examples_may_have_no_feature_at_all(void **state) {
    (void)state;
    write_text("1\n2\n");
    struct loaded l;
    assert_loads(&l, 3);
    assert_int_equal(l.totals.n_examples, 2);
    assert_int_equal(l.totals.n_nonzeros, 0);
    assert_true(l.totals.min_id > l.totals.max_id);
    assert_int_equal(l.arrays.start[2], 0);
    load_free(&l);
}

static void distinct_labels_are_told_up_to_three(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t n;
        float label[3];
        const char *third_at;
    } cases[] = {
        {"5\n5\n5\n", 1, {5, 0, 0}, NULL},
        {"2\n1\n2\n1\n", 2, {2, 1, 0}, NULL},
        {"-0\n0\n", 1, {0, 0, 0}, NULL},
        {"0\n1\n\n1\n0.5\n7\n", 3, {0, 1, 0.5f}, "t.svm:5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t parts = 1; parts < 7; parts++) {
            write_text(cases[i].text);
            struct shmt_source *source;
            struct loaded l;
            char place[100];
            assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
            assert_int_equal(load_count(&l, source, parts, SHMT_ALL_COLUMNS), 0);
            assert_int_equal(l.totals.n_labels, cases[i].n);
            for (uint32_t j = 0; j < cases[i].n; j++) assert_true(l.totals.label[j] == cases[i].label[j]);
            if (cases[i].third_at) {
                shmt_source_place(source, l.totals.label_at[2], place, sizeof place);
                assert_string_equal(place, cases[i].third_at);
            }
            shmt_source_close(source);
        }
    }
}

static void ids_outside_the_columns_are_left_out_when_counted_with_them(void **state) {
    (void)state;
    write_text("1 1:2 5:3 6:4\n-1 6:1 4000000000:1\n-1 4294967294:1\n");
    const struct shmt_columns columns = {1, 5};
    struct shmt_source *source;
    struct loaded l;
    assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
    assert_int_equal(load_source(&l, source, 2, columns), 0);
    shmt_source_close(source);
    const uint64_t start[] = {0, 2, 2, 2};
    const uint32_t id[] = {0, 4};
    assert_int_equal(l.totals.n_nonzeros, 2);
    assert_memory_equal(l.arrays.start, start, sizeof start);
    assert_memory_equal(l.arrays.id, id, sizeof id);
    assert_true(l.arrays.value[0] == 2 && l.arrays.value[1] == 3);
    assert_int_equal(l.totals.max_id, 4294967294);
    assert_true(l.totals.mean_square == 13.0 / 3);
    load_free(&l);
}

/* ---- what is refused ---- */

static void a_bad_line_is_named_with_its_place_and_what_was_expected(void **state) {
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"1 1:2\n1 2:3  7x3\n", "t.svm:2:8: expected \"index:value\", found \"7x3\""},
        {"x 1:2\n", "t.svm:1:1: expected a label (a number), found \"x\""},
        {"\n# c\n  1:2 3:4\n", "t.svm:3:3: expected a label (a number), found \"1:2\""},
        {"1,2 1:1\n", "t.svm:1:1: expected a label (a number), found \"1,2\""},
        {"nan 1:1\n", "t.svm:1:1: expected a label (a number), found \"nan\""},
        {"- 1:1\n", "t.svm:1:1: expected a label (a number), found \"-\""},
        {"0x10 1:1\n", "t.svm:1:1: expected a label (a number), found \"0x10\""},
        {"1e39 1:1\n", "t.svm:1:1: expected a label between -3.4e38 and 3.4e38, found \"1e39\""},
        {"1 +02:3\n", "t.svm:1:3: expected \"index:value\", found \"+02:3\""},
        {"1 -1:3\n", "t.svm:1:3: expected \"index:value\", found \"-1:3\""},
        {"1 :3\n", "t.svm:1:3: expected \"index:value\", found \":3\""},
        {"1 3\n", "t.svm:1:3: expected \"index:value\", found \"3\""},
        {"1 1:1,2:1\n", "t.svm:1:5: expected a number after \"1:\", found \"1,2:1\""},
        {"1 1 :2\n", "t.svm:1:3: expected \"index:value\", found \"1\""},
        {"1 1: 2\n", "t.svm:1:5: expected a number after \"1:\", found nothing"},
        {"1 1:", "t.svm:1:5: expected a number after \"1:\", found nothing"},
        {"1 1:#\n", "t.svm:1:5: expected a number after \"1:\", found nothing"},
        {"1 1:inf\n", "t.svm:1:5: expected a number after \"1:\", found \"inf\""},
        {"1 1:3e\n", "t.svm:1:5: expected a number after \"1:\", found \"3e\""},
        {"1 1:.\n", "t.svm:1:5: expected a number after \"1:\", found \".\""},
        {"1 1:1.2.3\n", "t.svm:1:5: expected a number after \"1:\", found \"1.2.3\""},
        {"1 1:-4e38\n", "t.svm:1:5: expected a value between -3.4e38 and 3.4e38, found \"-4e38\""},
        {"1 4294967295:1\n", "t.svm:1:3: expected an index of at most 4294967294, found \"4294967295:1\""},
        {"1 99999999999999999999999:1\n",
         "t.svm:1:3: expected an index of at most 4294967294, found \"99999999999999999999999:1\""},
        {"1 3:1 3:2\n", "t.svm:1:7: expected an index above 3 (indices ascend within a line), found \"3:2\""},
        {"1 0:1 0:2\n", "t.svm:1:7: expected an index above 0 (indices ascend within a line), found \"0:2\""},
        {"1 7:1 9:1 5:1\n", "t.svm:1:11: expected an index above 9 (indices ascend within a line), found \"5:1\""},
        {"1 qid:x 1:1\n", "t.svm:1:7: expected a whole number after \"qid:\", found \"x\""},
        {"1 qid: 1:1\n", "t.svm:1:7: expected a whole number after \"qid:\", found nothing"},
        {"1 1:1 qid:3\n", "t.svm:1:7: expected \"index:value\", found \"qid:3\""},
        {"1 1:1\r2 1:1\n", "t.svm:1:5: expected a number after \"1:\", found \"1\\x0d2\""},
        {"1 \xc3\xa9\"\\\n", "t.svm:1:3: expected \"index:value\", found \"\\xc3\\xa9\\\"\\\\\""},
        {"1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
         "t.svm:1:3: expected \"index:value\", found \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(cases[i].text);
        assert_refused(cases[i].sentence, SHMTRAIN_E_DATA);
    }
}

static void zero_bytes_are_shown_not_swallowed(void **state) {
    (void)state;
    static const char text[] = "1 1:1\n1\0 2:1\n";
    write_bytes(text, sizeof text - 1);
    assert_refused("t.svm:2:1: expected a label (a number), found \"1\\x00\"", SHMTRAIN_E_DATA);
}

static void the_first_bad_line_of_the_file_is_reported_for_any_number_of_parts(void **state) {
    (void)state;
    char text[8000] = "";
    for (int i = 1; i <= 300; i++) strcat(text, i % 100 == 50 ? "1 bad\n" : "1 1:1 2:1 3:1\n");
    write_text(text);
    for (uint32_t parts = 1; parts <= 17; parts++) {
        struct loaded l;
        assert_int_equal(load_name(&l, g_path, 0, false, parts), SHMTRAIN_E_DATA);
        assert_string_equal(l.error.text, "t.svm:50:3: expected \"index:value\", found \"bad\"");
    }
}

static void what_is_no_file_of_text_is_refused(void **state) {
    (void)state;
    struct loaded l;
    static const struct {
        const char *name, *sentence;
        int status;
    } names[] = {
        {"missing.svm", "cannot open missing.svm: No such file or directory", SHMTRAIN_E_SYSTEM},
        {"/", "/ is a directory; name a file in it", SHMTRAIN_E_USAGE},
        {"-", "data cannot come from standard input; save it to a file first, for it is read twice", SHMTRAIN_E_USAGE},
        {"/dev/null", "/dev/null is no regular file; save the data to a file first, for it is read twice", SHMTRAIN_E_USAGE},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(load_name(&l, names[i].name, 0, false, 1), names[i].status);
        assert_string_equal(l.error.text, names[i].sentence);
    }
    write_text("1 1:1\n");
    assert_int_equal(load_name(&l, g_path, 0, true, 1), SHMTRAIN_E_USAGE);
    assert_string_equal(l.error.text, "t.svm has no held-out examples of its own; name a second file for them");
    write_text("");
    assert_refused("t.svm is empty", SHMTRAIN_E_DATA);
    write_text("# nothing\n\n  \n");
    assert_refused("t.svm has no example, only blank lines and comments", SHMTRAIN_E_DATA);
    write_bytes("\x1f\x8b\x08\x00", 4);
    assert_refused("t.svm is compressed; unpack it with gunzip first", SHMTRAIN_E_DATA);
    write_bytes("\xfd\x37zXZ\x00", 6);
    assert_refused("t.svm is compressed; unpack it with unxz first", SHMTRAIN_E_DATA);
}

static void opening_a_pipe_does_not_wait_for_its_writer(void **state) {
    (void)state;
    unlink(g_path);
    assert_int_equal(mkfifo(g_path, 0600), 0);
    alarm(10);
    assert_refused("t.svm is no regular file; save the data to a file first, for it is read twice", SHMTRAIN_E_USAGE);
    alarm(0);
    unlink(g_path);
}

static void a_file_that_may_not_be_read_is_refused(void **state) {
    (void)state;
    write_text("1 1:1\n");
    assert_int_equal(chmod(g_path, 0), 0);
    const bool root = geteuid() == 0; /* root may read everything */
    if (root) assert_int_equal(seteuid(65534), 0);
    assert_refused("cannot open t.svm: Permission denied", SHMTRAIN_E_SYSTEM);
    if (root) assert_int_equal(seteuid(0), 0);
    unlink(g_path);
}

static void a_long_path_is_shown_by_its_end(void **state) {
    (void)state;
    char path[600];
    memset(path, 'a', sizeof path);
    for (size_t i = 100; i < 599; i += 100) path[i] = '/';
    strcpy(path + 590, "/e\n\xc3\xa9.svm");
    struct loaded l;
    assert_int_equal(load_name(&l, path, 0, false, 1), SHMTRAIN_E_SYSTEM);
    assert_true(strncmp(l.error.text, "cannot open ...a/aaaa", 21) == 0);
    assert_non_null(strstr(l.error.text, "/e?\xc3\xa9.svm: No such file or directory"));
}

/* ---- parts, odd files ---- */

/* Text with all that the grammar knows, the same for the same seed; returns its length. */
static uint64_t random_text(uint64_t seed, char *out, uint64_t room) {
    uint64_t n = 0, r = seed;
    while (n + 300 < room) {
        r = shmt_mix64(r);
        if (r % 13 == 0) n += (uint64_t)sprintf(out + n, "  \t# comment %d", (int)(r >> 40) % 1000);
        if (r % 13 > 1) {
            n += (uint64_t)sprintf(out + n, "%d", (int)(r >> 20) % 3 - 1);
            uint32_t id = 0;
            for (uint32_t i = 0; i < (r >> 8) % 12; i++) {
                const uint64_t bits = shmt_mix64(r + i + 1);
                id += 1 + (uint32_t)(bits % 1000);
                n += (uint64_t)sprintf(out + n, " %u:%.9g", id, (double)(float)(shmt_unit(bits) - 0.5));
            }
        }
        n += (uint64_t)sprintf(out + n, r % 7 == 0 ? "\r\n" : "\n");
    }
    return r % 2 ? n : n - 1 - (out[n - 2] == '\r'); /* sometimes no line break at the end */
}

static void any_number_of_parts_gives_the_same_bytes(void **state) {
    (void)state;
    char text[6000];
    for (uint64_t seed = 1; seed <= 8; seed++) {
        write_bytes(text, random_text(seed, text, 600 * seed + 400));
        struct loaded one, many;
        assert_loads(&one, 1);
        for (uint32_t parts = 2; parts <= 17; parts++) {
            assert_loads(&many, parts);
            assert_same_data(&one, &many);
            load_free(&many);
        }
        load_free(&one);
    }
}

static void more_parts_than_lines_leave_some_empty(void **state) {
    (void)state;
    write_text("1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1\n-1 1:1");
    struct loaded one, many;
    assert_loads(&one, 1);
    for (uint32_t parts = 2; parts <= MAX_PARTS; parts++) {
        assert_loads(&many, parts);
        assert_same_data(&one, &many);
        load_free(&many);
    }
    load_free(&one);
}

/* Long enough that lines straddle the reader's buffer, and that one line is larger than the buffer. */
static void lines_of_any_length_are_read(void **state) {
    (void)state;
    FILE *f = fopen(g_path, "wb");
    assert_non_null(f);
    uint64_t nonzeros = 0;
    for (uint32_t i = 0; i < 400; i++) {
        fprintf(f, "%u", i);
        const uint32_t n = i == 200 ? 200000 : 1000 + i;
        for (uint32_t j = 0; j < n; j++) fprintf(f, " %u:%u", j, i + 1);
        fprintf(f, "\n");
        nonzeros += n;
    }
    assert_int_equal(fclose(f), 0);
    struct loaded one, many;
    assert_loads(&one, 1);
    assert_int_equal(one.totals.n_examples, 400);
    assert_int_equal(one.totals.n_nonzeros, nonzeros);
    for (uint64_t i = 0; i < 400; i++) {
        assert_true(one.arrays.label[i] == (float)i);
        for (uint64_t k = one.arrays.start[i]; k < one.arrays.start[i + 1]; k++) {
            if (one.arrays.id[k] != k - one.arrays.start[i] || one.arrays.value[k] != (float)(i + 1)) fail();
        }
    }
    assert_loads(&many, 11);
    assert_same_data(&one, &many);
    load_free(&one);
    load_free(&many);
}

static void a_line_without_end_is_refused(void **state) {
    (void)state;
    write_text("1 1:1\n\n1 1:1\n");
    assert_int_equal(truncate(g_path, ((off_t)256 << 20) + 100), 0); /* a hole: zero bytes that take no disk */
    struct shmt_source *source;
    struct loaded l;
    assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
    assert_int_equal(load_count(&l, source, 2, SHMT_ALL_COLUMNS), SHMTRAIN_E_DATA);
    assert_string_equal(l.error.text, "t.svm:4: this line is longer than 256 MiB; is the file LIBSVM text?");
    shmt_source_close(source);
}

/* The reader's own buffer is larger than a page, so the parser is held against a page that must not be touched. */
static void the_parser_never_looks_behind_the_line_break(void **state) {
    (void)state;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
    static const char line[] = "-1.5e+3 qid:12 1:1 2:.5e-2 4294967294:12345678901234567890.5 # \r";
    uint32_t id[64];
    float value[64];
    struct shmt_libsvm_row row = {.id = id, .value = value};
    struct shmt_libsvm_fault fault;
    for (uint64_t n = 0; n < sizeof line; n++) {
        char *text = memory + page - n - 1;
        memcpy(text, line, n);
        text[n] = '\n';
        shmt_libsvm_parse(text, &SHMT_ALL_COLUMNS, g_c_locale, &row, &fault);
        for (uint64_t cut = 0; cut < n; cut++) shmt_libsvm_parse(text + cut, &SHMT_ALL_COLUMNS, g_c_locale, &row, &fault);
    }
    munmap(memory, 2 * page);
}

static void files_that_end_with_a_page_are_read_whole(void **state) {
    (void)state;
    char text[8192];
    for (uint64_t bytes = 4096; bytes <= 8192; bytes += 4096) {
        for (uint64_t end = 0; end < 2; end++) {
            for (uint64_t i = 0; i < bytes; i++) text[i] = "1 7:3\n2 5:2\n"[i % 12];
            const uint64_t rest = bytes % 12;
            memset(text + bytes - rest, ' ', rest);
            if (end == 1) text[bytes - 1] = '\n';
            write_bytes(text, bytes);
            struct loaded l;
            assert_loads(&l, 2);
            assert_int_equal(l.totals.n_examples, bytes / 12 * 2);
            load_free(&l);
        }
    }
}

static void random_bytes_are_refused_without_harm(void **state) {
    (void)state;
    char bytes[5000];
    for (uint64_t seed = 0; seed < 300; seed++) {
        for (uint64_t i = 0; i < sizeof bytes; i++) {
            const uint64_t r = shmt_hash64(seed, i, 0, 0);
            bytes[i] = seed % 2 ? (char)r : "0123456789:.e+-# \t\r\n\n1q"[r % 23];
        }
        write_bytes(bytes, 1 + seed * 16);
        struct loaded l;
        const int status = load_name(&l, g_path, 0, false, 1 + (uint32_t)seed % 5);
        assert_true(status == 0 || (status == SHMTRAIN_E_DATA && strncmp(l.error.text, "t.svm", 5) == 0));
        load_free(&l);
    }
}

static void short_and_interrupted_reads_change_nothing(void **state) {
    (void)state;
    char text[3000];
    write_bytes(text, random_text(5, text, sizeof text));
    struct loaded one, many;
    assert_loads(&one, 1);
    g_pread_interrupted = true;
    for (g_pread_most = 1; g_pread_most < 100; g_pread_most += 7) {
        const int status = load_name(&many, g_path, 0, false, 3);
        assert_int_equal(status, 0);
        assert_same_data(&one, &many);
        load_free(&many);
    }
    g_pread_interrupted = false;
    g_pread_most = UINT64_MAX;
    load_free(&one);
}

static void a_disk_that_cannot_be_read_is_told(void **state) {
    (void)state;
    write_text("1 1:1\nx\n");
    struct shmt_source *source;
    struct loaded l;
    assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
    char place[100];
    for (uint32_t parts = 1; parts < 4; parts++) {
        g_pread_most = 0;
        const int status = load_count(&l, source, parts, SHMT_ALL_COLUMNS);
        shmt_source_place(source, 6, place, sizeof place);
        g_pread_most = UINT64_MAX;
        assert_int_equal(status, SHMTRAIN_E_SYSTEM);
        assert_string_equal(l.error.text, "cannot read t.svm: Input/output error");
        assert_string_equal(place, "t.svm, byte 7");
    }
    shmt_source_close(source);
}

/* ---- the file changes between counting and filling ---- */

static void a_file_that_changed_since_it_was_counted_is_refused(void **state) {
    (void)state;
    static const char before[] = "1 1:1 2:1\n-1 3:1\n1 4:1\n";
    static const struct {
        const char *after, *sentence;
    } cases[] = {
        {"1 1:1 2:1\n-1 3:1\n", "t.svm became shorter while it was being read"},
        {"1 1:1 2:1\n-1 3:2\n1 4:1\n", "t.svm changed while it was being read"}, /* no longer all ones */
        {"1 1:1 2:1\n-1 3:1\n1 4  \n", "t.svm:3:3: expected \"index:value\", found \"4\""},
        {"1 1:1 2:1\n-1    \n1 4:1\n", "t.svm changed while it was being read"},   /* fewer nonzeros */
        {"1 1:1    \n1\n2\n3\n4\n1  \n", "t.svm changed while it was being read"}, /* more examples */
        {"1 1:1 2:1 3:1 4:1 5:1 \n", "t.svm changed while it was being read"},     /* more nonzeros than there were in all */
        {"1 1:1 2:1       \n1 4:1\n", "t.svm changed while it was being read"},    /* fewer examples */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(before);
        struct shmt_source *source;
        struct loaded l;
        assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
        assert_int_equal(load_count(&l, source, 1, SHMT_ALL_COLUMNS), 0);
        load_allocate(&l, SHMT_ALL_COLUMNS);
        write_text(cases[i].after);
        assert_int_equal(load_fill(&l, source, 1), SHMTRAIN_E_DATA);
        assert_string_equal(l.error.text, cases[i].sentence);
        load_free(&l);
        shmt_source_close(source);
    }
}

static void what_is_appended_while_reading_is_left_for_the_next_time(void **state) {
    (void)state;
    write_text("1 1:1 2:1\n-1 3:1\n");
    struct shmt_source *source;
    struct loaded l;
    assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
    assert_int_equal(load_count(&l, source, 2, SHMT_ALL_COLUMNS), 0);
    load_allocate(&l, SHMT_ALL_COLUMNS);
    write_text("1 1:1 2:1\n-1 3:1\n1 4:1\n");
    assert_int_equal(load_fill(&l, source, 2), 0);
    assert_int_equal(l.totals.n_examples, 2);
    load_free(&l);
    shmt_source_close(source);
}

/* ---- several processes, several threads ---- */

struct shared {
    struct shmt_part part[4];
    uint64_t start[2001];
    uint32_t id[40000];
    float value[40000], label[2000];
};

/* Runs count (or fill) of four parts in four processes that inherited the source. */
static void in_four_processes(const struct shmt_source *source, struct shared *s, bool fill) {
    pid_t child[4];
    for (uint32_t part = 0; part < 4; part++) {
        child[part] = fork();
        assert_true(child[part] >= 0);
        if (child[part] > 0) continue;
        alarm(60);
        const struct shmt_arrays into = {s->start, s->id, s->value, s->label, SHMT_ALL_COLUMNS};
        const int status = fill ? shmt_source_fill(source, part, 4, s->part, &into, NULL)
                                : shmt_source_count(source, &SHMT_ALL_COLUMNS, part, 4, &s->part[part]);
        _exit(status == 0 ? 0 : 1);
    }
    for (uint32_t part = 0; part < 4; part++) {
        int status;
        assert_int_equal(waitpid(child[part], &status, 0), child[part]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void processes_that_share_an_opened_file_do_not_disturb_one_another(void **state) {
    (void)state;
    static char text[100000];
    write_bytes(text, random_text(99, text, sizeof text));
    struct loaded l;
    assert_loads(&l, 1);
    assert_true(l.totals.n_examples <= 2000 && l.totals.n_nonzeros <= 40000);
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    struct shmt_source *source;
    assert_int_equal(shmt_source_open(g_path, 0, false, &source, NULL), 0);
    in_four_processes(source, s, false);
    in_four_processes(source, s, true);
    shmt_source_close(source);
    assert_memory_equal(s->start, l.arrays.start, (l.totals.n_examples + 1) * sizeof(uint64_t));
    assert_memory_equal(s->id, l.arrays.id, l.totals.n_nonzeros * sizeof(uint32_t));
    assert_memory_equal(s->value, l.arrays.value, l.totals.n_nonzeros * sizeof(float));
    assert_memory_equal(s->label, l.arrays.label, l.totals.n_examples * sizeof(float));
    munmap(s, sizeof *s);
    load_free(&l);
}

/* A part of a source, for a thread. */
struct work {
    const struct shmt_source *source;
    struct loaded *l;
    uint32_t part;
    bool fill;
    int status;
};

static void *do_work(void *arg) {
    struct work *w = arg;
    w->status = w->fill ? shmt_source_fill(w->source, w->part, 4, w->l->part, &w->l->arrays, NULL)
                        : shmt_source_count(w->source, &SHMT_ALL_COLUMNS, w->part, 4, &w->l->part[w->part]);
    return NULL;
}

static void in_four_threads(const struct shmt_source *source, struct loaded *l, bool fill) {
    pthread_t thread[4];
    struct work work[4];
    for (uint32_t part = 0; part < 4; part++) {
        work[part] = (struct work){source, l, part, fill, -1};
        assert_int_equal(pthread_create(&thread[part], NULL, do_work, &work[part]), 0);
    }
    for (uint32_t part = 0; part < 4; part++) {
        assert_int_equal(pthread_join(thread[part], NULL), 0);
        assert_int_equal(work[part].status, 0);
    }
}

static void threads_that_share_a_source_do_not_disturb_one_another(void **state) {
    (void)state;
    static char text[100000];
    write_bytes(text, random_text(98, text, sizeof text));
    const char *const names[] = {g_path, "builtin:sparse:examples=500,features=2000", "builtin:line:noise=1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct loaded one, l = {0};
        struct shmt_source *source;
        assert_int_equal(load_name(&one, names[i], 4, false, 1), 0);
        assert_int_equal(shmt_source_open(names[i], 4, false, &source, NULL), 0);
        in_four_threads(source, &l, false);
        assert_int_equal(shmt_parts_total(source, l.part, 4, &l.totals, NULL), 0);
        load_allocate(&l, SHMT_ALL_COLUMNS);
        in_four_threads(source, &l, true);
        assert_same_data(&one, &l);
        shmt_source_close(source);
        load_free(&l);
        load_free(&one);
    }
}

/* ---- numbers ---- */

static void assert_reads_as_strtof(const char *number) {
    char line[1000];
    float value, expected = strtof(number, NULL); /* the test runs in the "C" locale */
    snprintf(line, sizeof line, "%s\n", number);
    const char *end = shmt_number_read(line, g_c_locale, &value);
    if (end != line + strlen(number) || memcmp(&value, &expected, sizeof value) != 0) {
        print_error("%s: read as %a, strtof says %a\n", number, (double)value, (double)expected);
        fail();
    }
}

static void every_float_survives_being_written_and_read(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 300000; i++) {
        const uint32_t bits = (uint32_t)shmt_mix64(i);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        char text[64];
        snprintf(text, sizeof text, "%.9g", (double)value);
        assert_reads_as_strtof(text);
        snprintf(text, sizeof text, "%.17g", (double)value);
        assert_reads_as_strtof(text);
    }
}

static void decimals_of_all_shapes_are_rounded_correctly(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 300000; i++) {
        char text[80];
        const uint64_t a = shmt_mix64(2 * i), b = shmt_mix64(2 * i + 1);
        const int whole_digits = (int)(b % 22), digits = (int)((b >> 8) % 25);
        int n = sprintf(text, "%s%.*s", b & 1 ? "-" : "", whole_digits, "9876543210987654321098");
        n += sprintf(text + n, "%llu.%0*llu", (unsigned long long)(a >> (b >> 16) % 64), digits, (unsigned long long)(a >> 30));
        if (b >> 32 & 1) sprintf(text + n, "e%d", (int)((b >> 33) % 120) - 70);
        assert_reads_as_strtof(text);
    }
}

/* A decimal exactly between two floats, and its neighbours: where rounding twice, first to double, goes wrong. */
static void the_middle_between_two_floats_is_rounded_once(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        uint32_t bits = (uint32_t)shmt_mix64(i) % 0x7f000000;
        float low, high;
        memcpy(&low, &bits, sizeof low);
        bits++;
        memcpy(&high, &bits, sizeof high);
        const double middle = ((double)low + (double)high) / 2; /* exact */
        char text[400], nudged[420];
        snprintf(text, sizeof text, "%.150g", middle);
        assert_reads_as_strtof(text);
        if (strchr(text, 'e') || !strchr(text, '.')) continue;
        snprintf(nudged, sizeof nudged, "%s00000000000000000001", text);
        assert_reads_as_strtof(nudged);
    }
    static const char *const known[] = {
        "16777217",
        "16777219",
        "33554434",
        "1.00000017881393421514957253748434595763683319091796875001",
        "0.5000000298023224",
        "9007199254740993",
        "340282346638528859811704183484516925440",
        "340282356779733661637539395458142568447",
        "340282356779733661637539395458142568448",
        "3.4028235e38",
        "1e-45",
        "7.006492321624085e-46",
        "7.0064923216240853546186479164495806564013097093825788587853e-46",
        "1e-46",
        "1.1754943508222875e-38",
        "00000000000000000000000001",
        "0.00000000000000000000000000000000000000000000001",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "123456789012345678901234567890e-20",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999",
        "5.",
        ".5",
        "+5",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) assert_reads_as_strtof(known[i]);
}

static void what_is_no_number_is_not_read(void **state) {
    (void)state;
    static const char *const none[] = {"\n",    "+\n",   "-\n",        ".\n",   "e5\n", "-.e1\n",
                                       "nan\n", "inf\n", "infinity\n", "--1\n", ",5\n"};
    float value;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_null(shmt_number_read(none[i], g_c_locale, &value));
    char digits[SHMT_NUMBER_MAX + 3];
    memset(digits, '0', sizeof digits);
    digits[SHMT_NUMBER_MAX] = '\n';
    assert_non_null(shmt_number_read(digits, g_c_locale, &value));
    digits[SHMT_NUMBER_MAX] = '0';
    digits[SHMT_NUMBER_MAX + 1] = '\n';
    assert_null(shmt_number_read(digits, g_c_locale, &value));
}

static void a_locale_with_a_decimal_comma_changes_nothing(void **state) {
    (void)state;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof commas / sizeof *commas && !found; i++) found = setlocale(LC_ALL, commas[i]);
    if (!found) skip(); /* none is installed */
    float value;
    const char text[] = "1.00000017881393421514957253748434595763683319091796875001\n"; /* one that strtof_l decides */
    const char *end = shmt_number_read(text, g_c_locale, &value);
    setlocale(LC_ALL, "C");
    assert_ptr_equal(end, text + sizeof text - 2);
    assert_true(value == 0x1.000004p0f);
}

/* ---- real data ---- */

static void a9a_is_read_as_what_it_is(void **state) {
    (void)state;
    const char *folder = getenv("SHMTRAIN_DATA_DIR");
    if (!folder) skip(); /* the data is not part of the project */
    char path[4200];
    snprintf(path, sizeof path, "%s/a9a", folder);
    struct loaded l, many;
    assert_int_equal(load_name(&l, path, 0, false, 1), 0);
    assert_int_equal(l.totals.n_examples, 32561);
    assert_int_equal(l.totals.n_nonzeros, 451592);
    assert_int_equal(l.totals.min_id, 1);
    assert_int_equal(l.totals.max_id, 123);
    assert_true(l.totals.all_ones);
    assert_int_equal(l.totals.n_labels, 2);
    assert_true(l.totals.label_low == -1 && l.totals.label_high == 1);
    assert_true(l.totals.mean_square == 451592.0 / 32561);
    assert_int_equal(load_name(&many, path, 0, false, 8), 0);
    assert_same_data(&l, &many);
    load_free(&l);
    load_free(&many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_and_features_are_read),
        cmocka_unit_test(blanks_comments_and_query_ids_change_nothing),
        cmocka_unit_test(zeros_are_no_nonzeros_but_their_ids_count),
        cmocka_unit_test(examples_may_have_no_feature_at_all),
        cmocka_unit_test(distinct_labels_are_told_up_to_three),
        cmocka_unit_test(ids_outside_the_columns_are_left_out_when_counted_with_them),
        cmocka_unit_test(a_bad_line_is_named_with_its_place_and_what_was_expected),
        cmocka_unit_test(zero_bytes_are_shown_not_swallowed),
        cmocka_unit_test(the_first_bad_line_of_the_file_is_reported_for_any_number_of_parts),
        cmocka_unit_test(what_is_no_file_of_text_is_refused),
        cmocka_unit_test(opening_a_pipe_does_not_wait_for_its_writer),
        cmocka_unit_test(a_file_that_may_not_be_read_is_refused),
        cmocka_unit_test(a_long_path_is_shown_by_its_end),
        cmocka_unit_test(any_number_of_parts_gives_the_same_bytes),
        cmocka_unit_test(more_parts_than_lines_leave_some_empty),
        cmocka_unit_test(lines_of_any_length_are_read),
        cmocka_unit_test(a_line_without_end_is_refused),
        cmocka_unit_test(the_parser_never_looks_behind_the_line_break),
        cmocka_unit_test(files_that_end_with_a_page_are_read_whole),
        cmocka_unit_test(random_bytes_are_refused_without_harm),
        cmocka_unit_test(short_and_interrupted_reads_change_nothing),
        cmocka_unit_test(a_disk_that_cannot_be_read_is_told),
        cmocka_unit_test(a_file_that_changed_since_it_was_counted_is_refused),
        cmocka_unit_test(what_is_appended_while_reading_is_left_for_the_next_time),
        cmocka_unit_test(processes_that_share_an_opened_file_do_not_disturb_one_another),
        cmocka_unit_test(threads_that_share_a_source_do_not_disturb_one_another),
        cmocka_unit_test(every_float_survives_being_written_and_read),
        cmocka_unit_test(decimals_of_all_shapes_are_rounded_correctly),
        cmocka_unit_test(the_middle_between_two_floats_is_rounded_once),
        cmocka_unit_test(what_is_no_number_is_not_read),
        cmocka_unit_test(a_locale_with_a_decimal_comma_changes_nothing),
        cmocka_unit_test(a9a_is_read_as_what_it_is),
    };
    return cmocka_run_group_tests_name("libsvm", tests, make_folder, remove_folder);
}
