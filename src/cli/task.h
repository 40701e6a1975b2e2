/* Which task of a run over several hosts this program is: what TF_CONFIG says of it, and whether it has anything to do. */
#pragma once

#include <stdbool.h>

#include "cli/arguments.h"

/* Behind the command line: where neither it nor variables of options say which host this one is, TF_CONFIG does, for commands that may
 * run over several hosts, and a note says so. Gives its options to the store and to `a`. 0, or 2 after one line on stderr. */
int task_take_tf_config(struct shmtrain_store *store, struct arguments *a);

/* Whether the command line or a variable of an option says which host this one is, or which others there are. */
bool task_is_named(const struct arguments *a);

/* Before anything is read: whether this host has a part in the run. If not, `*status_out` is the exit status, and all is said. */
bool task_has_part(struct shmtrain_store *store, const struct arguments *a, int *status_out);

/* Whether there are other hosts, of which this one is not the first. */
bool task_is_second(const struct arguments *a);
