/* Stores with a name: what happens when somebody dies or fails, what is left then, and what is refused. Everything else that
 * observers and guests do: test_join.c. */
#include "join_help.h"
#include "sanitized.h"
#include "skip.h"

#include <sys/resource.h>

static void wait_for_work_of(uint32_t rank) {
    const uint64_t before = tally->examples[rank];
    while (tally->examples[rank] == before) nap(1000);
}

/* ---- deaths and failures ---- */

static void in_live_modes_a_killed_guests_seat_is_reclaimed_and_the_run_goes_on(void **state) {
    char first[80], second[80];
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "2", "2", FOREVER, NULL, 500});
    for (int i = 0; i < 2; i++) {
        const pid_t guest = start_guest("processes", "2");
        wait_for_work_of(2);
        wait_for_work_of(3);
        snprintf(first, sizeof first, "worker 2 (process %d, joined by name)", tally->pid[2]);
        snprintf(second, sizeof second, "worker 3 (process %d, joined by name)", tally->pid[3]);
        assert_int_equal(kill(guest, SIGKILL), 0);
        wait_for(guest);
        wait_for_work_of(0);
        wait_for_note(first, " died");
        wait_for_note(second, " died");
    }
    wait_for_work_of(0);
    wait_for_work_of(1);
    assert_int_equal(stop_maker(maker), 0);
    assert_true(tally->n_epochs > 2);
}

static void in_sync_a_killed_guest_ends_the_run_with_a_sentence(void **state) {
    char process[80];
    (void)state;
    const pid_t maker = start_maker(&(struct how){"sync", "processes", "2", "2", FOREVER, NULL, 500});
    const pid_t guest = start_guest("processes", "1");
    wait_for_work_of(2);
    assert_int_equal(kill(guest, SIGKILL), 0);
    wait_for(guest);
    assert_int_equal(wait_for(maker), SHMTRAIN_E_DIED);
    snprintf(process, sizeof process, "worker 2 (process %d, joined by name)", tally->pid[2]);
    assert_non_null(strstr(tally->said, process));
}

/* Nobody is started again when the run is given up, so such a death is no news, and not what it has failed for. */
static void what_ends_the_run_is_told_though_a_worker_dies_behind_it(void **state) {
    char process[80];
    (void)state;
    const pid_t maker = start_maker(&(struct how){"sync", "processes", "2", "2", FOREVER, NULL, 500});
    const pid_t guest = start_guest("processes", "1");
    wait_for_work_of(2);
    const pid_t stopped = tally->pid[1], other = tally->pid[0];
    assert_int_equal(kill(stopped, SIGSTOP), 0);
    assert_int_equal(kill(guest, SIGKILL), 0);
    wait_for(guest);
    while (kill(other, 0) == 0) nap(1000); /* it ends when the run is given up */
    assert_int_equal(kill(stopped, SIGKILL), 0);
    assert_int_equal(wait_for(maker), SHMTRAIN_E_DIED);
    snprintf(process, sizeof process, "worker 2 (process %d, joined by name)", tally->pid[2]);
    if (!strstr(tally->said, process)) fail_msg("%s", tally->said);
}

static void a_killed_maker_ends_its_guests_with_a_sentence(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const pid_t maker = start_maker(&(struct how){i ? "sync" : "async", "processes", "2", "2", FOREVER, NULL, 500});
        const pid_t guest = start_guest(SPAWNS[i], "2");
        wait_for_work_of(2);
        assert_int_equal(kill(maker, SIGKILL), 0);
        wait_for(maker);
        assert_int_equal(wait_for(guest), SHMTRAIN_E_DIED);
        assert_non_null(strstr(tally->said, "has died"));
        end(NULL);
        begin(NULL);
    }
}

static void a_failed_run_ends_its_guests_with_its_sentence(void **state) {
    (void)state;
    const pid_t maker = start_maker(&(struct how){"sync", "processes", "2", "2", FOREVER, NULL, 500});
    const pid_t guest = start_guest("threads", "1");
    wait_for_work_of(2);
    tally->fail_rank = 1;
    assert_int_equal(wait_for(maker), SHMTRAIN_E_DATA);
    assert_int_equal(wait_for(guest), SHMTRAIN_E_DIED);
    assert_non_null(strstr(tally->said, "failed: "));
}

static void a_guest_that_fails_ends_with_its_own_status(void **state) {
    (void)state;
    for (int sync = 0; sync <= 1; sync++)
        for (int i = 0; i < 2; i++) {
            const pid_t maker = start_maker(&(struct how){sync ? "sync" : "async", "processes", "2", "2", FOREVER, NULL, 500});
            const pid_t guest = start_guest(SPAWNS[i], "2");
            wait_for_work_of(2);
            wait_for_work_of(3);
            tally->fail_rank = 4;
            assert_int_equal(wait_for(guest), SHMTRAIN_E_DATA);
            if (sync) {
                assert_int_equal(wait_for(maker), SHMTRAIN_E_DIED);
            } else {
                wait_for_work_of(0);
                wait_for_work_of(1);
                assert_int_equal(stop_maker(maker), 0);
            }
            end(NULL);
            begin(NULL);
        }
}

/* What the list of stores says of ours. */
static void named(struct shmtrain_named *out) {
    struct shmtrain_named *all;
    const int n = shmtrain_named_list(&all);
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(all[i].name, NAME) != 0) continue;
        *out = all[i];
        found++;
    }
    free(all);
    assert_int_equal(found, 1);
}

/* ---- children without exec ---- */

/* Kills a maker or a guest that has left a child, which has all of its descriptors and so all of its locks. */
static void kill_parent_of_a_child(pid_t parent) {
    assert_int_equal(kill(parent, SIGUSR1), 0);
    while (atomic_load(&tally->child) == 0) nap(1000);
    assert_int_equal(kill(parent, SIGKILL), 0);
    wait_for(parent);
    assert_int_equal(kill(tally->child, 0), 0);
}

static void a_dead_maker_is_dead_though_a_child_has_its_locks(void **state) {
    char message[512] = "";
    struct shmtrain_store *store;
    const struct shmtrain_progress *now;
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "2", "2", FOREVER, NULL, 500});
    const pid_t guest = start_guest("processes", "1");
    wait_for_work_of(2);
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, NAME));
    kill_parent_of_a_child(maker);
    int rc;
    while ((rc = shmtrain_store_look(store, &now)) == 1) nap(1000);
    refused(store, rc, SHMTRAIN_E_DIED, "has died");
    shmtrain_store_destroy(store);
    assert_int_equal(wait_for(guest), SHMTRAIN_E_DIED);
    assert_non_null(strstr(tally->said, "has died"));
    struct shmtrain_named found;
    named(&found);
    assert_true(!found.in_use && found.died);
    assert_int_equal(shmtrain_named_remove(NAME, 0, message, sizeof message), 0);
    assert_int_equal(kill(tally->child, SIGKILL), 0);
}

static void a_dead_guest_is_dead_though_a_child_has_its_locks(void **state) {
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "2", "2", FOREVER, NULL, 500});
    const pid_t guest = start_guest("processes", "1");
    wait_for_work_of(2);
    kill_parent_of_a_child(guest);
    wait_for_note("joined by name)", " died");
    wait_for_work_of(0);
    const pid_t next = start_guest("processes", "2"); /* waits for a place that is the dead one's until its child has ended */
    nap(300000);
    assert_int_equal(kill(tally->child, SIGKILL), 0);
    wait_for_work_of(2);
    wait_for_work_of(3);
    assert_int_equal(stop_maker(maker), 0);
    assert_int_equal(wait_for(next), 0);
}

/* Whoever made the store looks after it ten times a second: who joins in between waits for that. */
static void the_place_of_a_guest_that_was_just_killed_is_waited_for(void **state) {
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "threads", "1", "1", FOREVER, NULL, 500});
    for (int i = 0; i < 8; i++) {
        const pid_t guest = start_guest("threads", "1");
        wait_for_work_of(1);
        assert_int_equal(kill(guest, SIGKILL), 0);
        (void)wait_for(guest);
    }
    const pid_t guest = start_guest("threads", "1");
    wait_for_work_of(1);
    assert_int_equal(stop_maker(maker), 0);
    assert_int_equal(wait_for(guest), 0);
}

/* It lives on, has let go of its store, and a child of it has not. */
static void what_a_maker_lets_go_of_is_not_in_use_though_a_child_has_it(void **state) {
    struct shmtrain_named found;
    (void)state;
    tally->holds = 0;
    struct shmtrain_store *store = make_store(&(struct how){"async", "processes", "1", "1", "1", NULL, 0});
    WELL(store, shmtrain_store_run(store, work, NULL));
    leave_a_child(0);
    named(&found);
    assert_true(found.in_use && !found.died);
    shmtrain_store_destroy(store);
    named(&found);
    assert_true(!found.in_use && !found.died);
    assert_int_equal(kill(tally->child, SIGKILL), 0);
    wait_for(tally->child);
}

/* ---- standing still ---- */

/* Its seat was reserved by the process that it works in, which is the application. */
static void an_application_that_has_joined_with_threads_is_not_killed_for_one_that_stands_still(void **state) {
    char who[96];
    (void)state;
    kills_stalled = true;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "1", "1", FOREVER, NULL, 500});
    const pid_t guest = start_guest("threads", "1");
    wait_for_work_of(1);
    tally->stuck_rank = 2;
    snprintf(who, sizeof who, "worker 1 (process %d, joined by name) has made no progress", guest);
    wait_for_note(who, "use a longer --stall-timeout");
    nap(500000); /* a signal would have come */
    tally->stuck_rank = 0;
    wait_for_work_of(1);
    assert_int_equal(stop_maker(maker), 0);
    assert_int_equal(wait_for(guest), 0);
}

static void a_process_of_it_is_and_all_lines_about_it_have_its_number(void **state) {
    char who[96];
    (void)state;
    kills_stalled = true;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "1", "1", FOREVER, NULL, 500});
    const pid_t guest = start_guest("processes", "1");
    wait_for_work_of(1);
    snprintf(who, sizeof who, "worker 1 (process %d, joined by name)", tally->pid[1]);
    tally->stuck_rank = 2;
    wait_for_note(who, "died or gave up");
    tally->stuck_rank = 0;
    wait_for_work_of(0);
    assert_int_equal(wait_for(guest), SHMTRAIN_E_DIED);
    assert_int_equal(stop_maker(maker), 0);
}

/* ---- what is left, and its name ---- */

static void data_whose_store_is_gone_is_in_use_while_its_run_goes_on(void **state) {
    struct shmtrain_named found;
    char path[160];
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "1", "1", FOREVER, "builtin:sparse:examples=4000", 0});
    snprintf(path, sizeof path, "/dev/shm/shmtrain-%ju-%s", (uintmax_t)geteuid(), NAME);
    assert_int_equal(unlink(path), 0);
    named(&found);
    assert_true(found.in_use && !found.died);
    assert_int_equal(kill(maker, SIGKILL), 0);
    wait_for(maker);
    do named(&found);
    while (found.in_use); /* its workers end with it */
    assert_true(found.died);
}

static void a_killed_maker_leaves_a_store_that_is_not_in_use(void **state) {
    char message[512] = "";
    struct shmtrain_named found;
    struct shmtrain_store *store;
    const struct shmtrain_progress *now;
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "2", "3", FOREVER, NULL, 100});
    named(&found);
    assert_true(found.in_use && found.intact && !found.died && found.workers == 2 && found.guests == 3 && found.pid == maker);
    assert_true(found.bytes > 4096 && found.made_at > 1700000000 && found.model[0] == '\0');
    assert_int_equal(shmtrain_named_remove(NAME, 0, message, sizeof message), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(message, "is in use"));
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, NAME));
    assert_int_equal(kill(maker, SIGKILL), 0);
    wait_for(maker);
    int rc;
    while ((rc = shmtrain_store_look(store, &now)) == 1) nap(1000);
    refused(store, rc, SHMTRAIN_E_DIED, "has died");
    assert_true(read_one(store, 0) > 0);
    shmtrain_store_destroy(store);
    named(&found);
    assert_true(!found.in_use && found.intact && found.died);
    assert_int_equal(shmtrain_named_remove(NAME, 0, message, sizeof message), 0);
    assert_int_equal(shmtrain_store_create(&store), 0);
    refused(store, shmtrain_store_observe(store, NAME), SHMTRAIN_E_USAGE, "there is no store");
    shmtrain_store_destroy(store);
}

/* In a process of its own, whose address space has no room for the store. */
static int list_without_room(void) {
    struct shmtrain_named *all;
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (!file || fscanf(file, "%lu", &pages) != 1) return 2;
    fclose(file);
    const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)4 << 20);
    if (setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) != 0) return 3;
    if (mmap(NULL, (size_t)16 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) return 4;
    const int n = shmtrain_named_list(&all);
    for (int i = 0; i < n; i++)
        if (strcmp(all[i].name, NAME) == 0) return all[i].intact && !all[i].died && all[i].bytes > (uint64_t)16 << 20 ? 0 : 5;
    return 6;
}

static void a_store_larger_than_ones_address_space_is_listed_all_the_same(void **state) {
    (void)state;
    if (SANITIZED) SKIP("sanitizers need address space without limit");
    struct shmtrain_store *store = make("threads", "1", "1", 64);
    assert_int_equal(shmtrain_store_table(store, "large", 1 << 22, 1), 1);
    WELL(store, shmtrain_store_set(store, "name", NAME));
    WELL(store, shmtrain_store_run(store, count, NULL));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(list_without_room());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_named_remove(NAME, 0, NULL, 0), 0);
}

static void a_name_that_is_taken_is_refused_and_renewed_by_its_own_store(void **state) {
    struct shmtrain_named found;
    (void)state;
    tally->holds = 0;
    struct shmtrain_store *first = make_store(&(struct how){"sync", "processes", "1", "1", "1", NULL, 0});
    struct shmtrain_store *second = make_store(&(struct how){"sync", "processes", "1", "1", "1", NULL, 0});
    WELL(first, shmtrain_store_run(first, work, NULL));
    refused(second, shmtrain_store_run(second, work, NULL), SHMTRAIN_E_USAGE, "in use, created by process ");
    assert_null(strstr(shmtrain_store_message(second), "shmtrain rm")); /* which would be refused */
    WELL(first, shmtrain_store_run(first, work, NULL));
    assert_true(read_one(first, 0) == 2.0f * EXAMPLES / BATCH);
    shmtrain_store_destroy(first);
    refused(second, shmtrain_store_run(second, work, NULL), SHMTRAIN_E_USAGE, "from a run that has ended");
    WELL(second, shmtrain_store_set(second, "name", "a/b"));
    refused(second, shmtrain_store_run(second, work, NULL), SHMTRAIN_E_USAGE, "not a letter, a digit");
    WELL(second, shmtrain_store_set(second, "name", NAME));
    WELL(second, shmtrain_store_set(second, "backend", "plain"));
    refused(second, shmtrain_store_run(second, work, NULL), SHMTRAIN_E_USAGE, "backend plain");
    shmtrain_store_destroy(second);
    named(&found);
    assert_true(!found.in_use && found.intact && !found.died);
}

/* ---- refusals ---- */

static void what_cannot_be_joined_is_refused(void **state) {
    struct shmtrain_store *store = make_guest("processes", "3");
    (void)state;
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "there is no store");
    pid_t maker = start_maker(&(struct how){"async", "processes", "1", "2", FOREVER, NULL, 200});
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "places for 2 workers, not for 3: use -w 2");
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    refused(store, shmtrain_store_join(store, NAME, NULL, NULL), SHMTRAIN_E_USAGE, "own functions");
    const pid_t guest = start_guest("processes", "2");
    wait_for_work_of(2);
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "no free place");
    assert_int_equal(stop_maker(maker), 0);
    assert_int_equal(wait_for(guest), 0);
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "has ended");
    end(NULL);
    maker = start_maker(&(struct how){"async", "processes", "1", "0", FOREVER, NULL, 200});
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "--guests");
    assert_int_equal(stop_maker(maker), 0);
    end(NULL);
    maker = start_maker(&(struct how){"async", "processes", "1", "1", FOREVER, "builtin:sparse:examples=4000", 0});
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "without a worker function");
    assert_int_equal(stop_maker(maker), 0);
    shmtrain_store_destroy(store);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(in_live_modes_a_killed_guests_seat_is_reclaimed_and_the_run_goes_on),
        TEST(in_sync_a_killed_guest_ends_the_run_with_a_sentence),
        TEST(what_ends_the_run_is_told_though_a_worker_dies_behind_it),
        TEST(a_killed_maker_ends_its_guests_with_a_sentence),
        TEST(a_failed_run_ends_its_guests_with_its_sentence),
        TEST(a_guest_that_fails_ends_with_its_own_status),
        TEST(a_dead_maker_is_dead_though_a_child_has_its_locks),
        TEST(a_dead_guest_is_dead_though_a_child_has_its_locks),
        TEST(the_place_of_a_guest_that_was_just_killed_is_waited_for),
        TEST(an_application_that_has_joined_with_threads_is_not_killed_for_one_that_stands_still),
        TEST(a_process_of_it_is_and_all_lines_about_it_have_its_number),
        TEST(what_a_maker_lets_go_of_is_not_in_use_though_a_child_has_it),
        TEST(data_whose_store_is_gone_is_in_use_while_its_run_goes_on),
        TEST(a_killed_maker_leaves_a_store_that_is_not_in_use),
        TEST(a_store_larger_than_ones_address_space_is_listed_all_the_same),
        TEST(a_name_that_is_taken_is_refused_and_renewed_by_its_own_store),
        TEST(what_cannot_be_joined_is_refused),
    };
    return cmocka_run_group_tests(tests, share_tally, NULL);
}
