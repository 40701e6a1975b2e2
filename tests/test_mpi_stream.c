/* Records between the carrier on MPI and its program: whole, in order, whatever parts the socket takes and gives; and what is no record
 * ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "carriers/mpi_stream.h"

static struct shmt_mpi_stream g_one, g_other;

static int open_pair(void **state) {
    int fd[2];
    const int bytes = 4096; /* far less than a record may have */
    (void)state;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd)) return -1;
    setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return shmt_mpi_stream_open(&g_one, fd[0]) | shmt_mpi_stream_open(&g_other, fd[1]);
}

static int close_pair(void **state) {
    (void)state;
    shmt_mpi_stream_close(&g_one);
    shmt_mpi_stream_close(&g_other);
    return 0;
}

static void fill(unsigned char *bytes, uint64_t n, uint32_t seed) {
    for (uint64_t i = 0; i < n; i++) bytes[i] = (unsigned char)(seed * 31 + i * 7);
}

/* Lets both ends work until a record has come. */
static void take_next(struct shmt_mpi_record *out, unsigned char **bytes) {
    int rc;
    while ((rc = shmt_mpi_stream_take(&g_other, out, bytes)) == 0) assert_int_equal(shmt_mpi_stream_flush(&g_one), 0);
    assert_int_equal(rc, 1);
}

static void records_come_whole_and_in_order(void **state) {
    (void)state;
    static const uint64_t BODIES[] = {0, 1, 100, 4096, 65535, 65536, 200000, SHMT_MOST_BODY, 3, 0, SHMT_MOST_BODY};
    static unsigned char sent[SHMT_MOST_BODY], head[SHMT_HEAD_BYTES], expected[SHMT_MOST_BODY];
    for (uint32_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct shmt_mpi_record record;
        unsigned char *bytes;
        fill(sent, BODIES[i], i);
        fill(head, sizeof head, i + 100);
        assert_true(shmt_mpi_stream_is_idle(&g_one));
        assert_int_equal(shmt_mpi_stream_put(&g_one, SHMT_MPI_FRAME, i, i + 1, head, sent, BODIES[i]), 0);
        take_next(&record, &bytes);
        assert_true(record.kind == SHMT_MPI_FRAME && record.peer == i && record.count == i + 1);
        assert_int_equal(record.n, SHMT_HEAD_BYTES + BODIES[i]);
        assert_memory_equal(bytes, head, sizeof head);
        fill(expected, BODIES[i], i);
        assert_memory_equal(bytes + SHMT_HEAD_BYTES, expected, BODIES[i]);
        free(bytes);
    }
}

/* Many short ones lie in what is read by one call, and the last of them in part. */
static void short_records_do_not_get_lost_in_what_was_read_ahead(void **state) {
    (void)state;
    struct shmt_mpi_record record;
    unsigned char *bytes;
    uint32_t put = 0, taken = 0;
    while (taken < 5000) {
        if (put < 5000 && shmt_mpi_stream_is_idle(&g_one))
            assert_int_equal(shmt_mpi_stream_put(&g_one, SHMT_MPI_SENT, put++, 1, NULL, NULL, 0), 0);
        else
            assert_int_equal(shmt_mpi_stream_flush(&g_one), 0);
        if (put < 5000 && put % 97 != 0 && shmt_mpi_stream_is_idle(&g_one)) continue;
        while (shmt_mpi_stream_take(&g_other, &record, &bytes) == 1) {
            assert_true(record.kind == SHMT_MPI_SENT && record.peer == taken++ && record.n == 0 && bytes == NULL);
        }
    }
}

static void what_is_no_record_ends_the_stream(void **state) {
    (void)state;
    static const struct shmt_mpi_record WRONG[] = {
        {.kind = 0}, {.kind = 99}, {.kind = SHMT_MPI_FRAME, .n = SHMT_MPI_MOST_BYTES + 1}};
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct shmt_mpi_record record;
        unsigned char *bytes;
        assert_int_equal(send(g_one.fd, &WRONG[i], sizeof WRONG[i], 0), sizeof WRONG[i]);
        assert_int_equal(shmt_mpi_stream_take(&g_other, &record, &bytes), -1);
        close_pair(NULL);
        assert_int_equal(open_pair(NULL), 0);
    }
}

static void a_closed_end_is_seen_by_both_directions(void **state) {
    (void)state;
    struct shmt_mpi_record record;
    unsigned char *bytes, head[SHMT_HEAD_BYTES] = {0};
    assert_int_equal(shmt_mpi_stream_put(&g_one, SHMT_MPI_LEAVE, 0, 0, NULL, NULL, 0), 0);
    shmt_mpi_stream_close(&g_one);
    assert_int_equal(shmt_mpi_stream_take(&g_other, &record, &bytes), 1); /* what was said before still counts */
    assert_int_equal(record.kind, SHMT_MPI_LEAVE);
    assert_int_equal(shmt_mpi_stream_take(&g_other, &record, &bytes), -1);
    assert_int_equal(shmt_mpi_stream_put(&g_other, SHMT_MPI_FRAME, 0, 0, head, NULL, 0), -1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)

int main(void) {
    const struct CMUnitTest tests[] = {CASE(records_come_whole_and_in_order),
                                       CASE(short_records_do_not_get_lost_in_what_was_read_ahead),
                                       CASE(what_is_no_record_ends_the_stream), CASE(a_closed_end_is_seen_by_both_directions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
