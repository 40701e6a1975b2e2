/* Names of several files as one: see <shmtrain/store.h>. What they are to readers is in files/names.h. */
#include <shmtrain/store.h>
#include <stdlib.h>
#include <string.h>

int shmtrain_data_files(const char *const *names, size_t n, char **out) {
    size_t bytes = 1;
    if (n == 0) return SHMTRAIN_E_USAGE;
    for (size_t i = 0; i < n; i++) {
        if (!names[i] || names[i][0] == '\0' || strchr(names[i], '\n')) return SHMTRAIN_E_USAGE;
        bytes += strlen(names[i]) + 1;
    }
    char *all = malloc(bytes), *at = all;
    if (!all) return SHMTRAIN_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const size_t length = strlen(names[i]);
        if (i > 0) *at++ = '\n';
        memcpy(at, names[i], length);
        at += length;
    }
    *at = '\0';
    *out = all;
    return 0;
}
