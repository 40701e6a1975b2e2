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

#include "base/clock.h"
#include "measure/drill_priv.h"

/* ---- in the guest's own process ---- */

static struct shmtrain_store *the_store; /* for the handler */

static void leave(int signal) {
    (void)signal;
    shmtrain_store_stop(the_store);
}

static void tell_in(void *arg, const struct shmtrain_report *so_far) {
    struct shmt_drill_stage *stage = arg;
    (void)so_far;
    store_relaxed(&stage->guest_in, 1); /* relaxed: a flag that carries nothing but itself */
}

/* The run says that it is about to begin a moment before it can be joined. */
static int join(const char *name) {
    int rc;
    while ((rc = shmtrain_store_join(the_store, name, NULL, NULL)) == SHMTRAIN_E_AGAIN) shmt_drill_nap(SHMT_DRILL_LOOK_NS);
    return rc;
}

static _Noreturn void be_guest(const struct shmt_drill_place *place, struct shmt_drill_stage *stage) {
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = stage, .begin = tell_in};
    const struct sigaction action = {.sa_handler = leave};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int rc = shmtrain_store_create(&the_store);
    if (rc == 0) {
        shmtrain_store_listen(the_store, &listener);
        sigaction(SIGTERM, &action, NULL);
        rc = shmtrain_store_set(the_store, "workers", "1");
        if (rc == 0) rc = shmtrain_store_set(the_store, "bind", "none");
        if (rc == 0) rc = join(place->name);
        if (rc < 0) snprintf(stage->guest_message, sizeof stage->guest_message, "%s", shmtrain_store_message(the_store));
        shmtrain_store_destroy(the_store);
    }
    stage->guest_rc = rc;
    _exit(EXIT_SUCCESS);
}

/* ---- how it has ended ---- */

static void blame(struct shmt_drill_game *game, const char *how, const char *message) {
    if (game->why[0] == '\0') snprintf(game->why, game->room, "a guest %s%s", how, message);
}

/* `status`: as waitpid has it. */
static void judge(struct shmt_drill_game *game, int status) {
    const struct shmt_drill_stage *stage = game->stage;
    const bool somebody_was_hit = game->trial->guest_deaths > 0; /* it, or the run failed for want of another one */
    game->guest = 0;
    if (WIFSIGNALED(status)) {
        if (!somebody_was_hit) blame(game, "died on its own", "");
        return;
    }
    if (stage->guest_rc == 0 || (stage->guest_rc == SHMTRAIN_E_DIED && somebody_was_hit)) return;
    if (stage->guest_rc == SHMTRAIN_E_USAGE && strstr(stage->guest_message, " has ended")) return; /* it came too late */
    blame(game, "failed: ", stage->guest_message);
}

/* ---- who disturbs ---- */

static void collect(struct shmt_drill_game *game) {
    int status;
    if (game->guest > 0 && waitpid(game->guest, &status, WNOHANG) == game->guest) judge(game, status);
}

void shmt_drill_invite(struct shmt_drill_game *game) {
    collect(game);
    if (game->guest > 0) return;
    store_relaxed(&game->stage->guest_in, 0); /* nobody else is there */
    game->stage->guest_rc = 0;
    game->stage->guest_message[0] = '\0';
    game->guest = fork();
    if (game->guest == 0) be_guest(game->place, game->stage);
}

void shmt_drill_see_off(struct shmt_drill_game *game) {
    const uint64_t began_ns = shmt_now_ns();
    while (game->guest > 0 && shmt_now_ns() - began_ns < SHMT_DRILL_HANG_NS) {
        collect(game);
        if (game->guest > 0) shmt_drill_nap(SHMT_DRILL_LOOK_NS);
    }
    if (game->guest <= 0) return;
    blame(game, "hung", ": its run has ended, but it has not");
    kill(game->guest, SIGKILL);
    (void)waitpid(game->guest, NULL, 0);
    game->guest = 0;
}

static void count_death(struct shmt_drill_game *game) {
    game->score->guest_deaths++;
    game->trial->guest_deaths++;
}

/* The process of its worker. */
static void hit_worker(struct shmt_drill_game *game, struct shmt_drill_dice *dice, bool may_kill, bool stops) {
    struct shmt_drill_prey prey = shmt_drill_find(game->guest, 0);
    uint64_t hit_ns;
    if (prey.pid == 0) return; /* it is about to come, or to go */
    const bool killed =
        stops ? shmt_drill_stop_for_a_moment(game, &prey, dice, may_kill, &hit_ns) : may_kill && shmt_drill_hit(&prey, SIGKILL);
    if (killed) count_death(game);
    shmt_drill_let_go(&prey);
}

void shmt_drill_hit_guest(struct shmt_drill_game *game, struct shmt_drill_dice *dice) {
    const bool may_kill = game->trial->kills_guests;
    const uint64_t what = shmt_drill_below(dice, may_kill ? 8 : 4);
    if (game->guest <= 0 || load_relaxed(&game->stage->guest_in) == 0) return; /* relaxed: as in tell_in */
    if (what == 0)
        (void)kill(game->guest, SIGTERM); /* it leaves when the epoch is over */
    else if (what < 3 || !may_kill)
        hit_worker(game, dice, may_kill, true);
    else if (what < 6)
        hit_worker(game, dice, may_kill, false);
    else if (kill(game->guest, SIGKILL) == 0) /* the program; not collected yet, so the number is still its own */
        count_death(game);
}
