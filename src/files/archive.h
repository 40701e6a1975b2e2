/* libarchive, loaded when the first packed file is met: with the libraries that it brings, loading it takes longer than all else that a
 * program does before it looks at its data. Called by unpack.c. */
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"

/* Its functions, without archive_ and read_support_; errno_of is archive_errno, and format_zip is ..._zip_streamable. */
struct shmt_archive_calls {
    __typeof__(archive_read_new) *read_new;
    __typeof__(archive_read_open) *read_open;
    __typeof__(archive_read_next_header) *read_next_header;
    __typeof__(archive_read_data) *read_data;
    __typeof__(archive_read_free) *read_free;
    __typeof__(archive_errno) *errno_of;
    __typeof__(archive_error_string) *error_string;
    __typeof__(archive_set_error) *set_error;
    __typeof__(archive_read_support_filter_gzip) *filter_gzip, *filter_bzip2, *filter_xz, *filter_zstd, *filter_lz4,
        *filter_compress, *format_raw, *format_empty;
    __typeof__(archive_read_support_format_zip_streamable) *format_zip;
    __typeof__(archive_entry_pathname) *entry_pathname;
};

/* In any thread, and again: it stays loaded. NULL: _SYSTEM. */
const struct shmt_archive_calls *shmt_archive_load(struct shmt_error *e);
