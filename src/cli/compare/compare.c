/* shmtrain compare: trains in several modes, one after the other, and shows what each costs and gives. See compare.h. */
#include "cli/compare/compare.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/talk.h"

#define PLOT_COLUMNS 78
#define WIDEST_PLOT  120
#define NARROWEST    40
#define PLOT_ROWS    16

/* ---- running ---- */

/* All modes fail for the same reason: it is said once, as when training. */
static bool all_say_the_same(const struct comparison *c) {
    for (unsigned i = 1; i < c->n; i++)
        if (c->run[i].status != c->run[0].status || strcmp(c->run[i].why, c->run[0].why) != 0) return false;
    return true;
}

/* Each run finds its rate, one after the other. Returns as compare_tune, for which run `*i` is. */
static int tune_all(struct comparison *c, unsigned *i) {
    int rc = 0;
    if (compare_measures(c) && c->rates <= 1) return 0; /* there is nothing to choose */
    for (*i = 0; *i < c->n && rc == 0 && !talk_caught(); *i += rc == 0) {
        rc = compare_tune(c, &c->run[*i]);
        if (rc == 0) compare_say_tuned(c, &c->run[*i]);
    }
    return rc;
}

/* Then they take turns, a round for each seed: what the machine does meanwhile does not hit one of them alone. */
static int measure_all(struct comparison *c, unsigned *i) {
    int rc = 0;
    for (unsigned k = 0; compare_measures(c) && k < c->seeds && rc == 0 && !talk_caught(); k++) {
        const double began = compare_now();
        for (*i = 0; *i < c->n && rc == 0 && !talk_caught(); *i += rc == 0) rc = compare_measure(c, &c->run[*i], k);
        if (rc == 0 && !talk_caught()) compare_say_round(c, k, compare_now() - began);
    }
    return rc;
}

/* The status of a comparison that may have come to nothing; 0: there is something to show. */
static int run_all(struct comparison *c) {
    unsigned i = 0;
    talk_will_save(c->arguments->html, NULL);
    talk_catch_signals(NULL);
    c->began = compare_now();
    int rc = tune_all(c, &i);
    const bool nothing_to_measure = compare_measures(c) && c->rates > 1 && !compare_has_runs(c);
    if (rc == 0 && !nothing_to_measure) rc = measure_all(c, &i);
    c->broken = rc < 0;
    if (c->broken) talk_refuse("%s", c->run[i].why);
    if (compare_has_runs(c)) return 0;
    if (c->broken) return talk_exit_status(1);
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

static void draw(struct compare_plot *made, FILE *out) {
    struct plot_screen screen;
    look_at_screen(fileno(out), &screen);
    if (made->plot.n_curves > 0) fprintf(out, "\n");
    plot_draw(&made->plot, &screen, out);
    compare_release_plot(made);
}

static void put_plots(const struct comparison *c, FILE *out) {
    struct compare_plot made;
    compare_make_speed_up(c, &made);
    draw(&made, out);
    for (int by_time = 0; by_time < 2; by_time++) {
        compare_make_plot(c, by_time != 0, &made);
        draw(&made, out);
    }
}

/* 0, or the exit status. */
static int write_page(const struct comparison *c) {
    const struct output_wish wish = compare_page(c->arguments);
    struct output page;
    if (!wish.path) return 0;
    const int status = output_open(&page, &wish);
    if (status != 0) return status;
    errno = 0;
    if (compare_put_html(c, page.file) < 0) {
        output_discard(&page);
        return talk_refuse("not enough memory for the page") - 1;
    }
    return output_close(&page, ferror(page.file) ? errno : 0);
}

static int tell(const struct comparison *c) {
    const struct arguments *a = c->arguments;
    if (a->json && compare_put_json(c, stdout) < 0) return talk_refuse("not enough memory for the result") - 1;
    if (!a->json && !a->quiet) {
        FILE *out = c->stdout_is_taken ? stderr : stdout;
        if (isatty(fileno(out))) fprintf(out, "\n"); /* below what was seen while it ran */
        compare_put_table(c, out);
        put_plots(c, out);
    }
    const int status = write_page(c);
    talk_will_save(NULL, NULL);
    const int closed = talk_close_output();
    if (status == 0 && a->html && !a->quiet) fprintf(stderr, "saved       %s\n", a->html);
    return status != 0 ? status : closed;
}

static void release(struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++)
        for (unsigned k = 0; k < c->run[i].n_seeds; k++) kept_destroy(c->run[i].seed[k].kept);
    free(c);
}

int compare_run(struct shmtrain_store *store, const struct arguments *a) {
    struct comparison *c = calloc(1, sizeof *c);
    if (!c) return talk_refuse("not enough memory to begin") - 1;
    int status = compare_ask(c, store, a);
    if (status == 0) status = run_all(c);
    if (status == 0) {
        compare_work_out(c);
        status = tell(c);
        if (status == 0 && (c->broken || !compare_has_runs(c))) status = 1;
    }
    release(c);
    return talk_exit_status(status);
}
