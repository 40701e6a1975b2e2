/* For tests of the IDX reader: files in a folder of the test's own, and a small set of images with labels. */
#pragma once

#include "data_file.h"

#include <archive.h>
#include <archive_entry.h>

enum { UBYTE = 8, BYTE = 9, SHORT = 11, INT = 12, FLOAT = 13, DOUBLE = 14 };

#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"

struct bytes {
    unsigned char at[4096];
    uint64_t n;
};

static inline void put(struct bytes *b, uint64_t value, uint32_t bytes) {
    while (bytes-- > 0) b->at[b->n++] = (unsigned char)(value >> 8 * bytes);
}

/* A header; dims end with 0. */
static inline void put_header(struct bytes *b, uint32_t type, const uint32_t *dims) {
    uint32_t n = 0;
    while (dims[n] != 0) n++;
    put(b, type << 8 | n, 4);
    for (uint32_t d = 0; d < n; d++) put(b, dims[d], 4);
}

#define DIMS(...) ((const uint32_t[]){__VA_ARGS__, 0})

static inline void save(const char *name, const struct bytes *b) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->at, 1, b->n, f), b->n);
    assert_int_equal(fclose(f), 0);
}

/* The same, packed by one of libarchive's filters. */
static inline void save_packed(const char *name, int (*add_filter)(struct archive *), const struct bytes *b) {
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, "data");
    archive_entry_set_filetype(entry, AE_IFREG);
    assert_int_equal(add_filter(a), ARCHIVE_OK);
    assert_int_equal(archive_write_set_format_raw(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(a, name), ARCHIVE_OK);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, b->at, b->n), b->n);
    archive_entry_free(entry);
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);
}

static inline void save_gz(const char *name, const struct bytes *b) { save_packed(name, archive_write_add_filter_gzip, b); }

/* Removes every file in the test's folder. */
static inline int clear_folder(void **state) {
    (void)state;
    static const char *const names[] = {IMAGES, IMAGES ".gz", LABELS,        LABELS ".gz", "a",        "b",
                                        "a,b",  "c,d",        "data.svm.gz", "images",     "labels.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(names[i]);
    return 0;
}

static inline int remove_all(void **state) { return clear_folder(state) == 0 ? remove_folder(state) : -1; }

/* Three examples of 2 x 2 unsigned bytes, and their labels. */
static inline struct bytes some_images(void) {
    static const unsigned char pixels[] = {0, 255, 0, 51, 0, 0, 0, 0, 1, 2, 3, 4};
    struct bytes b = {.n = 0};
    put_header(&b, UBYTE, DIMS(3, 2, 2));
    for (size_t i = 0; i < sizeof pixels; i++) put(&b, pixels[i], 1);
    return b;
}

static inline struct bytes some_labels(void) {
    struct bytes b = {.n = 0};
    put_header(&b, UBYTE, DIMS(3));
    put(&b, 0x070209, 3);
    return b;
}

/* The examples of some_images and some_labels. */
static inline void assert_some_examples(const char *name) {
    static const uint64_t start[] = {0, 2, 2, 6};
    static const uint32_t id[] = {1, 3, 0, 1, 2, 3};
    static const float value[] = {1, 51.0f / 255, 1.0f / 255, 2.0f / 255, 3.0f / 255, 4.0f / 255}, label[] = {7, 2, 9};
    struct loaded l;
    const int status = load_name(&l, name, 0, false, 2);
    if (status != 0) print_error("%s: %s\n", name, l.error.text);
    assert_int_equal(status, 0);
    assert_int_equal(l.totals.n_examples, 3);
    assert_int_equal(l.totals.n_nonzeros, 6);
    assert_int_equal(l.totals.min_id, 0);
    assert_int_equal(l.totals.max_id, 3);
    assert_memory_equal(l.arrays.start, start, sizeof start);
    assert_memory_equal(l.arrays.id, id, sizeof id);
    assert_memory_equal(l.arrays.value, value, sizeof value);
    assert_memory_equal(l.arrays.label, label, sizeof label);
    assert_int_equal(l.totals.labels.n, 3);
    assert_false(l.totals.all_ones);
    load_free(&l);
}

static inline void assert_refuses(const char *name, int status, const char *sentence) {
    struct loaded l;
    assert_int_equal(load_name(&l, name, 0, false, 2), status);
    assert_string_equal(l.error.text, sentence);
    load_free(&l);
}
