/* -o: whether a file can be written. */
#ifndef SHMTRAIN_CLI_OUTPUT_H
#define SHMTRAIN_CLI_OUTPUT_H

/* Finds it out before hours of work, not after; changes nothing. 0, or 1 after one line on stderr. NULL is fine. */
int output_check(const char *path);

#endif
