/* Scoring lines with a model: see scoring.h. */
#include "scoring.h"

#include <string.h>
#include <unistd.h>

#include "api/store_priv.h"

struct handed_out {
    const struct shmtrain_store *store;
    uint64_t n;
    float sum;
};

static bool has_class(const struct shmt_trained *t, float label) {
    for (uint32_t c = 0; c < t->n_classes; c++)
        if (t->classes[c] == label) return true;
    return t->n_classes == 0;
}

static int take(void *arg, uint64_t example, float label, const float *output, uint32_t n_outputs) {
    struct handed_out *h = arg;
    float sum = 0;
    FUZZ_CHECK(example == h->n && n_outputs >= 1 && has_class(&h->store->params.trained, label));
    for (uint32_t k = 0; k < n_outputs; k++) sum += output[k];
    h->sum = sum; /* so that all of it is read */
    h->n++;
    return 0;
}

void fuzz_score(struct shmtrain_store *store, struct fuzz_file *lines, int probabilities) {
    const struct shmtrain_stream stream = {.size = sizeof(struct shmtrain_stream), .fd = lines->fd, .name = "lines"};
    struct handed_out h = {.store = store};
    FUZZ_CHECK(lseek(lines->fd, 0, SEEK_SET) == 0);
    const int status = shmtrain_store_predict_stream(store, &stream, probabilities, take, &h);
    if (status != 0) fuzz_check_sentence(shmtrain_store_message(store));
    FUZZ_CHECK(status <= 0);
}
