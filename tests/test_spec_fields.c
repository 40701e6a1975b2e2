/* The table of a spec's fields: what is packed, what comes back of it, and what cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "ps/spec_fields.h"

/* Each field has a value that is within its bounds and seldom another's. */
static void fill(struct shmt_spec *spec) {
    const struct shmt_spec_field *f;
    memset(spec, 0, sizeof *spec);
    for (size_t i = 0; (f = shmt_spec_field_at(i)); i++) {
        const double range = f->is.most - f->is.least;
        if (shmt_bounded_is_real(&f->is))
            assert_true(shmt_bounded_set_real(&f->is, spec, f->is.least + (range < 1 ? range : 1) * (double)(i + 1) / 64));
        else
            assert_true(shmt_bounded_set_count(&f->is, spec, (uint64_t)fmin(f->is.least + (double)(i + 1), f->is.most)));
    }
    spec->order.n_examples = spec->n_examples;
}

/* Of version 13 of the manifest; programs of before have the same, but for the last word of `replicas`. */
static void the_packed_form_stays_what_it_is(void **state) {
    unsigned char packed[SHMT_SPEC_PACKED] = {0};
    struct shmt_spec spec;
    (void)state;
    fill(&spec);
    shmt_spec_pack(&spec, packed);
    assert_int_equal(XXH64(packed, sizeof packed, 0), UINT64_C(0x4467c17b1baea7bf));
}

static void each_byte_of_the_packed_form_is_of_one_field(void **state) {
    unsigned char covered[SHMT_SPEC_PACKED] = {0};
    const struct shmt_spec_field *f;
    (void)state;
    for (size_t i = 0; (f = shmt_spec_field_at(i)); i++) {
        const size_t bytes = shmt_bounded_size(&f->is) == 8 || (f->uses & SHMT_PACKED64) ? 8 : 4;
        assert_int_equal(f->packed % bytes, 0);
        for (size_t k = 0; k < bytes; k++) assert_int_equal(covered[f->packed + k]++, 0);
    }
    for (size_t k = 0; k < sizeof covered; k++) assert_int_equal(covered[k], 1);
}

static void what_was_packed_comes_back(void **state) {
    unsigned char packed[SHMT_SPEC_PACKED] = {0};
    struct shmt_spec spec, back;
    (void)state;
    fill(&spec);
    memset(&back, 0, sizeof back);
    shmt_spec_pack(&spec, packed);
    assert_null(shmt_spec_unpack(packed, &back));
    assert_memory_equal(&spec, &back, sizeof spec);
}

/* Also where only the upper half of 64 bits says so. */
static void a_field_beyond_its_bounds_is_found(void **state) {
    const struct shmt_spec_field *f;
    unsigned char packed[SHMT_SPEC_PACKED] = {0};
    struct shmt_spec spec, back = {0};
    (void)state;
    fill(&spec);
    for (size_t i = 0; (f = shmt_spec_field_at(i)); i++) {
        const bool is_real = shmt_bounded_is_real(&f->is), is_wide = shmt_bounded_size(&f->is) == 8;
        const float f32 = NAN;
        const double f64 = -1;
        const uint32_t beyond = UINT32_MAX;
        shmt_spec_pack(&spec, packed);
        if (is_real)
            is_wide ? memcpy(packed + f->packed, &f64, 8) : memcpy(packed + f->packed, &f32, 4);
        else if (f->uses & SHMT_PACKED64)
            packed[f->packed + 4] = 1;
        else if (f->is.most < UINT32_MAX)
            memcpy(packed + f->packed, &beyond, 4);
        else
            continue; /* it may have any value */
        assert_ptr_equal(shmt_spec_unpack(packed, &back), f);
    }
}

/* The row of a key. */
static const struct shmt_spec_field *row(const char *key) {
    const struct shmt_spec_field *f;
    for (size_t i = 0; (f = shmt_spec_field_at(i)); i++)
        if (strcmp(f->is.key, key) == 0) return f;
    fail_msg("no field %s", key);
    return NULL;
}

static void what_may_not_be_is_packed_as_it_is_and_refused_by_its_reader(void **state) {
    unsigned char packed[SHMT_SPEC_PACKED] = {0};
    struct shmt_spec spec, back = {0};
    (void)state;
    fill(&spec);
    spec.rule.l2 = NAN;
    shmt_spec_pack(&spec, packed);
    assert_ptr_equal(shmt_spec_unpack(packed, &back), row("l2"));
    fill(&spec);
    spec.policy.quorum = SHMT_MAX_SEATS + 1;
    shmt_spec_pack(&spec, packed);
    assert_ptr_equal(shmt_spec_unpack(packed, &back), row("quorum"));
}

static void a_field_of_32_bits_takes_no_more(void **state) {
    struct shmt_spec spec;
    (void)state;
    fill(&spec);
    const uint32_t before = spec.spin_seats;
    assert_false(shmt_bounded_set_count(&row("spin_seats")->is, &spec, (UINT64_C(1) << 32) + 1));
    assert_int_equal(spec.spin_seats, before);
    assert_true(shmt_bounded_set_count(&row("spin_seats")->is, &spec, UINT32_MAX));
}

static void all_words_have_names(void **state) {
    const struct shmt_spec_field *f;
    (void)state;
    for (size_t i = 0; (f = shmt_spec_field_at(i)); i++)
        for (uint32_t n = 0; f->is.word && n <= (uint32_t)f->is.most; n++) assert_true(strlen(f->is.word(n)) > 0);
}

static void a_report_has_what_the_spec_says(void **state) {
    struct shmtrain_report r = {.size = sizeof r};
    struct shmt_spec spec;
    (void)state;
    fill(&spec);
    spec.policy = (struct shmt_policy){.write = SHMT_WRITE_ATOMIC,
                                       .staleness = SHMT_STALENESS_INF,
                                       .replicas = SHMT_REPLICAS_NODE,
                                       .merge_every = 7,
                                       .merge = SHMT_MERGE_SUM};
    spec.rule.kind = SHMT_RULE_ADAM;
    spec.rate.kind = SHMT_RATE_STEP;
    shmt_spec_report(&spec, &r);
    assert_string_equal(r.write, "atomic");
    assert_string_equal(r.replicas, "node");
    assert_string_equal(r.optimizer, "adam");
    assert_string_equal(r.schedule, "step");
    assert_true(r.staleness == UINT64_MAX && r.merge_every == 7 && r.workers == spec.n_workers && r.batch == spec.batch);
    assert_true(r.item == spec.item && r.seed == spec.order.seed && r.hot_rows == spec.hot_floats);
    assert_true(r.rate == (double)spec.rate.base && r.l1 == (double)spec.rule.l1 && r.l2 == (double)spec.rule.l2);
    assert_true(r.size == sizeof r && !r.mode && r.threads == 0 && r.cores == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_packed_form_stays_what_it_is),
        cmocka_unit_test(each_byte_of_the_packed_form_is_of_one_field),
        cmocka_unit_test(what_was_packed_comes_back),
        cmocka_unit_test(a_field_beyond_its_bounds_is_found),
        cmocka_unit_test(what_may_not_be_is_packed_as_it_is_and_refused_by_its_reader),
        cmocka_unit_test(a_field_of_32_bits_takes_no_more),
        cmocka_unit_test(all_words_have_names),
        cmocka_unit_test(a_report_has_what_the_spec_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
