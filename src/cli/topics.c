/* What shmtrain help TOPIC prints: see topics.h. */
#include "cli/topics.h"

#include <shmtrain/store.h>
#include <string.h>

#define MODES "@modes\n" /* in a text: the list of modes, as the library has it */

const struct topic *topic_at(size_t i) { return TOPICS[i].name ? &TOPICS[i] : NULL; }

const struct topic *topic_named(const char *name) {
    const struct topic *t;
    for (size_t i = 0; (t = topic_at(i)); i++)
        if (strcmp(t->name, name) == 0) return t;
    return NULL;
}

void topics_print_list(void) {
    const struct topic *t;
    for (size_t i = 0; (t = topic_at(i)); i++) printf("  %-22s %s\n", t->name, t->about);
}

/* Words, in lines from column INDENT on. */
static void put_words(FILE *out, const char *words) {
    enum { WIDTH = 80, INDENT = 12 };
    size_t column = INDENT;
    for (size_t n; *words; words += n + strspn(words + n, " ")) {
        n = strcspn(words, " ");
        if (column > INDENT && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", INDENT, "");
            column = INDENT;
        }
        column += (size_t)fprintf(out, "%s%.*s", column > INDENT ? " " : "", (int)n, words);
    }
    fprintf(out, "\n");
}

static void put_modes(FILE *out) {
    const struct shmtrain_mode *m;
    for (size_t i = 0; (m = shmtrain_mode_at(i)); i++) {
        char words[256];
        fprintf(out, "  %-9s ", m->form);
        snprintf(words, sizeof words, "%s; %s", m->about, m->known_as);
        put_words(out, words);
        fprintf(out, "%12s", "");
        put_words(out, m->axes);
    }
}

void topic_print(const struct topic *topic, FILE *out) {
    const char *modes = strstr(topic->text, MODES);
    fprintf(out, "%.*s", modes ? (int)(modes - topic->text) : 0, topic->text);
    if (modes) put_modes(out);
    fputs(modes ? modes + strlen(MODES) : topic->text, out);
}
