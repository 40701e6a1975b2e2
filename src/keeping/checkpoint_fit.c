/* What a checkpoint of an exact fit has besides: a note of its own, with all numbers (one table says which, for writing and for
 * reading), and tensors. See checkpoint_priv.h; what the numbers are: solve/keep.h. */
#include <math.h>

#include "keeping/checkpoint_priv.h"
#include "files/note_fields.h"
#include "solve/choose.h"
#include "solve/newton.h"

#define FAR             1e300
#define LEAST_TOLERANCE 1e-12 /* of option tolerance */
#define LOOSE           1e-6  /* of the objective: a bound above it is none */
#define MOST_COUNT      1000000

/* OPEN: a real that may be infinite, which null stands for. LATER: one that is 0 in checkpoints of before there was one. */
#define FIELD(key, member, least, most) ROW(key, member, least, most, 0, false)
#define OPEN(key, member, least, null)  ROW(key, member, least, FAR, null, false)
#define LATER(key, member, least, most) ROW(key, member, least, most, 0, true)
#define ROW(key, member, least, most, null, later) \
    { key, SHMT_FIELD(struct shmt_checkpoint_fit, member), least, most, NULL, null, later }

static const struct shmt_bounded FIELDS[] = {
    FIELD("live", live, 0, SHMT_LIVE_ATOMIC),
    FIELD("l1", l1, 0, FAR),
    FIELD("l2", l2, 0, FAR),
    FIELD("tolerance", tolerance, LEAST_TOLERANCE, 1),
    FIELD("chosen", kept.chosen, 0, 1),
    FIELD("scaled", kept.scaled, 0, 1),
    FIELD("strength", kept.strength, 0, SHMT_CHOICE_STRENGTHS - 1),
    FIELD("fits", kept.fits, 0, MOST_COUNT),
    OPEN("choice_loss", kept.choice_loss, -FAR, INFINITY),
    FIELD("direct", kept.direct, 0, 1),
    FIELD("interior", kept.interior, 0, 1),
    FIELD("may_leave", kept.may_leave, 0, 1),
    FIELD("leaves", kept.leaves, 0, 1),
    FIELD("returns", kept.returns, 0, 1),
    FIELD("idle", kept.idle, 0, SHMT_NEWTON_MOST_IDLE),
    FIELD("unproved", kept.unproved, 0, SHMT_NEWTON_MOST_UNPROVED),
    FIELD("exhausted", kept.exhausted, 0, 1),
    FIELD("primal", kept.primal, 0, FAR),
    OPEN("bound", kept.dual, -FAR, -INFINITY),
    FIELD("best", kept.best, 0, FAR),
    OPEN("least_gap", kept.gap, -FAR, INFINITY),
    OPEN("stuck_gap", kept.stuck, -FAR, INFINITY),
    OPEN("objective", kept.published, 0, INFINITY),
    OPEN("nearer_gap", kept.nearer, -FAR, INFINITY),
    FIELD("small_curve", kept.small, 0, 1),
    LATER("promise", kept.along, -FAR, FAR),
    LATER("halvings", kept.halvings, 0, SHMT_NEWTON_MOST_HALVINGS),
};
#define N_FIELDS (sizeof FIELDS / sizeof *FIELDS)

/* ---- writing ---- */

char *shmt_checkpoint_make_fit_note(const struct shmt_checkpoint_fit *fit) {
    json_t *note = json_object();
    int rc = 0;
    for (size_t i = 0; i < N_FIELDS; i++) rc |= shmt_note_put(note, &FIELDS[i], fit);
    return shmt_note_text(note, rc);
}

void shmt_checkpoint_put_proof(const struct shmtrain_epoch *epoch, double row[SHMT_PROOF_COLUMNS]) {
    row[0] = epoch->objective;
    row[1] = epoch->bound;
}

/* ---- reading ---- */

/* Numbers that cannot all be those of one fit. */
static const char *contradiction(const struct shmt_checkpoint_fit *fit) {
    const struct shmt_kept_fit *k = &fit->kept;
    if (k->leaves && (k->interior || !k->may_leave)) return "leaves";
    if (k->returns && !k->interior) return "returns";
    if (k->halvings && !fit->live) return "halvings";
    if (k->chosen != (k->fits > 0) || (k->chosen && (fit->live || fit->l1 > 0))) return "chosen";
    if (!k->chosen && (k->strength > 0 || !(fit->l1 > 0 || fit->l2 > 0))) return "l2";
    if (k->best > k->primal) return "best";
    return k->dual > (1 + LOOSE) * k->best ? "bound" : NULL;
}

int shmt_checkpoint_take_fit_note(const char *name, const char *text, struct shmt_checkpoint_fit *out, struct shmt_error *e) {
    struct shmt_note_in in = {name, SHMT_MODEL_FIT, NULL};
    int rc = shmt_note_open(&in, text, e);
    if (rc < 0) return rc;
    for (size_t i = 0; i < N_FIELDS && rc == 0; i++) rc = shmt_note_take(&in, &FIELDS[i], out, e);
    const char *wrong = rc == 0 ? contradiction(out) : NULL;
    if (wrong) rc = shmt_note_refuse(&in, wrong, "this value contradicts others", e);
    json_decref(in.note);
    out->is = rc == 0;
    return rc;
}

void shmt_checkpoint_take_proof(const double row[SHMT_PROOF_COLUMNS], struct shmtrain_epoch *out) {
    out->objective = row[0];
    out->bound = row[1];
}

bool shmt_checkpoint_are_finite(const double *x, uint64_t n) {
    bool finite = true;
    for (uint64_t i = 0; i < n; i++) finite &= isfinite(x[i]) != 0;
    return finite;
}
