/* One round of a drill: a run in a process of its own, disturbed, or two, where the first one is killed with all its workers,
 * and the second goes on from its newest checkpoint. See drill_priv.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/drill_judge.h"
#include "measure/drill_priv.h"

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

/* All of the run: its workers end with it. False: it had ended before. */
static bool kill_run(struct shmt_drill_game *game) {
    if (shmt_drill_is_over(game)) return false;
    kill(game->pid, SIGKILL);
    int status = 0;
    (void)waitpid(game->pid, &status, 0);
    game->over = true;
    return WIFSIGNALED(status);
}

/* A store with a name is removed afterwards. */
static void make_name(struct shmt_drill_ground *ground, bool is_needed) {
    struct shmt_drill_place *place = &ground->place;
    place->name[0] = '\0';
    if (ground->n_runs % 2 == 1 || is_needed)
        snprintf(place->name, sizeof place->name, "drill-%d-%llu", (int)getpid(), (unsigned long long)ground->n_runs);
    ground->n_runs++;
}

/* How a run is disturbed. */
struct course {
    struct shmt_drill_dice *dice; /* NULL: not at all */
    double seconds;               /* that it takes, about */
    bool is_killed;               /* all of it, at some moment */
};

/* One run. 1: it was killed, as its course says, before its end. */
static int run(struct shmt_drill_ground *ground, struct shmt_drill_game *game, const struct shmt_drill_leg *leg,
               const struct course *course, struct shmt_error *e) {
    bool killed = false;
    make_name(ground, game->mode->has_guests);
    memset(ground->stage, 0, sizeof *ground->stage);
    game->over = false;
    game->pid = fork();
    if (game->pid < 0) return shmt_fail_errno(e, "cannot start a run for the drill");
    if (game->pid == 0) shmt_drill_run(game->mode, leg, &ground->place, ground->stage);
    bool ended = wait_for(game, &ground->stage->begun);
    if (ended && course->dice) shmt_drill_disturb(game, course->dice, course->seconds);
    if (ended && course->is_killed) {
        /* Once in a while before it has saved anything: then the next one begins anew. */
        if (shmt_drill_below(course->dice, 8) > 0) ended = wait_for(game, &ground->stage->saved);
        shmt_drill_nap(shmt_drill_below(course->dice, (uint64_t)(course->seconds * 1e9) + 1));
        killed = ended && kill_run(game);
    }
    ended = ended && wait_for(game, NULL);
    if (!ended) {
        (void)kill_run(game);
        if (game->why[0] == '\0') snprintf(game->why, game->room, "it hung: no end after %.0f s", SHMT_DRILL_HANG_NS * 1e-9);
    }
    shmt_drill_see_off(game);
    const bool well = ended && !killed && ground->stage->rc == 0;
    shmt_drill_look_for_residue(&ground->place, well, game->why, game->room);
    return killed;
}

/* A run that is killed at some moment, and one that goes on where it stood: in `sync` with any number of workers. */
static int run_twice(struct shmt_drill_ground *ground, struct shmt_drill_game *game, struct shmt_drill_leg *leg,
                     struct shmt_drill_dice *dice, double seconds, struct shmt_error *e) {
    struct shmt_drill_place *place = &ground->place;
    place->saves = leg->saves = true;
    int rc = run(ground, game, leg, &(struct course){dice, seconds / 3, true}, e);
    if (shmt_drill_look_at_saved(place, game->why, game->room) > 0) game->score->resumed += rc == 1;
    if (game->mode->same_bits) leg->workers = 1 + (uint32_t)shmt_drill_below(dice, SHMT_DRILL_WORKERS);
    leg->goes_on = true;
    if (game->why[0] == '\0' && (rc == 1 || (rc == 0 && ground->stage->rc == 0))) {
        rc = run(ground, game, leg, &(struct course){dice, seconds * 2 / 3, false}, e);
        if (shmt_drill_look_at_saved(place, game->why, game->room) == 0 && game->why[0] == '\0' && ground->stage->rc == 0)
            snprintf(game->why, game->room, "it left no checkpoint");
    }
    place->saves = false;
    shmt_drill_clear_saved(place);
    return rc;
}

int shmt_drill_play(struct shmt_drill_ground *ground, const struct shmt_drill_mode *mode, struct shmtrain_drill_mode *score,
                    double seconds, struct shmt_drill_dice *dice, struct shmt_drill_trial *trial, char *why, size_t room,
                    struct shmt_error *e) {
    struct shmt_drill_leg leg = {.workers = SHMT_DRILL_WORKERS, .skips = trial && trial->skips};
    struct shmt_drill_game game = {.mode = mode,
                                   .place = &ground->place,
                                   .stage = ground->stage,
                                   .score = score,
                                   .trial = trial,
                                   .why = why,
                                   .room = room};
    why[0] = '\0';
    const bool is_saved = mode->saves_every && dice;
    const int rc = is_saved ? run_twice(ground, &game, &leg, dice, seconds, e)
                            : run(ground, &game, &leg, &(struct course){.dice = dice, .seconds = seconds}, e);
    return rc < 0 ? rc : 0;
}
