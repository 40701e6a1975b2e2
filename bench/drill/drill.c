/* All rounds of a drill: see drill.h. Each is one run, disturbed at random. Whatever a run leaves behind becomes a child of this
 * process, which looks for it. */
#include "bench/drill/drill.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/drill/judge.h"
#include "sync/host.h"

enum { ROUNDS = 1000, QUIET_RUNS = 9 };

struct drill {
    struct shmt_drill *out;
    struct shmt_drill_ground ground;
    struct shmt_drill_expected expected[SHMT_DRILL_MODES]; /* n_runs 0: not measured yet */
};

/* What undisturbed runs come to. */
static int measure_quiet(struct drill *d, uint32_t m, struct shmt_error *e) {
    struct shmt_drill_score *score = &d->out->mode[m];
    struct shmt_drill_game game = {.mode = &shmt_drill_modes[m], .ground = &d->ground, .score = score, .is_quiet = true};
    for (uint32_t i = 0; i < (game.mode->same_bits ? 1 : QUIET_RUNS); i++) {
        const int rc = shmt_drill_play(&game, 0, e);
        if (rc < 0) return rc;
        if (d->ground.shared->rc < 0) shmt_drill_find_fault(game.why, "%s", d->ground.shared->message);
        if (game.why[0] != '\0') return shmt_fail(e, SHMTRAIN_E_DIED, "%s, undisturbed: %s", game.mode->name, game.why);
        shmt_drill_expect(&d->expected[m], d->ground.shared);
        d->out->quiet_runs++;
    }
    if (!game.mode->same_bits) shmt_drill_band(&d->expected[m], &score->low_loss, &score->high_loss);
    return 0;
}

static void keep_failure(struct shmt_drill *out, const struct shmt_drill_game *game) {
    game->score->failed++;
    out->failed++;
    if (out->n_failures == SHMT_DRILL_FAILURES) return;
    struct shmt_drill_failure *failure = &out->failure[out->n_failures++];
    *failure = (struct shmt_drill_failure){.seed = game->seed, .mode = game->mode->name};
    snprintf(failure->why, sizeof failure->why, "%s", game->why);
}

static int play_round(struct drill *d, uint64_t seed, struct shmt_error *e) {
    const uint32_t m = (uint32_t)(seed % SHMT_DRILL_MODES);
    const struct shmt_drill_mode *mode = &shmt_drill_modes[m];
    struct shmt_drill_score *score = &d->out->mode[m];
    struct shmt_drill_game game = {.mode = mode, .ground = &d->ground, .score = score, .seed = seed};
    game.trial.skips = mode->may_skip && shmt_drill_below(&game, 2) == 0;
    /* A guest's death ends a run of `sync`: of those runs, too, some are to go on to their end. */
    if (mode->has_guests) game.trial.kills_guests = !mode->same_bits || shmt_drill_below(&game, 4) == 0;
    int rc = d->expected[m].n_runs > 0 ? 0 : measure_quiet(d, m, e);
    if (rc == 0) rc = shmt_drill_play(&game, d->expected[m].train_seconds, e);
    if (rc < 0) return rc;
    if (game.why[0] == '\0') shmt_drill_judge(&game, &d->expected[m]);
    score->respawns += d->ground.shared->respawns;
    score->guest_examples += d->ground.shared->guest_examples;
    score->runs++;
    d->out->rounds++;
    if (game.why[0] != '\0') keep_failure(d->out, &game);
    return 0;
}

/* ---- all rounds ---- */

static int prepare(struct drill *d, struct shmt_error *e) {
    const char *folder = getenv("TMPDIR");
    char *place = d->ground.place.folder;
    if (!shmt_drill_can_find())
        return shmt_fail(e, SHMTRAIN_E_SYSTEM,
                         "this system does not list the children of a process (/proc/PID/task/PID/children)");
    void *shared =
        mmap(NULL, SHMT_DRILL_HOSTS * sizeof *d->ground.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a drill");
    d->ground.shared = shared;
    d->ground.other = d->ground.shared + 1;
    snprintf(place, sizeof d->ground.place.folder, "%.200s/shmtrain-drill-XXXXXX", folder && folder[0] ? folder : "/tmp");
    if (!mkdtemp(place)) return shmt_fail_errno(e, "cannot create a folder like %s for the drill", place);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a run leaves behind becomes a child of this process */
    return 0;
}

int shmt_drill_run(uint64_t seed, uint32_t rounds, void (*show)(uint32_t done, uint32_t of, uint32_t failed),
                   struct shmt_drill *out, char *message, size_t bytes) {
    struct shmt_error e = {0};
    struct drill d = {.out = out};
    const uint64_t from_ns = shmt_now_ns();
    *out = (struct shmt_drill){.seed = seed, .workers = SHMT_DRILL_WORKERS};
    if (rounds == 0) rounds = ROUNDS;
    for (uint32_t m = 0; m < SHMT_DRILL_MODES; m++)
        out->mode[m] = (struct shmt_drill_score){
            .name = shmt_drill_modes[m].name, .worst_respawn_ms = NAN, .low_loss = NAN, .high_loss = NAN};
    int rc = prepare(&d, &e);
    for (uint32_t i = 0; i < rounds && rc == 0; i++) {
        rc = play_round(&d, seed + i, &e);
        if (show && rc == 0) show(i + 1, rounds, out->failed);
    }
    if (rc < 0) snprintf(message, bytes, "%s", e.text);
    out->seconds = (double)(shmt_now_ns() - from_ns) * 1e-9;
    if (d.ground.place.folder[0]) (void)rmdir(d.ground.place.folder);
    if (d.ground.shared) (void)munmap(d.ground.shared, SHMT_DRILL_HOSTS * sizeof *d.ground.shared);
    return rc;
}
