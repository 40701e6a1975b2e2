/* Lines that come by a stream, as shmtrain predict reads them, scored with models of several kinds. */
#include "models.h"
#include "scoring.h"

static const char *const MODELS[] = {
    "\x00solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 5\nbias 1\nw\n0.1\n-2\n3e5\n0\n1\n-0.5\n",
    "\x00solver_type MCSVM_CS\nnr_class 3\nlabel 3 1 2\nnr_feature 3\nbias -1\nw\n0.1 2 3\n-2 0 1\n3e5 1 -1\n",
    "\x00solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 2\nbias -1\nw\n0.1\n-2\n"};
#define N_MODELS (sizeof MODELS / sizeof *MODELS)

static struct shmtrain_store *store[N_MODELS];

static void load_models(void) {
    for (size_t i = 0; i < N_MODELS; i++) {
        size_t n = 1;
        while (MODELS[i][n]) n++;
        FUZZ_CHECK(shmtrain_store_create(&store[i]) == 0);
        FUZZ_CHECK(shmtrain_store_load(store[i], fuzz_model_file((const uint8_t *)MODELS[i], n)) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static struct fuzz_file lines;
    struct fuzz_input in = {bytes, n};
    const uint8_t how = fuzz_u8(&in);
    if (!store[0]) load_models();
    fuzz_file_write(&lines, in.at, in.left);
    fuzz_score(store[how % N_MODELS], &lines, how >> 7);
    return 0;
}
