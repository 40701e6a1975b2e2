/* Whether the test is built for an emulator (tests/arm64/check_arm64), which takes many times as long for arithmetic, and for that on
 * long doubles more: of the numbers that are tried, every SPARSE-th is there. */
#pragma once

#ifdef SHMT_FENCED_STORES
#    define SPARSE 10
#else
#    define SPARSE 1
#endif
