/* Messages about a batch: see parcel.h. */
#include "link/parcel.h"

#include <string.h>

#include "link/bfloat16.h"
#include "link/little_endian.h"

enum place {
    AT_KIND = 0,
    AT_FLAG = 1,
    AT_HALVES = 2,
    AT_RESERVED = 3,
    AT_OF = 4,
    AT_N = 8,
    AT_RESERVED_TOO = 12,
    AT_NUMBER = 16,
    HEAD_BYTES = 24
};

#define PIECE_BYTES 16
#define BLOCK_BYTES (8 + SHMT_FAR_BLOCK * 4)
#define HALF_BYTES  (8 + SHMT_FAR_BLOCK * 2) /* of a block of bfloat16 */
#define PART_BYTES  (BLOCK_BYTES + SHMT_FAR_BLOCK)

_Static_assert(HEAD_BYTES + SHMT_MOST_PARCEL_BLOCKS * BLOCK_BYTES <= SHMT_MOST_BODY, "a parcel is one message");
_Static_assert(HEAD_BYTES + SHMT_MOST_PARCEL_PARTS * PART_BYTES <= SHMT_MOST_BODY, "a parcel is one message");
_Static_assert(HEAD_BYTES + SHMT_MOST_PARCEL_PIECES * PIECE_BYTES <= SHMT_MOST_BODY, "a parcel is one message");
_Static_assert(SHMT_MAX_CHUNKS <= SHMT_MOST_PARCEL_PIECES, "the pieces of a batch are one parcel");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats go as they are");

#define NUMBER_BYTES 8
#define TERM_BYTES   8 /* the id, and the value, which stand apart */
#define HALF_TERM    6

_Static_assert(HEAD_BYTES + SHMT_MOST_PARCEL_TERMS * TERM_BYTES <= SHMT_MOST_BODY, "a list is one message");
_Static_assert(HEAD_BYTES + SHMT_MOST_PARCEL_PASSED * NUMBER_BYTES <= SHMT_MOST_BODY, "a parcel is one message");
_Static_assert(HEAD_BYTES + SHMT_MOST_PARCEL_WORDS * NUMBER_BYTES <= SHMT_MOST_BODY, "who is in a round is one message");

static bool has_words(enum shmt_parcel_kind kind) { return kind == SHMT_PARCEL_CAME || kind == SHMT_PARCEL_DECIDED; }
static bool has_floats(enum shmt_parcel_kind kind) { return kind == SHMT_PARCEL_BLOCKS || kind == SHMT_PARCEL_TERMS; }

/* Of an entry. */
static uint64_t bytes_of(enum shmt_parcel_kind kind, bool halves) {
    if (kind == SHMT_PARCEL_ROUND || kind == SHMT_PARCEL_PASSED || has_words(kind)) return NUMBER_BYTES;
    if (kind == SHMT_PARCEL_PARTS) return PART_BYTES;
    if (kind == SHMT_PARCEL_TERMS) return halves ? HALF_TERM : TERM_BYTES;
    if (kind == SHMT_PARCEL_BLOCKS) return halves ? HALF_BYTES : BLOCK_BYTES;
    return kind == SHMT_PARCEL_PIECES ? PIECE_BYTES : 0;
}

struct shmt_payload *shmt_parcel_make(const struct shmt_parcel *parcel, unsigned char **entries_out) {
    unsigned char *bytes;
    struct shmt_payload *payload = shmt_payload_make(HEAD_BYTES + parcel->n * bytes_of(parcel->kind, parcel->halves), &bytes);
    if (!payload) return NULL;
    memset(bytes, 0, HEAD_BYTES);
    shmt_put_little(bytes + AT_KIND, parcel->kind, 1);
    shmt_put_little(bytes + AT_FLAG, parcel->flag, 1);
    shmt_put_little(bytes + AT_HALVES, parcel->halves, 1);
    shmt_put_little(bytes + AT_OF, parcel->of, 4);
    shmt_put_little(bytes + AT_N, parcel->n, 4);
    shmt_put_little(bytes + AT_NUMBER, parcel->number, 8);
    *entries_out = bytes + HEAD_BYTES;
    return payload;
}

void shmt_parcel_put_piece(unsigned char *entries, uint32_t i, const struct shmt_far_piece *piece) {
    unsigned char *at = entries + (uint64_t)i * PIECE_BYTES;
    uint64_t bits;
    memcpy(&bits, &piece->loss, sizeof bits);
    shmt_put_little(at, piece->examples, 8);
    shmt_put_little(at + 8, bits, 8);
}

void shmt_parcel_put_block(unsigned char *entries, uint32_t i, uint64_t block, const float values[SHMT_FAR_BLOCK]) {
    unsigned char *at = entries + (uint64_t)i * BLOCK_BYTES;
    shmt_put_little(at, block, 8);
    memcpy(at + 8, values, SHMT_FAR_BLOCK * sizeof *values);
}

void shmt_parcel_put_part(unsigned char *entries, uint32_t i, uint64_t block, const struct shmt_merge_part *part) {
    unsigned char *at = entries + (uint64_t)i * PART_BYTES;
    shmt_put_little(at, block, 8);
    memcpy(at + 8, part->value, sizeof part->value);
    memcpy(at + BLOCK_BYTES, part->count, sizeof part->count);
}

static void put_halves(unsigned char *restrict at, const float *restrict values, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const uint16_t half = shmt_bfloat16(values[i]);
        memcpy(at + i * sizeof half, &half, sizeof half);
    }
}

static void take_halves(const unsigned char *restrict at, uint64_t n, float *restrict values_out) {
    for (uint64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, at + i * sizeof half, sizeof half);
        values_out[i] = shmt_of_bfloat16(half);
    }
}

void shmt_parcel_put_half_block(unsigned char *entries, uint32_t i, uint64_t block, const float values[SHMT_FAR_BLOCK]) {
    unsigned char *at = entries + (uint64_t)i * HALF_BYTES;
    shmt_put_little(at, block, 8);
    put_halves(at + 8, values, SHMT_FAR_BLOCK);
}

void shmt_parcel_put_half_terms(unsigned char *entries, const struct shmt_far_terms *terms) {
    if (terms->n == 0) return;
    memcpy(entries, terms->id, terms->n * sizeof(uint32_t));
    put_halves(entries + terms->n * sizeof(uint32_t), terms->value, terms->n);
}

void shmt_parcel_put_terms(unsigned char *entries, const struct shmt_far_terms *terms) {
    if (terms->n == 0) return;
    memcpy(entries, terms->id, terms->n * sizeof(uint32_t));
    memcpy(entries + terms->n * sizeof(uint32_t), terms->value, terms->n * sizeof(float));
}

void shmt_parcel_terms(const struct shmt_parcel *parcel, float *values_out, struct shmt_far_terms *out) {
    const unsigned char *values = parcel->entries + parcel->n * sizeof(uint32_t);
    if (parcel->halves) take_halves(values, parcel->n, values_out);
    *out = (struct shmt_far_terms){
        .n = parcel->n, .summed = parcel->flag, .id = parcel->entries, .value = parcel->halves ? (void *)values_out : values};
}

void shmt_parcel_put_number(unsigned char *entries, uint32_t i, uint64_t number) {
    shmt_put_little(entries + (uint64_t)i * NUMBER_BYTES, number, NUMBER_BYTES);
}

void shmt_parcel_end(struct shmt_payload *payload, uint32_t n) {
    unsigned char *bytes = (unsigned char *)(payload + 1);
    shmt_put_little(bytes + AT_N, n, 4);
    payload->n = HEAD_BYTES + n * bytes_of(bytes[AT_KIND], bytes[AT_HALVES] != 0);
}

bool shmt_parcel_read(const unsigned char *bytes, uint64_t n_bytes, struct shmt_parcel *out, const char **why_out) {
    *why_out = "too short a message about a batch";
    if (n_bytes < HEAD_BYTES) return false;
    const struct shmt_parcel parcel = {.kind = bytes[AT_KIND],
                                       .of = (uint32_t)shmt_get_little(bytes + AT_OF, 4),
                                       .n = (uint32_t)shmt_get_little(bytes + AT_N, 4),
                                       .number = shmt_get_little(bytes + AT_NUMBER, 8),
                                       .flag = bytes[AT_FLAG] != 0,
                                       .halves = bytes[AT_HALVES] != 0,
                                       .entries = bytes + HEAD_BYTES};
    const bool is_kind = parcel.kind >= SHMT_PARCEL_PIECES && parcel.kind <= SHMT_PARCEL_DECIDED;
    *why_out = "no such message about a batch";
    if (!is_kind || bytes[AT_FLAG] > 1 || bytes[AT_HALVES] > has_floats(parcel.kind) || bytes[AT_RESERVED] != 0) return false;
    if (shmt_get_little(bytes + AT_RESERVED_TOO, 4) != 0 || (bytes_of(parcel.kind, false) == 0 && parcel.n > 0)) return false;
    if (parcel.kind == SHMT_PARCEL_ROUND && parcel.n != SHMT_ROUND_NUMBERS) return false;
    if (has_words(parcel.kind) && (parcel.of > SHMT_SEAT_WORDS || parcel.n > SHMT_MOST_PARCEL_WORDS)) return false;
    *why_out = "a message about a batch of another length than it says";
    if (n_bytes != HEAD_BYTES + parcel.n * bytes_of(parcel.kind, parcel.halves)) return false;
    *out = parcel;
    return true;
}

void shmt_parcel_piece(const struct shmt_parcel *parcel, uint32_t i, struct shmt_far_piece *out) {
    const unsigned char *at = parcel->entries + (uint64_t)i * PIECE_BYTES;
    const uint64_t bits = shmt_get_little(at + 8, 8);
    out->examples = shmt_get_little(at, 8);
    memcpy(&out->loss, &bits, sizeof bits);
}

uint64_t shmt_parcel_number(const struct shmt_parcel *parcel, uint32_t i) {
    return shmt_get_little(parcel->entries + (uint64_t)i * bytes_of(parcel->kind, parcel->halves), 8);
}

uint64_t shmt_parcel_block(const struct shmt_parcel *parcel, uint32_t i, float values_out[SHMT_FAR_BLOCK]) {
    const unsigned char *at = parcel->entries + (uint64_t)i * bytes_of(SHMT_PARCEL_BLOCKS, parcel->halves);
    if (parcel->halves)
        take_halves(at + 8, SHMT_FAR_BLOCK, values_out);
    else
        memcpy(values_out, at + 8, SHMT_FAR_BLOCK * sizeof *values_out);
    return shmt_get_little(at, 8);
}

uint64_t shmt_parcel_part(const struct shmt_parcel *parcel, uint32_t i, struct shmt_merge_part *out) {
    const unsigned char *at = parcel->entries + (uint64_t)i * PART_BYTES;
    memcpy(out->value, at + 8, sizeof out->value);
    memcpy(out->count, at + BLOCK_BYTES, sizeof out->count);
    return shmt_get_little(at, 8);
}
