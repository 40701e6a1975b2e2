/* A case that is skipped says why; tests/summary shows it: SKIP("no right to mount %s", folder). */
#pragma once

#define SKIP(...)                   \
    do {                            \
        print_message("skipped: "); \
        print_message(__VA_ARGS__); \
        print_message("\n");        \
        skip();                     \
    } while (0)
