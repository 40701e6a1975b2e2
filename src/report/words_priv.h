/* Numbers as words of a line, and lines of words, for the texts of this room. */
#pragma once

#include <shmtrain/model.h>
#include <shmtrain/report.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SHMT_LINE_COLUMNS 80
#define SHMT_HEAD_COLUMNS 12 /* of what a line is about; further lines begin behind them */

/* "1234", "12.3 k", "4.56 M": three digits are enough for rates and counts. At most 6 characters for what a run can count. */
const char *shmt_short_number(double x, char out[16]);

/* "7,031", from 10 million on as shmt_short_number; below 10 with two digits, where it is no whole number. At most 9
 * characters for what a run can count. */
const char *shmt_grouped_number(double x, char out[16]);

const char *shmt_plural(uint64_t n); /* "", or "s" */

/* The text that `put` writes about a struct, and with its name, to be freed; NULL: no memory. The struct may come from an application
 * of another age, which knows it with other bytes than these (base/sized.h); 0: it does not. */
char *shmt_text_by(void (*put)(FILE *out, const char *name, const void *what), const char *name, const void *what,
                   size_t bytes);

/* Each appends to a 0-terminated text of at most `bytes`. */
void shmt_add(char *out, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* With so many decimals, or as few as it takes to stay within `width`. */
void shmt_add_number(char *out, size_t bytes, int width, int digits, double x);

size_t shmt_column_of(const char *out); /* where its last line ends */

/* One more item of a list that began with this line: behind a comma, in a new line where there is no room for it. The first one
 * stands right behind what is there. */
void shmt_add_item(char *out, size_t bytes, int is_first, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Words with blanks between them, in as many lines as they take. */
void shmt_add_words(char *out, size_t bytes, const char *words);

/* The lines about a report's point of the consistency space; about what the run has cost; and the table of its workers, with an
 * empty line behind it, when there are several. */
void shmt_add_consistency(char *out, size_t bytes, const struct shmtrain_report *r);
void shmt_add_costs(char *out, size_t bytes, const struct shmtrain_report *r);
void shmt_add_workers(char *out, size_t bytes, const struct shmtrain_report *r);

/* What a model is made of, a line for each of n parts, and a total, behind an empty line; nothing of none. */
void shmt_put_layers(FILE *f, const struct shmtrain_model_layer *layer, uint32_t n);

/* Of a fit's run: it was stopped while L2 was being chosen, so that nothing is. */
int shmt_choice_is_cut(const struct shmtrain_report *r);
