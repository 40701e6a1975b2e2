/* Predicting lines as they come: see stream.h.
 *
 * One thread reads, scores and hands out. Lines are gathered into a batch while there are lines, and the batch is scored when it
 * is full, or when the next line has not come yet: so a pipe that stays open gets its answers at once, and a fast one is worked
 * off in batches. Memory is that of a batch and of the longest line. */
#include "scoring/stream.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scoring/stream_lines.h"
#include "base/checked.h"
#include "base/own.h"
#include "configuration/offered.h"
#include "data/columns.h"
#include "data/csv.h"
#include "files/csv_line.h"
#include "files/libsvm_line.h"
#include "loading/arrays.h"
#include "loading/table.h"
#include "segment/budget.h"

#define MOST_SPREAD 4096 /* is_spread */

struct stream {
    const struct shmtrain_stream *from;
    shmtrain_predicted *each;
    void *arg;
    int probabilities;
    struct shmt_stream_lines lines;
    struct shmt_scores scores;
    shmtrain_session session;
    struct shmt_columns columns;
    bool is_table; /* and how its lines are read, once `table` has columns */
    struct shmt_csv_plan table;
    locale_t c_locale;
    uint64_t done; /* examples that were handed out */
    uint64_t min_id, max_id;

    /* the batch */
    uint32_t n;
    uint64_t start[SHMTRAIN_MODEL_GROUP + 1];
    float label[SHMTRAIN_MODEL_GROUP];
    uint32_t *id; /* (room) */
    float *value; /* (room) */
    uint64_t room;
    struct shmt_row row; /* of the last line; its values are in `value` */
    uint64_t row_room;
    float *dense;  /* (SHMTRAIN_MODEL_GROUP, features); NULL: the model takes sparse rows */
    float *output; /* (SHMTRAIN_MODEL_GROUP, outputs) */
};

static struct shmt_error *error_of(struct stream *s) { return &s->scores.scoring->call->error; }

/* ---- one batch ---- */

static void make_dense(const struct stream *s, uint32_t k) {
    float *row = s->dense + (uint64_t)k * s->columns.n_features;
    memset(row, 0, s->columns.n_features * sizeof *row);
    for (uint64_t j = s->start[k]; j < s->start[k + 1]; j++) row[s->id[j]] = s->value[j];
}

static int hand_out(struct stream *s) {
    const struct shmt_scores *with = &s->scores;
    float *output = s->output;
    for (uint32_t k = 0; k < s->n; k++, output += with->n_outputs) {
        const float label = shmt_scores_prediction(with, output);
        if (s->probabilities) with->model->probabilities(1, with->n_outputs, output);
        const int rc = s->each(s->arg, s->done++, label, output, with->n_outputs);
        if (rc != 0) return rc;
    }
    s->n = 0;
    return 0;
}

/* The lines that wait, as data. */
static struct shmtrain_data data_of(const struct stream *s) {
    struct shmtrain_data data = s->scores.like;
    data.n_examples = s->n;
    data.n_nonzeros = s->start[s->n];
    data.start = s->start;
    data.id = s->id;
    data.value = s->value;
    data.dense = s->dense;
    data.label = s->label;
    return data;
}

static int score_batch(struct stream *s) {
    struct shmt_scores *with = &s->scores;
    const struct shmtrain_data data = data_of(s);
    double loss;
    if (s->n == 0) return 0;
    for (uint32_t k = 0; k < s->n && s->dense; k++) make_dense(s, k);
    const struct shmtrain_batch batch = {.size = sizeof(struct shmtrain_batch), .data = &data, .n = s->n};
    const int rc = shmt_job_score_batch(&s->session, &with->job, &batch, s->output, &loss);
    if (rc == 0) return hand_out(s);
    *error_of(s) = s->session.error;
    return rc;
}

/* ---- lines ---- */

static bool grow(void **memory, uint64_t bytes) {
    void *larger = realloc(*memory, bytes);
    if (larger) *memory = larger;
    return larger != NULL;
}

/* Room for what a line of so many bytes can hold. */
static int make_room(struct stream *s, uint64_t bytes) {
    const uint64_t row = s->is_table ? shmt_csv_row_max(&s->table, bytes) : SHMT_ROW_MAX(bytes);
    const uint64_t need = (s->n > 0 ? s->start[s->n] : 0) + row;
    bool well = true;
    if (row > s->row_room) {
        free(s->row.id);
        s->row_room = 2 * row;
        s->row.id = malloc(s->row_room * sizeof *s->row.id);
        well = s->row.id != NULL;
    }
    if (need > s->room) {
        s->room = shmt_max_u64(need, 2 * s->room);
        well = well && grow((void **)&s->id, s->room * sizeof *s->id) && grow((void **)&s->value, s->room * sizeof *s->value);
    }
    return well ? 0 : shmt_no_memory(error_of(s), "for a line of %s", s->from->name);
}

/* The first line of a table says how the others are read. 1: it is no row. */
static int begin_table(struct stream *s, const char *line, uint64_t bytes) {
    struct shmt_table_wish wish;
    struct shmt_scoring *with = s->scores.scoring;
    if (!s->is_table || s->table.column) return 0;
    shmt_table_wish(with->loading, "-", SHMT_SOURCE_UNLABELLED | SHMT_SOURCE_SCORED, with->params->trained.table, &wish);
    const int rc = shmt_csv_begin(&wish.source, s->from->name, line, bytes, &s->table, error_of(s));
    const bool is_matched = with->params->trained.table && s->table.column;
    const char *remark = is_matched ? shmt_csv_match_remark(&with->params->trained.plan, &s->table) : NULL;
    if (remark) shmt_log(&with->call->log, "%s: %s", s->from->name, remark);
    return rc;
}

static int parse(const struct stream *s, const char *line, struct shmt_row *row, struct shmt_line_fault *fault) {
    return s->is_table ? shmt_csv_parse(&s->table, line, s->c_locale, row, fault)
                       : shmt_libsvm_parse(line, s->c_locale, row, fault);
}

static int add_line(struct stream *s, const char *line, uint64_t bytes) {
    struct shmt_line_fault fault;
    struct shmt_row *row = &s->row;
    int rc = begin_table(s, line, bytes);
    if (rc != 0) return rc < 0 ? rc : 0;
    rc = make_room(s, bytes);
    if (rc < 0) return rc;
    const uint64_t first = s->n > 0 ? s->start[s->n] : 0;
    row->value = s->value + first;
    if (parse(s, line, row, &fault) < 0) {
        const int scored = score_batch(s); /* the lines before it */
        if (scored != 0) return scored;
        return shmt_fail(error_of(s), SHMTRAIN_E_DATA, "%s:%llu:%llu: %s", s->from->name, (unsigned long long)s->lines.number,
                         (unsigned long long)fault.column, fault.text);
    }
    if (row->blank) return 0;
    s->min_id = shmt_min_u64(s->min_id, row->min_id);
    s->max_id = shmt_max_u64(s->max_id, row->max_id);
    s->start[++s->n] = first + shmt_columns_place(&s->columns, row->id, row->n, s->id + first, row->value);
    return s->n == SHMTRAIN_MODEL_GROUP ? score_batch(s) : 0;
}

/* Everything that is there has been handed out when it waits. */
static int read_on(struct stream *s) {
    int rc = score_batch(s);
    if (rc == 0 && s->from->pause && shmt_stream_lines_must_wait(&s->lines)) rc = s->from->pause(s->arg);
    return rc == 0 ? shmt_stream_lines_read(&s->lines) : rc;
}

static int work(struct stream *s) {
    char *line;
    uint64_t bytes;
    int rc = 0;
    while (rc == 0) {
        if (shmt_stream_lines_next(&s->lines, &line, &bytes))
            rc = add_line(s, line, bytes);
        else if (s->lines.ended)
            return score_batch(s);
        else
            rc = read_on(s);
    }
    return rc;
}

/* ---- from the first to the last ---- */

/* Of many features few are other than 0. */
static bool is_spread(const struct shmtrain_model *model, uint64_t n_features) {
    const enum shmt_row_layout rows = shmt_rows_for(model);
    return rows == SHMT_ROWS_DENSE || (rows == SHMT_ROWS_EITHER && n_features <= MOST_SPREAD);
}

/* Labels are not looked at, but models look them up in their classes. */
static int prepare(struct stream *s) {
    struct shmt_scores *with = &s->scores;
    const struct shmtrain_settings *settings = &with->job.settings;
    const uint64_t features = with->like.n_features;
    s->columns = shmt_trained_columns(&with->scoring->params->trained);
    s->is_table = shmt_table_is_expected(with->scoring->config, with->scoring->params);
    if (!s->is_table) shmt_table_note_far(with->scoring->call, with->scoring->params->trained.table, "the data");
    for (uint32_t k = 0; k < SHMTRAIN_MODEL_GROUP; k++) s->label[k] = settings->n_classes > 0 ? settings->classes[0] : 0;
    s->output = malloc((uint64_t)SHMTRAIN_MODEL_GROUP * with->n_outputs * sizeof *s->output);
    const bool dense = is_spread(with->model, features);
    if (dense) s->dense = malloc(SHMTRAIN_MODEL_GROUP * (features > 0 ? features : 1) * sizeof *s->dense);
    if (!s->output || (dense && !s->dense))
        return shmt_no_memory(error_of(s), "for a batch of %llu features", (unsigned long long)features);
    s->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!s->c_locale) return shmt_fail_errno(error_of(s), "cannot make the C locale");
    return shmt_stream_lines_open(&s->lines, with->scoring->call, s->from->fd, s->from->name);
}

static int predict(struct shmt_scoring *scoring, struct stream *s) {
    int rc = shmt_scores_alone(scoring, &s->scores);
    if (rc == 0) rc = prepare(s);
    if (rc == 0)
        rc = shmt_session_enter(&s->session, s->scores.job.backend, s->scores.made, &s->scores.spec, 0, 0,
                                &scoring->call->error);
    if (rc == 0) {
        const struct shmtrain_data none = data_of(s);
        rc = shmt_job_make_workspace(&s->session, &s->scores.job, &none, SHMTRAIN_MODEL_GROUP);
        if (rc < 0)
            *error_of(s) = s->session.error;
        else
            rc = work(s);
        shmt_own_free(s->session.workspace);
        shmt_session_leave(&s->session);
        shmt_scores_note_columns(&s->scores, s->from->name, s->min_id, s->max_id);
    }
    shmt_stream_lines_close(&s->lines);
    if (s->c_locale) freelocale(s->c_locale);
    shmt_csv_plan_fini(&s->table);
    free(s->row.id);
    free(s->id);
    free(s->value);
    free(s->dense);
    free(s->output);
    shmt_scores_free(&s->scores);
    return rc;
}

int shmt_stream_check_lines(struct shmt_call *call, const struct shmt_config *config) {
    if (!config->skip_bad_lines) return 0;
    return shmt_refuse(&call->error,
                       "predict answers every line, but --skip-bad-lines leaves some out: correct or remove the bad lines");
}

int shmt_stream_predict(struct shmt_scoring *scoring, const struct shmtrain_stream *stream, int probabilities,
                        shmtrain_predicted *each, void *arg) {
    struct stream *s = calloc(1, sizeof *s);
    if (!s) return shmt_no_memory(&scoring->call->error, "to read %s", stream->name);
    s->from = stream;
    s->each = each;
    s->arg = arg;
    s->probabilities = probabilities;
    s->min_id = UINT64_MAX;
    const int rc = probabilities ? shmt_scores_check_probabilities(scoring->call, scoring->params, scoring->offered) : 0;
    const int done = rc == 0 ? predict(scoring, s) : rc;
    free(s);
    return done;
}

/* ---- files that memory has no room for ---- */

/* Whether the first line that is one is a line of LIBSVM text. */
static bool is_libsvm(int fd) {
    enum { LOOK = 1 << 16 };
    char *text = calloc(1, LOOK + SHMT_LINE_PAD);
    uint64_t *id = malloc(SHMT_ROW_MAX(LOOK) * sizeof *id);
    float *value = malloc(SHMT_ROW_MAX(LOOK) * sizeof *value);
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    struct shmt_row row = {.id = id, .value = value, .blank = true};
    struct shmt_line_fault fault;
    const ssize_t n = text ? pread(fd, text, LOOK, 0) : -1;
    bool well = n > 0 && id && value && c_locale;
    for (const char *at = text; well && row.blank;) {
        const char *end = at < text + n ? memchr(at, '\n', (size_t)(text + n - at)) : NULL;
        well = end && shmt_libsvm_parse(at, c_locale, &row, &fault) == 0;
        if (well) at = end + 1;
    }
    if (c_locale) freelocale(c_locale);
    free(text);
    free(id);
    free(value);
    return well && !row.blank;
}

/* With a quarter more for the outputs. */
static bool fits(const struct shmt_config *config, const struct shmt_parameters *params, const struct shmt_offered *offered,
                 const char *data) {
    const struct shmtrain_model *model = params->trained.model ? shmt_model_named(offered, params->trained.model) : NULL;
    struct shmt_source *source = NULL;
    if (!model || shmt_source_open(data, config->seed, SHMT_SOURCE_UNLABELLED, &source, NULL) < 0) return true;
    const uint64_t bytes = shmt_rows_guess_bytes(source, shmt_rows_for(model));
    shmt_source_close(source);
    return shmt_budget_need(bytes + bytes / 4, data, NULL, "", NULL) == 0;
}

int shmt_stream_open_large(const struct shmt_scoring *scoring, const char *data) {
    return shmt_arrays_find(scoring->loading, data) || fits(scoring->config, scoring->params, scoring->offered, data)
               ? -1
               : shmt_stream_open_text(data);
}

int shmt_stream_open_text(const char *data) {
    struct stat there;
    if (stat(data, &there) != 0 || !S_ISREG(there.st_mode)) return -1;
    const int fd = open(data, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || is_libsvm(fd)) return fd;
    close(fd);
    return -1;
}
