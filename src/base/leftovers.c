/* What killed writers have left: see leftovers.h. */
#include "base/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/local.h"

static int lock(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole);
}

bool shmt_leftover_keep(int fd) { return lock(fd) == 0 || (errno != EAGAIN && errno != EACCES); }

static const char *skip_number(const char *at) {
    const size_t n = strspn(at, "0123456789");
    return n > 0 ? at + n : NULL;
}

/* As SHMT_LEFTOVER_NAME has it. */
static bool is_name(const char *name) {
    static const char PREFIX[] = ".shmtrain-";
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) return false;
    const char *at = skip_number(name + sizeof PREFIX - 1);
    if (!at || *at != '-' || !(at = skip_number(at + 1))) return false;
    return strcmp(at, ".tmp") == 0;
}

#define OLD_SECONDS (24 * 60 * 60)

/* Whether the lock says that nobody writes: of another machine's writer it does not, where locks are known here alone. Then only
 * the age does: a writer is done within minutes, and clocks do not differ by a day. */
static bool is_nobodys(int fd, const struct stat *file) {
    return lock(fd) == 0 && (shmt_is_local(fd) || file->st_mtim.tv_sec < time(NULL) - OLD_SECONDS);
}

/* Who holds the lock keeps any writer from taking the file for its own. */
static void remove_one(int folder, const char *name) {
    struct stat open_one, named;
    const int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &open_one) == 0 && S_ISREG(open_one.st_mode) && open_one.st_uid == geteuid() && is_nobodys(fd, &open_one) &&
        fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == open_one.st_dev &&
        named.st_ino == open_one.st_ino)
        (void)unlinkat(folder, name, 0);
    close(fd);
}

void shmt_leftovers_remove(int folder) {
    const int saved = errno, fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct dirent *entry;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0) close(fd);
    while (dir && (entry = readdir(dir)))
        if (is_name(entry->d_name)) remove_one(folder, entry->d_name);
    if (dir) closedir(dir);
    errno = saved;
}
