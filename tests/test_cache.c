/* Caches as the room data has them: what was written is read, and whatever is damaged, cut short or made up is refused. */
#include "data_file.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "data/cache_priv.h"

#define N_COLUMNS 8000

/* Rows with and without nonzeros, more than a block of ids, and labels of three kinds. */
static void make_text(bool ones) {
    FILE *f = fopen(g_path, "w");
    uint32_t state = 1;
    assert_non_null(f);
    for (uint32_t i = 0; i < 9000; i++) {
        fprintf(f, "%d", (int)(i % 3));
        for (uint32_t id = 0, n = 0; n < i % 20; n++) {
            state = state * 1664525 + 1013904223;
            id += 1 + (state >> 20) % 390;
            fprintf(f, ones ? " %u:1" : " %u:%.3f", id, 0.125 * (double)(1 + n));
        }
        fputs("\n", f);
    }
    fprintf(f, "1 %d:1\n", N_COLUMNS);
    assert_int_equal(fclose(f), 0);
}

static struct shmt_columns from_one(void) { return COLUMNS(1, N_COLUMNS); }

/* The text's data, columns as given. */
static void load_text(struct loaded *l) {
    struct shmt_source *source;
    memset(l, 0, sizeof *l);
    assert_int_equal(shmt_source_open(g_path, 0, 0, &source, &l->error), 0);
    assert_int_equal(load_source(l, source, 2, from_one()), 0);
    shmt_source_close(source);
}

static const char NOTE[] =
    "{\"version\":1,\"delimiter\":\",\",\"header\":true,\"labels\":[\"no\",\"yes\"],\"columns\":[[\"y\",\"label\"],"
    "[\"a\",\"number\"]]}";

/* Writes a cache of `l` over the text, as if it were a table's when `by_frequency`; with `column`, ids go by places, of which the text's
 * order is the last. */
static void write_cache(const struct loaded *l, bool by_frequency) {
    struct shmt_error e = {0};
    const uint64_t n = l->totals.n_nonzeros;
    uint32_t *id = malloc(n * sizeof *id), *column = malloc(N_COLUMNS * sizeof *column);
    for (uint32_t p = 0; p < N_COLUMNS; p++) column[p] = N_COLUMNS - 1 - p;
    for (uint64_t j = 0; j < n; j++) id[j] = by_frequency ? N_COLUMNS - 1 - l->arrays.id[j] : l->arrays.id[j];
    const struct shmt_cache cache = {.n_examples = l->totals.n_examples,
                                     .n_nonzeros = n,
                                     .n_columns = N_COLUMNS,
                                     .base = 1,
                                     .min_id = l->totals.min_id,
                                     .max_id = l->totals.max_id,
                                     .best_loss = NAN,
                                     .start = l->arrays.start,
                                     .id = id,
                                     .value = l->arrays.value,
                                     .label = l->arrays.label,
                                     .column = by_frequency ? column : NULL,
                                     .note = by_frequency ? NOTE : NULL,
                                     .origin = {1, 2, 3, 4}};
    if (shmt_cache_write(g_path, &cache, NULL, &e) < 0) fail_msg("%s", e.text);
    free(column);
    free(id);
}

static unsigned char *read_file(uint64_t *bytes_out) {
    struct stat s;
    assert_int_equal(stat(g_path, &s), 0);
    unsigned char *bytes = malloc((size_t)s.st_size);
    FILE *f = fopen(g_path, "rb");
    assert_int_equal(fread(bytes, 1, (size_t)s.st_size, f), s.st_size);
    fclose(f);
    *bytes_out = (uint64_t)s.st_size;
    return bytes;
}

/* A cache that a program other than ours wrote over, as a file of its own: what is mapped stays what it was. */
static void put_file(const unsigned char *bytes, uint64_t n) {
    unlink(g_path);
    write_bytes((const char *)bytes, n);
    chmod(g_path, 0644);
}

/* All of it by three parts: counted and, if that went well, filled under its own columns and, some left out, dense. */
static int load_everything(struct loaded *l) {
    struct shmt_source *source;
    memset(l, 0, sizeof *l);
    int rc = shmt_source_open(g_path, 0, 0, &source, &l->error);
    if (rc < 0) return rc;
    rc = shmt_source_unpack(source, &l->error);
    if (rc == 0) rc = load_source(l, source, 3, from_one());
    if (rc == 0) {
        const struct shmt_columns few = COLUMNS(40, 100);
        struct loaded dense;
        rc = load_count(&dense, source, 3, few);
        if (rc == 0) {
            load_allocate_dense(&dense, few);
            rc = load_fill(&dense, source, 3);
            load_free(&dense);
        }
    }
    shmt_source_close(source);
    return rc;
}

static void assert_is_refused(const char *what, uint64_t at) {
    struct loaded l;
    const int rc = load_everything(&l);
    if (rc == 0) fail_msg("%s at %llu was taken", what, (unsigned long long)at);
    if (l.error.text[0] == '\0' || strchr(l.error.text, '\n')) fail_msg("no sentence: \"%s\"", l.error.text);
    load_free(&l);
}

/* The checksums that fit what is there, as somebody would who means harm. */
static void sign(unsigned char *bytes, uint64_t n) {
    struct shmt_cache_header h;
    memcpy(&h, bytes, sizeof h);
    uint64_t hash[64];
    for (uint32_t part = 0; part < SHMT_CACHE_HASHES; part++) {
        const struct shmt_cache_section *s = &h.section[part];
        const uint64_t blocks = shmt_cache_blocks(&h, part);
        if (s->off > n || s->bytes > n - s->off || blocks > 64) break;
        for (uint64_t i = 0; i < blocks; i++) {
            const uint64_t at = i * SHMT_CACHE_BLOCK_BYTES;
            const uint64_t left = s->bytes - at;
            hash[i] = XXH3_64bits(bytes + s->off + at, left < SHMT_CACHE_BLOCK_BYTES ? left : SHMT_CACHE_BLOCK_BYTES);
        }
        h.section[part].hash = XXH3_64bits(hash, blocks * sizeof *hash);
        const uint64_t to = h.section[SHMT_CACHE_HASHES].off + shmt_cache_blocks_before(&h, part) * sizeof *hash;
        if (to <= n && blocks * sizeof *hash <= n - to) memcpy(bytes + to, hash, blocks * sizeof *hash);
    }
    struct shmt_cache_section *note = &h.section[SHMT_CACHE_NOTE];
    if (note->off <= n && note->bytes > 0 && note->bytes <= n - note->off)
        note->hash = XXH3_64bits(bytes + note->off, note->bytes);
    h.hash = shmt_cache_header_hash(&h);
    memcpy(bytes, &h, sizeof h);
}

static unsigned char *make(bool by_frequency, uint64_t *bytes_out) {
    struct loaded l;
    make_text(false);
    load_text(&l);
    write_cache(&l, by_frequency);
    load_free(&l);
    return read_file(bytes_out);
}

/* ---- what is read ---- */

static void a_cache_holds_what_the_text_held(void **state) {
    (void)state;
    for (int ones = 0; ones < 2; ones++)
        for (int by_frequency = 0; by_frequency < 2; by_frequency++)
            for (uint32_t parts = 1; parts < 8; parts += 3) {
                struct loaded text, cache = {0};
                struct shmt_source *source;
                unlink(g_path);
                make_text(ones);
                load_text(&text);
                write_cache(&text, by_frequency);
                assert_int_equal(shmt_source_open(g_path, 0, 0, &source, &cache.error), 0);
                assert_non_null(shmt_cache_of(source));
                if (by_frequency)
                    assert_string_equal(shmt_source_note(source), NOTE);
                else
                    assert_null(shmt_source_note(source));
                assert_false(shmt_source_is_packed(source));
                if (load_source(&cache, source, parts, from_one()) < 0) fail_msg("%s", cache.error.text);
                for (uint32_t i = 0; i < text.totals.labels.n; i++) /* positions are of another kind */
                    text.totals.labels.at[i] = cache.totals.labels.at[i];
                assert_same_data(&text, &cache);
                shmt_source_close(source);
                load_free(&cache);
                load_free(&text);
            }
}

static void columns_that_are_not_wanted_are_left_out_as_of_text(void **state) {
    const struct shmt_columns few = COLUMNS(100, 1000);
    struct loaded text = {0}, cache = {0}, all;
    struct shmt_source *source;
    (void)state;
    unlink(g_path);
    make_text(false);
    assert_int_equal(shmt_source_open(g_path, 0, 0, &source, &text.error), 0);
    assert_int_equal(load_source(&text, source, 2, few), 0);
    shmt_source_close(source);
    load_text(&all);
    write_cache(&all, true);
    assert_int_equal(shmt_source_open(g_path, 0, 0, &source, &cache.error), 0);
    assert_int_equal(load_source(&cache, source, 3, few), 0);
    shmt_source_close(source);
    for (uint32_t i = 0; i < text.totals.labels.n; i++) text.totals.labels.at[i] = cache.totals.labels.at[i];
    assert_same_data(&text, &cache);
    load_free(&all);
    load_free(&cache);
    load_free(&text);
}

static void a_file_that_others_may_write_is_read_into_memory(void **state) {
    struct shmt_source *source;
    struct loaded l = {0};
    uint64_t n;
    (void)state;
    unsigned char *bytes = make(true, &n);
    assert_int_equal(chmod(g_path, 0666), 0);
    assert_int_equal(shmt_source_open(g_path, 0, 0, &source, &l.error), 0);
    assert_true(shmt_source_is_packed(source));
    assert_int_equal(shmt_source_unpack(source, &l.error), 0);
    assert_int_equal(truncate(g_path, 100), 0); /* whoever maps it would die of this */
    assert_int_equal(load_source(&l, source, 2, from_one()), 0);
    shmt_source_close(source);
    load_free(&l);
    free(bytes);
}

static void a_cache_is_not_made_for_others_to_write(void **state) {
    struct stat s;
    uint64_t n;
    (void)state;
    const mode_t before = umask(0);
    unlink(g_path);
    free(make(false, &n));
    umask(before);
    assert_int_equal(stat(g_path, &s), 0);
    assert_int_equal(s.st_mode & 022, 0);
}

/* ---- what is refused ---- */

static void every_byte_of_the_header_counts(void **state) {
    uint64_t n;
    (void)state;
    unsigned char *bytes = make(true, &n);
    for (uint64_t at = 0; at < SHMT_CACHE_PAGE_BYTES; at += at < 300 ? 1 : 97) {
        bytes[at] ^= 0x11;
        put_file(bytes, n);
        assert_is_refused("another byte of the header", at);
        bytes[at] ^= 0x11;
    }
    free(bytes);
}

static void every_section_is_checked(void **state) {
    struct shmt_cache_header h;
    uint64_t n;
    (void)state;
    unsigned char *bytes = make(true, &n);
    memcpy(&h, bytes, sizeof h);
    for (uint32_t part = 0; part < SHMT_CACHE_PARTS; part++)
        for (int k = 0; k < 5 && h.section[part].bytes > 0; k++) {
            const uint64_t at = h.section[part].off + (h.section[part].bytes - 1) * (uint64_t)k / 4;
            bytes[at] ^= 0x40;
            put_file(bytes, n);
            assert_is_refused("another byte of a section", at);
            bytes[at] ^= 0x40;
        }
    free(bytes);
}

static void whatever_is_cut_short_or_too_long_is_refused(void **state) {
    uint64_t n;
    (void)state;
    unsigned char *bytes = make(true, &n);
    for (uint64_t at = 0; at < n; at += at < 600 || n - at < 20 ? 7 : 4001) {
        put_file(bytes, at);
        assert_is_refused("a file cut short", at);
    }
    put_file(bytes, n - 1);
    assert_is_refused("a file cut short", n - 1);
    bytes = realloc(bytes, n + 1);
    bytes[n] = 0;
    put_file(bytes, n + 1);
    assert_is_refused("a file with a byte more", n + 1);
    free(bytes);
}

/* Numbers that are none, with the checksums that fit: refused, or taken where any number may stand; never a crash. */
static void a_header_that_was_made_up_is_refused(void **state) {
    static const uint64_t VALUES[] = {0,
                                      1,
                                      2,
                                      7999,
                                      8001,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x100000000,
                                      INT64_MAX,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};
    const size_t sums = offsetof(struct shmt_cache_header, square_whole), after = sums + 16;
    const size_t min_id = offsetof(struct shmt_cache_header, min_id); /* what is written as 0 counts for it, and nobody knows */
    const size_t best = offsetof(struct shmt_cache_header, best_loss), sections = offsetof(struct shmt_cache_header, section);
    uint64_t n;
    (void)state;
    unsigned char *bytes = make(true, &n), *copy = malloc(n);
    for (size_t at = 8; at < sections + sizeof(((struct shmt_cache_header *)0)->section); at += 4)
        for (size_t k = 0; k < 2 * sizeof VALUES / sizeof *VALUES; k++) {
            const size_t width = k % 2 ? 4 : 8;
            const bool is_any = (at + width > sums && at < after) || (at + width > best && at < sections) ||
                                (at + width > min_id && at < min_id + 8);
            const uint64_t value = VALUES[k / 2];
            struct loaded l;
            if (memcmp(bytes + at, &value, width) == 0 || (width == 8 && at % 8 != 0)) continue;
            memcpy(copy, bytes, n);
            memcpy(copy + at, &value, width);
            sign(copy, n);
            if (memcmp(copy, bytes, n) == 0) continue; /* a checksum: it was made right again */
            put_file(copy, n);
            if (!is_any) {
                assert_is_refused("a made up number", at);
                continue;
            }
            (void)load_everything(&l);
            load_free(&l);
        }
    free(copy);
    free(bytes);
}

static void contents_that_were_made_up_are_refused(void **state) {
    const float nan = NAN, inf = INFINITY;
    const uint32_t none = N_COLUMNS, most = UINT32_MAX;
    const uint64_t far = UINT64_MAX, back = 3, one = 1;
    const struct {
        uint32_t part;
        uint64_t index; /* of an element */
        const void *to;
        uint64_t bytes;
    } fakes[] = {{SHMT_CACHE_ID, 5, &none, 4},        {SHMT_CACHE_ID, 80000, &most, 4},   {SHMT_CACHE_VALUE, 3, &nan, 4},
                 {SHMT_CACHE_VALUE, 80001, &inf, 4},  {SHMT_CACHE_LABEL, 8999, &nan, 4},  {SHMT_CACHE_LABEL, 0, &inf, 4},
                 {SHMT_CACHE_COLUMN, 7999, &none, 4}, {SHMT_CACHE_COLUMN, 0, &most, 4},   {SHMT_CACHE_START, 0, &one, 8},
                 {SHMT_CACHE_START, 4500, &far, 8},   {SHMT_CACHE_START, 4500, &back, 8}, {SHMT_CACHE_START, 9001, &back, 8}};
    struct shmt_cache_header h;
    uint64_t n;
    (void)state;
    unsigned char *bytes = make(true, &n), *copy = malloc(n);
    memcpy(&h, bytes, sizeof h);
    for (size_t i = 0; i < sizeof fakes / sizeof *fakes; i++) {
        memcpy(copy, bytes, n);
        memcpy(copy + h.section[fakes[i].part].off + fakes[i].index * fakes[i].bytes, fakes[i].to, fakes[i].bytes);
        sign(copy, n);
        put_file(copy, n);
        assert_is_refused("a made up element, fake number", i);
    }
    memcpy(copy, bytes, n);
    copy[h.section[SHMT_CACHE_NOTE].off + strlen("{\"version\":")] = '2';
    sign(copy, n);
    put_file(copy, n);
    assert_is_refused("a made up plan of a table", 0);
    memcpy(copy, bytes, n);
    memcpy(copy + h.section[SHMT_CACHE_COLUMN].off, copy + h.section[SHMT_CACHE_COLUMN].off + 4, 4);
    sign(copy, n);
    put_file(copy, n);
    assert_is_refused("a column with two places", 0);
    memcpy(copy, bytes, n);
    sign(copy, n);
    assert_memory_equal(copy, bytes, n); /* these are the checksums */
    free(copy);
    free(bytes);
}

static void a_cache_of_another_format_is_refused_with_a_word(void **state) {
    const uint32_t version = SHMT_CACHE_VERSION + 1;
    uint64_t n;
    (void)state;
    unsigned char *bytes = make(false, &n);
    memcpy(bytes + 8, &version, sizeof version);
    sign(bytes, n);
    put_file(bytes, n);
    assert_refused("t.svm is a cache of format 3, but this program reads format 2: convert the data again", SHMTRAIN_E_DATA);
    free(bytes);
}

static void a_full_disk_is_said(void **state) {
    struct shmt_error e = {0};
    const uint64_t start[2] = {0, 1};
    const uint32_t id = 0;
    const float one = 1;
    const struct shmt_cache cache = {
        .n_examples = 1, .n_nonzeros = 1, .n_columns = 1, .best_loss = NAN, .start = start, .id = &id, .label = &one};
    (void)state;
    assert_int_equal(shmt_cache_write("/dev/full", &cache, NULL, &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot write the cache to /dev/full: No space left on device");
}

static bool asked_at(void *arg) { return --*(int *)arg < 0; }

static void writing_can_be_given_up_and_leaves_what_was_there(void **state) {
    const uint64_t start[2] = {0, 1};
    const uint32_t id = 0;
    const float one = 1;
    const struct shmt_cache cache = {
        .n_examples = 1, .n_nonzeros = 1, .n_columns = 1, .best_loss = NAN, .start = start, .id = &id, .label = &one};
    int whole = 1000;
    const struct shmt_cache_stop never = {asked_at, &whole};
    struct shmt_error e = {0};
    uint64_t bytes;
    (void)state;
    assert_int_equal(shmt_cache_write(g_path, &cache, &never, &e), 0);
    unsigned char *before = read_file(&bytes);
    for (int at = 0; at < 1000 - whole; at++) {
        int left = at;
        const struct shmt_cache_stop stop = {asked_at, &left};
        assert_int_equal(shmt_cache_write(g_path, &cache, &stop, &e), SHMTRAIN_E_STOPPED);
        assert_string_equal(e.text, "stopped while writing the cache");
        uint64_t bytes_now;
        unsigned char *now = read_file(&bytes_now);
        assert_int_equal(bytes_now, bytes);
        assert_memory_equal(now, before, bytes);
        free(now);
        shmt_error_clear(&e);
    }
    free(before);
}

/* ---- what it was made from ---- */

static void a_text_that_has_changed_is_another_one(void **state) {
    struct shmt_cache_origin before, after;
    struct shmt_error e = {0};
    (void)state;
    unlink(g_path);
    write_text("1 1:1\n-1 2:1\n");
    assert_int_equal(shmt_cache_origin_of(g_path, &before, &e), 0);
    assert_int_equal(shmt_cache_origin_of(g_path, &after, &e), 0);
    assert_true(shmt_cache_origin_is(&before, &after));
    const struct timespec same[2] = {{before.modified_s, before.modified_ns}, {before.modified_s, before.modified_ns}};
    write_text("1 1:1\n-1 3:1\n"); /* as long, and dated as before */
    assert_int_equal(utimensat(AT_FDCWD, g_path, same, 0), 0);
    assert_int_equal(shmt_cache_origin_of(g_path, &after, &e), 0);
    assert_false(shmt_cache_origin_is(&before, &after));
    write_text("1 1:1\n-1 2:1\n");
    const struct timespec later[2] = {{before.modified_s, before.modified_ns}, {before.modified_s + 1, before.modified_ns}};
    assert_int_equal(utimensat(AT_FDCWD, g_path, later, 0), 0);
    assert_int_equal(shmt_cache_origin_of(g_path, &after, &e), 0);
    assert_false(shmt_cache_origin_is(&before, &after));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_holds_what_the_text_held),
        cmocka_unit_test(columns_that_are_not_wanted_are_left_out_as_of_text),
        cmocka_unit_test(a_file_that_others_may_write_is_read_into_memory),
        cmocka_unit_test(a_cache_is_not_made_for_others_to_write),
        cmocka_unit_test(every_byte_of_the_header_counts),
        cmocka_unit_test(every_section_is_checked),
        cmocka_unit_test(whatever_is_cut_short_or_too_long_is_refused),
        cmocka_unit_test(a_header_that_was_made_up_is_refused),
        cmocka_unit_test(contents_that_were_made_up_are_refused),
        cmocka_unit_test(a_cache_of_another_format_is_refused_with_a_word),
        cmocka_unit_test(a_full_disk_is_said),
        cmocka_unit_test(writing_can_be_given_up_and_leaves_what_was_there),
        cmocka_unit_test(a_text_that_has_changed_is_another_one),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
