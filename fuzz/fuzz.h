/* What all fuzz targets share. A target is a file fuzz_NAME.c with one LLVMFuzzerTestOneInput, which takes any bytes and must come
 * back: it ends the process (FUZZ_CHECK, or a sanitizer) when the library has done what it must not.
 *
 * Each is linked twice over: in a build with --enable-fuzzers with libFuzzer, which makes the bytes up; in all others with
 * replay.c, which takes them from the corpus, as a test of `make check`. docs/fuzzing.md says how to run them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "files/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Ends the process, saying where, when something is not so. */
#define FUZZ_CHECK(is_so) ((is_so) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #is_so))
_Noreturn void fuzz_fail(const char *file, int line, const char *what);

/* What must hold of a failure: a status below 0, and one printable line. */
void fuzz_check_error(int status, const struct shmt_error *e);
void fuzz_check_sentence(const char *text);

/* Whether n bytes are the same: floats to the last bit. */
bool fuzz_same(const void *a, const void *b, size_t n);

/* Input that is taken apart from its beginning on; behind its end all is 0. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};
uint8_t fuzz_u8(struct fuzz_input *in);
uint16_t fuzz_u16(struct fuzz_input *in);
uint32_t fuzz_u32(struct fuzz_input *in);

/* What is left, as text that ends with 0, in memory of exactly its size, which the caller frees. */
char *fuzz_text(struct fuzz_input *in);

/* The next line, in (bytes) with the line break that it ends with, three digits before memory that cannot be touched; valid until
 * the next one. NULL: there are no more. */
char *fuzz_line(struct fuzz_input *in, size_t *bytes_out);

/* `bytes` bytes of memory that end right before some that cannot be touched, in every build; `which` of them, 0 to 7. Cheaper
 * than allocating. */
void *fuzz_edge(uint32_t which, size_t bytes);

/* A file in memory with contents that change from input to input. Made when it is first written; never closed. */
struct fuzz_file {
    int fd; /* 0: not made yet */
    size_t bytes;
    char path[40];
};
void fuzz_file_write(struct fuzz_file *file, const void *bytes, size_t n);

/* Decides as the C library does, whatever the locale. */
float fuzz_float(const char *text, size_t n);

/* The length of the number at the beginning of `text`, as files/number.h says what a number is; 0: there is none. */
size_t fuzz_number_length(const char *text);
