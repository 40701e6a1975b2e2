/* For tests of arrays: rows of few features, with labels that can be learned, in every layout and as text. Values are exact in
 * decimal, so text says the same. */
#pragma once

#include "api_help.h"
#include "folder_help.h"

enum { EXAMPLES = 300, FEATURES = 40, ENTRIES = EXAMPLES * FEATURES };

static uint64_t g_start[EXAMPLES + 1], g_wide[ENTRIES]; /* ids from 1 in `wide` */
static uint32_t g_id[ENTRIES];                          /* the same, from 0 */
static float g_value[ENTRIES], g_label[EXAMPLES], g_dense[ENTRIES], g_spaced[EXAMPLES * (FEATURES + 3)];

static inline uint32_t draw(uint32_t *state) { return (*state = *state * 1664525 + 1013904223) >> 8; }

/* Feature f pushes the label up when it is even, else down. Each feature occurs, and each example has some. */
static inline void make_rows(void) {
    uint32_t state = 7;
    uint64_t at = 0;
    memset(g_dense, 0, sizeof g_dense);
    memset(g_spaced, 0, sizeof g_spaced);
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        double sum = 0;
        g_start[i] = at;
        for (uint32_t f = 0; f < FEATURES; f++) {
            if (draw(&state) % 6 != 0 && f != i % FEATURES && f != (i + 1) % FEATURES) continue;
            const float value = (float)(1 + draw(&state) % 8) / 4;
            sum += (f % 2 ? -1 : 1) * (double)value;
            g_id[at] = f;
            g_wide[at] = f + 1;
            g_value[at++] = value;
            g_dense[i * FEATURES + f] = g_spaced[i * (FEATURES + 3) + f] = value;
        }
        g_label[i] = sum > 0 ? 1 : -1;
    }
    g_start[EXAMPLES] = at;
}

static inline struct shmtrain_arrays sparse_arrays(uint32_t borrowed) {
    return (struct shmtrain_arrays){.size = sizeof(struct shmtrain_arrays),
                                    .borrowed = borrowed,
                                    .n_examples = EXAMPLES,
                                    .n_features = FEATURES,
                                    .n_entries = g_start[EXAMPLES],
                                    .start = g_start,
                                    .id = g_id,
                                    .value = g_value,
                                    .label = g_label};
}

static inline struct shmtrain_arrays wide_arrays(uint32_t borrowed) {
    struct shmtrain_arrays a = sparse_arrays(borrowed);
    a.n_features = 0;
    a.id = NULL;
    a.wide_id = g_wide;
    return a;
}

/* stride 0 or FEATURES + 3 */
static inline struct shmtrain_arrays dense_arrays(uint32_t borrowed, uint64_t stride) {
    return (struct shmtrain_arrays){.size = sizeof(struct shmtrain_arrays),
                                    .borrowed = borrowed,
                                    .n_examples = EXAMPLES,
                                    .n_features = FEATURES,
                                    .dense = stride ? g_spaced : g_dense,
                                    .stride = stride,
                                    .label = g_label};
}

static inline void write_rows(const char *path, uint32_t base) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        fprintf(f, "%g", (double)g_label[i]);
        for (uint64_t j = g_start[i]; j < g_start[i + 1]; j++) fprintf(f, " %u:%g", g_id[j] + base, (double)g_value[j]);
        fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
}

static inline size_t read_file(const char *path, char *out, size_t bytes) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(out, 1, bytes, f);
    assert_true(n < bytes);
    fclose(f);
    return n;
}

/* Trains in sync, whose bits do not depend on the number of workers. */
static inline struct shmtrain_store *open_store(const char *model, const char *spawn, const char *workers) {
    const char *const options[][2] = {{"model", model}, {"spawn", spawn}, {"workers", workers},    {"mode", "sync"},
                                      {"batch", "64"},  {"epochs", "3"},  {"schedule", "constant"}};
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        WELL(store, shmtrain_store_set(store, options[i][0], options[i][1]));
    return store;
}
