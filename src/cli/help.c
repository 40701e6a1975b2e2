/* --help: made from the option tables, at most 80 columns wide. */
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"

#define WIDTH  80
#define INDENT 25 /* where the words about an option begin */

/* Prints words from column INDENT on, and goes on there in the next line when one is full. */
static void print_words(const char *words) {
    size_t column = INDENT;
    for (size_t n; *words; words += n + strspn(words + n, " ")) {
        n = strcspn(words, " ");
        if (column > INDENT && column + 1 + n > WIDTH) {
            printf("\n%*s", INDENT, "");
            column = INDENT;
        }
        column += (size_t)printf("%s%.*s", column > INDENT ? " " : "", (int)n, words);
    }
    printf("\n");
}

static void print_option(const struct shmtrain_option *o) {
    char left[64], words[256];
    if (o->letter)
        snprintf(left, sizeof left, "-%c, --%s %s", o->letter, o->name, o->argument ? o->argument : "");
    else
        snprintf(left, sizeof left, "    --%s %s", o->name, o->argument ? o->argument : "");
    const int has_default = o->standard[0] != '\0';
    snprintf(words, sizeof words, "%s%s%s%s", o->help, has_default ? " [" : "", o->standard, has_default ? "]" : "");
    printf("  %-*s ", INDENT - 3, left);
    print_words(words);
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
