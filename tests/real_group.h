/* A real control group that limits memory, below our own one: for tests that must be refused instead of killed. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "topo/cgroup.h"

/* It is this test's alone, and removed by it. */
struct real_group {
    struct shmt_cgroup group;
    const char *limit_file;
};

static inline int real_group_write(const char *dir, const char *file, const char *text) {
    char path[SHMT_CGROUP_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "we");
    if (!f) return 0;
    const int written = fputs(text, f) >= 0;
    return fclose(f) == 0 && written;
}

/* Makes it; otherwise says why not and returns 0. */
static inline int real_group_make(uint32_t version, uint64_t bytes, struct real_group *out) {
    char name[64], limit[32];
    out->limit_file = version == 1 ? "memory.limit_in_bytes" : "memory.max";
    if (!shmt_cgroup_find("", version, "memory", &out->group)) {
        print_message("skipped: there are no control groups of version %u\n", version);
        return 0;
    }
    snprintf(name, sizeof name, "/shmtrain-test-%d", (int)getpid());
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)bytes);
    if (strlen(out->group.dir) + strlen(name) >= sizeof out->group.dir) return 0;
    memcpy(out->group.dir + strlen(out->group.dir), name, strlen(name) + 1);
    if (mkdir(out->group.dir, 0700) != 0) {
        print_message("skipped: a control group %s may not be made: %s\n", out->group.dir, strerror(errno));
        return 0;
    }
    if (real_group_write(out->group.dir, out->limit_file, limit)) return 1;
    rmdir(out->group.dir);
    print_message("skipped: %s does not limit memory here\n", out->group.dir);
    return 0;
}

/* Runs `body` in a process of such a group and expects 0; a kill by the kernel is a failure. Skips where there is none. */
static inline void in_real_group(uint32_t version, uint64_t bytes, int (*body)(const struct real_group *real)) {
    struct real_group real;
    if (!real_group_make(version, bytes, &real)) {
        skip();
        return;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(60);
        _exit(real_group_write(real.group.dir, "cgroup.procs", "0") ? body(&real) : 10);
    }
    int status = -1;
    const pid_t ended = waitpid(pid, &status, 0);
    int removed = rmdir(real.group.dir);
    for (int i = 0; removed != 0 && i < 1000; i++) { /* the group notices its last member's end a little later */
        usleep(1000);
        removed = rmdir(real.group.dir);
    }
    assert_int_equal(ended, pid);
    assert_int_equal(removed, 0);
    if (WIFSIGNALED(status)) fail_msg("killed by signal %d instead of refused", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
