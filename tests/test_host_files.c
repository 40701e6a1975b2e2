/* What hosts hold against one another (src/hosts/facts.h), files of keys (src/hosts/key_files.h), and packets between a run and its link
 * (src/hosts/desk.h); lines about who is missing (src/hosts/waiting.h). */
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
#include "hosts/waiting.h"
#include "link/head.h"
#include "sync/host.h"

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

/* ---- lines about who is missing ---- */

enum { SELF = 0, N_HOSTS = 4 };

static struct {
    uint64_t now_ns;
    const char *why[N_HOSTS];
    uint32_t comes; /* a frame of this host is there; 0: none is */
    unsigned char head[SHMT_HEAD_BYTES];
} g_net;

static uint64_t made_up_ns(void) { return ++g_net.now_ns; }

static int send_nowhere(struct shmt_carrier *carrier, uint32_t to, const unsigned char *head, struct shmt_payload *body,
                        struct shmt_error *e) {
    (void)carrier, (void)to, (void)head, (void)body, (void)e;
    return 0;
}

static int receive_one(struct shmt_carrier *carrier, uint64_t until_ns, struct shmt_frame *out, struct shmt_error *e) {
    (void)carrier, (void)e;
    if (g_net.comes == 0) {
        if (until_ns > g_net.now_ns) g_net.now_ns = until_ns;
        return 0;
    }
    const struct shmt_head head = {.kind = SHMT_FRAME_BEAT, .from = g_net.comes, .to = SELF, .run = 1, .life = 7, .to_life = 9};
    shmt_head_write(&head, 0, g_net.head);
    *out = (struct shmt_frame){.from = g_net.comes, .head = g_net.head, .body = g_net.head};
    g_net.comes = 0;
    return 1;
}

static void release_nothing(struct shmt_carrier *carrier, struct shmt_frame *frame) { (void)carrier, (void)frame; }

static void say_why(struct shmt_carrier *carrier, uint32_t peer, char *out, size_t bytes) {
    (void)carrier;
    snprintf(out, bytes, "%s", g_net.why[peer]);
}

static const struct shmt_carrier_ops MADE_UP = {
    .name = "made up", .send = send_nowhere, .receive = receive_one, .release = release_nothing, .why = say_why};

/* After so many milliseconds; NULL: nothing is to be said. */
static void expect_line(struct shmt_waiting *w, uint64_t ms, const char *expected) {
    char line[SHMT_WAITING_LINE] = "";
    g_net.now_ns += ms * 1000000;
    const bool says = shmt_waiting_look(w, true, line);
    if (says != (expected != NULL)) fail_msg("expected %s, got %s", expected ? expected : "nothing", says ? line : "nothing");
    if (says) assert_string_equal(line, expected);
}

static void let_come(struct shmt_lanes *lanes, uint32_t host) {
    struct shmt_error e = {0};
    struct shmt_message m;
    g_net.comes = host;
    assert_int_equal(shmt_lanes_receive(lanes, 0, &m, NULL, &e), 0);
}

static void who_is_waited_for_is_said_with_the_reason(void **state) {
    static const char *const ADDRESS[] = {"a:1", "b:2", "c:3", "d:4"};
    struct shmt_host_ops host = SHMT_HOST_MACHINE;
    struct shmt_carrier carrier = {.ops = &MADE_UP};
    const struct shmt_lanes_spec spec = {.carrier = &carrier,
                                         .self = SELF,
                                         .n_hosts = N_HOSTS,
                                         .run = 1,
                                         .life = 9,
                                         .window_bytes = SHMT_LANES_WINDOW,
                                         .beat_ns = UINT64_MAX / 4, /* nothing but what this test does */
                                         .suspect_ns = UINT64_MAX / 4,
                                         .lost_ns = UINT64_MAX / 4,
                                         .address = ADDRESS};
    struct shmt_waiting w;
    struct shmt_lanes *lanes;
    struct shmt_error e = {0};
    (void)state;
    for (int i = 0; i < N_HOSTS; i++) g_net.why[i] = "";
    g_net.now_ns = 1000000000;
    host.now_ns = made_up_ns;
    shmt_host_use(&host);
    assert_int_equal(shmt_lanes_make(&spec, &lanes, &e), 0);
    shmt_waiting_begin(&w, lanes, SELF, N_HOSTS);
    expect_line(&w, 1000, NULL);
    g_net.why[1] = g_net.why[3] = "it sleeps";
    expect_line(&w, 1500, "waiting for host 1 (b:2), host 3 (d:4): it sleeps; host 2 (c:3)");
    expect_line(&w, 3000, NULL);
    g_net.why[2] = "it is lazy";
    expect_line(&w, 0, "waiting for host 1 (b:2), host 3 (d:4): it sleeps; host 2 (c:3): it is lazy");
    g_net.why[2] = ""; /* soon again: not so often */
    expect_line(&w, 3000, NULL);
    expect_line(&w, 1500, "waiting for host 1 (b:2), host 3 (d:4): it sleeps; host 2 (c:3)");
    expect_line(&w, 50000, NULL);
    expect_line(&w, 10500, "waiting for host 1 (b:2), host 3 (d:4): it sleeps; host 2 (c:3)"); /* a minute later */
    let_come(lanes, 1);
    let_come(lanes, 2);
    expect_line(&w, 60000, "waiting for host 3 (d:4): it sleeps");
    let_come(lanes, 3);
    char line[SHMT_WAITING_LINE];
    assert_true(shmt_waiting_look(&w, false, line)); /* that all are there is noticed at once */
    assert_string_equal(line, "all 4 hosts are there");
    expect_line(&w, 100000, NULL);
    shmt_lanes_free(lanes);
    shmt_host_use(&SHMT_HOST_MACHINE);
}

/* One that has come, and was lost since, is missing as those are that have not come. */
static void a_host_that_was_lost_is_not_there(void **state) {
    static const char *const ADDRESS[] = {"a:1", "b:2", "c:3"};
    struct shmt_host_ops host = SHMT_HOST_MACHINE;
    struct shmt_carrier carrier = {.ops = &MADE_UP};
    const struct shmt_lanes_spec spec = {.carrier = &carrier,
                                         .self = SELF,
                                         .n_hosts = 3,
                                         .run = 1,
                                         .life = 9,
                                         .window_bytes = SHMT_LANES_WINDOW,
                                         .beat_ns = 100000000,
                                         .suspect_ns = 1000000000,
                                         .lost_ns = 2000000000,
                                         .address = ADDRESS};
    struct shmt_waiting w;
    struct shmt_lanes *lanes;
    struct shmt_error e = {0};
    (void)state;
    for (int i = 0; i < N_HOSTS; i++) g_net.why[i] = "";
    g_net.now_ns = 1000000000;
    host.now_ns = made_up_ns;
    shmt_host_use(&host);
    assert_int_equal(shmt_lanes_make(&spec, &lanes, &e), 0);
    shmt_waiting_begin(&w, lanes, SELF, 3);
    let_come(lanes, 1);
    expect_line(&w, 2500, "waiting for host 2 (c:3)");
    struct shmt_message m;
    for (int i = 0; i < 30 && shmt_lanes_peer(lanes, 1, NULL) != SHMT_PEER_LOST; i++)
        assert_int_equal(shmt_lanes_receive(lanes, g_net.now_ns + 1000000000, &m, NULL, &e), 0);
    assert_int_equal(shmt_lanes_peer(lanes, 1, NULL), SHMT_PEER_LOST);
    expect_line(&w, 60000, "waiting for host 1 (b:2): it is lost; host 2 (c:3)");
    let_come(lanes, 2);
    expect_line(&w, 60000, "waiting for host 1 (b:2): it is lost"); /* and not that all are there */
    shmt_lanes_free(lanes);
    shmt_host_use(&SHMT_HOST_MACHINE);
}

static void hosts_that_come_soon_are_no_news(void **state) {
    struct shmt_carrier carrier = {.ops = &MADE_UP};
    const struct shmt_lanes_spec spec = {.carrier = &carrier,
                                         .self = SELF,
                                         .n_hosts = 2,
                                         .run = 1,
                                         .life = 9,
                                         .beat_ns = 1000,
                                         .suspect_ns = 1000,
                                         .lost_ns = 1000};
    struct shmt_waiting w;
    struct shmt_lanes *lanes;
    struct shmt_error e = {0};
    char line[SHMT_WAITING_LINE];
    (void)state;
    assert_int_equal(shmt_lanes_make(&spec, &lanes, &e), 0);
    shmt_waiting_begin(&w, lanes, SELF, 2);
    assert_false(shmt_waiting_look(&w, true, line));
    let_come(lanes, 1);
    assert_false(shmt_waiting_look(&w, true, line));
    shmt_lanes_free(lanes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_fact_that_differs_is_named),
                                       cmocka_unit_test(values_break_no_line_and_too_many_facts_are_noticed),
                                       cmocka_unit_test(a_pair_of_keys_is_made_and_read_again),
                                       cmocka_unit_test(what_is_there_is_not_written_over),
                                       cmocka_unit_test(files_that_are_wrong_are_named_with_the_line),
                                       cmocka_unit_test(packets_come_whole_and_in_order_with_their_descriptor),
                                       cmocka_unit_test(what_is_no_packet_is_refused),
                                       cmocka_unit_test(who_is_waited_for_is_said_with_the_reason),
                                       cmocka_unit_test(a_host_that_was_lost_is_not_there),
                                       cmocka_unit_test(hosts_that_come_soon_are_no_news)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
