/* A report as one JSON object: tables of its fields, with names as in <shmtrain/report.h>. Lines about a run that goes on are made
 * of the same tables, in metrics_json.c. */
#include <shmtrain/report.h>

#include "report/json_priv.h"
#include "report/words_priv.h"

/* ---- what a struct says of some of its fields ---- */

/* Only epochs of fits have an objective. */
static bool has_objective(const void *epoch) { return ((const struct shmtrain_epoch *)epoch)->objective > 0; }

/* Nor does anybody but one of several hosts have others to hear of. */
static bool has_traffic(const void *epoch) { return ((const struct shmtrain_epoch *)epoch)->exchanges > 0; }
static bool has_hosts(const void *report) { return ((const struct shmtrain_report *)report)->hosts > 1; }
static json_t *gap_of(const void *epoch) { return shmt_json_number(shmtrain_epoch_gap(epoch)); }

/* The numbers of a run in which nothing was measured mean nothing, whatever they are. */
static bool is_measured(const void *delay) { return ((const struct shmtrain_delay *)delay)->samples > 0; }
static json_t *updates_word(const void *delay) {
    (void)delay;
    return json_string("updates");
}

static bool is_racy(const void *report) { return ((const struct shmtrain_report *)report)->race_seconds > 0; }
static bool has_data(const void *report) { return ((const struct shmtrain_report *)report)->dataset.name[0] != '\0'; }
static bool has_valid(const void *report) { return ((const struct shmtrain_report *)report)->valid.name[0] != '\0'; }
static bool has_choice(const void *report) {
    return ((const struct shmtrain_report *)report)->choice_examples > 0 && !shmt_choice_is_cut(report);
}
static json_t *worker_or_null(const void *worker) {
    const uint32_t i = *(const uint32_t *)worker;
    return i == UINT32_MAX ? json_null() : json_integer(i);
}

/* ---- tables ---- */

/* clang-format off */
static const struct shmt_field PROOF[] = {FIELD(epoch, objective), FIELD(epoch, bound), MADE(NULL, "gap", gap_of), {0}};

static const struct shmt_field TRAFFIC[] = {
    FIELD(epoch, sent_bytes), FIELD(epoch, received_bytes), FIELD(epoch, exchanges),
    {0}};

const struct shmt_field SHMT_EPOCH[] = {
    FIELD(epoch, epoch), FLAG(epoch, partial), FIELD(epoch, examples), FIELD(epoch, seconds), FIELD(epoch, train_loss),
    GROUP(has_objective, PROOF),
    FIELD(epoch, valid_loss), FIELD(epoch, valid_accuracy), FIELD(epoch, valid_auc),
    GROUP(has_traffic, TRAFFIC),
    {0}};

/* The point of the consistency space. */
static const struct shmt_field POLICY[] = {
    FIELD(report, mode), SOME(report, mode_reason), FIELD(report, write), AS(SHMT_OPEN64, report, staleness),
    FIELD(report, quorum), SOME(report, late), FIELD(report, replicas), FIELD(report, n_replicas), FIELD(report, hot_rows),
    SOME(report, merge), FIELD(report, merge_every), FIELD(report, merge_all_every), SOME(report, copies_reason),
    SOME(report, slow), SOME(report, race_seconds), WHEN(is_racy, report, race_share),
    {0}};

/* How L2 was chosen. */
static const struct shmt_field CHOICE[] = {
    KEYED(report, "examples", choice_examples), KEYED(report, "parts", choice_parts), KEYED(report, "held", choice_held),
    KEYED(report, "fits", choice_fits), KEYED(report, "loss", choice_loss),
    {0}};

/* Of the report's `dataset`; its `valid` is of the same type. */
static const struct shmt_field DATASET[] = {
    KEYED(report, "name", dataset.name), KEYED(report, "examples", dataset.examples), KEYED(report, "features", dataset.features),
    KEYED(report, "nonzeros", dataset.nonzeros), KEYED(report, "skipped_lines", dataset.skipped),
    {0}};
#define VALID_OFFSET (offsetof(struct shmtrain_report, valid) - offsetof(struct shmtrain_report, dataset))

const struct shmt_field SHMT_CHOICES[] = {
    GROUP(NULL, POLICY),
    FIELD(report, backend), SOME(report, spawn), SOME(report, sim),
    FIELD(report, workers), FIELD(report, threads), SOME(report, cores),
    FIELD(report, model), SOME(report, columns), FIELD(report, optimizer), FIELD(report, rate), FIELD(report, schedule),
    FIELD(report, warmup), FIELD(report, momentum), FIELD(report, l1), FIELD(report, l2),
    FIELD(report, weight_decay), FIELD(report, clip_value), FIELD(report, clip_norm),
    SOME(report, tolerance), FLAG(report, scaled), OBJECT(has_choice, "choice", 0, CHOICE),
    FIELD(report, batch), FIELD(report, item), FIELD(report, seed), FIELD(report, guests),
    FIELD(report, hosts), FIELD(report, host),
    SOME(report, numa), FIELD(report, numa_nodes), FIELD(report, page_bytes), SOME(report, cpu), SOME(report, blas),
    OBJECT(has_data, "dataset", 0, DATASET), OBJECT(has_valid, "valid", VALID_OFFSET, DATASET),
    {0}};

static const struct shmt_field BUCKET[] = {FIELD(delays, from), FIELD(delays, to), FIELD(delays, samples), {0}};

static const struct shmt_field DELAY[] = {
    WHEN(is_measured, delay, mean), WHEN(is_measured, delay, p50), WHEN(is_measured, delay, p99), WHEN(is_measured, delay, max),
    WHEN(is_measured, delay, clocks), MADE(NULL, "unit", updates_word), FIELD(delay, samples),
    LIST(delay, "histogram", bucket, n_buckets, BUCKET),
    {0}};

static const struct shmt_field WAITED_FOR[] = {FIELD(waited_for, worker), FIELD(waited_for, seconds), {0}};

static const struct shmt_field WORKER[] = {
    PLACE("worker"), FLAG(worker_report, joined),
    FIELD(worker_report, examples), FIELD(worker_report, dropped), FIELD(worker_report, folded),
    FIELD(worker_report, compute_seconds), FIELD(worker_report, wait_seconds), FIELD(worker_report, wait_epoch_seconds),
    FIELD(worker_report, merge_seconds), FIELD(worker_report, evaluate_seconds), FIELD(worker_report, checkpoint_seconds),
    FIELD(worker_report, load_seconds), FIELD(worker_report, delay),
    ARRAY(worker_report, "waited_for", waited_for, n_waited_for, WAITED_FOR),
    {0}};

/* What the run has cost. */
static const struct shmt_field COSTS[] = {
    FIELD(report, merge_fraction), FIELD(report, merges), FIELD(report, dropped), FIELD(report, folded),
    OBJECT(NULL, "delay", offsetof(struct shmtrain_report, delay), DELAY),
    LIST(report, "per_worker", worker, n_workers, WORKER),
    {0}};

static const struct shmt_field HOSTS[] = {SOME(report, all_workers), FIELD(report, wait_hosts_fraction), {0}};

const struct shmt_field SHMT_RESULTS[] = {
    FIELD(report, best_loss), LIST(report, "epochs", epoch, n_epochs, SHMT_EPOCH), SOME(report, kept_epoch),
    FLAG(report, stopped), SOME(report, stopped_by),
    FIELD(report, seconds), FIELD(report, load_seconds), FIELD(report, first_step_seconds), FIELD(report, train_seconds),
    FIELD(report, examples), FIELD(report, updates), FIELD(report, examples_per_second),
    FIELD(report, wait_fraction), FIELD(report, wait_epoch_fraction), MADE_OF(report, waits_mostly_for, worker_or_null),
    GROUP(NULL, COSTS),
    FIELD(report, checkpoints), FIELD(report, checkpoint_seconds),
    FIELD(report, respawns), FIELD(report, redone), FIELD(report, skipped), FIELD(report, stalls),
    FIELD(report, sent_bytes), FIELD(report, received_bytes), GROUP(has_hosts, HOSTS),
    FIELD(report, lost_updates), FIELD(report, lost_lowest), FIELD(report, lost_highest),
    FIELD(report, parameter_bytes), AS(SHMT_HEX64, report, parameters_xxh64),
    {0}};

static const struct shmt_field REPORT[] = {GROUP(NULL, SHMT_CHOICES), GROUP(NULL, SHMT_RESULTS), {0}};
/* clang-format on */

char *shmtrain_report_json(const struct shmtrain_report *r) { return shmt_fields_line(REPORT, r); }
