/* What a comparison is asked for: modes, numbers of workers, seeds, rates, target. Each is checked here, before anything runs. See
 * compare.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/show.h"
#include "cli/talk.h"

#define DEFAULT_RATES 3
#define MOST_RATES    15
#define DEFAULT_MODES "async,sync,ssp:4,backup,local"

/* ---- modes and workers: the rows ---- */

static void add_run(struct comparison *c, const char *mode, uint32_t workers) {
    struct compare_run *run = &c->run[c->n++];
    snprintf(run->mode, sizeof run->mode, "%s", mode);
    run->which = c->n_modes;
    run->workers = workers;
    run->to_target_s = run->to_target_epochs = run->final_loss = run->lowest_loss = NAN;
    run->epoch_s = run->speed_up = NAN;
}

/* A mode of the list; the library knows which there are. */
static int add_mode(struct comparison *c, struct shmtrain_store *store, const char *list, const char *name, size_t n) {
    char mode[sizeof c->run->mode];
    if (c->n_modes == COMPARE_MODES) return talk_refuse("--modes %s: at most %d modes are compared", list, COMPARE_MODES);
    if (n >= sizeof mode) return talk_refuse("--modes %.60s...: a mode's name is shorter", list);
    snprintf(mode, sizeof mode, "%.*s", (int)n, name);
    if (shmtrain_store_set(store, "mode", mode) < 0) return talk_refuse("--modes %s: %s", list, shmtrain_store_message(store));
    for (unsigned i = 0; i == 0 || i < c->n_workers; i++) add_run(c, mode, c->n_workers > 0 ? c->workers[i] : 0);
    c->n_modes++;
    return 0;
}

static int take_modes(struct comparison *c, struct shmtrain_store *store, const char *list) {
    int status = 0;
    for (const char *at = list; at && status == 0; at = *at == ',' ? at + 1 : NULL) {
        at += strspn(at, " ");
        const size_t n = strcspn(at, ",");
        status = add_mode(c, store, list, at, n);
        at += n;
    }
    return status;
}

/* In its place, so that the fewest come first. */
static int add_workers(struct comparison *c, const char *list, uint32_t workers) {
    unsigned at = c->n_workers;
    if (at == COMPARE_WORKERS)
        return talk_refuse("--workers %.60s: at most %d numbers of workers are compared", list, COMPARE_WORKERS);
    for (; at > 0 && c->workers[at - 1] >= workers; at--) {
        if (c->workers[at - 1] == workers)
            return talk_refuse("--workers %.60s: %u is there twice; leave one out", list, workers);
    }
    memmove(&c->workers[at + 1], &c->workers[at], (c->n_workers - at) * sizeof *c->workers);
    c->workers[at] = workers;
    c->n_workers++;
    return 0;
}

/* A list that has more than one number; the library takes the numbers. */
static int take_workers(struct comparison *c, struct shmtrain_store *store, const char *list) {
    int status = 0;
    for (const char *at = list; at && status == 0; at = *at == ',' ? at + 1 : NULL) {
        char number[16];
        const size_t n = strcspn(at, ",");
        snprintf(number, sizeof number, "%.*s", (int)n, at);
        if (n == 0 || n >= sizeof number || strspn(number, "0123456789") != n ||
            shmtrain_store_set(store, "workers", number) < 0)
            return talk_refuse("--workers %.60s: \"%.*s\" is no number of workers from 1 to 4096; expected a list as in 1,2,4",
                               list, n > 20 ? 20 : (int)n, at);
        status = add_workers(c, list, (uint32_t)strtoul(number, NULL, 10));
        at += n;
    }
    return status;
}

/* ---- numbers ---- */

static int take_target(struct comparison *c, const char *target) {
    char *end;
    c->target = NAN;
    if (!target || strcmp(target, "auto") == 0) return 0;
    c->target = strtod(target, &end);
    c->target_is_given = true;
    if (end != target && *end == '\0' && isfinite(c->target) && c->target > 0) return 0;
    return talk_refuse("--target %s: expected a loss above 0, as in 0.35, or auto", target);
}

/* Where a rate is typed, or there is none to choose, there is nothing to try. */
static int take_tune(struct comparison *c, const struct arguments *a) {
    char *end;
    const unsigned long n = a->tune ? strtoul(a->tune, &end, 10) : DEFAULT_RATES;
    if (a->tune && (a->tune[0] < '0' || a->tune[0] > '9' || *end != '\0' || n > MOST_RATES))
        return talk_refuse("--tune %.60s: expected a number of rates from 0 to %d", a->tune, MOST_RATES);
    const bool typed = arguments_value(a, "rate") != NULL;
    c->untuned = n <= 1 && !typed;
    c->rates = typed ? 0 : (unsigned)n;
    return 0;
}

static uint64_t seed_of(const struct arguments *a) {
    const struct shmtrain_option *o;
    const char *seed = arguments_value(a, "seed");
    for (size_t i = 0; !seed && (o = shmtrain_option_at(i)); i++)
        if (strcmp(o->name, "seed") == 0) seed = o->standard;
    return seed ? strtoull(seed, NULL, 10) : 0;
}

/* Seeds are the first one and those behind it, as far as the library takes them. */
static int take_seeds(struct comparison *c, struct shmtrain_store *store, const struct arguments *a) {
    char *end, last[32];
    const unsigned long n = a->seeds ? strtoul(a->seeds, &end, 10) : 1;
    if (a->seeds && (a->seeds[0] < '0' || a->seeds[0] > '9' || *end != '\0' || n < 1 || n > COMPARE_SEEDS))
        return talk_refuse("--seeds %.60s: expected a number of seeds from 1 to %d", a->seeds, COMPARE_SEEDS);
    c->seeds = (unsigned)n;
    c->first_seed = seed_of(a);
    snprintf(last, sizeof last, "%llu", (unsigned long long)(c->first_seed + n - 1));
    if (n > 1 && shmtrain_store_set(store, "seed", last) < 0)
        return talk_refuse("--seeds %lu: there are not as many behind --seed %llu: give a smaller one", n,
                           (unsigned long long)c->first_seed);
    return 0;
}

/* The data of all runs, whatever their seeds: that of the first one, where it is generated. */
static int take_data(struct comparison *c, const struct arguments *a) {
    static char *named; /* of one command line */
    c->data = files_named(a, 0, files_standard(a));
    if (!c->data) return 2;
    files_title(a, 0, files_standard(a), c->title, sizeof c->title);
    if (c->seeds == 1 || strncmp(c->data, "builtin:", 8) != 0 || strchr(c->data, '\n') || strstr(c->data, "seed=")) return 0;
    free(named);
    if (asprintf(&named, "%s%cseed=%llu", c->data, strchr(c->data + 8, ':') ? ',' : ':', (unsigned long long)c->first_seed) < 0)
        return talk_refuse("not enough memory to begin") - 1;
    c->data = named;
    return 0;
}

/* --valid that is a share of the data, which is another one with each seed. */
static bool splits(const struct arguments *a) {
    char *end;
    const char *valid = arguments_value(a, "valid");
    const double share = valid ? strtod(valid, &end) : 0;
    return valid && *end == '\0' && share > 0 && share < 1;
}

static void count_runs(struct comparison *c) {
    const unsigned tuning = c->rates > 1 || !compare_measures(c) ? (c->rates > 1 ? c->rates : 1) : 0;
    c->n_runs = c->n * (tuning + (compare_measures(c) ? c->seeds : 0));
}

/* What no comparison can have, from the environment: a step is an item in some modes and a batch in others. The command line's is refused
 * before (commands.c). */
static int refuse_options(const struct arguments *a) {
    static const struct {
        const char *option, *off, *variable;
    } REFUSED[] = {{"steps", "all", "SHMTRAIN_STEPS"}, {"tolerance", "none", "SHMTRAIN_TOLERANCE"}};
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        const char *value = arguments_value(a, REFUSED[i].option);
        if (value && strcmp(value, REFUSED[i].off) != 0)
            return talk_refuse("%s=%s: compare does not use it: %s", REFUSED[i].variable, value,
                               command_instead(a->command, REFUSED[i].option));
    }
    return 0;
}

/* Each run would measure for itself, and modes would differ by what the machine did meanwhile. */
static int refuse_measuring(const struct arguments *a) {
    const char *sim = arguments_value(a, "sim");
    if (!sim || !strstr(sim, "measured")) return 0;
    return talk_refuse(
        "--sim measured: compare would measure anew for each run: name the costs that one has measured (sim in its report), or "
        "use shmtrain scale");
}

/* Options that say by themselves what a mode says, too. */
static void list_replacing(struct comparison *c) {
    static const char *const AXES[] = {"write", "staleness", "quorum", "late", "replicas", "merge-every", "merge"};
    for (size_t i = 0; i < sizeof AXES / sizeof *AXES; i++) {
        const char *value = arguments_value(c->arguments, AXES[i]);
        const size_t used = strlen(c->replacing);
        if (value && strcmp(value, "auto") != 0)
            snprintf(c->replacing + used, sizeof c->replacing - used, "%s--%s %.12s", used > 0 ? ", " : "", AXES[i], value);
    }
}

int compare_ask(struct comparison *c, struct shmtrain_store *store, const struct arguments *a) {
    c->arguments = a;
    const struct output_wish wish = compare_page(a);
    int status = take_seeds(c, store, a);
    if (status == 0) status = take_data(c, a);
    if (status == 0) status = refuse_options(a);
    if (status == 0) status = refuse_measuring(a);
    if (status == 0) status = files_refuse_pipes(a, 0, "compare");
    if (status == 0 && a->workers) status = take_workers(c, store, a->workers);
    if (status == 0) status = take_modes(c, store, a->modes ? a->modes : DEFAULT_MODES);
    if (status == 0) status = take_target(c, a->target);
    if (status == 0) status = take_tune(c, a);
    if (status == 0) status = show_check(a);
    if (status == 0) status = output_check(store, &wish, NULL, c->data);
    if (status == 0) status = output_share_stdout(&wish, 1, a->json, &c->stdout_is_taken);
    c->splits = splits(a);
    list_replacing(c);
    compare_name(c);
    compare_letter(c);
    count_runs(c);
    return status;
}
