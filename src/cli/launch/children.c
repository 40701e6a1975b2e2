/* The hosts' processes: starting them, showing what they say, passing on signals. See launch.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch/launch.h"
#include "cli/ranks.h"
#include "cli/talk.h"

#define LOOK_MS     50
#define GRACE_LOOKS 40 /* at most, after one has failed, until the others are told to end */

/* ---- starting ---- */

static _Noreturn void become(const struct launch *l, uint32_t rank, char *const *word, int input, int lines, pid_t parent) {
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (l->local) rank_take_processors(rank, l->n);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    signal(SIGPIPE, SIG_DFL);
    if (!l->local) signal(SIGINT, SIG_IGN); /* a remote shell is to bring what the run still says */
    dup2(input >= 0 ? input : nowhere, STDIN_FILENO);
    if (rank > 0) dup2(nowhere, STDOUT_FILENO);
    if (lines >= 0) dup2(lines, STDERR_FILENO);
    execvp(word[0], word);
    fprintf(stderr, "shmtrain: cannot start %s: %s\n", word[0], strerror(errno));
    _exit(127);
}

/* Both ends; the first is ours. */
static int make_pipe(int ends[2], bool ours_reads) {
    if (pipe2(ends, O_CLOEXEC) < 0) return talk_refuse("cannot make a pipe: %s", strerror(errno));
    if (ours_reads) return 0;
    const int reads = ends[0];
    ends[0] = ends[1];
    ends[1] = reads;
    return 0;
}

/* It is short, and fits into the pipe. Who has ended already says why by itself. */
static int feed(int fd, const char *input, size_t n) {
    return write(fd, input, n) == (ssize_t)n || errno == EPIPE ? 0 : talk_refuse("cannot write to a pipe: %s", strerror(errno));
}

int launch_start(struct launch *l, uint32_t rank, char *const *word, const char *input, size_t n) {
    struct launch_host *h = &l->host[rank];
    const pid_t parent = getpid();
    int in[2] = {-1, -1}, lines[2] = {-1, -1};
    if (input && make_pipe(in, false) != 0) return 2;
    if (rank > 0 && make_pipe(lines, true) != 0) return 2;
    fflush(NULL);
    h->pid = fork();
    if (h->pid == 0) become(l, rank, word, in[1], lines[1], parent);
    if (in[1] >= 0) close(in[1]);
    if (lines[1] >= 0) close(lines[1]);
    h->input = in[0];
    h->lines = lines[0];
    if (h->pid > 0) return input ? feed(in[0], input, n) : 0;
    h->pid = 0;
    return talk_refuse("cannot start a process: %s", strerror(errno));
}

/* ---- what they say ---- */

static void show_line(struct launch_host *h, uint32_t rank) {
    static const char OURS[] = "shmtrain: ";
    const char *text = h->line;
    h->line[h->n_line] = '\0';
    if (strncmp(text, OURS, sizeof OURS - 1) == 0) text += sizeof OURS - 1;
    fprintf(stderr, "shmtrain: on host %u: %s\n", rank, text);
    h->n_line = 0;
}

/* What has come; lines are shown whole, as far as they fit. */
static void read_lines(struct launch_host *h, uint32_t rank) {
    char bytes[1024];
    const ssize_t got = read(h->lines, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return;
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n' || h->n_line == sizeof h->line - 1) show_line(h, rank);
        if (bytes[i] != '\n') h->line[h->n_line++] = bytes[i];
    }
    if (got > 0) return;
    if (h->n_line > 0) show_line(h, rank);
    close(h->lines);
    h->lines = -1;
}

/* ---- to the end ---- */

static void pass_on(struct launch *l, int number) {
    for (uint32_t rank = 0; rank < l->n; rank++) {
        struct launch_host *h = &l->host[rank];
        if (h->input >= 0) close(h->input); /* a remote run stops then */
        h->input = -1;
        if (l->local && h->pid > 0) kill(h->pid, number);
    }
}

/* What is left of its lines; others may have their other end. */
static void drain(struct launch_host *h, uint32_t rank) {
    struct pollfd readable = {.fd = h->lines, .events = POLLIN};
    while (h->lines >= 0 && poll(&readable, 1, 0) > 0) read_lines(h, rank);
    if (h->lines < 0) return;
    if (h->n_line > 0) show_line(h, rank);
    close(h->lines);
    h->lines = -1;
}

static void collect(struct launch *l) {
    for (uint32_t rank = 0; rank < l->n; rank++) {
        struct launch_host *h = &l->host[rank];
        int status = 0;
        const pid_t got = h->pid > 0 ? waitpid(h->pid, &status, WNOHANG) : 0;
        if (got == 0 || (got < 0 && errno == EINTR)) continue;
        h->pid = 0;
        drain(h, rank);
        h->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (WIFSIGNALED(status))
            fprintf(stderr, "shmtrain: host %u (%s) was ended by signal %d (%s)\n", rank, h->address, WTERMSIG(status),
                    strsignal(WTERMSIG(status)));
    }
}

static bool is_over(const struct launch *l) {
    for (uint32_t rank = 0; rank < l->n; rank++)
        if (l->host[rank].pid > 0 || l->host[rank].lines >= 0) return false;
    return true;
}

static void look(struct launch *l) {
    struct pollfd pollfd[LAUNCH_MOST_HOSTS];
    for (uint32_t rank = 0; rank < l->n; rank++) pollfd[rank] = (struct pollfd){.fd = l->host[rank].lines, .events = POLLIN};
    if (poll(pollfd, l->n, LOOK_MS) <= 0) return; /* also where nobody has lines any more */
    for (uint32_t rank = 0; rank < l->n; rank++)
        if (pollfd[rank].revents) read_lines(&l->host[rank], rank);
}

/* That of host 0, or of the first other one that is none of success. */
static int status_of(const struct launch *l) {
    for (uint32_t rank = 0; rank < l->n; rank++)
        if (l->host[rank].status != 0) return l->host[rank].status;
    return 0;
}

static bool has_failed(const struct launch *l) {
    for (uint32_t rank = 0; rank < l->n; rank++)
        if (l->host[rank].pid == 0 && l->host[rank].status != 0) return true;
    return false;
}

int launch_wait(struct launch *l) {
    int passed = 0, left = GRACE_LOOKS;
    while (!is_over(l)) {
        look(l);
        collect(l);
        if (talk_caught() != passed) pass_on(l, passed = talk_caught());
        /* the others may not have met it, and wait for it */
        if (passed == 0 && has_failed(l) && left-- == 0) pass_on(l, SIGTERM);
    }
    for (uint32_t rank = 0; rank < l->n; rank++)
        if (l->host[rank].input >= 0) close(l->host[rank].input);
    return talk_exit_status(status_of(l));
}
