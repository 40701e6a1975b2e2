/* Names of files as they stand in sentences: on one line, printable, of bounded length. Called by whoever makes a sentence
 * with a path in it, which may be any bytes. */
#pragma once

#define SHMT_NAME_SHOWN 204 /* room for a name: its last 200 bytes, what was left out, and the final 0 */

/* A path: what would break the line is replaced, and of a long path the end is kept, which tells files apart. */
void shmt_show_name(const char *path, char out[SHMT_NAME_SHOWN]);

/* Replaces what would break the line, or reach a terminal as more than text, in a text that somebody else has written. */
void shmt_show_plainly(char *text);
