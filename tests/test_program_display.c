/* cli: the live display on a terminal, with a made-up run and with the program's own; and where there is no terminal. */
#include "run_program.h"
#include "pty_job.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cli/display.h"

#define MOST_WORKERS 100
#define KEY_STOP     "\032" /* Ctrl-Z */
#define KEY_END      "\003" /* Ctrl-C */
#define DATA         "builtin:sparse:examples=3000,valid=500,features=400,nonzeros=12"

/* ---- the job: a display that does what it is told ---- */

/* A run of which every look is different. */
static void tick(struct display *d, unsigned look, double seconds) {
    struct shmtrain_epoch epochs[2] = {{.epoch = 1, .train_loss = 0.5}, {.epoch = 2, .train_loss = 0.25}};
    struct shmtrain_worker_progress worker[MOST_WORKERS];
    const uint32_t n_workers = 1 + look * 7 % MOST_WORKERS;
    for (uint32_t i = 0; i < n_workers; i++)
        worker[i] = (struct shmtrain_worker_progress){.examples_per_second = 1000 * (look + i),
                                                      .compute_fraction = 0.75,
                                                      .wait_fraction = 0.125,
                                                      .merge_fraction = 0.0625,
                                                      .delay = look,
                                                      .here = 1};
    const struct shmtrain_report report = {
        .size = sizeof(struct shmtrain_report), .epoch = epochs, .n_epochs = 2, .merge = "mean"};
    const struct shmtrain_progress now = {.size = sizeof(struct shmtrain_progress),
                                          .epoch = 3,
                                          .epochs = 9,
                                          .examples = look % 100,
                                          .all_examples = 100,
                                          .seconds = seconds,
                                          .examples_per_second = 12345 * look,
                                          .loss = 0.125,
                                          .seconds_left = 1000 - look,
                                          .delay = 1000 * look,
                                          .dropped = look,
                                          .n_workers = n_workers,
                                          .worker = worker};
    display_progress(d, &report, &now);
}

/* Cues: t a look, l a line, n a note of somebody else's, h a signal handler's note, q the end. arg: the option --progress. */
static int perform(int cues, const void *arg) {
    struct display *d = display_open(display_choose(arg, false, STDOUT_FILENO), stdout);
    unsigned look = 0, n_lines = 0;
    char cue = 0;
    if (!d) return 1;
    while (cue != 'q' && read(cues, &cue, 1) == 1) {
        char line[32];
        if (cue == 't') tick(d, look, 0.1 * look);
        look += cue == 't';
        if (cue == 'n') display_clear(d);
        if (cue == 'h') display_clear_in_handler();
        if (cue == 'n' || cue == 'h') dprintf(STDERR_FILENO, "note %u\n", ++n_lines);
        snprintf(line, sizeof line, "line %u", n_lines + 1);
        if (cue == 'l') display_line(d, line);
        n_lines += cue == 'l';
    }
    display_close(d);
    printf("the end\n");
    return 0;
}

static int perform_in_ascii(int cues, const void *arg) {
    setenv("LC_ALL", "C", 1);
    return perform(cues, arg);
}

static int perform_without_colours(int cues, const void *arg) {
    setenv("NO_COLOR", "1", 1);
    return perform(cues, arg);
}

static int perform_on_a_dumb_terminal(int cues, const void *arg) {
    setenv("TERM", "dumb", 1);
    return perform(cues, arg);
}

static volatile sig_atomic_t noted;

static void note(int number) {
    (void)number;
    display_clear_in_handler();
    noted = write(STDERR_FILENO, "note 1\n", 7) == 7;
}

/* Looks until there is a signal. */
static int perform_until_noted(int cues, const void *arg) {
    struct display *d = display_open(PROGRESS_BAR, stdout);
    unsigned look = 0;
    (void)cues;
    (void)arg;
    if (!d || signal(SIGTERM, note) == SIG_ERR) return 1;
    while (!noted) tick(d, look, 0.1 * look), look++;
    display_close(d);
    printf("the end\n");
    return 0;
}

/* ---- a made-up run ---- */

/* Cues one by one: a look for which the terminal has no room yet would be dropped. Looks and lines end with a frame. */
static void play(struct pty *s, const char *cues) {
    for (; *cues; cues++) {
        const char cue[] = {*cues, '\0'};
        const unsigned n = s->screen.n_frames;
        pty_cue(s, cue);
        if (*cues == 't' || *cues == 'l') pty_wait_for_frames(s, n + 1);
    }
}

static void end_well(struct pty *s) {
    pty_wait_for_end(s);
    if (!WIFEXITED(s->status) || WEXITSTATUS(s->status) != 0) fail_msg("the job's status is %d", s->status);
    pty_end(s);
}

/* The live lines are gone, and what stays is there in its order. */
static void assert_clean(struct pty *s, const char *const *lines, unsigned n) {
    pty_wait_for_end(s);
    pty_wait_for_words(s, lines[n - 1]);
    for (unsigned i = 0; i < n; i++)
        if (strcmp(terminal_line(&s->screen, i), lines[i]) != 0) {
            terminal_print(&s->screen);
            fail_msg("line %u is not \"%s\"", i, lines[i]);
        }
    assert_int_equal(terminal_height(&s->screen), n);
    assert_int_equal(s->screen.row, n);
    assert_int_equal(s->screen.column, 0);
}

/* Nothing of a frame before, which may have had more workers, is left below or beside: each of the workers' lines begins
 * with the rank of one that there is, and their heading ends differently in a crowd. */
static void check_workers(const struct terminal *t) {
    unsigned n_workers = 0;
    for (unsigned row = t->row; row < terminal_height(t); row++) {
        char heading[TERMINAL_COLUMNS * 4 + 1];
        snprintf(heading, sizeof heading, "%s", terminal_line(t, row));
        const unsigned number = (unsigned)strtoul(heading, NULL, 10);
        if (number > 0 && strstr(heading, " worker")) {
            assert_int_equal(n_workers, 0); /* one heading */
            n_workers = number;
            if (terminal_shows(t, "least")) assert_null(strstr(heading, "examples/s"));
        } else if (n_workers > 0) {
            assert_true(number < n_workers);
        }
    }
}

static void check_frame(struct terminal *t) {
    assert_int_equal(t->n_wrapped, 0);
    assert_int_equal(t->column, 0); /* at rest, above everything that lives */
    assert_true(terminal_shows(t, "epoch 3/9"));
    check_workers(t);
}

static void frames_are_drawn_in_place_on_every_screen(void **state) {
    (void)state;
    const unsigned sizes[][2] = {{40, 12}, {80, 24}, {200, 50}, {14, 3}, {80, 5}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct pty s;
        pty_begin(&s, sizes[i][0], sizes[i][1], perform, "auto");
        s.screen.frame = check_frame;
        for (int n = 0; n < 6; n++) play(&s, "tttttttttt");
        pty_cue(&s, "q");
        assert_clean(&s, (const char *const[]){"the end"}, 1);
        assert_int_equal(s.screen.n_scrolled, 0);
        end_well(&s);
    }
}

static void lines_that_stay_scroll_above(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 24, perform, "bar");
    play(&s, "ltltttlt");
    assert_string_equal(terminal_line(&s.screen, 0), "line 1");
    assert_string_equal(terminal_line(&s.screen, 2), "line 3");
    assert_string_equal(terminal_line(&s.screen, 3), "");
    assert_non_null(strstr(terminal_line(&s.screen, 4), "epoch 3/9"));
    pty_cue(&s, "q");
    assert_clean(&s, (const char *const[]){"line 1", "line 2", "line 3", "the end"}, 4);
    end_well(&s);
}

/* Each write is a message of its own here. */
static void a_line_and_the_frame_below_it_are_one_write(void **state) {
    char text[8192];
    int ends[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    FILE *out = fdopen(ends[1], "w");
    assert_non_null(out);
    struct display *d = display_open(PROGRESS_BAR, out);
    assert_non_null(d);
    tick(d, 1, 0.1);
    assert_true(recv(ends[0], text, sizeof text - 1, 0) > 0);
    display_line(d, "line 1");
    const ssize_t n = recv(ends[0], text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    char *line = strstr(text, "line 1");
    assert_true(line && strstr(line, "3/9"));
    *line = '\0';
    assert_null(strstr(text, "\033[J")); /* the lines below stay until others take their places */
    assert_int_equal(recv(ends[0], text, sizeof text, MSG_DONTWAIT), -1);
    display_close(d);
    fclose(out);
    close(ends[0]);
}

/* Nobody looks until it has taken a part of a frame, and no more. */
static void what_a_full_terminal_took_of_a_frame_is_erased(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 50, perform_until_noted, NULL);
    pty_wait_for_frames(&s, 2);
    usleep(300000);
    pty_signal(&s, SIGTERM);
    assert_clean(&s, (const char *const[]){"note 1", "the end"}, 2);
    end_well(&s);
}

static void a_full_screen_scrolls_by_its_lines_only(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 12, perform, "bar");
    for (int i = 0; i < 20; i++) play(&s, "tl");
    pty_cue(&s, "q");
    pty_wait_for_end(&s);
    pty_wait_for_words(&s, "the end");
    /* Each line has left at the top or is still there: 20 of them, and the end. */
    const unsigned n_left = 21 - s.screen.n_scrolled;
    for (unsigned i = 0; i + 1 < n_left; i++) {
        char line[16];
        snprintf(line, sizeof line, "line %u", s.screen.n_scrolled + i + 1);
        assert_string_equal(terminal_line(&s.screen, i), line);
    }
    assert_string_equal(terminal_line(&s.screen, n_left - 1), "the end");
    end_well(&s);
}

static void what_others_print_is_left_alone(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 24, perform, "bar");
    play(&s, "tntthtlnht");
    for (unsigned i = 0; i < 5; i++) {
        const char *const lines[] = {"note 1", "note 2", "line 3", "note 4", "note 5"};
        assert_string_equal(terminal_line(&s.screen, i), lines[i]);
    }
    pty_cue(&s, "q");
    assert_clean(&s, (const char *const[]){"note 1", "note 2", "line 3", "note 4", "note 5", "the end"}, 6);
    end_well(&s);
}

static void a_new_size_counts_from_the_next_frame_on(void **state) {
    (void)state;
    const unsigned sizes[][2] = {{200, 50}, {40, 24}, {80, 10}, {120, 40}, {30, 6}, {80, 24}};
    struct pty s;
    pty_begin(&s, 80, 24, perform, "bar");
    play(&s, "lttt");
    s.screen.frame = check_frame;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pty_resize(&s, sizes[i][0], sizes[i][1]);
        play(&s, "tt");
    }
    pty_cue(&s, "q");
    assert_clean(&s, (const char *const[]){"line 1", "the end"}, 2);
    end_well(&s);
}

static void stopping_leaves_a_clean_screen_and_going_on_draws_again(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 24, perform, "bar");
    for (unsigned round = 0; round < 3; round++) {
        play(&s, "tt");
        assert_true(terminal_shows(&s.screen, "epoch 3/9"));
        pty_type(&s, KEY_STOP);
        pty_wait_for_stop(&s);
        pty_wait_for_no_words(&s, "epoch");
        assert_true(terminal_height(&s.screen) <= 1); /* ^Z, as the terminal shows it */
        pty_go_on(&s, true);
    }
    play(&s, "ttq");
    end_well(&s);
}

static void in_the_background_only_lines_are_printed(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 24, perform, "bar");
    play(&s, "t");
    pty_type(&s, KEY_STOP);
    pty_wait_for_stop(&s);
    pty_go_on(&s, false);
    pty_cue(&s, "tttlttnttl");
    pty_wait_for_words(&s, "line 3");
    assert_int_equal(s.screen.n_frames, 1);
    assert_true(terminal_shows(&s.screen, "line 1") && terminal_shows(&s.screen, "note 2"));
    pty_cue(&s, "q");
    end_well(&s);
}

static void colours_are_left_out_where_nobody_wants_them(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 24, perform, "bar");
    play(&s, "ttq");
    assert_true(s.screen.n_coloured > 0);
    end_well(&s);
    pty_begin(&s, 80, 24, perform_without_colours, "bar");
    play(&s, "ttq");
    assert_int_equal(s.screen.n_coloured, 0);
    end_well(&s);
}

static void blocks_are_drawn_in_utf8_only(void **state) {
    (void)state;
    pty_act *const acts[] = {perform, perform_in_ascii};
    for (int i = 0; i < 2; i++) {
        struct pty s;
        pty_begin(&s, 80, 24, acts[i], "bar");
        play(&s, "tttt");
        assert_int_equal(terminal_shows(&s.screen, "━"), i == 0);
        assert_int_equal(terminal_shows(&s.screen, "==="), i == 1);
        pty_cue(&s, "q");
        end_well(&s);
    }
}

static void a_dumb_terminal_gets_plain_lines(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 24, perform_on_a_dumb_terminal, "bar");
    pty_cue(&s, "tltq");
    assert_clean(&s, (const char *const[]){"line 1", "the end"}, 2);
    assert_int_equal(s.screen.n_frames, 0);
    end_well(&s);
}

/* ---- without a terminal ---- */

static char *said(enum progress_kind kind, double step) {
    char *text;
    size_t bytes;
    FILE *file = tmpfile(), *copy = open_memstream(&text, &bytes);
    assert_non_null(file);
    assert_non_null(copy);
    struct display *d = display_open(kind, file);
    assert_non_null(d);
    display_line(d, "heading");
    for (unsigned i = 0; i < 10; i++) tick(d, i, step * i);
    display_line(d, "epoch 3 is done");
    display_clear(d);
    display_close(d);
    rewind(file);
    for (int c; (c = fgetc(file)) != EOF;) fputc(c, copy);
    fclose(file);
    fclose(copy);
    return text;
}

static void plain_lines_have_no_escapes(void **state) {
    (void)state;
    char *text = said(PROGRESS_PLAIN, 0.1);
    assert_string_equal(text, "heading\nepoch 3 is done\n");
    free(text);
}

static void a_long_epoch_says_once_a_minute_that_it_is_alive(void **state) {
    (void)state;
    char *text = said(PROGRESS_PLAIN, 21); /* looks at 0, 21, ... 189 s: at 63 and 126 a minute has gone by, at 189, too */
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, "epoch 3 of 9: ")); at++) n++;
    assert_int_equal(n, 3);
    assert_null(strchr(text, '\033'));
    free(text);
}

static void none_says_nothing(void **state) {
    (void)state;
    char *text = said(PROGRESS_NONE, 100);
    assert_string_equal(text, "");
    free(text);
}

static void no_bar_is_chosen_where_there_is_no_terminal(void **state) {
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    unsetenv("SHMTRAIN_PROGRESS");
    assert_int_equal(display_choose("auto", false, fds[1]), PROGRESS_PLAIN);
    assert_int_equal(display_choose(NULL, false, fds[1]), PROGRESS_PLAIN);
    assert_int_equal(display_choose("bar", false, fds[1]), PROGRESS_PLAIN);
    assert_int_equal(display_choose("none", false, fds[1]), PROGRESS_NONE);
    assert_int_equal(display_choose("plain", true, fds[1]), PROGRESS_NONE);
    setenv("SHMTRAIN_PROGRESS", "none", 1);
    assert_int_equal(display_choose(NULL, false, fds[1]), PROGRESS_NONE);
    assert_int_equal(display_choose("plain", false, fds[1]), PROGRESS_PLAIN); /* the command line counts more */
    unsetenv("SHMTRAIN_PROGRESS");
    assert_true(display_knows("auto") && display_knows("bar") && display_knows("plain") && display_knows("none"));
    assert_false(display_knows("") || display_knows("Bar") || display_knows("bars"));
    close(fds[0]);
    close(fds[1]);
}

/* ---- the program ---- */

static int train(int cues, const void *arg) {
    char path[4200];
    (void)cues;
    snprintf(path, sizeof path, "%s/shmtrain", getenv("TEST_BUILDDIR"));
    execv(path, (char *const *)arg);
    return 127;
}
#define LIVES      "examples/s   loss" /* of the live lines alone */
#define TRAIN(...) ((const char *const[]){"shmtrain", __VA_ARGS__, DATA, NULL})

static void a_run_on_a_terminal_leaves_its_lines_only(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 50, train, TRAIN("-w", "2", "-e", "3"));
    pty_wait_for_words(&s, "parameters  xxh64");
    assert_true(terminal_shows(&s.screen, "done: 3 epochs"));
    assert_true(terminal_shows(&s.screen, "worker   examples  computing  waiting"));
    assert_true(terminal_shows(&s.screen, "    3 "));
    assert_false(terminal_shows(&s.screen, LIVES));
    assert_true(s.screen.n_frames > 0);
    assert_int_equal(s.screen.n_wrapped, 0);
    assert_int_equal(s.screen.column, 0);
    end_well(&s);
}

static void a_run_over_hosts_shows_its_network(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 50, train, TRAIN("launch", "--local", "2", "--", "-w", "1", "-e", "1000000"));
    pty_wait_for_words(&s, "B/s received");
    pty_wait_for_words(&s, "exchanges");
    assert_true(terminal_shows(&s.screen, "B/s sent"));
    pty_type(&s, KEY_END);
    pty_wait_for_words(&s, "parameters  xxh64");
    pty_wait_for_end(&s);
    assert_false(terminal_shows(&s.screen, "B/s received"));
    pty_end(&s);
}

static void a_stopped_run_goes_on_and_an_interrupted_one_ends_cleanly(void **state) {
    (void)state;
    struct pty s;
    pty_begin(&s, 80, 50, train, TRAIN("-w", "3", "-e", "1000000"));
    pty_wait_for_words(&s, "3 workers");
    pty_wait_for_words(&s, "computing");
    pty_type(&s, KEY_STOP);
    pty_wait_for_stop(&s);
    pty_wait_for_no_words(&s, LIVES);
    const unsigned n_frames = s.screen.n_frames;
    pty_go_on(&s, true);
    pty_wait_for_frames(&s, n_frames + 3);
    pty_wait_for_words(&s, "computing");
    pty_type(&s, KEY_END);
    pty_wait_for_words(&s, "parameters  xxh64");
    pty_wait_for_end(&s);
    assert_true(WIFEXITED(s.status));
    assert_int_equal(WEXITSTATUS(s.status), 130);
    assert_true(terminal_shows(&s.screen, "stopped: "));
    assert_false(terminal_shows(&s.screen, LIVES));
    assert_false(terminal_shows(&s.screen, "died"));
    pty_end(&s);
}

/* Lines by steps scroll above the live ones, each whole: the next one begins where its own line does. */
static void lines_by_steps_stay_above_the_live_ones(void **state) {
    (void)state;
    struct pty s;
    pty_begin(
        &s, 80, 50, train,
        TRAIN("-w", "2", "--mode", "hogwild", "-e", "1", "--item", "100", "--slow", "0:+30ms,1:+30ms", "--log-every", "10"));
    pty_wait_for_words(&s, "parameters  xxh64");
    assert_true(terminal_shows(&s.screen, "   epoch 1/1   "));
    assert_false(terminal_shows(&s.screen, LIVES));
    assert_true(s.screen.n_frames > 0);
    assert_int_equal(s.screen.n_wrapped, 0);
    for (unsigned row = 0; row < 50; row++) {
        const char *line = terminal_line(&s.screen, row), *step = strstr(line, "step ");
        if (step) assert_ptr_equal(step, line);
        if (step) assert_non_null(strstr(line, " examples/s"));
    }
    end_well(&s);
}

static void without_a_terminal_they_are_among_the_epochs(void **state) {
    (void)state;
    struct program *p = RUN("-w", "2", "--mode", "sync", "-e", "2", "--log-every", "5", DATA);
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "\nstep "));
    assert_string_equal(p->text[ERR], "");
    p = RUN("-w", "2", "--mode", "sync", "-e", "2", "--log-every", "5", "--json", DATA);
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "\nstep "));
    json_decref(program_json(p));
    p = RUN("-w", "2", "--mode", "sync", "-e", "2", "--log-every", "5", "-q", DATA);
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "");
    assert_string_equal(p->text[ERR], "");
}

static void a_pipe_never_gets_escapes(void **state) {
    (void)state;
    const char *const kinds[] = {"auto", "bar", "plain"};
    for (int i = 0; i < 3; i++) {
        struct program *p = RUN("-w", "2", "-e", "2", "--progress", kinds[i], DATA);
        program_assert_status(p, 0);
        assert_null(strchr(p->text[OUT], '\033'));
        assert_non_null(strstr(p->text[OUT], "\n    2 "));
        assert_string_equal(p->text[ERR], "");
    }
}

static void without_progress_there_is_only_what_came_out(void **state) {
    (void)state;
    struct program *p = RUN("-w", "2", "-e", "2", "--progress", "none", DATA);
    program_assert_status(p, 0);
    assert_null(strstr(p->text[OUT], "\n    2 "));
    assert_non_null(strstr(p->text[OUT], "done: 2 epochs"));
}

static int ask_for_stars(void) { return setenv("SHMTRAIN_PROGRESS", "stars", 1); }

static void a_kind_of_progress_that_there_is_not_is_refused(void **state) {
    (void)state;
    program_assert_refused(RUN("--progress", "stars", DATA), 2, "--progress stars: expected one of auto|bar|plain|none");
    program_assert_refused(RUN_IN(ask_for_stars, DATA), 2, "SHMTRAIN_PROGRESS stars: expected one of");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_drawn_in_place_on_every_screen),
        cmocka_unit_test(lines_that_stay_scroll_above),
        cmocka_unit_test(a_line_and_the_frame_below_it_are_one_write),
        cmocka_unit_test(what_a_full_terminal_took_of_a_frame_is_erased),
        cmocka_unit_test(a_full_screen_scrolls_by_its_lines_only),
        cmocka_unit_test(what_others_print_is_left_alone),
        cmocka_unit_test(a_new_size_counts_from_the_next_frame_on),
        cmocka_unit_test(stopping_leaves_a_clean_screen_and_going_on_draws_again),
        cmocka_unit_test(in_the_background_only_lines_are_printed),
        cmocka_unit_test(colours_are_left_out_where_nobody_wants_them),
        cmocka_unit_test(blocks_are_drawn_in_utf8_only),
        cmocka_unit_test(a_dumb_terminal_gets_plain_lines),
        cmocka_unit_test(plain_lines_have_no_escapes),
        cmocka_unit_test(a_long_epoch_says_once_a_minute_that_it_is_alive),
        cmocka_unit_test(none_says_nothing),
        cmocka_unit_test(no_bar_is_chosen_where_there_is_no_terminal),
        cmocka_unit_test(a_run_on_a_terminal_leaves_its_lines_only),
        cmocka_unit_test(lines_by_steps_stay_above_the_live_ones),
        cmocka_unit_test(a_run_over_hosts_shows_its_network),
        cmocka_unit_test(a_stopped_run_goes_on_and_an_interrupted_one_ends_cleanly),
        PROGRAM_TEST(without_a_terminal_they_are_among_the_epochs),
        PROGRAM_TEST(a_pipe_never_gets_escapes),
        PROGRAM_TEST(without_progress_there_is_only_what_came_out),
        PROGRAM_TEST(a_kind_of_progress_that_there_is_not_is_refused),
    };
    return cmocka_run_group_tests_name("display", tests, program_make_folder, program_remove_folder);
}
