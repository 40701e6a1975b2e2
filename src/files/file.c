/* Opening files: see file.h. */
#include "files/file.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int shmt_file_open(const char *path, struct shmt_file *out, struct shmt_error *e) {
    struct stat s;
    int status = 0;
    shmt_show_name(path, out->name);
    out->bytes = 0;
    out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* NONBLOCK: to open a pipe is not to wait for its writer */
    if (out->fd < 0) return shmt_fail_errno(e, "cannot open %s", out->name);
    if (fstat(out->fd, &s) != 0)
        status = shmt_fail_errno(e, "cannot read the status of %s", out->name);
    else if (S_ISDIR(s.st_mode))
        status = shmt_refuse(e, "%s is a folder; name a file in it", out->name);
    else if (!S_ISREG(s.st_mode))
        status = shmt_refuse(
            e, "%s is not a regular file; save the data to a file first, because several parts of it are read at once",
            out->name);
    else if (s.st_size == 0)
        status = shmt_fail(e, SHMTRAIN_E_DATA, "%s is empty", out->name);
    if (status != 0) {
        shmt_file_close(out);
        return status;
    }
    out->bytes = (uint64_t)s.st_size;
    return 0;
}

bool shmt_file_is(const struct shmt_file *file, const struct stat *other) {
    struct stat s;
    return fstat(file->fd, &s) == 0 && s.st_dev == other->st_dev && s.st_ino == other->st_ino;
}

void shmt_file_close(struct shmt_file *file) {
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

const char *shmt_file_unpacker(const void *beginning, uint64_t n) {
    static const struct {
        const char *bytes, *tool;
        uint64_t n;
    } magic[] = {{"\x1f\x8b", "gunzip", 2},        {"BZh", "bunzip2", 3},
                 {"\xfd\x37zXZ", "unxz", 5},       {"\x28\xb5\x2f\xfd", "unzstd", 4},
                 {"\x04\x22\x4d\x18", "unlz4", 4}, {"\x1f\x9d", "uncompress", 2}};
    for (uint32_t i = 0; i < sizeof magic / sizeof *magic; i++) {
        if (n >= magic[i].n && memcmp(beginning, magic[i].bytes, magic[i].n) == 0) return magic[i].tool;
    }
    return NULL;
}
