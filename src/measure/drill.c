/* shmtrain drill: see <shmtrain/drill.h>. Rounds are run one after the other by a process of its own, which collects whatever a
 * run leaves behind, so none of the application's children is in the way. Each round is one run, disturbed at random. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sized.h"
#include "measure/drill_judge.h"
#include "measure/drill_priv.h"
#include "runtime/team.h"

enum { ROUNDS = 1000, QUIET_RUNS = 9 };

/* What the drilling process leaves for the caller, in memory that both see. */
struct result {
    struct shmtrain_drill drill;
    _Atomic uint32_t done, failed; /* rounds, for a display */
};

/* Of the drilling process. */
struct drill {
    struct result *result;
    struct shmt_drill_ground ground;
    struct shmt_drill_expected expected[SHMTRAIN_DRILL_MODES]; /* n_runs 0: not measured yet */
};

/* ---- rounds ---- */

/* What undisturbed runs come to. */
static int measure_quiet(struct drill *d, uint32_t m, struct shmt_error *e) {
    const struct shmt_drill_mode *mode = shmt_drill_mode_at(m);
    const struct shmt_drill_stage *stage = d->ground.stage;
    struct shmtrain_drill_mode *score = &d->result->drill.mode[m];
    struct shmt_drill_expected *expected = &d->expected[m];
    char why[320] = "";
    for (uint32_t i = 0; i < (mode->same_bits ? 1 : QUIET_RUNS); i++) {
        const int rc = shmt_drill_play(&d->ground, mode, score, 0, NULL, NULL, why, sizeof why, e);
        if (rc < 0) return rc;
        if (why[0] == '\0' && stage->rc < 0) snprintf(why, sizeof why, "%s", stage->message);
        if (why[0] != '\0') return shmt_fail(e, SHMTRAIN_E_DIED, "%s, undisturbed: %s", mode->name, why);
        shmt_drill_expect(expected, stage);
        d->result->drill.quiet_runs++;
    }
    if (!mode->same_bits) shmt_drill_band(expected, &score->low_loss, &score->high_loss);
    return 0;
}

static void keep_failure(struct shmtrain_drill *out, uint64_t seed, const char *mode, const char *why) {
    out->failed++;
    if (out->n_failures == SHMTRAIN_DRILL_FAILURES) return;
    struct shmtrain_drill_failure *failure = &out->failure[out->n_failures++];
    failure->seed = seed;
    snprintf(failure->mode, sizeof failure->mode, "%s", mode);
    snprintf(failure->why, sizeof failure->why, "%s", why);
}

static int play_round(struct drill *d, uint64_t seed, struct shmt_error *e) {
    struct shmtrain_drill *out = &d->result->drill;
    const uint32_t m = (uint32_t)(seed % shmt_drill_n_modes());
    const struct shmt_drill_mode *mode = shmt_drill_mode_at(m);
    struct shmtrain_drill_mode *score = &out->mode[m];
    struct shmt_drill_dice dice = {.seed = seed};
    struct shmt_drill_trial trial = {.skips = mode->may_skip && shmt_drill_below(&dice, 2) == 0};
    /* A guest's death ends a run of `sync`: of those runs, too, some are to go on to their end. */
    if (mode->has_guests) trial.kills_guests = !mode->same_bits || shmt_drill_below(&dice, 4) == 0;
    char why[320] = "";
    int rc = d->expected[m].n_runs > 0 ? 0 : measure_quiet(d, m, e);
    if (rc == 0) rc = shmt_drill_play(&d->ground, mode, score, d->expected[m].train_seconds, &dice, &trial, why, sizeof why, e);
    if (rc < 0) return rc;
    if (why[0] == '\0') shmt_drill_judge(mode, &d->expected[m], score, &trial, d->ground.stage, why, sizeof why);
    score->respawns += d->ground.stage->respawns;
    score->guest_examples += d->ground.stage->guest_examples;
    score->runs++;
    out->rounds++;
    if (why[0] == '\0') return 0;
    score->failed++;
    keep_failure(out, seed, mode->name, why);
    return 0;
}

/* ---- the drilling process ---- */

static int make_place(struct drill *d, struct shmt_error *e) {
    const char *folder = getenv("TMPDIR");
    char *place = d->ground.place.folder;
    snprintf(place, sizeof d->ground.place.folder, "%.200s/shmtrain-drill-XXXXXX", folder && folder[0] ? folder : "/tmp");
    if (!mkdtemp(place)) return shmt_fail_errno(e, "cannot create a folder like %s for the drill", place);
    return 0;
}

static int drill(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct result *r = arg;
    struct drill *d = calloc(1, sizeof *d);
    const uint64_t from_ns = shmt_now_ns();
    const uint32_t rounds = r->drill.rounds;
    (void)rank;
    if (!d) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a drill");
    d->result = r;
    void *stage = mmap(NULL, sizeof *d->ground.stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    d->ground.stage = stage;
    int rc = stage == MAP_FAILED ? shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a drill") : make_place(d, e);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a run leaves behind becomes a child of this process */
    r->drill.rounds = 0;
    for (uint32_t i = 0; i < rounds && rc == 0; i++) {
        rc = play_round(d, r->drill.seed + i, e);
        store_relaxed(&r->failed, r->drill.failed); /* relaxed, both: numbers for a display */
        store_relaxed(&r->done, i + 1);
        shmt_team_notify(team);
    }
    r->drill.seconds = (double)(shmt_now_ns() - from_ns) * 1e-9;
    if (d->ground.place.folder[0]) (void)rmdir(d->ground.place.folder);
    free(d);
    return rc;
}

/* ---- the caller ---- */

static void begin_result(struct result *r, const struct shmtrain_drill_how *how) {
    struct shmtrain_drill *out = &r->drill;
    out->seed = how->seed;
    out->rounds = how->rounds > 0 ? how->rounds : ROUNDS;
    out->workers = SHMT_DRILL_WORKERS;
    out->size = sizeof *out;
    out->n_modes = shmt_drill_n_modes();
    for (uint32_t m = 0; m < out->n_modes; m++) {
        snprintf(out->mode[m].name, sizeof out->mode[m].name, "%s", shmt_drill_mode_at(m)->name);
        out->mode[m].worst_respawn_ms = out->mode[m].low_loss = out->mode[m].high_loss = NAN;
    }
}

static int run(const struct shmtrain_drill_how *how, struct result *r, struct shmt_error *e) {
    const struct shmt_team_spec spec = {
        .kind = SHMT_TEAM_PROCESSES, .n = 1, .body = drill, .arg = r, .what = "drilling", .grace_ms = 1000};
    const uint32_t of = r->drill.rounds;
    struct shmt_team *team;
    uint32_t told = 0;
    const int rc = shmt_team_start(&spec, &team, e);
    if (rc < 0) return rc;
    while (!shmt_team_step(team)) {
        struct pollfd changed = {.fd = shmt_team_fd(team), .events = POLLIN};
        const uint32_t done = load_relaxed(&r->done); /* relaxed, both: numbers for a display */
        if (how->round && done != told) how->round(how->arg, done, of, load_relaxed(&r->failed));
        told = done;
        (void)poll(&changed, 1, -1); /* interrupted: look at once */
    }
    return shmt_team_finish(team, e);
}

int shmtrain_drill(const struct shmtrain_drill_how *how, struct shmtrain_drill **out, char *message, uint64_t bytes) {
    struct shmt_error e = {0};
    struct shmtrain_drill_how whole;
    struct shmtrain_drill *result = malloc(sizeof *result);
    struct result *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = result && r != MAP_FAILED ? 0 : shmt_fail(&e, SHMTRAIN_E_MEMORY, "not enough memory for a drill");
    if (rc == 0)
        rc = shmt_sized_take(&whole, sizeof whole, how, SHMT_FIRST_SIZE(struct shmtrain_drill_how, round), "drill_how", &e);
    if (rc == 0 && !shmt_drill_can_find())
        rc = shmt_fail(&e, SHMTRAIN_E_SYSTEM,
                       "this system does not list the children of a process (/proc/PID/task/PID/children)");
    if (rc == 0) {
        begin_result(r, &whole);
        rc = run(&whole, r, &e);
    }
    if (rc == 0) {
        *result = r->drill;
        *out = result;
    } else {
        if (message) snprintf(message, bytes, "%s", e.text);
        free(result);
    }
    if (r != MAP_FAILED) munmap(r, sizeof *r);
    return rc;
}
