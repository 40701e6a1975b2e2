/* Runs over two hosts: processes on the loopback, each a host with workers of its own. Their workers are killed and stopped as those of
 * other runs; their links are stopped, which the other host cannot tell from a pulled cable; and of runs that write checkpoints one host
 * is killed with all that it has. See drill_priv.h.
 *
 * What may be expected: both end well with the same parameters; where one host was killed, the other says so and ends, and leaves
 * nothing behind but its checkpoints. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/drill/judge.h"
#include "sync/host.h"

#define LONGEST_CUT_NS 1500000000u /* longer than a host may be silent before it is suspected, and far from lost */

/* A port of the loopback that is free now; 0: there is none. */
static unsigned free_port(int *fd_out) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    *fd_out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd_out < 0 || bind(*fd_out, (struct sockaddr *)&at, bytes) < 0) return 0;
    return getsockname(*fd_out, (struct sockaddr *)&at, &bytes) == 0 ? ntohs(at.sin_port) : 0;
}

void shmt_drill_choose_ports(char out[SHMT_DRILL_LIST]) {
    int fd[SHMT_DRILL_HOSTS];
    out[0] = '\0';
    for (uint32_t host = 0; host < SHMT_DRILL_HOSTS; host++)
        snprintf(out + strlen(out), SHMT_DRILL_LIST - strlen(out), "%s127.0.0.1:%u", host ? "," : "", free_port(&fd[host]));
    for (uint32_t host = 0; host < SHMT_DRILL_HOSTS; host++)
        if (fd[host] >= 0) close(fd[host]);
}

int shmt_drill_start_other(struct shmt_drill_game *game, const struct shmt_drill_leg *leg, struct shmt_error *e) {
    struct shmt_drill_leg its = *leg;
    its.host = 1;
    memset(game->ground->other, 0, sizeof *game->ground->other);
    game->other_over = false;
    game->other = fork();
    if (game->other < 0) return shmt_fail_errno(e, "cannot start another host for the drill");
    if (game->other == 0) shmt_drill_train(game->mode, &its, &game->ground->place, game->ground->other);
    return 0;
}

static bool is_other_over(struct shmt_drill_game *game) {
    if (!game->other_over) game->other_over = waitpid(game->other, NULL, WNOHANG) != 0;
    return game->other_over;
}

/* All of it, at once. False: it had ended before. */
static bool kill_other(struct shmt_drill_game *game) {
    int status = 0;
    if (is_other_over(game)) return false;
    kill(game->other, SIGKILL);
    (void)waitpid(game->other, &status, 0);
    game->other_over = true;
    return WIFSIGNALED(status);
}

bool shmt_drill_kill_a_host(struct shmt_drill_game *game) {
    const bool first = shmt_drill_below(game, SHMT_DRILL_HOSTS) == 0;
    const bool killed = first ? shmt_drill_kill_run(game) : kill_other(game);
    game->killed_host = !killed ? SHMT_DRILL_NOBODY : first ? 0 : 1;
    game->score->lost_hosts += killed;
    return killed;
}

void shmt_drill_pull_cable(struct shmt_drill_game *game) {
    struct shmt_drill_prey link = shmt_drill_find_link(game->target);
    if (link.pid != 0 && shmt_drill_hit(&link, SIGSTOP)) {
        game->score->cuts++;
        shmt_drill_nap(shmt_drill_below(game, LONGEST_CUT_NS));
        (void)shmt_drill_hit(&link, SIGCONT);
    }
    shmt_drill_let_go(&link);
}

/* The host that is left: it ends well when the other one had nothing more to do, else because it has lost it. */
static void judge_survivor(struct shmt_drill_game *game, const struct shmt_drill_shared *left) {
    const bool says_so = strstr(left->message, "has left the run") || strstr(left->message, "is lost");
    if (left->rc != 0 && !(left->rc == SHMTRAIN_E_DIED && says_so))
        shmt_drill_find_fault(game->why, "a host whose other one was killed ended otherwise: %s", left->message);
}

void shmt_drill_see_off_other(struct shmt_drill_game *game) {
    const struct shmt_drill_shared *one = game->ground->shared, *other = game->ground->other;
    const uint64_t began_ns = shmt_now_ns();
    while (!is_other_over(game) && shmt_now_ns() - began_ns < SHMT_DRILL_HANG_NS) shmt_drill_nap(SHMT_DRILL_LOOK_NS);
    if (kill_other(game)) shmt_drill_find_fault(game->why, "the other host hung: its run has ended, but it has not");
    if (game->killed_host != SHMT_DRILL_NOBODY) {
        judge_survivor(game, game->killed_host == 0 ? other : one);
    } else if (other->rc < 0) {
        shmt_drill_find_fault(game->why, "the other host failed: %s", other->message);
    } else if (one->rc == 0 && one->xxh64 != other->xxh64) {
        shmt_drill_find_fault(game->why, "hosts ended with parameters %016llx and %016llx", (unsigned long long)one->xxh64,
                              (unsigned long long)other->xxh64);
    }
}
