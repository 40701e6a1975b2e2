/* For targets of packed files. */
#pragma once

#include "fuzz.h"

/* The bytes as a gzip file of one stored block, with the right checksum: the fuzzer gets through it. At most 65535. */
void fuzz_file_write_packed(struct fuzz_file *file, const uint8_t *bytes, size_t n);
