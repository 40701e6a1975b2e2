/* What each host of a run over several has to do, for a plan. */
#pragma once

#include <shmtrain/plan.h>

struct shmt_run;

/* Of a run whose spec is made: *out (n, to be freed), and what the plan says besides. Nothing where the host is alone. Errors: _MEMORY. */
int shmt_plan_hosts(struct shmt_run *run, struct shmtrain_plan *plan, struct shmtrain_plan_host **out);
