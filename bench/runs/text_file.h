/* LIBSVM text in a memory file, and loading it as a run does. */
#pragma once

#include <shmtrain/data.h>
#include <stdint.h>

struct shmt_text_file {
    char path[32]; /* for this process and those that it forks */
    int fd;
    uint64_t bytes;
    const void *at; /* mapped */
};

/* Examples of `data` (sparse), from the first on, until there are about so many bytes of text, or no more of them. */
void shmt_text_file_make(const struct shmtrain_data *data, uint64_t bytes, struct shmt_text_file *out);
void shmt_text_file_free(struct shmt_text_file *file);

/* Nanoseconds in which so many workers have loaded it: from the call to examples in shared memory. */
double shmt_text_file_load(const struct shmt_text_file *file, uint32_t workers);

/* Nanoseconds for reading its bytes once. */
double shmt_text_file_stream(const struct shmt_text_file *file);
