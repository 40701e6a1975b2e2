/* What hosts.c has for the files beside it. */
#pragma once

#include "configuration/cluster.h"
#include "hosts/desk.h"
#include "hosts/hosts.h"

/* "b:5000" of a host of a run that has several; "b", as MPI has it. */
void shmt_hosts_name(const struct shmt_run *run, uint32_t rank, char out[SHMT_MOST_HOST_TEXT]);

/* Says a text to the other hosts, and waits for theirs: `take` is called with that of each, in order of ranks, this one's among them; what
 * is not 0 ends it. All hosts call it the same number of times. Errors: as of shmt_hosts_agree, and those of `take`. */
int shmt_hosts_gather(struct shmt_run *run, const void *text, uint32_t n,
                      int (*take)(struct shmt_run *run, const struct shmt_desk_packet *said, void *arg), void *arg);
