/* Passes over the data: see readings.h. */
#include "loading/readings.h"

#include <stdlib.h>
#include <string.h>

void shmt_readings_add(struct shmt_readings *passes, const char *name, const char *what, const struct shmt_reading *reading,
                       uint32_t n) {
    if (!passes->kept) return;
    struct shmt_read_pass *list = realloc(passes->pass, (passes->n + 1) * sizeof *list);
    if (!list) return;
    passes->pass = list;
    struct shmt_read_pass pass = {.name = strdup(name), .what = what, .n = n, .reading = malloc(n * sizeof *reading)};
    if (pass.name && pass.reading) {
        memcpy(pass.reading, reading, n * sizeof *reading);
        passes->pass[passes->n++] = pass;
        return;
    }
    free(pass.name);
    free(pass.reading);
}

void shmt_readings_forget(struct shmt_readings *passes) {
    for (uint32_t i = 0; i < passes->n; i++) {
        free(passes->pass[i].name);
        free(passes->pass[i].reading);
    }
    free(passes->pass);
    *passes = (struct shmt_readings){0};
}
