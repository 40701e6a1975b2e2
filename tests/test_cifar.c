/* CIFAR-10's binary files: told by what is in them, several read as one, and refused when they are no whole records. */
#include "data_load.h"
#include "folder_help.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>

enum { PIXELS = 3072, RECORD = 1 + PIXELS };

static unsigned char pixel_of(uint32_t i, uint32_t j) { return (unsigned char)(i * 37 + j * 11 + j / 1024); }

/* `n` records from number `first` on, the last one without its last `cut` bytes. */
static void write_records(const char *name, uint32_t first, uint32_t n, uint32_t cut) {
    unsigned char record[RECORD];
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    for (uint32_t i = first; i < first + n; i++) {
        record[0] = (unsigned char)(i % 10);
        for (uint32_t j = 0; j < PIXELS; j++) record[1 + j] = pixel_of(i, j);
        const size_t bytes = i + 1 == first + n ? RECORD - cut : RECORD;
        assert_int_equal(fwrite(record, 1, bytes, f), bytes);
    }
    assert_int_equal(fclose(f), 0);
}

static void change_byte(const char *name, long at, unsigned char to) {
    FILE *f = fopen(name, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fputc(to, f), to);
    assert_int_equal(fclose(f), 0);
}

static void assert_records(const char *name, const char *title, uint32_t n) {
    struct loaded l = {0};
    struct shmt_source *source;
    if (shmt_source_open(name, 0, 0, &source, &l.error) != 0) fail_msg("%s: %s", name, l.error.text);
    const struct shmt_example_shape shape = shmt_source_shape(source);
    assert_true(shape.channels == 3 && shape.height == 32 && shape.width == 32);
    if (title)
        assert_string_equal(shmt_source_title(source), title);
    else
        assert_null(shmt_source_title(source));
    assert_int_equal(shmt_source_unpack(source, &l.error), 0);
    const struct shmt_columns columns = COLUMNS(0, PIXELS);
    assert_int_equal(load_count(&l, source, 3, columns), 0);
    load_allocate_dense(&l, columns);
    assert_int_equal(load_fill(&l, source, 3), 0);
    assert_int_equal(l.totals.n_examples, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(l.arrays.label[i] == (float)(i % 10));
        for (uint32_t j = 0; j < PIXELS; j++) assert_true(l.arrays.dense[i * PIXELS + j] == (float)pixel_of(i, j) / 255);
    }
    load_free(&l);
    shmt_source_close(source);
}

static void assert_says(const char *name, int status, const char *sentence) {
    struct loaded l;
    const int rc = load_name(&l, name, 0, false, 2);
    if (rc != status || strcmp(l.error.text, sentence) != 0)
        fail_msg("%s: %d \"%s\", not \"%s\"", name, rc, l.error.text, sentence);
    load_free(&l);
}

static void records_are_read_channel_by_channel(void **state) {
    (void)state;
    write_records("data_batch_1.bin", 0, 23, 0);
    assert_records("data_batch_1.bin", NULL, 23);
    write_records("whatever", 0, 1, 0); /* by content, not by name */
    assert_records("whatever", NULL, 1);
}

static void several_files_are_read_as_one(void **state) {
    struct shmt_source *source;
    char place[100];
    (void)state;
    write_records("data_batch_1.bin", 0, 20, 0);
    write_records("data_batch_2.bin", 20, 7, 0);
    write_records("data_batch_3.bin", 27, 13, 0);
    assert_records("data_batch_1.bin\ndata_batch_2.bin", "data_batch_1.bin and 1 other", 27);
    assert_records("data_batch_1.bin\ndata_batch_2.bin\ndata_batch_3.bin", "data_batch_1.bin and 2 others", 40);
    assert_int_equal(shmt_source_open("data_batch_1.bin\ndata_batch_2.bin", 0, 0, &source, NULL), 0);
    shmt_source_place(source, 21, place, sizeof place);
    assert_string_equal(place, "data_batch_2.bin example 2");
    shmt_source_close(source);
}

static void what_begins_like_an_idx_file_is_told_from_one(void **state) {
    (void)state;
    write_records("zeros.bin", 0, 3, 0); /* label 0, and a pixel of 0 */
    change_byte("zeros.bin", 1, 0);
    assert_records("zeros.bin", NULL, 3);
}

static void files_of_other_sizes_are_refused(void **state) {
    (void)state;
    write_records("cut.bin", 3, 2, 100);
    assert_says("cut.bin", SHMTRAIN_E_DATA,
                "cut.bin has 6046 bytes, which are no whole records of CIFAR-10 (3073 bytes each): get it again");
    write_records("cut.bin", 3, 1, 3000);
    assert_says("cut.bin", SHMTRAIN_E_DATA,
                "cut.bin has 73 bytes, which are no whole records of CIFAR-10 (3073 bytes each): get it again");
    write_records("more.bin", 3, 2, RECORD - 1); /* as long as a record of CIFAR-100 */
    assert_says("more.bin", SHMTRAIN_E_DATA,
                "more.bin has 3074 bytes, which are no whole records of CIFAR-10 (3073 bytes each): get it again; or is it "
                "CIFAR-100, which is not read?");
    write_records("data_batch_1.bin", 3, 2, 0);
    assert_says("data_batch_1.bin\ncut.bin", SHMTRAIN_E_DATA,
                "cut.bin has 73 bytes, which are no whole records of CIFAR-10 (3073 bytes each): get it again");
}

static void a_label_that_is_none_is_refused_with_its_place(void **state) {
    (void)state;
    write_records("late.bin", 3, 2000, 0);
    change_byte("late.bin", 1001L * RECORD, 10); /* not one of those that were looked at first */
    assert_says("late.bin", SHMTRAIN_E_DATA, "late.bin, byte 3076074: expected a label of CIFAR-10, from 0 to 9, found 10");
}

static void files_of_several_kinds_are_not_read_as_one(void **state) {
    (void)state;
    write_records("data_batch_1.bin", 3, 2, 0);
    write_bytes("t.svm", "1 1:1\n2 2:1\n", 12);
    assert_says("data_batch_1.bin\nt.svm", SHMTRAIN_E_USAGE,
                "data_batch_1.bin is a CIFAR-10 file, and the others are not all such files: use those of one kind");
}

/* As long as records by chance: text has no bytes of pictures. */
static void text_of_this_length_stays_text(void **state) {
    struct loaded l;
    FILE *f = fopen("text.bin", "wb");
    (void)state;
    fputs("\t1 1:1\n", f);
    for (int i = 7; i < RECORD; i++) fputc(i + 1 < RECORD ? ' ' : '\n', f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(load_name(&l, "text.bin", 0, false, 1), 0);
    assert_int_equal(l.totals.n_examples, 1);
    load_free(&l);
}

/* Whoever opened it would take what is in it. */
static void a_pipe_is_not_opened_to_look(void **state) {
    struct shmt_source *source;
    (void)state;
    assert_int_equal(mkfifo("pipe.bin", 0600), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        FILE *f = fopen("pipe.bin", "w");
        _exit(f && fputs("1 1:1\n", f) >= 0 && fclose(f) == 0 ? 0 : 1);
    }
    assert_int_equal(shmt_source_open("pipe.bin", 0, 0, &source, NULL), 0);
    assert_true(shmt_source_is_once(source));
    shmt_source_close(source);
    (void)kill(writer, SIGKILL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_channel_by_channel),
        cmocka_unit_test(several_files_are_read_as_one),
        cmocka_unit_test(what_begins_like_an_idx_file_is_told_from_one),
        cmocka_unit_test(files_of_other_sizes_are_refused),
        cmocka_unit_test(a_label_that_is_none_is_refused_with_its_place),
        cmocka_unit_test(files_of_several_kinds_are_not_read_as_one),
        cmocka_unit_test(text_of_this_length_stays_text),
        cmocka_unit_test(a_pipe_is_not_opened_to_look),
    };
    return cmocka_run_group_tests_name("CIFAR-10", tests, make_folder, remove_folder);
}
