/* --help: made from the option tables, at most 80 columns wide. */
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"

static void print_option(const struct shmtrain_option *o) {
    char left[64], standard[32] = "";
    if (o->letter)
        snprintf(left, sizeof left, "-%c, --%s %s", o->letter, o->name, o->argument ? o->argument : "");
    else
        snprintf(left, sizeof left, "    --%s %s", o->name, o->argument ? o->argument : "");
    if (o->standard[0]) snprintf(standard, sizeof standard, " [%s]", o->standard);
    printf("  %-22s %s%s\n", left, o->help, standard);
}

static void print_table(const struct shmtrain_option *(*at)(size_t i)) {
    const struct shmtrain_option *o;
    const char *group = "";
    for (size_t i = 0; (o = at(i)); i++) {
        if (strcmp(group, o->group) != 0) printf("\n%s\n", group = o->group);
        print_option(o);
    }
}

void help_print(void) {
    printf(
        "Usage: shmtrain [train] [OPTIONS] [DATA]\n"
        "\n"
        "Trains a model with many worker processes that share one parameter store in\n"
        "memory. DATA is LIBSVM text, builtin:sparse (the default: generated, its best\n"
        "possible loss is known), or builtin:sparse:examples=N,features=N,nonzeros=N.\n"
        "\n"
        "  shmtrain -w 8                         train on generated data\n"
        "  shmtrain -w 8 a9a --valid a9a.t       train on a file, validate on another\n"
        "  shmtrain --mode sync -o model a9a     the same bits for every -w\n");
    print_table(shmtrain_option_at);
    print_table(arguments_option_at);
    printf(
        "\nDefaults are in brackets. Each option can also be set in the environment:\n"
        "SHMTRAIN_WORKERS=4 is --workers 4. Exit status: 0 done, 1 failed, 2 wrong usage,\n"
        "130 and 143 ended by SIGINT and SIGTERM (what -o asked for is saved).\n");
}
