/* Replacing files: see replace.h. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/leftovers.h"
#include "base/show.h"
#include "base/unfinished.h"

/* What a sentence is about: what was named, or what links lead to. */
static const char *name_of(const struct shmt_replacement *r) { return r->target.path[0] != '\0' ? r->target.path : r->path; }

/* For the reason in errno; `more` is a part of the sentence. */
static int cannot_there(const struct shmt_replacement *r, const char *more, struct shmt_error *e) {
    const int code = errno;
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(name_of(r), shown);
    if (r->target.refused)
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write %s to %s: %s", r->what, shown, shmt_target_why(&r->target, code));
    errno = code;
    return shmt_fail_errno(e, "cannot write %s to %s%s", r->what, shown, more);
}

static int cannot(const struct shmt_replacement *r, struct shmt_error *e) { return cannot_there(r, "", e); }

/* The rename itself must survive a crash of the machine, too. A folder that cannot be synced (some file systems) is no
 * failure. */
static void sync_folder(const struct shmt_target *target) {
    const int fd = openat(target->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* How much of a path is its folder, with the final '/'. */
static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* ---- the new file ---- */

/* By `make`, which says EEXIST where there is a file already: the name is ours alone. It is short whatever the other one is:
 * what may stand there may be written there. All signals are blocked: no handler finds a file that is not noted. */
static int try_names(struct shmt_replacement *r, int (*make)(const struct shmt_replacement *r)) {
    const int folder = (int)folder_bytes(r->target.path);
    for (unsigned i = 0; i < 100; i++) {
        const int n =
            snprintf(r->temporary, sizeof r->temporary, "%.*s" SHMT_LEFTOVER_NAME, folder, r->target.path, (long)getpid(), i);
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

static const char *temporary_name(const struct shmt_replacement *r) { return r->temporary + folder_bytes(r->temporary); }

/* Whether what will be replaced says who may read and write the new file. What else than a file stands under a name of our own
 * does not, nor does a file that another user has put there. */
static bool has_example(const struct shmt_replacement *r) {
    return r->target.exists && S_ISREG(r->target.there.st_mode) && !shmt_target_is_planted(&r->target);
}

/* As open as any new file; but what replaces another one is for us alone until it has the permissions of that. */
static mode_t first_mode(const struct shmt_replacement *r) { return has_example(r) ? 0600 : 0666; }

/* Nobody takes it for a leftover from here on. Where somebody has, it is another name's turn. */
static int make_named(const struct shmt_replacement *r) {
    const int fd = openat(r->target.folder, temporary_name(r), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, first_mode(r));
    struct stat s;
    if (fd < 0 || (shmt_leftover_keep(fd) && (fstat(fd, &s) < 0 || s.st_nlink > 0))) return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

static int give_name(const struct shmt_replacement *r) {
    char there[64];
    snprintf(there, sizeof there, "/proc/self/fd/%d", r->fd);
    return linkat(AT_FDCWD, there, r->target.folder, temporary_name(r), AT_SYMLINK_FOLLOW);
}

/* A file without a name, in the folder of the real one: it is gone when its writer is, however that ends. -1: not every file
 * system has such files, and without /proc they get no name. */
static int open_nameless(const struct shmt_replacement *r) {
    char there[64];
    struct stat s;
    const int fd = openat(r->target.folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, first_mode(r));
    if (fd < 0) return -1;
    snprintf(there, sizeof there, "/proc/self/fd/%d", fd);
    if (stat(there, &s) == 0) {
        (void)shmt_leftover_keep(fd);
        return fd;
    }
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
static bool is_kept_by_others(const struct shmt_replacement *r) {
    const struct stat *old = &r->target.there, *folder = &r->target.in;
    const uid_t us = geteuid();
    return r->target.exists && S_ISREG(old->st_mode) && us != 0 && us != old->st_uid && (folder->st_mode & S_ISVTX) != 0 &&
           us != folder->st_uid;
}

/* A new file beside the real one, with the permissions of the one that it will replace. -1: errno. */
static int open_new(struct shmt_replacement *r) {
    sigset_t before;
    if (is_kept_by_others(r)) {
        errno = EPERM;
        return -1;
    }
    shmt_leftovers_remove(r->target.folder);
    int fd = open_nameless(r);
    r->nameless = fd >= 0;
    if (fd < 0) {
        block_signals(&before);
        fd = try_names(r, make_named);
        unblock_signals(&before);
    }
    if (fd >= 0 && has_example(r)) (void)look_like(fd, &r->target.there);
    return fd;
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
    struct shmt_target at;
    char folder[PATH_MAX], *end;
    int found = -1;
    shmt_target_begin(path, &at);
    do {
        const size_t n = folder_bytes(at.path);
        const long fd = strtol(at.path + n, &end, 10);
        snprintf(folder, sizeof folder, "%.*s.", (int)n, at.path);
        if (at.path[n] >= '0' && at.path[n] <= '9' && *end == '\0' && fd <= INT_MAX && holds_descriptors(folder))
            found = (int)fd;
    } while (found < 0 && shmt_target_step(&at) == 1);
    shmt_target_close(&at);
    return found;
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

/* One file that is mounted by itself, as containers do: no other one can take its target. */
static bool is_mounted(const struct shmt_target *p) {
    struct statx s;
    const bool known = p->exists && statx(p->folder, p->name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &s) == 0 &&
                       (s.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
    return known && S_ISREG(s.stx_mode) && (s.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* Why the place cannot be written to, as far as that is for a sentence of its own; NULL: nothing is known. */
static const char *find_obstacle(const struct shmt_target *p, bool own) {
    if (!p->exists) return NULL;
    if (S_ISDIR(p->there.st_mode)) return own ? "it is a folder" : "it is a folder; name a file in it";
    if (own) return NULL;
    if (is_mounted(p)) return "this file is a mount point, so it cannot be replaced; name a file in a folder";
    return NULL;
}

/* Finds out what stands there. r->special: a pipe or a device, or an open descriptor is named. */
static int look(struct shmt_replacement *r, bool own, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    if (!own && shmt_replace_descriptor(r->path) >= 0) {
        r->special = true;
        shmt_target_begin(r->path, &r->target);
        return 0;
    }
    if ((own ? shmt_target_find_own : shmt_target_find)(r->path, &r->target) < 0) return cannot(r, e);
    const char *obstacle = find_obstacle(&r->target, own);
    shmt_show_name(r->path, shown);
    if (obstacle) return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write %s to %s: %s", r->what, shown, obstacle);
    r->special = !own && r->target.exists && !S_ISREG(r->target.there.st_mode);
    return 0;
}

/* -1: errno. */
static int open_looked_at(struct shmt_replacement *r) {
    const int named = r->special ? shmt_replace_descriptor(r->path) : -1;
    if (named >= 0)
        r->fd = shmt_replace_copy(named);
    else
        r->fd = r->special ? shmt_target_open(&r->target, O_WRONLY | O_NOCTTY, 0) : open_new(r);
    return r->fd < 0 ? -1 : 0;
}

static int open_replacement(struct shmt_replacement *r, const char *path, const char *what, bool own, struct shmt_error *e) {
    *r = (struct shmt_replacement){.fd = -1, .path = path, .what = what, .target = {.folder = -1}};
    int rc = look(r, own, e);
    if (rc == 0 && open_looked_at(r) < 0) rc = cannot(r, e);
    if (rc < 0) shmt_target_close(&r->target);
    return rc;
}

int shmt_replace_open(struct shmt_replacement *r, const char *path, const char *what, struct shmt_error *e) {
    return open_replacement(r, path, what, false, e);
}

int shmt_replace_open_own(struct shmt_replacement *r, const char *path, const char *what, struct shmt_error *e) {
    return open_replacement(r, path, what, true, e);
}

/* With a remedy: somebody has named it just now. */
static int cannot_be_named(const struct shmt_replacement *r, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    const bool another_place = errno == EACCES || errno == EPERM || errno == EROFS;
    if (!another_place || r->target.refused) return cannot(r, e);
    const int code = errno;
    shmt_show_name(name_of(r), shown);
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write %s to %s: %s; name a file in a folder that you may write to", r->what,
                     shown, strerror(code));
}

static int check_looked_at(struct shmt_replacement *r, struct shmt_error *e) {
    sigset_t before;
    /* A file that is meant not to be written is not replaced either, though its folder would allow it. */
    const bool is_open = r->special && shmt_replace_descriptor(r->path) >= 0;
    if (!is_open && r->target.exists && faccessat(r->target.folder, r->target.name, W_OK, 0) != 0 && errno != ENOENT)
        return cannot_be_named(r, e);
    if (r->special && !is_open) return shmt_target_may_open(&r->target) < 0 ? cannot(r, e) : 0;
    block_signals(&before); /* who is killed meanwhile leaves no file */
    const int opened = open_looked_at(r);
    if (opened == 0) shmt_replace_discard(r);
    unblock_signals(&before);
    return opened < 0 ? cannot_be_named(r, e) : 0;
}

int shmt_replace_check(const char *path, const char *what, struct shmt_error *e) {
    struct shmt_replacement r = {.fd = -1, .path = path, .what = what, .target = {.folder = -1}};
    int rc = look(&r, false, e);
    if (rc == 0) rc = check_looked_at(&r, e);
    shmt_target_close(&r.target);
    return rc;
}

/* What cannot be synced (a pipe, some devices) is written all the same. */
static int close_special(const struct shmt_replacement *r, int written, struct shmt_error *e) {
    int rc = written < 0 ? cannot(r, e) : 0;
    if (rc == 0 && fsync(r->fd) < 0 && errno != EINVAL && errno != EROFS) rc = cannot(r, e);
    if (close(r->fd) < 0 && rc == 0) rc = cannot(r, e);
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

/* Gives the new file a name, where it has none, closes it, and lets it take the place of the old one. A second descriptor keeps
 * it from being a leftover until then. */
static int take_place(struct shmt_replacement *r) {
    if (r->nameless && try_names(r, give_name) < 0 && copy_to_named(r) < 0) return -1;
    const int fd = r->fd, kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    r->fd = -1;
    const int rc = close(fd) < 0 ? -1 : renameat(r->target.folder, temporary_name(r), r->target.folder, r->target.name);
    const int why = errno;
    if (kept >= 0) (void)close(kept);
    errno = why;
    return rc;
}

/* Closes and removes what has not taken its target. Signals are blocked. */
static void take_away(struct shmt_replacement *r) {
    if (r->temporary[0] != '\0') (void)unlinkat(r->target.folder, temporary_name(r), 0);
    if (r->fd >= 0) (void)close(r->fd);
    r->fd = -1;
}

int shmt_replace_close(struct shmt_replacement *r, int written, struct shmt_error *e) {
    sigset_t before;
    int rc = 0;
    if (r->special) {
        rc = close_special(r, written, e);
        shmt_target_close(&r->target);
        return rc;
    }
    if (r->nameless) r->temporary[0] = '\0';
    if (written < 0 || fsync(r->fd) < 0) rc = cannot_there(r, " (the previous file is unchanged)", e);
    /* No signal comes while it has another name: who answers by ending the program would leave the file there. */
    block_signals(&before);
    if (rc == 0 && take_place(r) < 0) rc = cannot(r, e);
    if (rc < 0) take_away(r);
    if (r->temporary[0] != '\0') shmt_unfinished_forget(r->temporary);
    unblock_signals(&before);
    if (rc == 0) sync_folder(&r->target);
    shmt_target_close(&r->target);
    return rc;
}

void shmt_replace_discard(struct shmt_replacement *r) {
    sigset_t before;
    if (r->special || r->nameless) r->temporary[0] = '\0';
    block_signals(&before);
    take_away(r);
    if (r->temporary[0] != '\0') shmt_unfinished_forget(r->temporary);
    unblock_signals(&before);
    shmt_target_close(&r->target);
}
