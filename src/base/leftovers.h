/* Files that a killed writer has left in a folder: those that had a name of try_names in replace.c, and had not taken their place.
 *
 * A living writer holds a lock on its file (of the open file description, F_OFD_SETLK), from before it has a name, or from right
 * behind. Where a file system has no such locks nothing is removed, and where they may say nothing of other machines (local.h) only
 * what is older than a day. */
#pragma once

#include <stdbool.h>

#define SHMT_LEFTOVER_NAME ".shmtrain-%ld-%u.tmp" /* a process, and a number */

/* Locks a file that is open for writing. False: somebody has taken it for a leftover just now. */
bool shmt_leftover_keep(int fd);

/* Removes those of this user from an open folder. What cannot be removed stays. Leaves errno as it is. */
void shmt_leftovers_remove(int folder);
