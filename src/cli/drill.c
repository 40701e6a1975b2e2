/* shmtrain drill: workers are killed and stopped at random, and every ending is looked at. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/talk.h"

/* On a terminal only: a line that the next one overwrites. */
static void show_round(void *arg, uint32_t done, uint32_t of, uint32_t failed) {
    (void)arg;
    fprintf(stderr, "\rround %u of %u, %u failed ...", done, of, failed);
    if (done == of) fprintf(stderr, "\r%60s\r", "");
    fflush(stderr);
}

/* A whole number above 0; 0: it is none. */
static uint64_t number_in(const char *text) {
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && strchr(text, '-') == NULL ? n : 0;
}

int drill_run(struct shmtrain_store *store, const struct arguments *a) {
    const int shown = isatty(STDERR_FILENO) && !a->quiet;
    const char *seed = arguments_value(a, "seed");
    struct shmtrain_drill_how how = {.size = sizeof(struct shmtrain_drill_how), .seed = 1, .round = shown ? show_round : NULL};
    struct shmtrain_drill *drill;
    char message[512];
    (void)store;
    const uint64_t rounds = a->rounds ? number_in(a->rounds) : 0;
    if (a->rounds && (rounds == 0 || rounds > UINT32_MAX))
        return talk_refuse("--rounds %s: a number of rounds is needed, from 1 on, like 1000", a->rounds);
    how.rounds = (uint32_t)rounds;
    if (seed) how.seed = strtoull(seed, NULL, 10); /* the library has taken it for a number */
    const int rc = shmtrain_drill(&how, &drill, message, sizeof message);
    if (shown) fprintf(stderr, "\r%60s\r", "");
    if (rc < 0) return talk_refuse("%s", message) - 1;
    const int failed = drill->failed > 0;
    char *text = a->json ? shmtrain_drill_json(drill) : shmtrain_drill_text(drill);
    free(drill);
    if (!text) return talk_refuse("not enough memory for the figures") - 1;
    fputs(text, stdout);
    free(text);
    const int closed = talk_close_output();
    return closed != 0 ? closed : failed;
}
