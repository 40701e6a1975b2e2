/* Finding the workers of a run by what the system says of its processes: the run's process has one child, the supervisor, whose
 * children are the workers, each with its number in its name. See drill_priv.h. */
#include "bench/drill/drill_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_CHILDREN 64

/* A short file whole, as text. False: it is not there. */
static bool read_text(const char *path, char *out, size_t room) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = read(fd, out, room - 1);
    close(fd);
    out[got > 0 ? got : 0] = '\0';
    return got >= 0;
}

static uint32_t children_of(pid_t pid, pid_t out[MOST_CHILDREN]) {
    char path[64], text[MOST_CHILDREN * 12];
    uint32_t n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    if (!read_text(path, text, sizeof text)) return 0;
    for (char *at = text, *end; n < MOST_CHILDREN; at = end) {
        const long child = strtol(at, &end, 10);
        if (end == at) break;
        out[n++] = (pid_t)child;
    }
    return n;
}

static bool is_called(pid_t pid, const char *name) {
    char path[64], text[32];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    if (!read_text(path, text, sizeof text)) return false;
    text[strcspn(text, "\n")] = '\0';
    return strcmp(text, name) == 0;
}

/* The process, if it is still the one of this name. */
static struct shmt_drill_prey seize(pid_t pid, const char *name) {
    int fd = -1;
#ifdef SYS_pidfd_open
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
#endif
    /* asked behind the descriptor: it is this process that is called so */
    if (is_called(pid, name)) return (struct shmt_drill_prey){pid, fd};
    if (fd >= 0) close(fd);
    return (struct shmt_drill_prey){0, -1};
}

bool shmt_drill_can_find(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
    return access(path, R_OK) == 0;
}

struct shmt_drill_prey shmt_drill_find(pid_t run, uint32_t rank) {
    pid_t supervisor[MOST_CHILDREN], worker[MOST_CHILDREN];
    char name[16];
    snprintf(name, sizeof name, "shmtrain-w%u", rank);
    const uint32_t n = children_of(run, supervisor);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t m = children_of(supervisor[i], worker);
        for (uint32_t k = 0; k < m; k++) {
            const struct shmt_drill_prey prey = seize(worker[k], name);
            if (prey.pid != 0) return prey;
        }
    }
    return (struct shmt_drill_prey){0, -1};
}

struct shmt_drill_prey shmt_drill_find_link(pid_t run) {
    pid_t child[MOST_CHILDREN];
    const uint32_t n = children_of(run, child);
    for (uint32_t i = 0; i < n; i++) {
        const struct shmt_drill_prey prey = seize(child[i], "shmtrain-link");
        if (prey.pid != 0) return prey;
    }
    return (struct shmt_drill_prey){0, -1};
}

bool shmt_drill_hit(const struct shmt_drill_prey *prey, int signal) {
#ifdef SYS_pidfd_send_signal
    if (prey->fd >= 0) return syscall(SYS_pidfd_send_signal, prey->fd, signal, NULL, 0) == 0;
#endif
    return prey->pid > 0 && kill(prey->pid, signal) == 0;
}

void shmt_drill_let_go(struct shmt_drill_prey *prey) {
    if (prey->fd >= 0) close(prey->fd);
    *prey = (struct shmt_drill_prey){0, -1};
}

uint32_t shmt_drill_children(void) {
    pid_t child[MOST_CHILDREN];
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    return children_of(getpid(), child);
}

void shmt_drill_kill_children(void) {
    pid_t child[MOST_CHILDREN];
    const uint32_t n = children_of(getpid(), child);
    for (uint32_t i = 0; i < n; i++) kill(child[i], SIGKILL); /* not collected yet: the numbers are still theirs */
}
