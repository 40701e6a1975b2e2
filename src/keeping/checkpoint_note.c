/* The note of a checkpoint, and rows of its epochs. What the note says of the spec is in its table (ps/spec_fields.h); here is the
 * one of all the rest. See checkpoint_priv.h. */
#include <math.h>
#include <stdio.h>

#include "keeping/checkpoint_priv.h"
#include "files/model_read.h"
#include "files/note_fields.h"
#include "ps/spec_fields.h"
#include "train/goal.h"

#define LONG 9.2e18 /* JSON's whole numbers are below 2^63 */
#define FAR  1e300

#define NUMBER(key, member, least, most) \
    { key, SHMT_FIELD(struct shmt_checkpoint, member), least, most, NULL, 0, false }
#define CHARS(key, member)                                                                                                    \
    {                                                                                                                         \
        key, SHMT_CHARS, offsetof(struct shmt_checkpoint, member), 0, sizeof(((struct shmt_checkpoint *)0)->member), NULL, 0, \
            false                                                                                                             \
    }
#define OTHER(key, kind, member, most, words) \
    { key, kind, offsetof(struct shmt_checkpoint, member), 0, most, words, 0, false }

static const struct shmt_bounded FIELDS[] = {
    NUMBER("epoch", at.epoch, 0, SHMT_MAX_EPOCHS),
    NUMBER("step", at.step, 0, LONG),
    NUMBER("steps_before", at.steps_before, 0, LONG),
    NUMBER("epoch_seconds", at.epoch_seconds, 0, FAR),
    NUMBER("seconds", at.seconds, 0, FAR),
    OTHER("ended_by", SHMT_WORD32, ended_by, SHMT_N_ENDS - 1, shmt_end_name),
    CHARS("mode", mode),
    /* here are those of the spec, and behind its `item`: */
    NUMBER("group", group, 0, 4096),
    /* the rest of the spec, and: */
    CHARS("model", model),
    NUMBER("bias", bias, 0, 1),
    NUMBER("data_examples", data.examples, 0, LONG),
    NUMBER("data_features", data.features, 0, LONG),
    NUMBER("data_nonzeros", data.nonzeros, 0, LONG),
    OTHER("data_xxh64", SHMT_HEX64, data.xxh64, 2e19, NULL),
};
enum { GROUP = 7, N_FIELDS = sizeof FIELDS / sizeof *FIELDS };

#define L2_CHOSEN     "l2_chosen"     /* a flag that need not be there */
#define MODEL_OPTIONS "model_options" /* likewise, a text */

/* ---- writing ---- */

static int put(json_t *note, const struct shmt_checkpoint *checkpoint, size_t from, size_t to) {
    int rc = 0;
    for (size_t i = from; i < to; i++) rc |= shmt_note_put(note, &FIELDS[i], checkpoint);
    return rc;
}

char *shmt_checkpoint_make_note(const struct shmt_checkpoint *checkpoint) {
    const struct shmt_spec_field *field;
    json_t *note = json_pack("{s:i}", "format", checkpoint->fit.is ? SHMT_CHECKPOINT_FORMAT : 1);
    int rc = put(note, checkpoint, 0, GROUP);
    for (size_t i = 0; (field = shmt_spec_field_at(i)); i++) {
        if (field->uses & SHMT_IN_NOTE) rc |= shmt_note_put(note, &field->is, &checkpoint->spec);
        if (field->is.offset == offsetof(struct shmt_spec, item)) rc |= put(note, checkpoint, GROUP, GROUP + 1);
    }
    rc |= put(note, checkpoint, GROUP + 1, N_FIELDS);
    if (checkpoint->l2_chosen) rc |= json_object_set_new(note, L2_CHOSEN, json_true());
    if (checkpoint->model_options[0]) rc |= json_object_set_new(note, MODEL_OPTIONS, json_string(checkpoint->model_options));
    return shmt_note_text(note, rc);
}

void shmt_checkpoint_put_epoch(const struct shmtrain_epoch *epoch, double row[SHMT_EPOCH_COLUMNS]) {
    row[0] = epoch->epoch;
    row[1] = epoch->partial;
    row[2] = (double)epoch->examples; /* below 2^53 */
    row[3] = epoch->seconds;
    row[4] = epoch->train_loss;
    row[5] = epoch->valid_loss;
    row[6] = epoch->valid_accuracy;
    row[7] = epoch->valid_auc;
}

/* ---- reading ---- */

static int take_all(const struct shmt_note_in *in, struct shmt_checkpoint *out, struct shmt_error *e) {
    const struct shmt_spec_field *field;
    const json_t *format = json_object_get(in->note, "format");
    if (!json_is_integer(format) || json_integer_value(format) < 1)
        return shmt_note_refuse(in, "format", "expected a number of at least 1", e);
    if (json_integer_value(format) > SHMT_CHECKPOINT_FORMAT)
        return shmt_note_refuse(in, "format", "a later version of shmtrain wrote it: use that version", e);
    out->format = (uint32_t)json_integer_value(format);
    int rc = 0;
    for (size_t i = 0; i < N_FIELDS && rc == 0; i++) rc = shmt_note_take(in, &FIELDS[i], out, e);
    for (size_t i = 0; rc == 0 && (field = shmt_spec_field_at(i)); i++)
        if (field->uses & SHMT_IN_NOTE) rc = shmt_note_take(in, &field->is, &out->spec, e);
    const json_t *options = json_object_get(in->note, MODEL_OPTIONS);
    if (rc == 0 && options && (!json_is_string(options) || json_string_length(options) >= sizeof out->model_options))
        return shmt_note_refuse(in, MODEL_OPTIONS, "expected a text", e);
    snprintf(out->model_options, sizeof out->model_options, "%s", options ? json_string_value(options) : "");
    out->l2_chosen = json_is_true(json_object_get(in->note, L2_CHOSEN));
    out->spec.order.n_examples = out->spec.n_examples;
    out->spec.max_steps = SHMT_NO_LIMIT;
    return rc;
}

int shmt_checkpoint_take_note(const char *name, const char *text, struct shmt_checkpoint *out, struct shmt_error *e) {
    struct shmt_note_in in = {name, SHMT_MODEL_CHECKPOINT, NULL};
    int rc = shmt_note_open(&in, text, e);
    if (rc < 0) return rc;
    rc = take_all(&in, out, e);
    json_decref(in.note);
    return rc;
}

/* A whole number that a double holds exactly. */
static bool is_count(double x, double most) { return x >= 0 && x <= most && x == floor(x); }

bool shmt_checkpoint_take_epoch(const double row[SHMT_EPOCH_COLUMNS], struct shmtrain_epoch *out) {
    if (!is_count(row[0], UINT32_MAX) || !is_count(row[1], 1) || !is_count(row[2], 9007199254740992.0) || !(row[3] >= 0))
        return false;
    *out = (struct shmtrain_epoch){.epoch = (uint32_t)row[0],
                                   .partial = (uint32_t)row[1],
                                   .examples = (uint64_t)row[2],
                                   .seconds = row[3],
                                   .train_loss = row[4],
                                   .objective = NAN,
                                   .bound = NAN,
                                   .valid_loss = row[5],
                                   .valid_accuracy = row[6],
                                   .valid_auc = row[7]};
    return true;
}
