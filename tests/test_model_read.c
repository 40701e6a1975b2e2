/* Reading model files: what we write comes back, and whatever else a file holds is refused in a sentence, never believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/model_read.h"

static char g_path[4000], g_folder[4000];

static int make_folder(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    alarm(60);
    snprintf(g_folder, sizeof g_folder, "%.3900s/shmtrain-read-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(g_folder)) return -1;
    snprintf(g_path, sizeof g_path, "%.3900s/model", g_folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(g_path);
    return rmdir(g_folder);
}

static void write_bytes(const void *bytes, size_t n) {
    FILE *f = fopen(g_path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A file with this header and so many bytes of data. */
static size_t make_file(const char *header, size_t data_bytes, unsigned char *out, size_t room) {
    const uint64_t n = strlen(header);
    assert_true(8 + n + data_bytes <= room);
    memcpy(out, &n, 8);
    memcpy(out + 8, header, n);
    memset(out + 8 + n, 0, data_bytes);
    return 8 + n + data_bytes;
}

static void write_file(const char *header, size_t data_bytes) {
    unsigned char bytes[64 * (SHMT_MODEL_MOST_TENSORS + 2)];
    write_bytes(bytes, make_file(header, data_bytes, bytes, sizeof bytes));
}

static void assert_refused(const char *words) {
    struct shmt_model_in *in = NULL;
    struct shmt_error e = {0};
    assert_int_equal(shmt_model_open(g_path, &in, &e), SHMTRAIN_E_DATA);
    assert_null(in);
    if (!strstr(e.text, words)) fail_msg("expected \"%s\" in: %s", words, e.text);
    for (const char *c = e.text; *c; c++) assert_in_range((unsigned char)*c, ' ', '~');
}

static void what_is_written_comes_back(void **state) {
    (void)state;
    const float w[6] = {1, -2, 3.5f, 0, 1e-30f, 7}, b[2] = {9, 10};
    float got[6];
    const struct shmt_tensor tensor[] = {{.name = "weight", .rows = 2, .width = 3, .data = w},
                                         {.name = "bias", .rows = 2, .width = 1, .data = b}};
    const struct shmt_note note[] = {{"shmtrain.model", "softmax"}, {"other", "a \"quoted\" \xc3\xa4"}};
    struct shmt_model_in *in;
    struct shmt_error e = {0};
    assert_int_equal(shmt_model_file_write(g_path, tensor, 2, note, 2, &e), 0);
    assert_int_equal(shmt_model_open(g_path, &in, &e), 0);
    assert_int_equal(shmt_model_n_tensors(in), 2);
    assert_string_equal(shmt_model_tensor(in, 0)->name, "weight");
    assert_int_equal(shmt_model_tensor(in, 0)->rows, 2);
    assert_int_equal(shmt_model_tensor(in, 0)->width, 3);
    assert_int_equal(shmt_model_tensor(in, 1)->width, 1);
    assert_int_equal(shmt_model_read_tensor(in, 0, got, &e), 0);
    assert_memory_equal(got, w, sizeof w);
    assert_int_equal(shmt_model_read_tensor(in, 1, got, &e), 0);
    assert_memory_equal(got, b, sizeof b);
    assert_string_equal(shmt_model_note(in, "shmtrain.model"), "softmax");
    assert_string_equal(shmt_model_note(in, "other"), note[1].value);
    assert_null(shmt_model_note(in, "none"));
    shmt_model_close(in);
}

static void files_that_are_no_models_are_refused(void **state) {
    (void)state;
    unsigned char bytes[64] = {0};
    struct shmt_model_in *in;
    struct shmt_error e = {0};
    unlink(g_path);
    assert_int_equal(shmt_model_open(g_path, &in, &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "No such file"));
    assert_int_equal(mkdir(g_path, 0700), 0);
    assert_refused("is a folder");
    assert_int_equal(rmdir(g_path), 0);
    assert_int_equal(mkfifo(g_path, 0600), 0);
    assert_refused("not a regular file");
    assert_int_equal(unlink(g_path), 0);
    write_bytes("", 0);
    assert_refused("has 0 bytes: not a model file");
    write_bytes(bytes, 9);
    assert_refused("has 9 bytes");
    write_bytes(bytes, 64);
    assert_refused("byte 0: not a model file, or one cut short: its header would have 0 bytes, but the file has 64");
    bytes[0] = 57; /* 56 are left */
    write_bytes(bytes, 64);
    assert_refused("its header would have 57 bytes, but the file has 64");
    memset(bytes, 0xff, 8);
    write_bytes(bytes, 64);
    assert_refused("its header would have 18446744073709551615 bytes");
    write_bytes("-1 1:0.5 3:1\n+1 2:1\n-1 7:0.25\n", 31);
    assert_refused("byte 0: not a model file");
}

static void headers_that_are_no_json_are_refused_with_the_byte(void **state) {
    (void)state;
    write_file("[1, 2]", 0);
    assert_refused("byte 8: not a model file");
    write_file("{\"a\":}", 0);
    assert_refused("the header is not JSON");
    write_file("{\"\x1b[31m", 0);
    assert_refused("the header is not JSON");
    write_file("{\"w\":{},\"w\":{}}", 0); /* a name twice */
    assert_refused("the header is not JSON");
    write_file("{\"w\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}", 4);
    assert_refused("the header is not JSON");
    char deep[4000] = "{\"a\":";
    memset(deep + 5, '[', 3900);
    write_file(deep, 0);
    assert_refused("the header is not JSON");
}

static void entries_that_cannot_be_are_refused_with_their_key(void **state) {
    (void)state;
    static const struct {
        const char *entry, *words;
        size_t data_bytes;
    } CASES[] = {
        {"3", "key \"w\": expected a tensor", 0},
        {"{\"shape\":[1],\"data_offsets\":[0,4]}", "key \"w\": expected a tensor", 4},
        {"{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}", "the \"dtype\" is not F32", 8},
        {"{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}", "expected a tensor", 4},
        {"{\"dtype\":\"F32\",\"data_offsets\":[0,4]}", "expected a \"shape\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}", "expected a \"shape\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[1,1,1],\"data_offsets\":[0,4]}", "expected a \"shape\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}", "expected a \"shape\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}", "expected a \"shape\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[0,4]}", "no larger than the file", 4},
        {"{\"dtype\":\"F32\",\"shape\":[1]}", "expected two \"data_offsets\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}", "expected two \"data_offsets\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}", "the file's 4 bytes of data", 4},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}", "expected two \"data_offsets\"", 8},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}", "do not match the \"shape\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", "8 bytes of data, but its tensors have 4", 8},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"v\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,"
         "4]}",
         "key \"v\": overlaps", 8},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"__metadata__\":[]", "key \"__metadata__\"", 4},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"__metadata__\":{\"a\\u001b\":1}",
         "key \"a?\": expected a string", 4},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char header[1024];
        snprintf(header, sizeof header, "{\"w\":%s}", CASES[i].entry);
        write_file(header, CASES[i].data_bytes);
        assert_refused(CASES[i].words);
    }
}

static void more_tensors_than_any_model_has_are_refused(void **state) {
    (void)state;
    static char header[64 * (SHMT_MODEL_MOST_TENSORS + 2)] = "{";
    for (int i = 0; i <= SHMT_MODEL_MOST_TENSORS; i++) {
        const size_t n = strlen(header);
        snprintf(header + n, sizeof header - n, "%s\"t%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
                 i > 0 ? "," : "", i);
    }
    strncat(header, "}", sizeof header - strlen(header) - 1);
    write_file(header, 0);
    assert_refused("one tensor too many");
}

/* A good file, of which each byte in turn is cut off, or changed: it is read, or refused; nothing else happens. */
static void every_cut_and_every_changed_byte_is_survived(void **state) {
    (void)state;
    static const unsigned char CHANGES[] = {0, 1, ' ', '"', '-', '0', '9', '[', '}', 0x7f, 0xff};
    const char *header =
        "{\"__metadata__\":{\"shmtrain.model\":\"logistic\"},\"weight\":{\"dtype\":\"F32\",\"shape\":[3],"
        "\"data_offsets\":[0,12]}} ";
    unsigned char good[512], bytes[512];
    const size_t n = make_file(header, 12, good, sizeof good);
    int n_read = 0, n_refused = 0;
    for (size_t cut = 0; cut < n; cut++) {
        write_bytes(good, cut);
        assert_refused(g_path); /* each names the file */
    }
    for (size_t at = 0; at < n; at++) {
        for (size_t c = 0; c < sizeof CHANGES; c++) {
            struct shmt_model_in *in = NULL;
            struct shmt_error e = {0};
            float value[3];
            memcpy(bytes, good, n);
            bytes[at] = CHANGES[c];
            write_bytes(bytes, n);
            if (shmt_model_open(g_path, &in, &e) < 0) {
                assert_true(e.text[0] != '\0');
                n_refused++;
                continue;
            }
            n_read++;
            if (shmt_model_n_tensors(in) == 1 && shmt_model_tensor(in, 0)->rows == 3)
                assert_int_equal(shmt_model_read_tensor(in, 0, value, &e), 0);
            shmt_model_close(in);
        }
    }
    assert_true(n_read > 100 && n_refused > 400); /* the data and the names may be anything; the rest is protected */
}

static void a_file_that_shrinks_meanwhile_is_an_error(void **state) {
    (void)state;
    struct shmt_model_in *in;
    struct shmt_error e = {0};
    float value[3];
    write_file("{\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", 12);
    assert_int_equal(shmt_model_open(g_path, &in, &e), 0);
    struct stat st;
    assert_int_equal(stat(g_path, &st), 0);
    assert_int_equal(truncate(g_path, st.st_size - 4), 0);
    assert_int_equal(shmt_model_read_tensor(in, 0, value, &e), SHMTRAIN_E_DATA);
    assert_non_null(strstr(e.text, "became shorter"));
    shmt_model_close(in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(files_that_are_no_models_are_refused),
        cmocka_unit_test(headers_that_are_no_json_are_refused_with_the_byte),
        cmocka_unit_test(entries_that_cannot_be_are_refused_with_their_key),
        cmocka_unit_test(more_tensors_than_any_model_has_are_refused),
        cmocka_unit_test(every_cut_and_every_changed_byte_is_survived),
        cmocka_unit_test(a_file_that_shrinks_meanwhile_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
