/* Which file systems are local: see local.h. */
#include "base/local.h"

#include <linux/magic.h>
#include <stdint.h>
#include <sys/vfs.h>

bool shmt_is_local(int fd) {
    enum { ZFS = 0x2fc12fc1 };
    static const uint32_t MAGIC[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,     F2FS_SUPER_MAGIC,
                                     TMPFS_MAGIC,      RAMFS_MAGIC,     OVERLAYFS_SUPER_MAGIC, ZFS};
    struct statfs s;
    if (fstatfs(fd, &s) < 0) return false;
    for (uint32_t i = 0; i < sizeof MAGIC / sizeof *MAGIC; i++)
        if ((uint32_t)s.f_type == MAGIC[i]) return true;
    return false;
}
