/* Hosts that one launcher has started, with one command line. */
#pragma once

#include <stdint.h>

/* "%r" in a word is the host's rank: files of several hosts in one folder have names of their own. "%%" is "%". To be freed; NULL: not
 * enough memory. */
char *rank_word(const char *word, uint32_t rank);

/* Of n hosts on one machine this one takes its share of the processors, as long as there is one for each. */
void rank_take_processors(uint32_t rank, uint32_t n);
