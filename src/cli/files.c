/* Files that are named together: see files.h. */
#include "cli/files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/talk.h"

const char *files_standard(const struct arguments *a) {
    static const char *const NETWORKS[] = {"mlp", "cnn", "net"};
    const char *model = arguments_value(a, "model");
    for (size_t i = 0; model && i < sizeof NETWORKS / sizeof *NETWORKS; i++)
        if (strcmp(model, NETWORKS[i]) == 0) return "builtin:digits";
    return "builtin:sparse";
}

const char *files_named(const struct arguments *a, int first, const char *standard) {
    static char *names; /* one command for each program */
    const int n = a->n_operands - first;
    if (n <= 0) return standard;
    if (n == 1) return a->operand[first];
    const int rc = shmtrain_data_files(&a->operand[first], (size_t)n, &names);
    if (rc == 0) return names;
    if (rc == SHMTRAIN_E_USAGE)
        talk_refuse("one of %d files has no name, or one with a line break in it: rename it, or name it alone", n);
    else
        talk_refuse("not enough memory for the names of %d files", n);
    return NULL;
}

void files_title(const struct arguments *a, int first, const char *standard, char *out, size_t bytes) {
    const int n = a->n_operands - first;
    const char *one = n > 0 ? a->operand[first] : standard ? standard : "";
    if (n > 1)
        snprintf(out, bytes, "%d files (%s, %s%s)", n, one, a->operand[first + 1], n > 2 ? ", ..." : "");
    else
        snprintf(out, bytes, "%s", strcmp(one, "-") == 0 ? "standard input" : one);
}

static int is_pipe(const char *name) {
    struct stat s;
    return strcmp(name, "-") == 0 || (stat(name, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode));
}

int files_refuse_pipes(const struct arguments *a, int first, const char *command) {
    for (int i = first; i < a->n_operands; i++)
        if (is_pipe(a->operand[i]))
            return talk_refuse("%s reads its data once for each mode, and %s can be read once only: save it to a file first",
                               command, strcmp(a->operand[i], "-") == 0 ? "standard input" : a->operand[i]);
    return 0;
}
