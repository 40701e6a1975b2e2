/* Facts: see facts.h. */
#include "hosts/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/show.h"

#define MOST_VALUE 2048

void shmt_facts_add(struct shmt_facts *f, const char *name, const char *format, ...) {
    char value[MOST_VALUE];
    va_list rest;
    va_start(rest, format);
    vsnprintf(value, sizeof value, format, rest);
    va_end(rest);
    shmt_show_plainly(value);
    const uint64_t room = sizeof f->text - f->n;
    const int n = snprintf(f->text + f->n, room, "%s=%s\n", name, value);
    if (n < 0 || (uint64_t)n >= room)
        f->full = true;
    else
        f->n += (uint32_t)n;
}

/* A line of a text: from `at` to its end, or to that of the text. */
struct line {
    const char *at;
    size_t n;
};

static struct line line_at(const char *at, const char *end) {
    const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return (struct line){at, (size_t)((stop ? stop : end) - at)};
}

static void show(char *out, const char *at, size_t n) {
    const size_t shown = shmt_min_u64(n, SHMT_FACT_TEXT - 1);
    memcpy(out, at, shown);
    out[shown] = '\0';
    shmt_show_plainly(out);
}

/* The value behind "name=". */
static void show_value(char *out, struct line line) {
    const char *equals = memchr(line.at, '=', line.n);
    if (equals)
        show(out, equals + 1, line.n - (size_t)(equals + 1 - line.at));
    else
        out[0] = '\0';
}

bool shmt_facts_differ(const struct shmt_facts *ours, const unsigned char *theirs, uint32_t n, struct shmt_difference *out) {
    const char *mine = ours->text, *mine_end = mine + ours->n;
    const char *other = (const char *)theirs, *other_end = other + n;
    *out = (struct shmt_difference){0};
    while (mine < mine_end) {
        const struct line a = line_at(mine, mine_end), b = line_at(other, other_end);
        if (a.n != b.n || memcmp(a.at, b.at, a.n) != 0) {
            const char *equals = memchr(a.at, '=', a.n);
            const size_t name = equals ? (size_t)(equals - a.at) : a.n;
            show(out->name, a.at, name);
            show_value(out->ours, a);
            if (b.n > name && memcmp(a.at, b.at, name + 1) == 0) show_value(out->theirs, b);
            return true;
        }
        mine = a.at + a.n + 1;
        other = shmt_min_u64(b.n + 1, (uint64_t)(other_end - b.at)) + b.at;
    }
    if (other >= other_end) return false;
    show(out->name, "what is to be alike", 19);
    return true;
}
