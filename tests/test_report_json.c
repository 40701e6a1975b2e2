/* report: the JSON object, for ordinary numbers and for those that JSON does not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report_help.h"

static const char GOLDEN[] =
    "{\"mode\":\"async\",\"mode_reason\":null,\"write\":\"racy\",\"staleness\":\"inf\",\"quorum\":8,\"late\":null,"
    "\"replicas\":\"one\",\"n_replicas\":1,\"hot_rows\":0,\"merge\":null,\"merge_every\":0,\"merge_all_every\":0,"
    "\"copies_reason\":null,\"slow\":null,\"race_seconds\":null,\"race_share\":null,\"backend\":\"shm\",\"spawn\":null,\"sim\":"
    "null,"
    "\"workers\":8,\"threads\":1,\"cores\":null,\"model\":\"logistic\",\"columns\":null,\"optimizer\":\"sgd\",\"rate\":0.0625,"
    "\"schedule\":"
    "\"inverse\","
    "\"warmup\":0.0,\"momentum\":0.0,\"l1\":0.0,\"l2\":0.0,\"weight_decay\":0.0,\"clip_value\":0.0,\"clip_norm\":0.0,"
    "\"tolerance\":null,"
    "\"scaled\":false,"
    "\"choice\":null,"
    "\"batch\":256,\"item\":1024,\"seed\":1,\"guests\":0,\"hosts\":1,\"host\":0,\"numa\":\"off\",\"numa_"
    "nodes\":1,"
    "\"page_bytes\":4096,\"cpu\":\"avx2\",\"blas\":null,"
    "\"dataset\":{\"name\":\"a9a\",\"examples\":32561,\"features\":123,\"nonzeros\":451592,\"skipped_lines\":0},"
    "\"valid\":{\"name\":\"a9a.t\",\"examples\":16281,\"features\":123,\"nonzeros\":225776,\"skipped_lines\":0},\"best_loss\":"
    "null,"
    "\"epochs\":[{\"epoch\":1,\"partial\":false,\"examples\":32561,\"seconds\":0.0625,\"train_loss\":0.375,"
    "\"valid_loss\":0.34375,\"valid_accuracy\":0.84375,\"valid_auc\":0.8984375},"
    "{\"epoch\":2,\"partial\":true,\"examples\":1024,\"seconds\":0.03125,\"train_loss\":0.328125,"
    "\"valid_loss\":null,\"valid_accuracy\":null,\"valid_auc\":null}],"
    "\"kept_epoch\":null,\"stopped\":true,\"stopped_by\":null,\"seconds\":1.5,\"load_seconds\":0.25,\"first_step_seconds\":0.5,"
    "\"train_seconds\":0."
    "09375,"
    "\"examples\":33585,\"updates\":33585,\"examples_per_second\":358240.0,\"wait_fraction\":0.125,\"wait_epoch_fraction\":0.0,"
    "\"waits_mostly_for\":1,\"merge_fraction\":0.0,\"merges\":0,\"dropped\":0,\"folded\":0,"
    "\"delay\":{\"mean\":256.0,\"p50\":0.0,\"p99\":1024.0,\"max\":1024.0,\"clocks\":0.25,\"unit\":\"updates\",\"samples\":4,"
    "\"histogram\":[{\"from\":0,\"to\":0,\"samples\":3},{\"from\":1024,\"to\":1151,\"samples\":1}]},"
    "\"per_worker\":[{\"worker\":0,\"joined\":false,\"examples\":22390,\"dropped\":0,\"folded\":0,\"compute_seconds\":0.0625,"
    "\"wait_seconds\":0.03125,\"wait_epoch_seconds\":0.0,\"merge_seconds\":0.0,\"evaluate_seconds\":0.0,\"checkpoint_seconds\":"
    "0.0,"
    "\"load_seconds\":0.25,\"delay\":512.0,\"waited_for\":[{\"worker\":1,\"seconds\":0.03125}]},"
    "{\"worker\":1,\"joined\":true,\"examples\":11195,\"dropped\":0,\"folded\":0,\"compute_seconds\":0.09375,"
    "\"wait_seconds\":0.0,\"wait_epoch_seconds\":0.0,\"merge_seconds\":0.0,\"evaluate_seconds\":0.125,\"checkpoint_seconds\":0."
    "25,"
    "\"load_seconds\":null,\"delay\":null,\"waited_for\":[]}],"
    "\"checkpoints\":3,\"checkpoint_seconds\":0.125,\"respawns\":3,\"redone\":256,\"skipped\":64,\"stalls\":2,"
    "\"sent_bytes\":0,\"received_bytes\":0,\"lost_updates\":"
    "null,\"lost_lowest\":null,\"lost_highest\":null,\"parameter_bytes\":496,\"parameters_"
    "xxh64\":\"0123456789abcdef\"}\n";

static void a_report_is_one_line_of_json_with_these_names(void **state) {
    const struct shmtrain_report r = ordinary();
    char *text = shmtrain_report_json(&r);
    (void)state;
    assert_non_null(text);
    assert_string_equal(text, GOLDEN);
    free(text);
}

static json_t *parsed(const struct shmtrain_report *r) {
    char *text = shmtrain_report_json(r);
    assert_non_null(text);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    free(text);
    return o;
}

static void numbers_that_json_does_not_have_are_null(void **state) {
    struct shmtrain_report r = ordinary();
    (void)state;
    r.rate = INFINITY;
    r.seconds = NAN;
    r.examples_per_second = -INFINITY;
    r.valid.name = "";
    json_t *o = parsed(&r);
    assert_true(json_is_null(json_object_get(o, "rate")));
    assert_true(json_is_null(json_object_get(o, "seconds")));
    assert_true(json_is_null(json_object_get(o, "examples_per_second")));
    assert_true(json_is_null(json_object_get(o, "valid")));
    json_decref(o);
}

static void a_bound_on_staleness_is_a_number(void **state) {
    struct shmtrain_report r = ordinary();
    (void)state;
    r.staleness = 0;
    json_t *o = parsed(&r);
    assert_true(json_is_integer(json_object_get(o, "staleness")));
    json_decref(o);
}

static void a_run_without_epochs_has_an_empty_list(void **state) {
    struct shmtrain_report r = ordinary();
    (void)state;
    r.n_epochs = 0;
    r.epoch = NULL;
    json_t *o = parsed(&r);
    assert_int_equal(json_array_size(json_object_get(o, "epochs")), 0);
    assert_true(json_is_array(json_object_get(o, "epochs")));
    json_decref(o);
}

/* A path is bytes, JSON is UTF-8: what is not becomes a question mark, byte for byte. */
static void a_file_name_that_is_no_utf8_is_still_named(void **state) {
    struct shmtrain_report r = ordinary();
    (void)state;
    r.dataset.name = "caf\xe9/\"a\\b\n.svm";
    r.valid.name = "caf\xc3\xa9";
    json_t *o = parsed(&r);
    assert_string_equal(json_string_value(json_object_get(json_object_get(o, "dataset"), "name")), "caf?/\"a\\b\n.svm");
    assert_string_equal(json_string_value(json_object_get(json_object_get(o, "valid"), "name")), "caf\xc3\xa9");
    json_decref(o);
}

/* ---- lines ---- */

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_report_is_one_line_of_json_with_these_names),
        TEST(numbers_that_json_does_not_have_are_null),
        TEST(a_bound_on_staleness_is_a_number),
        TEST(a_run_without_epochs_has_an_empty_list),
        TEST(a_file_name_that_is_no_utf8_is_still_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
