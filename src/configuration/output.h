/* Whether a file may be written beside what a run reads; see output.c. */
#pragma once

#include <stdbool.h>

struct shmt_call;
struct shmt_config;

/* As shmtrain_store_check_output, for a file that the run itself writes. `option`: by which it was named, before its name in
 * sentences: "--trace ", or "". */
int shmt_output_check(struct shmt_call *call, const struct shmt_config *config, const char *option, const char *data,
                      const char *path);

/* The same for a file that may be the cache that the run keeps by itself: for caches are written there. */
int shmt_output_check_read(struct shmt_call *call, const struct shmt_config *config, const char *option, const char *data,
                           const char *path);

/* What shmtrain_store_check_output does: for a file that the application writes. */
int shmt_output_check_new(struct shmt_call *call, const struct shmt_config *config, const char *data, const char *path);

#define SHMT_CACHE_ENDING ".shmcache" /* of what --cache keeps beside data */

/* Whether both names are those of one file; neither need be there. */
bool shmt_output_is_same(const char *a, const char *b);
