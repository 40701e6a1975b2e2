/* Names of several files as one string, with line breaks between them. A string that is a file's own name, line break and all, is
 * that one file. */
#pragma once

#include <stdint.h>

uint32_t shmt_names_count(const char *names);

/* Name number i, below that; to be freed. NULL: no memory. */
char *shmt_names_at(const char *names, uint32_t i);
