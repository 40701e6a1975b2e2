/* See seeds_shrink.h. */
#include "seeds_shrink.h"

#include "hostile.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consistency/mode.h"

#define MOST_TRIES  600 /* unless TEST_TRIES says another number */
#define OTHER_SEEDS 12
#define TRY_SECONDS 20 /* of a processor. A run takes milliseconds */

static const struct {
    const char *variable;
    uint64_t least;
} KNOB[SEEDS_KNOBS] = {
    [SEEDS_WORKERS] = {"TEST_WORKERS", 2}, [SEEDS_EPOCHS] = {"TEST_EPOCHS", 1}, [SEEDS_EXAMPLES] = {"TEST_EXAMPLES", 1},
    [SEEDS_ITEM] = {"TEST_ITEM", 1},       [SEEDS_UNTIL] = {"TEST_UNTIL", 0},   [SEEDS_DELAYS] = {"TEST_DELAYS", 0}};

/* The child's words, which its parent reads behind its end. */
struct page {
    struct seeds_case now;
    uint64_t runs, delays; /* begun; drawn in this one */
    char why[160];
};
static struct page *g_page;
static uint64_t g_tries, g_most_tries;

uint64_t seeds_asked(enum seeds_knob knob, uint64_t standard) { return hostile_asked(KNOB[knob].variable, standard); }

/* As the mode is called; what is `async` with copies, too, has a name of its own. */
static void name_of(const struct shmt_policy *policy, char out[80]) {
    shmt_mode_name(policy, NULL, out, 64);
    if (shmt_policy_is_damped(policy)) strncat(out, ", damped", 80 - strlen(out) - 1);
}

bool seeds_asks_for(const struct shmt_policy *policy) {
    const char *asked = getenv("TEST_MODE");
    char mode[80];
    name_of(policy, mode);
    return !asked || strcmp(asked, mode) == 0;
}

bool seeds_may_have(const struct kase *kase, uint64_t n_workers) {
    struct shmt_policy settled = kase->policy;
    return shmt_policy_settle(&settled, (uint32_t)n_workers, NULL) == 0 && shmt_policy_equal(&settled, &kase->policy);
}

/* ---- in the child ---- */

void seeds_begin(const struct seeds_case *now) {
    g_page->now = *now;
    g_page->delays = 0;
    g_page->runs++;
}

bool seeds_delays(void) {
    const uint64_t until = g_page->now.knob[SEEDS_UNTIL], number = g_page->delays++;
    return number < until && until - number <= g_page->now.knob[SEEDS_DELAYS];
}

_Noreturn void seeds_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(g_page->why, sizeof g_page->why, format, args);
    va_end(args);
    _exit(1);
}

/* ---- in the parent ---- */

/* How the child has ended: true when well, else why. Whoever did not say is known by its signal. */
static bool ended_well(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child) fail_msg("the child is lost");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    if (g_page->why[0]) return false;
    if (WIFSIGNALED(status))
        snprintf(g_page->why, sizeof g_page->why, "the worker is ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(g_page->why, sizeof g_page->why, "the run gives up; what it says stands above");
    return false;
}

/* Runs the case in a child that prints nothing. True: it ends well. */
static bool run_alone(void (*run)(const struct seeds_case *), const struct seeds_case *which) {
    const struct rlimit limit = {TRY_SECONDS, TRY_SECONDS};
    g_tries++;
    g_page->why[0] = '\0';
    const pid_t child = fork();
    if (child < 0) fail_msg("no child can be made");
    if (child > 0) return ended_well(child);
    const int nothing = open("/dev/null", O_WRONLY);
    (void)dup2(nothing, STDOUT_FILENO);
    (void)dup2(nothing, STDERR_FILENO);
    (void)setrlimit(RLIMIT_CPU, &limit);
    run(which);
    _exit(0);
}

/* Numbers are of the run, the words are of the promise. */
static bool is_same_promise(const char *a, const char *b) {
    for (;; a++, b++) {
        while (isdigit((unsigned char)*a) || *a == '.') a++;
        while (isdigit((unsigned char)*b) || *b == '.') b++;
        if (*a != *b) return false;
        if (*a == '\0') return true;
    }
}

struct shrinking {
    void (*run)(const struct seeds_case *);
    struct seeds_case least; /* the smallest that fails, */
    char why[160];           /* as it says */
};

/* Whether this fails in the same way; then it is the smallest. */
static bool is_less(struct shrinking *s, struct seeds_case tried) {
    if (g_tries >= g_most_tries) return false;
    tried.kase.n_seats = (uint32_t)tried.knob[SEEDS_WORKERS];
    if (run_alone(s->run, &tried) || !is_same_promise(g_page->why, s->why)) return false;
    const uint64_t drawn = g_page->delays; /* of a shorter run they are fewer */
    if (tried.knob[SEEDS_UNTIL] > drawn) tried.knob[SEEDS_UNTIL] = drawn;
    if (tried.knob[SEEDS_DELAYS] > tried.knob[SEEDS_UNTIL]) tried.knob[SEEDS_DELAYS] = tried.knob[SEEDS_UNTIL];
    s->least = tried;
    snprintf(s->why, sizeof s->why, "%s", g_page->why);
    return true;
}

/* The same with this knob at `value`. A shorter run has another schedule, so that other seeds are tried for it, too, with all of
 * their delays. */
static bool still_fails(struct shrinking *s, enum seeds_knob knob, uint64_t value) {
    struct seeds_case tried = s->least;
    if (knob == SEEDS_WORKERS && !seeds_may_have(&tried.kase, value)) return false;
    tried.knob[knob] = value;
    if (is_less(s, tried)) return true;
    if (knob >= SEEDS_ITEM) return false;
    tried.knob[SEEDS_UNTIL] = tried.knob[SEEDS_DELAYS] = UINT64_MAX;
    for (tried.seed = 1; tried.seed <= OTHER_SEEDS; tried.seed++)
        if (is_less(s, tried)) return true;
    return false;
}

/* From below, of workers, for a run with two is the easiest to read; else by bisection: what fails with fewer is not always
 * found so, but what is found fails. True: it is smaller now. */
static bool shrink(struct shrinking *s, enum seeds_knob knob) {
    const uint64_t before = s->least.knob[knob];
    uint64_t fewest = KNOB[knob].least;
    if (knob == SEEDS_WORKERS)
        while (fewest < s->least.knob[knob] && !still_fails(s, knob, fewest)) fewest++;
    else if (fewest < before && !still_fails(s, knob, fewest))
        while (fewest + 1 < s->least.knob[knob]) {
            const uint64_t middle = fewest + (s->least.knob[knob] - fewest) / 2;
            if (!still_fails(s, knob, middle)) fewest = middle;
        }
    return s->least.knob[knob] < before;
}

static void print_case(const char *word, const struct seeds_case *c, const char *why) {
    char mode[80];
    name_of(&c->kase.policy, mode);
    printf("%s: %s, %llu workers: %s; again: TEST_SEED=%llu TEST_MODE='%s'", word, mode,
           (unsigned long long)c->knob[SEEDS_WORKERS], why, (unsigned long long)c->seed, mode);
    for (int i = 0; i < SEEDS_KNOBS; i++) printf(" %s=%llu", KNOB[i].variable, (unsigned long long)c->knob[i]);
    printf(" tests/test_seeds\n");
}

/* The run that the page tells of has failed. */
static void report(void (*run)(const struct seeds_case *)) {
    struct shrinking s = {.run = run, .least = g_page->now};
    const uint64_t runs = g_page->runs, drawn = g_page->delays;
    const char *most = getenv("TEST_TRIES");
    g_most_tries = most ? strtoull(most, NULL, 10) : MOST_TRIES;
    snprintf(s.why, sizeof s.why, "%s", g_page->why);
    if (drawn < s.least.knob[SEEDS_UNTIL]) s.least.knob[SEEDS_UNTIL] = drawn;
    if (s.least.knob[SEEDS_UNTIL] < s.least.knob[SEEDS_DELAYS]) s.least.knob[SEEDS_DELAYS] = s.least.knob[SEEDS_UNTIL];
    printf("found in run %llu\n", (unsigned long long)runs);
    print_case("first", &s.least, s.why);
    fflush(stdout);
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (int knob = 0; knob < SEEDS_KNOBS; knob++) smaller |= shrink(&s, (enum seeds_knob)knob);
    }
    print_case("FAILED", &s.least, s.why);
    fflush(stdout);
}

int seeds_search(void (*all)(void), void (*run)(const struct seeds_case *)) {
    g_page = mmap(NULL, sizeof *g_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g_page == MAP_FAILED) fail_msg("no page can be had");
    fflush(stdout);
    fflush(stderr);
    const pid_t child = fork();
    if (child < 0) fail_msg("no child can be made");
    if (child == 0) {
        all();
        printf("%llu runs\n", (unsigned long long)g_page->runs);
        fflush(stdout);
        _exit(g_page->runs == 0);
    }
    const bool well = ended_well(child);
    if (!well) report(run);
    munmap(g_page, sizeof *g_page);
    return !well;
}
