/* Joining a run by name, as workers: see <shmtrain/store.h>.
 *
 * A guest has a team of its own, whose workers sit on places that the run keeps free. Its abort word is its own, too: whoever
 * fails here ends this team, not the run. The run is told by the marks (segment/named.h): the guest holds one for each seat,
 * from before it takes the seat until after it has left, and a seat without a mark is reclaimed by who made the store. In the
 * live modes the others go on then; in `aggregate` a gradient is missing, with replicas a part of the next merge, and the run
 * fails, as if a worker of its own had died.
 *
 * The other way round the guest looks at the mark of the run, ten times a second: when that is gone without a word, the run has
 * died, and the guest ends. */
#include "naming/join.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "naming/guest_data.h"
#include "naming/visit.h"
#include "base/cpu.h"
#include "keeping/parameters.h"
#include "sync/host.h"
#include "watching/progress.h"
#include "watching/report.h"
#include "watching/log_every.h"
#include "workers/probe.h"
#include "workers/run.h"
#include "workers/workers.h"

#define LOOK_NS    5000000
#define LINGER_MS  2000 /* how long the processes of a guest that has died may take to end */
#define OUTCOME_MS 5000 /* how long whoever made the store may take to say how its run ended */

/* Everything that one call of shmtrain_store_join holds. */
struct stay {
    struct shmt_run *run;
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

static int check_run(struct shmt_run *run, shmtrain_worker *worker) {
    const char *name = run->visit->name;
    const bool has_model = run->visit->manifest->model[0] != '\0';
    const int state = shmt_visit_state(run, &run->call->error);
    if (state < 0) return state;
    if (state == 0)
        return shmt_refuse(&run->call->error, "the run of store %s has ended: it can be observed, but not joined", name);
    if (run->visit->manifest->fit_tolerance > 0)
        return shmt_refuse(&run->call->error, "store %s is of an exact fit: it can be observed, but not joined", name);
    if (has_model && worker)
        return shmt_refuse(&run->call->error, "store %s trains the model \"%s\": join it without a worker function", name,
                           run->visit->manifest->model);
    if (!has_model && !worker)
        return shmt_refuse(
            &run->call->error,
            "store %s is trained by an application's own functions: only that application can join it; others can observe it",
            name);
    return 0;
}

/* ---- places ---- */

/* A place is a worker's: as many seats, one behind the other, as the run's own workers have. Workers of guests have places of
 * their own, also where they have fewer threads, so that a worker of the run's is one process wherever it is looked at
 * (progress.c, stalls.c); with more threads they have several. */

static bool is_seat_free(const struct shmt_run *run, uint32_t seat) {
    return run->backend->guests->occupied(run->job.store, seat) == 0 &&
           !shmt_mark_is_held(shmt_visit_file(run), SHMT_MARK_GUEST(seat));
}

static bool is_free(const struct shmt_run *run, uint32_t first, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!is_seat_free(run, first + i)) return false;
    return true;
}

/* Of how many workers of so many threads there is room for. */
static uint32_t count_free(const struct shmt_run *run, uint32_t seats_per_worker) {
    const uint32_t seats = shmt_seats_of_worker(&run->spec);
    uint32_t n = 0;
    for (uint32_t first = run->spec.n_seats - run->spec.n_guests; first < run->spec.n_seats; first += seats)
        n += is_free(run, first, seats);
    return n / (uint32_t)shmt_ceil_div(seats_per_worker, seats);
}

/* A seat that nobody has, but whose mark somebody holds: the maker, who reclaims, for a moment, or what is left of a guest that has
 * died, until its last process has ended. Or one whose guest has died, and which the maker has not seen yet. */
static bool is_about_to_be_free(const struct shmt_run *run, uint32_t seat) {
    const uint32_t occupied = run->backend->guests->occupied(run->job.store, seat);
    const bool held = shmt_mark_is_held(shmt_visit_file(run), SHMT_MARK_GUEST(seat));
    struct shmt_life worker;
    if (occupied == 0) return held;
    if (occupied == (uint32_t)getpid()) return false; /* mine, whose own marks I do not see */
    if (!held || occupied == SHMT_OCCUPIED_BY_NOBODY) return true;
    return run->backend->guests->occupant(run->job.store, seat, &worker) != SHMT_OCCUPANT_NONE &&
           shmt_life_look(&worker) == SHMT_LIFE_IS_OVER;
}

static bool is_any_about_to_be_free(const struct shmt_run *run) {
    bool any = false;
    for (uint32_t seat = run->spec.n_seats - run->spec.n_guests; seat < run->spec.n_seats && !any; seat++)
        any = is_about_to_be_free(run, seat);
    return any;
}

/* For so many workers, as long as some seats are about to be free, the run goes on, and nobody wants to stop. */
static void wait_for_places(const struct stay *stay, uint64_t workers, uint32_t seats_per_worker) {
    struct shmt_run *run = stay->run;
    struct shmt_error ignored = {0};
    while (count_free(run, seats_per_worker) < workers && is_any_about_to_be_free(run) && !shmt_stop_asked(run->call) &&
           shmt_visit_state(run, &ignored) == 1 && shmt_now_ns() < stay->until_ns)
        shmt_sleep_ns(LOOK_NS);
}

/* For workers with so many seats each. */
static int fail_full(struct stay *stay, uint32_t each) {
    struct shmt_run *run = stay->run;
    const char *name = run->visit->name;
    const uint32_t seats = shmt_seats_of_worker(&run->spec), needed = (uint32_t)shmt_ceil_div(each, seats);
    const uint32_t side_by_side = each < seats ? each : seats; /* of mine in one place */
    const uint32_t mine = side_by_side > 0 ? (uint32_t)shmt_ceil_div(run->visit->n_seats, side_by_side) : 0;
    const uint32_t places = mine + count_free(run, seats), n = needed > 0 ? places / needed : 0;
    if (run->spec.n_guests == 0)
        return shmt_refuse(&run->call->error, "store %s has no places for guests: its run needs --guests N", name);
    if (n > 0)
        return shmt_refuse(&run->call->error, "store %s has free places for %u workers, not for %u: use -w %u", name, n,
                           stay->crew.n_workers, n);
    if (places > 0)
        return shmt_refuse(&run->call->error, "a worker of %u threads needs %u places, but store %s has %u free: use -t %u",
                           each, needed, name, places, places * seats);
    if (is_any_about_to_be_free(run))
        return shmt_refuse(&run->call->error,
                           "store %s has no free place: processes that a dead guest has left behind still hold some; end them",
                           name);
    return shmt_refuse(&run->call->error, "store %s has no free place: guests have taken all of them", name);
}

static void drop_seat(const struct shmt_run *run, uint32_t seat) {
    run->backend->guests->unreserve(run->job.store, seat);
    shmt_mark_drop(shmt_visit_file(run), SHMT_MARK_GUEST(seat));
}

/* 1: it is mine now. 0: somebody else's. The mark first: whoever has a seat without one counts as dead. */
static int take_seat(struct shmt_run *run, uint32_t seat) {
    int rc = shmt_mark_hold(shmt_visit_file(run), SHMT_MARK_GUEST(seat), &run->call->error);
    if (rc != 1) return rc;
    rc = run->backend->guests->reserve(run->job.store, seat, &run->call->error);
    if (rc != 1) shmt_mark_drop(shmt_visit_file(run), SHMT_MARK_GUEST(seat));
    return rc;
}

/* The first n seats of a place, or none: as take_seat. All who come want its first seat first, so the place is that one's who
 * gets it. */
static int take_place(struct shmt_run *run, uint32_t first, uint32_t n) {
    uint32_t taken = 0;
    int rc = is_free(run, first, shmt_seats_of_worker(&run->spec));
    while (rc == 1 && taken < n) {
        rc = take_seat(run, first + taken);
        taken += rc == 1;
    }
    for (uint32_t i = 0; i < taken && rc != 1; i++) drop_seat(run, first + i);
    return rc;
}

/* Of a worker's seats those that come next and lie in one place. */
static uint32_t seats_in_next_place(const struct stay *stay) {
    const uint32_t each = stay->crew.n_seats / stay->crew.n_workers, left = each - stay->run->visit->n_seats % each;
    return (uint32_t)shmt_min_u64(left, shmt_seats_of_worker(&stay->run->spec));
}

/* As many as are free, of those that are still needed. */
static int take_free_seats(struct stay *stay) {
    struct shmt_run *run = stay->run;
    struct shmt_visit *visit = run->visit;
    const uint32_t seats = shmt_seats_of_worker(&run->spec);
    for (uint32_t first = run->spec.n_seats - run->spec.n_guests;
         first < run->spec.n_seats && visit->n_seats < stay->crew.n_seats; first += seats) {
        const uint32_t n = seats_in_next_place(stay);
        const int rc = take_place(run, first, n);
        if (rc < 0) return rc;
        for (uint32_t i = 0; i < n && rc == 1; i++) visit->seat[visit->n_seats++] = first + i;
    }
    return 0;
}

/* Somebody else may have come first to places that were free: so it is tried once more when others have become free. */
static int take_seats(struct stay *stay) {
    const uint32_t each = stay->crew.n_seats / stay->crew.n_workers;
    const struct shmt_visit *visit = stay->run->visit;
    int rc = take_free_seats(stay);
    if (rc == 0 && visit->n_seats < stay->crew.n_seats) {
        wait_for_places(stay, stay->crew.n_workers - visit->n_seats / each, each);
        rc = take_free_seats(stay);
    }
    if (rc < 0) return rc;
    return visit->n_seats == stay->crew.n_seats ? 0 : fail_full(stay, each);
}

/* Whoever sat on them has left or died; what nobody sat on is given back. */
static void drop_seats(const struct shmt_run *run) {
    for (uint32_t i = 0; i < run->visit->n_seats; i++) drop_seat(run, run->visit->seat[i]);
}

/* ---- the crew ---- */

/* As many workers as asked for, or as there are cores and places. Places on the machine are planned as if all seats of the run
 * were taken, so guests do not sit down on the cores of those who are there. */
static int make_crew(struct stay *stay) {
    struct shmt_run *run = stay->run;
    const struct shmt_config *c = run->config;
    struct shmt_crew *crew = &stay->crew;
    const struct shmtrain_model *model = run->job.model;
    const enum shmt_seating seating = shmt_seating_of(model);
    const uint32_t threads = shmt_crew_threads(run->call, run->config, run->backend, seating);
    const uint32_t each = seating == SHMT_SEAT_OF_THREAD ? threads : 1;
    if (c->parsed.spawn.kind == &SHMT_TEAM_FIBERS)
        return shmt_refuse(&run->call->error, "--spawn fibers: who joins a run shares its clock: use processes or threads");
    const int rc = shmt_crew_open_topo(run->call, crew);
    if (rc < 0) return rc;
    const uint64_t places = run->spec.n_guests / shmt_seats_of_worker(&run->spec);
    const uint64_t wished = c->workers ? c->workers : shmt_min_u64(shmt_topo_cores(crew->topo), places);
    wait_for_places(stay, wished, each);
    const uint32_t most = (uint32_t)shmt_max_u64(1, count_free(run, each));
    crew->n_workers = (uint32_t)(c->workers ? wished : shmt_max_u64(1, shmt_min_u64(wished, most)));
    crew->n_threads = threads;
    crew->n_seats = crew->n_workers * each;
    crew->kind = c->parsed.spawn.kind;
    if (crew->n_workers > most) return fail_full(stay, each);
    run->visit->seat = calloc(crew->n_seats, sizeof *run->visit->seat);
    if (!run->visit->seat) return shmt_no_memory(&run->call->error, "for %u workers", crew->n_workers);
    /* The same plan as the run's, so that a seat is on the node on which its memory lies. */
    const uint32_t n_seats = run->spec.n_seats, lanes = shmt_seats_of_worker(&run->spec);
    const uint32_t side_by_side = model && !model->traits.loops ? lanes : threads;
    return shmt_machine_make(c, crew->topo, n_seats / lanes, 0, side_by_side, n_seats, &run->call->log, &crew->machine,
                             &run->call->error);
}

/* Without its libraries a guest would fail in the middle of the run. */
static int find_libraries(struct stay *stay) {
    struct shmt_run *run = stay->run;
    const char *theirs = run->visit->manifest->blas;
    const int rc = run->job.model ? shmt_probe_libraries(run, run->job.model, &stay->crew) : 0;
    if (rc == 0 && run->job.model && strcmp(run->blas, theirs) != 0)
        shmt_log(&run->call->log, "the run of store %s has %s, but this program has %s: sums may differ in their last bits",
                 run->visit->name, theirs, run->blas);
    return rc;
}

/* Whoever joins takes the loops that the run has. Another build of this program may lack them. */
static int check_cpu(struct stay *stay) {
    struct shmt_run *run = stay->run;
    if (shmt_cpu_has(run->spec.cpu)) return 0;
    return shmt_refuse(&run->call->error,
                       "the run of store %s uses loops for %s, which this program does not have: join with the program that "
                       "created it, or create it with --cpu portable",
                       run->visit->name, shmt_cpu_name((enum shmt_cpu)run->spec.cpu));
}

static int make_words(struct stay *stay) {
    void *page = mmap(NULL, sizeof *stay->words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return shmt_fail_errno(&stay->run->call->error, "not enough memory to join store %s", stay->run->visit->name);
    stay->words = page;
    return 0;
}

/* ---- while it goes on ---- */

static void request_leave(void *arg) {
    const struct shmt_run *run = arg;
    for (uint32_t i = 0; i < run->visit->n_seats; i++) run->backend->guests->request_leave(run->job.store, run->visit->seat[i]);
}

/* One thread has failed and left. Its seat is free now; the others leave at the end of the epoch, if they are not killed before. */
static void left(const struct shmt_workers *w, uint32_t seat) {
    shmt_mark_drop(shmt_visit_file(w->run), SHMT_MARK_GUEST(seat));
    request_leave(w->run);
}

/* Likewise for a whole worker, which has died or returned: the abort word, which was just set, says which. */
static void worker_left(const struct shmt_workers *w) {
    const uint32_t first = load_relaxed(w->abort), lanes = w->crew->n_seats / w->crew->n_workers;
    for (uint32_t i = 0; first >= 1 && first <= w->crew->n_workers && i < lanes; i++)
        shmt_mark_drop(shmt_visit_file(w->run), SHMT_MARK_GUEST(w->seat[(first - 1) * lanes + i]));
    request_leave(w->run);
}

/* Wakes workers that wait for those of a run that is not there any more: nobody is harmed by its abort word. */
static void give_up_run(struct shmt_run *run) {
    _Atomic uint32_t *word = run->backend->store->abort_word(run->job.store);
    if (load_relaxed(word) == 0) store_release(word, SHMT_TEAM_KILLED); /* release: as in the supervisor */
    run->backend->store->wake(run->job.store);
}

/* Tells of the epochs that workers of mine take part in. Those before are taken in without a word. */
static void report_epochs(struct shmt_run *run) {
    const uint32_t first = load_relaxed(run->job.admitted); /* one number, for display */
    if (first == 0) return;
    while (run->report.n_epochs + 1 < first && shmt_report_take_epoch(run)) continue;
    shmt_report_progress(run);
}

static int due_ms(void *arg, int most) { return shmt_progress_due_ms(arg, most); }

static int tick(void *arg, const struct shmt_team *team) {
    struct shmt_run *run = arg;
    (void)team;
    struct shmt_error ignored = {0}; /* it is asked for again in the end */
    report_epochs(run);
    shmt_progress_tick(run);
    const int state = shmt_visit_state(run, &ignored);
    if (state >= 0) return 0;
    give_up_run(run);
    return state;
}

/* The others end because of the run's abort word: how it ended, its maker will say in a moment. */
static int wait_for_verdict(struct shmt_run *run) {
    const uint64_t until_ns = shmt_now_ns() + (uint64_t)OUTCOME_MS * 1000000;
    int state;
    while ((state = shmt_visit_state(run, &run->call->error)) == 1 && shmt_now_ns() < until_ns) shmt_sleep_ns(LOOK_NS);
    return state;
}

static int work(struct stay *stay) {
    struct shmt_run *run = stay->run;
    const struct shmt_workers workers = {.run = run,
                                         .crew = &stay->crew,
                                         .abort = &stay->words->abort,
                                         .ring_every = shmt_steps_ring_every(&run->spec, run->config->log_every),
                                         .seat = run->visit->seat,
                                         .on_abort = worker_left,
                                         .left = left};
    if (run->listener.begin) run->listener.begin(run->listener.arg, &run->report);
    const struct shmt_driver driver = {.arg = run, .fd = -1, .tick = tick, .due_ms = due_ms, .stop = request_leave};
    int rc = shmt_workers_run(&workers, &driver);
    if (rc == SHMTRAIN_E_STOPPED || (rc < 0 && run->call->error.status == 0)) {
        shmt_error_clear(&run->call->error);
        rc = wait_for_verdict(run);
        if (rc >= 0) rc = shmt_fail(&run->call->error, SHMTRAIN_E_DIED, "the run of store %s was given up", run->visit->name);
    } else if (rc == 0 && !shmt_stop_asked(run->call)) {
        rc = wait_for_verdict(run); /* so that the report is complete */
    }
    report_epochs(run);
    shmt_visit_refresh(run);
    return rc < 0 ? rc : 0;
}

/* ---- all ---- */

static int prepare(struct stay *stay, shmtrain_worker *worker, void *arg) {
    struct shmt_run *run = stay->run;
    int rc = check_run(run, worker);
    if (rc == 0 && !worker) rc = shmt_guest_data_open(&stay->data, run);
    if (rc == 0) rc = make_crew(stay);
    if (rc == 0) rc = check_cpu(stay);
    if (rc == 0) rc = find_libraries(stay);
    if (rc == 0) rc = make_words(stay);
    if (rc == 0) rc = take_seats(stay);
    if (rc < 0) return rc;
    run->job.guest = true;
    run->job.admitted = &stay->words->admitted;
    run->job.worker = worker;
    run->job.worker_arg = arg;
    run->job.settings.threads = stay->crew.n_threads;
    return 0;
}

int shmt_join(struct shmt_run *run, const char *name, shmtrain_worker *worker, void *arg) {
    struct stay stay = {.run = run, .until_ns = shmt_now_ns() + (uint64_t)LINGER_MS * 1000000};
    int rc = shmt_visit_begin(run, name, true);
    if (rc < 0) return rc;
    rc = prepare(&stay, worker, arg);
    const bool has_run = rc == 0;
    if (has_run) rc = work(&stay);
    drop_seats(run);
    run->job.admitted = NULL;
    if (stay.words) munmap(stay.words, sizeof *stay.words);
    shmt_opened_end(&run->job.opened);
    shmt_guest_data_close(&stay.data);
    run->job.train = run->job.valid = NULL;
    shmt_crew_free(&stay.crew);
    if (!has_run) { /* who could not join has not come */
        shmt_parameters_forget(run->params);
        shmt_visit_end(run);
    }
    return rc;
}
