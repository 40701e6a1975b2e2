/* Listing and removing stores with a name: see <shmtrain/store.h>. Nobody's handle is needed for that. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "naming/manifest.h"
#include "base/io.h"
#include "backends/shm/shm.h"
#include "segment/named.h"
#include "segment/segment.h"
#include <shmtrain/store.h>

static uint64_t bytes_of(int fd) {
    struct stat file;
    return fstat(fd, &file) == 0 && file.st_size > 0 ? (uint64_t)file.st_size : 0;
}

/* With the files of its data, while it has them. */
static uint64_t bytes_of_parts(const char *name, int fd) {
    uint64_t bytes = bytes_of(fd);
    for (int part = SHMT_NAMED_DATA; part < SHMT_NAMED_PARTS; part++) {
        int file;
        if (shmt_named_open(name, (enum shmt_named_part)part, SHMT_NAMED_LOOK, &file, NULL) < 0) continue;
        bytes += bytes_of(file);
        close(file);
    }
    return bytes;
}

/* The run's last word; a file that cannot be read says that none has come. */
static uint32_t state_of(int fd) {
    const uint64_t at = SHMT_SEGMENT_HEADER_BYTES + offsetof(struct shmt_head, state);
    uint32_t state = SHMT_STATE_MAKING;
    return shmt_io_read(fd, &state, sizeof state, at) == (int64_t)sizeof state ? state : SHMT_STATE_MAKING;
}

/* Whether the store is whole, by what who observes it checks, and whether its run has died: looked at twice, as in visit.c,
 * because who ends a run says so first, and drops the mark then. Nothing is mapped: a store may be larger than this process's
 * address space, and its owner may cut it short while we look. */
static void look_inside(int fd, struct shmtrain_named *out) {
    struct shmt_error ignored = {0};
    out->intact = shmt_shm_check(fd, SHMT_ATTACH_NAMED, &ignored) == 0;
    out->died = out->intact;
    for (int look = 0; look < 2 && out->died; look++) {
        const uint32_t state = state_of(fd);
        out->died = state != SHMT_STATE_OVER && state != SHMT_STATE_FAILED && !shmt_named_runs(fd);
    }
}

/* What can be said of a store whose maker may have left it in any state. */
static void look_at(const char *name, struct shmt_manifest *m, struct shmtrain_named *out) {
    struct shmt_spec spec;
    int fd;
    *out = (struct shmtrain_named){0};
    snprintf(out->name, sizeof out->name, "%s", name);
    if (shmt_named_open(name, SHMT_NAMED_STORE, SHMT_NAMED_LOOK, &fd, NULL) < 0) {
        out->bytes = bytes_of_parts(name, -1); /* data whose store is gone, or is none of ours */
        out->in_use = shmt_named_data_in_use(name);
        out->died = !out->in_use && out->bytes > 0 && !shmt_named_exists(name, SHMT_NAMED_STORE);
        return;
    }
    out->bytes = bytes_of_parts(name, fd);
    const int rc = shmt_manifest_read(fd, name, m, &spec, NULL);
    out->in_use = shmt_named_in_use(fd);
    out->intact = rc == SHMTRAIN_E_AGAIN; /* it says nothing of itself yet */
    out->died = rc == SHMTRAIN_E_DIED;    /* nor will it ever */
    if (rc == 0) look_inside(fd, out);
    close(fd);
    if (!out->intact || rc < 0) return;
    snprintf(out->model, sizeof out->model, "%.31s", m->model);
    out->made_at = m->made_at;
    out->pid = m->pid;
    out->workers = spec.n_workers;
    out->guests = spec.n_guests / shmt_seats_of_worker(&spec); /* a place is a worker's: see join.c */
}

int shmtrain_named_list(struct shmtrain_named **out) {
    char(*names)[SHMT_NAME_BYTES];
    const int n = shmt_named_list(&names, NULL);
    if (n < 0) return n;
    struct shmt_manifest *manifest = malloc(sizeof *manifest);
    struct shmtrain_named *all = calloc((size_t)n + 1, sizeof *all);
    int rc = n;
    if (!manifest || !all) {
        rc = SHMTRAIN_E_MEMORY;
        free(all);
        all = NULL;
    }
    for (int i = 0; all && i < n; i++) look_at(names[i], manifest, &all[i]);
    free(manifest);
    free(names);
    if (all) *out = all;
    return rc;
}

int shmtrain_named_remove(const char *name, int force, char *message, size_t bytes) {
    struct shmt_error e = {0};
    const int rc = shmt_named_remove(name ? name : "", force != 0, &e);
    if (rc < 0 && message) snprintf(message, bytes, "%s", e.text);
    return rc;
}
