/* The IDX reader: every type of element, packed or not, finding labels, and every refusal with its sentence. */
#include "data_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { UBYTE = 8, BYTE = 9, SHORT = 11, INT = 12, FLOAT = 13, DOUBLE = 14 };

#define IMAGES "train-images-idx3-ubyte"
#define LABELS "train-labels-idx1-ubyte"

/* ---- files ---- */

struct bytes {
    unsigned char at[4096];
    uint64_t n;
};

static void put(struct bytes *b, uint64_t value, uint32_t bytes) {
    while (bytes-- > 0) b->at[b->n++] = (unsigned char)(value >> 8 * bytes);
}

/* A header; dims end with 0. */
static void put_header(struct bytes *b, uint32_t type, const uint32_t *dims) {
    uint32_t n = 0;
    while (dims[n] != 0) n++;
    put(b, type << 8 | n, 4);
    for (uint32_t d = 0; d < n; d++) put(b, dims[d], 4);
}

#define DIMS(...) ((const uint32_t[]){__VA_ARGS__, 0})

static void save(const char *name, const struct bytes *b) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->at, 1, b->n, f), b->n);
    assert_int_equal(fclose(f), 0);
}

/* The same, packed by one of libarchive's filters. */
static void save_packed(const char *name, int (*add_filter)(struct archive *), const struct bytes *b) {
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

static void save_gz(const char *name, const struct bytes *b) { save_packed(name, archive_write_add_filter_gzip, b); }

/* Removes every file in the test's folder. */
static int clear_folder(void **state) {
    (void)state;
    static const char *const names[] = {IMAGES, IMAGES ".gz", LABELS,        LABELS ".gz", "a",        "b",
                                        "a,b",  "c,d",        "data.svm.gz", "images",     "labels.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(names[i]);
    return 0;
}

static int remove_all(void **state) { return clear_folder(state) == 0 ? remove_folder(state) : -1; }

/* Three examples of 2 x 2 unsigned bytes, and their labels. */
static struct bytes some_images(void) {
    static const unsigned char pixels[] = {0, 255, 0, 51, 0, 0, 0, 0, 1, 2, 3, 4};
    struct bytes b = {.n = 0};
    put_header(&b, UBYTE, DIMS(3, 2, 2));
    for (size_t i = 0; i < sizeof pixels; i++) put(&b, pixels[i], 1);
    return b;
}

static struct bytes some_labels(void) {
    struct bytes b = {.n = 0};
    put_header(&b, UBYTE, DIMS(3));
    put(&b, 0x070209, 3);
    return b;
}

/* The examples of some_images and some_labels. */
static void assert_some_examples(const char *name) {
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

static void assert_refuses(const char *name, int status, const char *sentence) {
    struct loaded l;
    assert_int_equal(load_name(&l, name, 0, false, 2), status);
    assert_string_equal(l.error.text, sentence);
    load_free(&l);
}

/* ---- what is read ---- */

static void images_are_read_with_their_labels_packed_or_not(void **state) {
    (void)state;
    const struct bytes images = some_images(), labels = some_labels();
    save(IMAGES, &images);
    save(LABELS, &labels);
    assert_some_examples(IMAGES);
    save_gz(IMAGES ".gz", &images);
    assert_some_examples(IMAGES ".gz"); /* labels that are not packed do, too */
    unlink(LABELS);
    save_gz(LABELS ".gz", &labels);
    assert_some_examples(IMAGES ".gz");
    assert_some_examples(IMAGES);
    char path[8400];
    snprintf(path, sizeof path, "%s/" IMAGES, g_folder); /* "images" in a folder's name is not meant */
    assert_some_examples(path);
}

static void other_packers_are_read_too(void **state) {
    (void)state;
    static int (*const filters[])(struct archive *) = {archive_write_add_filter_bzip2, archive_write_add_filter_xz,
                                                       archive_write_add_filter_zstd, archive_write_add_filter_lz4,
                                                       archive_write_add_filter_compress};
    const struct bytes images = some_images(), labels = some_labels();
    save(LABELS, &labels);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        save_packed(IMAGES, filters[i], &images); /* by content, not by name */
        assert_some_examples(IMAGES);
    }
}

static void labels_may_be_named(void **state) {
    (void)state;
    const struct bytes images = some_images(), labels = some_labels();
    save("a", &images);
    save("b", &labels);
    assert_some_examples("a,b");
    save("c,d", &images); /* a name with a comma in it */
    assert_some_examples("c,d,b");
    char path[8400];
    snprintf(path, sizeof path, "a,%s/b", g_folder);
    assert_some_examples(path);
    save("a,b", &labels); /* where there is a file of the whole name, that one is meant */
    assert_refuses("a,b", SHMTRAIN_E_DATA,
                   "a,b has no labels: there is no \"images\" in its name to find them by; name both files, as IMAGES,LABELS");
}

static void every_type_of_element_is_read(void **state) {
    (void)state;
    static const struct {
        uint32_t type, bytes;
        uint64_t element[4];
        float value[4], label[4];
    } cases[] = {
        {UBYTE, 1, {0, 1, 128, 255}, {0, 1.0f / 255, 128.0f / 255, 1}, {0, 1, 128, 255}},
        {BYTE, 1, {0, 1, 0x80, 0xff}, {0, 1, -128, -1}, {0, 1, -128, -1}},
        {SHORT, 2, {0, 1, 0x8000, 0xffff}, {0, 1, -32768, -1}, {0, 1, -32768, -1}},
        {INT, 4, {0, 0x1000000, 0x80000000, 0xffffffff}, {0, 0x1p24f, -0x1p31f, -1}, {0, 0x1p24f, -0x1p31f, -1}},
        {FLOAT,
         4,
         {0, 0x3f800000, 0xc0490fdb, 0x00000001},
         {0, 1, -0x1.921fb6p1f, 0x1p-149f},
         {0, 1, -0x1.921fb6p1f, 0x1p-149f}},
        {DOUBLE,
         8,
         {0, 0x3ff0000000000000, 0xc00921fb54442d18, 0x3ff0000010000001},
         {0, 1, -0x1.921fb6p1f, 0x1.000002p0f},
         {0, 1, -0x1.921fb6p1f, 0x1.000002p0f}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct bytes images = {.n = 0}, labels = {.n = 0};
        struct loaded l;
        struct shmt_source *source;
        put_header(&images, cases[c].type, DIMS(4)); /* one dimension: one value each */
        put_header(&labels, cases[c].type, DIMS(4));
        for (uint32_t i = 0; i < 4; i++) {
            put(&images, cases[c].element[i], cases[c].bytes);
            put(&labels, cases[c].element[i], cases[c].bytes);
        }
        save("a", &images);
        save("b", &labels);
        assert_int_equal(shmt_source_open("a,b", 0, false, &source, NULL), 0);
        assert_int_equal(shmt_source_unpack(source, NULL), 0);
        const struct shmt_columns columns = {0, 1};
        assert_int_equal(load_count(&l, source, 3, columns), 0);
        load_allocate_dense(&l, columns);
        assert_int_equal(load_fill(&l, source, 3), 0);
        assert_memory_equal(l.arrays.dense, cases[c].value, sizeof cases[c].value);
        assert_memory_equal(l.arrays.label, cases[c].label, sizeof cases[c].label);
        assert_int_equal(l.totals.n_nonzeros, 3);
        load_free(&l);
        shmt_source_close(source);
    }
}

static void both_layouts_and_any_columns_and_parts_hold_the_same_examples(void **state) {
    (void)state;
    static const struct shmt_columns columns[] = {{0, 4}, {1, 2}, {0, 9}, {3, 5}, {7, 2}, {0, 0}};
    static const float pixel[3][4] = {{0, 255, 0, 51}, {0, 0, 0, 0}, {1, 2, 3, 4}};
    const struct bytes images = some_images(), labels = some_labels();
    save(IMAGES, &images);
    save(LABELS, &labels);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        for (uint32_t parts = 1; parts <= 5; parts++) {
            struct loaded sparse, dense;
            struct shmt_source *source;
            const uint32_t n = columns[c].n_features;
            assert_int_equal(shmt_source_open(IMAGES, 0, false, &source, NULL), 0);
            assert_int_equal(shmt_source_unpack(source, NULL), 0);
            assert_int_equal(load_source(&sparse, source, parts, columns[c]), 0);
            assert_int_equal(load_count(&dense, source, parts, columns[c]), 0);
            load_allocate_dense(&dense, columns[c]);
            assert_int_equal(load_fill(&dense, source, parts), 0);
            uint64_t nonzero = 0;
            for (uint64_t i = 0; i < 3; i++) {
                for (uint32_t j = 0; j < n; j++) {
                    const float value = j + columns[c].base < 4 ? pixel[i][j + columns[c].base] / 255 : 0;
                    assert_true(dense.arrays.dense[i * n + j] == value);
                    if (value == 0) continue;
                    assert_int_equal(sparse.arrays.id[nonzero], j);
                    assert_true(sparse.arrays.value ? sparse.arrays.value[nonzero] == value : value == 1);
                    nonzero++;
                }
                assert_int_equal(sparse.arrays.start[i + 1], nonzero);
            }
            assert_int_equal(sparse.totals.n_nonzeros, nonzero);
            assert_memory_equal(&sparse.totals, &dense.totals, sizeof sparse.totals);
            load_free(&sparse);
            load_free(&dense);
            shmt_source_close(source);
        }
    }
}

static void what_one_process_unpacks_the_others_see(void **state) {
    (void)state;
    const struct bytes images = some_images(), labels = some_labels();
    struct shmt_source *source;
    struct loaded l;
    int status;
    save_gz(IMAGES ".gz", &images);
    save(LABELS, &labels);
    assert_int_equal(shmt_source_open(IMAGES ".gz", 0, false, &source, NULL), 0);
    assert_true(shmt_source_is_packed(source));
    assert_false(shmt_source_is_generator(source));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(shmt_source_unpack(source, NULL) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(load_count(&l, source, 2, SHMT_ALL_COLUMNS), 0);
    assert_int_equal(l.totals.n_nonzeros, 6);
    shmt_source_close(source);
}

static void it_says_where_labels_are_and_what_memory_it_takes(void **state) {
    (void)state;
    const struct bytes images = some_images(), labels = some_labels();
    struct shmt_source *source;
    char place[100];
    save(IMAGES, &images);
    save(LABELS, &labels);
    assert_int_equal(shmt_source_open(IMAGES, 0, false, &source, NULL), 0);
    shmt_source_place(source, 2, place, sizeof place);
    assert_string_equal(place, LABELS " example 3");
    assert_int_equal(shmt_source_guess_bytes(source, true), 12 + 3 + 3 * 5 * 4);
    assert_int_equal(shmt_source_guess_bytes(source, false), 12 + 3 + 3 * (8 + 8 + 4));
    shmt_source_close(source);
    assert_int_equal(shmt_source_open(IMAGES, 0, true, &source, NULL), SHMTRAIN_E_USAGE);
}

/* ---- what is refused ---- */

static void labels_that_are_not_there_are_refused_with_the_names_that_were_looked_for(void **state) {
    (void)state;
    const struct bytes images = some_images();
    save(IMAGES, &images);
    save_gz(IMAGES ".gz", &images);
    save("a", &images);
    assert_refuses(IMAGES, SHMTRAIN_E_DATA,
                   IMAGES " has no labels: there is no " LABELS ", and no " LABELS ".gz; name both files, as IMAGES,LABELS");
    assert_refuses(IMAGES ".gz", SHMTRAIN_E_DATA,
                   IMAGES ".gz has no labels: there is no " LABELS ".gz, and no " LABELS "; name both files, as IMAGES,LABELS");
    assert_refuses("a", SHMTRAIN_E_DATA,
                   "a has no labels: there is no \"images\" in its name to find them by; name both files, as IMAGES,LABELS");
    assert_refuses("a,b", SHMTRAIN_E_SYSTEM, "cannot open b: No such file or directory");
    assert_refuses("a,", SHMTRAIN_E_SYSTEM, "cannot open : No such file or directory");
    assert_refuses("b,a", SHMTRAIN_E_SYSTEM, "cannot open b,a: No such file or directory");
}

static void labels_that_do_not_fit_are_refused(void **state) {
    (void)state;
    static const uint32_t other[] = {4, 0}, square[] = {3, 2, 0};
    const struct bytes images = some_images();
    struct bytes labels = {.n = 0};
    save("a", &images);
    put_header(&labels, UBYTE, other);
    put(&labels, 0, 4);
    save("b", &labels);
    assert_refuses("a,b", SHMTRAIN_E_DATA, "b has 4 labels, and a 3 examples: are they of one set?");
    labels.n = 0;
    put_header(&labels, UBYTE, square);
    put(&labels, 0, 6);
    save("b", &labels);
    assert_refuses("a,b", SHMTRAIN_E_DATA, "b, byte 4: labels have one dimension, and this has 2");
    labels.n = 0;
    put(&labels, 0x31323334, 4);
    save("b", &labels);
    assert_refuses("a,b", SHMTRAIN_E_DATA, "b, byte 1: an IDX file of labels begins with 0 0, and this does not");
    labels.n = 0;
    put_header(&labels, FLOAT, DIMS(3));
    put(&labels, 0x3f800000, 4);
    put(&labels, 0x7fc00000, 4); /* not a number */
    put(&labels, 0, 4);
    save("b", &labels);
    assert_refuses("a,b", SHMTRAIN_E_DATA, "b, byte 13: expected a number between -3.4e38 and 3.4e38, found another one");
}

/* Plain and packed: the same is wrong with both, at the same place. */
static void a_wrong_header_is_refused_with_its_place(void **state) {
    (void)state;
    static const struct {
        uint32_t magic, dim[8], n_dims;
        const char *sentence;
    } cases[] = {
        {0x00000703, {3, 2, 2}, 3, "byte 3: an IDX file has its type there, one of 8, 9, 11, 12, 13 and 14, not 7"},
        {0x00000a03, {3, 2, 2}, 3, "byte 3: an IDX file has its type there, one of 8, 9, 11, 12, 13 and 14, not 10"},
        {0x00000800, {0}, 0, "byte 4: an IDX file has its number of dimensions there, 1 to 8, not 0"},
        {0x00000809, {3, 2, 2}, 3, "byte 4: an IDX file has its number of dimensions there, 1 to 8, not 9"},
        {0x00000803, {3, 0, 2}, 3, "byte 9: dimension 2 of 3 is 0, so there is no data"},
        {0x00000803, {0, 2, 2}, 3, "byte 5: dimension 1 of 3 is 0, so there is no data"},
        {0x00000803,
         {3, 65536, 65536},
         3,
         "byte 13: examples of so many values are too large; at most 4294967294 features can be numbered"},
        {0x00000808,
         {4294967295, 1, 2, 3, 4, 4294967295, 7, 8},
         8,
         "byte 25: examples of so many values are too large; at most 4294967294 features can be numbered"},
        {0x00000e02,
         {4294967295, 4294967294},
         2,
         "byte 5: 4294967295 examples of 4294967294 values are more than any memory holds"},
    };
    const struct bytes labels = some_labels();
    save(LABELS, &labels);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct bytes images = {.n = 0};
        char sentence[300];
        put(&images, cases[c].magic, 4);
        for (uint32_t d = 0; d < cases[c].n_dims; d++) put(&images, cases[c].dim[d], 4);
        put(&images, 0, 8);
        save(IMAGES, &images);
        snprintf(sentence, sizeof sentence, IMAGES ", %s", cases[c].sentence);
        assert_refuses(IMAGES, SHMTRAIN_E_DATA, sentence);
        save_gz(IMAGES ".gz", &images);
        snprintf(sentence, sizeof sentence, IMAGES ".gz (unpacked), %s", cases[c].sentence);
        assert_refuses(IMAGES ".gz", SHMTRAIN_E_DATA, sentence);
    }
}

static void a_file_of_the_wrong_length_is_refused(void **state) {
    (void)state;
    const struct bytes whole = some_images(), labels = some_labels();
    save(LABELS, &labels);
    for (uint64_t n = 4; n < whole.n + 3; n++) {
        struct bytes images = whole;
        char what[200], sentence[300];
        images.n = n;
        if (n < whole.n) {
            snprintf(what, sizeof what, "ends behind byte %d; by its header it has %d: get it again", (int)n,
                     n < 16 ? 16 : (int)whole.n);
        } else {
            snprintf(what, sizeof what, "goes on behind byte %d, where by its header it ends: get it again", (int)whole.n);
        }
        save(IMAGES, &images);
        save_gz(IMAGES ".gz", &images);
        if (n == whole.n) {
            assert_some_examples(IMAGES);
            assert_some_examples(IMAGES ".gz");
            continue;
        }
        snprintf(sentence, sizeof sentence, IMAGES " %s", what);
        assert_refuses(IMAGES, SHMTRAIN_E_DATA, sentence);
        snprintf(sentence, sizeof sentence, IMAGES ".gz (unpacked) %s", what);
        assert_refuses(IMAGES ".gz", SHMTRAIN_E_DATA, sentence);
    }
}

/* A packed file that was cut, or in which a bit has flipped, anywhere: never read as if nothing were wrong. */
static void a_damaged_packed_file_is_refused(void **state) {
    (void)state;
    struct bytes images = {.n = 0}, packed;
    const struct bytes labels = some_labels();
    put_header(&images, UBYTE, DIMS(3, 20, 30));
    for (uint64_t i = 0; i < 3 * 600; i++) put(&images, (i * i) >> 3, 1);
    save(LABELS, &labels);
    save_gz(IMAGES, &images);
    FILE *f = fopen(IMAGES, "rb");
    assert_non_null(f);
    packed.n = fread(packed.at, 1, sizeof packed.at, f);
    fclose(f);
    assert_true(packed.n > 200 && packed.n < sizeof packed.at);
    struct loaded good, l;
    assert_int_equal(load_name(&good, IMAGES, 0, false, 1), 0);
    uint32_t refused = 0, harmless = 0;
    for (uint64_t i = 0; i < packed.n; i++) {
        struct bytes bad = packed;
        bad.at[i] ^= (unsigned char)(1 << i % 8);
        save(IMAGES, &bad);
        const int status = load_name(&l, IMAGES, 0, false, 1);
        if (status == 0) { /* in what says nothing: the time of packing, or the length, without which there is no checksum */
            assert_same_data(&good, &l);
            harmless++;
        } else {
            assert_int_equal(status, SHMTRAIN_E_DATA);
            assert_true(strncmp(l.error.text, IMAGES, strlen(IMAGES)) == 0);
            refused++;
        }
        load_free(&l);
    }
    assert_true(harmless <= 14 && refused + harmless == packed.n);
    for (uint64_t n = 2; n < packed.n - 8; n++) {
        struct bytes bad = packed;
        bad.n = n;
        save(IMAGES, &bad);
        assert_int_equal(load_name(&l, IMAGES, 0, false, 1), SHMTRAIN_E_DATA);
        load_free(&l);
    }
    load_free(&good);
}

static void a_checksum_that_does_not_fit_is_refused(void **state) {
    (void)state;
    const struct bytes images = some_images(), labels = some_labels();
    unsigned char last[8];
    save(LABELS, &labels);
    save_gz(IMAGES ".gz", &images);
    const int fd = open(IMAGES ".gz", O_RDWR);
    assert_true(fd >= 0);
    const off_t end = lseek(fd, 0, SEEK_END);
    assert_int_equal(pread(fd, last, 8, end - 8), 8);
    last[0] ^= 1;
    assert_int_equal(pwrite(fd, last, 8, end - 8), 8);
    close(fd);
    assert_refuses(IMAGES ".gz", SHMTRAIN_E_DATA,
                   IMAGES ".gz is damaged: its checksum is not that of its contents; get it again");
}

/* A header may announce more than there is memory: nothing is taken before something comes. */
static void a_small_file_takes_no_memory_for_what_it_only_announces(void **state) {
    (void)state;
    struct bytes images = {.n = 0};
    const struct bytes labels = some_labels();
    struct shmt_source *source;
    struct shmt_error e = {0};
    put_header(&images, UBYTE, DIMS(3, 65536, 32768)); /* 6 GiB */
    put(&images, 1, 4);
    save_gz(IMAGES ".gz", &images);
    save(LABELS, &labels);
    assert_int_equal(shmt_source_open(IMAGES ".gz", 0, false, &source, &e), 0);
    assert_true(shmt_source_guess_bytes(source, true) > (uint64_t)30 << 30);
    assert_int_equal(shmt_source_unpack(source, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, IMAGES ".gz (unpacked) ends behind byte 20; by its header it has 6442450960: get it again");
    shmt_source_close(source);
    images.n = 0;
    put(&images, 0x00000e02, 4);
    put(&images, 4294967295, 4);
    put(&images, 268435455, 4);
    save_gz(IMAGES ".gz", &images);
    images.n = 0;
    put_header(&images, UBYTE, DIMS(4294967295));
    save_gz(LABELS ".gz", &images);
    memset(&e, 0, sizeof e);
    assert_int_equal(shmt_source_open(IMAGES ".gz", 0, false, &source, &e), SHMTRAIN_E_MEMORY);
    assert_string_equal(e.text, "no memory for the 8796092987392 MiB that " IMAGES ".gz unpacks to");
}

static void a_file_that_changed_since_it_was_opened_is_refused(void **state) {
    (void)state;
    const struct bytes images = some_images(), labels = some_labels();
    struct bytes other = images;
    struct shmt_source *source;
    struct shmt_error e = {0};
    other.at[7] = 2; /* of the first dimension */
    save(IMAGES, &images);
    save(LABELS, &labels);
    assert_int_equal(shmt_source_open(IMAGES, 0, false, &source, NULL), 0);
    save(IMAGES, &other);
    assert_int_equal(shmt_source_unpack(source, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, IMAGES " changed while it was being read");
    shmt_source_close(source);
    save(IMAGES, &images);
    assert_int_equal(shmt_source_open(IMAGES, 0, false, &source, NULL), 0);
    assert_int_equal(truncate(IMAGES, 20), 0);
    memset(&e, 0, sizeof e);
    assert_int_equal(shmt_source_unpack(source, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, IMAGES " ends behind byte 20; by its header it has 28: get it again");
    shmt_source_close(source);
}

static void what_is_no_idx_file_is_left_to_the_reader_of_text(void **state) {
    (void)state;
    struct bytes text = {.n = 0};
    struct loaded l;
    memcpy(text.at, "1 1:2\n-1 2:1\n", 13);
    text.n = 13;
    save("a", &text);
    assert_int_equal(load_name(&l, "a", 0, false, 1), 0);
    assert_int_equal(l.totals.n_examples, 2);
    load_free(&l);
    save("a,b", &text);
    assert_int_equal(load_name(&l, "a,b", 0, false, 1), 0);
    load_free(&l);
    save_gz("data.svm.gz", &text);
    assert_refuses("data.svm.gz", SHMTRAIN_E_DATA, "data.svm.gz is compressed; unpack it with gunzip first");
    text.n = 2; /* packed, as far as two bytes tell */
    text.at[0] = 0x1f;
    text.at[1] = 0x8b;
    save("data.svm.gz", &text);
    assert_refuses("data.svm.gz", SHMTRAIN_E_DATA, "data.svm.gz is compressed; unpack it with gunzip first");
    assert_refuses("missing", SHMTRAIN_E_SYSTEM, "cannot open missing: No such file or directory");
    assert_refuses("missing,a", SHMTRAIN_E_SYSTEM, "cannot open missing,a: No such file or directory");
    assert_refuses(".", SHMTRAIN_E_USAGE, ". is a directory; name a file in it");
}

/* ---- real data ---- */

static void mnist_is_read_as_what_it_is(void **state) {
    (void)state;
    const char *folder = getenv("SHMTRAIN_DATA_DIR");
    if (!folder) {
        print_message("skipped: SHMTRAIN_DATA_DIR names no folder with mnist, which is not part of the project\n");
        skip();
    }
    static const struct {
        const char *name;
        uint64_t examples, nonzeros;
        float first_labels[5];
    } cases[] = {{"train-images-idx3-ubyte.gz", 60000, 8994156, {5, 0, 4, 1, 9}},
                 {"t10k-images-idx3-ubyte.gz", 10000, 1511219, {7, 2, 1, 0, 4}}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char path[4200];
        struct loaded l;
        snprintf(path, sizeof path, "%s/mnist/%s", folder, cases[c].name);
        const int status = load_name(&l, path, 0, false, 4);
        if (status != 0) print_error("%s\n", l.error.text);
        assert_int_equal(status, 0);
        assert_int_equal(l.totals.n_examples, cases[c].examples);
        assert_int_equal(l.totals.n_nonzeros, cases[c].nonzeros);
        assert_int_equal(l.totals.max_id, 783);
        assert_int_equal(l.totals.labels.n, 10);
        assert_true(l.totals.label_low == 0 && l.totals.label_high == 9);
        assert_memory_equal(l.arrays.label, cases[c].first_labels, sizeof cases[c].first_labels);
        /* Of all pixels the mean is 0.1307 and the standard deviation 0.3081, figures that everybody uses. */
        assert_true(fabs(l.totals.mean_square / 784 - (0.1307 * 0.1307 + 0.3081 * 0.3081)) < 0.002);
        load_free(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(images_are_read_with_their_labels_packed_or_not, clear_folder),
        cmocka_unit_test_setup(other_packers_are_read_too, clear_folder),
        cmocka_unit_test_setup(labels_may_be_named, clear_folder),
        cmocka_unit_test_setup(every_type_of_element_is_read, clear_folder),
        cmocka_unit_test_setup(both_layouts_and_any_columns_and_parts_hold_the_same_examples, clear_folder),
        cmocka_unit_test_setup(what_one_process_unpacks_the_others_see, clear_folder),
        cmocka_unit_test_setup(it_says_where_labels_are_and_what_memory_it_takes, clear_folder),
        cmocka_unit_test_setup(labels_that_are_not_there_are_refused_with_the_names_that_were_looked_for, clear_folder),
        cmocka_unit_test_setup(labels_that_do_not_fit_are_refused, clear_folder),
        cmocka_unit_test_setup(a_wrong_header_is_refused_with_its_place, clear_folder),
        cmocka_unit_test_setup(a_file_of_the_wrong_length_is_refused, clear_folder),
        cmocka_unit_test_setup(a_damaged_packed_file_is_refused, clear_folder),
        cmocka_unit_test_setup(a_checksum_that_does_not_fit_is_refused, clear_folder),
        cmocka_unit_test_setup(a_small_file_takes_no_memory_for_what_it_only_announces, clear_folder),
        cmocka_unit_test_setup(a_file_that_changed_since_it_was_opened_is_refused, clear_folder),
        cmocka_unit_test_setup(what_is_no_idx_file_is_left_to_the_reader_of_text, clear_folder),
        cmocka_unit_test_setup(mnist_is_read_as_what_it_is, clear_folder),
    };
    return cmocka_run_group_tests_name("idx", tests, make_folder, remove_all);
}
