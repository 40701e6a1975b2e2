/* Predicting lines as they come (stream.c), also those of a file that memory has no room for. For evaluate.c. */
#ifndef SHMT_API_STREAM_H
#define SHMT_API_STREAM_H

#include "api/store_priv.h"

/* What shmtrain_store_predict_stream does between enter and leave. */
int shmt_stream_predict(struct shmtrain_store *store, const struct shmtrain_stream *stream, int probabilities,
                        shmtrain_predicted *each, void *arg);

/* Prediction has an answer for each line: refuses to leave lines out. */
int shmt_stream_check_lines(struct shmtrain_store *store);

/* Opens `data` where it is a file of LIBSVM text, as far as its first line shows: a descriptor, to be closed; or -1. */
int shmt_stream_open_text(const char *data);

/* The same where it is a file of LIBSVM text that takes more memory, read whole, than there is: a descriptor, to be closed;
 * or -1. */
int shmt_stream_open_large(const struct shmtrain_store *store, const char *data);

#endif
