/* Replacing files: see replace.h. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/show.h"

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

/* A new file beside `path`, with the permissions of the one that it will replace. The name is ours alone: O_EXCL. It is short
 * whatever the other one is: what may stand there may be written there. */
static int open_temporary(const char *path, char *temporary, size_t bytes) {
    struct stat old;
    for (unsigned i = 0; i < 100; i++) {
        const int n = snprintf(temporary, bytes, "%.*s.shmtrain-%ld-%u.tmp", (int)folder_bytes(path), path, (long)getpid(), i);
        if (n < 0 || (size_t)n >= bytes) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd >= 0 && stat(path, &old) == 0) (void)fchmod(fd, old.st_mode & 0777);
        return fd;
    }
    return -1;
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

/* 1: a pipe or a device stands there, 0: a file or nothing; or a status. */
static int look(const char *path, const char *what, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    struct stat there;
    if (stat(path, &there) != 0) return 0;
    shmt_show_name(path, shown);
    if (S_ISDIR(there.st_mode))
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write %s to %s: it is a folder, name a file in it", what, shown);
    return !S_ISREG(there.st_mode);
}

int shmt_replace_open(struct shmt_replacement *r, const char *path, const char *what, struct shmt_error *e) {
    const int special = look(path, what, e);
    if (special < 0) return special;
    *r = (struct shmt_replacement){.fd = -1, .special = special != 0, .path = path, .what = what};
    if (special)
        r->fd = open(path, O_WRONLY | O_CLOEXEC);
    else if (resolve(path, r->real) < 0)
        return cannot(path, what, e);
    else
        r->fd = open_temporary(r->real, r->temporary, sizeof r->temporary);
    return r->fd < 0 ? cannot(special ? path : r->real, what, e) : 0;
}

int shmt_replace_check(const char *path, const char *what, struct shmt_error *e) {
    struct shmt_replacement r;
    const int special = look(path, what, e);
    if (special < 0) return special;
    /* A file that is meant not to be written is not replaced either, though its folder would allow it. */
    if (access(path, W_OK) != 0 && errno != ENOENT) return cannot(path, what, e);
    if (special) return 0;
    const int rc = shmt_replace_open(&r, path, what, e);
    if (rc < 0) return rc;
    close(r.fd);
    unlink(r.temporary);
    return 0;
}

/* What cannot be synced (a pipe, some devices) is written all the same. */
static int close_special(const struct shmt_replacement *r, int written, struct shmt_error *e) {
    int rc = written < 0 ? cannot(r->path, r->what, e) : 0;
    if (rc == 0 && fsync(r->fd) < 0 && errno != EINVAL && errno != EROFS) rc = cannot(r->path, r->what, e);
    if (close(r->fd) < 0 && rc == 0) rc = cannot(r->path, r->what, e);
    return rc;
}

int shmt_replace_close(struct shmt_replacement *r, int written, struct shmt_error *e) {
    int rc = 0;
    if (r->special) return close_special(r, written, e);
    if (written < 0 || fsync(r->fd) < 0) rc = cannot_there(r->real, r->what, " (what was there before is untouched)", e);
    if (close(r->fd) < 0 && rc == 0) rc = cannot(r->real, r->what, e);
    if (rc == 0 && rename(r->temporary, r->real) < 0) rc = cannot(r->real, r->what, e);
    if (rc < 0)
        unlink(r->temporary);
    else
        sync_folder(r->real);
    return rc;
}
