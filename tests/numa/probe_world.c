/* Changing the machine for a moment: see probe.h. Only ever run inside the emulator, or in a process that ends soon. */
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

uint64_t meminfo_kib(const char *key) {
    char line[128], name[64];
    unsigned long long kib = 0, value;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%63[^:]: %llu", name, &value) == 2 && strcmp(name, key) == 0) kib = value;
    if (f) fclose(f);
    return kib;
}
