/* Escaping: see markup.h. */
#include "cli/compare/markup.h"

#include <string.h>

/* Bytes of the character of UTF-8 that begins here, 0: none does. */
static size_t character(const unsigned char *at) {
    static const struct {
        unsigned char mask, lead;
        unsigned least;
    } KINDS[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t n = 1; n <= sizeof KINDS / sizeof *KINDS; n++) {
        if ((at[0] & KINDS[n - 1].mask) != KINDS[n - 1].lead) continue;
        unsigned code = at[0] & (unsigned char)~KINDS[n - 1].mask;
        for (size_t i = 1; i < n; i++) {
            if ((at[i] & 0xc0) != 0x80) return 0;
            code = code << 6 | (at[i] & 0x3f);
        }
        const int is_control = (code < ' ' && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
        const int is_none = (code >= 0xd800 && code < 0xe000) || code > 0x10ffff || (code & 0xfffe) == 0xfffe;
        return code < KINDS[n - 1].least || is_control || is_none ? 0 : n;
    }
    return 0;
}

void markup_part(FILE *out, const char *text, size_t bytes) {
    const unsigned char *at = (const unsigned char *)text, *const end = at + bytes;
    while (at < end) {
        const size_t n = character(at);
        switch (n == 0 ? '?' : *at) {
            case '?':
                fputc('?', out);
                break;
            case '&':
                fputs("&amp;", out);
                break;
            case '<':
                fputs("&lt;", out);
                break;
            case '>':
                fputs("&gt;", out);
                break;
            case '"':
                fputs("&quot;", out);
                break;
            default:
                fwrite(at, 1, n, out);
        }
        at += n > 0 ? n : 1;
    }
}

void markup_text(FILE *out, const char *text) { markup_part(out, text, strlen(text)); }

void markup_arguments(FILE *out, const char *format, va_list args) {
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    markup_text(out, text);
}

void markup_format(FILE *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    markup_arguments(out, format, args);
    va_end(args);
}
