/* Stores with options: see options.h. */
#include "bench/runs/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/floors/helpers.h"

int shmt_handle_options(struct shmtrain_store *store, const char *options) {
    char text[512], *at = text, *word;
    int rc = 0;
    snprintf(text, sizeof text, "%s", options);
    while (rc == 0 && (word = strsep(&at, " "))) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value++ = '\0';
        rc = shmtrain_store_set(store, word, value);
    }
    return rc;
}

void shmt_handle_must(const struct shmtrain_store *store, int rc) {
    if (rc < 0) shmt_measure_fail("%s", shmtrain_store_message(store));
}

struct shmtrain_store *shmt_handle_with(const char *format, ...) {
    struct shmtrain_store *store;
    char options[512];
    va_list args;
    va_start(args, format);
    vsnprintf(options, sizeof options, format, args);
    va_end(args);
    if (shmtrain_store_create(&store) < 0) shmt_measure_fail("not enough memory for a store");
    shmt_handle_must(store, shmt_handle_options(store, options));
    return store;
}
