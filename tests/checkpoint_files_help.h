/* For tests of checkpoints as files: writing and opening one that has to be good. */
#ifndef SHMT_TESTS_CHECKPOINT_FILES_HELP_H
#define SHMT_TESTS_CHECKPOINT_FILES_HELP_H

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

#endif
