/* Words in sentences: see show.h. */
#include "files/show.h"

#include <stdio.h>
#include <string.h>

void shmt_show_word(const char *text, uint64_t bytes, char out[SHMT_WORD_SHOWN]) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        char word[8];
        if (c == '"' || c == '\\') {
            snprintf(word, sizeof word, "\\%c", c);
        } else {
            snprintf(word, sizeof word, c < 0x20 || c > 0x7e ? "\\x%02x" : "%c", c);
        }
        const uint64_t length = strlen(word), reserve = i + 1 < bytes ? sizeof "..." : 1;
        if (n + length + reserve > SHMT_WORD_SHOWN) {
            memcpy(out + n, "...", 3);
            n += 3;
            break;
        }
        memcpy(out + n, word, length);
        n += length;
    }
    out[n] = 0;
}
