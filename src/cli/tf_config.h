/* TF_CONFIG: the variable by which TensorFlow, and what starts it (Kubernetes' TFJob, cloud services), tells each task who the others
 * are and which one it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TF_CONFIG_MOST_TASKS 64 /* of ps, and of all that train: as options worker-hosts and ps-hosts */

struct tf_config {
    bool alone;         /* it names no cluster: the rest is empty */
    bool is_ps;         /* else a worker, the chief among them */
    const char *type;   /* as it stands there: "worker" */
    unsigned index;     /* among those of its type */
    unsigned rank;      /* among the hosts that train */
    unsigned n_workers; /* hosts that train */
    char *workers, *ps; /* for options worker-hosts and ps-hosts: the chief first; "": none */
};

/* Parses the variable's text. 0, and *out is for tf_config_free; -1: one sentence in `message`, which names the place. What else
 * stands there (job, environment, ...) is not looked at. Addresses are not checked: options do. */
int tf_config_parse(const char *text, struct tf_config *out, char *message, size_t bytes);
void tf_config_free(struct tf_config *config);
