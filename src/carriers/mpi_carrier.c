/* The carrier on MPI: see mpi_carrier.h. */
#include "carriers/mpi_carrier.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "carriers/mpi_stream.h"
#include "sync/host.h"

#define CANNOT_RUN    127                   /* the shell's word for it */
#define LOOK_NS       UINT64_C(100000000)   /* at whether the run goes on, while MPI starts */
#define LEAVE_NS      UINT64_C(10000000000) /* MPI ends on all hosts together */
#define GONE_NS       UINT64_C(500000000)   /* who has closed its end is about to end */
#define LEAVE_LOOK_NS UINT64_C(5000000)
#define SOCKET_BYTES  (4 << 20) /* of frames on their way to the program; the system may give less */

struct carrier {
    struct shmt_carrier base; /* first: what callers have */
    struct shmt_mpi_stream stream;
    struct shmt_payload *going; /* whose bytes the stream is sending; NULL: none's */
    pid_t program;              /* 0: it has ended */
    int status;                 /* its wait status then */
    uint32_t self, n_hosts;
    uint32_t under_way[SHMT_MOST_HOSTS]; /* frames that the program has not sent yet */
    char name[SHMT_MOST_HOSTS][SHMT_MPI_NAME];
};

/* ---- the program ---- */

/* In the child. The program has its end of the sockets as its only word; it ends with us. Signals of terminals and launchers are for the
 * process that drives the run: they are ignored here already, and stay so. */
static _Noreturn void become_program(const char *program, int socket, pid_t parent) {
    char number[12];
    snprintf(number, sizeof number, "%d", socket);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && fcntl(socket, F_SETFD, 0) == 0)
        execl(program, program, number, (char *)NULL);
    _exit(CANNOT_RUN);
}

static int start(struct carrier *c, const char *program, struct shmt_error *e) {
    int sockets[2];
    const int bytes = SOCKET_BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
        return shmt_fail_errno(e, "cannot make sockets for the program that calls MPI");
    for (int i = 0; i < 2; i++) (void)setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes); /* less will do */
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) become_program(program, sockets[1], parent);
    const int code = errno;
    close(sockets[1]);
    if (pid > 0) c->program = pid;
    if (shmt_mpi_stream_open(&c->stream, sockets[0]) < 0) return shmt_no_memory(e, "for messages of MPI");
    errno = code;
    return pid < 0 ? shmt_fail_errno(e, "cannot start the program that calls MPI") : 0;
}

/* Whether it has ended; waits until then. */
static bool has_ended(struct carrier *c, uint64_t until_ns) {
    pid_t got = c->program > 0 ? 0 : -1;
    for (;;) {
        if (got == 0) got = waitpid(c->program, &c->status, WNOHANG);
        if (got < 0 && errno == EINTR && c->program > 0) got = 0;
        if (got != 0) break;
        if (shmt_now_ns() >= until_ns) return false;
        shmt_sleep_ns(LEAVE_LOOK_NS);
    }
    c->program = 0;
    return true;
}

/* Waits for so long until it is killed. */
static void end_program(struct carrier *c, uint64_t wait_ns) {
    if (has_ended(c, shmt_now_ns() + wait_ns)) return;
    kill(c->program, SIGKILL);
    (void)has_ended(c, UINT64_MAX);
}

/* Its end of the sockets is closed, or what it says makes no sense. */
static int is_gone(struct carrier *c, struct shmt_error *e) {
    if (c->program > 0) end_program(c, GONE_NS); /* perhaps it lives, and talks nonsense */
    if (WIFSIGNALED(c->status))
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "the program that calls MPI was killed by signal %d (%s)", WTERMSIG(c->status),
                         strsignal(WTERMSIG(c->status)));
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "MPI has ended (exit status %d of the program that calls it): see what it has said",
                     WEXITSTATUS(c->status));
}

/* ---- frames ---- */

/* What can be sent without waiting. 1: the stream takes another record; 0: not yet; a status. */
static int flush(struct carrier *c, struct shmt_error *e) {
    if (shmt_mpi_stream_flush(&c->stream) < 0) return is_gone(c, e);
    if (!shmt_mpi_stream_is_idle(&c->stream)) return 0;
    shmt_payload_drop(c->going);
    c->going = NULL;
    return 1;
}

static int send_frame(struct shmt_carrier *carrier, uint32_t to, const unsigned char *head, struct shmt_payload *body,
                      struct shmt_error *e) {
    struct carrier *c = (struct carrier *)carrier;
    if (c->under_way[to] >= SHMT_MPI_KEPT) return 0;
    const int rc = flush(c, e);
    if (rc <= 0) return rc;
    c->going = shmt_payload_hold(body);
    c->under_way[to]++;
    if (shmt_mpi_stream_put(&c->stream, SHMT_MPI_FRAME, to, 0, head, body ? body->bytes : NULL, body ? body->n : 0) < 0)
        return is_gone(c, e);
    const int flushed = flush(c, e);
    return flushed < 0 ? flushed : 1;
}

/* 1: *out is a frame, which has the bytes; 0: it was something else; -1: it makes no sense. */
static int take(struct carrier *c, const struct shmt_mpi_record *record, unsigned char *bytes, struct shmt_frame *out) {
    const bool is_peer = record->peer < c->n_hosts && record->peer != c->self;
    if (is_peer && record->kind == SHMT_MPI_FRAME && record->n >= SHMT_HEAD_BYTES) {
        *out = (struct shmt_frame){.from = record->peer,
                                   .head = bytes,
                                   .body = bytes + SHMT_HEAD_BYTES,
                                   .body_bytes = record->n - SHMT_HEAD_BYTES,
                                   .held = bytes};
        return 1;
    }
    free(bytes);
    if (!is_peer || record->kind != SHMT_MPI_SENT || record->count > c->under_way[record->peer]) return -1;
    c->under_way[record->peer] -= record->count;
    return 0;
}

/* Until something may have come, or more may be sent. */
static void wait_until(const struct carrier *c, uint64_t until_ns, uint64_t now_ns) {
    struct pollfd at = {.fd = c->stream.fd, .events = POLLIN};
    const uint64_t ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const struct timespec wait = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    if (!shmt_mpi_stream_is_idle(&c->stream)) at.events |= POLLOUT;
    (void)ppoll(&at, 1, &wait, NULL); /* interrupted: look at once */
}

static int receive_frame(struct shmt_carrier *carrier, uint64_t until_ns, struct shmt_frame *out, struct shmt_error *e) {
    struct carrier *c = (struct carrier *)carrier;
    struct shmt_mpi_record record;
    unsigned char *bytes;
    for (;;) {
        int rc = flush(c, e);
        if (rc < 0) return rc;
        while ((rc = shmt_mpi_stream_take(&c->stream, &record, &bytes)) == 1) {
            rc = take(c, &record, bytes, out);
            if (rc != 0) break;
        }
        if (rc != 0) return rc < 0 ? is_gone(c, e) : 1;
        const uint64_t now_ns = shmt_now_ns();
        if (now_ns >= until_ns) return 0;
        wait_until(c, until_ns, now_ns);
    }
}

static void release(struct shmt_carrier *carrier, struct shmt_frame *frame) {
    (void)carrier;
    free(frame->held);
}

/* ---- opening ---- */

/* What is being sent is sent, and the program told to leave; it closes its end, and so nothing waits for ever. */
static void say_leave(struct carrier *c) {
    const uint64_t until_ns = shmt_now_ns() + LEAVE_NS;
    struct shmt_error ignored = {0};
    int rc;
    while ((rc = flush(c, &ignored)) == 0 && shmt_now_ns() < until_ns) wait_until(c, until_ns, shmt_now_ns());
    if (rc == 1) rc = shmt_mpi_stream_put(&c->stream, SHMT_MPI_LEAVE, c->self, 0, NULL, NULL, 0) < 0 ? -1 : 0;
    while (rc == 0 && (rc = flush(c, &ignored)) == 0 && shmt_now_ns() < until_ns) wait_until(c, until_ns, shmt_now_ns());
}

static void close_all(struct shmt_carrier *carrier) {
    struct carrier *c = (struct carrier *)carrier;
    if (c->program > 0) say_leave(c);
    if (c->program > 0) end_program(c, LEAVE_NS);
    shmt_mpi_stream_close(&c->stream);
    shmt_payload_drop(c->going);
    free(c);
}

static const struct shmt_carrier_ops MPI = {
    .name = "mpi", .send = send_frame, .receive = receive_frame, .release = release, .close = close_all};

/* Whether it is what this host expects. */
static int take_hello(struct carrier *c, const struct shmt_mpi_record *record, const unsigned char *names,
                      struct shmt_error *e) {
    const bool is_hello = record->kind == SHMT_MPI_HELLO && record->count == SHMT_MPI_VERSION && record->n % SHMT_MPI_NAME == 0;
    if (!is_hello) return shmt_fail(e, SHMTRAIN_E_SYSTEM, "the program that calls MPI is of another version");
    if (record->peer != c->self || record->n / SHMT_MPI_NAME != c->n_hosts)
        return shmt_fail(e, SHMTRAIN_E_SYSTEM,
                         "MPI says that this is rank %u of %u, its launcher said %u of %u: is it the mpirun of another MPI?",
                         record->peer, record->n / SHMT_MPI_NAME, c->self, c->n_hosts);
    for (uint32_t rank = 0; rank < c->n_hosts; rank++)
        snprintf(c->name[rank], SHMT_MPI_NAME, "%.*s", SHMT_MPI_NAME - 1, (const char *)names + (size_t)rank * SHMT_MPI_NAME);
    return 0;
}

/* 127 is also what others may end with; but nothing that has run so far would. */
static int cannot_start(struct carrier *c, const char *program, struct shmt_error *e) {
    end_program(c, GONE_NS);
    if (WIFEXITED(c->status) && WEXITSTATUS(c->status) == CANNOT_RUN)
        return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot run %s, the program that calls MPI", program);
    if (WIFEXITED(c->status))
        return shmt_fail(e, SHMTRAIN_E_SYSTEM,
                         "MPI has not started (exit status %d of the program that calls it): see what it has said; one mpirun "
                         "is for one run",
                         WEXITSTATUS(c->status));
    return is_gone(c, e);
}

static int await_hello(struct carrier *c, const struct shmt_mpi_spec *spec, struct shmt_error *e) {
    struct shmt_mpi_record record;
    unsigned char *bytes;
    int rc;
    while ((rc = shmt_mpi_stream_take(&c->stream, &record, &bytes)) == 0) {
        const uint64_t now_ns = shmt_now_ns();
        if (!spec->goes_on(spec->arg))
            return shmt_fail(e, SHMTRAIN_E_STOPPED, "given up while MPI was starting, for which all hosts have to come");
        wait_until(c, now_ns + LOOK_NS, now_ns);
    }
    if (rc < 0) return cannot_start(c, spec->program, e);
    rc = take_hello(c, &record, bytes, e);
    free(bytes);
    return rc;
}

/* MPI may not have started: then there is nothing to be left in order. */
static void give_up(struct carrier *c) {
    if (c->program > 0) end_program(c, 0);
    shmt_mpi_stream_close(&c->stream);
    free(c);
}

int shmt_mpi_open(const struct shmt_mpi_spec *spec, struct shmt_carrier **out, struct shmt_error *e) {
    struct carrier *c = calloc(1, sizeof *c);
    if (!c) return shmt_no_memory(e, "for a carrier");
    c->base.ops = &MPI;
    c->self = spec->self;
    c->n_hosts = spec->n_hosts;
    c->stream.fd = -1;
    int rc = start(c, spec->program, e);
    if (rc == 0) rc = await_hello(c, spec, e);
    if (rc < 0)
        give_up(c);
    else
        *out = &c->base;
    return rc;
}

const char *shmt_mpi_name_of(const struct shmt_carrier *carrier, uint32_t rank) {
    return ((const struct carrier *)carrier)->name[rank];
}
