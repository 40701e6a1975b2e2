/* Options that were given, and do nothing in a run. */
#ifndef SHMT_API_EFFECTS_H
#define SHMT_API_EFFECTS_H

#include "api/store_priv.h"

/* A line of the log for each: "--momentum has no effect with --optimizer sgd". The store's spec and job are complete. */
void shmt_note_effects(const struct shmtrain_store *store);

#endif
