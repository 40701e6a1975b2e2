/* Joining a run by name, as workers: see <shmtrain/store.h>.
 *
 * A guest has a team of its own, whose workers sit on places that the run keeps free. Its abort word is its own, too: whoever
 * fails here ends this team, not the run. The run is told by the marks (segment/named.h): the guest holds one for each seat,
 * from before it takes the seat until after it has left, and a seat without a mark is mourned by who made the store. In the
 * live modes the others go on then; in `aggregate` a gradient is missing, with replicas a part of the next merge, and the run
 * fails, as if a worker of its own had died.
 *
 * The other way round the guest looks at the mark of the run, ten times a second: when that is gone without a word, the run has
 * died, and the guest ends. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "api/guest_data.h"
#include "api/probe.h"
#include "api/progress.h"
#include "api/store_priv.h"
#include "api/workers.h"
#include "base/clock.h"
#include "base/cpu.h"

#define LOOK_NS    5000000
#define LINGER_MS  2000 /* how long the processes of a guest that has died may take to end */
#define OUTCOME_MS 5000 /* how long whoever made the store may take to say how its run ended */

/* Everything that one call of shmtrain_store_join holds. */
struct stay {
    struct shmtrain_store *store;
    struct shmt_guest_data data;
    struct shmt_crew crew;
    struct words *words; /* a page of its own, shared with the workers */
    uint64_t until_ns;   /* places are waited for */
};

/* What the program and its workers tell one another. */
struct words {
    _Atomic uint32_t abort;    /* the team's */
    _Atomic uint32_t admitted; /* struct shmt_job */
};

/* ---- what can be joined ---- */

static int check_run(struct shmtrain_store *store, shmtrain_worker *worker) {
    const char *name = store->visit.name;
    const bool has_model = store->visit.manifest->model[0] != '\0';
    const int state = shmt_visit_state(store, &store->error);
    if (state < 0) return state;
    if (state == 0)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "the run of store %s has ended: it can be observed, but not joined",
                         name);
    if (store->visit.manifest->fit_tolerance > 0)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "store %s is of an exact fit: it can be observed, but not joined",
                         name);
    if (has_model && worker)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "store %s trains the model \"%s\": join it without a worker function",
                         name, store->visit.manifest->model);
    if (!has_model && !worker)
        return shmt_fail(
            &store->error, SHMTRAIN_E_USAGE,
            "store %s is trained by an application's own functions: only that application can join it; others can observe it",
            name);
    return 0;
}

/* ---- places ---- */

/* A place is a worker's: as many seats, one behind the other, as the run's own workers have. Workers of guests have places of
 * their own, also where they have fewer threads, so that a worker of the run's is one process wherever it is looked at
 * (progress.c, stalls.c); with more threads they have several. */

static bool is_seat_free(const struct shmtrain_store *store, uint32_t seat) {
    return store->ops->occupied(store->job.store, seat) == 0 &&
           !shmt_mark_is_held(shmt_visit_file(store), SHMT_MARK_GUEST(seat));
}

static bool is_free(const struct shmtrain_store *store, uint32_t first, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!is_seat_free(store, first + i)) return false;
    return true;
}

/* Of how many workers of so many threads there is room for. */
static uint32_t count_free(const struct shmtrain_store *store, uint32_t seats_per_worker) {
    const uint32_t seats = shmt_seats_of_worker(&store->spec);
    uint32_t n = 0;
    for (uint32_t first = store->spec.n_seats - store->spec.n_guests; first < store->spec.n_seats; first += seats)
        n += is_free(store, first, seats);
    return n / (uint32_t)shmt_ceil_div(seats_per_worker, seats);
}

/* A seat that nobody has, but whose mark somebody holds: the maker, who mourns, for a moment, or what is left of a guest that has
 * died, until its last process has ended. Or one whose guest has died, and which the maker has not seen yet. */
static bool is_about_to_be_free(const struct shmtrain_store *store, uint32_t seat) {
    const uint32_t occupied = store->ops->occupied(store->job.store, seat);
    const bool held = shmt_mark_is_held(shmt_visit_file(store), SHMT_MARK_GUEST(seat));
    struct shmt_life worker;
    if (occupied == 0) return held;
    if (occupied == (uint32_t)getpid()) return false; /* mine, whose own marks I do not see */
    if (!held || occupied == SHMT_OCCUPIED_BY_NOBODY) return true;
    return store->ops->occupant(store->job.store, seat, &worker) != SHMT_OCCUPANT_NONE &&
           shmt_life_look(&worker) == SHMT_LIFE_IS_OVER;
}

static bool is_any_about_to_be_free(const struct shmtrain_store *store) {
    bool any = false;
    for (uint32_t seat = store->spec.n_seats - store->spec.n_guests; seat < store->spec.n_seats && !any; seat++)
        any = is_about_to_be_free(store, seat);
    return any;
}

/* For so many workers, as long as some seats are about to be free, the run goes on, and nobody wants to stop. */
static void wait_for_places(const struct stay *stay, uint64_t workers, uint32_t seats_per_worker) {
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    struct shmtrain_store *store = stay->store;
    struct shmt_error ignored = {0};
    while (count_free(store, seats_per_worker) < workers && is_any_about_to_be_free(store) && !shmt_stop_asked(store) &&
           shmt_visit_state(store, &ignored) == 1 && shmt_now_ns() < stay->until_ns)
        (void)nanosleep(&pause, NULL);
}

/* For workers with so many seats each. */
static int fail_full(struct stay *stay, uint32_t each) {
    struct shmtrain_store *store = stay->store;
    const char *name = store->visit.name;
    const uint32_t seats = shmt_seats_of_worker(&store->spec), needed = (uint32_t)shmt_ceil_div(each, seats);
    const uint32_t mine = (uint32_t)shmt_ceil_div(store->visit.n_seats, shmt_min_u64(each, seats));
    const uint32_t places = mine + count_free(store, seats), n = places / needed;
    if (store->spec.n_guests == 0)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "store %s has no places for guests: its run needs --guests N", name);
    if (n > 0)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "store %s has free places for %u workers, not for %u: use -w %u",
                         name, n, stay->crew.n_workers, n);
    if (places > 0)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "a worker of %u threads needs %u places, but store %s has %u free: use -t %u", each, needed, name,
                         places, places * seats);
    if (is_any_about_to_be_free(store))
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "store %s has no free place: processes that a dead guest has left behind still hold some; end them",
                         name);
    return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "store %s has no free place: guests have taken all of them", name);
}

static void drop_seat(const struct shmtrain_store *store, uint32_t seat) {
    store->ops->unreserve(store->job.store, seat);
    shmt_mark_drop(shmt_visit_file(store), SHMT_MARK_GUEST(seat));
}

/* 1: it is mine now. 0: somebody else's. The mark first: whoever has a seat without one counts as dead. */
static int take_seat(struct shmtrain_store *store, uint32_t seat) {
    int rc = shmt_mark_hold(shmt_visit_file(store), SHMT_MARK_GUEST(seat), &store->error);
    if (rc != 1) return rc;
    rc = store->ops->reserve(store->job.store, seat, &store->error);
    if (rc != 1) shmt_mark_drop(shmt_visit_file(store), SHMT_MARK_GUEST(seat));
    return rc;
}

/* The first n seats of a place, or none: as take_seat. All who come want its first seat first, so the place is that one's who
 * gets it. */
static int take_place(struct shmtrain_store *store, uint32_t first, uint32_t n) {
    uint32_t taken = 0;
    int rc = is_free(store, first, shmt_seats_of_worker(&store->spec));
    while (rc == 1 && taken < n) {
        rc = take_seat(store, first + taken);
        taken += rc == 1;
    }
    for (uint32_t i = 0; i < taken && rc != 1; i++) drop_seat(store, first + i);
    return rc;
}

/* Of a worker's seats those that come next and lie in one place. */
static uint32_t seats_in_next_place(const struct stay *stay) {
    const uint32_t each = stay->crew.n_seats / stay->crew.n_workers, left = each - stay->store->visit.n_seats % each;
    return (uint32_t)shmt_min_u64(left, shmt_seats_of_worker(&stay->store->spec));
}

/* As many as are free, of those that are still needed. */
static int take_free_seats(struct stay *stay) {
    struct shmtrain_store *store = stay->store;
    struct shmt_visit *visit = &store->visit;
    const uint32_t seats = shmt_seats_of_worker(&store->spec);
    for (uint32_t first = store->spec.n_seats - store->spec.n_guests;
         first < store->spec.n_seats && visit->n_seats < stay->crew.n_seats; first += seats) {
        const uint32_t n = seats_in_next_place(stay);
        const int rc = take_place(store, first, n);
        if (rc < 0) return rc;
        for (uint32_t i = 0; i < n && rc == 1; i++) visit->seat[visit->n_seats++] = first + i;
    }
    return 0;
}

/* Somebody else may have come first to places that were free: so it is tried once more when others have become free. */
static int take_seats(struct stay *stay) {
    const uint32_t each = stay->crew.n_seats / stay->crew.n_workers;
    const struct shmt_visit *visit = &stay->store->visit;
    int rc = take_free_seats(stay);
    if (rc == 0 && visit->n_seats < stay->crew.n_seats) {
        wait_for_places(stay, stay->crew.n_workers - visit->n_seats / each, each);
        rc = take_free_seats(stay);
    }
    if (rc < 0) return rc;
    return visit->n_seats == stay->crew.n_seats ? 0 : fail_full(stay, each);
}

/* Whoever sat on them has left or died; what nobody sat on is given back. */
static void drop_seats(const struct shmtrain_store *store) {
    for (uint32_t i = 0; i < store->visit.n_seats; i++) drop_seat(store, store->visit.seat[i]);
}

/* ---- the crew ---- */

/* As many workers as asked for, or as there are cores and places. Places on the machine are planned as if all seats of the run
 * were taken, so guests do not sit down on the cores of those who are there. */
static int make_crew(struct stay *stay) {
    struct shmtrain_store *store = stay->store;
    const struct shmt_config *c = &store->config;
    struct shmt_crew *crew = &stay->crew;
    const struct shmtrain_model *model = store->job.model;
    const enum shmt_seating seating = shmt_seating_of(model);
    const uint32_t threads = shmt_crew_threads(store, store->ops, seating);
    const uint32_t each = seating == SHMT_SEAT_OF_THREAD ? threads : 1;
    const int rc = shmt_crew_look_around(store, crew);
    if (rc < 0) return rc;
    const uint64_t places = store->spec.n_guests / shmt_seats_of_worker(&store->spec);
    const uint64_t wished = c->workers ? c->workers : shmt_min_u64(shmt_topo_cores(crew->topo), places);
    wait_for_places(stay, wished, each);
    const uint32_t most = (uint32_t)shmt_max_u64(1, count_free(store, each));
    crew->n_workers = (uint32_t)(c->workers ? wished : shmt_max_u64(1, shmt_min_u64(wished, most)));
    crew->n_threads = threads;
    crew->n_seats = crew->n_workers * each;
    crew->kind = strcmp(c->spawn, "threads") == 0 ? SHMT_TEAM_THREADS : SHMT_TEAM_PROCESSES;
    if (crew->n_workers > most) return fail_full(stay, each);
    store->visit.seat = calloc(crew->n_seats, sizeof *store->visit.seat);
    if (!store->visit.seat)
        return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for %u workers", crew->n_workers);
    /* The same plan as the run's, so that a seat is on the node on which its memory lies. */
    const uint32_t n_seats = store->spec.n_seats, lanes = shmt_seats_of_worker(&store->spec);
    const uint32_t side_by_side = model && !model->dense ? lanes : threads;
    return shmt_machine_make(c, crew->topo, n_seats / lanes, 0, side_by_side, n_seats, &store->log, &crew->machine,
                             &store->error);
}

/* Without its libraries a guest would fail in the middle of the run. */
static int find_libraries(struct stay *stay) {
    struct shmtrain_store *store = stay->store;
    const char *theirs = store->visit.manifest->blas;
    const int rc = store->job.model ? shmt_probe_libraries(store, store->job.model, &stay->crew) : 0;
    if (rc == 0 && store->job.model && strcmp(store->blas, theirs) != 0)
        shmt_log(&store->log, "the run of store %s has %s, but this program has %s: sums may differ in their last bits",
                 store->visit.name, theirs, store->blas);
    return rc;
}

/* Whoever joins takes the loops that the run has. Another build of this program may lack them. */
static int check_cpu(struct stay *stay) {
    struct shmtrain_store *store = stay->store;
    if (shmt_cpu_has(store->spec.cpu)) return 0;
    return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                     "the run of store %s uses loops for %s, which this program does not have: join with the program that "
                     "created it, or create it with --cpu portable",
                     store->visit.name, shmt_cpu_name((enum shmt_cpu)store->spec.cpu));
}

static int make_words(struct stay *stay) {
    void *page = mmap(NULL, sizeof *stay->words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return shmt_fail_errno(&stay->store->error, "not enough memory to join store %s", stay->store->visit.name);
    stay->words = page;
    return 0;
}

/* ---- while it goes on ---- */

static void part(struct shmtrain_store *store) {
    for (uint32_t i = 0; i < store->visit.n_seats; i++) store->ops->part(store->job.store, store->visit.seat[i]);
}

/* One thread has failed and left. Its seat is nobody's any more; the others go at the end of the epoch, if they are not killed
 * before. */
static void left(const struct shmt_workers *w, uint32_t seat) {
    shmt_mark_drop(shmt_visit_file(w->store), SHMT_MARK_GUEST(seat));
    part(w->store);
}

/* Likewise for a whole worker, which has died or returned: the abort word, which was just set, says which. */
static void rouse(const struct shmt_workers *w) {
    const uint32_t first = load_relaxed(w->abort), lanes = w->crew->n_seats / w->crew->n_workers;
    for (uint32_t i = 0; first >= 1 && first <= w->crew->n_workers && i < lanes; i++)
        shmt_mark_drop(shmt_visit_file(w->store), SHMT_MARK_GUEST(w->seat[(first - 1) * lanes + i]));
    part(w->store);
}

/* Wakes workers that wait for those of a run that is not there any more: nobody is harmed by its abort word. */
static void give_up_run(struct shmtrain_store *store) {
    _Atomic uint32_t *word = store->ops->abort_word(store->job.store);
    if (load_relaxed(word) == 0) store_release(word, SHMT_TEAM_KILLED); /* release: as in the supervisor */
    store->ops->rouse(store->job.store);
}

/* Tells of the epochs that workers of mine take part in. Those before are taken in without a word. */
static void report_epochs(struct shmtrain_store *store) {
    const uint32_t first = load_relaxed(store->job.admitted); /* one number, for display */
    if (first == 0) return;
    while (store->report.n_epochs + 1 < first && shmt_report_take_epoch(store)) continue;
    shmt_report_progress(store);
}

static int tick(struct shmtrain_store *store, const struct shmt_team *team) {
    (void)team;
    struct shmt_error ignored = {0}; /* it is asked for again in the end */
    report_epochs(store);
    shmt_progress_tick(store);
    const int state = shmt_visit_state(store, &ignored);
    if (state >= 0) return 0;
    give_up_run(store);
    return state;
}

/* The others end because of the run's abort word: how it ended, its maker will say in a moment. */
static int wait_for_verdict(struct shmtrain_store *store) {
    const struct timespec nap = {.tv_nsec = LOOK_NS};
    const uint64_t until_ns = shmt_now_ns() + (uint64_t)OUTCOME_MS * 1000000;
    int state;
    while ((state = shmt_visit_state(store, &store->error)) == 1 && shmt_now_ns() < until_ns) (void)nanosleep(&nap, NULL);
    return state;
}

static int run(struct stay *stay) {
    struct shmtrain_store *store = stay->store;
    const struct shmt_workers workers = {.store = store,
                                         .crew = &stay->crew,
                                         .abort = &stay->words->abort,
                                         .seat = store->visit.seat,
                                         .rouse = rouse,
                                         .left = left};
    if (store->listener.begin) store->listener.begin(store->listener.arg, &store->report);
    int rc = shmt_workers_run(&workers, &(struct shmt_driver){.tick = tick, .stop = part});
    if (rc == SHMTRAIN_E_STOPPED || (rc < 0 && store->error.status == 0)) {
        shmt_error_clear(&store->error);
        rc = wait_for_verdict(store);
        if (rc >= 0) rc = shmt_fail(&store->error, SHMTRAIN_E_DIED, "the run of store %s was given up", store->visit.name);
    } else if (rc == 0 && !shmt_stop_asked(store)) {
        rc = wait_for_verdict(store); /* so that the report is complete */
    }
    report_epochs(store);
    shmt_visit_refresh(store);
    return rc < 0 ? rc : 0;
}

/* ---- all ---- */

static int prepare(struct stay *stay, shmtrain_worker *worker, void *arg) {
    struct shmtrain_store *store = stay->store;
    int rc = check_run(store, worker);
    if (rc == 0 && !worker) rc = shmt_guest_data_open(&stay->data, store);
    if (rc == 0) rc = make_crew(stay);
    if (rc == 0) rc = check_cpu(stay);
    if (rc == 0) rc = find_libraries(stay);
    if (rc == 0) rc = make_words(stay);
    if (rc == 0) rc = take_seats(stay);
    if (rc < 0) return rc;
    store->job.guest = true;
    store->job.admitted = &stay->words->admitted;
    store->job.worker = worker;
    store->job.worker_arg = arg;
    store->job.settings.threads = stay->crew.n_threads;
    return 0;
}

static int join(struct shmtrain_store *store, const char *name, shmtrain_worker *worker, void *arg) {
    struct stay stay = {.store = store, .until_ns = shmt_now_ns() + (uint64_t)LINGER_MS * 1000000};
    int rc = shmt_visit_begin(store, name, true);
    if (rc < 0) return rc;
    rc = prepare(&stay, worker, arg);
    const bool has_run = rc == 0;
    if (has_run) rc = run(&stay);
    drop_seats(store);
    store->job.admitted = NULL;
    if (stay.words) munmap(stay.words, sizeof *stay.words);
    shmt_guest_data_close(&stay.data);
    store->job.train = store->job.valid = NULL;
    shmt_crew_free(&stay.crew);
    if (!has_run) shmt_store_forget_tables(store); /* who could not join has not come */
    return rc;
}

int shmtrain_store_join(struct shmtrain_store *store, const char *name, shmtrain_worker *worker, void *arg) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = join(store, name ? name : "", worker, arg);
    shmt_call_leave(store);
    return rc;
}
