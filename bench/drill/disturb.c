/* Killing and stopping the workers of a run at random: see drill_priv.h. */
#include <math.h>
#include <signal.h>

#include "bench/drill/drill_priv.h"
#include "sync/host.h"
#include "base/random.h"

#define NEXT_LIFE_NS    5000000000u /* for a look at who comes back; it may have ended before */
#define LONGEST_STOP_NS 40000000u

uint64_t shmt_drill_below(struct shmt_drill_game *game, uint64_t n) {
    return shmt_below(shmt_hash64(game->seed, game->n++, 0, 0), n);
}

static void count_death(struct shmt_drill_game *game, uint32_t rank) {
    const bool is_final = game->mode->continues && rank != 0; /* nobody takes up what it had in hand */
    game->score->deaths++;
    game->trial.deaths++;
    game->trial.losses += game->trial.skips || is_final;
}

/* Sees worker `rank` come again, and how long that took since `hit_ns`. */
static void see_next_life(struct shmt_drill_game *game, uint32_t rank, pid_t before, uint64_t hit_ns) {
    if (game->mode->continues && rank != 0) return;
    while (!shmt_drill_is_over(game) && shmt_now_ns() - hit_ns < NEXT_LIFE_NS) {
        struct shmt_drill_prey next = shmt_drill_find(game->target, rank);
        const bool is_new = next.pid != 0 && next.pid != before;
        const double ms = (double)(shmt_now_ns() - hit_ns) * 1e-6;
        shmt_drill_let_go(&next);
        if (is_new) {
            game->score->worst_respawn_ms = fmax(game->score->worst_respawn_ms, ms); /* of NaN and a number, the number */
            return;
        }
        shmt_drill_nap(SHMT_DRILL_LOOK_NS);
    }
}

bool shmt_drill_stop_for_a_moment(struct shmt_drill_game *game, const struct shmt_drill_prey *prey, bool may_kill,
                                  uint64_t *hit_ns_out) {
    if (!shmt_drill_hit(prey, SIGSTOP)) return false;
    game->score->stops++;
    shmt_drill_nap(shmt_drill_below(game, LONGEST_STOP_NS));
    const bool killed = may_kill && shmt_drill_below(game, 4) == 0 && shmt_drill_hit(prey, SIGKILL);
    *hit_ns_out = shmt_now_ns();
    (void)shmt_drill_hit(prey, SIGCONT);
    return killed;
}

static void stop_worker(struct shmt_drill_game *game, struct shmt_drill_prey *prey, uint32_t rank) {
    uint64_t hit_ns = 0;
    if (!shmt_drill_stop_for_a_moment(game, prey, true, &hit_ns)) return;
    count_death(game, rank);
    see_next_life(game, rank, prey->pid, hit_ns);
}

/* The worker calls _exit at its next item, if there is one. */
static void tell_to_leave(struct shmt_drill_game *game, const struct shmt_drill_prey *prey, uint32_t rank) {
    _Atomic uint32_t *leave = &game->ground->shared->leave[rank];
    const uint64_t told_ns = shmt_now_ns();
    store_relaxed(leave, 1); /* relaxed, and below: a flag that carries nothing but itself */
    while (!shmt_drill_is_over(game) && load_relaxed(leave) != 0 && shmt_now_ns() - told_ns < LONGEST_STOP_NS)
        shmt_drill_nap(SHMT_DRILL_LOOK_NS / 10);
    uint32_t told = 1;
    while (told == 1)
        if (swap_relaxed(leave, &told, 0)) return; /* it had no more items */
    count_death(game, rank);
    see_next_life(game, rank, prey->pid, shmt_now_ns());
}

/* One in five takes another worker with it. */
static void kill_worker(struct shmt_drill_game *game, const struct shmt_drill_prey *prey, uint32_t rank, uint32_t other,
                        bool both) {
    static const int DEADLY[] = {SIGKILL, SIGKILL, SIGKILL, SIGSEGV};
    struct shmt_drill_prey second = both ? shmt_drill_find(game->target, other) : (struct shmt_drill_prey){0, -1};
    const uint64_t hit_ns = shmt_now_ns();
    const bool hit = shmt_drill_hit(prey, DEADLY[shmt_drill_below(game, 4)]);
    const bool hit_second = second.pid != 0 && shmt_drill_hit(&second, SIGKILL);
    if (hit) count_death(game, rank);
    if (hit_second) count_death(game, other);
    if (hit) see_next_life(game, rank, prey->pid, hit_ns);
    if (hit_second) see_next_life(game, other, second.pid, hit_ns);
    shmt_drill_let_go(&second);
}

/* The hosts of a run share the workers. */
static void disturb_once(struct shmt_drill_game *game) {
    const uint32_t n = SHMT_DRILL_WORKERS / (game->mode->has_hosts ? SHMT_DRILL_HOSTS : 1);
    const uint32_t rank = (uint32_t)shmt_drill_below(game, n), what = (uint32_t)shmt_drill_below(game, 8);
    const uint32_t further = (uint32_t)shmt_drill_below(game, n - 1);
    struct shmt_drill_prey prey = shmt_drill_find(game->target, rank);
    if (prey.pid == 0) return;
    if (what < 2)
        stop_worker(game, &prey, rank);
    else if (what == 2 && game->target == game->pid)
        tell_to_leave(game, &prey, rank);
    else
        kill_worker(game, &prey, rank, (rank + 1 + further) % n, what == 3);
    shmt_drill_let_go(&prey);
}

void shmt_drill_disturb(struct shmt_drill_game *game, double seconds) {
    const bool has_guests = game->mode->has_guests;
    const uint64_t n = (1 + shmt_drill_below(game, 4)) * (has_guests ? 2 : 1), ns = (uint64_t)(seconds * 1e9) / n + 1;
    for (uint64_t i = 0; i < n && !shmt_drill_is_over(game); i++) {
        if (has_guests) shmt_drill_invite(game);
        shmt_drill_nap(shmt_drill_below(game, ns));
        if (shmt_drill_is_over(game)) break;
        if (game->mode->has_hosts) game->target = shmt_drill_below(game, 2) == 0 ? game->pid : game->other;
        if (has_guests && shmt_drill_below(game, 4) > 0)
            shmt_drill_hit_guest(game);
        else if (game->mode->has_hosts && shmt_drill_below(game, 4) == 0)
            shmt_drill_pull_cable(game);
        else
            disturb_once(game);
    }
}
