/* Listing and removing stores with a name: see <shmtrain/store.h>. Nobody's handle is needed for that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/manifest.h"
#include "backends/shm/shm.h"
#include "base/atomic.h"
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

/* Whether the store is whole, as who observes it finds out: by mapping it. Whether its run has died: looked at twice, as in
 * visit.c, because who ends a run says so first, and drops the mark then. */
static void look_inside(int fd, const struct shmt_spec *spec, struct shmtrain_named *out) {
    struct shmt_error ignored = {0};
    struct shmt_store *store;
    out->intact = shmt_shm_attach(spec, fd, SHMT_ATTACH_NAMED | SHMT_ATTACH_READ, &store, &ignored) == 0;
    if (!out->intact) return;
    const struct shmt_head *head = SHMT_BACKEND_SHM.head(store);
    out->died = 1;
    for (int look = 0; look < 2 && out->died; look++) {
        const uint32_t state = load_acquire(&head->state); /* pairs with the release of who made it */
        out->died = state != SHMT_STATE_OVER && state != SHMT_STATE_FAILED && !shmt_mark_is_held(fd, SHMT_MARK_RUN);
    }
    SHMT_BACKEND_SHM.destroy(store);
}

/* What can be said of a store whose maker may have left it in any state. */
static void look_at(const char *name, struct shmt_manifest *m, struct shmtrain_named *out) {
    struct shmt_spec spec;
    int fd;
    *out = (struct shmtrain_named){0};
    snprintf(out->name, sizeof out->name, "%s", name);
    if (shmt_named_open(name, SHMT_NAMED_STORE, SHMT_NAMED_LOOK, &fd, NULL) < 0) return;
    out->bytes = bytes_of_parts(name, fd);
    const int rc = shmt_manifest_read(fd, name, m, &spec, NULL);
    out->in_use = shmt_named_in_use(fd);
    out->intact = rc == SHMTRAIN_E_AGAIN; /* it says nothing of itself yet */
    out->died = rc == SHMTRAIN_E_DIED;    /* nor will it ever */
    if (rc == 0) look_inside(fd, &spec, out);
    close(fd);
    if (!out->intact || rc < 0) return;
    snprintf(out->model, sizeof out->model, "%.31s", m->model);
    out->made_at = m->made_at;
    out->pid = m->pid;
    out->workers = m->n_workers;
    out->guests = m->n_guests;
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
