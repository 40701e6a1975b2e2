/* Whether what a cache holds is what was written, and what its readers rely on. Only for cache.c.
 *
 * A checksum tells damage, not intent: whoever writes a file can write its checksums, too. So every number that memory is
 * reached by is held against its bounds, whether checksums are right or not. */
#pragma once

#include "data/cache_priv.h"

/* The header of a file of so many bytes: every field is what it may be, and all sections are where they must be. `name` is for
 * the sentence. Errors: _DATA. */
int shmt_cache_check_header(const char *name, const struct shmt_cache_header *header, uint64_t file_bytes,
                            struct shmt_error *e);

/* Blocks [from, to) of all sections, counted through: their checksums, and what is in them; `memory` is the file. The blocks'
 * checksums themselves are checked with every call. Errors: _DATA. */
int shmt_cache_check_blocks(const char *name, const struct shmt_cache_header *header, const unsigned char *memory,
                            uint64_t from, uint64_t to, struct shmt_error *e);

/* "FILE is damaged (WHAT): remove it, or convert the data again". Returns _DATA. */
int shmt_cache_damaged(const char *name, const char *what, struct shmt_error *e);
