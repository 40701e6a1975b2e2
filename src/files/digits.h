/* Decimal digits, eight characters at a time. Only for readers of text whose lines have SHMT_LINE_PAD bytes behind them (row.h).
 *
 * Numbers in data have few digits, each time another number of them, so a loop over digits ends with a mispredicted branch; here
 * their number is counted, and their value computed, without one. The idea is known from D. Lemire, "Number parsing at a
 * gigabyte per second" (2021). */
#pragma once

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first character is the lowest byte");

static const uint64_t SHMT_TEN_TO[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

static inline uint64_t shmt_eight(const char *p) {
    uint64_t eight;
    memcpy(&eight, p, sizeof eight);
    return eight;
}

/* How many of them, from the first on, are digits: '0' to '9' are 0x30 to 0x39, and stay 0x3. with 6 added. */
static inline uint32_t shmt_eight_digits(uint64_t eight) {
    const uint64_t high = 0xf0f0f0f0f0f0f0f0u, zeros = 0x3030303030303030u;
    const uint64_t others = ((eight & high) ^ zeros) | (((eight + 0x0606060606060606u) & high) ^ zeros);
    return others ? (uint32_t)__builtin_ctzll(others) / 8 : 8;
}

/* The value of the first n (0 to 8), which are digits: pairs, fours and all eight side by side, zeros before them. */
static inline uint64_t shmt_eight_value(uint64_t eight, uint32_t n) {
    if (n == 0) return 0;
    const uint64_t digits = (eight << 8 * (8 - n)) & 0x0f0f0f0f0f0f0f0fu, pairs = digits * 10 + (digits >> 8);
    const uint64_t even = pairs & 0x000000ff000000ffu, odd = (pairs >> 16) & 0x000000ff000000ffu;
    return (even * (100 + (UINT64_C(1000000) << 32)) + odd * (1 + (UINT64_C(10000) << 32))) >> 32;
}
