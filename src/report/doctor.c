/* Findings about the machine, as lines of at most 80 columns and as one JSON object. */
#include <shmtrain/doctor.h>
#include <stdio.h>
#include <string.h>

#include "report/fields.h"
#include "report/words_priv.h"

static const char *const VERDICT[] = {[SHMTRAIN_FINE] = "OK", [SHMTRAIN_SLOWS] = "slow", [SHMTRAIN_STOPS] = "stops"};

enum { SEEN = 22 /* column of what was seen */, INDENT = 6 };

static char printable(char byte) { return byte >= ' ' && byte != 0x7f ? byte : '?'; }

/* Words from column `from` on; further lines begin there. Longer words than a line are cut. */
static void put_words(FILE *out, const char *words, size_t from) {
    size_t column = from;
    while (*words) {
        size_t n = strcspn(words, " ");
        if (n > SHMT_LINE_COLUMNS - from) n = SHMT_LINE_COLUMNS - from;
        if (column > from && column + 1 + n > SHMT_LINE_COLUMNS) {
            fprintf(out, "\n%*s", (int)from, "");
            column = from;
        }
        if (column > from) column += (size_t)fprintf(out, " ");
        for (size_t i = 0; i < n; i++) fputc(printable(words[i]), out);
        column += n;
        words += n;
        words += strspn(words, " ");
    }
    fputc('\n', out);
}

static void put_sum(FILE *out, const struct shmtrain_checkup *c) {
    if (c->n_stops > 0)
        fprintf(out, "\n%u finding%s will stop a run, %u will slow it.\n", c->n_stops, shmt_plural(c->n_stops), c->n_slow);
    else if (c->n_slow > 0)
        fprintf(out, "\nNothing stops a run; %u finding%s will slow it, or leave it less room.\n", c->n_slow,
                shmt_plural(c->n_slow));
    else
        fprintf(out, "\nNothing stops a run, and nothing slows it.\n");
}

static void put_lines(FILE *out, const char *name, const void *what) {
    const struct shmtrain_checkup *checkup = what;
    (void)name;
    for (uint32_t i = 0; i < checkup->n; i++) {
        const struct shmtrain_finding *f = &checkup->finding[i];
        fprintf(out, "%-5s %-*.15s ", VERDICT[f->verdict], SEEN - INDENT - 1, f->subject);
        put_words(out, f->seen, SEEN);
        if (f->remedy[0] == '\0') continue;
        fprintf(out, "   -> ");
        put_words(out, f->remedy, INDENT);
    }
    put_sum(out, checkup);
}

char *shmtrain_checkup_text(const struct shmtrain_checkup *checkup) { return shmt_text_by(put_lines, NULL, checkup, 0); }

static const char *verdict_word(uint32_t verdict) { return VERDICT[verdict]; }

/* clang-format off */
static const struct shmt_field FINDING[] = {
    WORD(finding, verdict, verdict_word), FIELD(finding, subject), FIELD(finding, seen), SOME(finding, remedy),
    {0}};

static const struct shmt_field CHECKUP[] = {
    KEYED(checkup, "stops", n_stops), KEYED(checkup, "slow", n_slow), ARRAY(checkup, "findings", finding, n, FINDING),
    {0}};
/* clang-format on */

char *shmtrain_checkup_json(const struct shmtrain_checkup *checkup) { return shmt_fields_line(CHECKUP, checkup); }
