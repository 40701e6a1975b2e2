/* What all JSON texts of this room share: numbers that are null where nobody computed them, names that may be any bytes, and
 * one line of text for an object. */
#ifndef SHMT_REPORT_JSON_PRIV_H
#define SHMT_REPORT_JSON_PRIV_H

#include <jansson.h>
#include <stdint.h>

json_t *shmt_json_number(double x); /* null when it is not finite */
json_t *shmt_json_whole(uint64_t n);

/* A path is bytes, JSON is UTF-8: what is not becomes question marks, so that the name is never missing. */
json_t *shmt_json_text(const char *name);

/* The object as one line with its end, to be freed; it takes the object. NULL: no memory. 12 significant digits: more than any
 * of these numbers has, and short to read. */
char *shmt_json_line(json_t *object);

#endif
