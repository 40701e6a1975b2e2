/* Costs that are measured (option sim, the word measured): what a run of workers in virtual time shall take is found out by short real runs
 * of the same, by one worker. Called by the thread that drives the run. */
#pragma once

struct shmtrain_store;

/* What shmtrain_store_train does between enter and leave: trains, and before, where the option asks for it, measures. What was measured is
 * said in a note, and stands in the report: a text for the same option. Errors: those of training; _USAGE: there is nothing to measure. */
int shmt_measured_train(struct shmtrain_store *store, const char *data);
