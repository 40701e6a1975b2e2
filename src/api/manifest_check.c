/* Reading a manifest that somebody else has written, and trusting nothing in it: see manifest.h.
 *
 * The sum over all tells accidents; the checks behind it are for manifests that somebody has made on purpose, and name every
 * bound that code below relies on: sizes of arrays, divisors, shifts, tables of names. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/manifest_priv.h"
#include "backends/shm/shm.h"
#include "base/cpu.h"
#include "base/show.h"
#include "consistency/chunks.h"
#include "math/finite.h"
#include "segment/named.h"
#include "segment/segment.h"
#include "solve/memory.h"
#include "store/race.h"
#include "train/board.h"

#define MOST_EPOCHS      1000000u
#define MOST_SPIN_NS     1000000000u
#define MOST_PARTS       (1u << 20)
#define MOST_ITEM        (1u << 24)            /* of option item */
#define MOST_MERGE_EVERY ((uint32_t)INT32_MAX) /* of mode local:H */

/* ---- texts and numbers ---- */

static bool has_end(const char *text, size_t size) { return strnlen(text, size) < size; }

/* Names that stand in sentences and reports, as far as they have an end. */
static void show_texts_plainly(struct shmt_manifest *m) {
    char *const text[] = {m->model, m->blas, m->train.name, m->valid.name};
    const size_t size[] = {sizeof m->model, sizeof m->blas, sizeof m->train.name, sizeof m->valid.name};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (has_end(text[i], size[i])) shmt_show_plainly(text[i]);
}

static bool is_switch(uint32_t x) { return x <= 1; }

static bool texts_end(const struct shmt_manifest *m) {
    return has_end(m->model, sizeof m->model) && has_end(m->blas, sizeof m->blas) &&
           has_end(m->train.name, sizeof m->train.name) && has_end(m->valid.name, sizeof m->valid.name);
}

/* Workers have as many seats each, and so have guests. */
static bool has_seats(const struct shmt_manifest *m) {
    if (m->n_seats > SHMT_MAX_SEATS || m->n_guests >= m->n_seats || m->n_workers == 0) return false;
    const uint32_t own = m->n_seats - m->n_guests;
    return own >= m->n_workers && own % m->n_workers == 0 && m->n_guests % (own / m->n_workers) == 0;
}

#define MOST_TRACE_EVENTS (1u << 24)

static bool has_policy(const struct shmt_manifest *m) {
    return m->write <= SHMT_WRITE_AGGREGATE && m->late <= SHMT_LATE_FOLD && m->replicas <= SHMT_REPLICAS_WORKER &&
           m->merge <= SHMT_MERGE_DAMPED && is_switch(m->unmeasured) && m->trace_events <= MOST_TRACE_EVENTS &&
           m->cpu < SHMT_N_CPUS;
}

static struct shmt_policy policy_of(const struct shmt_manifest *m) {
    return (struct shmt_policy){.write = (enum shmt_write)m->write,
                                .staleness = m->staleness,
                                .quorum = m->quorum,
                                .replicas = (enum shmt_replicas)m->replicas,
                                .merge = (enum shmt_merge)m->merge};
}

/* As spec.c deals: in rounds an item is a seat's part of the batch, else at most a fourth of its part of the examples; or as
 * many as an earlier run had with other workers, which this one goes on from. */
static bool has_items(const struct shmt_manifest *m) {
    const uint64_t own = m->n_seats - m->n_guests;
    const struct shmt_policy policy = policy_of(m);
    if (shmt_policy_has_rounds(&policy)) return m->item * own == m->batch;
    const uint64_t parts = m->first_epoch > 0 || m->first_step > 0 ? 1 : 4 * own;
    return m->item >= 1 && m->item <= MOST_ITEM && m->item <= shmt_ceil_div(m->n_examples, parts);
}

/* A chunk is a bit field of trees; a batch is a divisor. */
static bool has_work(const struct shmt_manifest *m) {
    const bool chunks = m->n_chunks >= 1 && m->n_chunks <= SHMT_MAX_CHUNKS && (m->n_chunks & (m->n_chunks - 1)) == 0;
    return has_policy(m) && chunks && m->n_chunks <= m->batch && has_items(m) && m->epochs <= MOST_EPOCHS &&
           m->max_steps >= 1 && m->first_epoch < m->epochs && is_switch(m->may_pause) && is_switch(m->shuffle) &&
           is_switch(m->count_lost) && m->race_ns <= m->count_lost * SHMT_RACE_MOST_NS && m->race_share >= 0 &&
           m->race_share <= 1 && is_switch(m->l2_shares) && is_switch(m->row_places) && is_switch(m->curvatures) &&
           m->spin_ns <= MOST_SPIN_NS && m->n_threads >= 1 && m->n_threads <= SHMT_MAX_SEATS;
}

/* Where there are copies, H is a divisor, and else 0; damped merges, and no others, go by curvatures. */
static bool has_merges(const struct shmt_manifest *m) {
    const struct shmt_policy policy = policy_of(m);
    const uint32_t least = shmt_policy_has_replicas(&policy) ? 1 : 0, most = least * MOST_MERGE_EVERY;
    return m->merge_every >= least && m->merge_every <= most && m->curvatures == shmt_policy_is_damped(&policy);
}

static bool has_rate(const struct shmt_manifest *m) {
    const bool finite = isfinite(m->rate_base) && isfinite(m->rate_every) && isfinite(m->rate_factor) &&
                        isfinite(m->rate_warmup) && isfinite(m->rate_epochs) && isfinite(m->momentum) && isfinite(m->beta2) &&
                        isfinite(m->epsilon) && isfinite(m->beta);
    return finite && m->rate_kind <= SHMT_RATE_COSINE && m->rate_power >= 0 && m->rate_power <= SHMT_RATE_MAX_POWER &&
           m->rate_base > 0 && m->rate_every > 0 && m->rate_factor >= 0 && m->rate_factor <= 1 && m->rate_warmup >= 0 &&
           m->rate_epochs > 0;
}

static bool has_places(const struct shmt_manifest *m) {
    const uint32_t nodes = m->place_n_nodes ? m->place_n_nodes : 1;
    if (nodes > SHMT_MAX_NODES || m->n_seats > SHMT_MAX_SEATS || m->place_parts > MOST_PARTS) return false;
    for (uint32_t seat = 0; seat < m->n_seats; seat++)
        if (m->place_seat_node[seat] >= nodes) return false;
    return m->place_policy <= SHMT_PLACE_BIND && is_switch(m->place_private_local) && is_switch(m->place_transparent) &&
           m->place_strategy <= SHMT_SHARDS_GREEDY &&
           (m->place_page_bytes == 0 || m->place_page_bytes == 4096 || m->place_page_bytes == SHMT_HUGE_BYTES);
}

static bool has_tables(const struct shmt_manifest *m) {
    if (m->n_tables > SHMT_MAX_TABLES) return false;
    for (uint32_t t = 0; t < m->n_tables; t++)
        if (m->table[t].l2_rows > m->table[t].rows) return false;
    return true;
}

/* ---- the data ---- */

/* An array of n * each bytes at `off`, aligned, inside the contents; or none, where that may be. */
static bool lies_inside(const struct shmt_manifest_data *d, uint64_t off, uint64_t n, uint64_t each, bool may_lack) {
    uint64_t bytes, end;
    if (off == SHMT_NOWHERE) return may_lack;
    return off % each == 0 && shmt_mul_u64(n, each, &bytes) && shmt_add_u64(off, bytes, &end) && end <= d->bytes;
}

static bool has_arrays(const struct shmt_manifest_data *d) {
    const bool dense = d->dense_off != SHMT_NOWHERE;
    uint64_t cells;
    if (!lies_inside(d, d->label_off, d->n_examples, sizeof(float), false) ||
        !lies_inside(d, d->weight_off, d->n_examples, sizeof(float), true))
        return false;
    if (dense)
        return d->start_off == SHMT_NOWHERE && d->id_off == SHMT_NOWHERE && d->value_off == SHMT_NOWHERE &&
               shmt_mul_u64(d->n_examples, d->n_features, &cells) && lies_inside(d, d->dense_off, cells, sizeof(float), false);
    return lies_inside(d, d->start_off, d->n_examples + 1, sizeof(uint64_t), false) &&
           lies_inside(d, d->id_off, d->n_nonzeros, sizeof(uint32_t), false) &&
           lies_inside(d, d->value_off, d->n_nonzeros, sizeof(float), true);
}

static bool has_data(const struct shmt_manifest_data *d) {
    if (!is_switch(d->shared)) return false;
    return !d->shared || (d->n_examples >= 1 && d->n_examples <= UINT32_MAX && d->bytes <= INT64_MAX && has_arrays(d));
}

static bool has_classes(const struct shmt_manifest *m) {
    if (m->n_classes > SHMTRAIN_MAX_CLASSES) return m->n_classes == SHMTRAIN_MAX_CLASSES + 1;
    for (uint32_t i = 0; i < m->n_classes; i++)
        if (!isfinite(m->classes[i]) || (i > 0 && !(m->classes[i - 1] < m->classes[i]))) return false;
    return true;
}

/* What features are called, whose number is checked elsewhere. */
static bool has_features(const struct shmt_manifest *m) {
    const struct shmt_feature_ids *f = &m->features;
    const bool hashed = f->kind == SHMT_IDS_HASHED;
    if (f->kind > SHMT_IDS_HASHED || f->first > 1 || hashed != (f->hash_bits > 0) || f->hash_bits > SHMT_HASH_BITS_MAX ||
        m->deaths > 3)
        return false;
    if (hashed && m->train.n_features != UINT32_C(1) << f->hash_bits) return false;
    return f->first == 0 || (f->kind != SHMT_IDS_LISTED && !hashed);
}

/* What is learned from what: of training and validation data either both are shared, or none, or there is no validation data
 * of its own. */
static bool has_model(const struct shmt_manifest *m) {
    const bool own = m->model[0] == '\0', split = m->share > 0;
    if (!(m->share >= 0 && m->share < 1) || !is_switch(m->bias) || !has_features(m) || m->group < 1 || m->group > 64)
        return false;
    if (!is_switch(m->with_accuracy) || !is_switch(m->with_auc)) return false;
    if (m->n_outputs < 1 || m->n_outputs > SHMTRAIN_MAX_CLASSES + 1 || m->n_valid > UINT32_MAX) return false;
    if (!has_data(&m->train) || !has_data(&m->valid) || !has_classes(m)) return false;
    if (own) return !m->train.shared && !m->valid.shared;
    if (m->train.n_labels != m->n_classes) return false;
    if (!m->train.shared) return !m->valid.shared;
    /* Models read both sets alike, and the parameters have the columns of the first. */
    if (m->valid.shared && (m->valid.n_features != m->train.n_features ||
                            (m->valid.dense_off == SHMT_NOWHERE) != (m->train.dense_off == SHMT_NOWHERE)))
        return false;
    if (split) return !m->valid.shared && m->train.n_examples == m->n_examples + m->n_valid;
    return m->train.n_examples == m->n_examples && (m->valid.shared ? m->valid.n_examples == m->n_valid : m->n_valid == 0);
}

/* The board of a fit has its memory behind it, with a note for those who watch. */
static bool has_fit(const struct shmt_manifest *m) {
    const uint64_t note = sizeof(struct shmt_solve_note);
    if (m->fit_tolerance == 0) return m->choice_examples == 0 && m->fit_note_off == 0;
    return m->fit_tolerance > 0 && m->fit_tolerance <= 1 && m->fit_l1 >= 0 && isfinite(m->fit_l1) && m->fit_l2 >= 0 &&
           isfinite(m->fit_l2) && is_switch(m->fit_scaled) && m->fit_live <= SHMT_LIVE_ATOMIC && m->n_guests == 0 &&
           m->choice_parts <= SHMT_CHOICE_PARTS && m->choice_held <= m->choice_parts && m->fit_note_off % 8 == 0 &&
           m->board_bytes >= note && m->fit_note_off <= m->board_bytes - note;
}

static int check_numbers(const struct shmt_manifest *m, const char *name, struct shmt_error *e) {
    const char *what = !texts_end(m)    ? "its texts are not terminated"
                       : !has_seats(m)  ? "its seats are invalid"
                       : !has_work(m)   ? "its work cannot be shared out"
                       : !has_merges(m) ? "its replicas cannot be merged"
                       : !has_rate(m)   ? "its learning rate is invalid"
                       : !has_places(m) ? "its places are invalid"
                       : !has_tables(m) ? "its tables are invalid"
                       : !has_model(m)  ? "its model or its data is invalid"
                       : !has_fit(m)    ? "its fit is invalid"
                                        : NULL;
    if (!what) return 0;
    return shmt_fail(e, SHMTRAIN_E_USAGE, "store %s is refused: %s: shmtrain rm %s removes it", name, what, name);
}

/* ---- the whole ---- */

/* The board as who made the store has planned it, and a file that is as long as the layout says: to whole pages. */
static int check_spec(int fd, const struct shmt_manifest *m, const char *name, const struct shmt_spec *spec,
                      struct shmt_error *e) {
    struct shmt_board_plan board;
    struct shmt_error why = {0};
    struct shmt_need need;
    struct stat file;
    uint64_t bytes = 0;
    if (SHMT_BACKEND_SHM.plan(spec, &need, &why) < 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "store %s is refused: %s", name, why.text);
    shmt_manifest_board(m, &board);
    if (fstat(fd, &file) != 0) return shmt_fail_errno(e, "cannot read the status of store %s", name);
    const bool has_board = m->fit_tolerance > 0 ? board.bytes <= spec->board_bytes : board.bytes == spec->board_bytes;
    if (!has_board || !shmt_round_up_u64(need.total_bytes, (uint64_t)sysconf(_SC_PAGESIZE), &bytes) ||
        bytes != (uint64_t)file.st_size)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "store %s is refused: it is %jd bytes long, but its description needs %llu: shmtrain rm %s removes it",
                         name, (intmax_t)file.st_size, (unsigned long long)bytes, name);
    return 0;
}

static int check(int fd, struct shmt_manifest *m, const char *name, struct shmt_spec *spec, struct shmt_error *e) {
    if (m->magic != SHMT_MANIFEST_MAGIC)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "store %s is refused: its file is not a store of shmtrain: shmtrain rm %s removes it", name, name);
    if (m->version != SHMT_MANIFEST_VERSION || m->bytes != sizeof *m)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "store %s is refused: it has version %u with %u bytes, not %d with %zu: use the same shmtrain in all "
                         "programs",
                         name, m->version, m->bytes, SHMT_MANIFEST_VERSION, sizeof *m);
    if (m->check != shmt_manifest_sum(m))
        return shmt_fail(e, SHMTRAIN_E_USAGE, "store %s is refused: its description is damaged: shmtrain rm %s removes it",
                         name, name);
    if (m->uid != geteuid())
        return shmt_fail(e, SHMTRAIN_E_USAGE, "store %s is refused: it says that user %u created it", name, m->uid);
    show_texts_plainly(m);
    const int rc = check_numbers(m, name, e);
    if (rc < 0) return rc;
    shmt_manifest_spec(m, spec);
    return check_spec(fd, m, name, spec, e);
}

/* All of it, or as much as there is. */
static int read_all(int fd, void *out, size_t bytes, uint64_t off, size_t *n_out, const char *name, struct shmt_error *e) {
    size_t n = 0;
    while (n < bytes) {
        const ssize_t got = pread(fd, (unsigned char *)out + n, bytes - n, (off_t)(off + n));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return shmt_fail_errno(e, "cannot read store %s", name);
        if (got == 0) break;
        n += (size_t)got;
    }
    *n_out = n;
    return 0;
}

/* Who makes a store writes the manifest last, into a file that is empty first and full of zeros then. */
static bool is_unwritten(const struct shmt_manifest *m, uint32_t state, size_t n, uint64_t file_bytes) {
    if (shmt_named_is_empty(file_bytes)) return true;
    return n == sizeof *m && state == SHMT_STATE_MAKING && (m->magic == 0 || m->magic == SHMT_MANIFEST_MAGIC);
}

/* 1: it is there; 0: not yet, or it never will be. */
static int read_written(int fd, const char *name, struct shmt_manifest *out, struct shmt_error *e) {
    const uint64_t head = SHMT_SEGMENT_HEADER_BYTES;
    struct stat file;
    uint32_t state = SHMT_STATE_MAKING;
    size_t n = 0;
    if (fstat(fd, &file) != 0) return shmt_fail_errno(e, "cannot read the status of store %s", name);
    /* The state first: what it says to be there was written before. The kernel copies one after the other. */
    int rc = read_all(fd, &state, sizeof state, head + offsetof(struct shmt_head, state), &n, name, e);
    if (rc == 0) rc = read_all(fd, out, sizeof *out, head + offsetof(struct shmt_head, manifest), &n, name, e);
    if (rc < 0) return rc;
    if (is_unwritten(out, state, n, (uint64_t)file.st_size)) return 0;
    if (n < sizeof *out) out->magic = 0;
    return 1;
}

static bool is_removed(int fd) {
    struct stat file;
    return fstat(fd, &file) == 0 && file.st_nlink == 0;
}

/* Several looks: its maker takes the mark a moment after it has made the file, and drops it a moment after it has written, or
 * removed, what it made. */
static int wait_until_written(int fd, const char *name, struct shmt_manifest *out, struct shmt_error *e) {
    const struct timespec moment = {.tv_nsec = 5000000};
    int rc;
    for (int look = 0; (rc = read_written(fd, name, out, e)) == 0 && look < 4; look++) {
        if (shmt_named_runs(fd))
            return shmt_fail(e, SHMTRAIN_E_AGAIN, "store %s is not ready: its run is still being prepared", name);
        (void)nanosleep(&moment, NULL);
    }
    if (rc != 0) return rc;
    if (is_removed(fd)) return shmt_fail(e, SHMTRAIN_E_USAGE, "there is no store %s any more: its run did not start", name);
    return shmt_fail(e, SHMTRAIN_E_DIED, "the run of store %s died before it started: shmtrain rm %s removes it", name, name);
}

int shmt_manifest_read(int fd, const char *name, struct shmt_manifest *out, struct shmt_spec *spec_out, struct shmt_error *e) {
    struct shmt_spec spec;
    const int rc = wait_until_written(fd, name, out, e);
    return rc < 0 ? rc : check(fd, out, name, spec_out ? spec_out : &spec, e);
}

/* ---- the data's contents ---- */

static bool rows_are_right(const struct shmtrain_data *d) {
    if (d->start[0] != 0 || d->start[d->n_examples] != d->n_nonzeros) return false;
    for (uint64_t i = 0; i < d->n_examples; i++)
        if (d->start[i] > d->start[i + 1]) return false;
    for (uint64_t k = 0; k < d->n_nonzeros; k++)
        if (d->id[k] >= d->n_features) return false;
    return true;
}

int shmt_manifest_check_data(const char *name, const struct shmtrain_data *data, struct shmt_error *e) {
    const char *what = !shmt_all_finite(data->label, data->n_examples)                    ? "a label is not a finite number"
                       : data->weight && !shmt_all_finite(data->weight, data->n_examples) ? "a weight is not a finite number"
                       : data->start && !rows_are_right(data)                             ? "an example extends beyond its end"
                                                                                          : NULL;
    if (!what) return 0;
    return shmt_fail(e, SHMTRAIN_E_USAGE, "the data of store %s is damaged: %s", name, what);
}
