/* train: the body of one worker, and the evaluation at the end of an epoch, against figures that were added up plainly. The
 * model is the test's own: its scores and losses are functions of the example, so all that is printed is known beforehand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/plain.h"
#include "backends/shm/shm.h"
#include "base/random.h"
#include "models/models.h"
#include "runtime/team.h"
#include "train/job.h"

enum { N_TRAIN = 640, N_VALID = 2500, EPOCHS = 3 };

static int deadline(void **state) {
    (void)state;
    alarm(120);
    return 0;
}

/* ---- a model whose answers are known ---- */

static float g_label[N_VALID], g_train_label[N_TRAIN];
static uint32_t g_backwards[N_VALID];

static float score_of(uint64_t i) { /* many ties, and right more often than not */
    return (float)((int)shmt_below(shmt_hash64(1, i, 0, 0), 41) - 20 + (g_label[i] > 0 ? 6 : -6)) / 4;
}
static double loss_of(uint64_t i) { return shmt_unit(shmt_hash64(2, i, 0, 0)) * 1e3 + 1e-9 * (double)i; }

static uint32_t one_table(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                          struct shmtrain_shape *out) {
    (void)state;
    (void)data;
    (void)with;
    out[0] = (struct shmtrain_shape){.name = "t", .rows = 1, .width = 1, .l2_rows = 1};
    return 1;
}

static uint64_t at(const struct shmtrain_batch *batch, uint32_t k) {
    return batch->example ? batch->example[k] : batch->first + k;
}

/* The loss of an example is its number; the one table counts the examples. */
static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    const float grad = -(float)batch->n;
    double loss = 0;
    (void)pass;
    for (uint32_t k = 0; k < batch->n; k++) loss += (double)at(batch, k);
    *loss_out = loss;
    return shmtrain_push(s, 0, 0, 1, &grad);
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    double loss = 0;
    (void)s;
    (void)pass;
    if (batch->n == 0 || batch->n > SHMTRAIN_MODEL_GROUP) return SHMTRAIN_E_USAGE;
    for (uint32_t k = 0; k < batch->n; k++) {
        score_out[k] = score_of(at(batch, k));
        loss += loss_of(at(batch, k));
    }
    *loss_out = loss;
    return 0;
}

static const struct shmtrain_model KNOWN = {.size = sizeof(struct shmtrain_model),
                                            .name = "known",
                                            .about = "for this test",
                                            .tables = one_table,
                                            .step = step,
                                            .score = score,
                                            .threshold = 0.25f};

/* ---- running jobs ---- */

struct run {
    struct shmt_job job;
    struct shmt_spec spec;
    struct shmtrain_data train, valid;
    _Atomic uint64_t told; /* how often the chief has told the application */
    uint32_t n_valid;
};

static void tell(void *arg) { bump_relaxed(&((struct run *)arg)->told, 1); }

static void prepare(struct run *r, uint32_t n_seats, uint32_t n_valid) {
    for (uint32_t i = 0; i < N_VALID; i++) {
        g_label[i] = shmt_hash64(3, i, 0, 0) % 3 ? 1.0f : -1.0f;
        g_backwards[i] = N_VALID - 1 - i;
    }
    *r = (struct run){.train = {.n_examples = N_TRAIN, .label = g_train_label, .label_low = -1, .label_high = 1},
                      .valid = {.n_examples = N_VALID, .label = g_label, .label_low = -1, .label_high = 1},
                      .n_valid = n_valid};
    r->spec = (struct shmt_spec){.n_seats = n_seats,
                                 .n_workers = n_seats,
                                 .n_examples = N_TRAIN,
                                 .epochs = EPOCHS,
                                 .max_steps = SHMT_NO_LIMIT,
                                 .policy = {.write = SHMT_WRITE_AGGREGATE, .staleness = 0},
                                 .batch = 64,
                                 .n_chunks = 8,
                                 .item = 16,
                                 .order = {.seed = 1, .n_examples = N_TRAIN, .shuffle = true},
                                 .rate = {.base = 0.5f, .kind = SHMT_RATE_CONSTANT},
                                 .n_tables = 1,
                                 .table = {{.name = "t", .rows = 1, .width = 1}},
                                 .l2_rows = {1}};
    r->job = (struct shmt_job){.backend = &SHMT_BACKEND_SHM,
                               .spec = &r->spec,
                               .model = &KNOWN,
                               .opened = {.model = &KNOWN},
                               .settings = {.group = 64},
                               .train = &r->train,
                               .valid = n_valid ? &r->valid : NULL,
                               .valid_label = g_label,
                               .notify = tell,
                               .notify_arg = r};
    shmt_board_plan(EPOCHS, n_valid, 1, &r->job.board);
    r->spec.board_bytes = r->job.board.bytes;
}

static int seat(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    (void)team;
    return shmt_job_work(arg, rank, 0, e);
}
static void wake(void *arg) { ((struct shmt_job *)arg)->backend->store->wake(((struct shmt_job *)arg)->store); }

/* The store stays, for whoever looks at its board; destroy it afterwards. */
static int run_job(struct run *r, struct shmt_error *e) {
    assert_int_equal(r->job.backend->create(&r->spec, NULL, &r->job.store, e), 0);
    const struct shmt_team_spec team = {.kind = &SHMT_TEAM_THREADS,
                                        .n = r->spec.n_seats,
                                        .body = seat,
                                        .arg = &r->job,
                                        .abort = r->job.backend->store->abort_word(r->job.store),
                                        .on_abort = wake,
                                        .what = "testing"};
    return shmt_team_run(&team, e);
}

static void run_well(struct run *r, struct shmtrain_epoch out[EPOCHS]) {
    struct shmt_error e = {0};
    const int rc = run_job(r, &e);
    if (rc != 0) fail_msg("%s", e.text);
    void *board = shmt_array_at(r->job.backend, r->job.store, SHMT_ARRAY_BOARD);
    assert_int_equal(load_acquire(&((struct shmt_board *)board)->epochs_done), EPOCHS);
    memcpy(out, shmt_board_epochs(board, &r->job.board), EPOCHS * sizeof *out);
    r->job.backend->store->destroy(r->job.store);
}

static void fails_with(struct run *r, int status, const char *sentence) {
    struct shmt_error e = {0};
    assert_int_equal(run_job(r, &e), status);
    assert_string_equal(e.text, sentence);
    r->job.backend->store->destroy(r->job.store);
}

/* ---- time ---- */

static _Atomic int g_others_work; /* somebody else than the chief is in its first step */

static int note_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                     double *loss_out) {
    if (shmtrain_rank(s) != 0) store_relaxed(&g_others_work, 1);
    return step(s, pass, batch, loss_out);
}

/* Behind its first meeting the chief does not get a processor before the other one has worked for a while. */
static int meet_late(struct shmt_seat *seat) {
    static int n_meetings_of_chief;
    const int rc = SHMT_BACKEND_SHM.seat->meet(seat);
    if (rc < 0 || seat->rank != 0 || n_meetings_of_chief++ > 0) return rc;
    while (!load_relaxed(&g_others_work)) usleep(1000);
    usleep(50000);
    return rc;
}

static void an_epoch_begins_with_the_first_worker_not_with_the_chief(void **state) {
    struct run r;
    struct shmtrain_epoch got[EPOCHS];
    struct shmtrain_model model = KNOWN;
    struct shmt_seat_ops seat = *SHMT_BACKEND_SHM.seat;
    struct shmt_backend backend = SHMT_BACKEND_SHM;
    (void)state;
    prepare(&r, 2, 0);
    model.step = note_step;
    seat.meet = meet_late;
    backend.seat = &seat;
    r.job.model = &model;
    r.job.backend = &backend;
    run_well(&r, got);
    assert_true(got[0].seconds >= 0.05); /* the chief slept as long while the epoch went on */
}

/* ---- evaluation ---- */

/* Over pairs: how often the one with the larger label has the higher score; a tie counts one half. */
static double plain_auc(const uint32_t *example, uint32_t n) {
    uint64_t halves = 0, pairs = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            if (g_label[example[i]] < 0 || g_label[example[j]] > 0) continue;
            const float a = score_of(example[i]), b = score_of(example[j]);
            halves += a > b ? 2 : a == b;
            pairs++;
        }
    return (double)halves / 2 / (double)pairs;
}

static void validation_is_right_and_has_the_same_bits_for_every_number_of_seats(void **state) {
    static const uint32_t SIZES[] = {1, 63, 64, 65, 1024, 1025, N_VALID};
    struct shmtrain_epoch first[EPOCHS], epoch[EPOCHS];
    (void)state;
    for (size_t size = 0; size < sizeof SIZES / sizeof *SIZES; size++)
        for (uint32_t seats = 1; seats <= 8; seats++) {
            const uint32_t n = SIZES[size];
            struct run r;
            prepare(&r, seats, n);
            r.job.valid_example = g_backwards; /* the last n examples, from the end: labels in that order, too */
            float label[N_VALID];
            double loss = 0;
            uint64_t right = 0;
            for (uint32_t i = 0; i < n; i++) {
                label[i] = g_label[g_backwards[i]];
                loss += loss_of(g_backwards[i]);
                right += (score_of(g_backwards[i]) > 0.25f) == (label[i] > 0);
            }
            r.job.valid_label = label;
            run_well(&r, epoch);
            for (int i = 0; i < EPOCHS; i++) {
                epoch[i].seconds = 0;
                assert_int_equal(epoch[i].epoch, i + 1);
                assert_int_equal(epoch[i].partial, 0);
                assert_int_equal(epoch[i].examples, N_TRAIN);
                assert_true(epoch[i].train_loss == (N_TRAIN - 1) / 2.0);         /* numbers of examples: exact */
                assert_true(fabs(epoch[i].valid_loss / (loss / n) - 1) < 1e-13); /* another order of adding doubles */
                assert_true(epoch[i].valid_accuracy == (double)right / n);
            }
            assert_int_equal(load_relaxed(&r.told), EPOCHS);
            if (seats == 1) {
                memcpy(first, epoch, sizeof first);
                const double auc = n == 1 ? NAN : plain_auc(g_backwards, n);
                assert_true(n == 1 ? isnan(epoch[0].valid_auc) : fabs(epoch[0].valid_auc - auc) < 1e-15);
            }
            assert_memory_equal(epoch, first, sizeof first);
        }
}

static void without_validation_data_its_figures_are_not_there(void **state) {
    struct shmtrain_epoch epoch[EPOCHS];
    struct run r;
    (void)state;
    prepare(&r, 3, 0);
    run_well(&r, epoch);
    for (int i = 0; i < EPOCHS; i++) {
        assert_true(epoch[i].train_loss == (N_TRAIN - 1) / 2.0);
        assert_true(isnan(epoch[i].valid_loss) && isnan(epoch[i].valid_accuracy) && isnan(epoch[i].valid_auc));
    }
}

static void a_model_that_does_not_classify_has_a_loss_only(void **state) {
    struct shmtrain_model regression = KNOWN;
    struct shmtrain_epoch epoch[EPOCHS];
    struct run r;
    (void)state;
    regression.task = SHMTRAIN_REGRESSION;
    prepare(&r, 2, 100);
    r.job.model = &regression;
    run_well(&r, epoch);
    assert_true(isfinite(epoch[0].valid_loss) && isnan(epoch[0].valid_accuracy) && isnan(epoch[0].valid_auc));
}

/* Three outputs: the largest one is at the place of a class that follows from the example, with ties in which the first
 * counts. */
static const float CLASSES[] = {-7, 2, 30};
static uint32_t class_of(uint64_t i) { return (uint32_t)shmt_below(shmt_hash64(5, i, 0, 0), 3); }
static int score_classes(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                         float *score_out, double *loss_out) {
    const int rc = score(s, pass, batch, score_out, loss_out);
    for (uint32_t k = 0; k < batch->n; k++)
        for (uint32_t c = 0; c < 3; c++) score_out[3 * k + c] = c < class_of(at(batch, k)) ? -2.0f : -1.0f;
    return rc;
}

static void of_several_classes_the_one_with_the_largest_output_is_predicted(void **state) {
    struct shmtrain_model classes = KNOWN;
    struct shmtrain_epoch first[EPOCHS], epoch[EPOCHS];
    float label[N_VALID];
    uint64_t right = 0;
    (void)state;
    classes.task = SHMTRAIN_CLASSES;
    classes.score = score_classes;
    for (uint32_t i = 0; i < N_VALID; i++) {
        label[i] = CLASSES[shmt_below(shmt_hash64(6, i, 0, 0), 4) ? class_of(i) : 2];
        right += label[i] == CLASSES[class_of(i)];
    }
    for (uint32_t seats = 1; seats <= 3; seats++) {
        struct run r;
        prepare(&r, seats, N_VALID);
        r.job.model = &classes;
        r.job.settings.n_classes = 3;
        r.job.settings.classes = CLASSES;
        r.job.valid_label = label;
        shmt_board_plan(EPOCHS, N_VALID, 3, &r.job.board);
        r.spec.board_bytes = r.job.board.bytes;
        run_well(&r, epoch);
        assert_true(right > N_VALID / 2 && right < N_VALID);
        assert_true(epoch[0].valid_accuracy == (double)right / N_VALID && isnan(epoch[0].valid_auc));
        if (seats == 1) memcpy(first, epoch, sizeof first);
        assert_true(epoch[1].valid_loss == first[1].valid_loss);
    }
}

static void only_the_examples_that_are_meant_are_trained_on(void **state) {
    struct shmtrain_epoch epoch[EPOCHS];
    uint32_t third[N_TRAIN];
    struct run r;
    (void)state;
    for (uint32_t i = 0; i < N_TRAIN; i++) third[i] = 3 * i + 1;
    for (int live = 0; live < 2; live++) {
        prepare(&r, 3, 0);
        if (live) r.spec.policy = (struct shmt_policy){.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF};
        r.job.train_example = third;
        run_well(&r, epoch);
        for (int i = 0; i < EPOCHS; i++) assert_true(epoch[i].train_loss == 3 * (N_TRAIN - 1) / 2.0 + 1);
    }
}

/* ---- what is refused ---- */

static double g_bad_loss;
static int lose(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    const int rc = step(s, pass, batch, loss_out);
    for (uint32_t k = 0; k < batch->n; k++)
        if (at(batch, k) == 77 && shmtrain_global_step(s) >= 10) *loss_out = g_bad_loss; /* in the second epoch */
    return rc;
}

static void a_loss_that_is_no_number_ends_the_run_with_what_to_do(void **state) {
    struct shmtrain_model bad = KNOWN;
    struct run r;
    (void)state;
    bad.step = lose;
    for (uint32_t seats = 1; seats <= 3; seats++) {
        prepare(&r, seats, 0);
        r.job.model = &bad;
        g_bad_loss = NAN;
        fails_with(&r, SHMTRAIN_E_NUMBERS,
                   "the loss became not a number in epoch 2: use a smaller rate than 0.5 (option rate)");
        g_bad_loss = -INFINITY;
        fails_with(&r, SHMTRAIN_E_NUMBERS, "the loss became infinite in epoch 2: use a smaller rate than 0.5 (option rate)");
    }
}

static int fail_to_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                         float *score_out, double *loss_out) {
    float beyond;
    (void)batch;
    (void)pass;
    (void)score_out;
    (void)loss_out;
    return shmtrain_pull(s, 0, 1, 1, &beyond);
}

static void a_model_that_cannot_score_ends_the_run_with_its_sentence(void **state) {
    struct shmtrain_model bad = KNOWN;
    struct run r;
    (void)state;
    bad.score = fail_to_score;
    prepare(&r, 3, 2000);
    r.job.model = &bad;
    fails_with(&r, SHMTRAIN_E_USAGE, "shmtrain_pull: row 1 is beyond the end of table \"t\", which has 1 row");
}

static int leave_early(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    const int rc = shmtrain_next(s, &w);
    (void)arg;
    return rc < 0 ? rc : 0;
}
static int fail_silently(shmtrain_session *s, void *arg) {
    (void)s;
    (void)arg;
    return SHMTRAIN_E_DATA;
}

static void a_worker_function_that_leaves_its_work_is_told_so(void **state) {
    struct run r;
    (void)state;
    prepare(&r, 1, 0);
    r.job.model = NULL;
    r.job.worker = leave_early;
    fails_with(&r, SHMTRAIN_E_USAGE, "the worker function returned 0 before shmtrain_next had returned 0");
    r.job.worker = fail_silently;
    fails_with(&r, SHMTRAIN_E_DATA, "the worker function ended with SHMTRAIN_E_DATA");
}

/* ---- the board ---- */

static void parts_of_the_board_do_not_overlap_and_start_on_lines(void **state) {
    static const uint64_t VALID[] = {0, 1, 1023, 1024, 1025, 1000000};
    (void)state;
    for (size_t i = 0; i < sizeof VALID / sizeof *VALID; i++)
        for (uint32_t epochs = 1; epochs < 300; epochs += 37) {
            struct shmt_board_plan p;
            const uint32_t outputs = epochs % 3 + 1;
            shmt_board_plan(epochs, VALID[i], outputs, &p);
            assert_true(p.n_valid == VALID[i] && p.n_outputs == outputs);
            assert_true(p.n_chunks * SHMT_VALID_CHUNK >= VALID[i] &&
                        p.n_chunks * SHMT_VALID_CHUNK < VALID[i] + SHMT_VALID_CHUNK);
            assert_true(p.epochs_off >= sizeof(struct shmt_board) && p.epochs_off % SHMT_LINE == 0);
            assert_true(p.losses_off >= p.epochs_off + epochs * sizeof(struct shmtrain_epoch) && p.losses_off % SHMT_LINE == 0);
            assert_true(p.notes_off >= p.losses_off + p.n_chunks * sizeof(double) && p.notes_off % SHMT_LINE == 0);
            assert_true(p.scores_off >= p.notes_off + p.n_chunks * sizeof(uint64_t) && p.scores_off % SHMT_LINE == 0);
            assert_true(p.bytes >= p.scores_off + VALID[i] * outputs * sizeof(float));
        }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(an_epoch_begins_with_the_first_worker_not_with_the_chief),
        TEST(validation_is_right_and_has_the_same_bits_for_every_number_of_seats),
        TEST(without_validation_data_its_figures_are_not_there),
        TEST(a_model_that_does_not_classify_has_a_loss_only),
        TEST(of_several_classes_the_one_with_the_largest_output_is_predicted),
        TEST(only_the_examples_that_are_meant_are_trained_on),
        TEST(a_loss_that_is_no_number_ends_the_run_with_what_to_do),
        TEST(a_model_that_cannot_score_ends_the_run_with_its_sentence),
        TEST(a_worker_function_that_leaves_its_work_is_told_so),
        TEST(parts_of_the_board_do_not_overlap_and_start_on_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
