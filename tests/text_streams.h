/* What the tests of text that comes as it comes share (packed, through a pipe, from several files): a text of some MiB, and
 * several readers. What comes is what the same text in one plain file is, bit by bit, however many read it. */
#pragma once

/* No program uses all of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

#include "data_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "data/row_buffer.h"

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
        (void)archive_write_set_filter_option(a, NULL, "compression-level", "1"); /* the quickest, where there are several */
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
    struct shmt_row_buffer buffer[READERS];
    const struct shmt_arrays *into; /* NULL: count */
    bool buffered;
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
                        : shmt_flow_count(pass->flow, &ALL, pass->buffered ? &pass->buffer[r] : NULL, &pass->error[r]);
    } while (rc > 0);
    pass->status[r] = rc;
    return NULL;
}

static int run(struct pass *pass, const struct shmt_source *source, struct loaded *l) {
    pthread_t thread[READERS];
    assert_int_equal(shmt_flow_open(source, &pass->stop, &pass->flow, &l->error), 0);
    store_relaxed(&pass->next, 0);
    for (uint32_t r = 0; r < READERS && !pass->into; r++)
        pass->buffer[r] = (struct shmt_row_buffer){.number = r, .most_bytes = UINT64_MAX};
    for (uint32_t r = 0; r < READERS; r++) assert_int_equal(pthread_create(&thread[r], NULL, read_all, pass), 0);
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
    if (!pass->buffered) return run(pass, source, l);
    for (uint32_t i = 0; i < pass->n_parts; i++)
        assert_int_equal(shmt_row_buffer_fill(pass->buffer, pass->part, i, pass->n_parts, &l->arrays, &l->error), 0);
    return 0;
}

static void end(struct pass *pass) {
    for (uint32_t r = 0; r < READERS; r++) shmt_row_buffer_free(&pass->buffer[r]);
    free(pass->part);
}

static int load_all(const char *name, bool buffered, struct loaded *l) {
    struct shmt_source *source = open_source(name);
    struct pass pass = {.buffered = buffered};
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

static void assert_same_as_text(const char *name, bool buffered, struct loaded *plain) {
    struct loaded l;
    const int rc = load_all(name, buffered, &l);
    if (rc < 0) print_error("%s\n", l.error.text);
    assert_int_equal(rc, 0);
    assert_same_but_places(plain, &l);
    load_free(&l);
}

static void assert_fails(const char *name, int status, const char *sentence) {
    struct loaded l;
    struct shmt_source *source = open_source(name);
    struct pass pass = {.buffered = true};
    assert_int_equal(count_all(&pass, source, &l), status);
    assert_string_equal(l.error.text, sentence);
    end(&pass);
    shmt_source_close(source);
}

/* ---- a pipe that is written to by a thread ---- */

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
