/* Whether the kernel has ended processes for lack of memory. Called by supervisor.c. A worker that is killed by SIGKILL
 * gives no reason; the one counter that rises for the whole machine's and for any cgroup's lack of memory (v1 and v2) gives
 * a hint. It may have risen for somebody else's process, so the sentence says "perhaps". */
#include "runtime/team_priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t shmt_oom_kills(void) {
    static const char KEY[] = "\noom_kill ";
    char text[16384]; /* about 6 KiB are in use */
    size_t n = 0;
    const int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    for (ssize_t got; n < sizeof text - 1 && (got = read(fd, text + n, sizeof text - 1 - n)) > 0;) n += (size_t)got;
    close(fd);
    text[n] = 0;
    const char *at = strstr(text, KEY);
    return at ? strtoull(at + sizeof KEY - 1, NULL, 10) : 0;
}
