/* Where many hosts go on (option resume). */
#pragma once

#include <limits.h>

struct shmt_run;

/* All hosts go on from the newest checkpoint that any of them has, by its step: those that lack it get a copy of it, into the folders of
 * their own. run->from: this host's newest one, of this path (PATH_MAX); replaced where another host has a newer one. Between
 * shmt_hosts_begin and the data; without option resume, or with one host, nothing is done. Errors: those of shmt_hosts_agree; _SYSTEM:
 * a file cannot be read or written; _DATA: what came is no checkpoint. */
int shmt_hosts_settle_newest(struct shmt_run *run, char *path);
