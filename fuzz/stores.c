/* Named stores of inputs: see stores.h. A run is made once for each kind, in this process, and its files are copied by its
 * listener. The copies are in /dev/shm, mapped, and written anew for each input. */
#include "stores.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "naming/manifest.h"
#include "api/store_priv.h"
#include "backends/shm/layout.h"
#include "segment/named.h"
#include "segment/segment.h"

char fuzz_store_name[64];

static const char *const SUFFIX[] = {"", ".data", ".valid"};
#define N_FILES 3

static const struct {
    const char *model, *valid, *data, *option[2][2];
} RUNS[FUZZ_N_RUNS] = {
    {"logistic", "", "builtin:sparse:examples=40,features=16,nonzeros=3,valid=10", {{NULL}}},
    {"logistic", "0.3", "builtin:sparse:examples=40,features=16,nonzeros=3", {{NULL}}},
    {"linear", "none", "builtin:line:examples=30", {{NULL}}},
    {"svm", "none", "builtin:sparse:examples=20,features=4100,nonzeros=3", {{NULL}}}, /* its rows have places */
    {"logistic", "none", "builtin:sparse:examples=40,features=16,nonzeros=3", {{"merge", "damped"}, {"replicas", "worker"}}},
    {"logistic", "none", "builtin:sparse:examples=80,features=16,nonzeros=3", {{"write", "aggregate"}, {"staleness", "2"}}},
    {"logistic", "none", "builtin:sparse:examples=80,features=16,nonzeros=3", {{"mode", "backup:1"}, {"trace", "/dev/null"}}}};

static struct content {
    unsigned char *bytes; /* as it was */
    size_t n;
} content[FUZZ_N_RUNS][N_FILES];

/* The copy. */
static struct {
    int fd; /* 0: there is none */
    unsigned char *at;
    size_t n;
} copy[N_FILES];
static bool marked;

static void path_of(const char *name, int file, char *out, size_t bytes) {
    snprintf(out, bytes, "/dev/shm/shmtrain-%ju-%s%s", (uintmax_t)geteuid(), name, SUFFIX[file]);
}

/* ---- making runs ---- */

static char made[64];
static struct shmtrain_store *maker;

static void keep(struct content *c, int file) {
    char path[160];
    struct stat s;
    path_of(made, file, path, sizeof path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    FUZZ_CHECK(fstat(fd, &s) == 0);
    c->n = (size_t)s.st_size;
    c->bytes = malloc(c->n);
    FUZZ_CHECK(c->bytes && pread(fd, c->bytes, c->n, 0) == s.st_size);
    close(fd);
}

static void copy_once(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    struct content *c = arg;
    (void)so_far;
    (void)epoch;
    if (c[0].bytes) return; /* it was, of an earlier epoch */
    for (int file = 0; file < N_FILES; file++) keep(&c[file], file);
    shmtrain_store_stop(maker);
}

static void set(const char *name, const char *value) { FUZZ_CHECK(shmtrain_store_set(maker, name, value) == 0); }

static void make_run(int run) {
    char message[512];
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .arg = content[run], .epoch = copy_once};
    FUZZ_CHECK(shmtrain_store_create(&maker) == 0);
    set("name", made);
    set("workers", "1");
    set("spawn", "threads");
    set("bind", "none");
    set("guests", "2");
    set("epochs", "1000");
    set("valid", RUNS[run].valid);
    set("model", RUNS[run].model);
    for (int i = 0; i < 2 && RUNS[run].option[i][0]; i++) set(RUNS[run].option[i][0], RUNS[run].option[i][1]);
    shmtrain_store_listen(maker, &listener);
    if (shmtrain_store_train(maker, RUNS[run].data) < 0) {
        fprintf(stderr, "%s\n", shmtrain_store_message(maker));
        abort();
    }
    shmtrain_store_destroy(maker);
    (void)shmtrain_named_remove(made, 1, message, sizeof message);
    FUZZ_CHECK(content[run][0].bytes);
}

static void take_away(void) {
    char path[160];
    for (int file = 0; file < N_FILES; file++) {
        path_of(fuzz_store_name, file, path, sizeof path);
        (void)unlink(path);
    }
}

static void make_runs(void) {
    snprintf(made, sizeof made, "fuzz-%d", (int)getpid());
    snprintf(fuzz_store_name, sizeof fuzz_store_name, "fuzz-%d-copy", (int)getpid());
    for (int run = 0; run < FUZZ_N_RUNS; run++) make_run(run);
    FUZZ_CHECK(atexit(take_away) == 0);
}

/* ---- damage ---- */

static struct shmt_shm_layout layout; /* of the run as it was */

static void find_places(uint32_t run) {
    struct shmt_manifest m;
    struct shmt_spec spec;
    memcpy(&m, content[run][0].bytes + SHMT_SEGMENT_HEADER_BYTES + offsetof(struct shmt_head, manifest), sizeof m);
    FUZZ_CHECK(!shmt_manifest_spec(&m, &spec));
    FUZZ_CHECK(shmt_shm_layout_plan(&spec, &layout, NULL) == 0);
}

static void open_file(int file) {
    char path[160];
    path_of(fuzz_store_name, file, path, sizeof path);
    copy[file].fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(copy[file].fd > 0);
}

/* As it was; mapped as long as its size allows. */
static void restore(int file, const struct content *from) {
    char path[160];
    if (!from->bytes) {
        path_of(fuzz_store_name, file, path, sizeof path);
        if (copy[file].fd) (void)unlink(path), close(copy[file].fd);
        if (copy[file].at) munmap(copy[file].at, copy[file].n);
        memset(&copy[file], 0, sizeof copy[file]);
        return;
    }
    if (!copy[file].fd) open_file(file);
    if (copy[file].n != from->n || !copy[file].at) {
        if (copy[file].at) munmap(copy[file].at, copy[file].n);
        FUZZ_CHECK(ftruncate(copy[file].fd, (off_t)from->n) == 0);
        copy[file].n = from->n;
        copy[file].at = mmap(NULL, from->n, PROT_READ | PROT_WRITE, MAP_SHARED, copy[file].fd, 0);
        FUZZ_CHECK(copy[file].at != MAP_FAILED);
    }
    memcpy(copy[file].at, from->bytes, from->n);
}

static void resize(int file, size_t n) {
    munmap(copy[file].at, copy[file].n);
    copy[file].at = NULL;
    FUZZ_CHECK(ftruncate(copy[file].fd, (off_t)n) == 0);
}

/* Where patches go. Words that workers live by are a small part of the file: they have places of their own. */
struct place {
    int file;
    uint64_t first, n;
};

static struct place place_of(uint8_t where) {
    enum { HEAD = SHMT_SEGMENT_HEADER_BYTES, MANIFEST = HEAD + offsetof(struct shmt_head, manifest) };
    const struct shmt_shm_layout *l = &layout;
    switch (where % 16) {
        case 0:
        case 1:
        case 2:
            return (struct place){0, MANIFEST, sizeof(struct shmt_manifest)};
        case 3:
            return (struct place){0, HEAD, sizeof(struct shmt_head)};
        case 4:
            return (struct place){0, 0, 64};
        case 5:
            return (struct place){0, HEAD + l->control.off, sizeof(struct shmt_shm_control)};
        case 6: /* gates, and who is there */
            return (struct place){0, HEAD + l->front.off + (where / 16 % 4) * sizeof(struct shmt_shm_front),
                                  sizeof(struct shmt_shm_front)};
        case 7:
            return (struct place){0, HEAD + l->offer.off, l->weight.off - l->offer.off};
        case 8:
            return (struct place){0, HEAD + l->weight.off, l->board.off - l->weight.off};
        case 9:
            return (struct place){0, HEAD + l->board.off, 256};
        case 10:
            return (struct place){0, HEAD + l->ring.off, l->replica.off - l->ring.off};
        case 11:
            return (struct place){1, 0, 64};
        case 12:
        case 13:
            return (struct place){1, HEAD, UINT32_MAX};
        case 14:
            return (struct place){2, HEAD, UINT32_MAX};
        default:
            return (struct place){0, HEAD, UINT32_MAX};
    }
}

static void damage(struct fuzz_input *in, bool in_use) {
    const uint8_t where = fuzz_u8(in);
    const struct place place = place_of(where);
    const uint32_t off = fuzz_u32(in);
    size_t n = 1 + fuzz_u8(in) % 16;
    unsigned char *const bytes = copy[place.file].at;
    const size_t size = copy[place.file].n;
    if (!bytes || place.first >= size) return;
    /* As with caches, data are checked once, when they are mapped, and a file that is cut later ends who reads it (SIGBUS). */
    if (in_use && (place.file > 0 || where >= 252)) return;
    if (where >= 252) {
        resize(place.file, off % (size + 8192));
        return;
    }
    const size_t room = place.n > 0 && place.n < size - place.first ? place.n : size - place.first;
    for (size_t at = place.first + off % room; n > 0 && at < size; n--) bytes[at++] = fuzz_u8(in);
}

void fuzz_store_damage(struct fuzz_input *in, bool in_use) {
    while (in->left > 0) damage(in, in_use);
}

int fuzz_store_fd(void) { return copy[0].fd; }

static void seal(void) {
    struct shmt_manifest m; /* aligned */
    if (!copy[0].at) return;
    unsigned char *at = copy[0].at + SHMT_SEGMENT_HEADER_BYTES + offsetof(struct shmt_head, manifest);
    memcpy(&m, at, sizeof m);
    shmt_manifest_seal(&m);
    memcpy(at, &m, sizeof m);
}

void fuzz_store_die(void) {
    shmt_mark_drop(copy[0].fd, SHMT_MARK_RUN);
    marked = false;
}

void fuzz_store_put(uint32_t run, bool seals, bool runs, struct fuzz_input *in) {
    if (!made[0]) make_runs();
    for (int file = 0; file < N_FILES; file++) restore(file, &content[run % FUZZ_N_RUNS][file]);
    find_places(run % FUZZ_N_RUNS);
    if (runs) shmt_named_sign(copy[0].fd); /* who made the run has ended */
    fuzz_store_damage(in, false);
    if (seals) seal();
    if (runs && !marked) FUZZ_CHECK(shmt_mark_hold(copy[0].fd, SHMT_MARK_RUN, NULL) == 1);
    if (!runs && marked) fuzz_store_die();
    marked = runs;
}
