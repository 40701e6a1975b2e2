/* LIBSVM text as a source: the format of its lines is libsvm_line.c's, all else text.c's. */

#include "data/text.h"
#include "base/checked.h"
#include "files/libsvm_line.h"
#include "files/number.h"

static int parse(const void *arg, const char *line, locale_t c_locale, struct shmt_row *row_out,
                 struct shmt_line_fault *fault_out) {
    (void)arg;
    return shmt_libsvm_parse(line, c_locale, row_out, fault_out);
}

/* The least number of columns that the ids in text of n bytes need: what looks like an id, outside comments. Of more than 32 bits:
 * UINT32_MAX. */
static uint64_t find_columns(const char *text, uint64_t n) {
    uint64_t id = 0, largest = 0, from_zero = 0;
    bool digits = false, comment = false;
    for (uint64_t i = 0; i < n; i++) {
        comment = (comment || text[i] == '#') && text[i] != '\n';
        if (text[i] == ':' && digits && !comment) {
            largest = shmt_max_u64(largest, id);
            from_zero |= id == 0;
        }
        const bool goes_on = shmt_is_digit(text[i]);
        id = !goes_on ? 0 : id < UINT32_MAX ? 10 * id + (uint64_t)(text[i] - '0') : UINT32_MAX;
        digits = goes_on;
    }
    return largest + from_zero;
}

static void guess(const void *arg, const char *sample, uint64_t n, struct shmt_text_guess *out) {
    uint64_t colons = 0, breaks = 0;
    (void)arg;
    for (uint64_t i = 0; i < n; i++) {
        colons += sample[i] == ':';
        breaks += sample[i] == '\n';
    }
    const uint64_t bytes = colons * (sizeof(uint32_t) + sizeof(float)) + (breaks + 1) * (sizeof(uint64_t) + sizeof(float));
    out->bytes_per_byte = (double)bytes / (double)shmt_max_u64(n, 1);
    out->lines_per_byte = (double)breaks / (double)shmt_max_u64(n, 1);
    out->nonzeros_per_byte = (double)colons / (double)shmt_max_u64(n, 1);
    out->columns_found = find_columns(sample, n);
}

int shmt_libsvm_open(const struct shmt_source_wish *wish, struct shmt_source **out, struct shmt_error *e) {
    static const struct shmt_text_format LIBSVM = {.parse = parse, .guess = guess};
    return shmt_text_open(wish, &LIBSVM, NULL, out, e);
}
