/* The IDX reader: every refusal with its sentence. */
#include "idx_help.h"

#include <fcntl.h>

static void labels_that_are_not_there_are_refused_with_the_names_that_were_looked_for(void **state) {
    (void)state;
    const struct bytes images = some_images();
    save(IMAGES, &images);
    save_gz(IMAGES ".gz", &images);
    save("a", &images);
    assert_refuses(IMAGES, SHMTRAIN_E_DATA,
                   IMAGES " has no labels: neither " LABELS " nor " LABELS ".gz exists; name both files, as IMAGES,LABELS");
    assert_refuses(IMAGES ".gz", SHMTRAIN_E_DATA,
                   IMAGES ".gz has no labels: neither " LABELS ".gz nor " LABELS " exists; name both files, as IMAGES,LABELS");
    assert_refuses("a", SHMTRAIN_E_DATA,
                   "a has no labels: its name does not contain \"images\", so its labels cannot be found; name both files, as "
                   "IMAGES,LABELS");
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
    assert_refuses("a,b", SHMTRAIN_E_DATA, "b has 4 labels, but a has 3 examples: do they belong together?");
    labels.n = 0;
    put_header(&labels, UBYTE, square);
    put(&labels, 0, 6);
    save("b", &labels);
    assert_refuses("a,b", SHMTRAIN_E_DATA, "b, byte 4: labels have one dimension, but this file has 2");
    labels.n = 0;
    put(&labels, 0x31323334, 4);
    save("b", &labels);
    assert_refuses("a,b", SHMTRAIN_E_DATA, "b, byte 1: an IDX file of labels starts with 0 0, and this does not");
    labels.n = 0;
    put_header(&labels, FLOAT, DIMS(3));
    put(&labels, 0x3f800000, 4);
    put(&labels, 0x7fc00000, 4); /* not a number */
    put(&labels, 0, 4);
    save("b", &labels);
    assert_refuses("a,b", SHMTRAIN_E_DATA, "b, byte 13: expected a number between -3.4e38 and 3.4e38");
}

/* Plain and packed: the same is wrong with both, at the same place. */
static void a_wrong_header_is_refused_with_its_place(void **state) {
    (void)state;
    static const struct {
        uint32_t magic, dim[8], n_dims;
        const char *sentence;
    } cases[] = {
        {0x00000703, {3, 2, 2}, 3, "byte 3: expected the type of an IDX file (8, 9, 11, 12, 13 or 14), found 7"},
        {0x00000a03, {3, 2, 2}, 3, "byte 3: expected the type of an IDX file (8, 9, 11, 12, 13 or 14), found 10"},
        {0x00000800, {0}, 0, "byte 4: expected the number of dimensions of an IDX file (1 to 8), found 0"},
        {0x00000809, {3, 2, 2}, 3, "byte 4: expected the number of dimensions of an IDX file (1 to 8), found 9"},
        {0x00000803, {3, 0, 2}, 3, "byte 9: dimension 2 of 3 is 0, so there is no data"},
        {0x00000803, {0, 2, 2}, 3, "byte 5: dimension 1 of 3 is 0, so there is no data"},
        {0x00000803,
         {3, 65536, 65536},
         3,
         "byte 13: its examples have too many values; at most 4294967294 features are possible"},
        {0x00000808,
         {4294967295, 1, 2, 3, 4, 4294967295, 7, 8},
         8,
         "byte 25: its examples have too many values; at most 4294967294 features are possible"},
        {0x00000e02,
         {4294967295, 4294967294},
         2,
         "byte 5: 4294967295 examples of 4294967294 values do not fit into any memory"},
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
            snprintf(what, sizeof what, "ends after byte %d, but its header says %d bytes: get it again", (int)n,
                     n < 16 ? 16 : (int)whole.n);
        } else {
            snprintf(what, sizeof what, "has more than the %d bytes that its header says: get it again", (int)whole.n);
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
                   IMAGES ".gz is damaged: its checksum does not match its contents; get it again");
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
    assert_string_equal(e.text, IMAGES ".gz (unpacked) ends after byte 20, but its header says 6442450960 bytes: get it again");
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
    assert_string_equal(e.text, "not enough memory: 8796092991488 MiB are needed to unpack " IMAGES ".gz");
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
    assert_string_equal(e.text, IMAGES " ends after byte 20, but its header says 28 bytes: get it again");
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
    assert_int_equal(load_name(&l, "data.svm.gz", 0, false, 1), 0);
    assert_int_equal(l.totals.n_examples, 2);
    load_free(&l);
    text.n = 2; /* packed, as far as two bytes tell */
    text.at[0] = 0x1f;
    text.at[1] = 0x8b;
    save("data.svm.gz", &text);
    assert_refuses("data.svm.gz", SHMTRAIN_E_DATA, "data.svm.gz:1:1: expected a label (a number), found \"\\x1f\\x8b\"");
    assert_refuses("missing", SHMTRAIN_E_SYSTEM, "cannot open missing: No such file or directory");
    assert_refuses("missing,a", SHMTRAIN_E_SYSTEM, "cannot open missing,a: No such file or directory");
    assert_refuses(".", SHMTRAIN_E_USAGE, ". is a folder; name a file in it");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(labels_that_are_not_there_are_refused_with_the_names_that_were_looked_for, clear_folder),
        cmocka_unit_test_setup(labels_that_do_not_fit_are_refused, clear_folder),
        cmocka_unit_test_setup(a_wrong_header_is_refused_with_its_place, clear_folder),
        cmocka_unit_test_setup(a_file_of_the_wrong_length_is_refused, clear_folder),
        cmocka_unit_test_setup(a_damaged_packed_file_is_refused, clear_folder),
        cmocka_unit_test_setup(a_checksum_that_does_not_fit_is_refused, clear_folder),
        cmocka_unit_test_setup(a_small_file_takes_no_memory_for_what_it_only_announces, clear_folder),
        cmocka_unit_test_setup(a_file_that_changed_since_it_was_opened_is_refused, clear_folder),
        cmocka_unit_test_setup(what_is_no_idx_file_is_left_to_the_reader_of_text, clear_folder),
    };
    return cmocka_run_group_tests_name("idx refusals", tests, make_folder, remove_all);
}
