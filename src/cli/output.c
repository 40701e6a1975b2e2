/* Files that are written: see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whether it can be written ---- */

/* A link may lead to no file yet; what counts is where it leads. A circle of links is left as it is: saving refuses it. */
static bool follow_link(char place[PATH_MAX]) {
    char target[PATH_MAX];
    const ssize_t n = readlink(place, target, sizeof target - 1);
    if (n <= 0) return false;
    const char *slash = strrchr(place, '/');
    const size_t folder = target[0] == '/' || !slash ? 0 : (size_t)(slash - place) + 1;
    if (folder + (size_t)n >= PATH_MAX) return false;
    target[n] = '\0';
    memcpy(place + folder, target, (size_t)n + 1);
    return true;
}

static void follow_links(char place[PATH_MAX]) {
    for (int i = 0; i < 40 && follow_link(place); i++) {}
}

/* The descriptor that `path` names by /dev/stdout, /dev/fd/N or /proc/self/fd/N, also through links; -1: none. It is written to
 * as it is, whatever is behind it. */
static int descriptor_of(const char *path) {
    char place[PATH_MAX], folder[PATH_MAX + 2], real[PATH_MAX], ours[32], *end;
    const int n = snprintf(ours, sizeof ours, "/proc/%ld/", (long)getpid());
    snprintf(place, sizeof place, "%s", path);
    for (int i = 0; i < 40; i++) {
        const char *slash = strrchr(place, '/'), *name = slash ? slash + 1 : place;
        snprintf(folder, sizeof folder, "%.*s.", (int)(name - place), place);
        const long fd = strtol(name, &end, 10);
        if (name[0] >= '0' && name[0] <= '9' && *end == '\0' && fd <= INT_MAX && realpath(folder, real) &&
            strncmp(real, ours, (size_t)n) == 0 && strcmp(real + strlen(real) - 3, "/fd") == 0)
            return (int)fd;
        if (!follow_link(place)) return -1;
    }
    return -1;
}

/* One that we have opened ourselves since is not what was meant. */
static int try_descriptor(int fd) {
    const int flags = fcntl(fd, F_GETFL), ours = fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && (ours & FD_CLOEXEC) == 0) return 0;
    errno = EBADF;
    return -1;
}

bool output_is_stdout(const char *path) {
    struct stat there, out;
    if (!path) return false;
    if (descriptor_of(path) == STDOUT_FILENO) return true;
    return stat(path, &there) == 0 && fstat(STDOUT_FILENO, &out) == 0 && !S_ISCHR(out.st_mode) && there.st_dev == out.st_dev &&
           there.st_ino == out.st_ino;
}

/* One file that is mounted by itself, as containers do: no other one can take its place. */
static bool is_mounted(const char *path) {
    struct statx s;
    const bool known = statx(AT_FDCWD, path, 0, STATX_TYPE, &s) == 0 && (s.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
    return known && (s.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* Whether a file of this name can be written. A regular file is replaced by a new one beside it, so its folder counts, too; a
 * device or a pipe is written to as it is. 0, or -1 with errno. */
static int try_output(const char *path) {
    struct stat there;
    char place[PATH_MAX], folder[PATH_MAX + 2];
    const int named = descriptor_of(path);
    if (named >= 0) return try_descriptor(named);
    const bool exists = stat(path, &there) == 0;
    if (!exists && errno != ENOENT) return -1;
    if (exists ? S_ISDIR(there.st_mode) : path[strlen(path) - 1] == '/') {
        errno = EISDIR;
        return -1;
    }
    if (exists && (!S_ISREG(there.st_mode) || access(path, W_OK) != 0)) return access(path, W_OK);
    if (exists && is_mounted(path)) {
        errno = EBUSY;
        return -1;
    }
    snprintf(place, sizeof place, "%s", path);
    follow_links(place);
    snprintf(folder, sizeof folder, "%s/.", dirname(place)); /* "/.": it must be a folder */
    return access(folder, W_OK);
}

static bool is_same_file(const char *a, const char *b) {
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

int output_check(struct shmtrain_store *store, const char *option, const char *path, const char *model, const char *data) {
    if (!path) return 0;
    if (strcmp(path, "-") == 0) {
        fprintf(stderr, "shmtrain: %s -: name a file (./- is one), or /dev/stdout\n", option);
        return 2;
    }
    if (model && is_same_file(path, model)) {
        fprintf(stderr, "shmtrain: %s %s is read as the model (%s), and would be replaced: name another file\n", option, path,
                model);
        return 2;
    }
    if (shmtrain_store_check_output(store, data, path) < 0) {
        fprintf(stderr, "shmtrain: %s %s\n", option, shmtrain_store_message(store));
        return 2;
    }
    if (try_output(path) == 0) return 0;
    fprintf(stderr, "shmtrain: %s %s: %s; name a file in a folder that you may write to\n", option, path, strerror(errno));
    return 1;
}

/* ---- writing it ---- */

/* The file that is not complete yet; the handler looks at it. */
static char temporary[PATH_MAX];
static volatile sig_atomic_t is_there;

/* Owner, group and permissions of `old`, as far as we may give them. A group that is another one, for want of rights, gets what
 * everybody has. */
static void look_like(int fd, const struct stat *old) {
    struct stat now;
    mode_t mode = old->st_mode & 0777;
    if (fchown(fd, old->st_uid, old->st_gid) < 0 && fchown(fd, (uid_t)-1, old->st_gid) < 0)
        if (fstat(fd, &now) < 0 || now.st_gid != old->st_gid) mode &= 0707 | (mode & 07) << 3;
    (void)fchmod(fd, mode);
}

/* The name is ours alone (O_EXCL), and only then the handler may remove it. */
static int make_temporary(const struct output *out) {
    struct stat old;
    const char *slash = strrchr(out->place, '/');
    const int folder = slash ? (int)(slash - out->place) + 1 : 0;
    const bool replaces = stat(out->place, &old) == 0;
    int fd = -1;
    for (int i = 0; i < 100 && fd < 0; i++) {
        if (snprintf(temporary, PATH_MAX, "%.*s.shmtrain-%ld-%d.tmp", folder, out->place, (long)getpid(), i) >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    if (fd < 0) return -1;
    is_there = 1;
    if (replaces) look_like(fd, &old);
    return fd;
}

/* No signal comes between the file and is_there: its handler would leave the file. Leaves errno as make_temporary does. */
static int open_temporary(const struct output *out) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const int fd = make_temporary(out), saved = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return fd;
}

/* Leaves errno as it is. */
static void discard(void) {
    const int saved = errno;
    if (is_there) unlink(temporary);
    is_there = 0;
    errno = saved;
}

static int open_descriptor(struct output *out, int named) {
    const int fd = try_descriptor(named) < 0 ? -1 : fcntl(named, F_DUPFD_CLOEXEC, 0);
    out->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !out->file) close(fd);
    return out->file ? 0 : -1;
}

int output_open(struct output *out, const char *path) {
    struct stat there;
    *out = (struct output){.path = path};
    if (!path) {
        out->file = stdout;
        return 0;
    }
    const int named = descriptor_of(path);
    if (named >= 0) return open_descriptor(out, named);
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        out->file = fopen(path, "we");
        return out->file ? 0 : -1;
    }
    if (snprintf(out->place, sizeof out->place, "%s", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    follow_links(out->place);
    const int fd = open_temporary(out);
    if (fd < 0) return -1;
    out->file = fdopen(fd, "w");
    if (out->file) return 0;
    close(fd);
    discard();
    return -1;
}

/* The rename itself must survive a crash of the machine, too. A folder that cannot be synced (some file systems) is no
 * failure. */
static void sync_folder(const char *place) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", place);
    const int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

int output_close(struct output *out, bool complete) {
    FILE *file = out->file;
    const bool is_new = out->path && out->place[0] != '\0';
    out->file = NULL;
    if (!file || !out->path) return 0;
    int rc = ferror(file) ? -1 : fflush(file);
    if (rc == 0 && is_new && complete) rc = fsync(fileno(file));
    const int saved = errno; /* of what failed first */
    if (fclose(file) != 0 && rc == 0)
        rc = -1;
    else
        errno = saved;
    if (!is_new) return rc;
    if (rc == 0 && complete) rc = rename(temporary, out->place);
    if (rc != 0 || !complete) discard();
    is_there = 0;
    if (rc == 0 && complete) sync_folder(out->place);
    return rc;
}

void output_discard_in_handler(void) {
    if (is_there) unlink(temporary);
}
