/* Places of rows in a named store that somebody has damaged: see keeping/places.h for what they are. None is used unchecked. */
#include "manifest_help.h"

#include "backends/shm/layout.h"
#include "segment/segment.h"

static uint64_t places_at(void) {
    struct shmt_spec spec;
    struct shmt_shm_layout layout;
    assert_null(shmt_manifest_spec(&manifest, &spec));
    assert_true(spec.row_places && spec.table[0].rows == 4201);
    assert_int_equal(shmt_shm_layout_plan(&spec, &layout, NULL), 0);
    return SHMT_SEGMENT_HEADER_BYTES + layout.row_place.off;
}

/* Of the 4,201 rows. */
static void rows_without_places_of_their_own_are_refused(void **state) {
    static const struct {
        uint64_t row;
        uint32_t place;
    } CASES[] = {{0, 4201}, {17, UINT32_MAX}, {4200, 4199}, {4200, 4200}};
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(WITH_PLACES));
    const uint64_t off = places_at();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store;
        put(fd);
        assert_int_equal(pwrite(fd[STORE], &CASES[i].place, 4, (off_t)(off + 4 * CASES[i].row)), 4);
        const bool is_right = i == 3; /* that of the bias, as it was */
        assert_true(use() == is_right);
        assert_int_equal(shmtrain_store_create(&store), 0);
        if (!is_right)
            refused(store, shmtrain_store_observe(store, COPY), SHMTRAIN_E_USAGE,
                    "its features do not all have rows of their own");
        shmtrain_store_destroy(store);
        take_away(fd);
    }
}

/* Damaged while somebody has it open: what is read is checked each time. */
static void places_that_change_under_a_reader_are_refused(void **state) {
    struct shmtrain_store *store;
    const uint32_t beyond = 4201;
    float x;
    int fd[N_FILES];
    (void)state;
    assert_true(make_copy(WITH_PLACES));
    put(fd);
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, COPY));
    WELL(store, shmtrain_store_read(store, 0, 5, 1, &x));
    assert_int_equal(pwrite(fd[STORE], &beyond, 4, (off_t)(places_at() + 4 * 5)), 4);
    refused(store, shmtrain_store_read(store, 0, 5, 1, &x), SHMTRAIN_E_USAGE, "its features do not all have rows of their own");
    WELL(store, shmtrain_store_read(store, 0, 6, 1, &x));
    WELL(store, shmtrain_store_set(store, "backend", "plain")); /* to go on with it in a run, for itself */
    refused(store, shmtrain_store_train(store, "builtin:line"), SHMTRAIN_E_USAGE, COPY);
    shmtrain_store_destroy(store);
    take_away(fd);
}

int main(void) {
    name_copies("test_manifest_places");
#define TEST(f) cmocka_unit_test_setup(f, deadline_and_clean)
    const struct CMUnitTest tests[] = {
        TEST(rows_without_places_of_their_own_are_refused),
        TEST(places_that_change_under_a_reader_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, forget_copies);
}
