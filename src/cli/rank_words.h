/* Words of a command line that all hosts of a run are given. */
#pragma once

#include <stdint.h>

/* "%r" in a word is the host's rank: files of several hosts in one folder have names of their own. "%%" is "%". To be freed; NULL: not
 * enough memory. */
char *rank_word(const char *word, uint32_t rank);
