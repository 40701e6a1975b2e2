/* Names and words of files as they stand in sentences: on one line, printable, of bounded length. */
#ifndef SHMT_DATA_SHOW_H
#define SHMT_DATA_SHOW_H

#include <stdint.h>

#define SHMT_NAME_SHOWN 204 /* room for a name: its last 200 bytes, what was left out, and the final 0 */
#define SHMT_WORD_SHOWN 49  /* room for a word that was found */

/* A path: what would break the line is replaced, and of a long path the end is kept, which tells files apart. */
void shmt_show_name(const char *path, char out[SHMT_NAME_SHOWN]);

/* `bytes` bytes from `text`: what cannot be printed is written as \xNN, and the end is cut off where there is no room. */
void shmt_show_word(const char *text, uint64_t bytes, char out[SHMT_WORD_SHOWN]);

#endif
