/* Files that are written: see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- whether it can be written ---- */

static int refuse(const char *message) {
    fprintf(stderr, "shmtrain: %s\n", message);
    return 1;
}

/* What we have opened ourselves since is not what was meant. */
static bool was_given(int fd) {
    const int flags = fcntl(fd, F_GETFL), ours = fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && (ours & FD_CLOEXEC) == 0;
}

int output_check_descriptor(const struct output_wish *wish) {
    const int named = wish->path ? shmtrain_output_descriptor(wish->path) : -1;
    if (named < 0 || was_given(named)) return 0;
    fprintf(stderr, "shmtrain: cannot write %s to %s: this descriptor is not open for writing\n", wish->what, wish->path);
    return 1;
}

bool output_is_stdout(const char *path) {
    struct stat there, out;
    if (!path) return false;
    if (shmtrain_output_descriptor(path) == STDOUT_FILENO) return true;
    return stat(path, &there) == 0 && fstat(STDOUT_FILENO, &out) == 0 && !S_ISCHR(out.st_mode) && there.st_dev == out.st_dev &&
           there.st_ino == out.st_ino;
}

int output_share_stdout(const struct output_wish *wish, size_t n, bool json, bool *taken_out) {
    const struct output_wish *first = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!output_is_stdout(wish[i].path)) continue;
        if (first || json) {
            fprintf(stderr, "shmtrain: %s %s and %s would both go to standard output: name a file\n", wish[i].option,
                    wish[i].path, first ? first->option : "--json");
            return 2;
        }
        first = &wish[i];
    }
    *taken_out = first != NULL;
    return 0;
}

static bool is_same_file(const char *a, const char *b) {
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

int output_check(struct shmtrain_store *store, const struct output_wish *wish, const char *model, const char *data) {
    const char *option = wish->option, *path = wish->path;
    char message[512];
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
    const int status = output_check_descriptor(wish);
    if (status != 0) return status;
    return shmtrain_output_check(path, wish->what, message, sizeof message) < 0 ? refuse(message) : 0;
}

/* ---- writing it ---- */

int output_open(struct output *out, const struct output_wish *wish) {
    char message[512];
    *out = (struct output){0};
    if (shmtrain_output_open(wish->path, wish->what, &out->to, message, sizeof message) < 0) return refuse(message);
    const int copy = fcntl(shmtrain_output_fd(out->to), F_DUPFD_CLOEXEC, 0); /* the stream closes its own */
    out->file = copy < 0 ? NULL : fdopen(copy, "w");
    if (out->file) return 0;
    const int status = output_close(out, errno);
    if (copy >= 0) close(copy);
    return status;
}

int output_close(struct output *out, int failed) {
    char message[512];
    struct shmtrain_output *to = out->to;
    if (out->file) {
        if (failed == 0 && fflush(out->file) != 0) failed = errno;
        if (failed == 0 && ferror(out->file)) failed = EIO; /* what it was, is not known any more */
        if (fclose(out->file) != 0 && failed == 0) failed = errno;
    }
    *out = (struct output){0};
    return shmtrain_output_close(to, failed, message, sizeof message) < 0 ? refuse(message) : 0;
}

void output_discard(struct output *out) {
    if (out->file) (void)fclose(out->file);
    shmtrain_output_discard(out->to);
    *out = (struct output){0};
}
