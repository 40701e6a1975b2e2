/* files/model_read: model files of both kinds, their notes and all of their tensors. */
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "files/model_read.h"

/* Shapes are bounded by the file's size. */
static void read_tensors(const struct shmt_model_in *in) {
    char shown[48];
    for (uint32_t i = 0; i < shmt_model_n_tensors(in); i++) {
        const struct shmt_tensor *tensor = shmt_model_tensor(in, i);
        const uint64_t floats = tensor->rows * tensor->width;
        struct shmt_error e = {0};
        float *out = malloc(floats > 0 ? floats * sizeof *out : 1);
        FUZZ_CHECK(out);
        const int status = shmt_model_read_tensor(in, i, out, &e);
        if (status != 0) fuzz_check_error(status, &e);
        fuzz_check_sentence(shmt_model_show(tensor->name[0] ? tensor->name : "-", shown));
        free(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static const char *const NOTES[] = {"shmtrain.model", "shmtrain.classes", "shmtrain.features", ""};
    struct shmt_model_in *in;
    struct shmt_error e = {0};
    const int status = shmt_model_open(fuzz_model_file(bytes, n), &in, &e);
    if (status != 0) {
        fuzz_check_error(status, &e);
        return 0;
    }
    FUZZ_CHECK(shmt_model_n_tensors(in) <= SHMT_MODEL_MOST_TENSORS);
    for (size_t i = 0; i < sizeof NOTES / sizeof *NOTES; i++) {
        const char *note = shmt_model_note(in, NOTES[i]);
        FUZZ_CHECK(!note || strlen(note) < ((size_t)1 << 20));
    }
    read_tensors(in);
    shmt_model_close(in);
    return 0;
}
