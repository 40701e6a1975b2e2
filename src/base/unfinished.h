/* Names of files that are not complete yet, for who ends the program at once and would leave them there: files that have a name
 * before they are complete, as where the file system has none without a name. base/replace.c notes them; handlers of signals
 * remove them, by shmtrain_output_discard_all.
 *
 * A table of the process, because a handler knows no file. A child that is forked has it, too, and removes nothing of it. */
#pragma once

/* From any thread. No handler that removes may come in between: block signals from before the file is made until it is noted.
 * With more than 16 at a time the further ones are not known. */
void shmt_unfinished_note(const char *name);

/* It has taken its place, or is gone. One that was not noted is fine. */
void shmt_unfinished_forget(const char *name);

/* In a signal handler, too: removes all of this process. */
void shmt_unfinished_remove(void);
