/* A plan for a table of which nothing is known but its beginning, and what somebody says about it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "files/csv_sample.h"

/* ---- the header ---- */

static bool starts_with_word(const struct shmt_csv_sample *s, uint32_t i) {
    float value;
    return !shmt_csv_is_missing(&s->field[i]) && !shmt_csv_is_number(&s->field[i], s->c_locale, &value);
}

/* One word among numbers is a mistake, for the parser to refuse. */
static bool has_more_words(const struct shmt_csv_looks *looks) { return looks->n_words > looks->n_numbers; }

static bool is_numeric(const struct shmt_csv_looks *looks) { return looks->n_numbers > looks->n_words; }

/* A column of numbers that begins with a word has a header, and one that begins with a number has none. Where there are words
 * only, one that comes again is no header's. */
static bool guess_header(const struct shmt_csv_sample *s) {
    bool word = false, again = false, numeric = false, number_first = false;
    for (uint32_t i = 0; i < s->n_fields; i++) {
        const bool begins = starts_with_word(s, i);
        if (is_numeric(&s->looks[i]) && begins) return true;
        numeric |= is_numeric(&s->looks[i]);
        number_first |= !begins && !shmt_csv_is_missing(&s->field[i]);
        word |= begins;
        again |= begins && s->looks[i].again;
    }
    if (numeric && number_first) return false;
    return word && !again;
}

static int decide_header(const struct shmt_csv_sample *s, bool *out, struct shmt_error *e) {
    const char *said = s->wish->header;
    *out = said && strcmp(said, "yes") == 0;
    if (*out || (said && strcmp(said, "no") == 0)) return 0;
    if (said && said[0] != '\0' && strcmp(said, "auto") != 0)
        return shmt_refuse(e, "--header %.20s: expected yes, no or auto", said);
    *out = guess_header(s);
    return 0;
}

static int take_names(const struct shmt_csv_sample *s, struct shmt_csv_plan *plan, struct shmt_error *e) {
    for (uint32_t i = 0; plan->has_header && i < plan->n_columns; i++) {
        plan->name[i] = shmt_csv_sample_header(s, i);
        if (!plan->name[i]) return shmt_no_memory(e, "for the columns of %s", s->name);
    }
    return 0;
}

/* ---- the label ---- */

static uint32_t usual_label(const struct shmt_csv_plan *plan) {
    static const char *const NAMES[] = {"label", "target", "y", "class"};
    uint32_t found = SHMT_CSV_NONE, n = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        for (uint32_t k = 0; plan->name[i] && k < sizeof NAMES / sizeof *NAMES; k++) {
            if (strcasecmp(plan->name[i], NAMES[k]) != 0) continue;
            found = i;
            n++;
        }
    }
    return n == 1 ? found : SHMT_CSV_NONE;
}

/* The index that pandas and R write in front, of numbers or of names, has no name. */
static bool is_index(const struct shmt_csv_plan *plan) {
    return plan->name[0] && plan->name[0][0] == '\0' && plan->n_columns > 1;
}

static int decide_label(const struct shmt_csv_sample *s, struct shmt_csv_plan *plan, struct shmt_error *e) {
    const char *said = s->wish->label;
    if (said && strcmp(said, "none") == 0 && shmt_csv_plan_find(plan, said, 4) == SHMT_CSV_NONE) return 0;
    if (said && said[0] != '\0') {
        plan->label = shmt_csv_plan_find(plan, said, strlen(said));
        if (plan->label == SHMT_CSV_NONE) return shmt_csv_refuse_column(s, plan, "--label", said, strlen(said), e);
    } else {
        plan->label = usual_label(plan);
        if (plan->label == SHMT_CSV_NONE) plan->label = is_index(plan) ? 1 : 0;
    }
    plan->column[plan->label].kind = SHMT_CSV_LABEL;
    return 0;
}

/* ---- the others ---- */

static int refuse_commas(const struct shmt_csv_sample *s, const struct shmt_csv_plan *plan, uint32_t i, struct shmt_error *e) {
    char column[SHMT_CSV_COLUMN_SHOWN];
    shmt_csv_column_show(plan, i, column);
    return shmt_fail(e, SHMTRAIN_E_DATA,
                     "%s: %s has numbers with commas; write them with a decimal point and without thousands separators (or "
                     "name it in --categorical)",
                     s->name, column);
}

static int decide_kinds(const struct shmt_csv_sample *s, struct shmt_csv_plan *plan, struct shmt_error *e) {
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        const struct shmt_csv_looks *looks = &s->looks[i];
        uint32_t *kind = &plan->column[i].kind;
        const bool is_label = *kind == SHMT_CSV_LABEL && !plan->has_words;
        if (*kind != SHMT_CSV_IGNORED && !is_label) continue;
        if (i == 0 && is_index(plan)) continue;
        if (looks->n_words > 0 && looks->n_commas == looks->n_words) return refuse_commas(s, plan, i, e);
        if (is_label) continue;
        *kind = has_more_words(looks) ? SHMT_CSV_CATEGORY : SHMT_CSV_NUMBER;
    }
    return 0;
}

#define FAR 1000 /* a mean this large, and this many times the spread: half of a float's digits are the same in all numbers */
#define NO_WHOLE \
    16777216 /* floats tell whole numbers apart up to here: beyond, equal numbers at the beginning may be a slow clock */

static double mean_of(const struct shmt_csv_looks *looks) {
    return looks->n_here > 0 ? looks->one + looks->sum / looks->n_here : 0;
}

/* As short a number as is near enough. */
static double from_of(const struct shmt_csv_looks *looks) {
    const double mean = mean_of(looks), n = looks->n_here;
    if (!(fabs(mean) >= FAR && fabs(mean) < SHMT_CSV_FROM)) return 0;
    const double off = looks->sum / n, square = looks->squares / n - off * off, spread = square > 0 ? sqrt(square) : 0;
    if (spread == 0) return fabs(mean) >= NO_WHOLE ? rint(mean) : 0;
    const double unit = fmax(1, pow(10, ceil(log10(spread))));
    return fabs(mean) > FAR * spread ? rint(mean / unit) * unit : 0;
}

/* What those that are missing count as is near the others, so that a model of both is well conditioned. */
static float missing_of(const struct shmt_csv_looks *looks, double from) {
    return looks->n_missing > looks->n_here ? NAN : (float)(mean_of(looks) - from);
}

static void decide_number(const struct shmt_csv_sample *s, const struct shmt_csv_looks *looks, struct shmt_csv_column *column) {
    column->from = s->wish->as_they_are ? 0 : from_of(looks);
    column->missing = missing_of(looks, column->from);
}

static bool has_name(const struct shmt_csv_plan *plan, uint32_t i, const char *name, bool exactly) {
    return plan->name[i] && (exactly ? strcmp(plan->name[i], name) : strcasecmp(plan->name[i], name)) == 0;
}

/* The column of this name, and not of this number; it is most often in the same place, where one looks first. */
static uint32_t find_named(const struct shmt_csv_plan *before, uint32_t i, const char *name) {
    if (i < before->n_columns && has_name(before, i, name, true)) return i;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t at = 0; at < before->n_columns; at++)
            if (has_name(before, at, name, pass == 0)) return at;
    return SHMT_CSV_NONE;
}

/* The column whose parameters this feature begins with, where no name tells. */
static uint32_t find_feature(const struct shmt_csv_plan *before, uint32_t feature) {
    uint32_t at = 0;
    while (at < before->n_columns && before->column[at].feature != feature) at++;
    return at;
}

/* The column of the same name, or else of the same feature, unless another column has that one's name; NULL: that one is no number. */
static const struct shmt_csv_column *find_before(const struct shmt_csv_plan *plan, uint32_t i,
                                                 const struct shmt_csv_plan *before) {
    const bool named = plan->has_header && before->has_header;
    uint32_t at = named ? find_named(before, i, plan->name[i]) : SHMT_CSV_NONE;
    if (at == SHMT_CSV_NONE) {
        at = find_feature(before, plan->column[i].feature);
        if (named && at < before->n_columns && find_named(plan, at, before->name[at]) != SHMT_CSV_NONE) return NULL;
    }
    return at < before->n_columns && before->column[at].kind == SHMT_CSV_NUMBER ? &before->column[at] : NULL;
}

static void decide_numbers(const struct shmt_csv_sample *s, const struct shmt_csv_plan *before, struct shmt_csv_plan *plan) {
    plan->marks = before ? before->marks : !s->wish->unmarked;
    for (uint32_t i = 0; plan->marks && i < plan->n_columns; i++) {
        struct shmt_csv_column *column = &plan->column[i];
        if (column->kind != SHMT_CSV_NUMBER) continue;
        const struct shmt_csv_column *like = before ? find_before(plan, i, before) : NULL;
        decide_number(s, &s->looks[i], column);
        if (like) column->missing = like->missing;
        if (like) column->from = like->from;
    }
}

/* A plan of before that is none says nothing: others refuse its file. */
static void decide_marks(const struct shmt_csv_sample *s, struct shmt_csv_plan *plan) {
    struct shmt_csv_plan before;
    const bool has = s->wish->before && shmt_csv_plan_parse(s->wish->before, &before, NULL) == 0;
    decide_numbers(s, has ? &before : NULL, plan);
    if (has) shmt_csv_plan_fini(&before);
}

/* Of fewer words, that all differ may be chance. */
#define MANY_WORDS 100

static bool is_different_everywhere(const struct shmt_csv_sample *s, const struct shmt_csv_plan *plan, uint32_t i) {
    return plan->column[i].kind == SHMT_CSV_CATEGORY && s->looks[i].n_words >= MANY_WORDS && !s->looks[i].twice;
}

void shmt_csv_guess_remark(const struct shmt_csv_sample *sample, const struct shmt_csv_plan *plan, char out[SHMT_CSV_REMARK]) {
    char shown[SHMT_CSV_COLUMN_SHOWN], others[24] = "";
    uint32_t n = 0, first = 0;
    out[0] = '\0';
    for (uint32_t i = plan->n_columns; i-- > 0;) {
        if (!sample->looks[i].is_left_out) continue;
        first = i;
        n++;
    }
    if (n == 0) return;
    shmt_csv_column_show(plan, first, shown);
    if (n > 1) snprintf(others, sizeof others, " (and %u more)", n - 1);
    snprintf(
        out, SHMT_CSV_REMARK,
        "%s%s is left out: it has a different word in each line, each a feature of one example only (--categorical keeps a "
        "column)",
        shown, others);
}

/* Labels that are named are words, even where they look like numbers. */
static int take_categorical(const struct shmt_csv_sample *s, struct shmt_csv_plan *plan, struct shmt_error *e) {
    for (const char *p = s->wish->categorical; p && *p;) {
        const size_t n = strcspn(p, ",");
        const uint32_t i = shmt_csv_plan_find(plan, p, n);
        if (i == SHMT_CSV_NONE) return shmt_csv_refuse_column(s, plan, "--categorical", p, n, e);
        if (i == plan->label)
            plan->has_words = true;
        else
            plan->column[i].kind = SHMT_CSV_CATEGORY;
        s->looks[i].is_said = true;
        p += n + (p[n] == ',');
    }
    return 0;
}

/* Left out, until kinds are decided. */
#define LEFT_OUT SHMT_CSV_KINDS

static int take_ignored(const struct shmt_csv_sample *s, struct shmt_csv_plan *plan, struct shmt_error *e) {
    for (const char *p = s->wish->ignore; p && *p;) {
        const size_t n = strcspn(p, ",");
        const uint32_t i = shmt_csv_plan_find(plan, p, n);
        char shown[SHMT_CSV_COLUMN_SHOWN];
        if (i == SHMT_CSV_NONE) return shmt_csv_refuse_column(s, plan, "--ignore", p, n, e);
        shmt_csv_column_show(plan, i, shown);
        if (i == plan->label)
            return shmt_refuse(e, "--ignore: %s of %s is the label: name another one with --label", shown, s->name);
        if (plan->column[i].kind == SHMT_CSV_CATEGORY)
            return shmt_refuse(e, "%s of %s is in --categorical and in --ignore: leave out one of them", shown, s->name);
        plan->column[i].kind = LEFT_OUT;
        p += n + (p[n] == ',');
    }
    return 0;
}

static bool is_feature(const struct shmt_csv_column *column) {
    return column->kind == SHMT_CSV_NUMBER || column->kind == SHMT_CSV_CATEGORY;
}

/* Those that were named, and words that nobody has called categories and that are different in each line, which are features of one
 * example each; but for the last column that there is. */
static void leave_out(const struct shmt_csv_sample *s, struct shmt_csv_plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        if (plan->column[i].kind == LEFT_OUT) plan->column[i].kind = SHMT_CSV_IGNORED;
        n += is_feature(&plan->column[i]);
    }
    for (uint32_t i = 0; i < plan->n_columns && n > 1; i++) {
        if (!is_different_everywhere(s, plan, i) || s->looks[i].is_said) continue;
        plan->column[i].kind = SHMT_CSV_IGNORED;
        s->looks[i].is_left_out = true;
        n--;
    }
}

/* Who says nothing of the delimiter may have one that is not guessed, as blanks are not. */
static int check_features(const struct shmt_csv_sample *s, const struct shmt_csv_plan *plan, struct shmt_error *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++)
        n += i != plan->label && plan->column[i].kind != LEFT_OUT &&
             !(i == 0 && is_index(plan) && plan->column[0].kind == SHMT_CSV_IGNORED);
    if (n > 0) return 0;
    if (s->wish->ignore && s->wish->ignore[0] != '\0')
        return shmt_refuse(e, "--ignore: %s has no other column besides the label", s->name);
    return shmt_fail(
        e, SHMTRAIN_E_DATA,
        "%s has no column besides the label: name the character between its columns with --delimiter (tab, or one of "
        ", ; | : ^ ~ ! &; no blanks)",
        s->name);
}

int shmt_csv_guess(const struct shmt_csv_sample *sample, struct shmt_csv_plan *out, const char **rows_out,
                   struct shmt_error *e) {
    int rc = shmt_csv_plan_init(out, sample->n_fields, e);
    if (rc < 0) return rc;
    out->delimiter = sample->delimiter;
    rc = decide_header(sample, &out->has_header, e);
    if (rc == 0) rc = take_names(sample, out, e);
    if (rc == 0 && !out->has_header) shmt_csv_sample_add_first(sample);
    if (rc == 0) rc = decide_label(sample, out, e);
    if (rc == 0) rc = take_categorical(sample, out, e);
    if (rc == 0) rc = take_ignored(sample, out, e);
    if (rc == 0) rc = check_features(sample, out, e);
    if (rc == 0) rc = decide_kinds(sample, out, e);
    if (rc == 0) leave_out(sample, out);
    if (rc == 0) {
        shmt_csv_plan_number(out);
        decide_marks(sample, out);
        if (out->label != SHMT_CSV_NONE) out->has_words |= has_more_words(&sample->looks[out->label]);
        shmt_csv_plan_finish(out);
    }
    if (rc < 0) {
        shmt_csv_plan_fini(out);
        return rc;
    }
    *rows_out = out->has_header ? sample->rows : sample->first;
    return 0;
}
