/* The IDX reader: every type of element, packed or not, finding labels; and MNIST. */
#include "idx_help.h"

#include <math.h>
#include <sys/wait.h>

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
                   "a,b has no labels: its name does not contain \"images\", so its labels cannot be found; name both files, "
                   "as IMAGES,LABELS");
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
        const struct shmt_columns columns = COLUMNS(0, 1);
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
    const struct shmt_columns columns[] = {COLUMNS(0, 4), COLUMNS(1, 2), COLUMNS(0, 9),
                                           COLUMNS(3, 5), COLUMNS(7, 2), COLUMNS(0, 0)};
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
        cmocka_unit_test_setup(mnist_is_read_as_what_it_is, clear_folder),
    };
    return cmocka_run_group_tests_name("idx", tests, make_folder, remove_all);
}
