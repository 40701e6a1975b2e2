/* Arguments of layers: see arguments.h. */
#include "layers/arguments.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "layers/layers.h"

enum { MOST_LETTERS = 31, SYNTAX = 160 };

static bool is_word(const char *at, uint32_t length, const char *word) {
    return strlen(word) == length && memcmp(at, word, length) == 0;
}

/* A whole number in digits, or a number as everybody writes it, 0.25, .25, 1e-5; a locale changes neither. */
static bool read_number(const char *at, uint32_t length, bool whole, double *out) {
    char number[MOST_LETTERS + 1];
    uint64_t count;
    if (length > MOST_LETTERS) return false;
    memcpy(number, at, length);
    number[length] = '\0';
    if (!whole) return shmt_plain_real(number, out);
    if (!shmt_plain_count(number, &count)) return false;
    *out = (double)count;
    return true;
}

static bool is_within(const struct shmtrain_layer_argument *a, double number) {
    switch (a->type) {
        case SHMTRAIN_LAYER_REAL:
            return number >= a->low && number < a->high;
        case SHMTRAIN_LAYER_ABOVE:
            return (float)number > (float)a->low && number <= a->high;
        default:
            return number >= a->low && number <= a->high;
    }
}

/* 1 + the place of a word among "one|two"; 0: it is none of them. */
static uint32_t find_word(const char *words, const char *at, uint32_t length) {
    uint32_t place = 1;
    for (const char *word = words; word && *word; place++) {
        const uint32_t letters = (uint32_t)strcspn(word, "|");
        if (letters == length && memcmp(word, at, length) == 0) return place;
        word += letters + (word[letters] == '|');
    }
    return 0;
}

/* A value that is of its type and within its bounds; false: it is not. */
static bool read_value(const struct shmtrain_layer_argument *a, const char *at, uint32_t length,
                       struct shmtrain_layer_value *out) {
    double number, second;
    *out = (struct shmtrain_layer_value){.word = find_word(a->words, at, length)};
    if (out->word) return true;
    if (a->type == SHMTRAIN_LAYER_WORD) return false;
    const char *cross = a->type == SHMTRAIN_LAYER_PAIR ? memchr(at, 'x', length) : NULL;
    const uint32_t first = cross ? (uint32_t)(cross - at) : length;
    const bool whole = a->type == SHMTRAIN_LAYER_WHOLE || a->type == SHMTRAIN_LAYER_PAIR;
    if (!read_number(at, first, whole, &number) || !is_within(a, number)) return false;
    second = number;
    if (cross && (!read_number(cross + 1, length - first - 1, true, &second) || !is_within(a, second))) return false;
    out->number = number;
    if (a->type == SHMTRAIN_LAYER_PAIR) {
        out->height = (uint32_t)number;
        out->width = (uint32_t)second;
    }
    return true;
}

bool shmt_layer_assumes_well(const struct shmtrain_layer_argument *argument) {
    struct shmtrain_layer_value ignored;
    const char *assumed = argument->assumed;
    return assumed[0] == '\0' || read_value(argument, assumed, (uint32_t)strlen(assumed), &ignored);
}

/* Of a value without a name that argument i does not take: the name of one behind it that does; NULL: none. */
static const char *find_taker(const struct shmtrain_layer *layer, uint32_t i, const struct shmt_layer_text *value) {
    const struct shmtrain_layer_argument *a = layer->kind->argument;
    struct shmtrain_layer_value ignored;
    for (uint32_t k = i + 1; k < SHMTRAIN_LAYER_ARGUMENTS && a[k].name; k++)
        if (!layer->argument[k].given && read_value(&a[k], value->at, value->length, &ignored)) return a[k].name;
    return NULL;
}

/* `instead`: the argument that the value may have been meant for; NULL: none. */
static int refuse_value(const struct shmt_layer_text *value, const struct shmtrain_layer_kind *kind,
                        const struct shmtrain_layer_argument *a, const char *instead, struct shmt_error *e) {
    const int shown = (int)(value->length < 40 ? value->length : 40);
    char wanted[96] = "", meant[96] = "";
    if (a->type == SHMTRAIN_LAYER_WHOLE)
        snprintf(wanted, sizeof wanted, "a whole number from %.0f to %.0f", a->low, a->high);
    else if (a->type == SHMTRAIN_LAYER_PAIR)
        snprintf(wanted, sizeof wanted, "a whole number from %.0f to %.0f, or height x width as in 3x5", a->low, a->high);
    else if (a->type == SHMTRAIN_LAYER_REAL)
        snprintf(wanted, sizeof wanted, "a number from %g to below %g", a->low, a->high);
    else if (a->type == SHMTRAIN_LAYER_ABOVE)
        snprintf(wanted, sizeof wanted, "a number above %g, at most %g", a->low, a->high);
    if (instead) snprintf(meant, sizeof meant, ": did you mean %s=%.*s", instead, shown, value->at);
    return shmt_refuse(e, "%s, column %u: %s: %s \"%.*s\": expected %s%s%s%s", value->given_as, value->column, kind->name,
                       a->name, shown, value->at, wanted, wanted[0] && a->words ? ", or " : "", a->words ? a->words : "",
                       meant);
}

/* The argument that a piece is for: by its name, or the first one that was not given. Its value is left in *piece. */
static int find_argument(struct shmt_layer_text *piece, const struct shmtrain_layer *layer, uint32_t *out,
                         struct shmt_error *e) {
    const struct shmtrain_layer_argument *a = layer->kind->argument;
    const char *equals = memchr(piece->at, '=', piece->length);
    const uint32_t letters = equals ? (uint32_t)(equals - piece->at) : 0;
    char syntax[SYNTAX];
    uint32_t i = 0;
    for (; i < SHMTRAIN_LAYER_ARGUMENTS && a[i].name; i++)
        if (equals ? is_word(piece->at, letters, a[i].name) : !layer->argument[i].given) break;
    shmt_layer_syntax(layer->kind, syntax, sizeof syntax);
    if (i == SHMTRAIN_LAYER_ARGUMENTS || !a[i].name)
        return shmt_refuse(e, "%s, column %u: %s has no %s%.*s: write %s", piece->given_as, piece->column, layer->kind->name,
                           equals ? "" : "room for ",
                           (int)(equals               ? letters
                                 : piece->length < 40 ? piece->length
                                                      : 40),
                           piece->at, syntax);
    if (layer->argument[i].given)
        return shmt_refuse(e, "%s, column %u: %s: %s is given twice: leave one out", piece->given_as, piece->column,
                           layer->kind->name, a[i].name);
    if (equals) {
        piece->at += letters + 1;
        piece->length -= letters + 1;
        piece->column += letters + 1;
    }
    *out = i;
    return 0;
}

static int read_piece(struct shmt_layer_text piece, struct shmtrain_layer *layer, uint32_t *column_out, struct shmt_error *e) {
    const char *from = piece.at;
    uint32_t i = 0;
    const int rc = find_argument(&piece, layer, &i, e);
    if (rc < 0) return rc;
    if (!read_value(&layer->kind->argument[i], piece.at, piece.length, &layer->argument[i]))
        return refuse_value(&piece, layer->kind, &layer->kind->argument[i],
                            piece.at == from ? find_taker(layer, i, &piece) : NULL, e);
    layer->argument[i].given = 1;
    column_out[i] = piece.column;
    return 0;
}

/* What is assumed for what was not given. */
static int assume(const struct shmt_layer_text *text, struct shmtrain_layer *layer, uint32_t *column_out,
                  struct shmt_error *e) {
    const struct shmtrain_layer_argument *a = layer->kind->argument;
    char syntax[SYNTAX];
    for (uint32_t i = 0; i < SHMTRAIN_LAYER_ARGUMENTS && a[i].name; i++) {
        if (layer->argument[i].given) continue;
        column_out[i] = text->column;
        if (!a[i].assumed) {
            shmt_layer_syntax(layer->kind, syntax, sizeof syntax);
            return shmt_refuse(e, "%s, column %u: %s needs %s: write %s", text->given_as, text->column, layer->kind->name,
                               a[i].name, syntax);
        }
        const uint32_t length = (uint32_t)strlen(a[i].assumed);
        if (length == 0) continue;
        (void)read_value(&a[i], a[i].assumed, length, &layer->argument[i]); /* it was well when the kind was offered */
    }
    return 0;
}

int shmt_layer_read(struct shmt_layer_text text, struct shmtrain_layer *layer, uint32_t *column_out, struct shmt_error *e) {
    const char *end = text.at + text.length, *at = memchr(text.at, ':', text.length);
    while (at) {
        const char *from = at + 1, *next = memchr(from, ':', (uint64_t)(end - from));
        const struct shmt_layer_text piece = {text.given_as, from, (uint32_t)((next ? next : end) - from),
                                              text.column + (uint32_t)(from - text.at)};
        const int rc = read_piece(piece, layer, column_out, e);
        if (rc < 0) return rc;
        at = next;
    }
    return assume(&text, layer, column_out, e);
}
