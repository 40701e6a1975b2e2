/* shmtrain drill: see <shmtrain/drill.h>. Rounds are run one after the other by a process of its own, which collects whatever a
 * run leaves behind, so none of the application's children is in the way. Each round is one run, disturbed at random. */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "measure/drill_judge.h"
#include "measure/drill_priv.h"
#include "runtime/team.h"

enum { ROUNDS = 1000, QUIET_RUNS = 9 };
#define LOOK_NS         500000u
#define HANG_NS         120000000000u /* generous: of a run that takes a tenth of a second */
#define NEXT_LIFE_NS    5000000000u   /* for a look at who comes back; it may have ended before */
#define LONGEST_STOP_NS 40000000u

#define SPARSE "builtin:sparse:examples=20000,features=2000,nonzeros=20"
static const struct shmt_drill_mode MODES[] = {
    {"sync", "mode=sync epochs=6", SPARSE, true, false},
    {"sync, adam", "mode=sync optimizer=adam epochs=4", SPARSE, true, false},
    {"sync, softmax", "mode=sync model=softmax epochs=4", "builtin:dense:examples=4000", true, false},
    {"async", "mode=async replicas=one epochs=30", SPARSE, false, true},
    {"async, locked", "mode=async replicas=one write=locked epochs=20", SPARSE, false, true},
    {"async, atomic", "mode=async replicas=one write=atomic epochs=20", SPARSE, false, true},
    {"async, locked, adagrad", "mode=async replicas=one write=locked optimizer=adagrad epochs=12", SPARSE, false, true},
    {"async, ftrl", "mode=async replicas=one optimizer=ftrl epochs=20", SPARSE, false, true},
    {"async, locked, softmax", "mode=async replicas=one write=locked model=softmax epochs=6", "builtin:dense:examples=4000",
     false, true},
    {"ssp:2", "mode=ssp:2 epochs=20", SPARSE, false, true},
    {"aggregate, staleness 2", "write=aggregate staleness=2 epochs=12", SPARSE, false, false},
    {"backup:3", "mode=backup:3 epochs=10", SPARSE, false, false},
    {"backup:3, fold", "mode=backup:3 late=fold epochs=10", SPARSE, false, false},
    {"local:4", "mode=local:4 epochs=20", SPARSE, false, false},
    {"local:4, alone", "mode=local:4 staleness=inf epochs=20", SPARSE, false, false},
    {"node", "mode=node epochs=20", SPARSE, false, false},
};
#define N_MODES (sizeof MODES / sizeof *MODES)
_Static_assert(N_MODES <= SHMTRAIN_DRILL_MODES, "the result has a line for each mode");

/* What the drilling process leaves for the caller, in memory that both see. */
struct result {
    struct shmtrain_drill drill;
    _Atomic uint32_t done, failed; /* rounds, for a display */
};

/* Of the drilling process. */
struct drill {
    struct result *result;
    struct shmt_drill_stage *stage;
    struct shmt_drill_place place;
    struct shmt_drill_expected expected[N_MODES]; /* n_runs 0: not measured yet */
    uint64_t n_runs;
};

/* ---- disturbing ---- */

/* One round's random numbers. */
struct dice {
    uint64_t seed, n;
};

static uint64_t below(struct dice *dice, uint64_t n) { return shmt_below(shmt_hash64(dice->seed, dice->n++, 0, 0), n); }

static void nap(uint64_t ns) {
    const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)nanosleep(&pause, NULL);
}

/* A run that goes on. */
struct game {
    pid_t pid;
    bool over;
    struct shmt_drill_stage *stage;
    struct shmtrain_drill_mode *score;
};

static bool is_over(struct game *game) {
    if (!game->over) game->over = waitpid(game->pid, NULL, WNOHANG) != 0;
    return game->over;
}

/* Sees worker `rank` come again, and how long that took since `hit_ns`. */
static void see_next_life(struct game *game, uint32_t rank, pid_t before, uint64_t hit_ns) {
    while (!is_over(game) && shmt_now_ns() - hit_ns < NEXT_LIFE_NS) {
        struct shmt_drill_prey next = shmt_drill_find(game->pid, rank);
        const bool is_new = next.pid != 0 && next.pid != before;
        const double ms = (double)(shmt_now_ns() - hit_ns) * 1e-6;
        shmt_drill_let_go(&next);
        if (is_new) {
            game->score->worst_respawn_ms = fmax(game->score->worst_respawn_ms, ms); /* of NaN and a number, the number */
            return;
        }
        nap(LOOK_NS);
    }
}

/* Stops the worker for a moment, in which the others go on or wait for it; one in four is killed in its sleep. */
static void stop_for_a_moment(struct game *game, struct shmt_drill_prey *prey, struct dice *dice, uint32_t rank) {
    if (!shmt_drill_hit(prey, SIGSTOP)) return;
    game->score->stops++;
    nap(below(dice, LONGEST_STOP_NS));
    const bool killed = below(dice, 4) == 0 && shmt_drill_hit(prey, SIGKILL);
    const uint64_t now_ns = shmt_now_ns();
    (void)shmt_drill_hit(prey, SIGCONT);
    if (!killed) return;
    game->score->deaths++;
    see_next_life(game, rank, prey->pid, now_ns);
}

/* The worker calls _exit at its next item, if there is one. */
static void tell_to_leave(struct game *game, const struct shmt_drill_prey *prey, uint32_t rank) {
    const uint64_t told_ns = shmt_now_ns();
    store_relaxed(&game->stage->leave[rank], 1); /* relaxed, and below: a flag that carries nothing but itself */
    while (!is_over(game) && load_relaxed(&game->stage->leave[rank]) != 0 && shmt_now_ns() - told_ns < LONGEST_STOP_NS)
        nap(LOOK_NS / 10);
    uint32_t told = 1;
    if (swap_relaxed(&game->stage->leave[rank], &told, 0)) return; /* it had no more items */
    if (is_over(game) && told != 0) return;
    game->score->deaths++;
    see_next_life(game, rank, prey->pid, shmt_now_ns());
}

static void disturb_once(struct game *game, struct dice *dice) {
    static const int DEADLY[] = {SIGKILL, SIGKILL, SIGKILL, SIGSEGV};
    const uint32_t rank = (uint32_t)below(dice, SHMT_DRILL_WORKERS), what = (uint32_t)below(dice, 8);
    const uint32_t other = (rank + 1 + (uint32_t)below(dice, SHMT_DRILL_WORKERS - 1)) % SHMT_DRILL_WORKERS;
    struct shmt_drill_prey prey = shmt_drill_find(game->pid, rank);
    if (prey.pid == 0) return;
    if (what < 2) {
        stop_for_a_moment(game, &prey, dice, rank);
    } else if (what == 2) {
        tell_to_leave(game, &prey, rank);
    } else { /* one in five takes another worker with it */
        struct shmt_drill_prey second = what == 3 ? shmt_drill_find(game->pid, other) : (struct shmt_drill_prey){0, -1};
        const uint64_t hit_ns = shmt_now_ns();
        const bool hit = shmt_drill_hit(&prey, DEADLY[below(dice, 4)]);
        const bool hit_second = second.pid != 0 && shmt_drill_hit(&second, SIGKILL);
        game->score->deaths += (uint64_t)hit + hit_second;
        if (hit) see_next_life(game, rank, prey.pid, hit_ns);
        if (hit_second) see_next_life(game, other, second.pid, hit_ns);
        shmt_drill_let_go(&second);
    }
    shmt_drill_let_go(&prey);
}

/* One to four times, at moments of a run that takes about so long. */
static void disturb(struct game *game, struct dice *dice, double train_seconds) {
    const uint64_t n = 1 + below(dice, 4), ns = (uint64_t)(train_seconds * 1e9) / n + 1;
    for (uint64_t i = 0; i < n && !is_over(game); i++) {
        nap(below(dice, ns));
        if (!is_over(game)) disturb_once(game, dice);
    }
}

/* ---- one run ---- */

/* Waits for the process, or for `word` to be set. False: it hangs. */
static bool wait_for(struct game *game, const _Atomic uint32_t *word) {
    const uint64_t began_ns = shmt_now_ns();
    while (!is_over(game) && (!word || load_relaxed(word) == 0)) { /* relaxed: a flag that carries nothing but itself */
        if (shmt_now_ns() - began_ns > HANG_NS) return false;
        nap(LOOK_NS);
    }
    return true;
}

static void make_name(struct drill *d) {
    d->place.name[0] = '\0';
    if (d->n_runs % 2 == 1) /* a store with a name is removed afterwards */
        snprintf(d->place.name, sizeof d->place.name, "drill-%d-%llu", (int)getpid(), (unsigned long long)d->n_runs);
    d->n_runs++;
}

/* A run of the mode, disturbed or (dice and trial NULL) not. `why` gets what is wrong with its ending; empty: nothing. */
static int run_once(struct drill *d, uint32_t m, struct dice *dice, struct shmt_drill_trial *trial, char *why, size_t room,
                    struct shmt_error *e) {
    struct shmtrain_drill_mode *score = &d->result->drill.mode[m];
    struct game game = {.stage = d->stage, .score = score};
    const uint64_t deaths = score->deaths;
    make_name(d);
    memset(d->stage, 0, sizeof *d->stage);
    game.pid = fork();
    if (game.pid < 0) return shmt_fail_errno(e, "cannot start a run for the drill");
    if (game.pid == 0) shmt_drill_run(&MODES[m], trial && trial->skips, &d->place, d->stage);
    bool ended = wait_for(&game, &d->stage->begun);
    if (ended && dice) disturb(&game, dice, d->expected[m].train_seconds);
    ended = ended && wait_for(&game, NULL);
    if (!ended) {
        kill(game.pid, SIGKILL);
        (void)waitpid(game.pid, NULL, 0);
    }
    if (trial) trial->deaths = score->deaths - deaths;
    why[0] = '\0';
    if (!ended) snprintf(why, room, "it hung: no end after %.0f s", HANG_NS * 1e-9);
    shmt_drill_look_for_residue(&d->place, ended && d->stage->rc == 0, why, room);
    return 0;
}

/* What undisturbed runs come to. */
static int measure_quiet(struct drill *d, uint32_t m, struct shmt_error *e) {
    struct shmtrain_drill_mode *score = &d->result->drill.mode[m];
    struct shmt_drill_expected *expected = &d->expected[m];
    char why[320] = "";
    for (uint32_t i = 0; i < (MODES[m].same_bits ? 1 : QUIET_RUNS); i++) {
        const int rc = run_once(d, m, NULL, NULL, why, sizeof why, e);
        if (rc < 0) return rc;
        if (why[0] == '\0' && d->stage->rc < 0) snprintf(why, sizeof why, "%s", d->stage->message);
        if (why[0] != '\0') return shmt_fail(e, SHMTRAIN_E_DIED, "%s, undisturbed: %s", MODES[m].name, why);
        shmt_drill_expect(expected, d->stage);
        d->result->drill.quiet_runs++;
    }
    if (!MODES[m].same_bits) shmt_drill_band(expected, &score->low_loss, &score->high_loss);
    return 0;
}

static int play_round(struct drill *d, uint64_t seed, struct shmt_error *e) {
    struct shmtrain_drill *out = &d->result->drill;
    const uint32_t m = (uint32_t)(seed % N_MODES);
    struct shmtrain_drill_mode *score = &out->mode[m];
    struct dice dice = {.seed = seed};
    struct shmt_drill_trial trial = {.skips = MODES[m].may_skip && below(&dice, 2) == 0};
    char why[320] = "";
    int rc = d->expected[m].n_runs > 0 ? 0 : measure_quiet(d, m, e);
    if (rc == 0) rc = run_once(d, m, &dice, &trial, why, sizeof why, e);
    if (rc < 0) return rc;
    if (why[0] == '\0') shmt_drill_judge(&MODES[m], &d->expected[m], score, &trial, d->stage, why, sizeof why);
    score->respawns += d->stage->respawns;
    score->runs++;
    out->rounds++;
    if (why[0] == '\0') return 0;
    score->failed++;
    out->failed++;
    if (out->n_failures == SHMTRAIN_DRILL_FAILURES) return 0;
    struct shmtrain_drill_failure *failure = &out->failure[out->n_failures++];
    failure->seed = seed;
    snprintf(failure->mode, sizeof failure->mode, "%s", MODES[m].name);
    snprintf(failure->why, sizeof failure->why, "%s", why);
    return 0;
}

/* ---- the drilling process ---- */

static int make_place(struct drill *d, struct shmt_error *e) {
    const char *folder = getenv("TMPDIR");
    snprintf(d->place.folder, sizeof d->place.folder, "%.200s/shmtrain-drill-XXXXXX", folder && folder[0] ? folder : "/tmp");
    if (!mkdtemp(d->place.folder)) return shmt_fail_errno(e, "cannot make a folder like %s for the drill", d->place.folder);
    return 0;
}

static int drill(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct result *r = arg;
    struct drill *d = calloc(1, sizeof *d);
    const uint64_t from_ns = shmt_now_ns();
    const uint32_t rounds = r->drill.rounds;
    (void)rank;
    if (!d) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for a drill");
    d->result = r;
    d->stage = mmap(NULL, sizeof *d->stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = d->stage == MAP_FAILED ? shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for a drill") : make_place(d, e);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a run leaves behind becomes a child of this process */
    r->drill.rounds = 0;
    for (uint32_t i = 0; i < rounds && rc == 0; i++) {
        rc = play_round(d, r->drill.seed + i, e);
        store_relaxed(&r->failed, r->drill.failed); /* relaxed, both: numbers for a display */
        store_relaxed(&r->done, i + 1);
        shmt_team_notify(team);
    }
    r->drill.seconds = (double)(shmt_now_ns() - from_ns) * 1e-9;
    if (d->place.folder[0]) (void)rmdir(d->place.folder);
    free(d);
    return rc;
}

/* ---- the caller ---- */

static void begin_result(struct result *r, const struct shmtrain_drill_how *how) {
    struct shmtrain_drill *out = &r->drill;
    out->seed = how->seed;
    out->rounds = how->rounds > 0 ? how->rounds : ROUNDS;
    out->workers = SHMT_DRILL_WORKERS;
    out->n_modes = N_MODES;
    for (uint32_t m = 0; m < N_MODES; m++) {
        snprintf(out->mode[m].name, sizeof out->mode[m].name, "%s", MODES[m].name);
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
    struct shmtrain_drill *result = malloc(sizeof *result);
    struct result *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = result && r != MAP_FAILED ? 0 : shmt_fail(&e, SHMTRAIN_E_MEMORY, "no memory for a drill");
    if (rc == 0 && !shmt_drill_can_find())
        rc = shmt_fail(&e, SHMTRAIN_E_SYSTEM,
                       "this system does not say which processes are whose children (/proc/PID/task/PID/children)");
    if (rc == 0) {
        begin_result(r, how);
        rc = run(how, r, &e);
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
