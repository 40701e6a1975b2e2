/* The program between a host's link and MPI: carriers/mpi_carrier.h starts it, and it alone calls MPI, once per host. It is compiled for
 * each MPI that configure has found, as shmtrain-link-openmpi and shmtrain-link-mpich.
 *
 *     shmtrain-link-openmpi FD
 *
 * FD: its end of a pair of sockets (carriers/mpi_stream.h). Frames from there go to their peer, frames from peers go there. It ends with
 * the other end of the sockets: after LEAVE in order, with MPI_Finalize; else at once, and MPI's launcher then ends the run.
 *
 * MPI has nothing that one could wait for together with a socket, and waiting inside MPI takes a whole processor (Open MPI), which the
 * workers want. So MPI is asked now and then: at once while frames come and go, and less often the longer nothing has happened. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "carriers/mpi_stream.h"

#define TAG         1
#define ASK_NS      20000   /* MPI is asked all the time, until nothing has happened for so long; */
#define PART        8       /* ... then each time that this part of the silence has passed, */
#define MOST_NS     1000000 /* ... and at least so often */
#define END_SECONDS 30      /* for MPI_Finalize, which waits for all hosts: some may be gone */
#define TELL_SENT   (SHMT_MPI_KEPT / 4)

struct sending {
    struct sending *next;
    unsigned char *bytes;
    MPI_Request request;
};

struct peer {
    struct sending *first, **last; /* frames that MPI has not sent yet, in order */
    uint32_t n_sending, n_sent;    /* these; and those that it has, of which the link has not heard */
    unsigned char *coming;         /* (SHMT_MPI_MOST_BYTES) what MPI receives into */
    int n_come;                    /* bytes of a frame that has come, and waits for the stream; 0: none does */
};

struct between {
    struct shmt_mpi_stream stream;
    int rank, n_hosts;
    struct peer peer[SHMT_MOST_HOSTS];
    /* What MPI is asked about, all at once: a frame from each peer, and from n_hosts on the first frame to each. */
    MPI_Request request[2 * SHMT_MOST_HOSTS];
    uint32_t next;   /* the peer whose frame is passed on first, so that each gets its turn */
    uint32_t passed; /* whose frame the stream is sending; n_hosts: nobody's */
    bool leaves;
};

/* MPI keeps what it has until the end; LeakSanitizer asks this (sanitizer/lsan_interface.h). */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }

static void fail(const char *what) {
    fprintf(stderr, "shmtrain: the program that calls MPI: %s\n", what);
    _exit(EXIT_FAILURE);
}

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* ---- from the link to MPI ---- */

/* The first of a peer's frames that MPI has not sent is the one that is asked about. */
static void ask_about_first(struct between *b, uint32_t to) {
    const struct sending *first = b->peer[to].first;
    b->request[(uint32_t)b->n_hosts + to] = first ? first->request : MPI_REQUEST_NULL;
}

/* Takes the bytes over. */
static void begin_sending(struct between *b, uint32_t to, unsigned char *bytes, uint32_t n) {
    struct peer *peer = &b->peer[to];
    struct sending *sending = malloc(sizeof *sending);
    if (!sending) fail("not enough memory");
    *sending = (struct sending){.bytes = bytes};
    if (MPI_Isend(bytes, (int)n, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD, &sending->request) != MPI_SUCCESS)
        fail("MPI cannot send");
    *peer->last = sending;
    peer->last = &sending->next;
    if (peer->n_sending++ == 0) ask_about_first(b, to);
}

/* Whether something has come. */
static bool take_from_link(struct between *b) {
    struct shmt_mpi_record record;
    unsigned char *bytes;
    int rc;
    bool any = false;
    while (!b->leaves && (rc = shmt_mpi_stream_take(&b->stream, &record, &bytes)) != 0) {
        if (rc < 0) _exit(EXIT_FAILURE); /* the link has died */
        const bool is_peer = record.peer < (uint32_t)b->n_hosts && record.peer != (uint32_t)b->rank;
        if (record.kind == SHMT_MPI_FRAME && is_peer && bytes)
            begin_sending(b, record.peer, bytes, record.n);
        else if (record.kind == SHMT_MPI_LEAVE)
            b->leaves = true;
        else
            fail("the link is of another build");
        any = true;
    }
    return any;
}

/* MPI has sent the first of a peer's frames. */
static void drop_first(struct between *b, uint32_t to) {
    struct peer *peer = &b->peer[to];
    struct sending *sent = peer->first;
    peer->first = sent->next;
    if (!peer->first) peer->last = &peer->first;
    peer->n_sending--;
    peer->n_sent++;
    free(sent->bytes);
    free(sent);
    ask_about_first(b, to);
}

/* ---- from MPI to the link ---- */

static void await_frame(struct between *b, uint32_t from) {
    struct peer *peer = &b->peer[from];
    peer->n_come = 0;
    if (MPI_Irecv(peer->coming, SHMT_MPI_MOST_BYTES, MPI_BYTE, (int)from, TAG, MPI_COMM_WORLD, &b->request[from]) !=
        MPI_SUCCESS)
        fail("MPI cannot receive");
}

static void note_come(struct between *b, uint32_t from, const MPI_Status *status) {
    MPI_Get_count(status, MPI_BYTE, &b->peer[from].n_come);
    if (b->peer[from].n_come < SHMT_HEAD_BYTES) fail("another host is of another build");
}

/* What MPI has done since it was asked last: it works only while it is asked. Whether it has done something. */
static bool ask_mpi(struct between *b) {
    int n = 0, done[2 * SHMT_MOST_HOSTS];
    static MPI_Status status[2 * SHMT_MOST_HOSTS];
    if (MPI_Testsome(2 * b->n_hosts, b->request, &n, done, status) != MPI_SUCCESS) fail("MPI has failed");
    if (n == MPI_UNDEFINED) return false; /* nothing is asked for */
    for (int i = 0; i < n; i++) {
        const uint32_t which = (uint32_t)done[i];
        if (which < (uint32_t)b->n_hosts)
            note_come(b, which, &status[i]);
        else
            drop_first(b, which - (uint32_t)b->n_hosts);
    }
    return n > 0;
}

static void put(struct between *b, enum shmt_mpi_kind kind, uint32_t peer, uint32_t count, const unsigned char *head,
                uint64_t n_body) {
    if (shmt_mpi_stream_put(&b->stream, kind, peer, count, head, head ? head + SHMT_HEAD_BYTES : NULL, n_body) < 0)
        _exit(EXIT_FAILURE);
}

/* The stream has nothing to send: it gets the next thing to say, if there is one. */
static bool say_something(struct between *b) {
    for (uint32_t i = 0; i < (uint32_t)b->n_hosts; i++) {
        const uint32_t from = (b->next + i) % (uint32_t)b->n_hosts;
        struct peer *peer = &b->peer[from];
        if (peer->n_sent >= TELL_SENT || (peer->n_sent > 0 && peer->n_sending == 0)) {
            put(b, SHMT_MPI_SENT, from, peer->n_sent, NULL, 0);
            peer->n_sent = 0;
            return true;
        }
        if (peer->n_come == 0) continue;
        b->passed = from;
        b->next = from + 1;
        put(b, SHMT_MPI_FRAME, from, 0, peer->coming, (uint64_t)peer->n_come - SHMT_HEAD_BYTES);
        return true;
    }
    return false;
}

/* As much as the stream takes. Whether something was said. */
static bool tell_link(struct between *b) {
    for (bool any = false;; any = true) {
        if (shmt_mpi_stream_flush(&b->stream) < 0) _exit(EXIT_FAILURE);
        if (!shmt_mpi_stream_is_idle(&b->stream)) return any;
        if (b->passed < (uint32_t)b->n_hosts) await_frame(b, b->passed);
        b->passed = (uint32_t)b->n_hosts;
        if (!say_something(b)) return any;
    }
}

/* ---- the program ---- */

/* Nothing has happened for so long. */
static void rest(const struct between *b, uint64_t silent_ns) {
    struct pollfd at = {.fd = b->stream.fd, .events = POLLIN};
    const uint64_t part = silent_ns / PART;
    const struct timespec wait = {.tv_nsec = (long)(part < MOST_NS ? part : MOST_NS)};
    if (!shmt_mpi_stream_is_idle(&b->stream)) at.events |= POLLOUT;
    if (silent_ns < ASK_NS)
        sched_yield();
    else
        (void)ppoll(&at, 1, &wait, NULL); /* interrupted: look at once */
}

static void serve(struct between *b) {
    uint64_t last_ns = now_ns();
    while (!b->leaves) {
        const bool came = take_from_link(b), moved = ask_mpi(b), went = tell_link(b);
        const uint64_t at_ns = now_ns();
        if (came || moved || went)
            last_ns = at_ns;
        else
            rest(b, at_ns - last_ns);
    }
}

static void say_hello(struct between *b) {
    static char names[SHMT_MOST_HOSTS][SHMT_MPI_NAME];
    char name[MPI_MAX_PROCESSOR_NAME] = "", own[SHMT_MPI_NAME] = "";
    int n;
    MPI_Comm_rank(MPI_COMM_WORLD, &b->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b->n_hosts);
    if (b->n_hosts > SHMT_MOST_HOSTS) fail("there are more hosts than 64");
    MPI_Get_processor_name(name, &n);
    snprintf(own, sizeof own, "%.*s", SHMT_MPI_NAME - 1, name);
    if (MPI_Allgather(own, SHMT_MPI_NAME, MPI_CHAR, names, SHMT_MPI_NAME, MPI_CHAR, MPI_COMM_WORLD) != MPI_SUCCESS)
        fail("MPI cannot gather names");
    if (shmt_mpi_stream_put(&b->stream, SHMT_MPI_HELLO, (uint32_t)b->rank, SHMT_MPI_VERSION, NULL, (const unsigned char *)names,
                            (uint64_t)b->n_hosts * SHMT_MPI_NAME) < 0)
        _exit(EXIT_FAILURE);
}

static void begin(struct between *b) {
    b->passed = (uint32_t)b->n_hosts;
    for (int host = 0; host < b->n_hosts; host++) {
        struct peer *peer = &b->peer[host];
        peer->last = &peer->first;
        b->request[host] = b->request[b->n_hosts + host] = MPI_REQUEST_NULL;
        if (host == b->rank) continue;
        peer->coming = malloc(SHMT_MPI_MOST_BYTES); /* pages that no frame needs are never touched */
        if (!peer->coming) fail("not enough memory");
        await_frame(b, (uint32_t)host);
    }
}

static bool is_sending(const struct between *b) {
    for (int host = 0; host < b->n_hosts; host++)
        if (b->peer[host].first) return true;
    return false;
}

/* What was handed to MPI may still be on its way, and a host that is gone takes nothing any more. */
static void leave(struct between *b) {
    alarm(END_SECONDS);
    while (is_sending(b)) {
        (void)ask_mpi(b);
        sched_yield();
    }
    for (int host = 0; host < b->n_hosts; host++)
        if (b->request[host] != MPI_REQUEST_NULL) {
            MPI_Cancel(&b->request[host]);
            MPI_Request_free(&b->request[host]);
        }
    MPI_Finalize();
}

int main(int argc, char **argv) {
    static struct between between;
    struct between *b = &between;
    const int fd = argc == 2 ? atoi(argv[1]) : -1;
    if (fd <= STDERR_FILENO || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        fail("it is part of shmtrain, which starts it under mpirun by itself");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, SIG_DFL);
    prctl(PR_SET_TIMERSLACK, 1UL); /* rests are short */
    if (shmt_mpi_stream_open(&b->stream, fd) < 0) fail("not enough memory");
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) fail("MPI cannot start");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say_hello(b);
    begin(b);
    serve(b);
    leave(b);
    return EXIT_SUCCESS;
}
