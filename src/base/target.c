/* Where names lead: see target.h. */
#include "base/target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SHARED ", in a folder that every user may write to: remove it, or name another place"
#define LINK   "it is another user's link" SHARED

#define MOST_LINKS 40 /* as many as the system follows */

static int fail(int code) {
    errno = code;
    return -1;
}

static void close_quietly(int fd) {
    const int saved = errno;
    if (fd >= 0) (void)close(fd);
    errno = saved;
}

static bool is_shared(const struct stat *folder) {
    const mode_t both = S_ISVTX | S_IWOTH;
    return (folder->st_mode & both) == both;
}

/* The rule, of a link in an open folder. */
static bool may_follow(const struct stat *folder, const struct stat *link) {
    return !is_shared(folder) || link->st_uid == geteuid() || link->st_uid == folder->st_uid;
}

/* Links of /proc lead to what is open, whatever their text says. */
static bool is_in_proc(int fd) {
    struct statfs s;
    return fstatfs(fd, &s) == 0 && s.f_type == PROC_SUPER_MAGIC;
}

/* What a link that is open says, into text (PATH_MAX) in front of what is there from `rest` on. */
static int put_target(int link, char *text, const char *rest) {
    char target[PATH_MAX];
    const ssize_t n = readlinkat(link, "", target, sizeof target);
    if (n < 0) return -1;
    const size_t after = strlen(rest);
    if (n == 0) return fail(ENOENT);
    if ((size_t)n + after >= PATH_MAX) return fail(ENAMETOOLONG);
    memmove(text + n, rest, after + 1);
    memcpy(text, target, (size_t)n);
    return 0;
}

/* ---- folders ---- */

/* A walk through folders. */
struct walk {
    struct shmt_target *target; /* counts links, and is told of a refusal */
    int at;
    char rest[PATH_MAX + 1]; /* what is still to be walked through */
};

static int enter(struct walk *w, int fd) {
    if (fd < 0) return -1;
    close_quietly(w->at);
    w->at = fd;
    return 0;
}

/* `name` (behind which stands `rest`) is a link in the folder. */
static int enter_link(struct walk *w, const char *name, const char *rest) {
    struct stat folder, link;
    const int fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int rc = -1;
    if (fd < 0) return -1;
    if (fstat(w->at, &folder) < 0 || fstat(fd, &link) < 0) {
        rc = -1;
    } else if (!S_ISLNK(link.st_mode)) {
        rc = fail(ENOTDIR);
    } else if (!may_follow(&folder, &link)) {
        w->target->refused = LINK;
        rc = fail(EACCES);
    } else if (++w->target->n_links > MOST_LINKS) {
        rc = fail(ELOOP);
    } else if (is_in_proc(fd)) {
        rc = enter(w, openat(w->at, name, O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (rc == 0) memmove(w->rest, rest, strlen(rest) + 1);
    } else {
        rc = put_target(fd, w->rest, rest);
        if (rc == 0 && w->rest[0] == '/') rc = enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    close_quietly(fd);
    return rc;
}

/* The first component of what is left. */
static int enter_next(struct walk *w) {
    char name[NAME_MAX + 1];
    const size_t n = strcspn(w->rest, "/");
    const char *rest = w->rest + n;
    if (n > NAME_MAX) return fail(ENAMETOOLONG);
    memcpy(name, w->rest, n);
    name[n] = '\0';
    const int fd = openat(w->at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno == ENOTDIR || errno == ELOOP ? enter_link(w, name, rest) : -1;
    memmove(w->rest, rest, strlen(rest) + 1);
    return enter(w, fd);
}

/* The folder of the first `n` characters of the target's path. */
static int open_folder(struct shmt_target *p, size_t n) {
    struct walk w = {.target = p};
    memcpy(w.rest, p->path, n);
    w.rest[n] = '\0';
    w.at = open(n > 0 && p->path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = w.at < 0 ? -1 : 0;
    while (rc == 0) {
        const size_t slashes = strspn(w.rest, "/");
        memmove(w.rest, w.rest + slashes, strlen(w.rest + slashes) + 1);
        if (w.rest[0] == '\0') break;
        rc = enter_next(&w);
    }
    if (rc == 0) rc = fstat(w.at, &p->in);
    if (rc < 0) {
        close_quietly(w.at);
        return -1;
    }
    p->folder = w.at;
    p->shared = is_shared(&p->in);
    return 0;
}

/* ---- what is in it ---- */

/* The link `fd`, which has the target's name. 1: the path is now where it leads. */
static int follow(struct shmt_target *p, int fd, const struct stat *link) {
    struct stat behind;
    char target[PATH_MAX];
    const size_t folder = (size_t)(p->name - p->path);
    if (!may_follow(&p->in, link)) {
        p->refused = LINK;
        return fail(EACCES);
    }
    if (++p->n_links > MOST_LINKS) return fail(ELOOP);
    if (is_in_proc(fd) && fstatat(p->folder, p->name, &behind, 0) == 0 && !S_ISREG(behind.st_mode) &&
        !S_ISDIR(behind.st_mode)) {
        p->is_magic = true;
        p->there = behind;
        return 0;
    }
    target[0] = '\0';
    if (put_target(fd, target, "") < 0) return -1;
    const size_t before = target[0] == '/' ? 0 : folder;
    if (before + strlen(target) >= sizeof p->path) return fail(ENAMETOOLONG);
    memcpy(p->path + before, target, strlen(target) + 1);
    return 1;
}

static int look(struct shmt_target *p, bool follows) {
    const int fd = openat(p->folder, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    p->exists = fd >= 0 || errno != ENOENT;
    if (fd < 0) return p->exists ? -1 : 0;
    int rc = fstat(fd, &p->there);
    if (rc == 0 && S_ISLNK(p->there.st_mode) && follows) {
        const struct stat link = p->there;
        rc = follow(p, fd, &link);
    }
    close_quietly(fd);
    return rc;
}

void shmt_target_begin(const char *path, struct shmt_target *out) {
    const size_t n = strlen(path);
    *out = (struct shmt_target){.folder = -1};
    if (n < sizeof out->path) memcpy(out->path, path, n + 1);
    out->name = out->path;
}

static int step(struct shmt_target *p, bool follows) {
    const char *slash = strrchr(p->path, '/');
    const size_t n = slash ? (size_t)(slash - p->path) + 1 : 0;
    const char *name = p->path + n;
    shmt_target_close(p);
    if (p->path[0] == '\0') return fail(ENOENT);
    const bool is_folder = name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    p->name = is_folder ? "." : name;
    if (open_folder(p, is_folder ? strlen(p->path) : n) < 0) return -1;
    return look(p, follows);
}

int shmt_target_step(struct shmt_target *target) { return step(target, true); }

static int find(const char *path, bool follows, struct shmt_target *out) {
    int rc;
    shmt_target_begin(path, out);
    if (strlen(path) >= sizeof out->path) return fail(ENAMETOOLONG);
    do rc = step(out, follows);
    while (rc == 1);
    return rc;
}

int shmt_target_find(const char *path, struct shmt_target *out) { return find(path, true, out); }
int shmt_target_find_own(const char *path, struct shmt_target *out) { return find(path, false, out); }

void shmt_target_close(struct shmt_target *target) {
    close_quietly(target->folder);
    target->folder = -1;
}

bool shmt_target_is_planted(const struct shmt_target *target) {
    return target->exists && target->shared && target->there.st_uid != geteuid() && target->there.st_uid != target->in.st_uid;
}

static int refuse(struct shmt_target *target, const char *why) {
    target->refused = why;
    return fail(EACCES);
}

int shmt_target_may_open(struct shmt_target *target) {
    const bool may_be_elsewhere =
        target->exists && target->shared && S_ISREG(target->there.st_mode) && target->there.st_nlink > 1;
    if (shmt_target_is_planted(target)) return refuse(target, "it is another user's" SHARED);
    if (may_be_elsewhere) return refuse(target, "it is a file with several names (hard links)" SHARED);
    return 0;
}

int shmt_target_open(struct shmt_target *target, int flags, mode_t mode) {
    struct stat now;
    if (shmt_target_may_open(target) < 0) return -1;
    flags |= O_CLOEXEC | (target->is_magic ? 0 : O_NOFOLLOW);
    if (!target->exists) return openat(target->folder, target->name, flags | O_CREAT | O_EXCL, mode);
    const int fd = openat(target->folder, target->name, flags);
    if (fd < 0) return -1;
    if (fstat(fd, &now) == 0 && now.st_dev == target->there.st_dev && now.st_ino == target->there.st_ino) return fd;
    close(fd);
    return fail(EBUSY);
}

const char *shmt_target_why(const struct shmt_target *target, int code) {
    return target->refused ? target->refused : strerror(code);
}
