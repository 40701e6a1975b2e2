/* Metrics of a run in a file: see metrics.h. Each line is one write, so that whoever follows the file never sees half of one
 * for long, and what stands there after a crash is whole lines. */
#include "watching/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watching/report.h"
#include "base/io.h"
#include "base/pipe.h"
#include "base/replace.h"
#include "base/show.h"
#include "base/target.h"
#include "configuration/output.h"
#include "report/metrics_json.h"
#include "sync/host.h"

#define ONLY_OWNER_WRITES 0644

/* Pipes are refused, unless they are open already and named as such (/dev/stdout, >(command)): whoever reads one too slowly
 * holds up who drives the run, though not its workers. */
static int check_path(struct shmt_call *call, const struct shmt_config *config, const char *data, const char *path,
                      const struct shmt_target *target) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(path, shown);
    if (strcmp(path, "-") == 0)
        return shmt_refuse(&call->error,
                           "--metrics -: standard output is in use: name a file and follow it with tail -f, or name "
                           "/dev/stdout, which then gets nothing else");
    if (shmt_replace_descriptor(path) >= 0) return 0;
    if (target->exists && !S_ISREG(target->there.st_mode) && !S_ISCHR(target->there.st_mode))
        return shmt_refuse(&call->error, "--metrics %s: this is %s: name a file", shown,
                           S_ISDIR(target->there.st_mode) ? "a folder" : "not a regular file");
    return shmt_output_check(call, config, "--metrics ", data, path);
}

static int cannot(struct shmt_call *call, const struct shmt_config *config, const struct shmt_target *target, int code) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(config->metrics, shown);
    if (target->refused)
        return shmt_fail(&call->error, SHMTRAIN_E_SYSTEM, "cannot write metrics to %s: %s", shown, target->refused);
    errno = code;
    return shmt_fail_errno(&call->error, "cannot write metrics to %s", shown);
}

/* One that is not there is made when the run begins, and none is left by a run that does not. */
static int open_found(struct shmt_run *run, struct shmt_target *target) {
    const char *path = run->config->metrics;
    const int named = shmt_replace_descriptor(path);
    if (named < 0 && !target->exists) {
        *run->metrics = (struct shmt_metrics){.fd = -1, .open = true, .goes_on = false};
        return shmt_replace_check(path, "metrics", &run->call->error);
    }
    const int fd = named >= 0 ? shmt_replace_copy(named) : shmt_target_open(target, O_WRONLY | O_NOCTTY, 0);
    if (fd < 0) return cannot(run->call, run->config, target, errno);
    *run->metrics = (struct shmt_metrics){.fd = fd, .open = true, .goes_on = named >= 0};
    return 0;
}

int shmt_metrics_open(struct shmt_run *run, const char *data) {
    const char *path = run->config->metrics;
    struct shmt_target target = {.folder = -1};
    int rc = 0;
    if (path[0] == '\0') return 0;
    if (shmt_replace_descriptor(path) < 0 && strcmp(path, "-") != 0 && shmt_target_find(path, &target) < 0)
        rc = cannot(run->call, run->config, &target, errno);
    if (rc == 0) rc = check_path(run->call, run->config, data, path, &target);
    if (rc == 0) rc = open_found(run, &target);
    shmt_target_close(&target);
    return rc;
}

/* When the run begins; it may be there by now. -1: errno. */
static int make(const char *path) {
    struct shmt_target target;
    const int rc = shmt_target_find(path, &target);
    const int fd = rc < 0 ? -1 : shmt_target_open(&target, O_WRONLY | O_NOCTTY, ONLY_OWNER_WRITES);
    shmt_target_close(&target);
    return fd;
}

static void give_up(struct shmt_run *run, int code) {
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(run->config->metrics, shown);
    shmt_report_unwritten(run, "the run continues without metrics: cannot write to %s: %s", shown, strerror(code));
    if (run->metrics->fd >= 0) close(run->metrics->fd);
    *run->metrics = (struct shmt_metrics){0};
}

/* Frees the line; NULL: there was no memory for it, and it is missing. */
static void put(struct shmt_run *run, char *line) {
    const size_t bytes = line ? strlen(line) : 0;
    struct shmt_quiet_pipe quiet;
    shmt_quiet_pipe_begin(&quiet);
    if (bytes > 0 && shmt_io_write(run->metrics->fd, line, bytes) < 0) give_up(run, errno);
    shmt_quiet_pipe_end(&quiet);
    free(line);
}

/* Seconds since training began. */
static double at(const struct shmt_run *run) {
    const struct shmt_board *board = shmt_job_board(&run->job);
    const uint64_t first_ns = load_relaxed(&board->first_step_ns), now_ns = shmt_now_ns(); /* relaxed: for display */
    return first_ns && now_ns > first_ns ? (double)(now_ns - first_ns) * 1e-9 : 0;
}

void shmt_metrics_begin(struct shmt_run *run) {
    struct shmt_metrics *m = run->metrics;
    struct stat file;
    if (!m->open) return;
    if (m->fd < 0) m->fd = make(run->config->metrics);
    const bool begins_anew = m->fd >= 0 && !m->goes_on && fstat(m->fd, &file) == 0 && S_ISREG(file.st_mode);
    if (m->fd < 0 || (begins_anew && ftruncate(m->fd, 0) < 0)) {
        give_up(run, errno);
        return;
    }
    m->begun = true;
    put(run, shmt_begin_json(&run->report));
}

void shmt_metrics_progress(struct shmt_run *run, const struct shmtrain_progress *now) {
    if (run->metrics->begun) put(run, shmtrain_progress_json(&run->report, now));
}

void shmt_metrics_steps(struct shmt_run *run, const struct shmtrain_steps *steps) {
    if (run->metrics->begun) put(run, shmtrain_steps_json(&run->report, steps));
}

void shmt_metrics_epoch(struct shmt_run *run, const struct shmtrain_epoch *epoch) {
    if (run->metrics->begun) put(run, shmtrain_epoch_json(&run->report, epoch, at(run)));
}

int shmt_metrics_end(struct shmt_run *run, int rc) {
    struct shmt_metrics *m = run->metrics;
    if (m->begun) put(run, shmt_end_json(&run->report, at(run), rc < 0 ? run->call->error.text : NULL));
    if (m->open && m->fd >= 0) close(m->fd);
    *m = (struct shmt_metrics){0};
    return rc;
}
