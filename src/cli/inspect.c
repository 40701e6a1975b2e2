/* shmtrain inspect: what is in a saved model or a checkpoint. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/arguments.h"
#include "cli/talk.h"

int inspect_run(struct shmtrain_store *store, const struct arguments *a) {
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = talk_note};
    struct shmtrain_file_info found;
    const char *name = a->operand[0];
    shmtrain_store_listen(store, &listener);
    const int rc = shmtrain_store_inspect(store, name, &found);
    if (rc < 0) return talk_fail(store, rc);
    char *text = a->json ? shmtrain_file_info_json(name, &found) : shmtrain_file_info_text(name, &found);
    if (!text) return talk_refuse("not enough memory for the result") - 1;
    fputs(text, stdout);
    free(text);
    return talk_close_output();
}
