/* For tests of caches from outside: a text and its cache, in a folder of the test's own. */
#pragma once

#include "run_program.h"
#include "sanitized.h"

#include <dirent.h>
#include <unistd.h>

/* 12,000 features, so that their order pays; -1 and 1, and a value now and then that is not 1. */
static inline void write_text(const char *name, unsigned seed, int examples) {
    FILE *f = fopen(name, "w");
    uint64_t state = seed;
    assert_non_null(f);
    for (int i = 0; i < examples; i++) {
        unsigned id = 0, sum = 0;
        char line[600] = "";
        for (int k = 0; k < 20; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const unsigned step = 1 + (unsigned)(state >> 33) % (unsigned)(5 + 55 * k);
            id += step;
            sum += id % 3;
            snprintf(line + strlen(line), sizeof line - strlen(line), " %u:%s", id, step % 7 == 0 ? "0.5" : "1");
        }
        fprintf(f, "%s%s\n", sum > 20 ? "1" : "-1", line);
    }
    assert_int_equal(fclose(f), 0);
}

static inline int make_all(void **state) {
    if (program_make_folder(state) < 0) return -1;
    write_text("t.svm", 1, SANITIZED ? 2000 : 6000);
    write_text("v.svm", 2, 1000);
    return 0;
}

static inline bool is_there(const char *name) { return access(name, F_OK) == 0; }

/* Nothing is left of a file that was not completed. */
static inline void assert_no_temporary(void) {
    DIR *dir = opendir(".");
    const struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (strstr(entry->d_name, ".tmp")) fail_msg("%s is left", entry->d_name);
    closedir(dir);
}

static inline void convert(const char *data, const char *to) {
    struct program *p = RUN("data", "convert", data, "-o", to);
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "");
    assert_string_equal(p->text[ERR], "");
}
