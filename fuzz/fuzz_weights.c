/* Files of weights, checked and read as a run does. */
#include <math.h>
#include <stdlib.h>

#include "data/weights.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct fuzz_file file;
    struct fuzz_input in = {bytes, n};
    struct shmt_error e = {0}, again = {0};
    const uint8_t n_examples = fuzz_u8(&in);
    float *weight = malloc((n_examples + (n_examples == 0)) * sizeof *weight);
    FUZZ_CHECK(weight);
    fuzz_file_write(&file, in.at, in.left);
    const int status = shmt_weights_read(file.path, n_examples, NULL, &e);
    FUZZ_CHECK(shmt_weights_read(file.path, n_examples, weight, &again) == status);
    if (status != 0) fuzz_check_error(status, &e);
    for (uint32_t i = 0; status == 0 && i < n_examples; i++) FUZZ_CHECK(isfinite(weight[i]) && !signbit(weight[i]));
    free(weight);
    return 0;
}
