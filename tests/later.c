/* A program of today, for a library of tomorrow (tests/check_later): it goes through every kind of struct that crosses the
 * border, with something behind each that must not change. Public headers only. */
#include <math.h>
#include <shmtrain/shmtrain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, struct shmtrain_shape *out) {
    (void)with;
    out[0] = (struct shmtrain_shape){.name = "first", .rows = data->n_features, .width = 1};
    out[1] = (struct shmtrain_shape){.name = "second", .rows = 3, .width = 2};
    return 2;
}

static int step(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with, double *loss) {
    const float grad[2] = {-(float)batch->n, 0};
    (void)with;
    *loss = batch->data->label ? batch->n : NAN;
    return shmtrain_push(s, 1, 2, 1, grad);
}

static int score(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with, float *out,
                 double *loss) {
    (void)s, (void)with;
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

int main(int argc, char **argv) {
    struct shmtrain_store *store, *second;
    if (argc > 1 && strcmp(argv[1], "--sizes") == 0) {
        printf("%zu %zu %zu\n", sizeof(struct shmtrain_work), sizeof(struct shmtrain_report), sizeof(struct shmtrain_model));
        return 0;
    }
    if (shmtrain_store_create(&store) < 0 || shmtrain_store_create(&second) < 0) return EXIT_FAILURE;
    run(store);
    train(second);
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(second);
    return g_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
