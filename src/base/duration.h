/* Times as people type them: "500ms", "30s", "2m", "1.5h". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A decimal number and a unit (ms, s, m or min, h; none: s) into *ns_out; at most a year. False: it is something else, and
 * nothing changes. */
bool shmt_duration_parse(const char *text, uint64_t *ns_out);

/* "850 ms", "31 s", "4 min", "3 h" into `out`: of the largest unit of which there are two. */
const char *shmt_duration_text(uint64_t ns, char out[24]);
