/* shmtrain_store_load whole: what a file must be to be a model, of whichever kind, and scoring with it, whatever it says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "scoring.h"

static void read_tables(struct shmtrain_store *store) {
    const char *name;
    uint64_t rows, width;
    for (int t = 0; shmtrain_store_table_at(store, t, &name, &rows, &width) == 0; t++) {
        float *value = malloc(rows * width > 0 ? rows * width * sizeof *value : 1);
        FUZZ_CHECK(value && name[0] != '\0' && strlen(name) < 32);
        FUZZ_CHECK(shmtrain_store_read(store, t, 0, rows, value) == 0);
        free(value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static const char LINES[] = "1 1:0.5 2:-1 3:2\n-1 2:1 7:4 70000:1\n0\n";
    static struct fuzz_file lines;
    struct shmtrain_store *store;
    if (!lines.fd) fuzz_file_write(&lines, LINES, sizeof LINES - 1);
    FUZZ_CHECK(shmtrain_store_create(&store) == 0);
    const int status = shmtrain_store_load(store, fuzz_model_file(bytes, n));
    FUZZ_CHECK(status <= 0);
    if (status == 0) {
        read_tables(store);
        fuzz_score(store, &lines, 0);
        fuzz_score(store, &lines, 1);
    } else {
        fuzz_check_sentence(shmtrain_store_message(store));
    }
    shmtrain_store_destroy(store);
    return 0;
}
