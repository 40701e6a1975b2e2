/* The LIBSVM reader: parts, odd files, files that change while they are read, processes and threads that share one. */
#include "data_file.h"

#include "files/libsvm_line.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/random.h"

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
    assert_string_equal(l.error.text, "t.svm:4: this line is longer than 256 MiB; is the file text?");
    shmt_source_close(source);
}

/* The reader's own buffer is larger than a page, so the parser is held against a page that must not be touched. What stands in
 * the bytes that it may read makes no difference. */
static void the_parser_never_looks_behind_the_line_break(void **state) {
    (void)state;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
    static const char line[] = "-1.5e+3 qid:12 1:1 2:.5e-2 4294967294:12345678901234567890.5 # \r";
    uint64_t id[64];
    float value[64];
    struct shmt_row row = {.id = id, .value = value};
    struct shmt_line_fault fault;
    for (uint64_t n = 0; n < sizeof line; n++) {
        char *text = memory + page - n - 1 - SHMT_LINE_PAD;
        memcpy(text, line, n);
        text[n] = '\n';
        for (uint64_t cut = 0; cut <= n; cut++) {
            memset(text + n + 1, '9', SHMT_LINE_PAD);
            const int status = shmt_libsvm_parse(text + cut, g_c_locale, &row, &fault);
            const uint64_t rows = status == 0 ? row.n : fault.column;
            const float label = row.label;
            memset(text + n + 1, '.', SHMT_LINE_PAD);
            assert_int_equal(shmt_libsvm_parse(text + cut, g_c_locale, &row, &fault), status);
            assert_int_equal(status == 0 ? row.n : fault.column, rows);
            assert_true(status != 0 || row.blank || row.label == label);
        }
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
        {"1 1:1 2:1\n-2 3:1\n1 4:1\n", "t.svm changed while it was being read"},   /* another label */
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
        const struct shmt_arrays into = {
            .start = s->start, .id = s->id, .value = s->value, .label = s->label, .columns = SHMT_ALL_COLUMNS};
        const int status = fill ? shmt_source_fill(source, part, 4, s->part, &into, NULL)
                                : shmt_source_count(source, &SHMT_ALL_COLUMNS, part, 4, NULL, &s->part[part]);
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
                        : shmt_source_count(w->source, &SHMT_ALL_COLUMNS, w->part, 4, NULL, &w->l->part[w->part]);
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
    const char *const names[] = {g_path, "builtin:sparse:examples=500,features=2000", "builtin:dense:examples=200",
                                 "builtin:line:noise=1"};
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

/* ---- real data ---- */

static void a9a_is_read_as_what_it_is(void **state) {
    (void)state;
    const char *folder = getenv("SHMTRAIN_DATA_DIR");
    if (!folder) {
        print_message("skipped: SHMTRAIN_DATA_DIR names no folder with a9a, which is not part of the project\n");
        skip();
    }
    char path[4200];
    snprintf(path, sizeof path, "%s/a9a", folder);
    struct loaded l, many;
    assert_int_equal(load_name(&l, path, 0, false, 1), 0);
    assert_int_equal(l.totals.n_examples, 32561);
    assert_int_equal(l.totals.n_nonzeros, 451592);
    assert_int_equal(l.totals.min_id, 1);
    assert_int_equal(l.totals.max_id, 123);
    assert_true(l.totals.all_ones);
    assert_int_equal(l.totals.labels.n, 2);
    assert_true(l.totals.label_low == -1 && l.totals.label_high == 1);
    assert_true(l.totals.mean_square == 451592.0 / 32561);
    assert_int_equal(load_name(&many, path, 0, false, 8), 0);
    assert_same_data(&l, &many);
    load_free(&l);
    load_free(&many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(a9a_is_read_as_what_it_is),
    };
    return cmocka_run_group_tests_name("libsvm files", tests, make_folder, remove_folder);
}
