/* What completions/shmtrain has of the program's tables. */
#ifndef SHMTRAIN_CLI_COMPLETE_H
#define SHMTRAIN_CLI_COMPLETE_H

/* Prints it: functions for bash that set variables of their caller. */
void complete_put(void);

#endif
