/* --help and shmtrain help: made from the tables of commands and options, at most 80 columns wide. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/near.h"
#include "cli/talk.h"
#include "cli/topics.h"

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
    const int has_default = o->argument && o->standard[0] != '\0'; /* a switch is off */
    snprintf(words, sizeof words, "%s%s%s%s", o->help, has_default ? " [" : "", has_default ? o->standard : "",
             has_default ? "]" : "");
    printf("  %-*s ", INDENT - 3, left);
    print_words(words);
}

/* ---- lists of options ---- */

typedef const struct shmtrain_option *option_at(size_t i);

static int is_first_of_group(option_at *at, size_t i, const struct command *of) {
    const int is_own = at == arguments_option_at;
    for (size_t before = 0; before < i; before++)
        if (strcmp(at(before)->group, at(i)->group) == 0 && (!of || command_takes(of, at(before)->name, is_own))) return 0;
    return 1;
}

/* Of one command, or of all (NULL); under a heading for each group, in the order in which the groups begin. */
static void print_table(option_at *at, const struct command *of) {
    const struct shmtrain_option *o, *same;
    const int is_own = at == arguments_option_at;
    for (size_t i = 0; (o = at(i)); i++) {
        if ((of && !command_takes(of, o->name, is_own)) || !is_first_of_group(at, i, of)) continue;
        printf("\n%s\n", o->group);
        for (size_t k = i; (same = at(k)); k++)
            if (strcmp(same->group, o->group) == 0 && (!of || command_takes(of, same->name, is_own))) print_option(same);
    }
}

static void print_commands(void) {
    const struct command *c;
    for (size_t i = 0; (c = command_at(i)); i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", c->name, c->operands);
        printf("  %-*s ", INDENT - 3, left);
        print_words(c->about);
    }
}

void help_print(void) {
    printf(
        "Usage: shmtrain [COMMAND] [OPTIONS] ...\n"
        "\n"
        "Trains a model with many worker processes that share one parameter store in\n"
        "memory. DATA is a file of LIBSVM text, an IDX file (MNIST's format), or\n"
        "generated: builtin:sparse (the default; its best possible loss is known),\n"
        "builtin:dense or builtin:line. shmtrain help files says more.\n"
        "\n"
        "  shmtrain -w 8                         train on generated data\n"
        "  shmtrain -w 8 a9a --valid a9a.t       train on a file, validate on another\n"
        "  shmtrain --mode sync -o model a9a     the same bits for every -w\n"
        "  shmtrain eval model a9a.t             how good the model is on other data\n"
        "\nCommands\n");
    print_commands();
    printf("\nTopics of shmtrain help\n");
    topics_print_list();
    print_table(shmtrain_option_at, NULL);
    print_table(arguments_option_at, NULL);
    printf(
        "\nDefaults are in brackets. Each option that sets up a run, and --progress, can\n"
        "also be set in the environment: SHMTRAIN_WORKERS=4 is --workers 4.\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage, 129, 130 and 143 ended by SIGHUP,\n"
        "SIGINT and SIGTERM (what -o asked for is saved).\n");
}

void help_print_command(const struct command *c) {
    printf("Usage: shmtrain %s%s%s%s\n\n", c->name, c->options[0] ? " [OPTIONS]" : "", c->operands[0] ? " " : "", c->operands);
    printf("%c%s.\n", c->about[0] - 'a' + 'A', c->about + 1);
    if (c->words[0]) printf("%s", c->words);
    print_table(shmtrain_option_at, c);
    print_table(arguments_option_at, c);
}

/* Nearest among commands and topics. */
static int refuse_page(const char *word) {
    struct near near = near_to(word);
    for (size_t i = 0; topic_at(i); i++) near_offer(&near, topic_at(i)->name); /* "mode" is rather modes than model */
    for (size_t i = 0; command_at(i); i++) near_offer(&near, command_at(i)->name);
    if (near.best) return talk_refuse("there is no command and no topic \"%s\": did you mean %s?", word, near.best);
    return talk_refuse("there is no command and no topic \"%s\"; shmtrain help lists them", word);
}

int help_run(struct shmtrain_store *store, const struct arguments *a) {
    (void)store;
    const char *word = a->n_operands > 0 ? a->operand[0] : NULL;
    if (!word)
        help_print();
    else if (command_named(word))
        help_print_command(command_named(word));
    else if (topic_named(word))
        topic_print(topic_named(word), stdout);
    else
        return refuse_page(word);
    return talk_close_output();
}
