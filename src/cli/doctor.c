/* shmtrain doctor: what on this machine will slow or stop a run. */
#include <stdlib.h>

#include "cli/arguments.h"
#include "cli/talk.h"

int doctor_run(struct shmtrain_store *store, const struct arguments *a) {
    struct shmtrain_checkup *checkup;
    char message[512];
    (void)store;
    if (shmtrain_doctor(&checkup, message, sizeof message) < 0) return talk_refuse("%s", message) - 1;
    char *const text = a->json ? shmtrain_checkup_json(checkup) : shmtrain_checkup_text(checkup);
    const int stops = checkup->n_stops > 0;
    free(checkup);
    const int status = talk_print(text);
    return status != 0 ? status : stops;
}
