/* What hosts hold against one another (src/hosts/facts.h), files of keys (src/hosts/key_files.h), and packets between a run and its link
 * (src/hosts/desk.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <shmtrain/hosts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hosts/desk.h"
#include "hosts/facts.h"
#include "hosts/key_files.h"

/* ---- facts ---- */

static struct shmt_facts *facts_of(const char *data, const char *batch, const char *rate) {
    struct shmt_facts *f = calloc(1, sizeof *f);
    assert_non_null(f);
    shmt_facts_add(f, "data", "%s", data);
    if (batch) shmt_facts_add(f, "batch", "%s", batch);
    shmt_facts_add(f, "rate", "%s", rate);
    return f;
}

static void differ(const struct shmt_facts *ours, const struct shmt_facts *theirs, const char *name, const char *here,
                   const char *there) {
    struct shmt_difference d;
    assert_true(shmt_facts_differ(ours, (const unsigned char *)theirs->text, theirs->n, &d));
    assert_string_equal(d.name, name);
    assert_string_equal(d.ours, here);
    assert_string_equal(d.theirs, there);
}

static void the_first_fact_that_differs_is_named(void **state) {
    struct shmt_facts *a = facts_of("a9a", "64", "0.5"), *same = facts_of("a9a", "64", "0.5"),
                      *batch = facts_of("a9a", "128", "0.1"), *missing = facts_of("a9a", NULL, "0.5"),
                      *end = facts_of("a9a", "64", "0.55");
    struct shmt_difference d;
    (void)state;
    assert_false(shmt_facts_differ(a, (const unsigned char *)same->text, same->n, &d));
    differ(a, batch, "batch", "64", "128");
    differ(a, end, "rate", "0.5", "0.55");
    differ(a, missing, "batch", "64", "none");
    differ(missing, a, "batch", "none", "64");
    for (uint32_t n = 0; n + 1 < same->n; n++) assert_true(shmt_facts_differ(a, (const unsigned char *)same->text, n, &d));
    same->text[same->n++] = 'x'; /* more than we know */
    assert_true(shmt_facts_differ(a, (const unsigned char *)same->text, same->n, &d));
    struct shmt_facts *all[] = {a, same, batch, missing, end};
    for (size_t i = 0; i < 5; i++) free(all[i]);
}

static void values_break_no_line_and_too_many_facts_are_noticed(void **state) {
    struct shmt_facts *a = facts_of("one\nrate=9", "64", "0.5");
    char line[400];
    (void)state;
    assert_int_equal(strncmp(a->text, "data=one", 8), 0);
    assert_null(strstr(a->text, "\nrate=9"));
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    for (int i = 0; i < 200 && !a->full; i++) shmt_facts_add(a, "long", "%s", line);
    assert_true(a->full && a->n < sizeof a->text);
    free(a);
}

/* ---- keys ---- */

static char g_folder[] = "/tmp/test_host_files.XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(g_folder) && chdir(g_folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", g_folder);
    return chdir("/") == 0 ? system(command) : -1;
}

static void write_file(const char *name, const char *text, mode_t mode) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(name, mode), 0);
}

static void read_file(const char *name, char out[256]) {
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    out[fread(out, 1, 255, f)] = '\0';
    fclose(f);
}

static void keygen(const char *file, char public_out[SHMTRAIN_KEY_BYTES]) {
    char message[512] = "";
    if (shmtrain_keygen(file, public_out, message, sizeof message) < 0) fail_msg("%s", message);
}

static void a_pair_of_keys_is_made_and_read_again(void **state) {
    char public[2][SHMTRAIN_KEY_BYTES], text[256], peers[512];
    struct shmt_zmq_keys keys;
    struct shmt_error e = {0};
    struct stat s;
    (void)state;
    umask(0);
    keygen("a.key", public[0]);
    keygen("b.key", public[1]);
    assert_int_equal(strlen(public[0]), 40);
    assert_string_not_equal(public[0], public[1]);
    assert_int_equal(stat("a.key", &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    read_file("a.key.pub", text);
    assert_int_equal(strncmp(text, public[0], 40), 0);
    assert_int_equal(text[40], '\n');
    snprintf(peers, sizeof peers, "# all hosts\n\n%s  this is a\n%s\r\n", public[0], public[1]);
    write_file("peers", peers, 0644);
    for (uint32_t self = 0; self < 2; self++) {
        assert_int_equal(shmt_key_files_read(self ? "b.key" : "a.key", "peers", self, 2, &keys, &e), 0);
        assert_string_equal(keys.own_public, public[self]);
        assert_string_equal(keys.peer[0], public[0]);
        assert_string_equal(keys.peer[1], public[1]);
    }
}

static void what_is_there_is_not_written_over(void **state) {
    char public[SHMTRAIN_KEY_BYTES], message[512], before[256], after[256];
    (void)state;
    keygen("c.key", public);
    read_file("c.key", before);
    assert_int_equal(shmtrain_keygen("c.key", public, message, sizeof message), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(message, "c.key is there already"));
    read_file("c.key", after);
    assert_string_equal(after, before);
    write_file("d.key.pub", "mine", 0644);
    assert_int_equal(shmtrain_keygen("d.key", public, message, sizeof message), SHMTRAIN_E_USAGE);
    assert_int_equal(access("d.key", F_OK), -1); /* nor is half a pair left */
    assert_int_equal(shmtrain_keygen("nowhere/e.key", public, message, sizeof message), SHMTRAIN_E_SYSTEM);
    assert_int_equal(symlink("elsewhere", "f.key"), 0);
    assert_int_equal(shmtrain_keygen("f.key", public, message, sizeof message), SHMTRAIN_E_USAGE);
    assert_int_equal(access("elsewhere", F_OK), -1);
    assert_int_equal(shmtrain_keygen(NULL, public, NULL, 0), SHMTRAIN_E_USAGE);
}

static void files_that_are_wrong_are_named_with_the_line(void **state) {
    char public[2][SHMTRAIN_KEY_BYTES], peers[256], twice[256], more[512];
    struct shmt_zmq_keys keys;
    (void)state;
    keygen("g.key", public[0]);
    keygen("h.key", public[1]);
    snprintf(peers, sizeof peers, "%s\n%s\n", public[0], public[1]);
    snprintf(twice, sizeof twice, "%s\n%s\n", public[0], public[0]);
    snprintf(more, sizeof more, "%s%s\n", peers, public[0]);
    write_file("peers", peers, 0644);
    write_file("few", public[0], 0644);
    write_file("twice", twice, 0644);
    write_file("more", more, 0644);
    write_file("garbage", "# keys\nnot a key\n", 0600);
    write_file("empty", "", 0600);
    read_file("g.key", peers);
    write_file("open.key", peers, 0640);
    const struct {
        const char *key, *peers, *words;
        uint32_t self;
        int status;
    } wrong[] = {
        {"none", "peers", "cannot open none", 0, SHMTRAIN_E_SYSTEM},
        {"g.key", "none", "cannot open none", 0, SHMTRAIN_E_SYSTEM},
        {"open.key", "peers", "open.key can be read or changed by others (mode 640): chmod 600 it", 0, SHMTRAIN_E_DATA},
        {"garbage", "peers", "garbage:2:1: expected a key, which has 40 letters", 0, SHMTRAIN_E_DATA},
        {"empty", "peers", "empty has no key", 0, SHMTRAIN_E_DATA},
        {"g.key", "garbage", "garbage:2:1: expected a key", 0, SHMTRAIN_E_DATA},
        {"g.key", "few", "few has 1 keys for 2 hosts", 0, SHMTRAIN_E_DATA},
        {"g.key", "twice", "twice:2:1: two hosts have this key", 0, SHMTRAIN_E_DATA},
        {"g.key", "more", "more:3:1: there are more keys than hosts, which are 2", 0, SHMTRAIN_E_DATA},
        {"h.key", "peers", "the key in h.key is not that of host 0 in peers", 0, SHMTRAIN_E_DATA}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct shmt_error e = {0};
        assert_int_equal(shmt_key_files_read(wrong[i].key, wrong[i].peers, wrong[i].self, 2, &keys, &e), wrong[i].status);
        if (!strstr(e.text, wrong[i].words)) fail_msg("\"%s\" is not in: %s", wrong[i].words, e.text);
    }
}

/* ---- packets ---- */

static struct shmt_desk_packet g_in, g_out;

static void make_desk(int desk[2]) { assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, desk), 0); }

static void packets_come_whole_and_in_order_with_their_descriptor(void **state) {
    int desk[2], passed;
    (void)state;
    make_desk(desk);
    assert_int_equal(shmt_desk_receive(desk[0], 0, &g_in, &passed), 0);
    g_out.kind = SHMT_DESK_NOTE;
    shmt_desk_write(&g_out, "hello");
    assert_int_equal(shmt_desk_send(desk[1], &g_out, -1), 0);
    g_out.kind = SHMT_DESK_WORK;
    g_out.n = sizeof g_out.bytes;
    memset(g_out.bytes, 7, g_out.n);
    assert_int_equal(shmt_desk_send(desk[1], &g_out, desk[1]), 0);
    assert_int_equal(shmt_desk_receive(desk[0], 1000, &g_in, &passed), 1);
    assert_int_equal(passed, -1);
    assert_string_equal(shmt_desk_text(&g_in), "hello");
    assert_int_equal(shmt_desk_receive(desk[0], 1000, &g_in, &passed), 1);
    assert_true(passed >= 0 && passed != desk[1]);
    assert_int_equal(fcntl(passed, F_GETFD), FD_CLOEXEC);
    assert_int_equal(g_in.n, sizeof g_in.bytes);
    assert_memory_equal(g_in.bytes, g_out.bytes, g_in.n);
    close(passed);
    close(desk[1]);
    assert_int_equal(shmt_desk_receive(desk[0], 1000, &g_in, &passed), -1);
    assert_int_equal(shmt_desk_send(desk[0], &g_out, -1), -1); /* and no SIGPIPE */
    close(desk[0]);
}

static void what_is_no_packet_is_refused(void **state) {
    int desk[2];
    (void)state;
    make_desk(desk);
    g_out.kind = SHMT_DESK_NOTE;
    g_out.n = 100;
    assert_int_equal(send(desk[1], &g_out, 8, 0), 8); /* shorter than a head */
    assert_int_equal(shmt_desk_receive(desk[0], 1000, &g_in, NULL), -1);
    assert_int_equal(send(desk[1], &g_out, offsetof(struct shmt_desk_packet, bytes) + 99, 0),
                     (int)offsetof(struct shmt_desk_packet, bytes) + 99);
    assert_int_equal(shmt_desk_receive(desk[0], 1000, &g_in, NULL), -1);
    close(desk[0]);
    close(desk[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_fact_that_differs_is_named),
                                       cmocka_unit_test(values_break_no_line_and_too_many_facts_are_noticed),
                                       cmocka_unit_test(a_pair_of_keys_is_made_and_read_again),
                                       cmocka_unit_test(what_is_there_is_not_written_over),
                                       cmocka_unit_test(files_that_are_wrong_are_named_with_the_line),
                                       cmocka_unit_test(packets_come_whole_and_in_order_with_their_descriptor),
                                       cmocka_unit_test(what_is_no_packet_is_refused)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
