/* What all commands share: lines on stderr, stdout to its end, and signals that stop what goes on. */
#pragma once

#include <shmtrain/shmtrain.h>

/* One line on stderr. Returns 2, the exit status of wrong usage. */
int talk_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The store's sentence on stderr, for a call that returned `status`. Returns the exit status. */
int talk_fail(const struct shmtrain_store *store, int status);

/* From now on lines of this process say that it is this host: several write to one terminal. */
void talk_as_host(uint32_t rank);

/* A listener's `note`. */
void talk_note(void *arg, const char *line);

/* From now on the store's notes come out, too. */
void talk_listen(struct shmtrain_store *store);

/* Prints a text that is to be freed (NULL: there was no memory for it), and closes the output. Returns the exit status. */
int talk_print(char *text);

/* What was written may be in no file yet: a full disk shows here. Returns the exit status. */
int talk_close_output(void);

/* From now on the first SIGINT, SIGTERM or SIGHUP (a closed terminal; not where it is ignored, as under nohup) stops the store
 * at a consistent point, a further SIGINT or SIGTERM ends the program at once; but what comes within half a second of the first
 * is the same one, said twice. NULL: there is nothing to stop, talk_caught says it. */
void talk_catch_signals(struct shmtrain_store *store);

/* The store goes: signals that still come find none. */
void talk_forget_store(void);

/* A mapped file that becomes shorter while it is read ends the program with a sentence, not by SIGBUS. */
void talk_catch_faults(void);

/* Files that are still to be written: a program that is ended at once names them. NULL: none. */
void talk_will_save(const char *file, const char *other);

int talk_caught(void); /* the signal that came; 0: none */

/* The exit status of a command that would end with `status`: a signal that came counts more. */
int talk_exit_status(int status);
