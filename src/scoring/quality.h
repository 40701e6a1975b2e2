/* How well a classifier tells classes apart, and whether its probabilities can be believed. For evaluate.c. */
#pragma once

#include "scoring/scores.h"

/* Of scores that are of classes (shmt_scores_are_of_classes) and labels that are all the model's: accuracy, confusion, precision
 * and recall, and for models with probabilities their calibration. What `out` then points to belongs to scoring. Errors:
 * _MEMORY. */
int shmt_quality_measure(const struct shmt_scores *scores, struct shmtrain_evaluation *out);

/* Frees what the store has of the last one. */
void shmt_quality_forget(struct shmt_scoring *scoring);
