/* Loading libarchive: see archive.h. */
#include "files/archive.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/library.h"

/* The name that the linker would have written down (configure): it changes where old programs would no longer work with it. */
#ifndef SHMT_ARCHIVE_LIBRARY
#    define SHMT_ARCHIVE_LIBRARY "libarchive.so.13"
#endif

static const struct shmt_library_call CALLS[] = {
    {"archive_read_new", offsetof(struct shmt_archive_calls, read_new)},
    {"archive_read_open", offsetof(struct shmt_archive_calls, read_open)},
    {"archive_read_next_header", offsetof(struct shmt_archive_calls, read_next_header)},
    {"archive_read_data", offsetof(struct shmt_archive_calls, read_data)},
    {"archive_read_free", offsetof(struct shmt_archive_calls, read_free)},
    {"archive_errno", offsetof(struct shmt_archive_calls, errno_of)},
    {"archive_error_string", offsetof(struct shmt_archive_calls, error_string)},
    {"archive_set_error", offsetof(struct shmt_archive_calls, set_error)},
    {"archive_read_support_filter_gzip", offsetof(struct shmt_archive_calls, filter_gzip)},
    {"archive_read_support_filter_bzip2", offsetof(struct shmt_archive_calls, filter_bzip2)},
    {"archive_read_support_filter_xz", offsetof(struct shmt_archive_calls, filter_xz)},
    {"archive_read_support_filter_zstd", offsetof(struct shmt_archive_calls, filter_zstd)},
    {"archive_read_support_filter_lz4", offsetof(struct shmt_archive_calls, filter_lz4)},
    {"archive_read_support_filter_compress", offsetof(struct shmt_archive_calls, filter_compress)},
    {"archive_read_support_format_raw", offsetof(struct shmt_archive_calls, format_raw)},
    {"archive_read_support_format_empty", offsetof(struct shmt_archive_calls, format_empty)},
    {"archive_read_support_format_zip_streamable", offsetof(struct shmt_archive_calls, format_zip)},
    {"archive_entry_pathname", offsetof(struct shmt_archive_calls, entry_pathname)}};

/* Written once, under g_once. */
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static struct shmt_archive_calls g_calls;
static bool g_loaded;
static struct shmt_error g_error;

static void load(void) {
    const char *why;
    g_loaded = shmt_library_calls(SHMT_ARCHIVE_LIBRARY, CALLS, sizeof CALLS / sizeof *CALLS, &g_calls, &why);
    if (!g_loaded)
        shmt_fail(&g_error, SHMTRAIN_E_SYSTEM,
                  "packed files need libarchive, which cannot be loaded (%.200s): install libarchive13 "
                  "(Fedora, Arch: libarchive)",
                  why);
}

const struct shmt_archive_calls *shmt_archive_load(struct shmt_error *e) {
    pthread_once(&g_once, load);
    if (g_loaded) return &g_calls;
    shmt_fail(e, g_error.status, "%s", g_error.text);
    return NULL;
}
