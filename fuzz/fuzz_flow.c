/* Text that flows: packed files, and several files as one. An input is cut into up to three files, each plain, packed by the target,
 * or as it is; what is read of them must be what is read of one plain file with all of their lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "packed.h"
#include "sources.h"

#define MOST_FILES 3

/* Puts the next file's bytes where they belong; behind them in `whole` as lines. */
static size_t put(struct fuzz_file *file, struct fuzz_input *in, size_t n, uint8_t how, char *whole) {
    const uint8_t *bytes = in->at;
    in->at += n;
    in->left -= n;
    if (how & 1)
        fuzz_file_write_packed(file, bytes, n);
    else
        fuzz_file_write(file, bytes, n);
    if (n > 0) memcpy(whole, bytes, n);
    if (n > 0 && whole[n - 1] != '\n') whole[n++] = '\n';
    return n;
}

/* Whether the beginning says that it is something else than text. */
static bool is_other(const uint8_t *bytes, size_t n) {
    return n > 0 && (bytes[0] < ' ' || bytes[0] >= 0x7f || bytes[0] == 'B' || bytes[0] == 'P'); /* bzip2's BZh, zip's PK */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct fuzz_file file[MOST_FILES], plain;
    struct fuzz_input in = {bytes, n};
    struct fuzz_summary flow = {0}, lines = {0};
    char names[MOST_FILES * sizeof file->path + MOST_FILES], *at = names;
    const uint8_t how = fuzz_u8(&in);
    const uint32_t n_files = 1 + (how >> 6) % MOST_FILES;
    size_t length[MOST_FILES] = {fuzz_u8(&in), fuzz_u8(&in), SIZE_MAX}, used = 0;
    if (in.left > UINT16_MAX) return -1;
    char *whole = malloc(in.left + MOST_FILES);
    bool other = false;
    FUZZ_CHECK(whole);
    for (uint32_t i = 0; i < n_files && i < MOST_FILES; i++) {
        const size_t here = i + 1 == n_files || length[i] > in.left ? in.left : length[i];
        other |= is_other(in.at, here) || here == 0; /* then the target does not know what it must be */
        used += put(&file[i], &in, here, how >> i, whole + used);
        at += sprintf(at, "%s%s", i > 0 ? "\n" : "", file[i].path);
    }
    fuzz_file_write(&plain, whole, used);
    free(whole);
    fuzz_read_file(names, &flow);
    fuzz_read_file(plain.path, &lines);
    if (!other) FUZZ_CHECK(fuzz_same(&flow, &lines, sizeof flow));
    return 0;
}
