/* Whether a file may be written beside what a run reads; see output.c. */
#ifndef SHMT_API_OUTPUT_H
#define SHMT_API_OUTPUT_H

#include <stdbool.h>

struct shmtrain_store;

/* As shmtrain_store_check_output, also while the store is busy with the run that it is about: for files that it writes. `option`:
 * by which the file was named, before its name in sentences: "--trace ", or "". */
int shmt_output_check(struct shmtrain_store *store, const char *option, const char *data, const char *path);

/* Whether `path` is a cache that the run keeps by itself; not part of the above, for caches are written there. */
int shmt_output_check_kept(struct shmtrain_store *store, const char *option, const char *data, const char *path);
#define SHMT_CACHE_ENDING ".shmcache" /* of what --cache keeps beside data */

/* Whether both names are those of one file; neither need be there. */
bool shmt_output_is_same(const char *a, const char *b);

#endif
