/* The link's process: see link_process.h. One thread, beside those of the carrier's library. */
#include "hosts/link_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/shm/shm.h"
#include "base/process.h"
#include "carriers/mpi_carrier.h"
#include "carriers/mpi_stream.h"
#include "hosts/waiting.h"
#include "link/exchange.h"
#include "runtime/settle.h"
#include "sync/host.h"

_Static_assert(sizeof(struct shmt_desk_work) <= SHMT_MOST_AGREED, "a spec is one packet");

#define RUN       1                      /* all hosts of a run have the same list, which they compare */
#define START_NS  UINT64_C(600000000000) /* how long to wait for hosts that have not come */
#define QUIET_NS  UINT64_C(2000000000)   /* until somebody hears that MPI has not started yet, */
#define REMIND_NS UINT64_C(60000000000)  /* ... and again */
#define LOOK_NS   UINT64_C(250000000)    /* between two looks at who is there */
#define FLUSH_NS  UINT64_C(200000000)    /* for what was said, before a host leaves a run that it has given up */

struct server {
    const struct shmt_link_plan *plan;
    int desk;
    bool hung_up;
    struct shmt_carrier *carrier;
    struct shmt_lanes *lanes;
    struct shmt_agreement *agreement;
    uint64_t look_ns;
    uint64_t remind_ns, give_up_ns; /* while MPI starts */
    struct shmt_waiting waiting;
    bool suspected[SHMT_MAX_HOSTS];
    uint32_t ender;
    pid_t parent;
    struct shmt_desk_packet in, out;
};

static void say(struct server *s, enum shmt_desk_kind kind, const char *text) {
    s->out.kind = kind;
    s->out.rank = s->plan->self;
    shmt_desk_write(&s->out, text);
    if (shmt_desk_send(s->desk, &s->out, -1) < 0) s->hung_up = true;
}

/* ---- who is there ---- */

static void look_for_missing(struct server *s, bool thorough) {
    static char line[SHMT_WAITING_LINE];
    if (shmt_waiting_look(&s->waiting, thorough, line)) say(s, SHMT_DESK_NOTE, line);
}

static void look_for_suspects(struct server *s) {
    char line[SHMT_HOST_NAME + 80];
    for (uint32_t host = 0; host < s->plan->hosts.n; host++) {
        const enum shmt_peer_state state = shmt_lanes_peer(s->lanes, host, NULL);
        const bool suspect = state == SHMT_PEER_SUSPECT, back = state == SHMT_PEER_THERE && s->suspected[host];
        if (host == s->plan->self || (!back && (!suspect || s->suspected[host]))) continue;
        snprintf(line, sizeof line, back ? "%s is there again" : "%s is silent: it has %.0f s to come back",
                 shmt_lanes_name(s->lanes, host), (double)(s->plan->lost_ns - SHMT_LANES_SUSPECT) * 1e-9);
        say(s, SHMT_DESK_NOTE, line);
        s->suspected[host] = suspect;
    }
}

/* The other end of the desk is closed: its process has ended, or has no use for us any more. */
static bool is_hung_up(const struct server *s) {
    char byte;
    return recv(s->desk, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool is_wanted(void *arg) {
    struct server *s = arg;
    s->hung_up = s->hung_up || is_hung_up(s) || getppid() != s->parent; /* forks of it may have its end of the desk */
    return !s->hung_up;
}

/* While MPI starts, which takes until all hosts do it. */
static bool awaits_mpi(void *arg) {
    struct server *s = arg;
    const uint64_t now_ns = shmt_now_ns();
    if (now_ns >= s->remind_ns) {
        say(s, SHMT_DESK_NOTE, "waiting for MPI, which starts when all hosts are there");
        s->remind_ns = now_ns + REMIND_NS;
    }
    return now_ns < s->give_up_ns && is_wanted(s);
}

static bool goes_on(void *arg) {
    struct server *s = arg;
    const uint64_t now_ns = shmt_now_ns();
    const bool thorough = now_ns >= s->look_ns;
    if (thorough) s->look_ns = now_ns + LOOK_NS;
    look_for_missing(s, thorough);
    if (thorough) look_for_suspects(s);
    return is_wanted(s);
}

/* ---- the network ---- */

static int open_mpi(struct server *s, struct shmt_error *e) {
    const struct shmt_link_plan *plan = s->plan;
    const struct shmt_mpi_spec spec = {
        .self = plan->self, .n_hosts = plan->hosts.n, .program = plan->mpi_program, .goes_on = awaits_mpi, .arg = s};
    s->remind_ns = shmt_now_ns() + QUIET_NS;
    s->give_up_ns = shmt_now_ns() + START_NS;
    const int rc = shmt_mpi_open(&spec, &s->carrier, e);
    for (uint32_t host = 0; host < plan->hosts.n && rc == 0; host++)
        snprintf((char *)s->out.bytes + (size_t)host * SHMT_MPI_NAME, SHMT_MPI_NAME, "%s", shmt_mpi_name_of(s->carrier, host));
    s->out.n = rc == 0 ? plan->hosts.n * SHMT_MPI_NAME : 0;
    return rc;
}

static int open_zmq(struct server *s, struct shmt_error *e) {
    const struct shmt_link_plan *plan = s->plan;
    static char endpoint[SHMT_MAX_HOSTS][SHMT_MOST_HOST_TEXT], listen[SHMT_MOST_HOST_TEXT];
    const char *endpoints[SHMT_MAX_HOSTS];
    shmt_cluster_listen(&plan->hosts, plan->hosts_text, plan->self, listen);
    for (uint32_t host = 0; host < plan->hosts.n; host++) {
        shmt_cluster_name(&plan->hosts, plan->hosts_text, host, "tcp://", endpoint[host]);
        endpoints[host] = endpoint[host];
    }
    const struct shmt_zmq_spec spec = {.self = plan->self,
                                       .n_hosts = plan->hosts.n,
                                       .listen = listen,
                                       .endpoint = endpoints,
                                       .keys = plan->has_keys ? &plan->keys : NULL};
    return shmt_zmq_open(&spec, &s->carrier, e);
}

static int make_lanes(struct server *s, struct shmt_error *e) {
    const struct shmt_link_plan *plan = s->plan;
    static char name[SHMT_MAX_HOSTS][SHMT_MOST_HOST_TEXT];
    const char *address[SHMT_MAX_HOSTS];
    for (uint32_t host = 0; host < plan->hosts.n; host++) {
        if (plan->hosts.mpi)
            snprintf(name[host], sizeof name[host], "%s", shmt_mpi_name_of(s->carrier, host));
        else
            shmt_cluster_name(&plan->hosts, plan->hosts_text, host, "", name[host]);
        address[host] = name[host];
    }
    const struct shmt_lanes_spec spec = {.carrier = s->carrier,
                                         .self = plan->self,
                                         .n_hosts = plan->hosts.n,
                                         .run = RUN,
                                         .life = shmt_life_begins_ns(), /* greater in each life of this host */
                                         .window_bytes = SHMT_LANES_WINDOW,
                                         .beat_ns = SHMT_LANES_BEAT,
                                         .suspect_ns = SHMT_LANES_SUSPECT,
                                         .lost_ns = plan->lost_ns,
                                         .address = address};
    int rc = shmt_lanes_make(&spec, &s->lanes, e);
    if (rc == 0) rc = shmt_agreement_make(s->lanes, plan->self, plan->hosts.n, goes_on, s, &s->agreement, e);
    return rc;
}

static int open_all(struct server *s, struct shmt_error *e) {
    int rc = s->plan->hosts.mpi ? open_mpi(s, e) : open_zmq(s, e);
    if (rc == 0) rc = make_lanes(s, e);
    if (rc == 0) shmt_waiting_begin(&s->waiting, s->lanes, s->plan->self, s->plan->hosts.n);
    return rc;
}

static void close_all(struct server *s) {
    shmt_agreement_free(s->agreement);
    shmt_lanes_free(s->lanes);
    if (s->carrier) shmt_carrier_close(s->carrier);
}

/* ---- what the run asks for ---- */

static int agree(struct server *s, struct shmt_error *e) {
    const int rc = shmt_agreement_gather(s->agreement, s->in.bytes, s->in.n, START_NS, e);
    for (uint32_t host = 0; host < s->plan->hosts.n && rc == 0; host++) {
        const unsigned char *text = shmt_agreement_text(s->agreement, host, &s->out.n);
        s->out.kind = SHMT_DESK_SAID;
        s->out.rank = host;
        memcpy(s->out.bytes, text, s->out.n);
        if (shmt_desk_send(s->desk, &s->out, -1) < 0)
            return shmt_fail(e, SHMTRAIN_E_STOPPED, "the run of this host was given up");
    }
    return rc;
}

/* At the link's seat, to the end. */
static int work(struct server *s, int store_fd, struct shmt_error *e) {
    static struct shmt_desk_work work;
    struct shmt_store *store;
    if (s->in.n != sizeof work || store_fd < 0) return shmt_fail(e, SHMTRAIN_E_SYSTEM, "the link has got no store");
    memcpy(&work, s->in.bytes, sizeof work);
    int rc = shmt_shm_attach(&work.spec, store_fd, 0, &store, e);
    close(store_fd);
    if (rc < 0) return rc;
    const struct shmt_exchange_place place = {.backend = &SHMT_BACKEND_SHM,
                                              .store = store,
                                              .spec = &work.spec,
                                              .lanes = s->lanes,
                                              .agreement = s->agreement,
                                              .start_ns = START_NS,
                                              .goes_on = goes_on,
                                              .arg = s,
                                              .begins = true,
                                              .ender_out = &s->ender,
                                              .scores = work.scores};
    rc = shmt_exchange_run(&place, e);
    SHMT_BACKEND_SHM.store->destroy(store);
    return rc;
}

/* Until the run is over, or given up. */
static int serve(struct server *s, struct shmt_error *e) {
    int rc = 0, store_fd;
    while (rc == 0 && goes_on(s)) {
        const int got = shmt_desk_receive(s->desk, 0, &s->in, &store_fd);
        if (got == 1 && s->in.kind == SHMT_DESK_WORK) return work(s, store_fd, e);
        if (got == 1 && store_fd >= 0) close(store_fd);
        if (got == 1 && s->in.kind == SHMT_DESK_AGREE) rc = agree(s, e);
        if (got == 0) rc = shmt_agreement_idle(s->agreement, e);
        if (got < 0) s->hung_up = true;
    }
    return rc < 0 ? rc : shmt_fail(e, SHMTRAIN_E_STOPPED, "the run of this host was given up");
}

/* What this host has said still counts: who does not agree with it is to hear why. */
static void part(struct server *s) {
    const uint64_t until_ns = shmt_now_ns() + FLUSH_NS;
    struct shmt_error e = {0};
    struct shmt_message m;
    int rc = 0;
    while (rc >= 0 && !shmt_lanes_are_empty(s->lanes) && shmt_now_ns() < until_ns)
        if ((rc = shmt_lanes_receive(s->lanes, until_ns, &m, NULL, &e)) == 1) shmt_lanes_release(s->lanes, &m);
    if (rc >= 0) shmt_lanes_part(s->lanes);
}

static void say_over(struct server *s, int status, const struct shmt_error *e) {
    struct shmt_lanes_counts counts = {0};
    struct shmt_desk_over over = {.ender = s->ender};
    if (s->lanes) shmt_lanes_count(s->lanes, &counts);
    over.sent_bytes = counts.sent_bytes;
    over.received_bytes = counts.received_bytes;
    memcpy(over.text, e->text, sizeof over.text);
    s->out.kind = SHMT_DESK_OVER;
    s->out.status = status;
    s->out.n = sizeof over;
    memcpy(s->out.bytes, &over, sizeof over);
    (void)shmt_desk_send(s->desk, &s->out, -1); /* nobody may want to hear it */
}

/* With the hosts' names, where only the carrier knows them. */
static void say_open(struct server *s) {
    s->out.kind = SHMT_DESK_OPEN;
    if (shmt_desk_send(s->desk, &s->out, -1) < 0) s->hung_up = true;
}

static _Noreturn void run(struct shmt_link_plan *plan, int desk, pid_t parent, const sigset_t *masked) {
    static struct server server;
    struct server *s = &server;
    struct shmt_error e = {0};
    shmt_settle_signals(masked);
    shmt_settle_name("link", -1);
    s->plan = plan;
    s->desk = desk;
    s->parent = parent;
    s->ender = SHMT_NO_ENDER;
    int rc = open_all(s, &e);
    explicit_bzero(&plan->keys, sizeof plan->keys); /* the carrier has them */
    if (rc == 0) {
        say_open(s);
        rc = serve(s, &e);
        if (rc < 0) part(s);
    }
    say_over(s, rc, &e);
    close_all(s);
    _exit(EXIT_SUCCESS);
}

int shmt_link_fork(struct shmt_link_plan *plan, int *desk_out, pid_t *pid_out, struct shmt_error *e) {
    int sockets[2];
    sigset_t all, masked;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
        return shmt_fail_errno(e, "cannot make sockets for the link to other hosts");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &masked);
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        run(plan, sockets[1], parent, &masked);
    }
    const int code = errno;
    pthread_sigmask(SIG_SETMASK, &masked, NULL);
    close(sockets[1]);
    if (pid > 0) {
        *desk_out = sockets[0];
        *pid_out = pid;
        return 0;
    }
    close(sockets[0]);
    errno = code;
    return shmt_fail_errno(e, "cannot start the link to other hosts");
}
