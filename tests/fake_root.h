/* A folder that stands for / : tests of what is read below /proc and /sys put their files into it. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE_PATH 4096

struct fake_root {
    char path[FAKE_PATH / 4];
};

static inline void fake_root_fail(const char *what, const char *path) {
    fprintf(stderr, "%s %s\n", what, path);
    exit(1);
}

/* Setup and teardown for cmocka; *state is the struct fake_root. */
static inline int fake_root_setup(void **state) {
    struct fake_root *root = calloc(1, sizeof *root);
    const char *tmp = getenv("TMPDIR");
    if (!root) return -1;
    snprintf(root->path, sizeof root->path, "%s/shmtrain-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(root->path)) fake_root_fail("cannot make", root->path);
    *state = root;
    return 0;
}

static inline int fake_root_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static inline int fake_root_teardown(void **state) {
    struct fake_root *root = *state;
    int rc = nftw(root->path, fake_root_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(root);
    return rc;
}

/* Writes `text` to the file `path` (which begins with a slash), making the folders that it needs. */
static inline void fake_root_put(const struct fake_root *root, const char *path, const char *text) {
    char full[FAKE_PATH];
    snprintf(full, sizeof full, "%s%s", root->path, path);
    for (char *slash = full + strlen(root->path) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) fake_root_fail("cannot write", full);
}
