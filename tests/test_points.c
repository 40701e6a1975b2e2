/* Aimed deaths: at each labelled point of the protocols (base/point.h) that a run passes, in each mode, a worker is killed, or
 * stopped for a moment, and the run has to end as one that nobody has disturbed; where it comes by points then that only a next
 * life passes, that is killed there, too. Runs with checkpoints pause every few steps, and go on from what they have written.
 * The files that have points are compiled into this program once more. Under the name test_points_KofN it takes every Nth mode,
 * from the Kth on, and of each a share (share_of): `make check` runs all N of them side by side, `make check-long` the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <shmtrain/shmtrain.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "aim.h"
#include "api_help.h"
#include "folder_help.h"
#include "sanitized.h"

/* ---- parts ---- */

static size_t g_part, g_n_parts = 1, g_n_modes; /* which of how many; modes met so far, in all the tests */

/* The next mode is one of this part's. Each is of one part, whatever their number. */
static bool next_is_mine(void) { return g_n_modes++ % g_n_parts == g_part; }

/* By the program's name: test_points takes all modes. */
static bool choose_part(const char *program) {
    unsigned part, n;
    char end;
    const char *name = strrchr(program, '/');
    name = name ? name + 1 : program;
    if (strcmp(name, "test_points") == 0) return true;
    if (sscanf(name, "test_points_%uof%u%c", &part, &n, &end) != 2 || part < 1 || part > n) return false;
    g_part = part - 1;
    g_n_parts = n;
    return true;
}

/* ---- runs ---- */

struct mode {
    const char *name, *options[7][2];
    bool same_bits;
    const char *data;
};
#define SPARSE "sparse.shmcache" /* 3000 examples, made once: there are hundreds of runs */
static const struct mode MODES[] = {
    {"sync", {{"mode", "sync"}, {"batch", "1024"}}, true, SPARSE},
    {"sync, clip-norm", {{"mode", "sync"}, {"batch", "1024"}, {"clip-norm", "0.01"}}, true, SPARSE},
    {"sync, lamb", {{"mode", "sync"}, {"batch", "1024"}, {"optimizer", "lamb"}}, true, SPARSE},
    {"sync, keep best", {{"mode", "sync"}, {"batch", "256"}, {"keep", "best"}, {"valid", "0.25"}}, true, SPARSE},
    {"sync, adam", {{"mode", "sync"}, {"batch", "1024"}, {"optimizer", "adam"}}, true, SPARSE},
    {"sync, lists of terms",
     {{"mode", "sync"}, {"batch", "128"}, {"optimizer", "adagrad"}},
     true,
     "builtin:sparse:examples=1500,features=5000,nonzeros=10"},
    {"sync, lists of terms, lamb",
     {{"mode", "sync"}, {"batch", "128"}, {"optimizer", "lamb"}},
     true,
     "builtin:sparse:examples=1500,features=5000,nonzeros=10"},
    {"sync, softmax, chunks that wait for the next",
     {{"mode", "sync"}, {"model", "softmax"}, {"batch", "256"}, {"chunks", "8"}},
     true,
     "builtin:dense:examples=1000"},
    {"allreduce, network",
     {{"mode", "allreduce"}, {"model", "net"}, {"net", "fc:16 batchnorm relu fc:10"}, {"batch", "256"}, {"chunks", "8"}},
     true,
     "builtin:dense:examples=1000"},
    {"allreduce, lists of terms, clip-norm",
     {{"mode", "allreduce"}, {"batch", "128"}, {"optimizer", "adagrad"}, {"clip-norm", "0.01"}},
     true,
     "builtin:sparse:examples=1500,features=5000,nonzeros=10"},
    {"sync, network",
     {{"mode", "sync"}, {"model", "net"}, {"net", "fc:16 batchnorm relu fc:10"}, {"batch", "256"}, {"chunks", "8"}},
     true,
     "builtin:dense:examples=1000"},
    {"backup:2, network",
     {{"mode", "backup:2"}, {"model", "net"}, {"net", "fc:16 batchnorm relu fc:10"}, {"batch", "256"}},
     false,
     "builtin:dense:examples=1000"},
    {"tolerance, Cholesky", {{"tolerance", "1e-9"}, {"C", "1"}}, true, SPARSE},
    {"tolerance, conjugate gradients", {{"tolerance", "1e-9"}, {"C", "1"}}, true, "builtin:sparse:examples=1500,features=1500"},
    {"tolerance, L1", {{"l1", "1e-3"}, {"tolerance", "1e-9"}}, true, "builtin:sparse:examples=1500,features=1500"},
    {"tolerance, svm, interior points", {{"model", "svm"}, {"tolerance", "1e-9"}, {"C", "100"}, {"epochs", "6"}}, true, SPARSE},
    {"tolerance, svm, dual ascent",
     {{"model", "svm"}, {"tolerance", "1e-9"}, {"C", "1"}},
     true,
     "builtin:sparse:examples=1500,features=1500"},
    {"tolerance, dual ascent by all",
     {{"mode", "hogwild"}, {"tolerance", "1e-3"}, {"C", "1"}},
     false,
     "builtin:sparse:examples=1500,features=1500"},
    {"tolerance, L2 chosen", {{"tolerance", "1e-9"}}, true, SPARSE},
    {"tolerance, softmax, L2 chosen",
     {{"model", "softmax"}, {"tolerance", "1e-3"}},
     true,
     "builtin:dense:examples=500,features=10"},
    {"async", {{"mode", "async"}, {"replicas", "one"}}, false, SPARSE},
    {"async, locked, adagrad",
     {{"mode", "async"}, {"replicas", "one"}, {"write", "locked"}, {"optimizer", "adagrad"}, {"cpu", "portable"}},
     false,
     SPARSE},
    {"async, locked, softmax",
     {{"mode", "async"}, {"replicas", "one"}, {"write", "locked"}, {"model", "softmax"}, {"cpu", "portable"}},
     false,
     "builtin:dense:examples=1500"},
    {"ssp:1", {{"mode", "ssp:1"}}, false, SPARSE},
    {"aggregate, staleness 2", {{"write", "aggregate"}, {"staleness", "2"}}, false, SPARSE},
    {"backup:2", {{"mode", "backup:2"}}, false, SPARSE},
    {"backup:2, clip-norm", {{"mode", "backup:2"}, {"clip-norm", "0.01"}}, false, SPARSE},
    {"backup:2, fold", {{"mode", "backup:2"}, {"late", "fold"}}, false, SPARSE},
    {"local:2", {{"mode", "local:2"}}, false, SPARSE},
    {"local:2, sums, adagrad", {{"mode", "local:2"}, {"merge", "sum"}, {"optimizer", "adagrad"}}, false, SPARSE},
    {"local:2, sums, ftrl", {{"mode", "local:2"}, {"merge", "sum"}, {"optimizer", "ftrl"}}, false, SPARSE},
    {"local:2, alone", {{"mode", "local:2"}, {"staleness", "inf"}}, false, SPARSE},
    {"local:2, elastic", {{"mode", "local:2"}, {"merge", "elastic"}}, false, SPARSE},
    {"local:2, alone, locked, 2 threads",
     {{"mode", "local:2"}, {"staleness", "inf"}, {"write", "locked"}, {"workers", "2"}, {"threads", "2"}, {"cpu", "portable"}},
     false,
     SPARSE},
    {"sync, adam, checkpoints",
     {{"mode", "sync"}, {"batch", "256"}, {"optimizer", "adam"}, {"checkpoint-every", "5"}},
     true,
     SPARSE},
    {"tolerance, svm, checkpoints",
     {{"model", "svm"}, {"tolerance", "1e-9"}, {"C", "1"}, {"epochs", "4"}, {"checkpoint-every", "1 epoch"}},
     true,
     "builtin:sparse:examples=1500,features=1500"},
    {"async, checkpoints", {{"mode", "async"}, {"replicas", "one"}, {"item", "64"}, {"checkpoint-every", "12"}}, false, SPARSE},
    {"aggregate, staleness 2, checkpoints",
     {{"write", "aggregate"}, {"staleness", "2"}, {"item", "64"}, {"checkpoint-every", "12"}},
     false,
     SPARSE},
    {"backup:2, fold, checkpoints",
     {{"mode", "backup:2"}, {"late", "fold"}, {"item", "64"}, {"checkpoint-every", "12"}},
     false,
     SPARSE},
    {"local:2, checkpoints", {{"mode", "local:2"}, {"item", "64"}, {"checkpoint-every", "12"}}, false, SPARSE},
    {"local:2, alone, checkpoints",
     {{"mode", "local:2"}, {"staleness", "inf"}, {"item", "64"}, {"checkpoint-every", "12"}},
     false,
     SPARSE},
};

/* It has checkpoints, and is disturbed at the points that pauses pass. */
static bool saves(const struct mode *mode) {
    for (int i = 0; i < 7 && mode->options[i][0]; i++)
        if (strcmp(mode->options[i][0], "checkpoint-every") == 0) return true;
    return false;
}

struct ending {
    uint64_t xxh64, examples;
    double loss;
};

static void set(struct shmtrain_store *store, const char *name, const char *value) {
    if (shmtrain_store_set(store, name, value) < 0) fail_msg("%s", shmtrain_store_message(store));
}

/* Where the run was hit, for messages. */
static const char *where(const struct mode *mode) {
    static char text[200];
    const struct target *aim = &g_plan->aim, *then = &g_plan->then;
    int n = snprintf(text, sizeof text, "%s, worker %u at pass %llu of %s", mode->name, aim->rank,
                     (unsigned long long)aim->pass, aim->name[0] ? aim->name : "nothing");
    if (then->name[0] && n > 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ", worker %u at %s", then->rank, then->name);
    return text;
}

/* Who is to die when worker 0 has no work left has some for longer. */
static int delay(void *arg, shmtrain_session *s, const struct shmtrain_work *work) {
    const struct timespec moment = {.tv_nsec = 3000000};
    (void)arg;
    (void)s;
    (void)work;
    if (g_plan->aim.behind[0] && my_rank() == g_plan->aim.rank) (void)nanosleep(&moment, NULL);
    return 0;
}

static struct ending run(const struct mode *mode, bool goes_on) {
    const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks), .before_step = delay};
    struct shmtrain_store *store;
    struct ending ending = {0};
    assert_int_equal(shmtrain_store_create(&store), 0);
    set(store, "workers", "3");
    set(store, "epochs", "2");
    set(store, "bind", "none");
    set(store, "max-respawns", "100");
    if (saves(mode)) set(store, "checkpoint", ".");
    if (goes_on) set(store, "resume", "1");
    if (strcmp(mode->data, SPARSE) == 0) set(store, "valid", SPARSE);
    for (int i = 0; i < 7 && mode->options[i][0]; i++) set(store, mode->options[i][0], mode->options[i][1]);
    shmtrain_store_hooks(store, &hooks);
    store_relaxed(&g_plan->fell, 0);
    alarm(PATIENCE_SECONDS);
    const int rc = shmtrain_store_train(store, mode->data);
    alarm(0);
    if (rc < 0) fail_msg("%s: %s", where(mode), shmtrain_store_message(store));
    if (load_acquire(&g_plan->fell))
        fail_msg("%s: the %s of worker %u went from %llu back to %llu", where(mode), g_plan->what, g_plan->whose,
                 (unsigned long long)g_plan->before, (unsigned long long)g_plan->after);
    const struct shmtrain_report *r = shmtrain_store_report(store);
    ending.xxh64 = r->parameters_xxh64;
    for (uint32_t i = 0; i < r->n_epochs; i++) ending.examples += r->epoch[i].examples;
    uint64_t of_workers = 0;
    for (uint32_t i = 0; i < r->n_workers; i++) of_workers += r->worker[i].examples;
    if (!goes_on && of_workers != ending.examples)
        fail_msg("%s: the workers have %llu examples of %llu", where(mode), (unsigned long long)of_workers,
                 (unsigned long long)ending.examples);
    ending.loss = r->epoch[r->n_epochs - 1].valid_loss;
    shmtrain_store_destroy(store);
    return ending;
}

/* ---- checkpoints ---- */

/* The one of the largest step; false: there is none. The numbers in their names have as many digits each. */
static bool newest(char name[256]) {
    struct dirent *entry;
    DIR *dir = opendir(".");
    assert_non_null(dir);
    name[0] = '\0';
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, "checkpoint-", 11) == 0 && strcmp(entry->d_name, name) > 0)
            snprintf(name, 256, "%s", entry->d_name);
    closedir(dir);
    return name[0] != '\0';
}

static void remove_all(void) {
    char name[256];
    while (newest(name)) assert_int_equal(unlink(name), 0);
}

static void check_ending(const struct mode *mode, const struct ending *ending, const struct ending *right) {
    if (ending->examples == right->examples && (!mode->same_bits || ending->xxh64 == right->xxh64) && isfinite(ending->loss))
        return;
    fail_msg("%s: %llu examples instead of %llu, parameters %016llx instead of %016llx", where(mode),
             (unsigned long long)ending->examples, (unsigned long long)right->examples, (unsigned long long)ending->xxh64,
             (unsigned long long)right->xxh64);
}

static void go_on(const struct mode *mode, const struct ending *right) {
    const struct ending ending = run(mode, true);
    check_ending(mode, &ending, right);
}

/* The last checkpoint is that of the whole run, from which there is nothing to do. Who goes on from the one before it, which
 * was taken in a pause, comes to the same end. False: there is none. */
static bool goes_on_from_pause(const struct mode *mode, const struct ending *right) {
    char last[256], before[256];
    if (!newest(last)) fail_msg("%s: there is no checkpoint", where(mode));
    assert_int_equal(unlink(last), 0);
    if (!newest(before)) return false;
    go_on(mode, right);
    return true;
}

/* ---- disturbances ---- */

/* What a run that nobody has disturbed passes, and how it ends. */
struct usual {
    const struct mode *mode;
    struct ending ending;
    bool known[MOST_POINTS]; /* passed, or another life has been killed there */
    uint64_t passes[MOST_POINTS][WORKERS];
    uint32_t hits, went_on;
};

/* A run in which a worker, or two, get their signals, if it comes to that. */
static void disturb(struct usual *usual) {
    const struct mode *mode = usual->mode;
    forget_passes();
    store_relaxed(&g_plan->hit, 0);
    const struct ending ending = run(mode, false);
    check_ending(mode, &ending, &usual->ending);
    const bool was_hit = load_relaxed(&g_plan->hit) != 0;
    usual->hits += was_hit && g_plan->aim.signal == SIGKILL;
    g_plan->aim.signal = g_plan->then.signal = 0; /* who goes on is left alone */
    if (was_hit && saves(mode)) usual->went_on += goes_on_from_pause(mode, &usual->ending);
    remove_all();
    g_plan->then = (struct target){0};
}

/* The first of them; WORKERS: nobody. */
static uint32_t who_passed(uint32_t point) {
    uint32_t rank = 0;
    while (rank < WORKERS && load_relaxed(&g_plan->point[point].passes[rank]) == 0) rank++;
    return rank;
}

/* The run before came by points that are passed by next lives only: these are killed there. */
static void disturb_next_lives(struct usual *usual, struct target first) {
    const uint32_t n = load_acquire(&g_plan->n_points);
    uint32_t who[MOST_POINTS];
    for (uint32_t i = 0; i < n; i++) who[i] = who_passed(i);
    for (uint32_t i = 0; i < n; i++) {
        if (usual->known[i] || who[i] == WORKERS) continue;
        usual->known[i] = true;
        g_plan->aim = first;
        aim_at(&g_plan->then, g_plan->point[i].name, who[i], 1, SIGKILL);
        disturb(usual);
    }
}

static void hit(struct usual *usual, int signal, uint32_t point, uint32_t rank, uint64_t pass) {
    if (usual->passes[point][rank] < pass || pass == 0) return;
    aim_at(&g_plan->aim, g_plan->point[point].name, rank, pass, signal);
    const struct target first = g_plan->aim;
    disturb(usual);
    if (signal == SIGKILL && !saves(usual->mode)) disturb_next_lives(usual, first);
}

/* In runs with checkpoints: the others are disturbed in those without. */
static bool concerns(const struct mode *mode, const char *name) {
    static const char *const OF_PAUSES[] = {"pause", "copy",  "snapshot", "turn",  "lead-on", "meet",
                                            "note",  "reach", "count",    "claim", "done",    "fit:keeping"};
    bool found = !saves(mode);
    for (size_t i = 0; i < sizeof OF_PAUSES / sizeof *OF_PAUSES; i++)
        found |= strncmp(name, OF_PAUSES[i], strlen(OF_PAUSES[i])) == 0;
    return found;
}

static void know_usual(struct usual *usual, const struct mode *mode) {
    *usual = (struct usual){.mode = mode};
    aim_at(&g_plan->aim, "", 0, 0, 0);
    forget_passes();
    usual->ending = run(mode, false);
    const uint32_t n = load_acquire(&g_plan->n_points);
    assert_true(n < MOST_POINTS);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t rank = 0; rank < WORKERS; rank++) {
            usual->passes[i][rank] = load_relaxed(&g_plan->point[i].passes[rank]);
            usual->known[i] |= usual->passes[i][rank] > 0;
        }
    if (saves(mode)) go_on(mode, &usual->ending);
    remove_all();
}

/* What happens at a point in a mode. The program as a whole does all of it everywhere. Its parts do one thing at half of the points,
 * and take turns, so that each point has each of them in some modes: what happens at all points in all orders is for fibers to show
 * (test_seeds_deaths), and here that processes die as these do. With sanitizers, which see the same code in the same order, they do
 * half of that. Runs with checkpoints, which pass few points, have each first pass, or with sanitizers a third of them. */
struct share {
    bool first, stop, middle, last;
};

static struct share share_of(const struct mode *mode, uint32_t point) {
    const size_t turn = point + (size_t)(mode - MODES);
    struct share share = {.first = true, .stop = turn % 3 == 0, .middle = true, .last = true};
    if (g_n_parts > 1) {
        share.first = turn % 8 == 1 || (saves(mode) && (!SANITIZED || turn % 3 == 0));
        share.stop = turn % 8 == 0;
        share.middle = !SANITIZED && turn % 8 == 2;
        share.last = !SANITIZED && turn % 8 == 3;
    }
    share.stop &= !saves(mode);
    return share;
}

/* First a run without deaths, which tells the points that it passes, and how often. */
static uint32_t disturb_at_each_point_of(const struct mode *mode) {
    struct usual usual;
    know_usual(&usual, mode);
    const uint32_t n = load_acquire(&g_plan->n_points);
    for (uint32_t i = 0; i < n; i++) {
        if (!concerns(mode, g_plan->point[i].name)) continue;
        const struct share share = share_of(mode, i);
        const uint32_t rank = usual.passes[i][i % WORKERS] > 0 ? i % WORKERS : 0; /* some only the chief passes */
        const uint32_t next = (i + 1) % WORKERS;
        const uint64_t most = usual.passes[i][rank], last = usual.passes[i][0];
        if (share.first) hit(&usual, SIGKILL, i, rank, 1);
        if (share.stop) hit(&usual, SIGSTOP, i, usual.passes[i][next] > 0 ? next : rank, 1);
        if (share.middle && most > 2) hit(&usual, SIGKILL, i, rank, most / 2 + 1);
        if (share.last && (rank != 0 || last > 1)) hit(&usual, SIGKILL, i, 0, last);
    }
    /* In `sync` the steps alone say where the first pause is, and that one finds its place free. */
    if (saves(mode) && mode->same_bits && usual.went_on == 0) fail_msg("%s: no run has paused", mode->name);
    return usual.hits;
}

static void runs_end_as_if_undisturbed_wherever_a_worker_dies_or_stops(void **state) {
    (void)state;
    uint32_t hits = 0;
    for (size_t m = 0; m < sizeof MODES / sizeof *MODES; m++) {
        if (!next_is_mine()) continue;
        const uint32_t n = disturb_at_each_point_of(&MODES[m]);
        if (n == 0) fail_msg("%s: no point was passed", MODES[m].name);
        hits += n;
    }
    print_message("%u points of the protocols, %u deaths at them\n", load_relaxed(&g_plan->n_points), hits);
}

/* The others have no work any more, and nobody else applies it: in the next epoch the store would seem damaged. */
static void a_round_is_applied_though_its_closer_has_died_and_does_not_come_again(void **state) {
    static const struct mode MODE = {
        "backup:1, continue",
        {{"workers", "2"}, {"mode", "backup:1"}, {"late", "fold"}, {"batch", "256"}, {"on-death", "continue"}},
        false,
        SPARSE};
    uint32_t hits = 0;
    (void)state;
    if (!next_is_mine()) return;
    for (int i = 0; i < 20 && hits < 2; i++) {
        aim_at(&g_plan->aim, "close:after", 1, 0, SIGKILL);
        snprintf(g_plan->aim.behind, sizeof g_plan->aim.behind, "stop-counting:after");
        forget_passes();
        store_relaxed(&g_plan->hit, 0);
        const struct ending ending = run(&MODE, false);
        assert_int_equal(ending.examples, 2 * 3000);
        hits += load_relaxed(&g_plan->hit);
    }
    assert_true(hits > 0);
}

/* ---- the chief, as it counts guests in and out ---- */

enum { EXAMPLES = 640, BATCH = 64 };

static struct shmtrain_store *g_store; /* of this process, or of the guest's */

/* Each batch (sync, allreduce) adds 1 to row 0, exactly. A guest asks to leave when it has had an item; the run ends behind that. */
static int take_items(shmtrain_session *s, void *arg) {
    const struct timespec moment = {.tv_nsec = 100000};
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        (void)nanosleep(&moment, NULL);
        if (g_is_guest || load_acquire(&g_plan->guest_has_left)) shmtrain_store_stop(g_store);
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* Tries until the run is there, and lets somebody in. */
static pid_t start_guest(const char *name) {
    const struct timespec moment = {.tv_nsec = 1000000};
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(PATIENCE_SECONDS);
    g_is_guest = true;
    if (shmtrain_store_create(&g_store) < 0) _exit(1);
    while (shmtrain_store_set(g_store, "workers", "1") < 0 || shmtrain_store_join(g_store, name, take_items, NULL) < 0)
        (void)nanosleep(&moment, NULL);
    shmtrain_store_destroy(g_store);
    store_release(&g_plan->guest_has_left, 1);
    _exit(0);
}

static void run_with_guest(const char *mode) {
    char name[64];
    uint64_t examples = 0;
    int status;
    snprintf(name, sizeof name, "test_points-%d", (int)getpid());
    store_relaxed(&g_plan->guest_has_left, 0);
    store_relaxed(&g_plan->fell, 0);
    g_store = make("processes", "3", "1000000", EXAMPLES);
    set(g_store, "mode", mode);
    set(g_store, "item", "16");
    set(g_store, "guests", "1");
    set(g_store, "name", name);
    set(g_store, "max-respawns", "100");
    const pid_t guest = start_guest(name);
    alarm(PATIENCE_SECONDS);
    const int rc = shmtrain_store_run(g_store, take_items, NULL);
    alarm(0);
    if (rc < 0) fail_msg("%s, %s: %s", mode, g_plan->aim.name, shmtrain_store_message(g_store));
    assert_int_equal(waitpid(guest, &status, 0), guest);
    assert_int_equal(status, 0);
    if (load_acquire(&g_plan->fell)) fail_msg("%s, %s: the %s went back", mode, g_plan->aim.name, g_plan->what);
    const struct shmtrain_report *r = shmtrain_store_report(g_store);
    for (uint32_t i = 0; i < r->n_epochs; i++) {
        examples += r->epoch[i].examples;
        if (i + 1 < r->n_epochs) assert_int_equal(r->epoch[i].examples, EXAMPLES);
    }
    if (strcmp(mode, "sync") == 0 || strcmp(mode, "allreduce") == 0)
        assert_true(read_one(g_store, 0) == (float)(examples / BATCH));
    shmtrain_store_destroy(g_store);
    assert_int_equal(shmtrain_named_remove(name, 0, (char[512]){0}, 512), 0);
}

static void the_chief_may_die_while_it_counts_guests_in_and_out(void **state) {
    static const char *const POINTS[] = {"count-in:before",  "count-in:working",  "count-in:after",
                                         "count-out:before", "count-out:parting", "count-out:after"};
    static const char *const AS[] = {"sync", "allreduce", "async", "backup:2", "local:2"};
    (void)state;
    for (size_t m = 0; m < sizeof AS / sizeof *AS; m++) {
        if (!next_is_mine()) continue;
        for (size_t i = 0; i < sizeof POINTS / sizeof *POINTS; i++) {
            forget_passes();
            store_relaxed(&g_plan->hit, 0);
            aim_at(&g_plan->aim, POINTS[i], 0, 1, SIGKILL);
            run_with_guest(AS[m]);
            if (!load_relaxed(&g_plan->hit)) fail_msg("%s: %s was not passed", AS[m], POINTS[i]);
        }
    }
}

static int make_data(void **state) {
    struct shmtrain_store *store;
    if (make_folder(state) != 0 || shmtrain_store_create(&store) < 0) return -1;
    const int rc = shmtrain_store_convert(store, "builtin:sparse:examples=3000,features=300,nonzeros=10", SPARSE);
    shmtrain_store_destroy(store);
    return rc;
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chief_may_die_while_it_counts_guests_in_and_out),
        cmocka_unit_test(a_round_is_applied_though_its_closer_has_died_and_does_not_come_again),
        cmocka_unit_test(runs_end_as_if_undisturbed_wherever_a_worker_dies_or_stops),
    };
    if (!choose_part(argv[0])) {
        fprintf(stderr, "%s: the name must be test_points, or test_points_KofN with 1 <= K <= N\n", argv[0]);
        return 2;
    }
    if (!begin_aiming()) return 1;
    return cmocka_run_group_tests_name("points", tests, make_data, remove_folder);
}
