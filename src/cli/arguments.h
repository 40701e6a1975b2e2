/* The command line: which command, with what, and the store configured accordingly. */
#ifndef SHMTRAIN_CLI_ARGUMENTS_H
#define SHMTRAIN_CLI_ARGUMENTS_H

#include <shmtrain/shmtrain.h>
#include <stdbool.h>

#include "cli/commands.h"

#define MOST_OPERANDS 3

/* The program's own options; all others are the library's. */
struct arguments {
    const struct command *command;
    bool named; /* the command was; else it is the first one, which is meant */
    bool help, version, quiet, json, scores, probabilities, force;
    const char *output, *progress; /* NULL: not given */
    const char *operand[MOST_OPERANDS];
    int n_operands;
};

/* Parses argv into `out` and the store's options. 0, or 2 after one line on stderr. */
int arguments_parse(int argc, char **argv, struct shmtrain_store *store, struct arguments *out);

/* The program's own option number i, NULL behind the last. */
const struct shmtrain_option *arguments_option_at(size_t i);

#endif
