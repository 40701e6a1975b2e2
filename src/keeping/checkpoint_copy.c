/* Copies of checkpoints: see checkpoint_copy.h. */
#include "keeping/checkpoint_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "keeping/checkpoint_priv.h"

static int no_room(const struct shmt_checkpoint_copy *copy, struct shmt_error *e) {
    return shmt_checkpoint_cannot(copy->path, "free some space", e);
}

int shmt_checkpoint_copy_open(const char *folder, uint64_t step, uint64_t bytes, struct shmt_checkpoint_copy *copy,
                              struct shmt_error *e) {
    int rc = shmt_checkpoint_path(folder, step, copy->path, e);
    if (rc == 0) rc = shmt_replace_open_own(&copy->file, copy->path, "the checkpoint", e);
    if (rc < 0) return rc;
    errno = posix_fallocate(copy->file.fd, 0, (off_t)bytes);
    if (errno == 0 || errno == EOPNOTSUPP || errno == EINVAL) return 0;
    rc = no_room(copy, e);
    shmt_replace_discard(&copy->file);
    return rc;
}

int shmt_checkpoint_copy_add(struct shmt_checkpoint_copy *copy, const void *bytes, uint64_t n, struct shmt_error *e) {
    return shmt_io_write(copy->file.fd, bytes, n) < 0 ? no_room(copy, e) : 0;
}

int shmt_checkpoint_copy_end(struct shmt_checkpoint_copy *copy, uint64_t step, struct shmt_checkpoint_in **out,
                             struct shmt_error *e) {
    struct shmt_checkpoint_in *in = NULL;
    int rc = shmt_replace_close(&copy->file, 0, e);
    if (rc < 0) return rc;
    rc = shmt_checkpoint_open(copy->path, &in, e);
    if (rc == 0) rc = shmt_checkpoint_check_step(in, step, e);
    if (rc == 0) {
        *out = in;
        return 0;
    }
    shmt_checkpoint_close(in);
    (void)unlink(copy->path);
    return rc;
}

void shmt_checkpoint_copy_discard(struct shmt_checkpoint_copy *copy) { shmt_replace_discard(&copy->file); }
