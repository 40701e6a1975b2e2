/* shmtrain inspect: what is in a saved model or a checkpoint. */
#include "cli/arguments.h"
#include "cli/talk.h"

int inspect_run(struct shmtrain_store *store, const struct arguments *a) {
    struct shmtrain_file_info found;
    const char *name = a->operand[0];
    talk_listen(store);
    const int rc = shmtrain_store_inspect(store, name, &found);
    if (rc < 0) return talk_fail(store, rc);
    return talk_print(a->json ? shmtrain_file_info_json(name, &found) : shmtrain_file_info_text(name, &found));
}
