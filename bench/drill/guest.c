/* Guests of a run: processes of their own, which join it by its name with a worker each, one after the other. They are killed
 * (the worker alone, or all of the program), stopped, and sent away. See drill_priv.h.
 *
 * What may be expected of one: it ends well when its run has ended, or when it was sent away; one that was killed costs what it
 * had in hand, no more; in `sync` a gradient of it is missing then, and the run fails, and with it whoever else has joined. */
#include <shmtrain/shmtrain.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/drill/judge.h"
#include "bench/runs/options.h"
#include "sync/host.h"

/* ---- in the guest's own process ---- */

static struct shmtrain_store *the_store; /* for the handler */

static void leave(int signal) {
    (void)signal;
    shmtrain_store_stop(the_store);
}

static void tell_in(void *arg, const struct shmtrain_report *so_far) {
    struct shmt_drill_shared *shared = arg;
    (void)so_far;
    store_relaxed(&shared->guest_in, 1); /* relaxed: a flag that carries nothing but itself */
}

/* The run says that it is about to begin a moment before it can be joined. */
static int join(const char *name) {
    int rc;
    while ((rc = shmtrain_store_join(the_store, name, NULL, NULL)) == SHMTRAIN_E_AGAIN) shmt_drill_nap(SHMT_DRILL_LOOK_NS);
    return rc;
}

static _Noreturn void be_guest(const struct shmt_drill_place *place, struct shmt_drill_shared *shared) {
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = shared, .begin = tell_in};
    const struct sigaction action = {.sa_handler = leave};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int rc = shmtrain_store_create(&the_store);
    if (rc == 0) {
        shmtrain_store_listen(the_store, &listener);
        sigaction(SIGTERM, &action, NULL);
        rc = shmt_handle_options(the_store, "workers=1 bind=none");
        if (rc == 0) rc = join(place->name);
        if (rc < 0) snprintf(shared->guest_message, sizeof shared->guest_message, "%s", shmtrain_store_message(the_store));
        shmtrain_store_destroy(the_store);
    }
    shared->guest_rc = rc;
    _exit(EXIT_SUCCESS);
}

/* ---- how it has ended ---- */

/* `status`: as waitpid has it. */
static void judge(struct shmt_drill_game *game, int status) {
    const struct shmt_drill_shared *shared = game->ground->shared;
    const bool somebody_was_hit = game->trial.guest_deaths > 0; /* it, or the run failed for want of another one */
    game->guest = 0;
    if (WIFSIGNALED(status)) {
        if (!somebody_was_hit) shmt_drill_find_fault(game->why, "a guest died on its own");
        return;
    }
    if (shared->guest_rc == 0 || (shared->guest_rc == SHMTRAIN_E_DIED && somebody_was_hit)) return;
    if (shared->guest_rc == SHMTRAIN_E_USAGE && strstr(shared->guest_message, " has ended")) return; /* it came too late */
    shmt_drill_find_fault(game->why, "a guest failed: %s", shared->guest_message);
}

/* ---- who disturbs ---- */

static void collect(struct shmt_drill_game *game) {
    int status;
    if (game->guest > 0 && waitpid(game->guest, &status, WNOHANG) == game->guest) judge(game, status);
}

void shmt_drill_invite(struct shmt_drill_game *game) {
    collect(game);
    if (game->guest > 0) return;
    store_relaxed(&game->ground->shared->guest_in, 0); /* nobody else is there */
    game->ground->shared->guest_rc = 0;
    game->ground->shared->guest_message[0] = '\0';
    game->guest = fork();
    if (game->guest == 0) be_guest(&game->ground->place, game->ground->shared);
}

void shmt_drill_see_off(struct shmt_drill_game *game) {
    const uint64_t began_ns = shmt_now_ns();
    while (game->guest > 0 && shmt_now_ns() - began_ns < SHMT_DRILL_HANG_NS) {
        collect(game);
        if (game->guest > 0) shmt_drill_nap(SHMT_DRILL_LOOK_NS);
    }
    if (game->guest <= 0) return;
    shmt_drill_find_fault(game->why, "a guest hung: its run has ended, but it has not");
    kill(game->guest, SIGKILL);
    (void)waitpid(game->guest, NULL, 0);
    game->guest = 0;
}

static void count_death(struct shmt_drill_game *game) {
    game->score->guest_deaths++;
    game->trial.guest_deaths++;
}

/* The process of its worker. */
static void hit_worker(struct shmt_drill_game *game, bool may_kill, bool stops) {
    struct shmt_drill_prey prey = shmt_drill_find(game->guest, 0);
    uint64_t hit_ns;
    if (prey.pid == 0) return; /* it is about to come, or to go */
    const bool killed =
        stops ? shmt_drill_stop_for_a_moment(game, &prey, may_kill, &hit_ns) : may_kill && shmt_drill_hit(&prey, SIGKILL);
    if (killed) count_death(game);
    shmt_drill_let_go(&prey);
}

void shmt_drill_hit_guest(struct shmt_drill_game *game) {
    const bool may_kill = game->trial.kills_guests;
    const uint64_t what = shmt_drill_below(game, may_kill ? 8 : 4);
    if (game->guest <= 0 || load_relaxed(&game->ground->shared->guest_in) == 0) return; /* relaxed: as in tell_in */
    if (what == 0)
        (void)kill(game->guest, SIGTERM); /* it leaves when the epoch is over */
    else if (what < 3 || !may_kill)
        hit_worker(game, may_kill, true);
    else if (what < 6)
        hit_worker(game, may_kill, false);
    else if (kill(game->guest, SIGKILL) == 0) /* the program; not collected yet, so the number is still its own */
        count_death(game);
}
