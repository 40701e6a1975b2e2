/* shmtrain bench: what this machine can do at best, and what shmtrain makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/talk.h"

/* On a terminal only: a line that the next one overwrites. */
static void show_round(void *arg, uint32_t done, uint32_t of) {
    (void)arg;
    if (done < of)
        fprintf(stderr, "\rround %u of %u ...", done + 1, of);
    else
        fprintf(stderr, "\r%20s\r", "");
    fflush(stderr);
}

int bench_run(struct shmtrain_store *store, const struct arguments *a) {
    const int shown = isatty(STDERR_FILENO) && !a->quiet;
    const struct shmtrain_bench_how how = {
        .size = sizeof(struct shmtrain_bench_how), .quick = a->quick, .round = shown ? show_round : NULL};
    struct shmtrain_bench *bench;
    char message[512];
    (void)store;
    const int rc = shmtrain_bench(&how, &bench, message, sizeof message);
    if (shown) fprintf(stderr, "\r%20s\r", "");
    if (rc < 0) return talk_refuse("%s", message) - (rc != SHMTRAIN_E_USAGE);
    char *text = a->json ? shmtrain_bench_json(bench) : shmtrain_bench_text(bench);
    free(bench);
    if (!text) return talk_refuse("not enough memory for the figures") - 1;
    fputs(text, stdout);
    free(text);
    return talk_close_output();
}
