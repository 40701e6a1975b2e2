/* For tests of the LIBSVM reader: a folder of the test's own, and in it one file with given contents. */
#pragma once

#include "data_load.h"

#include <locale.h>

static char g_folder[4096]; /* made for this run, removed after it */
static char g_path[4200];   /* the file of the test that runs */
static locale_t g_c_locale;

static inline int make_folder(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(g_folder, sizeof g_folder, "%s/shmtrain-data-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(g_folder) || chdir(g_folder) != 0) return -1;
    strcpy(g_path, "t.svm"); /* relative, so that sentences are short and known */
    g_c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return g_c_locale ? 0 : -1;
}

static inline int remove_folder(void **state) {
    (void)state;
    freelocale(g_c_locale);
    unlink(g_path);
    return chdir("/") == 0 && rmdir(g_folder) == 0 ? 0 : -1;
}

static inline void write_bytes(const char *bytes, uint64_t n) {
    FILE *f = fopen(g_path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void write_text(const char *text) { write_bytes(text, strlen(text)); }

static inline void assert_loads(struct loaded *l, uint32_t n_parts) {
    const int status = load_name(l, g_path, 0, false, n_parts);
    if (status != 0) print_error("%s\n", l->error.text);
    assert_int_equal(status, 0);
}

static inline void assert_refused(const char *sentence, int status) {
    struct loaded l;
    assert_int_equal(load_name(&l, g_path, 0, false, 3), status);
    assert_string_equal(l.error.text, sentence);
    load_free(&l);
}
