/* A program of today, for a library of tomorrow (tests/check_later): it goes through every kind of struct that crosses the
 * border, but for those of bench and drill, which take long, with something behind what is filled that must not change. Public
 * headers only. */
#include <math.h>
#include <poll.h>
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GUARD UINT64_C(0x5a5a5a5a5a5a5a5a)

/* What a call fills, and what lies behind it in this program. */
struct guarded {
    struct shmtrain_work work;
    uint64_t behind_work;
    struct shmtrain_fate fate;
    uint64_t behind_fate;
};

static int g_begun, g_epochs, g_failed;

static void check(int well, const char *what) {
    if (well) return;
    printf("FAILED: %s\n", what);
    g_failed = 1;
}

static int work(shmtrain_session *s, void *arg) {
    static const uint64_t start[] = {0, 1};
    static const uint32_t id[] = {1};
    const struct shmtrain_csr x = {.size = sizeof x, .n = 1, .start = start, .id = id};
    struct guarded g = {.behind_work = GUARD, .behind_fate = GUARD};
    const float slope = -1, one = -1;
    const uint32_t row = 0;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &g.work)) == 1) {
        for (uint64_t i = 0; i < g.work.n && rc == 1; i++) {
            if ((rc = shmtrain_push_rows(s, 0, &row, 1, &one)) < 0 || (rc = shmtrain_push_sparse(s, 0, &x, &slope)) < 0)
                return rc;
            rc = 1;
        }
        if ((rc = shmtrain_clock(s, &g.fate)) < 0) return rc;
        if (g.behind_work != GUARD || g.behind_fate != GUARD)
            return shmtrain_fail(s, SHMTRAIN_E_DATA, "the library has written behind a struct");
        if (g.work.size != sizeof g.work || g.fate.size != sizeof g.fate || g.fate.applied != g.work.n)
            return shmtrain_fail(s, SHMTRAIN_E_DATA, "work or fate is not filled");
    }
    return rc;
}

static void on_begin(void *arg, const struct shmtrain_report *so_far) { g_begun += so_far->workers == 2 && *(int *)arg == 7; }

static void on_epoch(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    g_epochs += epoch->epoch == so_far->n_epochs && &so_far->epoch[so_far->n_epochs - 1] == epoch && *(int *)arg == 7;
}

static int before_epoch(void *arg, shmtrain_session *s, uint32_t epoch) {
    (void)s, (void)epoch;
    return *(int *)arg == 7 ? 0 : SHMTRAIN_E_DATA;
}

/* Own functions, with a listener, hooks, and arrays of reports. */
static void run(struct shmtrain_store *store) {
    int seven = 7;
    const struct shmtrain_listener listener = {.size = sizeof listener, .arg = &seven, .begin = on_begin, .epoch = on_epoch};
    const struct shmtrain_hooks hooks = {.size = sizeof hooks, .arg = &seven, .before_epoch = before_epoch};
    float value[2] = {0, 0};
    check(shmtrain_store_listen(store, &listener) == 0 && shmtrain_store_hooks(store, &hooks) == 0, "listener and hooks");
    check(shmtrain_store_set(store, "workers", "2") == 0 && shmtrain_store_set(store, "epochs", "3") == 0, "options");
    check(shmtrain_store_set(store, "write", "atomic") == 0 && shmtrain_store_set(store, "replicas", "one") == 0 &&
              shmtrain_store_set(store, "rate", "1") == 0 && shmtrain_store_set(store, "schedule", "constant") == 0,
          "options");
    check(shmtrain_store_table(store, "t", 2, 1) == 0 && shmtrain_store_examples(store, 1000) == 0, "table");
    check(shmtrain_store_run(store, work, NULL) == 0, shmtrain_store_message(store));
    check(shmtrain_store_read(store, 0, 0, 2, value) == 0 && value[0] == 3000 && value[1] == 3000, "parameters");
    check(g_begun == 1 && g_epochs == 3, "the listener was called with what it expects");
    const struct shmtrain_report *r = shmtrain_store_report(store);
    check(r->size >= sizeof *r && r->n_epochs == 3 && r->n_workers == 2, "report");
    check(r->epoch[0].examples == 1000 && r->epoch[2].epoch == 3, "epochs stand where this program looks for them");
    check(r->worker[0].examples + r->worker[1].examples == 3000, "workers stand where this program looks for them");
    char *json = shmtrain_report_json(r);
    check(json && strstr(json, "\"examples\":3000"), "the report as JSON");
    free(json);
}

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)state;
    (void)with;
    out[0] = (struct shmtrain_shape){.name = "first", .rows = data->n_features, .width = 1};
    out[1] = (struct shmtrain_shape){.name = "second", .rows = 3, .width = 2};
    return 2;
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss) {
    const float grad[2] = {-(float)batch->n, 0};
    (void)pass;
    *loss = batch->data->label ? batch->n : NAN;
    return shmtrain_push(s, 1, 2, 1, grad);
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *out,
                 double *loss) {
    (void)s, (void)pass;
    for (uint32_t k = 0; k < batch->n; k++) out[k] = 0;
    *loss = batch->n;
    return 0;
}

/* A model with two tables, and what fills large structs. */
static void train(struct shmtrain_store *store) {
    const struct shmtrain_model model = {.size = sizeof model,
                                         .task = SHMTRAIN_REGRESSION,
                                         .name = "own",
                                         .about = "a test's",
                                         .loss = "loss",
                                         .tables = tables,
                                         .step = step,
                                         .score = score};
    static struct {
        struct shmtrain_data_info info;
        uint64_t behind;
    } of = {.behind = GUARD};
    const char *name;
    uint64_t rows, width;
    const struct shmtrain_evaluation *e;
    check(shmtrain_store_offer(store, &model) == 0 && shmtrain_store_set(store, "model", "own") == 0, "the model");
    check(shmtrain_store_set(store, "workers", "1") == 0, "options");
    check(shmtrain_store_train(store, "builtin:sparse:examples=500,features=20,nonzeros=3,valid=50") == 0,
          shmtrain_store_message(store));
    check(
        shmtrain_store_table_at(store, 1, &name, &rows, &width) == 0 && strcmp(name, "second") == 0 && rows == 3 && width == 2,
        "both tables are as the model has said");
    check(shmtrain_store_data_info(store, "builtin:sparse:examples=500,features=20,nonzeros=3,valid=50", &of.info) == 0,
          shmtrain_store_message(store));
    check(of.behind == GUARD && of.info.size == sizeof of.info && of.info.examples == 500, "what is known of the data");
    char *text = shmtrain_data_info_text("it", &of.info);
    check(text && strstr(text, "500"), "the same as text");
    free(text);
    check(shmtrain_store_evaluate(store, "builtin:sparse:examples=500,features=20,nonzeros=3,valid=50", &e) == 0 &&
              e->examples == 500 && strcmp(e->model, "own") == 0,
          "an evaluation");
}

/* ---- in the background: every event, validation, checkpoints, a snapshot ---- */

static int g_scored, g_progress, g_steps, g_checkpoints;

static int score_own(shmtrain_session *s, void *arg, uint64_t first, uint64_t n, double *loss, uint64_t *right) {
    (void)s, (void)first, (void)right;
    *loss = (double)n;
    return *(int *)arg == 7 ? 0 : SHMTRAIN_E_DATA;
}

static void on_epoch_behind(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)so_far;
    g_scored += epoch->valid_loss == 1 && *(int *)arg == 7;
}

static void on_progress(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    (void)arg;
    g_progress += now->n_workers == 2 && now->epochs == 1000000 && so_far->workers == 2 && now->worker[0].here == 1 &&
                  now->worker[1].here == 1;
}

static void on_steps(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_steps *steps) {
    (void)arg, (void)so_far;
    g_steps += steps->step >= 100 && steps->epochs == 1000000;
}

static void on_checkpoint(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_checkpoint *checkpoint) {
    (void)arg, (void)so_far;
    g_checkpoints += SHMTRAIN_HAS(checkpoint, failure) && strstr(checkpoint->path, "points/") && checkpoint->failure[0] == '\0';
}

static int wait_for_all(struct shmtrain_store *store) {
    int rc;
    do {
        struct pollfd readable = {.fd = shmtrain_store_fd(store), .events = POLLIN};
        (void)poll(&readable, 1, -1);
        rc = shmtrain_store_step(store);
        if (g_scored && g_progress && g_steps && g_checkpoints) shmtrain_store_stop(store);
    } while (rc == 1);
    return rc;
}

static void run_behind(struct shmtrain_store *store, struct shmtrain_store *into) {
    static const char *const OPTIONS[][2] = {{"workers", "2"},     {"epochs", "1000000"},    {"write", "atomic"},
                                             {"log-every", "100"}, {"checkpoint", "points"}, {"checkpoint-every", "50ms"}};
    int seven = 7;
    const struct shmtrain_listener listener = {.size = sizeof listener,
                                               .arg = &seven,
                                               .epoch = on_epoch_behind,
                                               .progress = on_progress,
                                               .steps = on_steps,
                                               .checkpoint = on_checkpoint};
    const struct shmtrain_validation validation = {
        .size = sizeof validation, .n_examples = 10, .score = score_own, .arg = &seven, .name = "own"};
    const struct shmtrain_progress *now;
    uint64_t step = 0;
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++)
        check(shmtrain_store_set(store, OPTIONS[i][0], OPTIONS[i][1]) == 0, shmtrain_store_message(store));
    check(shmtrain_store_listen(store, &listener) == 0 && shmtrain_store_validate(store, &validation) == 0, "validation");
    check(shmtrain_store_table(store, "t", 2, 1) == 0 && shmtrain_store_examples(store, 1000) == 0, "table");
    check(shmtrain_store_will_snapshot(store, 1) == 0, "a promise of snapshots");
    check(shmtrain_store_start(store, work, NULL) == 0, shmtrain_store_message(store));
    check(shmtrain_store_snapshot(store, into, INFINITY, &step) == 0, shmtrain_store_message(store));
    check(shmtrain_store_look(store, &now) == 1 && now->size >= sizeof *now, "a look");
    check(wait_for_all(store) == 0, shmtrain_store_message(store));
    check(g_scored > 0 && g_progress > 0 && g_steps > 0 && g_checkpoints > 0, "epochs, progress, steps and checkpoints");
    check(shmtrain_store_report(store)->valid.examples == 10, "the report of a run in the background");
}

/* ---- data in memory, a stream, files, and what is lent as a whole ---- */

static int take(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    *(int *)arg += example == 0 && isfinite(label) && isfinite(output[0]) && n == 1;
    return 0;
}

static void use_model(struct shmtrain_store *store, struct shmtrain_store *second) {
    static const float rows[] = {1, 0, 0, 1}, labels[] = {1, -1};
    float label[3] = {0, 0, 5};
    int taken = 0, ends[2];
    struct shmtrain_checkup *checkup;
    const struct shmtrain_plan *plan;
    static struct {
        struct shmtrain_file_info info;
        uint64_t behind;
    } of = {.behind = GUARD};
    const struct shmtrain_arrays arrays = {
        .size = sizeof arrays, .borrowed = 1, .n_examples = 2, .n_features = 2, .dense = rows, .label = labels};
    const struct shmtrain_predictions into = {.size = sizeof into, .n_examples = 2, .label = label};
    check(shmtrain_store_arrays(store, "two", &arrays) == 0, shmtrain_store_message(store));
    check(shmtrain_store_train(store, "arrays:two") == 0, shmtrain_store_message(store));
    check(shmtrain_store_predict_into(store, "arrays:two", &into) == 0, shmtrain_store_message(store));
    check(fabsf(label[0]) == 1 && fabsf(label[1]) == 1 && label[2] == 5, "predictions in arrays");
    check(shmtrain_store_plan(store, "arrays:two", &plan) == 0 && plan->n_workers >= 1 && plan->n_shards >= 1 &&
              strcmp(plan->data, "arrays:two") == 0 && plan->shard[0].n > 0,
          "a plan");
    check(pipe(ends) == 0 && write(ends[1], "1 1:1\n", 6) == 6 && close(ends[1]) == 0, "a pipe");
    const struct shmtrain_stream stream = {.size = sizeof stream, .fd = ends[0], .name = "pipe"};
    check(shmtrain_store_predict_stream(store, &stream, 0, take, &taken) == 0 && taken == 1, shmtrain_store_message(store));
    (void)close(ends[0]);
    check(shmtrain_store_save(store, "model") == 0, shmtrain_store_message(store));
    check(shmtrain_store_inspect(second, "model", &of.info) == 0, shmtrain_store_message(second));
    check(of.behind == GUARD && of.info.size == sizeof of.info && strcmp(of.info.model, "logistic") == 0 &&
              of.info.n_tensors == 1,
          "what is in a file");
    check(shmtrain_doctor(&checkup, NULL, 0) == 0 && checkup->n >= 1 && checkup->finding[0].subject[0] != '\0', "a checkup");
    free(checkup);
}

/* Files are made in a folder of its own. */
static void with_files(void) {
    char folder[] = "/tmp/later.XXXXXX", command[64];
    struct shmtrain_store *behind, *into, *model;
    if (!mkdtemp(folder) || chdir(folder) < 0 || shmtrain_store_create(&behind) < 0 || shmtrain_store_create(&into) < 0 ||
        shmtrain_store_create(&model) < 0) {
        check(0, "a folder, and stores");
        return;
    }
    run_behind(behind, into);
    use_model(model, into);
    shmtrain_store_destroy(behind);
    shmtrain_store_destroy(into);
    shmtrain_store_destroy(model);
    snprintf(command, sizeof command, "rm -r %s", folder);
    check(system(command) == 0, "the folder goes");
}

int main(int argc, char **argv) {
    struct shmtrain_store *store, *second;
    if (argc > 1 && strcmp(argv[1], "--sizes") == 0) {
        printf("%zu %zu %zu\n", sizeof(struct shmtrain_work), sizeof(struct shmtrain_report), sizeof(struct shmtrain_model));
        return 0;
    }
    if (shmtrain_store_create(&store) < 0 || shmtrain_store_create(&second) < 0) return EXIT_FAILURE;
    run(store);
    train(second);
    with_files();
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(second);
    return g_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
