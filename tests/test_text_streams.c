/* Tests of text that comes as it comes: packed, through a pipe, from several files. What comes is what the same text in one plain
 * file is, bit by bit, however many read it. */
#include "data_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "data/stage.h"

#define READERS 4
#define ROWS    60000 /* some MiB: several chunks */
#define PACKED  "t.packed"
#define OTHER   "u.svm"
#define PIPE    "t.pipe"

static const struct shmt_columns ALL = SHMT_ALL_COLUMNS;
static char *g_text;
static uint64_t g_bytes;

static int make_text(void **state) {
    (void)state;
    g_text = malloc((uint64_t)ROWS * 100);
    if (!g_text) return -1;
    for (uint32_t i = 0; i < ROWS; i++)
        g_bytes += (uint64_t)sprintf(g_text + g_bytes, "%d %u:%g %u:1 70000:%g\n%s", (int)(i % 3) - 1, 1 + i % 1000, i / 8.0,
                                     2000 + i % 50000, 1 + i % 7 / 4.0, i % 10 == 0 ? "# a comment\n" : "");
    return make_folder(state);
}

static int free_text(void **state) {
    free(g_text);
    unlink(PACKED);
    unlink(OTHER);
    unlink(PIPE);
    return remove_folder(state);
}

static void save(const char *path, const char *bytes, uint64_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* False: this libarchive has no such filter. */
static bool pack(const char *filter, const char *path, const char *bytes, uint64_t n) {
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    const bool there = archive_write_add_filter_by_name(a, filter) == ARCHIVE_OK;
    if (there) {
        archive_entry_set_pathname(entry, "data");
        archive_entry_set_filetype(entry, AE_IFREG);
        assert_int_equal(archive_write_set_format_raw(a), ARCHIVE_OK);
        assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
        assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
        assert_int_equal(archive_write_data(a, bytes, n), n);
        assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    }
    archive_entry_free(entry);
    archive_write_free(a);
    return there;
}

static struct shmt_source *open_source(const char *name) {
    struct shmt_source *source = NULL;
    struct shmt_error e = {0};
    if (shmt_source_open(name, 1, 0, &source, &e) != 0) print_error("%s\n", e.text);
    assert_non_null(source);
    return source;
}

/* ---- several readers ---- */

struct pass {
    struct shmt_flow *flow;
    struct shmt_part *part;
    uint32_t n_parts;
    struct shmt_stage stage[READERS];
    const struct shmt_arrays *into; /* NULL: count */
    bool stages;
    _Atomic uint32_t next, stop;
    int status[READERS];
    struct shmt_error error[READERS];
};

static void *read_all(void *arg) {
    struct pass *pass = arg;
    const uint32_t r = take_relaxed(&pass->next, 1);
    int rc;
    do {
        rc = pass->into ? shmt_flow_fill(pass->flow, pass->part, pass->n_parts, pass->into, &pass->error[r])
                        : shmt_flow_count(pass->flow, &ALL, pass->stages ? &pass->stage[r] : NULL, &pass->error[r]);
    } while (rc > 0);
    pass->status[r] = rc;
    return NULL;
}

static int run(struct pass *pass, const struct shmt_source *source, struct loaded *l) {
    pthread_t thread[READERS];
    assert_int_equal(shmt_flow_open(source, &pass->stop, &pass->flow, &l->error), 0);
    store_relaxed(&pass->next, 0);
    for (uint32_t r = 0; r < READERS; r++) {
        if (!pass->into) pass->stage[r] = (struct shmt_stage){.number = r, .most_bytes = UINT64_MAX};
        assert_int_equal(pthread_create(&thread[r], NULL, read_all, pass), 0);
    }
    for (uint32_t r = 0; r < READERS; r++) assert_int_equal(pthread_join(thread[r], NULL), 0);
    int rc = 0;
    for (uint32_t r = 0; r < READERS && rc == 0; r++)
        if (pass->status[r] < 0) rc = shmt_fail(&l->error, pass->status[r], "%s", pass->error[r].text);
    if (rc == 0 && !pass->into) rc = shmt_flow_take_parts(pass->flow, &pass->part, &pass->n_parts, &l->error);
    if (rc == 0 && pass->into) rc = shmt_flow_check(pass->flow, pass->n_parts, &l->error);
    shmt_flow_close(pass->flow);
    return rc;
}

static int count_all(struct pass *pass, const struct shmt_source *source, struct loaded *l) {
    memset(l, 0, sizeof *l);
    const int rc = run(pass, source, l);
    return rc < 0 ? rc : shmt_parts_total(source, pass->part, pass->n_parts, &l->totals, &l->error);
}

static int fill_all(struct pass *pass, const struct shmt_source *source, struct loaded *l) {
    load_allocate(l, ALL);
    pass->into = &l->arrays;
    if (!pass->stages) return run(pass, source, l);
    for (uint32_t i = 0; i < pass->n_parts; i++)
        assert_int_equal(shmt_stage_fill(pass->stage, pass->part, i, pass->n_parts, &l->arrays, &l->error), 0);
    return 0;
}

static void end(struct pass *pass) {
    for (uint32_t r = 0; r < READERS; r++) shmt_stage_free(&pass->stage[r]);
    free(pass->part);
}

static int load_all(const char *name, bool stages, struct loaded *l) {
    struct shmt_source *source = open_source(name);
    struct pass pass = {.stages = stages};
    assert_true(shmt_source_flows(source));
    int rc = count_all(&pass, source, l);
    if (rc == 0) rc = fill_all(&pass, source, l);
    end(&pass);
    shmt_source_close(source);
    return rc;
}

/* Where a label stands is told otherwise, as a line or an offset. */
static void assert_same_but_places(struct loaded *a, struct loaded *b) {
    memset(a->totals.labels.at, 0, sizeof a->totals.labels.at);
    memset(b->totals.labels.at, 0, sizeof b->totals.labels.at);
    assert_same_data(a, b);
}

static void assert_same_as_text(const char *name, bool stages, struct loaded *plain) {
    struct loaded l;
    const int rc = load_all(name, stages, &l);
    if (rc < 0) print_error("%s\n", l.error.text);
    assert_int_equal(rc, 0);
    assert_same_but_places(plain, &l);
    load_free(&l);
}

static void assert_fails(const char *name, int status, const char *sentence) {
    struct loaded l;
    struct shmt_source *source = open_source(name);
    struct pass pass = {.stages = true};
    assert_int_equal(count_all(&pass, source, &l), status);
    assert_string_equal(l.error.text, sentence);
    end(&pass);
    shmt_source_close(source);
}

/* ---- packed ---- */

static void packed_text_is_what_the_text_is(void **state) {
    (void)state;
    static const char *const FILTERS[] = {"gzip", "bzip2", "xz", "zstd", "lz4", "compress"};
    struct loaded plain;
    write_bytes(g_text, g_bytes);
    assert_loads(&plain, 7);
    for (size_t i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++) {
        if (!pack(FILTERS[i], PACKED, g_text, g_bytes)) continue;
        assert_same_as_text(PACKED, true, &plain);
        assert_same_as_text(PACKED, false, &plain);
    }
    load_free(&plain);
}

static void a_last_line_without_a_break_is_a_line(void **state) {
    (void)state;
    struct loaded plain;
    write_text("1 1:1\n-1 2:5");
    assert_loads(&plain, 2);
    assert_true(pack("gzip", PACKED, "1 1:1\n-1 2:5", 12));
    assert_same_as_text(PACKED, true, &plain);
    load_free(&plain);
}

static void a_line_may_be_longer_than_a_chunk(void **state) {
    (void)state;
    const uint64_t n = 3 << 20;
    char *text = malloc(n + 100);
    struct loaded l;
    assert_non_null(text);
    uint64_t at = (uint64_t)sprintf(text, "1 1:1\n-1 2:2 #");
    memset(text + at, 'x', n);
    at += n;
    at += (uint64_t)sprintf(text + at, "\n1 3:1\n1 4\n");
    assert_true(pack("gzip", PACKED, text, at - 4));
    assert_int_equal(load_all(PACKED, true, &l), 0);
    assert_int_equal(l.totals.n_examples, 3);
    load_free(&l);
    assert_true(pack("gzip", PACKED, text, at));
    assert_fails(PACKED, SHMTRAIN_E_DATA, "t.packed:4:3: expected \"index:value\", found \"4\"");
    free(text);
}

static void the_first_bad_line_is_named_by_its_number_in_the_text(void **state) {
    (void)state;
    char *text = malloc(g_bytes), sentence[200];
    assert_non_null(text);
    memcpy(text, g_text, g_bytes);
    for (uint64_t cut = 1; cut < 4; cut++) { /* the earliest one last, so each must be the first then */
        char *line = (char *)memrchr(text, '\n', g_bytes * (4 - cut) / 4) + 1;
        uint64_t number = 1;
        for (const char *p = text; p < line; p++) number += *p == '\n';
        if (*line == '#') continue;
        *line = 'x';
        char word[80];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(line, " "), line);
        snprintf(sentence, sizeof sentence, "t.packed:%llu:1: expected a label (a number), found \"%s\"",
                 (unsigned long long)number, word);
        assert_true(pack("gzip", PACKED, text, g_bytes));
        assert_fails(PACKED, SHMTRAIN_E_DATA, sentence);
    }
    free(text);
}

static void a_label_is_found_by_its_line(void **state) {
    (void)state;
    struct loaded l;
    char place[200];
    assert_true(pack("gzip", PACKED, "1 1:1\n\n-1 2:1\n7 1:1\n", 20));
    struct shmt_source *source = open_source(PACKED);
    struct pass pass = {.stages = true};
    assert_int_equal(count_all(&pass, source, &l), 0);
    shmt_source_place(source, l.totals.labels.at[2], place, sizeof place);
    assert_string_equal(place, "t.packed:4");
    end(&pass);
    shmt_source_close(source);
}

static void archives_that_are_cut_off_or_changed_are_refused(void **state) {
    (void)state;
    static const char *const FILTERS[] = {"gzip", "bzip2", "xz", "zstd"};
    struct stat s;
    struct loaded l;
    for (size_t i = 0; i < sizeof FILTERS / sizeof *FILTERS; i++) {
        if (!pack(FILTERS[i], PACKED, g_text, g_bytes)) continue;
        assert_int_equal(stat(PACKED, &s), 0);
        assert_int_equal(truncate(PACKED, s.st_size * 3 / 4), 0);
        assert_int_equal(load_all(PACKED, true, &l), SHMTRAIN_E_DATA);
        assert_non_null(strstr(l.error.text, "t.packed is damaged: unpacking it failed behind byte "));
    }
    assert_true(pack("gzip", PACKED, g_text, g_bytes));
    assert_int_equal(stat(PACKED, &s), 0);
    FILE *f = fopen(PACKED, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, s.st_size - 8, SEEK_SET), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, s.st_size - 8, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, f), byte ^ 1);
    assert_int_equal(fclose(f), 0);
    assert_fails(PACKED, SHMTRAIN_E_DATA, "t.packed is damaged: its checksum is not that of its contents; get it again");
}

static void a_file_that_changes_between_the_passes_is_noticed(void **state) {
    (void)state;
    static const double SHARE[] = {0.5, 0.99999, 2};
    for (size_t i = 0; i < 3; i++) {
        struct loaded l;
        struct pass pass = {.stages = false};
        const uint64_t n = (uint64_t)(SHARE[i] < 1 ? (double)g_bytes * SHARE[i] : (double)g_bytes);
        assert_true(pack("gzip", PACKED, g_text, SHARE[i] < 1 ? g_bytes : g_bytes / 2));
        struct shmt_source *source = open_source(PACKED);
        assert_int_equal(count_all(&pass, source, &l), 0);
        assert_true(pack("gzip", PACKED, g_text, n)); /* the same file, written anew */
        assert_int_equal(fill_all(&pass, source, &l), SHMTRAIN_E_DATA);
        assert_string_equal(l.error.text, "t.packed changed while it was being read");
        load_free(&l);
        end(&pass);
        shmt_source_close(source);
    }
}

/* ---- pipes ---- */

struct writer {
    const char *path, *bytes;
    uint64_t n;
};

static void *write_slowly(void *arg) {
    const struct writer *w = arg;
    usleep(20000); /* whoever reads is there first, most of the time */
    save(w->path, w->bytes, w->n);
    return NULL;
}

static void through_a_pipe(const char *bytes, uint64_t n, struct loaded *plain) {
    struct writer writer = {PIPE, bytes, n};
    pthread_t thread;
    unlink(PIPE);
    assert_int_equal(mkfifo(PIPE, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, &writer), 0);
    assert_same_as_text(PIPE, true, plain);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void what_comes_through_a_pipe_is_what_was_written(void **state) {
    (void)state;
    struct loaded plain;
    struct stat s;
    write_bytes(g_text, g_bytes);
    assert_loads(&plain, 5);
    through_a_pipe(g_text, g_bytes, &plain);
    assert_true(pack("gzip", PACKED, g_text, g_bytes));
    assert_int_equal(stat(PACKED, &s), 0);
    char *packed = malloc((size_t)s.st_size);
    FILE *f = fopen(PACKED, "rb");
    assert_true(packed && f);
    assert_int_equal(fread(packed, 1, (size_t)s.st_size, f), s.st_size);
    fclose(f);
    through_a_pipe(packed, (uint64_t)s.st_size, &plain);
    free(packed);
    load_free(&plain);
}

static void *stop_soon(void *arg) {
    usleep(30000);
    store_relaxed((_Atomic uint32_t *)arg, 1);
    return NULL;
}

static void a_stop_ends_waiting_for_a_pipe(void **state) {
    (void)state;
    struct loaded l;
    struct pass pass = {.stages = true};
    pthread_t thread;
    unlink(PIPE);
    assert_int_equal(mkfifo(PIPE, 0600), 0);
    struct shmt_source *source = open_source(PIPE);
    assert_true(shmt_source_is_once(source));
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, &pass.stop), 0);
    alarm(60); /* kills the test if nobody looks */
    assert_int_equal(count_all(&pass, source, &l), SHMTRAIN_E_STOPPED);
    alarm(0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end(&pass);
    shmt_source_close(source);
}

static void a_pipe_is_known_again(void **state) {
    (void)state;
    struct shmt_source *twice = NULL;
    struct shmt_error e = {0};
    unlink(PIPE);
    assert_int_equal(mkfifo(PIPE, 0600), 0);
    write_text("1 1:1\n");
    struct shmt_source *a = open_source(PIPE), *b = open_source("./" PIPE), *c = open_source(g_path);
    assert_true(shmt_source_meet(a, b));
    assert_false(shmt_source_meet(a, c) || shmt_source_meet(c, c));
    assert_int_equal(shmt_source_open(PIPE "\n./" PIPE, 1, 0, &twice, &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text, "./t.pipe is named twice, and can be read once only");
    shmt_source_close(a);
    shmt_source_close(b);
    shmt_source_close(c);
}

/* ---- several files ---- */

static void several_files_are_one_in_their_order(void **state) {
    (void)state;
    struct loaded plain;
    const char *first = (const char *)memrchr(g_text, '\n', g_bytes / 3) + 1;
    const char *second = (const char *)memrchr(g_text, '\n', g_bytes / 2) + 1;
    write_bytes(g_text, g_bytes);
    assert_loads(&plain, 3);
    write_bytes(g_text, (uint64_t)(first - g_text));
    assert_true(pack("gzip", PACKED, first, (uint64_t)(second - first)));
    save(OTHER, second, g_bytes - (uint64_t)(second - g_text));
    assert_same_as_text("t.svm\n" PACKED "\n" OTHER, true, &plain);
    assert_same_as_text("t.svm\n" PACKED "\n" OTHER, false, &plain);
    load_free(&plain);
}

/* The second file is read while the first, a pipe, has nothing yet. */
static void rows_keep_their_order_when_a_later_file_comes_first(void **state) {
    (void)state;
    struct loaded plain;
    const char *half = (const char *)memrchr(g_text, '\n', g_bytes / 2) + 1;
    struct writer writer = {PIPE, g_text, (uint64_t)(half - g_text)};
    pthread_t thread;
    write_bytes(g_text, g_bytes);
    assert_loads(&plain, 3);
    save(OTHER, half, g_bytes - writer.n);
    unlink(PIPE);
    assert_int_equal(mkfifo(PIPE, 0600), 0);
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, &writer), 0);
    assert_same_as_text(PIPE "\n" OTHER, true, &plain);
    assert_int_equal(pthread_join(thread, NULL), 0);
    load_free(&plain);
}

static void a_message_names_the_file(void **state) {
    (void)state;
    write_text("1 1:1\n");
    save(OTHER, "1 1:1\n\n1 x\n", 11);
    assert_true(pack("gzip", PACKED, "1 1:1\n1 y\n", 10));
    assert_fails("t.svm\nu.svm\nt.packed", SHMTRAIN_E_DATA, "u.svm:3:3: expected \"index:value\", found \"x\"");
    assert_fails("t.svm\nt.packed\nu.svm", SHMTRAIN_E_DATA, "t.packed:2:3: expected \"index:value\", found \"y\"");
    save(OTHER, "\n", 1);
    write_text("# nothing\n");
    assert_fails("t.svm\nu.svm", SHMTRAIN_E_DATA, "2 files (t.svm, u.svm) has no example, only blank lines and comments");
}

static void what_cannot_be_one_of_several_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *names, *sentence;
        int status;
    } LISTS[] = {
        {"t.svm\nmissing", "cannot open missing: No such file or directory", SHMTRAIN_E_SYSTEM},
        {"t.svm\n/", "/ is a directory; name a file in it", SHMTRAIN_E_USAGE},
        {"t.svm\n", "cannot open : No such file or directory", SHMTRAIN_E_SYSTEM},
        {"t.svm\nbuiltin:line", "builtin:line is generated, and several files are read as text: name it alone",
         SHMTRAIN_E_USAGE},
        {"t.svm\nempty", "empty is empty", SHMTRAIN_E_DATA},
        {"t.svm\nidx", "idx is an IDX file, and several files are read as text: name it alone", SHMTRAIN_E_USAGE},
    };
    write_text("1 1:1\n");
    save("empty", "", 0);
    save("idx", "\0\0\x08\x01\0\0\0\x01\x05", 9);
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        struct shmt_source *source;
        struct shmt_error e = {0};
        assert_int_equal(shmt_source_open(LISTS[i].names, 1, 0, &source, &e), LISTS[i].status);
        assert_string_equal(e.text, LISTS[i].sentence);
    }
    unlink("empty");
    unlink("idx");
}

static void a_file_whose_name_has_a_line_break_is_one_file(void **state) {
    (void)state;
    struct loaded l;
    write_text("1 1:1\n");
    save("t.svm\nt.svm", "1 1:1\n1 2:1\n", 12);
    assert_int_equal(load_name(&l, "t.svm\nt.svm", 1, false, 1), 0);
    assert_int_equal(l.totals.n_examples, 2);
    load_free(&l);
    unlink("t.svm\nt.svm");
}

/* ---- bad lines ---- */

static struct shmt_source *open_skipping(const char *name) {
    const struct shmt_source_wish wish = {.name = name, .seed = 1, .skip_bad_lines = true};
    struct shmt_source *source = NULL;
    assert_int_equal(shmt_source_open_as(&wish, &source, NULL), 0);
    return source;
}

static void bad_lines_are_left_out_and_counted(void **state) {
    (void)state;
    char line[2000];
    struct loaded good, l;
    char *text = malloc(2 * g_bytes);
    uint64_t n = 0;
    assert_non_null(text);
    for (const char *p = g_text, *stop; (stop = strchr(p, '\n')); p = stop + 1) {
        if ((p - g_text) % 50 == 7) n += (uint64_t)sprintf(text + n, "1 2:x\n");
        memcpy(text + n, p, (size_t)(stop - p) + 1);
        n += (uint64_t)(stop - p) + 1;
    }
    write_bytes(g_text, g_bytes);
    assert_loads(&good, 3);
    uint64_t n_bad = 0;
    for (const char *p = g_text, *stop; (stop = strchr(p, '\n')); p = stop + 1) n_bad += (p - g_text) % 50 == 7;
    assert_true(n_bad > 100);
    write_bytes(text, n);
    assert_true(pack("gzip", PACKED, text, n));
    for (uint32_t parts = 1; parts <= 9; parts += 4) { /* by reading twice */
        struct shmt_source *source = open_skipping(g_path);
        assert_int_equal(load_source(&l, source, parts, ALL), 0);
        assert_int_equal(l.totals.n_skipped, n_bad);
        l.totals.n_skipped = 0;
        assert_same_but_places(&good, &l);
        load_free(&l);
        shmt_source_close(source);
    }
    for (int stages = 0; stages < 2; stages++) {
        struct shmt_source *source = open_skipping(PACKED);
        struct pass pass = {.stages = stages};
        assert_int_equal(count_all(&pass, source, &l), 0);
        shmt_parts_skipped(source, pass.part, pass.n_parts, line, sizeof line);
        assert_int_equal(fill_all(&pass, source, &l), 0);
        assert_int_equal(l.totals.n_skipped, n_bad);
        l.totals.n_skipped = 0;
        assert_same_but_places(&good, &l);
        load_free(&l);
        end(&pass);
        shmt_source_close(source);
    }
    char begin[80];
    snprintf(begin, sizeof begin, "skipped %llu bad lines of t.packed; the first: t.packed:", (unsigned long long)n_bad);
    assert_memory_equal(line, begin, strlen(begin));
    assert_non_null(strstr(line, ":5: expected a number after \"2:\", found \"x\""));
    load_free(&good);
    free(text);
}

static void where_all_lines_are_bad_nothing_is_left(void **state) {
    (void)state;
    struct loaded l;
    write_text("# no\nx\ny\n");
    struct shmt_source *source = open_skipping(g_path);
    assert_int_equal(load_count(&l, source, 2, ALL), SHMTRAIN_E_DATA);
    assert_string_equal(l.error.text,
                        "all lines of t.svm are bad; the first: t.svm:2:1: expected a label (a number), found \"x\"");
    shmt_source_close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_text_is_what_the_text_is),
        cmocka_unit_test(a_last_line_without_a_break_is_a_line),
        cmocka_unit_test(a_line_may_be_longer_than_a_chunk),
        cmocka_unit_test(the_first_bad_line_is_named_by_its_number_in_the_text),
        cmocka_unit_test(a_label_is_found_by_its_line),
        cmocka_unit_test(archives_that_are_cut_off_or_changed_are_refused),
        cmocka_unit_test(a_file_that_changes_between_the_passes_is_noticed),
        cmocka_unit_test(what_comes_through_a_pipe_is_what_was_written),
        cmocka_unit_test(a_stop_ends_waiting_for_a_pipe),
        cmocka_unit_test(a_pipe_is_known_again),
        cmocka_unit_test(several_files_are_one_in_their_order),
        cmocka_unit_test(rows_keep_their_order_when_a_later_file_comes_first),
        cmocka_unit_test(a_message_names_the_file),
        cmocka_unit_test(what_cannot_be_one_of_several_is_refused),
        cmocka_unit_test(a_file_whose_name_has_a_line_break_is_one_file),
        cmocka_unit_test(bad_lines_are_left_out_and_counted),
        cmocka_unit_test(where_all_lines_are_bad_nothing_is_left),
    };
    return cmocka_run_group_tests_name("text streams", tests, make_text, free_text);
}
