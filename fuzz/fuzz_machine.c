/* What the system says of itself in files below /proc and /sys: memory, control groups, quotas, and what shmtrain doctor looks
 * at. An input is those files' contents, one behind the other, with a 0 byte between them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/vitals.h"
#include "fuzz.h"
#include "segment/budget.h"
#include "topo/cgroup.h"
#include "topo/others.h"

/* In the order of the input. The last ones are those of any group, wherever it is. */
static const char *const FILES[] = {"/proc/self/cgroup",
                                    "/proc/self/mountinfo",
                                    "/proc/meminfo",
                                    "/proc/stat",
                                    "/proc/cpuinfo",
                                    "cpu.max",
                                    "memory.max",
                                    "memory.high",
                                    "memory.current",
                                    "memory.stat",
                                    "cpu.stat",
                                    "cpu.cfs_quota_us",
                                    "cpu.cfs_period_us",
                                    "memory.limit_in_bytes",
                                    "memory.usage_in_bytes",
                                    ""};
#define N_FILES (sizeof FILES / sizeof *FILES)

static struct {
    char *text;
    size_t n;
} contents[N_FILES];

static bool ends_in(const char *path, const char *end) {
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

static bool inside; /* the library is asked; libFuzzer has files of its own */

/* Instead of the C library's, by --wrap. "": all other files are alike. */
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
    if (!inside) return __real_fopen(path, mode);
    for (size_t i = 0; i < N_FILES; i++)
        if (ends_in(path, FILES[i])) return contents[i].n > 0 ? fmemopen(contents[i].text, contents[i].n, "r") : NULL;
    return NULL;
}

/* Folders are there, but for some. */
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode) {
    if (!inside) return __real_access(path, mode);
    return ends_in(path, "x") ? -1 : 0;
}

static void put_files(struct fuzz_input *in) {
    for (size_t i = 0; i < N_FILES; i++) {
        const uint8_t *end = in->left > 0 ? memchr(in->at, '\0', in->left) : NULL;
        const size_t n = end ? (size_t)(end - in->at) : in->left;
        contents[i].text = malloc(n + 1);
        FUZZ_CHECK(contents[i].text);
        if (n > 0) memcpy(contents[i].text, in->at, n);
        contents[i].n = n;
        in->at += n + (end != NULL);
        in->left -= n + (end != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct shmt_vitals vitals;
    static struct shmtrain_checkup checkup;
    struct fuzz_input in = {bytes, n};
    struct shmt_budget budget;
    struct shmt_error e = {0};
    struct shmt_others others;
    put_files(&in);
    inside = true;
    shmt_budget_read("", &budget);
    FUZZ_CHECK(memchr(budget.limit, '\0', sizeof budget.limit) != NULL);
    (void)shmt_budget_check(&budget, (uint64_t)1 << 40, "this", NULL, "do that", &e);
    (void)shmt_cgroup_cpu_millis("");
    shmt_others_begin(&others);
    (void)shmt_others_end(&others);
    memset(&vitals, 0, sizeof vitals);
    shmt_vitals_read("", &vitals);
    memset(&checkup, 0, sizeof checkup);
    shmt_judge(&vitals, &checkup);
    inside = false;
    for (size_t i = 0; i < N_FILES; i++) free(contents[i].text);
    return 0;
}
