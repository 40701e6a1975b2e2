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
#include <unistd.h>

#include "base/checked.h"
#include "base/process.h"
#include "segment/segment_priv.h"
#include "sync/host.h"

#define FOLDER     "/dev/shm"
#define FIRST_MARK ((off_t)1 << 40) /* marks stand behind the end of any file that memory could hold */
#define NAP_NS     2000000
#define LOOKS      500 /* at a lock that whoever removes, or looks, holds for a moment */
#define USE_LOOKS  3

static const char *const SUFFIXES[SHMT_NAMED_PARTS] = {"", ".data", ".valid"};

static void nap(void) { shmt_sleep_ns(NAP_NS); }

/* ---- names ---- */

static bool ends_in(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

int shmt_named_check(const char *name, struct shmt_error *e) {
    const size_t n = strlen(name);
    const size_t good = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");
    if (n == 0 || n >= SHMT_NAME_BYTES)
        return shmt_refuse(e, "the store's name \"%.20s%s\" has %zu characters: give it 1 to %d", name, n > 20 ? "..." : "", n,
                           SHMT_NAME_BYTES - 1);
    if (good < n)
        return shmt_refuse(
            e, "the store's name \"%.*s...\" continues with a character that is not a letter, a digit, '.', '_' or '-'",
            (int)good, name);
    if (name[0] == '.' || name[0] == '-')
        return shmt_refuse(e, "the store's name \"%s\" starts with '%c': start it with a letter, a digit or '_'", name,
                           name[0]);
    for (int part = SHMT_NAMED_DATA; part < SHMT_NAMED_PARTS; part++)
        if (ends_in(name, SUFFIXES[part]))
            return shmt_refuse(e, "the store's name \"%s\" ends in %s, which is reserved for data: use another name", name,
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
        return shmt_refuse(e, "store %s has no shared data: its run has ended, or keeps its data private", name);
    return shmt_refuse(e, "there is no store %s: shmtrain ls lists the existing ones", name);
}

/* Only what this user has made, as we make it, is looked into. After the lock: whoever removes it holds the exclusive one. */
static int check_file(const char *name, enum shmt_named_part part, int fd, struct shmt_error *e) {
    struct stat file;
    if (fstat(fd, &file) != 0) return shmt_fail_errno(e, "cannot read the status of store %s", name);
    const char *why = !S_ISREG(file.st_mode)      ? "is not a regular file"
                      : file.st_uid != geteuid()  ? "belongs to another user"
                      : (file.st_mode & 077) != 0 ? "is open to other users"
                      : file.st_nlink > 1         ? "has several names (hard links)"
                                                  : NULL;
    if (why)
        return shmt_refuse(e, "store %s is refused: " FOLDER "/shmtrain-%ju-%s%s %s", name, (uintmax_t)geteuid(), name,
                           SUFFIXES[part], why);
    return file.st_nlink == 0 ? fail_no_store(name, part, e) : 0;
}

/* For the reason in errno, with a remedy where it has one. */
static int fail_open(const char *name, const char *verb, const char *file, struct shmt_error *e) {
    const int code = errno;
    const char *remedy = code == ENOENT || code == ENOTDIR || code == EROFS
                             ? ": mount a tmpfs there that you may write to, or train without --name"
                         : code == ELOOP || code == EINVAL || code == EISDIR ? ": it is not a regular file; move it away"
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
        if (errno != EWOULDBLOCK && errno != EINTR) return shmt_fail_errno(e, "cannot lock store %s (flock)", name);
        nap();
    }
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "store %s has been locked by another program of this user for more than a second",
                     name);
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

/* ---- making ---- */

void shmt_named_sign(int fd) {
    struct shmt_life mine;
    shmt_life_mine(&mine);
    if (pwrite(fd, &mine, sizeof mine, SHMT_NAMED_SIGNATURE_OFF) < 0) return; /* no room: then the store fails */
}

static int claim(const char *name, enum shmt_named_part part, int fd, struct shmt_error *e) {
    if (fchmod(fd, 0600) != 0) /* whatever the umask has left */
        return shmt_fail_errno(e, "cannot make store %s private (fchmod)", name);
    int rc = hold_open(name, fd, e);
    if (rc < 0 || part != SHMT_NAMED_STORE) return rc;
    shmt_named_sign(fd);
    rc = shmt_mark_hold(fd, SHMT_MARK_RUN, e);
    return rc < 0 ? rc : 0;
}

/* A file that gets its name when it is claimed: nobody sees it sooner. 1: made; 0: the name is taken; -1: this file system has
 * no such files, or something else is wrong, which the other way then says. */
static int create_claimed(const char *name, enum shmt_named_part part, const char *file, int *out) {
    char self[64], path[160];
    const int fd = open(FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    snprintf(path, sizeof path, FOLDER "%s", file);
    if (claim(name, part, fd, NULL) == 0) {
        if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
            *out = fd;
            return 1;
        }
        if (errno == EEXIST) {
            close(fd);
            return 0;
        }
    }
    close(fd);
    return -1;
}

/* Here others see it, for a moment, before it is claimed. */
static int create_and_claim(const char *name, enum shmt_named_part part, const char *file, int *out, struct shmt_error *e) {
    for (;;) {
        const int fd = shm_open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST) return 0;
        if (fd < 0) return fail_open(name, "made", file, e);
        const int rc = claim(name, part, fd, e);
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

int shmt_named_create(const char *name, enum shmt_named_part part, int *out, struct shmt_error *e) {
    char file[128];
    int rc = shmt_named_check(name, e);
    if (rc < 0) return rc;
    file_name(name, part, file);
    rc = create_claimed(name, part, file, out);
    return rc >= 0 ? rc : create_and_claim(name, part, file, out, e);
}

bool shmt_named_is(const char *name, enum shmt_named_part part, int fd) {
    char file[128], path[160];
    struct stat mine, there;
    file_name(name, part, file);
    snprintf(path, sizeof path, FOLDER "%s", file);
    return fstat(fd, &mine) == 0 && lstat(path, &there) == 0 && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

/* ---- who has made it ---- */

bool shmt_named_is_empty(uint64_t file_bytes) { return file_bytes <= SHMT_NAMED_SIGNATURE_OFF + sizeof(struct shmt_life); }

static bool maker_has_ended(int fd) {
    struct shmt_life maker;
    if (pread(fd, &maker, sizeof maker, SHMT_NAMED_SIGNATURE_OFF) != sizeof maker) return false;
    return shmt_life_look(&maker) == SHMT_LIFE_IS_OVER;
}

bool shmt_named_runs(int fd) { return shmt_mark_is_held(fd, SHMT_MARK_RUN) && !maker_has_ended(fd); }

void shmt_named_unlock(int fd) { (void)flock(fd, LOCK_UN); }

/* ---- removing ---- */

int shmt_named_unlink(const char *name, enum shmt_named_part part, struct shmt_error *e) {
    char file[128];
    file_name(name, part, file);
    if (shm_unlink(file) == 0 || errno == ENOENT) return 0;
    return shmt_fail_errno(e, "cannot remove store %s (" FOLDER "%s)", name, file);
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
    if (!lock_alone(fd)) return !maker_has_ended(fd);
    (void)flock(fd, LOCK_UN);
    return false;
}

/* Opens a part to remove it, whatever it is; for writing, which the mark of removal needs, where that may be. -1: errno. */
static int open_part(const char *name, enum shmt_named_part part) {
    char file[128];
    file_name(name, part, file);
    const int fd = shm_open(file, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
    return fd >= 0 || errno == ENOENT ? fd : shm_open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
}

/* Who removes a file's name, and looks before whose it is, holds this mark from the look to the end: so of two who remove the same
 * store the slower one finds that the name is gone, or another file's. Nobody makes a store while its name is there. Where it cannot
 * be had (a file that may not be written to) there is the look alone. */
static int hold_removal(const char *name, int fd, struct shmt_error *e) {
    for (int look = 0; look < LOOKS; look++) {
        struct shmt_error ignored = {0};
        if (shmt_mark_hold(fd, SHMT_MARK_REMOVAL, &ignored) != 0) return 0;
        nap();
    }
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "store %s has been locked by another program of this user for more than a second",
                     name);
}

bool shmt_named_exists(const char *name, enum shmt_named_part part) {
    char file[128], path[160];
    struct stat there;
    file_name(name, part, file);
    snprintf(path, sizeof path, FOLDER "%s", file);
    return lstat(path, &there) == 0 || errno != ENOENT;
}

bool shmt_named_data_in_use(const char *name) {
    bool used = false;
    for (int part = SHMT_NAMED_DATA; part < SHMT_NAMED_PARTS; part++) {
        const int fd = open_part(name, (enum shmt_named_part)part);
        used |= fd >= 0 && !lock_alone(fd);
        if (fd >= 0) close(fd);
    }
    return used;
}

/* Data whose store is gone. 1: some was removed; 0: there is none. */
static int remove_orphans(const char *name, bool force, struct shmt_error *e) {
    int removed = 0;
    for (int part = SHMT_NAMED_DATA; part < SHMT_NAMED_PARTS; part++) {
        const int fd = open_part(name, (enum shmt_named_part)part);
        if (fd < 0 && errno == ENOENT) continue;
        int rc = 0;
        if (fd >= 0 && !lock_alone(fd) && !force)
            rc = shmt_refuse(e, "the data of store %s is in use: remove it with --force", name);
        if (rc == 0 && (fd < 0 || shmt_named_is(name, (enum shmt_named_part)part, fd)))
            rc = shmt_named_unlink(name, (enum shmt_named_part)part, e);
        if (fd >= 0) close(fd);
        if (rc < 0) return rc;
        removed = 1;
    }
    return removed;
}

/* The store's name last: until then nobody makes another one, with data of its own. fd < 0: what it is cannot be opened. */
static int remove_parts(const char *name, int fd, struct shmt_error *e) {
    int rc = fd >= 0 ? hold_removal(name, fd, e) : 0;
    if (rc < 0) return rc;
    const bool is_there = fd < 0 || shmt_named_is(name, SHMT_NAMED_STORE, fd); /* else somebody was faster */
    for (int part = SHMT_NAMED_PARTS - 1; is_there && rc == 0 && part >= 0; part--)
        rc = shmt_named_unlink(name, (enum shmt_named_part)part, e);
    if (fd >= 0) shmt_mark_drop(fd, SHMT_MARK_REMOVAL);
    return rc;
}

/* Whatever it is, as long as the system lets this user remove it: damaged ones, too. */
int shmt_named_remove(const char *name, bool force, struct shmt_error *e) {
    int rc = shmt_named_check(name, e);
    if (rc < 0) return rc;
    const int fd = open_part(name, SHMT_NAMED_STORE);
    if (fd < 0 && errno == ENOENT) {
        rc = remove_orphans(name, force, e);
        return rc == 0 ? fail_no_store(name, SHMT_NAMED_STORE, e) : rc < 0 ? rc : 0;
    }
    /* The lock, if it is had, is kept until the names are gone: nobody begins to use the store in between. */
    if (fd >= 0 && !lock_alone(fd) && !force && !maker_has_ended(fd))
        rc = shmt_refuse(e, "store %s is in use: remove it with --force", name);
    if (rc == 0) rc = remove_parts(name, fd, e);
    if (fd >= 0) close(fd);
    return rc;
}

/* Whether a store's file ends before its contents do, by what its header says. */
static bool is_cut_short(int fd) {
    struct shmt_segment_header header;
    struct stat file;
    if (fstat(fd, &file) != 0) return false;
    if (file.st_size < SHMT_SEGMENT_HEADER_BYTES) return true;
    const bool is_header = pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header && header.magic == SHMT_SEGMENT_MAGIC;
    return is_header && header.bytes > (uint64_t)file.st_size;
}

/* Who makes a store has it open from the moment in which it is there, or a little later: it then finds that it is gone. */
bool shmt_named_remove_remnant(const char *name) {
    const int fd = open_part(name, SHMT_NAMED_STORE);
    if (fd < 0) return false;
    const bool removed = check_file(name, SHMT_NAMED_STORE, fd, NULL) == 0 && is_cut_short(fd) &&
                         (lock_alone(fd) || maker_has_ended(fd)) && remove_parts(name, fd, NULL) == 0;
    close(fd);
    return removed;
}

/* ---- listing ---- */

static int compare(const void *a, const void *b) { return strcmp(a, b); }

/* A file's store: its own name, or that of which it has the data. */
static void store_of(const char *file, char name[SHMT_NAME_BYTES]) {
    size_t n = strlen(file);
    for (int part = SHMT_NAMED_DATA; part < SHMT_NAMED_PARTS; part++)
        if (ends_in(file, SUFFIXES[part])) n = strlen(file) - strlen(SUFFIXES[part]);
    snprintf(name, SHMT_NAME_BYTES, "%.*s", n < SHMT_NAME_BYTES ? (int)n : 0, file);
}

/* Adds a file's store, where it is a part of one. */
static int add_name(const char *file, const char *prefix, char (**names)[SHMT_NAME_BYTES], size_t *n, size_t *room) {
    char name[SHMT_NAME_BYTES];
    struct shmt_error ignored = {0};
    if (strncmp(file, prefix, strlen(prefix)) != 0) return 0;
    store_of(file + strlen(prefix), name);
    if (shmt_named_check(name, &ignored) < 0) return 0;
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
    if (!folder) return shmt_fail_errno(e, "cannot list the named stores (" FOLDER ")");
    snprintf(prefix, sizeof prefix, "shmtrain-%ju-", (uintmax_t)geteuid());
    int rc = 0;
    while (rc == 0 && (entry = readdir(folder))) rc = add_name(entry->d_name, prefix, &names, &n, &room);
    closedir(folder);
    if (rc < 0) {
        free(names);
        return shmt_no_memory(e, "to list the named stores");
    }
    if (n > 0) qsort(names, n, sizeof *names, compare);
    size_t n_stores = 0; /* each by all of its parts */
    for (size_t i = 0; i < n; i++)
        if (n_stores == 0 || strcmp(names[n_stores - 1], names[i]) != 0) memmove(names[n_stores++], names[i], sizeof *names);
    n = n_stores;
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
    return shmt_fail_errno(e, "cannot lock a named store (F_OFD_SETLK)");
}

void shmt_mark_drop(int fd, uint64_t mark) {
    struct flock lock = lock_of(mark, F_UNLCK);
    (void)fcntl(fd, F_OFD_SETLK, &lock);
}

bool shmt_mark_is_held(int fd, uint64_t mark) {
    struct flock lock = lock_of(mark, F_WRLCK);
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
