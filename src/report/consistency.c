/* A report's point of the consistency space as lines for people: the axes by their names, and what they mean. */
#include <inttypes.h>
#include <string.h>

#include "report/words_priv.h"

static int is_aggregate(const struct shmtrain_report *r) { return strcmp(r->write, "aggregate") == 0; }
static int has_equal_copies(const struct shmtrain_report *r) { return r->replicas && strcmp(r->replicas, "equal") == 0; }
static int has_replicas(const struct shmtrain_report *r) {
    return r->replicas && r->replicas[0] && strcmp(r->replicas, "one") != 0 && !has_equal_copies(r);
}
static uint32_t all_workers(const struct shmtrain_report *r) { return r->all_workers > 0 ? r->all_workers : r->workers; }
static int has_quorum(const struct shmtrain_report *r) { return is_aggregate(r) && r->quorum < all_workers(r); }

/* A point that is no mode's has its axes for a name. */
static int has_name(const struct shmtrain_report *r) { return strncmp(r->mode, r->write, strlen(r->write)) != 0; }

static void add_axes(char *out, size_t bytes, const struct shmtrain_report *r) {
    shmt_add(out, bytes, "consistency ");
    if (has_name(r)) shmt_add(out, bytes, "%.32s: ", r->mode);
    shmt_add_item(out, bytes, 1, "write %s", r->write);
    if (r->staleness == UINT64_MAX)
        shmt_add_item(out, bytes, 0, "staleness inf");
    else
        shmt_add_item(out, bytes, 0, "staleness %" PRIu64, r->staleness);
    if (has_quorum(r)) {
        shmt_add_item(out, bytes, 0, "quorum %" PRIu32 " of %" PRIu32, r->quorum, all_workers(r));
        shmt_add_item(out, bytes, 0, "late %s", r->late);
    }
    if (has_equal_copies(r)) shmt_add_item(out, bytes, 0, "replicas equal");
    if (has_replicas(r)) {
        shmt_add_item(out, bytes, 0, "replicas %s", r->replicas);
        shmt_add_item(out, bytes, 0, "merge %s every %" PRIu32, r->merge, r->merge_every);
    }
    shmt_add(out, bytes, "\n");
}

/* Everybody's gradient is of an equal part of the batch. */
static void say_quorum(char *out, size_t bytes, const struct shmtrain_report *r) {
    const uint32_t part = r->batch / all_workers(r), n = r->quorum * part;
    shmt_add_item(out, bytes, 1, "updates of %" PRIu32 " example%s: the first %" PRIu32 " of %" PRIu32 " gradients of %" PRIu32,
                  n, shmt_plural(n), r->quorum, all_workers(r), part);
    if (strcmp(r->late, "fold") == 0) shmt_add_item(out, bytes, 0, "and those that came late");
}

static void say_aggregate(char *out, size_t bytes, const struct shmtrain_report *r) {
    if (has_quorum(r)) {
        say_quorum(out, bytes, r);
        return;
    }
    if (has_equal_copies(r))
        shmt_add_item(out, bytes, 1, "%" PRIu32 " equal cop%s of the parameters", r->n_replicas,
                      r->n_replicas == 1 ? "y" : "ies");
    shmt_add_item(out, bytes, !has_equal_copies(r), "one update per batch of %" PRIu32 " example%s", r->batch,
                  shmt_plural(r->batch));
    if (r->staleness > 0)
        shmt_add_item(out, bytes, 0, "at most %" PRIu64 " batches behind", r->staleness);
    else
        shmt_add_item(out, bytes, 0, "all wait for it");
}

static void say_updates(char *out, size_t bytes, const struct shmtrain_report *r) {
    const int is_first = !has_replicas(r);
    char rows[16];
    if (!is_first && r->hot_rows > 0)
        shmt_add_item(out, bytes, 1, "%" PRIu32 " cop%s of %s rows, the rest shared", r->n_replicas,
                      r->n_replicas == 1 ? "y" : "ies", shmt_grouped_number(r->hot_rows, rows));
    else if (!is_first)
        shmt_add_item(out, bytes, 1, "%" PRIu32 " cop%s of the parameters%s", r->n_replicas, r->n_replicas == 1 ? "y" : "ies",
                      r->hosts > 1 ? " on this host" : "");
    if (r->model[0] == '\0')
        shmt_add_item(out, bytes, is_first, "updates at once");
    else if (r->item_updates)
        shmt_add_item(out, bytes, is_first, "updates of %" PRIu32 " example%s", r->item, shmt_plural(r->item));
    else
        shmt_add_item(out, bytes, is_first, "updates after each example");
}

static void say_live(char *out, size_t bytes, const struct shmtrain_report *r) {
    say_updates(out, bytes, r);
    const uint64_t stretch = (uint64_t)r->merge_every * r->item;
    if (has_replicas(r) && r->merge_all_every > r->merge_every)
        shmt_add_item(out, bytes, 0, "merged by lines every %" PRIu64 " to %" PRIu64 " examples of a worker", stretch,
                      (uint64_t)r->merge_all_every * r->item);
    else if (has_replicas(r))
        shmt_add_item(out, bytes, 0, "merged every %" PRIu64 " examples of a worker", stretch);
    if (r->staleness == 0 && has_replicas(r))
        shmt_add_item(out, bytes, 0, r->hosts > 1 ? "all workers of all hosts meet for it" : "all workers meet for it");
    else if (r->staleness == 0)
        shmt_add_item(out, bytes, 0, "all workers meet after %" PRIu32 " example%s each", r->item, shmt_plural(r->item));
    else if (r->staleness == UINT64_MAX)
        shmt_add_item(out, bytes, 0, "no worker waits");
    else
        shmt_add_item(out, bytes, 0, "no worker more than %" PRIu64 " clock%s ahead", r->staleness, shmt_plural(r->staleness));
}

static void say_fit(char *out, size_t bytes, const struct shmtrain_report *r) {
    if (!is_aggregate(r)) shmt_add_item(out, bytes, 1, "all workers ascend the dual at once");
    shmt_add_item(out, bytes, is_aggregate(r), "all workers meet after each pass over the data");
}

static void add_reason(char *out, size_t bytes, const char *of, const char *words) {
    if (!words || words[0] == '\0') return;
    shmt_add(out, bytes, "%*s%s: ", SHMT_HEAD_COLUMNS, "", of);
    shmt_add_words(out, bytes, words);
    shmt_add(out, bytes, "\n");
}

void shmt_add_consistency(char *out, size_t bytes, const struct shmtrain_report *r) {
    add_axes(out, bytes, r);
    shmt_add(out, bytes, "%*s", SHMT_HEAD_COLUMNS, "");
    if (r->tolerance > 0)
        say_fit(out, bytes, r);
    else if (is_aggregate(r))
        say_aggregate(out, bytes, r);
    else
        say_live(out, bytes, r);
    shmt_add(out, bytes, "\n");
    add_reason(out, bytes, "auto", r->mode_reason);
    add_reason(out, bytes, "copies", r->copies_reason);
    if (r->slow && r->slow[0] != '\0') shmt_add(out, bytes, "slowed down %.68s\n", r->slow);
    if (r->race_seconds > 0)
        shmt_add(out, bytes, "race window %g us between load and store, in %g %% of pushes\n", 1e6 * r->race_seconds,
                 100 * r->race_share);
}
