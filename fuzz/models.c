/* Model files of inputs: see models.h. */
#include "models.h"

#include <stdlib.h>
#include <string.h>

#include "../tests/seal_help.h"

const char *fuzz_model_file(const uint8_t *bytes, size_t n) {
    static struct fuzz_file file;
    struct fuzz_input in = {bytes, n};
    if (!(fuzz_u8(&in) & 1)) {
        fuzz_file_write(&file, in.at, in.left);
        return file.path;
    }
    const uint8_t *end = in.left > 0 ? memchr(in.at, '\0', in.left) : NULL;
    const uint64_t header = end ? (uint64_t)(end - in.at) : in.left, data = in.left - header - (end != NULL);
    uint8_t *whole = malloc(sizeof header + header + data);
    FUZZ_CHECK(whole);
    memcpy(whole, &header, sizeof header); /* little-endian, as the format is */
    if (header > 0) memcpy(whole + sizeof header, in.at, header);
    if (data > 0) memcpy(whole + sizeof header + header, end + 1, data);
    make_seal(whole, sizeof header + header + data);
    fuzz_file_write(&file, whole, sizeof header + header + data);
    free(whole);
    return file.path;
}
