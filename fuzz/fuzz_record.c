/* recording/record_file.h: records of runs, with the decisions in them. An input is as models.h says. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "models.h"
#include "recording/record_file.h"

/* What was read is written again with the same contents. */
static void write_again(const struct shmt_record *record) {
    static struct fuzz_file file;
    struct shmt_record *again = NULL;
    fuzz_file_write(&file, NULL, 0);                                            /* has a path then */
    FUZZ_CHECK(ftruncate(file.fd, 0) == 0 && lseek(file.fd, 0, SEEK_SET) == 0); /* what the last one has left there */
    FUZZ_CHECK(shmt_record_write(file.path, record, NULL) == 0);
    FUZZ_CHECK(shmt_record_read(file.path, &again, NULL) == 0);
    FUZZ_CHECK(again->total == record->total && again->epochs == record->epochs && again->end_xxh64 == record->end_xxh64);
    FUZZ_CHECK(strcmp(again->model, record->model) == 0 && strcmp(again->data_name, record->data_name) == 0);
    FUZZ_CHECK(record->total == 0 || memcmp(again->gradient, record->gradient, record->total * sizeof *record->gradient) == 0);
    shmt_record_free(again);
}

/* Of a quorum each update that has been made is of the gradients that name it. */
static void check_decisions(const struct shmt_record *record) {
    uint64_t total = 0;
    FUZZ_CHECK((record->n != NULL) == shmt_policy_has_rounds(&record->spec.policy));
    if (!record->n) return;
    for (uint32_t seat = 0; seat < record->spec.n_seats; seat++) total += record->n[seat];
    FUZZ_CHECK(total == record->total && record->epochs <= record->spec.epochs);
    for (uint64_t i = 0; i < total; i++) {
        const struct shmt_taped *g = &record->gradient[i];
        FUZZ_CHECK(g->step / shmt_spec_steps(&record->spec) < record->spec.epochs);
        FUZZ_CHECK(g->applied == SHMT_TAPED_NONE || g->applied >= g->pulled);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct shmt_record *record = NULL;
    struct shmt_error e = {0};
    const int status = shmt_record_read(fuzz_model_file(bytes, n), &record, &e);
    if (status == 0) {
        check_decisions(record);
        write_again(record);
        shmt_record_free(record);
    } else {
        fuzz_check_error(status, &e);
    }
    return 0;
}
