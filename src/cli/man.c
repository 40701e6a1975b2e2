/* Writes the parts of man/shmtrain.1 that are made from the program's tables: man_parts commands | options | modes | topics; and
 * that of completions/shmtrain: man_parts completion. Not installed: tests/check_man and check_completion compare the files with
 * what this prints, and `make man-page` writes them anew. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/complete.h"
#include "cli/topics.h"

/* ---- words ---- */

/* Text as roff wants it: no line begins with a command, and dashes of options stay dashes. A sentence ends its line. */
static void put_text(const char *text) {
    char before = '\n';
    for (; *text; text++) {
        const bool at_word = strchr(" \n\"(", before) != NULL;
        if ((*text == '.' || *text == '\'') && before == '\n') printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-' && (at_word || before == '-'))
            printf("\\-");
        else if (*text == ' ' && before == '.' && text[1] >= 'A' && text[1] <= 'Z')
            printf("\n");
        else
            putchar(*text);
        before = *text;
    }
}

/* "[DATA]", "MODEL DATA", "[COMMAND|TOPIC]" as macros. */
static void put_operands(const char *operands) {
    for (const char *at = operands; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        printf("%s", *at == '[' ? " Op Ar " : " Ar ");
        for (size_t i = 0; i < n; i++) {
            if (at[i] == '|')
                printf(" | Ar ");
            else if (at[i] != '[' && at[i] != ']')
                putchar(at[i]);
        }
        at += n;
    }
}

static void put_capital(const char *about) {
    printf("%c", about[0] >= 'a' && about[0] <= 'z' ? about[0] - 'a' + 'A' : about[0]);
    put_text(about + 1);
    printf(".\n");
}

/* ---- parts ---- */

static void put_commands(void) {
    const struct command *c;
    printf(".Bl -tag -width Ds\n");
    for (size_t i = 0; (c = command_at(i)); i++) {
        printf(".It Cm %s", c->name);
        put_operands(c->operands);
        printf("\n");
        put_capital(c->about);
        put_text(command_words(c));
    }
    printf(".El\n");
}

static void put_option(const struct shmtrain_option *o) {
    printf(".It ");
    if (o->letter) printf("Fl %c%s%s , ", o->letter, o->argument ? " Ar " : "", o->argument ? o->argument : "");
    printf("Fl \\-%s%s%s\n", o->name, o->argument ? " Ar " : "", o->argument ? o->argument : "");
    put_text(o->help);
    printf("\n");
    if (o->argument && o->standard[0]) printf(".Pq default : Cm %s\n", o->standard);
}

static bool is_first_of_group(const struct shmtrain_option *(*at)(size_t i), size_t i) {
    for (size_t before = 0; before < i; before++)
        if (strcmp(at(before)->group, at(i)->group) == 0) return false;
    return true;
}

/* Under a heading for each group, as in the help. */
static void put_options(const struct shmtrain_option *(*at)(size_t i)) {
    const struct shmtrain_option *o, *same;
    for (size_t i = 0; (o = at(i)); i++) {
        if (!is_first_of_group(at, i)) continue;
        printf(".Ss %s\n.Bl -tag -width Ds\n", o->group);
        for (size_t k = i; (same = at(k)); k++)
            if (strcmp(same->group, o->group) == 0) put_option(same);
        printf(".El\n");
    }
}

static void put_topics(void) {
    const struct topic *t;
    printf(".Bl -tag -width environment -compact\n");
    for (size_t i = 0; (t = topic_at(i)); i++) {
        printf(".It Cm %s\n", t->name);
        put_text(t->about);
        printf("\n");
    }
    printf(".El\n");
}

/* "--write racy --staleness S", an option in each line; the last one ends a sentence. */
static void put_axes(const char *axes) {
    for (const char *at = axes; *at;) {
        const size_t name = strcspn(at, " "), value = strcspn(at + name + 1, " ");
        const char *argument = at + name + 1, *next = argument + value + strspn(argument + value, " ");
        const char *macro = value == 1 && argument[0] >= 'A' && argument[0] <= 'Z' ? "Ar" : "Cm";
        printf(".Fl \\%.*s %s %.*s%s\n", (int)name - 1, at + 1, macro, (int)value, argument, *next ? "" : " .");
        at = next;
    }
}

static void put_modes(void) {
    const struct shmtrain_mode *m;
    printf(".Bl -tag -width Ds\n");
    for (size_t i = 0; (m = shmtrain_mode_at(i)); i++) {
        printf(".It Cm %s\n", m->form);
        put_capital(m->about);
        printf("Known as ");
        put_text(m->known_as);
        printf(".\nShort for\n");
        put_axes(m->axes);
        if (m->standard[0]) printf("Without a number it is %s.\n", m->standard);
    }
    printf(".El\n");
}

int main(int argc, char **argv) {
    const char *part = argc == 2 ? argv[1] : "";
    if (strcmp(part, "commands") == 0) {
        put_commands();
    } else if (strcmp(part, "options") == 0) {
        put_options(shmtrain_option_at);
        put_options(arguments_option_at);
    } else if (strcmp(part, "topics") == 0) {
        put_topics();
    } else if (strcmp(part, "modes") == 0) {
        put_modes();
    } else if (strcmp(part, "completion") == 0) {
        complete_put();
    } else {
        fprintf(stderr, "usage: man_parts commands | options | modes | topics | completion\n");
        return 2;
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
