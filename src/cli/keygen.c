/* shmtrain keygen: a pair of keys for a host. */
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/talk.h"

int keygen_run(struct shmtrain_store *store, const struct arguments *a) {
    char public[SHMTRAIN_KEY_BYTES], message[512] = "";
    const char *file = a->operand[0];
    (void)store;
    const int rc = shmtrain_keygen(file, public, message, sizeof message);
    if (rc < 0) return talk_refuse("%s", message) - (rc != SHMTRAIN_E_USAGE);
    printf("%s      the secret key, for --key on this host: it goes nowhere else\n", file);
    printf("%s.pub  the public one, for the file of --peers on all hosts: a line each, by rank\n", file);
    printf("%s\n", public);
    return talk_close_output();
}
