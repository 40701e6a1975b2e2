/* For tests of the program that look at its checkpoints, which are in folder ck. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "run_program.h"

/* The last one by its name. */
static void newest(char out[300]) {
    DIR *dir = opendir("ck");
    const struct dirent *entry;
    char last[280] = "";
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, "checkpoint-", 11) == 0 && strcmp(entry->d_name, last) > 0)
            snprintf(last, sizeof last, "%.250s", entry->d_name);
    closedir(dir);
    assert_true(last[0] != '\0');
    snprintf(out, 300, "ck/%s", last);
}

static int end_test(void **state) {
    program_drop_folder("ck");
    return program_end_all(state);
}
