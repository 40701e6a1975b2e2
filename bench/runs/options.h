/* Stores of the library with options, as benches and drills make them. */
#pragma once

#include <shmtrain/store.h>

/* Sets "workers=2 mode=ssp:2", names of shmtrain_store_set and what they are given. Returns the library's status. */
int shmt_handle_options(struct shmtrain_store *store, const char *options);

/* A new store with such options, which are a format. What the library refuses ends this process (floors/helpers.h). */
struct shmtrain_store *shmt_handle_with(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends this process with the store's sentence where a call has returned an error. */
void shmt_handle_must(const struct shmtrain_store *store, int rc);
