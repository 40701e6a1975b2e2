/* A command in a process of its own: see apart.h. */
#include "cli/apart.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/talk.h"

int apart_run(int (*body)(const struct arguments *a), const struct arguments *a) {
    int status;
    fflush(NULL);
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) return talk_refuse("cannot start a process: %s", strerror(errno)) - 1;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        const int ended = body(a);
        fflush(NULL);
        _exit(ended);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return talk_refuse("cannot wait for a process: %s", strerror(errno)) - 1;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return talk_refuse("its process was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status))) - 1;
}
