/* Lists of hosts (src/configuration/cluster.h), and which of them this one is by the options of both ways (role.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configuration/cluster.h"
#include "configuration/role.h"

static void a_list_is_hosts_in_order(void **state) {
    static const char TEXT[] = "a:5000,b.example.org:65535,[2001:db8::7]:1,10.0.0.1:80";
    static const char *const NAME[] = {"a:5000", "b.example.org:65535", "[2001:db8::7]:1", "10.0.0.1:80"};
    static const char *const LISTEN[] = {"tcp://*:5000", "tcp://*:65535", "tcp://[2001:db8::7]:1", "tcp://10.0.0.1:80"};
    struct shmt_cluster c;
    struct shmt_error e = {0};
    char out[SHMT_MOST_HOST_TEXT];
    (void)state;
    assert_int_equal(shmt_cluster_parse("--hosts", TEXT, &c, &e), 0);
    assert_int_equal(c.n, 4);
    for (uint32_t rank = 0; rank < 4; rank++) {
        shmt_cluster_name(&c, TEXT, rank, "", out);
        assert_string_equal(out, NAME[rank]);
        shmt_cluster_listen(&c, TEXT, rank, out);
        assert_string_equal(out, LISTEN[rank]);
    }
    assert_int_equal(shmt_cluster_parse("--hosts", "", &c, &e), 0);
    assert_int_equal(c.n, 0);
}

static void what_is_no_list_is_refused_with_the_host_that_is_wrong(void **state) {
    static const char *const WRONG[][2] = {{"a", "\"a\" is no host"},
                                           {"a:1,", "\"\" is no host"},
                                           {",a:1", "\"\" is no host"},
                                           {":1", "\":1\" is no host"},
                                           {"-a:1", "\"-a:1\" is no host"},
                                           {"a b:1", "\"a b:1\" is no host"},
                                           {"a:1;b:2", "\"a:1;b:2\" is no host"},
                                           {"2001:db8::7:1", "\"2001:db8::7:1\" is no host"},
                                           {"[]:1", "\"[]:1\" is no host"},
                                           {"a:0", "\"a:0\" has no port"},
                                           {"a:", "\"a:\" has no port"},
                                           {"a:65536", "\"a:65536\" has no port"},
                                           {"a:x", "\"a:x\" has no port"},
                                           {"a:+1", "\"a:+1\" has no port"},
                                           {"a:01", "\"a:01\" has no port"},
                                           {"a:1,b:2,A:1", "\"A:1\" stands there twice"}};
    struct shmt_cluster c;
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct shmt_error e = {0};
        assert_int_equal(shmt_cluster_parse("--hosts", WRONG[i][0], &c, &e), SHMTRAIN_E_USAGE);
        if (!strstr(e.text, WRONG[i][1])) fail_msg("%s: %s", WRONG[i][0], e.text);
    }
}

static void there_are_at_most_64_hosts_with_names_of_any_usual_length(void **state) {
    static char text[20000];
    struct shmt_cluster c;
    struct shmt_error e = {0};
    size_t n = 0;
    (void)state;
    for (int i = 0; i < 64; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%s%0200d:5000", i ? "," : "", i);
    assert_int_equal(shmt_cluster_parse("--hosts", text, &c, &e), 0);
    assert_int_equal(c.n, 64);
    snprintf(text + n, sizeof text - n, ",b:1");
    assert_int_equal(shmt_cluster_parse("--hosts", text, &c, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "at most 64 hosts"));
    e = (struct shmt_error){0};
    snprintf(text, sizeof text, "%0300d:5000", 1);
    assert_int_equal(shmt_cluster_parse("--hosts", text, &c, &e), SHMTRAIN_E_USAGE);
}

static void loopback_is_where_nobody_else_comes(void **state) {
    static const struct {
        const char *text;
        bool is;
    } LISTS[] = {{"localhost:1,127.0.0.1:2,[::1]:3,127.9.8.7:4", true},
                 {"LOCALHOST:1,127.0.0.1:2", true},
                 {"localhost:1,a:2", false},
                 {"127.example.org:1,localhost:2", false},
                 {"localhost.example.org:1,localhost:2", false},
                 {"10.0.0.1:1,127.0.0.1:1", false}};
    char out[SHMT_MOST_HOST_TEXT];
    struct shmt_cluster c;
    struct shmt_error e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof LISTS / sizeof *LISTS; i++) {
        assert_int_equal(shmt_cluster_parse("--hosts", LISTS[i].text, &c, &e), 0);
        assert_int_equal(shmt_cluster_is_loopback(&c, LISTS[i].text), LISTS[i].is);
    }
    assert_int_equal(shmt_cluster_parse("--hosts", LISTS[0].text, &c, &e), 0);
    shmt_cluster_listen(&c, LISTS[0].text, 0, out);
    assert_string_equal(out, "tcp://127.0.0.1:1"); /* and not at all addresses, without keys */
}

/* What a launcher says, variable by variable; NULL: it has not set it. */
static void mpi_means_what_its_launcher_says(void **state) {
    static const char *const VARIABLES[] = {
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "PMI_RANK", "PMI_SIZE"};
    static const struct {
        const char *value[6];
        const char *mpi; /* NULL: refused */
        uint32_t rank, n;
    } SAID[] = {{{"1", "3"}, "openmpi", 1, 3},
                {{"0", "1"}, "openmpi", 0, 1},
                {{NULL, NULL, "2", "4"}, "openmpi", 2, 4},
                {{NULL, NULL, NULL, NULL, "63", "64"}, "mpich", 63, 64},
                {{"1", "3", NULL, NULL, "0", "2"}, "openmpi", 1, 3}, /* mpirun within mpiexec: the inner one */
                {{NULL}, NULL, 0, 0},
                {{"1"}, NULL, 0, 0},
                {{NULL, NULL, "2"}, NULL, 0, 0}, /* who has started it does not say how many there are */
                {{"3", "3"}, NULL, 0, 0},
                {{"-1", "3"}, NULL, 0, 0},
                {{"1x", "3"}, NULL, 0, 0},
                {{"1", ""}, NULL, 0, 0},
                {{"1", "99999999999999999999"}, NULL, 0, 0},
                {{"1", "65"}, NULL, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++) {
        struct shmt_cluster c;
        struct shmt_error e = {0};
        for (size_t k = 0; k < 6; k++) SAID[i].value[k] ? setenv(VARIABLES[k], SAID[i].value[k], 1) : unsetenv(VARIABLES[k]);
        assert_int_equal(shmt_cluster_parse("--hosts", "mpi", &c, &e), SAID[i].mpi ? 0 : SHMTRAIN_E_USAGE);
        if (!SAID[i].mpi) continue;
        assert_string_equal(c.mpi, SAID[i].mpi);
        assert_true(c.self == SAID[i].rank && c.n == SAID[i].n);
    }
    for (size_t k = 0; k < 6; k++) unsetenv(VARIABLES[k]);
}

/* ---- which of them this one is ---- */

#define MOST_SET 5

struct setting {
    const char *option[MOST_SET][2];
};

static void set_all(struct shmt_config *c, const struct setting *s) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_config_init(c, &e), 0);
    for (size_t i = 0; i < MOST_SET && s->option[i][0]; i++)
        if (shmt_config_set(c, s->option[i][0], s->option[i][0], s->option[i][1], &e) != 0) fail_msg("%s", e.text);
}

#define WORKERS \
    { "worker-hosts", "c:1,d:1,e:1" }
#define SERVERS \
    { "ps-hosts", "a:1,b:1" }

static void both_ways_say_which_host_this_one_is(void **state) {
    static const struct {
        struct setting set;
        uint32_t n, rank;
        const char *text;
        bool has_part;
    } WAYS[] = {{{{{NULL, NULL}}}, 0, 0, "", true},
                {{{{"hosts", "c:1,d:1,e:1"}, {"rank", "2"}}}, 3, 2, "c:1,d:1,e:1", true},
                {{{{"hosts", "c:1"}}}, 1, 0, "c:1", true},
                {{{{"role", "worker"}, {"task-index", "2"}, WORKERS}}, 3, 2, "c:1,d:1,e:1", true},
                {{{{"role", "worker"}, {"task-index", "0"}, WORKERS, SERVERS}}, 3, 0, "c:1,d:1,e:1", true},
                {{{{"role", "chief"}, WORKERS, SERVERS}}, 3, 0, "c:1,d:1,e:1", true},
                {{{{"role", "master"}, {"task-index", "0"}, WORKERS}}, 3, 0, "c:1,d:1,e:1", true},
                {{{{"role", "worker"}, {"worker-hosts", "c:1"}, SERVERS}}, 1, 0, "c:1", true},
                {{{{"role", "ps"}, {"task-index", "1"}, WORKERS, SERVERS}}, 3, 1, "c:1,d:1,e:1", false},
                {{{{"role", "ps"}, {"ps-hosts", "a:1"}, WORKERS}}, 3, 0, "c:1,d:1,e:1", false},
                {{{{"role", "worker"}, {"role", ""}, {"hosts", "c:1,d:1"}, {"rank", "1"}}}, 2, 1, "c:1,d:1", true}};
    (void)state;
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        struct shmt_config c;
        struct shmt_error e = {0};
        set_all(&c, &WAYS[i].set);
        if (shmt_role_check(&c, &e) != 0) fail_msg("%zu: %s", i, e.text);
        assert_int_equal(c.parsed.hosts.n, WAYS[i].n);
        assert_int_equal(shmt_config_host(&c), WAYS[i].rank);
        assert_string_equal(shmt_role_text(&c), WAYS[i].text);
        assert_int_equal(shmt_role_has_part(&c), WAYS[i].has_part);
        assert_string_equal(shmt_role_option(&c), i < 3 || i == 10 ? "hosts" : "worker-hosts");
        shmt_config_fini(&c);
    }
}

static void ways_that_are_mixed_or_half_are_refused(void **state) {
    static const struct {
        struct setting set;
        const char *words;
    } WRONG[] = {
        {{{{"hosts", "c:1,d:1"}, {"rank", "1"}, {"role", "worker"}}}, "--hosts and --role are two ways to say one thing"},
        {{{{"rank", "1"}, WORKERS}}, "--rank and --worker-hosts are two ways"},
        {{{{"hosts", "c:1"}, {"task-index", "0"}}}, "--hosts and --task-index are two ways"},
        {{{{"hosts", "c:1"}, SERVERS}}, "--hosts and --ps-hosts are two ways"},
        {{{{"rank", "1"}}}, "--rank is for a run over several hosts"},
        {{{{"hosts", "c:1,d:1"}}}, "say with --rank which of them this one is, from 0 to 1"},
        {{{{"hosts", "c:1,d:1"}, {"rank", "2"}}}, "--rank 2: --hosts names 2 hosts, whose ranks are 0 to 1"},
        {{{{"task-index", "0"}}}, "--task-index needs --role"},
        {{{WORKERS, SERVERS}}, "--ps-hosts needs --role"},
        {{{WORKERS}}, "--worker-hosts needs --role"},
        {{{{"role", "worker"}}}, "--role worker needs --worker-hosts"},
        {{{{"role", "master"}, SERVERS}}, "--role master needs --worker-hosts"},
        {{{{"role", "ps"}, SERVERS}}, "--role ps needs --worker-hosts"},
        {{{{"role", "ps"}, WORKERS}}, "--role ps needs --ps-hosts"},
        {{{{"role", "worker"}, WORKERS}}, "--worker-hosts names 3 hosts: say with --task-index"},
        {{{{"role", "ps"}, WORKERS, SERVERS}}, "--ps-hosts names 2 hosts: say with --task-index"},
        {{{{"role", "worker"}, {"task-index", "3"}, WORKERS}},
         "--task-index 3: --worker-hosts names 3 hosts, of the indices 0 to 2"},
        {{{{"role", "ps"}, {"task-index", "2"}, WORKERS, SERVERS}}, "--task-index 2: --ps-hosts names 2 hosts"},
        {{{{"role", "worker"}, {"task-index", "1"}, {"worker-hosts", "c:1"}}}, "names 1 host, of index 0"},
        {{{{"role", "chief"}, {"task-index", "1"}, WORKERS}}, "--role chief is the first of --worker-hosts"},
        {{{{"role", "ps"}, {"task-index", "0"}, WORKERS, {"ps-hosts", "a:1,D:1"}}},
         "--ps-hosts and --worker-hosts both name \"D:1\""}};
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct shmt_config c;
        struct shmt_error e = {0};
        set_all(&c, &WRONG[i].set);
        if (shmt_role_check(&c, &e) != SHMTRAIN_E_USAGE) fail_msg("%zu is taken: %s", i, WRONG[i].words);
        if (!strstr(e.text, WRONG[i].words)) fail_msg("%zu: %s", i, e.text);
        shmt_config_fini(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_is_hosts_in_order),
                                       cmocka_unit_test(what_is_no_list_is_refused_with_the_host_that_is_wrong),
                                       cmocka_unit_test(there_are_at_most_64_hosts_with_names_of_any_usual_length),
                                       cmocka_unit_test(loopback_is_where_nobody_else_comes),
                                       cmocka_unit_test(mpi_means_what_its_launcher_says),
                                       cmocka_unit_test(both_ways_say_which_host_this_one_is),
                                       cmocka_unit_test(ways_that_are_mixed_or_half_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
