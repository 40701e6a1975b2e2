/* Numbers of n bytes (1 to 8) on the wire, the lowest byte first, at any address. */
#pragma once

#include <stdint.h>

static inline void shmt_put_little(unsigned char *at, uint64_t value, int n) {
    for (int i = 0; i < n; i++) at[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t shmt_get_little(const unsigned char *at, int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++) value |= (uint64_t)at[i] << 8 * i;
    return value;
}
