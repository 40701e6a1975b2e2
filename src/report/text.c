/* A report as lines for people: at most 80 columns, plain characters, columns that stay where they are. What is about the
 * consistency space is in consistency.c, what about the costs in costs.c. */
#include <shmtrain/report.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "report/words_priv.h"

#define WELL_NEAR 0.01 /* a gap */

static void cell(char *out, size_t bytes, int width, int digits, double x) {
    char text[32] = "-";
    if (!isnan(x)) {
        text[0] = '\0';
        shmt_add_number(text, sizeof text, width, digits, x);
    }
    shmt_add(out, bytes, " %*s", width, text);
}

static int has_valid(const struct shmtrain_report *r) { return r->valid.name[0] != '\0'; }

static int is_fit(const struct shmtrain_report *r) { return r->tolerance > 0; } /* NaN: not */

double shmtrain_epoch_gap(const struct shmtrain_epoch *epoch) {
    const double gap = epoch->objective - epoch->bound;
    if (!(gap >= -1e-9 * fabs(epoch->bound))) return NAN; /* more than rounding explains */
    return gap <= 0 ? 0 : epoch->bound > 0 ? gap / epoch->bound : NAN;
}

void shmtrain_report_heading(const struct shmtrain_report *r, char *out, size_t bytes) {
    SHMT_PLAIN_NUMBERS;
    snprintf(out, bytes, "epoch  %s%s  %s   seconds", is_fit(r) ? "  objective      gap" : "train loss",
             has_valid(r) ? r->with_auc        ? "  valid loss  accuracy     AUC"
                            : r->with_accuracy ? "  valid loss  accuracy"
                                               : "  valid loss"
                          : "",
             is_fit(r) ? "" : "examples/s");
}

/* Objective and gap of a fit. */
static void add_gap(char *out, size_t bytes, const struct shmtrain_epoch *epoch) {
    const double gap = shmtrain_epoch_gap(epoch);
    if (isnan(epoch->objective))
        shmt_add(out, bytes, " %12s", "-");
    else
        shmt_add(out, bytes, " %#12.7g", epoch->objective);
    if (isnan(gap))
        shmt_add(out, bytes, " %8s", "-");
    else
        shmt_add(out, bytes, " %8.1e", gap);
}

void shmtrain_report_line(const struct shmtrain_report *r, const struct shmtrain_epoch *epoch, char *out, size_t bytes) {
    SHMT_PLAIN_NUMBERS;
    char rate[16];
    snprintf(out, bytes, "%5u ", epoch->epoch);
    if (is_fit(r))
        add_gap(out, bytes, epoch);
    else
        cell(out, bytes, 10, 5, epoch->train_loss);
    if (has_valid(r)) {
        shmt_add(out, bytes, " ");
        cell(out, bytes, 10, 5, epoch->valid_loss);
        if (r->with_accuracy && isnan(epoch->valid_accuracy))
            shmt_add(out, bytes, "  %8s", "-");
        else if (r->with_accuracy)
            shmt_add(out, bytes, "  %6.2f %%", 100 * epoch->valid_accuracy);
        if (r->with_auc) cell(out, bytes, 7, 4, epoch->valid_auc);
    }
    if (is_fit(r))
        shmt_add(out, bytes, "   ");
    else
        shmt_add(out, bytes, "  %10s ",
                 shmt_short_number(epoch->seconds > 0 ? (double)epoch->examples / epoch->seconds : 0, rate));
    cell(out, bytes, 8, 3, epoch->seconds);
    if (epoch->partial) shmt_add(out, bytes, "  stopped");
}

void shmtrain_steps_line(const struct shmtrain_steps *s, char *out, size_t bytes) {
    SHMT_PLAIN_NUMBERS;
    char examples[16], rate[16];
    snprintf(out, bytes, "step %llu   epoch %u/%u   %s examples   loss ", (unsigned long long)s->step, s->epoch, s->epochs,
             shmt_short_number((double)s->examples, examples));
    shmt_add(out, bytes, isnan(s->loss) ? "-" : "%.5f", s->loss);
    shmt_add(out, bytes, "   %s examples/s", shmt_short_number(s->examples_per_second, rate));
}

/* The name of a file may be long: its end says most; it begins with a whole character of UTF-8. What a terminal would obey
 * instead of showing it is shown as '?': control characters, and those of Latin-1 (0x80 to 0x9f, after 0xc2 in UTF-8). */
static void add_name(char *out, size_t bytes, const char *name) {
    const size_t n = strlen(name), most = 60;
    const char *at = n > most ? name + n - most : name;
    char shown[64], *to = shown;
    while (at > name && ((unsigned char)*at & 0xc0) == 0x80) at++;
    for (; *at; at++) {
        const unsigned char c = (unsigned char)*at, next = (unsigned char)at[1];
        const int is_latin1_control = c == 0xc2 && next >= 0x80 && next < 0xa0;
        if (is_latin1_control) at++;
        *to++ = c < ' ' || c == 0x7f || is_latin1_control ? '?' : *at;
    }
    *to = '\0';
    shmt_add(out, bytes, "%s%s", n > most ? "..." : "", shown);
}

static void add_data(char *out, size_t bytes, const char *head, const char *name, uint64_t examples, uint64_t features,
                     uint64_t nonzeros) {
    char text[3][16];
    if (name[0] == '\0') return;
    shmt_add(out, bytes, "%-*s", SHMT_HEAD_COLUMNS, head);
    add_name(out, bytes, name);
    shmt_add(out, bytes, "\n%*s%s examples, %s features, %s nonzeros\n", SHMT_HEAD_COLUMNS, "",
             shmt_short_number((double)examples, text[0]), shmt_short_number((double)features, text[1]),
             shmt_short_number((double)nonzeros, text[2]));
}

/* How L2 is chosen. */
static void add_choosing(char *out, size_t bytes, const struct shmtrain_report *r) {
    char examples[16], of[24] = "";
    if (r->choice_held < r->choice_parts) snprintf(of, sizeof of, " of %u", r->choice_parts);
    if (r->choice_held == 1)
        shmt_add(out, bytes, "l2 chosen on one %uth, held out, of %s examples\n", r->choice_parts,
                 shmt_short_number((double)r->choice_examples, examples));
    else
        shmt_add(out, bytes, "l2 chosen on %u%s parts of the examples, each held out in turn\n", r->choice_held, of);
}

int shmt_choice_is_cut(const struct shmtrain_report *r) {
    return is_fit(r) && r->choice_examples > 0 && r->n_epochs > 0 && r->epoch[0].partial && isnan(r->choice_loss);
}

void shmtrain_report_choice(const struct shmtrain_report *r, char *out, size_t bytes) {
    SHMT_PLAIN_NUMBERS;
    const int is_linear = strcmp(r->model, "linear") == 0;
    if (bytes == 0) return;
    out[0] = '\0';
    if (!is_fit(r) || r->choice_examples == 0) return;
    if (shmt_choice_is_cut(r)) shmt_add(out, bytes, "chosen      nothing: stopped while L2 was being chosen");
    if (isnan(r->choice_loss)) return; /* steps of SGD say it where they begin */
    shmt_add(out, bytes, "chosen      --C %.4g%s (l2 %.4g), loss ",
             1 / ((is_linear ? 2 : 1) * r->l2 * (double)r->dataset.examples), r->scaled ? " --scale yes" : "", r->l2);
    shmt_add_number(out, bytes, 10, 5, r->choice_loss);
    shmt_add(out, bytes, " held out");
}

/* What a fit minimises. */
static void add_fit(char *out, size_t bytes, const struct shmtrain_report *r) {
    shmt_add(out, bytes, "model       %.16s, steps until it is proved within %.3g of the optimum,\n            ", r->model,
             r->tolerance);
    if (r->choice_examples > 0)
        add_choosing(out, bytes, r);
    else if (r->l1 > 0)
        shmt_add(out, bytes, "l1 %.4g, l2 %.4g\n", r->l1, r->l2);
    else
        shmt_add(out, bytes, "l2 %.4g%s\n", r->l2, r->scaled ? " of features divided by their scales" : "");
}

static bool has_velocity(const char *optimizer) {
    return strcmp(optimizer, "momentum") == 0 || strcmp(optimizer, "nesterov") == 0;
}

static void add_steps(char *out, size_t bytes, const struct shmtrain_report *r) {
    shmt_add(out, bytes, "model       %.16s, %s ", r->model, r->optimizer);
    if (has_velocity(r->optimizer)) shmt_add(out, bytes, "%.3g ", r->momentum);
    shmt_add(out, bytes, "with rate %.4g %s, ", r->rate, r->schedule);
    if (r->l1 > 0) shmt_add(out, bytes, "l1 %.4g,\n            ", r->l1); /* the line would grow too long */
    shmt_add(out, bytes, "l2 %.4g\n", r->l2);
    if (r->warmup > 0)
        shmt_add(out, bytes, "            the rate grows from 0 for %.3g epoch%s\n", r->warmup, r->warmup == 1 ? "" : "s");
    if (r->weight_decay > 0) shmt_add(out, bytes, "            weight decay %.4g\n", r->weight_decay);
    if (r->clip_value > 0) shmt_add(out, bytes, "            elements of gradients are clipped at %.4g\n", r->clip_value);
    if (r->clip_norm > 0)
        shmt_add(out, bytes, "            gradients%s are clipped at a norm of %.4g\n",
                 strcmp(r->write, "aggregate") == 0 ? "" : " of tables", r->clip_norm);
    if (r->choice_examples > 0) {
        shmt_add(out, bytes, "            ");
        add_choosing(out, bytes, r);
        shmt_add(out, bytes, "            as by hand with --l2 %.4g%s\n", r->l2, r->scaled ? " --scale yes" : "");
    }
    if (r->scaled) shmt_add(out, bytes, "            of features on one scale; the saved model is for raw features\n");
}

static void add_model(char *out, size_t bytes, const struct shmtrain_report *r) {
    if (is_fit(r))
        add_fit(out, bytes, r);
    else
        add_steps(out, bytes, r);
    if (r->blas && r->blas[0] != '\0') shmt_add(out, bytes, "            on %.60s\n", r->blas);
}

/* Where it runs, as far as there is anything to say about it. */
static void add_machine(char *out, size_t bytes, const struct shmtrain_report *r) {
    shmt_add(out, bytes, "workers     %u", r->workers);
    if (r->threads > 1) shmt_add(out, bytes, " of %u threads", r->threads);
    if (r->guests > 0) shmt_add(out, bytes, ", places for %u guest%s", r->guests, r->guests == 1 ? "" : "s");
    const bool in_virtual_time = r->spawn && strcmp(r->spawn, "fibers") == 0;
    shmt_add(out, bytes, ", %s backend\n", r->backend);
    if (r->hosts > 1)
        shmt_add(out, bytes, "            on host %u; there are %u hosts, each with workers of its own\n", r->host, r->hosts);
    if (in_virtual_time)
        shmt_add(out, bytes, "            fibers: all times and speeds of training are virtual\n");
    else if (r->cores > 0 && r->workers * (uint64_t)r->threads > r->cores)
        shmt_add(out, bytes, "            more threads than cores (%u): workers also wait for cores\n", r->cores);
    if (r->numa_nodes > 1)
        shmt_add(out, bytes, "memory      %s over %u NUMA nodes, pages of %s\n", r->numa, r->numa_nodes,
                 r->page_bytes > 4096 ? "2 MiB" : "4 KiB");
}

void shmtrain_report_opening(const struct shmtrain_report *r, char *out, size_t bytes) {
    SHMT_PLAIN_NUMBERS;
    if (bytes == 0) return;
    out[0] = '\0';
    add_data(out, bytes, "data", r->dataset.name, r->dataset.examples, r->dataset.features, r->dataset.nonzeros);
    add_data(out, bytes, "validation", r->valid.name, r->valid.examples, r->valid.features, r->valid.nonzeros);
    if (r->model[0] != '\0') add_model(out, bytes, r);
    shmt_add_consistency(out, bytes, r);
    add_machine(out, bytes, r);
}

static void add_validation(char *out, size_t bytes, const struct shmtrain_report *r) {
    if (r->n_epochs == 0 || isnan(r->epoch[r->n_epochs - 1].valid_loss)) return;
    const struct shmtrain_epoch *last = &r->epoch[(r->kept_epoch > 0 ? r->kept_epoch : r->n_epochs) - 1];
    if (r->kept_epoch > 0)
        shmt_add(out, bytes, "kept        the parameters of epoch %u, with the lowest validation loss\n", r->kept_epoch);
    shmt_add(out, bytes, "validation  loss ");
    shmt_add_number(out, bytes, 10, 5, last->valid_loss);
    if (!isnan(last->valid_accuracy)) shmt_add(out, bytes, ", accuracy %.2f %%", 100 * last->valid_accuracy);
    if (!isnan(last->valid_auc)) shmt_add(out, bytes, ", AUC %.4f", last->valid_auc);
    shmt_add(out, bytes, "\n");
    if (isnan(r->best_loss)) return;
    shmt_add(out, bytes, "            the model that made the data has loss ");
    shmt_add_number(out, bytes, 10, 5, r->best_loss);
    shmt_add(out, bytes, ": ");
    shmt_add_number(out, bytes, 10, 5, fabs(last->valid_loss - r->best_loss));
    shmt_add(out, bytes, " %s\n", last->valid_loss >= r->best_loss ? "to go" : "below it");
}

/* Of steps of SGD that have come to their end: whether there was more to learn. Of the last two epochs, one of which may be noise,
 * or of the last one where there were only two; below the least loss before, for one that had jumped up says nothing by coming down. */
#define STILL_FALLS 0.02

static double loss_after(const struct shmtrain_epoch *epoch) {
    return isnan(epoch->valid_loss) ? epoch->train_loss : epoch->valid_loss;
}

static double least_loss(const struct shmtrain_epoch *epoch, uint32_t n) {
    double least = loss_after(&epoch[0]);
    for (uint32_t i = 1; i < n; i++) least = fmin(least, loss_after(&epoch[i]));
    return least;
}

/* The epoch that was kept as the best one, where others came behind it: more of them are worth nothing. */
static int got_worse(const struct shmtrain_report *r) { return r->kept_epoch > 0 && r->kept_epoch < r->n_epochs; }

static void add_hint(char *out, size_t bytes, const struct shmtrain_report *r) {
    if (is_fit(r) || r->stopped || r->model[0] == '\0' || r->n_epochs < 2 || got_worse(r)) return;
    const uint32_t n = r->n_epochs > 2 ? 2 : 1;
    const double before = least_loss(r->epoch, r->n_epochs - n), last = loss_after(&r->epoch[r->n_epochs - 1]);
    const double part = (before - last) / fabs(last);
    if (!(part > STILL_FALLS) || !isfinite(part)) return;
    shmt_add(out, bytes, "hint        the loss still falls, by %.0f %% in the last %s: try -e %u\n", fmin(100 * part, 999),
             n > 1 ? "two epochs" : "epoch", 2 * r->n_epochs);
}

static void add_checkpoints(char *out, size_t bytes, const struct shmtrain_report *r) {
    if (r->checkpoints == 0) return;
    shmt_add(out, bytes, "checkpoints %u, for which training paused ", r->checkpoints);
    shmt_add_number(out, bytes, 8, 3, r->checkpoint_seconds);
    shmt_add(out, bytes, " s\n");
}

static void add_examples(char *out, size_t bytes, const char *before, uint64_t n, const char *after) {
    char text[16];
    if (n > 0) shmt_add(out, bytes, "%s%s example%s %s", before, shmt_short_number((double)n, text), shmt_plural(n), after);
}

/* Of guests nobody is started again, but what they had in hand is left out. */
static void add_deaths(char *out, size_t bytes, const struct shmtrain_report *r) {
    char text[16];
    if (r->respawns == 0 && r->skipped == 0) return;
    shmt_add(out, bytes, "deaths      ");
    if (r->respawns > 0)
        shmt_add(out, bytes, "workers were restarted %s time%s", shmt_short_number((double)r->respawns, text),
                 shmt_plural(r->respawns));
    add_examples(out, bytes, ",\n            ", r->redone, "of unfinished items done again");
    add_examples(out, bytes, r->respawns > 0 ? ",\n            " : "", r->skipped, "of unfinished items skipped");
    shmt_add(out, bytes, "\n");
}

static void add_network(char *out, size_t bytes, const struct shmtrain_report *r) {
    char text[2][16];
    if (r->hosts <= 1) return;
    const char *sent = r->sent_bytes < 10000 ? " B" : "B",
               *received = r->received_bytes < 10000 ? " B" : "B"; /* behind "12.3 k" */
    shmt_add(out, bytes, "network     %s%s sent, %s%s received", shmt_short_number((double)r->sent_bytes, text[0]), sent,
             shmt_short_number((double)r->received_bytes, text[1]), received);
    if (r->wait_hosts_fraction > 0) shmt_add(out, bytes, ", waited for %.1f %% of the time", 100 * r->wait_hosts_fraction);
    shmt_add(out, bytes, "\n");
}

/* A little more than the gap, in one digit: what a run of the same kind will come to. */
static double next_tolerance(double gap) {
    const double digit = pow(10, floor(log10(gap)));
    return digit * ceil(1.05 * gap / digit);
}

/* The gap has stopped falling: how near it came, why, and what to type. Where it came near, the digits of 32-bit weights are what is
 * missing; else sizes of features are what steps suffer from, and steps of all workers at once more than others. */
static void add_nearest(char *out, size_t bytes, const struct shmtrain_report *r, double gap) {
    const int live = strcmp(r->mode, "sync") != 0;
    if (gap <= WELL_NEAR)
        shmt_add(out, bytes, "optimum     NOT proved: the gap stays at %.1e, floats have no more digits:\n            ", gap);
    else if (isnan(gap))
        shmt_add(out, bytes, "optimum     NOT proved: no lower bound was found, steps lead no further:\n            ");
    else
        shmt_add(out, bytes, "optimum     NOT proved: the gap stays at %.1e, steps lead no further:\n            ", gap);
    if (live && !(gap <= WELL_NEAR))
        shmt_add(out, bytes, "leave out --mode, or scale the features to about 1\n");
    else if (gap <= WELL_NEAR)
        shmt_add(out, bytes, "use --tolerance %.1g, or scale the features to about 1\n", next_tolerance(gap));
    else
        shmt_add(out, bytes, "scale the features to about 1, or use more L2 (a smaller --C)\n");
}

/* What is proved. */
static void add_optimum(char *out, size_t bytes, const struct shmtrain_report *r) {
    if (!is_fit(r) || r->n_epochs == 0) return;
    const struct shmtrain_epoch *last = &r->epoch[r->n_epochs - 1];
    if (r->stopped_by && strcmp(r->stopped_by, "precision") == 0)
        add_nearest(out, bytes, r, shmtrain_epoch_gap(last));
    else if (isnan(last->objective))
        shmt_add(out, bytes, "optimum     NOT proved: the run ended before there was an objective\n");
    else if (shmtrain_epoch_gap(last) <= r->tolerance)
        shmt_add(out, bytes, "optimum     proved: the objective %.8g is within %.1e of it\n", last->objective,
                 shmtrain_epoch_gap(last));
    else
        shmt_add(out, bytes, "optimum     NOT proved: the objective is %.8g, the lower bound %.8g%s\n", last->objective,
                 last->bound > 0 ? last->bound : 0, r->stopped ? "" : "; try more --epochs");
}

void shmtrain_report_summary(const struct shmtrain_report *r, char *out, size_t bytes) {
    SHMT_PLAIN_NUMBERS;
    char text[2][16];
    if (bytes == 0) return;
    out[0] = '\0';
    shmt_add_workers(out, bytes, r);
    shmt_add(out, bytes, "%s %u epoch%s in ", r->stopped ? "stopped:" : "done:", r->n_epochs, shmt_plural(r->n_epochs));
    shmt_add_number(out, bytes, 8, 3, r->seconds);
    shmt_add(out, bytes, " s (");
    shmt_add_number(out, bytes, 8, 3, r->train_seconds);
    shmt_add(out, bytes, " s of training), %s examples/s", shmt_short_number(r->examples_per_second, text[0]));
    shmt_add(out, bytes, "\n            %s update%s", shmt_short_number((double)r->updates, text[1]), shmt_plural(r->updates));
    if (r->stopped_by && strcmp(r->stopped_by, "precision") == 0)
        shmt_add(out, bytes, ", ended where the gap no longer fell");
    else if (r->stopped_by && strcmp(r->stopped_by, "tolerance") == 0)
        shmt_add(out, bytes, ", ended where the optimum was proved");
    else if (r->stopped_by && strcmp(r->stopped_by, "host") == 0)
        shmt_add(out, bytes, ", ended by another host");
    else if (r->stopped_by && r->stopped_by[0] != '\0' && strcmp(r->stopped_by, "request") != 0)
        shmt_add(out, bytes, ", ended by --%s", r->stopped_by);
    shmt_add(out, bytes, "\n");
    shmt_add_costs(out, bytes, r);
    add_checkpoints(out, bytes, r);
    add_deaths(out, bytes, r);
    add_network(out, bytes, r);
    if (!isnan(r->lost_updates)) {
        shmt_add(out, bytes, "lost        ");
        shmt_add_number(out, bytes, 6, 2, 100 * r->lost_updates);
        shmt_add(out, bytes, " %% of parameters' updates");
        if (!isnan(r->lost_lowest)) {
            shmt_add(out, bytes, " (epochs: ");
            shmt_add_number(out, bytes, 6, 2, 100 * r->lost_lowest);
            shmt_add(out, bytes, " to ");
            shmt_add_number(out, bytes, 6, 2, 100 * r->lost_highest);
            shmt_add(out, bytes, " %%)");
        }
        shmt_add(out, bytes, "\n");
    }
    add_validation(out, bytes, r);
    add_hint(out, bytes, r);
    add_optimum(out, bytes, r);
    shmt_add(out, bytes, "parameters  xxh64 %016llx\n", (unsigned long long)r->parameters_xxh64);
}
