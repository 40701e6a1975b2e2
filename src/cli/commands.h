/* The program's commands: one table that parsing, help and the man page are made from; what help says of each is in
 * commands.txt. */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stddef.h>

struct arguments;

struct command {
    const char *name, *operands; /* "eval", "MODEL DATA" */
    const char *about;           /* at most 27 characters for the list of commands */
    const char *options;         /* the names of those it takes, with blanks between; "*": all of the library's,
                                  but those that are named with a '-' before */
    int least, most;             /* operands */

    /* Does it; what it has to say is said. Returns the exit status. */
    int (*run)(struct shmtrain_store *store, const struct arguments *a);
};

/* Command number i, from 0, which is the one that is meant when none is named; NULL behind the last. */
const struct command *command_at(size_t i);
const struct command *command_named(const char *name); /* NULL: there is none */

/* Whether the command takes this option; is_own: it is one of the program's, not of the library's. */
int command_takes(const struct command *command, const char *option, int is_own);

/* Whether the command takes several values of this option of the library, with commas between them. */
int command_takes_list(const struct command *command, const char *option);

/* Whether the command takes names of hosts, without their ports, in this option of the library. */
int command_takes_names(const struct command *command, const char *option);

/* Its page in commands.txt: lines of at most 80 columns. */
const char *command_words(const struct command *command);

/* What to take in place of an option that the command does not take, in words; NULL: there is nothing like it. */
const char *command_instead(const struct command *command, const char *option);

/* The command that may have been meant by a word; NULL: none comes near. */
const char *command_near(const char *word);

/* The commands themselves, each in the file of its name or its kind. */
int train_run(struct shmtrain_store *store, const struct arguments *a);
int eval_run(struct shmtrain_store *store, const struct arguments *a);
int predict_run(struct shmtrain_store *store, const struct arguments *a);
int data_run(struct shmtrain_store *store, const struct arguments *a);
int model_run(struct shmtrain_store *store, const struct arguments *a);
int inspect_run(struct shmtrain_store *store, const struct arguments *a);
int topo_run(struct shmtrain_store *store, const struct arguments *a);
int compare_run(struct shmtrain_store *store, const struct arguments *a);
int scale_run(struct shmtrain_store *store, const struct arguments *a);
int ls_run(struct shmtrain_store *store, const struct arguments *a);
int rm_run(struct shmtrain_store *store, const struct arguments *a);
int join_run(struct shmtrain_store *store, const struct arguments *a);
int watch_run(struct shmtrain_store *store, const struct arguments *a);
int bench_run(struct shmtrain_store *store, const struct arguments *a);
int drill_run(struct shmtrain_store *store, const struct arguments *a);
int launch_run(struct shmtrain_store *store, const struct arguments *a);
int keygen_run(struct shmtrain_store *store, const struct arguments *a);
int doctor_run(struct shmtrain_store *store, const struct arguments *a);
int help_run(struct shmtrain_store *store, const struct arguments *a);
