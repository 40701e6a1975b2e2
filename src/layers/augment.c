/* Reading --augment, and drawing what happens to an example: see augment.h. */
#include "layers/augment.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"

#define WORDS "shift:PIXELS, crop:PIXELS or flip"
enum { PURPOSE = 0x6175676d }; /* of these random numbers */
enum { MOST_SHOWN = 40 };

/* ---- reading ---- */

/* One word of the text, and where it stands. */
struct word {
    const char *at;
    uint32_t letters, column; /* from 1 */
};

static int show(const struct word *word) { return word->letters < MOST_SHOWN ? (int)word->letters : MOST_SHOWN; }

/* A whole number from 1 to SHMT_AUGMENT_MOST; 0: it is none. */
static uint32_t read_pixels(const char *at, uint32_t letters) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < letters; i++) {
        if (at[i] < '0' || at[i] > '9') return 0;
        n = n * 10 + (uint32_t)(at[i] - '0');
        if (n > SHMT_AUGMENT_MOST) return 0;
    }
    return n;
}

static bool is_named(const struct word *word, uint32_t letters, const char *name) {
    return letters == strlen(name) && memcmp(word->at, name, letters) == 0;
}

static int refuse_twice(const struct word *word, const char *name, char *why_out, uint64_t bytes) {
    snprintf(why_out, bytes, "column %u: %s is given twice: leave one out", word->column, name);
    return -1;
}

static int take_pixels(const struct word *word, const char *name, uint32_t *out, char *why_out, uint64_t bytes) {
    const uint32_t behind = (uint32_t)strlen(name) + 1;
    if (*out > 0) return refuse_twice(word, name, why_out, bytes);
    if (word->letters < behind) {
        snprintf(why_out, bytes, "column %u: %s needs a number of pixels: write %s:2", word->column, name, name);
        return -1;
    }
    *out = read_pixels(word->at + behind, word->letters - behind);
    if (*out > 0) return 0;
    snprintf(why_out, bytes, "column %u: %s \"%.*s\": expected a whole number of pixels from 1 to %d", word->column + behind,
             name, show(word), word->letters > behind ? word->at + behind : "", SHMT_AUGMENT_MOST);
    return -1;
}

static int take_flip(const struct word *word, struct shmt_augment *out, char *why_out, uint64_t bytes) {
    if (out->flips) return refuse_twice(word, "flip", why_out, bytes);
    out->flips = true;
    if (word->letters == strlen("flip")) return 0;
    snprintf(why_out, bytes, "column %u: flip takes no number: write flip", word->column + (uint32_t)strlen("flip"));
    return -1;
}

static int take(const struct word *word, struct shmt_augment *out, char *why_out, uint64_t bytes) {
    const char *colon = memchr(word->at, ':', word->letters);
    const uint32_t letters = colon ? (uint32_t)(colon - word->at) : word->letters;
    if (is_named(word, letters, "shift")) return take_pixels(word, "shift", &out->shift, why_out, bytes);
    if (is_named(word, letters, "crop")) return take_pixels(word, "crop", &out->crop, why_out, bytes);
    if (is_named(word, letters, "flip")) return take_flip(word, out, why_out, bytes);
    snprintf(why_out, bytes, "column %u: there is no change \"%.*s\": write " WORDS, word->column, show(word), word->at);
    return -1;
}

int shmt_augment_read(const char *text, struct shmt_augment *out, char *why_out, uint64_t bytes) {
    int rc = 0;
    *out = (struct shmt_augment){0};
    if (strcmp(text, "none") == 0) return 0;
    for (const char *at = text + strspn(text, " "); *at && rc == 0;) {
        const struct word word = {at, (uint32_t)strcspn(at, " "), (uint32_t)(at - text) + 1};
        rc = take(&word, out, why_out, bytes);
        at += word.letters;
        at += strspn(at, " ");
    }
    return rc;
}

void shmt_augment_write(const struct shmt_augment *wanted, char *out, uint64_t bytes) {
    char shift[24] = "", crop[24] = "";
    if (wanted->shift > 0) snprintf(shift, sizeof shift, "shift:%u ", wanted->shift);
    if (wanted->crop > 0) snprintf(crop, sizeof crop, "crop:%u ", wanted->crop);
    snprintf(out, bytes, "%s%s%s", shift, crop, wanted->flips ? "flip " : "");
    const size_t letters = strlen(out);
    if (letters > 0 && out[letters - 1] == ' ') out[letters - 1] = 0;
}

/* ---- what suits an image ---- */

static int check_pixels(const char *name, uint32_t pixels, const struct shmtrain_extent *of, char *why_out, uint64_t bytes) {
    const uint32_t least = of->height < of->width ? of->height : of->width;
    if (pixels < least) return 0;
    snprintf(why_out, bytes, "%s:%u moves images of %u x %u pixels out of sight: take at most %u", name, pixels, of->height,
             of->width, least - 1);
    return -1;
}

/* Both distances may be drawn one way, and then add up. */
static int check_sum(const struct shmt_augment *wanted, const struct shmtrain_extent *of, char *why_out, uint64_t bytes) {
    const uint32_t least = of->height < of->width ? of->height : of->width;
    if (wanted->shift + wanted->crop < least) return 0;
    snprintf(why_out, bytes,
             "shift:%u and crop:%u add up and move images of %u x %u pixels out of sight: take at most %u of both",
             wanted->shift, wanted->crop, of->height, of->width, least - 1);
    return -1;
}

int shmt_augment_check(const struct shmt_augment *wanted, const struct shmtrain_extent *of, char *why_out, uint64_t bytes) {
    int rc = check_pixels("shift", wanted->shift, of, why_out, bytes);
    if (rc == 0) rc = check_pixels("crop", wanted->crop, of, why_out, bytes);
    return rc < 0 ? rc : check_sum(wanted, of, why_out, bytes);
}

bool shmt_augment_is_wanted(const struct shmt_augment *wanted) {
    return wanted->shift > 0 || wanted->crop > 0 || wanted->flips;
}

/* ---- drawing ---- */

/* -most .. most */
static int32_t draw_pixels(uint64_t bits, uint32_t most) {
    return (int32_t)shmt_below(bits, 2 * UINT64_C(1) * most + 1) - (int32_t)most;
}

struct shmt_move shmt_augment_draw(const struct shmt_augment *wanted, uint64_t seed, uint64_t epoch, uint64_t example) {
    const uint64_t key = shmt_hash64(seed ^ PURPOSE, epoch, example, 0);
    return (struct shmt_move){
        .down = draw_pixels(shmt_mix64(key), wanted->shift) + draw_pixels(shmt_mix64(key + 1), wanted->crop),
        .right = draw_pixels(shmt_mix64(key + 2), wanted->shift) + draw_pixels(shmt_mix64(key + 3), wanted->crop),
        .flipped = wanted->flips && (shmt_mix64(key + 4) >> 63) != 0};
}
