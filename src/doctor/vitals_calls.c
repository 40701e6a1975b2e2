/* What only calls tell about the machine: see vitals.h. Each is tried as runs use it, on memory and files of its own. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor/vitals.h"
#include "segment/named.h"
#include "segment/segment.h"
#include "sync/host.h"
#include "topo/others.h"
#include "workers/probe.h"

#define SHM "/dev/shm"

/* ---- limits ---- */

static uint64_t limit_of(int what, bool hard) {
    struct rlimit limit;
    if (getrlimit(what, &limit) != 0) return SHMT_NO_LIMIT;
    const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
    return value == RLIM_INFINITY ? SHMT_NO_LIMIT : (uint64_t)value;
}

static void ask_limits(struct shmt_limits *limit) {
    limit->file_bytes = limit_of(RLIMIT_FSIZE, false);
    limit->address_bytes = limit_of(RLIMIT_AS, false);
    limit->files = limit_of(RLIMIT_NOFILE, true);
    limit->processes = limit_of(RLIMIT_NPROC, false);
    limit->cpu_seconds = limit_of(RLIMIT_CPU, false);
    limit->is_root = geteuid() == 0;
}

/* ---- what the kernel does for us ---- */

/* A segment of a page, by the code of runs. */
static void try_segment(struct shmt_calls *call) {
    struct shmt_segment segment;
    struct shmt_error e = {0};
    const struct shmt_segment_wish wish = {.name = "doctor", .fd = -1, .bytes = 4096, .fingerprint = 1};
    call->memfd = shmt_segment_create(&wish, &segment, &e) == 0;
    snprintf(call->memfd_refused, sizeof call->memfd_refused, "%.127s", e.text);
    if (call->memfd) shmt_segment_detach(&segment);
}

static void try_pidfd(struct shmt_calls *call) {
#ifdef SYS_pidfd_open
    const int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    call->pidfd = fd >= 0;
    if (fd >= 0) close(fd);
#else
    call->pidfd = false;
#endif
}

static void try_marks(struct shmt_calls *call) {
    const int fd = memfd_create("shmtrain-doctor", MFD_CLOEXEC);
    struct shmt_error e = {0};
    call->ofd_locks = fd >= 0 && shmt_mark_hold(fd, SHMT_MARK_RUN, &e) == 1;
    if (fd >= 0) close(fd);
}

static void try_populate(struct shmt_calls *call) {
    const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
#ifdef MADV_POPULATE_WRITE
    call->populate = madvise(page, bytes, MADV_POPULATE_WRITE) == 0;
#else
    call->populate = false;
#endif
    munmap(page, bytes);
}

/* ---- stores with a name ---- */

static void ask_leftovers(struct shmt_leftovers *left) {
    struct shmtrain_named *all;
    const int n = shmtrain_named_list(&all);
    for (int i = 0; i < n; i++) {
        const struct shmtrain_named *s = &all[i];
        if (s->in_use) continue;
        if (s->died || !s->intact) {
            if (left->n_dead++ == 0) snprintf(left->dead, sizeof left->dead, "%s", s->name);
            left->dead_bytes += s->bytes;
        } else {
            left->n_over++;
            left->over_bytes += s->bytes;
        }
    }
    if (n >= 0) free(all);
}

static void ask_shm(struct shmt_vitals *v) {
    v->has_shm = access(SHM, F_OK) == 0;
    v->may_write_shm = access(SHM, R_OK | W_OK | X_OK) == 0;
    shmt_named_room(&v->shm_free, &v->shm_bytes);
    ask_leftovers(&v->left);
}

/* ---- OpenBLAS ---- */

static int look_for_blas(struct shmt_found_libraries *found, struct shmt_error *e) {
    const struct shmt_team_spec spec = {
        .kind = &SHMT_TEAM_PROCESSES, .n = 1, .body = shmt_probe_look, .arg = found, .what = "loading OpenBLAS"};
    struct shmt_team *team;
    const int rc = shmt_team_start(&spec, &team, e);
    if (rc < 0) return rc;
    while (!shmt_team_step(team)) {
        struct pollfd changed = {.fd = shmt_team_fd(team), .events = POLLIN};
        (void)poll(&changed, 1, 1000); /* interrupted: look at once */
    }
    return shmt_team_finish(team, e);
}

static void ask_blas(struct shmt_vitals *v) {
    struct shmt_error e = {0};
    struct shmt_found_libraries *found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) {
        snprintf(v->blas_refused, sizeof v->blas_refused, "not enough memory to look for OpenBLAS");
        return;
    }
    found->wants_threads = 1;
    if (look_for_blas(found, &e) < 0)
        snprintf(v->blas_refused, sizeof v->blas_refused, "%.255s", e.text);
    else
        snprintf(v->blas, sizeof v->blas, "%s", found->blas);
    v->blas_shared = found->shared != 0;
    v->openmp = found->openmp != 0;
    munmap(found, sizeof *found);
}

/* ---- all of it ---- */

void shmt_vitals_ask(uint32_t look_ms, struct shmt_vitals *v) {
    struct shmt_others others;
    struct utsname name;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    shmt_others_begin(&others);
    shmt_sleep_ns((uint64_t)look_ms * 1000000); /* a signal: a shorter look */
    v->others = shmt_others_end(&others);
    v->online_cpus = online > 0 ? (uint32_t)online : 0;
    if (uname(&name) == 0) snprintf(v->kernel, sizeof v->kernel, "%.20s %.42s", name.sysname, name.release);
    ask_limits(&v->limit);
    try_segment(&v->call);
    try_pidfd(&v->call);
    try_marks(&v->call);
    try_populate(&v->call);
    ask_shm(v);
    ask_blas(v);
}
