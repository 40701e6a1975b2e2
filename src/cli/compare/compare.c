/* shmtrain compare: trains in several modes, one after the other, and shows what each costs and gives. See compare.h. */
#include "cli/compare/compare.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/output.h"
#include "cli/show.h"
#include "cli/talk.h"

#define DEFAULT_DATA  "builtin:sparse"
#define DEFAULT_RATES 3
#define MOST_RATES    15
#define DEFAULT_MODES "async,sync,ssp:4,backup,local"
#define PLOT_COLUMNS  78
#define WIDEST_PLOT   120
#define NARROWEST     40
#define PLOT_ROWS     16

/* ---- what is compared ---- */

/* A mode of the list; the library knows which there are. */
static int add_mode(struct comparison *c, struct shmtrain_store *store, const char *list, const char *name, size_t n) {
    struct compare_run *run = &c->run[c->n];
    if (c->n == COMPARE_MOST) return talk_refuse("--modes %s: at most %d modes are compared", list, COMPARE_MOST);
    if (n >= sizeof run->mode) return talk_refuse("--modes %.60s...: a mode's name is shorter", list);
    snprintf(run->mode, sizeof run->mode, "%.*s", (int)n, name);
    if (shmtrain_store_set(store, "mode", run->mode) < 0)
        return talk_refuse("--modes %s: %s", list, shmtrain_store_message(store));
    run->to_target_s = run->to_target_epochs = run->final_loss = run->lowest_loss = run->lowest_at = NAN;
    c->n++;
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

static struct output_wish page_of(const struct arguments *a) { return (struct output_wish){"--html", a->html, "the page"}; }

static int prepare(struct comparison *c, struct shmtrain_store *store, const struct arguments *a) {
    c->arguments = a;
    c->data = files_named(a, 0, DEFAULT_DATA);
    if (!c->data) return 2;
    const struct output_wish wish = page_of(a);
    files_title(a, 0, DEFAULT_DATA, c->title, sizeof c->title);
    int status = refuse_options(a);
    if (status == 0) status = files_refuse_pipes(a, 0, "compare");
    if (status == 0) status = take_modes(c, store, a->modes ? a->modes : DEFAULT_MODES);
    if (status == 0) status = take_target(c, a->target);
    if (status == 0) status = take_tune(c, a);
    if (status == 0) status = show_check(a);
    if (status == 0) status = output_check(store, &wish, NULL, c->data);
    if (status == 0) status = output_share_stdout(&wish, 1, a->json, &c->stdout_is_taken);
    list_replacing(c);
    compare_name(c);
    compare_letter(c);
    return status;
}

/* ---- running ---- */

/* All modes fail for the same reason: it is said once, as when training. */
static bool all_say_the_same(const struct comparison *c) {
    for (unsigned i = 1; i < c->n; i++)
        if (c->run[i].status != c->run[0].status || strcmp(c->run[i].why, c->run[0].why) != 0) return false;
    return true;
}

/* The status of a comparison that may have come to nothing; 0: there is something to show. */
static int run_all(struct comparison *c) {
    int rc = 0;
    talk_will_save(c->arguments->html, NULL);
    talk_catch_signals(NULL);
    for (unsigned i = 0; i < c->n && rc == 0 && !talk_caught(); i++) {
        rc = compare_train(c, &c->run[i]);
        if (rc < 0 && !compare_has_runs(c)) {
            talk_refuse("%s", c->run[i].why);
            return talk_exit_status(1);
        }
    }
    if (compare_has_runs(c)) return 0;
    if (talk_caught()) return talk_exit_status(1);
    if (!all_say_the_same(c)) return 0;
    talk_refuse("%s", c->run[0].why);
    return c->run[0].status == SHMTRAIN_E_USAGE ? 2 : 1;
}

/* ---- telling ---- */

static bool is_utf8(void) {
    const locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (locale == (locale_t)0) return false;
    const bool yes = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return yes;
}

/* A file is read on screens of 80 columns. */
static void look_at_screen(int fd, struct plot_screen *out) {
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    const bool is_terminal = isatty(fd) != 0;
    struct winsize size;
    *out = (struct plot_screen){.columns = PLOT_COLUMNS, .rows = PLOT_ROWS};
    out->blocks = is_utf8() && !(term && strcmp(term, "linux") == 0);
    out->colours = is_terminal && term && strcmp(term, "dumb") != 0 && (!no_color || no_color[0] == '\0');
    if (!is_terminal || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
    out->columns = size.ws_col < NARROWEST + 2 ? NARROWEST : size.ws_col > WIDEST_PLOT + 2 ? WIDEST_PLOT : size.ws_col - 2u;
}

static void put_plot(const struct comparison *c, bool by_time, FILE *out) {
    struct compare_plot made;
    struct plot_screen screen;
    compare_make_plot(c, by_time, &made);
    look_at_screen(fileno(out), &screen);
    if (made.plot.n_curves > 0) fprintf(out, "\n");
    plot_draw(&made.plot, &screen, out);
    compare_release_plot(&made);
}

/* 0, or the exit status. */
static int write_page(const struct comparison *c) {
    const struct output_wish wish = page_of(c->arguments);
    struct output page;
    if (!wish.path) return 0;
    const int status = output_open(&page, &wish);
    if (status != 0) return status;
    errno = 0;
    compare_put_html(c, page.file);
    return output_close(&page, ferror(page.file) ? errno : 0);
}

static int tell(const struct comparison *c) {
    const struct arguments *a = c->arguments;
    if (a->json && compare_put_json(c, stdout) < 0) return talk_refuse("not enough memory for the result") - 1;
    if (!a->json && !a->quiet) {
        FILE *out = c->stdout_is_taken ? stderr : stdout;
        if (isatty(fileno(out))) fprintf(out, "\n"); /* below what was seen while it ran */
        compare_put_table(c, out);
        put_plot(c, false, out);
        put_plot(c, true, out);
    }
    const int status = write_page(c);
    talk_will_save(NULL, NULL);
    const int closed = talk_close_output();
    if (status == 0 && a->html && !a->quiet) fprintf(stderr, "saved       %s\n", a->html);
    return status != 0 ? status : closed;
}

int compare_run(struct shmtrain_store *store, const struct arguments *a) {
    struct comparison *c = calloc(1, sizeof *c);
    if (!c) return talk_refuse("not enough memory to begin") - 1;
    int status = prepare(c, store, a);
    if (status == 0) status = run_all(c);
    if (status == 0) {
        compare_work_out(c);
        status = tell(c);
        if (status == 0 && !compare_has_runs(c)) status = 1;
    }
    for (unsigned i = 0; i < c->n; i++) kept_destroy(c->run[i].kept);
    free(c);
    return talk_exit_status(status);
}
