/* Which host of a run this one is, and which others there are, in whichever of the two ways that was said: by hosts and rank, or, as
 * TensorFlow has it, by role, task-index, ps-hosts and worker-hosts. Others ask parsed.hosts, shmt_config_host and this, and do not look at
 * these options. */
#pragma once

#include "configuration/options.h"

/* parsed.hosts become those of the way that was taken. After each change of these options. */
void shmt_role_settle(struct shmt_config *config);

/* The text that parsed.hosts stand in, and the option that has it: "hosts" or "worker-hosts". */
const char *shmt_role_text(const struct shmt_config *config);
const char *shmt_role_option(const struct shmt_config *config);

/* Whether this host has a part in runs: a ps task has none, since every worker's host has all parameters. */
bool shmt_role_has_part(const struct shmt_config *config);

/* Refuses options that do not fit together: both ways at a time, half of one, indices that nobody has. Errors: _USAGE. */
int shmt_role_check(const struct shmt_config *config, struct shmt_error *e);
