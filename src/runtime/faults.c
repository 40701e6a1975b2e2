/* What a worker process answers to SIGBUS from a mapped file that has become shorter, and to SIGCONT when a guarded one may have
 * been changed while it was stopped: its sentence and its status, and it ends. Called by supervisor.c in the worker, which is a
 * process of our own. What runs in the handlers neither allocates nor locks. */
#include "runtime/team_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/mapped.h"

static struct shmt_team_end *mine;         /* set before the handlers are */
static const struct shmt_guarded *guarded; /* (2) likewise */
static _Atomic uint32_t speaking; /* threads of this process that want to write there. relaxed: only the first one does */

static size_t add(char *text, size_t used, const char *words) {
    const size_t n = strlen(words), room = SHMT_ERROR_TEXT - 1 - used;
    memcpy(text + used, words, n < room ? n : room);
    return used + (n < room ? n : room);
}

/* The first thread to come here ends all threads of this process. */
static _Noreturn void end_with(const char *file, const char *what) {
    while (take_relaxed(&speaking, 1) > 0) pause();
    size_t used = add(mine->error.text, 0, file);
    used = add(mine->error.text, used, what);
    mine->error.text[used] = '\0';
    mine->error.status = mine->status = SHMTRAIN_E_DATA;
    store_release(&mine->returned, 1); /* pairs with the acquire in note_end and ends.c, as at the end of a body */
    _exit(EXIT_FAILURE);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    const char *file = info->si_code > 0 ? shmt_mapped_at(info->si_addr) : NULL;
    (void)context;
    if (!file) {
        (void)signal(number, SIG_DFL); /* the access is repeated, and kills */
        return;
    }
    end_with(file, SHMT_MAPPED_SHORTER);
}

/* A guard keeps writers waiting for a while only, and who was stopped in the middle of an item for longer would go on with ids
 * that nobody has checked. This comes before its next instruction. */
static void on_continue(int number) {
    const int code = errno;
    (void)number;
    for (int i = 0; i < 2; i++)
        if (guarded[i].name && !shmt_guard_holds(guarded[i].fd)) end_with(guarded[i].name, SHMT_GUARD_BROKEN);
    errno = code;
}

/* While one of them is answered, the other waits: a thread that came back to end_with would wait for itself. */
void shmt_faults_answer(struct shmt_team_end *end, const struct shmt_guarded files[2]) {
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO},
                     resumed = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
    mine = end;
    guarded = files;
    sigfillset(&fault.sa_mask);
    sigfillset(&resumed.sa_mask);
    sigaction(SIGBUS, &fault, NULL);
    sigaction(SIGCONT, &resumed, NULL);
}
