/* The real program as several hosts of one machine. */
#pragma once

#include "run_program.h"

#include "ports_help.h"

#define SPARSE "builtin:sparse:examples=6000,valid=500,features=3000,nonzeros=12"
#define WIDE   "builtin:sparse:examples=2000,valid=100,features=20000,nonzeros=30"
#define DENSE  "builtin:digits:examples=600,valid=100"
#define LONG   "builtin:sparse:examples=20000,valid=100,features=400,nonzeros=12"

#define START_HOST(rank, ...) START("--hosts", g_list, "--rank", rank, __VA_ARGS__)

static inline void assert_says(const struct program *p, const char *words) {
    if (!strstr(p->text[ERR], words)) fail_msg("\"%s\" is not in:\n%s", words, p->text[ERR]);
}

static inline void end_with(struct program *p, int status, const char *words) {
    program_finish(p);
    program_assert_status(p, status);
    if (words) assert_says(p, words);
}

/* Of the parameters, as its report says. */
static inline void hash_of(struct program *p, char out[17]) {
    program_finish(p);
    program_assert_status(p, 0);
    json_t *report = program_json(p);
    snprintf(out, 17, "%s", json_string_value(json_object_get(report, "parameters_xxh64")));
    json_decref(report);
}
