/* For tests of checkpoints as files: writing and opening one that has to be good. */
#pragma once

#include <stdlib.h>

#include "checkpoint_help.h"

static void write_sample(const struct shmt_checkpoint *c, uint32_t keep, char *path) {
    struct shmt_error e = {0};
    if (shmt_checkpoint_write(".", c, keep, path, &e) != 0) fail_msg("%s", e.text);
}

static struct shmt_checkpoint_in *open_good(const char *path) {
    struct shmt_checkpoint_in *in = NULL;
    struct shmt_error e = {0};
    if (shmt_checkpoint_open(path, &in, &e) != 0) fail_msg("%s", e.text);
    return in;
}

static inline unsigned char *read_file(const char *path, size_t *n_out) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    unsigned char *bytes = malloc(1 << 16);
    assert_non_null(bytes);
    *n_out = fread(bytes, 1, 1 << 16, f);
    assert_true(*n_out > 0 && *n_out < 1 << 16);
    assert_int_equal(fclose(f), 0);
    return bytes;
}
