/* What a worker process answers to SIGBUS from a mapped file that has become shorter: its sentence and its status, and it ends. Called by
 * supervisor.c in the worker, which is a process of our own. What runs in the handler neither allocates nor locks. */
#include "runtime/team_priv.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/mapped.h"

static struct shmt_team_end *mine; /* set before the handler is */
static _Atomic uint32_t speaking;  /* threads of this process that want to write there. relaxed: only the first one does */

static size_t add(char *text, size_t used, const char *words) {
    const size_t n = strlen(words), room = SHMT_ERROR_TEXT - 1 - used;
    memcpy(text + used, words, n < room ? n : room);
    return used + (n < room ? n : room);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    const char *file = info->si_code > 0 ? shmt_mapped_at(info->si_addr) : NULL;
    (void)context;
    if (!file) {
        (void)signal(number, SIG_DFL); /* the access is repeated, and kills */
        return;
    }
    while (take_relaxed(&speaking, 1) > 0) pause(); /* the first one ends all threads of this process */
    size_t used = add(mine->error.text, 0, file);
    used = add(mine->error.text, used, SHMT_MAPPED_SHORTER);
    mine->error.text[used] = '\0';
    mine->error.status = mine->status = SHMTRAIN_E_DATA;
    store_release(&mine->returned, 1); /* pairs with the acquire in note_end and ends.c, as at the end of a body */
    _exit(EXIT_FAILURE);
}

void shmt_faults_answer(struct shmt_team_end *end) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    mine = end;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
