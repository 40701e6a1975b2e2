/* Going on from a checkpoint: see checkpoints.h. What the options leave open is what it was in the checkpoint's run; what they
 * say otherwise is refused, because the place where that one stood is none of this one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoints/checkpoints.h"
#include "base/plain.h"
#include "base/show.h"
#include "consistency/mode.h"
#include "fitting/fit.h"
#include "fitting/fit_keep.h"
#include "fitting/penalty.h"
#include "keeping/parameters.h"
#include "ps/spec_fields.h"
#include "ps/strata.h"
#include "segment/budget.h"
#include "solve/choose.h"
#include "workers/run.h"

/* ---- comparing ---- */

/* A comparison: who compares, and with what. */
struct comparison {
    struct shmt_run *run;
    const struct shmt_checkpoint *with;
    const char *remedy; /* NULL: to give what it was then */
    int rc;             /* the first one that did not fit */
};

static void compare(struct comparison *m, const char *option, const char *ours, const char *theirs) {
    char shown[SHMT_NAME_SHOWN];
    if (m->rc < 0 || strcmp(ours, theirs) == 0) return;
    shmt_show_name(m->run->checkpoints->from_path, shown);
    m->rc =
        shmt_refuse(&m->run->call->error,
                    "--resume: %s is %.60s here, but %.60s in the run of %s: %s, or start a new run in another folder", option,
                    ours[0] ? ours : "\"\"", theirs[0] ? theirs : "\"\"", shown, m->remedy ? m->remedy : "use that value");
}

static void compare_counts(struct comparison *m, const char *option, uint64_t ours, uint64_t theirs) {
    char text[2][24];
    snprintf(text[0], sizeof text[0], "%llu", (unsigned long long)ours);
    snprintf(text[1], sizeof text[1], "%llu", (unsigned long long)theirs);
    compare(m, option, text[0], text[1]);
}

/* As short as they can be told apart. */
static void compare_reals(struct comparison *m, const char *option, double ours, double theirs) {
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
static void match_l2(struct comparison *m, const struct shmtrain_model *model) {
    struct shmt_rule *ours = &m->run->spec.rule;
    const float chosen = m->with->l2_chosen ? m->with->spec.rule.l2 : 0;
    char remedy[120];
    if (shmt_penalty_is_chosen(m->run, model, m->run->spec.n_examples))
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

/* What the options leave open is as it was, and all the rest has to be. A number of epochs that is another one now is another
 * schedule, which is meant. */
static void match_field(struct comparison *m, const struct shmt_spec_field *field) {
    struct shmt_spec *ours = &m->run->spec;
    const struct shmt_spec *theirs = &m->with->spec;
    const struct shmt_bounded *f = &field->is;
    char option[40];
    snprintf(option, sizeof option, "--%s", f->key);
    for (char *at = option; *at; at++)
        if (*at == '_') *at = '-';
    const bool is_open = (field->uses & SHMT_TAKEN) && !shmt_config_is_given(m->run->config, option + 2);
    if (is_open && f->offset == offsetof(struct shmt_spec, rate.every) && ours->rate.epochs != theirs->rate.epochs) return;
    if (is_open) (void)shmt_bounded_copy(f, theirs, f, ours); /* it was within its bounds */
    if (shmt_bounded_is_real(f))
        compare_reals(m, option, shmt_bounded_real(f, ours), shmt_bounded_real(f, theirs));
    else if (f->word)
        compare(m, option, f->word((uint32_t)shmt_bounded_count(f, ours)), f->word((uint32_t)shmt_bounded_count(f, theirs)));
    else
        compare_counts(m, option, shmt_bounded_count(f, ours), shmt_bounded_count(f, theirs));
}

static void match_fields(struct comparison *m) {
    const struct shmt_policy *policy = &m->run->spec.policy;
    const struct shmt_spec_field *field;
    const unsigned which = SHMT_SAME | (shmt_policy_is_live(policy) ? SHMT_SAME_LIVE : 0) |
                           (shmt_policy_is_batched(policy) ? SHMT_SAME_BATCHED : 0);
    for (size_t i = 0; (field = shmt_spec_field_at(i)); i++)
        if (field->uses & which) match_field(m, field);
}

/* In rounds a batch is cut by the number of workers: the part of each, of which pieces are, stays what it was, whatever their
 * number is now. A checkpoint keeps the batch of the run that began, which was of batch / item parts. */
static void match_rounds(struct comparison *m) {
    struct shmt_spec *ours = &m->run->spec;
    const struct shmt_spec *theirs = &m->with->spec;
    const uint64_t parts = shmt_max_u64(1, theirs->batch / theirs->item), own = shmt_spec_all_seats(ours);
    compare_counts(m, "--batch", shmt_ceil_div(m->run->batch, parts) * parts, theirs->batch);
    if (own > UINT32_MAX / theirs->item) compare_counts(m, "--workers", shmt_spec_all_workers(ours), theirs->n_workers);
    ours->item = theirs->item;
    ours->batch = (uint32_t)(own * theirs->item);
}

/* Batches of all workers come to the same parameters with one copy (sync) and with equal ones (allreduce), so that some hosts may have
 * the one and some the other: a checkpoint is of both. */
static void match_mode(struct comparison *m) {
    struct shmt_run *run = m->run;
    const struct shmt_spec *ours = &run->spec;
    char mode[64];
    shmt_mode_name(&ours->policy, run->mode_taken, mode, sizeof mode);
    if (!shmt_policy_is_batched(&ours->policy) || !shmt_policy_is_batched(&m->with->spec.policy))
        compare(m, "--mode", mode, m->with->mode);
    match_fields(m);
    if (m->rc < 0) return; /* another mode has other numbers */
    if (shmt_policy_has_rounds(&ours->policy)) match_rounds(m);
    if (shmt_policy_is_live(&ours->policy)) compare_counts(m, "--group", run->job.settings.group, m->with->group);
}

/* One by one, as a user has typed them; in an older file the defaults are meant. */
static void match_options(struct comparison *m, const struct shmtrain_model *model) {
    struct shmt_model_texts theirs;
    struct shmt_error why = {0};
    if (m->rc < 0) return;
    if (shmt_model_texts_of_joined(m->with->model_options, model, &theirs, &why) < 0) {
        compare(m, "the model's options", m->run->texts.joined, m->with->model_options);
        return;
    }
    for (uint32_t i = 0; i < model->n_options; i++) {
        char name[40];
        snprintf(name, sizeof name, "--%s", model->options[i].name);
        compare(m, name, m->run->texts.option[i], theirs.option[i]);
    }
}

static void match_run(struct comparison *m, const struct shmtrain_model *model) {
    const struct shmt_run *run = m->run;
    const struct shmt_spec *ours = &run->spec, *theirs = &m->with->spec;
    compare(m, "--model", model ? model->name : "", m->with->model);
    if (model) match_options(m, model);
    compare_counts(m, "--bias", run->job.settings.bias, m->with->bias);
    m->remedy = model ? "use its data and its --valid" : NULL;
    compare_counts(m, "the number of examples", ours->n_examples, theirs->n_examples);
    m->remedy = NULL;
}

/* L2 that was chosen is the chosen one, also for who types it as it was printed. */
static void match_fit_l2(struct comparison *m) {
    const struct shmt_checkpoint_fit *theirs = &m->with->fit;
    struct shmt_problem *ours = &m->run->fit->problem;
    const double chosen = theirs->kept.chosen ? shmt_choice_l2(theirs->kept.strength, m->run->spec.n_examples) : 0;
    char remedy[120];
    if (ours->l2 > 0 && is_as_printed(ours->l2, chosen)) {
        ours->l2 = chosen;
        m->run->spec.rule.l2 = m->with->spec.rule.l2;
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
static void match_fit(struct comparison *m) {
    static const char *const LIVE[] = {[SHMT_LIVE_NO] = "sync", [SHMT_LIVE_RACY] = "hogwild", [SHMT_LIVE_ATOMIC] = "async"};
    const struct shmt_checkpoint_fit *theirs = &m->with->fit;
    const struct shmt_problem *ours = &m->run->fit->problem;
    const struct shmt_solve_sizes *of = &m->run->fit->plan.of;
    char shown[SHMT_NAME_SHOWN];
    if (m->rc < 0) return;
    if (!m->run->fits || !theirs->is) {
        shmt_show_name(m->run->checkpoints->from_path, shown);
        m->rc = shmt_refuse(&m->run->call->error,
                            "--resume: %s is of %s, and this run %s: %s, or start a new run in another folder", shown,
                            theirs->is ? "an exact fit" : "steps of SGD", theirs->is ? "takes steps of SGD" : "is an exact fit",
                            theirs->is ? "use the options of its run" : "leave out --tolerance");
        return;
    }
    compare(m, "--mode", LIVE[ours->live], LIVE[theirs->live]);
    compare_reals(m, "--l1", ours->l1, theirs->l1);
    match_fit_l2(m);
    const bool scales = ours->scale == SHMT_SCALE_YES || (ours->scale == SHMT_SCALE_CHOSEN && theirs->kept.scaled);
    compare(m, "--scale", scales ? "yes" : "no", theirs->kept.scaled ? "yes" : "no");
    m->remedy = "use its data and its --bias";
    compare_counts(m, "the fit's number of features, with the bias", (uint64_t)of->n_columns + of->bias, theirs->rows);
    compare_counts(m, "the fit's number of classes", of->n_classes, theirs->width);
    if (!shmt_fit_suits(m->run, theirs)) compare(m, "what is kept of each example", "another thing", "of another method");
}

/* ---- where it begins ---- */

/* Nothing follows behind the last epoch, or the last step. */
static void begin_there(struct shmt_run *run, const struct shmt_checkpoint *with) {
    struct shmt_spec *spec = &run->spec;
    struct shmt_checkpoints *c = run->checkpoints;
    spec->steps_before = with->at.steps_before;
    c->done = with->at.epoch >= spec->epochs || !shmt_spec_has_step(spec, with->at.epoch, with->at.step);
    if (c->done) return;
    spec->first_epoch = with->at.epoch;
    spec->first_step = with->at.step;
}

static void say_fit(const struct shmt_run *run, const struct shmt_checkpoint *with, const char *shown) {
    const struct shmt_kept_fit *kept = &with->fit.kept;
    const double l2 = shmt_choice_l2(kept->strength, run->spec.n_examples);
    char chosen[80] = "";
    if (kept->chosen)
        snprintf(chosen, sizeof chosen, ", for which --C %.4g%s (l2 %.4g) was chosen",
                 1 / ((run->fit->problem.loss == SHMT_SOLVE_SQUARED ? 2 : 1) * l2 * (double)run->spec.n_examples),
                 kept->scaled ? " --scale yes" : "", l2);
    shmt_log(&run->call->log, "resuming from %s: epoch %u of the fit%s", shown, with->at.epoch + 1, chosen);
}

static void say_where(const struct shmt_run *run, const struct shmt_checkpoint *with) {
    char shown[SHMT_NAME_SHOWN];
    const struct shmt_spec *spec = &run->spec;
    shmt_show_name(run->checkpoints->from_path, shown);
    if (run->checkpoints->done)
        shmt_log(&run->call->log, "%s: its run is complete: use more --%s to continue", shown,
                 with->at.epoch >= spec->epochs ? "epochs" : "steps");
    else if (with->at.step > 0)
        shmt_log(&run->call->log, "resuming from %s: epoch %u of %u, %llu of %llu steps done", shown, with->at.epoch + 1,
                 spec->epochs, (unsigned long long)with->at.step, (unsigned long long)shmt_spec_steps(spec));
    else if (run->fits)
        say_fit(run, with, shown);
    else
        shmt_log(&run->call->log, "resuming from %s: epoch %u of %u", shown, with->at.epoch + 1, spec->epochs);
    const bool other = shmt_rate_goes_by_the_run(&spec->rate) || spec->rate.every != with->spec.rate.every;
    if (!run->fits && spec->epochs != with->spec.epochs && (spec->rate.kind == SHMT_RATE_CONSTANT || !other)) {
        if (run->config->epochs == 0) shmt_log(&run->call->log, "--epochs is %u, but was %u", spec->epochs, with->spec.epochs);
    } else if (!run->fits && spec->epochs != with->spec.epochs)
        shmt_log(&run->call->log, "--epochs is %u, but was %u: from here on the rate falls as in a run of the new length",
                 spec->epochs, with->spec.epochs);
    if (run->config->init_from[0]) shmt_log(&run->call->log, "--init-from has no effect on a run that is resumed");
}

static int check_epochs(struct shmt_run *run, const struct shmt_checkpoint *with) {
    char shown[SHMT_NAME_SHOWN];
    if (with->at.epoch + (with->at.step > 0) <= run->spec.epochs) return 0;
    shmt_show_name(run->checkpoints->from_path, shown);
    return shmt_refuse(&run->call->error, "--resume: --epochs is %u here, but %s is of epoch %u: use more", run->spec.epochs,
                       shown, with->at.epoch + (with->at.step > 0));
}

int shmt_checkpoints_settle(struct shmt_run *run, const struct shmtrain_model *model) {
    SHMT_PLAIN_NUMBERS;
    if (!run->from) return 0;
    const struct shmt_checkpoint *with = shmt_checkpoint_of(run->from);
    struct comparison m = {.run = run, .with = with};
    match_run(&m, model);
    if (run->fits || with->fit.is) match_fit(&m);
    match_mode(&m);
    match_l2(&m, model);
    if (m.rc == 0) m.rc = check_epochs(run, with);
    if (m.rc < 0) return m.rc;
    begin_there(run, with);
    return 0;
}

/* ---- data ---- */

/* A checksum is nothing that somebody could give. */
static int refuse_data(struct comparison *m) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(m->run->checkpoints->from_path, shown);
    return shmt_refuse(&m->run->call->error,
                       "--resume: labels, weights or lengths of rows differ from those in the run of %s: use its data, "
                       "--weights and --class-weight, or start a new run in another folder",
                       shown);
}

int shmt_checkpoints_check_data(struct shmt_run *run, const struct shmt_data_print *print, const struct shmt_ids *ids) {
    struct shmt_checkpoints *c = run->checkpoints;
    c->data = *print;
    if (!run->from) return 0;
    const struct shmt_checkpoint *with = shmt_checkpoint_of(run->from);
    struct comparison m = {.run = run, .with = with, .remedy = "take its data"};
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

static int refuse_table(struct shmt_run *run, const struct shmt_table_spec *table) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(run->checkpoints->from_path, shown);
    return shmt_refuse(&run->call->error, "--resume: table \"%s\" (%llu, %u) is not in %s", table->name,
                       (unsigned long long)table->rows, table->width, shown);
}

static int restore_table(struct shmt_run *run, uint32_t t, uint32_t planes) {
    struct shmt_declared *d = &run->params->table[t];
    const struct shmt_checkpoint_in *from = run->from;
    const uint64_t floats = shmt_table_floats(&d->table);
    free(d->value);
    free(d->state);
    d->state = NULL;
    d->value = malloc(floats * sizeof *d->value);
    if (planes > 0) d->state = malloc(planes * floats * sizeof *d->state);
    if (!d->value || (planes > 0 && !d->state))
        return shmt_no_memory(&run->call->error, "for table \"%s\" of a checkpoint", d->table.name);
    int rc = shmt_checkpoint_read(from, t, -1, d->value, &run->call->error);
    for (uint32_t p = 0; p < planes && rc == 0; p++)
        rc = shmt_checkpoint_read(from, t, (int)p, d->state + p * floats, &run->call->error);
    return rc;
}

/* The last check of all: only then it goes on. */
int shmt_checkpoints_restore(struct shmt_run *run) {
    if (!run->from) return 0;
    const struct shmt_checkpoint *with = shmt_checkpoint_of(run->from);
    uint64_t bytes = 0;
    for (uint32_t t = 0; t < run->params->n_tables; t++) {
        const struct shmt_table_spec *ours = &run->params->table[t].table, *theirs = &with->table[t].table;
        if (t >= with->n_tables || strcmp(ours->name, theirs->name) != 0 || ours->rows != theirs->rows ||
            ours->width != theirs->width)
            return refuse_table(run, ours);
        bytes += (1 + (uint64_t)with->n_planes) * shmt_table_floats(ours) * sizeof(float); /* no more than the file has */
    }
    int rc = shmt_budget_need(bytes, "the checkpoint", NULL, "free some", &run->call->error);
    for (uint32_t t = 0; t < run->params->n_tables && rc == 0; t++) rc = restore_table(run, t, with->n_planes);
    if (rc == 0) say_where(run, with);
    run->params->kept = (struct shmt_kept){
        .rule = run->spec.rule, .rate = run->spec.rate.base, .planes = with->n_planes, .steps = with->at.steps_before};
    return rc;
}

/* ---- the run ---- */

static void show_records(struct shmt_run *run, struct shmt_board *board, const struct shmt_moment *at) {
    struct shmtrain_report *r = &run->report;
    double loss = 0;
    uint64_t examples = 0;
    const uint32_t n = (uint32_t)shmt_min_u64(at->n_records, run->spec.epochs);
    for (uint32_t i = 0; i < n; i++) {
        shmt_board_epochs(board, &run->job.board)[i] = run->epochs[i] = at->record[i];
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
static void say_order(const struct shmt_run *run, const struct shmt_checkpoint *with) {
    const struct shmt_spec *spec = &run->spec;
    if (with->at.step == 0 || spec->n_seats == with->spec.n_seats || !shmt_strata_follow_seats(spec)) return;
    shmt_log(
        &run->call->log,
        "workers are on other NUMA nodes than before: in epoch %u some examples come twice, and the same number is left out",
        with->at.epoch + 1);
}

int shmt_checkpoints_begin_board(struct shmt_run *run, struct shmt_store *made) {
    struct shmt_checkpoints *c = run->checkpoints;
    if (!run->from) return 0;
    const struct shmt_moment *at = &shmt_checkpoint_of(run->from)->at;
    struct shmt_board *board = shmt_array_at(run->backend, made, SHMT_ARRAY_BOARD);
    uint32_t reached;
    show_records(run, board, at);
    const int rc = shmt_fit_restore(run, made, c->done, &reached);
    if (rc < 0) return rc;
    if (reached == SHMT_END_NOT && at->step == 0)
        reached = shmt_goal_reached(&run->job.goal, run->epochs, run->report.n_epochs);
    if (reached != SHMT_END_NOT && !c->done) {
        store_relaxed(&board->ended_by, reached);
        if (reached == SHMT_END_PRECISION)
            shmt_log(&run->call->log, "that run has come as near the optimum as numbers allow: nothing is left to do");
        else
            shmt_log(&run->call->log, "--%s has already ended that run: nothing is left to do", shmt_end_name(reached));
        c->done = true;
    }
    if (c->done) return 0;
    say_order(run, shmt_checkpoint_of(run->from));
    run->job.before_ns = (uint64_t)(fmin(at->epoch_seconds, 1e9) * 1e9);
    return run->backend->store->resume(made, at->done, at->loss, &run->call->error);
}
