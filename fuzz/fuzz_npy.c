/* NumPy files of examples, and their labels: as they are, with a header whose magic and length the target sets right (so that the fuzzer
 * gets to the dict and the elements), the same packed, or as an archive. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "packed.h"
#include "sources.h"

#define MOST_BYTES ((uint64_t)16 << 20) /* that a source may announce: the rest is the same, and slow */
#define MOST_INPUT 32768

/* What ends with the first '}' is the dict. */
static size_t add_header(const uint8_t *bytes, size_t n, uint8_t version, uint8_t *out) {
    const uint8_t *brace = memchr(bytes, '}', n);
    const size_t dict = brace ? (size_t)(brace - bytes) + 1 : n, head = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    memset(out + 6, 0, 6);
    out[6] = version;
    out[8] = (uint8_t)dict;
    out[9] = (uint8_t)(dict >> 8);
    memcpy(out + head, bytes, n);
    return head + n;
}

static void write_as(uint8_t how, struct fuzz_file *file, const uint8_t *bytes, size_t n) {
    static uint8_t whole[MOST_INPUT + 12];
    const uint8_t version = how >> 2 & 1 ? 1 : 2;
    const size_t length = how & 1 ? add_header(bytes, n, version, whole) : n;
    if (!(how & 1)) memcpy(whole, bytes, n);
    if (how & 2)
        fuzz_file_write_packed(file, whole, length);
    else
        fuzz_file_write(file, whole, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct fuzz_file images, labels;
    char name[100];
    struct fuzz_input in = {bytes, n};
    struct shmt_source *source;
    struct shmt_error e = {0};
    const uint8_t how = fuzz_u8(&in), parts = fuzz_u8(&in);
    const size_t split = fuzz_u8(&in), n_labels = split < in.left ? split : in.left; /* the labels first: they are short */
    if (in.left - n_labels > MOST_INPUT) return -1;
    write_as(how >> 4, &labels, in.at, n_labels);
    write_as(how, &images, in.at + n_labels, in.left - n_labels);
    snprintf(name, sizeof name, "%s,%s", images.path, labels.path);
    const int status =
        shmt_source_open(parts & 8 ? images.path : name, 1, parts & 16 ? SHMT_SOURCE_UNLABELLED : 0, &source, &e);
    if (status != 0)
        fuzz_check_error(status, &e);
    else if (shmt_source_guess_bytes(source, true) > MOST_BYTES)
        shmt_source_close(source);
    else
        fuzz_read_source(source, 1 + parts % 6, FUZZ_COLUMNS_FOUND, 0, false);
    return 0;
}
