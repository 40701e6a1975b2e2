/* shmtrain doctor: what on this machine will slow or stop a run. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/arguments.h"
#include "cli/talk.h"

int doctor_run(struct shmtrain_store *store, const struct arguments *a) {
    struct shmtrain_checkup *checkup;
    char message[512];
    (void)store;
    if (shmtrain_doctor(&checkup, message, sizeof message) < 0) return talk_refuse("%s", message) - 1;
    char *text = a->json ? shmtrain_checkup_json(checkup) : shmtrain_checkup_text(checkup);
    const int stops = checkup->n_stops > 0;
    free(checkup);
    if (!text) return talk_refuse("not enough memory for the findings") - 1;
    fputs(text, stdout);
    free(text);
    const int status = talk_close_output();
    return status != 0 ? status : stops;
}
