/* Images with what they are predicted to be: shmtrain_store_predict_images. By scores.h, as evaluate.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scoring/scores.h"
#include "scoring/stream.h"

/* All numbers of example i, zeros too, into pixel (n_features). */
static void take_pixels(const struct shmtrain_data *data, uint64_t i, float *pixel) {
    if (data->dense) {
        memcpy(pixel, data->dense + i * data->n_features, data->n_features * sizeof *pixel);
        return;
    }
    memset(pixel, 0, data->n_features * sizeof *pixel);
    for (uint64_t at = data->start[i]; at < data->start[i + 1]; at++) pixel[data->id[at]] = data->value ? data->value[at] : 1;
}

/* Of what is predicted; output (n_outputs) are scores, and then probabilities. */
static float probability_of(const struct shmt_scores *s, float *output) {
    if (!s->model->probabilities || !shmt_scores_are_of_classes(s)) return NAN;
    const uint32_t c = shmt_scores_class(s, output);
    s->model->probabilities(1, s->n_outputs, output);
    if (s->model->task == SHMTRAIN_CLASSES) return output[c];
    return c > 0 ? output[0] : 1 - output[0];
}

static int hand_out(const struct shmt_scores *s, float *pixel, shmtrain_shown *each, void *arg) {
    const struct shmtrain_data *data = &s->load.data;
    float *output = shmt_board_scores(shmt_array_at(s->job.backend, s->made, SHMT_ARRAY_BOARD), &s->job.board);
    struct shmtrain_image image = {
        .size = sizeof image, .channels = data->channels, .height = data->height, .width = data->width, .pixel = pixel};
    int rc = 0;
    image.is_number = !shmt_scores_are_of_classes(s);
    for (uint64_t i = 0; i < s->n && rc == 0; i++, output += s->n_outputs) {
        if (shmt_stop_asked(s->scoring->call))
            return shmt_fail(&s->scoring->call->error, SHMTRAIN_E_STOPPED, "stopped after %llu of %llu predictions",
                             (unsigned long long)i, (unsigned long long)s->n);
        take_pixels(data, i, pixel);
        image.example = i;
        image.predicted = shmt_scores_prediction(s, output);
        image.probability = probability_of(s, output);
        image.label = s->load.has_labels ? s->label[i] : NAN;
        rc = each(arg, &image);
    }
    return rc;
}

int shmt_predict_images(struct shmt_scoring *scoring, const char *data, shmtrain_shown *each, void *arg) {
    const struct shmt_scores_wish wish = {data, SHMT_LABELS_ANY, true, UINT64_MAX};
    struct shmt_scores scores = {0};
    float *pixel = NULL;
    int rc = shmt_call_check_given(scoring->call, data, "the name of data");
    if (rc == 0) rc = shmt_call_check_given(scoring->call, (const void *)(uintptr_t)each, "a function that is shown images");
    if (rc == 0) rc = shmt_stream_check_lines(scoring->call, scoring->config);
    if (rc < 0) return rc;
    rc = shmt_scores_make(scoring, &wish, &scores);
    if (rc == 0 && !(pixel = malloc(scores.load.data.n_features * sizeof *pixel)))
        rc = shmt_no_memory(&scoring->call->error, "for an image");
    if (rc == 0) rc = hand_out(&scores, pixel, each, arg);
    free(pixel);
    shmt_scores_free(&scores);
    return rc;
}
