/* What all fuzz targets share: see fuzz.h. */
#include "fuzz.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/number.h"

/* Before anything else runs. A large quarantine makes every buffer of a reader new pages; 4 MiB are some hundred inputs. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "quarantine_size_mb=4:malloc_context_size=6:allocator_may_return_null=1:max_allocation_size_mb=4096";
}

_Noreturn void fuzz_fail(const char *file, int line, const char *what) {
    fprintf(stderr, "%s:%d: it is not so that %s\n", file, line, what);
    abort();
}

void fuzz_check_sentence(const char *text) {
    FUZZ_CHECK(text[0] != '\0');
    for (const char *p = text; *p; p++) FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

void fuzz_check_error(int status, const struct shmt_error *e) {
    FUZZ_CHECK(status < 0 && e->status == status);
    FUZZ_CHECK(memchr(e->text, '\0', sizeof e->text) != NULL);
    fuzz_check_sentence(e->text);
}

bool fuzz_same(const void *a, const void *b, size_t n) { return n == 0 || memcmp(a, b, n) == 0; }

/* ---- input ---- */

uint8_t fuzz_u8(struct fuzz_input *in) {
    if (in->left == 0) return 0;
    in->left--;
    return *in->at++;
}

uint16_t fuzz_u16(struct fuzz_input *in) {
    const unsigned low = fuzz_u8(in);
    return (uint16_t)(low | (unsigned)fuzz_u8(in) << 8);
}

uint32_t fuzz_u32(struct fuzz_input *in) {
    const uint32_t low = fuzz_u16(in);
    return low | (uint32_t)fuzz_u16(in) << 16;
}

char *fuzz_text(struct fuzz_input *in) {
    char *text = malloc(in->left + 1);
    FUZZ_CHECK(text);
    if (in->left > 0) memcpy(text, in->at, in->left);
    text[in->left] = '\0';
    in->left = 0;
    return text;
}

void *fuzz_edge(uint32_t which, size_t bytes) {
    enum { ROOM = 16 << 20, PAGE = 4096 };
    static uint8_t *memory[8];
    FUZZ_CHECK(bytes <= ROOM);
    if (!memory[which]) {
        void *made = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        FUZZ_CHECK(made != MAP_FAILED);
        memory[which] = made;
        FUZZ_CHECK(mprotect(memory[which] + ROOM, PAGE, PROT_NONE) == 0);
    }
    return memory[which] + (ROOM - bytes);
}

char *fuzz_line(struct fuzz_input *in, size_t *bytes_out) {
    static const char BEHIND[1 + SHMT_LINE_PAD] = "\n99999999"; /* digits that must not be seen */
    if (in->left == 0) return NULL;
    const uint8_t *end = memchr(in->at, '\n', in->left);
    const size_t n = end ? (size_t)(end - in->at) : in->left;
    char *line = fuzz_edge(7, n + sizeof BEHIND);
    if (n > 0) memcpy(line, in->at, n);
    memcpy(line + n, BEHIND, sizeof BEHIND);
    in->at += n + (end != NULL);
    in->left -= n + (end != NULL);
    *bytes_out = n + 1;
    return line;
}

/* ---- files ---- */

void fuzz_file_write(struct fuzz_file *file, const void *bytes, size_t n) {
    if (file->fd == 0) {
        file->fd = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_CHECK(file->fd > 0 && fchmod(file->fd, 0600) == 0);
        snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
    }
    FUZZ_CHECK(n == 0 || pwrite(file->fd, bytes, n, 0) == (ssize_t)n);
    if (n != file->bytes) FUZZ_CHECK(ftruncate(file->fd, (off_t)n) == 0);
    file->bytes = n;
}

/* ---- numbers ---- */

float fuzz_float(const char *text, size_t n) {
    static locale_t c_locale;
    char copy[SHMT_NUMBER_MAX + 2]; /* a sign, and the final 0 */
    if (!c_locale) c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    FUZZ_CHECK(c_locale && n < sizeof copy);
    memcpy(copy, text, n);
    copy[n] = '\0';
    return strtof_l(copy, NULL, c_locale);
}

static size_t digits(const char *p) {
    size_t n = 0;
    while (p[n] >= '0' && p[n] <= '9') n++;
    return n;
}

size_t fuzz_number_length(const char *text) {
    const size_t sign = *text == '-' || *text == '+';
    const char *p = text + sign;
    size_t n = digits(p), m = 0;
    p += n;
    if (*p == '.') {
        m = digits(p + 1);
        p += 1 + m;
    }
    if (n + m == 0) return 0;
    if (*p == 'e' || *p == 'E') {
        const size_t exponent_sign = p[1] == '-' || p[1] == '+', exponent = digits(p + 1 + exponent_sign);
        if (exponent > 0) p += 1 + exponent_sign + exponent;
    }
    const size_t length = (size_t)(p - text);
    return length - sign > SHMT_NUMBER_MAX ? 0 : length;
}
