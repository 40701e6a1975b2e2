/* What containers refuse, refused to this process and its children from now on: binding of memory and of threads; and what some
 * file systems do not have, files without a name. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define REFUSE_CALL(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* 0 where the system has no such filters: so all of these. */
static inline int filter_calls(const struct sock_fprog *program) {
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == 0;
}

static inline int refuse_binding(void) {
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   REFUSE_CALL(SYS_mbind),
                                   REFUSE_CALL(SYS_set_mempolicy),
                                   REFUSE_CALL(SYS_move_pages),
                                   REFUSE_CALL(SYS_sched_setaffinity),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    return filter_calls(&(struct sock_fprog){.len = sizeof filter / sizeof *filter, .filter = filter});
}

/* O_TMPFILE, as on a file system that does not know it. */
static inline int refuse_nameless_files(void) {
    enum { FLAGS = offsetof(struct seccomp_data, args) + 2 * sizeof(__u64) }; /* the lower half: little-endian */
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
                                   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS),
                                   BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    return filter_calls(&(struct sock_fprog){.len = sizeof filter / sizeof *filter, .filter = filter});
}

/* The same of one call. */
static inline int refuse_one(unsigned call) {
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), REFUSE_CALL(call),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    return filter_calls(&(struct sock_fprog){.len = sizeof filter / sizeof *filter, .filter = filter});
}
