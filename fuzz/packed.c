/* Packed files of inputs: see packed.h. */
#include "packed.h"

#include <stdlib.h>
#include <string.h>

static uint32_t crc_of(const uint8_t *bytes, size_t n) {
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        c ^= bytes[i];
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    }
    return ~c;
}

static void put_u32(uint8_t *to, uint32_t x) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(x >> (8 * i));
}

void fuzz_file_write_packed(struct fuzz_file *file, const uint8_t *bytes, size_t n) {
    static const uint8_t HEADER[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1};
    uint8_t *packed = malloc(n + 32), *at = packed;
    FUZZ_CHECK(packed && n <= UINT16_MAX);
    memcpy(at, HEADER, sizeof HEADER);
    at += sizeof HEADER;
    put_u32(at, (uint32_t)n | (uint32_t)(n ^ 0xffff) << 16); /* the length, and its complement */
    memcpy(at + 4, bytes, n);
    at += 4 + n;
    put_u32(at, crc_of(bytes, n));
    put_u32(at + 4, (uint32_t)n);
    fuzz_file_write(file, packed, (size_t)(at + 8 - packed));
    free(packed);
}
