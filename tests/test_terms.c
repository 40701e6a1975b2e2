/* Tests of lists of terms (update/terms.h): what is written, when there is room, and that a sum has the same bits whoever takes
 * which part of it. */
#include "store_help.h"

#include <stdio.h>

#include "update/path.h"
#include "update/terms.h"

enum { PARAMETERS = 3000, BLOCKS = (PARAMETERS + SHMT_TERMS_BLOCK - 1) / SHMT_TERMS_BLOCK, MOST = 700 };

struct list {
    struct shmt_terms_head head;
    uint32_t id[MOST];
    float value[MOST];
};

static struct shmt_terms terms_of(struct list *list, uint32_t most) {
    return (struct shmt_terms){.head = &list->head, .id = list->id, .value = list->value, .most = most, .first = 16};
}

/* Half of them in the first lines, as in text. */
static void fill(struct list *list, struct dice *d) {
    list->head.n = (uint32_t)roll(d, MOST + 1);
    for (uint32_t k = 0; k < list->head.n; k++) {
        list->id[k] = (uint32_t)roll(d, roll(d, 2) ? 40 : PARAMETERS);
        list->value[k] = draw(d);
    }
}

static void sums_have_the_same_bits_however_parameters_are_cut(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct dice d = {.seed = seed};
        struct list list;
        float plain[PARAMETERS] = {0}, sum[PARAMETERS] = {0};
        uint8_t touched[BLOCKS] = {0};
        fill(&list, &d);
        for (uint32_t k = 0; k < list.head.n; k++) plain[list.id[k]] += list.value[k];
        const uint32_t cpu = (uint32_t)(seed % SHMT_N_CPUS);
        for (uint32_t from = 0, to; from < PARAMETERS; from = to) {
            to = from + 1 + (uint32_t)roll(&d, seed % 3 ? PARAMETERS : 50);
            if (to > PARAMETERS) to = PARAMETERS;
            shmt_path_of(cpu)->terms_sum(list.id, list.value, list.head.n, from, to, sum, touched);
        }
        assert_memory_equal(sum, plain, sizeof sum);
        for (uint32_t i = 0; i < PARAMETERS; i++) assert_true(sum[i] == 0 || touched[i / SHMT_TERMS_BLOCK]);
    }
}

/* Lists lie in memory that other processes map. */
static void ids_outside_of_the_range_are_never_used(void **state) {
    static const uint32_t ids[] = {99, 100, 199, 200, 0, UINT32_MAX, UINT32_MAX - 50, 1u << 31};
    uint32_t id[64];
    float value[64], sum[201] = {0};
    uint8_t touched[1] = {0};
    (void)state;
    for (uint32_t k = 0; k < 64; k++) id[k] = ids[k % 8], value[k] = 1;
    for (uint32_t cpu = 0; cpu < SHMT_N_CPUS; cpu++) shmt_path_of(cpu)->terms_sum(id, value, 64, 100, 200, sum, touched);
    for (uint32_t i = 0; i < 201; i++) assert_true(sum[i] == (i == 100 || i == 199 ? 8.0f * SHMT_N_CPUS : 0));
}

static void rows_go_into_the_list_while_there_is_room_and_then_into_the_buffer(void **state) {
    struct dice d = {.seed = 5};
    struct table t;
    struct list list = {.head = {0}};
    const uint32_t id[6] = {3, 9, 20, 100, 150, 7};
    const float value[6] = {1, 2, 3, 4, 5, 6}, slope[3] = {10, 0.5f, -1};
    const uint64_t start[4] = {0, 2, 5, 6};
    const struct shmtrain_csr x = {.size = sizeof x, .n = 3, .bias = 1, .start = start, .id = id, .value = value};
    (void)state;
    make_table(&t, &d);
    struct shmt_span span = span_of(&t, SHMT_WRITE_AGGREGATE, SHMT_RULE_SGD);
    span.touched = t.touched;
    span.terms = terms_of(&list, 4); /* two terms and a bias; three have no room, but their bias; nothing else has */
    shmt_kernels_find(SHMT_WRITE_AGGREGATE, SHMT_RULE_SGD, true, false)
        ->push_sparse(&span, &x, slope, &(const struct shmt_update){.rate = 1, .scale = 1});
    assert_int_equal(list.head.n, 4);
    assert_int_equal(list.head.summed, 1);
    static const uint32_t listed[4] = {16 + 3, 16 + 9, 16 + ROWS - 1, 16 + ROWS - 1};
    static const float values[4] = {10, 20, 10, 0.5f};
    assert_memory_equal(list.id, listed, sizeof listed);
    assert_memory_equal(list.value, values, sizeof values);
    assert_true(t.grad[20] == 1.5f && t.grad[100] == 2 && t.grad[150] == 2.5f && t.grad[7] == -6 && t.grad[ROWS - 1] == -1);
    assert_true(t.grad[3] == 0 && t.grad[9] == 0 && t.touched[0] && t.touched[1]);
}

static void a_count_beyond_the_list_leaves_no_room(void **state) {
    struct list list = {.head = {.n = MOST + 1}};
    const struct shmt_terms terms = terms_of(&list, MOST);
    uint32_t at = 77;
    (void)state;
    assert_false(shmt_terms_take(&terms, 0, &at));
    assert_false(shmt_terms_take(&terms, UINT64_MAX, &at));
    list.head.n = MOST - 1;
    assert_false(shmt_terms_take(&terms, 2, &at));
    assert_false(shmt_terms_take(&terms, UINT64_MAX, &at));
    assert_true(shmt_terms_take(&terms, 1, &at) && at == MOST - 1 && list.head.n == MOST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_same_bits_however_parameters_are_cut),
        cmocka_unit_test(ids_outside_of_the_range_are_never_used),
        cmocka_unit_test(rows_go_into_the_list_while_there_is_room_and_then_into_the_buffer),
        cmocka_unit_test(a_count_beyond_the_list_leaves_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
