/* Pieces of files that are read or written whole: again when interrupted, and until all is there. */
#pragma once

#include <stdint.h>

/* Reads what stands from offset `at` on. How much that is, less than `bytes` where the file ends; below 0: errno says why. */
int64_t shmt_io_read(int fd, void *out, uint64_t bytes, uint64_t at);

/* Writes where the file stands, or from offset `at` on. Below 0: errno says why. */
int shmt_io_write(int fd, const void *from, uint64_t bytes);
int shmt_io_write_at(int fd, const void *from, uint64_t bytes, uint64_t at);
