/* Words of files as they stand in sentences, beside names (base/show.h): on one line, printable, of bounded length. */
#pragma once

#include <stdint.h>

#define SHMT_WORD_SHOWN 49 /* room for a word that was found */

/* `bytes` bytes from `text`: what cannot be printed is written as \xNN, and the end is cut off where there is no room. */
void shmt_show_word(const char *text, uint64_t bytes, char out[SHMT_WORD_SHOWN]);
