/* One round of a drill: a run in a process of its own, disturbed, or two, where the first one is killed with all its workers,
 * and the second goes on from its newest checkpoint. See drill_priv.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/drill/judge.h"
#include "sync/host.h"

void shmt_drill_nap(uint64_t ns) {
    const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)nanosleep(&pause, NULL);
}

bool shmt_drill_is_over(struct shmt_drill_game *game) {
    if (!game->over) game->over = waitpid(game->pid, NULL, WNOHANG) != 0;
    return game->over;
}

/* Waits for the process, or for `word` to be set. False: it hangs. */
static bool wait_for(struct shmt_drill_game *game, const _Atomic uint32_t *word) {
    const uint64_t began_ns = shmt_now_ns();
    while (!shmt_drill_is_over(game) && (!word || load_relaxed(word) == 0)) { /* relaxed: it carries nothing but itself */
        if (shmt_now_ns() - began_ns > SHMT_DRILL_HANG_NS) return false;
        shmt_drill_nap(SHMT_DRILL_LOOK_NS);
    }
    return true;
}

bool shmt_drill_kill_run(struct shmt_drill_game *game) {
    if (shmt_drill_is_over(game)) return false;
    kill(game->pid, SIGKILL);
    int status = 0;
    (void)waitpid(game->pid, &status, 0);
    game->over = true;
    return WIFSIGNALED(status);
}

/* A store with a name is removed afterwards. Over several hosts there are none. */
static void make_name(struct shmt_drill_ground *ground, const struct shmt_drill_mode *mode) {
    struct shmt_drill_place *place = &ground->place;
    place->name[0] = '\0';
    if ((ground->n_runs % 2 == 1 && !mode->has_hosts) || mode->has_guests)
        snprintf(place->name, sizeof place->name, "drill-%d-%llu", (int)getpid(), (unsigned long long)ground->n_runs);
    ground->n_runs++;
}

/* One run. 1: it was killed, as its leg says, before its end. */
static int run(struct shmt_drill_game *game, const struct shmt_drill_leg *leg, struct shmt_error *e) {
    struct shmt_drill_ground *ground = game->ground;
    bool killed = false;
    make_name(ground, game->mode);
    memset(ground->shared, 0, sizeof *ground->shared);
    game->over = false;
    game->killed_host = SHMT_DRILL_NOBODY;
    game->pid = fork();
    if (game->pid < 0) return shmt_fail_errno(e, "cannot start a run for the drill");
    if (game->pid == 0) shmt_drill_train(game->mode, leg, &ground->place, ground->shared);
    game->target = game->pid;
    if (leg->hosts > 1 && shmt_drill_start_other(game, leg, e) < 0) {
        (void)shmt_drill_kill_run(game);
        return SHMTRAIN_E_SYSTEM;
    }
    bool ended = wait_for(game, &ground->shared->begun);
    if (ended && !game->is_quiet) shmt_drill_disturb(game, leg->seconds);
    if (ended && leg->is_killed) {
        /* Once in a while before it has saved anything: then the next one begins anew. */
        if (shmt_drill_below(game, 8) > 0) ended = wait_for(game, &ground->shared->saved);
        shmt_drill_nap(shmt_drill_below(game, (uint64_t)(leg->seconds * 1e9) + 1));
        killed = ended && (leg->hosts > 1 ? shmt_drill_kill_a_host(game) : shmt_drill_kill_run(game));
    }
    ended = ended && wait_for(game, NULL);
    if (!ended) {
        (void)shmt_drill_kill_run(game);
        shmt_drill_find_fault(game->why, "it hung: no end after %.0f s", SHMT_DRILL_HANG_NS * 1e-9);
    }
    shmt_drill_see_off(game);
    if (leg->hosts > 1) shmt_drill_see_off_other(game);
    const bool well = ended && !killed && ground->shared->rc == 0;
    shmt_drill_look_for_residue(&ground->place, well, game->why);
    return killed;
}

/* The workers among so many hosts; one has them all, and no link. */
static void share_out(struct shmt_drill_leg *leg, uint32_t hosts) {
    leg->hosts = hosts > 1 ? hosts : 0;
    leg->workers = SHMT_DRILL_WORKERS / hosts;
    if (hosts > 1) shmt_drill_choose_ports(leg->list);
}

/* A run that is killed at some moment, and one that goes on where it stood: in `sync` with any number of workers. */
static int run_twice(struct shmt_drill_game *game, struct shmt_drill_leg leg, struct shmt_error *e) {
    struct shmt_drill_place *place = &game->ground->place;
    const double seconds = leg.seconds;
    place->saves = leg.saves = leg.is_killed = true;
    leg.seconds = seconds / 3;
    int rc = run(game, &leg, e);
    if (shmt_drill_look_at_saved(place, game->why) > 0) game->score->resumed += rc == 1;
    if (leg.hosts > 1) share_out(&leg, 1 + (uint32_t)shmt_drill_below(game, SHMT_DRILL_HOSTS));
    if (game->mode->same_bits && leg.hosts == 0) leg.workers = 1 + (uint32_t)shmt_drill_below(game, SHMT_DRILL_WORKERS);
    leg.goes_on = true;
    leg.is_killed = false;
    leg.seconds = seconds * 2 / 3;
    if (game->why[0] == '\0' && (rc == 1 || (rc == 0 && game->ground->shared->rc == 0))) {
        rc = run(game, &leg, e);
        if (shmt_drill_look_at_saved(place, game->why) == 0 && game->ground->shared->rc == 0)
            shmt_drill_find_fault(game->why, "it left no checkpoint");
    }
    place->saves = false;
    shmt_drill_clear_saved(place);
    return rc;
}

int shmt_drill_play(struct shmt_drill_game *game, double seconds, struct shmt_error *e) {
    struct shmt_drill_leg leg = {.workers = SHMT_DRILL_WORKERS, .seconds = seconds, .skips = game->trial.skips};
    if (game->mode->has_hosts) share_out(&leg, SHMT_DRILL_HOSTS);
    const int rc = game->mode->saves_every && !game->is_quiet ? run_twice(game, leg, e) : run(game, &leg, e);
    return rc < 0 ? rc : 0;
}
