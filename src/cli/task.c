/* A task of a run over several hosts: see task.h. */
#include "cli/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/talk.h"
#include "cli/tf_config.h"

bool task_is_named(const struct arguments *a) {
    static const char *const WAYS[] = {"hosts", "rank", "role", "task-index", "ps-hosts", "worker-hosts"};
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++)
        if (arguments_value(a, WAYS[i])) return true;
    return false;
}

static void note_it(const struct tf_config *config) {
    char line[160];
    if (config->n_workers == 1)
        snprintf(line, sizeof line, "TF_CONFIG: one host trains: a run on this one alone");
    else
        snprintf(line, sizeof line, "TF_CONFIG: %s %u is host %u of hosts 0 to %u", config->type, config->index, config->rank,
                 config->n_workers - 1);
    talk_note(NULL, config->alone ? "TF_CONFIG names no cluster: a run on this host alone" : line);
}

static int give(struct shmtrain_store *store, struct arguments *a, const char *option, const char *value) {
    if (value[0] == '\0') return 0;
    if (shmtrain_store_set(store, option, value) < 0) return talk_refuse("TF_CONFIG: %s", shmtrain_store_message(store));
    a->option[a->n_options++] = (struct library_option){option, value};
    return 0;
}

static int give_all(struct shmtrain_store *store, struct arguments *a, const struct tf_config *config) {
    static char index[16];
    snprintf(index, sizeof index, "%u", config->is_ps ? config->index : config->rank);
    int status = give(store, a, "role", config->is_ps ? "ps" : "worker");
    if (status == 0) status = give(store, a, "task-index", index);
    if (status == 0) status = give(store, a, "ps-hosts", config->ps);
    if (status == 0) status = give(store, a, "worker-hosts", config->workers);
    return status;
}

int task_take_tf_config(struct shmtrain_store *store, struct arguments *a) {
    static struct tf_config config; /* one for each program; `a` has its texts */
    const char *text = getenv("TF_CONFIG");
    char message[512];
    if (!text || text[0] == '\0' || a->help || a->version || task_is_named(a)) return 0;
    if (!command_takes(a->command, "worker-hosts", 0)) return 0;
    if (tf_config_parse(text, &config, message, sizeof message) < 0) return talk_refuse("%s", message);
    const int status = config.alone ? 0 : give_all(store, a, &config);
    if (status == 0 && !config.is_ps) note_it(&config); /* a ps task has a line of its own */
    return status;
}

bool task_has_part(struct shmtrain_store *store, const struct arguments *a, int *status_out) {
    const int rc = shmtrain_store_takes_part(store);
    const char *index = arguments_value(a, "task-index");
    char line[160];
    if (rc > 0) return true;
    *status_out = rc < 0 ? talk_fail(store, rc) : 0;
    if (rc < 0) return false;
    snprintf(line, sizeof line,
             "task ps %.12s has nothing to do, and no worker waits for it: in shmtrain worker hosts hold the parameters",
             index ? index : "0");
    talk_note(NULL, line);
    return false;
}

bool task_is_second(const struct arguments *a) {
    static const char *const WAYS[][2] = {{"hosts", "rank"}, {"worker-hosts", "task-index"}};
    for (size_t i = 0; i < 2; i++) {
        const char *hosts = arguments_value(a, WAYS[i][0]), *rank = arguments_value(a, WAYS[i][1]);
        if (hosts && strchr(hosts, ',') && rank && strtoul(rank, NULL, 10) > 0) return true;
    }
    return false;
}
