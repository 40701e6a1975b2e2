/* Names of generated data: "builtin:" and the input. What is small is generated, too. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "sources.h"

#define MOST_BYTES ((uint64_t)64 << 10) /* of what is generated */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct fuzz_input in = {bytes, n};
    struct shmt_source *source;
    struct shmt_error e = {0};
    const uint8_t how = fuzz_u8(&in);
    char *keys = fuzz_text(&in), *name;
    FUZZ_CHECK(asprintf(&name, "builtin:%s", keys) > 0);
    const int status = shmt_source_open(name, 1, how & 1 ? SHMT_SOURCE_HELD_OUT : 0, &source, &e);
    if (status != 0)
        FUZZ_CHECK(status < 0 && e.text[0] != '\0');
    else if (shmt_source_guess_bytes(source, true) > MOST_BYTES || shmt_source_guess_bytes(source, false) > MOST_BYTES)
        shmt_source_close(source);
    else
        fuzz_read_source(source, 1 + (how >> 1) % 6, FUZZ_COLUMNS_FOUND, 0, false);
    free(keys);
    free(name);
    return 0;
}
