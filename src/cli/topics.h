/* shmtrain help TOPIC: short texts about what no single option says. They stand in topics.txt, which the build makes a table of;
 * each has at most 24 lines of 80 columns. Whoever changes what an option does looks there, too. */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct topic {
    const char *name;
    const char *about; /* a few words for the list of topics; of a command's page none */
    const char *text;  /* lines, each with a line break; with a mark where topic_print puts the modes */
};

extern const struct topic TOPICS[], COMMAND_PAGES[]; /* of topics.txt and commands.txt; behind them a row of zeros */

const struct topic *topic_at(size_t i);                 /* from 0; NULL behind the last */
const struct topic *topic_named(const char *name);      /* NULL: there is none */
void topics_print_list(void);                           /* all of them, on stdout: name and about */
void topic_print(const struct topic *topic, FILE *out); /* its text, with the modes that the library has */
