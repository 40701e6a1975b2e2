/* From options to the machine: which backend, how many workers of how many threads, in processes or threads, on which cores. */
#include "workers/crew.h"

#include <stdlib.h>
#include <string.h>

#include "backends/plain.h"
#include "backends/shm/shm.h"
#include "configuration/call.h"
#include "math/parallel.h"

static const struct shmt_backend *const BACKENDS[] = {&SHMT_BACKEND_SHM, &SHMT_BACKEND_PLAIN, &SHMT_BACKEND_COPY};

const struct shmt_backend *shmt_backend_at(size_t i) { return i < sizeof BACKENDS / sizeof *BACKENDS ? BACKENDS[i] : NULL; }

const struct shmt_backend *shmt_backend_find(const char *name) {
    const struct shmt_backend *backend;
    for (size_t i = 0; (backend = shmt_backend_at(i)) && strcmp(backend->name, name) != 0; i++) continue;
    return backend; /* never NULL: the option table lets no other name through */
}

/* Seats for guests, in whole workers: as many as asked for, or as there can be. */
static uint32_t guests_of_config(const struct shmt_config *c, uint32_t n_seats, uint32_t seats_per_worker) {
    return (uint32_t)shmt_min_u64(c->guests, (SHMT_MAX_SEATS - n_seats) / seats_per_worker) * seats_per_worker;
}

enum shmt_seating shmt_seating_of(const struct shmtrain_model *model) {
    if (!model) return SHMT_SEAT_OF_FUNCTION;
    return model->traits.loops ? SHMT_SEAT_OF_LOOPS : SHMT_SEAT_OF_THREAD;
}

/* The option's, or fibers to replay a run; threads where the backend's seats cannot be taken in other processes. */
static const struct shmt_team_kind *kind_of(const struct shmt_config *config, const struct shmt_backend *backend) {
    const bool in_virtual_time = config->replay[0] && !shmt_config_is_given(config, "spawn");
    const struct shmt_team_kind *kind = in_virtual_time ? &SHMT_TEAM_FIBERS : config->parsed.spawn.kind;
    return kind->shares_process || (backend->caps & SHMT_CAP_PROCESSES) ? kind : &SHMT_TEAM_THREADS;
}

/* OMP_NUM_THREADS says how many threads a process may have ("4", or "4,2" for nested loops), so it lowers -t, but never raises
 * it: more threads than workers is something to be asked for. */
uint32_t shmt_crew_threads(const struct shmt_call *call, const struct shmt_config *config, const struct shmt_backend *backend,
                           enum shmt_seating seating) {
    const char *set = getenv("OMP_NUM_THREADS");
    char *end = NULL;
    const long most = set ? strtol(set, &end, 10) : 0;
    uint32_t threads = (uint32_t)config->threads;
    if (most >= 1 && most < threads && (*end == '\0' || *end == ',')) {
        shmt_log(&call->log, "each worker has %ld of %u threads, because OMP_NUM_THREADS is %.20s", most, threads, set);
        threads = (uint32_t)most;
    }
    const bool forked_loops = seating == SHMT_SEAT_OF_LOOPS && !kind_of(config, backend)->shares_process;
    if (threads > 1 && forked_loops && shmt_parallel_is_inherited()) {
        shmt_log(&call->log,
                 "each worker has 1 of %u threads, because this process uses OpenMP, whose threads a fork loses: use --spawn "
                 "threads",
                 threads);
        threads = 1;
    }
    return threads;
}

/* Cores and nodes that are not there can be planned for, but not worked on. */
static int check_machine(struct shmt_call *call, const struct shmt_topo *topo) {
    const char *variable = shmt_topo_variable();
    if (call->plans_only || shmt_topo_is_this_machine(topo)) return 0;
    return shmt_refuse(&call->error, "%s describes another machine, which only shmtrain topo can use: unset it",
                       variable ? variable : "hwloc's environment");
}

int shmt_crew_open_topo(struct shmt_call *call, struct shmt_crew *crew) {
    const int rc = shmt_topo_open(&crew->topo, &call->error);
    return rc < 0 ? rc : check_machine(call, crew->topo);
}

static const char *given_for_fibers(const struct shmt_config *c) {
    if (c->replay[0]) return "--replay";
    return c->sim[0] != '\0' ? "--sim" : shmt_config_is_given(c, "fiber-stack") ? "--fiber-stack" : NULL;
}

/* Fibers are one thread of one process, whose clock nobody else has. */
static int settle_fibers(struct shmt_call *call, const struct shmt_config *c, struct shmt_crew *crew) {
    const char *in_vain = given_for_fibers(c);
    if (crew->kind != &SHMT_TEAM_FIBERS && in_vain)
        return shmt_refuse(&call->error, "%s is for workers in virtual time: use --spawn fibers, or leave %s", in_vain,
                           c->replay[0] ? "out --spawn" : "it out");
    if (crew->kind != &SHMT_TEAM_FIBERS) return 0;
    if (c->replay[0] && (c->parsed.sim.n_deaths > 0 || c->on_stall == SHMT_STALL_KILL))
        return shmt_refuse(&call->error, "--replay: nobody dies in it: leave out %s",
                           c->parsed.sim.n_deaths > 0 ? "death= of --sim" : "--on-stall kill");
    if (crew->n_threads > 1) return shmt_refuse(&call->error, "--spawn fibers: each worker has one thread: use --threads 1");
    if (c->name[0])
        return shmt_refuse(&call->error, "--spawn fibers: nobody can join workers in virtual time: leave out --name");
    crew->virtual = (struct shmt_virtual){.seed = c->parsed.spawn.has_seed ? c->parsed.spawn.seed : c->seed,
                                          .stack_bytes = c->fiber_stack << 10,
                                          .sim = c->parsed.sim};
    crew->machine.bind = SHMT_BIND_NONE;
    return shmt_sim_check(&c->parsed.sim, "--sim", crew->n_workers, &call->error);
}

int shmt_crew_make(struct shmt_call *call, const struct shmt_config *c, const struct shmt_backend *backend,
                   enum shmt_seating seating, struct shmt_crew *out) {
    struct shmt_crew crew = {0};
    int rc = shmt_crew_open_topo(call, &crew);
    if (rc < 0) {
        shmt_crew_free(&crew);
        return rc;
    }
    crew.n_workers = c->workers ? (uint32_t)c->workers : backend->caps & SHMT_CAP_MANY ? shmt_topo_cores(crew.topo) : 1;
    crew.n_threads = shmt_crew_threads(call, c, backend, seating);
    const uint32_t seats_per_worker = seating == SHMT_SEAT_OF_THREAD || seating == SHMT_SEAT_OF_FIT ? crew.n_threads : 1;
    crew.n_seats = crew.n_workers * seats_per_worker;
    if (crew.n_seats > SHMT_MAX_SEATS) {
        rc = shmt_refuse(&call->error, "%u workers of %u threads: at most %d threads in all are possible", crew.n_workers,
                         crew.n_threads, SHMT_MAX_SEATS);
        shmt_crew_free(&crew);
        return rc;
    }
    crew.n_guests = c->name[0] && (backend->caps & SHMT_CAP_JOIN) && seating != SHMT_SEAT_OF_FIT
                        ? guests_of_config(c, crew.n_seats, seats_per_worker)
                        : 0;
    crew.kind = kind_of(c, backend);
    rc = shmt_machine_make(c, crew.topo, crew.n_workers, crew.n_guests / seats_per_worker, crew.n_threads,
                           crew.n_seats + crew.n_guests, &call->log, &crew.machine, &call->error);
    if (rc == 0) rc = settle_fibers(call, c, &crew);
    if (rc < 0) {
        shmt_crew_free(&crew);
        return rc;
    }
    /* Files in /dev/shm have none; who asks for them in so many words is told so. */
    if (c->name[0] && strcmp(c->hugepages, "auto") == 0) crew.machine.hugepages = "off";
    *out = crew;
    return 0;
}

void shmt_crew_free(struct shmt_crew *crew) {
    shmt_machine_free(&crew->machine);
    shmt_topo_close(crew->topo);
    *crew = (struct shmt_crew){0};
}
