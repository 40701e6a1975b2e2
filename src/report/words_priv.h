/* Numbers as words of a line, for the texts of this room. */
#ifndef SHMT_REPORT_WORDS_PRIV_H
#define SHMT_REPORT_WORDS_PRIV_H

/* "1234", "12.3 k", "4.56 M": three digits are enough for rates and counts. At most 6 characters for what a run can count. */
const char *shmt_short_number(double x, char out[16]);

#endif
