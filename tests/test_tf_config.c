/* TF_CONFIG (src/cli/tf_config.h): what it says, and what is wrong with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/tf_config.h"

#define TASK(type, index) "\"task\": {\"type\": \"" type "\", \"index\": " index "}"
#define ALL               "\"cluster\": {\"ps\": [\"p:1\", \"q:1\"], \"worker\": [\"b:1\", \"c:1\"], \"chief\": [\"a:1\"]}"
#define PLAIN             "\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}"

static void a_task_is_a_host_by_its_rank(void **state) {
    static const struct {
        const char *text, *type, *workers, *ps;
        unsigned index, rank, n_workers;
        bool is_ps;
    } GOOD[] = {
        {"{" ALL ", " TASK("chief", "0") "}", "chief", "a:1,b:1,c:1", "p:1,q:1", 0, 0, 3, false},
        {"{" ALL ", " TASK("worker", "0") "}", "worker", "a:1,b:1,c:1", "p:1,q:1", 0, 1, 3, false},
        {"{" TASK("worker", "1") ", " ALL "}", "worker", "a:1,b:1,c:1", "p:1,q:1", 1, 2, 3, false},
        {"{" ALL ", " TASK("ps", "1") "}", "ps", "a:1,b:1,c:1", "p:1,q:1", 1, 1, 3, true},
        {"{" PLAIN ", " TASK("worker", "1") "}", "worker", "a:1,b:1", "", 1, 1, 2, false},
        {"{" PLAIN ", " TASK("worker", "\"1\"") "}", "worker", "a:1,b:1", "", 1, 1, 2, false},
        {"{\"cluster\": {\"master\": [\"a:1\"], \"worker\": [\"b:1\"], \"chief\": []}, " TASK("worker", "0") "}", "worker",
         "a:1,b:1", "", 0, 1, 2, false},
        {"{\"cluster\": {\"master\": [\"a:1\"]}, \"task\": {\"type\": \"master\"}}", "master", "a:1", "", 0, 0, 1, false},
        {"{\"cluster\": {\"worker\": [\"a:1\"], \"ps\": [\"b:1\"]}, \"task\": {\"type\": \"ps\", \"trial\": 1}}", "ps", "a:1",
         "b:1", 0, 0, 1, true},
        {" {\"environment\": \"cloud\", \"rpc_layer\": \"grpc\", \"job\": {\"x\": [1]},\n" PLAIN ", " TASK("worker", "0") "}\n",
         "worker", "a:1,b:1", "", 0, 0, 2, false}};
    (void)state;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        struct tf_config c;
        char message[256] = "";
        if (tf_config_parse(GOOD[i].text, &c, message, sizeof message) != 0) fail_msg("%s: %s", GOOD[i].text, message);
        assert_false(c.alone);
        assert_string_equal(c.type, GOOD[i].type);
        assert_string_equal(c.workers, GOOD[i].workers);
        assert_string_equal(c.ps, GOOD[i].ps);
        assert_int_equal(c.is_ps, GOOD[i].is_ps);
        assert_int_equal(c.index, GOOD[i].index);
        assert_int_equal(c.rank, GOOD[i].rank);
        assert_int_equal(c.n_workers, GOOD[i].n_workers);
        tf_config_free(&c);
        tf_config_free(&c); /* once more is harmless */
    }
}

static void without_a_cluster_there_is_one_host(void **state) {
    static const char *const ALONE[] = {"{}", "{\"cluster\": {}}",
                                        "{\"cluster\": {}, \"task\": {}, \"environment\": \"cloud\"}", "{\"task\": {}}"};
    (void)state;
    for (size_t i = 0; i < sizeof ALONE / sizeof *ALONE; i++) {
        struct tf_config c;
        char message[256] = "";
        assert_int_equal(tf_config_parse(ALONE[i], &c, message, sizeof message), 0);
        assert_true(c.alone && !c.is_ps && !c.workers && !c.ps);
        tf_config_free(&c);
    }
}

static void what_is_wrong_is_named_with_its_place(void **state) {
    static const char *const WRONG[][2] = {
        /* no JSON: line and column */
        {"{", "TF_CONFIG:1:1: "},
        {"cluster", "TF_CONFIG:1:"},
        {"{\"cluster\":\n  {\"worker\": [\"a:1\" \"b:1\"]}}", "TF_CONFIG:2:"},
        {"{'cluster': {}}", "TF_CONFIG:1:"},
        {"{\"cluster\": {}} x", "TF_CONFIG:1:"},
        {"{\"cluster\": {}, \"cluster\": {}}", "TF_CONFIG:1:"},
        {"{\"cluster\": {\"worker\": [\"a:1\"], \"worker\": [\"b:1\"]}}", "duplicate"},
        {"{\"cluster\": \"\xff\"}", "TF_CONFIG:1:"},
        /* JSON of another shape */
        {"[]", "TF_CONFIG: expected an object"},
        {"{" PLAIN "}", "task: expected which one this is"},
        {"{" PLAIN ", \"task\": []}", "task: expected which one this is"},
        {"{" PLAIN ", \"task\": null}", "task: expected which one this is"},
        {"{" PLAIN ", \"task\": {\"index\": 0}}", "task.type: expected chief"},
        {"{" PLAIN ", \"task\": {\"type\": 1, \"index\": 0}}", "task.type: expected chief"},
        {"{" TASK("worker", "0") "}", "cluster: expected the hosts of all tasks"},
        {"{\"cluster\": {}, " TASK("worker", "0") "}", "cluster: expected the hosts of all tasks"},
        {"{\"cluster\": [\"a:1\"], " TASK("worker", "0") "}", "cluster: expected an object"},
        {"{\"cluster\": \"a:1\", " TASK("worker", "0") "}", "cluster: expected an object"},
        {"{\"cluster\": {\"worker\": \"a:1\"}, " TASK("worker", "0") "}", "cluster.worker: expected a list"},
        {"{\"cluster\": {\"worker\": {\"0\": \"a:1\"}}, " TASK("worker", "0") "}", "cluster.worker: expected a list"},
        {"{\"cluster\": {\"worker\": [\"a:1\", 2]}, " TASK("worker", "0") "}", "cluster.worker[1]: expected one host"},
        {"{\"cluster\": {\"worker\": [\"\"]}, " TASK("worker", "0") "}", "cluster.worker[0]: expected one host"},
        {"{\"cluster\": {\"worker\": [\"a:1,b:1\"]}, " TASK("worker", "0") "}", "cluster.worker[0]: expected one host"},
        {"{\"cluster\": {\"worker\": [null]}, " TASK("worker", "0") "}", "cluster.worker[0]: expected one host"},
        /* types of tasks */
        {"{" ALL ", " TASK("evaluator", "0") "}", "task.type: shmtrain has no evaluator"},
        {"{\"cluster\": {\"evaluator\": [\"a:1\"]}, " TASK("evaluator", "0") "}", "task.type: shmtrain has no evaluator"},
        {"{\"cluster\": {\"worker\": [\"a:1\"], \"evaluator\": [\"b:1\"]}, " TASK("worker", "0") "}",
         "cluster: shmtrain has no evaluator"},
        {"{" ALL ", " TASK("server", "0") "}", "task.type: there is no type of task \"server\": expected chief"},
        {"{" ALL ", " TASK("Worker", "0") "}", "there is no type of task \"Worker\""},
        {"{" ALL ", " TASK("", "0") "}", "there is no type of task \"\""},
        {"{\"cluster\": {\"worker\": [\"a:1\"], \"server\": [\"b:1\"]}, " TASK("worker", "0") "}",
         "cluster: there is no type of task \"server\""},
        {"{\"cluster\": {\"chief\": [\"a:1\", \"b:1\"]}, " TASK("chief", "0") "}", "there is one chief"},
        {"{\"cluster\": {\"chief\": [\"a:1\"], \"master\": [\"b:1\"]}, " TASK("chief", "0") "}", "there is one chief"},
        {"{\"cluster\": {\"ps\": [\"a:1\"]}, " TASK("ps", "0") "}", "names neither a chief nor a worker"},
        {"{\"cluster\": {\"worker\": [], \"ps\": [\"a:1\"]}, " TASK("ps", "0") "}", "names neither a chief nor a worker"},
        /* indices */
        {"{" ALL ", " TASK("worker", "2") "}", "task.index 2: cluster.worker has 2 hosts, of the indices 0 to 1"},
        {"{" ALL ", " TASK("chief", "1") "}", "task.index 1: cluster.chief has 1 host, of index 0"},
        {"{" ALL ", " TASK("ps", "4294967297") "}", "task.index 4294967297: cluster.ps has 2 hosts"},
        {"{" ALL ", " TASK("worker", "-1") "}", "task.index: expected a whole number, from 0 to 1"},
        {"{" ALL ", " TASK("worker", "0.5") "}", "task.index: expected a whole number"},
        {"{" ALL ", " TASK("worker", "\"x\"") "}", "task.index: expected a whole number"},
        {"{" ALL ", " TASK("worker", "\"\"") "}", "task.index: expected a whole number"},
        {"{" ALL ", " TASK("worker", "\"-0\"") "}", "task.index: expected a whole number"},
        {"{" ALL ", " TASK("worker", "\"12345678901\"") "}", "task.index: expected a whole number"},
        {"{" ALL ", " TASK("worker", "null") "}", "task.index: expected a whole number"},
        {"{" ALL ", " TASK("worker", "99999999999999999999") "}", "TF_CONFIG:1:"},
        {"{" ALL ", \"task\": {\"type\": \"worker\"}}", "task.index: expected which of 2 hosts this one is, from 0 to 1"},
        {"{" PLAIN ", " TASK("ps", "0") "}", "task.type is ps, and cluster names no host for it"},
        {"{" PLAIN ", " TASK("chief", "0") "}", "task.type is chief, and cluster names no host for it"},
        /* hosts */
        {"{\"cluster\": {\"worker\": [\"a:1\", \"b:1\", \"A:1\"]}, " TASK("worker", "0") "}",
         "cluster.worker[2]: \"A:1\" stands there twice"},
        {"{\"cluster\": {\"worker\": [\"a:1\"], \"ps\": [\"a:1\"]}, " TASK("worker", "0") "}",
         "cluster.ps[0]: \"a:1\" stands there twice"}};
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        struct tf_config c;
        char message[256] = "";
        if (tf_config_parse(WRONG[i][0], &c, message, sizeof message) == 0) fail_msg("it is taken: %s", WRONG[i][0]);
        if (strncmp(message, "TF_CONFIG:", 10) != 0 || !strstr(message, WRONG[i][1])) fail_msg("%s: %s", WRONG[i][0], message);
    }
}

static void there_are_at_most_64_hosts_that_train(void **state) {
    char text[2048] = "{" TASK("worker", "63") ", \"cluster\": {\"worker\": [", message[256];
    struct tf_config c;
    (void)state;
    size_t n = strlen(text);
    for (int i = 0; i < 64; i++) n += (size_t)snprintf(text + n, sizeof text - n, "%s\"h%d:1\"", i ? "," : "", i);
    snprintf(text + n, sizeof text - n, "]}}");
    assert_int_equal(tf_config_parse(text, &c, message, sizeof message), 0);
    assert_true(c.rank == 63 && c.n_workers == 64);
    tf_config_free(&c);
    snprintf(text + n, sizeof text - n, ",\"i:1\"]}}");
    assert_int_equal(tf_config_parse(text, &c, message, sizeof message), -1);
    assert_string_equal(message, "TF_CONFIG: cluster.worker: more than 64 hosts");
    snprintf(text + n, sizeof text - n, "], \"chief\": [\"i:1\"]}}");
    assert_int_equal(tf_config_parse(text, &c, message, sizeof message), -1);
    assert_string_equal(message, "TF_CONFIG: cluster: more than 64 hosts that train");
}

/* The sentence is cut, and nothing else. */
static void a_short_message_is_cut(void **state) {
    struct tf_config c;
    char message[16];
    (void)state;
    memset(message, 'x', sizeof message);
    assert_int_equal(tf_config_parse("[]", &c, message, 12), -1);
    assert_string_equal(message, "TF_CONFIG: ");
    assert_int_equal(message[12], 'x');
    assert_int_equal(tf_config_parse("[]", &c, message, 4), -1);
    assert_string_equal(message, "TF_");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_a_host_by_its_rank), cmocka_unit_test(without_a_cluster_there_is_one_host),
        cmocka_unit_test(what_is_wrong_is_named_with_its_place), cmocka_unit_test(there_are_at_most_64_hosts_that_train),
        cmocka_unit_test(a_short_message_is_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
