/* Checkpoints of exact fits as files: what is written comes back, and what no fit can have kept is a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_files_help.h"
#include "folder_help.h"
#include "seal_help.h"
#include "keeping/checkpoint_priv.h"
#include "files/model_read.h"

enum { N = 90 };

static const double POINT[ROWS] = {0.1, -1e-300, 2, 3e100, -0.0};
static double g_dual[N];
static struct shmt_interior g_stands[N];
static const struct shmtrain_epoch PROOFS[2] = {{1, 0, N, 0.25, 0.5, NAN, NAN, NAN, 0.625, -1, 0, 0, 0, {0}},
                                                {2, 0, N, 0.5, 0.25, NAN, NAN, NAN, 0.5, NAN, 0, 0, 0, {0}}};

/* Of a fit by dual ascent, or by interior points. */
static struct shmt_checkpoint fit_sample(bool interior) {
    struct shmt_checkpoint c = sample();
    for (int i = 0; i < N; i++) {
        g_dual[i] = i % 3 - 1;
        g_stands[i] = (struct shmt_interior){0.5, 1e-9 * (i + 1)};
    }
    c.at = (struct shmt_moment){.epoch = 2, .n_records = 2, .record = PROOFS, .seconds = 2.5};
    c.spec.policy = (struct shmt_policy){.write = SHMT_WRITE_AGGREGATE};
    c.spec.batch = N;
    c.spec.n_chunks = 1;
    snprintf(c.mode, sizeof c.mode, "sync");
    snprintf(c.model, sizeof c.model, "svm");
    c.fit = (struct shmt_checkpoint_fit){.is = true,
                                         .l2 = 0.1,
                                         .tolerance = 1e-6,
                                         .kept = {.direct = interior,
                                                  .interior = interior,
                                                  .idle = 3,
                                                  .unproved = 1,
                                                  .choice_loss = INFINITY,
                                                  .primal = 0.5,
                                                  .dual = -INFINITY,
                                                  .best = 1.0 / 3,
                                                  .gap = INFINITY,
                                                  .stuck = 0.1,
                                                  .published = 0.1 + 0.2,
                                                  .nearer = 1e-17,
                                                  .along = -1e-9,
                                                  .small = 1e-3},
                                         .rows = ROWS,
                                         .width = 1,
                                         .point = POINT,
                                         .n_dual = interior ? 0 : N,
                                         .dual = g_dual,
                                         .n_inner = interior ? N : 0,
                                         .stands = g_stands};
    return c;
}

static void assert_bad(const char *path, const char *words) {
    struct shmt_checkpoint_in *in = NULL;
    struct shmt_error e = {0};
    assert_int_equal(shmt_checkpoint_open(path, &in, &e), SHMTRAIN_E_DATA);
    assert_null(in);
    if (!strstr(e.text, words)) fail_msg("expected \"%s\" in: %s", words, e.text);
    for (const char *at = e.text; *at; at++) assert_in_range((unsigned char)*at, ' ', '~');
}

static void all_bits_of_a_fit_come_back(void **state) {
    (void)state;
    for (int interior = 0; interior < 2; interior++) {
        const struct shmt_checkpoint c = fit_sample(interior);
        char path[PATH_MAX];
        write_sample(&c, 3, path);
        assert_string_equal(path, "./checkpoint-000000000002.safetensors");
        struct shmt_checkpoint_in *in = open_good(path);
        const struct shmt_checkpoint *b = shmt_checkpoint_of(in);
        const struct shmt_checkpoint_fit *fit = &b->fit;
        assert_true(fit->is && fit->live == 0 && fit->l1 == 0 && fit->l2 == 0.1 && fit->tolerance == 1e-6);
        assert_memory_equal(&fit->kept, &c.fit.kept, sizeof fit->kept);
        assert_true(fit->rows == ROWS && fit->width == 1);
        assert_memory_equal(fit->point, POINT, sizeof POINT);
        assert_int_equal(fit->n_dual, interior ? 0 : N);
        assert_int_equal(fit->n_inner, interior ? N : 0);
        if (interior)
            assert_memory_equal(fit->stands, g_stands, sizeof g_stands);
        else
            assert_memory_equal(fit->dual, g_dual, sizeof g_dual);
        assert_true(b->at.record[0].objective == 0.625 && b->at.record[0].bound == -1);
        assert_true(b->at.record[1].objective == 0.5 && isnan(b->at.record[1].bound));
        shmt_checkpoint_close(in);
    }
}

static void rows_of_the_point_may_stand_in_another_order_in_memory(void **state) {
    (void)state;
    static const uint32_t PLACE[ROWS] = {4, 2, 0, 1, 3};
    struct shmt_checkpoint c = fit_sample(false);
    char path[PATH_MAX];
    c.fit.place = PLACE;
    write_sample(&c, 3, path);
    struct shmt_checkpoint_in *in = open_good(path);
    for (int i = 0; i < ROWS; i++) assert_true(shmt_checkpoint_of(in)->fit.point[i] == POINT[PLACE[i]]);
    shmt_checkpoint_close(in);
}

/* ---- files whose seal is right ---- */

/* The sample with `key` of the note `in_note` set to `value` (JSON; NULL: taken away; key NULL: there is no such note), and without
 * tensor `without`, or with a number of tensor `broken` that is none. */
struct change {
    const char *in_note, *key, *value, *without, *broken;
};

static char *changed(const char *text, const struct change *by) {
    json_t *note = json_loads(text, 0, NULL);
    assert_non_null(note);
    if (by->value)
        assert_int_equal(json_object_set_new(note, by->key, json_loads(by->value, JSON_DECODE_ANY, NULL)), 0);
    else
        assert_int_equal(json_object_del(note, by->key), 0);
    char *out = json_dumps(note, JSON_REAL_PRECISION(17));
    json_decref(note);
    return out;
}

static void write_with(bool interior, const struct change *by) {
    static const char *const KEYS[] = {SHMT_MODEL_CHECKPOINT, SHMT_MODEL_FIT};
    const struct shmt_checkpoint c = fit_sample(interior);
    char path[PATH_MAX];
    struct shmt_model_in *in;
    struct shmt_error e = {0};
    struct shmt_note note[2];
    struct shmt_tensor tensor[16];
    uint32_t n = 0, n_notes = 0;
    write_sample(&c, 3, path);
    assert_int_equal(shmt_model_open(path, &in, &e), 0);
    for (int k = 0; k < 2; k++) {
        const bool here = by->in_note && strcmp(by->in_note, KEYS[k]) == 0;
        const char *text = shmt_model_note(in, KEYS[k]);
        if (here && !by->key) continue;
        note[n_notes++] = (struct shmt_note){KEYS[k], here ? changed(text, by) : strdup(text)};
    }
    for (uint32_t i = 0; i < shmt_model_n_all(in); i++) {
        const struct shmt_tensor *from = shmt_model_tensor(in, i);
        if (by->without && strcmp(from->name, by->without) == 0) continue;
        void *data = calloc(from->rows * from->width + 1, 8);
        assert_int_equal(shmt_model_read_tensor(in, i, data, &e), 0);
        if (by->broken && strcmp(from->name, by->broken) == 0) ((double *)data)[from->rows * from->width - 1] = NAN;
        tensor[n] = *from;
        tensor[n++].data = data;
    }
    if (shmt_model_file_write_own("made", "it", tensor, n, note, n_notes, &e) < 0) fail_msg("%s", e.text);
    for (uint32_t i = 0; i < n; i++) free((void *)(uintptr_t)tensor[i].data);
    for (uint32_t i = 0; i < n_notes; i++) free((void *)(uintptr_t)note[i].value);
    shmt_model_close(in);
}

#define FIT(key, value) \
    { SHMT_MODEL_FIT, key, value, NULL, NULL }
#define RUN_(key, value) \
    { SHMT_MODEL_CHECKPOINT, key, value, NULL, NULL }

static void each_number_is_checked(void **state) {
    (void)state;
    static const struct {
        struct change by;
        const char *words;
    } CASES[] = {
        {FIT(NULL, NULL), "key \"shmtrain.fit\": is missing"},
        {RUN_("format", "1"), "key \"shmtrain.fit\": checkpoints of format 1 have none"},
        {RUN_("batch", "45"), "an exact fit stands at the end of an epoch, which has one step"},
        {RUN_("step", "1"), "ledger/done"},
        {FIT("live", "3"), "\"live\": this value is not possible"},
        {FIT("live", "0.0"), "\"live\": this value is not possible"},
        {FIT("live", "-1"), "\"live\""},
        {FIT("tolerance", NULL), "\"tolerance\": is missing"},
        {FIT("tolerance", "0"), "\"tolerance\": this value is not possible"},
        {FIT("tolerance", "2"), "\"tolerance\""},
        {FIT("l2", "0"), "\"l2\": this value contradicts others"},
        {FIT("l2", "\"1\""), "\"l2\": this value is not possible"},
        {FIT("chosen", "1"), "\"chosen\": this value contradicts others"},
        {FIT("scaled", "2"), "\"scaled\""},
        {FIT("strength", "7"), "\"strength\""},
        {FIT("strength", "6"), "\"l2\": this value contradicts others"},
        {FIT("fits", "1"), "\"chosen\": this value contradicts others"},
        {FIT("direct", "4294967296"), "\"direct\""},
        {FIT("interior", "1"), "fit/interior"},
        {FIT("leaves", "true"), "\"leaves\""},
        {FIT("leaves", "1"), "\"leaves\": this value contradicts others"},
        {FIT("returns", "1"), "\"returns\": this value contradicts others"},
        {FIT("may_leave", "2"), "\"may_leave\""},
        {FIT("idle", "61"), "\"idle\": this value is not possible"},
        {FIT("unproved", "4"), "\"unproved\": this value is not possible"},
        {FIT("halvings", "17"), "\"halvings\": this value is not possible"},
        {FIT("halvings", "1"), "\"halvings\": this value contradicts others"},
        {FIT("primal", "null"), "\"primal\": this value is not possible"},
        {FIT("primal", "1e301"), "\"primal\""},
        {FIT("primal", "0.3"), "\"best\": this value contradicts others"},
        {FIT("best", "-1"), "\"best\""},
        {FIT("bound", "0.34"), "\"bound\": this value contradicts others"},
        {FIT("objective", "-1e-9"), "\"objective\""},
        {FIT("small_curve", "1.5"), "\"small_curve\""},
        {FIT("promise", "null"), "\"promise\": this value is not possible"},
        {{.without = "fit/point"}, "key \"fit/point\": this tensor is missing"},
        {{.without = "fit/epochs"}, "key \"fit/epochs\": it does not have a row for each finished epoch"},
        {{.broken = "fit/point"}, "key \"fit/point\": it has numbers that are not finite"},
        {{.broken = "fit/dual"}, "key \"fit/dual\": it does not have a finite number for each example"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        write_with(false, &CASES[i].by);
        assert_bad("made", CASES[i].words);
    }
    static const struct change OF_INTERIOR[] = {
        {.without = "fit/interior"}, {.broken = "fit/interior"}, FIT("interior", "0"), FIT("leaves", "1")};
    for (size_t i = 0; i < sizeof OF_INTERIOR / sizeof *OF_INTERIOR; i++) {
        write_with(true, &OF_INTERIOR[i]);
        assert_bad("made", OF_INTERIOR[i].key && strcmp(OF_INTERIOR[i].key, "leaves") == 0 ? "\"leaves\"" : "fit/interior");
    }
    write_with(false, &(struct change)FIT("unknown", "[1]")); /* of a later version that says more: no harm */
    shmt_checkpoint_close(open_good("made"));
    write_with(false, &(struct change)FIT("promise", NULL)); /* of an earlier one, which had none */
    struct shmt_checkpoint_in *in = open_good("made");
    assert_true(shmt_checkpoint_of(in)->fit.kept.along == 0);
    shmt_checkpoint_close(in);
}

/* Without its seal a bit that turns is always seen; with one that was made right the file is refused, or all in it is possible. */
static void any_bit_that_turns_is_seen_or_does_no_harm(void **state) {
    (void)state;
    const struct shmt_checkpoint c = fit_sample(false);
    char path[PATH_MAX];
    size_t n;
    unsigned taken = 0;
    write_sample(&c, 3, path);
    unsigned char *bytes = read_file(path, &n), *turned = malloc(n);
    assert_non_null(turned);
    for (size_t i = 0; i < n; i++) {
        struct shmt_checkpoint_in *in = NULL;
        struct shmt_error e = {0};
        memcpy(turned, bytes, n);
        turned[i] ^= (unsigned char)(1 << i % 8);
        write_bytes("turned", turned, n);
        if (shmt_checkpoint_open("turned", &in, &e) != SHMTRAIN_E_DATA) fail_msg("bit %zu of byte %zu", i % 8, i);
        make_seal(turned, n);
        write_bytes("turned", turned, n);
        e = (struct shmt_error){0};
        if (shmt_checkpoint_open("turned", &in, &e) < 0) {
            assert_true(e.text[0] != '\0');
            continue;
        }
        const struct shmt_checkpoint_fit *fit = &shmt_checkpoint_of(in)->fit;
        assert_true(fit->is && fit->live <= SHMT_LIVE_ATOMIC && fit->width > 0 && fit->rows > 0);
        assert_true(shmt_checkpoint_are_finite(fit->point, fit->rows * fit->width));
        assert_true(fit->n_dual == 0 || (fit->n_dual == N && shmt_checkpoint_are_finite(fit->dual, N)));
        assert_true(isfinite(fit->kept.primal) && fit->kept.best <= fit->kept.primal);
        taken++;
        shmt_checkpoint_close(in);
    }
    assert_true(taken > 0);
    for (size_t i = 0; i < n; i += 37) {
        write_bytes("short", bytes, i);
        assert_bad("short", "short");
    }
    free(turned);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_bits_of_a_fit_come_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(rows_of_the_point_may_stand_in_another_order_in_memory, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(each_number_is_checked, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(any_bit_that_turns_is_seen_or_does_no_harm, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
