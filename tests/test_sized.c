/* Programs and libraries of different versions: structs that are shorter or longer than this library's (<shmtrain/status.h>). */
#include <shmtrain/shmtrain.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/sized.h"

/* Three versions of a struct, as three programs have been compiled with them. */
struct first {
    uint32_t size, a;
    uint64_t b;
};
struct ours {
    uint32_t size, a;
    uint64_t b, c;
};
struct later {
    uint32_t size, a;
    uint64_t b, c, d;
};
#define FIRST SHMT_FIRST_SIZE(struct ours, b)

static void a_shorter_struct_is_filled_up_with_zeros(void **state) {
    const struct first given = {.size = sizeof given, .a = 1, .b = 2};
    struct ours taken;
    (void)state;
    memset(&taken, 0xff, sizeof taken);
    assert_int_equal(shmt_sized_take(&taken, sizeof taken, &given, FIRST, "thing", NULL), 0);
    assert_int_equal(taken.size, sizeof taken);
    assert_int_equal(taken.a, 1);
    assert_int_equal(taken.b, 2);
    assert_int_equal(taken.c, 0);
}

static void a_longer_struct_is_taken_unless_it_asks_for_more(void **state) {
    struct later given = {.size = sizeof given, .a = 1, .b = 2, .c = 3};
    struct ours taken;
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_sized_take(&taken, sizeof taken, &given, FIRST, "thing", &e), 0);
    assert_int_equal(taken.c, 3);
    assert_int_equal(taken.size, sizeof taken);
    given.d = 1;
    assert_int_equal(shmt_sized_take(&taken, sizeof taken, &given, FIRST, "thing", &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text,
                        "a struct shmtrain_thing has a member set at byte 24 that this libshmtrain does not know (it knows 24 "
                        "bytes): install a later one");
}

static void a_size_that_was_forgotten_is_named(void **state) {
    const struct first given = {.a = 1, .b = 2};
    struct ours taken = {.c = 7};
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_sized_take(&taken, sizeof taken, &given, FIRST, "thing", &e), SHMTRAIN_E_USAGE);
    assert_string_equal(e.text,
                        "size is 0 in a struct shmtrain_thing: set .size = sizeof(struct shmtrain_thing), and all else "
                        "that you do not set to 0");
    assert_int_equal(taken.c, 7);
}

static void what_is_given_ends_where_the_caller_s_struct_ends(void **state) {
    const struct ours from = {.a = 1, .b = 2, .c = 3};
    struct {
        struct first known;
        uint64_t behind;
    } shorter = {.behind = 9};
    struct later longer = {.d = 9};
    struct ours room;
    (void)state;
    shmt_sized_give(&shorter.known, sizeof shorter.known, &from, sizeof from);
    assert_int_equal(shorter.known.size, sizeof shorter.known);
    assert_int_equal(shorter.known.b, 2);
    assert_int_equal(shorter.behind, 9);
    shmt_sized_give(&longer, sizeof longer, &from, sizeof from);
    assert_int_equal(longer.size, sizeof from);
    assert_int_equal(longer.c, 3);
    assert_int_equal(longer.d, 9);
    assert_true(SHMTRAIN_HAS(&longer, c));
    assert_false(SHMTRAIN_HAS(&longer, d));

    const struct ours *whole = shmt_sized_whole(&shorter.known, &room, sizeof room);
    assert_ptr_equal(whole, &room);
    assert_int_equal(whole->b, 2);
    assert_int_equal(whole->c, 0);
    assert_ptr_equal(shmt_sized_whole(&longer, &room, sizeof room), &longer);
}

/* ---- the calls ---- */

static uint32_t one_table(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                          struct shmtrain_shape *out) {
    (void)state;
    (void)data, (void)with;
    out[0] = (struct shmtrain_shape){.name = "t", .rows = 1, .width = 1};
    return 1;
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss) {
    (void)s, (void)batch, (void)pass;
    *loss = 0;
    return 0;
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *out,
                 double *loss) {
    (void)out;
    return step(s, pass, batch, loss);
}

static int never(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    (void)arg, (void)example, (void)label, (void)output, (void)n;
    return 0;
}

static void assert_names(struct shmtrain_store *store, int rc, const char *name) {
    char sentence[128];
    snprintf(sentence, sizeof sentence, "size is 0 in a struct shmtrain_%s: set .size = sizeof(struct shmtrain_%s)", name,
             name);
    assert_int_equal(rc, SHMTRAIN_E_USAGE);
    assert_non_null(strstr(shmtrain_store_message(store), sentence));
}

static void each_call_asks_for_the_size(void **state) {
    struct shmtrain_store *store;
    const struct shmtrain_listener listener = {.arg = NULL};
    const struct shmtrain_hooks hooks = {.arg = NULL};
    const struct shmtrain_model model = {.name = "m", .tables = one_table, .step = step, .score = score};
    const struct shmtrain_stream stream = {.fd = 0, .name = "x"};
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    assert_names(store, shmtrain_store_listen(store, &listener), "listener");
    assert_names(store, shmtrain_store_hooks(store, &hooks), "hooks");
    assert_names(store, shmtrain_store_offer(store, &model), "model");
    assert_names(store, shmtrain_store_predict_stream(store, &stream, 0, never, NULL), "stream");
    assert_int_equal(shmtrain_store_listen(store, NULL), 0);
    assert_int_equal(shmtrain_store_hooks(store, NULL), 0);
    shmtrain_store_destroy(store);
}

static int push_without_a_size(shmtrain_session *s, void *arg) {
    static const uint64_t start[] = {0, 1};
    static const uint32_t id[] = {0};
    const struct shmtrain_csr x = {.n = 1, .start = start, .id = id};
    const float slope = 1;
    struct shmtrain_work w;
    (void)arg;
    const int rc = shmtrain_next(s, &w);
    return rc == 1 ? shmtrain_push_sparse(s, 0, &x, &slope) : rc;
}

/* Half of each struct, and what stands behind it. */
static int next_by_halves(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    struct shmtrain_fate fate;
    const uint32_t half_work = offsetof(struct shmtrain_work, step), half_fate = offsetof(struct shmtrain_fate, applied);
    int rc;
    (void)arg;
    memset(&w, 0x55, sizeof w);
    memset(&fate, 0x55, sizeof fate);
    while ((rc = shmtrain_next_sized(s, &w, half_work)) == 1) {
        if (w.size != half_work || w.n < 1 || w.step != 0x5555555555555555 || w.life != 0x55555555) return SHMTRAIN_E_DATA;
        if ((rc = shmtrain_clock_sized(s, &fate, half_fate)) < 0) return rc;
        if (fate.size != half_fate || fate.clock < 1 || fate.applied != 0x55555555) return SHMTRAIN_E_DATA;
    }
    return rc;
}

static void workers_have_structs_of_their_own_age(void **state) {
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    assert_int_equal(shmtrain_store_set(store, "workers", "1"), 0);
    assert_int_equal(shmtrain_store_set(store, "mode", "async"), 0);
    assert_int_equal(shmtrain_store_set(store, "epochs", "1"), 0);
    assert_int_equal(shmtrain_store_table(store, "t", 1, 1), 0);
    assert_int_equal(shmtrain_store_examples(store, 100), 0);
    assert_names(store, shmtrain_store_run(store, push_without_a_size, NULL), "csr");
    assert_int_equal(shmtrain_store_run(store, next_by_halves, NULL), 0);
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests_of_sizes[] = {
        cmocka_unit_test(a_shorter_struct_is_filled_up_with_zeros),
        cmocka_unit_test(a_longer_struct_is_taken_unless_it_asks_for_more),
        cmocka_unit_test(a_size_that_was_forgotten_is_named),
        cmocka_unit_test(what_is_given_ends_where_the_caller_s_struct_ends),
        cmocka_unit_test(each_call_asks_for_the_size),
        cmocka_unit_test(workers_have_structs_of_their_own_age),
    };
    return cmocka_run_group_tests(tests_of_sizes, NULL, NULL);
}
