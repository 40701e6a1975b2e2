/* Checkpoints as an application has them: of models and of its own worker functions, with workers that are processes and
 * threads, in the background, too; and who hears of them. */
#include "api_help.h"
#include "folder_help.h"
#include "skip.h"

#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define DATA "builtin:sparse:examples=20000,features=300,nonzeros=6"

struct heard {
    unsigned before, after, failed, epochs;
    uint32_t first_epoch; /* that was told */
    uint64_t step, examples;
    char path[4200], note[600];
};

static void hear_checkpoint(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_checkpoint *checkpoint) {
    struct heard *heard = arg;
    assert_non_null(so_far);
    assert_non_null(strstr(checkpoint->path, "/checkpoint-0000"));
    if (checkpoint->written) {
        heard->after++;
        heard->step = checkpoint->step;
        assert_int_equal(access(checkpoint->path, R_OK), 0);
        assert_string_equal(checkpoint->failure, "");
        snprintf(heard->path, sizeof heard->path, "%s", checkpoint->path);
    } else if (checkpoint->failure[0]) {
        heard->failed++;
    } else {
        heard->before++;
    }
}

static void hear_epoch(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    struct heard *heard = arg;
    if (heard->epochs++ == 0) heard->first_epoch = epoch->epoch;
    assert_int_equal(so_far->n_epochs, epoch->epoch);
    heard->examples = so_far->examples;
}

static void hear_note(void *arg, const char *line) {
    struct heard *heard = arg;
    snprintf(heard->note, sizeof heard->note, "%s", line);
}

static struct shmtrain_store *make_saving(const char *spawn, const char *workers, struct heard *heard) {
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener),
                                               .arg = heard,
                                               .epoch = hear_epoch,
                                               .note = hear_note,
                                               .checkpoint = hear_checkpoint};
    struct shmtrain_store *store;
    *heard = (struct heard){0};
    assert_int_equal(shmtrain_store_create(&store), 0);
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_set(store, "epochs", "4"));
    WELL(store, shmtrain_store_set(store, "optimizer", "adam"));
    WELL(store, shmtrain_store_set(store, "checkpoint", "ck"));
    WELL(store, shmtrain_store_set(store, "checkpoint-every", "1 epoch"));
    return store;
}

static uint64_t hash_of(struct shmtrain_store *store) { return shmtrain_store_report(store)->parameters_xxh64; }

static int clean(void **state) {
    (void)state;
    return system("rm -rf ck") == 0 ? 0 : -1;
}

static uint64_t train_whole(void) {
    struct heard heard;
    struct shmtrain_store *store = make_saving("threads", "1", &heard);
    WELL(store, shmtrain_store_set(store, "checkpoint", ""));
    WELL(store, shmtrain_store_train(store, DATA));
    const uint64_t hash = hash_of(store);
    assert_int_equal(heard.before + heard.after, 0);
    shmtrain_store_destroy(store);
    return hash;
}

static void whoever_listens_hears_of_each_before_and_after(void **state) {
    (void)state;
    const uint64_t whole = train_whole();
    for (int i = 0; i < 2; i++) {
        struct heard heard;
        struct shmtrain_store *store = make_saving(SPAWNS[i], "2", &heard);
        WELL(store, shmtrain_store_set(store, "steps", "700"));
        WELL(store, shmtrain_store_train(store, DATA));
        assert_true(heard.after >= 1 && heard.before == heard.after && heard.failed == 0);
        assert_int_equal(heard.step, 700);
        assert_int_equal(shmtrain_store_report(store)->checkpoints, heard.after);
        shmtrain_store_destroy(store);
        store = make_saving(SPAWNS[1 - i], "3", &heard);
        WELL(store, shmtrain_store_set(store, "resume", "1"));
        WELL(store, shmtrain_store_train(store, DATA));
        assert_true(hash_of(store) == whole);
        assert_int_equal(heard.first_epoch, 3);
        assert_int_equal(heard.epochs, 2);
        assert_int_equal(heard.examples, 4 * 20000);
        assert_int_equal(shmtrain_store_report(store)->n_epochs, 4);
        shmtrain_store_destroy(store);
        assert_int_equal(clean(NULL), 0);
    }
}

static void one_that_cannot_be_written_is_told_and_the_run_goes_on(void **state) {
    (void)state;
    struct heard heard;
    struct shmtrain_store *store = make_saving("threads", "2", &heard);
    WELL(store, shmtrain_store_set(store, "steps", "700"));
    WELL(store, shmtrain_store_train(store, DATA));
    shmtrain_store_destroy(store);
    /* What stands where the last one is to be cannot be replaced. */
    assert_int_equal(
        system("rm -f ck/checkpoint-000000001252.safetensors && mkdir -p ck/checkpoint-000000001252.safetensors/x"), 0);
    store = make_saving("threads", "2", &heard);
    WELL(store, shmtrain_store_set(store, "resume", "1"));
    WELL(store, shmtrain_store_train(store, DATA));
    assert_true(heard.failed >= 1);
    assert_non_null(strstr(shmtrain_store_report(store)->unwritten, "checkpoint-000000001252.safetensors: it is a folder"));
    assert_true(hash_of(store) == train_whole());
    shmtrain_store_destroy(store);
}

static void own_worker_functions_go_on_too(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "3", 640), *rest = make(SPAWNS[1 - i], "1", "3", 640);
        WELL(store, shmtrain_store_run(store, count, NULL));
        const uint64_t whole = hash_of(store);
        const float last = read_one(store, 0);
        shmtrain_store_destroy(store);
        store = make(SPAWNS[i], "3", "3", 640);
        WELL(store, shmtrain_store_set(store, "checkpoint", "ck"));
        WELL(store, shmtrain_store_set(store, "steps", "17"));
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(read_one(store, 0) != last);
        shmtrain_store_destroy(store);
        WELL(rest, shmtrain_store_set(rest, "checkpoint", "ck"));
        WELL(rest, shmtrain_store_set(rest, "resume", "1"));
        WELL(rest, shmtrain_store_run(rest, count, NULL));
        assert_true(read_one(rest, 0) == last && hash_of(rest) == whole);
        shmtrain_store_destroy(rest);
        assert_int_equal(clean(NULL), 0);
    }
}

static int rest_a_while(void *arg, shmtrain_session *s, uint32_t epoch) {
    const struct timespec some = {.tv_nsec = 50000000};
    (void)s;
    (void)arg;
    (void)epoch;
    nanosleep(&some, NULL);
    return 0;
}

/* The place for the next snapshot is free when a file is there, and not when somebody next looks, which left out every second
 * one here. In memory, where nothing waits for a disk; not all of them, because a busy machine may come late to one. */
static void what_is_due_while_nobody_looks_is_written_too(void **state) {
    (void)state;
    char folder[] = "/dev/shm/checkpoints-XXXXXX", command[64];
    if (!mkdtemp(folder)) SKIP("/dev/shm cannot be written to");
    const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks), .before_epoch = rest_a_while};
    struct shmtrain_store *store = make("processes", "1", "20", 64);
    WELL(store, shmtrain_store_hooks(store, &hooks));
    WELL(store, shmtrain_store_set(store, "checkpoint", folder));
    WELL(store, shmtrain_store_set(store, "checkpoint-every", "1 epoch"));
    WELL(store, shmtrain_store_run(store, count, NULL));
    const uint64_t n = shmtrain_store_report(store)->checkpoints;
    shmtrain_store_destroy(store);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    assert_in_range(n, 14, 20);
}

static void tables_that_are_others_are_refused(void **state) {
    (void)state;
    struct shmtrain_store *store = make("threads", "1", "1", 64), *other;
    WELL(store, shmtrain_store_set(store, "checkpoint", "ck"));
    WELL(store, shmtrain_store_run(store, count, NULL));
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_store_create(&other), 0);
    WELL(other, shmtrain_store_set(other, "workers", "1"));
    WELL(other, shmtrain_store_set(other, "epochs", "1"));
    WELL(other, shmtrain_store_set(other, "mode", "sync"));
    WELL(other, shmtrain_store_set(other, "schedule", "constant"));
    WELL(other, shmtrain_store_set(other, "checkpoint", "ck"));
    WELL(other, shmtrain_store_set(other, "resume", "1"));
    assert_int_equal(shmtrain_store_table(other, "count", 3, 1), 0);
    WELL(other, shmtrain_store_examples(other, 64));
    refused(other, shmtrain_store_run(other, count, NULL), SHMTRAIN_E_USAGE, "--resume: table \"count\" (3, 1) is not in ");
    shmtrain_store_destroy(other);
}

/* Its epochs are told from where it goes on. */
static void runs_in_the_background_go_on_and_tell_of_it(void **state) {
    (void)state;
    struct heard heard;
    struct shmtrain_store *store = make_saving("threads", "2", &heard);
    WELL(store, shmtrain_store_set(store, "steps", "700"));
    WELL(store, shmtrain_store_train(store, DATA));
    shmtrain_store_destroy(store);
    store = make_saving("threads", "2", &heard);
    WELL(store, shmtrain_store_set(store, "resume", "1"));
    WELL(store, shmtrain_store_start_training(store, DATA));
    int rc;
    while ((rc = shmtrain_store_step(store)) == 1) {
        struct pollfd look = {.fd = shmtrain_store_fd(store), .events = POLLIN};
        (void)poll(&look, 1, 1000);
    }
    WELL(store, rc);
    assert_true(hash_of(store) == train_whole());
    assert_int_equal(heard.first_epoch, 3);
    assert_int_equal(heard.epochs, 2);
    assert_int_equal(heard.examples, 4 * 20000);
    assert_true(heard.after >= 1 && heard.before == heard.after);
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whoever_listens_hears_of_each_before_and_after, deadline, clean),
        cmocka_unit_test_setup_teardown(one_that_cannot_be_written_is_told_and_the_run_goes_on, deadline, clean),
        cmocka_unit_test_setup_teardown(own_worker_functions_go_on_too, deadline, clean),
        cmocka_unit_test_setup_teardown(what_is_due_while_nobody_looks_is_written_too, deadline, clean),
        cmocka_unit_test_setup_teardown(tables_that_are_others_are_refused, deadline, clean),
        cmocka_unit_test_setup_teardown(runs_in_the_background_go_on_and_tell_of_it, deadline, clean),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
