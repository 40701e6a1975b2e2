/* The page of a comparison: page.html, in which places are filled. It draws from JSON; readers without JavaScript get the terminal's
 * table. What comes from outside (names of files, messages) cannot end the element in which it stands. */
#include <stdlib.h>
#include <string.h>

#include "cli/compare/page.h"

void compare_put_escaped(FILE *out, const char *text) {
    json_t *valid = compare_text(text);
    const unsigned char *at = (const unsigned char *)json_string_value(valid);
    for (size_t n; at && *at; at += n) {
        n = at[0] == 0xc2 && at[1] < 0xa0 ? 2 : 1; /* bytes of a control character beyond ASCII; else one at a time */
        if (n == 2 || (*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f)
            fprintf(out, "%.*s", (int)n, "?\?");
        else
            fprintf(out, strchr("&<>\"", *at) ? "&#%d;" : "%c", *at);
    }
    json_decref(valid);
}

/* The last part of a path. */
static int put_name(const struct comparison *c, FILE *out) {
    compare_put_escaped(out, compare_base_name(c->title));
    return 0;
}

static int put_text(const struct comparison *c, FILE *out) {
    char *text = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory) return -1;
    compare_put_table(c, memory);
    const int rc = fclose(memory);
    if (rc == 0) compare_put_escaped(out, text);
    free(text);
    return rc;
}

/* In ASCII, and without <, which stands in strings alone: no name can end the element of a script. */
static int put_object(json_t *o, FILE *out) {
    char *text = o ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12)) : NULL;
    for (const char *at = text; at && *at; at++) *at == '<' ? fputs("\\u003c", out) : fputc(*at, out);
    free(text);
    json_decref(o);
    return text ? 0 : -1;
}

static int put_comparison(const struct comparison *c, FILE *out) { return put_object(compare_json(c), out); }
static int put_page(const struct comparison *c, FILE *out) { return put_object(compare_page_json(c), out); }

int compare_put_html(const struct comparison *c, FILE *out) {
    static const struct {
        const char *mark;
        int (*put)(const struct comparison *c, FILE *out);
    } PLACES[] = {{"@NAME@", put_name}, {"@TEXT@", put_text}, {"@COMPARISON@", put_comparison}, {"@PAGE@", put_page}};
    const char *at = COMPARE_PAGE;
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        const char *mark = strstr(at, PLACES[i].mark);
        fwrite(at, 1, (size_t)(mark - at), out);
        if (PLACES[i].put(c, out) < 0) return -1;
        at = mark + strlen(PLACES[i].mark);
    }
    fputs(at, out);
    return 0;
}
