/* --help, which is one screen, and the pages of shmtrain help: made from the tables of commands, options and topics, at most
 * 80 columns wide. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/near.h"
#include "cli/talk.h"
#include "cli/topics.h"

#define WIDTH  80
#define INDENT 25 /* where the words about an option begin */

#define COMMAND_WIDTH 28 /* of the words about one of two commands in a line */

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
        if (strcmp(at(before)->group, at(i)->group) == 0 && command_takes(of, at(before)->name, is_own)) return 0;
    return 1;
}

/* Those of one command, under a heading for each group, in the order in which the groups begin. */
static void print_table(option_at *at, const struct command *of) {
    const struct shmtrain_option *o, *same;
    const int is_own = at == arguments_option_at;
    for (size_t i = 0; (o = at(i)); i++) {
        if (!command_takes(of, o->name, is_own) || !is_first_of_group(at, i, of)) continue;
        printf("\n%s\n", o->group);
        for (size_t k = i; (same = at(k)); k++)
            if (strcmp(same->group, o->group) == 0 && command_takes(of, same->name, is_own)) print_option(same);
    }
}

/* ---- one screen ---- */

/* Two beside one another, the first half on the left. */
static void print_commands(void) {
    size_t n = 0;
    while (command_at(n)) n++;
    for (size_t i = 0, half = (n + 1) / 2; i < half; i++) {
        const struct command *left = command_at(i), *right = command_at(half + i);
        printf("  %-9s %-*s", left->name, right ? COMMAND_WIDTH : 0, left->about);
        if (right) printf(" %-7s %s", right->name, right->about);
        printf("\n");
    }
}

static const struct shmtrain_option *option_named(option_at *at, const char *name) {
    const struct shmtrain_option *o = NULL;
    for (size_t i = 0; (o = at(i)) && strcmp(o->name, name) != 0;) i++;
    return o;
}

/* Those that people use. */
static void print_most_used(void) {
    static const char *const NAMES[] = {"workers", "threads", "epochs",     "mode",   "batch", "model", "rate",
                                        "l2",      "valid",   "checkpoint", "output", "json",  "quiet"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const struct shmtrain_option *o = option_named(shmtrain_option_at, NAMES[i]);
        print_option(o ? o : option_named(arguments_option_at, NAMES[i]));
    }
}

/* The topics' names, in as many lines as they take. */
static void print_topic_names(void) {
    const struct topic *t;
    size_t column = 0;
    for (size_t i = 0; (t = topic_at(i)); i++) {
        const size_t n = strlen(t->name);
        if (column == 0 || column + 1 + n > WIDTH) {
            printf("%s   ", column > 0 ? "\n" : "");
            column = 3;
        }
        column += (size_t)printf(" %s", t->name);
    }
    printf("\n");
}

void help_print(void) {
    printf(
        "Usage: shmtrain [COMMAND] [OPTIONS] [DATA...]\n"
        "\n"
        "Trains a model with many worker processes on one machine. They share its\n"
        "parameters in memory, and update them asynchronously, in step, or in between.\n"
        "\n"
        "Examples\n"
        "  shmtrain -w 8                                   train on generated data\n"
        "  shmtrain train.svm --valid test.svm -o model    train, and save the model\n"
        "  shmtrain --mode sync train.csv --label bought   the same bits for every -w\n"
        "  shmtrain eval model test.svm                    measure the model on a file\n"
        "  shmtrain compare --modes async,sync train.svm   compare two modes\n"
        "\nCommands\n");
    print_commands();
    printf("\nMost used options [default]\n");
    print_most_used();
    printf(
        "\nMore\n"
        "  shmtrain help train     all options of train; likewise for each command\n"
        "  shmtrain help topics    what each of these topics is about:\n");
    print_topic_names();
}

static void print_topics(void) {
    printf("Topics of shmtrain help\n\n");
    topics_print_list();
}

void help_print_command(const struct command *c) {
    printf("Usage: shmtrain %s%s%s%s\n\n", c->name, c->options[0] ? " [OPTIONS]" : "", c->operands[0] ? " " : "", c->operands);
    printf("%c%s.\n", c->about[0] - 'a' + 'A', c->about + 1);
    fputs(command_words(c), stdout);
    print_table(shmtrain_option_at, c);
    print_table(arguments_option_at, c);
    if (c->options[0] == '\0') return;
    printf("\nDefaults are in brackets.\n");
    if (command_takes(c, "epochs", 0))
        printf(
            "Each option that sets up a run, and --progress, can also be set in the\n"
            "environment: SHMTRAIN_WORKERS=4 is --workers 4. Exit statuses: shmtrain help\n"
            "exit.\n");
}

/* Nearest among commands and topics. */
static int refuse_page(const char *word) {
    struct near near = near_to(word);
    for (size_t i = 0; topic_at(i); i++) near_offer(&near, topic_at(i)->name); /* "mode" is rather modes than model */
    for (size_t i = 0; command_at(i); i++) near_offer(&near, command_at(i)->name);
    near_offer(&near, "topics");
    if (near.best) return talk_refuse("there is no command and no topic \"%s\": did you mean %s?", word, near.best);
    return talk_refuse("there is no command and no topic \"%s\"; shmtrain help lists them", word);
}

int help_run(struct shmtrain_store *store, const struct arguments *a) {
    (void)store;
    const char *word = a->n_operands > 0 ? a->operand[0] : NULL;
    if (!word)
        help_print();
    else if (strcmp(word, "topics") == 0)
        print_topics();
    else if (command_named(word))
        help_print_command(command_named(word));
    else if (topic_named(word))
        topic_print(topic_named(word), stdout);
    else
        return refuse_page(word);
    return talk_close_output();
}
