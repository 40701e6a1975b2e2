/* Reading and writing records: see record_file.h. */
#include "recording/record_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/model_read.h"
#include "files/note_fields.h"
#include "ps/spec_fields.h"

#define N         "record/n"
#define GRADIENTS "record/gradients"
#define LONG      9.2e18 /* JSON's whole numbers are below 2^63 */

_Static_assert(sizeof(struct shmt_taped) == SHMT_TAPED_WORDS * sizeof(uint64_t), "a gradient is a row of the file");

#define AT(member)    offsetof(struct shmt_record, member)
#define CHARS(member) SHMT_CHARS, AT(member), 0, sizeof(((struct shmt_record *)0)->member), NULL, 0, false

/* What is not in the table of the spec. */
static const struct shmt_bounded FIELDS[] = {
    {"model", CHARS(model)},
    {"model_options", CHARS(model_options)},
    {"bias", SHMT_U32, AT(bias), 0, 1, NULL, 0, false},
    {"max_steps", SHMT_OPEN64, AT(spec.max_steps), 1, LONG, NULL, 0, false},
    {"steps_before", SHMT_U64, AT(spec.steps_before), 0, LONG, NULL, 0, false},
    {"data_name", CHARS(data_name)},
    {"data_examples", SHMT_U64, AT(data.examples), 0, LONG, NULL, 0, false},
    {"data_features", SHMT_U64, AT(data.features), 0, LONG, NULL, 0, false},
    {"data_nonzeros", SHMT_U64, AT(data.nonzeros), 0, LONG, NULL, 0, false},
    {"data_xxh64", SHMT_HEX64, AT(data.xxh64), 0, 2e19, NULL, 0, false},
    {"begin_xxh64", SHMT_HEX64, AT(begin_xxh64), 0, 2e19, NULL, 0, false},
    {"parameters_xxh64", SHMT_HEX64, AT(end_xxh64), 0, 2e19, NULL, 0, false},
};
enum { N_FIELDS = sizeof FIELDS / sizeof *FIELDS };

/* ---- writing ---- */

static char *make_note(const struct shmt_record *record) {
    const struct shmt_spec_field *field;
    json_t *note = json_pack("{s:i}", "format", SHMT_RECORD_FORMAT);
    int rc = 0;
    for (size_t i = 0; (field = shmt_spec_field_at(i)); i++)
        if (field->uses & SHMT_IN_NOTE) rc |= shmt_note_put(note, &field->is, &record->spec);
    for (size_t i = 0; i < N_FIELDS; i++) rc |= shmt_note_put(note, &FIELDS[i], record);
    return shmt_note_text(note, rc);
}

int shmt_record_write(const char *path, const struct shmt_record *record, struct shmt_error *e) {
    char *text = make_note(record);
    const struct shmt_note note = {SHMT_MODEL_RECORD, text};
    const struct shmt_tensor tensor[] = {
        {.name = N, .rows = record->spec.n_seats, .width = 1, .data = record->n, .dtype = SHMT_DTYPE_U64},
        {.name = GRADIENTS,
         .rows = record->total,
         .width = SHMT_TAPED_WORDS,
         .data = record->gradient,
         .dtype = SHMT_DTYPE_U64}};
    if (!text) return shmt_no_memory(e, "to write a record");
    const int rc = shmt_model_file_write(path, tensor, record->n ? 2 : 0, &note, 1, e);
    free(text);
    return rc;
}

/* ---- reading ---- */

static int take_note(const char *text, struct shmt_record *out, struct shmt_error *e) {
    struct shmt_note_in in = {out->name, SHMT_MODEL_RECORD, NULL};
    const struct shmt_spec_field *field;
    int rc = shmt_note_open(&in, text, e);
    if (rc < 0) return rc;
    const json_t *format = json_object_get(in.note, "format");
    if (!json_is_integer(format) || json_integer_value(format) != SHMT_RECORD_FORMAT)
        rc = shmt_note_refuse(&in, "format", "another version of shmtrain wrote it: use that version", e);
    for (size_t i = 0; rc == 0 && (field = shmt_spec_field_at(i)); i++)
        if (field->uses & SHMT_IN_NOTE) rc = shmt_note_take(&in, &field->is, &out->spec, e);
    for (size_t i = 0; i < N_FIELDS && rc == 0; i++) rc = shmt_note_take(&in, &FIELDS[i], out, e);
    json_decref(in.note);
    return rc;
}

/* A tensor of U64 of that many rows, into memory that is made for it. */
static int take_tensor(const struct shmt_model_in *in, const struct shmt_record *record, const char *name, uint64_t rows,
                       uint64_t width, void **out, struct shmt_error *e) {
    uint32_t i;
    const bool found = shmt_model_find(in, name, &i);
    const struct shmt_tensor *tensor = found ? shmt_model_tensor(in, i) : NULL;
    if (!found || tensor->dtype != SHMT_DTYPE_U64 || tensor->rows != rows || tensor->width != width || rows == 0)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s: expected a tensor \"%s\" of %llu rows of %llu U64", record->name, name,
                         (unsigned long long)rows, (unsigned long long)width);
    *out = malloc(rows * width * sizeof(uint64_t)); /* as many bytes as the file has of it */
    return *out ? shmt_model_read_tensor(in, i, *out, e) : shmt_no_memory(e, "to read %s", record->name);
}

static int take_gradients(const struct shmt_model_in *in, struct shmt_record *out, struct shmt_error *e) {
    struct shmt_error why = {0};
    void *n = NULL, *gradient = NULL;
    int rc = take_tensor(in, out, N, out->spec.n_seats, 1, &n, e);
    out->n = n;
    for (uint32_t seat = 0; rc == 0 && seat < out->spec.n_seats; seat++)
        if (!shmt_add_u64(out->total, out->n[seat], &out->total)) out->total = UINT64_MAX;
    if (rc == 0) rc = take_tensor(in, out, GRADIENTS, out->total, SHMT_TAPED_WORDS, &gradient, e);
    out->gradient = gradient;
    if (rc == 0 && shmt_tape_check(&out->spec, out->n, out->gradient, &out->epochs, &why) < 0)
        rc = shmt_fail(e, why.status, "%s: %s", out->name, why.text);
    return rc;
}

int shmt_record_read(const char *path, struct shmt_record **out, struct shmt_error *e) {
    struct shmt_model_in *in = NULL;
    struct shmt_record *record = calloc(1, sizeof *record);
    if (!record) return shmt_no_memory(e, "to read a record");
    shmt_show_name(path, record->name);
    int rc = access(path, R_OK) == 0 ? 0 : shmt_fail_errno(e, "cannot open the record %s", record->name);
    if (rc == 0) rc = shmt_model_open(path, &in, e);
    const char *note = rc == 0 ? shmt_model_note(in, SHMT_MODEL_RECORD) : NULL;
    if (rc == 0 && !note) rc = shmt_fail(e, SHMTRAIN_E_DATA, "%s is no record: --record FILE writes one", record->name);
    if (rc == 0) rc = take_note(note, record, e);
    if (rc == 0 && shmt_policy_has_rounds(&record->spec.policy)) rc = take_gradients(in, record, e);
    shmt_model_close(in);
    if (rc == 0)
        *out = record;
    else
        shmt_record_free(record);
    return rc;
}

void shmt_record_free(struct shmt_record *record) {
    if (!record) return;
    free(record->n);
    free(record->gradient);
    free(record);
}
