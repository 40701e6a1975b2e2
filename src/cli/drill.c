/* shmtrain drill: workers are killed and stopped at random, and every ending is looked at. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/drill/drill.h"
#include "cli/apart.h"
#include "cli/arguments.h"
#include "cli/talk.h"

/* On a terminal only: a line that the next one overwrites. */
static void show_round(uint32_t done, uint32_t of, uint32_t failed) {
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

static int drill(const struct arguments *a) {
    const bool shown = isatty(STDERR_FILENO) && !a->quiet;
    const char *seed = arguments_value(a, "seed"); /* the library has taken it for a number */
    struct shmt_drill drill;
    char message[512];
    const int rc = shmt_drill_run(seed ? strtoull(seed, NULL, 10) : 1, a->rounds ? (uint32_t)number_in(a->rounds) : 0,
                                  shown ? show_round : NULL, &drill, message, sizeof message);
    if (shown) fprintf(stderr, "\r%60s\r", "");
    if (rc < 0) return talk_refuse("%s", message) - 1;
    (a->json ? shmt_drill_json : shmt_drill_text)(&drill, stdout);
    const int closed = talk_close_output();
    return closed != 0 ? closed : drill.failed > 0;
}

int drill_run(struct shmtrain_store *store, const struct arguments *a) {
    const uint64_t rounds = a->rounds ? number_in(a->rounds) : 1;
    (void)store;
    if (rounds == 0 || rounds > UINT32_MAX)
        return talk_refuse("--rounds %s: a number of rounds is needed, from 1 on, like 1000", a->rounds);
    return apart_run(drill, a);
}
