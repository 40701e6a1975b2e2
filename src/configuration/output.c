/* Whether a file may be written beside what a store reads: see <shmtrain/store.h>. Called by applications before a run, so that
 * a mistyped name does not cost them their data afterwards. */
#include "configuration/output.h"

#include <limits.h>
#include <shmtrain/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "configuration/call.h"
#include "configuration/options.h"
#include "base/show.h"
#include "data/source.h"
#include "files/names.h"

/* What cannot be opened is not read either: the run will say why. Without labels it may be read, too: by predicting. */
static bool source_reads(const char *name, const struct stat *file) {
    struct shmt_source *source;
    struct shmt_error ignored = {0};
    struct shmt_source_wish wish = {.name = name, .format = "libsvm"}; /* a table is not looked into */
    int rc = shmt_source_open_as(&wish, &source, &ignored);
    wish.how = SHMT_SOURCE_UNLABELLED;
    if (rc < 0) rc = shmt_source_open_as(&wish, &source, &ignored);
    if (rc < 0) return false;
    const bool reads = shmt_source_reads(source, file);
    shmt_source_close(source);
    return reads;
}

static bool valid_reads(const char *valid, const struct stat *file) {
    double share;
    if (valid[0] == '\0' || strcmp(valid, "none") == 0 || shmt_valid_share(valid, &share)) return false;
    return source_reads(valid, file);
}

static bool is_file(const char *path, const struct stat *file) {
    struct stat s;
    return stat(path, &s) == 0 && s.st_dev == file->st_dev && s.st_ino == file->st_ino;
}

/* Of the same name in the same folder: that of a file that is not there yet, too. */
static bool is_place(const char *a, const char *b) {
    char folder[2][PATH_MAX];
    const char *path[2] = {a, b}, *name[2];
    struct stat s;
    for (int i = 0; i < 2; i++) {
        const char *slash = strrchr(path[i], '/');
        name[i] = slash ? slash + 1 : path[i];
        if (snprintf(folder[i], PATH_MAX, "%.*s.", (int)(name[i] - path[i]), path[i]) >= PATH_MAX) return false;
    }
    return strcmp(name[0], name[1]) == 0 && stat(folder[0], &s) == 0 && is_file(folder[1], &s);
}

bool shmt_output_is_same(const char *a, const char *b) {
    struct stat file;
    return strcmp(a, b) == 0 || is_place(a, b) || (stat(a, &file) == 0 && S_ISREG(file.st_mode) && is_file(b, &file));
}

static int refuse(const char *option, const char *path, const char *as, const char *name, struct shmt_error *e) {
    char path_shown[SHMT_NAME_SHOWN], name_shown[SHMT_NAME_SHOWN];
    const uint32_t n_names = shmt_names_count(name);
    shmt_show_name(path, path_shown);
    if (n_names > 1)
        snprintf(name_shown, sizeof name_shown, "one of %u files", n_names);
    else
        shmt_show_name(name, name_shown);
    return shmt_refuse(e, "%s%s is read as %s (%s) and would be replaced: name another file", option, path_shown, as,
                       name_shown);
}

/* What --cache keeps beside data (loading/cache.c). */
static int check_kept(struct shmt_call *call, const char *option, const char *data, const char *path) {
    char shown[SHMT_NAME_SHOWN], *kept = NULL;
    if (!data || data[0] == '\0') return 0;
    if (asprintf(&kept, "%s" SHMT_CACHE_ENDING, data) < 0) return shmt_no_memory(&call->error, "for a name");
    const bool same = shmt_output_is_same(path, kept);
    free(kept);
    if (!same) return 0;
    shmt_show_name(path, shown);
    return shmt_refuse(&call->error, "%s%s is where --cache keeps the data and would be replaced: name another file", option,
                       shown);
}

int shmt_output_check_read(struct shmt_call *call, const struct shmt_config *config, const char *option, const char *data,
                           const char *path) {
    struct stat file;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) return 0; /* nothing is there, or nothing that is read */
    if (data && source_reads(data, &file)) return refuse(option, path, "the data", data, &call->error);
    if (valid_reads(config->valid, &file)) return refuse(option, path, "validation data", config->valid, &call->error);
    if (config->replay[0] && is_file(config->replay, &file))
        return refuse(option, path, "the record to replay", config->replay, &call->error);
    if (config->weights[0] && is_file(config->weights, &file))
        return refuse(option, path, "weights", config->weights, &call->error);
    return 0;
}

int shmt_output_check(struct shmt_call *call, const struct shmt_config *config, const char *option, const char *data,
                      const char *path) {
    int rc = config->cache ? check_kept(call, option, data, path) : 0;
    if (rc == 0 && config->cache) rc = check_kept(call, option, config->valid, path);
    return rc < 0 ? rc : shmt_output_check_read(call, config, option, data, path);
}

/* What the run writes by itself would be replaced, or replace what is saved. */
static int check_written(struct shmt_call *call, const struct shmt_config *config, const char *path) {
    const struct {
        const char *path, *as;
    } written[] = {{config->trace, "the trace"}, {config->metrics, "metrics"}, {config->record, "the record"}};
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(path, shown);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (written[i].path[0] && shmt_output_is_same(path, written[i].path))
            return shmt_refuse(&call->error, "%s is also written as %s: name another file", shown, written[i].as);
    return 0;
}

int shmt_output_check_new(struct shmt_call *call, const struct shmt_config *config, const char *data, const char *path) {
    const int rc = check_written(call, config, path);
    return rc < 0 ? rc : shmt_output_check(call, config, "", data, path);
}
