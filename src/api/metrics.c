/* Metrics of a run in a file: see metrics.h. Each line is one write, so that whoever follows the file never sees half of one
 * for long, and what stands there after a crash is whole lines. */
#include "api/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/output.h"
#include "api/store_priv.h"
#include "base/clock.h"
#include "base/pipe.h"
#include "base/target.h"
#include "base/replace.h"
#include "base/show.h"
#include "report/metrics_json.h"

#define ONLY_OWNER_WRITES 0644

/* Pipes are refused, unless they are open already and named as such (/dev/stdout, >(command)): whoever reads one too slowly
 * holds up who drives the run, though not its workers. */
static int check_path(struct shmtrain_store *store, const char *data, const char *path, const struct shmt_target *target) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(path, shown);
    if (strcmp(path, "-") == 0)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "--metrics -: standard output is in use: name a file and follow it with tail -f, or name /dev/stdout, "
                         "which then gets nothing else");
    if (shmt_replace_descriptor(path) >= 0) return 0;
    if (target->exists && !S_ISREG(target->there.st_mode) && !S_ISCHR(target->there.st_mode))
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "--metrics %s: this is %s: name a file", shown,
                         S_ISDIR(target->there.st_mode) ? "a folder" : "not a regular file");
    const int rc = shmt_output_check_kept(store, "--metrics ", data, path);
    return rc < 0 ? rc : shmt_output_check(store, "--metrics ", data, path);
}

static int cannot(struct shmtrain_store *store, const struct shmt_target *target, int code) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(store->config.metrics, shown);
    if (target->refused)
        return shmt_fail(&store->error, SHMTRAIN_E_SYSTEM, "cannot write metrics to %s: %s", shown, target->refused);
    errno = code;
    return shmt_fail_errno(&store->error, "cannot write metrics to %s", shown);
}

/* One that is not there is made when the run begins, and none is left by a run that does not. */
static int open_found(struct shmtrain_store *store, struct shmt_target *target) {
    const char *path = store->config.metrics;
    const int named = shmt_replace_descriptor(path);
    if (named < 0 && !target->exists) {
        store->metrics = (struct shmt_metrics){.fd = -1, .open = true, .goes_on = false};
        return shmt_replace_check(path, "metrics", &store->error);
    }
    const int fd = named >= 0 ? shmt_replace_copy(named) : shmt_target_open(target, O_WRONLY | O_NOCTTY, 0);
    if (fd < 0) return cannot(store, target, errno);
    store->metrics = (struct shmt_metrics){.fd = fd, .open = true, .goes_on = named >= 0};
    return 0;
}

int shmt_metrics_open(struct shmtrain_store *store, const char *data) {
    const char *path = store->config.metrics;
    struct shmt_target target = {.folder = -1};
    int rc = 0;
    if (path[0] == '\0') return 0;
    if (shmt_replace_descriptor(path) < 0 && strcmp(path, "-") != 0 && shmt_target_find(path, &target) < 0)
        rc = cannot(store, &target, errno);
    if (rc == 0) rc = check_path(store, data, path, &target);
    if (rc == 0) rc = open_found(store, &target);
    shmt_target_leave(&target);
    return rc;
}

/* When the run begins; it may be there by now. -1: errno. */
static int make(const char *path) {
    struct shmt_target target;
    const int rc = shmt_target_find(path, &target);
    const int fd = rc < 0 ? -1 : shmt_target_open(&target, O_WRONLY | O_NOCTTY, ONLY_OWNER_WRITES);
    shmt_target_leave(&target);
    return fd;
}

static void give_up(struct shmtrain_store *store, int code) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(store->config.metrics, shown);
    shmt_report_unwritten(store, "the run continues without metrics: cannot write to %s: %s", shown, strerror(code));
    if (store->metrics.fd >= 0) close(store->metrics.fd);
    store->metrics = (struct shmt_metrics){0};
}

/* Frees the line; NULL: there was no memory for it, and it is missing. */
static void put(struct shmtrain_store *store, char *line) {
    const size_t bytes = line ? strlen(line) : 0;
    struct shmt_quiet_pipe quiet;
    shmt_quiet_pipe_begin(&quiet);
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(store->metrics.fd, line + done, bytes - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            give_up(store, n == 0 ? ENOSPC : errno);
            break;
        }
    }
    shmt_quiet_pipe_end(&quiet);
    free(line);
}

/* Seconds since training began. */
static double at(const struct shmtrain_store *store) {
    const struct shmt_board *board = store->ops->board(store->job.store);
    const uint64_t first_ns = load_relaxed(&board->first_step_ns), now_ns = shmt_now_ns(); /* relaxed: for display */
    return first_ns && now_ns > first_ns ? (double)(now_ns - first_ns) * 1e-9 : 0;
}

void shmt_metrics_begin(struct shmtrain_store *store) {
    struct shmt_metrics *m = &store->metrics;
    struct stat file;
    if (!m->open) return;
    if (m->fd < 0) m->fd = make(store->config.metrics);
    const bool begins_anew = m->fd >= 0 && !m->goes_on && fstat(m->fd, &file) == 0 && S_ISREG(file.st_mode);
    if (m->fd < 0 || (begins_anew && ftruncate(m->fd, 0) < 0)) {
        give_up(store, errno);
        return;
    }
    m->begun = true;
    put(store, shmt_begin_json(&store->report));
}

void shmt_metrics_progress(struct shmtrain_store *store, const struct shmtrain_progress *now) {
    if (store->metrics.begun) put(store, shmtrain_progress_json(&store->report, now));
}

void shmt_metrics_steps(struct shmtrain_store *store, const struct shmtrain_steps *steps) {
    if (store->metrics.begun) put(store, shmtrain_steps_json(&store->report, steps));
}

void shmt_metrics_epoch(struct shmtrain_store *store, const struct shmtrain_epoch *epoch) {
    if (store->metrics.begun) put(store, shmtrain_epoch_json(&store->report, epoch, at(store)));
}

int shmt_metrics_end(struct shmtrain_store *store, int rc) {
    struct shmt_metrics *m = &store->metrics;
    if (m->begun) put(store, shmt_end_json(&store->report, at(store), rc < 0 ? store->error.text : NULL));
    if (m->open && m->fd >= 0) close(m->fd);
    *m = (struct shmt_metrics){0};
    return rc;
}
