/* What hangs fails: a setup that gives each test a deadline of its own. Far beyond what any takes on a machine that has others
 * to serve, where one that meets 2,000 times takes minutes. */
#pragma once

#include <unistd.h>

static inline int deadline(void **state) {
    (void)state;
    alarm(600);
    return 0;
}
