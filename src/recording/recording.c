/* Recording and replaying of runs: see recording.h. */
#include "recording/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/replace.h"
#include "configuration/output.h"
#include "keeping/parameters.h"
#include "ps/spec_fields.h"
#include "watching/report.h"
#include "workers/deaths.h"
#include "workers/run.h"

#define MOST_BYTES ((uint64_t)1 << 30) /* of all tapes */

static bool records(const struct shmt_run *run) { return run->config->record[0] != '\0'; }
static bool replays(const struct shmt_run *run) { return run->config->replay[0] != '\0'; }

int shmt_recording_begin(struct shmt_run *run, const char *data) {
    const struct shmt_config *c = run->config;
    struct shmt_error *e = &run->call->error;
    shmt_recording_close(run);
    if (records(run) && replays(run)) return shmt_refuse(e, "--record and --replay are for two runs: leave out one of them");
    if (replays(run)) return shmt_record_read(c->replay, &run->recording->record, e);
    if (!records(run)) return 0;
    const char *const others[][2] = {{"--trace", c->trace}, {"--metrics", c->metrics}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i][1][0] && shmt_output_is_same(c->record, others[i][1]))
            return shmt_refuse(e, "--record and %s would write to the same file: name two files", others[i][0]);
    int rc = shmt_output_check(run->call, c, "--record ", data, c->record);
    if (rc == 0) rc = shmt_replace_check(c->record, "the record", e);
    if (rc < 0) return rc;
    run->recording->record = calloc(1, sizeof *run->recording->record);
    return run->recording->record ? 0 : shmt_no_memory(e, "for a record");
}

void shmt_recording_close(struct shmt_run *run) {
    shmt_record_free(run->recording->record);
    *run->recording = (struct shmt_recording){0};
}

/* ---- what can be kept ---- */

static int refuse_kind(struct shmt_run *run, const char *option) {
    struct shmt_error *e = &run->call->error;
    const struct shmt_spec *spec = &run->spec;
    const struct shmt_config *c = run->config;
    if (run->fits)
        return shmt_refuse(e, "%s is of steps of SGD, and this run is an exact fit: leave out --tolerance, or %s", option,
                           option);
    if (shmt_policy_is_live(&spec->policy) && replays(run))
        return shmt_refuse(e, "--replay: this run is in %.60s, and that of %s was in a mode that aggregates: use its options",
                           run->mode_taken, run->recording->record->name);
    if (shmt_policy_is_live(&spec->policy))
        return shmt_refuse(
            e,
            "%s is for modes that aggregate, and in %.60s every store of a worker decides: use --mode sync or backup, "
            "or --write aggregate with --staleness N",
            option, run->mode_taken);
    if (!(run->backend->caps & SHMT_CAP_MANY)) return shmt_refuse(e, "%s: use --backend shm", option);
    if (c->name[0]) return shmt_refuse(e, "%s: who joins by name is not recorded: leave out --name", option);
    if (c->checkpoint[0]) return shmt_refuse(e, "%s: pauses for checkpoints are not recorded: leave out --checkpoint", option);
    if (run->wants_snapshots) return shmt_refuse(e, "%s: pauses for snapshots are not recorded", option);
    return 0;
}

int shmt_recording_plan(struct shmt_run *run, uint32_t n_threads) {
    const struct shmt_record *record = run->recording->record;
    const char *option = replays(run) ? "--replay" : "--record";
    struct shmt_spec *spec = &run->spec;
    if (!record) return 0;
    const int rc = refuse_kind(run, option);
    if (rc < 0) return rc;
    if (n_threads > 1) return shmt_refuse(&run->call->error, "%s: each worker has one thread: use --threads 1", option);
    if (!shmt_policy_has_rounds(&spec->policy)) return 0;
    if (replays(run)) {
        spec->tape = (struct shmt_tape_plan){.use = SHMT_TAPE_REPLAY, .epochs = record->epochs, .room = 1};
        for (uint32_t seat = 0; record->n && seat < record->spec.n_seats; seat++)
            spec->tape.room = shmt_max_u64(spec->tape.room, record->n[seat]);
        return 0;
    }
    spec->tape = (struct shmt_tape_plan){.use = SHMT_TAPE_RECORD, .room = shmt_tape_room(spec)};
    if (spec->tape.room <= MOST_BYTES / sizeof(struct shmt_taped) / spec->n_seats) return 0;
    return shmt_refuse(
        &run->call->error,
        "--record keeps up to %llu gradients of each of %u workers, which takes more than 1 GiB: use fewer epochs, "
        "--steps, or a larger --batch",
        (unsigned long long)spec->tape.room, spec->n_seats);
}

/* ---- what the run is ---- */

void shmt_recording_take_data(struct shmt_run *run, const struct shmtrain_data *data) {
    if (!run->recording->record) return;
    shmt_data_print_make(data, &run->recording->data);
    run->recording->has_data = true;
}

/* Of this run, into *out. */
static int describe(const struct shmt_run *run, struct shmt_record *out) {
    const struct shmt_recording *r = run->recording;
    out->spec = run->spec;
    out->data = r->data;
    out->bias = run->job.settings.bias != 0;
    snprintf(out->model, sizeof out->model, "%s", run->job.model ? run->job.model->name : "");
    snprintf(out->model_options, sizeof out->model_options, "%s", run->job.model ? run->texts.joined : "");
    snprintf(out->data_name, sizeof out->data_name, "%s", r->has_data && run->dataset_name ? run->dataset_name : "");
    for (char *at = out->data_name; *at; at++)
        if (*at < ' ' || *at > '~') *at = '?'; /* notes are UTF-8, names of files any bytes */
    return shmt_parameters_hash(run->params, NULL, NULL, &out->begin_xxh64, &run->call->error);
}

/* ---- comparing ---- */

struct comparison {
    struct shmt_run *run;
    const struct shmt_record *with;
    int rc; /* of the first that differs */
};

static void compare(struct comparison *m, const char *what, const char *ours, const char *theirs) {
    if (m->rc < 0 || strcmp(ours, theirs) == 0) return;
    m->rc = shmt_refuse(&m->run->call->error, "--replay: %s is %.60s here, but %.60s in the run of %s", what,
                        ours[0] ? ours : "\"\"", theirs[0] ? theirs : "\"\"", m->with->name);
}

/* The largest number stands for none, of steps or of a bound. */
static void tell_count(uint64_t count, char out[24]) {
    if (count == UINT64_MAX)
        snprintf(out, 24, "without a limit");
    else
        snprintf(out, 24, "%llu", (unsigned long long)count);
}

static void compare_counts(struct comparison *m, const char *what, uint64_t ours, uint64_t theirs) {
    char text[2][24];
    tell_count(ours, text[0]);
    tell_count(theirs, text[1]);
    compare(m, what, text[0], text[1]);
}

static void compare_hashes(struct comparison *m, const char *what, uint64_t ours, uint64_t theirs) {
    if (m->rc < 0 || ours == theirs) return;
    m->rc = shmt_refuse(&m->run->call->error, "--replay: %s differ from those in the run of %s", what, m->with->name);
}

static void compare_field(struct comparison *m, const struct shmt_spec_field *field) {
    const struct shmt_bounded *f = &field->is;
    const struct shmt_spec *ours = &m->run->spec, *theirs = &m->with->spec;
    char option[40], text[2][40];
    snprintf(option, sizeof option, "--%s", f->key);
    for (char *at = option; *at; at++)
        if (*at == '_') *at = '-';
    if (!shmt_bounded_is_real(f) && !f->word)
        compare_counts(m, option, shmt_bounded_count(f, ours), shmt_bounded_count(f, theirs));
    if (f->word)
        compare(m, option, f->word((uint32_t)shmt_bounded_count(f, ours)), f->word((uint32_t)shmt_bounded_count(f, theirs)));
    if (!shmt_bounded_is_real(f)) return;
    snprintf(text[0], sizeof text[0], "%.9g", shmt_bounded_real(f, ours));
    snprintf(text[1], sizeof text[1], "%.9g", shmt_bounded_real(f, theirs));
    compare(m, option, text[0], text[1]);
}

/* The model and the data first: what follows from them would be told of as options that nobody has typed. */
static int compare_all(struct shmt_run *run, const struct shmt_record *ours) {
    SHMT_PLAIN_NUMBERS;
    struct comparison m = {.run = run, .with = run->recording->record};
    const struct shmt_record *theirs = m.with;
    const struct shmt_spec_field *field;
    compare(&m, "--model", ours->model, theirs->model);
    compare(&m, "the model's options", ours->model_options, theirs->model_options);
    compare_counts(&m, "--bias", ours->bias, theirs->bias);
    compare_counts(&m, "--seed", ours->spec.order.seed, theirs->spec.order.seed); /* generated data goes by it */
    compare_counts(&m, "the data's number of examples", ours->data.examples, theirs->data.examples);
    compare_counts(&m, "the data's number of features", ours->data.features, theirs->data.features);
    compare_counts(&m, "the data's number of nonzeros", ours->data.nonzeros, theirs->data.nonzeros);
    compare_hashes(&m, "labels, weights or lengths of rows", ours->data.xxh64, theirs->data.xxh64);
    compare_counts(&m, "the number of examples to train on", ours->spec.n_examples, theirs->spec.n_examples);
    for (size_t i = 0; (field = shmt_spec_field_at(i)); i++)
        if (field->uses & SHMT_IN_NOTE) compare_field(&m, field);
    compare_counts(&m, "--steps", ours->spec.max_steps, theirs->spec.max_steps);
    compare_counts(&m, "the number of updates of earlier runs", ours->spec.steps_before, theirs->spec.steps_before);
    compare_hashes(&m, "the parameters that it begins with", ours->begin_xxh64, theirs->begin_xxh64);
    return m.rc;
}

/* ---- tapes ---- */

/* relaxed, all: no worker exists yet; the start of the workers publishes them */
static void fill_tapes(struct shmt_run *run) {
    const struct shmt_record *record = run->recording->record;
    const struct shmt_taped *from = record->gradient;
    for (uint32_t seat = 0; seat < record->spec.n_seats; seat++) {
        struct shmt_tape *tape = run->backend->store->tape(run->job.store, seat);
        const uint64_t n = record->n[seat];
        if (n > 0) memcpy(shmt_tape_gradients(tape), from, n * sizeof *from);
        store_relaxed(&tape->n, n);
        store_relaxed(&tape->next, n > 0 ? from->pulled : SHMT_TAPED_NONE);
        from += n;
    }
}

int shmt_recording_start(struct shmt_run *run) {
    struct shmt_recording *r = run->recording;
    if (!r->record) return 0;
    if (records(run)) return describe(run, r->record);
    struct shmt_record *ours = calloc(1, sizeof *ours);
    if (!ours) return shmt_no_memory(&run->call->error, "to compare a run with its record");
    int rc = describe(run, ours);
    if (rc == 0) rc = compare_all(run, ours);
    if (rc == 0 && r->record->n) fill_tapes(run);
    free(ours);
    return rc;
}

/* What the workers have left; 0, or _DATA with what keeps it from being a record. relaxed: they have been waited for. */
static int take_tapes(struct shmt_run *run, struct shmt_error *e) {
    struct shmt_record *record = run->recording->record;
    const uint32_t seats = run->spec.n_seats;
    if (run->spec.tape.use == SHMT_TAPE_OFF) return 0;
    record->n = calloc(seats, sizeof *record->n);
    for (uint32_t seat = 0; record->n && seat < seats; seat++) {
        record->n[seat] = load_relaxed(&run->backend->store->tape(run->job.store, seat)->n);
        if (record->n[seat] > run->spec.tape.room)
            return shmt_fail(e, SHMTRAIN_E_DATA, "worker %u made %llu gradients, and there was room for %llu", seat,
                             (unsigned long long)record->n[seat], (unsigned long long)run->spec.tape.room);
        record->total += record->n[seat];
    }
    if (record->n) record->gradient = malloc((record->total + 1) * sizeof *record->gradient);
    if (!record->n || !record->gradient) return shmt_no_memory(e, "for a record");
    struct shmt_taped *to = record->gradient;
    for (uint32_t seat = 0; seat < seats; to += record->n[seat++])
        memcpy(to, shmt_tape_gradients(run->backend->store->tape(run->job.store, seat)), record->n[seat] * sizeof *to);
    return shmt_tape_check(&record->spec, record->n, record->gradient, &record->epochs, e);
}

/* What there was to keep. */
static void say_count(const struct shmt_run *run, const char *did, const char *preposition, const char *name) {
    const struct shmt_record *record = run->recording->record;
    const struct shmt_log *log = &run->call->log;
    if (record->n)
        shmt_log(log, "%s %llu gradients %s %s", did, (unsigned long long)record->total, preposition, name);
    else
        shmt_log(log, "%s a run in sync, whose parameters depend on no order, %s %s", did, preposition, name);
}

static void write_record(struct shmt_run *run) {
    struct shmt_record *record = run->recording->record;
    struct shmt_error why = {0};
    char name[SHMT_NAME_SHOWN];
    shmt_show_name(run->config->record, name);
    record->end_xxh64 = run->report.parameters_xxh64;
    if (run->deaths->n_noted > 0)
        (void)shmt_fail(&why, SHMTRAIN_E_DATA, "a worker died");
    else if (run->timed_out || shmt_stop_asked(run->call))
        (void)shmt_fail(&why, SHMTRAIN_E_DATA, "the run was stopped before its end");
    else if (take_tapes(run, &why) == 0 && shmt_record_write(run->config->record, record, &why) == 0)
        say_count(run, "recorded", "in", name);
    if (why.status < 0) shmt_report_unwritten(run, "the record %s is not written: %s", name, why.text);
}

int shmt_recording_end(struct shmt_run *run, int rc) {
    const struct shmt_record *record = run->recording->record;
    const uint64_t ours = run->report.parameters_xxh64;
    if (!record || rc < 0) return rc;
    if (records(run)) {
        write_record(run);
        return rc;
    }
    if (ours != record->end_xxh64)
        return shmt_fail(
            &run->call->error, SHMTRAIN_E_DATA,
            "--replay: the parameters (xxh64 %016llx) are not those of the run of %s (%016llx): its data has other "
            "values, or another version of shmtrain or its libraries made it",
            (unsigned long long)ours, record->name, (unsigned long long)record->end_xxh64);
    say_count(run, "replayed", "of", record->name);
    return rc;
}
