/* What the real program sends over several hosts by --wire and --top-k, and what it learns then. That nothing is lost, and that all hosts
 * have the same bits: test_hosts.c, test_hosts_live.c. */
#include "program_hosts_help.h"

#include <signal.h>

/* Two hosts with the same bits at the end: the loss of the last epoch, and the bytes that host 0 has sent. */
static double loss_with(const char *mode, const char *wire, const char *top_k, const char *model, const char *data,
                        double *sent_out) {
    char hash[17], other[17];
    struct program *p[2];
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w1", "-e4", "--mode", mode, "--wire", wire, "--top-k", top_k, "-M", model, data);
    p[0] = START_HOST("0", "-q", "--json", "-w1", "-e4", "--mode", mode, "--wire", wire, "--top-k", top_k, "-M", model, data);
    hash_of(p[1], other);
    hash_of(p[0], hash);
    assert_string_equal(hash, other);
    json_t *report = program_json(p[0]);
    const double loss = program_number(json_array_get(json_object_get(report, "epochs"), 3), "train_loss");
    *sent_out = program_number(report, "sent_bytes");
    json_decref(report);
    return loss;
}

static void fewer_bytes_teach_as_much(void **state) {
    double all, halves, sent;
    (void)state;
    double loss = loss_with("sync", "f32", "1", "mlp", DENSE, &all),
           with = loss_with("sync", "bf16", "1", "mlp", DENSE, &halves);
    assert_true(halves < 0.6 * all && with < 1.02 * loss && with != loss);
    loss = loss_with("sync", "f32", "1", "logistic", WIDE, &all);
    with = loss_with("sync", "bf16", "1", "logistic", WIDE, &halves);
    assert_true(halves < 0.9 * all && with < 1.02 * loss && with != loss); /* lists, whose ids are as long as before */
    loss = loss_with("ssp:2", "f32", "1", "logistic", SPARSE, &sent);
    assert_true(loss_with("ssp:2", "bf16", "0.2", "logistic", SPARSE, &sent) < 1.05 * loss);
}

/* Two hosts in `sync` with rounded sums and lists, one of which loses a worker, or not. */
static void run_rounded(bool kills, char hash[17]) {
    char other[17];
    struct program *p[2];
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w2", "-e40", "--batch", "64", "--wire", "bf16", WIDE);
    p[0] = START_HOST("0", "-q", "--json", "-w1", "-e40", "--batch", "64", "--wire", "bf16", WIDE);
    if (kills) assert_int_equal(kill(program_worker(p[1], 1), SIGKILL), 0);
    hash_of(p[0], hash);
    hash_of(p[1], other);
    assert_string_equal(other, hash);
    json_t *report = program_json(p[1]);
    assert_true(program_number(report, "respawns") == kills);
    json_decref(report);
}

/* The link has put rounded values in the place of what workers had. */
static void a_worker_that_dies_changes_no_bit_of_rounded_sums(void **state) {
    char quiet[17], killed[17];
    (void)state;
    run_rounded(false, quiet);
    run_rounded(true, killed);
    assert_string_equal(killed, quiet);
}

/* What topo says that host 0 sends for each batch. */
static double planned_with(const char *wire) {
    struct program *p =
        START("topo", "--json", "--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank=0", "-w1", "--wire", wire, "-M", "mlp", DENSE);
    program_finish(p);
    program_assert_status(p, 0);
    json_t *plan = program_json(p);
    const double bytes = program_number(json_array_get(json_object_get(plan, "hosts"), 0), "most_bytes");
    json_decref(plan);
    return bytes;
}

static void a_plan_knows_how_long_floats_are(void **state) {
    (void)state;
    assert_true(planned_with("bf16") > 0 && 2 * planned_with("bf16") == planned_with("f32"));
}

int main(void) {
    const struct CMUnitTest tests[] = {PROGRAM_TEST(fewer_bytes_teach_as_much),
                                       PROGRAM_TEST(a_worker_that_dies_changes_no_bit_of_rounded_sums),
                                       PROGRAM_TEST(a_plan_knows_how_long_floats_are)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
