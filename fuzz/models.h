/* For targets of model files: what an input is. Its first byte says how: as the bytes of a file; or as a safetensors header, up to
 * the first 0 byte, and data, with the header's length put before it by the target, and the seal made right where there
 * is room for one, so that what lies behind it is reached. */
#pragma once

#include "fuzz.h"

/* Makes the file; its path. */
const char *fuzz_model_file(const uint8_t *bytes, size_t n);
