/* Files that are mapped and read without a copy: who they are, for the moment in which one becomes shorter and reading behind its
 * end is SIGBUS. Files of named stores are among them. Handlers ask: those of workers (runtime/faults.c), and of applications by
 * shmtrain_fault_file.
 *
 * A table of the process, because a signal knows an address and nothing else. Children that are forked have it, too. */
#pragma once

#include <stdint.h>

/* Behind the file's name, in sentences. */
#define SHMT_MAPPED_SHORTER " became shorter while it was in use, or its disk cannot be read: make it again"

/* From any thread. With more than 32 mappings at a time the further ones are not known. */
void shmt_mapped_note(const void *base, uint64_t bytes, const char *name);
void shmt_mapped_forget(const void *base);

/* In a signal handler, too: the name of the file that lies there, as sentences have it; NULL: none is known. */
const char *shmt_mapped_at(const void *address);
