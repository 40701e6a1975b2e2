/* Going on from a checkpoint: see checkpoints.h. What the options leave open is what it was in the checkpoint's run; what they
 * say otherwise is refused, because the place where that one stood is none of this one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "api/checkpoints.h"
#include "api/fit_keep.h"
#include "api/penalty.h"
#include "api/store_priv.h"
#include "base/plain.h"
#include "base/show.h"
#include "consistency/mode.h"
#include "ps/strata.h"
#include "segment/budget.h"
#include "solve/choose.h"

/* ---- comparing ---- */

/* A comparison: who compares, and with what. */
struct meeting {
    struct shmtrain_store *store;
    const struct shmt_checkpoint *with;
    const char *remedy; /* NULL: to give what it was then */
    int rc;             /* the first one that did not fit */
};

static void compare(struct meeting *m, const char *option, const char *ours, const char *theirs) {
    char shown[SHMT_NAME_SHOWN];
    if (m->rc < 0 || strcmp(ours, theirs) == 0) return;
    shmt_show_name(m->store->checkpoints.from_path, shown);
    m->rc =
        shmt_fail(&m->store->error, SHMTRAIN_E_USAGE,
                  "--resume: %s is %.60s here, but %.60s in the run of %s: %s, or start a new run in another folder", option,
                  ours[0] ? ours : "\"\"", theirs[0] ? theirs : "\"\"", shown, m->remedy ? m->remedy : "use that value");
}

static void compare_counts(struct meeting *m, const char *option, uint64_t ours, uint64_t theirs) {
    char text[2][24];
    snprintf(text[0], sizeof text[0], "%llu", (unsigned long long)ours);
    snprintf(text[1], sizeof text[1], "%llu", (unsigned long long)theirs);
    compare(m, option, text[0], text[1]);
}

/* As short as they can be told apart. */
static void compare_reals(struct meeting *m, const char *option, double ours, double theirs) {
    char text[2][40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text[0], sizeof text[0], "%.*g", digits, ours);
        snprintf(text[1], sizeof text[1], "%.*g", digits, theirs);
        if (ours == theirs || strcmp(text[0], text[1]) != 0) break;
    }
    compare(m, option, text[0], text[1]);
}

/* ---- options ---- */

/* What was printed, to be typed: of four digits. */
static bool is_as_printed(double typed, double exact) { return fabs(typed - exact) <= 6e-4 * exact; }

/* L2 that would be chosen is what was, also for who types it as it was printed. */
static void meet_l2(struct meeting *m, const struct shmtrain_model *model) {
    struct shmt_rule *ours = &m->store->spec.rule;
    const float chosen = m->with->l2_chosen ? m->with->spec.rule.l2 : 0;
    char remedy[120];
    if (shmt_penalty_is_chosen(m->store, model, m->store->spec.n_examples))
        ours->l2 = chosen;
    else if (chosen > 0 && is_as_printed((double)ours->l2, (double)chosen))
        ours->l2 = chosen;
    if (chosen > 0) {
        snprintf(remedy, sizeof remedy, "L2 was chosen in that run (%.4g): leave out --C and --l2", (double)chosen);
        m->remedy = remedy;
    }
    compare_reals(m, "--l2", (double)ours->l2, (double)m->with->spec.rule.l2);
    m->remedy = NULL;
}

static void meet_rule(struct meeting *m, const struct shmtrain_model *model) {
    struct shmt_rule *ours = &m->store->spec.rule;
    const struct shmt_rule *theirs = &m->with->spec.rule;
    compare(m, "--optimizer", shmt_rule_name((enum shmt_rule_kind)ours->kind),
            shmt_rule_name((enum shmt_rule_kind)theirs->kind));
    compare_reals(m, "--l1", (double)ours->l1, (double)theirs->l1);
    meet_l2(m, model);
    compare_reals(m, "--momentum", (double)ours->momentum, (double)theirs->momentum);
    compare_reals(m, "--beta2", (double)ours->beta2, (double)theirs->beta2);
    compare_reals(m, "--epsilon", (double)ours->epsilon, (double)theirs->epsilon);
    compare_reals(m, "--beta", (double)ours->beta, (double)theirs->beta);
}

/* A number of epochs that is another one now is another schedule, which is meant. */
static void meet_rate(struct meeting *m) {
    const struct shmt_config *c = &m->store->config;
    struct shmt_rate *ours = &m->store->spec.rate;
    const struct shmt_rate *theirs = &m->with->spec.rate;
    if (isnan(c->rate)) ours->base = theirs->base;
    if (strcmp(c->schedule, "auto") == 0) ours->kind = theirs->kind;
    if (isnan(c->power)) ours->power = theirs->power;
    if (isnan(c->decay_every) && ours->epochs == theirs->epochs) ours->every = theirs->every;
    compare_reals(m, "--rate", (double)ours->base, (double)theirs->base);
    compare(m, "--schedule", shmt_rate_name(ours), shmt_rate_name(theirs));
    compare_reals(m, "--power", (double)ours->power, (double)theirs->power);
    compare_reals(m, "--decay-by", ours->factor, theirs->factor);
    compare_reals(m, "--warmup", ours->warmup, theirs->warmup);
    if (ours->epochs == theirs->epochs || !isnan(c->decay_every)) compare_reals(m, "--decay-every", ours->every, theirs->every);
}

/* In rounds a batch is cut by the number of workers: the part of each, of which pieces are, stays what it was, whatever their
 * number is now. A checkpoint keeps the batch of the run that began, which was of batch / item parts. */
static void meet_rounds(struct meeting *m) {
    struct shmt_spec *ours = &m->store->spec;
    const struct shmt_spec *theirs = &m->with->spec;
    const uint64_t parts = shmt_max_u64(1, theirs->batch / theirs->item), own = ours->n_seats - ours->n_guests;
    compare_counts(m, "--batch", shmt_ceil_div(m->store->batch, parts) * parts, theirs->batch);
    if (own > UINT32_MAX / theirs->item) compare_counts(m, "--workers", ours->n_workers, theirs->n_workers);
    ours->item = theirs->item;
    ours->batch = (uint32_t)(own * theirs->item);
}

static void meet_mode(struct meeting *m) {
    struct shmtrain_store *store = m->store;
    struct shmt_spec *ours = &store->spec;
    const struct shmt_spec *theirs = &m->with->spec;
    char mode[64];
    shmt_mode_name(&ours->policy, store->mode_taken, mode, sizeof mode);
    compare(m, "--mode", mode, m->with->mode);
    compare(m, "--write", shmt_write_name(ours->policy.write), shmt_write_name(theirs->policy.write));
    if (m->rc < 0) return; /* another mode has other numbers */
    if (shmt_policy_has_rounds(&ours->policy)) {
        meet_rounds(m);
        return;
    }
    if (!shmt_policy_is_live(&ours->policy)) compare_counts(m, "--batch", ours->batch, theirs->batch);
    if (shmt_policy_is_batched(&ours->policy)) {
        compare_counts(m, "--chunks", ours->n_chunks, theirs->n_chunks);
        return;
    }
    if (store->config.item == 0) ours->item = theirs->item;
    compare_counts(m, "--item", ours->item, theirs->item);
    if (shmt_policy_is_live(&ours->policy)) compare_counts(m, "--group", store->job.settings.group, m->with->group);
}

static void meet_run(struct meeting *m, const struct shmtrain_model *model) {
    const struct shmtrain_store *store = m->store;
    const struct shmt_spec *ours = &store->spec, *theirs = &m->with->spec;
    compare(m, "--model", model ? model->name : "", m->with->model);
    compare_counts(m, "--seed", ours->order.seed, theirs->order.seed);
    compare_counts(m, "--shuffle", ours->order.shuffle, theirs->order.shuffle);
    compare_counts(m, "--bias", store->job.settings.bias, m->with->bias);
    m->remedy = model ? "use its data and its --valid" : NULL;
    compare_counts(m, "the number of examples", ours->n_examples, theirs->n_examples);
    m->remedy = NULL;
}

/* L2 that was chosen is the chosen one, also for who types it as it was printed. */
static void meet_fit_l2(struct meeting *m) {
    const struct shmt_checkpoint_fit *theirs = &m->with->fit;
    struct shmt_problem *ours = &m->store->fit.problem;
    const double chosen = theirs->kept.chosen ? shmt_choice_l2(theirs->kept.strength, m->store->spec.n_examples) : 0;
    char remedy[120];
    if (ours->l2 > 0 && is_as_printed(ours->l2, chosen)) {
        ours->l2 = chosen;
        m->store->spec.rule.l2 = m->with->spec.rule.l2;
    }
    if (chosen > 0 && (ours->l2 == 0 || ours->l2 == chosen)) return;
    if (chosen > 0) {
        snprintf(remedy, sizeof remedy, "L2 was chosen in that run (%.4g): leave out --C and --l2", chosen);
        m->remedy = remedy;
    } else {
        m->remedy = "use --C or --l2 as it was, or neither if none was";
    }
    compare_reals(m, "L2 (0: to be chosen)", ours->l2, chosen > 0 ? chosen : theirs->l2);
    m->remedy = NULL;
}

/* A fit goes on as a fit of the same problem; how near it is to come may be another matter now. */
static void meet_fit(struct meeting *m) {
    static const char *const LIVE[] = {[SHMT_LIVE_NO] = "sync", [SHMT_LIVE_RACY] = "hogwild", [SHMT_LIVE_ATOMIC] = "async"};
    const struct shmt_checkpoint_fit *theirs = &m->with->fit;
    const struct shmt_problem *ours = &m->store->fit.problem;
    const struct shmt_solve_sizes *of = &m->store->fit.plan.of;
    char shown[SHMT_NAME_SHOWN];
    if (m->rc < 0) return;
    if (!m->store->fits || !theirs->is) {
        shmt_show_name(m->store->checkpoints.from_path, shown);
        m->rc = shmt_fail(&m->store->error, SHMTRAIN_E_USAGE,
                          "--resume: %s is of %s, and this run %s: %s, or start a new run in another folder", shown,
                          theirs->is ? "an exact fit" : "steps of SGD", theirs->is ? "takes steps of SGD" : "is an exact fit",
                          theirs->is ? "use the options of its run" : "leave out --tolerance");
        return;
    }
    compare(m, "--mode", LIVE[ours->live], LIVE[theirs->live]);
    compare_reals(m, "--l1", ours->l1, theirs->l1);
    meet_fit_l2(m);
    const bool scales = ours->scale == SHMT_SCALE_YES || (ours->scale == SHMT_SCALE_CHOSEN && theirs->kept.scaled);
    compare(m, "--scale", scales ? "yes" : "no", theirs->kept.scaled ? "yes" : "no");
    m->remedy = "use its data and its --bias";
    compare_counts(m, "the fit's number of features, with the bias", (uint64_t)of->n_columns + of->bias, theirs->rows);
    compare_counts(m, "the fit's number of classes", of->n_classes, theirs->width);
    if (!shmt_fit_suits(m->store, theirs)) compare(m, "what is kept of each example", "another thing", "of another method");
}

/* ---- where it begins ---- */

/* Nothing follows behind the last epoch, or the last step. */
static void begin_there(struct shmtrain_store *store, const struct shmt_checkpoint *with) {
    struct shmt_spec *spec = &store->spec;
    struct shmt_checkpoints *c = &store->checkpoints;
    spec->steps_before = with->at.steps_before;
    c->done = with->at.epoch >= spec->epochs || !shmt_spec_has_step(spec, with->at.epoch, with->at.step);
    if (c->done) return;
    spec->first_epoch = with->at.epoch;
    spec->first_step = with->at.step;
}

static void say_fit(const struct shmtrain_store *store, const struct shmt_checkpoint *with, const char *shown) {
    const struct shmt_kept_fit *kept = &with->fit.kept;
    const double l2 = shmt_choice_l2(kept->strength, store->spec.n_examples);
    char chosen[80] = "";
    if (kept->chosen)
        snprintf(chosen, sizeof chosen, ", for which --C %.4g%s (l2 %.4g) was chosen",
                 1 / ((store->fit.problem.loss == SHMT_SOLVE_SQUARED ? 2 : 1) * l2 * (double)store->spec.n_examples),
                 kept->scaled ? " --scale yes" : "", l2);
    shmt_log(&store->log, "resuming from %s: epoch %u of the fit%s", shown, with->at.epoch + 1, chosen);
}

static void say_where(const struct shmtrain_store *store, const struct shmt_checkpoint *with) {
    char shown[SHMT_NAME_SHOWN];
    const struct shmt_spec *spec = &store->spec;
    shmt_show_name(store->checkpoints.from_path, shown);
    if (store->checkpoints.done)
        shmt_log(&store->log, "%s: its run is complete: use more --%s to continue", shown,
                 with->at.epoch >= spec->epochs ? "epochs" : "steps");
    else if (with->at.step > 0)
        shmt_log(&store->log, "resuming from %s: epoch %u of %u, %llu of %llu steps done", shown, with->at.epoch + 1,
                 spec->epochs, (unsigned long long)with->at.step, (unsigned long long)shmt_spec_steps(spec));
    else if (store->fits)
        say_fit(store, with, shown);
    else
        shmt_log(&store->log, "resuming from %s: epoch %u of %u", shown, with->at.epoch + 1, spec->epochs);
    const bool other = spec->rate.kind == SHMT_RATE_COSINE || spec->rate.every != with->spec.rate.every;
    if (!store->fits && spec->epochs != with->spec.epochs && (spec->rate.kind == SHMT_RATE_CONSTANT || !other)) {
        if (store->config.epochs == 0) shmt_log(&store->log, "--epochs is %u, but was %u", spec->epochs, with->spec.epochs);
    } else if (!store->fits && spec->epochs != with->spec.epochs)
        shmt_log(&store->log, "--epochs is %u, but was %u: from here on the rate falls as in a run of the new length",
                 spec->epochs, with->spec.epochs);
    if (store->config.init_from[0]) shmt_log(&store->log, "--init-from has no effect on a run that is resumed");
}

static int check_epochs(struct shmtrain_store *store, const struct shmt_checkpoint *with) {
    char shown[SHMT_NAME_SHOWN];
    if (with->at.epoch + (with->at.step > 0) <= store->spec.epochs) return 0;
    shmt_show_name(store->checkpoints.from_path, shown);
    return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "--resume: --epochs is %u here, but %s is of epoch %u: use more",
                     store->spec.epochs, shown, with->at.epoch + (with->at.step > 0));
}

int shmt_checkpoints_settle(struct shmtrain_store *store, const struct shmtrain_model *model) {
    const struct shmt_checkpoints *c = &store->checkpoints;
    SHMT_PLAIN_NUMBERS;
    if (!c->from) return 0;
    const struct shmt_checkpoint *with = shmt_checkpoint_of(c->from);
    struct meeting m = {.store = store, .with = with};
    meet_run(&m, model);
    if (store->fits || with->fit.is) meet_fit(&m);
    meet_mode(&m);
    meet_rule(&m, model);
    meet_rate(&m);
    if (m.rc == 0) m.rc = check_epochs(store, with);
    if (m.rc < 0) return m.rc;
    begin_there(store, with);
    return 0;
}

/* ---- data ---- */

/* Rows as they stand in memory have the lengths and labels of the file's, however their columns are numbered. */
void shmt_data_print_make(const struct shmtrain_data *data, struct shmt_data_print *out) {
    enum { AT_ONCE = 512 };
    const uint64_t n = data->n_examples;
    uint32_t length[AT_ONCE];
    uint64_t hash = XXH64(data->label, n * sizeof *data->label, 0);
    if (data->weight) hash = XXH64(data->weight, n * sizeof *data->weight, hash);
    for (uint64_t i = 0; i < n && data->start; i += AT_ONCE) {
        const uint64_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        for (uint64_t k = 0; k < some; k++) length[k] = (uint32_t)(data->start[i + k + 1] - data->start[i + k]);
        hash = XXH64(length, some * sizeof *length, hash);
    }
    *out = (struct shmt_data_print){.examples = n, .features = data->n_features, .nonzeros = data->n_nonzeros, .xxh64 = hash};
}

/* A checksum is nothing that somebody could give. */
static int refuse_data(struct meeting *m) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(m->store->checkpoints.from_path, shown);
    return shmt_fail(&m->store->error, SHMTRAIN_E_USAGE,
                     "--resume: labels, weights or lengths of rows differ from those in the run of %s: use its data, --weights "
                     "and --class-weight, or start a new run in another folder",
                     shown);
}

int shmt_checkpoints_meet(struct shmtrain_store *store, const struct shmt_data_print *print, const struct shmt_ids *ids) {
    struct shmt_checkpoints *c = &store->checkpoints;
    c->data = *print;
    if (!c->from) return 0;
    const struct shmt_checkpoint *with = shmt_checkpoint_of(c->from);
    struct meeting m = {.store = store, .with = with, .remedy = "take its data"};
    compare_counts(&m, "the data's number of examples", print->examples, with->data.examples);
    m.remedy = "use its data and its --hash-bits";
    compare_counts(&m, "the data's number of features", print->features, with->data.features);
    compare_counts(&m, "the data's number of nonzeros", print->nonzeros, with->data.nonzeros);
    if (m.rc == 0 && print->xxh64 != with->data.xxh64) m.rc = refuse_data(&m);
    const uint64_t n = ids ? ids->n : 0;
    if (m.rc == 0 && (n != with->n_ids || (n > 0 && memcmp(ids->id, with->id, n * sizeof *with->id) != 0)))
        compare(&m, "the list of the data's features", "a different one", "the original one");
    return m.rc;
}

/* ---- parameters ---- */

static int refuse_table(struct shmtrain_store *store, const struct shmt_table_spec *table) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(store->checkpoints.from_path, shown);
    return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "--resume: table \"%s\" (%llu, %u) is not in %s", table->name,
                     (unsigned long long)table->rows, table->width, shown);
}

static int restore_table(struct shmtrain_store *store, uint32_t t, uint32_t planes) {
    struct shmt_declared *d = &store->table[t];
    const struct shmt_checkpoint_in *from = store->checkpoints.from;
    const uint64_t floats = shmt_table_floats(&d->table);
    free(d->value);
    free(d->state);
    d->state = NULL;
    d->value = malloc(floats * sizeof *d->value);
    if (planes > 0) d->state = malloc(planes * floats * sizeof *d->state);
    if (!d->value || (planes > 0 && !d->state))
        return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for table \"%s\" of a checkpoint", d->table.name);
    int rc = shmt_checkpoint_read(from, t, -1, d->value, &store->error);
    for (uint32_t p = 0; p < planes && rc == 0; p++)
        rc = shmt_checkpoint_read(from, t, (int)p, d->state + p * floats, &store->error);
    return rc;
}

/* The last check of all: only then it goes on. */
int shmt_checkpoints_restore(struct shmtrain_store *store) {
    const struct shmt_checkpoints *c = &store->checkpoints;
    if (!c->from) return 0;
    const struct shmt_checkpoint *with = shmt_checkpoint_of(c->from);
    struct shmt_budget budget;
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < store->n_tables; t++) {
        const struct shmt_table_spec *ours = &store->table[t].table, *theirs = &with->table[t].table;
        if (t >= with->n_tables || strcmp(ours->name, theirs->name) != 0 || ours->rows != theirs->rows ||
            ours->width != theirs->width)
            return refuse_table(store, ours);
        bytes += (1 + (uint64_t)with->n_planes) * shmt_table_floats(ours) * sizeof(float); /* no more than the file has */
    }
    shmt_budget_read("", &budget);
    int rc = shmt_budget_check(&budget, bytes, "the checkpoint", NULL, "free some", &store->error);
    for (uint32_t t = 0; t < store->n_tables && rc == 0; t++) rc = restore_table(store, t, with->n_planes);
    if (rc == 0) say_where(store, with);
    store->kept = (struct shmt_kept){
        .rule = store->spec.rule, .rate = store->spec.rate.base, .planes = with->n_planes, .steps = with->at.steps_before};
    return rc;
}

/* ---- the run ---- */

static void show_records(struct shmtrain_store *store, struct shmt_board *board, const struct shmt_moment *at) {
    struct shmtrain_report *r = &store->report;
    double loss = 0;
    uint64_t examples = 0;
    const uint32_t n = (uint32_t)shmt_min_u64(at->n_records, store->spec.epochs);
    for (uint32_t i = 0; i < n; i++) {
        shmt_board_epochs(board, &store->job.board)[i] = store->epochs[i] = at->record[i];
        r->examples += at->record[i].examples;
        r->train_seconds += at->record[i].seconds;
        if (at->record[i].examples > 0) loss += at->record[i].train_loss * (double)at->record[i].examples;
    }
    r->n_epochs = n;
    for (uint64_t i = 0; i < at->n_pieces; i++) {
        examples += at->done[i];
        loss += at->loss[i];
    }
    board->before_examples = r->examples + examples;
    board->before_loss = loss;
    store_relaxed(&board->epochs_done, n); /* relaxed: nobody else is there yet */
}

/* The pieces that are done say at which places of the epoch, and it depends on the workers which examples stand there. */
static void say_order(const struct shmtrain_store *store, const struct shmt_checkpoint *with) {
    const struct shmt_spec *spec = &store->spec;
    if (with->at.step == 0 || spec->n_seats == with->spec.n_seats || !shmt_strata_follow_seats(spec)) return;
    shmt_log(
        &store->log,
        "workers are on other NUMA nodes than before: in epoch %u some examples come twice, and the same number is left out",
        with->at.epoch + 1);
}

int shmt_checkpoints_begin_board(struct shmtrain_store *store, struct shmt_store *made) {
    struct shmt_checkpoints *c = &store->checkpoints;
    if (!c->from) return 0;
    const struct shmt_moment *at = &shmt_checkpoint_of(c->from)->at;
    struct shmt_board *board = store->ops->board(made);
    uint32_t reached;
    show_records(store, board, at);
    const int rc = shmt_fit_restore(store, made, &reached);
    if (rc < 0) return rc;
    if (reached == SHMT_END_NOT && at->step == 0)
        reached = shmt_goal_reached(&store->job.goal, store->epochs, store->report.n_epochs);
    if (reached != SHMT_END_NOT && !c->done) {
        store_relaxed(&board->ended_by, reached);
        if (reached == SHMT_END_PRECISION)
            shmt_log(&store->log, "that run has come as near the optimum as numbers allow: nothing is left to do");
        else
            shmt_log(&store->log, "--%s has already ended that run: nothing is left to do", shmt_end_name(reached));
        c->done = true;
    }
    if (c->done) return 0;
    say_order(store, shmt_checkpoint_of(c->from));
    store->job.before_ns = (uint64_t)(fmin(at->epoch_seconds, 1e9) * 1e9);
    return store->ops->resume(made, at->done, at->loss, &store->error);
}
