/* NumPy files: every type of element, both quotes, archives, and labels by name; and what is refused, with its place. */
#include "data_load.h"
#include "folder_help.h"

#include <archive.h>
#include <archive_entry.h>

enum { N = 3, EACH = 4 };

struct bytes {
    unsigned char at[4096];
    uint64_t n;
};

static void put(struct bytes *b, const void *from, uint64_t n) {
    memcpy(b->at + b->n, from, n);
    b->n += n;
}

/* A file of version 1, 2 or 3, with this dict. */
static struct bytes npy(int version, const char *dict, const void *elements, uint64_t n) {
    const uint64_t length = strlen(dict);
    const unsigned char size[] = {(unsigned char)length, (unsigned char)(length >> 8), 0, 0};
    const unsigned char begin[] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
    struct bytes b = {.n = 0};
    put(&b, begin, sizeof begin);
    put(&b, size, version == 1 ? 2 : 4);
    put(&b, dict, length);
    put(&b, elements, n);
    return b;
}

static void save(const char *name, const struct bytes *b) {
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->at, 1, b->n, f), b->n);
    assert_int_equal(fclose(f), 0);
}

static const unsigned char PIXELS[N * EACH] = {0, 255, 0, 51, 0, 0, 0, 0, 1, 2, 3, 4};
static const int64_t LABELS[N] = {7, 2, 9};

static struct bytes some_images(void) {
    return npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2, 2), }  \n", PIXELS, sizeof PIXELS);
}

static struct bytes some_labels(void) {
    return npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n", LABELS, sizeof LABELS);
}

/* Of dense rows, values * `unit`. */
static void assert_examples(const char *name, const float *value) {
    struct loaded l = {0};
    struct shmt_source *source;
    if (shmt_source_open(name, 0, 0, &source, &l.error) != 0) fail_msg("%s: %s", name, l.error.text);
    assert_int_equal(shmt_source_unpack(source, &l.error), 0);
    assert_false(shmt_source_has_ids(source));
    const struct shmt_columns columns = COLUMNS(0, EACH);
    assert_int_equal(load_count(&l, source, 2, columns), 0);
    load_allocate_dense(&l, columns);
    assert_int_equal(load_fill(&l, source, 2), 0);
    assert_int_equal(l.totals.n_examples, N);
    for (uint32_t j = 0; j < N * EACH; j++)
        if (l.arrays.dense[j] != value[j])
            fail_msg("%s: value %u is %g, not %g", name, j, (double)l.arrays.dense[j], (double)value[j]);
    for (uint32_t i = 0; i < N; i++) assert_true(l.arrays.label[i] == (float)LABELS[i]);
    load_free(&l);
    shmt_source_close(source);
}

static void assert_pixels(const char *name) {
    float value[N * EACH];
    for (uint32_t j = 0; j < N * EACH; j++) value[j] = (float)PIXELS[j] / 255;
    assert_examples(name, value);
}

/* Below 0 of open, or of unpacking and counting. */
static void assert_says(const char *name, int status, const char *words) {
    struct loaded l;
    const int rc = load_name(&l, name, 0, false, 2);
    if (rc != status || !strstr(l.error.text, words)) fail_msg("%s: %d \"%s\", not \"%s\"", name, rc, l.error.text, words);
    if (strchr(l.error.text, '\n')) fail_msg("%s: \"%s\" is not one line", name, l.error.text);
    load_free(&l);
}

static int begin(void **state) {
    (void)state;
    const struct bytes images = some_images(), labels = some_labels();
    save("x_train.npy", &images);
    save("y_train.npy", &labels);
    return 0;
}

/* ---- what is read ---- */

static void bytes_are_read_as_those_of_idx_with_labels_by_name(void **state) {
    (void)state;
    const struct bytes images = some_images(), labels = some_labels();
    assert_pixels("x_train.npy");
    assert_pixels("x_train.npy,y_train.npy");
    save("train-images.npy", &images);
    save("train-labels.npy", &labels);
    assert_pixels("train-images.npy");
    save("X.npy", &images);
    save("y.npy", &labels);
    assert_pixels("X.npy");
    save("prefix_x", &images); /* by content, not by name */
    save("prefix_y", &labels);
    assert_pixels("prefix_x");
}

static void every_version_and_way_to_write_a_header_is_read(void **state) {
    static const char *const DICTS[] = {
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2, 2), }",
        "{\"descr\":\"<u1\",\"fortran_order\":False,\"shape\":(3,2,2)}",
        "{'shape': (3L, 4L), 'fortran_order': False, 'descr': 'u1'}                          \n",
        " { 'fortran_order' :\tFalse , 'descr' : '=u1' ,\n 'shape' : ( 3 , 4 , ) } \r\n",
    };
    (void)state;
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof DICTS / sizeof *DICTS; i++) {
            const struct bytes images = npy(version, DICTS[i], PIXELS, sizeof PIXELS);
            save("x_train.npy", &images);
            assert_pixels("x_train.npy");
        }
}

#define FOR_TYPE(type, descr, ...)                                                                                       \
    do {                                                                                                                 \
        const type is[N * EACH] = {__VA_ARGS__};                                                                         \
        float value[N * EACH];                                                                                           \
        for (uint32_t j = 0; j < N * EACH; j++) value[j] = (float)is[j];                                                 \
        const struct bytes b = npy(1, "{'descr': '" descr "', 'fortran_order': False, 'shape': (3, 4)}", is, sizeof is); \
        save("x_train.npy", &b);                                                                                         \
        assert_examples("x_train.npy", value);                                                                           \
    } while (0)

static void every_type_of_element_is_read(void **state) {
    (void)state;
    FOR_TYPE(int8_t, "|i1", -128, 127, 3, 4, 5, 6, -7, 0, 9, 10, 11, 12);
    FOR_TYPE(uint16_t, "<u2", 65535, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 32768);
    FOR_TYPE(int16_t, "<i2", -32768, 32767, 2, 3, 4, 5, 6, 7, 8, 9, -10, 11);
    FOR_TYPE(uint32_t, "<u4", 4294967295u, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    FOR_TYPE(int32_t, "<i4", INT32_MIN, INT32_MAX, 2, 3, 4, 5, 6, 7, 8, 9, 10, -1);
    FOR_TYPE(uint64_t, "<u8", UINT64_MAX, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    FOR_TYPE(int64_t, "<i8", INT64_MIN, INT64_MAX, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    FOR_TYPE(float, "<f4", 1.5f, -2.25f, 1e-30f, 3e38f, 0, 5, 6, 7, 8, 9, 10, 11);
    FOR_TYPE(double, "<f8", 1.5, -2.25, 1e-30, 3e38, 0, 5, 6, 7, 8, 9, 10, 0.1);
}

static void big_endian_numbers_and_labels_in_a_column_are_read(void **state) {
    unsigned char big[N * EACH * 2] = {0}, label[N * 4] = {0};
    float value[N * EACH];
    (void)state;
    for (uint32_t j = 0; j < N * EACH; j++) {
        big[2 * j] = 0xff;
        big[2 * j + 1] = (unsigned char)j;
        value[j] = (float)j - 256;
    }
    for (uint32_t i = 0; i < N; i++) label[4 * i + 3] = (unsigned char)LABELS[i];
    const struct bytes images = npy(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (3, 4)}", big, sizeof big),
                       labels = npy(1, "{'descr': '>i4', 'fortran_order': False, 'shape': (3, 1)}", label, sizeof label);
    save("x_train.npy", &images);
    save("y_train.npy", &labels);
    assert_examples("x_train.npy", value);
}

static void channels_that_come_last_are_brought_to_the_front(void **state) {
    struct shmt_source *source;
    float value[5 * 5 * 3];
    unsigned char pixels[5 * 5 * 3];
    struct shmt_error e = {0};
    (void)state;
    for (uint32_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)i;
    const struct bytes images =
        npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 5, 5, 3)}", pixels, sizeof pixels);
    save("x_one.npy", &images);
    assert_int_equal(shmt_source_open("x_one.npy", 0, SHMT_SOURCE_UNLABELLED, &source, &e), 0);
    assert_int_equal(shmt_source_unpack(source, &e), 0);
    const struct shmt_example_shape shape = shmt_source_shape(source);
    assert_true(shape.channels == 3 && shape.height == 5 && shape.width == 5);
    struct loaded l;
    const struct shmt_columns columns = COLUMNS(0, sizeof pixels);
    assert_int_equal(load_count(&l, source, 1, columns), 0);
    load_allocate_dense(&l, columns);
    assert_int_equal(load_fill(&l, source, 1), 0);
    memcpy(value, l.arrays.dense, sizeof value);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t at = 0; at < 25; at++) assert_true(value[c * 25 + at] == (float)(at * 3 + c) / 255);
    load_free(&l);
    shmt_source_close(source);
}

/* ---- archives ---- */

static void add_member(struct archive *a, const char *name, const struct bytes *b) {
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_size(entry, (int64_t)b->n);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, b->at, b->n), b->n);
    archive_entry_free(entry);
}

/* As numpy.savez, or savez_compressed. */
static void save_npz(const char *path, bool packs, const char *images_name, const struct bytes *images, const char *labels_name,
                     const struct bytes *labels) {
    struct archive *a = archive_write_new();
    const struct bytes other = npy(1, "{'descr': '<f8', 'fortran_order': True, 'shape': ()}", PIXELS, 8);
    assert_int_equal(archive_write_set_format_zip(a), ARCHIVE_OK);
    assert_int_equal(packs ? archive_write_zip_set_compression_deflate(a) : archive_write_zip_set_compression_store(a),
                     ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    add_member(a, "other.npy", &other);
    if (labels) add_member(a, labels_name, labels);
    add_member(a, images_name, images);
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);
}

static void arrays_of_an_archive_are_found_by_their_names(void **state) {
    static const char *const PAIRS[][2] = {
        {"x.npy", "y.npy"},           {"X.npy", "y.npy"},         {"x_train.npy", "y_train.npy"},
        {"images.npy", "labels.npy"}, {"arr_0.npy", "arr_1.npy"}, {"data.npy", "labels.npy"}};
    const struct bytes images = some_images(), labels = some_labels();
    (void)state;
    for (int packs = 0; packs < 2; packs++) {
        for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
            save_npz("t.npz", packs, PAIRS[i][0], &images, PAIRS[i][1], &labels);
            assert_pixels("t.npz");
        }
        save_npz("t.npz", packs, "x_test.npy", &images, "y_test.npy", &labels);
        assert_says("t.npz", SHMTRAIN_E_DATA, "without arrays of a usual name");
        assert_pixels("t.npz:x_test");
        assert_pixels("t.npz:x_test,y_test");
        save_npz("t.npz", packs, "foo.npy", &images, "bar.npy", &labels);
        assert_pixels("t.npz:foo,bar");
        assert_says("t.npz:foo", SHMTRAIN_E_DATA,
                    "t.npz has no labels for its array \"foo\": name both, as FILE:EXAMPLES,LABELS");
        assert_says("t.npz:foo,baz", SHMTRAIN_E_DATA, "t.npz has no labels \"baz\"");
        assert_says("t.npz:zoo", SHMTRAIN_E_DATA, "t.npz has no array \"zoo\"");
        save_npz("t.npz", packs, "x.npy", &images, NULL, NULL);
        assert_says("t.npz", SHMTRAIN_E_DATA, "t.npz has no labels \"y\" for its array \"x\"");
        assert_pixels("t.npz,y_train.npy"); /* which are a file */
    }
}

static void an_archive_that_is_cut_or_damaged_is_refused(void **state) {
    const struct bytes images = some_images(), labels = some_labels();
    struct bytes b = {.n = 0}, copy;
    (void)state;
    save_npz("t.npz", false, "x.npy", &images, "y.npy", &labels);
    FILE *f = fopen("t.npz", "rb");
    b.n = fread(b.at, 1, sizeof b.at, f);
    fclose(f);
    const uint64_t end = 700 < b.n ? 700 : b.n; /* behind the arrays is the directory, which a stream does not need */
    for (uint64_t n = 5; n < end; n += 7) {
        struct loaded l;
        copy = b;
        copy.n = n;
        save("cut.npz", &copy);
        const int rc = load_name(&l, "cut.npz", 0, false, 1);
        if (rc == 0 && n < 400) fail_msg("%d bytes were enough", (int)n);
        if (rc < 0 && (l.error.text[0] == '\0' || strchr(l.error.text, '\n'))) fail_msg("no sentence at %d", (int)n);
        load_free(&l);
    }
    for (uint64_t i = 0; i + sizeof PIXELS <= b.n; i++)
        if (memcmp(b.at + i, PIXELS, sizeof PIXELS) == 0) b.at[i + 1] ^= 1;
    save("bad.npz", &b);
    assert_says("bad.npz", SHMTRAIN_E_DATA, "get it again"); /* its checksum says where it ends, or whether it is whole */
}

/* ---- what is refused ---- */

static void what_a_header_cannot_say_is_refused_with_its_place(void **state) {
    static const struct {
        const char *dict, *words;
    } CASES[] = {
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (3, 4)}",
         "x_train.npy, byte 45: the array has Fortran's order, columns first: save numpy.ascontiguousarray of it"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (3, 4)}", "byte 21: elements of type \"<c8\" cannot be read"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (3, 4)}", "elements of type \"|O\" cannot be read"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (3, 4)}", "elements of type \"<f2\" cannot be read"},
        {"{'descr': '', 'fortran_order': False, 'shape': (3, 4)}", "elements of type \"\" cannot be read"},
        {"{'descr': '<\033[1m', 'fortran_order': False, 'shape': (3, 4)}", "elements of type \"?\" cannot be read"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 4)}", "its elements have fields"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "the array is one number"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 0)}", "dimension 2 of 2 is 0, so there is no data"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 4)}", "dimension 1 of 2 is 0, so there is no data"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (-3, 4)}", "expected a dimension, a whole number"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4}", "expected ')' in the header"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3 4)}", "expected ')' in the header"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "at most 8 dimensions are read"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999999, 4)}", "a dimension is too large"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (5000000000, 4)}", "at most 4294967295 examples"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 70000, 70000)}", "its examples have too many values"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967295, 4294967294)}", "do not fit into any memory"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 5)}", "but its header says"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 3)}", "has more than the"},
        {"{'descr': '|u1', 'fortran_order': Maybe, 'shape': (3, 4)}", "expected True or False"},
        {"{'descr': '|u1', 'fortran_order': False}", "has no descr, fortran_order or shape"},
        {"{'descr': '|u1', 'descr': '|u1', 'shape': (3, 4)}", "once each"},
        {"{'order': '|u1', 'fortran_order': False, 'shape': (3, 4)}", "expected descr, fortran_order and shape"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4)} x", "expected the end of the header"},
        {"('descr', )", "x_train.npy, byte 11: expected '{' in the header"},
        {"{descr: 1}", "expected a string"},
        {"{'descr", "expected a short string"},
        {"{'a key that is much too long for any of the three': 1}", "expected a short string"},
        {"", "expected '{' in the header"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct bytes b = npy(1, CASES[i].dict, PIXELS, sizeof PIXELS);
        save("x_train.npy", &b);
        assert_says("x_train.npy", SHMTRAIN_E_DATA, CASES[i].words);
    }
}

static void files_that_end_early_are_refused_wherever_that_is(void **state) {
    const struct bytes whole = some_images();
    (void)state;
    for (uint64_t n = 4; n < whole.n; n++) {
        struct bytes b = whole;
        b.n = n;
        save("x_train.npy", &b);
        assert_says("x_train.npy", SHMTRAIN_E_DATA, "get it again");
    }
}

static void other_versions_and_magics_are_refused(void **state) {
    struct bytes b = some_images();
    (void)state;
    b.at[6] = 4;
    save("x_train.npy", &b);
    assert_says("x_train.npy", SHMTRAIN_E_DATA,
                "x_train.npy, byte 7: NumPy files of version 1.0, 2.0 and 3.0 are read, and this has 4.0");
    b.at[4] = 'p';
    save("x_train.npy", &b);
    assert_says("x_train.npy", SHMTRAIN_E_DATA, "x_train.npy, byte 5: a NumPy array begins with");
    b = some_images();
    b.at[6] = 2;
    memset(b.at + 8, 0xff, 4);
    save("x_train.npy", &b);
    assert_says("x_train.npy", SHMTRAIN_E_DATA, "its header has 4294967295 bytes, and at most 4096 are read");
    b = some_images();
    b.at[20] = 0;
    save("x_train.npy", &b);
    assert_says("x_train.npy", SHMTRAIN_E_DATA, "is text, and here is a 0");
}

static void labels_that_cannot_be_are_refused(void **state) {
    static const float WRONG[] = {1, __builtin_nanf(""), 3};
    const struct bytes labels = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", WRONG, sizeof WRONG),
                       two = npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", PIXELS, 2),
                       images = some_images();
    (void)state;
    save("y_train.npy", &labels);
    assert_says("x_train.npy", SHMTRAIN_E_DATA, "y_train.npy, byte 70: expected a number between -3.4e38 and 3.4e38");
    save("y_train.npy", &two);
    assert_says("x_train.npy", SHMTRAIN_E_DATA,
                "y_train.npy has 2 labels, but x_train.npy has 3 examples: do they belong together?");
    assert_says("x_train.npy,x_train.npy", SHMTRAIN_E_DATA, "labels have one dimension, but this file has 3");
    save("pictures.npy", &images);
    assert_says("pictures.npy", SHMTRAIN_E_DATA, "its name does not contain \"x\" or \"images\" as a word");
    assert_int_equal(unlink("y_train.npy"), 0);
    assert_says("x_train.npy", SHMTRAIN_E_DATA, "neither y_train.npy nor y_train.npy.gz exists");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bytes_are_read_as_those_of_idx_with_labels_by_name, begin),
        cmocka_unit_test_setup(every_version_and_way_to_write_a_header_is_read, begin),
        cmocka_unit_test_setup(every_type_of_element_is_read, begin),
        cmocka_unit_test_setup(big_endian_numbers_and_labels_in_a_column_are_read, begin),
        cmocka_unit_test_setup(channels_that_come_last_are_brought_to_the_front, begin),
        cmocka_unit_test_setup(arrays_of_an_archive_are_found_by_their_names, begin),
        cmocka_unit_test_setup(an_archive_that_is_cut_or_damaged_is_refused, begin),
        cmocka_unit_test_setup(what_a_header_cannot_say_is_refused_with_its_place, begin),
        cmocka_unit_test_setup(files_that_end_early_are_refused_wherever_that_is, begin),
        cmocka_unit_test_setup(other_versions_and_magics_are_refused, begin),
        cmocka_unit_test_setup(labels_that_cannot_be_are_refused, begin),
    };
    return cmocka_run_group_tests_name("NumPy files", tests, make_folder, remove_folder);
}
