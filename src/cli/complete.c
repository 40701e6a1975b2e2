/* The tables of commands, options and topics as bash knows them: see complete.h. What is made of them is written by hand, in
 * completions/shmtrain, which also says what the functions set. */
#include "cli/complete.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/display.h"
#include "cli/topics.h"

#define WIDTH 120

/* ---- words ---- */

/* Of the program's own options; the library knows those of its own. */
static const struct {
    const char *option, *words;
} OWN_WORDS[] = {{"format", "safetensors|liblinear|csv"}, {"progress", DISPLAY_CHOICES}};

/* As they may be typed: a mode that takes a number ends with its colon. */
static void put_words(const char *words) {
    for (const char *at = words; *at; at += strspn(at, "|")) {
        const size_t n = strcspn(at, "|"), name = strcspn(at, ":|");
        printf(" %.*s", (int)(name < n ? name + 1 : n), at);
        at += n;
    }
}

/* All modes that can be named, in a list with commas. */
static void put_modes(void) {
    const struct shmtrain_mode *mode;
    for (size_t i = 0; (mode = shmtrain_mode_at(i)); i++) put_words(mode->form);
}

static void put_words_of(const struct shmtrain_option *o, bool is_own) {
    char words[512] = "";
    if (!is_own) shmtrain_option_words(o, words, sizeof words);
    for (size_t i = 0; is_own && i < sizeof OWN_WORDS / sizeof *OWN_WORDS; i++)
        if (strcmp(OWN_WORDS[i].option, o->name) == 0) snprintf(words, sizeof words, "%s", OWN_WORDS[i].words);
    if (is_own && words[0] == '\0' && strcmp(o->standard, "auto") == 0) snprintf(words, sizeof words, "auto");
    if (is_own && strcmp(o->name, "modes") == 0)
        put_modes();
    else
        put_words(words);
}

/* ---- functions ---- */

static void put_names(void) {
    const struct command *c;
    const struct topic *t;
    printf("_shmtrain_commands='");
    for (size_t i = 0; (c = command_at(i)); i++) printf("%s%s", i > 0 ? " " : "", c->name);
    printf("'\n_shmtrain_topics='");
    for (size_t i = 0; (t = topic_at(i)); i++) printf("%s%s", i > 0 ? " " : "", t->name);
    printf("'\n");
}

/* --help and --version are everybody's. */
static bool is_taken(const struct command *c, const struct shmtrain_option *o, bool is_own) {
    return command_takes(c, o->name, is_own) || (is_own && (strcmp(o->name, "help") == 0 || strcmp(o->name, "version") == 0));
}

/* In lines that are not too long. */
static void put_options_of(const struct command *c, const struct shmtrain_option *(*at)(size_t i), bool is_own) {
    const struct shmtrain_option *o;
    int column = WIDTH;
    for (size_t i = 0; (o = at(i)); i++) {
        if (!is_taken(c, o, is_own)) continue;
        if (column + 3 + (int)strlen(o->name) > WIDTH) column = printf("\n               ") - 1;
        column += printf(" --%s", o->name);
    }
}

static void put_commands(void) {
    const struct command *c;
    printf("\n_shmtrain_command() {\n    case $1 in\n");
    for (size_t i = 0; (c = command_at(i)); i++) {
        printf("        %s)\n            operands='%s'\n            options='", c->name, c->operands);
        put_options_of(c, shmtrain_option_at, false);
        put_options_of(c, arguments_option_at, true);
        printf("'\n            ;;\n");
    }
    printf("    esac\n}\n");
}

static void put_values(const struct shmtrain_option *(*at)(size_t i), bool is_own) {
    const struct shmtrain_option *o;
    for (size_t i = 0; (o = at(i)); i++) {
        printf("        --%s", o->name);
        if (o->letter) printf(" | -%c", o->letter);
        printf(") argument='%s' value='", o->argument ? o->argument : "");
        put_words_of(o, is_own);
        printf("' ;;\n");
    }
}

void complete_put(void) {
    put_names();
    put_commands();
    printf("\n_shmtrain_option() {\n    case $1 in\n");
    put_values(shmtrain_option_at, false);
    put_values(arguments_option_at, true);
    printf("        *) return 1 ;;\n    esac\n}\n");
}
