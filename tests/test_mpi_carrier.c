/* The carrier on MPI and how its program may fail: this test is the program, too, started again by the carrier. With a real one:
 * test_program_mpi.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "carriers/mpi_carrier.h"
#include "carriers/mpi_stream.h"
#include "sync/host.h"

#define SECOND UINT64_C(1000000000)

static char g_self[4096]; /* this program's path */

/* ---- the other end ---- */

static void say(struct shmt_mpi_stream *s, enum shmt_mpi_kind kind, uint32_t peer, uint32_t count, const unsigned char *head,
                const void *body, uint64_t n) {
    if (shmt_mpi_stream_put(s, kind, peer, count, head, body, n) < 0) _exit(9);
    while (!shmt_mpi_stream_is_idle(s))
        if (shmt_mpi_stream_flush(s) < 0) _exit(9);
}

static uint32_t hear(struct shmt_mpi_stream *s, struct shmt_mpi_record *record) {
    unsigned char *bytes = NULL;
    int rc;
    while ((rc = shmt_mpi_stream_take(s, record, &bytes)) == 0) usleep(500);
    free(bytes);
    return rc < 0 ? 0 : record->kind;
}

/* What this process does as the carrier's program, by FAKE_MPI. */
static _Noreturn void be_program(const char *how, int fd) {
    static char names[2][SHMT_MPI_NAME] = {"one", "other"};
    static unsigned char head[SHMT_HEAD_BYTES] = {7};
    struct shmt_mpi_stream s;
    struct shmt_mpi_record record;
    if (strcmp(how, "fails") == 0) _exit(15);
    if (shmt_mpi_stream_open(&s, fd) < 0) _exit(8);
    const bool is_old = strcmp(how, "old") == 0, is_third = strcmp(how, "third") == 0;
    say(&s, SHMT_MPI_HELLO, is_third ? 2 : 0, is_old ? SHMT_MPI_VERSION + 1 : SHMT_MPI_VERSION, NULL, names, sizeof names);
    if (strcmp(how, "dies") == 0) _exit(4);
    if (strcmp(how, "nonsense") == 0) say(&s, SHMT_MPI_FRAME, 1, 0, NULL, "short", 5);
    if (strcmp(how, "stranger") == 0) say(&s, SHMT_MPI_FRAME, 5, 0, head, "x", 1);
    if (strcmp(how, "too many") == 0) say(&s, SHMT_MPI_SENT, 1, 1, NULL, NULL, 0);
    if (strcmp(how, "frame") == 0) say(&s, SHMT_MPI_FRAME, 1, 0, head, "hello", 5);
    for (uint32_t n = 0, kind; (kind = hear(&s, &record)) != 0 && kind != SHMT_MPI_LEAVE;)
        if (++n == SHMT_MPI_KEPT) say(&s, SHMT_MPI_SENT, 1, n, NULL, NULL, 0);
    _exit(0);
}

/* ---- this end ---- */

static bool goes_on(void *arg) { return arg == NULL; }

static int open_as(const char *how, const char *program, struct shmt_carrier **out, struct shmt_error *e) {
    const struct shmt_mpi_spec spec = {.self = 0, .n_hosts = 2, .program = program, .goes_on = goes_on};
    setenv("FAKE_MPI", how, 1);
    *e = (struct shmt_error){0};
    const int rc = shmt_mpi_open(&spec, out, e);
    unsetenv("FAKE_MPI");
    return rc;
}

static void what_cannot_start_says_why(void **state) {
    static const char *const HOW[][2] = {{"fails", "MPI has not started (exit status 15"},
                                         {"old", "is of another version"},
                                         {"third", "MPI says that this is rank 2 of 2, its launcher said 0 of 2"}};
    struct shmt_carrier *c;
    struct shmt_error e;
    (void)state;
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++) {
        assert_int_equal(open_as(HOW[i][0], g_self, &c, &e), SHMTRAIN_E_SYSTEM);
        assert_non_null(strstr(e.text, HOW[i][1]));
    }
    assert_int_equal(open_as("", "/nowhere/at/all", &c, &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "cannot run /nowhere/at/all"));
}

static void names_and_frames_come_through(void **state) {
    struct shmt_carrier *c;
    struct shmt_frame frame;
    struct shmt_error e;
    (void)state;
    assert_int_equal(open_as("frame", g_self, &c, &e), 0);
    assert_string_equal(shmt_mpi_name_of(c, 1), "other");
    assert_int_equal(shmt_carrier_receive(c, shmt_now_ns() + 20 * SECOND, &frame, &e), 1);
    assert_true(frame.from == 1 && frame.head[0] == 7 && frame.body_bytes == 5 && memcmp(frame.body, "hello", 5) == 0);
    shmt_carrier_release(c, &frame);
    assert_int_equal(shmt_carrier_receive(c, shmt_now_ns(), &frame, &e), 0);
    shmt_carrier_close(c);
}

static void a_program_that_fails_fails_the_carrier(void **state) {
    static const char *const HOW[][2] = {
        {"dies", "exit status 4"}, {"nonsense", "MPI has ended"}, {"stranger", "MPI has ended"}, {"too many", "MPI has ended"}};
    struct shmt_carrier *c;
    struct shmt_frame frame;
    struct shmt_error e;
    (void)state;
    for (size_t i = 0; i < sizeof HOW / sizeof *HOW; i++) {
        assert_int_equal(open_as(HOW[i][0], g_self, &c, &e), 0);
        assert_int_equal(shmt_carrier_receive(c, shmt_now_ns() + 20 * SECOND, &frame, &e), SHMTRAIN_E_SYSTEM);
        if (i == 0) assert_non_null(strstr(e.text, HOW[i][1]));
        shmt_carrier_close(c);
    }
}

/* A peer takes so many frames on their way, and more when it has got some. */
static void a_slow_peer_is_full(void **state) {
    static const unsigned char head[SHMT_HEAD_BYTES];
    struct shmt_carrier *c;
    struct shmt_frame frame;
    struct shmt_error e;
    uint32_t n = 0;
    (void)state;
    assert_int_equal(open_as("", g_self, &c, &e), 0);
    for (uint64_t until_ns = shmt_now_ns() + 20 * SECOND; n < SHMT_MPI_KEPT && shmt_now_ns() < until_ns;)
        n += shmt_carrier_send(c, 1, head, NULL, &e) == 1;
    assert_int_equal(n, SHMT_MPI_KEPT);
    assert_int_equal(shmt_carrier_send(c, 1, head, NULL, &e), 0);
    int rc = 0;
    for (uint64_t until_ns = shmt_now_ns() + 20 * SECOND; rc == 0 && shmt_now_ns() < until_ns;) {
        assert_int_equal(shmt_carrier_receive(c, shmt_now_ns() + SECOND / 100, &frame, &e),
                         0); /* no frame: it was told what was sent */
        rc = shmt_carrier_send(c, 1, head, NULL, &e);
    }
    assert_int_equal(rc, 1);
    shmt_carrier_close(c);
}

int main(int argc, char **argv) {
    if (argc == 2 && getenv("FAKE_MPI")) be_program(getenv("FAKE_MPI"), atoi(argv[1]));
    const ssize_t n = readlink("/proc/self/exe", g_self, sizeof g_self - 1);
    if (n <= 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_start_says_why), cmocka_unit_test(names_and_frames_come_through),
        cmocka_unit_test(a_program_that_fails_fails_the_carrier), cmocka_unit_test(a_slow_peer_is_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
