/* What a forked child sheds of the application, and the names of our processes. Called by supervisor.c right after the
 * forks, and for its name by threads.c. Guarantees that no handler of the application runs in the child. */
#include "runtime/settle.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>

/* Signals that people and terminals send to a whole process group. */
static bool goes_to_groups(int number) {
    return number == SIGHUP || number == SIGQUIT || number == SIGUSR1 || number == SIGUSR2;
}

void shmt_settle_signals(const sigset_t *masked) {
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action)) continue; /* the C library keeps a few for itself */
        const bool handled = (action.sa_flags & SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
        /* What the application answers must not kill its workers; a blocked signal is answered by sigwait or a signalfd. */
        const bool answered = handled || sigismember(masked, number) == 1;
        if (number == SIGINT || number == SIGTERM || (answered && goes_to_groups(number)))
            action.sa_handler = SIG_IGN;
        else if (handled || number == SIGCHLD) /* an ignored SIGCHLD would take the workers' statuses from the supervisor */
            action.sa_handler = SIG_DFL;
        else
            continue;
        action.sa_flags = 0;
        sigaction(number, &action, NULL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void shmt_settle_name(const char *kind, int64_t number) {
    char name[32];
    snprintf(name, sizeof name, number < 0 ? "shmtrain-%s" : "shmtrain-%s%" PRId64, kind, number);
    prctl(PR_SET_NAME, name);
}
