/* Tests of training where the system gives less: where it refuses binding, as containers do, where /dev/shm is small, and
 * where memory is limited. Training goes on with a line where that is possible, and is refused with figures where it is not;
 * nothing is killed. Each in a process of its own. */
#include "api_help.h"
#include "real_group.h"
#include "refuse.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "segment/budget.h"

#define MIB    ((uint64_t)1 << 20)
#define LITTLE "builtin:sparse:examples=2000,features=10000,nonzeros=5"
#define SKIPS  77

static char notes[1024];
static char wide[256]; /* a file with so many features that their parameters and state take 114 MiB and more */

static void note(void *arg, const char *line) {
    (void)arg;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", line);
}

/* Trains for an epoch and returns its status; the sentence is in `message`. */
static int train(const char *data, const char *name, char *message, size_t bytes) {
    static const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = note};
    struct shmtrain_store *store;
    notes[0] = '\0';
    if (shmtrain_store_create(&store) != 0) return SHMTRAIN_E_MEMORY;
    shmtrain_store_listen(store, &listener);
    int rc = shmtrain_store_set(store, "workers", "2");
    if (rc == 0) rc = shmtrain_store_set(store, "epochs", "1");
    if (rc == 0) rc = shmtrain_store_set(store, "valid", "none");
    if (rc == 0) rc = shmtrain_store_set(store, "optimizer", "adam"); /* two words of state for each parameter */
    if (rc == 0) rc = shmtrain_store_set(store, "name", name);
    if (rc == 0) rc = shmtrain_store_train(store, data);
    snprintf(message, bytes, "%s", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    if (rc < 0) print_message("%s\n", message);
    return rc;
}

static void in_process(int (*body)(void)) {
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(100);
        _exit(body());
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) fail_msg("killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == SKIPS)
        skip();
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- binding ---- */

static int trains_unbound(void) {
    char message[512];
    cpu_set_t before, after;
    if (sched_getaffinity(0, sizeof before, &before) != 0) return 1;
    if (!refuse_binding()) {
        print_message("skipped: the system has no filters for system calls\n");
        return SKIPS;
    }
    if (train(LITTLE, "", message, sizeof message) != 0) return 2;
    print_message("%s", notes);
    if (CPU_COUNT(&before) < 2) return notes[0] == '\0' ? 0 : 3; /* more workers than processors are not bound anyway */
    static const char LINE[] = "workers run unbound, because the system refuses to bind threads to processors: ";
    const char *first = strstr(notes, LINE);
    if (!first || strstr(first + 1, LINE)) return 4; /* once */
    return sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&before, &after) ? 0 : 5;
}

static void where_binding_is_refused_training_continues_with_a_line(void **state) {
    (void)state;
    in_process(trains_unbound);
}

/* ---- /dev/shm ---- */

/* A file system of this process's own; 0 where that may not be. */
static int make_small_dev_shm(void) {
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0)
        return 1;
    print_message("skipped: a /dev/shm of its own may not be made: %s\n", strerror(errno));
    return 0;
}

static int trains_beside_small_dev_shm(void) {
    char message[512], name[64];
    snprintf(name, sizeof name, "limits-%d", (int)getpid());
    if (!make_small_dev_shm()) return SKIPS;
    if (train(wide, name, message, sizeof message) != SHMTRAIN_E_MEMORY) return 1;
    if (!strstr(message, "/dev/shm has 64.0 MiB, ") || !strstr(message, " and a named store needs ") ||
        !strstr(message, "docker --shm-size), or train without --name"))
        return 2;
    if (access("/dev/shm", F_OK) != 0 || system("test -z \"$(ls -A /dev/shm)\"") != 0) return 3; /* nothing is left there */
    if (train(wide, "", message, sizeof message) != 0) return 4; /* memory without a name does not come from there */
    if (train(LITTLE, name, message, sizeof message) != 0) return 5;
    return 0;
}

static void a_small_dev_shm_concerns_named_stores_only(void **state) {
    (void)state;
    in_process(trains_beside_small_dev_shm);
}

/* ---- memory ---- */

static int trains_in_group(const struct real_group *real) {
    char message[512];
    if (train(wide, "", message, sizeof message) != SHMTRAIN_E_MEMORY) return 1;
    if (!strstr(message, "training needs ") || !strstr(message, " but the memory limit of control group ")) return 2;
    if (!strstr(message, strrchr(real->group.dir, '/'))) return 3;
    return train(LITTLE, "", message, sizeof message) == 0 ? 0 : 4;
}

static void a_v1_group_that_is_too_small_refuses_with_figures(void **state) {
    (void)state;
    in_real_group(1, 100 * MIB, trains_in_group);
}

static void a_v2_group_that_is_too_small_refuses_with_figures(void **state) {
    (void)state;
    in_real_group(2, 100 * MIB, trains_in_group);
}

/* A model whose second table is most of what there is, and is given values to begin with: so there are two of it for a
 * while. */
static uint64_t most_floats;
static struct shmtrain_store *the_store;

static uint32_t broad_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                             struct shmtrain_shape *out) {
    (void)state;
    (void)data, (void)with;
    out[0] = (struct shmtrain_shape){.name = "small", .rows = 1, .width = 1};
    out[1] = (struct shmtrain_shape){.name = "large", .rows = most_floats, .width = 1};
    return 2;
}

static void broad_begin(const struct shmtrain_batch *all, const struct shmtrain_settings *with, const void *state, uint32_t t,
                        float *value) {
    (void)state;
    (void)all, (void)with, (void)t, (void)value;
    shmtrain_store_stop(the_store);
}

static int broad_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                      double *loss_out) {
    (void)s, (void)batch, (void)pass->with, (void)loss_out;
    return SHMTRAIN_E_USAGE;
}

static int broad_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                       float *score_out, double *loss_out) {
    (void)score_out;
    return broad_step(s, pass, batch, loss_out);
}

static void what_a_model_begins_with_counts_in_all_its_tables(void **state) {
    static const struct shmtrain_model BROAD = {.size = sizeof(struct shmtrain_model),
                                                .name = "broad",
                                                .about = "one small table and one large",
                                                .task = SHMTRAIN_REGRESSION,
                                                .loss = "nothing",
                                                .tables = broad_tables,
                                                .begin = broad_begin,
                                                .step = broad_step,
                                                .score = broad_score};
    struct shmt_budget budget;
    (void)state;
    shmt_budget_read("", &budget);
    most_floats = budget.available_bytes / 10 * 6 / sizeof(float);
    assert_int_equal(shmtrain_store_create(&the_store), 0);
    WELL(the_store, shmtrain_store_offer(the_store, &BROAD));
    WELL(the_store, shmtrain_store_set(the_store, "model", "broad"));
    WELL(the_store, shmtrain_store_set(the_store, "workers", "1"));
    WELL(the_store, shmtrain_store_set(the_store, "valid", "none"));
    refused(the_store, shmtrain_store_train(the_store, LITTLE), SHMTRAIN_E_MEMORY, "training needs ");
    shmtrain_store_destroy(the_store);
}

static int limit(int resource, uint64_t bytes) {
    const struct rlimit value = {bytes, bytes};
    return setrlimit(resource, &value) == 0;
}

static int trains_in_little_address_space(void) {
    char message[512];
    unsigned long pages;
    FILE *f = fopen("/proc/self/statm", "re"); /* the limit is relative to what we have: a sanitizer has terabytes */
    if (!f || fscanf(f, "%lu", &pages) != 1) return 1;
    fclose(f);
    if (!limit(RLIMIT_AS, pages * (uint64_t)sysconf(_SC_PAGESIZE) + 90 * MIB)) return 2;
    if (train(wide, "", message, sizeof message) != SHMTRAIN_E_MEMORY) return 3;
    return train(LITTLE, "", message, sizeof message) == 0 ? 0 : 4;
}

static void a_small_address_space_refuses_what_is_too_large(void **state) {
    (void)state;
    in_process(trains_in_little_address_space);
}

static int trains_with_small_files(void) {
    char message[512];
    if (!limit(RLIMIT_FSIZE, 64 * MIB)) return 1;
    if (train(wide, "", message, sizeof message) != SHMTRAIN_E_MEMORY) return 2;
    if (!strstr(message, "files of this process are limited to 64.0 MiB: raise the limit (ulimit -f)")) return 3;
    return train(LITTLE, "", message, sizeof message) == 0 ? 0 : 4;
}

static void a_limit_for_files_refuses_without_a_signal(void **state) {
    (void)state;
    in_process(trains_with_small_files);
}

/* Ids up to ten million, and for each four of them a nonzero: with fewer, only the ids that occur would get parameters. */
static int make_wide(void **state) {
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(wide, sizeof wide, "%s/shmtrain-limits-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    const int fd = mkstemp(wide);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) return -1;
    for (int i = 0; i < 300000; i++) fprintf(f, "%d 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1\n", i % 2);
    fprintf(f, "1 10000000:1\n");
    return fclose(f);
}

static int remove_wide(void **state) {
    (void)state;
    return unlink(wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_binding_is_refused_training_continues_with_a_line),
        cmocka_unit_test(a_small_dev_shm_concerns_named_stores_only),
        cmocka_unit_test(a_v1_group_that_is_too_small_refuses_with_figures),
        cmocka_unit_test(a_v2_group_that_is_too_small_refuses_with_figures),
        cmocka_unit_test(what_a_model_begins_with_counts_in_all_its_tables),
        cmocka_unit_test(a_small_address_space_refuses_what_is_too_large),
        cmocka_unit_test(a_limit_for_files_refuses_without_a_signal),
    };
    return cmocka_run_group_tests_name("limits", tests, make_wide, remove_wide);
}
