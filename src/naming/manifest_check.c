/* Reading a manifest that somebody else has written, and trusting nothing in it: see manifest.h.
 *
 * The sum over all tells accidents; the checks behind it are for manifests that somebody has made on purpose, and hold, with
 * the bounds of ps/spec_fields.c, all that code below relies on: sizes of arrays, divisors, shifts, tables of names. */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "naming/manifest_priv.h"
#include "backends/shm/shm.h"
#include "base/cpu.h"
#include "base/io.h"
#include "base/show.h"
#include "math/finite.h"
#include "ps/replicas.h"
#include "segment/named.h"
#include "segment/segment.h"
#include "solve/memory.h"
#include "sync/host.h"
#include "train/board.h"

#define MOST_ITEM (1u << 24) /* of option item */

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
    return has_end(m->model, sizeof m->model) && has_end(m->model_options, sizeof m->model_options) &&
           has_end(m->blas, sizeof m->blas) && has_end(m->train.name, sizeof m->train.name) &&
           has_end(m->valid.name, sizeof m->valid.name);
}

/* ---- the spec ---- */

/* Each field is within its bounds already (ps/spec_fields.c). Here are those that have to fit one another. */
static const char *const WRONG[] = {[SHMT_PART_SEATS] = "its seats are invalid",
                                    [SHMT_PART_WORK] = "its work cannot be shared out",
                                    [SHMT_PART_MERGES] = "its replicas cannot be merged",
                                    [SHMT_PART_RATE] = "its learning rate is invalid",
                                    [SHMT_PART_PLACES] = "its places are invalid"};

/* Workers have as many seats each, and so have guests. */
static bool has_seats(const struct shmt_spec *s) {
    if (s->n_guests >= s->n_seats) return false;
    const uint32_t own = s->n_seats - s->n_guests;
    return own >= s->n_workers && own % s->n_workers == 0 && s->n_guests % (own / s->n_workers) == 0;
}

/* As running/spec.c deals: in rounds an item is a seat's part of the batch, else at most a fourth of its part of the examples; or as
 * many as an earlier run had with other workers, which this one goes on from. */
static bool has_items(const struct shmt_spec *s) {
    const uint64_t own = s->n_seats - s->n_guests;
    if (shmt_policy_has_rounds(&s->policy)) return s->item * own == s->batch;
    const uint64_t parts = s->first_epoch > 0 || s->first_step > 0 ? 1 : 4 * own;
    return s->item <= MOST_ITEM && s->item <= shmt_ceil_div(s->n_examples, parts);
}

/* A chunk is a bit field of trees. */
static bool has_work(const struct shmt_spec *s) {
    return s->cpu < SHMT_N_CPUS && (s->n_chunks & (s->n_chunks - 1)) == 0 && s->n_chunks <= s->batch && has_items(s) &&
           s->first_epoch < s->epochs && (s->count_lost || s->race_ns == 0);
}

/* Where there are copies, H is a divisor, and else 0; damped merges, and no others, go by curvatures. */
static bool has_merges(const struct shmt_spec *s) {
    return shmt_policy_merges_replicas(&s->policy) == (shmt_replicas_stretch(&s->policy) > 0) &&
           s->curvatures == shmt_policy_is_damped(&s->policy);
}

static bool has_rate(const struct shmt_spec *s) { return s->rate.base > 0 && s->rate.every > 0 && s->rate.epochs > 0; }

static bool has_places(const struct shmt_spec *s) {
    const struct shmt_placement *p = &s->placement;
    for (uint32_t seat = 0; seat < s->n_seats; seat++)
        if (p->seat_node[seat] >= shmt_max_u64(1, p->n_nodes)) return false;
    return p->page_bytes == 0 || p->page_bytes == 4096 || p->page_bytes == SHMT_HUGE_BYTES;
}

static bool has_tables(const struct shmt_spec *s) {
    if (s->n_tables > SHMT_MAX_TABLES) return false;
    for (uint32_t t = 0; t < s->n_tables; t++)
        if (s->l2_rows[t] > s->table[t].rows || shmt_tuning_check(&s->tuning[t], "", NULL) < 0) return false;
    return true;
}

static const char *spec_wrong(const struct shmt_spec *s) {
    return !has_seats(s)    ? WRONG[SHMT_PART_SEATS]
           : !has_work(s)   ? WRONG[SHMT_PART_WORK]
           : !has_merges(s) ? WRONG[SHMT_PART_MERGES]
           : !has_rate(s)   ? WRONG[SHMT_PART_RATE]
           : !has_places(s) ? WRONG[SHMT_PART_PLACES]
           : !has_tables(s) ? "its tables are invalid"
                            : NULL;
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
static bool has_model(const struct shmt_manifest *m, uint64_t n_examples) {
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
    if (split) return !m->valid.shared && m->train.n_examples == n_examples + m->n_valid;
    return m->train.n_examples == n_examples && (m->valid.shared ? m->valid.n_examples == m->n_valid : m->n_valid == 0);
}

/* The board of a fit has its memory behind it, with a note for those who watch. */
static bool has_fit(const struct shmt_manifest *m, const struct shmt_spec *s) {
    const uint64_t note = sizeof(struct shmt_solve_note);
    if (m->fit_tolerance == 0) return m->choice_examples == 0 && m->fit_note_off == 0;
    return m->fit_tolerance > 0 && m->fit_tolerance <= 1 && m->fit_l1 >= 0 && isfinite(m->fit_l1) && m->fit_l2 >= 0 &&
           isfinite(m->fit_l2) && is_switch(m->fit_scaled) && m->fit_live <= SHMT_LIVE_ATOMIC && s->n_guests == 0 &&
           m->choice_parts <= SHMT_CHOICE_PARTS && m->choice_held <= m->choice_parts && m->fit_note_off % 8 == 0 &&
           s->board_bytes >= note && m->fit_note_off <= s->board_bytes - note;
}

static const char *model_wrong(const struct shmt_manifest *m, const struct shmt_spec *s) {
    const bool threads = m->n_threads >= 1 && m->n_threads <= SHMT_MAX_SEATS;
    return !threads                       ? WRONG[SHMT_PART_WORK]
           : !has_model(m, s->n_examples) ? "its model or its data is invalid"
           : !has_fit(m, s)               ? "its fit is invalid"
                                          : NULL;
}

static int check_numbers(const struct shmt_manifest *m, const char *name, struct shmt_spec *spec, struct shmt_error *e) {
    const struct shmt_spec_field *field = shmt_manifest_spec(m, spec);
    const char *what = !texts_end(m) ? "its texts are not terminated" : field ? WRONG[field->part] : spec_wrong(spec);
    if (!what) what = model_wrong(m, spec);
    if (!what) return 0;
    return shmt_refuse(e, "store %s is refused: %s: shmtrain rm %s removes it", name, what, name);
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
    if (SHMT_BACKEND_SHM.plan(spec, &need, &why) < 0) return shmt_refuse(e, "store %s is refused: %s", name, why.text);
    shmt_manifest_board(m, spec->epochs, &board);
    if (fstat(fd, &file) != 0) return shmt_fail_errno(e, "cannot read the status of store %s", name);
    const bool has_board = m->fit_tolerance > 0 ? board.bytes <= spec->board_bytes : board.bytes == spec->board_bytes;
    if (!has_board || !shmt_round_up_u64(need.total_bytes, (uint64_t)sysconf(_SC_PAGESIZE), &bytes) ||
        bytes != (uint64_t)file.st_size)
        return shmt_refuse(
            e, "store %s is refused: it is %jd bytes long, but its description needs %llu: shmtrain rm %s removes it", name,
            (intmax_t)file.st_size, (unsigned long long)bytes, name);
    return 0;
}

static int check(int fd, struct shmt_manifest *m, const char *name, struct shmt_spec *spec, struct shmt_error *e) {
    if (m->magic != SHMT_MANIFEST_MAGIC)
        return shmt_refuse(e, "store %s is refused: its file is not a store of shmtrain: shmtrain rm %s removes it", name,
                           name);
    if (m->version != SHMT_MANIFEST_VERSION || m->bytes != sizeof *m)
        return shmt_refuse(
            e, "store %s is refused: it has version %u with %u bytes, not %d with %zu: use the same shmtrain in all programs",
            name, m->version, m->bytes, SHMT_MANIFEST_VERSION, sizeof *m);
    if (m->check != shmt_manifest_sum(m))
        return shmt_refuse(e, "store %s is refused: its description is damaged: shmtrain rm %s removes it", name, name);
    if (m->uid != geteuid()) return shmt_refuse(e, "store %s is refused: it says that user %u created it", name, m->uid);
    show_texts_plainly(m);
    const int rc = check_numbers(m, name, spec, e);
    return rc < 0 ? rc : check_spec(fd, m, name, spec, e);
}

/* Who makes a store writes the manifest last, into a file that is empty first and full of zeros then. */
static bool is_unwritten(const struct shmt_manifest *m, uint32_t state, int64_t n, uint64_t file_bytes) {
    if (shmt_named_is_empty(file_bytes)) return true;
    return n == (int64_t)sizeof *m && state == SHMT_STATE_MAKING && (m->magic == 0 || m->magic == SHMT_MANIFEST_MAGIC);
}

/* 1: it is there; 0: not yet, or it never will be. */
static int read_written(int fd, const char *name, struct shmt_manifest *out, struct shmt_error *e) {
    const uint64_t head = SHMT_SEGMENT_HEADER_BYTES;
    struct stat file;
    uint32_t state = SHMT_STATE_MAKING;
    if (fstat(fd, &file) != 0) return shmt_fail_errno(e, "cannot read the status of store %s", name);
    /* The state first: what it says to be there was written before. The kernel copies one after the other. */
    if (shmt_io_read(fd, &state, sizeof state, head + offsetof(struct shmt_head, state)) < 0)
        return shmt_fail_errno(e, "cannot read store %s", name);
    const int64_t n = shmt_io_read(fd, out, sizeof *out, head + offsetof(struct shmt_head, manifest));
    if (n < 0) return shmt_fail_errno(e, "cannot read store %s", name);
    if (is_unwritten(out, state, n, (uint64_t)file.st_size)) return 0;
    if (n < (int64_t)sizeof *out) out->magic = 0;
    return 1;
}

static bool is_removed(int fd) {
    struct stat file;
    return fstat(fd, &file) == 0 && file.st_nlink == 0;
}

/* Several looks: its maker drops the mark after it has written, or removed, what it made, and takes it, on file systems without
 * O_TMPFILE, a moment after it has made the file. */
static int wait_until_written(int fd, const char *name, struct shmt_manifest *out, struct shmt_error *e) {
    int rc;
    for (int look = 0; (rc = read_written(fd, name, out, e)) == 0 && look < 4; look++) {
        if (shmt_named_runs(fd))
            return shmt_fail(e, SHMTRAIN_E_AGAIN, "store %s is not ready: its run is still being prepared", name);
        shmt_sleep_ns(5000000);
    }
    if (rc != 0) return rc;
    if (is_removed(fd)) return shmt_refuse(e, "there is no store %s any more: its run did not start", name);
    return shmt_fail(e, SHMTRAIN_E_DIED, "the run of store %s died before it started: shmtrain rm %s removes it", name, name);
}

int shmt_manifest_read(int fd, const char *name, struct shmt_manifest *out, struct shmt_spec *spec_out, struct shmt_error *e) {
    const int rc = wait_until_written(fd, name, out, e);
    return rc < 0 ? rc : check(fd, out, name, spec_out, e);
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
    return shmt_refuse(e, "the data of store %s is damaged: %s", name, what);
}
