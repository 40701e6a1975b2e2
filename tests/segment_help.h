/* What the tests of the segment room share. */
#pragma once

#include "segment/segment.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define KIB         ((uint64_t)1 << 10)
#define MIB         ((uint64_t)1 << 20)
#define PAGE        ((uint64_t)sysconf(_SC_PAGESIZE))
#define FINGERPRINT 0x1234567890abcdefu

/* How many descriptors this process has (and one more, which does not matter for comparisons). */
static inline uint32_t descriptors(void) {
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    uint32_t n = 0;
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* How much memory the segment really has. */
static inline uint64_t placed_bytes(const struct shmt_segment *segment) {
    struct stat file;
    assert_int_equal(fstat(segment->fd, &file), 0);
    return (uint64_t)file.st_blocks * 512;
}

static inline int create(const char *name, uint64_t bytes, struct shmt_segment *out, struct shmt_error *e) {
    const struct shmt_segment_wish wish = {.name = name, .fd = -1, .bytes = bytes, .fingerprint = FINGERPRINT};
    return shmt_segment_create(&wish, out, e);
}

static inline struct shmt_segment make(uint64_t bytes) {
    struct shmt_segment segment = {0};
    struct shmt_error e = {0};
    if (create("test", bytes, &segment, &e) != 0) fail_msg("%s", e.text);
    return segment;
}

/* Runs `body` in a forked process and returns its exit status; a signal is a failure. */
static inline int in_child(int (*body)(void *), void *arg) {
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(body(arg));
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) fail_msg("the child was killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}
