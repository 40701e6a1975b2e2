/* The real program on several hosts: what differs between them is named, and what does not fit is refused; also as users of TensorFlow
 * say it. */
#include "program_hosts_help.h"

/* ---- agreement ---- */

static void what_differs_is_named_on_all_hosts(void **state) {
    static const char *const OTHER[][4] = {{"--batch=128", "-q", SPARSE, "differ in batch: "},
                                           {"--rate=0.5", "-q", SPARSE, "differ in rate: "},
                                           {"--epochs=3", "-q", SPARSE, "differ in epochs: "},
                                           {"--mode=local:4", "--mode=local:8", SPARSE, "differ in merge_every: "},
                                           {"--wire=bf16", "-q", SPARSE, "differ in wire: "},
                                           {"--seed=2", "-q", SPARSE, "differ in training data: "}};
    (void)state;
    for (size_t i = 0; i < sizeof OTHER / sizeof *OTHER; i++) {
        choose_ports(2);
        struct program *a = START_HOST("0", "-q", "-w", "1", "-e", "2", OTHER[i][1], OTHER[i][2]),
                       *b = START_HOST("1", "-q", "-w", "1", "-e", "2", OTHER[i][0], OTHER[i][2]);
        end_with(a, 2, OTHER[i][3]);
        end_with(b, 2, OTHER[i][3]);
        assert_says(a, "host 1 (127.0.0.1:");
        assert_says(b, "host 0 (127.0.0.1:");
    }
}

/* Nobody has typed it. */
static void what_differs_because_of_workers_says_so(void **state) {
    (void)state;
    choose_ports(2);
    struct program *a = START_HOST("0", "-q", "-w", "1", "--mode", "async", "-M", "mlp", "--rate=0.05", "--item=16", DENSE),
                   *b = START_HOST("1", "-q", "-w", "2", "--mode", "async", "-M", "mlp", "--rate=0.05", "--item=16", DENSE);
    end_with(a, 2, "differ in momentum: ");
    assert_says(a, "it follows from the number of workers: give all hosts the same --momentum");
    end_with(b, 2, "differ in momentum: ");
}

/* Whoever has compared leaves; the others still hear why. */
static void of_three_hosts_all_hear_which_one_differs(void **state) {
    static const char *const RANK[] = {"0", "1", "2"};
    struct program *p[3];
    (void)state;
    choose_ports(3);
    for (int rank = 0; rank < 3; rank++)
        p[rank] = START_HOST(RANK[rank], "-q", "-w", "1", "-e", "2", rank == 1 ? "--batch=128" : "--batch=64", SPARSE);
    for (int rank = 0; rank < 3; rank++) end_with(p[rank], 2, "differ in batch: ");
    assert_says(p[0], "host 1 (127.0.0.1:");
    assert_says(p[2], "host 1 (127.0.0.1:");
}

static void options_that_do_not_fit_are_refused(void **state) {
    static const struct refusal WRONG[] = {
        {2, "--hosts names 2 hosts: say with --rank", {"--hosts", "127.0.0.1:7001,127.0.0.1:7002", SPARSE}},
        {2, "whose ranks are 0 to 1", {"--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank", "2", SPARSE}},
        {2, "--rank is for a run over several hosts", {"--rank", "1", SPARSE}},
        {2, "--hosts: \"a\" is no host", {"--hosts", "a,b", "--rank", "0", SPARSE}},
        {2, "over a network hosts need keys", {"--hosts", "a:7001,b:7001", "--rank", "0", SPARSE}},
        {2, "--key and --peers belong together", {"--hosts=a:1,b:2", "--rank=0", "--key", "k", SPARSE}},
        {2, "--insecure is to go without keys", {"--hosts=a:1,b:2", "--rank=0", "--key=k", "--peers=p", "--insecure", SPARSE}},
        {1, "cannot open none", {"--hosts=a:1,b:2", "--rank=0", "--key=none", "--peers=p", SPARSE}},
        {2,
         "only --mode sync, allreduce, async",
         {"--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank=0", "--write=aggregate", "--staleness=2", SPARSE}},
        {2,
         "there is no --tolerance so far",
         {"--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank=0", "--tolerance=1e-4", SPARSE}},
        {2, "virtual time have no network", {"--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank=0", "--spawn=fibers", SPARSE}},
        {2,
         "--hosts needs --backend shm",
         {"--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank=0", "--backend=plain", "-w1", SPARSE}},
        {2, "--hosts and --role are two ways", {"--hosts=a:1,b:2", "--rank=0", "--role=ps", SPARSE}},
        {2, "--role worker needs --worker-hosts", {"--role", "worker", "nowhere.svm"}},
        {2,
         "--worker-hosts needs --backend shm",
         {"--role=worker", "--task-index=0", "--worker-hosts=a:1,b:2", "--backend=plain", "-w1", SPARSE}},
        {2, "--role \"\": expected NAME", {SPARSE, "--job_name"}},
        {2, "expected a time from 2s to 24h", {"--host-timeout", "1ms", SPARSE}},
        {2, "--wire f16: expected one of f32|bf16", {"--wire", "f16", SPARSE}},
        {2, "--top-k 0: expected a number from 1e-06 to 1", {"--top-k", "0", SPARSE}},
        {2,
         "top-k leaves changes for later rounds",
         {"--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank=0", "--top-k=0.1", SPARSE}},
        {2,
         "copies that meet to merge are sent whole",
         {"--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank=0", "--mode=local", "--wire=bf16", SPARSE}},
        {2, "launch needs --hosts a,b or --local N", {"launch", "--", "-e", "1"}},
        {2, "--local 0: expected a number of hosts", {"launch", "--local", "0", "--", "-e", "1"}},
        {2, "launch does not use --epochs", {"launch", "--local", "2", "-e", "1", SPARSE}}};
    (void)state;
    ASSERT_ALL_REFUSED(WRONG);
}
/* ---- as TensorFlow's users start them ---- */

static char g_tf_config[512];

static int put_tf_config(void) { return setenv("TF_CONFIG", g_tf_config, 1); }

/* Under a launcher of MPI, which says that there are two processes. */
static int put_both(void) {
    return setenv("OMPI_COMM_WORLD_RANK", "1", 1) != 0 || setenv("OMPI_COMM_WORLD_SIZE", "2", 1) != 0 || put_tf_config() != 0;
}

/* Of a cluster of ports that were chosen: a chief, a worker, a ps. */
static void name_task(const char *type) {
    snprintf(g_tf_config, sizeof g_tf_config,
             "{\"cluster\": {\"ps\": [\"%s\"], \"chief\": [\"%s\"], \"worker\": [\"%s\"]},\n"
             " \"task\": {\"type\": \"%s\", \"index\": 0}}",
             g_hosts[2], g_hosts[0], g_hosts[1], type);
}

static void tf_config_names_the_hosts(void **state) {
    char one[17], many[17];
    struct program *p[2];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "2", SPARSE);
    choose_ports(3);
    unlink("m.st");
    name_task("worker");
    p[1] = START_IN(put_tf_config, "-q", "--json", "-w", "1", "-e", "2", "-o", "m.st", SPARSE);
    name_task("chief");
    p[0] = START_IN(put_tf_config, "-q", "--json", "-w", "1", "-e", "2", "-o", "m.st", SPARSE);
    for (int i = 0; i < 2; i++) {
        hash_of(p[i], many);
        assert_string_equal(many, one);
    }
    assert_says(p[0], "TF_CONFIG: chief 0 is host 0 of hosts 0 to 1");
    assert_says(p[1], "TF_CONFIG: worker 0 is host 1 of hosts 0 to 1");
    assert_says(p[1], "--output is for host 0");
    assert_int_equal(access("m.st", F_OK), 0);
    name_task("ps"); /* which ends at once, reads nothing, and is waited for by nobody */
    struct program *ps = RUN_IN(put_tf_config, "-e", "2", "nowhere.svm");
    program_assert_status(ps, 0);
    assert_says(ps, "task ps 0 has nothing to do");
    assert_int_equal(ps->bytes[OUT], 0);
}

static void options_of_tensorflow_name_the_hosts(void **state) {
    char one[17], many[17];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "2", SPARSE);
    choose_ports(2);
    struct program *second = START("--role", "worker", "--task-index", "1", "--ps-hosts", "127.0.0.1:1", "--worker-hosts",
                                   g_list, "-q", "--json", "-w", "1", "-e", "2", SPARSE);
    struct program *first = START("--job_name=worker", "--task_index", "0", "--ps_hosts", "127.0.0.1:1", "--worker_hosts",
                                  g_list, "-q", "--json", "-w", "1", "-e", "2", SPARSE);
    hash_of(first, many);
    assert_string_equal(many, one);
    hash_of(second, many);
    assert_string_equal(many, one);
    struct program *ps = RUN("--role", "ps", "--ps-hosts", "127.0.0.1:1", "--worker-hosts", g_list, "nowhere.svm");
    program_assert_status(ps, 0);
    assert_says(ps, "task ps 0 has nothing to do");
}

/* What is wrong is said before anything is read; options count more than the variable, and commands of one host do not look at it. */
static void tf_config_counts_for_runs_that_say_nothing_else(void **state) {
    (void)state;
    snprintf(g_tf_config, sizeof g_tf_config, "{\"cluster\":\n {\"worker\": [}");
    program_assert_refused(RUN_IN(put_tf_config, "nowhere.svm"), 2, "TF_CONFIG:2:");
    program_assert_refused(RUN_IN(put_tf_config, "topo"), 2, "TF_CONFIG:2:");
    program_assert_refused(RUN_IN(put_tf_config, "--rank", "1", "nowhere.svm"), 2, "--rank is for a run over several hosts");
    program_assert_status(RUN_IN(put_tf_config, "--help"), 0);
    program_assert_status(RUN_IN(put_tf_config, "ls"), 0);
    snprintf(g_tf_config, sizeof g_tf_config,
             "{\"cluster\": {\"worker\": [\"a\", \"b:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}}");
    program_assert_refused(RUN_IN(put_tf_config, "nowhere.svm"), 2, "TF_CONFIG: worker-hosts: \"a\" is no host");
    snprintf(g_tf_config, sizeof g_tf_config,
             "{\"cluster\": {\"worker\": [\"a:1\"], \"ps\": [\"b:1\"]}, \"task\": {\"type\": \"worker\"}}");
    struct program *alone = RUN_IN(put_both, "-q", "-w", "1", "-e", "1", SPARSE);
    program_assert_status(alone, 0);
    assert_says(alone, "TF_CONFIG: one host trains");
    snprintf(g_tf_config, sizeof g_tf_config, "{\"environment\": \"cloud\"}");
    struct program *none = RUN_IN(put_tf_config, "-q", "-w", "1", "-e", "1", SPARSE);
    program_assert_status(none, 0);
    assert_says(none, "TF_CONFIG names no cluster");
}
int main(void) {
    const struct CMUnitTest tests[] = {PROGRAM_TEST(what_differs_is_named_on_all_hosts),
                                       PROGRAM_TEST(what_differs_because_of_workers_says_so),
                                       PROGRAM_TEST(of_three_hosts_all_hear_which_one_differs),
                                       PROGRAM_TEST(options_that_do_not_fit_are_refused),
                                       PROGRAM_TEST(tf_config_names_the_hosts),
                                       PROGRAM_TEST(options_of_tensorflow_name_the_hosts),
                                       PROGRAM_TEST(tf_config_counts_for_runs_that_say_nothing_else)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
