/* A report as one JSON object. Fields that nobody computed are null; names are those of <shmtrain/report.h>. What it says of
 * the costs is in costs_json.c; lines about a run that goes on, of the same parts, are in metrics_json.c. */
#include <shmtrain/report.h>

#include <math.h>
#include <stdio.h>

#include "base/plain.h"
#include "report/json_priv.h"
#include "report/words_priv.h"

static json_t *dataset_of(const char *name, uint64_t examples, uint64_t features, uint64_t nonzeros, uint64_t skipped) {
    if (name[0] == '\0') return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "name", shmt_json_text(name));
    json_object_set_new(o, "examples", shmt_json_whole(examples));
    json_object_set_new(o, "features", shmt_json_whole(features));
    json_object_set_new(o, "nonzeros", shmt_json_whole(nonzeros));
    json_object_set_new(o, "skipped_lines", shmt_json_whole(skipped));
    return o;
}

void shmt_json_add_epoch(json_t *o, const struct shmtrain_epoch *epoch) {
    json_object_set_new(o, "epoch", shmt_json_whole(epoch->epoch));
    json_object_set_new(o, "partial", json_boolean(epoch->partial));
    json_object_set_new(o, "examples", shmt_json_whole(epoch->examples));
    json_object_set_new(o, "seconds", shmt_json_number(epoch->seconds));
    json_object_set_new(o, "train_loss", shmt_json_number(epoch->train_loss));
    if (epoch->objective > 0) { /* only fits have one */
        json_object_set_new(o, "objective", shmt_json_number(epoch->objective));
        json_object_set_new(o, "bound", shmt_json_number(epoch->bound));
        json_object_set_new(o, "gap", shmt_json_number(shmtrain_epoch_gap(epoch)));
    }
    json_object_set_new(o, "valid_loss", shmt_json_number(epoch->valid_loss));
    json_object_set_new(o, "valid_accuracy", shmt_json_number(epoch->valid_accuracy));
    json_object_set_new(o, "valid_auc", shmt_json_number(epoch->valid_auc));
}

static json_t *epochs_of(const struct shmtrain_report *r) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->n_epochs; i++) {
        json_t *o = json_object();
        shmt_json_add_epoch(o, &r->epoch[i]);
        json_array_append_new(list, o);
    }
    return list;
}

/* Words that a run need not have. */
static json_t *word_or_null(const char *word) { return word && word[0] != '\0' ? shmt_json_text(word) : json_null(); }

/* The point of the consistency space. */
static void add_policy(json_t *o, const struct shmtrain_report *r) {
    json_object_set_new(o, "mode", json_string(r->mode));
    json_object_set_new(o, "mode_reason", word_or_null(r->mode_reason));
    json_object_set_new(o, "write", json_string(r->write));
    json_object_set_new(o, "staleness", r->staleness == UINT64_MAX ? json_string("inf") : shmt_json_whole(r->staleness));
    json_object_set_new(o, "quorum", shmt_json_whole(r->quorum));
    json_object_set_new(o, "late", word_or_null(r->late));
    json_object_set_new(o, "replicas", json_string(r->replicas));
    json_object_set_new(o, "n_replicas", shmt_json_whole(r->n_replicas));
    json_object_set_new(o, "hot_rows", shmt_json_whole(r->hot_rows));
    json_object_set_new(o, "merge", word_or_null(r->merge));
    json_object_set_new(o, "merge_every", shmt_json_whole(r->merge_every));
    json_object_set_new(o, "merge_all_every", shmt_json_whole(r->merge_all_every));
    json_object_set_new(o, "copies_reason", word_or_null(r->copies_reason));
    json_object_set_new(o, "slow", word_or_null(r->slow));
    json_object_set_new(o, "race_seconds", shmt_json_number(r->race_seconds > 0 ? r->race_seconds : NAN));
    json_object_set_new(o, "race_share", shmt_json_number(r->race_seconds > 0 ? r->race_share : NAN));
}

/* How L2 was chosen. */
static json_t *choice_of(const struct shmtrain_report *r) {
    if (r->choice_examples == 0 || shmt_choice_is_cut(r)) return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "examples", shmt_json_whole(r->choice_examples));
    json_object_set_new(o, "parts", shmt_json_whole(r->choice_parts));
    json_object_set_new(o, "held", shmt_json_whole(r->choice_held));
    json_object_set_new(o, "fits", shmt_json_whole(r->choice_fits));
    json_object_set_new(o, "loss", shmt_json_number(r->choice_loss));
    return o;
}

void shmt_json_add_choices(json_t *o, const struct shmtrain_report *r) {
    add_policy(o, r);
    json_object_set_new(o, "backend", json_string(r->backend));
    json_object_set_new(o, "workers", shmt_json_whole(r->workers));
    json_object_set_new(o, "threads", shmt_json_whole(r->threads));
    json_object_set_new(o, "cores", r->cores > 0 ? shmt_json_whole(r->cores) : json_null());
    json_object_set_new(o, "model", shmt_json_text(r->model));
    json_object_set_new(o, "columns", word_or_null(r->columns));
    json_object_set_new(o, "optimizer", json_string(r->optimizer));
    json_object_set_new(o, "rate", shmt_json_number(r->rate));
    json_object_set_new(o, "schedule", json_string(r->schedule));
    json_object_set_new(o, "l1", shmt_json_number(r->l1));
    json_object_set_new(o, "l2", shmt_json_number(r->l2));
    json_object_set_new(o, "tolerance", shmt_json_number(r->tolerance > 0 ? r->tolerance : NAN));
    json_object_set_new(o, "scaled", json_boolean(r->scaled));
    json_object_set_new(o, "choice", choice_of(r));
    json_object_set_new(o, "batch", shmt_json_whole(r->batch));
    json_object_set_new(o, "item", shmt_json_whole(r->item));
    json_object_set_new(o, "seed", shmt_json_whole(r->seed));
    json_object_set_new(o, "guests", shmt_json_whole(r->guests));
    json_object_set_new(o, "numa", word_or_null(r->numa));
    json_object_set_new(o, "numa_nodes", shmt_json_whole(r->numa_nodes));
    json_object_set_new(o, "page_bytes", shmt_json_whole(r->page_bytes));
    json_object_set_new(o, "cpu", word_or_null(r->cpu));
    json_object_set_new(o, "blas", word_or_null(r->blas));
    json_object_set_new(
        o, "dataset",
        dataset_of(r->dataset.name, r->dataset.examples, r->dataset.features, r->dataset.nonzeros, r->dataset.skipped));
    json_object_set_new(o, "valid",
                        dataset_of(r->valid.name, r->valid.examples, r->valid.features, r->valid.nonzeros, r->valid.skipped));
}

void shmt_json_add_results(json_t *o, const struct shmtrain_report *r) {
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->parameters_xxh64);
    json_object_set_new(o, "best_loss", shmt_json_number(r->best_loss));
    json_object_set_new(o, "epochs", epochs_of(r));
    json_object_set_new(o, "kept_epoch", r->kept_epoch > 0 ? shmt_json_whole(r->kept_epoch) : json_null());
    json_object_set_new(o, "stopped", json_boolean(r->stopped));
    json_object_set_new(o, "stopped_by", word_or_null(r->stopped_by));
    json_object_set_new(o, "seconds", shmt_json_number(r->seconds));
    json_object_set_new(o, "load_seconds", shmt_json_number(r->load_seconds));
    json_object_set_new(o, "first_step_seconds", shmt_json_number(r->first_step_seconds));
    json_object_set_new(o, "train_seconds", shmt_json_number(r->train_seconds));
    json_object_set_new(o, "examples", shmt_json_whole(r->examples));
    json_object_set_new(o, "updates", shmt_json_whole(r->updates));
    json_object_set_new(o, "examples_per_second", shmt_json_number(r->examples_per_second));
    json_object_set_new(o, "wait_fraction", shmt_json_number(r->wait_fraction));
    json_object_set_new(o, "wait_epoch_fraction", shmt_json_number(r->wait_epoch_fraction));
    json_object_set_new(o, "waits_mostly_for",
                        r->waits_mostly_for == UINT32_MAX ? json_null() : shmt_json_whole(r->waits_mostly_for));
    shmt_json_add_costs(o, r);
    json_object_set_new(o, "checkpoints", shmt_json_whole(r->checkpoints));
    json_object_set_new(o, "checkpoint_seconds", shmt_json_number(r->checkpoint_seconds));
    json_object_set_new(o, "respawns", shmt_json_whole(r->respawns));
    json_object_set_new(o, "redone", shmt_json_whole(r->redone));
    json_object_set_new(o, "skipped", shmt_json_whole(r->skipped));
    json_object_set_new(o, "stalls", shmt_json_whole(r->stalls));
    json_object_set_new(o, "lost_updates", shmt_json_number(r->lost_updates));
    json_object_set_new(o, "lost_lowest", shmt_json_number(r->lost_lowest));
    json_object_set_new(o, "lost_highest", shmt_json_number(r->lost_highest));
    json_object_set_new(o, "parameter_bytes", shmt_json_whole(r->parameter_bytes));
    json_object_set_new(o, "parameters_xxh64", json_string(hash));
}

char *shmtrain_report_json(const struct shmtrain_report *r) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = json_object();
    shmt_json_add_choices(o, r);
    shmt_json_add_results(o, r);
    return shmt_json_line(o);
}
