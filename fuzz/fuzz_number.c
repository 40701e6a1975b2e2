/* files/number: each number in a text, against strtof and another reading of the grammar, to the last bit. */
#include <stdlib.h>
#include <string.h>

#include "files/number_in_line.h"
#include "fuzz.h"

typedef const char *reader(const char *text, locale_t c_locale, float *out);

static void check_at(const char *p, locale_t c_locale, reader *read) {
    const size_t length = fuzz_number_length(p);
    float value = 7;
    const char *end = read(p, c_locale, &value);
    FUZZ_CHECK((end != NULL) == (length > 0));
    if (!end) return;
    const float expected = fuzz_float(p, length);
    FUZZ_CHECK(end == p + length);
    FUZZ_CHECK(fuzz_same(&value, &expected, sizeof value));
}

static void check_exact(const char *p, locale_t c_locale) {
    char copy[SHMT_NUMBER_MAX + 2];
    float value;
    const char *end = shmt_number_read(p, c_locale, &value);
    if (!end) return;
    memcpy(copy, p, (size_t)(end - p));
    copy[end - p] = 0;
    const double found = shmt_number_exact(p, end, c_locale), expected = strtod_l(copy, NULL, c_locale);
    FUZZ_CHECK(fuzz_same(&found, &expected, sizeof found));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static locale_t c_locale;
    struct fuzz_input in = {bytes, n};
    size_t line_bytes;
    char *line;
    if (!c_locale) c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    while ((line = fuzz_line(&in, &line_bytes)))
        for (const char *p = line; *p != '\n';) {
            check_at(p, c_locale, shmt_number_read);
            check_at(p, c_locale, shmt_number_read_in_line);
            check_exact(p, c_locale);
            const size_t length = fuzz_number_length(p);
            p += length > 0 ? length : 1;
        }
    return 0;
}
