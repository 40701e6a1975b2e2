/* Structs that the library makes and lends: each begins with its size (<shmtrain/status.h>), in every function of the application
 * that gets one, and in what calls give, in runs that block and in those of event loops. Those of bench and drill, which take
 * long to make, are left out. */
#include "api_help.h"
#include "folder_help.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#define DATA "builtin:sparse:examples=500,features=20,nonzeros=3,valid=50"

/* Seen by workers that are processes, too. */
enum kind { REPORT, PROGRESS, STEPS, CHECKPOINT, SETTINGS, BATCH, DATA_OF_MODEL, SHAPE, KINDS };
static const char *const NAMES[] = {"report", "progress", "steps", "checkpoint", "settings", "batch", "data", "shape"};
static struct { atomic_uint seen[KINDS], bad[KINDS]; } * g_lent;

static void lent(enum kind kind, bool good) {
    g_lent->seen[kind]++;
    g_lent->bad[kind] += !good;
}

/* ---- what workers and models are lent ---- */

static void lent_settings(const struct shmtrain_settings *with) {
    lent(SETTINGS, with->size == sizeof *with && SHMTRAIN_HAS(with, classes));
}

static void lent_data(const struct shmtrain_data *data) { lent(DATA_OF_MODEL, data->size == sizeof *data); }

static void lent_batch(const struct shmtrain_batch *batch) {
    lent(BATCH, batch->size == sizeof *batch);
    lent_data(batch->data);
}

static const char *check(const struct shmtrain_data *data) {
    lent_data(data);
    return NULL;
}

/* Who does not name a member leaves it as it is: the reserved ones must be 0 then. */
static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)state;
    static const struct shmtrain_shape NOTHING[SHMTRAIN_MODEL_TABLES];
    lent_data(data);
    lent_settings(with);
    lent(SHAPE, memcmp(out, NOTHING, sizeof NOTHING) == 0);
    out[0].name = "row";
    out[0].rows = out[0].width = out[0].l2_rows = 1;
    return 1;
}

static void begin(const struct shmtrain_batch *train, const struct shmtrain_settings *with, const void *state, uint32_t t,
                  float *value) {
    (void)state;
    (void)t, (void)value;
    lent_batch(train);
    lent_settings(with);
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss) {
    const float grad = 0;
    lent_batch(batch);
    lent_settings(pass->with);
    *loss = batch->n;
    return shmtrain_push(s, 0, 0, 1, &grad);
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *out,
                 double *loss) {
    (void)s;
    lent_batch(batch);
    lent_settings(pass->with);
    for (uint32_t k = 0; k < batch->n; k++) out[k] = 0;
    *loss = batch->n;
    return 0;
}

static const struct shmtrain_model OWN = {.size = sizeof(struct shmtrain_model),
                                          .task = SHMTRAIN_REGRESSION,
                                          .name = "own",
                                          .about = "a test's",
                                          .loss = "loss",
                                          .check = check,
                                          .tables = tables,
                                          .begin = begin,
                                          .traits.curvature = 1,
                                          .step = step,
                                          .score = score};

/* ---- what the application is lent ---- */

static void lent_report(const struct shmtrain_report *report) { lent(REPORT, report->size == sizeof *report); }

static void hear_begin(void *arg, const struct shmtrain_report *so_far) {
    (void)arg;
    lent_report(so_far);
}

static void hear_epoch(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)arg, (void)epoch;
    lent_report(so_far);
}

static void hear_progress(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    bool all = true;
    lent_report(so_far);
    lent(PROGRESS, now->size == sizeof *now);
    for (int i = 0; i < KINDS; i++) all &= g_lent->seen[i] > 0;
    if (all) shmtrain_store_stop(arg);
}

static void hear_steps(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_steps *steps) {
    (void)arg;
    lent_report(so_far);
    lent(STEPS, steps->size == sizeof *steps);
}

static void hear_checkpoint(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_checkpoint *checkpoint) {
    (void)arg;
    lent_report(so_far);
    lent(CHECKPOINT, checkpoint->size == sizeof *checkpoint && SHMTRAIN_HAS(checkpoint, failure));
    assert_non_null(strstr(checkpoint->path, "points/"));
    assert_string_equal(checkpoint->failure, "");
}

static struct shmtrain_store *open_own(const char *spawn) {
    const char *const options[][2] = {{"model", "own"}, {"spawn", spawn},         {"workers", "2"},
                                      {"mode", "sync"}, {"epochs", "1000000"},    {"log-every", "10"},
                                      {"batch", "64"},  {"checkpoint", "points"}, {"checkpoint-every", "20 steps"}};
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, &OWN));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        WELL(store, shmtrain_store_set(store, options[i][0], options[i][1]));
    const struct shmtrain_listener listener = {.size = sizeof listener,
                                               .arg = store,
                                               .begin = hear_begin,
                                               .epoch = hear_epoch,
                                               .progress = hear_progress,
                                               .steps = hear_steps,
                                               .checkpoint = hear_checkpoint};
    WELL(store, shmtrain_store_listen(store, &listener));
    return store;
}

static void look(struct shmtrain_store *store) {
    const struct shmtrain_progress *now;
    WELL(store, shmtrain_store_look(store, &now));
    lent(PROGRESS, now->size == sizeof *now);
    lent_report(shmtrain_store_report(store));
}

static int train(struct shmtrain_store *store, bool background) {
    int rc;
    if (!background) return shmtrain_store_train(store, DATA);
    WELL(store, shmtrain_store_start_training(store, DATA));
    do {
        struct pollfd readable = {.fd = shmtrain_store_fd(store), .events = POLLIN};
        (void)poll(&readable, 1, -1);
        look(store);
    } while ((rc = shmtrain_store_step(store)) == 1);
    return rc;
}

static int use(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    (void)arg, (void)example, (void)label, (void)output, (void)n;
    return 0;
}

static void what_is_lent_begins_with_its_size(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct shmtrain_evaluation *evaluation;
        const struct shmtrain_plan *plan;
        struct shmtrain_store *store = open_own(SPAWNS[i % 2]);
        memset(g_lent, 0, sizeof *g_lent);
        lent_report(shmtrain_store_report(store));
        WELL(store, train(store, i / 2));
        look(store);
        WELL(store, shmtrain_store_evaluate(store, DATA, &evaluation));
        assert_int_equal(evaluation->size, sizeof *evaluation);
        WELL(store, shmtrain_store_predict(store, DATA, 0, use, NULL));
        WELL(store, shmtrain_store_plan(store, DATA, &plan));
        assert_int_equal(plan->size, sizeof *plan);
        WELL(store, shmtrain_store_save(store, "own"));
        WELL(store, shmtrain_store_load(store, "own"));
        shmtrain_store_destroy(store);
        for (int kind = 0; kind < KINDS; kind++)
            if (g_lent->seen[kind] == 0 || g_lent->bad[kind] > 0)
                fail_msg("%s: %u lent, %u with a wrong size", NAMES[kind], g_lent->seen[kind], g_lent->bad[kind]);
        assert_int_equal(system("rm -r points"), 0);
    }
}

static void a_checkup_begins_with_its_size(void **state) {
    struct shmtrain_checkup *checkup;
    (void)state;
    assert_int_equal(shmtrain_doctor(&checkup, NULL, 0), 0);
    assert_int_equal(checkup->size, sizeof *checkup);
    free(checkup);
}

static int prepare(void **state) {
    g_lent = mmap(NULL, sizeof *g_lent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return g_lent == MAP_FAILED ? -1 : make_folder(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_lent_begins_with_its_size, deadline),
        cmocka_unit_test_setup(a_checkup_begins_with_its_size, deadline),
    };
    return cmocka_run_group_tests(tests, prepare, remove_folder);
}
