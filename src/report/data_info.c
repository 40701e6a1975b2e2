/* What data is like: lines for people, and one JSON object. */
#include <shmtrain/data_info.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/fields.h"
#include "report/words_priv.h"

#define MOST_LABELS 6   /* more are told as a range */
#define BAR_COLUMNS 30  /* of the longest bar */
#define MUCH_SCALE  1e4 /* between features: one rate does not suit both */

static const uint64_t TOPS[SHMTRAIN_INFO_TOPS] = {10, 100, 1000, 10000};

/* ---- lines ---- */

/* A whole number with commas, and whole words around it. */
static const char *whole(uint64_t n, char out[32]) {
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *at = out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return out;
}

#define NAME_SHOWN (SHMTRAIN_INFO_NAME + 24)

/* The column of numbers, from 1 on, that is marked by a feature; 0: it is no mark. */
static uint64_t marked_by(const struct shmtrain_data_info *d, uint64_t id) {
    const bool is_mark = (id & (SHMTRAIN_ID_CATEGORY | SHMTRAIN_ID_MARK)) == SHMTRAIN_ID_MARK;
    return d->n_columns > 0 && is_mark ? id - SHMTRAIN_ID_MARK : 0;
}

/* A feature by its id, behind these words; but a mark as models in CSV call it: "wage is missing". */
static const char *feature_name(const struct shmtrain_data_info *d, const char *before, uint64_t id, char out[NAME_SHOWN]) {
    const uint64_t of = marked_by(d, id);
    snprintf(out, NAME_SHOWN, of > 0 ? "mark of id %s%" PRIu64 : "%s%" PRIu64, of > 0 ? "" : before, of > 0 ? of : id);
    for (uint32_t i = 0; of > 0 && i < d->n_columns && i < SHMTRAIN_INFO_COLUMNS; i++) {
        const struct shmtrain_column *c = &d->column[i];
        if (c->feature == of && c->name[0] != '\0')
            snprintf(out, NAME_SHOWN, "%s is %s", c->name, d->marks_there[i] ? "there" : "missing");
    }
    return out;
}

static void add_sizes(FILE *f, const struct shmtrain_data_info *d) {
    char a[32], b[32], c[32];
    fprintf(f, "examples    %s, %s of them empty\n", whole(d->examples, a), whole(d->empty, b));
    if (d->skipped > 0) fprintf(f, "left out    %s bad line%s\n", whole(d->skipped, a), d->skipped == 1 ? "" : "s");
    if (d->features > 0 && d->n_columns > 0)
        fprintf(f, "features    %s, of which %s occur\n", whole(d->features, a), whole(d->occurring, b));
    else if (d->features > 0)
        fprintf(f, "features    %s, ids %" PRIu64 " to %" PRIu64 ", of which %s occur\n", whole(d->features, a), d->first_id,
                d->last_id, whole(d->occurring, b));
    else
        fprintf(f, "features    none\n");
    if (d->channels > 0)
        fprintf(f, "shape       %" PRIu32 " channel%s of %" PRIu32 " x %" PRIu32 "\n", d->channels, d->channels == 1 ? "" : "s",
                d->height, d->width);
    fprintf(f, "nonzeros    %s: %s to %s per example, ", whole(d->nonzeros, a), whole(d->row_least, b), whole(d->row_most, c));
    fprintf(f, "median %s, mean %.4g\n", whole(d->row_median, a), (double)d->nonzeros / (double)d->examples);
}

static const char *const KINDS[] = {[SHMTRAIN_COLUMN_IGNORED] = "ignored",
                                    [SHMTRAIN_COLUMN_LABEL] = "label",
                                    [SHMTRAIN_COLUMN_NUMBERS] = "numbers",
                                    [SHMTRAIN_COLUMN_CATEGORIES] = "categories"};

/* Of a table. */
static void add_columns(FILE *f, const struct shmtrain_data_info *d) {
    for (uint32_t i = 0; i < d->n_columns && i < SHMTRAIN_INFO_COLUMNS; i++) {
        const struct shmtrain_column *c = &d->column[i];
        char a[32];
        fprintf(f, "%-12s%3" PRIu32 " %-10s", i == 0 ? "columns" : "", i + 1, KINDS[c->kind]);
        fprintf(f, " %s", c->name[0] != '\0' ? c->name : "(no name)");
        if (c->kind == SHMTRAIN_COLUMN_NUMBERS) fprintf(f, ", id %" PRIu32, c->feature);
        if (d->counted_from[i] != 0) fprintf(f, ", counted from %.0f", d->counted_from[i]);
        if (c->missing > 0) fprintf(f, ", missing in %s", whole(c->missing, a));
        fprintf(f, "\n");
    }
    if (d->n_columns > SHMTRAIN_INFO_COLUMNS)
        fprintf(f, "%-12sand %" PRIu32 " more\n", "", d->n_columns - SHMTRAIN_INFO_COLUMNS);
}

static void add_labels(FILE *f, const struct shmtrain_data_info *d) {
    char a[32];
    if (d->n_labels > MOST_LABELS) {
        if (d->n_labels > SHMTRAIN_MAX_CLASSES)
            fprintf(f, "labels      more than %d, ", SHMTRAIN_MAX_CLASSES);
        else
            fprintf(f, "labels      %" PRIu32 ", ", d->n_labels);
        fprintf(f, "from %.6g to %.6g, mean %.6g\n", (double)d->label_low, (double)d->label_high, d->label_mean);
        return;
    }
    for (uint32_t i = 0; i < d->n_labels; i++)
        fprintf(f, "%-12s%.6g: %s (%.1f %%)\n", i == 0 ? "labels" : "", (double)d->label[i], whole(d->label_examples[i], a),
                100 * (double)d->label_examples[i] / (double)d->examples);
}

static void add_values(FILE *f, const struct shmtrain_data_info *d) {
    if (d->nonzeros == 0) return;
    if (d->all_ones)
        fprintf(f, "values      all are 1; ");
    else
        fprintf(f, "values      from %.6g to %.6g, mean %.6g; ", (double)d->value_low, (double)d->value_high, d->value_mean);
    fprintf(f, "mean |x|^2 %.4g\n", d->mean_square);
}

/* Both axes in powers: a straight slope is a power law. */
static void add_histogram(FILE *f, const struct shmtrain_data_info *d) {
    char range[32], n[32];
    uint32_t last = 0;
    uint64_t most = 1;
    for (uint32_t k = 0; k < SHMTRAIN_INFO_OCTAVES; k++) {
        if (d->octave[k] == 0) continue;
        last = k;
        most = d->octave[k] > most ? d->octave[k] : most;
    }
    fprintf(f, "            %21s %13s  (log)\n", "in this many examples", "features");
    for (uint32_t k = 0; k <= last; k++) {
        const uint64_t from = UINT64_C(1) << k, to = 2 * from - 1;
        const int bar =
            d->octave[k] == 0 ? 0 : 1 + (int)((BAR_COLUMNS - 1) * log2((double)d->octave[k]) / fmax(1, log2((double)most)));
        if (from == to)
            snprintf(range, sizeof range, "%" PRIu64, from);
        else
            snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, from, to);
        fprintf(f, "            %21s %13s %s%.*s\n", range, whole(d->octave[k], n), bar > 0 ? " " : "", bar,
                "##############################");
    }
}

static void add_frequencies(FILE *f, const struct shmtrain_data_info *d) {
    char shown[NAME_SHOWN];
    char line[400] = "frequency   nonzeros in the N most frequent ids: N = ";
    if (d->nonzeros == 0) return;
    for (uint32_t i = 0; i < SHMTRAIN_INFO_TOPS; i++)
        if (i == 0 || TOPS[i - 1] < d->occurring)
            shmt_add_item(line, sizeof line, i == 0, "%" PRIu64 ": %.1f %%", TOPS[i], 100 * d->top_share[i]);
    fprintf(f, "%s\n", line);
    line[0] = '\0';
    shmt_add(line, sizeof line, "            most frequent ids (of examples): ");
    for (uint32_t i = 0; i < SHMTRAIN_INFO_MOST_FOUND && d->top_examples[i] > 0; i++)
        shmt_add_item(line, sizeof line, i == 0, "%s (%.3g %%)", feature_name(d, "", d->top_id[i], shown),
                      100 * (double)d->top_examples[i] / (double)d->examples);
    fprintf(f, "%s\n", line);
    add_histogram(f, d);
}

/* What may be a mistake, or may make learning hard; a line each. */
static void add_notices(FILE *f, const struct shmtrain_data_info *d) {
    char a[32], b[32], shown[NAME_SHOWN], other[NAME_SHOWN];
    const char *head = "look at";
#define NOTICE(condition, ...)         \
    do {                               \
        if (condition) {               \
            fprintf(f, "%-12s", head); \
            fprintf(f, __VA_ARGS__);   \
            head = "";                 \
        }                              \
    } while (0)
    NOTICE(d->n_labels == 1, "all labels are %g: nothing can be learned from them\n", (double)d->label_low);
    NOTICE(d->duplicates > 0, "%s examples equal an earlier one and have its label\n", whole(d->duplicates, a));
    NOTICE(d->empty > 0, "%s examples have no feature at all\n", whole(d->empty, a));
    NOTICE(d->once > 0, "%s features occur once (%.1f %% of those that occur)\n", whole(d->once, a),
           100 * (double)d->once / (double)d->occurring);
    NOTICE(d->constant > 0, "%s features have the same value in every example, like a bias: %s%s\n", whole(d->constant, a),
           feature_name(d, "id ", d->constant_id, shown), d->constant > 1 ? ", ..." : "");
    NOTICE(d->scale > MUCH_SCALE, "features differ in scale: %s is %.2g times as large as %s: scale them\n",
           feature_name(d, "id ", d->large_id, shown), d->scale, feature_name(d, "id ", d->small_id, other));
    NOTICE(d->features > 0 && d->occurring * 100 < d->features, "%s of %s ids occur: parameters of the others take memory\n",
           whole(d->occurring, a), whole(d->features, b));
#undef NOTICE
    if (*head) fprintf(f, "%-12snothing: no duplicates, empty examples or rare features\n", head);
}

static void put_lines(FILE *f, const char *name, const void *info) {
    const struct shmtrain_data_info *d = info;
    const size_t length = strlen(name);
    fprintf(f, "data        %s%s\n", length > 68 ? "..." : "", length > 68 ? name + length - 65 : name);
    add_sizes(f, d);
    add_columns(f, d);
    add_labels(f, d);
    add_values(f, d);
    if (!isnan(d->best_loss)) fprintf(f, "best loss   %.5f, of the model that made the data\n", d->best_loss);
    add_frequencies(f, d);
    add_notices(f, d);
}

/* ---- JSON ---- */

static json_t *labels_of(const void *info) {
    const struct shmtrain_data_info *d = info;
    json_t *list = json_array();
    if (d->n_labels > SHMTRAIN_MAX_CLASSES) return list;
    for (uint32_t i = 0; i < d->n_labels; i++)
        json_array_append_new(
            list, json_pack("{s:f,s:I}", "label", (double)d->label[i], "examples", (json_int_t)d->label_examples[i]));
    return list;
}

static json_t *octaves_of(const void *info) {
    const struct shmtrain_data_info *d = info;
    json_t *list = json_array();
    uint32_t last = 0;
    for (uint32_t k = 0; k < SHMTRAIN_INFO_OCTAVES; k++) last = d->octave[k] > 0 ? k : last;
    for (uint32_t k = 0; k <= last && d->occurring > 0; k++)
        json_array_append_new(list, json_pack("{s:I,s:I}", "from_examples", (json_int_t)(UINT64_C(1) << k), "features",
                                              (json_int_t)d->octave[k]));
    return list;
}

static json_t *tops_of(const void *info) {
    const struct shmtrain_data_info *d = info;
    json_t *list = json_array();
    for (uint32_t i = 0; i < SHMTRAIN_INFO_TOPS; i++)
        json_array_append_new(list, json_pack("{s:I,s:f}", "features", (json_int_t)TOPS[i], "share", d->top_share[i]));
    return list;
}

/* A mark has no id that says anything: it has that of its column, as mark_of. */
static json_t *most_frequent_of(const void *info) {
    const struct shmtrain_data_info *d = info;
    json_t *list = json_array();
    for (uint32_t i = 0; i < SHMTRAIN_INFO_MOST_FOUND && d->top_examples[i] > 0; i++) {
        const uint64_t of = marked_by(d, d->top_id[i]);
        json_t *id = of > 0 ? json_null() : shmt_json_id(d->top_id[i]), *mark_of = of > 0 ? shmt_json_whole(of) : json_null();
        json_array_append_new(
            list, json_pack("{s:o,s:o,s:I}", "id", id, "mark_of", mark_of, "examples", (json_int_t)d->top_examples[i]));
    }
    return list;
}

static json_t *columns_of(const void *info) {
    const struct shmtrain_data_info *d = info;
    json_t *list = json_array();
    for (uint32_t i = 0; i < d->n_columns && i < SHMTRAIN_INFO_COLUMNS; i++) {
        const struct shmtrain_column *c = &d->column[i];
        const bool is_number = c->kind == SHMTRAIN_COLUMN_NUMBERS;
        json_t *id = is_number ? shmt_json_whole(c->feature) : json_null();
        json_t *missing = is_number ? shmt_json_whole(c->missing) : json_null();
        json_t *from = is_number ? json_integer((json_int_t)d->counted_from[i]) : json_null();
        json_array_append_new(list, json_pack("{s:o,s:s,s:o,s:o,s:o}", "name", shmt_json_text(c->name), "kind", KINDS[c->kind],
                                              "id", id, "missing", missing, "counted_from", from));
    }
    return list;
}

/* The first or last id, unless it is of our own making: a mark, or the hash of a category's value. */
static json_t *end_of(const struct shmtrain_data_info *d, uint64_t id) {
    const bool is_ours = d->n_columns > 0 && id >= SHMTRAIN_ID_MARK;
    return d->features > 0 && !is_ours ? shmt_json_id(id) : json_null();
}

static json_t *first_of(const void *info) { return end_of(info, ((const struct shmtrain_data_info *)info)->first_id); }
static json_t *last_of(const void *info) { return end_of(info, ((const struct shmtrain_data_info *)info)->last_id); }
static json_t *shape_of(const void *info) {
    const struct shmtrain_data_info *d = info;
    if (d->channels == 0) return json_null();
    return json_pack("{s:I,s:I,s:I}", "channels", (json_int_t)d->channels, "height", (json_int_t)d->height, "width",
                     (json_int_t)d->width);
}

static bool is_table(const void *info) { return ((const struct shmtrain_data_info *)info)->n_columns > 0; }

/* clang-format off */
static const struct shmt_field COLUMNS[] = {MADE(NULL, "columns", columns_of), {0}};

static const struct shmt_field DATA_INFO[] = {
    FIELD(data_info, examples), KEYED(data_info, "skipped_lines", skipped), FIELD(data_info, features), FIELD(data_info, nonzeros),
    KEYED(data_info, "nonzeros_least", row_least), KEYED(data_info, "nonzeros_median", row_median),
    KEYED(data_info, "nonzeros_most", row_most), KEYED(data_info, "empty_examples", empty), FIELD(data_info, duplicates),
    MADE(NULL, "labels", labels_of), KEYED(data_info, "label_least", label_low), KEYED(data_info, "label_most", label_high),
    FIELD(data_info, label_mean), FLAG(data_info, all_ones), KEYED(data_info, "value_least", value_low),
    KEYED(data_info, "value_most", value_high), FIELD(data_info, value_mean), FIELD(data_info, mean_square),
    FIELD(data_info, best_loss), MADE(NULL, "first_id", first_of), MADE(NULL, "last_id", last_of),
    KEYED(data_info, "features_occurring", occurring), KEYED(data_info, "features_once", once),
    KEYED(data_info, "features_constant", constant), KEYED(data_info, "features_scale", scale),
    MADE(NULL, "most_frequent", most_frequent_of), MADE(NULL, "top_features", tops_of),
    MADE(NULL, "features_by_examples", octaves_of), MADE(NULL, "shape", shape_of), GROUP(is_table, COLUMNS),
    {0}};
/* clang-format on */

char *shmtrain_data_info_text(const char *name, const struct shmtrain_data_info *info) {
    return shmt_text_by(put_lines, name, info, sizeof *info);
}

char *shmtrain_data_info_json(const char *name, const struct shmtrain_data_info *info) {
    return shmt_named_line("data", name, DATA_INFO, info, sizeof *info);
}
