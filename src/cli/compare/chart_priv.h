/* What the figures share. */
#ifndef SHMTRAIN_CLI_CHART_PRIV_H
#define SHMTRAIN_CLI_CHART_PRIV_H

#include "cli/compare/chart.h"

/* Begins a figure of this size, in units of its own, with its title; the description may be added to by the caller, who ends it
 * with chart_described. */
void chart_begin(struct chart *chart, double width, double height, const char *title);
void chart_described(struct chart *chart);
void chart_end(struct chart *chart);

/* A line of class `kind`. */
void chart_line(struct chart *chart, const char *kind, double x1, double y1, double x2, double y2);

/* Words at a place; anchor "start", "middle" or "end". */
void chart_words(struct chart *chart, const char *kind, const char *anchor, double x, double y, const char *words);

#endif
