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
    printf("%s\n", public);
    fprintf(stderr,
            "shmtrain: the secret key is for --key on this host, and goes nowhere else; the line above,\n"
            "which is also in the file .pub beside it, is for the file of --peers on all hosts\n");
    return talk_close_output();
}
