/* The note of a checkpoint, and rows of its epochs: one table says what stands in the note, for writing and for reading. See
 * checkpoint_priv.h. */
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "consistency/chunks.h"
#include "train/checkpoint_priv.h"
#include "train/goal.h"
#include "train/model_read.h"

/* ---- words ---- */

static const char *write_word(uint32_t i) { return shmt_write_name((enum shmt_write)i); }
static const char *late_word(uint32_t i) { return shmt_late_name((enum shmt_late)i); }
static const char *replicas_word(uint32_t i) { return shmt_replicas_name((enum shmt_replicas)i); }
static const char *merge_word(uint32_t i) { return shmt_merge_name((enum shmt_merge)i); }
static const char *rule_word(uint32_t i) { return shmt_rule_name((enum shmt_rule_kind)i); }
static const char *schedule_word(uint32_t i) { return shmt_rate_name(&(struct shmt_rate){.kind = (int)i}); }

struct words {
    const char *(*word)(uint32_t i);
    uint32_t n;
};
static const struct words WRITES = {write_word, SHMT_WRITE_AGGREGATE + 1}, LATES = {late_word, SHMT_LATE_FOLD + 1},
                          COPIES = {replicas_word, SHMT_REPLICAS_WORKER + 1}, MERGES = {merge_word, SHMT_MERGE_DAMPED + 1},
                          RULES = {rule_word, SHMT_N_RULES}, SCHEDULES = {schedule_word, SHMT_RATE_COSINE + 1},
                          ENDS = {shmt_end_name, SHMT_N_ENDS};

/* ---- the table ---- */

/* COUNT32, COUNT64: whole numbers; OPEN64: UINT64_MAX, which stands for "no bound", is null; HEX64: a text of 16 digits; FLAG:
 * a bool; TEXT: char[n]; WORD: one of `words`, 32 bits. */
enum kind { COUNT32, COUNT64, OPEN64, HEX64, FLAG, REAL32, REAL64, TEXT, WORD };

struct field {
    const char *key;
    enum kind kind;
    size_t offset;
    double least, most; /* of numbers; TEXT: characters, with the 0 */
    const struct words *words;
};

#define AT(field) offsetof(struct shmt_checkpoint, field)
#define LONG      9.2e18 /* JSON's whole numbers are below 2^63 */
#define FAR       1e300

_Static_assert(sizeof(enum shmt_write) == 4 && sizeof(enum shmt_late) == 4 && sizeof(enum shmt_replicas) == 4 &&
                   sizeof(enum shmt_merge) == 4 && sizeof(int) == 4,
               "words are 32 bits");

/* clang-format off */
static const struct field FIELDS[] = {
    {"epoch", COUNT32, AT(at.epoch), 0, 1000000, NULL},
    {"step", COUNT64, AT(at.step), 0, LONG, NULL},
    {"steps_before", COUNT64, AT(at.steps_before), 0, LONG, NULL},
    {"epoch_seconds", REAL64, AT(at.epoch_seconds), 0, FAR, NULL},
    {"seconds", REAL64, AT(at.seconds), 0, FAR, NULL},
    {"ended_by", WORD, AT(ended_by), 0, 0, &ENDS},
    {"mode", TEXT, AT(mode), 0, sizeof(((struct shmt_checkpoint *)0)->mode), NULL},
    {"write", WORD, AT(spec.policy.write), 0, 0, &WRITES},
    {"staleness", OPEN64, AT(spec.policy.staleness), 0, LONG, NULL},
    {"quorum", COUNT32, AT(spec.policy.quorum), 0, SHMT_MAX_SEATS, NULL},
    {"late", WORD, AT(spec.policy.late), 0, 0, &LATES},
    {"replicas", WORD, AT(spec.policy.replicas), 0, 0, &COPIES},
    {"merge_every", COUNT32, AT(spec.policy.merge_every), 0, 1 << 30, NULL},
    {"merge", WORD, AT(spec.policy.merge), 0, 0, &MERGES},
    {"workers", COUNT32, AT(spec.n_workers), 1, SHMT_MAX_SEATS, NULL},
    {"seats", COUNT32, AT(spec.n_seats), 1, SHMT_MAX_SEATS, NULL},
    {"epochs", COUNT32, AT(spec.epochs), 1, 1000000, NULL},
    {"examples", COUNT64, AT(spec.n_examples), 1, UINT32_MAX, NULL},
    {"batch", COUNT32, AT(spec.batch), 1, 2e9, NULL},
    {"chunks", COUNT32, AT(spec.n_chunks), 1, SHMT_MAX_CHUNKS, NULL},
    {"item", COUNT32, AT(spec.item), 1, 2e9, NULL},
    {"group", COUNT32, AT(group), 0, 4096, NULL},
    {"seed", COUNT64, AT(spec.order.seed), 0, LONG, NULL},
    {"shuffle", FLAG, AT(spec.order.shuffle), 0, 0, NULL},
    {"optimizer", WORD, AT(spec.rule.kind), 0, 0, &RULES},
    {"l1", REAL32, AT(spec.rule.l1), 0, FAR, NULL},
    {"l2", REAL32, AT(spec.rule.l2), 0, FAR, NULL},
    {"momentum", REAL32, AT(spec.rule.momentum), 0, 1, NULL},
    {"beta2", REAL32, AT(spec.rule.beta2), 0, 1, NULL},
    {"epsilon", REAL32, AT(spec.rule.epsilon), 0, FAR, NULL},
    {"beta", REAL32, AT(spec.rule.beta), 0, FAR, NULL},
    {"rate", REAL32, AT(spec.rate.base), 0, FAR, NULL},
    {"schedule", WORD, AT(spec.rate.kind), 0, 0, &SCHEDULES},
    {"power", REAL32, AT(spec.rate.power), 0, SHMT_RATE_MAX_POWER, NULL},
    {"decay_every", REAL64, AT(spec.rate.every), 0, FAR, NULL},
    {"decay_by", REAL64, AT(spec.rate.factor), 0, 1, NULL},
    {"warmup", REAL64, AT(spec.rate.warmup), 0, FAR, NULL},
    {"rate_epochs", REAL64, AT(spec.rate.epochs), 0, FAR, NULL},
    {"model", TEXT, AT(model), 0, sizeof(((struct shmt_checkpoint *)0)->model), NULL},
    {"bias", COUNT32, AT(bias), 0, 1, NULL},
    {"data_examples", COUNT64, AT(data.examples), 0, LONG, NULL},
    {"data_features", COUNT64, AT(data.features), 0, LONG, NULL},
    {"data_nonzeros", COUNT64, AT(data.nonzeros), 0, LONG, NULL},
    {"data_xxh64", HEX64, AT(data.xxh64), 0, 0, NULL},
};
/* clang-format on */
#define L2_CHOSEN "l2_chosen" /* a flag that need not be there */
#define N_FIELDS  (sizeof FIELDS / sizeof *FIELDS)

/* ---- writing ---- */

static json_t *field_value(const struct field *field, const void *at) {
    uint32_t n32;
    uint64_t n64;
    float f;
    double d;
    bool b;
    switch (field->kind) {
        case COUNT32:
            memcpy(&n32, at, sizeof n32);
            return json_integer(n32);
        case WORD:
            memcpy(&n32, at, sizeof n32);
            return json_string(n32 < field->words->n ? field->words->word(n32) : "");
        case COUNT64:
        case OPEN64:
        case HEX64:
            memcpy(&n64, at, sizeof n64);
            if (field->kind == HEX64) return json_sprintf("%016llx", (unsigned long long)n64);
            return field->kind == OPEN64 && n64 == UINT64_MAX ? json_null() : json_integer((json_int_t)n64);
        case FLAG:
            memcpy(&b, at, sizeof b);
            return json_boolean(b);
        case REAL32:
            memcpy(&f, at, sizeof f);
            return json_real((double)f);
        case REAL64:
            memcpy(&d, at, sizeof d);
            return json_real(d);
        case TEXT:
            return json_string(at);
    }
    return NULL;
}

char *shmt_checkpoint_make_note(const struct shmt_checkpoint *checkpoint) {
    json_t *note = json_pack("{s:i}", "format", checkpoint->fit.is ? SHMT_CHECKPOINT_FORMAT : 1);
    int rc = note ? 0 : -1;
    for (size_t i = 0; i < N_FIELDS && rc == 0; i++)
        rc = json_object_set_new(note, FIELDS[i].key,
                                 field_value(&FIELDS[i], (const unsigned char *)checkpoint + FIELDS[i].offset));
    if (rc == 0 && checkpoint->l2_chosen) rc = json_object_set_new(note, L2_CHOSEN, json_true());
    char *text = rc == 0 ? json_dumps(note, JSON_COMPACT) : NULL;
    json_decref(note);
    return text;
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

static int refuse(const char *name, const char *key, const char *why, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: key \"" SHMT_MODEL_CHECKPOINT "\": \"%s\": %s", name, key, why);
}

static bool take_count(const struct field *field, const json_t *value, uint64_t *out) {
    const json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < 0 || (double)n < field->least || (double)n > field->most) return false;
    *out = (uint64_t)n;
    return true;
}

static bool take_hex(const char *text, uint64_t *out) {
    char *end = NULL;
    if (!text || strlen(text) != 16 || text[strspn(text, "0123456789abcdef")] != '\0') return false;
    *out = strtoull(text, &end, 16);
    return true;
}

static bool take_word(const struct words *words, const char *text, uint32_t *out) {
    for (*out = 0; text && *out < words->n; ++*out)
        if (strcmp(words->word(*out), text) == 0) return true;
    return false;
}

/* -0 is 0: nothing here tells them apart. */
static bool take_real(const struct field *field, const json_t *value, double *out) {
    *out = json_number_value(value);
    return json_is_number(value) && *out >= field->least && *out <= field->most;
}

static bool take_float(const struct field *field, const json_t *value, float *out) {
    double d = 0;
    if (!take_real(field, value, &d) || d > 3e38) return false;
    *out = (float)d;
    return true;
}

static bool take_text(const struct field *field, const char *text, char *out) {
    const size_t n = text ? strlen(text) : 0;
    if (!text || (double)n >= field->most) return false;
    memcpy(out, text, n + 1);
    return true;
}

static bool take_field(const struct field *field, const json_t *value, void *at) {
    uint64_t n64 = UINT64_MAX;
    uint32_t n32 = 0;
    float f = 0;
    double d = 0;
    bool good = false, b;
    switch (field->kind) {
        case COUNT32:
            good = take_count(field, value, &n64);
            n32 = (uint32_t)n64;
            memcpy(at, &n32, sizeof n32);
            return good;
        case WORD:
            good = take_word(field->words, json_string_value(value), &n32);
            memcpy(at, &n32, sizeof n32);
            return good;
        case COUNT64:
        case OPEN64:
        case HEX64:
            good = field->kind == HEX64 ? take_hex(json_string_value(value), &n64)
                                        : (field->kind == OPEN64 && json_is_null(value)) || take_count(field, value, &n64);
            memcpy(at, &n64, sizeof n64);
            return good;
        case FLAG:
            b = json_is_true(value);
            memcpy(at, &b, sizeof b);
            return json_is_boolean(value);
        case REAL32:
            good = take_float(field, value, &f);
            memcpy(at, &f, sizeof f);
            return good;
        case REAL64:
            good = take_real(field, value, &d);
            memcpy(at, &d, sizeof d);
            return good;
        case TEXT:
            return take_text(field, json_string_value(value), at);
    }
    return false;
}

static int take_all(const char *name, const json_t *note, struct shmt_checkpoint *out, struct shmt_error *e) {
    const json_t *format = json_object_get(note, "format");
    if (!json_is_integer(format) || json_integer_value(format) < 1)
        return refuse(name, "format", "expected a number of at least 1", e);
    if (json_integer_value(format) > SHMT_CHECKPOINT_FORMAT)
        return refuse(name, "format", "a later version of shmtrain wrote it: use that version", e);
    out->format = (uint32_t)json_integer_value(format);
    for (size_t i = 0; i < N_FIELDS; i++) {
        const json_t *value = json_object_get(note, FIELDS[i].key);
        if (!value) return refuse(name, FIELDS[i].key, "is missing", e);
        if (!take_field(&FIELDS[i], value, (unsigned char *)out + FIELDS[i].offset))
            return refuse(name, FIELDS[i].key, "this value is not possible", e);
    }
    out->l2_chosen = json_is_true(json_object_get(note, L2_CHOSEN));
    out->spec.order.n_examples = out->spec.n_examples;
    out->spec.max_steps = SHMT_NO_LIMIT;
    return 0;
}

int shmt_checkpoint_take_note(const char *name, const char *text, struct shmt_checkpoint *out, struct shmt_error *e) {
    json_error_t why;
    json_t *note = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    const int rc = json_is_object(note)
                       ? take_all(name, note, out, e)
                       : shmt_fail(e, SHMTRAIN_E_DATA, "%s: key \"" SHMT_MODEL_CHECKPOINT "\": expected a JSON object", name);
    json_decref(note);
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
