/* Parsing the command line: the library's option table and the program's own few options, both through getopt_long. */
#include "cli/arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTIONS 128
#define FIRST_LONG  256 /* getopt's value of library option i is FIRST_LONG + i, of own option i OWN + i */
#define OWN         1024

static const struct shmtrain_option OWN_OPTIONS[] = {
    {"output", 'o', "FILE", "", "", "The program", "write the model to FILE (safetensors)"},
    {"quiet", 'q', NULL, "", "", "The program", "say nothing but errors"},
    {"json", 0, NULL, "", "", "The program", "one JSON object on stdout at the end; lines go to stderr"},
    {"help", 'h', NULL, "", "", "The program", "this text"},
    {"version", 0, NULL, "", "", "The program", "the version"},
};
enum { OWN_OUTPUT, OWN_QUIET, OWN_JSON, OWN_HELP, OWN_VERSION, N_OWN };

const struct shmtrain_option *arguments_option_at(size_t i) { return i < N_OWN ? &OWN_OPTIONS[i] : NULL; }

/* What getopt_long wants, made from the two tables. */
struct tables {
    struct option option[MAX_OPTIONS];
    char letters[2 * MAX_OPTIONS + 2];
    int n, n_letters;
};

static void add_option(struct tables *t, const struct shmtrain_option *o, int value) {
    if (t->n + 1 >= MAX_OPTIONS) abort(); /* both tables are constant, and a test parses every option of them */
    t->option[t->n++] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, value};
    if (o->letter == 0) return;
    t->letters[t->n_letters++] = o->letter;
    if (o->argument) t->letters[t->n_letters++] = ':';
}

static void make_tables(struct tables *t) {
    const struct shmtrain_option *o;
    memset(t, 0, sizeof *t);
    t->letters[t->n_letters++] = ':'; /* a missing argument is told from an unknown option */
    for (int i = 0; (o = shmtrain_option_at((size_t)i)); i++) add_option(t, o, FIRST_LONG + i);
    for (int i = 0; i < N_OWN; i++) add_option(t, &OWN_OPTIONS[i], OWN + i);
}

/* A letter's value is the letter: the same value as its long name's. */
static int value_of(int got) {
    const struct shmtrain_option *o;
    if (got >= FIRST_LONG) return got;
    for (int i = 0; (o = shmtrain_option_at((size_t)i)); i++)
        if (o->letter == got) return FIRST_LONG + i;
    for (int i = 0; i < N_OWN; i++)
        if (OWN_OPTIONS[i].letter == got) return OWN + i;
    return -1;
}

static int refuse(const char *format, const char *what) {
    fprintf(stderr, "shmtrain: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\n");
    return 2;
}

/* getopt has left a short option's letter in optopt, a long option's value when its argument is missing or too much, and 0 for
 * a name that it does not know. With a letter, optind may still stand before its group. */
static int refuse_option(int got, char **argv) {
    char letter[3] = {'-', (char)optopt, '\0'};
    const char *what = optopt > 0 && optopt < FIRST_LONG ? letter : argv[optind - 1];
    if (got == ':') return refuse("%s needs a value: shmtrain --help says which", what);
    if (optopt >= FIRST_LONG) return refuse("%s: this option takes no value", what);
    return refuse("there is no option %s; shmtrain --help lists them", what);
}

static int take_own(int own, struct arguments *out) {
    switch (own) {
        case OWN_OUTPUT:
            out->output = optarg;
            break;
        case OWN_QUIET:
            out->quiet = true;
            break;
        case OWN_JSON:
            out->json = true;
            break;
        case OWN_HELP:
            out->help = true;
            break;
        default:
            out->version = true;
            break;
    }
    if (own == OWN_OUTPUT && optarg[0] == '\0') return refuse("--output \"\": expected the name of a file%s", "");
    return 0;
}

static int take_library(struct shmtrain_store *store, const struct shmtrain_option *o) {
    if (shmtrain_store_set(store, o->name, o->argument ? optarg : "1") == 0) return 0;
    return refuse("--%s", shmtrain_store_message(store));
}

int arguments_parse(int argc, char **argv, struct shmtrain_store *store, struct arguments *out) {
    struct tables tables;
    int got, status = 0;
    make_tables(&tables);
    *out = (struct arguments){0};
    opterr = 0;
    while (status == 0 && (got = getopt_long(argc, argv, tables.letters, tables.option, NULL)) != -1) {
        if (got == '?' || got == ':') return refuse_option(got, argv);
        const int value = value_of(got);
        status =
            value >= OWN ? take_own(value - OWN, out) : take_library(store, shmtrain_option_at((size_t)(value - FIRST_LONG)));
    }
    if (status != 0) return status;
    if (optind < argc && strcmp(argv[optind], "train") == 0) optind++;
    if (optind < argc) out->data = argv[optind++];
    if (optind < argc) return refuse("one data file at a time: what is \"%s\"?", argv[optind]);
    return 0;
}
