/* The style of the page that html.c writes. */
#ifndef SHMTRAIN_CLI_COMPARE_STYLE_H
#define SHMTRAIN_CLI_COMPARE_STYLE_H

extern const char COMPARE_STYLE[]; /* CSS without < and &, so that the page stays well-formed XML */

#endif
