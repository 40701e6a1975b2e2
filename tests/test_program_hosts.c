/* The real program on several hosts (--hosts, launch): processes on the loopback of one machine, each a host of its own. Protocols on
 * networks that lose and reorder: test_lanes.c, test_hosts.c. */
#include "program_hosts_help.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>

#define SPARSE "builtin:sparse:examples=6000,valid=500,features=3000,nonzeros=12"
#define WIDE   "builtin:sparse:examples=2000,valid=100,features=20000,nonzeros=30"
#define DENSE  "builtin:digits:examples=600,valid=100"
#define LONG   "builtin:sparse:examples=20000,valid=100,features=400,nonzeros=12"

/* Two hosts in the middle of a run that does not end by itself. */
static void start_two(struct program *p[2], const char *mode) {
    choose_ports(2);
    p[1] = START_HOST("1", "-w", "1", "--mode", mode, "-e", "1000000", LONG);
    p[0] = START_HOST("0", "-w", "2", "--mode", mode, "-e", "1000000", LONG);
    program_wait_for_epoch(p[0]);
    program_wait_for_epoch(p[1]);
}

/* ---- the same bits ---- */

static void parameters_are_those_of_one_host(void **state) {
    static const char *const RUNS[][5] = {{"logistic", "sgd", SPARSE, "64", "sync"},
                                          {"logistic", "adam", SPARSE, "500", "allreduce"},
                                          {"logistic", "sgd", WIDE, "64", "sync"},
                                          {"mlp", "momentum", DENSE, "64", "allreduce"}};
    (void)state;
    for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
        const char *model = RUNS[i][0], *rule = RUNS[i][1], *data = RUNS[i][2], *batch = RUNS[i][3];
        char one[17], many[17];
        HASH(one, "-w", "1", "--mode", "sync", "-e", "2", "-M", model, "--optimizer", rule, "--batch", batch, data);
        for (int n = 2; n <= 3; n++) {
            static const char *const RANK[] = {"0", "1", "2"}, *const WORKERS[] = {"1", "2", "1"};
            struct program *p[3];
            choose_ports(n);
            for (int rank = 0; rank < n; rank++)
                p[rank] = START_HOST(RANK[rank], "-q", "--json", "-w", WORKERS[rank], "--mode", RUNS[i][4], "-e", "2", "-M",
                                     model, "--optimizer", rule, "--batch", batch, data);
            for (int rank = 0; rank < n; rank++) {
                hash_of(p[rank], many);
                assert_string_equal(many, one);
            }
        }
    }
}

/* Of each epoch what is its own: they are alike. */
static void assert_traffic_of_epochs(const json_t *epochs) {
    size_t i;
    json_t *epoch;
    assert_int_equal(json_array_size(epochs), 2);
    json_array_foreach(epochs, i, epoch) {
        assert_true(program_number(epoch, "exchanges") == 94); /* 6000 / 64 */
        assert_true(program_number(epoch, "sent_bytes") > 94 * 64 && program_number(epoch, "received_bytes") > 94 * 64);
    }
    const double first = program_number(json_array_get(epochs, 0), "sent_bytes");
    assert_true(program_number(json_array_get(epochs, 1), "sent_bytes") < 1.5 * first);
}

/* The link has a row, and a curve of bytes; each of its turns is there. */
static void assert_link_is_traced(const char *path) {
    json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *event;
    unsigned exchanges = 0, waits = 0, counters = 0, named = 0;
    size_t i;
    assert_non_null(trace);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        if (program_number(event, "pid") != 2) continue;
        const char *name = json_string_value(json_object_get(event, "name"));
        const json_t *args = json_object_get(event, "args");
        if (strcmp(name, "process_name") == 0)
            named += strcmp(json_string_value(json_object_get(args, "name")), "link to other hosts") == 0;
        if (strcmp(name, "exchange") == 0) {
            exchanges++;
            assert_true(program_number(args, "sent_bytes") > 0 && program_number(args, "batch") < 2 * 94);
        }
        waits += strcmp(name, "wait for hosts") == 0;
        if (strcmp(name, "network") != 0) continue;
        counters++;
        assert_string_equal(json_string_value(json_object_get(event, "ph")), "C");
        assert_true(program_number(args, "sent B/s") > 0);
    }
    json_decref(trace);
    assert_true(named == 1 && exchanges == 2 * 94 && counters == exchanges);
    assert_true(waits > 0 && waits <= exchanges);
}

/* A short run may have no line of progress. */
static void assert_metrics_have_traffic(const char *path) {
    static char line[1 << 16];
    unsigned epochs = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *o = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(o, "event"));
        const bool goes_on = strcmp(event, "progress") == 0;
        epochs += strcmp(event, "epoch") == 0;
        if (goes_on || strcmp(event, "epoch") == 0)
            assert_true(program_number(o, "exchanges") >= 0 && program_number(o, "received_bytes") >= 0);
        if (goes_on) assert_true(program_number(o, "sent_bytes_per_second") >= 0);
        json_decref(o);
    }
    fclose(f);
    assert_int_equal(epochs, 2);
}

static void a_report_says_which_host_it_is_and_what_was_sent(void **state) {
    struct program *p[2];
    (void)state;
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w", "1", "-e", "2", "--trace", "t.json", SPARSE);
    p[0] = START_HOST("0", "-w", "1", "-e", "2", "--metrics", "m.jsonl", SPARSE);
    program_finish(p[1]);
    program_assert_status(p[1], 0);
    json_t *report = program_json(p[1]);
    assert_traffic_of_epochs(json_object_get(report, "epochs"));
    assert_link_is_traced("t.json");
    assert_true(program_number(report, "hosts") == 2 && program_number(report, "host") == 1);
    const double waited = program_number(report, "wait_hosts_fraction");
    assert_true(waited > 0 && waited <= program_number(report, "wait_fraction"));
    assert_true(program_number(report, "sent_bytes") > 1000 && program_number(report, "received_bytes") > 1000);
    assert_string_equal(json_string_value(json_object_get(report, "write")), "aggregate"); /* nobody has named a mode */
    json_decref(report);
    end_with(p[0], 0, NULL);
    assert_non_null(strstr(p[0]->text[OUT], "on host 0; there are 2 hosts"));
    assert_non_null(strstr(p[0]->text[OUT], "\nnetwork     "));
    assert_non_null(strstr(p[0]->text[OUT], " received, waited for "));
    for (const char *line = p[0]->text[OUT]; *line; line = strchr(line, '\n') + 1) assert_true(strcspn(line, "\n") <= 80);
    assert_metrics_have_traffic("m.jsonl");
}

/* Each turn of the link is a merge, and what it does in one is told apart. */
static void assert_merges_are_traced(const char *path) {
    json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *event;
    unsigned exchanges = 0, merges = 0, rests = 0;
    size_t i;
    assert_non_null(trace);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        const char *name = json_string_value(json_object_get(event, "name")),
                   *kind = json_string_value(json_object_get(event, "ph"));
        if (program_number(event, "pid") != 2 || strcmp(kind, "X") != 0) continue;
        assert_non_null(json_object_get(json_object_get(event, "args"), "merge"));
        exchanges += strcmp(name, "exchange") == 0;
        merges += strcmp(name, "merge") == 0;
        rests += strcmp(name, "wait for workers") == 0;
    }
    json_decref(trace);
    assert_true(exchanges > 0 && merges == exchanges && rests >= exchanges);
}

/* Other hosts are waited for when all of one's own workers are there: host 1 does so, host 0 waits for its worker. */
static void a_slow_worker_is_no_slow_network(void **state) {
    static const char *const MODES[] = {"sync", "local:1"}, *const data = "builtin:sparse:examples=1000,valid=100";
    (void)state;
    for (int m = 0; m < 2; m++) {
        struct program *p[2];
        choose_ports(2);
        p[1] = START_HOST("1", "-q", "--json", "-w", "2", "-e", "1", "--mode", MODES[m], "--rate", "0.1", data);
        p[0] = START_HOST("0", "-q", "--json", "-w", "2", "-e", "1", "--mode", MODES[m], "--rate", "0.1", "--slow", "1:+20ms",
                          "--trace", "t.json", data);
        for (int host = 0; host < 2; host++) {
            program_finish(p[host]);
            program_assert_status(p[host], 0);
            json_t *report = program_json(p[host]);
            const double waited = program_number(report, "wait_fraction"),
                         for_hosts = program_number(report, "wait_hosts_fraction");
            if (host == 0 ? for_hosts >= waited / 2 : for_hosts <= waited / 2)
                fail_msg("--mode %s: host %d waited %g of its time, %g for hosts", MODES[m], host, waited, for_hosts);
            if (host == 0) assert_true(program_number(report, "waits_mostly_for") == 1);
            json_decref(report);
        }
    }
    assert_merges_are_traced("t.json");
}

/* Adam has at least two planes of state, which are merged with the weights: parts of 256 floats, each with a number. */
static void a_plan_says_what_hosts_exchange_in_a_turn(void **state) {
    static const char *const TURNS[][2] = {{"sync", "batch"}, {"async", "round"}, {"local:8", "merge"}};
    const double blocks = 12, part = 8 + 256 * 4 + 256; /* 3000 floats, and a bias */
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct program *plan = RUN("topo", "--json", "--hosts", "a:1,b:2", "--rank", "0", "-w", "2", "--mode", TURNS[i][0],
                                   "--optimizer", "adam", SPARSE);
        json_t *o = program_json(plan);
        const double most = program_number(json_array_get(json_object_get(o, "hosts"), 1), "most_bytes");
        assert_string_equal(json_string_value(json_object_get(o, "exchange")), TURNS[i][1]);
        if (i == 2 ? fmod(most, blocks * part) > 0 || most < 3 * blocks * part : most > 4 * 3100)
            fail_msg("%s: %g bytes", TURNS[i][0], most);
        json_decref(o);
    }
    assert_non_null(
        strstr(RUN("topo", "--hosts", "a:1,b:2", "--rank", "0", "--mode", "local:8", SPARSE)->text[OUT], " a merge"));
}

/* What all find at the end of an epoch ends them there; nobody begins another batch. */
static void a_goal_ends_all_hosts_with_the_same_epoch(void **state) {
    char one[17], many[17];
    struct program *p[2];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "9", "--target-loss", "0.64", SPARSE);
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w", "1", "-e", "9", "--target-loss", "0.64", SPARSE);
    p[0] = START_HOST("0", "-q", "--json", "-w", "1", "-e", "9", "--target-loss", "0.64", SPARSE);
    for (int rank = 0; rank < 2; rank++) {
        program_finish(p[rank]);
        program_assert_status(p[rank], 0);
        json_t *report = program_json(p[rank]);
        snprintf(many, sizeof many, "%s", json_string_value(json_object_get(report, "parameters_xxh64")));
        assert_string_equal(json_string_value(json_object_get(report, "stopped_by")), "target-loss");
        assert_string_equal(many, one);
        json_decref(report);
    }
}

/* Workers wait for nobody, and yet all have the same at the end, which is about as good as on one host. */
static void live_modes_end_with_the_same_bits_on_all_hosts(void **state) {
    static const char *const MODES[] = {"async", "hogwild", "ssp:2", "node"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        char first[17];
        struct program *p[3];
        choose_ports(3);
        static const char *const RANK[] = {"0", "1", "2"};
        for (int rank = 0; rank < 3; rank++)
            p[rank] = START_HOST(RANK[rank], "-q", "--json", "-w", "2", "--mode", MODES[i], "-e", "8", SPARSE);
        for (int rank = 0; rank < 3; rank++) {
            program_finish(p[rank]);
            program_assert_status(p[rank], 0);
            json_t *report = program_json(p[rank]);
            const char *hash = json_string_value(json_object_get(report, "parameters_xxh64"));
            const json_t *epochs = json_object_get(report, "epochs"),
                         *last = json_array_get(epochs, json_array_size(epochs) - 1);
            if (rank == 0) snprintf(first, sizeof first, "%s", hash);
            assert_string_equal(hash, first);
            assert_true(program_number(last, "examples") == 6000);
            assert_true(program_number(last, "train_loss") < 0.66); /* log 2 is what nothing learned would be */
            json_decref(report);
        }
    }
}

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

static void a_port_that_is_taken_is_named(void **state) {
    (void)state;
    choose_ports(2);
    struct program *first = START_HOST("0", SPARSE);
    program_wait_for(first, ERR, "waiting for host 1");
    struct program *second = START_HOST("0", SPARSE);
    end_with(second, 1, "Address already in use: another program has this port");
    assert_int_equal(kill(first->pid, SIGINT), 0);
    end_with(first, 130, "stopped while waiting for other hosts");
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

/* ---- keys ---- */

/* The file of --peers for hosts with these public keys. */
static void write_peers(const char *path, const char *first, const char *second) {
    const char *const from[] = {first, second};
    char line[64];
    FILE *peers = fopen(path, "w");
    for (int i = 0; i < 2; i++) {
        FILE *public = fopen(from[i], "r");
        assert_non_null(fgets(line, sizeof line, public));
        fputs(line, peers);
        fclose(public);
    }
    fclose(peers);
}

static void hosts_with_keys_meet_and_others_hear_why_they_do_not(void **state) {
    char one[17], many[17], list[4][64], both[64];
    (void)state;
    for (int i = 0; i < 2; i++) program_assert_status(RUN("keygen", i ? "b.key" : "a.key"), 0);
    write_peers("peers", "a.key.pub", "b.key.pub");
    program_assert_refused(RUN("keygen", "a.key"), 2, "a.key is there already");
    HASH(one, "-w", "1", "--mode", "sync", "-e", "1", SPARSE);
    choose_ports(6);
    snprintf(both, sizeof both, "%s,%s", g_hosts[0], g_hosts[1]);
    struct program *a = START("--hosts", both, "--rank", "0", "--key", "a.key", "--peers", "peers", "-q", "--json", "-w", "1",
                              "-e", "1", SPARSE);
    program_assert_status(RUN("keygen", "c.key"), 0);
    program_assert_status(RUN("keygen", "d.key"), 0);
    write_peers("of_c", "a.key.pub", "c.key.pub");
    write_peers("of_b", "d.key.pub", "b.key.pub");
    for (int i = 0; i < 4; i++) /* each on a port of its own; the last one knows no name of host 0 */
        snprintf(list[i], sizeof list[i], "%s,%s", i == 3 ? "a..b:7001" : g_hosts[0], g_hosts[2 + i]);
    struct program *const vain[] = {
        START("--hosts", list[0], "--rank", "1", "-w", "1", SPARSE), /* without a key */
        START("--hosts", list[1], "--rank", "1", "--key", "c.key", "--peers", "of_c", "-w", "1", SPARSE),
        START("--hosts", list[2], "--rank", "1", "--key", "b.key", "--peers", "of_b", "-w", "1", SPARSE),
        START("--hosts", list[3], "--rank", "1", "--key", "b.key", "--peers", "peers", "-w", "1", SPARSE)};
    static const char *const WHY[] = {"): it has keys, and this host has none", "): it refuses this host's key",
                                      "): its key is not the one in --peers", "): no name server knows \"a..b\""};
    program_wait_for(a, ERR, "waiting for host 1");
    program_wait_for(a, ERR, "somebody (127.0.0.1) with a key that is not in --peers was refused");
    for (int i = 0; i < 4; i++) {
        program_wait_for(vain[i], ERR, "waiting for host 0 (");
        program_wait_for(vain[i], ERR, WHY[i]);
        assert_int_equal(kill(vain[i]->pid, SIGINT), 0);
        end_with(vain[i], 130, NULL);
    }
    struct program *b = START("--hosts", both, "--rank", "1", "--key", "b.key", "--peers", "peers", "-q", "--json", "-w", "1",
                              "-e", "1", SPARSE);
    hash_of(a, many);
    assert_string_equal(many, one);
    hash_of(b, many);
    assert_string_equal(many, one);
    assert_says(a, "all 2 hosts are there");
}

/* ---- deaths and stops ---- */

static void a_host_that_dies_ends_the_others_which_name_it(void **state) {
    struct program *p[2];
    (void)state;
    start_two(p, "sync");
    assert_int_equal(kill(p[1]->pid, SIGKILL), 0);
    end_with(p[0], 1, "host 1 (127.0.0.1:");
    assert_says(p[0], ") has left the run");
    program_assert_gone_within(p[1], 10);
}

static void a_link_that_dies_ends_its_host(void **state) {
    struct program *p[2];
    (void)state;
    choose_ports(2);
    p[1] = START_HOST("1", "-w", "1", "-e", "1000000", "--host-timeout", "2s", LONG);
    p[0] = START_HOST("0", "-w", "1", "-e", "1000000", "--host-timeout", "2s", LONG);
    program_wait_for_epoch(p[0]);
    assert_int_equal(kill(program_link(p[1]), SIGKILL), 0);
    end_with(p[1], 1, "the link to other hosts (process ");
    assert_says(p[1], "was killed by signal 9");
    end_with(p[0], 1, ") is lost");
}

static void a_stop_on_one_host_ends_all_with_the_same_parameters(void **state) {
    struct program *p[2];
    const char *hash[2];
    (void)state;
    start_two(p, "sync");
    assert_int_equal(kill(p[1]->pid, SIGINT), 0);
    end_with(p[1], 130, NULL);
    end_with(p[0], 0, "has ended the run");
    assert_non_null(strstr(p[0]->text[OUT], "ended by another host"));
    for (int i = 0; i < 2; i++) assert_non_null(hash[i] = strstr(p[i]->text[OUT], "xxh64 "));
    assert_int_equal(strncmp(hash[0], hash[1], 22), 0);
}

/* Though all want to end behind the round in which they have heard of it. */
static void in_live_modes_too_it_is_known_who_has_ended_the_run(void **state) {
    static const char *const MODES[] = {"ssp:4", "local:4"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        struct program *p[2];
        start_two(p, MODES[i]);
        assert_int_equal(kill(p[1]->pid, SIGINT), 0);
        end_with(p[1], 130, NULL);
        end_with(p[0], 0, "host 1 (127.0.0.1:");
        assert_says(p[0], ") has ended the run");
        assert_null(strstr(p[1]->text[ERR], "has ended the run"));
    }
}

static void a_worker_that_dies_changes_no_bit(void **state) {
    char one[17], many[17];
    struct program *p[2];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "40", SPARSE);
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w", "2", "-e", "40", SPARSE);
    p[0] = START_HOST("0", "-q", "--json", "-w", "1", "-e", "40", SPARSE);
    assert_int_equal(kill(program_worker(p[1], 1), SIGKILL), 0);
    hash_of(p[0], many);
    assert_string_equal(many, one);
    hash_of(p[1], many);
    assert_string_equal(many, one);
    json_t *report = program_json(p[1]);
    assert_true(program_number(report, "respawns") == 1);
    json_decref(report);
}

/* Local SGD: the copies of all workers of both hosts, with their state, are merged; one that dies is waited for. */
static void copies_of_all_hosts_are_merged_and_a_worker_may_die(void **state) {
    static const char *const RANK[] = {"0", "1"}, *const WORKERS[] = {"1", "2"};
    char hash[2][17];
    struct program *p[2];
    (void)state;
    choose_ports(2);
    for (int rank = 1; rank >= 0; rank--)
        p[rank] = START_HOST(RANK[rank], "-q", "--json", "-w", WORKERS[rank], "--mode", "local:8", "--optimizer", "adam", "-e",
                             "20", SPARSE);
    assert_int_equal(kill(program_worker(p[1], 1), SIGKILL), 0);
    for (int rank = 0; rank < 2; rank++) {
        hash_of(p[rank], hash[rank]);
        json_t *report = program_json(p[rank]);
        const json_t *epochs = json_object_get(report, "epochs"), *last = json_array_get(epochs, json_array_size(epochs) - 1);
        assert_true(program_number(report, "respawns") == rank && program_number(report, "n_replicas") == rank + 1);
        assert_true(json_array_size(epochs) == 20 && program_number(last, "examples") == 6000);
        assert_true(program_number(last, "train_loss") < 0.6); /* log 2 is what nothing learned would be */
        json_decref(report);
    }
    assert_string_equal(hash[0], hash[1]);
}

/* Nobody is left to tell the link; it hears that its run has failed, and tells the others. */
static void a_supervisor_that_dies_ends_all_hosts(void **state) {
    struct program *p[2];
    (void)state;
    start_two(p, "sync");
    assert_int_equal(kill(program_supervisor(p[1]), SIGKILL), 0);
    end_with(p[1], 1, "was killed by signal 9");
    end_with(p[0], 1, ") has left the run");
}

/* ---- launch ---- */

static void launch_runs_hosts_on_this_machine(void **state) {
    char one[17];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "1", SPARSE);
    unlink("m.st");
    struct program *run = RUN("launch", "--local", "3", "--", "-e", "1", "-o", "m.st", "--trace", "t%r.json", SPARSE);
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], one));
    assert_says(run, "on host 2: --output is for host 0");
    assert_int_equal(access("m.st", F_OK), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(access(i == 0 ? "t0.json" : i == 1 ? "t1.json" : "t2.json", F_OK), 0);
    struct program *failed = RUN("launch", "--local", "2", "--", "-e", "1", "nowhere.svm");
    assert_int_not_equal(failed->status, 0);
    assert_says(failed, "nowhere.svm");
    program_write_file("d0.svm", "+1 1:1\n-1 2:1\n");
    struct program *half = RUN("launch", "--local", "2", "--", "-e", "1", "d%r.svm"); /* host 0 would wait for ten minutes */
    assert_int_not_equal(half->status, 0);
    assert_says(half, "on host 1: ");
}

static void launch_stops_all_hosts_at_one_point(void **state) {
    (void)state;
    struct program *run = START("launch", "--local", "2", "--", "-w", "1", "-e", "1000000", LONG);
    program_wait_for_epoch(run);
    assert_int_equal(kill(run->pid, SIGTERM), 0);
    program_finish(run);
    program_assert_status(run, 143);
    assert_non_null(strstr(run->text[OUT], "\nstopped: "));
}

/* A remote shell that stays here: it drops the host's name. Words come through it as they are. */
static void launch_by_a_remote_shell_brings_keys_and_words(void **state) {
    char one[17], command[128];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "1", SPARSE);
    program_write_file("shell", "#!/bin/sh\necho \"$1\" >> hosts.txt\nshift\nexec sh -c \"$*\"\n");
    assert_int_equal(chmod("shell", 0755), 0);
    choose_ports(2);
    unlink("hosts.txt");
    struct program *run =
        RUN("launch", "--hosts", g_list, "--remote-shell", "./shell", "--", "-e", "1", "-o", "it's a \"model\".st", SPARSE);
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], one));
    assert_int_equal(access("it's a \"model\".st", F_OK), 0);
    snprintf(command, sizeof command, "test \"$(sort -u hosts.txt)\" = 127.0.0.1 ");
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 2; i++) { /* words of the option that are none, or are no command */
        struct program *none =
            RUN("launch", "--hosts", g_list, "--remote-shell", i ? " ./nothing" : " ", "--", "-e", "1", SPARSE);
        assert_int_not_equal(none->status, 0);
    }
    choose_ports(2);
    struct program *stopped =
        START("launch", "--hosts", g_list, "--remote-shell", "./shell", "--", "-w", "1", "-e", "1000000", LONG);
    program_wait_for_epoch(stopped);
    assert_int_equal(kill(stopped->pid, SIGINT), 0);
    program_finish(stopped);
    assert_int_not_equal(stopped->status, 0);
    assert_non_null(strstr(stopped->text[OUT], "\nstopped: "));
}

/* examples/two_hosts.sh, as it stands. */
static void the_example_ends_with_the_same_parameters_on_both_hosts(void **state) {
    const char *source = getenv("TEST_SRCDIR"), *build = getenv("TEST_BUILDDIR");
    char command[4096], text[4096] = "";
    (void)state;
    choose_ports(1);
    snprintf(command, sizeof command, "PORT=%s %s/examples/two_hosts.sh %s/shmtrain 2>&1", strchr(g_hosts[0], ':') + 1,
             source ? source : ".", build ? build : ".");
    FILE *f = popen(command, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    const char *first = strstr(text, "host 0: parameters  xxh64 "), *second = strstr(text, "host 1: parameters  xxh64 ");
    if (pclose(f) != 0 || !first || !second) fail_msg("%s", text);
    assert_int_equal(strncmp(first + 8, second + 8, 34), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {PROGRAM_TEST(parameters_are_those_of_one_host),
                                       PROGRAM_TEST(a_report_says_which_host_it_is_and_what_was_sent),
                                       PROGRAM_TEST(a_slow_worker_is_no_slow_network),
                                       PROGRAM_TEST(a_plan_says_what_hosts_exchange_in_a_turn),
                                       PROGRAM_TEST(a_goal_ends_all_hosts_with_the_same_epoch),
                                       PROGRAM_TEST(live_modes_end_with_the_same_bits_on_all_hosts),
                                       PROGRAM_TEST(what_differs_is_named_on_all_hosts),
                                       PROGRAM_TEST(what_differs_because_of_workers_says_so),
                                       PROGRAM_TEST(of_three_hosts_all_hear_which_one_differs),
                                       PROGRAM_TEST(options_that_do_not_fit_are_refused),
                                       PROGRAM_TEST(tf_config_names_the_hosts),
                                       PROGRAM_TEST(options_of_tensorflow_name_the_hosts),
                                       PROGRAM_TEST(tf_config_counts_for_runs_that_say_nothing_else),
                                       PROGRAM_TEST(a_port_that_is_taken_is_named),
                                       PROGRAM_TEST(hosts_with_keys_meet_and_others_hear_why_they_do_not),
                                       PROGRAM_TEST(a_host_that_dies_ends_the_others_which_name_it),
                                       PROGRAM_TEST(a_link_that_dies_ends_its_host),
                                       PROGRAM_TEST(a_stop_on_one_host_ends_all_with_the_same_parameters),
                                       PROGRAM_TEST(in_live_modes_too_it_is_known_who_has_ended_the_run),
                                       PROGRAM_TEST(a_worker_that_dies_changes_no_bit),
                                       PROGRAM_TEST(copies_of_all_hosts_are_merged_and_a_worker_may_die),
                                       PROGRAM_TEST(a_supervisor_that_dies_ends_all_hosts),
                                       PROGRAM_TEST(launch_runs_hosts_on_this_machine),
                                       PROGRAM_TEST(launch_stops_all_hosts_at_one_point),
                                       PROGRAM_TEST(launch_by_a_remote_shell_brings_keys_and_words),
                                       PROGRAM_TEST(the_example_ends_with_the_same_parameters_on_both_hosts)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
