/* Whether a file can be written: see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A link may lead to no file yet; what counts is where it leads. A circle of links is left as it is: saving refuses it. */
static void follow_links(char place[PATH_MAX]) {
    char target[PATH_MAX];
    ssize_t n;
    for (int i = 0; i < 40 && (n = readlink(place, target, sizeof target - 1)) > 0; i++) {
        const char *slash = strrchr(place, '/');
        const size_t folder = target[0] == '/' || !slash ? 0 : (size_t)(slash - place) + 1;
        if (folder + (size_t)n >= PATH_MAX) return;
        target[n] = '\0';
        memcpy(place + folder, target, (size_t)n + 1);
    }
}

/* Whether a file of this name can be written. A regular file is replaced by a new one beside it, so its folder counts, too; a
 * device or a pipe is written to as it is. 0, or -1 with errno. */
static int try_output(const char *path) {
    struct stat there;
    char place[PATH_MAX], folder[PATH_MAX + 2];
    const bool exists = stat(path, &there) == 0;
    if (!exists && errno != ENOENT) return -1;
    if (exists ? S_ISDIR(there.st_mode) : path[strlen(path) - 1] == '/') {
        errno = EISDIR;
        return -1;
    }
    if (exists && (!S_ISREG(there.st_mode) || access(path, W_OK) != 0)) return access(path, W_OK);
    snprintf(place, sizeof place, "%s", path);
    follow_links(place);
    snprintf(folder, sizeof folder, "%s/.", dirname(place)); /* "/.": it must be a folder */
    return access(folder, W_OK);
}

int output_check(const char *path) {
    if (!path || try_output(path) == 0) return 0;
    fprintf(stderr, "shmtrain: --output %s: %s; name a file in a folder that you may write to\n", path, strerror(errno));
    return 1;
}
