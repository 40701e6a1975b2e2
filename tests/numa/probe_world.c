/* Changing the machine for a moment: see probe.h. Only ever run inside the emulator, or in a process that ends soon. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define STEP_BYTES ((size_t)1 << 20)

static uint64_t free_kib(uint32_t node) {
    char path[64], line[128];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Node %*u MemFree: %llu", &kib) == 1) break;
    if (f) fclose(f);
    return kib;
}

/* In steps of a MiB, bound strictly to the node: no step may begin that the node has no room for, or this process is killed. */
void fill_node(uint32_t node, uint64_t mib_left) {
    const unsigned long mask = 1ul << node;
    uint64_t mib = 0;
    while (free_kib(node) > (mib_left + 1) * 1024) {
        void *at = mmap(NULL, STEP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED || syscall(SYS_mbind, at, STEP_BYTES, MPOL_BIND, &mask, 8 * sizeof mask, 0) != 0) {
            perror("filling a node");
            exit(2);
        }
        memset(at, 1, STEP_BYTES);
        mib++;
    }
    printf("# filled node %u with %llu MiB, %llu MiB are free\n", node, (unsigned long long)mib,
           (unsigned long long)free_kib(node) / 1024);
}

#define REFUSE(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

void refuse_binding(void) {
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   REFUSE(SYS_mbind),
                                   REFUSE(SYS_set_mempolicy),
                                   REFUSE(SYS_move_pages),
                                   REFUSE(SYS_sched_setaffinity),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return;
    perror("refusing calls");
    exit(2);
}

uint64_t meminfo_kib(const char *key) {
    char line[128], name[64];
    unsigned long long kib = 0, value;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%63[^:]: %llu", name, &value) == 2 && strcmp(name, key) == 0) kib = value;
    if (f) fclose(f);
    return kib;
}
