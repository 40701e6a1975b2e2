/* Numbers with a point: see plain.h. The C locale is made once, by the first store at the latest, and kept for ever: making one
 * may take a lock, which a worker could inherit taken. */
#include "base/plain.h"

#include <pthread.h>

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
