/* Tests of text that comes through pipes. */
#include "text_streams.h"

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
    struct pass pass = {.buffered = true};
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
    assert_true(shmt_source_share_pipe(a, b));
    assert_false(shmt_source_share_pipe(a, c) || shmt_source_share_pipe(c, c));
    assert_int_equal(shmt_source_open(PIPE "\n./" PIPE, 1, 0, &twice, &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text, "./t.pipe is named twice, but can be read only once");
    shmt_source_close(a);
    shmt_source_close(b);
    shmt_source_close(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_through_a_pipe_is_what_was_written),
        cmocka_unit_test(a_stop_ends_waiting_for_a_pipe),
        cmocka_unit_test(a_pipe_is_known_again),
    };
    return cmocka_run_group_tests_name("text through pipes", tests, make_text, free_text);
}
