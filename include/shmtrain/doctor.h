/* What on this machine will slow or stop a run, each with its remedy: shmtrain doctor. Nothing is changed. */
#ifndef SHMTRAIN_DOCTOR_H
#define SHMTRAIN_DOCTOR_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shmtrain_verdict {
    SHMTRAIN_FINE,
    SHMTRAIN_SLOWS, /* runs go, but with less than the machine has: time, memory or room */
    SHMTRAIN_STOPS  /* a run, or the kind of run that is named, cannot begin or will be ended */
};

struct shmtrain_finding {
    int verdict;
    char subject[16]; /* "huge pages" */
    char seen[256];   /* in words, one line */
    char remedy[160]; /* a command where there is one, else words; "": nothing is to be done */
    uint64_t reserved[2];
};

#define SHMTRAIN_MOST_FINDINGS 64

struct shmtrain_checkup {
    uint32_t size; /* as the library knows it: SHMTRAIN_HAS */
    uint32_t n, n_slow, n_stops;
    struct shmtrain_finding finding[SHMTRAIN_MOST_FINDINGS]; /* (n) */
};

/* Looks at the machine as this process sees it, for about a quarter of a second, in which it also sees how busy others are.
 * Loads OpenBLAS in a process of its own. *out is to be freed by free(). `message` (`bytes` large, NULL allowed) gets the
 * sentence of an error. Blocks. Any thread. Errors: _MEMORY, _SYSTEM (no topology). */
SHMTRAIN_API int shmtrain_doctor(struct shmtrain_checkup **out, char *message, uint64_t bytes);

/* Lines for people, at most 80 columns wide; one JSON object. To be freed. NULL: no memory. */
SHMTRAIN_API char *shmtrain_checkup_text(const struct shmtrain_checkup *checkup);
SHMTRAIN_API char *shmtrain_checkup_json(const struct shmtrain_checkup *checkup);

#ifdef __cplusplus
}
#endif
#endif
