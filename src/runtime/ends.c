/* How a team ended, in a sentence. Called by team.c in the caller's process, when nobody of the team is left to change the
 * ledger; the supervisor only notes numbers there, because it must not depend on locks that a thread of the application may
 * have held during the fork, as those of strsignal's translations. */
#include "runtime/team_priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* What messages call it: a guest's workers have numbers of the run that it has joined. */
static uint32_t number_of(const struct shmt_team *team, uint32_t rank) {
    return team->spec.number ? team->spec.number[rank] : rank;
}

void shmt_team_tell_who(const struct shmt_team_death *death, char *out, size_t room) {
    if (death->pid == 0)
        snprintf(out, room, "worker %u", death->rank);
    else
        snprintf(out, room, "worker %u (process %d)", death->rank, death->pid);
}

void shmt_team_tell_death(const struct shmt_team_death *death, char *out, size_t room) {
    const int status = death->wait_status;
    if (death->pid == 0)
        snprintf(out, room, "was killed");
    else if (WIFSIGNALED(status))
        snprintf(out, room, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == 0)
        snprintf(out, room, "called exit(0)");
    else
        snprintf(out, room, "ended with exit status %d", WEXITSTATUS(status));
}

static const char *comment_on(const struct shmt_team_end *end) {
    if (end->short_of_memory) return ", perhaps because memory ran out: the kernel killed a process for that reason";
    return WIFEXITED(end->wait_status) && WEXITSTATUS(end->wait_status) == 0 ? ", without finishing" : "";
}

/* Why nobody has taken its place. */
static void tell_lives(const struct shmt_team *team, uint32_t life, char *out, size_t room) {
    const int code = team->ledger->respawn_errno;
    out[0] = '\0';
    if (code != 0)
        snprintf(out, room, "; it could not be restarted: %s", strerror(code));
    else if (life > 0)
        snprintf(out, room, "; it had been restarted %u time%s before", life, life == 1 ? "" : "s");
}

static int describe_death(const struct shmt_team *team, uint32_t rank, struct shmt_error *e) {
    const struct shmt_team_end *end = &team->ledger->end[rank];
    const struct shmt_team_death death = {.rank = number_of(team, rank), .pid = end->last_pid, .wait_status = end->wait_status};
    char who[48], how[160], lives[160], place[80] = "";
    shmt_team_tell_who(&death, who, sizeof who);
    shmt_team_tell_death(&death, how, sizeof how);
    tell_lives(team, load_relaxed(&end->life), lives, sizeof lives); /* relaxed: nobody is left to change it */
    if (team->spec.last_words) team->spec.last_words(team->spec.arg, rank, place, sizeof place);
    return shmt_fail(e, SHMTRAIN_E_DIED, "%s %s while %s%s%s%s%s", who, how, team->what, place[0] ? " " : "", place,
                     comment_on(end), lives);
}

static int describe_failure(const struct shmt_team *team, uint32_t rank, struct shmt_error *e) {
    const struct shmt_team_end *end = &team->ledger->end[rank];
    if (!load_acquire(&end->returned)) return describe_death(team, rank, e); /* pairs with the worker's release */
    if (end->status > 0)
        return shmt_refuse(e, "worker %u returned %d while %s, which is not a status: return 0 or a code from status.h",
                           number_of(team, rank), end->status, team->what);
    if (end->error.text[0]) return shmt_fail(e, end->status, "%s", end->error.text);
    return shmt_fail(e, end->status, "worker %u failed while %s with %s, without a message", number_of(team, rank), team->what,
                     shmtrain_status_name(end->status));
}

static int describe_supervisor(const struct shmt_team *team, int status, struct shmt_error *e) {
    if (WIFSIGNALED(status))
        return shmt_fail(e, SHMTRAIN_E_DIED,
                         "the workers' supervisor was killed by signal %d (%s) while %s, and the workers with it",
                         WTERMSIG(status), strsignal(WTERMSIG(status)), team->what);
    return shmt_fail(e, SHMTRAIN_E_DIED, "the workers' supervisor ended while %s, and the workers with it", team->what);
}

int shmt_team_verdict(const struct shmt_team *team, int supervisor_status, struct shmt_error *e) {
    const struct shmt_team_ledger *ledger = team->ledger;
    const uint32_t first = load_acquire(&ledger->first); /* pairs with the release of who noted it */
    if (first) return describe_failure(team, first - 1, e);
    if (!load_acquire(&ledger->over)) return describe_supervisor(team, supervisor_status, e); /* pairs with its release */
    /* Who died of our own SIGKILL was stopped; who returned _STOPPED may say why. */
    bool stopped = false;
    for (uint32_t rank = 0; rank < team->spec.n; rank++) {
        const struct shmt_team_end *end = &ledger->end[rank];
        const bool returned = load_acquire(&end->returned);
        if (returned && end->status == SHMTRAIN_E_STOPPED && end->error.text[0])
            return shmt_fail(e, SHMTRAIN_E_STOPPED, "%s", end->error.text);
        stopped |= returned ? end->status == SHMTRAIN_E_STOPPED : end->killed;
    }
    return stopped ? shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped while %s", team->what) : 0;
}
