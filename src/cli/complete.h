/* What completions/shmtrain has of the program's tables. */
#pragma once

/* Prints it: functions for bash that set variables of their caller. */
void complete_put(void);
