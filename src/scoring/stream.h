/* Predicting lines as they come (stream.c), also those of a file that memory has no room for. For evaluate.c and calls.c. */
#pragma once

#include "scoring/scores.h"

/* What shmtrain_store_predict_stream does between enter and leave. */
int shmt_stream_predict(struct shmt_scoring *scoring, const struct shmtrain_stream *stream, int probabilities,
                        shmtrain_predicted *each, void *arg);

/* Prediction has an answer for each line: refuses to leave lines out. */
int shmt_stream_check_lines(struct shmt_call *call, const struct shmt_config *config);

/* Opens `data` where it is a file of LIBSVM text, as far as its first line shows: a descriptor, to be closed; or -1. */
int shmt_stream_open_text(const char *data);

/* The same where it is a file of LIBSVM text that takes more memory, read whole, than there is: a descriptor, to be closed;
 * or -1. */
int shmt_stream_open_large(const struct shmt_scoring *scoring, const char *data);
