/* shmtrain help TOPIC: short texts about what no single option says. One table; each text has at most 24 lines of 80
 * columns. */
#ifndef SHMTRAIN_CLI_TOPICS_H
#define SHMTRAIN_CLI_TOPICS_H

#include <stddef.h>
#include <stdio.h>

struct topic {
    const char *name;
    const char *about; /* a few words for the list of topics */
    const char *text;  /* lines, each with a line break; with a mark where topic_print puts the modes */
};

const struct topic *topic_at(size_t i);                 /* from 0; NULL behind the last */
const struct topic *topic_of_runs_at(size_t i);         /* likewise, of those in topics_runs.c */
const struct topic *topic_named(const char *name);      /* NULL: there is none */
void topics_print_list(void);                           /* all of them, on stdout: name and about */
void topic_print(const struct topic *topic, FILE *out); /* its text, with the modes that the library has */

#endif
