/* Files in /dev/shm by name: see named.h. */
#include "segment/named.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"

#define FOLDER     "/dev/shm"
#define FIRST_MARK ((off_t)1 << 40) /* marks stand behind the end of any file that memory could hold */
#define NAP_NS     2000000
#define LOOKS      500 /* at a lock that whoever removes, or looks, holds for a moment */
#define USE_LOOKS  3

static const char *const SUFFIXES[SHMT_NAMED_PARTS] = {"", ".data", ".valid"};

static void nap(void) {
    const struct timespec pause = {.tv_nsec = NAP_NS};
    (void)nanosleep(&pause, NULL);
}

/* ---- names ---- */

static bool ends_in(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

int shmt_named_check(const char *name, struct shmt_error *e) {
    const size_t n = strlen(name);
    const size_t good = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");
    if (n == 0 || n >= SHMT_NAME_BYTES)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "the store's name \"%.20s%s\" has %zu characters: give it 1 to %d", name,
                         n > 20 ? "..." : "", n, SHMT_NAME_BYTES - 1);
    if (good < n)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "the store's name \"%.*s...\" goes on with a character that is no letter, digit, '.', '_' or '-'",
                         (int)good, name);
    if (name[0] == '.' || name[0] == '-')
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "the store's name \"%s\" begins with '%c': begin it with a letter, a digit or '_'", name, name[0]);
    for (int part = SHMT_NAMED_DATA; part < SHMT_NAMED_PARTS; part++)
        if (ends_in(name, SUFFIXES[part]))
            return shmt_fail(e, SHMTRAIN_E_USAGE,
                             "the store's name \"%s\" ends in %s, which names a store's data: take another", name,
                             SUFFIXES[part]);
    return 0;
}

/* What the system knows a part by: below FOLDER. */
static void file_name(const char *name, enum shmt_named_part part, char out[128]) {
    snprintf(out, 128, "/shmtrain-%ju-%s%s", (uintmax_t)geteuid(), name, SUFFIXES[part]);
}

/* ---- opening ---- */

static int fail_no_store(const char *name, enum shmt_named_part part, struct shmt_error *e) {
    if (part != SHMT_NAMED_STORE)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "store %s has no data that can be shared: its run is over, or keeps them private",
                         name);
    return shmt_fail(e, SHMTRAIN_E_USAGE, "there is no store %s: shmtrain ls lists those that there are", name);
}

/* Only what this user has made, as we make it, is looked into. After the lock: whoever removes it holds the exclusive one. */
static int check_file(const char *name, enum shmt_named_part part, int fd, struct shmt_error *e) {
    struct stat file;
    if (fstat(fd, &file) != 0) return shmt_fail_errno(e, "store %s cannot be looked at", name);
    const char *why = !S_ISREG(file.st_mode)      ? "is no regular file"
                      : file.st_uid != geteuid()  ? "belongs to another user"
                      : (file.st_mode & 077) != 0 ? "is open to other users"
                      : file.st_nlink > 1         ? "has further names"
                                                  : NULL;
    if (why)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "store %s is refused: " FOLDER "/shmtrain-%ju-%s%s %s", name,
                         (uintmax_t)geteuid(), name, SUFFIXES[part], why);
    return file.st_nlink == 0 ? fail_no_store(name, part, e) : 0;
}

/* For the reason in errno, with a remedy where it has one. */
static int fail_open(const char *name, const char *verb, const char *file, struct shmt_error *e) {
    const int code = errno;
    const char *remedy = code == ENOENT || code == ENOTDIR || code == EROFS
                             ? ": mount a tmpfs there that you may write to, or do without --name"
                         : code == ELOOP || code == EINVAL || code == EISDIR ? ": it is no regular file, move it away"
                                                                             : "";
    char shown[256];
    snprintf(shown, sizeof shown, FOLDER "%s%s", file, remedy);
    errno = code;
    return shmt_fail_errno(e, "store %s cannot be %s (%s)", name, verb, shown);
}

/* A shared flock, for others to see. */
static int hold_open(const char *name, int fd, struct shmt_error *e) {
    for (int look = 0; look < LOOKS; look++) {
        if (flock(fd, LOCK_SH | LOCK_NB) == 0) return 0;
        if (errno != EWOULDBLOCK && errno != EINTR) return shmt_fail_errno(e, "store %s cannot be locked (flock)", name);
        nap();
    }
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "store %s is locked by another program of this user for more than a second", name);
}

int shmt_named_open(const char *name, enum shmt_named_part part, enum shmt_named_how how, int *out, struct shmt_error *e) {
    char file[128];
    int rc = shmt_named_check(name, e);
    if (rc < 0) return rc;
    file_name(name, part, file);
    /* without blocking: somebody else's pipe of that name must not hold us up */
    const int fd = shm_open(file, (how == SHMT_NAMED_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOENT) return fail_no_store(name, part, e);
    if (fd < 0) return fail_open(name, "opened", file, e);
    if (how != SHMT_NAMED_LOOK) rc = hold_open(name, fd, e);
    if (rc == 0) rc = check_file(name, part, fd, e);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    *out = fd;
    return 0;
}

int shmt_named_create(const char *name, enum shmt_named_part part, int *out, struct shmt_error *e) {
    char file[128];
    int rc = shmt_named_check(name, e);
    if (rc < 0) return rc;
    file_name(name, part, file);
    for (;;) {
        const int fd = shm_open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST) return 0;
        if (fd < 0) return fail_open(name, "made", file, e);
        if (fchmod(fd, 0600) != 0) /* whatever the umask has left */
            rc = shmt_fail_errno(e, "store %s cannot be closed to others (fchmod)", name);
        if (rc == 0) rc = hold_open(name, fd, e);
        if (rc == 0 && shmt_named_is(name, part, fd)) {
            *out = fd;
            return 1;
        }
        close(fd); /* somebody removed it before it was locked: once more */
        if (rc < 0) {
            (void)shm_unlink(file);
            return rc;
        }
    }
}

bool shmt_named_is(const char *name, enum shmt_named_part part, int fd) {
    char file[128], path[160];
    struct stat mine, there;
    file_name(name, part, file);
    snprintf(path, sizeof path, FOLDER "%s", file);
    return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* ---- removing ---- */

int shmt_named_unlink(const char *name, enum shmt_named_part part, struct shmt_error *e) {
    char file[128];
    file_name(name, part, file);
    if (shm_unlink(file) == 0 || errno == ENOENT) return 0;
    return shmt_fail_errno(e, "store %s cannot be removed (" FOLDER "%s)", name, file);
}

/* Others who look hold the exclusive lock for a moment, too: one refusal says nothing. */
static bool lock_alone(int fd) {
    for (int look = 0; look < USE_LOOKS; look++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        nap();
    }
    return false;
}

bool shmt_named_in_use(int fd) {
    if (!lock_alone(fd)) return true;
    (void)flock(fd, LOCK_UN);
    return false;
}

/* Whatever it is, as long as the system lets this user remove it: damaged ones, too. */
int shmt_named_remove(const char *name, bool force, struct shmt_error *e) {
    char file[128];
    int rc = shmt_named_check(name, e);
    if (rc < 0) return rc;
    file_name(name, SHMT_NAMED_STORE, file);
    const int fd = shm_open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0 && errno == ENOENT) return fail_no_store(name, SHMT_NAMED_STORE, e);
    /* The lock is kept until the names are gone: nobody begins to use the store in between. */
    if (fd >= 0 && !lock_alone(fd) && !force) rc = shmt_fail(e, SHMTRAIN_E_USAGE, "store %s is in use", name);
    for (int part = SHMT_NAMED_PARTS - 1; rc == 0 && part >= 0; part--)
        rc = shmt_named_unlink(name, (enum shmt_named_part)part, e);
    if (fd >= 0) close(fd);
    return rc;
}

/* ---- listing ---- */

static int compare(const void *a, const void *b) { return strcmp(a, b); }

/* Adds a file's name where it is one of a store. */
static int add_name(const char *file, const char *prefix, char (**names)[SHMT_NAME_BYTES], size_t *n, size_t *room) {
    const char *name = file + strlen(prefix);
    struct shmt_error ignored = {0};
    if (strncmp(file, prefix, strlen(prefix)) != 0 || shmt_named_check(name, &ignored) < 0) return 0;
    if (*n == *room) {
        const size_t more = *room ? 2 * *room : 16;
        char(*larger)[SHMT_NAME_BYTES] = realloc(*names, more * sizeof **names);
        if (!larger) return -1;
        *names = larger;
        *room = more;
    }
    snprintf((*names)[(*n)++], SHMT_NAME_BYTES, "%s", name);
    return 0;
}

int shmt_named_list(char (**out)[SHMT_NAME_BYTES], struct shmt_error *e) {
    char prefix[64], (*names)[SHMT_NAME_BYTES] = NULL;
    size_t n = 0, room = 0;
    const struct dirent *entry;
    DIR *folder = opendir(FOLDER);
    if (!folder && errno == ENOENT) {
        *out = NULL;
        return 0;
    }
    if (!folder) return shmt_fail_errno(e, "the named stores cannot be listed (" FOLDER ")");
    snprintf(prefix, sizeof prefix, "shmtrain-%ju-", (uintmax_t)geteuid());
    int rc = 0;
    while (rc == 0 && (entry = readdir(folder))) rc = add_name(entry->d_name, prefix, &names, &n, &room);
    closedir(folder);
    if (rc < 0) {
        free(names);
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to list the named stores");
    }
    if (n > 0) qsort(names, n, sizeof *names, compare);
    *out = names;
    return (int)n;
}

void shmt_named_room(uint64_t *free_out, uint64_t *size_out) {
    struct statvfs room;
    *free_out = *size_out = UINT64_MAX;
    if (statvfs(FOLDER, &room) != 0 || room.f_blocks == 0) return; /* no blocks: it has no limit of its own */
    if (!shmt_mul_u64(room.f_bavail, room.f_frsize, free_out)) *free_out = UINT64_MAX;
    if (!shmt_mul_u64(room.f_blocks, room.f_frsize, size_out)) *size_out = UINT64_MAX;
}

/* ---- marks ---- */

static struct flock lock_of(uint64_t mark, short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = FIRST_MARK + (off_t)mark, .l_len = 1};
}

int shmt_mark_hold(int fd, uint64_t mark, struct shmt_error *e) {
    struct flock lock = lock_of(mark, F_WRLCK);
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return 1;
    if (errno == EAGAIN || errno == EACCES) return 0;
    return shmt_fail_errno(e, "a named store cannot be locked (F_OFD_SETLK)");
}

void shmt_mark_drop(int fd, uint64_t mark) {
    struct flock lock = lock_of(mark, F_UNLCK);
    (void)fcntl(fd, F_OFD_SETLK, &lock);
}

bool shmt_mark_is_held(int fd, uint64_t mark) {
    struct flock lock = lock_of(mark, F_WRLCK);
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
