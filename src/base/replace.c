/* Replacing files: see replace.h. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/show.h"
#include "base/unfinished.h"

#define MOST_LINKS 40 /* that lead to one another: as many as the system follows */

/* For the reason in errno; `more` is a part of the sentence. */
static int cannot_there(const char *path, const char *what, const char *more, struct shmt_error *e) {
    const int code = errno;
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(path, shown);
    errno = code;
    return shmt_fail_errno(e, "cannot write %s to %s%s", what, shown, more);
}

static int cannot(const char *path, const char *what, struct shmt_error *e) { return cannot_there(path, what, "", e); }

/* The rename itself must survive a crash of the machine, too. A folder that cannot be synced (some file systems) is no
 * failure. */
static void sync_folder(const char *path) {
    char *copy = strdup(path);
    if (!copy) return;
    const int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* The folder of `path` with its final '/', or "" when it is the current one. */
static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* ---- the new file ---- */

/* By `make`, which says EEXIST where there is a file already: the name is ours alone. It is short whatever the other one is:
 * what may stand there may be written there. All signals are blocked: no handler finds a file that is not noted. */
static int try_names(struct shmt_replacement *r, int (*make)(const struct shmt_replacement *r)) {
    const int folder = (int)folder_bytes(r->real);
    for (unsigned i = 0; i < 100; i++) {
        const int n =
            snprintf(r->temporary, sizeof r->temporary, "%.*s.shmtrain-%ld-%u.tmp", folder, r->real, (long)getpid(), i);
        if (n < 0 || (size_t)n >= sizeof r->temporary) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int made = make(r);
        if (made >= 0) shmt_unfinished_note(r->temporary);
        if (made >= 0 || errno != EEXIST) return made;
    }
    return -1;
}

/* A file itself: what else stands under a name of our own is replaced, and no example. */
static bool is_file(const char *real, struct stat *out) { return lstat(real, out) == 0 && S_ISREG(out->st_mode); }

/* As open as any new file; but what replaces another one is for us alone until it has the permissions of that. */
static mode_t first_mode(const struct shmt_replacement *r) {
    struct stat old;
    return is_file(r->real, &old) ? 0600 : 0666;
}

static int make_named(const struct shmt_replacement *r) {
    return open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, first_mode(r));
}

static int give_name(const struct shmt_replacement *r) {
    char there[64];
    snprintf(there, sizeof there, "/proc/self/fd/%d", r->fd);
    return linkat(AT_FDCWD, there, AT_FDCWD, r->temporary, AT_SYMLINK_FOLLOW);
}

/* A file without a name, in the folder of the real one: it is gone when its writer is, however that ends. -1: not every file
 * system has such files, and without /proc they get no name. */
static int open_nameless(const struct shmt_replacement *r) {
    char folder[PATH_MAX], there[64];
    struct stat s;
    snprintf(folder, sizeof folder, "%.*s.", (int)folder_bytes(r->real), r->real);
    const int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, first_mode(r));
    if (fd < 0) return -1;
    snprintf(there, sizeof there, "/proc/self/fd/%d", fd);
    if (stat(there, &s) == 0) return fd;
    close(fd);
    return -1;
}

/* Owner, group and permissions of `old`, as far as we may give them. A group that is another one, for want of rights, gets what
 * everybody has. */
static int look_like(int fd, const struct stat *old) {
    struct stat now;
    mode_t mode = old->st_mode & 0777;
    if (fchown(fd, old->st_uid, old->st_gid) < 0 && fchown(fd, (uid_t)-1, old->st_gid) < 0) {
        if (fstat(fd, &now) < 0) return -1;
        if (now.st_gid != old->st_gid) mode &= 0707 | (mode & 07) << 3;
    }
    return fchmod(fd, mode);
}

static void block_signals(sigset_t *before) {
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, before);
}

/* Leaves errno as it is. */
static void unblock_signals(const sigset_t *before) {
    const int saved = errno;
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = saved;
}

/* In folders like /tmp a file can be replaced by its owner and the folder's only, though others may write to it. */
static bool is_kept_by_others(const struct shmt_replacement *r, const struct stat *old) {
    char folder[PATH_MAX];
    struct stat s;
    const uid_t us = geteuid();
    snprintf(folder, sizeof folder, "%.*s.", (int)folder_bytes(r->real), r->real);
    return us != 0 && us != old->st_uid && stat(folder, &s) == 0 && (s.st_mode & S_ISVTX) != 0 && us != s.st_uid;
}

/* A new file beside the real one, with the permissions of the one that it will replace. -1: errno. */
static int open_new(struct shmt_replacement *r) {
    struct stat old;
    sigset_t before;
    const bool replaces = is_file(r->real, &old);
    if (replaces && is_kept_by_others(r, &old)) {
        errno = EPERM;
        return -1;
    }
    int fd = open_nameless(r);
    r->nameless = fd >= 0;
    if (fd < 0) {
        block_signals(&before);
        fd = try_names(r, make_named);
        unblock_signals(&before);
    }
    if (fd >= 0 && replaces) (void)look_like(fd, &old);
    return fd;
}

/* One symbolic link further: `path` (PATH_MAX) becomes what it points to, seen from its folder. 1: done, 0: it is no link, -1:
 * errno. */
static int follow_link(char *path) {
    char target[PATH_MAX];
    const ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0) return errno == EINVAL || errno == ENOENT ? 0 : -1;
    target[n] = '\0';
    const size_t folder = target[0] == '/' ? 0 : folder_bytes(path);
    if (folder + (size_t)n >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path + folder, target, (size_t)n + 1);
    return 1;
}

/* The file itself behind symbolic links, also when there is none yet: it is what is written, and the links stay. */
static int resolve(const char *path, char out[PATH_MAX]) {
    int more = 1;
    if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (int i = 0; more == 1; i++) {
        if (i > MOST_LINKS) {
            errno = ELOOP;
            return -1;
        }
        more = follow_link(out);
    }
    return more;
}

/* ---- what stands there ---- */

/* Whether a folder is that of our own descriptors: what is in it is as open as it is, and no place for files. */
static bool holds_descriptors(const char *folder) {
    char real[PATH_MAX], ours[32];
    const int n = snprintf(ours, sizeof ours, "/proc/%ld/", (long)getpid());
    if (!realpath(folder, real) || strncmp(real, ours, (size_t)n) != 0) return false;
    const size_t bytes = strlen(real);
    return bytes >= 3 && strcmp(real + bytes - 3, "/fd") == 0;
}

int shmt_replace_descriptor(const char *path) {
    char at[PATH_MAX], folder[PATH_MAX], *end;
    if (snprintf(at, sizeof at, "%s", path) >= PATH_MAX) return -1;
    for (int i = 0; i <= MOST_LINKS; i++) {
        const size_t n = folder_bytes(at);
        const long fd = strtol(at + n, &end, 10);
        snprintf(folder, sizeof folder, "%.*s.", (int)n, at);
        if (at[n] >= '0' && at[n] <= '9' && *end == '\0' && fd <= INT_MAX && holds_descriptors(folder)) return (int)fd;
        if (follow_link(at) != 1) return -1;
    }
    return -1;
}

int shmt_replace_copy(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    errno = EBADF;
    return -1;
}

bool shmt_replace_is_stream(const char *path) {
    struct stat s;
    return shmt_replace_descriptor(path) >= 0 || (stat(path, &s) == 0 && (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode)));
}

/* One file that is mounted by itself, as containers do: no other one can take its place. */
static bool is_mounted(const char *path) {
    struct statx s;
    const bool known = statx(AT_FDCWD, path, 0, STATX_TYPE, &s) == 0 && (s.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
    return known && S_ISREG(s.stx_mode) && (s.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* 1: a pipe or a device stands there, or an open descriptor is named, 0: a file or nothing; or a status. */
static int look(const char *path, const char *what, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    struct stat there;
    if (shmt_replace_descriptor(path) >= 0) return 1;
    if (stat(path, &there) != 0) return 0;
    shmt_show_name(path, shown);
    if (S_ISDIR(there.st_mode))
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write %s to %s: it is a folder, name a file in it", what, shown);
    if (is_mounted(path))
        return shmt_fail(e, SHMTRAIN_E_SYSTEM,
                         "cannot write %s to %s: this one file is a mount, and cannot be replaced: name a file in a folder",
                         what, shown);
    return !S_ISREG(there.st_mode);
}

/* -1: errno, and r->real is what cannot be written. */
static int open_looked_at(struct shmt_replacement *r, const char *path, const char *what, bool special) {
    *r = (struct shmt_replacement){.fd = -1, .special = special, .path = path, .what = what};
    const int named = shmt_replace_descriptor(path);
    if (special)
        r->fd = named >= 0 ? shmt_replace_copy(named) : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    else if (resolve(path, r->real) == 0)
        r->fd = open_new(r);
    else
        r->real[0] = '\0';
    return r->fd < 0 ? -1 : 0;
}

/* What a sentence is about: what was named, or what links lead to. */
static const char *target_of(const struct shmt_replacement *r) { return r->real[0] != '\0' ? r->real : r->path; }

int shmt_replace_open(struct shmt_replacement *r, const char *path, const char *what, struct shmt_error *e) {
    const int special = look(path, what, e);
    if (special < 0) return special;
    return open_looked_at(r, path, what, special != 0) < 0 ? cannot(target_of(r), what, e) : 0;
}

int shmt_replace_open_own(struct shmt_replacement *r, const char *path, const char *what, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    struct stat there;
    *r = (struct shmt_replacement){.fd = -1, .path = path, .what = what};
    if (lstat(path, &there) == 0 && S_ISDIR(there.st_mode)) {
        shmt_show_name(path, shown);
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write %s to %s: it is a folder", what, shown);
    }
    if (snprintf(r->real, sizeof r->real, "%s", path) >= PATH_MAX) {
        r->real[0] = '\0';
        errno = ENAMETOOLONG;
    } else {
        r->fd = open_new(r);
    }
    return r->fd < 0 ? cannot(path, what, e) : 0;
}

/* With a remedy: somebody has named it just now. */
static int cannot_be_named(const char *path, const char *what, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    const bool another_place = errno == EACCES || errno == EPERM || errno == EROFS;
    if (!another_place) return cannot(path, what, e);
    const int code = errno;
    shmt_show_name(path, shown);
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write %s to %s: %s; name a file in a folder that you may write to", what,
                     shown, strerror(code));
}

int shmt_replace_check(const char *path, const char *what, struct shmt_error *e) {
    struct shmt_replacement r;
    sigset_t before;
    const int special = look(path, what, e);
    if (special < 0) return special;
    /* A file that is meant not to be written is not replaced either, though its folder would allow it. */
    const bool is_open = special && shmt_replace_descriptor(path) >= 0;
    if (!is_open && access(path, W_OK) != 0 && errno != ENOENT) return cannot_be_named(path, what, e);
    if (special && !is_open) return 0;
    block_signals(&before); /* who is killed meanwhile leaves no file */
    const int opened = open_looked_at(&r, path, what, special != 0);
    if (opened == 0) shmt_replace_discard(&r);
    unblock_signals(&before);
    return opened < 0 ? cannot_be_named(target_of(&r), what, e) : 0;
}

/* What cannot be synced (a pipe, some devices) is written all the same. */
static int close_special(const struct shmt_replacement *r, int written, struct shmt_error *e) {
    int rc = written < 0 ? cannot(r->path, r->what, e) : 0;
    if (rc == 0 && fsync(r->fd) < 0 && errno != EINVAL && errno != EROFS) rc = cannot(r->path, r->what, e);
    if (close(r->fd) < 0 && rc == 0) rc = cannot(r->path, r->what, e);
    return rc;
}

static int copy_bytes(int to, int from) {
    char piece[1 << 14];
    off_t at = 0;
    ssize_t n;
    while ((n = pread(from, piece, sizeof piece, at)) > 0) {
        for (ssize_t done = 0; done < n;) {
            const ssize_t put = write(to, piece + done, (size_t)(n - done));
            if (put < 0) return -1;
            done += put;
        }
        at += n;
    }
    return n < 0 ? -1 : 0;
}

/* Some may make files without names and not name them (seccomp, AppArmor, FUSE). All signals are blocked. */
static int copy_to_named(struct shmt_replacement *r) {
    struct stat made;
    const int from = r->fd, to = fstat(from, &made) < 0 ? -1 : try_names(r, make_named);
    if (to < 0) {
        r->temporary[0] = '\0';
        return -1;
    }
    r->fd = to;
    const int rc = copy_bytes(to, from) < 0 || look_like(to, &made) < 0 || fsync(to) < 0 ? -1 : 0, why = errno;
    close(from);
    errno = why;
    return rc;
}

/* Gives the new file a name, where it has none, closes it, and lets it take the place of the old one. */
static int take_place(struct shmt_replacement *r) {
    if (r->nameless && try_names(r, give_name) < 0 && copy_to_named(r) < 0) return -1;
    const int fd = r->fd;
    r->fd = -1;
    return close(fd) < 0 ? -1 : rename(r->temporary, r->real);
}

/* Closes and removes what has not taken its place. Signals are blocked. */
static void take_away(struct shmt_replacement *r) {
    if (r->fd >= 0) (void)close(r->fd);
    r->fd = -1;
    if (r->temporary[0] != '\0') (void)unlink(r->temporary);
}

int shmt_replace_close(struct shmt_replacement *r, int written, struct shmt_error *e) {
    sigset_t before;
    int rc = 0;
    if (r->special) return close_special(r, written, e);
    if (r->nameless) r->temporary[0] = '\0';
    if (written < 0 || fsync(r->fd) < 0) rc = cannot_there(r->real, r->what, " (what was there before is untouched)", e);
    /* No signal comes while it has another name: who answers by ending the program would leave the file there. */
    block_signals(&before);
    if (rc == 0 && take_place(r) < 0) rc = cannot(r->real, r->what, e);
    if (rc < 0) take_away(r);
    if (r->temporary[0] != '\0') shmt_unfinished_forget(r->temporary);
    unblock_signals(&before);
    if (rc == 0) sync_folder(r->real);
    return rc;
}

void shmt_replace_discard(struct shmt_replacement *r) {
    sigset_t before;
    if (r->special || r->nameless) r->temporary[0] = '\0';
    block_signals(&before);
    take_away(r);
    if (r->temporary[0] != '\0') shmt_unfinished_forget(r->temporary);
    unblock_signals(&before);
}
