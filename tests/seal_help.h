/* The seal of a model file (examples/seal.py), made right for bytes that a test or a fuzzer has changed, so that what lies behind the
 * check of the seal is reached. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "files/model_file.h"

/* The whole file: (n) bytes. One that has no seal stays as it is. */
static inline void make_seal(uint8_t *whole, uint64_t n) {
    static const char KEY[] = "\"" SHMT_MODEL_SEAL "\":\"";
    char digits[SHMT_SEAL_CHARS + 1];
    uint8_t *at = n > 8 ? memmem(whole + 8, n - 8, KEY, sizeof KEY - 1) : NULL;
    if (!at || n - (uint64_t)(at - whole) < sizeof KEY - 1 + SHMT_SEAL_CHARS) return;
    at += sizeof KEY - 1;
    memset(at, '0', SHMT_SEAL_CHARS);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH64(whole + 8, n - 8, 0));
    memcpy(at, digits, SHMT_SEAL_CHARS);
}
