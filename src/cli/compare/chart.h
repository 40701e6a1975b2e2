/* Figures as SVG inside of a page: lines, bars of workers, histograms of delays. Each is one <svg> element with a view box, as
 * wide as its place, with title and description for those who do not see it. Colours and fonts come from the page's style
 * (html.c): curve i has class c0 ... c7 in turn, and a dash and a marker of its own. Called by html.c. */
#ifndef SHMTRAIN_CLI_CHART_H
#define SHMTRAIN_CLI_CHART_H

#include <shmtrain/report.h>
#include <stdio.h>

#include "cli/compare/plot.h"

#define CHART_COLOURS 8

/* A page's figures are numbered, so that their titles have names. */
struct chart {
    FILE *out;
    unsigned number;   /* of the last figure */
    unsigned workers;  /* that have a bar each, at most */
    double most_delay; /* where the delays' axis ends */
};

/* Curves with axes, markers and names at their ends. The colour of curve i is look[i]'s. Nothing where there is no point. */
void chart_lines(struct chart *chart, const struct plot *plot, const unsigned *look);

/* A short piece of a curve, with its marker, for a legend. */
void chart_key(struct chart *chart, unsigned look);

/* What the workers of a run did with their time: a bar each. */
void chart_workers(struct chart *chart, const char *name, const struct shmtrain_report *r);

/* How often which delay was seen. */
void chart_delays(struct chart *chart, const char *name, unsigned look, const struct shmtrain_delay *delay);

#endif
