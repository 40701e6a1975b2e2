/* For tests that need files: a folder of the test program's own, which is its current one, and files in it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char g_folder[4096]; /* ""; or the one that was made */

static inline int make_folder(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    snprintf(g_folder, sizeof g_folder, "%s/shmtrain-test-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(g_folder)) g_folder[0] = '\0';
    return g_folder[0] && chdir(g_folder) == 0 ? 0 : -1;
}

/* With the files in it, of which none begins with a dot. */
static inline int remove_folder(void **state) {
    struct dirent *entry;
    (void)state;
    if (!g_folder[0] || chdir(g_folder) != 0) return -1; /* what is removed is in there and nowhere else */
    DIR *dir = opendir(".");
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.') unlink(entry->d_name);
    if (dir) closedir(dir);
    return chdir("/") == 0 && rmdir(g_folder) == 0 ? 0 : -1;
}

static inline void write_bytes(const char *path, const void *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void write_text(const char *path, const char *text) { write_bytes(path, text, strlen(text)); }
