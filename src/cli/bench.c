/* shmtrain bench: what this machine can do at best, and what shmtrain makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/measure/measure.h"
#include "cli/apart.h"
#include "cli/arguments.h"
#include "cli/talk.h"

/* On a terminal only: a line that the next one overwrites. */
static void show_round(uint32_t done, uint32_t of) {
    if (done < of)
        fprintf(stderr, "\rround %u of %u ...", done + 1, of);
    else
        fprintf(stderr, "\r%20s\r", "");
    fflush(stderr);
}

static void tell_failure(const char *sentence) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%20s\r", ""); /* a line of show_round */
    (void)talk_refuse("%s", sentence);
}

static int bench(const struct arguments *a) {
    struct shmt_bench *bench = shmt_bench_run(a->quick, isatty(STDERR_FILENO) && !a->quiet ? show_round : NULL, tell_failure);
    (a->json ? shmt_bench_json : shmt_bench_text)(bench, stdout);
    free(bench);
    return talk_close_output();
}

int bench_run(struct shmtrain_store *store, const struct arguments *a) {
    const char *other = shmt_bench_other_machine();
    (void)store;
    if (other) return talk_refuse("%s describes another machine, which cannot be measured here: unset it", other);
    return apart_run(bench, a);
}
