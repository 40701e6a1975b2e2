/* Folders of checkpoints, and whose they are. See checkpoint.h.
 *
 * A claim is a lock on a file in the folder, which is removed with the claim; of a process that was killed an empty file stays,
 * whose lock is gone. It is a lock of fcntl (POSIX): that one belongs to a process, and not to a descriptor, as others do, so
 * the supervisor and the workers, which have the descriptor from the application, do not hold it when that is killed and
 * started again at once. But it says nothing to its own process, and goes with any descriptor of the file that is closed there;
 * so runs of one process know one another by a list. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeping/checkpoint_priv.h"
#include "base/replace.h"
#include "base/show.h"
#include "base/target.h"

#define LOCK_NAME ".shmtrain-lock"
#define TRIES     100 /* each is lost to a run that ends just now */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct shmt_checkpoint_claim *claims;             /* of this process, and of the one that it was forked from */

/* ---- a folder ---- */

static int fail_refused(const char *folder, const char *why, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(folder, shown);
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "checkpoints cannot be kept in %s: %s", shown, why);
}

static int check(const char *folder, struct shmt_error *e) {
    char path[PATH_MAX], shown[SHMT_NAME_SHOWN];
    struct shmt_error why = {0};
    struct shmt_target target;
    shmt_show_name(folder, shown);
    const int found = shmt_target_find(folder, &target);
    shmt_target_close(&target);
    if (found < 0 && target.refused) return fail_refused(folder, target.refused, e);
    if (found == 0 && shmt_target_is_planted(&target)) return fail_refused(folder, SHMT_TARGET_PLANTED, e);
    if (found == 0 && !target.exists) errno = ENOENT;
    if (found < 0 || !target.exists) return shmt_checkpoint_cannot(folder, "name another folder", e);
    if (!S_ISDIR(target.there.st_mode))
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write checkpoints to %s: it is a file; name a folder", shown);
    const int rc = shmt_checkpoint_path(folder, 0, path, e);
    if (rc < 0) return rc;
    if (access(folder, R_OK | W_OK | X_OK) < 0)
        return shmt_checkpoint_cannot(folder, "name a folder that you may read and write", e);
    return shmt_replace_check(path, "a checkpoint", &why) < 0 ? shmt_fail(e, why.status, "%s", why.text) : 0;
}

/* Where the name leads by links that may be followed: the system itself would follow those of others. */
static int make(const char *folder, bool *made_out, struct shmt_error *e) {
    char name[PATH_MAX];
    struct shmt_target target = {.folder = -1};
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') n--;
    errno = ENAMETOOLONG;
    int rc = n < sizeof name ? 0 : -1;
    if (rc == 0) {
        memcpy(name, folder, n);
        name[n] = '\0';
        rc = shmt_target_find(name, &target);
    }
    if (rc == 0 && !target.exists) rc = mkdirat(target.folder, target.name, 0777);
    *made_out = rc == 0 && !target.exists;
    shmt_target_close(&target);               /* leaves errno as it is */
    if (rc == 0 || errno == EEXIST) return 0; /* somebody was faster */
    if (target.refused) return fail_refused(folder, target.refused, e);
    const char *remedy = errno == ENOENT ? "create its parent folder first" : "name a folder that can be created";
    return shmt_checkpoint_cannot(folder, remedy, e);
}

/* ---- whose it is ---- */

static int fail_claimed(const char *folder, const char *whose, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(folder, shown);
    return shmt_refuse(e,
                       "--checkpoint %s: another run%s keeps its checkpoints there: wait for its end, or name another folder",
                       shown, whose);
}

static struct flock whole_file(void) { return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET}; }

/* Somebody holds the lock. On another machine, or in another namespace, its number is none of ours. */
static int fail_locked(const struct shmt_checkpoint_claim *claim, struct shmt_error *e) {
    struct flock theirs = whole_file();
    char whose[48] = "";
    if (fcntl(claim->fd, F_GETLK, &theirs) == 0 && theirs.l_type != F_UNLCK && theirs.l_pid > 0)
        snprintf(whose, sizeof whose, " (process %ld)", (long)theirs.l_pid);
    return fail_claimed(claim->folder, whose, e);
}

static bool is_path_of(const char *path, int fd) {
    struct stat at, open;
    return stat(path, &at) == 0 && fstat(fd, &open) == 0 && at.st_dev == open.st_dev && at.st_ino == open.st_ino;
}

static void drop(struct shmt_checkpoint_claim *claim) {
    if (claim->fd >= 0) close(claim->fd);
    claim->fd = -1;
}

/* A file whose lock one gets may have been removed by the run that has ended meanwhile: then others do not see it. Where there
 * can be no file or no lock (some network file systems), the run goes on without. */
static int lock_folder(struct shmt_checkpoint_claim *claim, const char *path, struct shmt_error *e) {
    for (int i = 0; i < TRIES; i++) {
        const struct flock ours = whole_file();
        claim->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (claim->fd < 0) return 0;
        if (fcntl(claim->fd, F_SETLK, &ours) == 0) {
            if (is_path_of(path, claim->fd)) return 0;
            drop(claim);
            continue;
        }
        const int rc = errno == EAGAIN || errno == EACCES ? fail_locked(claim, e) : 0;
        drop(claim);
        return rc;
    }
    return 0;
}

static int register_claim(struct shmt_checkpoint_claim *claim, struct shmt_error *e) {
    char path[PATH_MAX];
    struct stat st;
    if (stat(claim->folder, &st) < 0) return shmt_checkpoint_cannot(claim->folder, "name another folder", e);
    claim->device = st.st_dev;
    claim->inode = st.st_ino;
    for (const struct shmt_checkpoint_claim *c = claims; c; c = c->next)
        if (c->pid == claim->pid && c->device == claim->device && c->inode == claim->inode)
            return fail_claimed(claim->folder, " of this process", e);
    if (snprintf(path, sizeof path, "%s/" LOCK_NAME, claim->folder) < PATH_MAX) {
        const int rc = lock_folder(claim, path, e);
        if (rc < 0) return rc;
    }
    claim->next = claims;
    claims = claim;
    return 0;
}

int shmt_checkpoint_claim(const char *folder, struct shmt_checkpoint_claim *claim, struct shmt_error *e) {
    *claim = (struct shmt_checkpoint_claim){.folder = folder, .fd = -1, .pid = getpid()};
    int rc = make(folder, &claim->made, e);
    if (rc == 0) rc = check(folder, e);
    if (rc == 0) {
        pthread_mutex_lock(&lock);
        rc = register_claim(claim, e);
        pthread_mutex_unlock(&lock);
    }
    if (rc < 0 && claim->made) (void)rmdir(folder);
    if (rc < 0) *claim = (struct shmt_checkpoint_claim){.folder = NULL};
    return rc;
}

void shmt_checkpoint_unclaim(struct shmt_checkpoint_claim *claim) {
    char path[PATH_MAX];
    if (!claim->folder) return;
    pthread_mutex_lock(&lock);
    for (struct shmt_checkpoint_claim **at = &claims; *at; at = &(*at)->next)
        if (*at == claim) {
            *at = claim->next;
            break;
        }
    if (claim->fd >= 0 && snprintf(path, sizeof path, "%s/" LOCK_NAME, claim->folder) < PATH_MAX) (void)unlink(path);
    drop(claim); /* afterwards: nobody locks a file that is then removed */
    pthread_mutex_unlock(&lock);
    if (claim->made) (void)rmdir(claim->folder);
    *claim = (struct shmt_checkpoint_claim){.folder = NULL};
}
