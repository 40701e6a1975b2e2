/* Names in sentences: see show.h. */
#include "base/show.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

void shmt_show_name(const char *path, char out[SHMT_NAME_SHOWN]) {
    const uint64_t bytes = strlen(path), most = SHMT_NAME_SHOWN - sizeof "...", skip = bytes > most ? bytes - most : 0;
    snprintf(out, SHMT_NAME_SHOWN, "%s%s", skip > 0 ? "..." : "", path + skip);
    shmt_show_plainly(out);
}

void shmt_show_plainly(char *text) {
    for (char *p = text; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
    }
}
