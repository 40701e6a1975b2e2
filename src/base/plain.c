/* Numbers with a point: see plain.h. The C locale is made once, by the first store at the latest, and kept for ever: making one
 * may take a lock, which a worker could inherit taken. */
#include "base/plain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static locale_t g_plain; /* constant once it was made; 0: no memory */
static pthread_once_t g_once = PTHREAD_ONCE_INIT;

static void make(void) { g_plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

struct shmt_plain_numbers shmt_plain_numbers_begin(void) {
    pthread_once(&g_once, make);
    return (struct shmt_plain_numbers){.before = g_plain ? uselocale(g_plain) : (locale_t)0};
}

void shmt_plain_numbers_end(const struct shmt_plain_numbers *numbers) {
    if (numbers->before) uselocale(numbers->before);
}

bool shmt_plain_count(const char *text, uint64_t *out) {
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

const char *shmt_plain_decimal(const char *text, double *out) {
    const size_t n = strspn(text, "0123456789.");
    char number[32], *end;
    SHMT_PLAIN_NUMBERS;
    if (n == 0 || n >= sizeof number) return NULL;
    memcpy(number, text, n);
    number[n] = '\0';
    *out = strtod(number, &end);
    return *end == '\0' && end != number ? text + n : NULL; /* not "1.2.3", nor "." */
}

bool shmt_plain_real(const char *text, double *out) {
    char *end;
    SHMT_PLAIN_NUMBERS;
    if (strspn(text, "0123456789.eE+-") != strlen(text) || strlen(text) > 31) return false;
    if (text[0] != '.' && (text[0] < '0' || text[0] > '9')) return false;
    *out = strtod(text, &end);
    return *end == '\0' && end != text;
}
