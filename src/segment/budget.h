/* What memory there is, and whether a need fits: free memory of the machine and the limits of the control groups (v1 and v2),
 * because beyond a group's limit an allocation is a kill and not an error. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct shmt_budget {
    uint64_t available_bytes; /* what the tightest limit leaves; UINT64_MAX when nothing could be read */
    uint64_t limit_bytes;     /* that limit */
    char limit[224];          /* its name: "memory of the machine", "memory limit of control group /sys/fs/cgroup/..." */
};

/* Reads MemAvailable and walks the process's groups up to the root, each level's limit minus what it uses. Page cache of files
 * counts as free, as in MemAvailable, because the kernel drops it before it kills. `root` is "" or a folder that stands for /
 * in tests. Never fails: what cannot be read does not limit. Takes about half a millisecond. */
void shmt_budget_read(const char *root, struct shmt_budget *out);

/* Refuses (_MEMORY) a need that does not fit, leaving a small reserve (1/32 of what is available, 64 MiB at most): "training
 * needs 3.2 GiB (parameters 1.0 GiB, data 2.2 GiB) but the memory limit of control group X leaves 2.0 GiB of 4.0 GiB: REMEDY".
 * `what` opens the sentence; `parts` is the text in parentheses, NULL for none; `remedy` the end. */
int shmt_budget_check(const struct shmt_budget *budget, uint64_t need_bytes, const char *what, const char *parts,
                      const char *remedy, struct shmt_error *e);

/* Both, for a need of this process now. A small need is not checked: it fits into the reserve that larger needs leave. */
#define SHMT_LITTLE_BYTES (4u << 20)
static inline int shmt_budget_need(uint64_t need_bytes, const char *what, const char *parts, const char *remedy,
                                   struct shmt_error *e) {
    struct shmt_budget budget;
    if (need_bytes <= SHMT_LITTLE_BYTES) return 0;
    shmt_budget_read("", &budget);
    return shmt_budget_check(&budget, need_bytes, what, parts, remedy, e);
}

/* "3.2 GiB", "870 KiB", "12 B": three figures at most (four between 1000 and 1023). */
void shmt_bytes_text(uint64_t bytes, char *out, uint64_t out_bytes);
