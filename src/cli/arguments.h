/* The command line: which command, with what, and the store configured accordingly. */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stdbool.h>

#include "cli/commands.h"

#define MOST_OPERANDS 1024
#define MOST_OPTIONS  512

/* An option of the library as it was given. */
struct library_option {
    const char *name, *value;
};

/* The program's own options, and the library's for those who configure more than one store. */
struct arguments {
    const struct command *command;
    bool named; /* the command was; else it is the first one, which is meant */
    bool help, version, quiet, json, scores, probabilities, show, force, quick;
    const char *output, *format, *progress, *modes, *nodes, *target, *tune, *seeds, *html, *rounds, *local, *remote_shell,
        *restarts;       /* NULL: not given */
    const char *workers; /* the list of them that compare and scale take; NULL: one number, or none */
    const char *hosts;   /* the names that launch takes; NULL: none */
    struct library_option option[MOST_OPTIONS + 4]; /* those of TF_CONFIG, or MPI, stand behind the others */
    int n_options;
    char **argv; /* (argc): the words of the command line, perhaps in another order */
    int argc;
    const char *operand[MOST_OPERANDS];
    int n_operands;
};

/* Parses argv into `out` and the store's options. 0, or 2 after one line on stderr. */
int arguments_parse(int argc, char **argv, struct shmtrain_store *store, struct arguments *out);

/* Gives a further store the options that the one of arguments_parse has: those of the environment and of the command line. As
 * shmtrain_store_set. */
int arguments_configure(const struct arguments *a, struct shmtrain_store *store);

/* Likewise for one of several runs: without a name, and without the files and checkpoints that are one run's. */
int arguments_configure_one(const struct arguments *a, struct shmtrain_store *store);

/* An option that is a number. As shmtrain_store_set. */
int arguments_set_number(struct shmtrain_store *store, const char *option, uint64_t number);

/* What the run's option `name` was given, by the command line or else its variable; NULL: nothing. */
const char *arguments_value(const struct arguments *a, const char *name);

/* The program's own option number i, NULL behind the last. */
const struct shmtrain_option *arguments_option_at(size_t i);
