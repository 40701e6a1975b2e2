/* What a checkpoint of an exact fit has besides: a note of its own, with all numbers (one table says which, for writing and for
 * reading), and tensors. See checkpoint_priv.h; what the numbers are: solve/keep.h. */
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "solve/choose.h"
#include "solve/newton.h"
#include "train/checkpoint_priv.h"
#include "train/model_read.h"

#define FAR             1e300
#define LEAST_TOLERANCE 1e-12 /* of option tolerance */
#define LOOSE           1e-6  /* of the objective: a bound above it is none */
#define MOST_COUNT      1000000

/* COUNT: 32 bits; REAL: a finite double; ABOVE, BELOW: one that may be infinite, then it is null. */
enum kind { COUNT, REAL, ABOVE, BELOW };

struct field {
    const char *key;
    enum kind kind;
    size_t offset;
    double least, most;
};

#define AT(field) offsetof(struct shmt_checkpoint_fit, field)

static const struct field FIELDS[] = {
    {"live", COUNT, AT(live), 0, SHMT_LIVE_ATOMIC},
    {"l1", REAL, AT(l1), 0, FAR},
    {"l2", REAL, AT(l2), 0, FAR},
    {"tolerance", REAL, AT(tolerance), LEAST_TOLERANCE, 1},
    {"chosen", COUNT, AT(kept.chosen), 0, 1},
    {"scaled", COUNT, AT(kept.scaled), 0, 1},
    {"strength", COUNT, AT(kept.strength), 0, SHMT_CHOICE_STRENGTHS - 1},
    {"fits", COUNT, AT(kept.fits), 0, MOST_COUNT},
    {"choice_loss", ABOVE, AT(kept.choice_loss), -FAR, FAR},
    {"direct", COUNT, AT(kept.direct), 0, 1},
    {"interior", COUNT, AT(kept.interior), 0, 1},
    {"may_leave", COUNT, AT(kept.may_leave), 0, 1},
    {"leaves", COUNT, AT(kept.leaves), 0, 1},
    {"returns", COUNT, AT(kept.returns), 0, 1},
    {"idle", COUNT, AT(kept.idle), 0, SHMT_NEWTON_MOST_IDLE},
    {"unproved", COUNT, AT(kept.unproved), 0, SHMT_NEWTON_MOST_UNPROVED},
    {"exhausted", COUNT, AT(kept.exhausted), 0, 1},
    {"primal", REAL, AT(kept.primal), 0, FAR},
    {"bound", BELOW, AT(kept.dual), -FAR, FAR},
    {"best", REAL, AT(kept.best), 0, FAR},
    {"least_gap", ABOVE, AT(kept.gap), -FAR, FAR},
    {"stuck_gap", ABOVE, AT(kept.stuck), -FAR, FAR},
    {"objective", ABOVE, AT(kept.published), 0, FAR},
    {"nearer_gap", ABOVE, AT(kept.nearer), -FAR, FAR},
    {"small_curve", REAL, AT(kept.small), 0, 1},
};
#define N_FIELDS (sizeof FIELDS / sizeof *FIELDS)

/* ---- writing ---- */

static json_t *value_of(const struct field *field, const struct shmt_checkpoint_fit *fit) {
    const unsigned char *at = (const unsigned char *)fit + field->offset;
    uint32_t n;
    double x;
    if (field->kind == COUNT) {
        memcpy(&n, at, sizeof n);
        return json_integer(n);
    }
    memcpy(&x, at, sizeof x);
    return isinf(x) ? json_null() : json_real(x);
}

char *shmt_checkpoint_make_fit_note(const struct shmt_checkpoint_fit *fit) {
    json_t *note = json_object();
    int rc = note ? 0 : -1;
    for (size_t i = 0; i < N_FIELDS && rc == 0; i++) rc = json_object_set_new(note, FIELDS[i].key, value_of(&FIELDS[i], fit));
    char *text = rc == 0 ? json_dumps(note, JSON_COMPACT) : NULL;
    json_decref(note);
    return text;
}

void shmt_checkpoint_put_proof(const struct shmtrain_epoch *epoch, double row[SHMT_PROOF_COLUMNS]) {
    row[0] = epoch->objective;
    row[1] = epoch->bound;
}

/* ---- reading ---- */

static int refuse(const char *name, const char *key, const char *why, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: key \"" SHMT_MODEL_FIT "\": \"%s\": %s", name, key, why);
}

static bool take(const struct field *field, const json_t *value, unsigned char *at) {
    const double x = json_is_null(value) ? (field->kind == BELOW ? -INFINITY : INFINITY) : json_number_value(value);
    const bool open = field->kind == ABOVE || field->kind == BELOW;
    if (json_is_null(value) ? !open : !json_is_number(value) || !(x >= field->least && x <= field->most)) return false;
    if (field->kind == COUNT) {
        const uint32_t n = (uint32_t)json_integer_value(value);
        memcpy(at, &n, sizeof n);
        return json_is_integer(value);
    }
    memcpy(at, &x, sizeof x);
    return true;
}

/* Numbers that cannot all be those of one fit. */
static const char *contradiction(const struct shmt_checkpoint_fit *fit) {
    const struct shmt_kept_fit *k = &fit->kept;
    if (k->leaves && (k->interior || !k->may_leave)) return "leaves";
    if (k->returns && !k->interior) return "returns";
    if (k->chosen != (k->fits > 0) || (k->chosen && (fit->live || fit->l1 > 0))) return "chosen";
    if (!k->chosen && (k->strength > 0 || !(fit->l1 > 0 || fit->l2 > 0))) return "l2";
    if (k->best > k->primal) return "best";
    return k->dual > (1 + LOOSE) * k->best ? "bound" : NULL;
}

static int take_all(const char *name, const json_t *note, struct shmt_checkpoint_fit *out, struct shmt_error *e) {
    for (size_t i = 0; i < N_FIELDS; i++) {
        const json_t *value = json_object_get(note, FIELDS[i].key);
        if (!value) return refuse(name, FIELDS[i].key, "is missing", e);
        if (!take(&FIELDS[i], value, (unsigned char *)out + FIELDS[i].offset))
            return refuse(name, FIELDS[i].key, "this value is not possible", e);
    }
    const char *wrong = contradiction(out);
    return wrong ? refuse(name, wrong, "this value contradicts others", e) : 0;
}

int shmt_checkpoint_take_fit_note(const char *name, const char *text, struct shmt_checkpoint_fit *out, struct shmt_error *e) {
    json_error_t why;
    json_t *note = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    const int rc = json_is_object(note)
                       ? take_all(name, note, out, e)
                       : shmt_fail(e, SHMTRAIN_E_DATA, "%s: key \"" SHMT_MODEL_FIT "\": expected a JSON object", name);
    json_decref(note);
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
