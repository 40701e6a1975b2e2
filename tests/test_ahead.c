/* Tests of looking ahead (train/ahead.h): the examples of every item are those of its places, whatever was expected to come, and
 * what was expected does come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "consistency/chunks.h"
#include "ps/session.h"
#include "ps/strata.h"
#include "train/ahead.h"

enum { EXAMPLES = 5000, BATCH = 64 };

static uint64_t start[EXAMPLES + 1]; /* no nonzeros: asking for them does no harm */
static uint32_t id[1];
static float label[EXAMPLES];
static uint32_t only[EXAMPLES];

static struct shmt_spec spec_of(uint32_t n_chunks, uint64_t n) {
    return (struct shmt_spec){.n_seats = 3,
                              .n_workers = 3,
                              .n_examples = n,
                              .epochs = 2,
                              .policy = {.write = SHMT_WRITE_AGGREGATE},
                              .batch = BATCH,
                              .n_chunks = n_chunks,
                              .order = {.seed = 5, .n_examples = n, .shuffle = true}};
}

/* Item number i of the seat's share: chunk by chunk, batch by batch. False: it has no examples, or there is none. */
static bool item_of(const struct shmt_spec *spec, const struct shmt_seat *seat, uint64_t i, struct shmtrain_work *out) {
    uint32_t from, to;
    uint64_t first, end;
    shmt_chunk_share(spec->n_chunks, seat->index, seat->n_present, &from, &to);
    const uint64_t step = i / (to - from);
    if (step >= shmt_spec_steps(spec)) return false;
    const uint32_t chunk = from + (uint32_t)(i % (to - from));
    shmt_chunk_examples(BATCH, spec->n_chunks, chunk, shmt_spec_examples_of_step(spec, step), &first, &end);
    *out = (struct shmtrain_work){.first = step * BATCH + first, .n = end - first, .step = step, .chunk = chunk};
    return out->n > 0;
}

static void go_through(const struct shmt_spec *spec, uint32_t index, const uint32_t *subset) {
    const struct shmtrain_data data = {.size = sizeof data, .n_examples = EXAMPLES, .start = start, .id = id, .label = label};
    const struct shmt_job job = {.spec = spec, .train = &data, .train_example = subset};
    struct shmt_seat seat = {.index = index, .n_present = 3};
    shmtrain_session session = {.spec = spec, .seat = &seat};
    struct shmt_ahead ahead = {.n = 0};
    struct shmtrain_work work;
    for (uint64_t i = 0; item_of(spec, &seat, i, &work); i++) {
        uint32_t found[BATCH], asked[BATCH];
        assert_true(i == 0 || work.n > SHMT_AHEAD_EXAMPLES || (ahead.first == work.first && ahead.n == work.n));
        assert_int_equal(shmt_ahead_order(&ahead, &session, &job, &work, found), 0);
        shmt_strata_order(spec, 0, work.first, work.n, asked);
        for (uint64_t k = 0; k < work.n; k++) assert_int_equal(found[k], subset ? subset[asked[k]] : asked[k]);
    }
}

static void each_seat_gets_its_items_and_knows_the_next_one(void **state) {
    (void)state;
    for (uint32_t i = 0; i < EXAMPLES; i++) only[i] = EXAMPLES - 1 - i;
    for (uint32_t n_chunks = 1; n_chunks <= 32; n_chunks *= 2) {
        const struct shmt_spec spec = spec_of(n_chunks, 1000), odd = spec_of(n_chunks, 1003);
        for (uint32_t index = 0; index < 3 && index < n_chunks; index++) {
            if (n_chunks < 3 && index > 0) continue; /* one of three has no chunk */
            go_through(&spec, n_chunks < 3 ? 2 : index, NULL);
            go_through(&odd, n_chunks < 3 ? 2 : index, only);
        }
    }
}

/* Another seat came in, an epoch began, a chunk is done again: what was expected does not count. */
static void what_comes_instead_of_what_was_expected_is_right_too(void **state) {
    const struct shmt_spec spec = spec_of(8, 1000);
    const struct shmtrain_data data = {.size = sizeof data, .n_examples = EXAMPLES, .start = start, .id = id, .label = label};
    const struct shmt_job job = {.spec = &spec, .train = &data};
    struct shmt_seat seat = {.index = 1, .n_present = 3};
    shmtrain_session session = {.spec = &spec, .seat = &seat};
    struct shmt_ahead ahead = {.n = 0};
    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        const struct shmtrain_work work = {
            .first = 64 * (k % 15) + 8 * (k % 8), .n = 8, .chunk = (uint32_t)(k % 8), .epoch = (uint32_t)(k / 100)};
        uint32_t found[8], asked[8];
        assert_int_equal(shmt_ahead_order(&ahead, &session, &job, &work, found), 0);
        shmt_strata_order(&spec, work.epoch, work.first, 8, asked);
        assert_memory_equal(found, asked, sizeof found);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_seat_gets_its_items_and_knows_the_next_one),
        cmocka_unit_test(what_comes_instead_of_what_was_expected_is_right_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
