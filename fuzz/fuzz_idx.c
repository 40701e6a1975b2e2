/* IDX files of examples and labels: as they are, packed by us (so that the fuzzer gets through the checksum), or packed by
 * whoever made the input. */
#include <stdio.h>

#include "fuzz.h"
#include "packed.h"
#include "sources.h"

#define MOST_BYTES ((uint64_t)16 << 20) /* that a source may announce: the rest is the same, and slow */

/* ---- the target ---- */

static void write_as(bool packed, struct fuzz_file *file, const uint8_t *bytes, size_t n) {
    if (packed)
        fuzz_file_write_packed(file, bytes, n);
    else
        fuzz_file_write(file, bytes, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct fuzz_file images, labels;
    char name[100];
    struct fuzz_input in = {bytes, n};
    struct shmt_source *source;
    struct shmt_error e = {0};
    const uint8_t how = fuzz_u8(&in);
    const size_t split = fuzz_u8(&in), n_labels = split < in.left ? split : in.left; /* the labels first: they are short */
    if (in.left - n_labels > UINT16_MAX) return -1;
    write_as(how & 1, &labels, in.at, n_labels);
    write_as(how & 2, &images, in.at + n_labels, in.left - n_labels);
    snprintf(name, sizeof name, "%s,%s", images.path, labels.path);
    const int status = shmt_source_open(how & 4 ? images.path : name, 1, how & 8 ? SHMT_SOURCE_UNLABELLED : 0, &source, &e);
    if (status != 0)
        fuzz_check_error(status, &e);
    else if (shmt_source_guess_bytes(source, true) > MOST_BYTES)
        shmt_source_close(source);
    else
        fuzz_read_source(source, 1 + (how >> 4) % 6, FUZZ_COLUMNS_FOUND, 0, false);
    return 0;
}
