/* The state of a process: see state.h. */
#include "runtime/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "4711 (name) S ...": the name may hold parentheses and blanks, but nothing behind it does. */
char shmt_process_state(pid_t pid) {
    char path[40], text[256];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return '\0';
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return '\0';
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : '\0';
}
