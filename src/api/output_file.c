/* Files of applications that are written as a whole: see <shmtrain/output.h>. The work is done by base/replace.c. */
#include <shmtrain/output.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/replace.h"
#include "base/show.h"
#include "base/unfinished.h"

/* `what` and the path are the caller's, and may be gone when the file is closed. */
struct shmtrain_output {
    struct shmt_replacement file;
    char what[64], path[PATH_MAX];
};

static int tell(const struct shmt_error *e, char *message, uint64_t bytes) {
    if (message && bytes > 0) snprintf(message, bytes, "%s", e->text);
    return e->status;
}

int shmtrain_output_check(const char *path, const char *what, char *message, uint64_t bytes) {
    struct shmt_error e = {0};
    return shmt_replace_check(path, what, &e) < 0 ? tell(&e, message, bytes) : 0;
}

int shmtrain_output_open(const char *path, const char *what, struct shmtrain_output **out, char *message, uint64_t bytes) {
    struct shmt_error e = {0};
    char shown[SHMT_NAME_SHOWN];
    struct shmtrain_output *output = calloc(1, sizeof *output);
    shmt_show_name(path, shown);
    int rc = output ? 0 : shmt_no_memory(&e, "to write %s to %s", what, shown);
    if (rc == 0 && snprintf(output->path, sizeof output->path, "%s", path) >= (int)sizeof output->path)
        rc = shmt_fail(&e, SHMTRAIN_E_SYSTEM, "cannot write %s to %s: its name is too long", what, shown);
    if (rc == 0) {
        snprintf(output->what, sizeof output->what, "%s", what);
        rc = shmt_replace_open(&output->file, output->path, output->what, &e);
    }
    if (rc == 0) {
        *out = output;
        return 0;
    }
    free(output);
    return tell(&e, message, bytes);
}

int shmtrain_output_fd(const struct shmtrain_output *output) { return output->file.fd; }

int shmtrain_output_close(struct shmtrain_output *output, int failed, char *message, uint64_t bytes) {
    struct shmt_error e = {0};
    errno = failed;
    const int rc = shmt_replace_close(&output->file, failed ? -1 : 0, &e);
    free(output);
    return rc < 0 ? tell(&e, message, bytes) : 0;
}

void shmtrain_output_discard(struct shmtrain_output *output) {
    if (!output) return;
    shmt_replace_discard(&output->file);
    free(output);
}

void shmtrain_output_discard_all(void) { shmt_unfinished_remove(); }

int shmtrain_output_descriptor(const char *path) { return shmt_replace_descriptor(path); }
