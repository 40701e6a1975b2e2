/* Help, made from the tables of commands and options. */
#pragma once

#include "cli/commands.h"

void help_print(void);                                  /* one screen, on stdout */
void help_print_command(const struct command *command); /* a command's page */
