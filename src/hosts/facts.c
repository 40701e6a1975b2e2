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

/* The line of a text whose name is that of `like`. n 0: there is none. */
static struct line line_named(struct line like, const char *at, const char *end) {
    const char *equals = memchr(like.at, '=', like.n);
    const size_t name = equals ? (size_t)(equals - like.at) + 1 : like.n;
    while (at < end) {
        const struct line line = line_at(at, end);
        if (line.n >= name && memcmp(line.at, like.at, name) == 0) return line;
        at = line.at + line.n + (line.at + line.n < end);
        if (line.n == 0 && at >= end) break;
    }
    return (struct line){end, 0};
}

static void show_name(char *out, struct line line) {
    const char *equals = memchr(line.at, '=', line.n);
    show(out, line.at, equals ? (size_t)(equals - line.at) : line.n);
}

/* The first line of a text that the other one has not, or has otherwise. */
static bool find_difference(const char *at, const char *end, const char *other, const char *other_end, struct line out[2]) {
    while (at < end) {
        out[0] = line_at(at, end);
        out[1] = line_named(out[0], other, other_end);
        if (out[0].n != out[1].n || memcmp(out[0].at, out[1].at, out[0].n) != 0) return true;
        at = out[0].at + out[0].n + 1;
    }
    return false;
}

bool shmt_facts_differ(const struct shmt_facts *ours, const unsigned char *theirs, uint32_t n, struct shmt_difference *out) {
    const char *mine = ours->text, *mine_end = mine + ours->n, *other = (const char *)theirs, *other_end = other + n;
    struct line line[2];
    *out = (struct shmt_difference){.ours = "none", .theirs = "none"};
    if (find_difference(mine, mine_end, other, other_end, line)) {
        show_name(out->name, line[0]);
        show_value(out->ours, line[0]);
        if (line[1].n > 0) show_value(out->theirs, line[1]);
        return true;
    }
    if (!find_difference(other, other_end, mine, mine_end, line)) return false;
    show_name(out->name, line[0]);
    show_value(out->theirs, line[0]);
    return true;
}
