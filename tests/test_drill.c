/* Tests of shmtrain drill: each wrong ending of a run is found, what a run leaves behind is found, too, and what is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/drill/judge.h"
#include "folder_help.h"

/* ---- endings ---- */

static const struct shmt_drill_mode SYNC = {.name = "sync", .same_bits = true}, LIVE = {.name = "async", .may_skip = true};
static const struct shmt_drill_mode THREADS = {.name = "async, 2 threads", .may_skip = true, .threads = 2};
static const struct shmt_drill_mode SYNC_GUESTS = {.name = "sync, guests", .same_bits = true, .has_guests = true};
static const struct shmt_drill_mode LIVE_GUESTS = {.name = "async, guests", .has_guests = true};

static struct shmt_drill_shared good_run(void) {
    return (struct shmt_drill_shared){.xxh64 = 7, .loss = 0.5, .n_epochs = 2, .examples = {100, 100}, .item = 10};
}

/* What is said of such a run, after undisturbed ones with losses 0.5 and 0.51. */
static const char *verdict(const struct shmt_drill_mode *mode, struct shmt_drill_shared run, struct shmt_drill_trial trial) {
    static struct shmt_drill_game game;
    struct shmt_drill_expected expected = {0};
    struct shmt_drill_score score = {0};
    struct shmt_drill_ground ground = {.shared = &run};
    struct shmt_drill_shared quiet = good_run();
    shmt_drill_expect(&expected, &quiet);
    quiet.loss = 0.51;
    shmt_drill_expect(&expected, &quiet);
    shmt_drill_band(&expected, &score.low_loss, &score.high_loss);
    game = (struct shmt_drill_game){.mode = mode, .ground = &ground, .score = &score, .trial = trial};
    shmt_drill_judge(&game, &expected);
    return game.why;
}

static void each_wrong_ending_is_found(void **state) {
    (void)state;
    const struct shmt_drill_trial none = {0}, skips = {.skips = true, .deaths = 2, .losses = 2};
    struct shmt_drill_shared run = good_run();
    assert_string_equal(verdict(&SYNC, run, none), "");
    run.loss = 0.9;
    assert_string_equal(verdict(&SYNC, run, none), ""); /* its bits say all */
    assert_non_null(strstr(verdict(&LIVE, run, none), "loss 0.900000, which is not within 0.4"));
    run.loss = 0.56;
    run.late_share = 0.25; /* so that up to 0.25 * (0.69 - 0.47) more is no wonder */
    assert_string_equal(verdict(&LIVE, run, none), "");
    run.late_share = 0;
    assert_non_null(strstr(verdict(&LIVE, run, none), "loss"));
    run.loss = NAN;
    assert_non_null(strstr(verdict(&LIVE, run, none), "loss"));
    run = good_run();
    run.xxh64 = 8;
    assert_string_equal(verdict(&LIVE, run, none), "");
    assert_string_equal(verdict(&SYNC, run, none), "parameters 0000000000000008 instead of 0000000000000007");
    run = good_run();
    run.n_epochs = 1;
    assert_string_equal(verdict(&SYNC, run, none), "it has done 1 epochs of 2");
    run = good_run();
    run.examples[1] = 90;
    run.skipped = 10;
    assert_string_equal(verdict(&LIVE, run, none), "epoch 2 has 90 examples instead of 100");
    assert_string_equal(verdict(&LIVE, run, skips), "");
    run.skipped = 0;
    assert_string_equal(verdict(&LIVE, run, skips), "10 examples are missing, but 0 are reported as skipped");
    run.examples[0] = 89;
    run.skipped = 21;
    assert_string_equal(verdict(&LIVE, run, skips), "21 examples were skipped in 2 deaths, with items of 10");
    run.examples[0] = 101;
    assert_string_equal(verdict(&LIVE, run, skips), "epoch 1 has 101 examples instead of 100");
    run.rc = SHMTRAIN_E_DIED;
    snprintf(run.message, sizeof run.message, "worker 3 died");
    assert_string_equal(verdict(&LIVE, run, none), "worker 3 died");
}

/* Of the others' deaths nothing may be missing, however many there were. */
static void what_was_in_hand_may_be_missing_for_each_thread_and_guest(void **state) {
    (void)state;
    struct shmt_drill_shared run = good_run();
    run.examples[0] = 80;
    run.skipped = 20;
    assert_string_equal(verdict(&LIVE, run, (struct shmt_drill_trial){.deaths = 9}), "epoch 1 has 80 examples instead of 100");
    assert_string_equal(verdict(&LIVE, run, (struct shmt_drill_trial){.losses = 1}),
                        "20 examples were skipped in 1 deaths, with items of 10");
    assert_string_equal(verdict(&THREADS, run, (struct shmt_drill_trial){.losses = 1}), "");
    assert_string_equal(verdict(&LIVE_GUESTS, run, (struct shmt_drill_trial){.guest_deaths = 2}), "");
    assert_string_equal(verdict(&LIVE_GUESTS, run, (struct shmt_drill_trial){.guest_deaths = 1}),
                        "20 examples were skipped in 1 deaths, with items of 10");
}

/* And only there. */
static void sync_may_fail_for_want_of_a_guest_that_has_died(void **state) {
    (void)state;
    const struct shmt_drill_trial none = {0}, died = {.kills_guests = true, .guest_deaths = 1};
    struct shmt_drill_shared run = {.rc = SHMTRAIN_E_DIED};
    snprintf(run.message, sizeof run.message,
             "worker 4 (process 7, joined by name) died or gave up while training: its gradient is missing");
    assert_string_equal(verdict(&SYNC_GUESTS, run, died), "");
    assert_string_equal(verdict(&SYNC_GUESTS, run, none), run.message);
    assert_string_equal(verdict(&LIVE_GUESTS, run, died), run.message);
    assert_string_equal(verdict(&SYNC, run, died), run.message);
    snprintf(run.message, sizeof run.message, "worker 2 (process 7) was killed by signal 9 (Killed) while training");
    assert_string_equal(verdict(&SYNC_GUESTS, run, died), run.message);
}

/* What is said of a guest that has ended so, with its status or by a signal. */
static const char *verdict_of_guest(int rc, const char *message, int signal, uint64_t deaths) {
    static struct shmt_drill_game game;
    struct shmt_drill_shared shared = {.guest_rc = rc};
    struct shmt_drill_ground ground = {.shared = &shared};
    game = (struct shmt_drill_game){.ground = &ground, .trial.guest_deaths = deaths};
    snprintf(shared.guest_message, sizeof shared.guest_message, "%s", message);
    game.guest = fork();
    assert_true(game.guest >= 0);
    if (game.guest == 0) {
        if (signal) raise(signal);
        _exit(0);
    }
    shmt_drill_see_off(&game);
    assert_int_equal(game.guest, 0);
    return game.why;
}

static void guests_end_well_or_for_a_reason(void **state) {
    (void)state;
    assert_string_equal(verdict_of_guest(0, "", 0, 0), "");
    assert_string_equal(verdict_of_guest(SHMTRAIN_E_USAGE, "the run of store x has ended: it can be observed", 0, 0), "");
    assert_string_equal(verdict_of_guest(SHMTRAIN_E_USAGE, "store x has no free place", 0, 0),
                        "a guest failed: store x has no free place");
    assert_string_equal(verdict_of_guest(SHMTRAIN_E_DIED, "worker 0 died", 0, 1), "");
    assert_string_equal(verdict_of_guest(SHMTRAIN_E_DIED, "worker 0 died", 0, 0), "a guest failed: worker 0 died");
    assert_string_equal(verdict_of_guest(0, "", SIGKILL, 1), "");
    assert_string_equal(verdict_of_guest(0, "", SIGKILL, 0), "a guest died on its own");
}

static void each_mode_has_a_name_that_fits_its_column(void **state) {
    (void)state;
    for (uint32_t m = 0; m < SHMT_DRILL_MODES; m++) {
        const struct shmt_drill_mode *mode = &shmt_drill_modes[m];
        assert_non_null(mode->name);
        assert_in_range(strlen(mode->name), 1, 24);
        for (uint32_t k = 0; k < m; k++) assert_string_not_equal(mode->name, shmt_drill_modes[k].name);
    }
}

static void losses_may_be_as_far_apart_as_those_of_undisturbed_runs(void **state) {
    (void)state;
    struct shmt_drill_expected expected = {0};
    struct shmt_drill_shared quiet = good_run();
    double low, high;
    quiet.loss = 1;
    shmt_drill_expect(&expected, &quiet);
    shmt_drill_band(&expected, &low, &high); /* of one run: the least */
    assert_true(fabs(low - 0.94) < 1e-9 && fabs(high - 1.06) < 1e-9);
    quiet.loss = 2;
    shmt_drill_expect(&expected, &quiet);
    shmt_drill_band(&expected, &low, &high);
    assert_true(fabs(low) < 1e-9 && fabs(high - 3) < 1e-9);
}

/* ---- residue ---- */

static struct shmt_drill_place place_here(void) {
    struct shmt_drill_place place = {0};
    assert_true(strlen(g_folder) < sizeof place.folder);
    memcpy(place.folder, g_folder, strlen(g_folder));
    return place;
}

static void make_file(const char *path) {
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void files_that_a_run_leaves_are_found_and_removed(void **state) {
    (void)state;
    const struct shmt_drill_place place = place_here();
    char why[SHMT_DRILL_WHY] = "";
    make_file("model");
    shmt_drill_look_for_residue(&place, true, why);
    assert_string_equal(why, "");
    assert_int_equal(access("model", F_OK), -1);
    shmt_drill_look_for_residue(&place, true, why);
    assert_string_equal(why, "it left no model");
    why[0] = '\0';
    shmt_drill_look_for_residue(&place, false, why); /* one that has failed has none */
    assert_string_equal(why, "");
    make_file("model.unfinished");
    shmt_drill_look_for_residue(&place, false, why);
    assert_non_null(strstr(why, "/model.unfinished"));
    assert_int_equal(access("model.unfinished", F_OK), -1);
}

static void checkpoints_are_expected_where_they_are_saved(void **state) {
    (void)state;
    struct shmt_drill_place place = place_here();
    char why[SHMT_DRILL_WHY] = "";
    assert_int_equal(mkdir("saved", 0700), 0);
    assert_int_equal(shmt_drill_look_at_saved(&place, why), 0);
    shmt_drill_look_for_residue(&place, false, why);
    assert_non_null(strstr(why, "/saved"));
    why[0] = '\0';
    place.saves = true;
    make_file("saved/checkpoint-000000000020.safetensors");
    make_file("saved/checkpoint-000000000040.safetensors");
    make_file("saved/.begun");
    make_file("saved/.shmtrain-lock");
    shmt_drill_look_for_residue(&place, false, why);
    assert_int_equal(shmt_drill_look_at_saved(&place, why), 2);
    assert_string_equal(why, "");
    make_file("saved/.begun too");
    assert_int_equal(shmt_drill_look_at_saved(&place, why), 2);
    assert_non_null(strstr(why, "/saved/.begun"));
    why[0] = '\0';
    unlink("saved/.begun too");
    make_file("saved/checkpoint-000000000060.safetensors");
    make_file("saved/checkpoint-000000000080.safetensors");
    assert_int_equal(shmt_drill_look_at_saved(&place, why), 4);
    assert_string_equal(why, "it left 4 checkpoints instead of 2");
    shmt_drill_clear_saved(&place);
    assert_int_equal(access("saved", F_OK), -1);
}

static void shared_memory_that_a_run_leaves_is_found(void **state) {
    (void)state;
    struct shmt_drill_place place = place_here();
    char why[SHMT_DRILL_WHY] = "", path[128];
    snprintf(place.name, sizeof place.name, "drill-test-%d", (int)getpid());
    snprintf(path, sizeof path, "/dev/shm/left-of-%s", place.name);
    make_file(path);
    shmt_drill_look_for_residue(&place, false, why);
    unlink(path);
    assert_non_null(strstr(why, "left-of-drill-test-"));
}

/* Its parent, the run, has ended before it. */
static void processes_that_a_run_leaves_are_found_and_killed(void **state) {
    (void)state;
    const struct shmt_drill_place place = place_here();
    char why[SHMT_DRILL_WHY] = "";
    if (!shmt_drill_can_find()) {
        puts("skipped: the system does not say whose children processes are");
        skip();
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    const pid_t run = fork();
    assert_true(run >= 0);
    if (run == 0) {
        if (fork() == 0)
            for (;;) pause();
        _exit(0);
    }
    shmt_drill_look_for_residue(&place, false, why);
    assert_string_equal(why, "1 of its processes are still there");
    assert_int_equal(shmt_drill_children(), 0);
}

/* ---- what is printed ---- */

static struct shmt_drill made_up(void) {
    struct shmt_drill d = {
        .seed = UINT64_MAX, .rounds = 1000, .failed = 9, .workers = 4, .quiet_runs = 50, .seconds = 100, .n_failures = 1};
    for (int i = 0; i < 2; i++) {
        struct shmt_drill_score *m = &d.mode[i];
        *m = (struct shmt_drill_score){.runs = 500, .failed = i ? 9 : 0, .deaths = 99999, .stops = 9999, .respawns = 99999};
        m->name = i ? "a mode with a very long name 1" : "a mode with a very long name 0";
        m->guest_deaths = 999999;
        m->guest_examples = 9999999999;
        m->resumed = 99999;
        m->worst_respawn_ms = i ? 12345.6 : (double)NAN;
        m->low_loss = m->high_loss = NAN;
    }
    d.failure[0].mode = d.mode[1].name;
    for (size_t at = 0; at + 10 < sizeof d.failure[0].why; at += 6) strcat(d.failure[0].why, "words ");
    d.failure[0].seed = UINT64_MAX;
    return d;
}

static char *printed(void (*print)(const struct shmt_drill *drill, FILE *out)) {
    const struct shmt_drill d = made_up();
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    print(&d, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void lines_are_at_most_80_columns_wide(void **state) {
    (void)state;
    char *text = printed(shmt_drill_text);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
    assert_non_null(strstr(text, " 9 FAILED\n"));
    assert_non_null(strstr(text, "repeat it: shmtrain drill --rounds 1 --seed 18446744073709551615\n"));
    assert_non_null(strstr(text, "8 more are not shown"));
    assert_non_null(strstr(text, "\nGuests trained on 19999999998 examples and died 1999998 times.\n"));
    assert_non_null(strstr(text, "\n199998 runs were killed and then resumed from a checkpoint.\n"));
    free(text);
}

static void json_has_what_the_lines_have(void **state) {
    (void)state;
    char *text = printed(shmt_drill_json);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    const json_t *modes = json_object_get(o, "modes"), *failures = json_object_get(o, "failures");
    assert_int_equal(json_array_size(modes), 2); /* the others have no runs */
    assert_int_equal(json_array_size(failures), 1);
    assert_int_equal(json_integer_value(json_object_get(o, "failed")), 9);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(modes, 1), "deaths")), 99999);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(modes, 1), "guest_deaths")), 999999);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(modes, 1), "guest_examples")), 9999999999);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(modes, 1), "resumed")), 99999);
    assert_true(json_is_null(json_object_get(json_array_get(modes, 0), "worst_respawn_ms")));
    json_decref(o);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_wrong_ending_is_found),
        cmocka_unit_test(what_was_in_hand_may_be_missing_for_each_thread_and_guest),
        cmocka_unit_test(sync_may_fail_for_want_of_a_guest_that_has_died),
        cmocka_unit_test(guests_end_well_or_for_a_reason),
        cmocka_unit_test(each_mode_has_a_name_that_fits_its_column),
        cmocka_unit_test(losses_may_be_as_far_apart_as_those_of_undisturbed_runs),
        cmocka_unit_test(files_that_a_run_leaves_are_found_and_removed),
        cmocka_unit_test(checkpoints_are_expected_where_they_are_saved),
        cmocka_unit_test(shared_memory_that_a_run_leaves_is_found),
        cmocka_unit_test(processes_that_a_run_leaves_are_found_and_killed),
        cmocka_unit_test(lines_are_at_most_80_columns_wide),
        cmocka_unit_test(json_has_what_the_lines_have),
    };
    return cmocka_run_group_tests_name("drill", tests, make_folder, remove_folder);
}
