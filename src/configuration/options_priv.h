/* What options.c has of the files beside it. */
#pragma once

#include "configuration/options.h"

/* The text of an option of the table, into its part of *out; of options whose texts stay texts nothing. Errors: _USAGE. */
int shmt_option_parse_text(const char *option, const char *given_as, const char *value, struct shmt_config_parsed *out,
                           struct shmt_error *e);
