/* Reports that outlive their stores: a store goes with its memory when its run is over, its figures stay. Used by compare. */
#pragma once

#include <shmtrain/report.h>
#include <stdbool.h>

#define KEPT_PARTS 24

struct kept {
    struct shmtrain_report report; /* whose texts and arrays are those below */
    char *json;                    /* shmtrain_report_json's text */
    void *part[KEPT_PARTS];
    unsigned n_parts;
    bool failed; /* no memory */
};

/* A copy of the report with all that it points to. NULL: no memory. */
struct kept *kept_create(const struct shmtrain_report *report);
void kept_destroy(struct kept *kept); /* NULL is fine */
