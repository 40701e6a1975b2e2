/* shmtrain train: trains a model, shows how it goes, saves it, and says what came out. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/files.h"
#include "cli/mpi.h"
#include "cli/output.h"
#include "cli/show.h"
#include "cli/talk.h"
#include "cli/task.h"

/* Before hours of work: the format is one, and can hold the model; its labels and features, when they are known. 0, or the exit
 * status. */
static int check_format(struct shmtrain_store *store, const struct arguments *a) {
    if (!a->format) return 0;
    if (!a->output) return talk_refuse("--format %s needs --output FILE", a->format);
    return shmtrain_store_will_save_as(store, a->format) < 0 ? talk_refuse("--%s", shmtrain_store_message(store)) : 0;
}

/* What could not be written where it should go (a full disk, a folder that has gone) is written where there is room. A device or
 * a pipe that cannot take it was named on purpose. Returns the exit status. */
static int save_elsewhere(struct shmtrain_store *store, const char *path, const char *format) {
    const char *const folders[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    char reason[512], place[PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) return talk_fail(store, SHMTRAIN_E_SYSTEM);
    snprintf(reason, sizeof reason, "%s", shmtrain_store_message(store));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!folders[i] || folders[i][0] != '/') continue;
        if (snprintf(place, sizeof place, "%s/shmtrain-XXXXXX", folders[i]) >= (int)sizeof place || !mkdtemp(place)) continue;
        const size_t n = strlen(place);
        if (snprintf(place + n, sizeof place - n, "/%s", slash ? slash + 1 : path) < (int)(sizeof place - n) &&
            shmtrain_store_save_as(store, place, format) == 0) {
            talk_refuse("%s; the model is saved as %s", reason, place);
            return 1;
        }
        place[n] = '\0';
        rmdir(place);
    }
    talk_refuse("%s", reason);
    return 1;
}

/* All hosts of a run have the same model, and may have the same folder: the first one writes it. NULL: nothing is to be written here. */
static const char *output_here(const struct arguments *a) {
    const char *hosts = arguments_value(a, "hosts");
    if (a->output && hosts && strcmp(hosts, "mpi") == 0)
        return mpi_rank() > 0 ? NULL : a->output; /* the same words are said to all */
    if (!a->output || !task_is_second(a)) return a->output;
    talk_note(NULL, "--output is for host 0: of many hosts, it alone writes the model");
    return NULL;
}

/* 0, or the exit status. */
static int save(struct shmtrain_store *store, const char *output, const struct arguments *a) {
    const char *format = a->format ? a->format : "safetensors";
    const int rc = shmtrain_store_save_as(store, output, format);
    if (rc == SHMTRAIN_E_SYSTEM) return save_elsewhere(store, output, format);
    return rc < 0 ? talk_fail(store, rc) : 0;
}

/* All that can be known of the files that are to be written before anything is read. 0, or the exit status. */
static int check_files(struct shmtrain_store *store, const struct arguments *a, const char *output, const char *data,
                       bool *stdout_is_taken) {
    const struct output_wish wish[] = {{"--output", output, "the model"},
                                       {"--trace", arguments_value(a, "trace"), "the trace"},
                                       {"--record", arguments_value(a, "record"), "the record"},
                                       {"--metrics", arguments_value(a, "metrics"), "metrics"}};
    const size_t n = sizeof wish / sizeof *wish;
    int status = output_check(store, &wish[0], NULL, data);
    for (size_t i = 1; i < n && status == 0; i++) status = output_check_descriptor(&wish[i]); /* the rest a run checks */
    if (status == 0) status = check_format(store, a);
    return status == 0 ? output_share_stdout(wish, n, a->json, stdout_is_taken) : status;
}

int train_run(struct shmtrain_store *store, const struct arguments *a) {
    const char *data = files_named(a, 0, files_standard(a));
    struct show show;
    bool stdout_is_taken = false;
    int status = 0;
    if (!data) return 2;
    if (!task_has_part(store, a, &status)) return status;
    const char *output = output_here(a);
    status = check_files(store, a, output, data, &stdout_is_taken);
    if (status == 0) status = show_open(&show, store, a, stdout_is_taken);
    if (status != 0) return status;
    show_listen(&show);
    talk_will_save(output, arguments_value(a, "trace"));
    talk_catch_signals(store);
    int rc = shmtrain_store_train(store, data);
    talk_will_save(rc == 0 ? output : NULL, NULL); /* a trace has been written by then */
    show_close(&show);
    if (rc == 0 && output) status = save(store, output, a);
    talk_will_save(NULL, NULL);
    if (rc < 0) return talk_fail(store, rc);
    if (status != 0) return talk_exit_status(status);
    return talk_exit_status(show_result(&show, shmtrain_store_report(store), output));
}
