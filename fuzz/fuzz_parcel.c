/* link/parcel.h: messages about batches, rounds, merges and quorums. Each that is taken has all of its entries within its bytes, and is written
 * again as it was. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "link/parcel.h"

static void copy_entry(const struct shmt_parcel *parcel, uint32_t i, unsigned char *entries) {
    struct shmt_far_piece piece;
    struct shmt_merge_part part;
    float values[SHMT_FAR_BLOCK];
    if (parcel->kind == SHMT_PARCEL_PIECES) {
        shmt_parcel_piece(parcel, i, &piece);
        shmt_parcel_put_piece(entries, i, &piece);
    } else if (parcel->kind == SHMT_PARCEL_BLOCKS) {
        const uint64_t block = shmt_parcel_block(parcel, i, values);
        (parcel->halves ? shmt_parcel_put_half_block : shmt_parcel_put_block)(entries, i, block, values);
    } else if (parcel->kind == SHMT_PARCEL_PARTS) {
        const uint64_t block = shmt_parcel_part(parcel, i, &part);
        shmt_parcel_put_part(entries, i, block, &part);
    } else if (parcel->kind == SHMT_PARCEL_CAME || parcel->kind == SHMT_PARCEL_DECIDED) {
        FUZZ_CHECK(parcel->of <= SHMT_SEAT_WORDS && parcel->n <= SHMT_MOST_PARCEL_WORDS);
        shmt_parcel_put_number(entries, i, shmt_parcel_number(parcel, i));
    } else {
        FUZZ_CHECK(parcel->kind == SHMT_PARCEL_PASSED || (parcel->kind == SHMT_PARCEL_ROUND && i < SHMT_ROUND_NUMBERS));
        shmt_parcel_put_number(entries, i, shmt_parcel_number(parcel, i)); /* no other kind has entries */
    }
}

static void copy_entries(const struct shmt_parcel *parcel, unsigned char *entries) {
    struct shmt_far_terms terms;
    if (parcel->kind == SHMT_PARCEL_TERMS) {
        float *values = malloc(parcel->n * sizeof *values + 1);
        shmt_parcel_terms(parcel, values, &terms);
        (parcel->halves ? shmt_parcel_put_half_terms : shmt_parcel_put_terms)(entries, &terms);
        free(values);
        return;
    }
    for (uint32_t i = 0; i < parcel->n; i++) copy_entry(parcel, i, entries);
}

static void check(const unsigned char *bytes, size_t n) {
    struct shmt_parcel parcel;
    const char *why;
    unsigned char *entries;
    if (!shmt_parcel_read(bytes, n, &parcel, &why)) {
        FUZZ_CHECK(why[0] != '\0');
        return;
    }
    struct shmt_payload *again = shmt_parcel_make(&parcel, &entries);
    copy_entries(&parcel, entries);
    shmt_parcel_end(again, parcel.n);
    FUZZ_CHECK(again->n == n && memcmp(again->bytes, bytes, n) == 0);
    shmt_payload_drop(again);
}

/* In memory of the exact size. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    unsigned char *copy = malloc(n > 0 ? n : 1);
    memcpy(copy, bytes, n);
    check(copy, n);
    free(copy);
    return 0;
}
