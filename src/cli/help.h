/* Help, made from the tables of commands and options. */
#ifndef SHMTRAIN_CLI_HELP_H
#define SHMTRAIN_CLI_HELP_H

#include "cli/commands.h"

void help_print(void);                                  /* all of it, on stdout */
void help_print_command(const struct command *command); /* of one command */

#endif
