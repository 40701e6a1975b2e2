/* What all readers of files begin with: opening a regular file, and telling packed ones. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/show.h"

struct shmt_file {
    int fd;
    uint64_t bytes;
    char name[SHMT_NAME_SHOWN]; /* for sentences */
};

/* Opens a file of which several parts can be read at one time. Errors: SHMTRAIN_E_USAGE (a directory, a pipe), _DATA (empty), _SYSTEM. On
 * an error only out->name is set, and fd is -1. Closed with shmt_file_close. */
int shmt_file_open(const char *path, struct shmt_file *out, struct shmt_error *e);
void shmt_file_close(struct shmt_file *file); /* fd below 0 is fine */

/* Whether what is open is this file, under whatever name. */
bool shmt_file_is(const struct shmt_file *file, const struct stat *other);

/* The program that unpacks a file which begins with these n bytes; NULL when it does not look packed. */
const char *shmt_file_unpacker(const void *beginning, uint64_t n);
