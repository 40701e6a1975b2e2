/* What all JSON texts of this room share: numbers that are null where nobody computed them, names that may be any bytes, and
 * one line of text for an object. */
#ifndef SHMT_REPORT_JSON_PRIV_H
#define SHMT_REPORT_JSON_PRIV_H

#include <jansson.h>
#include <shmtrain/report.h>
#include <stdint.h>

json_t *shmt_json_number(double x); /* null when it is not finite */
json_t *shmt_json_whole(uint64_t n);
json_t *shmt_json_id(
    uint64_t id); /* of a feature: a number, or above 2^63 - 1, which jansson has none for, its digits as a string */

/* A path is bytes, JSON is UTF-8: what is not becomes question marks, so that the name is never missing. */
json_t *shmt_json_text(const char *name);

/* The fields of a report, and of an epoch, each into an object that is there already. */
void shmt_json_add_choices(json_t *o, const struct shmtrain_report *r); /* what is about to run, and on which data */
void shmt_json_add_results(json_t *o, const struct shmtrain_report *r);
void shmt_json_add_epoch(json_t *o, const struct shmtrain_epoch *epoch);

/* What a run has cost, worker by worker. */
void shmt_json_add_costs(json_t *o, const struct shmtrain_report *r);

/* The object as one line with its end, to be freed; it takes the object. NULL: no memory. 12 significant digits: more than any
 * of these numbers has, and short to read. */
char *shmt_json_line(json_t *object);

#endif
