/* The display's terminal: see display.h. What is drawn is decided in draw.c.
 *
 * A frame is one text: begin synchronized update, a line that stays above it if there is one, the lines (each erased to its
 * end), erase what is below, cursor back up, end of the update: nothing is erased before what replaces it is there. It is one
 * write, of which a terminal may take a part only. Signals whose handlers print come in while there is no room, when it is known
 * how far below the frame's first row the cursor stands. What is left of the frame is dropped then, and the next one comes a
 * tenth of a second later. */
#include "cli/display.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/draw.h"
#include "cli/follow.h"
#include "cli/pen.h"

#define BEGIN_UPDATE "\033[?2026h" /* terminals that do not know it ignore it */
#define END_UPDATE   "\033[?2026l"
#define ERASE_REST   "\033[K" /* of the line */
#define ERASE_BELOW  "\r\033[J"
#define UP           "\033[A"
#define PLAIN_EVERY  60 /* seconds */

struct display {
    enum progress_kind kind;
    FILE *out;
    int fd, own; /* the terminal; the same, for writes that do not wait, or -1 */
    bool blocks, colours;
    bool has_frame, broken; /* there is a state to draw; the terminal is gone */
    struct follow follow;
    double said_at; /* plain: when something was said, in seconds of the run; below 0: now */
    struct sigaction before;
};

/* What handlers must know: the descriptor on which live lines stand, or -1; how many rows below the first of them the cursor
 * is. What they tell: that they have printed during a write; that the program was stopped since the last frame. */
static volatile sig_atomic_t live_fd = -1, rows_below, interrupted, was_stopped;

/* ---- choosing ---- */

bool display_knows(const char *option) {
    const size_t n = strlen(option);
    for (const char *at = DISPLAY_CHOICES; at; at = strchr(at, '|'), at = at ? at + 1 : NULL)
        if (strcspn(at, "|") == n && strncmp(at, option, n) == 0) return true;
    return false;
}

bool display_obeys_escapes(int fd) {
    const char *term = getenv("TERM");
    return isatty(fd) && term && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

enum progress_kind display_choose(const char *option, bool quiet, int fd) {
    const char *environment = getenv("SHMTRAIN_PROGRESS");
    if (!option || option[0] == '\0') option = environment && environment[0] != '\0' ? environment : "auto";
    if (quiet || strcmp(option, "none") == 0) return PROGRESS_NONE;
    if (strcmp(option, "plain") == 0 || !display_obeys_escapes(fd)) return PROGRESS_PLAIN;
    return PROGRESS_BAR;
}

/* The Linux console's font has no blocks. The locale is only looked at, so that the program's own stays as it is. */
bool display_has_blocks(void) {
    const char *term = getenv("TERM");
    if (term && strcmp(term, "linux") == 0) return false;
    const locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (locale == (locale_t)0) return false;
    const bool is_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return is_utf8;
}

bool display_wants_colours(void) {
    const char *no_color = getenv("NO_COLOR");
    return !no_color || no_color[0] == '\0';
}

unsigned display_columns(int fd) {
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* ---- signals ---- */

/* A job that was sent to the background does not write on the terminal that somebody else uses now. */
static bool in_front(int fd) {
    const pid_t front = tcgetpgrp(fd);
    return front < 0 || front == getpgrp(); /* below 0: nobody's terminal */
}

static void put(int fd, const char *text) {
    if (write(fd, text, strlen(text)) < 0) errno = 0; /* nobody to tell */
}

void display_clear_in_handler(void) {
    const int fd = live_fd, saved = errno;
    live_fd = -1;
    interrupted = 1;
    if (fd >= 0 && in_front(fd)) {
        for (int i = 0; i < rows_below; i++) put(fd, UP);
        put(fd, rows_below > 0 ? ERASE_BELOW END_UPDATE : ERASE_BELOW);
    }
    rows_below = 0;
    errno = saved;
}

/* Ctrl-Z: takes the live lines away, and stops as if there were no handler. Returns when the program goes on. */
static void on_stop(int number) {
    const int saved = errno;
    struct sigaction plain = {.sa_handler = SIG_DFL}, mine;
    sigset_t this_one;
    display_clear_in_handler();
    sigemptyset(&plain.sa_mask);
    sigaction(number, &plain, &mine);
    sigemptyset(&this_one);
    sigaddset(&this_one, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &this_one, NULL); /* here it stops */
    sigprocmask(SIG_BLOCK, &this_one, NULL);
    sigaction(number, &mine, NULL);
    was_stopped = 1;
    errno = saved;
}

/* ---- writing ---- */

/* A text for the terminal. Its first bytes, a line that stays and what the program would miss, come out in any case. */
struct frame {
    char *text;
    size_t bytes, must;
    size_t up; /* where the way back up to the first row ends */
};

/* How many rows below the frame's first one the cursor is when so many bytes are out. */
static int count_rows_below(const struct frame *f, size_t done) {
    int n = 0;
    if (done >= f->up) return 0;
    for (size_t i = f->must; i < done; i++) n += f->text[i] == '\n';
    return n;
}

/* A description of its own, for others may share ours. -1: it is not the terminal that our signals come from. */
static int open_own(int fd) { return tcgetpgrp(fd) < 0 ? -1 : open("/dev/tty", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }

/* Keeps signals whose handlers print away from a write that does not wait. */
static void hold_signals(const struct display *d, sigset_t *before) {
    static const int PRINT[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP};
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof PRINT / sizeof *PRINT && d->own >= 0; i++) sigaddset(&held, PRINT[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

/* Writes all of it, or, beyond the first `must` bytes, as much as comes out before a handler prints. A terminal that is gone is
 * left alone from then on. */
static void write_frame(struct display *d, const struct frame *f) {
    struct pollfd pollfd = {.fd = d->own >= 0 ? d->own : d->fd, .events = POLLOUT};
    sigset_t before;
    size_t done = 0;
    hold_signals(d, &before);
    interrupted = 0;
    while (done < f->bytes && !d->broken) {
        const bool ready = ppoll(&pollfd, 1, NULL, &before) == 1; /* what was held comes in */
        if (done >= f->must && interrupted) break;
        const ssize_t n = ready ? write(pollfd.fd, f->text + done, f->bytes - done) : -1;
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
            d->broken = true;
        rows_below = count_rows_below(f, done);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* A frame for which a terminal has no room is not worth waiting for. */
static bool takes_frames(const struct display *d) {
    struct pollfd pollfd = {.fd = d->fd, .events = POLLOUT};
    return in_front(d->fd) && poll(&pollfd, 1, 0) == 1 && (pollfd.revents & POLLOUT) != 0;
}

static void look_at_screen(const struct display *d, struct draw_screen *out) {
    struct winsize size;
    const bool known = ioctl(d->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *out = (struct draw_screen){
        .columns = known ? size.ws_col : 80, .rows = known ? size.ws_row : 24, .blocks = d->blocks, .colours = d->colours};
    if (out->columns > 1) out->columns--; /* behind the last column terminals differ */
}

/* The last state's lines, below an empty one where the cursor rests, and the way back up. */
static void put_frame(const struct display *d, FILE *to) {
    struct draw_screen screen;
    char *text = NULL;
    size_t bytes = 0;
    look_at_screen(d, &screen);
    FILE *lines = open_memstream(&text, &bytes);
    if (!lines) return;
    unsigned up = draw_frame(&d->follow.state, &screen, lines) - 1;
    if (fclose(lines) != 0) {
        free(text);
        return;
    }
    if (screen.rows > up + 2) {
        fputs(ERASE_REST "\r\n", to);
        up++;
    }
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        fprintf(to, "%.*s" ERASE_REST "%s", (int)(end - line), line, end[1] ? "\r\n" : "");
    fputs("\033[J\r", to);
    if (up > 0) fprintf(to, "\033[%uA", up);
    free(text);
}

/* In one row, which is erased before: behind the last column it would take the last character. */
static bool fits(const struct display *d, const char *line) {
    struct draw_screen screen;
    look_at_screen(d, &screen);
    return pen_width(line) <= screen.columns;
}

/* The live lines anew, below a line that stays (NULL: none). A job in the background prints its lines only. */
static void show_frame(struct display *d, const char *line) {
    const bool front = in_front(d->fd);
    struct frame f = {0};
    FILE *to = open_memstream(&f.text, &f.bytes);
    if (!to) return;
    if (front) fputs(BEGIN_UPDATE "\r", to);
    if (line && front) fputs(fits(d, line) ? ERASE_REST : ERASE_BELOW, to);
    if (line) fprintf(to, "%s\r\n", line);
    if (line && fflush(to) == 0) f.must = f.bytes;
    if (front && d->has_frame)
        put_frame(d, to);
    else if (front)
        fputs(ERASE_BELOW, to);
    if (fflush(to) == 0) f.up = f.bytes;
    if (front) fputs(END_UPDATE, to);
    if (fclose(to) == 0) {
        if (front && d->has_frame) live_fd = d->fd;
        write_frame(d, &f);
    }
    free(f.text);
}

static void show_line(struct display *d, const char *line) {
    fflush(d->out);
    show_frame(d, line);
}

/* ---- what the program calls ---- */

struct display *display_open(enum progress_kind kind, FILE *out) {
    struct display *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    *d = (struct display){.kind = kind, .out = out, .fd = fileno(out), .own = -1, .said_at = -1};
    follow_init(&d->follow);
    if (kind != PROGRESS_BAR) return d;
    d->own = open_own(d->fd);
    d->blocks = display_has_blocks();
    d->colours = display_wants_colours();
    was_stopped = 0;
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTSTP, NULL, &d->before);
    if (d->before.sa_handler == SIG_DFL) sigaction(SIGTSTP, &action, NULL); /* a shell without job control ignores it */
    return d;
}

void display_line(struct display *d, const char *text) {
    d->said_at = -1;
    if (d->kind == PROGRESS_PLAIN) {
        fprintf(d->out, "%s\n", text);
        fflush(d->out);
    } else if (d->kind == PROGRESS_BAR) {
        show_line(d, text);
    }
}

void display_epoch(struct display *d, const struct shmtrain_report *report, const struct shmtrain_epoch *epoch,
                   const char *text) {
    if (d->kind != PROGRESS_NONE) (void)follow_epoch(&d->follow, report, epoch); /* no memory: the state stays as it was */
    display_line(d, text);
}

/* Where there is no terminal, a long epoch shows that it is alive. */
static void say_plainly(struct display *d, double seconds) {
    char text[128];
    if (d->said_at < 0) d->said_at = seconds;
    if (seconds - d->said_at < PLAIN_EVERY) return;
    d->said_at = seconds;
    draw_words(&d->follow.state, text, sizeof text);
    fprintf(d->out, "%s\n", text);
    fflush(d->out);
}

void display_progress(struct display *d, const struct shmtrain_report *report, const struct shmtrain_progress *now) {
    const bool pause = was_stopped;
    if (d->kind == PROGRESS_NONE) return;
    was_stopped = 0;
    if (follow_update(&d->follow, report, now, pause) < 0) return; /* no memory: nothing new is shown */
    d->has_frame = true;
    if (d->kind == PROGRESS_PLAIN)
        say_plainly(d, now->seconds);
    else if (takes_frames(d))
        show_frame(d, NULL);
    else if (!in_front(d->fd))
        live_fd = -1; /* the lines there are somebody else's by now */
}

void display_clear(struct display *d) {
    if (d->kind == PROGRESS_BAR) display_clear_in_handler();
}

void display_close(struct display *d) {
    if (!d) return;
    if (d->kind == PROGRESS_BAR) {
        display_clear(d);
        if (d->before.sa_handler == SIG_DFL) sigaction(SIGTSTP, &d->before, NULL);
    }
    if (d->own >= 0) close(d->own);
    follow_fini(&d->follow);
    free(d);
}
