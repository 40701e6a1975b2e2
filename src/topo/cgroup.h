/* The control groups of this process: their folders, from its own group up to the top that can be seen, and the numbers in
 * them.
 *
 * Both versions are found through /proc/self/cgroup and /proc/self/mountinfo, wherever they are mounted and also side by side
 * (hybrid systems). For topo.c (CPU quota) and the segment room (memory limits). Reads only. Every function takes what it does
 * not understand as "no such group": a limit that nobody can read is not enforced here but by the kernel. */
#pragma once

#include <stdint.h>

#define SHMT_CGROUP_PATH 1024

/* One group; first the process's own one, after shmt_cgroup_to_parent its parent. Plain memory of the caller. */
struct shmt_cgroup {
    uint32_t version;           /* 1 or 2 */
    uint32_t root_bytes;        /* length of `root` below, at the start of dir */
    uint32_t top_bytes;         /* length of the mount point at the start of dir: going up ends there */
    char dir[SHMT_CGROUP_PATH]; /* its folder, without a slash at the end */
};

/* The process's own group in the hierarchy of `controller` ("memory", "cpu") in version 1, or in the one hierarchy of version
 * 2, whose folder may lack the controller's files. `root` is "" or a folder that stands for / in tests. Returns 1 when found,
 * else 0. */
int shmt_cgroup_find(const char *root, uint32_t version, const char *controller, struct shmt_cgroup *out);

/* Makes `group` its parent and returns 1, or 0 (and leaves it) where it is the topmost one that can be seen. */
int shmt_cgroup_to_parent(struct shmt_cgroup *group);

/* The folder as the user knows it: without `root`. */
const char *shmt_cgroup_name(const struct shmt_cgroup *group);

/* The first line of the group's file without its line break. Returns 1, or 0 when it cannot be read or does not fit. */
int shmt_cgroup_line(const struct shmt_cgroup *group, const char *file, char *out, uint64_t out_bytes);

/* The file's only number. Returns 1, or 0 when there is none ("max", -1, no such file). */
int shmt_cgroup_number(const struct shmt_cgroup *group, const char *file, uint64_t *out);

/* The number behind `key` in a file of lines "key number", such as memory.stat or /proc/meminfo ("MemTotal:"). Returns 1, or
 * 0. */
int shmt_cgroup_stat(const struct shmt_cgroup *group, const char *file, const char *key, uint64_t *out);
int shmt_keyed_number(const char *path, const char *key, uint64_t *out);

/* How many processors the quotas of all groups together pay for: the smallest quota per period on the way up, in thousandths
 * (1500: one and a half). 0: no quota. */
uint64_t shmt_cgroup_cpu_millis(const char *root);
