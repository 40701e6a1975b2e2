/* Processes of others: see process.h. Relies on /proc. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PID_BITS 22 /* the kernel gives no larger numbers (PID_MAX_LIMIT) */

struct look {
    char state;
    long threads;
    uint64_t began;
};

/* "4711 (name) S 1 ...": the name may hold parentheses and blanks, but nothing behind it does. Behind the state, the third field,
 * threads are the 20th and the beginning the 22nd. */
static bool parse(const char *text, struct look *out) {
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0') return false;
    *out = (struct look){.state = at[2]};
    at += 2;
    for (int field = 4; field <= 22; field++) {
        at = strchr(at, ' ');
        if (!at) return false;
        at++;
        if (field == 20) out->threads = strtol(at, NULL, 10);
        if (field == 22) out->began = strtoull(at, NULL, 10);
    }
    return true;
}

static bool read_text(const char *path, char *text, size_t bytes) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, text, bytes - 1);
    close(fd);
    if (n <= 0) return false;
    text[n] = '\0';
    return true;
}

/* A /proc of another PID namespace (unshare --pid without --mount-proc) has other processes under our numbers. */
static bool is_proc_ours(void) {
    char text[1024];
    return read_text("/proc/self/stat", text, sizeof text) && strtol(text, NULL, 10) == (long)getpid();
}

static bool look_at(pid_t pid, struct look *out) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    return is_proc_ours() && read_text(path, text, sizeof text) && parse(text, out);
}

char shmt_process_state(pid_t pid) {
    struct look look;
    return look_at(pid, &look) ? look.state : '\0';
}

/* ---- recognising one ---- */

/* Numbers are of a PID namespace, and beginnings of a time namespace. 0: nobody says. */
static uint64_t space_of_mine(void) {
    struct stat pids, times;
    if (stat("/proc/self/ns/pid", &pids) != 0) return 0;
    const uint64_t time = stat("/proc/self/ns/time", &times) == 0 ? (uint64_t)times.st_ino : 0; /* kernels before 5.6 */
    return (uint64_t)pids.st_ino ^ time << 32;
}

static uint64_t process_of(pid_t pid, const struct look *look) {
    return pid > 0 && pid < 1 << PID_BITS ? look->began << PID_BITS | (uint64_t)pid : 0;
}

pid_t shmt_life_number(const struct shmt_life *life) { return (pid_t)(life->process & ((1u << PID_BITS) - 1)); }

void shmt_life_mine(struct shmt_life *out) {
    const pid_t pid = getpid();
    struct look look;
    *out = (struct shmt_life){0};
    if (!look_at(pid, &look)) return;
    out->space = space_of_mine();
    if (out->space != 0) out->process = process_of(pid, &look);
}

/* A process whose first thread has ended while others go on is shown as a zombie, too. */
enum shmt_living shmt_life_look(const struct shmt_life *life) {
    const pid_t pid = shmt_life_number(life);
    struct look look;
    if (pid == 0 || life->space == 0 || life->space != space_of_mine()) return SHMT_LIFE_UNKNOWN;
    if (!look_at(pid, &look)) return kill(pid, 0) != 0 && errno == ESRCH ? SHMT_LIFE_IS_OVER : SHMT_LIFE_UNKNOWN;
    const bool ended = (look.state == 'Z' || look.state == 'X') && look.threads <= 1;
    return process_of(pid, &look) != life->process || ended ? SHMT_LIFE_IS_OVER : SHMT_LIFE_GOES_ON;
}

pid_t shmt_life_pid(const struct shmt_life *life) {
    return shmt_life_look(life) == SHMT_LIFE_GOES_ON ? shmt_life_number(life) : 0;
}

static int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    errno = ENOSYS;
    return -1;
#endif
}

static int kill_by_pidfd(int fd) {
#ifdef SYS_pidfd_send_signal
    return (int)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
#else
    (void)fd;
    errno = ENOSYS;
    return -1;
#endif
}

/* The pidfd first: if the number is still that life's afterwards, the pidfd is. Where the system refuses it (old kernels, filters
 * of containers, no descriptor left), the number has to do. */
int shmt_life_kill(const struct shmt_life *life) {
    const int fd = shmt_life_number(life) > 0 ? open_pidfd(shmt_life_number(life)) : -1;
    int rc = -1;
    if (shmt_life_look(life) != SHMT_LIFE_GOES_ON) {
        errno = ESRCH;
    } else {
        if (fd >= 0) rc = kill_by_pidfd(fd);
        if (rc < 0 && (fd < 0 || errno != ESRCH)) rc = kill(shmt_life_number(life), SIGKILL);
    }
    const int code = errno;
    if (fd >= 0) close(fd);
    errno = code;
    return rc;
}

uint64_t shmt_life_begins_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
