/* The main of fuzz targets where there is no libFuzzer: runs a target on files, once each. Without arguments on its corpus and
 * its regressions in the source tree, which is a test; there, each file is also run cut short, and with single bytes changed,
 * always the same ones. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "fuzz.h"

#define SECONDS  60 /* for a file with its variants: a target that hangs is a finding */
#define VARIANTS 24
#define MOST     ((size_t)1 << 20)

static uint64_t n_files, n_runs;

static void run(const uint8_t *bytes, size_t n) {
    uint8_t *exact = malloc(n > 0 ? n : 1); /* so that a read behind its end is seen */
    if (!exact) exit(99);
    if (n > 0) memcpy(exact, bytes, n);
    (void)LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    n_runs++;
}

static void run_variants(uint8_t *bytes, size_t n) {
    for (uint64_t i = 0; n > 0 && i < VARIANTS; i++) {
        const size_t at = shmt_hash64(n, i, 0, 0) % n;
        const uint8_t kept = bytes[at];
        run(bytes, at);
        bytes[at] = (uint8_t)shmt_hash64(n, i, 1, 0);
        run(bytes, n);
        bytes[at] = kept;
    }
}

static void run_file(const char *path, bool with_variants) {
    static uint8_t bytes[MOST];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (n < 0) {
        perror(path);
        exit(99);
    }
    close(fd);
    printf("%s\n", path); /* the last line names the file that a finding is in */
    fflush(stdout);
    alarm(SECONDS);
    run(bytes, (size_t)n);
    if (with_variants) run_variants(bytes, (size_t)n);
    alarm(0);
    n_files++;
}

static int is_file(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static uint64_t run_folder(const char *source, const char *kind, const char *name) {
    char path[PATH_MAX];
    struct dirent **entry;
    snprintf(path, sizeof path, "%s/fuzz/%s/%s", source, kind, name);
    const int n = scandir(path, &entry, is_file, alphasort);
    const size_t folder = strlen(path);
    for (int i = 0; i < n; i++) {
        snprintf(path + folder, sizeof path - folder, "/%s", entry[i]->d_name);
        run_file(path, true);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return n > 0 ? (uint64_t)n : 0;
}

int main(int argc, char **argv) {
    const char *source = getenv("TEST_SRCDIR"), *name = strstr(argv[0], "fuzz_");
    for (int i = 1; i < argc; i++) run_file(argv[i], false);
    if (argc == 1) {
        for (const char *at = name; at; at = strstr(at + 1, "fuzz_")) name = at; /* the folder may be called so, too */
        run((const uint8_t *)"", 0);
        if (!name || run_folder(source ? source : ".", "corpus", name + strlen("fuzz_")) == 0) {
            fprintf(stderr, "%s: no corpus below %s/fuzz/corpus (TEST_SRCDIR)\n", argv[0], source ? source : ".");
            return 1;
        }
        run_folder(source ? source : ".", "regressions", name + strlen("fuzz_"));
    }
    printf("%llu files, %llu inputs\n", (unsigned long long)n_files, (unsigned long long)n_runs);
    return 0;
}
