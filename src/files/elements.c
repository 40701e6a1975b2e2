/* Numbers of arrays: see elements.h. */
#include "files/elements.h"

#include <string.h>

/* Where value j of an example stands among its elements. */
static uint64_t place_of(const struct shmt_elements *s, uint64_t j) {
    const uint64_t area = (uint64_t)s->shape.height * s->shape.width;
    return s->channels_last ? j % area * s->shape.channels + j / area : j;
}

uint64_t shmt_elements_at(const struct shmt_elements *s, uint64_t i, uint64_t j) {
    return s->first + i * s->stride + place_of(s, j) * s->bytes;
}

static uint64_t word(const unsigned char *p, uint32_t bytes, bool big_endian) {
    uint64_t x = 0;
    for (uint32_t i = 0; i < bytes; i++) x = x << 8 | p[big_endian ? i : bytes - 1 - i];
    return x;
}

static float float_of(uint64_t bits, uint32_t bytes) {
    const uint32_t narrow = (uint32_t)bits;
    float x;
    double wide;
    if (bytes == 4) {
        memcpy(&x, &narrow, sizeof x);
        return x;
    }
    memcpy(&wide, &bits, sizeof wide);
    return (float)wide;
}

static float number(const struct shmt_elements *s, const unsigned char *p) {
    const uint64_t bits = word(p, s->bytes, s->big_endian);
    if (s->kind == SHMT_ELEMENT_FLOAT) return float_of(bits, s->bytes);
    if (s->kind == SHMT_ELEMENT_UNSIGNED) return (float)bits;
    const uint32_t above = (64 - 8 * s->bytes) % 64; /* bytes: 1 to 8 */
    return (float)((int64_t)(bits << above) >> above);
}

void shmt_elements_read(const struct shmt_elements *s, const unsigned char *memory, uint64_t i, bool unit, float *out) {
    const unsigned char *const p = memory + s->first + i * s->stride;
    const bool is_byte = s->kind == SHMT_ELEMENT_UNSIGNED && s->bytes == 1;
    if (is_byte && unit && s->channels_last)
        for (uint64_t j = 0; j < s->n_each; j++) out[j] = (float)p[place_of(s, j)] / 255;
    else if (is_byte && unit)
        for (uint64_t j = 0; j < s->n_each; j++) out[j] = (float)p[j] / 255;
    else
        for (uint64_t j = 0; j < s->n_each; j++) out[j] = number(s, p + place_of(s, j) * s->bytes);
}
