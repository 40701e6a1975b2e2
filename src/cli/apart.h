/* Measuring and drilling take whatever child ends for one of theirs, and whatever is left behind for a fault: that is so in a process
 * of their own alone, not in the program's, whose shell may have left it children. */
#pragma once

struct arguments;

/* Runs `body` in a process without other children, which ends with this one; what it prints, it prints there. Its exit status. */
int apart_run(int (*body)(const struct arguments *a), const struct arguments *a);
