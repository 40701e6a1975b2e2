/* The command line: what was asked for, and the store configured accordingly. */
#ifndef SHMTRAIN_CLI_ARGUMENTS_H
#define SHMTRAIN_CLI_ARGUMENTS_H

#include <shmtrain/shmtrain.h>
#include <stdbool.h>

/* The program's own options; all others are the library's. */
struct arguments {
    bool help, version, quiet, json;
    const char *output; /* -o: NULL: none */
    const char *data;
};

/* Parses argv into `out` and the store's options. 0, or 2 after one line on stderr. */
int arguments_parse(int argc, char **argv, struct shmtrain_store *store, struct arguments *out);

/* The program's own option number i, NULL behind the last. */
const struct shmtrain_option *arguments_option_at(size_t i);

/* The text of --help on stdout. */
void help_print(void);

#endif
