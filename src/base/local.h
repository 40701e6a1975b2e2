/* File systems of this machine: nobody changes a file on them whom the permissions and locks here do not stop. Of others (NFS,
 * CIFS, FUSE, virtiofs) another machine may, or a program, and locks may be known here alone. */
#pragma once

#include <stdbool.h>

/* Of the open file; false where the system does not say, and of file systems that are not known to be. */
bool shmt_is_local(int fd);
