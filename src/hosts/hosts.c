/* The other hosts of a run: see hosts.h. */
#include "hosts/hosts.h"

#include <errno.h>
#include <poll.h>
#include <shmtrain/hosts.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/shm/shm.h"
#include "carriers/mpi_stream.h"
#include "configuration/role.h"
#include "consistency/mode.h"
#include "hosts/hosts_priv.h"
#include "hosts/key_files.h"
#include "hosts/link_process.h"
#include "hosts/mpi_program.h"
#include "sync/host.h"
#include "workers/run.h"

#define LOOK_MS     100
#define END_LOOKS   100  /* at a link that is told to end, and takes 0.2 s where others are still to hear something, */
#define MPI_LOOKS   1200 /* ... or seconds, until MPI has ended on all hosts */
#define END_LOOK_NS UINT64_C(10000000)

/* Since begin, until close. */
static bool is_linked(const struct shmt_run *run) { return run->hosts->packet != NULL; }

/* ---- options ---- */

/* In this process. */
static _Atomic uint32_t mpi_is_begun, mpi_has_begun; /* a run has tried to; MPI has, on all hosts */

int shmtrain_mpi_has_begun(void) {
    return load_relaxed(&mpi_has_begun) != 0;
} /* relaxed: a flag that carries nothing but itself */

static int check_mpi(const struct shmt_config *c, struct shmt_error *e) {
    static const char *const OTHERS[] = {"rank", "key", "peers", "insecure", NULL};
    const char *vain = shmt_config_any_given(c, OTHERS);
    if (vain)
        return shmt_refuse(e, "--%s is for hosts that --hosts names: with MPI, its launcher knows them; leave it out", vain);
    /* relaxed: runs of one process that begin at the same time are not told apart by it, and MPI itself refuses the second one */
    if (load_relaxed(&mpi_is_begun))
        return shmt_refuse(
            e,
            "MPI begins once in each process that its launcher starts, and this one has had a run with it: make it one "
            "run, start another mpirun, or name the hosts (a:5000,b:5000)");
    if (!shmt_mpi_is_in_use()) return 0;
    return shmt_refuse(
        e,
        "this process has called MPI_Init, and for --hosts mpi shmtrain has a program of its own do that: name the "
        "hosts (a:5000,b:5000), or leave MPI to it");
}

/* What hosts cannot exchange is refused before this one listens, and waits for others. Where nothing names a mode a checkpoint may. */
static int check_mode(const struct shmt_config *c, struct shmt_error *e) {
    const bool named = strcmp(c->mode, "auto") != 0;
    const char *called_for = shmt_config_mode_of_axes(c);
    struct shmt_spec spec = {.policy = named ? c->parsed.mode : shmt_mode_find(called_for ? called_for : "sync")->policy,
                             .hosts = {.n = c->parsed.hosts.n, .wire = (uint32_t)c->wire, .top_k = (float)c->top_k}};
    if (!named && !called_for && c->resume) return 0;
    if (c->staleness[0]) spec.policy.staleness = c->parsed.staleness;
    shmt_axes_take(&c->axes, &spec.policy);
    return shmt_spec_check_exchange(&spec, e);
}

static int check_options(const struct shmt_run *run, struct shmt_error *e) {
    const struct shmt_config *c = run->config;
    const struct shmt_cluster *hosts = &c->parsed.hosts;
    static const char *const ALONE[] = {"key", "peers", "insecure", NULL};
    static const char *const NOT_YET[] = {"name", "record", "replay", NULL};
    const char *vain = shmt_config_any_given(c, ALONE);
    const int rc = shmt_role_check(c, e);
    if (rc < 0) return rc;
    if (!shmt_role_has_part(c))
        return shmt_refuse(e, "--role ps: worker hosts hold the parameters themselves, so this task has nothing to run");
    if (hosts->n == 0 && vain) return shmt_refuse(e, "--%s is for a run over several hosts: name them with --hosts", vain);
    if (hosts->n <= 1) return 0;
    if ((vain = shmt_config_any_given(c, NOT_YET)) || run->fits)
        return shmt_refuse(e, "over several hosts there is no --%s so far: leave it out", vain ? vain : "tolerance");
    if (c->checkpoint[0] && c->parsed.checkpoint_every.steps > 0)
        return shmt_refuse(e,
                           "over several hosts checkpoints are written behind epochs: give --checkpoint-every a time (60s), or "
                           "epochs (\"1 epoch\")");
    if (run->backend != &SHMT_BACKEND_SHM) return shmt_refuse(e, "--%s needs --backend shm", shmt_role_option(c));
    if (c->parsed.spawn.kind == &SHMT_TEAM_FIBERS)
        return shmt_refuse(e, "--%s: workers in virtual time have no network: leave out --spawn fibers", shmt_role_option(c));
    const int may = check_mode(c, e);
    if (may < 0) return may;
    if (hosts->mpi) return check_mpi(c, e);
    if ((c->key[0] != '\0') != (c->peers[0] != '\0'))
        return shmt_refuse(e, "--key and --peers belong together: this host's key, and those of all");
    if (c->key[0] && c->insecure) return shmt_refuse(e, "--insecure is to go without keys: leave it out, or --key and --peers");
    if (c->key[0] || c->insecure || shmt_cluster_is_loopback(hosts, shmt_role_text(c))) return 0;
    return shmt_refuse(
        e,
        "over a network hosts need keys: make one on each with shmtrain keygen, and use --key and --peers; or say --insecure "
        "where nobody else can reach the ports");
}

static int make_plan(const struct shmt_run *run, struct shmt_link_plan *out, struct shmt_error *e) {
    const struct shmt_config *c = run->config;
    *out = (struct shmt_link_plan){.hosts = c->parsed.hosts,
                                   .hosts_text = shmt_role_text(c),
                                   .self = shmt_config_host(c),
                                   .has_keys = c->key[0] != '\0',
                                   .lost_ns = c->parsed.host_timeout_ns};
    if (out->hosts.mpi) return shmt_mpi_program_find(out->hosts.mpi, out->mpi_program, e);
    return out->has_keys ? shmt_key_files_read(c->key, c->peers, out->self, out->hosts.n, &out->keys, e) : 0;
}

/* ---- the desk ---- */

/* Its wait status, when it has ended; after so many looks it is killed. 0: an application that ignores SIGCHLD, or waits for everybody, was
 * faster. */
static int await_end(pid_t link, int looks) {
    int status = 0;
    pid_t got = 0;
    for (int i = 0; i < looks && (got == 0 || (got < 0 && errno == EINTR)); i++) {
        got = waitpid(link, &status, WNOHANG);
        if (got == 0) shmt_host()->sleep_until(shmt_now_ns() + END_LOOK_NS);
    }
    if (got == 0) kill(link, SIGKILL);
    while (got == 0 || (got < 0 && errno == EINTR)) got = waitpid(link, &status, 0);
    return got > 0 ? status : 0;
}

/* Our end is closed for all who have it, forks of this process among them; and who does not hear that, because it is stopped, is
 * ended. Its wait status; 0: an application that ignores SIGCHLD, or waits for everybody, was faster. */
static int end_link(const struct shmt_run *run) {
    struct shmt_hosts *h = run->hosts;
    const int looks = run->config->parsed.hosts.mpi ? MPI_LOOKS : END_LOOKS;
    if (h->desk >= 0) shutdown(h->desk, SHUT_RDWR);
    const int status = await_end(h->link, looks);
    h->link = 0;
    return status;
}

void shmt_hosts_reap(struct shmt_hosts *h) {
    if (h->ending > 0) (void)await_end(h->ending, MPI_LOOKS);
    h->ending = 0;
}

/* The link has ended without a word. */
static void note_death(const struct shmt_run *run) {
    struct shmt_hosts *h = run->hosts;
    const pid_t link = h->link;
    const int status = end_link(run);
    const bool killed = WIFSIGNALED(status);
    if (killed)
        shmt_fail(&h->verdict, SHMTRAIN_E_DIED, "the link to other hosts (process %d) was killed by signal %d (%s)", (int)link,
                  WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        shmt_fail(&h->verdict, SHMTRAIN_E_DIED, "the link to other hosts (process %d) has died", (int)link);
    h->is_over = true;
}

static void take_last_word(struct shmt_run *run) {
    struct shmt_hosts *h = run->hosts;
    const struct shmt_config *c = run->config;
    struct shmt_desk_over over = {.ender = SHMT_NO_ENDER};
    char name[SHMT_MOST_HOST_TEXT];
    h->is_over = true;
    if (h->packet->n == sizeof over) memcpy(&over, h->packet->bytes, sizeof over);
    if (h->packet->status < 0) shmt_fail(&h->verdict, h->packet->status, "%.*s", (int)sizeof over.text, over.text);
    run->report.sent_bytes = over.sent_bytes;
    run->report.received_bytes = over.received_bytes;
    if (over.ender >= c->parsed.hosts.n || over.ender == shmt_config_host(c) || shmt_stop_asked(run->call)) return;
    run->ended_by_host = true;
    shmt_hosts_name(run, over.ender, name);
    shmt_log(&run->call->log, "host %u (%s) has ended the run", over.ender, name);
}

/* Lines for the log are passed on, and the last word is noted. 1: another packet is in hand; 0: none has come; -1: the link is over. */
static int hear(struct shmt_run *run, int wait_ms) {
    struct shmt_hosts *h = run->hosts;
    struct shmt_desk_packet *out = h->packet;
    while (!h->is_over) {
        const int got = shmt_desk_receive(h->desk, wait_ms, out, NULL);
        if (got == 0) return 0;
        if (got < 0) {
            note_death(run);
        } else if (out->kind == SHMT_DESK_OVER) {
            take_last_word(run);
        } else if (out->kind == SHMT_DESK_NOTE) {
            shmt_log(&run->call->log, "%s", shmt_desk_text(out));
        } else {
            return 1;
        }
    }
    return -1;
}

static int fail_as_link(struct shmt_run *run) {
    const struct shmt_error *v = &run->hosts->verdict;
    if (v->status == 0)
        return shmt_fail(&run->call->error, SHMTRAIN_E_DIED, "the link to other hosts has ended before its time");
    return shmt_fail(&run->call->error, v->status, "%s", v->text);
}

/* If the link is gone, we hear why at the next look: that is no failure here. */
static int tell_link(struct shmt_run *run, enum shmt_desk_kind kind, const void *bytes, uint32_t n, int pass) {
    struct shmt_desk_packet *packet = run->hosts->packet;
    packet->kind = kind;
    packet->n = n;
    memcpy(packet->bytes, bytes, n);
    if (shmt_desk_send(run->hosts->desk, packet, pass) == 0 || errno == EPIPE || errno == ECONNRESET) return 0;
    return shmt_fail_errno(&run->call->error, "cannot tell the link to other hosts what to do");
}

/* The next packet, which is to be of this kind. A stop ends the wait. */
static int await(struct shmt_run *run, enum shmt_desk_kind kind) {
    for (;;) {
        struct pollfd pollfd[2] = {{.fd = run->hosts->desk, .events = POLLIN}, {.fd = run->call->stop_fd, .events = POLLIN}};
        (void)poll(pollfd, 2, LOOK_MS); /* interrupted: look at once */
        const int got = hear(run, 0);
        if (got < 0) return fail_as_link(run);
        if (got == 1 && run->hosts->packet->kind != kind)
            return shmt_fail(&run->call->error, SHMTRAIN_E_SYSTEM, "the link has lost its place");
        if (got == 1) return 0;
        if (shmt_stop_asked(run->call))
            return shmt_fail(&run->call->error, SHMTRAIN_E_STOPPED, "stopped while waiting for other hosts");
        if ((double)(shmt_now_ns() - run->began_ns) * 1e-9 >= run->config->time_limit) /* NaN: there is none */
            return shmt_fail(&run->call->error, SHMTRAIN_E_STOPPED, "the time limit has come while waiting for other hosts");
    }
}

/* ---- a run ---- */

/* Of hosts that no option names, as they came with the packet in hand. */
static int keep_names(struct shmt_run *run) {
    const uint64_t bytes = (uint64_t)run->config->parsed.hosts.n * SHMT_MPI_NAME;
    if (!run->config->parsed.hosts.mpi) return 0;
    if (run->hosts->packet->n != bytes) return shmt_fail(&run->call->error, SHMTRAIN_E_SYSTEM, "the link has lost its place");
    run->hosts->names = malloc(bytes);
    if (!run->hosts->names) return shmt_no_memory(&run->call->error, "for names of hosts");
    memcpy(run->hosts->names, run->hosts->packet->bytes, bytes);
    return 0;
}

void shmt_hosts_name(const struct shmt_run *run, uint32_t rank, char out[SHMT_MOST_HOST_TEXT]) {
    const struct shmt_config *c = run->config;
    if (!c->parsed.hosts.mpi)
        shmt_cluster_name(&c->parsed.hosts, shmt_role_text(c), rank, "", out);
    else if (run->hosts->names)
        snprintf(out, SHMT_MOST_HOST_TEXT, "%.*s", SHMT_MPI_NAME, run->hosts->names + (size_t)rank * SHMT_MPI_NAME);
    else
        snprintf(out, SHMT_MOST_HOST_TEXT, "of MPI");
}

int shmt_hosts_begin(struct shmt_run *run) {
    struct shmt_error *e = &run->call->error;
    int rc = check_options(run, e);
    shmt_hosts_reap(run->hosts);
    *run->hosts = (struct shmt_hosts){.desk = -1};
    if (rc < 0 || run->config->parsed.hosts.n <= 1) return rc;
    run->hosts->packet = malloc(sizeof *run->hosts->packet);
    if (!run->hosts->packet) return shmt_no_memory(e, "for packets to the link");
    struct shmt_link_plan *plan = malloc(sizeof *plan); /* with secrets */
    if (!plan) return shmt_no_memory(e, "for the link");
    rc = make_plan(run, plan, e);
    if (rc == 0 && plan->hosts.mpi) store_relaxed(&mpi_is_begun, 1);
    if (rc == 0) rc = shmt_link_fork(plan, &run->hosts->desk, &run->hosts->link, e);
    explicit_bzero(plan, sizeof *plan);
    free(plan);
    if (rc == 0) rc = await(run, SHMT_DESK_OPEN);
    if (rc == 0 && run->config->parsed.hosts.mpi) store_relaxed(&mpi_has_begun, 1);
    return rc == 0 ? keep_names(run) : rc;
}

int shmt_hosts_gather(struct shmt_run *run, const void *text, uint32_t n,
                      int (*take)(struct shmt_run *run, const struct shmt_desk_packet *said, void *arg), void *arg) {
    int rc = tell_link(run, SHMT_DESK_AGREE, text, n, -1);
    for (uint32_t host = 0; host < run->config->parsed.hosts.n && rc == 0; host++) {
        rc = await(run, SHMT_DESK_SAID);
        if (rc == 0) rc = take(run, run->hosts->packet, arg);
    }
    return rc;
}

/* What nobody has typed, and what follows from each host's number of workers where it is left to the run. */
static bool follows_from_workers(const struct shmt_run *run, const char *fact) {
    static const char *const FACTS[] = {"item", "rate", "momentum", "warmup"};
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++)
        if (strcmp(fact, FACTS[i]) == 0) return !shmt_config_is_given(run->config, fact);
    return false;
}

static int compare(struct shmt_run *run, const struct shmt_desk_packet *said, void *arg) {
    const struct shmt_facts *ours = arg;
    struct shmt_difference d;
    char name[SHMT_MOST_HOST_TEXT], remedy[160] = "give all hosts the same data and options";
    if (!shmt_facts_differ(ours, said->bytes, said->n, &d)) return 0;
    shmt_hosts_name(run, said->rank, name);
    if (follows_from_workers(run, d.name))
        snprintf(remedy, sizeof remedy,
                 "it follows from the number of workers: give all hosts the same --%.20s, or as many workers", d.name);
    return shmt_refuse(&run->call->error,
                       "host %u (%.80s) and this one, %u, differ in %s: \"%.100s\" there, \"%.100s\" here; %s", said->rank,
                       name, shmt_config_host(run->config), d.name, d.theirs, d.ours, remedy);
}

int shmt_hosts_agree(struct shmt_run *run, const struct shmt_agreed *what) {
    if (!is_linked(run)) return 0;
    struct shmt_facts *facts = malloc(sizeof *facts);
    if (!facts) return shmt_no_memory(&run->call->error, "to agree with other hosts");
    shmt_agreement_state(run, what, facts);
    const int rc = facts->full ? shmt_refuse(&run->call->error, "hosts cannot agree on so many tables")
                               : shmt_hosts_gather(run, facts->text, facts->n, compare, facts);
    free(facts);
    return rc;
}

/* Who has another mode, or does not resume, says something else here: what differs is named. */
static int add_workers(struct shmt_run *run, const struct shmt_desk_packet *said, void *arg) {
    static const char FORMAT[] = "resume=%3s\n" SHMT_FACT_QUORUM "=yes\nworkers=%5u\nseats=%5u\n";
    char text[160], resume[4] = "", name[SHMT_MOST_HOST_TEXT];
    unsigned int n_workers = 0, n_seats = 0;
    snprintf(text, sizeof text, "%.*s", (int)said->n, (const char *)said->bytes);
    const bool good = sscanf(text, FORMAT, resume, &n_workers, &n_seats) == 3;
    if (!good || strcmp(resume, run->config->resume ? "yes" : "no") != 0) {
        const int rc = compare(run, said, arg);
        if (rc < 0) return rc;
    }
    if (good && n_workers > 0 && n_seats >= n_workers && n_seats <= SHMT_MAX_SEATS) {
        run->hosts->n_workers += n_workers;
        run->hosts->n_seats += n_seats;
        return 0;
    }
    shmt_hosts_name(run, said->rank, name);
    return shmt_refuse(&run->call->error, "host %u (%.80s) does not say how many workers it has", said->rank, name);
}

int shmt_hosts_count(struct shmt_run *run, uint32_t n_workers, uint32_t n_seats) {
    if (!is_linked(run) || run->hosts->n_workers > 0) return 0;
    struct shmt_facts *facts = calloc(1, sizeof *facts);
    if (!facts) return shmt_no_memory(&run->call->error, "to agree with other hosts");
    shmt_facts_add(facts, "resume", "%s", run->config->resume ? "yes" : "no"); /* as in agreement.c */
    shmt_facts_add(facts, SHMT_FACT_QUORUM, "yes");
    shmt_facts_add(facts, "workers", "%u", n_workers);
    shmt_facts_add(facts, "seats", "%u", n_seats);
    const int rc = shmt_hosts_gather(run, facts->text, facts->n, add_workers, facts);
    free(facts);
    return rc;
}

int shmt_hosts_join(struct shmt_run *run) {
    if (!is_linked(run)) return 0;
    const struct shmt_desk_work work = {.spec = run->spec, .scores = shmt_job_validates(&run->job)};
    run->hosts->has_joined = true;
    return tell_link(run, SHMT_DESK_WORK, &work, sizeof work, shmt_shm_fd(run->job.store));
}

static void give_up(struct shmt_run *run) {
    _Atomic uint32_t *const abort = run->backend->store->abort_word(run->job.store);
    /* release, as all do who set it: nothing is read on its strength; waiters look with relaxed loads */
    if (load_relaxed(abort) == 0) store_release(abort, SHMT_TEAM_KILLED);
    run->backend->store->wake(run->job.store);
}

int shmt_hosts_tick(struct shmt_run *run) {
    struct shmt_hosts *h = run->hosts;
    if (!is_linked(run) || h->is_over) return 0;
    if (hear(run, 0) >= 0 || h->verdict.status == 0) return 0;
    give_up(run);
    return h->verdict.status;
}

/* A worker's failure counts, unless the link has told the workers to end; what it says of a run that was given up is nothing new. */
static int judge(struct shmt_run *run, int rc) {
    const struct shmt_error *v = &run->hosts->verdict;
    if (v->status == 0 || v->status == SHMTRAIN_E_STOPPED) return rc;
    if (rc == 0) return fail_as_link(run);
    if (rc != SHMTRAIN_E_STOPPED && run->call->error.status != 0) return rc;
    shmt_error_clear(&run->call->error);
    return fail_as_link(run);
}

static int ignore(struct shmt_run *run, const struct shmt_desk_packet *said, void *arg) {
    (void)run;
    (void)said;
    (void)arg;
    return 0;
}

/* All have agreed that nothing is left to do, but some may not have heard it from all. Who is in this round has: if it ends otherwise,
 * others have left because they know, too. */
static void take_leave(struct shmt_run *run) {
    (void)shmt_hosts_gather(run, "", 0, ignore, NULL);
    shmt_error_clear(&run->call->error);
}

int shmt_hosts_end(struct shmt_run *run, int rc) {
    if (!is_linked(run)) return rc;
    if (!run->hosts->has_joined) {
        if (rc == 0) take_leave(run);
        return rc;
    }
    if (rc < 0) give_up(run); /* also where nobody has told the link */
    while (!run->hosts->is_over && hear(run, LOOK_MS) >= 0)
        if (shmt_stop_asked(run->call) && rc < 0) break;
    return judge(run, rc);
}

void shmt_hosts_close(struct shmt_run *run) {
    struct shmt_hosts *h = run->hosts;
    if (!is_linked(run)) return;
    /* MPI ends on all hosts together: what the application still has to do, as to save its model, does not wait for that. */
    if (h->link > 0 && run->config->parsed.hosts.mpi) {
        shutdown(h->desk, SHUT_RDWR);
        h->ending = h->link;
    } else if (h->link > 0) {
        (void)end_link(run);
    }
    if (h->desk >= 0) close(h->desk);
    free(h->packet);
    free(h->names);
    *h = (struct shmt_hosts){.desk = -1, .ending = h->ending};
}
